// Time comes in from outside, so that tests can hold it.
#pragma once

typedef struct Clock {
    double (*now)(void *state); // seconds from an arbitrary start, never going back
    void *state;
} Clock;

Clock clock_monotonic(void);

// Processor time of all threads of this process: what others run beside it is not in it.
Clock clock_processor(void);

static inline double clock_now(Clock c) { return c.now(c.state); }

double clock_wall(void); // seconds since 1970: when something happened, not how long it took
