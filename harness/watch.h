// Watches the machine beside a measurement: who else used the processor, whether its clock held, whether one
// step took out of all proportion. What is seen becomes flags of the sample; nothing is ever dropped.
#pragma once
#include "engine/base/clock.h"
#include "engine/decode/decode.h"

typedef enum {
    FLAG_LOAD = 1,    // others used more than a quarter of a core
    FLAG_CLOCK = 2,   // the core runs more than a twentieth slower or faster than when the watch began
    FLAG_OUTLIER = 4, // a step took more than eight times the median, and more than five milliseconds
} SampleFlag;

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
    void *state;
    WatchLook first, last; // `last` begins the window that is judged next
} Watch;

void watch_begin(Watch *w, Clock clock);

// Flags of what happened since the last call that looked long enough; the system counts in hundredths of a
// second.
unsigned watch_judge(Watch *w);

unsigned watch_steps(const StepReport *steps, int count);
