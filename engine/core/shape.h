// The dimensions of a decoder-only model: enough to drive one forward pass for every family.
//
// A layer is attention (grouped heads, RoPE, optional window) and an MLP, each between norms and added to the
// residual stream. Shape describes it as data: every backend, the names and sizes of weights and the checks
// of training follow from it. All zeros is a layer of Llama. An adapter is the same with some of it missing
// (mlp_width 0) and hidden states as its input.
#pragma once
#include "engine/base/error.h"
#include "engine/base/numbers.h"
#include "engine/core/block.h"
#include "engine/core/experts.h"
#include "engine/core/rope.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    INPUT_TOKENS, // rows of the embedding
    INPUT_HIDDEN, // rows of `width` floats from the caller (adapters, heads)
    // A token and a hidden state h, given or the parent's output (EAGLE's drafts); e: the token's embedding
    INPUT_FUSED,  // EAGLE-1 and 2: the residual stream starts as fc [e; h]
    INPUT_MTP,    // MTP: it starts as fc [norm h; norm e], below a plain layer
    INPUT_PAIRED, // EAGLE-3: it starts as h, attention reads [norm e; norm h]; fc makes h of `states` rows
    INPUT_BLOCK,  // DFlash (block.h): e; for context norm fc h, used for keys and values only
} InputKind;
// EAGLE-3's norms of the given states on their way to fc: none, one of a whole row, or one of each state.
typedef enum { FC_NORM_NONE, FC_NORM_ROW, FC_NORM_EACH } FcNorm;
typedef enum { ACTIVATION_SILU, ACTIVATION_GELU_TANH, ACTIVATION_GELU, ACTIVATION_RELU2 } Activation;
typedef enum { NORM_RMS, NORM_LAYER } NormKind; // NORM_LAYER takes the mean away first
// Norms of attention's and the MLP's inputs, of their outputs before these are added, or of both.
typedef enum { NORMS_BEFORE, NORMS_AFTER, NORMS_AROUND } NormPlace;
// Norm of q and k before rotation: RMSNorm of each head, or of all heads as one row; or LayerNorm of each
// head, with weights of its own.
typedef enum { QK_NORM_NONE, QK_NORM_HEADS, QK_NORM_ROWS, QK_NORM_OWN } QkNorm;
// The MLP's input: the stream with attention's output; or the layer's own input, under a norm of the MLP's
// or under attention's.
typedef enum { MLP_AFTER, MLP_PARALLEL, MLP_SHARES_NORM } MlpInput;

enum { SHAPE_MAX_STATES = 8, SHAPE_MAX_LAYERS = 1000, LAYER_WORDS = 16 };

// A bit for each layer.
typedef struct LayerSet {
    uint64_t word[LAYER_WORDS];
} LayerSet;

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
    bool qkv_bias, o_bias, mlp_bias, norm_bias, head_bias;
    QkNorm qk_norm;
    bool tied_head; // the head is the embedding
    bool positions; // a learned row for each position is added to the embedding's
    bool ungated;   // the MLP has no `up`
    Activation activation;
    NormKind norm_kind; // of all norms but those of q and k
    NormPlace norm_place;
    MlpInput mlp_input;
    float norm_epsilon;
    // factors; 0: none, which is 1 / sqrt(head_dim) for scores
    float embedding_scale, residual_scale, score_scale, logit_scale;
    float score_cap, logit_cap; // x becomes cap * tanh(x / cap); 0: no cap
    Rope rope;
    // layers with a window of their own, while others have none; they may have a plain rope of another theta
    LayerSet local;
    int local_window;
    double local_theta; // 0: the same rope
    LayerSet unrotated; // layers without rope
    Experts experts;
    LayerSet sparse; // layers with experts in place of the MLP; none without experts
    int mask_token;  // of drafts that guess in one forward: their placeholder for a token to come; 0: none
    int tokens;      // ids of the input of drafts that read states, too; 0: `vocab`
    int states;      // INPUT_PAIRED, INPUT_BLOCK: hidden states of a row that the caller gives
    bool fc_bias;    // INPUT_FUSED
    FcNorm fc_norm;  // of INPUT_PAIRED, like the fields below
    bool normed_residual; // the residual stream starts as norm h
    bool normed_output;   // the final norm's output is the model's: the next rows start from it
    BlockDraft block;     // of INPUT_BLOCK
} Shape;

// Layers after which a model's residual stream is kept at every node, in the order in which its rows are
// handed out.
typedef struct Captures {
    int count;                    // 0: none
    int layers[SHAPE_MAX_STATES]; // each from 1 on
} Captures;

static inline bool layer_in(const LayerSet *set, int layer) {
    return set->word[layer / 64] >> layer % 64 & 1;
}
static inline void layer_add(LayerSet *set, int layer) { set->word[layer / 64] |= (uint64_t)1 << layer % 64; }
int layers_in(const LayerSet *set, int layers); // of the first `layers`

// The window of a layer; 0: none.
static inline int shape_window(const Shape *s, int layer) {
    return layer_in(&s->local, layer) ? s->local_window : s->window;
}
static inline float shape_or_one(float scale) { return scale != 0 ? scale : 1; }
float shape_score_scale(const Shape *s); // of q . k

static inline bool shape_reads_both(const Shape *s) { return s->input >= INPUT_FUSED; }
int shape_fc_norms(const Shape *s); // of a row of given states
static inline int shape_tokens(const Shape *s) { return s->tokens ? s->tokens : s->vocab; }

// Widths of the hidden row that the caller gives, and of attention's input.
static inline int shape_given_width(const Shape *s) {
    return s->input >= INPUT_PAIRED ? s->states * s->width : s->width;
}
static inline int shape_attention_width(const Shape *s, int layer) {
    return s->input == INPUT_PAIRED && layer == 0 ? 2 * s->width : s->width;
}
// The width of fc's input; 0: none.
static inline int shape_fc_width(const Shape *s) {
    return s->input >= INPUT_PAIRED ? s->states * s->width : s->input >= INPUT_FUSED ? 2 * s->width : 0;
}

static inline int shape_q_width(const Shape *s) { return s->heads * s->head_dim; }
static inline int shape_kv_width(const Shape *s) { return s->kv_heads * s->head_dim; }

// Plain attention (backend.h) writes and reads a score in f32, then its weight in the same place.
enum { SCORE_BYTES = 16 };
static inline size_t shape_score_bytes(const Shape *s) {
    return (size_t)SCORE_BYTES * (size_t)s->layers * (size_t)s->heads;
}

// Whether a layer computes what a layer of Llama does, apart from biases of q, k, v and norms of heads, the
// activation and a window of all layers: all that is trained or inflated.
bool shape_is_plain(const Shape *s);

// Checks the bounds that every allocation relies on; `place` names the file in the error.
bool shape_check(const Shape *s, const char *place, Error *e);

// The ropes of a model: its own and, if local layers have another, theirs.
enum { ROPES_MAX = 2 };
static inline int shape_ropes(const Shape *s) { return s->local_theta > 0 ? 2 : 1; }
Rope shape_rope(const Shape *s, int which);
// Which of them a layer has; -1: it rotates nothing.
static inline int shape_layer_rope(const Shape *s, int layer) {
    if (layer_in(&s->unrotated, layer)) return -1;
    return s->local_theta > 0 && layer_in(&s->local, layer);
}
