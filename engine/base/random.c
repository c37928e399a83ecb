// Philox and the draws made of it. Invariant: a draw advances the counter by exactly one, whatever it
// returns.
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>

uint64_t random_bits(Random *r) { return random_at(r->seed, r->stream, r->counter++); }

double random_uniform(Random *r) { return (double)(random_bits(r) >> 11) * 0x1p-53; }

// The high half of bits * bound: off from uniform by less than bound / 2^32, which is far too little for any
// test to notice.
uint32_t random_below(Random *r, uint32_t bound) {
    assert(bound > 0);
    return (uint32_t)(((random_bits(r) >> 32) * (uint64_t)bound) >> 32);
}

// Box-Muller from the two halves of one draw; u is in (0, 1], so the logarithm is finite.
float random_normal(Random *r) {
    uint64_t bits = random_bits(r);
    double u = ((double)(uint32_t)bits + 1) * 0x1p-32, v = (double)(bits >> 32) * 0x1p-32;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}
