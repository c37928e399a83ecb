// What attention costs, counted on one key head of the published shapes: the longest warp of a block, after
// 100 and 500 tokens, for one row, chains and the trees of the methods. A turn of 128 dimensions is 32 mma,
// where one warp takes scores and values; here a warp has one turn's scores, 16, and two of each turn's
// values.
#include "tests/ptx/machine.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"

#include <string.h>

enum { VOCAB = 64, CONTEXT = 700, NODES = 400 };

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
    Shape shape = {
        .input = INPUT_TOKENS,
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
        .rope = {.theta = 10000, .factor = 1, .pairs = head_dim / 2, .attention_factor = 1}
    };
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = NODES};
    Random r = test_random(40);
    int tokens[CONTEXT] = {0}, root = 0;
    float row[32];
    RandomModel m;
    Session s;
    void *self;
    Error e = {0};
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    if (!cuda_open(&m.model, 0, &o, &self, &e) || !session_init(&s, &cuda_backend, self, &shape, &o, &e) ||
        !session_prefill(&s, tokens, context, 0, 0, NULL, &e))
        fail_msg("%s", e.text);
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
    {.name = "one",       .chain = 1          },
    {                                     .name = "chain",         .chain = 8                    },
    {                       .name = "chain",                   .chain = 32                        },
    {                         .name = "chain", .chain = 121},
    { .name = "lookahead",        .columns = 15,                            .rows = 4, .branches = 15, .length = 4},
    {                                               .name = "ngrammys",       .branches = 25,                           .length = 14},
};

static void longest_warps(void **state) {
    (void)state;
    static const int shapes[][2] = {
        {1, 128},
        {4, 128},
        {8, 128},
        {1, 96 }
    };
    ptx_settings.checked = false;
    ptx_settings.only = attention_alone;
    for (size_t k = 0; k < 4; k++)
        for (int context = 100; context <= 500; context += 400)
            for (size_t i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
                Counters c = count(shapes[k][0], shapes[k][1], context, &STEPS[i]);
                assert_in_range(c.longest_mma, 1, STEPS[i].chain ? 40 : 80);
                assert_in_range(c.shared_waves, 1, c.shared_ideal + c.shared_ideal / 50);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(longest_warps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
