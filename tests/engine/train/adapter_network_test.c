// The networks of adapters, EAGLE's heads and drafts of blocks, of every variant, number of forwards, layers
// and sizes of blocks: losses and gradients against the plain network in double, independent of the number
// of threads.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/plain_network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VARIANTS = ADAPTER_MEDUSA + 1, DRAFTS = 4, STATES = 3 }; // EAGLE-3 and DFlash read so many states

// A target in name, and a batch of random states in documents; some rows have nothing to learn.
typedef struct Case {
    Model target;
    AdapterKind kind;
    int forwards; // of an EAGLE head
    float *head, *embedding, *states, *wanted;
    int tokens[PLAIN_ROWS], targets[PLAIN_ROWS], start[PLAIN_ROWS], blocks[PLAIN_ROWS], masked[PLAIN_ROWS];
    Batch batch;
} Case;

static float *random_floats(size_t n, Random *r) {
    float *x = mem_new(n, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = random_normal(r);
    return x;
}

// Blocks of any length up to the whole, whose tokens but the first are masks.
static void add_blocks(Case *c, Random *r) {
    BlockDraft *b = &c->kind.block;
    for (int i = 0, end = 0; i < c->batch.rows; i++) {
        bool begins = i == end || c->start[i] == i;
        if (begins) end = i + test_between(r, 1, b->rows);
        c->blocks[i] = begins ? i : c->blocks[i - 1];
        c->masked[i] = begins ? c->tokens[i] : 0;
    }
    c->batch.blocks = c->blocks;
    c->batch.text = c->tokens;
    c->batch.tokens = c->masked;
}

static void choose_block(Case *c, Random *r) {
    AdapterKind *k = &c->kind;
    k->captures = (Captures){STATES, {1, 1, 2}};
    k->normed_heads = true;
    k->layers = test_between(r, 1, 3);
    k->block = (BlockDraft){.rows = test_between(r, 2, 9), .from_root = true};
    if (random_below(r, 3)) k->block.markov = MARKOV_VANILLA;
    if (k->block.markov) k->block.rank = test_between(r, 1, 20);
    if (k->block.markov && random_below(r, 3)) k->block.confidence = CONFIDENCE_TOKEN;
}

// v: an AdapterVariant; an EAGLE head has any number of forwards.
static void open_case(Case *c, int v, int rows, int longest, Random *r) {
    int kv = test_between(r, 1, 2), size = 2 * test_between(r, 1, 5), width = test_between(r, 3, 40),
        vocab = test_between(r, 5, 60), heads = kv * test_between(r, 1, 3);
    Shape s = {.layers = 3,
               .width = width,
               .heads = heads,
               .kv_heads = kv,
               .head_dim = size,
               .mlp_width = test_between(r, 1, 50),
               .vocab = vocab + 3,
               .real_vocab = vocab, // the last ids are masked
               .context = PLAIN_ROWS,
               .norm_epsilon = 1e-5f,
               .rope = {.theta = 10000, .factor = 1, .pairs = size / 2, .attention_factor = 1}};
    *c = (Case){.target.shape = s, .kind = {.exit_layer = 2, .heads = 1}};
    c->kind.variant = (AdapterVariant)v;
    if (v == ADAPTER_MEDUSA) c->kind = (AdapterKind){.variant = ADAPTER_MEDUSA, .exit_layer = 3, .heads = 2};
    if (adapter_is_eagle(c->kind.variant)) c->forwards = test_between(r, 1, FORWARDS_MAX);
    if (v == ADAPTER_EAGLE3) c->kind.captures = (Captures){STATES, {1, 1, 2}};
    c->kind.recycles_normed = v == ADAPTER_MTP && random_below(r, 2);
    c->kind.normed_heads = v == ADAPTER_EAGLE3 && random_below(r, 2);
    if (v == ADAPTER_EAGLE3 && random_below(r, 2)) c->kind.vocab = test_between(r, 2, vocab);
    if (v == ADAPTER_EAGLE3 && random_below(r, 2)) { // P-EAGLE
        c->kind.mask = test_between(r, 1, vocab - 1);
        c->kind.layers = test_between(r, 0, 3);
    }
    if (v == ADAPTER_DFLASH) choose_block(c, r);
    if (random_below(r, 2)) c->kind.kv_heads = kv;
    c->head = random_floats((size_t)s.vocab * (size_t)width, r);
    c->embedding = random_floats((size_t)s.vocab * (size_t)width, r);
    c->states = random_floats((size_t)rows * STATES * (size_t)width, r);
    c->wanted = random_floats((size_t)(rows + FORWARDS_MAX) * (size_t)width, r);
    for (int i = 0, start = 0; i < rows; i++) {
        if (i - start >= longest || random_below(r, 12) == 0) start = i;
        c->start[i] = start;
        c->targets[i] = random_below(r, 6) ? 0 : -1;
        c->tokens[i] = test_between(r, 0, vocab - 1);
    }
    c->batch = (Batch){.tokens = c->tokens,
                       .targets = c->targets,
                       .start = c->start,
                       .rows = rows,
                       .states = c->states,
                       .wanted = c->wanted};
    if (v == ADAPTER_DFLASH) add_blocks(c, r);
}

static void close_case(Case *c) {
    mem_free(c->head);
    mem_free(c->embedding);
    mem_free(c->states);
    mem_free(c->wanted);
}

static Network open_network(const Case *c, int threads, const char *isa) {
    Network n;
    Error e = {0};
    AdapterPart part = {.kind = c->kind,
                        .head = c->kind.heads - 1,
                        .target = &c->target,
                        .target_head = c->head,
                        .forwards = c->forwards,
                        .target_embedding = c->kind.variant >= ADAPTER_EAGLE ? c->embedding : NULL};
    NetworkOptions o = {.rows = c->batch.rows, .longest = c->batch.rows, .threads = threads, .isa = isa};
    if (!network_open_adapter(&n, &part, &o, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < n.parameters.total; i++) n.weights[i] = 0;
    return n;
}

// Smaller in a draft, whose outputs would grow from forward to forward, or from layer to layer.
static void random_weights(const Network *n, Random *r) {
    double size = shape_reads_both(&n->shape) ? 0.3 : 1;
    for (size_t i = 0; i < n->parameters.total; i++)
        n->weights[i] = (float)(size * (random_uniform(r) - 0.5));
}

static void check_variant(const TrainKernels *k, int v, Random *r) {
    Case c;
    open_case(&c, v, test_between(r, 1, 70), 40, r);
    Network n = open_network(&c, 2, k->name);
    random_weights(&n, r);
    plain_compare(&n, &c.batch, r);
    network_close(&n);
    close_case(&c);
}

static void for_variants(void (*check)(const TrainKernels *k, int v, Random *r), int first, int count,
                         int rounds, uint64_t stream) {
    Random r = test_random(stream);
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        for (int round = 0; available && round < rounds; round++)
            for (int v = first; v < first + count; v++) check(k, v, &r);
    }
}

static void plain_network(void **state) {
    (void)state;
    for_variants(check_variant, 0, VARIANTS, 6, 1);
}

// One thread or three, not a bit may differ.
static void compare_threads(const TrainKernels *k, int v, Random *r) {
    Case c;
    open_case(&c, v, PLAIN_ROWS, 150, r);
    Network one = open_network(&c, 1, k->name), three = open_network(&c, 3, k->name);
    size_t bytes = one.parameters.total * sizeof(float);
    random_weights(&one, r);
    memcpy(three.weights, one.weights, bytes);
    double a = network_learn(&one, &c.batch, 1), b = network_learn(&three, &c.batch, 1);
    assert_true(a == b);
    assert_memory_equal(one.gradients, three.gradients, bytes);
    network_close(&three);
    network_close(&one);
    close_case(&c);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    for_variants(compare_threads, 0, VARIANTS, 6, 2);
    for_variants(compare_threads, VARIANTS, DRAFTS, 2, 7);
}

// An EAGLE head that reads its own outputs, or masks: fc with its bias, the two norms, the rows that each
// forward sees, and gradients through all of them; a draft of blocks: the context's, and those of its heads.
static void plain_drafts(void **state) {
    (void)state;
    for_variants(check_variant, VARIANTS, DRAFTS, 4, 5);
}

// A Medusa head that adds nothing and has the target's head says what the target says; with another token's
// row in place of each it says another token. Masked ids are never said.
static void agreement(void **state) {
    (void)state;
    Random r = test_random(3);
    Case c;
    open_case(&c, ADAPTER_MEDUSA, 90, 40, &r);
    Network n = open_network(&c, 1, NULL);
    size_t width = (size_t)n.shape.width, vocab = (size_t)n.shape.real_vocab;
    float *head = n.weights + n.parameters.at[W_HEAD];
    int learned = 0;
    c.batch.wanted = c.states;
    for (int i = 0; i < 90; i++) learned += c.targets[i] >= 0;
    memcpy(head, c.head, (size_t)n.shape.vocab * width * sizeof *head);
    network_loss(&n, &c.batch);
    assert_int_equal(n.parts->learned, learned);
    assert_int_equal(n.parts->agreed, learned);
    memcpy(head, c.head + width, (vocab - 1) * width * sizeof *head);
    memcpy(head + (vocab - 1) * width, c.head, width * sizeof *head);
    network_loss(&n, &c.batch);
    assert_int_equal(n.parts->agreed, 0);
    network_close(&n);
    close_case(&c);
}

static void expect_refused(const Case *c, int longest, const char *want) {
    Network n;
    Error e = {0};
    AdapterPart part = {.kind = c->kind, .target = &c->target, .target_head = c->head};
    assert_false(network_open_adapter(&n, &part, &(NetworkOptions){.rows = 90, .longest = longest}, &e));
    if (!strstr(e.text, want)) fail_msg("wanted '...%s...', got '%s'", want, e.text);
    network_close(&n);
}

static void refusals(void **state) {
    (void)state;
    Random r = test_random(4);
    Case c;
    open_case(&c, ADAPTER_ONE_LAYER, 90, 40, &r);
    c.target.shape.window = 30;
    expect_refused(&c, 31, "window of 30");
    c.target.shape.window = 0;
    expect_refused(&c, PLAIN_ROWS + 1, "with a context of");
    c.target.shape.activation = ACTIVATION_GELU_TANH;
    expect_refused(&c, 30, "silu");
    c.kind.exit_layer = 3;
    expect_refused(&c, 30, "exit layer");
    close_case(&c);
    open_case(&c, ADAPTER_DFLASH, 90, 40, &r);
    c.kind.block.markov = MARKOV_RNN;
    expect_refused(&c, 30, "a vanilla Markov head");
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain_network), cmocka_unit_test(plain_drafts),
                                       cmocka_unit_test(threads_do_not_matter), cmocka_unit_test(agreement),
                                       cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
