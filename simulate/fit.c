// Both estimators with their intervals, the best one's predictions, and the fit under other assumptions. A
// resample works on a second sample, so the first stays as measured.
#include "simulate/fit.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>

const double FIT_WARNING_CORRELATION = 0.99;

// The state of a resample.
typedef struct {
    const Points *points;
    const Sample *measured;
    Sample drawn;
    double alpha, phi; // of the fit to `measured`
    double error;      // of S, for points without an se
} Resampling;

// The outputs of a resample: alpha, f, and S at every measured point.
static void answer(const Resampling *r, double alpha, double phi, double *out) {
    out[0] = alpha, out[1] = 1 / phi;
    for (int i = 0; i < r->measured->count; i++)
        out[2 + i] = sample_predict(&r->measured->points[i], alpha, phi);
}

// --- intervals of least squares --------------------------------------------------------------------------

static bool answer_least_squares(const Resampling *r, double *out) {
    LeastSquares fit;
    for (int i = 0; i < r->drawn.count; i++)
        if (!isfinite(r->drawn.points[i].tokens)) return false;
    least_squares_near(&r->drawn, r->alpha, &fit);
    answer(r, fit.alpha, fit.phi, out);
    return true;
}

static bool least_squares_of_prompts(void *context, const double *weights, double *out) {
    Resampling *r = context;
    sample_weigh(&r->drawn, r->points, weights);
    return answer_least_squares(r, out);
}

// Draws each point around its prediction, by its error.
static bool least_squares_of_errors(void *context, const double *normal, double *out) {
    Resampling *r = context;
    for (int i = 0; i < r->drawn.count; i++) {
        SamplePoint *p = &r->drawn.points[i];
        double error = p->se > 0 ? p->se : r->error;
        sample_move(p, fmax(1, sample_predict(p, r->alpha, r->phi) + error * normal[i]));
    }
    return answer_least_squares(r, out);
}

// --- intervals of the likelihood -------------------------------------------------------------------------

static bool answer_likelihood(const Resampling *r, double *out) {
    Likelihood fit;
    double hits = 0;
    for (int i = 0; i < r->drawn.count; i++) hits += r->drawn.points[i].fitted ? r->drawn.points[i].hits : 0;
    if (hits == 0) return false;
    likelihood_near(&r->drawn, r->alpha, &fit);
    answer(r, fit.alpha, fit.phi, out);
    return true;
}

static bool likelihood_of_prompts(void *context, const double *weights, double *out) {
    Resampling *r = context;
    sample_weigh(&r->drawn, r->points, weights);
    return answer_likelihood(r, out);
}

// Draws steps again: the number of steps of each length is Poisson around the measured one.
static void draw_steps(gsl_rng *random, const void *plan, double *draws, UNUSED size_t count) {
    const Sample *s = plan;
    for (int i = 0; i < s->count; i++)
        for (int a = 0; a <= s->points[i].law.gamma; a++)
            *draws++ = gsl_ran_poisson(random, s->points[i].accepted[a]);
}

static bool likelihood_of_steps(void *context, const double *counts, double *out) {
    Resampling *r = context;
    for (int i = 0; i < r->drawn.count; i++) {
        SamplePoint *p = &r->drawn.points[i];
        sample_count(p, counts);
        counts += p->at.N;
    }
    return answer_likelihood(r, out);
}

// --- an estimate with its interval -----------------------------------------------------------------------

// If all resamples are alike, rounding may put the value outside the interval.
static FitValue value_within(double value, const Interval *i) {
    return (FitValue){value, i->se, fmin(i->low, value), fmax(i->high, value)};
}

// Without enough resamples that have an answer the estimator has none either.
static void set_intervals(Bootstrap *b, Resampling *r, const FitOptions *o, FitEstimate *out) {
    UNUSED bool opened = sample_open(r->points, o, &r->drawn, NULL);
    assert(opened); // as the measured sample was
    b->context = r, b->outputs = 2 + r->measured->count;
    b->resamples = o->resamples, b->seed = o->seed;
    b->level = out->drawn == DRAWN_PROMPTS ? resampled_level(o->level, b->draws) : o->level;
    Interval *intervals = out->intervals = mem_new((size_t)b->outputs, sizeof *intervals);
    out->given = out->interval = bootstrap(b, intervals, NULL, &out->refused);
    if (out->interval) out->alpha = value_within(r->alpha, &intervals[0]);
    if (out->interval) out->f = value_within(1 / r->phi, &intervals[1]);
    sample_release(&r->drawn);
}

static bool all_have_errors(const Sample *s) {
    for (int i = 0; i < s->count; i++)
        if (s->points[i].fitted && !(s->points[i].se > 0)) return false;
    return true;
}

static double residual_squares(const Sample *s, double alpha, double phi) {
    double squares = 0;
    for (int i = 0; i < s->count; i++) {
        double residual = sample_predict(&s->points[i], alpha, phi) - s->points[i].S;
        if (s->points[i].fitted) squares += residual * residual;
    }
    return squares;
}

static void run_least_squares(const Points *points, const Sample *s, const FitOptions *o, FitEstimate *out) {
    LeastSquares fit;
    if (!least_squares(s, &fit, &out->refused)) return;
    double squares = residual_squares(s, fit.alpha, fit.phi);
    bool errors = all_have_errors(s);
    Resampling r = {.points = points, .measured = s, .alpha = fit.alpha, .phi = fit.phi};
    Bootstrap b = {.draws = (size_t)s->count, .draw = draw_normal, .statistic = least_squares_of_errors};
    out->given = true;
    out->condition = fit.condition, out->correlation = fit.correlation;
    out->rms = sqrt(squares / s->fitted);
    out->drawn = points->prompts > 1 ? DRAWN_PROMPTS : errors ? DRAWN_ERRORS : DRAWN_RESIDUALS;
    if (out->drawn == DRAWN_PROMPTS) {
        b.draws = (size_t)points->prompts;
        b.draw = draw_units, b.statistic = least_squares_of_prompts;
    } else if (out->drawn == DRAWN_RESIDUALS && s->fitted <= 2) {
        // The law meets two points without errors exactly, so they give no error of their own.
        out->interval = false;
        out->alpha = (FitValue){fit.alpha, 0, fit.alpha, fit.alpha};
        out->f = (FitValue){1 / fit.phi, 0, 1 / fit.phi, 1 / fit.phi};
        return;
    }
    r.error = s->fitted > 2 ? sqrt(squares / (s->fitted - 2)) : 0;
    set_intervals(&b, &r, o, out);
}

static void run_likelihood(const Points *points, const Sample *s, const FitOptions *o, FitEstimate *out) {
    Likelihood fit;
    if (!likelihood(s, &fit, &out->refused)) return;
    Resampling r = {.points = points, .measured = s, .alpha = fit.alpha, .phi = fit.phi};
    Bootstrap b = {.draw = draw_steps, .plan = s, .statistic = likelihood_of_steps};
    for (int i = 0; i < s->count; i++) b.draws += (size_t)s->points[i].at.N;
    out->given = true;
    out->condition = fit.condition, out->correlation = fit.correlation;
    out->log_likelihood = fit.log_likelihood;
    out->rms = sqrt(residual_squares(s, fit.alpha, fit.phi) / s->fitted);
    out->drawn = points->prompts > 1 ? DRAWN_PROMPTS : DRAWN_STEPS;
    if (out->drawn == DRAWN_PROMPTS) {
        b.draws = (size_t)points->prompts;
        b.draw = draw_units, b.statistic = likelihood_of_prompts;
    }
    set_intervals(&b, &r, o, out);
}

// --- the fit as a whole ---------------------------------------------------------------------------------

static void set_chi_square(const Sample *s, Fit *out) {
    const FitEstimate *best = out->best;
    out->freedom = s->fitted - 2;
    out->chi_square_given = all_have_errors(s) && out->freedom > 0;
    if (!out->chi_square_given) return;
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        if (!p->fitted) continue;
        double off = (sample_predict(p, best->alpha.value, 1 / best->f.value) - p->S) / p->se;
        out->chi_square += off * off;
    }
    out->chance = gsl_cdf_chisq_Q(out->chi_square, out->freedom);
}

static void set_predictions(const Sample *s, Fit *out) {
    out->predictions = mem_new((size_t)s->count, sizeof *out->predictions);
    out->count = s->count, out->fitted = s->fitted;
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        double predicted = sample_predict(p, out->best->alpha.value, 1 / out->best->f.value);
        const Interval *band = out->best->interval ? &out->best->intervals[2 + i] : NULL;
        out->predictions[i] = (FitPrediction){.at = p->at,
                                              .S = p->S,
                                              .se = p->se,
                                              .predicted = predicted,
                                              .low = band ? fmin(band->low, predicted) : predicted,
                                              .high = band ? fmax(band->high, predicted) : predicted,
                                              .fitted = p->fitted};
    }
}

static void add_other(const Points *points, FitOptions o, bool flip_bonus, bool flip_filling, Fit *out) {
    LOCAL(sample_release) Sample s;
    LeastSquares fit;
    if (flip_bonus) o.bonus_dropped = !o.bonus_dropped;
    if (flip_filling) o.output = 0;
    FitOther *other = &out->others[out->other_count++];
    *other = (FitOther){.bonus_dropped = o.bonus_dropped, .output = o.output};
    other->given = sample_open(points, &o, &s, NULL) && least_squares(&s, &fit, NULL);
    if (other->given) {
        other->alpha = fit.alpha, other->f = 1 / fit.phi;
        other->rms = sqrt(residual_squares(&s, fit.alpha, fit.phi) / s.fitted);
    }
}

static bool choose_best(Fit *out, Error *e) {
    if (out->least_squares.given || out->likelihood.given) {
        out->best = out->least_squares.given ? &out->least_squares : &out->likelihood;
        return true;
    }
    if (out->likelihood.refused.kind == ERROR_NONE)
        return error_input(e, "%s", out->least_squares.refused.text);
    return error_input(e, "%s; %s", out->least_squares.refused.text, out->likelihood.refused.text);
}

static bool run_sample(const Points *points, Sample *s, const FitOptions *o, Fit *out, Error *e) {
    if (s->fitted == 0)
        return error_input(e, "fit: no point has W = G, which the paper's law needs; try --law corrected");
    run_least_squares(points, s, o, &out->least_squares);
    if (points->columns & POINTS_ACCEPTED) run_likelihood(points, s, o, &out->likelihood);
    if (!choose_best(out, e)) return false;
    set_predictions(s, out);
    set_chi_square(s, out);
    if (o->alone) return true;
    leave_out(s, points, false, &out->by_W);
    leave_out(s, points, true, &out->by_N);
    add_other(points, *o, true, false, out);
    if (o->output > 0) { // filling can be dropped always, but added only where the outputs' length is known
        add_other(points, *o, false, true, out);
        add_other(points, *o, true, true, out);
    }
    return true;
}

bool fit_run(const Points *points, const FitOptions *o, Fit *out, Error *e) {
    LOCAL(sample_release) Sample s = {0};
    *out = (Fit){.prompts = points->columns & POINTS_PROMPT ? points->prompts : 0,
                 .candidates = points->columns & POINTS_CANDIDATES};
    return sample_open(points, o, &s, e) && run_sample(points, &s, o, out, e);
}

void fit_release(Fit *f) {
    MEM_FREE(f->predictions, f->least_squares.intervals, f->likelihood.intervals);
    *f = (Fit){0};
}

int fit_warnings(const FitEstimate *estimate, const char *out[FIT_MOST_WARNINGS]) {
    int count = 0;
    if (estimate->condition > FIT_WARNING_CONDITION)
        out[count++] = "the condition number is above 15: a small error of S moves alpha and f far";
    if (fabs(estimate->correlation) > FIT_WARNING_CORRELATION)
        out[count++] = "alpha and f are correlated above 0.99: trust what they predict, not each alone";
    if (!estimate->interval) out[count++] = "two points without errors are met exactly: there is no interval";
    if (estimate->f.value == 1 || estimate->alpha.value >= 1 - 1e-9 || estimate->alpha.value <= 1e-5)
        out[count++] = "the fit is at the edge of the law's range: the law may not hold here";
    return count;
}
