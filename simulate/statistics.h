// Numbers about numbers: what a set of measurements says, robustly.
#pragma once
#include <stddef.h>

// The middle value; the mean of the two middle ones where the count is even. Sorts `values`. count >= 1.
double median(double *values, size_t count);

// Median absolute deviation from the median, unscaled. Sorts and overwrites `values`.
double median_deviation(double *values, size_t count);

// The median of the values' law lies between *low and *high with 95% confidence at least, whatever the law:
// two of the values, by their order. Fewer than six values: their range, which holds it with 94% (five), 75%
// (three); one: NAN. Sorts `values`.
void median_interval(double *values, size_t count, double *low, double *high);

typedef struct Reach {
    double value, low, high; // NAN: unknown
} Reach;

// a / b of independent a and b above 0: relative errors add as their squares.
Reach ratio_reach(Reach a, Reach b);

// The value below which the share p in [0, 1] lies, between two values by proportion. Sorts `values`.
// count >= 1.
double quantile(double *values, size_t count, double p);

// The mean of independent values lies between *low and *high with this confidence (Student's t). count >= 2.
void mean_interval(const double *values, size_t count, double level, double *low, double *high);
// The same of values of which only mean, standard deviation and number are known.
void mean_reach(double mean, double deviation, size_t count, double level, double *low, double *high);

// By how much a 95% interval of resamples of `units` has to be widened for `count` such intervals to hold
// together in 95 cases of 100 (Bonferroni), few units allowed for (Student's t). units >= 2, count >= 1.
double joint_widening(size_t units, int count);
