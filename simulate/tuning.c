// See tuning.h.
#include "simulate/tuning.h"

#include <assert.h>
#include <math.h>

// Pool adjacent violators: neighbours in the wrong order become one pool with their mean, which may put that
// in the wrong order with the pool before it.
void tuning_curve_rise(TuningCurve *c) {
    double mean[TUNING_MOST_CURVE];
    int size[TUNING_MOST_CURVE], pools = 0;
    assert(c->count <= TUNING_MOST_CURVE);
    for (int i = 0; i < c->count; i++) {
        mean[pools] = log(c->seconds[i]), size[pools++] = 1;
        for (; pools > 1 && mean[pools - 2] > mean[pools - 1]; pools--) {
            int both = size[pools - 2] + size[pools - 1];
            mean[pools - 2] = (mean[pools - 2] * size[pools - 2] + mean[pools - 1] * size[pools - 1]) / both;
            size[pools - 2] = both;
        }
    }
    for (int pool = 0, i = 0; pool < pools; pool++)
        for (int k = 0; k < size[pool]; k++) c->seconds[i++] = exp(mean[pool]);
}

double tuning_curve_at(const TuningCurve *c, double rows) {
    int last = c->count - 1, i = 0;
    if (rows <= c->rows[0]) return c->seconds[0];
    if (rows >= c->rows[last]) return c->seconds[last] * rows / c->rows[last];
    while (c->rows[i + 1] < rows) i++;
    double share = (rows - c->rows[i]) / (c->rows[i + 1] - c->rows[i]);
    return c->seconds[i] + share * (c->seconds[i + 1] - c->seconds[i]);
}
