// A window lasts from one judgement to the next, at least SHORTEST: the system counts processor time in
// hundredths of a second. Invariant: `first` never changes after watch_begin; `last` begins the open window.
#include "harness/machine/watch.h"

#include "results/record.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CHAIN = 16384, TRIES = 5 };
static const double SHORTEST = 0.1;    // seconds that a window lasts at least
static const double MOST_LOAD = 0.25;  // cores of others
static const double MOST_DRIFT = 0.05; // of the clock

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

static double own_seconds(void) {
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u)) return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int64_t taken_away(void *state) {
    struct rusage u;
    (void)state;
    return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_nivcsw; // of all threads
}

// User, nice and system time of all processors, from the first line of /proc/stat; 0 if it cannot be read.
static double busy_seconds(void) {
    unsigned long long user, nice, system;
    FILE *f = fopen("/proc/stat", "re");
    bool ok = f && fscanf(f, "cpu %llu %llu %llu", &user, &nice, &system) == 3;
    if (f) fclose(f);
    return ok ? (double)(user + nice + system) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static void look(void *state, WatchLook *out) {
    const Watch *w = state;
    out->busy = busy_seconds();
    out->own = own_seconds();
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
    double others = (seen.busy - w->last.busy) - (seen.own - w->last.own);
    int flags = 0;
    if (others > MOST_LOAD * (seen.at - w->last.at)) flags |= FLAG_LOAD;
    if (w->first.cycles > 0 && fabs(seen.cycles / w->first.cycles - 1) > MOST_DRIFT) flags |= FLAG_CLOCK;
    w->last = seen;
    w->windows++;
    return w->flags = flags;
}
