// A Hugging Face config.json as a Shape. Unknown keys are ignored; a key that would change the arithmetic in
// a way that is not supported is refused by name.
#pragma once
#include "engine/model/model.h"

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
