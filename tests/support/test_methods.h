// Methods for the tests of the loop: one that knows the truth, and one that proposes everything.
#pragma once
#include "engine/base/random.h"
#include "engine/decode/method.h"

// Proposes the model's next m tokens, as one chain.
typedef struct Oracle {
    const int *truth; // the tokens after the prompt
    int count, m;
    int at; // tokens emitted so far
} Oracle;

Method oracle_method(Oracle *o);

// Each step proposes random chains and trees, with many equal prefixes, probes and draws from a skewed q
// among them. If it knows the truth, most tokens are true ones. Its proposals don't depend on merging
// or layout. It checks each Observation that it gets.
typedef struct Scatter {
    const int *truth; // or NULL
    int truth_count, at;
    uint64_t seed;
    int vocab;
    bool deep;        // long chains, besides the bush
    bool drops_bonus; // after an odd number of accepted tokens
    Random random;
    int length;  // of the sequence, as last seen
    int dropped; // bonuses
} Scatter;

Method scatter_method(Scatter *s);
