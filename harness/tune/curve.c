// The sample steps that tuning times first: from one row up, until a step is too slow for any point, or the
// time is over.
#include "harness/tune/tune.h"

#include <math.h>
#include <string.h>

enum { LEAST_SAMPLES = 2, MOST_SAMPLES = 30 };

// 1, 2, 3, 4, 6, 8, 12, 16, ...: tiles of kernels end at some of these, on every machine. Where there is
// little time, the powers of two.
static int next_rows(int rows, bool coarse) {
    if (coarse) return 2 * rows;
    if (rows < 4) return rows + 1;
    return rows & (rows - 1) ? rows / 3 * 4 : rows / 2 * 3;
}

// If rows grow by a factor of 1.4, all steps up to the last together take about 3.5 times as long as the
// last, which takes at most `longest` times as long as one row. Each is run LEAST_SAMPLES times, after a
// warm-up.
static bool is_coarse(const TuneSurfaceAsk *ask) {
    return ask->steps < 3.5 * (LEAST_SAMPLES + 1) * ask->longest;
}

static double limit(const TuneSurfaceAsk *ask, const TuneSurface *s) {
    return s->count ? fmin(ask->seconds, ask->steps * s->seconds[0]) : ask->seconds;
}

static bool measure_rows(Engine *engine, const TuneSurfaceAsk *ask, int rows, double most_s, TuneSurface *out,
                         Error *e) {
    int count = 1; // numbers of rows to measure
    for (int n = 1; n < ask->most_rows && n <= TREE_MAX_NODES; n = next_rows(n, is_coarse(ask))) count++;
    BenchOptions o = {.warm_up = 1,
                      .min_samples = LEAST_SAMPLES,
                      .max_samples = (int)fmin(MOST_SAMPLES, fmax(LEAST_SAMPLES, ask->steps / 10)),
                      .seconds = fmin(0.25, most_s / (2 * count)), // so that large ones have their time
                      .clock = ask->clock,
                      .watch = ask->watch};
    Ceilings unknown = {0};
    Benched model = {&engine->session, engine->model.dtype, &unknown, engine->more};
    BenchPoint p = {
        .context = ask->context, .tokens = rows, .sequences = 1 + engine->more_count, .layout = LAYOUT_TREE};
    if (!bench_point(&model, &o, NULL, &p, e)) return false;
    out->rows[out->count] = rows;
    out->seconds[out->count++] = p.time.median_s;
    out->disturbed += p.time.flags != 0;
    return true;
}

bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e) {
    double began = clock_now(ask->clock);
    int room = engine->session.context - ask->context;
    *out = (TuneSurface){.context = ask->context};
    for (int rows = 1; rows <= TREE_MAX_NODES && rows <= room; rows = next_rows(rows, is_coarse(ask))) {
        int n = out->count;
        if (n >= 2 &&
            (n == TUNING_MOST_CURVE || clock_now(ask->clock) - began > limit(ask, out) ||
             out->rows[n - 1] >= ask->most_rows || out->seconds[n - 1] > ask->longest * out->seconds[0]))
            break;
        if (!measure_rows(engine, ask, rows, limit(ask, out), out, e)) return false;
    }
    out->took_s = clock_now(ask->clock) - began;
    return true;
}

TuningCurve tune_curve(const TuneSurface *s, double *seconds) {
    TuningCurve c = {s->rows, seconds, s->count};
    memcpy(seconds, s->seconds, (size_t)c.count * sizeof *seconds);
    tuning_curve_rise(&c);
    return c;
}
