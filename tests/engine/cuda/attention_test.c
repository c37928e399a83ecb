// Every kernel of attention, one for each padded size of a head: against the CPU's reference kernels, over
// two spans of positions (what is touched too soon ends the program), and bit for bit whether the last tokens
// are one step or several. The kernels run on the CPU (tests/simt).
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/sequence.h"
#include "engine/cuda/kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 264, TAIL = 6, VOCAB = 24, NODES = 96 };

static Shape shape_of(int head_dim) {
    return (Shape){
        .input = INPUT_TOKENS,
        .layers = 1,
        .width = 32,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = head_dim,
        .mlp_width = 16,
        .vocab = VOCAB,
        .real_vocab = VOCAB,
        .context = 400,
        .norm_epsilon = 1e-5f,
        .rope.kind = ROPE_PLAIN,
        .rope.theta = 10000,
        .rope.factor = 1,
        .rope.pairs = head_dim / 2,
        .rope.attention_factor = 1,
    };
}

static void open_session(Session *s, const RandomModel *m, Compute compute, bool cuda) {
    BackendOptions o = {
        .compute = compute, .max_nodes = NODES, .threads = 1, .isa = cuda ? NULL : "reference", .slack = 16};
    void *self;
    Error e = {0};
    if (!(cuda ? cuda_open(&m->model, &o, &self, &e) : cpu_open(&m->model, &o, &self, &e)))
        fail_msg("%s", e.text);
    session_init(s, cuda ? &cuda_backend : &cpu_backend, self, &m->model.shape, &o);
}

static void prefill(Session *s, const int *tokens, int count) {
    Error e = {0};
    session_reset(s);
    if (!session_prefill(s, tokens, count, 0, 0, NULL, &e)) fail_msg("%s", e.text);
}

// The logits of tokens[0, count) as one chain after what is committed; all of it is committed after.
static void run_chain(Session *s, const int *tokens, int count, float logits[][VOCAB]) {
    Error e = {0};
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < count; i++) node = tree_probe(&s->tree, node, tokens[i], true);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < count; i++) memcpy(logits[i], session_logits(s, i), sizeof logits[i]);
    if (!session_commit(s, node, count, &e)) fail_msg("%s", e.text);
}

static double worst_error(float got[TAIL][VOCAB], float want[TAIL][VOCAB]) {
    double worst = 0, scale = 0;
    for (int i = 0; i < TAIL * VOCAB; i++) {
        double d = fabs((double)got[i / VOCAB][i % VOCAB] - (double)want[i / VOCAB][i % VOCAB]);
        worst = test_worse(worst, d);
        scale = fmax(scale, fabs((double)want[i / VOCAB][i % VOCAB]));
    }
    return worst / scale;
}

static void check_size(int head_dim, Compute compute, double tolerance, int round) {
    float want[TAIL][VOCAB], got[TAIL][VOCAB], again[TAIL][VOCAB];
    const int before = TOKENS - TAIL;
    int tokens[TOKENS];
    Random r = test_random(900 + (uint64_t)head_dim);
    Shape shape = shape_of(head_dim);
    RandomModel m;
    Session cpu, gpu;
    simt_settings.order = (SimtOrder)(round % SIMT_ORDERS);
    random_model_init(&m, &shape, compute_dtype(compute), false, &r);
    for (int i = 0; i < TOKENS; i++) tokens[i] = test_between(&r, 0, VOCAB - 1);
    open_session(&cpu, &m, compute, false);
    open_session(&gpu, &m, compute, true);
    prefill(&cpu, tokens, before);
    run_chain(&cpu, tokens + before, TAIL, want);
    prefill(&gpu, tokens, before);
    run_chain(&gpu, tokens + before, TAIL, got);
    if (!session_truncate(&gpu, before, NULL)) fail_msg("cannot go back");
    for (int i = 0; i < TAIL; i += 2) run_chain(&gpu, tokens + before + i, 2, again + i);
    double error = worst_error(got, want);
    print_message("heads of %d, %s: worst error %.2e\n", head_dim, dtype_name(compute_dtype(compute)), error);
    assert_true(error <= tolerance);
    assert_memory_equal(got, again, sizeof got);
    session_release(&cpu);
    session_release(&gpu);
    random_model_release(&m);
}

static void every_size(void **state) {
    static const int sizes[] = {12,  40,  64,  96,
                                112, 128, 200, 256}; // padded to 16, 64, 64, 96, 128, 128, 256
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += (size_t)test_some(2, 1)) {
        simt_settings.locked = simt_settings.early =
            sizes[i] == 40 || sizes[i] == 64 || sizes[i] == 200; // slow
        check_size(sizes[i], COMPUTE_BF16, 4e-2, (int)i);
    }
    simt_settings.locked = simt_settings.early = false;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] == 96 || (test_long() && (sizes[i] % 32 == 0 || sizes[i] == 12)))
            check_size(sizes[i], COMPUTE_F16, 5e-3, (int)i);
    assert_int_equal(simt_live_bytes(), 0);
}

// A path's logits, run as a chain by itself.
static void run_path(Session *s, const Tree *tree, int leaf, float logits[VOCAB]) {
    Error e = {0};
    int path[NODES], count = tree_path(tree, leaf, path), tokens[NODES], node;
    for (int i = 0; i < count; i++) tokens[i] = tree->token[path[i]];
    session_begin_step(s, true, LAYOUT_TREE);
    node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < count; i++) node = tree_probe(&s->tree, node, tokens[i], i + 1 == count);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
    memcpy(logits, session_logits(s, node), VOCAB * sizeof *logits);
}

// Trees whose paths part early, so that a tile has more turns than warps: each node's bits are those of its
// path alone. Tokens before: the last is in the span of the first node, or not.
static void check_tree(int heads, int kv_heads, int head_dim, Compute compute, int before, int round) {
    enum { LOOKED_AT = 3 };
    static float all[NODES][VOCAB];
    float alone[VOCAB];
    int tokens[TOKENS];
    Random r = test_random(950 + (uint64_t)round);
    Shape shape = shape_of(head_dim);
    RandomModel m;
    Session s, other;
    Error e = {0};
    shape.heads = heads, shape.kv_heads = kv_heads;
    simt_settings.order = (SimtOrder)(round % SIMT_ORDERS);
    random_model_init(&m, &shape, compute_dtype(compute), false, &r);
    for (int i = 0; i < before; i++) tokens[i] = test_between(&r, 0, VOCAB - 1);
    open_session(&s, &m, compute, true);
    open_session(&other, &m, compute, true);
    prefill(&s, tokens, before);
    prefill(&other, tokens, before);
    session_begin_step(&s, false, LAYOUT_TREE);
    tree_root(&s.tree, 1);
    for (int i = 1; i < NODES; i++)
        tree_probe(&s.tree, test_between(&r, i > 12 ? i - 12 : 0, i - 1), test_between(&r, 0, VOCAB - 1),
                   true);
    if (!session_run(&s, 1, &e) || !session_read(&s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < NODES; i++) memcpy(all[i], session_logits(&s, i), sizeof all[i]);
    for (int i = 0, node; i < LOOKED_AT; i++) {
        do node = test_between(&r, 0, NODES - 1);
        while (s.tree.canonical[node] != node);
        run_path(&other, &s.tree, node, alone);
        if (memcmp(all[node], alone, sizeof alone))
            fail_msg("%d heads of %d, %d, context %d: node %d has other bits alone", heads, kv_heads,
                     head_dim, before, node);
    }
    session_release(&s);
    session_release(&other);
    random_model_release(&m);
}

static void every_tree(void **state) {
    (void)state;
    check_tree(2, 2, 128, COMPUTE_BF16, 110, 0);
    check_tree(8, 1, 64, COMPUTE_F16, 100, 1);
    check_tree(7, 1, 16, COMPUTE_BF16, 120, 2);
    if (test_long()) check_tree(1, 1, 96, COMPUTE_BF16, 128, 4);
    if (test_long())
        check_tree(20, 1, 12, COMPUTE_BF16, 250, 3); // more heads of a key head than a tile's queries
    check_tree(2, 1, 40, COMPUTE_F32, 100, 5);
    assert_int_equal(simt_live_bytes(), 0);
}

// Fills values in the cache, of all key heads, at positions [0, count).
static void spoil(const Session *s, int count) {
    const Cuda *c = ((const Sequence *)s->self)->cards;
    size_t size = dtype_size(c->heads.dtype), row = (size_t)c->heads.pitch * size,
           bytes = (size_t)count * row;
    unsigned char *nan = mem_new(bytes, 1);
    memset(nan, 0xff, bytes);
    for (int kv = 0; kv < c->heads.kv_heads; kv++)
        assert_int_equal(gpu_copy((char *)c->cache_v + (size_t)(kv * c->slots) * row, nan, bytes, c->stream),
                         0);
    assert_int_equal(gpu_stream_wait(c->stream), 0);
    mem_free(nan);
}

// A layer with a window in a cache of all positions: blocks that no node sees are not read. A value that
// isn't a number reaches every row that shares its turn.
static void check_window(Compute compute, int window) {
    float want[TAIL][VOCAB], got[TAIL][VOCAB];
    const int before = TOKENS - TAIL, first = before - window + 1;
    int tokens[TOKENS];
    Random r = test_random(980 + (uint64_t)window);
    Shape shape = shape_of(64);
    RandomModel m;
    Session s;
    layer_add(&shape.local, 0);
    shape.local_window = window;
    random_model_init(&m, &shape, compute_dtype(compute), false, &r);
    for (int i = 0; i < TOKENS; i++) tokens[i] = test_between(&r, 0, VOCAB - 1);
    open_session(&s, &m, compute, true);
    prefill(&s, tokens, before);
    run_chain(&s, tokens + before, TAIL, want);
    if (!session_truncate(&s, before, NULL)) fail_msg("cannot go back");
    spoil(&s, block_of(first));
    run_chain(&s, tokens + before, TAIL, got);
    assert_memory_equal(got, want, sizeof got);
    session_release(&s);
    random_model_release(&m);
}

static void unseen_blocks_are_not_read(void **state) {
    (void)state;
    check_window(COMPUTE_BF16, 20);
    check_window(COMPUTE_F16, 150); // two spans
    check_window(COMPUTE_BF16, 3);  // smaller than the step
    check_window(COMPUTE_F32, 100);
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_size), cmocka_unit_test(every_tree),
                                       cmocka_unit_test(unseen_blocks_are_not_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
