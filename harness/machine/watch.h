// Watches the machine during a measurement: whether other processes used the processor, and whether its clock
// was steady. Findings become flags of the sample; no sample is dropped.
#pragma once
#include "engine/base/clock.h"

#include <stdint.h>

typedef struct WatchLook {
    double at;     // seconds
    double busy;   // of all processors, all processes
    double own;    // of this process, all threads
    double cycles; // time of a fixed chain of operations
} WatchLook;

typedef struct Watch {
    Clock clock;
    // Fills busy, own and cycles; a test has its own.
    void (*look)(void *state, WatchLook *out);
    // How often the system has taken a processor from one of this process's threads; cheap. NULL: never.
    int64_t (*switches)(void *state);
    void *state;
    WatchLook first, last; // `last` begins the window that is judged next
    int windows, flags;    // judged so far; of the last one
} Watch;

void watch_begin(Watch *w, Clock clock);
int64_t watch_switches(const Watch *w);

// Flags (results/record.h) of what happened since the last call that looked long enough, for the system
// counts in hundredths of a second: FLAG_LOAD, others used more than a quarter of a core; FLAG_CLOCK, the
// core runs more than a twentieth slower or faster than when the watch began.
int watch_judge(Watch *w);
