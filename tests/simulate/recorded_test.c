#include "tests/support/check.h"

#include "simulate/hardware.h"

#include <math.h>

static const StepModel MODEL = {.layers = 32,
                                .width = 4096,
                                .q_width = 4096,
                                .kv_width = 1024,
                                .mlp_width = 11008,
                                .vocab = 32000,
                                .weight_bytes = 2,
                                .cache_bytes = 2};

static Hardware machine(Random *r) {
    Hardware h = {.name = "made up",
                  .bytes_per_s = 1e11 * (1 + test_between(r, 0, 20)),
                  .operations_per_s = 1e13 * (1 + test_between(r, 0, 30)),
                  .memory_bytes = 4e10,
                  .processors = test_between(r, 1, 132),
                  .tile_rows = 128,
                  .tile_columns = 128,
                  .least_rows = 16,
                  .launch_s = 1e-6,
                  .launches = 11};
    hardware_floor(&h);
    h.step_s = 1e-4 * random_uniform(r);
    h.overlap = 1 + random_uniform(r);
    assert_true(hardware_check(&h, NULL));
    return h;
}

static void assert_same(const char *what, double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%s: wanted %.17g, got %.17g", what, wanted, got);
}

// All layers and the head are a step; halves are the whole and one pass more; a fraction is in proportion.
static void sums_of_passes(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < 500; n++) {
        Hardware h = machine(&r);
        int rows = test_between(&r, 1, 200), context = test_between(&r, 0, 4000),
            cut = test_between(&r, 1, 31);
        StepPlan plan = {.rows = rows, .read = rows, .context = context, .sequences = 1};
        plan.seen = rows * (context + 1.0);
        RecordedPass all = {.layers = 32, .rows = rows, .context = context, .count = 1}, head = all,
                     low = all, high = all, none = all;
        head.head = true;
        low.layers = cut, high.layers = 32 - cut, none.layers = 0;
        double whole = recorded_price(&h, &MODEL, &all);
        assert_same("a step", whole + recorded_price(&h, &MODEL, &head),
                    hardware_price(&h, &MODEL, &plan).total);
        double besides = recorded_price(&h, &MODEL, &none);
        assert_same("two halves", recorded_price(&h, &MODEL, &low) + recorded_price(&h, &MODEL, &high),
                    whole + besides);
        low.layers = 32 * 0.375;
        assert_same("a fraction", recorded_price(&h, &MODEL, &low) - besides, 0.375 * (whole - besides));
        low.count = 7;
        assert_same("seven", recorded_price(&h, &MODEL, &low), 7 * (besides + 0.375 * (whole - besides)));
    }
}

static void never_cheaper(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int n = 0; n < 500; n++) {
        Hardware h = machine(&r);
        RecordedPass one = {.layers = 32 * random_uniform(&r), .rows = test_between(&r, 1, 100), .count = 1};
        RecordedPass more = one;
        one.context = more.context = test_between(&r, 0, 2000);
        more.context += test_between(&r, 0, 500);
        more.layers += random_uniform(&r);
        assert_true(recorded_price(&h, &MODEL, &more) >= recorded_price(&h, &MODEL, &one));
        int tokens = test_between(&r, 1, 500);
        // A tile that fits fewer rows is not so full: only the step of whole tiles is in order.
        assert_true(recorded_prefill(&h, &MODEL, 128 * (tokens / 128 + 2)) > recorded_prefill(&h, &MODEL, 1));
        assert_true(isfinite(recorded_prefill(&h, &MODEL, tokens)) && recorded_prefill(&h, &MODEL, 0) == 0);
        assert_true(recorded_commit(&h, &MODEL, tokens, 5) > recorded_commit(&h, &MODEL, tokens - 1, 5));
    }
}

// 32 layers of (4096 x 6144 + 4096 x 4096 + 3 x 4096 x 11008) and a head of 32000 x 4096, two bytes each.
static void bytes(void **state) {
    (void)state;
    assert_same("bytes", step_model_bytes(&MODEL), 2 * (32 * (41943040.0 + 135266304.0) + 131072000.0));
}

// B sequences that pay a part each pay a step of B times as many rows and contexts; none pays more than
// alone, and computing, which nobody shares, costs each as much.
static void shared(void **state) {
    (void)state;
    Random r = test_random(4);
    for (int n = 0; n < 500; n++) {
        Hardware h = machine(&r);
        int rows = test_between(&r, 1, 60), context = test_between(&r, 0, 2000), B = test_between(&r, 2, 32);
        StepPlan plan = {.rows = B * rows, .read = B * rows, .context = context, .sequences = B};
        plan.seen = B * rows * (context + 1.0);
        RecordedPass all = {.layers = 32, .rows = rows, .context = context, .count = 1, .sequences = B};
        RecordedPass head = all;
        head.head = true;
        double part = recorded_price(&h, &MODEL, &all) + recorded_price(&h, &MODEL, &head);
        assert_same("a part", B * part, hardware_price(&h, &MODEL, &plan).total);
        all.sequences = head.sequences = 0;
        double alone = recorded_price(&h, &MODEL, &all) + recorded_price(&h, &MODEL, &head);
        all.sequences = head.sequences = 1;
        assert_same("one", recorded_price(&h, &MODEL, &all) + recorded_price(&h, &MODEL, &head), alone);
    }
    Hardware h = machine(&r);
    RecordedPass one = {.layers = 32, .rows = 128, .context = 0, .count = 1, .sequences = 1}, many = one;
    h.bytes_per_s = 1e30, h.launch_s = h.step_s = 0;
    many.sequences = 4;
    h.processors = 1, h.least_rows = h.tile_rows = 128;
    assert_same("computing", recorded_price(&h, &MODEL, &many), recorded_price(&h, &MODEL, &one));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_of_passes), cmocka_unit_test(never_cheaper),
                                       cmocka_unit_test(bytes), cmocka_unit_test(shared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
