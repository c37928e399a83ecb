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
    STREAM_MASKS = 9, // where a parallel draft's masks are in a pass; its place in the text is added
} RandomStream;

typedef struct Random {
    uint64_t seed, stream;
    uint64_t counter; // of the next draw
} Random;

// 64 bits for (seed, stream, counter), on the host and on a device.
#ifdef __CUDACC__
#define RANDOM __host__ __device__ static inline
#else
#define RANDOM static inline
#endif

RANDOM uint64_t random_at(uint64_t seed, uint64_t stream, uint64_t counter) {
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = (uint32_t)stream,
             c3 = (uint32_t)(stream >> 32), k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int i = 0; i < 10; i++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c0 | (uint64_t)c1 << 32;
}
#undef RANDOM

// Each advances the counter by one.
uint64_t random_bits(Random *r);
double random_uniform(Random *r);                 // in [0, 1), 53 bits
uint32_t random_below(Random *r, uint32_t bound); // in [0, bound), bound > 0
float random_normal(Random *r);                   // mean 0, variance 1
