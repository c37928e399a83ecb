#include "tests/support/check.h"

#include "engine/base/text.h"
#include "simulate/surface.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The shape of configs/shapes/160m.json.
static const StepModel SMALL = {.layers = 16,
                                .width = 1024,
                                .q_width = 1024,
                                .kv_width = 256,
                                .mlp_width = 2304,
                                .vocab = 2048,
                                .weight_bytes = 2,
                                .cache_bytes = 2};

static const Hardware LAPTOP = {.name = "laptop",
                                .bytes_per_s = 2e10,
                                .operations_per_s = 4e11,
                                .memory_bytes = 8e9,
                                .processors = 2,
                                .tile_rows = 8,
                                .tile_columns = 16,
                                .least_rows = 1,
                                .read_share = 1,
                                .compute_share = 1,
                                .cache_share = 1,
                                .attention_share = 1,
                                .row_passes = 2,
                                .overlap = 4};

static void add(Surface *s, StepPlan step) { s->points[s->count++] = (SurfacePoint){.step = step}; }

// A grid of chains and batches, priced on `truth`, each off by a normal error of `noise`.
static void make_surface(Surface *s, SurfacePoint *points, const Hardware *truth, double noise, Random *r) {
    *s = (Surface){.points = points};
    for (int context = 25; context <= 1600; context *= 4)
        for (int n = 1; n <= 256; n *= 2) {
            add(s, step_chain(n, context));
            if (n <= 16) add(s, step_batch(n, 3, context));
        }
    for (int i = 0; i < s->count; i++)
        points[i].seconds =
            hardware_price(truth, &SMALL, &points[i].step).total * exp(noise * (double)random_normal(r));
}

// Whatever a machine reaches of its data sheet, the fit prices steps it has not seen as the machine does.
static void machine_returns(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int n = 0; n < 20; n++) {
        SurfacePoint points[100];
        Surface s;
        SurfaceFit fit;
        Hardware truth = LAPTOP;
        truth.read_share = 0.5 + 0.5 * random_uniform(&r),
        truth.compute_share = 0.2 + 0.7 * random_uniform(&r);
        truth.attention_share = 0.02 + 0.3 * random_uniform(&r),
        truth.row_passes = 2 + 20 * random_uniform(&r);
        truth.cache_share = 0.5 + 0.5 * random_uniform(&r);
        truth.overlap = 1.2 + 3 * random_uniform(&r), truth.step_s = 1e-4 * random_uniform(&r);
        double noise = n % 2 ? 0.03 : 0;
        make_surface(&s, points, &truth, noise, &r);
        surface_hold_out(&s, 0.3, (uint64_t)n);
        assert_true(surface_fit(&s, &LAPTOP, &SMALL, &fit, NULL));
        assert_true(fit.held_out.points == (int)round(0.3 * s.count) &&
                    fit.fitted.points + fit.held_out.points == s.count);
        assert_true(fit.machine.most_rows == 256 ||
                    fit.machine.most_rows == 128); // if all of 256 are held out
        double most = noise > 0 ? 0.04 : 0.01;
        if (fit.held_out.median > most || fit.held_out.worst > 5 * most)
            fail_msg("noise %g: median error %g, worst %g", noise, fit.held_out.median, fit.held_out.worst);
        if (noise == 0 && fabs(fit.machine.read_share / truth.read_share - 1) > 0.05)
            fail_msg("read_share: wanted %g, got %g", truth.read_share, fit.machine.read_share);
    }
}

// Points that are held out have no say: garbage in their times changes nothing but their error.
// A machine that is as the model has it is priced well at contexts that were left out; a context whose times
// are others shows, and one context alone says nothing.
static void contexts_left_out(void **state) {
    (void)state;
    Random r = test_random(3);
    SurfacePoint points[100];
    Surface s;
    SurfaceError clean, spoilt, one;
    make_surface(&s, points, &LAPTOP, 0.02, &r);
    assert_true(surface_leave_context(&s, &LAPTOP, &SMALL, &clean, NULL));
    assert_true(clean.points == s.count && clean.median < 0.04);
    for (int i = 0; i < s.count; i++)
        if (points[i].step.context == 400) points[i].seconds *= 3;
    assert_true(surface_leave_context(&s, &LAPTOP, &SMALL, &spoilt, NULL));
    assert_true(spoilt.worst > 0.5 && spoilt.points == s.count);
    for (int i = 0; i < s.count; i++) points[i].step.context = 25;
    assert_true(surface_leave_context(&s, &LAPTOP, &SMALL, &one, NULL));
    assert_int_equal(one.points, 0);
}

static void held_out_is_unseen(void **state) {
    (void)state;
    Random r = test_random(2);
    SurfacePoint points[100];
    Surface s;
    SurfaceFit clean, spoilt;
    make_surface(&s, points, &LAPTOP, 0.02, &r);
    surface_hold_out(&s, 0.5, 1);
    assert_true(surface_fit(&s, &LAPTOP, &SMALL, &clean, NULL));
    for (int i = 0; i < s.count; i++)
        if (points[i].held_out) points[i].seconds *= 100;
    assert_true(surface_fit(&s, &LAPTOP, &SMALL, &spoilt, NULL));
    assert_memory_equal(&clean.machine, &spoilt.machine, sizeof clean.machine);
    assert_true(spoilt.held_out.median > 0.9 && clean.held_out.median < 0.05);
}

// Times that no machine of the sheet reaches leave it computing as much as the sheet says, not more.
static void never_above_the_sheet(void **state) {
    (void)state;
    Random r = test_random(5);
    SurfacePoint points[100];
    Surface s;
    SurfaceFit fit;
    Hardware faster = LAPTOP;
    faster.operations_per_s *= 4;
    make_surface(&s, points, &faster, 0, &r);
    assert_true(surface_fit(&s, &LAPTOP, &SMALL, &fit, NULL));
    assert_true(fit.machine.compute_share <= 1 && fit.machine.compute_share > 0.9);
    assert_true(fit.machine.cache_share <= 1 && fit.machine.attention_share <= 1);
}

// Only the steps of so many rows count.
static void errors_by_rows(void **state) {
    (void)state;
    Random r = test_random(4);
    SurfacePoint points[100];
    Surface s;
    int few = 0;
    make_surface(&s, points, &LAPTOP, 0, &r);
    for (int i = 0; i < s.count; i++)
        if (points[i].step.rows > 64) points[i].seconds *= 2;
        else few++;
    SurfaceError low = surface_error(&s, &LAPTOP, &SMALL, 1, 64),
                 high = surface_error(&s, &LAPTOP, &SMALL, 65, 1000);
    if (low.points != few || high.points != s.count - few || low.worst > 1e-9 ||
        fabs(high.median - 0.5) > 1e-9 || fabs(high.worst - 0.5) > 1e-9)
        fail_msg("wanted %d points right and %d off by half, got %d off by %g and %d by %g", few,
                 s.count - few, low.points, low.worst, high.points, high.worst);
    assert_int_equal(surface_error(&s, &LAPTOP, &SMALL, 1001, 2000).points, 0);
}

static const char HEADER[] = "tokens,context,k,w,layout,median_s,mad_s\n";

static void reads_csv(void **state) {
    (void)state;
    Surface s;
    Error e = {0};
    char text[400];
    snprintf(text, sizeof text, "%s%s", HEADER,
             "1,25,0,0,chain,0.01,1e-5\r\n6,25,5,1,tree,0.011,0\n10,25,5,1,batch,0.012,0\n");
    if (!surface_parse(text, strlen(text), "f.csv", &s, &e)) fail_msg("%s", e.text);
    assert_true(s.count == 3 && s.points[1].step.sequences == 1 && s.points[2].step.sequences == 5);
    assert_true(s.points[0].step.seen == 26 && s.points[2].step.rows == 10 && s.points[2].seconds == 0.012);
    assert_true(s.points[0].step.experts == 0);
    surface_release(&s);
    static const char COUNTED[] = "tokens,context,k,w,layout,median_s,experts\n4,25,0,0,chain,0.01,5.5\n";
    if (!surface_parse(COUNTED, strlen(COUNTED), "f.csv", &s, &e)) fail_msg("%s", e.text);
    assert_true(s.points[0].step.experts == 5.5);
    surface_release(&s);
    static const char SHARED[] = "tokens,context,k,w,layout,median_s,batch\n4,25,0,0,chain,0.01,1\n"
                                 "4,25,0,0,chain,0.02,3\n";
    if (!surface_parse(SHARED, strlen(SHARED), "f.csv", &s, &e)) fail_msg("%s", e.text);
    StepPlan one = s.points[0].step, three = s.points[1].step;
    assert_true(one.rows == 4 && one.sequences == 1 && three.rows == 12 && three.read == 12);
    assert_true(three.sequences == 3 && three.context == 25 && three.seen == 3 * one.seen);
    surface_release(&s);
    static const char NONE[] = "tokens,context,k,w,layout,median_s,batch\n4,25,0,0,chain,0.01,0\n";
    assert_false(surface_parse(NONE, strlen(NONE), "f.csv", &s, &e));
    assert_non_null(strstr(e.text, "f.csv:2: batch is '0', must be a number from 1"));
    surface_release(&s);
    static const char MINUS[] = "tokens,context,k,w,layout,median_s,experts\n4,25,0,0,chain,0.01,-1\n";
    assert_false(surface_parse(MINUS, strlen(MINUS), "f.csv", &s, &e));
    assert_non_null(strstr(e.text, "f.csv:2: experts is '-1', must be a number from 0"));
    surface_release(&s);
}

static void refuses_csv(void **state) {
    (void)state;
    static const struct {
        const char *rows, *said;
    } ROWS[] = {
        {"", "f.csv: no points"},
        {"1,25,0,0,chain\n", "f.csv:2: only 5 fields, 'median_s' is missing"},
        {"1,25,0,0,ring,0.1,0\n", "layout is 'ring'"},
        {"1,25,0,0,tree,0.1,0\n", "layout is 'tree' with k 0"},
        {"0,25,0,0,chain,0.1,0\n", "tokens is '0'"},
        {"1.5,25,0,0,chain,0.1,0\n", "tokens is 1.5, must be a whole number"},
        {"1,25,0,0,chain,nan,0\n", "median_s is 'nan'"},
        {"1,25,0,0,chain,0,0\n", "median_s is '0'"},
        {"1,-1,0,0,chain,1,0\n", "f.csv:2: context is '-1'"},
    };
    Surface s;
    Error e = {0};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char text[400];
        snprintf(text, sizeof text, "%s%s", HEADER, ROWS[i].rows);
        bool ok = surface_parse(text, strlen(text), "f.csv", &s, &e);
        surface_release(&s);
        if (ok || !strstr(e.text, ROWS[i].said))
            fail_msg("'%s': wanted '%s', got '%s'", ROWS[i].rows, ROWS[i].said, ok ? "no error" : e.text);
    }
    assert_false(surface_parse("tokens,k\n1,2\n", 13, "f.csv", &s, &e));
    assert_non_null(strstr(
        e.text, "f.csv:1: there is no column 'context' among tokens, context, k, w, layout, median_s: "));
    SurfacePoint one = {.step = step_chain(1, 1), .seconds = 1};
    SurfaceFit fit;
    assert_false(surface_fit(&(Surface){&one, 1}, &LAPTOP, &SMALL, &fit, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machine_returns),       cmocka_unit_test(held_out_is_unseen),
        cmocka_unit_test(never_above_the_sheet), cmocka_unit_test(errors_by_rows),
        cmocka_unit_test(contexts_left_out),     cmocka_unit_test(reads_csv),
        cmocka_unit_test(refuses_csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
