// A Hugging Face config.json as a Shape. Unknown keys are ignored; a key that would change the arithmetic in
// an unsupported way is refused by name.
#pragma once
#include "engine/base/error.h"
#include "engine/base/gguf.h"
#include "engine/base/text.h"
#include "engine/core/shape.h"
#include "engine/model/model.h"

#include <jansson.h>

// Fills shape, architecture and ids of m from n bytes; `place` names the file in messages.
bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// The same from a parsed file.
bool config_read(Model *m, const json_t *root, const char *place, Error *e);

// The same from the values of a GGUF file, whose bytes are `data`. Its tensors tell the rest (GgufForm).
bool config_read_gguf(Model *m, const Gguf *g, const unsigned char *data, Error *e);

// Adds the EOS ids of a generation_config.json. Nothing else in it matters: sampling defaults must not change
// a greedy run.
bool config_parse_generation(Model *m, const char *bytes, size_t n, const char *place, Error *e);

// The arguments of every reader of a part of config.json.
typedef struct ConfigReader {
    const json_t *root;
    const char *place;
    const struct Architecture *a;
    Error *e;
} ConfigReader;

enum { RENAMED_KEYS = 8 };

// One row of a table (architectures.c): the names of an architecture's tensors and their packing, and its
// shape where config.json doesn't give a number, as in transformers. Switches of the shape that config.json
// has no key for are always the row's.
typedef struct Architecture {
    const char *model_type;
    const char *layers;         // NULL: model.layers
    const char *names[WEIGHTS]; // NULL: the one of WEIGHT_ROWS
    const char *experts;        // in front of an expert's number; NULL: mlp.experts
    unsigned fused;             // 1 << group for each WeightGroup that is stored as one tensor
    bool norms_less_one, transposed, head_by_head; // StoredForm of norms, of matrices, of q, k and v
    bool heads_apart;                              // STORED_EACH_HEAD of q's and k's norms
    bool partly_rotated;                           // `partial_rotary_factor` may be below 1
    bool windowed;                                 // `sliding_window` counts without `use_sliding_window`
    int full_layers;                               // `max_window_layers`
    int pattern;    // `sliding_window_pattern`: each such layer has no window; 0: not read
    int mlp_times;  // intermediate size / hidden size where the file doesn't give one; 0: it must
    double rotated; // `partial_rotary_factor`; 0: all of a head
    // keys of config.json under other names: the usual one, then the architecture's
    const char *keys[RENAMED_KEYS][2];
    // Reads the architecture's own keys, after all others; NULL: it has none.
    bool (*read)(const ConfigReader *r, Shape *s);
    Shape shape; // head_dim 0: hidden_size / num_attention_heads; rope.original_context 0: context
} Architecture;

// NULL if the type is not supported.
const Architecture *architecture_find(const char *model_type);
// The name that an architecture gives a key of config.json; NULL: it has no such key.
const char *architecture_key(const Architecture *a, const char *key);
extern const char ARCHITECTURES_SUPPORTED[]; // their names, for messages

// Readers of a key, by its usual name. Without the key they leave *out as it is.
bool config_int(const ConfigReader *r, const char *key, int low, int high, int *out);
bool config_real(const ConfigReader *r, const char *key, double low, double high, double *out);
bool config_factor(const ConfigReader *r, const char *key, double low, double high, float *out);
bool config_bool(const ConfigReader *r, const char *key, bool *out);

// Fills bits, packing and quantised of m from `quantization_config`. Forms that we don't read are refused by
// name.
bool config_codes(const ConfigReader *r, Model *m);

// Fills m->quantised: the form of its codes, and the model that they were made from, if it is known.
void config_quantised(Model *m, const char *codes, const char *name);

// Copies at most n - 1 characters, with '?' for those that a terminal may not show.
void config_shown(const char *text, char *out, size_t n);

// --- rotary embeddings

// Fills s->rope and s->local_theta; s already has head_dim and context. Unsupported ropes are refused by
// name.
bool config_rope(const ConfigReader *r, Shape *s);

// --- named shapes

// The path of a shape's file, for mem_free: `name` itself if it is a path to a file, else NAME.json in the
// folder of shapes (engine/base/shipped.h). NULL with e filled, which lists the known names.
char *shape_file(const char *name, Error *e);

// Appends the known names, one per line, in order.
bool shape_names(Text *out, Error *e);
