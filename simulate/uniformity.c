#include "simulate/uniformity.h"

#include <gsl/gsl_cdf.h>

enum { BINS_MOST = 50, IN_A_BIN = 10 };

Uniformity uniformity(const double *u, size_t count) {
    size_t bins = count / IN_A_BIN < BINS_MOST ? count / IN_A_BIN : BINS_MOST, seen[BINS_MOST] = {0};
    Uniformity out = {.p = 1};
    if (bins < 2) return out;
    for (size_t i = 0; i < count; i++) {
        double at = u[i] * (double)bins;
        seen[at < 0 ? 0 : at < (double)bins ? (size_t)at : bins - 1]++;
    }
    double expected = (double)count / (double)bins;
    for (size_t i = 0; i < bins; i++) {
        double off = (double)seen[i] - expected;
        out.chi_square += off * off / expected;
    }
    out.degrees = (int)bins - 1;
    out.p = gsl_cdf_chisq_Q(out.chi_square, out.degrees);
    return out;
}
