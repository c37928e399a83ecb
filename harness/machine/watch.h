// Watches the machine during a measurement: whether others used the processors, whether the clock was steady,
// whether the process was stopped, and whether memory sufficed. Findings become flags of the sample; no
// sample is dropped.
#pragma once
#include "engine/base/clock.h"

#include <stdint.h>

typedef struct WatchLook {
    double at;      // seconds
    double busy;    // of all processors, all processes
    double stolen;  // of all processors, by other virtual machines
    double own;     // of this process, all threads
    double away;    // in which this thread neither ran nor waited for a processor
    double cycles;  // time of a fixed chain of operations
    int64_t faults; // pages that this process had to wait for, since they were on a disk
    int64_t slowed; // how often the processor slowed itself down, too hot or short of power
} WatchLook;

typedef struct Watch {
    Clock clock;
    // Fills all but `at`; a test has its own.
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
// counts in hundredths of a second:
//   FLAG_LOAD       other processes used more than a quarter of a core, or other virtual machines a twentieth
//   FLAG_CLOCK      the core runs more than a twentieth slower or faster than when the watch began
//   FLAG_THROTTLED  the processor slowed itself down; only Intel's count that
//   FLAG_PAUSED     the thread was away for more than a quarter of the time, and no load explains it
//   FLAG_PAGED      there were more than ten faults a second
int watch_judge(Watch *w);

// Reads the first lines of /proc/stat. A missing number counts as 0.
void watch_parse_stat(const char *text, WatchLook *out);
