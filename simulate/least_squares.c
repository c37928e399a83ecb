// Least squares on S, and the search for a minimum that both estimators use. In the finish alpha and phi go
// through logistic functions, so no step leaves their domain; at the edge phi = 1 only alpha is free.
#include "simulate/fit.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

// f is at most a million: a law whose good steps never happen is meaningless.
static const double LEAST_PHI = 1e-6, LEAST_ALPHA = 1e-6, HOPELESS_CONDITION = 1e6;

enum { CELLS = 128, MOST_ITERATIONS = 200 };

// --- search ---------------------------------------------------------------------------------------------

typedef struct {
    double low, middle, high;
    double at_low, at_middle, at_high;
} Bracket;

// Brent's method, within a bracket whose middle is below both ends.
static double refine(SearchFunction f, void *context, const Bracket *b, double tolerance) {
    gsl_function function = {f, context};
    double x = b->middle;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_min_fminimizer *m = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    if (!m) mem_exhausted(SIZE_MAX);
    int status = gsl_min_fminimizer_set_with_values(m, &function, b->middle, b->at_middle, b->low, b->at_low,
                                                    b->high, b->at_high);
    for (int i = 0; status == GSL_SUCCESS && i < 100; i++) {
        status = gsl_min_fminimizer_iterate(m);
        x = gsl_min_fminimizer_x_minimum(m);
        if (gsl_min_fminimizer_x_upper(m) - gsl_min_fminimizer_x_lower(m) < tolerance) break;
    }
    gsl_min_fminimizer_free(m);
    gsl_set_error_handler(before);
    return x;
}

static bool is_bracket(const Bracket *b) { return b->at_middle < b->at_low && b->at_middle < b->at_high; }

// The best so far is an end of the range: the valley may still be inside, however close to that end.
static void narrow(SearchFunction f, void *context, Bracket *b, bool at_high, double tolerance) {
    while (b->high - b->low > tolerance) {
        b->middle = (b->low + b->high) / 2;
        b->at_middle = f(b->middle, context);
        if (is_bracket(b)) return;
        if (at_high) b->low = b->middle, b->at_low = b->at_middle;
        else b->high = b->middle, b->at_high = b->at_middle;
    }
}

double search_minimum(SearchFunction f, void *context, double low, double high, int cells, double tolerance) {
    assert(low < high && cells > 0);
    double width = (high - low) / cells, best = low, value = f(low, context);
    for (int i = 1; i <= cells; i++) {
        double x = i == cells ? high : low + i * width, here = f(x, context);
        if (here < value) best = x, value = here;
    }
    Bracket b = {.low = fmax(low, best - width), .middle = best, .high = fmin(high, best + width)};
    b.at_low = f(b.low, context), b.at_middle = value, b.at_high = f(b.high, context);
    if (best == low || best == high) narrow(f, context, &b, best == high, tolerance);
    return is_bracket(&b) ? refine(f, context, &b, tolerance) : best;
}

double search_minimum_near(SearchFunction f, void *context, double low, double high, int cells,
                           double tolerance, double guess, double reach) {
    Bracket b = {.low = fmax(low, guess - reach), .middle = guess, .high = fmin(high, guess + reach)};
    b.at_middle = f(b.middle, context);
    b.at_low = f(b.low, context), b.at_high = f(b.high, context);
    return is_bracket(&b) ? refine(f, context, &b, tolerance)
                          : search_minimum(f, context, low, high, cells, tolerance);
}

// --- the profile over alpha ------------------------------------------------------------------------------

// Weighed sums over points of (gain, tokens - 1), enough for the best phi and what it leaves.
typedef struct {
    double gg, gy, yy;
} Sums;

static Sums sum_up(const Sample *s, double alpha) {
    Sums sums = {0};
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        if (!p->fitted) continue;
        double g = sample_gain(p, alpha), y = p->tokens - 1;
        sums.gg += p->weight * g * g;
        sums.gy += p->weight * g * y;
        sums.yy += p->weight * y * y;
    }
    return sums;
}

static double best_phi(const Sums *sums) {
    return sums->gg > 0 ? fmin(fmax(sums->gy / sums->gg, LEAST_PHI), 1) : 1;
}

static double misfit(double alpha, void *context) {
    Sums sums = sum_up(context, alpha);
    double phi = best_phi(&sums);
    return sums.yy - 2 * phi * sums.gy + phi * phi * sums.gg;
}

static void set_profile(const Sample *s, double alpha, LeastSquares *out) {
    Sums sums = sum_up(s, alpha);
    out->alpha = alpha, out->phi = best_phi(&sums);
}

// --- the finish on S -------------------------------------------------------------------------------------

static double logistic(double u) { return 1 / (1 + exp(-u)); }
static double logit(double x) { return log(x / (1 - x)); }

static double error_of(const SamplePoint *p) { return p->se > 0 ? p->se : 1; }

// The derivatives of S by ln alpha and ln phi.
static void derivatives(const SamplePoint *p, double alpha, double phi, double *by_alpha, double *by_phi) {
    Law law = p->law;
    law.alpha = alpha;
    double gain = law_good_tokens(&law) - 1;
    double chain = 1; // d S / d tokens
    if (p->law.terms & LAW_FILLING) {
        double tokens = 1 + phi * gain, S = sample_predict(p, alpha, phi);
        chain = S * S * (p->law.output - p->law.filling) / (p->law.output * tokens * tokens);
    }
    *by_alpha = chain * phi * alpha * law_good_slope(&law);
    *by_phi = chain * phi * gain;
}

static void read_parameters(const gsl_vector *x, double *alpha, double *phi) {
    *alpha = logistic(gsl_vector_get(x, 0));
    *phi = x->size == 2 ? logistic(gsl_vector_get(x, 1)) : 1;
}

static int residuals(const gsl_vector *x, void *context, gsl_vector *out) {
    const Sample *s = context;
    double alpha, phi;
    size_t row = 0;
    read_parameters(x, &alpha, &phi);
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        if (p->fitted) gsl_vector_set(out, row++, (sample_predict(p, alpha, phi) - p->S) / error_of(p));
    }
    return GSL_SUCCESS;
}

static int jacobian(const gsl_vector *x, void *context, gsl_matrix *out) {
    const Sample *s = context;
    double alpha, phi;
    size_t row = 0;
    read_parameters(x, &alpha, &phi);
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        double by_alpha, by_phi;
        if (!p->fitted) continue;
        derivatives(p, alpha, phi, &by_alpha, &by_phi);
        gsl_matrix_set(out, row, 0, by_alpha * (1 - alpha) / error_of(p));
        if (x->size == 2) gsl_matrix_set(out, row, 1, by_phi * (1 - phi) / error_of(p));
        row++;
    }
    return GSL_SUCCESS;
}

static double sum_of_squares(const Sample *s, double alpha, double phi) {
    double squares = 0;
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        double residual = (sample_predict(p, alpha, phi) - p->S) / error_of(p);
        if (p->fitted) squares += residual * residual;
    }
    return squares;
}

static void solve(const Sample *s, gsl_multifit_nlinear_workspace *w, gsl_vector *x, LeastSquares *out) {
    gsl_multifit_nlinear_fdf system = {
        .f = residuals, .df = jacobian, .n = (size_t)s->fitted, .p = x->size, .params = (void *)s};
    double alpha, phi;
    int info;
    if (gsl_multifit_nlinear_init(x, &system, w) != GSL_SUCCESS) return;
    gsl_multifit_nlinear_driver(MOST_ITERATIONS, 1e-14, 1e-14, 0, NULL, NULL, &info, w);
    read_parameters(w->x, &alpha, &phi);
    if (!(alpha >= LEAST_ALPHA && alpha <= 1 && phi >= LEAST_PHI && phi <= 1)) return;
    double squares = sum_of_squares(s, alpha, phi);
    if (squares <= out->squares) out->alpha = alpha, out->phi = phi, out->squares = squares;
}

// Keeps the profile's result if the solver finds nothing better.
static void finish(const Sample *s, LeastSquares *out) {
    size_t free_parameters = out->phi < 1 ? 2 : 1;
    gsl_multifit_nlinear_parameters settings = gsl_multifit_nlinear_default_parameters();
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_vector *x = gsl_vector_alloc(free_parameters);
    gsl_multifit_nlinear_workspace *w =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &settings, (size_t)s->fitted, free_parameters);
    if (!x || !w) mem_exhausted(SIZE_MAX);
    gsl_vector_set(x, 0, logit(out->alpha));
    if (free_parameters == 2) gsl_vector_set(x, 1, logit(out->phi));
    solve(s, w, x, out);
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    gsl_set_error_handler(before);
}

// --- the condition --------------------------------------------------------------------------------------

// From the 2 x 2 matrix J'J: its eigenvalues are the squares of J's singular values.
static void set_condition(const Sample *s, LeastSquares *out) {
    double aa = 0, ff = 0, af = 0;
    for (int i = 0; i < s->count; i++) {
        double by_alpha, by_phi, error = error_of(&s->points[i]);
        if (!s->points[i].fitted) continue;
        derivatives(&s->points[i], out->alpha, out->phi, &by_alpha, &by_phi);
        aa += by_alpha * by_alpha / error / error;
        ff += by_phi * by_phi / error / error;
        af -= by_alpha * by_phi / error / error; // by ln f = -ln phi
    }
    double half = (aa + ff) / 2, root = sqrt((aa - ff) * (aa - ff) / 4 + af * af);
    double least = aa * ff > af * af ? (aa * ff - af * af) / (half + root) : 0;
    out->condition = least > 0 ? sqrt((half + root) / least) : HUGE_VAL;
    out->correlation = aa * ff > 0 ? -af / sqrt(aa * ff) : 0;
}

static bool check_points(const Sample *s, Error *e) {
    double low = HUGE_VAL, high = 0;
    for (int i = 0; i < s->count; i++) {
        if (!s->points[i].fitted) continue;
        low = fmin(low, s->points[i].S);
        high = fmax(high, s->points[i].S);
    }
    if (s->fitted < 2 && s->fitted < s->count)
        return error_input(
            e,
            "fit: %d of %d points to fit by least squares, for the paper's law takes those with W = "
            "G; alpha and f need two or more: --law corrected takes all",
            s->fitted, s->count);
    if (s->fitted < 2)
        return error_input(e, "fit: %d point%s to fit by least squares; alpha and f need two or more",
                           s->fitted, s->fitted == 1 ? "" : "s");
    return high - low > 1e-9 * high ||
           error_input(e, "fit: S is %g at all %d points: they cannot tell alpha from f", low, s->fitted);
}

void least_squares_near(const Sample *s, double alpha, LeastSquares *out) {
    set_profile(s, search_minimum_near(misfit, (void *)s, LEAST_ALPHA, 1, CELLS, 1e-6, alpha, 0.05), out);
}

bool least_squares(const Sample *s, LeastSquares *out, Error *e) {
    if (!check_points(s, e)) return false;
    set_profile(s, search_minimum(misfit, (void *)s, LEAST_ALPHA, 1, CELLS, 1e-10), out);
    out->squares = sum_of_squares(s, out->alpha, out->phi);
    if (out->alpha > LEAST_ALPHA && out->alpha < 1) finish(s, out);
    set_condition(s, out);
    return out->condition < HOPELESS_CONDITION ||
           error_input(e,
                       "fit: the law changes in the same way with alpha and f at all %d points: they cannot "
                       "be told apart; add points of other N or W",
                       s->fitted);
}
