// A Hugging Face config.json as a Shape. Unknown keys are ignored; a key that would change the arithmetic in
// a way that is not supported is refused by name.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/core/shape.h"
#include "engine/model/model.h"

#include <jansson.h>

// Fills shape, architecture and ids of m from n bytes; `place` is the file's name for messages.
bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// EOS ids from generation_config.json, added to those that m has. Nothing else in it matters: sampling
// defaults must not change a greedy run.
bool config_parse_generation(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// How an architecture names and packs its tensors, and what it takes where config.json does not say, as
// transformers does. One row of a table; weights.c reads it too.
typedef struct Architecture {
    const char *model_type;
    bool fused_qkv;                // self_attn.qkv_proj: rows of q, then k, then v
    bool fused_gate_up;            // mlp.gate_up_proj: rows of gate, then up
    bool qkv_bias;                 // always there
    bool qk_norm;                  // self_attn.q_norm and k_norm
    bool partly_rotated;           // `partial_rotary_factor` may be below 1
    bool windowed;                 // `sliding_window` counts without `use_sliding_window`
    int head_dim;                  // 0: hidden_size / num_attention_heads
    int context, original_context; // original_context 0: as context
    int window, full_layers;       // full_layers: `max_window_layers`
    double epsilon;
} Architecture;

// NULL where the type is not supported.
const Architecture *architecture_find(const char *model_type);

// --- rotary embeddings

// Fills s->rope; s has its head_dim and context. What is not supported is refused by name.
bool config_rope(const json_t *root, const Architecture *a, Shape *s, const char *place, Error *e);

// --- named shapes

// The path of a shape's file, for mem_free: `name` itself where it is a path to a file, else NAME.json of the
// folder, wherever that is (engine/base/shipped.h). NULL with e filled; an unknown name is answered with the
// known ones.
char *shape_file(const char *name, Error *e);

// The known names, one a line, in order.
bool shape_names(Text *out, Error *e);
