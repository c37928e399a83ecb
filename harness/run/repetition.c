#include "harness/run/repetition.h"

#include "engine/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { GRAM = 4, TIMES = 3, SHORTEST = 12, LONG_GRAM = 8 };

static int by_ids(const void *a, const void *b) {
    const int *p = *(const int *const *)a, *q = *(const int *const *)b;
    for (int i = 0; i < GRAM; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

double repetition_share(const int *ids, int count) {
    int grams = count - GRAM + 1, again = 0;
    if (grams < 1) return -1;
    const int **sorted = mem_alloc((size_t)grams, sizeof *sorted);
    if (!sorted) return -1;
    for (int i = 0; i < grams; i++) sorted[i] = ids + i;
    qsort(sorted, (size_t)grams, sizeof *sorted, by_ids);
    for (int i = 1; i < grams; i++) again += by_ids(&sorted[i - 1], &sorted[i]) == 0;
    mem_free(sorted);
    return (double)again / grams;
}

static bool ends_with(const int *ids, int count, int period) {
    int length = TIMES * period > SHORTEST ? TIMES * period : SHORTEST;
    if (length > count) return false;
    const int *from = ids + count - length;
    return memcmp(from, from + period, (size_t)(length - period) * sizeof *from) == 0;
}

// How often the long gram at `from` stands there and after it, each time beyond the last.
static int times_from(const int *ids, int count, int from) {
    int times = 1;
    for (int i = from + LONG_GRAM; i + LONG_GRAM <= count;) {
        bool same = memcmp(ids + from, ids + i, LONG_GRAM * sizeof *ids) == 0;
        times += same;
        i += same ? LONG_GRAM : 1;
    }
    return times;
}

bool repetition_loops(const int *ids, int count) {
    for (int period = 1; TIMES * period <= count; period++)
        if (ends_with(ids, count, period)) return true;
    for (int i = 0; i + TIMES * LONG_GRAM <= count; i++)
        if (times_from(ids, count, i) >= TIMES) return true;
    return false;
}
