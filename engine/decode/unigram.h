// Which tokens are said most, whatever stands before? (N-Grammys, section 4.1.) Read off the embeddings
// alone: V of the input (rows v), U of the output (rows u, mean m).
//
//      UNIGRAM_DISTANCE   |u_x - m| under the inner product u'V'Vu, smallest first (the text)
//      UNIGRAM_INNER      m'V'V u_x, smallest first (the appendix's code, which calls it a distance)
//
// The first costs vocab * width^2 multiplications, done once: minutes for a 7B model on one core.
#pragma once
#include "engine/decode/method.h"

typedef enum { UNIGRAM_DISTANCE, UNIGRAM_INNER } UnigramOrder;

// Writes the first `count` tokens of [0, vocab) to out; the lower of equals first.
bool unigram_order(const TargetFacts *facts, int vocab, int width, UnigramOrder order, int count,
                   Progress progress, int *out, Error *e);
