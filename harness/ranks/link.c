// A gather is timed on every rank. The last one to arrive waits least, so a gather's cost is the least of the
// ranks' times; its median over the repetitions counts.
#include "harness/ranks/ranks.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { SMALL = 8, LARGE = 1 << 20, SMALL_TIMES = 4000, LARGE_TIMES = 100 };

static int compare(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool time_gathers(const Team *team, size_t bytes, int times, double *median, Error *e) {
    Clock clock = clock_monotonic();
    size_t ranks = (size_t)team->count, n = (size_t)times;
    char *mine = mem_new(bytes, 1), *all = mem_new(bytes, ranks);
    double *took = mem_new(n, sizeof *took), *of_all = mem_new(n * ranks, sizeof *of_all);
    bool ok = true;
    for (int i = 0; ok && i < times; i++) {
        double start = clock_now(clock);
        ok = team->gather(team->self, mine, all, bytes, e);
        took[i] = clock_now(clock) - start;
    }
    ok = ok && team->gather(team->self, took, of_all, n * sizeof *took, e);
    for (size_t i = 0; i < n; i++)
        for (size_t rank = 0; rank < ranks; rank++) took[i] = fmin(took[i], of_all[rank * n + i]);
    qsort(took, n, sizeof *took, compare);
    *median = took[n / 2];
    mem_free(mine);
    mem_free(all);
    mem_free(took);
    mem_free(of_all);
    return ok;
}

bool link_measure(const Team *team, LinkSpeed *out, Error *e) {
    double large;
    if (!time_gathers(team, SMALL, SMALL_TIMES, &out->gather_s, e) ||
        !time_gathers(team, LARGE, LARGE_TIMES, &large, e))
        return false;
    double hops = ceil(log2(team->count)), more = fmax(large - out->gather_s, 1e-9);
    out->latency_s = out->gather_s / fmax(hops, 1);
    out->bytes_per_s = (double)team->count * LARGE / more;
    return true;
}
