#include "harness/tune/surface.h"

#include <math.h>

// 1, 2, 3, 4, 6, 8, 12, 16, ...: tiles of kernels end at some of these, on every machine.
static int next_rows(int rows) {
    if (rows < 4) return rows + 1;
    return rows & (rows - 1) ? rows / 3 * 4 : rows / 2 * 3;
}

static bool measure_rows(Engine *engine, const TuneSurfaceAsk *ask, int rows, double *seconds, Error *e) {
    BenchOptions o = {.warm_up = 1,
                      .min_samples = 5,
                      .max_samples = 30,
                      .seconds = fmin(0.25, ask->seconds / 10),
                      .clock = ask->clock,
                      .interrupted = ask->interrupted};
    Ceilings unknown = {0};
    BenchPoint p = {.context = ask->context, .tokens = rows, .layout = LAYOUT_TREE};
    if (!bench_point(engine, &unknown, &o, 0, &p, e)) return false;
    *seconds = p.median_s;
    return true;
}

static bool is_enough(const TuneSurfaceAsk *ask, const TuneSurface *s, double spent) {
    if (s->count < 2) return false;
    if (s->count == TUNING_MOST_CURVE || spent > ask->seconds) return true;
    return s->rows[s->count - 1] >= ask->most_rows || s->seconds[s->count - 1] > ask->longest * s->seconds[0];
}

bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e) {
    double began = clock_now(ask->clock);
    int room = engine->session.context - ask->context;
    *out = (TuneSurface){.context = ask->context};
    for (int rows = 1; rows <= TREE_MAX_NODES && rows <= room; rows = next_rows(rows)) {
        if (is_enough(ask, out, clock_now(ask->clock) - began)) break;
        if (!measure_rows(engine, ask, rows, &out->seconds[out->count], e)) return false;
        out->rows[out->count++] = rows;
    }
    out->took_s = clock_now(ask->clock) - began;
    return true;
}
