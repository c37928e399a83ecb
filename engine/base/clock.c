#include "engine/base/clock.h"

#include <stddef.h>
#include <time.h>

static double monotonic(void *state) {
    (void)state;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

Clock clock_monotonic(void) { return (Clock){monotonic, NULL}; }

double clock_wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
