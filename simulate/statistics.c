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
