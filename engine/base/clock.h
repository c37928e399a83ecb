// Time is passed in by the caller, so that tests can control it.
#pragma once

typedef struct Clock {
    double (*now)(void *state); // seconds from an arbitrary start, never going back
    void *state;
} Clock;

Clock clock_monotonic(void);

// Processor time of all threads of this process; other processes don't count.
Clock clock_processor(void);

static inline double clock_now(Clock c) { return c.now(c.state); }

double clock_wall(void); // seconds since 1970: when something happened, not how long it took
