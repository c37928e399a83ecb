#include "simulate/statistics.h"

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
