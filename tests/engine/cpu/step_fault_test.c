// Memory: opening an engine while the n-th allocation fails, for every n, ends with an error and leaks
// nothing; and once it's open, a step doesn't allocate.
#include "tests/support/check.h"

#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "tests/support/fault.h"
#include "tests/support/random_model.h"

static bool open_session(Session *s, const RandomModel *m, int threads, Error *e) {
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 64, .context = 200, .threads = threads};
    void *self;
    if (!cpu_open(&m->model, &o, &self, e)) return false;
    session_init(s, &cpu_backend, self, &m->model.shape, &o);
    return true;
}

static void make_model(RandomModel *m) {
    Random r = test_random(36);
    Shape shape = random_shape(&r);
    random_model_init(m, &shape, DTYPE_BF16, false, &r);
}

static bool open_and_close(void *state, Error *e) {
    Session s = {0};
    bool ok = open_session(&s, state, 1, e);
    if (ok) session_release(&s);
    return ok;
}

static void opening_may_fail(void **state) {
    (void)state;
    RandomModel m;
    make_model(&m);
    assert_true(fault_each(FAULT_ALLOCATION, open_and_close, NULL, &m) > 20);
    random_model_release(&m);
}

static void run_step(Session *s, int tokens) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 3);
    for (int i = 1; i < tokens; i++) node = tree_propose(&s->tree, node, i % 11);
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX, NULL));
    assert_true(session_commit(s, node, tokens, NULL));
}

static void a_step_allocates_nothing(void **state) {
    (void)state;
    RandomModel m;
    Session s;
    make_model(&m);
    assert_true(open_session(&s, &m, 2, NULL));
    run_step(&s, 20); // the tree's proposals have their memory now
    fault_after(1);
    for (int i = 0; i < 10; i++) run_step(&s, 1 + i);
    assert_false(fault_seen());
    fault_after(0);
    session_release(&s);
    random_model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening_may_fail),
                                       cmocka_unit_test(a_step_allocates_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
