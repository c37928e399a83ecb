// Used by every test program: cmocka with the headers that it needs first, and a seeded source of random
// shapes and numbers. tests/run prints how to repeat a failure.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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

// Whether all is tried, by `make test-long`; otherwise, where there are many alike, some of them.
static inline bool test_long(void) { return getenv("OUTPACE_LONG") != NULL; }
static inline int test_some(int some, int all) { return test_long() ? all : some; }

static inline Random test_random(uint64_t which) {
    return (Random){.seed = test_seed(), .stream = STREAM_TEST + (which << 8)};
}

// In [low, high].
static inline int test_between(Random *r, int low, int high) {
    return low + (int)random_below(r, (uint32_t)(high - low + 1));
}

// The worse of two errors; NaN is the worst of all, and stays.
static inline double test_worse(double worst, double error) {
    return error <= worst ? worst : isnan(error) ? (double)INFINITY : error;
}

// FNV-1a of some bytes, for numbers that must be the same bits wherever they are made.
static inline uint64_t test_hash(const void *data, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hash;
}

// Of the fixed seed, on the machines that run kernels on the CPU: compiled by the C++ compiler (tests/simt)
// or by nvcc (tests/ptx), they give one another's bits where no function of the card's own enters.
#define TEST_SAME_BITS(data, bytes, wanted)                                                   \
    do {                                                                                      \
        if (simt_emulated && !getenv("OUTPACE_SEED") && test_hash(data, bytes) != (wanted))   \
            fail_msg("bits hash to %#lx, wanted %#lx", (unsigned long)test_hash(data, bytes), \
                     (unsigned long)(wanted));                                                \
    } while (0)
