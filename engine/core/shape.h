// The dimensions of a decoder-only model: enough to drive one forward pass for every family.
//
// A transformer layer is: norm, attention (grouped heads, RoPE, optional window), residual, norm, gated MLP,
// residual. An adapter is the same with some of it missing (mlp_width 0) and hidden states as its input.
#pragma once
#include "engine/base/error.h"
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    INPUT_TOKENS, // rows of the embedding
    INPUT_HIDDEN, // rows of `width` floats from the caller (adapters, heads)
    // A token and a hidden state h, from the caller or from the parent's output (EAGLE's drafts); e is the
    // token's row of the embedding.
    INPUT_FUSED,  // EAGLE-1 and 2: the residual stream starts as fc [e; h]
    INPUT_PAIRED, // EAGLE-3: it starts as h, and attention reads [norm e; norm h]; fc makes h of `states`
                  // rows
} InputKind;

typedef enum { ACTIVATION_SILU, ACTIVATION_GELU_TANH } Activation;

// How rotary frequencies are stretched beyond the trained context.
typedef enum { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_LONGROPE } RopeKind;

enum { ROPE_MAX_PAIRS = 256, SHAPE_MAX_STATES = 8 };

typedef struct Rope {
    RopeKind kind;
    double theta;
    double factor;                                      // linear, llama3: positions are divided by it
    double low_frequency_factor, high_frequency_factor; // llama3
    int original_context;                               // llama3, longrope
    int pairs;                                          // rotated pairs per head: at most head_dim / 2
    double attention_factor;                            // longrope: cos and sin are multiplied by it; else 1
    // longrope: divisors of the frequencies, within the original context and beyond it; and which to use
    float stretch[2][ROPE_MAX_PAIRS];
    bool beyond;
} Rope;

typedef struct Shape {
    InputKind input;
    int layers;
    int width;      // of the residual stream
    int heads;      // query heads
    int kv_heads;   // key and value heads; divides heads
    int head_dim;   // even
    int mlp_width;  // 0: a layer has no MLP
    int vocab;      // rows of the LM head
    int real_vocab; // ids from here on are masked: never the argmax, probability 0
    int context;    // positions 0 .. context-1
    int window;     // key j is visible to query q iff 0 <= q - j < window; 0: no window
    bool qkv_bias;
    bool qk_norm;   // RMSNorm of each head's q and k, before rotation
    bool tied_head; // the LM head is the embedding
    Activation activation;
    float norm_epsilon;
    Rope rope;
    // of drafts that read tokens and hidden states
    int tokens;   // ids of their input, rows of the embedding; 0: `vocab`
    int states;   // INPUT_PAIRED: hidden states of a row that the caller gives
    bool fc_bias; // INPUT_FUSED
    // of INPUT_PAIRED
    bool normed_fc;       // fc reads the norm of the given states, all of a row together
    bool normed_residual; // the residual stream starts as norm h
    bool normed_output;   // the final norm's output is the model's: the next rows start from it
} Shape;

// Layers after which a model's residual stream is kept at every node, in the order in which its rows are
// handed out.
typedef struct Captures {
    int count;                    // 0: none
    int layers[SHAPE_MAX_STATES]; // each from 1 to all but one
} Captures;

static inline bool shape_reads_both(const Shape *s) {
    return s->input == INPUT_FUSED || s->input == INPUT_PAIRED;
}
static inline int shape_tokens(const Shape *s) { return s->tokens ? s->tokens : s->vocab; }

// Widths of the hidden row that the caller gives, and of attention's input.
static inline int shape_given_width(const Shape *s) {
    return s->input == INPUT_PAIRED ? s->states * s->width : s->width;
}
static inline int shape_attention_width(const Shape *s) {
    return s->input == INPUT_PAIRED ? 2 * s->width : s->width;
}
// The width of fc's input; 0 if the model has no fc.
static inline int shape_fc_width(const Shape *s) {
    return s->input == INPUT_PAIRED ? s->states * s->width : s->input == INPUT_FUSED ? 2 * s->width : 0;
}

static inline int shape_q_width(const Shape *s) { return s->heads * s->head_dim; }
static inline int shape_kv_width(const Shape *s) { return s->kv_heads * s->head_dim; }

// Plain attention (backend.h) writes and reads a score in f32, then its weight in the same place.
enum { SCORE_BYTES = 16 };
static inline size_t shape_score_bytes(const Shape *s) {
    return (size_t)SCORE_BYTES * (size_t)s->layers * (size_t)s->heads;
}

// Checks the bounds that every allocation relies on; `place` names the file in the error.
bool shape_check(const Shape *s, const char *place, Error *e);

// Prepares for a session of `context` positions. longrope has one list of divisors for contexts up to the
// original one and another for longer ones. It's chosen here, once, so that logits don't jump as a text
// grows.
void rope_fit(Rope *r, int context);

// Fills out (pairs): one position turns pair i by the angle out[i].
void rope_frequencies(const Rope *r, double *out);
