// See simulation.h. Every stored step is priced with its own rows and context; nothing here was measured.
#include "harness/price/simulation.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/rows.h"
#include "simulate/scaling.h"
#include "simulate/statistics.h"

#include <math.h>
#include <string.h>

EMBED(simulation_sql, "harness/price/simulation.sql")

static bool list_points(Store *store, int64_t run, Simulation *out, Error *e) {
    size_t capacity = 0;
    Rows *r = rows_named(store, simulation_sql, "points", run, e);
    while (rows_next(r)) {
        SimulatedPoint *p = LIST_ADD(out->points, out->count, capacity);
        *p = (SimulatedPoint){.id = rows_int(r, 0), .number = rows_int(r, 1), .baseline = rows_int(r, 2)};
        p->label = mem_text(rows_text(r, 3), strlen(rows_text(r, 3)));
        p->group = mem_text(rows_text(r, 4), strlen(rows_text(r, 4)));
        p->method = mem_text(rows_text(r, 5), strlen(rows_text(r, 5)));
    }
    if (!rows_end(r, true, e)) return false;
    return out->count ||
           error_input(e, "run %lld of '%s' has no samples yet", (long long)run, store_path(store));
}

// The other run's measurement of a point of this one; nothing if it doesn't have the point.
static bool read_measured(Store *store, const SimulationAgainst *against, SimulatedPoint *p, Error *e) {
    Rows *r = rows_named(store, simulation_sql, "this", 0, e),
         *o = r ? rows_named(against->store, simulation_sql, "other", 0, e) : NULL;
    if (o) {
        rows_bind_int(r, 1, p->id);
        if (rows_next(r)) {
            rows_bind_int(o, 1, against->run);
            rows_bind_text(o, 2, rows_text(r, 0));
            rows_bind_text(o, 3, rows_text(r, 1));
            rows_bind_real(o, 4, rows_real(r, 2));
            rows_bind_int(o, 5, p->batch);
            p->measured = rows_next(o);
        }
        if (p->measured) {
            p->measured_step_s = rows_real(o, 0);
            p->measured_S = rows_real(o, 1);
            p->measured_speedup = p->baseline ? rows_real(o, 2) : NAN;
            p->doubtful = rows_int(o, 3) != 0;
        }
        if (p->measured && rows_type(o, 4) != VALUE_NULL)
            p->doubt = mem_text(rows_text(o, 4), strlen(rows_text(o, 4)));
    }
    return rows_end(r, rows_end(o, true, e), e);
}

// The baseline that was priced last: points that share one are adjacent.
typedef struct Baseline {
    int64_t id;
    PricedPoint priced;
} Baseline;

static bool simulate_point(Store *store, const Pricing *pricing, Baseline *baseline, SimulatedPoint *p,
                           Error *e) {
    LOCAL(priced_release) PricedPoint point = {0};
    Pricing own;
    int64_t base = p->baseline ? p->baseline : p->id;
    bool alone = !p->baseline && strcmp(p->method, "autoregressive") != 0; // imported without a baseline
    bool ok = priced_as_run(store, p->id, pricing, &own, e) && priced_point(store, p->id, pricing, &point, e);
    if (ok && baseline->id != base) {
        priced_release(&baseline->priced);
        baseline->id = base;
        ok = priced_point(store, base, pricing, &baseline->priced, e);
    }
    p->batch = ok ? own.batch : 0;
    p->needs_draft = point.needs_draft;
    p->step_s = priced_step(&point);
    int most = pricing->machine.most_rows;
    p->beyond_rows = most && point.most_rows > most ? point.most_rows : 0;
    if (ok && !p->needs_draft) priced_tally(&point, alone ? NULL : &baseline->priced, &p->tally);
    return ok;
}

bool simulation_run(Store *store, int64_t run, const Pricing *pricing, const SimulationAgainst *against,
                    Simulation *out, Error *e) {
    Baseline baseline = {0};
    *out = (Simulation){0};
    bool ok = list_points(store, run, out, e);
    for (size_t i = 0; ok && i < out->count; i++) {
        SimulatedPoint *p = &out->points[i];
        ok = simulate_point(store, pricing, &baseline, p, e) &&
             (!against->store || p->needs_draft || read_measured(store, against, p, e));
    }
    priced_release(&baseline.priced);
    return ok;
}

void simulation_release(Simulation *s) {
    for (size_t i = 0; i < s->count; i++)
        MEM_FREE(s->points[i].label, s->points[i].group, s->points[i].method, s->points[i].doubt);
    mem_free(s->points);
    *s = (Simulation){0};
}

// --- errors ----------------------------------------------------------------------------------------------

double simulation_error(const SimulatedPoint *p, SimulatedWhat what) {
    if (!p->measured) return NAN;
    switch (what) {
    case SIMULATED_STEP: return p->step_s / p->measured_step_s - 1;
    case SIMULATED_S: return p->baseline ? p->tally.value[TALLY_S] / p->measured_S - 1 : NAN;
    default: return p->tally.value[TALLY_SPEEDUP] / p->measured_speedup - 1;
    }
}

SimulationError simulation_errors(const Simulation *s, const char *method, const char *group,
                                  SimulatedWhat what) {
    LOCAL_MEMORY double *errors = mem_new(s->count + 1, sizeof *errors);
    SimulationError out = {0};
    for (const SimulatedPoint *p = s->points; p < s->points + s->count; p++) {
        double error = fabs(simulation_error(p, what));
        if (!isfinite(error) || (method && strcmp(p->method, method) != 0) ||
            (group && strcmp(p->group, group) != 0))
            continue;
        errors[out.points++] = error;
        out.worst = fmax(out.worst, error);
    }
    if (out.points) out.median = median(errors, (size_t)out.points);
    return out;
}

// --- over several devices

static bool read_step(Store *store, int64_t point, LookaheadStep *out, bool *given, Error *e) {
    Rows *r = rows_named(store, simulation_sql, "step", point, e);
    *given = rows_next(r);
    if (*given)
        *out = (LookaheadStep){(int)rows_int(r, 0), (int)rows_int(r, 1), (int)rows_int(r, 2),
                               (int)rows_int(r, 3)};
    *given = *given && out->W >= 1 && out->N >= 2 && out->G >= 0;
    return rows_end(r, true, e);
}

typedef double (*Scaling)(const Hardware *h, const StepModel *m, const LookaheadStep *s, int devices,
                          const Link *l);

static double gain(Scaling f, const Pricing *p, const LookaheadStep *s, const Devices *d, double cost) {
    return f(&p->machine, &p->target, s, 1, &d->link) /
           (f(&p->machine, &p->target, s, d->count, &d->link) + cost);
}

// Seconds of a step that bring one token a step to d->cut of what it is on one device.
static double fitted_cost(Scaling f, const Pricing *p, const LookaheadStep *one, const Devices *d) {
    if (!(d->cut > 0) || d->count == 1) return 0;
    double alone = f(&p->machine, &p->target, one, 1, &d->link);
    return fmax(0, alone / d->cut - f(&p->machine, &p->target, one, d->count, &d->link));
}

bool scaled_point(Store *store, const SimulatedPoint *p, const Pricing *pricing, const Devices *d,
                  Scaled *out, Error *e) {
    LookaheadStep step;
    Pricing own;
    *out = (Scaled){0};
    if (!read_step(store, p->id, &step, &out->given, e) || !priced_as_run(store, p->id, pricing, &own, e))
        return false;
    double speedup = p->tally.value[TALLY_SPEEDUP];
    out->given = out->given && isfinite(speedup);
    if (!out->given) return true;
    LookaheadStep one = {.W = 1, .N = 2, .G = 0, .context = step.context}; // the root alone
    double tensor = fitted_cost(scaling_tensor, &own, &one, d);
    double pipeline = fitted_cost(scaling_pipeline, &own, &one, d);
    out->lookahead = speedup * gain(scaling_lookahead, &own, &step, d, 0);
    out->tensor = speedup * gain(scaling_tensor, &own, &step, d, tensor);
    out->pipeline = speedup * gain(scaling_pipeline, &own, &step, d, pipeline);
    out->autoregressive_tensor = gain(scaling_tensor, &own, &one, d, tensor);
    out->autoregressive_pipeline = gain(scaling_pipeline, &own, &one, d, pipeline);
    return true;
}
