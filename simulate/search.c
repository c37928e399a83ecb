#include "simulate/search.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_min.h>
#include <math.h>
#include <stdbool.h>

enum { MOST_ITERATIONS = 100 };

typedef struct {
    double low, middle, high;
    double at_low, at_middle, at_high;
} Bracket;

// Brent's method, within a bracket whose middle is below both ends. Without memory the middle has to do.
static double refine(SearchFunction f, void *context, const Bracket *b, double tolerance) {
    gsl_function function = {f, context};
    double x = b->middle;
    gsl_error_handler_t *before = gsl_set_error_handler_off();
    gsl_min_fminimizer *m = gsl_min_fminimizer_alloc(gsl_min_fminimizer_brent);
    int status = m ? gsl_min_fminimizer_set_with_values(m, &function, b->middle, b->at_middle, b->low,
                                                        b->at_low, b->high, b->at_high)
                   : GSL_ENOMEM;
    for (int i = 0; status == GSL_SUCCESS && i < MOST_ITERATIONS; i++) {
        status = gsl_min_fminimizer_iterate(m);
        x = gsl_min_fminimizer_x_minimum(m);
        if (gsl_min_fminimizer_x_upper(m) - gsl_min_fminimizer_x_lower(m) < tolerance) break;
    }
    if (m) gsl_min_fminimizer_free(m);
    gsl_set_error_handler(before);
    return x;
}

static bool is_bracket(const Bracket *b) { return b->at_middle < b->at_low && b->at_middle < b->at_high; }

// The best so far is an end of the range: the valley may lie within, however close to that end.
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
