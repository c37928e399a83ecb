#include "tests/support/chi_square.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

static double term(double got, double want) { return (got - want) * (got - want) / want; }

double chi_square(const double *count, const double *chance, int cells, double draws) {
    double sum = 0, rare_got = 0, rare_want = 0;
    int used = 0;
    for (int i = 0; i < cells; i++) {
        double want = draws * chance[i];
        if (chance[i] == 0 && count[i] > 0) return 0;
        if (want < 5) {
            rare_want += want;
            rare_got += count[i];
            continue;
        }
        sum += term(count[i], want);
        used++;
    }
    // A mean below 1 is too small for the sum; more than 12 of it have a chance below 1e-10.
    if (rare_want < 1 && rare_got > 12) return 0;
    if (rare_want >= 1) {
        sum += term(rare_got, rare_want);
        used++;
    }
    return used > 1 ? gsl_cdf_chisq_Q(sum, used - 1) : 1;
}
