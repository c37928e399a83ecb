// Methods for the tests of the loop: one that knows the truth, and one that proposes everything.
#pragma once
#include "engine/base/random.h"
#include "engine/decode/method.h"

// Proposes the next m tokens of what the model will say, as one chain.
typedef struct Oracle {
    const int *truth; // what follows the prompt
    int count, m;
    int at; // tokens emitted so far
} Oracle;

Method oracle_method(Oracle *o);

// Each step proposes random chains and trees, with many equal prefixes, probes and draws from a skewed q
// among them. Where it knows the truth, most tokens are true ones. What it proposes does not depend on
// merging or layout. It checks each Observation that it is shown.
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
