// A step's bytes and operations, against counting them by hand.
#include "tests/support/check.h"

#include "engine/cpu/cpu.h"
#include "harness/bench/steps.h"
#include "tests/support/random_model.h"

#include <math.h>

static Shape small_shape(void) {
    return (Shape){
        .layers = 2, .width = 8, .heads = 2, .kv_heads = 1, .head_dim = 4, .mlp_width = 12, .vocab = 20};
}

// Products: 8x8 q, 8x4 k and v, 8x8 o, three of 8x12; two norms are counted as parameters too.
static void one_token(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 1000, .kv_bytes_per_position = 32};
    StepShape step = {.rows = 1, .read = 1, .context = 9, .cache_readers = 1, .seen = 10};
    StepCost c = step_cost(&s, &r, &step);
    double layer = 8 * 8 + 2 * 8 * 4 + 8 * 8 + 3 * 8 * 12 + 2 * 8, attention = 2 * 2 * 8 * 10;
    assert_true(c.operations == 2 * (2 * layer + 20 * 8 + attention));
    assert_true(c.bytes == 1000 + 9 * 32);
}

// Each of two rows' scores of all that it sees: 16 bytes a head and layer.
static void plain_attention(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {
        .weight_bytes = 1000, .kv_bytes_per_position = 32, .score_bytes = shape_score_bytes(&s)};
    StepShape step = {.rows = 2, .read = 1, .context = 9, .cache_readers = 1, .seen = 21};
    assert_int_equal(r.score_bytes, 16 * 2 * 2);
    assert_true(step_cost(&s, &r, &step).bytes == 1000 + 9 * 32 + 21 * 64);
}

static void many_tokens(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 1000, .kv_bytes_per_position = 32};
    StepShape one = {.rows = 1, .read = 1, .context = 9, .cache_readers = 1, .seen = 10};
    StepShape batch = {.rows = 6, .read = 6, .context = 9, .cache_readers = 3, .seen = 60};
    assert_true(step_cost(&s, &r, &batch).operations == 6 * step_cost(&s, &r, &one).operations);
    assert_true(step_cost(&s, &r, &batch).bytes == 1000 + 3 * 9 * 32);
}

// A window bounds the positions that are seen and read.
static void window(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 1000, .kv_bytes_per_position = 32};
    StepShape step = {.rows = 2, .read = 0, .context = 100, .cache_readers = 1, .seen = 203};
    double free_operations = step_cost(&s, &r, &step).operations;
    s.window = 10;
    assert_true(free_operations - step_cost(&s, &r, &step).operations == 2 * (2 * 2 * 8 * (203.0 - 20)));
    assert_true(step_cost(&s, &r, &step).bytes == 1000 + 10 * 32);
}

// Layers with a window of their own see less; the others see all.
static void local_window(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 1000, .kv_bytes_per_position = 32};
    StepShape step = {.rows = 2, .read = 0, .context = 100, .cache_readers = 1, .seen = 203};
    double free_operations = step_cost(&s, &r, &step).operations;
    s.local_window = 10;
    layer_add(&s.local, 1);
    assert_true(free_operations - step_cost(&s, &r, &step).operations == 2 * (2 * 8 * (203.0 - 20)));
    assert_true(step_cost(&s, &r, &step).bytes == 1000 + 0.5 * (100 + 10) * 32);
}

// The chosen experts are read once each; a row multiplies those that it chose, and the router.
static void experts(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 1000, .expert_bytes = 70};
    StepShape step = {.rows = 3, .experts = 5};
    double dense = step_cost(&s, &r, &step).operations;
    s.experts = (Experts){.count = 4, .chosen = 2, .width = 16};
    layer_add(&s.sparse, 1);
    double more = 4 * 8 + 2 * 3 * 8 * 16 - 3 * 8 * 12;
    assert_true(step_cost(&s, &r, &step).operations - dense == 2 * 3 * more);
    assert_true(step_cost(&s, &r, &step).bytes == 1000 + 5 * 70);
}

static void uncounted(const void *self, BackendReport *out) {
    cpu_backend.report(self, out);
    out->experts_read = 0;
}

// A step of one row reads its own experts; of more rows, about as many as random choices touch.
static void experts_measured(void **state) {
    (void)state;
    static const struct {
        int tokens;
        double least, most; // of the number that is expected
    } ROWS[] = {{1, 1, 1}, {4, 0.8, 1.1}, {16, 0.8, 1.05}, {64, 0.8, 1.02}};
    static const Ceilings CEILINGS = {.bytes_per_s = 1e9};
    const BenchOptions o = {.min_samples = 40, .max_samples = 40, .clock = clock_monotonic()};
    Random r = test_random(1);
    RandomModel m;
    Session s;
    Error e = {0};
    void *self;
    Shape shape = {.layers = 3,
                   .width = 48,
                   .heads = 4,
                   .kv_heads = 2,
                   .head_dim = 12,
                   .mlp_width = 40,
                   .vocab = 300,
                   .real_vocab = 300,
                   .context = 256,
                   .norm_epsilon = 1e-5f,
                   .rope = {.theta = 1e4, .factor = 1, .pairs = 6, .attention_factor = 1}};
    shape.experts = (Experts){.count = 12, .chosen = 2, .width = 16};
    layer_add(&shape.sparse, 0), layer_add(&shape.sparse, 2);
    random_model_init(&m, &shape, DTYPE_F32, false, &r);
    const BackendOptions options = {.threads = 1};
    if (!cpu_open(&m.model, &options, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, &cpu_backend, self, &shape, &options);
    Benched b = {&s, DTYPE_F32, &CEILINGS, NULL};
    BackendReport report;
    s.backend->report(s.self, &report);
    assert_int_equal(report.expert_bytes, 3 * 16 * 48 * sizeof(float));
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        BenchPoint p = {.tokens = ROWS[i].tokens, .context = 8};
        if (!bench_point(&b, &o, NULL, &p, &e)) fail_msg("%s", e.text);
        double share = p.experts / p.experts_expected;
        if (share < ROWS[i].least - 1e-9 || share > ROWS[i].most + 1e-9)
            fail_msg("%d rows: %g experts, expected %g", p.tokens, p.experts, p.experts_expected);
        double wanted = (double)report.weight_bytes + 2 * p.experts * (double)report.expert_bytes +
                        8.0 * (double)report.kv_bytes_per_position;
        assert_true(fabs(p.bytes / wanted - 1) < 1e-12 && p.floor_bandwidth_s == p.bytes / 1e9);
    }
    Backend silent = cpu_backend; // bytes are of the expected number
    BenchPoint p = {.tokens = 4, .context = 8};
    silent.report = uncounted;
    s.backend = &silent;
    if (!bench_point(&b, &o, NULL, &p, &e)) fail_msg("%s", e.text);
    double wanted = (double)report.weight_bytes + 2 * p.experts_expected * (double)report.expert_bytes +
                    8.0 * (double)report.kv_bytes_per_position;
    assert_true(p.experts == 0 && p.experts_expected > 0 && fabs(p.bytes / wanted - 1) < 1e-12);
    s.backend = &cpu_backend;
    session_release(&s);
    random_model_release(&m);
}

static void no_arithmetic(void **state) {
    (void)state;
    Shape s = small_shape();
    BackendReport r = {.weight_bytes = 0};
    StepShape step = {.rows = 2, .read = 2, .context = 100, .cache_readers = 1, .seen = 203};
    assert_true(step_cost(&s, &r, &step).operations == 0 && step_cost(&s, &r, &step).bytes == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_token),        cmocka_unit_test(plain_attention),
                                       cmocka_unit_test(many_tokens),      cmocka_unit_test(window),
                                       cmocka_unit_test(local_window),     cmocka_unit_test(experts),
                                       cmocka_unit_test(experts_measured), cmocka_unit_test(no_arithmetic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
