// The model's own n-grams (N-Grammys, section 4.1): what it says after a single token with nothing before it,
// or only what stands before every text. Learnt from nobody: a forward pass over each token of the
// vocabulary, as many at a time as a step holds, each the root of a tree of its own over an empty cache.
//
//      root x --- pick 1 --- greedy --- greedy        w = 1: the k best tokens after x
//            \--- pick 2 --- greedy --- greedy        w > 1: each decoded on greedily by the model
#pragma once
#include "engine/decode/method.h"
#include "engine/decode/token_table.h"

typedef struct BigramSetup {
    const int *prefix; // (prefix_count): stands before every x
    int prefix_count;
    int k, w; // see TokenTable
} BigramSetup;

// Fills `out`, for all tokens of the session's vocabulary; k becomes less where fewer tokens can be said, and
// a continuation ends at the context's end. The session's sequence is lost.
bool bigram_make(Session *s, const BigramSetup *setup, Progress progress, TokenTable *out, Error *e);
