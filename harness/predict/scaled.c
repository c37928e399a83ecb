#include "harness/predict/scaled.h"

#include "results/rows.h"

#include <math.h>

#define PARAM(name) \
    "(SELECT value FROM point_param WHERE point_id = p.id AND section = 'method' AND name = '" name "')"

static const char STEP[] = "SELECT " PARAM("W") ", " PARAM("N") ", " PARAM(
    "G") ", (SELECT avg(context) FROM sample AS s JOIN step ON"
         " step.sample_id = s.id WHERE s.point_id = p.id) FROM point AS p"
         " WHERE p.id = ?1 AND method = 'lookahead' AND " PARAM("preset") " = 'none'";

static bool read_step(Store *store, int64_t point, LookaheadStep *out, bool *given, Error *e) {
    Rows *r = rows_open(store, STEP, e);
    if (!r) return false;
    rows_bind_int(r, 1, point);
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
    if (!read_step(store, p->id, &step, &out->given, e) || !priced_attention(store, p->id, pricing, &own, e))
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
