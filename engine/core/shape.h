// What a decoder-only model looks like, in numbers: enough to drive one forward pass for every family.
//
// A transformer layer is: norm, attention (grouped heads, RoPE, optional window), residual, norm, gated MLP,
// residual. An adapter is the same thing with parts missing (mlp_width 0) and hidden states as its input.
#pragma once
#include "engine/base/error.h"
#include "engine/base/numbers.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    INPUT_TOKENS, // rows of the embedding
    INPUT_HIDDEN, // rows of `width` floats that the caller sets (adapters, heads)
} InputKind;

typedef enum { ACTIVATION_SILU, ACTIVATION_GELU_TANH } Activation;

// How rotary frequencies are stretched beyond the trained context.
typedef enum { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_LONGROPE } RopeKind;

enum { ROPE_MAX_PAIRS = 256 };

typedef struct Rope {
    RopeKind kind;
    double theta;
    double factor;                                      // linear, llama3: positions are divided by it
    double low_frequency_factor, high_frequency_factor; // llama3
    int original_context;                               // llama3, longrope
    int pairs;                                          // rotated pairs a head: head_dim / 2, or less
    double attention_factor;                            // longrope: cos and sin are multiplied by it; else 1
    // longrope: divisors of the frequencies, in the original context and beyond; and which of them count
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
    int real_vocab; // ids from here on are masked: they win no argmax and have no probability
    int context;    // positions 0 .. context-1
    int window;     // key j is visible to query q iff 0 <= q - j < window; 0: no window
    bool qkv_bias;
    bool qk_norm;   // RMSNorm of each head's q and k, before rotation
    bool tied_head; // the LM head is the embedding
    Activation activation;
    float norm_epsilon;
    Rope rope;
} Shape;

static inline int shape_q_width(const Shape *s) { return s->heads * s->head_dim; }
static inline int shape_kv_width(const Shape *s) { return s->kv_heads * s->head_dim; }

// Of plain attention (backend.h): a score in f32 is written and read, and its weight is, in its place.
enum { SCORE_BYTES = 16 };
static inline size_t shape_score_bytes(const Shape *s) {
    return (size_t)SCORE_BYTES * (size_t)s->layers * (size_t)s->heads;
}

// What must hold before anything is allocated by these numbers; `place` names the file in the message.
bool shape_check(const Shape *s, const char *place, Error *e);

// Parameters of one layer, and of the whole model with embedding and head (a tied one counts once).
size_t shape_layer_parameters(const Shape *s);
size_t shape_parameters(const Shape *s);

// For a session of so many positions. longrope has one list of divisors for all that fits the original
// context, another for longer ones: it is chosen here, once, so that logits do not jump while a text grows.
void rope_fit(Rope *r, int context);

// out[i] is the angle by which one position turns pair i, (pairs) values.
void rope_frequencies(const Rope *r, double *out);
