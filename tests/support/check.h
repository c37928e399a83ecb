// What every test program uses: cmocka with the headers that it wants first, and a seeded source of random
// shapes and numbers. tests/run prints how to repeat a failure.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/random.h"

// The seed of this run: OUTPACE_SEED, or fixed, so that a failure is found again.
static inline uint64_t test_seed(void) {
    const char *s = getenv("OUTPACE_SEED");
    return s ? strtoull(s, NULL, 0) : 20261120;
}

static inline Random test_random(uint64_t which) {
    return (Random){.seed = test_seed(), .stream = STREAM_TEST + (which << 8)};
}

// In [low, high].
static inline int test_between(Random *r, int low, int high) {
    return low + (int)random_below(r, (uint32_t)(high - low + 1));
}

// The worse of two errors; one that is no number is the worst of all, whatever comes after it.
static inline double test_worse(double worst, double error) {
    return error <= worst ? worst : isnan(error) ? (double)INFINITY : error;
}
