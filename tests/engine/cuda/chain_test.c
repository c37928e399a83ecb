// A greedy chain that the card goes on with by itself, against one that waits for every id: the same ids,
// tokens, keys and passes, on one card and on several, and where nothing can be recorded.
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 24, ROUNDS = 4 };

// By waiting: a backend that hasn't a chain.
static void open_session(Session *s, const Model *m, const Backend *backend, Compute compute, int cards) {
    BackendOptions o = {.compute = compute, .max_nodes = MOST, .context = 160, .cards = {cards, {0, 1, 2}}};
    void *self;
    Error e = {0};
    if (!cuda_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, backend, self, &m->shape, &o);
}

// Some tokens that the cache lacks, then `count` of its own; of those, `keep` are committed.
static int chain(Session *s, const int *tokens, int given, int count, int keep, int *ids, PassLog *log) {
    Error e = {0};
    int made;
    pass_log_clear(log);
    s->log = log;
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < given; i++) node = tree_probe(&s->tree, node, tokens[i], i == given - 1);
    if (!session_chain(s, node, NULL, count, ids, &made, &e)) fail_msg("%s", e.text);
    int last = given + (keep < made ? keep : made - 1) - 1;
    session_assert(s);
    if (!session_commit(s, last, last + 1, &e)) fail_msg("%s", e.text);
    return made;
}

static void compare(const Shape *shape, Compute compute, int cards, Random *r) {
    static const Backend *backends[2];
    static Backend waits;
    RandomModel m;
    Session s[2];
    PassLog log[2];
    waits = cuda_backend;
    waits.chain = NULL;
    backends[0] = &waits, backends[1] = &cuda_backend;
    random_model_init(&m, shape, compute == COMPUTE_F32 ? DTYPE_F32 : DTYPE_BF16, false, r);
    for (int i = 0; i < 2; i++) open_session(&s[i], &m.model, backends[i], compute, cards);
    for (int round = 0; round < test_some(2, ROUNDS); round++) {
        int ids[2][MOST] = {{0}}, made[2], tokens[4], given = test_between(r, 1, 4),
            count = round == 1 ? MOST : test_between(r, 1, 9), keep = test_between(r, 0, 5);
        for (int i = 0; i < 4; i++) tokens[i] = test_between(r, 0, shape->real_vocab - 1);
        for (int i = 0; i < 2; i++) made[i] = chain(&s[i], tokens, given, count, keep, ids[i], &log[i]);
        assert_int_equal(made[0], made[1]);
        assert_int_equal(made[0], count < MOST - given + 1 ? count : MOST - given + 1);
        assert_memory_equal(ids[0], ids[1], sizeof ids[0]);
        assert_int_equal(s[0].tree.count, s[1].tree.count);
        assert_memory_equal(s[0].tree.token, s[1].tree.token, (size_t)s[0].tree.count * sizeof(int));
        assert_int_equal(log[0].count, log[1].count);
        for (int i = 0; i < log[0].count; i++)
            assert_memory_equal(&log[0].passes[i], &log[1].passes[i], sizeof(Pass));
        assert_true(s[0].rows >= s[1].rows && s[0].rows <= s[1].rows);
        assert_true(s[0].passes >= s[1].passes && s[0].passes <= s[1].passes);
    }
    for (int i = 0; i < 2; i++) session_release(&s[i]);
    random_model_release(&m);
    assert_int_equal(simt_live_bytes(), 0);
}

static void the_same_chain(void **state) {
    (void)state;
    Random r = test_random(331);
    static const int kinds[] = {1, 3, 4, 0, 2, 5};
    for (int k = 0; k < test_some(3, 6); k++) {
        int i = kinds[k];
        Shape shape = random_dense_shape(&r);
        shape.layers = 2;
        simt_settings.order = (SimtOrder)(i % SIMT_ORDERS);
        simt_settings.no_graphs = i == 3;
        simt_settings.locked = simt_settings.early = i == 1; // what is touched too soon ends the program
        compare(&shape, i % 3 ? COMPUTE_BF16 : COMPUTE_F32, simt_emulated && i > 3 ? 2 : 1, &r);
    }
    simt_settings.no_graphs = simt_settings.locked = simt_settings.early = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_chain)};
    setenv("OUTPACE_FAKE_GPUS", "90,90,90", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
