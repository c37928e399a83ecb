#include "harness/config/repeat.h"

#include "engine/base/memory.h"
#include "simulate/statistics.h"

#include <math.h>

// Five standard deviations of a normal distribution, as its median deviation tells them; but two hundredths
// at least, for a few repeats may agree by chance.
static const double FAR = 5 * 1.4826, LEAST = 0.02;

// Adds the mean of a prompt's times and their variance to the sums.
static void add_prompt(const double *seconds, int passes, int prompts, double *mean_sum,
                       double *variance_sum) {
    double mean = 0, squares = 0;
    for (int i = 0; i < passes; i++) mean += seconds[i * prompts] / passes;
    for (int i = 0; i < passes; i++) squares += pow(seconds[i * prompts] - mean, 2);
    *mean_sum += mean;
    *variance_sum += squares / (passes - 1);
}

double repeat_error(const double *seconds, int passes, int prompts) {
    double mean = 0, variance = 0;
    if (passes < 2) return INFINITY;
    for (int i = 0; i < prompts; i++) add_prompt(seconds + i, passes, prompts, &mean, &variance);
    return mean > 0 ? sqrt(variance / passes) / mean : 0;
}

bool repeat_is_done(const Measurement *m, int passes, double error, double spent) {
    if (passes < m->passes) return false;
    if (m->stop == STOP_PASSES || passes >= m->most_passes) return true;
    return error <= m->timing_error || (m->time_limit > 0 && spent >= m->time_limit);
}

void repeat_outliers(const double *seconds, int passes, int stride, bool *out) {
    double *sorted = mem_new((size_t)passes, sizeof *sorted);
    for (int i = 0; i < passes; i++) out[i] = false;
    if (!sorted || passes < 3) {
        mem_free(sorted);
        return;
    }
    for (int i = 0; i < passes; i++) sorted[i] = seconds[i * stride];
    double middle = median(sorted, (size_t)passes), deviation = median_deviation(sorted, (size_t)passes);
    for (int i = 0; i < passes; i++)
        out[i] = fabs(seconds[i * stride] - middle) > fmax(FAR * deviation, LEAST * middle);
    mem_free(sorted);
}
