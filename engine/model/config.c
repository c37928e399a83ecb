#include "engine/model/config.h"

#include "engine/base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const Architecture ARCHITECTURES[] = {
    {"llama",   false, false, false, false},
    {"mistral", false, false, false, true },
    {"phi3",    true,  true,  false, true },
    {"qwen2",   false, false, true,  false},
};
static const char SUPPORTED[] = "llama (also CodeLlama, Vicuna, Yi, DeepSeek-coder), mistral, phi3, qwen2";

const Architecture *architecture_find(const char *model_type) {
    for (size_t i = 0; i < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; i++)
        if (strcmp(ARCHITECTURES[i].model_type, model_type) == 0) return &ARCHITECTURES[i];
    return NULL;
}

// What every reader of a part of config.json is given.
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
    s->context = 2048; // what transformers assumes
    if (!read_int_optional(r, "num_key_value_heads", 1, s->heads, &s->kv_heads) ||
        !read_int_optional(r, "max_position_embeddings", 1, 1 << 24, &s->context))
        return false;
    s->real_vocab = s->vocab;
    if (!read_int_optional(r, "real_vocab_size", 1, s->vocab, &s->real_vocab)) return false;
    if (field_present(r->root, "head_dim"))
        return read_int(r, "head_dim", 2, 2 * ROPE_MAX_PAIRS, &s->head_dim);
    if (s->width % s->heads)
        return error_input(r->e, "'hidden_size' %d in '%s' is not a multiple of 'num_attention_heads' %d",
                           s->width, r->place, s->heads);
    s->head_dim = s->width / s->heads;
    return true;
}

static bool read_window(const Reader *r, const Architecture *a, Shape *s) {
    bool use = a->windowed;
    if (!field_bool_optional(r->root, "use_sliding_window", &use, r->place, r->e)) return false;
    int window = 0;
    if (!read_int_optional(r, "sliding_window", 1, 1 << 24, &window)) return false;
    int full_layers = s->layers; // Qwen2: layers below max_window_layers have no window
    if (use && !a->windowed && !read_int_optional(r, "max_window_layers", 0, 1 << 20, &full_layers))
        return false;
    if (use && !a->windowed && window && full_layers < s->layers && full_layers > 0)
        return error_input(
            r->e,
            "'max_window_layers' %d in '%s' gives a window to some layers only, which is not supported; "
            "set 'use_sliding_window' to false",
            full_layers, r->place);
    s->window = use && (a->windowed || full_layers == 0) ? window : 0;
    return true;
}

static bool read_switches(const Reader *r, const Architecture *a, Shape *s) {
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
    s->qkv_bias = a->qkv_bias;
    s->activation = ACTIVATION_SILU;
    if (!field_present(r->root, "hidden_act")) return true;
    const char *act = field_text(r->root, "hidden_act", r->place, r->e);
    if (!act) return false;
    if (strcmp(act, "gelu_pytorch_tanh") == 0) s->activation = ACTIVATION_GELU_TANH;
    else if (strcmp(act, "silu") != 0)
        return error_input(r->e, "'hidden_act' '%s' in '%s' is not supported: silu and gelu_pytorch_tanh are",
                           act, r->place);
    return true;
}

static bool read_llama3(const Reader *r, const json_t *scaling, Rope *rope) {
    int64_t original;
    if (!field_real(scaling, "low_freq_factor", 1e-6, 1e6, &rope->low_frequency_factor, r->place, r->e) ||
        !field_real(scaling, "high_freq_factor", 1e-6, 1e6, &rope->high_frequency_factor, r->place, r->e) ||
        !field_int(scaling, "original_max_position_embeddings", 1, 1 << 24, &original, r->place, r->e))
        return false;
    rope->original_context = (int)original;
    if (rope->low_frequency_factor >= rope->high_frequency_factor)
        return error_input(r->e, "'low_freq_factor' in '%s' must be below 'high_freq_factor'", r->place);
    return true;
}

// Phi-3's long contexts: a divisor a pair, from the short list up to the original context, from the long list
// beyond. The choice is made once, by the model's full context, so that logits do not jump while a text
// grows.
static bool read_longrope(const Reader *r, const json_t *scaling, const Shape *s, Rope *rope) {
    int64_t original = s->context;
    if (!field_int_optional(r->root, "original_max_position_embeddings", 1, 1 << 24, &original, r->place,
                            r->e) ||
        !field_int_optional(scaling, "original_max_position_embeddings", 1, 1 << 24, &original, r->place,
                            r->e))
        return false;
    rope->original_context = (int)original;
    const char *key = s->context > original ? "long_factor" : "short_factor";
    const json_t *list = json_object_get(scaling, key);
    if (json_array_size(list) != (size_t)rope->pairs)
        return error_input(r->e, "'%s' in '%s' has %zu numbers, must have %d (half the head size)", key,
                           r->place, json_array_size(list), rope->pairs);
    for (int i = 0; i < rope->pairs; i++) {
        double x = json_number_value(json_array_get(list, (size_t)i));
        if (!(x > 0 && x < 1e9))
            return error_input(r->e, "'%s' in '%s' must hold positive numbers", key, r->place);
        rope->stretch[i] = (float)x;
    }
    double ratio = (double)s->context / (double)original;
    rope->attention_factor = ratio > 1 ? sqrt(1 + log(ratio) / log((double)original)) : 1;
    return field_real_optional(scaling, "attention_factor", 1e-3, 1e3, &rope->attention_factor, r->place,
                               r->e);
}

static bool read_scaling(const Reader *r, const json_t *scaling, const Shape *s, Rope *rope) {
    const char *key = field_present(scaling, "rope_type") ? "rope_type" : "type";
    if (!field_present(scaling, key)) return true;
    const char *type = field_text(scaling, key, r->place, r->e);
    if (!type) return false;
    if (strcmp(type, "default") == 0) return true;
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        rope->kind = ROPE_LONGROPE;
        return read_longrope(r, scaling, s, rope);
    }
    if (strcmp(type, "linear") != 0 && strcmp(type, "llama3") != 0)
        return error_input(
            r->e, "rope scaling '%s' in '%s' is not supported: default, linear, llama3 and longrope are",
            type, r->place);
    rope->kind = type[1] == 'i' ? ROPE_LINEAR : ROPE_LLAMA3;
    if (!field_real(scaling, "factor", 1e-6, 1e6, &rope->factor, r->place, r->e)) return false;
    return rope->kind == ROPE_LINEAR || read_llama3(r, scaling, rope);
}

// Older files have rope_theta and rope_scaling, newer ones rope_parameters with both in it.
static bool read_rope(const Reader *r, Shape *s) {
    s->rope = (Rope){
        .kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = s->head_dim / 2, .attention_factor = 1};
    double rotated = 1;
    if (!field_real_optional(r->root, "rope_theta", 1, 1e12, &s->rope.theta, r->place, r->e) ||
        !field_real_optional(r->root, "partial_rotary_factor", 0, 1, &rotated, r->place, r->e))
        return false;
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "rope_parameters" : "rope_scaling";
        const json_t *scaling = json_object_get(r->root, key);
        if (!field_present(r->root, key)) continue;
        if (!json_is_object(scaling))
            return error_input(r->e, "'%s' in '%s' must be an object", key, r->place);
        if (!field_real_optional(scaling, "rope_theta", 1, 1e12, &s->rope.theta, r->place, r->e) ||
            !field_real_optional(scaling, "partial_rotary_factor", 0, 1, &rotated, r->place, r->e) ||
            !read_scaling(r, scaling, s, &s->rope))
            return false;
    }
    if (rotated != 1)
        return error_input(r->e, "'partial_rotary_factor' in '%s' is %g, only 1 is supported", r->place,
                           rotated);
    return true;
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
    return true;
}

// Shown in tables as it is, so: no control characters.
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
           read_switches(r, a, &m->shape) && read_rope(r, &m->shape) &&
           read_int_optional(r, "bos_token_id", -1, m->shape.vocab - 1, &m->bos) &&
           read_eos(m, r->root, r->place, r->e) && read_stand_in(r, m);
}

bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e) {
    json_t *root = json_from_bytes(bytes, n, place, e);
    if (!root) return false;
    Reader r = {root, place, e};
    double epsilon = 1e-6;
    bool ok = read_root(&r, m) && field_real_optional(root, "rms_norm_eps", 1e-12, 0.5, &epsilon, place, e);
    m->shape.norm_epsilon = (float)epsilon;
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
