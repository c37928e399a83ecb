// Sequences that share steps on cards, whose kernels run on the CPU (tests/simt): in trees of any rows, after
// contexts of their own, in any layout, on one card or two, each node has the bits that it has in an instance
// of one sequence, and so has the step after a commit. More rows than a run has room for go in several runs.
#include "tests/support/batch_suite.h"
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/kernels/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 3, CHAIN = 3 };

static bool open_plain(const Model *model, const BackendOptions *o, void **self, Error *e) {
    BackendOptions plain = *o;
    plain.plain = true;
    return cuda_open(model, &plain, self, e);
}

static bool open_on_two(const Model *model, const BackendOptions *o, void **self, Error *e) {
    BackendOptions two = *o;
    two.cards = (Cards){2, {1, 0}};
    return cuda_open(model, &two, self, e);
}

static const ExactBackend CARD = {&cuda_backend, cuda_open, NULL, NULL, 0},
                          PLAIN = {&cuda_backend, open_plain, NULL, NULL, 0},
                          CARDS = {&cuda_backend, open_on_two, NULL, NULL, 0};

typedef struct Case {
    const ExactBackend *on;
    Compute compute;
    int least, nodes; // of a tree
    uint64_t seed;
    Session alone, shared[SEQUENCES];
} Case;

static void open_one(const Case *c, Session *s, const RandomModel *m, int sequences, void *first) {
    BackendOptions o = {.compute = c->compute,
                        .context = c->nodes + BATCH_CONTEXT,
                        .max_nodes = c->nodes,
                        .slack = 16,
                        .sequences = sequences,
                        .first = first};
    void *self;
    Error e = {0};
    if (!c->on->open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, c->on->backend, self, &m->model.shape, &o);
}

static void open_case(Case *c, const RandomModel *m) {
    open_one(c, &c->alone, m, 1, NULL);
    for (int i = 0; i < SEQUENCES; i++) open_one(c, &c->shared[i], m, SEQUENCES, c->shared[0].self);
}

static void close_case(Case *c) {
    session_release(&c->alone);
    for (int i = SEQUENCES; i-- > 0;) session_release(&c->shared[i]);
}

static Layout layout_of(const Case *c, int i) { return (Layout)((c->seed + (uint64_t)i) % 5 / 2); }

// Of sequence i: a tree, and then what comes after a part of its last node's path.
static void build(const Case *c, Session *s, int i) {
    Random own = test_random(c->seed + (uint64_t)i);
    int committed = test_between(&own, 0, 24), nodes = test_between(&own, c->least, c->nodes);
    batch_build(s, committed, nodes, layout_of(c, i), &own);
}

static void go_on(const Case *c, Session *s, int i) {
    Random own = test_random(c->seed + 50 + (uint64_t)i);
    int last = s->tree.count - 1, vocab = s->shape.real_vocab;
    if (!session_commit(s, last, 1 + test_between(&own, 0, tree_path(&s->tree, last, s->scratch) - 1), NULL))
        fail_msg("no commit");
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, test_between(&own, 0, vocab - 1));
    for (int n = 1; n < CHAIN; n++) node = tree_probe(&s->tree, node, test_between(&own, 0, vocab - 1), true);
}

// The rows of all nodes' states, and their best tokens.
static void keep(Session *s, float *rows, int *best) {
    int all[TREE_MAX_NODES] = {0}, n = s->tree.count;
    for (int i = 0; i < n; i++) all[i] = i;
    if (!session_get_hidden(s, all, n, HIDDEN_NORMED, rows, NULL)) fail_msg("no states");
    for (int i = 0; i < n; i++) best[i] = s->tree.flags[i] & NODE_READ ? session_argmax(s, i) : -1;
}

static void compare(const Case *c, Session *s, int i, const float *rows, const int *best) {
    size_t width = (size_t)s->shape.width, n = (size_t)s->tree.count;
    float *got = mem_new(n * width, sizeof *got);
    int got_best[TREE_MAX_NODES] = {0};
    keep(s, got, got_best);
    for (size_t k = 0; k < n; k++)
        if (memcmp(got + k * width, rows + k * width, width * sizeof *got) || got_best[k] != best[k])
            fail_msg("case %llu, sequence %d: node %zu of %zu differs, its best token is %d, alone %d",
                     (unsigned long long)c->seed, i, k, n, got_best[k], best[k]);
    mem_free(got);
}

static void step_together(Case *c) {
    Session *all[SEQUENCES];
    Error e = {0};
    for (int i = 0; i < SEQUENCES; i++) all[i] = &c->shared[i];
    if (!session_step_together(all, SEQUENCES, &e)) fail_msg("%s", e.text);
}

static void step_alone(Session *s) {
    Error e = {0};
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_ARGMAX, &e)) fail_msg("%s", e.text);
}

static void check_case(Case *c, const RandomModel *m) {
    size_t row = (size_t)m->model.shape.width, tree = (size_t)c->nodes * row, all = tree + CHAIN * row;
    float *rows = mem_new(SEQUENCES * all, sizeof *rows);
    int *best = mem_new(SEQUENCES * (size_t)(c->nodes + CHAIN), sizeof *best);
    open_case(c, m);
    for (int i = 0; i < SEQUENCES; i++) {
        float *own = rows + (size_t)i * all;
        int *own_best = best + i * (c->nodes + CHAIN);
        build(c, &c->alone, i);
        step_alone(&c->alone);
        keep(&c->alone, own, own_best);
        go_on(c, &c->alone, i);
        step_alone(&c->alone);
        keep(&c->alone, own + tree, own_best + c->nodes);
        build(c, &c->shared[i], i);
    }
    step_together(c);
    for (int i = 0; i < SEQUENCES; i++)
        compare(c, &c->shared[i], i, rows + (size_t)i * all, best + i * (c->nodes + CHAIN));
    for (int i = 0; i < SEQUENCES; i++) go_on(c, &c->shared[i], i);
    step_together(c);
    for (int i = 0; i < SEQUENCES; i++)
        compare(c, &c->shared[i], i, rows + (size_t)i * all + tree, best + i * (c->nodes + CHAIN) + c->nodes);
    close_case(c);
    mem_free(rows);
    mem_free(best);
}

static void check_round(const ExactBackend *on, int round, int layers, Random *r) {
    Shape shape = random_shape(r);
    RandomModel m;
    Case c = {.on = on,
              .compute = (Compute)(round % COMPUTE_INT8),
              .least = 1,
              .nodes = 9,
              .seed = 40 + 7 * (uint64_t)round};
    bool coded = c.compute == COMPUTE_BF16;
    if (shape.layers < layers) shape.layers = layers;
    if (coded) random_coded_shape(&shape);
    simt_settings.order = (SimtOrder)(round % SIMT_ORDERS);
    random_model_init(&m, &shape, c.compute == COMPUTE_F16 ? DTYPE_F16 : DTYPE_BF16, false, r);
    if (coded) random_model_code(&m, NULL, r);
    check_case(&c, &m);
    random_model_release(&m);
}

static void the_bits_are_those_alone(void **state) {
    (void)state;
    Random r = test_random(61);
    for (int round = 0; round < 3; round++) check_round(round == 2 ? &PLAIN : &CARD, round, 1, &r);
    assert_int_equal(simt_live_bytes(), 0);
}

static void also_on_two_cards(void **state) {
    (void)state;
    Random r = test_random(62);
    int there;
    setenv("OUTPACE_FAKE_GPUS", "90,90", 1); // real ones are as many as there are
    assert_int_equal(gpu_count(&there), 0);
    if (there > 1) check_round(&CARDS, 1, 2, &r);
    unsetenv("OUTPACE_FAKE_GPUS");
    assert_int_equal(simt_live_bytes(), 0);
}

// A run has room for TREE_MAX_NODES rows.
static void more_rows_than_a_run_takes(void **state) {
    (void)state;
    Random r = test_random(63);
    Shape shape = random_dense_shape(&r);
    RandomModel m;
    Case c = {.on = &CARD, .compute = COMPUTE_BF16, .least = 350, .nodes = 350, .seed = 5};
    shape.layers = 1;
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    check_case(&c, &m);
    random_model_release(&m);
    assert_int_equal(simt_live_bytes(), 0);
}

// --- models of tokens and hidden states

static void run_nodes(Session *const *all, int count, int first, int last) {
    RunCall calls[SEQUENCES];
    for (int i = 0; i < count; i++) {
        Session *s = all[i];
        calls[i] = (RunCall){.self = s->self,
                             .run = {&s->tree, &s->cache, first, last, 0, s->shape.layers, s->given}};
    }
    cuda_backend.run_together(calls, count);
    for (int i = 0; i < count; i++)
        if (!calls[i].ok) fail_msg("%s", calls[i].error.text);
}

// A given root, and then its children, which start from its output.
static void grow(Session *const *all, int count, int number, float *rows) {
    const int nodes[CHAIN] = {0, 1, 2};
    for (int i = 0; i < count; i++) {
        Session *s = all[i];
        Random own = test_random(80 + (uint64_t)(number + i));
        float given[1024];
        int width = shape_given_width(&s->shape);
        assert_true(width <= 1024);
        for (int k = 0; k < width; k++) given[k] = random_normal(&own);
        session_begin_step(s, true, LAYOUT_TREE);
        int root = tree_root(&s->tree, number + i);
        for (int k = 1; k < CHAIN; k++) tree_probe(&s->tree, root, number + i + k, true);
        if (!session_set_hidden(s, 0, 1, given, NULL)) fail_msg("no states");
    }
    run_nodes(all, count, 0, 1);
    run_nodes(all, count, 1, CHAIN);
    for (int i = 0; i < count; i++)
        if (!session_get_hidden(all[i], nodes, CHAIN, HIDDEN_RAW,
                                rows + (size_t)(CHAIN * i * all[i]->shape.width), NULL))
            fail_msg("no states");
}

static void children_start_from_their_parents(void **state) {
    (void)state;
    Random r = test_random(65);
    for (int input = INPUT_FUSED; input <= INPUT_PAIRED; input++) {
        RandomModel target, draft;
        Shape shape = random_dense_shape(&r);
        Case c = {.on = &CARD, .compute = COMPUTE_BF16, .nodes = CHAIN};
        Session *all[SEQUENCES], *alone = &c.alone;
        random_model_init(&target, &shape, DTYPE_BF16, false, &r);
        random_draft_init(&draft, &target.model, (InputKind)input, input == INPUT_PAIRED ? 2 : 1, &r);
        open_case(&c, &draft);
        size_t each = CHAIN * (size_t)draft.model.shape.width;
        float *want = mem_new(SEQUENCES * each, sizeof *want), *got = mem_new(SEQUENCES * each, sizeof *got);
        for (int i = 0; i < SEQUENCES; i++) {
            all[i] = &c.shared[i];
            grow(&alone, 1, i, want + (size_t)i * each);
        }
        grow(all, SEQUENCES, 0, got);
        for (size_t i = 0; i < SEQUENCES; i++)
            if (memcmp(got + i * each, want + i * each, each * sizeof *got))
                fail_msg("input %d: sequence %zu differs", input, i);
        close_case(&c);
        mem_free(want);
        mem_free(got);
        random_model_release(&draft);
        random_model_release(&target);
    }
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_alone), cmocka_unit_test(also_on_two_cards),
        cmocka_unit_test(more_rows_than_a_run_takes), cmocka_unit_test(children_start_from_their_parents)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
