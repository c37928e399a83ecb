// Three predictions, each a law or a plan times a kriged residual, then the choice of racers from them.
#include "simulate/tuning.h"

#include "engine/base/memory.h"
#include "simulate/fit.h"

#include <assert.h>
#include <math.h>

// --- the time of a step ----------------------------------------------------------------------------------

// Pool adjacent violators: neighbours in the wrong order become one pool with their mean, which may put that
// in the wrong order with the pool before it.
void tuning_curve_rise(TuningCurve *c) {
    double mean[TUNING_MOST_CURVE];
    int size[TUNING_MOST_CURVE], pools = 0;
    assert(c->count <= TUNING_MOST_CURVE);
    for (int i = 0; i < c->count; i++) {
        mean[pools] = log(c->seconds[i]), size[pools++] = 1;
        for (; pools > 1 && mean[pools - 2] > mean[pools - 1]; pools--) {
            int both = size[pools - 2] + size[pools - 1];
            mean[pools - 2] = (mean[pools - 2] * size[pools - 2] + mean[pools - 1] * size[pools - 1]) / both;
            size[pools - 2] = both;
        }
    }
    for (int pool = 0, i = 0; pool < pools; pool++)
        for (int k = 0; k < size[pool]; k++) c->seconds[i++] = exp(mean[pool]);
}

double tuning_curve_at(const TuningCurve *c, double rows) {
    int last = c->count - 1, i = 0;
    if (rows <= c->rows[0]) return c->seconds[0];
    if (rows >= c->rows[last]) return c->seconds[last] * rows / c->rows[last];
    while (c->rows[i + 1] < rows) i++;
    double share = (rows - c->rows[i]) / (c->rows[i + 1] - c->rows[i]);
    return c->seconds[i] + share * (c->seconds[i + 1] - c->seconds[i]);
}

// --- the law ---------------------------------------------------------------------------------------------

static double law_S(const TuningPoint *p, const TuningLaw *law, double mean) {
    if (!law->given) return mean;
    Law l = {.alpha = law->alpha, .f = law->f, .gamma = p->N - 1, .b = p->b};
    return law_compression(&l);
}

static double S_of(const TuningMeasured *m) { return m->tokens / m->steps; }

static double mean_S(const TuningProblem *p) {
    double logs = 0;
    for (int i = 0; i < p->measured_count; i++) logs += log(S_of(&p->measured[i]));
    return p->measured_count ? exp(logs / p->measured_count) : 1;
}

// Points whose S is beyond the law's own are left to kriging.
static void fit_law(const TuningProblem *p, TuningLaw *law) {
    size_t n = (size_t)p->measured_count + 1;
    PointAt *at = mem_new(n, sizeof *at);
    PointRow *rows = mem_new(n, sizeof *rows);
    Points points = {.points = at, .rows = rows, .prompts = 1};
    FitOptions options = {.law = FIT_CORRECTED, .alone = true};
    Sample sample = {0};
    LeastSquares fit;
    *law = (TuningLaw){0};
    for (int i = 0; i < p->measured_count; i++) {
        const TuningMeasured *m = &p->measured[i];
        const TuningPoint *point = &p->space[m->point];
        if (point->N < 2 || S_of(m) > point->N) continue;
        at[points.count] = (PointAt){point->N, point->b, point->b};
        rows[points.count++] = (PointRow){.S = S_of(m), .steps = 1};
    }
    if (points.count > 1 && sample_open(&points, &options, &sample, NULL) &&
        least_squares(&sample, &fit, NULL))
        *law = (TuningLaw){true, fit.alpha, 1 / fit.phi};
    sample_release(&sample);
    mem_free(at);
    mem_free(rows);
}

// --- what is left over -----------------------------------------------------------------------------------

typedef struct Work {
    const TuningProblem *p;
    TuningPrediction *out;
    double *places;                // (count, axes), then (measured_count, axes)
    double *values, *errors;       // (measured_count)
    double *mean, *error, *square; // (count); square: summed squares of errors so far
} Work;

static bool krige(Work *w, Error *e) {
    const TuningProblem *p = w->p;
    KrigingData data = {.axes = p->axes,
                        .places = w->places + (size_t)p->count * (size_t)p->axes,
                        .values = w->values,
                        .errors = w->errors,
                        .count = p->measured_count};
    return kriging(&data, w->places, p->count, w->mean, w->error, e);
}

static bool predict_S(Work *w, const TuningLaw *law, Error *e) {
    const TuningProblem *p = w->p;
    double mean = mean_S(p);
    for (int i = 0; i < p->measured_count; i++) {
        const TuningMeasured *m = &p->measured[i];
        w->values[i] = log(S_of(m) / law_S(&p->space[m->point], law, mean));
        w->errors[i] = m->S_error;
    }
    if (!krige(w, e)) return false;
    for (int i = 0; i < p->count; i++) {
        w->out[i].S = fmax(1, law_S(&p->space[i], law, mean) * exp(w->mean[i]));
        w->square[i] = w->error[i] * w->error[i];
    }
    return true;
}

static bool predict_rows(Work *w, Error *e) {
    const TuningProblem *p = w->p;
    for (int i = 0; i < p->measured_count; i++) {
        const TuningMeasured *m = &p->measured[i];
        w->values[i] = log(m->rows / m->steps / p->space[m->point].rows);
        w->errors[i] = 0.01;
    }
    if (!krige(w, e)) return false;
    for (int i = 0; i < p->count; i++) w->out[i].rows = fmax(1, p->space[i].rows * exp(w->mean[i]));
    return true;
}

// What decoding takes beside the surface's steps, and a cache that is colder than theirs, all steps share
// with the autoregressive ones.
static double step_at(const TuningProblem *p, double rows) {
    return tuning_curve_at(&p->curve, rows) * p->token_s / tuning_curve_at(&p->curve, 1);
}

static bool predict_step(Work *w, Error *e) {
    const TuningProblem *p = w->p;
    for (int i = 0; i < p->measured_count; i++) {
        const TuningMeasured *m = &p->measured[i];
        w->values[i] = log(m->seconds / m->steps / step_at(p, m->rows / m->steps));
        w->errors[i] = m->time_error;
    }
    if (!krige(w, e)) return false;
    for (int i = 0; i < p->count; i++) {
        TuningPrediction *out = &w->out[i];
        out->step_s = step_at(p, out->rows) * exp(w->mean[i]);
        out->speedup = out->S * p->token_s / out->step_s;
        out->error = sqrt(w->square[i] + w->error[i] * w->error[i]);
    }
    return true;
}

static void set_places(Work *w) {
    const TuningProblem *p = w->p;
    double *at = w->places;
    for (int i = 0; i < p->count; i++)
        for (int a = 0; a < p->axes; a++) *at++ = p->space[i].place[a];
    for (int i = 0; i < p->measured_count; i++)
        for (int a = 0; a < p->axes; a++) *at++ = p->space[p->measured[i].point].place[a];
}

bool tuning_predict(const TuningProblem *p, TuningPrediction *out, TuningLaw *law, Error *e) {
    size_t count = (size_t)p->count, measured = (size_t)p->measured_count;
    double *memory =
        mem_new((count + measured) * (size_t)p->axes + 3 * count + 2 * measured + 1, sizeof *memory);
    Work w = {.p = p, .out = out, .places = memory};
    w.values = memory + (count + measured) * (size_t)p->axes;
    w.errors = w.values + measured;
    w.mean = w.errors + measured;
    w.error = w.mean + count;
    w.square = w.error + count;
    set_places(&w);
    fit_law(p, law);
    bool ok = predict_S(&w, law, e) && predict_rows(&w, e) && predict_step(&w, e);
    mem_free(memory);
    return ok;
}

// --- who races -------------------------------------------------------------------------------------------

// How good a point may well be: one point in twenty is better than that.
static double hope(const TuningPrediction *p) { return p->speedup * exp(1.645 * p->error); }

static bool is_chosen(const int *chosen, int n, int i) {
    for (int k = 0; k < n; k++)
        if (chosen[k] == i) return true;
    return false;
}

static double speedup(const TuningPrediction *p) { return p->speedup; }

// Of those that are not chosen and could be faster than `least`; -1: there is none.
static int best_by(double (*value)(const TuningPrediction *p), const TuningPrediction *predictions, int count,
                   const int *chosen, int n, double least) {
    int best = -1;
    for (int i = 0; i < count; i++)
        if (!is_chosen(chosen, n, i) && hope(&predictions[i]) >= least &&
            (best < 0 || value(&predictions[i]) > value(&predictions[best])))
            best = i;
    return best;
}

int tuning_choose(const TuningPrediction *predictions, int count, int sure, int most, int *chosen) {
    int n = 0;
    while (n < most) {
        double least = n ? predictions[chosen[0]].speedup : 0;
        int next = best_by(n % 2 ? hope : speedup, predictions, count, chosen, n, least);
        if (n == 1 && sure >= 0 && sure != chosen[0]) next = sure;
        if (next < 0) break;
        chosen[n++] = next;
    }
    return n;
}

int tuning_close_in(const TuningPrediction *predictions, const bool *known, int count, int most,
                    int *chosen) {
    double least = 0;
    int n = 0;
    for (int i = 0; i < count; i++)
        if (known[i] && predictions[i].speedup > least) least = predictions[i].speedup;
    while (n < most) {
        double (*value)(const TuningPrediction *p) = n % 2 ? hope : speedup;
        int best = -1;
        for (int i = 0; i < count; i++)
            if (!known[i] && !is_chosen(chosen, n, i) && hope(&predictions[i]) >= least &&
                (best < 0 || value(&predictions[i]) > value(&predictions[best])))
                best = i;
        if (best < 0) break;
        chosen[n++] = best;
    }
    return n;
}
