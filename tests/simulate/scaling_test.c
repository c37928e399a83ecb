#include "tests/support/check.h"

#include "engine/decode/decode.h"
#include "simulate/scaling.h"
#include "tests/support/null_session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const StepModel MODEL = {.layers = 32,
                                .width = 4096,
                                .q_width = 4096,
                                .kv_width = 4096,
                                .mlp_width = 11008,
                                .vocab = 32000,
                                .weight_bytes = 2,
                                .cache_bytes = 2};

static Hardware machine(void) {
    Hardware h = {.name = "made up",
                  .bytes_per_s = 1.5e12,
                  .operations_per_s = 3e14,
                  .memory_bytes = 4e10,
                  .processors = 108,
                  .tile_rows = 128,
                  .tile_columns = 128,
                  .least_rows = 16,
                  .launch_s = 1e-6,
                  .launches = 11};
    hardware_floor(&h);
    return h;
}

// The most rows that any step of the method itself gave each of its ranks.
typedef struct Ranks {
    int parts, rows[TREE_MAX_PARTS];
} Ranks;

static void take(void *state, const StepReport *r) {
    Ranks *ranks = state;
    if (r->note.kind != STEP_STEADY) return;
    ranks->parts = r->parts;
    for (int i = 0; i < r->parts; i++)
        if (r->part_rows[i] > ranks->rows[i]) ranks->rows[i] = r->part_rows[i];
}

// Among three tokens pools fill, so that some step verifies all G; nothing is merged.
static void rows_are_the_methods(void **state) {
    (void)state;
    static const int ROWS[][4] = {{7, 4, 2, 1}, {7, 4, 3, 3},  {8, 3, 2, 4},
                                  {5, 5, 2, 4}, {15, 5, 3, 8}, {6, 4, 2, 6}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Session s;
        Method m;
        DecodeResult out;
        Ranks seen = {0};
        char name[64];
        int prompt[] = {0, 1, 2, 1, 0, 2};
        LookaheadStep step = {ROWS[i][0], ROWS[i][1], ROWS[i][2], 0};
        int devices = ROWS[i][3];
        null_session_open(&s, &(NullSetup){.vocab = 3, .context = 4096});
        MethodEnv env = {.target = &s};
        snprintf(name, sizeof name, "lookahead:W=%d,N=%d,G=%d,ranks=%d", step.W, step.N, step.G, devices);
        assert_true(method_open(&m, name, &env, NULL));
        DecodeOptions o = {.max_tokens = 600, .clock = still_clock(), .step = take, .state = &seen};
        assert_true(decode(&s, &m, prompt, 6, &o, &out, NULL));
        assert_int_equal(seen.parts, devices);
        for (int r = 0; r < devices; r++)
            if (seen.rows[r] > scaling_rows(&step, devices, r))
                fail_msg("%s: rank %d of %d: %d rows, the formula says %d", name, r, devices, seen.rows[r],
                         scaling_rows(&step, devices, r));
        // Some step had all n-grams of the first rank.
        assert_int_equal(seen.rows[0], scaling_rows(&step, devices, 0));
        decode_result_release(&out);
        method_close(&m);
        session_release(&s);
    }
}

static void one_device_is_one_device(void **state) {
    (void)state;
    Hardware h = machine();
    Link link = {3e11, 5e-6};
    LookaheadStep s = {15, 5, 15, 500};
    double one = scaling_lookahead(&h, &MODEL, &s, 1, &link);
    assert_int_equal(scaling_rows(&s, 1, 0), 1 + 14 + 3 * 15 + 15 * 4);
    assert_true(scaling_tensor(&h, &MODEL, &s, 1, &link) == one &&
                scaling_pipeline(&h, &MODEL, &s, 1, &link) == one);
}

// More devices: fewer rows each, never none lost; a slower link is never faster; pipelines never gain.
static void properties(void **state) {
    (void)state;
    Hardware h = machine();
    Random r = test_random(1);
    for (int n = 0; n < 300; n++) {
        LookaheadStep s = {test_between(&r, 1, 40), test_between(&r, 2, 8), test_between(&r, 0, 40),
                           test_between(&r, 0, 2000)};
        int devices = test_between(&r, 1, 16), sum = 0, most = 0;
        Link link = {1e9 * (1 + random_uniform(&r)), 1e-5 * random_uniform(&r)}, slow = {1e9, 2e-5},
             ideal = {1e30, 0};
        for (int i = 0; i < devices; i++) {
            int rows = scaling_rows(&s, devices, i);
            sum += rows;
            most = rows > most ? rows : most;
        }
        assert_true(sum >= scaling_rows(&s, 1, 0) && most <= scaling_rows(&s, 1, 0));
        double (*const ALL[])(const Hardware *, const StepModel *, const LookaheadStep *, int,
                              const Link *) = {scaling_lookahead, scaling_tensor, scaling_pipeline};
        for (int k = 0; k < 3; k++) {
            double t = ALL[k](&h, &MODEL, &s, devices, &link);
            assert_true(isfinite(t) && t > 0 && t <= ALL[k](&h, &MODEL, &s, devices, &slow));
            assert_true(ALL[k](&h, &MODEL, &s, devices, &ideal) <= t);
        }
        double one = scaling_lookahead(&h, &MODEL, &s, 1, &link);
        assert_true(scaling_lookahead(&h, &MODEL, &s, devices, &ideal) <= one * (1 + 1e-12));
        assert_true(scaling_pipeline(&h, &MODEL, &s, devices, &ideal) >= one);
        assert_true(scaling_tensor(&h, &MODEL, &s, devices, &ideal) <= one * (1 + 1e-12));
    }
}

// 32 layers of two sums of 121 rows x 4096 x 2 bytes among 8: 14 messages each of an eighth.
static void sums_by_hand(void **state) {
    (void)state;
    Hardware h = machine();
    LookaheadStep s = {15, 5, 15, 100};
    Link link = {1e11, 1e-5}, ideal = {1e30, 0};
    int rows = scaling_rows(&s, 1, 0);
    double took = scaling_tensor(&h, &MODEL, &s, 8, &link) - scaling_tensor(&h, &MODEL, &s, 8, &ideal);
    double sums = 64 * 14 * (1e-5 + rows * 8192.0 / 8 / 1e11), best = 3e-5 + 64.0 * rows / 1e11;
    if (fabs(took - sums - best) > 1e-9) fail_msg("wanted %g, got %g", sums + best, took);
    Error e = {0};
    assert_true(link_check(&link, NULL));
    assert_false(link_check(&(Link){0, 0}, &e) || link_check(&(Link){1, NAN}, &e) ||
                 link_check(&(Link){NAN, 0}, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_the_methods),
                                       cmocka_unit_test(one_device_is_one_device),
                                       cmocka_unit_test(properties), cmocka_unit_test(sums_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
