// A file of points: accepted points are in their domain, and their fit is finite.
#include "simulate/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
    if (!holds) abort();
}

static void check_points(const Points *p) {
    demand(p->count > 0 && p->prompts > 0);
    for (int i = 0; i < p->count * p->prompts; i++) {
        const PointAt *point = &p->points[i / p->prompts];
        const PointRow *row = &p->rows[i];
        demand(point->N >= 2 && point->W >= 1 && point->G >= 1 && row->S >= 1 && row->S <= point->N);
        demand(row->se >= 0 && isfinite(row->se) && row->steps >= 1 && isfinite(row->steps));
    }
}

static void check_value(const FitValue *v, double low, double high) {
    demand(isfinite(v->se) && v->low <= v->value && v->value <= v->high && v->low >= low && v->high <= high);
}

static void check_estimate(const FitEstimate *x) {
    if (!x->given) return;
    check_value(&x->alpha, 0, 1);
    check_value(&x->f, 1, 1e7);
    demand(isfinite(x->condition) && fabs(x->correlation) <= 1 + 1e-9 && isfinite(x->rms));
}

static void check_fit(const Points *p, FitLaw law, bool bonus_dropped, double output) {
    FitOptions o = {law, bonus_dropped, output, .resamples = 3, .level = 0.9};
    Fit fit;
    Error e = {0};
    if (fit_run(p, &o, &fit, &e)) {
        check_estimate(&fit.least_squares);
        check_estimate(&fit.likelihood);
        for (int i = 0; i < fit.count; i++) demand(isfinite(fit.predictions[i].predicted));
        for (int i = 0; i < RIVAL_COUNT; i++) demand(isfinite(fit.by_W.rms[i]) && isfinite(fit.by_N.rms[i]));
    } else {
        demand(e.kind == ERROR_INPUT && e.text[0]);
    }
    fit_release(&fit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Points p;
    Error e = {0};
    if (points_parse((const char *)data, size, "fuzz", &p, &e)) {
        check_points(&p);
        // Larger ones take longer, and reach nothing else.
        if (p.count * p.prompts <= 40) {
            check_fit(&p, FIT_PAPER, false, 0);
            check_fit(&p, FIT_CORRECTED, true, 100);
        }
    } else {
        demand(e.kind == ERROR_INPUT && strstr(e.text, "fuzz"));
    }
    points_release(&p);
    return 0;
}
