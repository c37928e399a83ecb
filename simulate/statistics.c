#include "simulate/statistics.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t count) {
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double median_deviation(double *values, size_t count) {
    double middle = median(values, count);
    for (size_t i = 0; i < count; i++) values[i] = fabs(values[i] - middle);
    return median(values, count);
}

// The k-th value from either end leaves the median out with the chance of fewer than k heads in `count`
// throws, each.
void median_interval(double *values, size_t count, double *low, double *high) {
    size_t k = 0;
    qsort(values, count, sizeof *values, by_value);
    while (gsl_cdf_binomial_P((unsigned)k, 0.5, (unsigned)count) <= 0.025) k++;
    if (k) k--;
    *low = count > 1 ? values[k] : NAN;
    *high = count > 1 ? values[count - 1 - k] : NAN;
}

Reach ratio_reach(Reach a, Reach b) {
    Reach out = {.value = a.value / b.value};
    out.low = out.value * exp(-hypot(log(a.value / a.low), log(b.high / b.value)));
    out.high = out.value * exp(hypot(log(a.high / a.value), log(b.value / b.low)));
    return out;
}

double quantile(double *values, size_t count, double p) {
    qsort(values, count, sizeof *values, by_value);
    return gsl_stats_quantile_from_sorted_data(values, 1, count, p);
}

void mean_reach(double mean, double deviation, size_t count, double level, double *low, double *high) {
    double n = (double)count, reach = gsl_cdf_tdist_Pinv((1 + level) / 2, n - 1) * deviation / sqrt(n);
    *low = mean - reach;
    *high = mean + reach;
}

void mean_interval(const double *values, size_t count, double level, double *low, double *high) {
    double mean = gsl_stats_mean(values, 1, count);
    mean_reach(mean, gsl_stats_sd_m(values, 1, count, mean), count, level, low, high);
}

double joint_widening(size_t units, int count) {
    return gsl_cdf_tdist_Qinv(0.025 / count, (double)units - 1) / gsl_cdf_ugaussian_Qinv(0.025);
}
