// The cost of attention, counted on one key head of the published shapes: the longest warp of a block, after
// 100 and 500 tokens, for one row, chains and the trees of the methods. A turn of 128 dimensions is 32 mma,
// where one warp takes scores and values; here a warp has one turn's scores, 16, and two of each turn's
// values.
#include "tests/ptx/machine.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"

#include <string.h>

enum { VOCAB = 64, CONTEXT = 1000, NODES = 400 };

typedef struct Steps {
    const char *name;
    int chain;            // nodes below one another, or
    int columns, rows;    // of lookahead's window, and
    int branches, length; // n-grams below the root
} Steps;

static void grow(Tree *t, const Steps *s) {
    int root = tree_root(t, 1), chain = root;
    for (int i = 1; i < s->chain; i++) chain = tree_probe(t, chain, 1, true);
    for (int i = 0; i < s->columns; i++) {
        if (i > 0) chain = tree_probe(t, chain, 2, false);
        for (int l = 1, node = chain; l < s->rows; l++) node = tree_probe(t, node, 3 + l, l + 1 == s->rows);
    }
    for (int i = 0; i < s->branches; i++)
        for (int l = 0, node = root; l < s->length; l++) node = tree_probe(t, node, l ? 3 : 8 + i, true);
}

static bool counting;

static bool attention_alone(const Launch *l, uint32_t block) {
    (void)block;
    return counting && strstr(l->kernel->name, "attention");
}

// Of queries that share a key head.
static Counters count(int group, int head_dim, int context, const Steps *steps) {
    Shape shape = {.input = INPUT_TOKENS,
                   .layers = 1,
                   .width = 32,
                   .heads = group,
                   .kv_heads = 1,
                   .head_dim = head_dim,
                   .mlp_width = 16,
                   .vocab = VOCAB,
                   .real_vocab = VOCAB,
                   .context = CONTEXT,
                   .norm_epsilon = 1e-5f,
                   .rope = {.theta = 10000, .factor = 1, .pairs = head_dim / 2, .attention_factor = 1}};
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = NODES};
    Random r = test_random(40);
    int tokens[CONTEXT] = {0}, root = 0;
    float row[32];
    RandomModel m;
    Session s;
    void *self;
    Error e = {0};
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, &cuda_backend, self, &shape, &o);
    if (!session_prefill(&s, tokens, context, 0, 0, NULL, &e)) fail_msg("%s", e.text);
    session_begin_step(&s, true, LAYOUT_TREE);
    grow(&s.tree, steps);
    counting = true;
    ptx_counters_clear();
    if (!session_run(&s, 1, &e) || !session_get_hidden(&s, &root, 1, HIDDEN_RAW, row, &e))
        fail_msg("%s", e.text);
    counting = false;
    Counters c = *ptx_counters("attention");
    uint64_t all = 0;
    for (int i = 0; i < COUNTS; i++) all += c.warp[i];
    print_message(
        "%-9s %d x %3d after %d: %3d rows, %4lu blocks, longest warp %5lu instructions, %4lu mma, path %6lu; "
        "all %8lu, %6lu mma; sectors %lu of %lu, copies %lu of %lu, stores %lu of %lu, waves %lu of %lu\n",
        steps->name, group, head_dim, context, s.tree.count, c.blocks, c.longest, c.longest_mma, c.path, all,
        c.warp[COUNT_MMA], c.load_sectors, c.load_ideal, c.copy_sectors, c.copy_ideal, c.store_sectors,
        c.store_ideal, c.shared_waves, c.shared_ideal);
    session_release(&s);
    random_model_release(&m);
    return c;
}

static const Steps STEPS[] = {
    {"one", 1, 0, 0, 0, 0},     {"chain", 8, 0, 0, 0, 0},       {"chain", 32, 0, 0, 0, 0},
    {"chain", 121, 0, 0, 0, 0}, {"lookahead", 0, 15, 4, 15, 4}, {"ngrammys", 0, 0, 0, 25, 14},
    {"chain", 400, 0, 0, 0, 0}, // as a prompt's
};

static void check(int group, int head_dim, int context, const Steps *steps) {
    Counters c = count(group, head_dim, context, steps);
    bool quads = c.longest_mma > 80; // a warp of theirs multiplies a tile by up to four spans
    assert_in_range(c.longest_mma, 1, quads ? 4 * 264 : steps->chain ? 40 : 80);
    assert_in_range(c.longest, 1, quads ? 12500 : steps->chain == 1 ? 1500 : 2300);
    assert_in_range(c.path, 1, quads ? 37000 : context == 100 && steps->chain == 1 ? 4500 : 10500);
    assert_int_equal(c.copy_sectors, c.copy_ideal);
    assert_in_range(c.shared_waves, 1, c.shared_ideal + c.shared_ideal / 50);
}

static void longest_warps(void **state) {
    (void)state;
    enum { COUNT_OF = sizeof STEPS / sizeof *STEPS };
    ptx_settings.checked = false;
    ptx_settings.counted = true;
    ptx_settings.only = attention_alone;
    for (int context = 100; context <= 500; context += 400)
        for (int i = 0; i < COUNT_OF; i++)
            for (int group = 1; group <= (i == COUNT_OF - 1 ? 1 : 4); group += 3)
                check(group, 128, context, &STEPS[i]);
    for (int i = 0; i < COUNT_OF - 2; i++) {
        check(8, 128, 100, &STEPS[i]);
        check(1, 96, 100, &STEPS[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(longest_warps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
