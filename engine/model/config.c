// Reads config.json: the architecture's row gives a shape, and the keys of the file replace its numbers.
#include "engine/model/config.h"

#include "engine/base/json.h"
#include "engine/base/shipped.h"
#include "engine/model/weights.h"

#include <stdio.h>
#include <string.h>

enum { NO_WINDOWS = 1 << 20 };

static const Architecture ARCHITECTURES[] = {
    {.model_type = "llama", .full_layers = NO_WINDOWS, .shape = {.context = 2048, .norm_epsilon = 1e-6f}},
    {.model_type = "mistral",
     .windowed = true,
     .shape = {.context = 131072, .window = 4096, .norm_epsilon = 1e-6f}},
    {.model_type = "phi3",
     .fused = 1u << GROUP_QKV | 1u << GROUP_IN,
     .partly_rotated = true,
     .windowed = true,
     .shape = {.context = 4096, .rope.original_context = 4096, .norm_epsilon = 1e-5f}},
    {.model_type = "qwen2",
     .full_layers = 28,
     .shape = {.context = 32768, .window = 4096, .qkv_bias = true, .norm_epsilon = 1e-6f}},
    {.model_type = "qwen3",
     .full_layers = 28,
     .shape = {.head_dim = 128, .context = 32768, .window = 4096, .qk_norm = true, .norm_epsilon = 1e-6f}},
};
static const char SUPPORTED[] =
    "llama (also CodeLlama, Vicuna, Yi, DeepSeek-coder), mistral, phi3, qwen2, qwen3";

const Architecture *architecture_find(const char *model_type) {
    for (size_t i = 0; i < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; i++)
        if (strcmp(ARCHITECTURES[i].model_type, model_type) == 0) return &ARCHITECTURES[i];
    return NULL;
}

// The arguments of every reader of a part of config.json.
typedef struct {
    const json_t *root;
    const char *place;
    Error *e;
} Reader;

static bool read_int(const Reader *r, const char *key, int low, int high, int *out) {
    int64_t n;
    if (!field_int(r->root, key, low, high, &n, r->place, r->e)) return false;
    *out = (int)n;
    return true;
}

static bool read_int_optional(const Reader *r, const char *key, int low, int high, int *out) {
    return !field_present(r->root, key) || read_int(r, key, low, high, out);
}

static bool read_sizes(const Reader *r, Shape *s) {
    if (!read_int(r, "num_hidden_layers", 1, 1000, &s->layers) ||
        !read_int(r, "hidden_size", 1, 1 << 17, &s->width) ||
        !read_int(r, "num_attention_heads", 1, 1 << 10, &s->heads) ||
        !read_int(r, "intermediate_size", 1, 1 << 19, &s->mlp_width) ||
        !read_int(r, "vocab_size", 1, 1 << 21, &s->vocab))
        return false;
    s->kv_heads = s->heads;
    if (!read_int_optional(r, "num_key_value_heads", 1, s->heads, &s->kv_heads) ||
        !read_int_optional(r, "max_position_embeddings", 1, 1 << 24, &s->context))
        return false;
    s->real_vocab = s->vocab;
    if (!read_int_optional(r, "real_vocab_size", 1, s->vocab, &s->real_vocab)) return false;
    if (!read_int_optional(r, "head_dim", 2, 2 * ROPE_MAX_PAIRS, &s->head_dim)) return false;
    if (s->head_dim) return true;
    if (s->width % s->heads)
        return error_input(r->e, "'hidden_size' %d in '%s' is not a multiple of 'num_attention_heads' %d",
                           s->width, r->place, s->heads);
    s->head_dim = s->width / s->heads;
    return true;
}

// How many layers have a window, of those that 'layer_types' lists.
static bool count_windowed(const Reader *r, int layers, int *out) {
    const json_t *types = json_object_get(r->root, "layer_types");
    if (json_array_size(types) != (size_t)layers)
        return error_input(r->e, "'layer_types' in '%s' must be a list of %d, one a layer", r->place, layers);
    *out = 0;
    for (int i = 0; i < layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        if (type && strcmp(type, "sliding_attention") == 0) ++*out;
        else if (!type || strcmp(type, "full_attention") != 0)
            return error_input(r->e,
                               "'layer_types' in '%s' holds '%.40s', which is not supported: full_attention "
                               "and sliding_attention are",
                               r->place, type ? type : "no text");
    }
    return true;
}

static bool some_layers_only(const Reader *r, const char *key) {
    return error_input(r->e,
                       "%s in '%s' gives a window to some layers only, which is not supported; set "
                       "'use_sliding_window' to false",
                       key, r->place);
}

// Counts the layers with a window: newer files list them, older ones have the number of layers without one.
static bool read_windowed_layers(const Reader *r, const Architecture *a, bool use, int layers, int *out) {
    char key[40];
    int full = a->full_layers;
    bool listed = field_present(r->root, "layer_types");
    if (listed && !count_windowed(r, layers, out)) return false;
    if (use && !a->windowed && !read_int_optional(r, "max_window_layers", 0, 1 << 20, &full)) return false;
    if (!listed) *out = full < layers ? layers - full : 0;
    if (!use || *out == 0 || *out == layers) return true;
    snprintf(key, sizeof key, "'max_window_layers' %d", full);
    return some_layers_only(r, listed ? "'layer_types'" : key);
}

// A window of null means none; without the key the architecture's counts.
static bool read_window(const Reader *r, const Architecture *a, Shape *s) {
    static const char key[] = "sliding_window";
    bool use = a->windowed;
    int window = json_object_get(r->root, key) ? 0 : s->window, layers = 0;
    if (!field_bool_optional(r->root, "use_sliding_window", &use, r->place, r->e) ||
        !read_int_optional(r, key, 1, 1 << 24, &window) ||
        !read_windowed_layers(r, a, use && window, s->layers, &layers))
        return false;
    s->window = use && layers ? window : 0;
    return true;
}

static bool read_switches(const Reader *r, Shape *s) {
    bool attention_bias = false, mlp_bias = false;
    if (!field_bool_optional(r->root, "tie_word_embeddings", &s->tied_head, r->place, r->e) ||
        !field_bool_optional(r->root, "attention_bias", &attention_bias, r->place, r->e) ||
        !field_bool_optional(r->root, "mlp_bias", &mlp_bias, r->place, r->e))
        return false;
    if (attention_bias || mlp_bias)
        return error_input(r->e, "'%s' in '%s' is true, which is not supported",
                           attention_bias ? "attention_bias" : "mlp_bias", r->place);
    if (field_present(r->root, "quantization_config"))
        return error_input(
            r->e, "'%s' holds a quantised model ('quantization_config'); give its bf16, f16 or f32 original",
            r->place);
    if (!field_present(r->root, "hidden_act")) return true;
    const char *act = field_text(r->root, "hidden_act", r->place, r->e);
    if (!act) return false;
    if (strcmp(act, "gelu_pytorch_tanh") == 0) s->activation = ACTIVATION_GELU_TANH;
    else if (strcmp(act, "silu") != 0)
        return error_input(r->e, "'hidden_act' '%s' in '%s' is not supported: silu and gelu_pytorch_tanh are",
                           act, r->place);
    return true;
}

static bool read_epsilon(const Reader *r, Shape *s) {
    double epsilon = (double)s->norm_epsilon;
    bool ok = field_real_optional(r->root, "rms_norm_eps", 1e-12, 0.5, &epsilon, r->place, r->e);
    s->norm_epsilon = (float)epsilon;
    return ok;
}

static bool add_eos(Model *m, const json_t *v, const char *place, Error *e) {
    if (!json_is_integer(v))
        return error_input(e, "'eos_token_id' in '%s' must be an integer or a list of them", place);
    json_int_t id = json_integer_value(v);
    if (id < 0 || id >= m->shape.vocab)
        return error_input(e, "'eos_token_id' %lld in '%s' is outside the vocabulary of %d", (long long)id,
                           place, m->shape.vocab);
    for (int i = 0; i < m->eos_count; i++)
        if (m->eos[i] == (int)id) return true;
    if (m->eos_count == MODEL_MAX_EOS)
        return error_input(e, "'eos_token_id' in '%s' has more than %d ids", place, MODEL_MAX_EOS);
    m->eos[m->eos_count++] = (int)id;
    return true;
}

static bool read_eos(Model *m, const json_t *root, const char *place, Error *e) {
    if (!field_present(root, "eos_token_id")) return true;
    const json_t *v = json_object_get(root, "eos_token_id");
    if (!json_is_array(v)) return add_eos(m, v, place, e);
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!add_eos(m, json_array_get(v, i), place, e)) return false;
    return true;
}

static bool read_type(const Reader *r, Model *m, const Architecture **a) {
    const char *type = field_text(r->root, "model_type", r->place, r->e);
    if (!type) return false;
    *a = architecture_find(type);
    if (strcmp(type, "outpace_adapter") == 0)
        return error_input(
            r->e, "'%s' is that of an adapter or of heads: give a model, and these by --adapter", r->place);
    if (!*a)
        return error_input(r->e, "model_type '%s' in '%s' is not supported: %s are", type, r->place,
                           SUPPORTED);
    snprintf(m->architecture, sizeof m->architecture, "%s", type);
    m->shape = (*a)->shape;
    return true;
}

// Tables print it unchanged, so it has no control characters.
static bool read_stand_in(const Reader *r, Model *m) {
    static const char key[] = "outpace_stand_in";
    if (!field_present(r->root, key)) return true;
    const char *text = field_text(r->root, key, r->place, r->e);
    if (!text) return false;
    bool fits = text[0] && strlen(text) < sizeof m->stand_in;
    for (const char *c = text; *c; c++) fits = fits && (unsigned char)*c >= ' ' && *c != 0x7f;
    if (!fits)
        return error_input(r->e, "'%s' in '%s' must be a line of 1 to %zu characters", key, r->place,
                           sizeof m->stand_in - 1);
    snprintf(m->stand_in, sizeof m->stand_in, "%s", text);
    return true;
}

static bool read_root(const Reader *r, Model *m) {
    const Architecture *a;
    m->bos = -1;
    if (!json_is_object(r->root)) return error_input(r->e, "'%s' must hold a JSON object", r->place);
    return read_type(r, m, &a) && read_sizes(r, &m->shape) && read_window(r, a, &m->shape) &&
           read_switches(r, &m->shape) && config_rope(r->root, a, &m->shape, r->place, r->e) &&
           read_epsilon(r, &m->shape) &&
           read_int_optional(r, "bos_token_id", -1, m->shape.vocab - 1, &m->bos) &&
           read_eos(m, r->root, r->place, r->e) && read_stand_in(r, m);
}

bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e) {
    json_t *root = json_from_bytes(bytes, n, place, e);
    if (!root) return false;
    Reader r = {root, place, e};
    bool ok = read_root(&r, m);
    json_decref(root);
    return ok && shape_check(&m->shape, place, e);
}

bool config_parse_generation(Model *m, const char *bytes, size_t n, const char *place, Error *e) {
    json_t *root = json_from_bytes(bytes, n, place, e);
    if (!root) return false;
    bool ok = json_is_object(root) ? read_eos(m, root, place, e)
                                   : error_input(e, "'%s' must hold a JSON object", place);
    json_decref(root);
    return ok;
}

// --- named shapes

char *shape_file(const char *name, Error *e) { return shipped_named("shapes", "shape", name, e); }

bool shape_names(Text *out, Error *e) { return shipped_names("shapes", out, e); }
