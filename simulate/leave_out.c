// Rounds of leaving out, fitting and predicting, for the law and three rivals. A round marks the points that
// are left out as not fitted, and restores them.
#include "simulate/fit.h"

#include "engine/base/memory.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_fit.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

const char *const RIVAL_NAMES[RIVAL_COUNT] = {"law", "linear in log b", "phi of each prompt",
                                              "alpha of each position"};

// One round: the fitted points of s are left, those of left_out are predicted.
typedef struct {
    Sample *s;
    const Points *points;
    const bool *left_out; // (count)
    double *predicted;    // (count)
    double *scratch;      // (2 count + prompts) for the rivals
    double *gains;        // (count), of all points under one alpha
} Round;

typedef bool (*Predict)(Round *r); // false: the remaining points don't determine the rival

// --- the law ---------------------------------------------------------------------------------------------

static bool predict_law(Round *r) {
    LeastSquares fit;
    if (!least_squares(r->s, &fit, NULL)) return false;
    for (int i = 0; i < r->s->count; i++)
        r->predicted[i] = sample_predict(&r->s->points[i], fit.alpha, fit.phi);
    return true;
}

// --- linear in log b -------------------------------------------------------------------------------------

static bool predict_log(Round *r) {
    double *x = r->scratch, *y = x + r->s->count, c0, c1, v00, v01, v11, squares, low = HUGE_VAL, high = -1;
    size_t n = 0;
    for (int i = 0; i < r->s->count; i++) {
        const SamplePoint *p = &r->s->points[i];
        if (!p->fitted) continue;
        x[n] = log(p->at.G), y[n] = p->S;
        low = fmin(low, x[n]), high = fmax(high, x[n]);
        n++;
    }
    if (n < 2 || high <= low) return false;
    gsl_fit_linear(x, 1, y, 1, n, &c0, &c1, &v00, &v01, &v11, &squares);
    for (int i = 0; i < r->s->count; i++) r->predicted[i] = c0 + c1 * log(r->s->points[i].at.G);
    return true;
}

// --- phi of each prompt ----------------------------------------------------------------------------------

static double row_tokens(const SamplePoint *p, const PointRow *row) {
    if (!(p->law.terms & LAW_FILLING)) return row->S;
    return law_without_filling(row->S, p->law.filling, p->law.output);
}

static const PointRow *row_at(const Round *r, int point, int prompt) {
    return &r->points->rows[point * r->points->prompts + prompt];
}

static void set_gains(Round *r, double alpha) {
    for (int i = 0; i < r->s->count; i++) r->gains[i] = sample_gain(&r->s->points[i], alpha);
}

static double phi_of_prompt(const Round *r, int prompt) {
    double gy = 0, gg = 0;
    for (int i = 0; i < r->s->count; i++) {
        const SamplePoint *p = &r->s->points[i];
        const PointRow *row = row_at(r, i, prompt);
        if (!p->fitted) continue;
        double g = r->gains[i];
        gy += row->steps * g * (row_tokens(p, row) - 1);
        gg += row->steps * g * g;
    }
    return gg > 0 ? fmin(fmax(gy / gg, 0), 1) : 0;
}

static double prompt_misfit(double alpha, void *context) {
    Round *r = context;
    double squares = 0;
    set_gains(r, alpha);
    for (int prompt = 0; prompt < r->points->prompts; prompt++) {
        double phi = phi_of_prompt(r, prompt);
        for (int i = 0; i < r->s->count; i++) {
            const PointRow *row = row_at(r, i, prompt);
            if (!r->s->points[i].fitted) continue;
            double residual = 1 + phi * r->gains[i] - row_tokens(&r->s->points[i], row);
            squares += row->steps * residual * residual;
        }
    }
    return squares;
}

// S of all prompts is the mean of theirs, weighed by the steps that they would take.
static double pooled(const Round *r, int point, const double *phi) {
    const SamplePoint *p = &r->s->points[point];
    double gain = r->gains[point], tokens = 0, steps = 0;
    for (int prompt = 0; prompt < r->points->prompts; prompt++) {
        const PointRow *row = row_at(r, point, prompt);
        double here = 1 + phi[prompt] * gain, taken = row->steps * row->S / here;
        tokens += taken * here;
        steps += taken;
    }
    double mean = tokens / steps;
    return p->law.terms & LAW_FILLING ? law_with_filling(mean, p->law.filling, p->law.output) : mean;
}

static bool predict_prompt(Round *r) {
    int prompts = r->points->prompts;
    if (prompts < 2 || r->s->fitted < 2) return false;
    for (int i = 0; i < r->s->count * prompts; i++)
        if (!isfinite(row_tokens(&r->s->points[i / prompts], &r->points->rows[i]))) return false;
    set_gains(r, search_minimum(prompt_misfit, r, 1e-6, 1, 64, 1e-6));
    for (int prompt = 0; prompt < prompts; prompt++) r->scratch[prompt] = phi_of_prompt(r, prompt);
    for (int i = 0; i < r->s->count; i++) r->predicted[i] = pooled(r, i, r->scratch);
    return true;
}

// --- alpha of each position ------------------------------------------------------------------------------

// x holds the logits of the positions' rates.
static double position_predict(const SamplePoint *p, const gsl_vector *x) {
    int last = p->law.gamma - (p->law.terms & LAW_BONUS_DROPPED ? 1 : 0);
    double match = 1, tokens = 1;
    for (int i = 0; i < last; i++) {
        size_t at = (size_t)i < x->size ? (size_t)i : x->size - 1;
        match /= 1 + exp(-gsl_vector_get(x, at));
        if (!p->share) tokens += law_some_match(match, 1, p->law.b);
        else
            for (int c = 1; c < p->law.share_count; c++)
                if (p->share[c] > 0) tokens += p->share[c] * law_some_match(match, 1, c);
    }
    return p->law.terms & LAW_FILLING ? law_with_filling(tokens, p->law.filling, p->law.output) : tokens;
}

static int position_residuals(const gsl_vector *x, void *context, gsl_vector *out) {
    const Sample *s = context;
    size_t row = 0;
    for (int i = 0; i < s->count; i++)
        if (s->points[i].fitted)
            gsl_vector_set(out, row++, position_predict(&s->points[i], x) - s->points[i].S);
    return GSL_SUCCESS;
}

static bool solve_positions(Round *r, gsl_vector *x) {
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf system = {
        .f = position_residuals, .n = (size_t)r->s->fitted, .p = x->size, .params = r->s};
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, system.n, system.p);
    int info;
    if (!w) mem_exhausted(SIZE_MAX);
    bool ok = gsl_multifit_nlinear_init(x, &system, w) == GSL_SUCCESS;
    if (ok) gsl_multifit_nlinear_driver(200, 1e-8, 1e-8, 0, NULL, NULL, &info, w);
    for (int i = 0; ok && i < r->s->count; i++)
        ok = isfinite(r->predicted[i] = position_predict(&r->s->points[i], w->x));
    gsl_multifit_nlinear_free(w);
    return ok;
}

static bool predict_position(Round *r) {
    int positions = 0;
    for (int i = 0; i < r->s->count; i++)
        if (r->s->points[i].fitted && r->s->points[i].law.gamma > positions)
            positions = r->s->points[i].law.gamma;
    if (positions == 0 || positions >= r->s->fitted) return false;
    gsl_vector *x =
        gsl_vector_calloc((size_t)positions); // rates of a half; GSL ends the program without memory
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    bool ok = solve_positions(r, x);
    gsl_vector_free(x);
    gsl_set_error_handler(before);
    return ok;
}

// --- rounds ----------------------------------------------------------------------------------------------

static const Predict PREDICTS[RIVAL_COUNT] = {predict_law, predict_log, predict_prompt, predict_position};

static void run_round(Round *r, LeaveOut *out) {
    for (int rival = 0; rival < RIVAL_COUNT; rival++) {
        if (!PREDICTS[rival](r)) continue;
        for (int i = 0; i < r->s->count; i++) {
            double residual = r->predicted[i] - r->s->points[i].S;
            if (!r->left_out[i]) continue;
            out->rms[rival] += residual * residual;
            out->points[rival]++;
        }
    }
}

static int value_of(const SamplePoint *p, bool by_N) { return by_N ? p->at.N : p->at.W; }

// Leaves out all fitted points with this value, runs the round, puts them back.
static void leave_one_out(Round *r, bool *left_out, bool by_N, int value, LeaveOut *out) {
    Sample *s = r->s;
    for (int i = 0; i < s->count; i++) {
        left_out[i] = s->points[i].fitted && value_of(&s->points[i], by_N) == value;
        if (left_out[i]) s->points[i].fitted = false, s->fitted--;
    }
    if (s->fitted > 0) run_round(r, out);
    for (int i = 0; i < s->count; i++)
        if (left_out[i]) s->points[i].fitted = true, s->fitted++;
}

static bool seen_before(const Sample *s, int i, bool by_N) {
    for (int j = 0; j < i; j++)
        if (s->points[j].fitted && value_of(&s->points[j], by_N) == value_of(&s->points[i], by_N))
            return true;
    return false;
}

void leave_out(Sample *s, const Points *points, bool by_N, LeaveOut *out) {
    size_t count = (size_t)s->count;
    LOCAL_MEMORY double *numbers = mem_new(4 * count + (size_t)points->prompts, sizeof *numbers);
    LOCAL_MEMORY bool *left_out = mem_new(count, sizeof *left_out);
    *out = (LeaveOut){0};
    Round r = {s, points, left_out, numbers, numbers + 2 * count, numbers + count};
    for (int i = 0; i < s->count; i++)
        if (s->points[i].fitted && !seen_before(s, i, by_N))
            leave_one_out(&r, left_out, by_N, value_of(&s->points[i], by_N), out);
    for (int rival = 0; rival < RIVAL_COUNT; rival++)
        if (out->points[rival]) out->rms[rival] = sqrt(out->rms[rival] / out->points[rival]);
}
