// Counter-based random numbers (Philox 4x32, ten rounds; Salmon et al., SC11): a number is a pure function
// of (seed, stream, counter), so a run can be replayed from any point and on any device.
//
// Streams are disjoint by construction; RandomStream lists the owner of each.
#pragma once
#include <stdint.h>

typedef enum {
    STREAM_VERIFY = 1,  // acceptance and residual draws of the verifier
    STREAM_DRAFT = 2,   // a draft model's own sampling
    STREAM_METHOD = 3,  // a method's choices: Lookahead's first window, Jacobi's start
    STREAM_WEIGHTS = 4, // synthetic models; the tensor's number is added, shifted by 8
    STREAM_TEST = 5,
    STREAM_BENCH = 6, // a benchmark's tokens
    STREAM_TRAIN = 7, // the order of documents; the epoch's number is added, shifted by 8
    STREAM_ORDER = 8, // the order of a dataset's prompts
} RandomStream;

typedef struct Random {
    uint64_t seed, stream;
    uint64_t counter; // of the next draw
} Random;

// 64 bits for (seed, stream, counter).
uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t counter);

// Each advances the counter by one.
uint64_t random_bits(Random *r);
double random_uniform(Random *r);                 // in [0, 1), 53 bits
uint32_t random_below(Random *r, uint32_t bound); // in [0, bound), bound > 0
float random_normal(Random *r);                   // mean 0, variance 1
