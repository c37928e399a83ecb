// Drafts that guess a block of tokens in one forward from the target's states: DFlash and DSpark.
//
//      context rows    c(i) = norm fc [states of the target at i]     only keys and values, in every layer
//      block's rows    the root's token, then masks, at the next places; they see the context and each other
//
//      place           p     p+1   p+2   p+3
//      row's token     root  mask  mask  mask
//      guess           -     g1    g2    g3         DFlash: of the token in the row's place
//      guess, from_root g1   g2    g3    g4         DeepSpec, DSpark: of the token behind it
//
// DSpark adds to the logits of a row a bias by the token x in front of the guess. E is a matrix of a row for
// each token, e = E x, y the row's final normed state, s a state that is zero for the first guess:
//
//      vanilla   F e          gated   F (sigmoid(G [y; e]) * e)
//      rnn       g, c, o = G [s; e; y];  s becomes sigmoid(g) s + (1 - sigmoid(g)) tanh(c);  F tanh(o)
//
// Its confidence is the chance that the guess is kept if all before it are: sigmoid(W [y; e]), or of y alone.
#pragma once
#include <stdbool.h>

enum { BLOCK_MOST = 64 };

typedef enum { MARKOV_NONE, MARKOV_VANILLA, MARKOV_GATED, MARKOV_RNN } Markov;
typedef enum { CONFIDENCE_NONE, CONFIDENCE_ROW, CONFIDENCE_TOKEN } Confidence; // of y, of y and e

typedef struct BlockDraft {
    int rows; // of a step: 2 to BLOCK_MOST
    bool from_root;
    Markov markov;
    int rank; // length of e
    Confidence confidence;
} BlockDraft;

static inline int block_guesses(const BlockDraft *b) { return b->rows - !b->from_root; }
// G's inputs and outputs (0: there is no G), and W's inputs.
static inline int block_gate_width(const BlockDraft *b, int width) {
    return b->markov < MARKOV_GATED ? 0 : width + (b->markov == MARKOV_RNN ? 2 : 1) * b->rank;
}
static inline int block_gate_outputs(const BlockDraft *b) {
    return b->markov < MARKOV_GATED ? 0 : b->markov == MARKOV_RNN ? 3 * b->rank : b->rank;
}
static inline int block_confidence_width(const BlockDraft *b, int width) {
    return width + (b->confidence == CONFIDENCE_TOKEN ? b->rank : 0);
}
