#include "engine/base/clock.h"

#include <stddef.h>
#include <time.h>

static double seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double monotonic(void *state) {
    (void)state;
    return seconds(CLOCK_MONOTONIC);
}

static double processor(void *state) {
    (void)state;
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

Clock clock_monotonic(void) { return (Clock){monotonic, NULL}; }
Clock clock_processor(void) { return (Clock){processor, NULL}; }

double clock_wall(void) { return seconds(CLOCK_REALTIME); }
