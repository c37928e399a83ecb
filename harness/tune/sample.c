// The sample: points of a design, then those that may be the best, on the same prompts. How many points and
// prompts there are, the time decides.
#include "harness/tune/parts.h"

#include "engine/base/memory.h"
#include "simulate/design.h"
#include "simulate/plan.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdlib.h>

// Shares of the time that is left after the surface; what remains is for the race.
static const double DESIGN_SHARE = 0.45, SAMPLE_SHARE = 0.6;
enum { CLOSE = 2 }; // points that are added at a time when closing in

// --- which points ----------------------------------------------------------------------------------------

// Where steps of many rows are slow, the corners of the space take the most time and win the least. So a
// point is allowed into the design only if it can win at all (a step is faster than the tokens that it could
// emit), and if its step is among the shorter half, or not much longer than one token's. The half is made
// larger where a design could not spread over it, and is no bound where none of it can win.
static bool allow(Tune *t, int sample, bool *allowed) {
    enum { SPREAD = 4 };
    const double NOT_MUCH = 1.5;
    double seconds[TUNING_MOST_CURVE];
    TuningCurve curve = tune_curve(&t->out->surface, seconds);
    int count = t->space->count, half = count / 2 > SPREAD * sample ? count / 2 : SPREAD * sample;
    double *times = mem_new(2 * (size_t)count, sizeof *times);
    double *sorted = times + count;
    for (int i = 0; i < count; i++) {
        const TuningPoint *p = &t->space->points[i];
        times[i] = sorted[i] = tuning_curve_at(&curve, p->rows) / curve.seconds[0];
        t->out->excluded += times[i] >= p->N;
    }
    double most = fmax(NOT_MUCH, quantile(sorted, (size_t)count, fmin(1, (double)half / count)));
    bool all = t->o->exhaustive || t->out->excluded == count, any = false;
    for (int i = 0; i < count; i++) {
        allowed[i] = all || (times[i] <= most && times[i] < t->space->points[i].N);
        any = any || allowed[i];
    }
    for (int i = 0; !any && i < count; i++) allowed[i] = times[i] < t->space->points[i].N;
    mem_free(times);
    return true;
}

static int design_size(const Tune *t) {
    if (t->o->exhaustive) return t->space->count;
    return t->o->sample ? t->o->sample : 2 * t->space->axes + 3;
}

// Returns the number of points chosen.
static int design(Tune *t, int *chosen) {
    const TuneSpace *s = t->space;
    bool *allowed = mem_new((size_t)s->count, sizeof *allowed);
    int n = -1;
    if (allow(t, design_size(t), allowed))
        n = design_points(s->places, allowed, s->count, s->axes, design_size(t), chosen);
    mem_free(allowed);
    return n;
}

// --- how much of it --------------------------------------------------------------------------------------

static bool too_little(const Tune *t, const PlanCosts *c, Error *e) {
    int fewest = c->count < 2 ? c->count : 2;
    double scale = tune_scale(t), least = scale * (fewest * c->begin + plan_round(c, fewest));
    return error_input(
        e,
        "tune: nothing can be told in --budget %gs: one prompt by %d points and the baseline takes "
        "about %.2g s here; give --budget %.0fs, or fewer --max-tokens",
        t->o->budget_s, fewest, least + tune_spent(t), ceil(t->least_s));
}

// Cuts the design to what fits into the time. chosen: (count), of which the first is open.
static bool plan(Tune *t, const int *chosen, int count, PlanSample *out, Error *e) {
    int prompts = (int)t->in->datasets[0].count, least = t->space->axes + 2;
    *out = (PlanSample){count, prompts};
    double *points = mem_new((size_t)count, sizeof *points);
    tune_expect_planned(t, chosen[0]);
    for (int i = 0; i < count; i++) points[i] = t->expected[chosen[i]];
    PlanCosts costs = {t->begin_s, t->expected[t->space->count], points, count};
    double scale = tune_scale(t), spent = tune_spent(t);
    t->least_s = spent + scale * plan_least(&costs, least);
    tune_set_limit(t);
    bool ok = true;
    if (!t->o->exhaustive) {
        double left = (t->limit_s - spent) / scale;
        if (prompts > t->o->prompts) prompts = t->o->prompts;
        *out = plan_sample(&costs, prompts, least, DESIGN_SHARE * left);
        if (out->points == 0) *out = plan_sample(&costs, prompts, least, left);
        ok = out->points > 0 || too_little(t, &costs, e);
    }
    mem_free(points);
    return ok;
}

// --- measuring -------------------------------------------------------------------------------------------

static void ask_nobody(Tune *t) {
    for (int i = 0; i < t->space->count; i++) t->asked[i] = false;
}

// All points chosen on *prompts prompts, or on as many as there is time for: *prompts then says how many.
static bool answer_all(Tune *t, const int *chosen, int count, int *prompts, double until, Error *e) {
    int most = *prompts;
    ask_nobody(t);
    for (int i = 0; i < count; i++) {
        if (!tune_seat(t, chosen[i], e)) return false;
        t->out->seats[chosen[i]].sampled = t->out->end != TUNE_INTERRUPTED;
    }
    for (*prompts = 0; *prompts < most; ++*prompts) {
        bool begun = *prompts > 0;
        if (tune_is_over(t, begun ? until : HUGE_VAL, tune_round_seconds(t))) break;
        tune_say(t, "sample", t->rounds + 1);
        if (!tune_round(t, *prompts, e)) return false;
    }
    return true;
}

static bool measure_design(Tune *t, Error *e) {
    PlanSample fits;
    int *chosen = mem_new((size_t)design_size(t), sizeof *chosen);
    int n = design(t, chosen);
    bool ok = n > 0 && tune_seat(t, t->space->count, e) && tune_seat(t, chosen[0], e);
    if (!ok || t->out->end == TUNE_INTERRUPTED) {
        mem_free(chosen);
        return ok;
    }
    ok = plan(t, chosen, n, &fits, e);
    double left = t->limit_s - tune_spent(t);
    ok = ok && answer_all(t, chosen, fits.points, &fits.prompts, tune_spent(t) + SAMPLE_SHARE * left, e);
    if (ok) t->out->sample_prompts = fits.prompts;
    mem_free(chosen);
    return ok;
}

// --- closing in ------------------------------------------------------------------------------------------

// How long it takes to open n more points and measure them.
static double closing_seconds(Tune *t, const int *chosen, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += t->expected[chosen[i]];
    sum += t->expected[t->space->count];
    return tune_scale(t) * (sum * t->out->sample_prompts + n * t->begin_s);
}

// Measures further points until none that is left could be faster than the measured ones. from: when the
// sample began. The predictions, and how long points take, are known better after each step.
static bool close_in(Tune *t, double from, Error *e) {
    TuneResult *out = t->out;
    bool *known = mem_new((size_t)out->points, sizeof *known);
    bool ok = known;
    while (ok && out->end != TUNE_INTERRUPTED) {
        int chosen[CLOSE], prompts = out->sample_prompts;
        for (int i = 0; i < out->points; i++) known[i] = out->seats[i].sampled;
        int n = tuning_close_in(out->predictions, known, out->points, CLOSE, chosen);
        double until = from + SAMPLE_SHARE * (t->limit_s - from);
        while (n > 0 && tune_is_over(t, until, closing_seconds(t, chosen, n))) n--;
        if (n == 0) break;
        ok = answer_all(t, chosen, n, &prompts, HUGE_VAL, e) &&
             (out->end == TUNE_INTERRUPTED || tune_predict(t, e));
    }
    mem_free(known);
    return ok;
}

bool tune_sample(Tune *t, Error *e) {
    double from = tune_spent(t);
    bool ok = measure_design(t, e);
    if (ok && t->rounds > 0) {
        t->out->sample_rounds = t->rounds;
        ok = tune_predict(t, e) && (t->o->exhaustive || close_in(t, from, e));
    }
    t->out->sample_rounds = t->rounds;
    t->out->sample_s = tune_spent(t) - from;
    return ok;
}
