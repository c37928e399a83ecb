// The system's clocks as a Clock. Their readings are in seconds and never go back (except for clock_wall's).
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

// Under a limit on processor time (ulimit -t, as clusters set it), Linux updates the process's clock only
// every few milliseconds, and whenever a thread's clock is read.
static double processor(void *state) {
    (void)state;
    seconds(CLOCK_THREAD_CPUTIME_ID);
    return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

Clock clock_monotonic(void) { return (Clock){monotonic, NULL}; }
Clock clock_processor(void) { return (Clock){processor, NULL}; }

double clock_wall(void) { return seconds(CLOCK_REALTIME); }
