// A Hugging Face config.json as a Shape. Unknown keys are ignored; a key that would change the arithmetic in
// an unsupported way is refused by name.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/core/shape.h"
#include "engine/model/model.h"

#include <jansson.h>

// Fills shape, architecture and ids of m from n bytes; `place` names the file in messages.
bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// Adds the EOS ids of a generation_config.json. Nothing else in it matters: sampling defaults must not change
// a greedy run.
bool config_parse_generation(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// One row of a table: how an architecture packs its tensors, and its shape where config.json doesn't give a
// number, as in transformers. Switches of the shape that config.json has no key for are always the row's.
typedef struct Architecture {
    const char *model_type;
    unsigned fused;      // 1 << group for each WeightGroup that is stored as one tensor
    bool partly_rotated; // `partial_rotary_factor` may be below 1
    bool windowed;       // `sliding_window` counts without `use_sliding_window`
    int full_layers;     // `max_window_layers`
    Shape shape;         // head_dim 0: hidden_size / num_attention_heads; rope.original_context 0: context
} Architecture;

// NULL if the type is not supported.
const Architecture *architecture_find(const char *model_type);

// --- rotary embeddings

// Fills s->rope; s already has head_dim and context. Unsupported ropes are refused by name.
bool config_rope(const json_t *root, const Architecture *a, Shape *s, const char *place, Error *e);

// --- named shapes

// The path of a shape's file, for mem_free: `name` itself if it is a path to a file, else NAME.json in the
// folder of shapes (engine/base/shipped.h). NULL with e filled, which lists the known names.
char *shape_file(const char *name, Error *e);

// Appends the known names, one per line, in order.
bool shape_names(Text *out, Error *e);
