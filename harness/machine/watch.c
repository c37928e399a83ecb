// A window lasts from one judgement to the next, at least SHORTEST: the system counts processor time in
// hundredths of a second. Invariant: `first` never changes after watch_begin; `last` begins the open window.
#include "harness/machine/watch.h"

#include "engine/base/system.h"
#include "results/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHAIN = 16384, TRIES = 5 };
static const double SHORTEST = 0.1;    // seconds that a window lasts at least
static const double MOST_LOAD = 0.25;  // cores of others
static const double MOST_DRIFT = 0.05; // of the clock
static const double MOST_STOLEN = 0.05;
static const double MOST_FAULTS = 10;    // a second: a hundredth of the time or more
static const double MOST_AWAY = 0.25;    // of the window
static const double SHORTEST_AWAY = 0.2; // seconds: a store may wait that long for a disk

// Each product waits for the last one, so that the time is the core's cycles and nothing else.
static double time_chain(Clock clock) {
    double best = INFINITY;
    for (int try = 0; try < TRIES; try++) {
        uint64_t x = 3;
        double start = clock_now(clock);
        for (int i = 0; i < CHAIN; i++) {
            x *= 0x9E3779B97F4A7C15u;
            __asm__ volatile("" : "+r"(x));
        }
        best = fmin(best, clock_now(clock) - start);
    }
    return best;
}

static int64_t taken_away(void *state) {
    struct rusage u;
    (void)state;
    return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_nivcsw; // of all threads
}

// The first line: "cpu" and ticks of user, nice, system, idle, waiting, two kinds of interrupts, stolen.
void watch_parse_stat(const char *text, WatchLook *out) {
    unsigned long long user = 0, nice = 0, system = 0, stolen = 0;
    double tick = 1 / (double)sysconf(_SC_CLK_TCK);
    sscanf(text, "cpu %llu %llu %llu %*u %*u %*u %*u %llu", &user, &nice, &system, &stolen);
    out->busy = tick * (double)(user + nice + system);
    out->stolen = tick * (double)stolen;
}

static void look(void *state, WatchLook *out) {
    const Watch *w = state;
    char text[256];
    struct rusage own;
    unsigned long long ran, waited;
    system_text("/proc/stat", text, sizeof text);
    watch_parse_stat(text, out);
    if (getrusage(RUSAGE_SELF, &own) == 0) {
        out->own = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
                   1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
        out->faults = own.ru_majflt;
    }
    // Some kernels don't count how long a thread waits for a processor.
    system_text("/proc/thread-self/schedstat", text, sizeof text);
    if (sscanf(text, "%llu %llu", &ran, &waited) == 2)
        out->away = clock_now(clock_monotonic()) - 1e-9 * (double)(ran + waited);
    system_text("/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", text, sizeof text);
    out->slowed = strtoll(text, NULL, 10);
    out->cycles = time_chain(w->clock);
}

static WatchLook look_now(const Watch *w) {
    WatchLook seen = {0};
    w->look(w->state, &seen);
    seen.at = clock_now(w->clock);
    return seen;
}

void watch_begin(Watch *w, Clock clock) {
    if (!w->look) *w = (Watch){.look = look, .switches = taken_away, .state = w};
    w->clock = clock;
    w->first = w->last = look_now(w);
}

int64_t watch_switches(const Watch *w) { return w->switches ? w->switches(w->state) : 0; }

int watch_judge(Watch *w) {
    if (clock_now(w->clock) - w->last.at < SHORTEST) return 0;
    WatchLook seen = look_now(w);
    double window = seen.at - w->last.at, away = seen.away - w->last.away;
    double others = (seen.busy - w->last.busy) - (seen.own - w->last.own);
    int flags = 0;
    if (others > MOST_LOAD * window || seen.stolen - w->last.stolen > MOST_STOLEN * window) flags = FLAG_LOAD;
    else if (away > MOST_AWAY * window && away > SHORTEST_AWAY) flags = FLAG_PAUSED;
    if ((double)(seen.faults - w->last.faults) > MOST_FAULTS * window) flags |= FLAG_PAGED;
    if (seen.slowed > w->last.slowed) flags |= FLAG_THROTTLED;
    if (w->first.cycles > 0 && fabs(seen.cycles / w->first.cycles - 1) > MOST_DRIFT) flags |= FLAG_CLOCK;
    w->last = seen;
    w->windows++;
    return w->flags = flags;
}
