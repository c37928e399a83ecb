// The time of a part of a step includes all of the device's work for it, though a run only queues its work,
// and none that was queued before. The clock counts the blocks that have run (tests/simt). And for a whole
// step, the host's own time is separated from its waiting.
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"
#include "harness/bench/steps.h"

static double blocks_run(void *state) {
    (void)state;
    return (double)simt_blocks();
}

static double blocks_of(Session *s, PartPoint p) {
    Error e = {0};
    BenchOptions o = {.min_samples = 3, .max_samples = 3, .seed = 5, .clock = {blocks_run, NULL}};
    p.context = 6;
    if (!part_time(s, &o, &p, &e)) fail_msg("%s: %s", part_names[p.kind], e.text);
    if (p.time.mad_s > 0) fail_msg("%s: %g blocks, and others", part_names[p.kind], p.time.median_s);
    return p.time.median_s;
}

static void open_model(RandomModel *m, Session *s) {
    Random r = test_random(95);
    Shape shape = random_shape(&r);
    BackendOptions o = {.compute = COMPUTE_BF16, .context = 40, .max_nodes = 16};
    void *self;
    Error e = {0};
    shape.layers = 3;
    random_model_init(m, &shape, DTYPE_BF16, false, &r);
    if (!cuda_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, &shape, &o);
}

static void parts_add_up(void **state) {
    (void)state;
    RandomModel m;
    Session s;
    open_model(&m, &s);
    double all = blocks_of(&s, (PartPoint){.kind = PART_LAYERS, .a = 0, .b = 3, .rows = 4});
    double before = blocks_of(&s, (PartPoint){.kind = PART_LAYERS, .a = 0, .b = 1, .rows = 4});
    double behind = blocks_of(&s, (PartPoint){.kind = PART_LAYERS, .a = 1, .b = 3, .rows = 4});
    double head = blocks_of(&s, (PartPoint){.kind = PART_HEAD, .rows = 4});
    double commit = blocks_of(&s, (PartPoint){.kind = PART_COMMIT, .rows = 4});
    double prefill = blocks_of(&s, (PartPoint){.kind = PART_PREFILL, .rows = 4});
    assert_true(before > 0 && behind > before && head > 0 && commit > 0);
    assert_true(before + behind >= all && before + behind <= all);
    assert_true(prefill >= all + commit && prefill <= all + commit);
    assert_true(blocks_of(&s, (PartPoint){.kind = PART_HOST, .rows = 4}) <= 0);
    session_release(&s);
    random_model_release(&m);
}

// Here kernels run while somebody waits for them, which takes far longer than to queue them.
static void the_host_is_apart(void **state) {
    (void)state;
    const Ceilings unknown = {0};
    Session session;
    Benched b = {&session, DTYPE_BF16, &unknown, NULL};
    RandomModel m;
    Error e = {0};
    BenchPoint p = {.context = 6, .tokens = 4};
    BenchOptions o = {.min_samples = 3, .max_samples = 3, .seed = 5, .clock = clock_monotonic()};
    open_model(&m, &session);
    if (!bench_point(&b, &o, NULL, &p, &e)) fail_msg("%s", e.text);
    if (p.submit_s <= 0 || p.submit_s > 0.25 * p.time.median_s)
        fail_msg("of %g us the host takes %g", 1e6 * p.time.median_s, 1e6 * p.submit_s);
    session_release(&session);
    random_model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up), cmocka_unit_test(the_host_is_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
