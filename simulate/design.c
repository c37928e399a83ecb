// Farthest-point sampling: `score` is each point's squared distance from all chosen ones, -1 once it is
// chosen.
#include "simulate/design.h"

#include "engine/base/memory.h"

#include <math.h>

static double squared_distance(const double *a, const double *b, int axes) {
    double sum = 0;
    for (int i = 0; i < axes; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

// The allowed point with the largest score; -1: there is none above -1.
static int largest(const double *score, const bool *allowed, int count) {
    int best = -1;
    for (int i = 0; i < count; i++)
        if ((!allowed || allowed[i]) && score[i] >= 0 && (best < 0 || score[i] > score[best])) best = i;
    return best;
}

// The middle of what is allowed, which need not be that of the space.
static void set_middle(const double *places, const bool *allowed, int count, int axes, double *middle) {
    for (int a = 0; a < axes; a++) {
        double low = HUGE_VAL, high = -HUGE_VAL;
        for (int i = 0; i < count; i++) {
            if (allowed && !allowed[i]) continue;
            low = fmin(low, places[i * axes + a]), high = fmax(high, places[i * axes + a]);
        }
        middle[a] = (low + high) / 2;
    }
}

int design_points(const double *places, const bool *allowed, int count, int axes, int most, int *chosen) {
    double *score = mem_new((size_t)count + (size_t)axes + 1, sizeof *score), *middle;
    int n = 0;
    middle = score + count;
    set_middle(places, allowed, count, axes, middle);
    for (int i = 0; i < count; i++) score[i] = 1 / (1 + squared_distance(places + i * axes, middle, axes));
    while (n < most) {
        int next = largest(score, allowed, count);
        if (next < 0) break;
        for (int i = 0; i < count; i++) {
            double d = squared_distance(places + i * axes, places + next * axes, axes);
            score[i] = n == 0 && score[i] >= 0 ? d : fmin(score[i], d);
        }
        score[next] = -1; // taken
        chosen[n++] = next;
    }
    mem_free(score);
    return n;
}
