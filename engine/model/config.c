// Reads config.json: the architecture's row gives a shape, and the keys of the file replace its numbers.
#include "engine/model/config.h"

#include "engine/base/json.h"
#include "engine/base/shipped.h"
#include "engine/model/weights.h"

#include <stdio.h>
#include <string.h>

// --- keys, some of which an architecture names in its own way

static const char *key_of(const ConfigReader *r, const char *key) { return architecture_key(r->a, key); }

bool config_int(const ConfigReader *r, const char *usual, int low, int high, int *out) {
    const char *key = key_of(r, usual);
    int64_t n = *out;
    if (key && !field_int_optional(r->root, key, low, high, &n, r->place, r->e)) return false;
    *out = (int)n;
    return true;
}

bool config_real(const ConfigReader *r, const char *usual, double low, double high, double *out) {
    const char *key = key_of(r, usual);
    return !key || field_real_optional(r->root, key, low, high, out, r->place, r->e);
}

bool config_factor(const ConfigReader *r, const char *key, double low, double high, float *out) {
    double x = (double)*out;
    bool ok = config_real(r, key, low, high, &x);
    *out = (float)x;
    return ok;
}

bool config_bool(const ConfigReader *r, const char *usual, bool *out) {
    const char *key = key_of(r, usual);
    return !key || field_bool_optional(r->root, key, out, r->place, r->e);
}

// A size that the file must give if the architecture has no default.
static bool need_int(const ConfigReader *r, const char *usual, int low, int high, int *out) {
    int64_t n;
    if (*out) return config_int(r, usual, low, high, out);
    if (!field_int(r->root, key_of(r, usual), low, high, &n, r->place, r->e)) return false;
    *out = (int)n;
    return true;
}

// --- sizes

static bool read_sizes(const ConfigReader *r, Shape *s) {
    if (!need_int(r, "num_hidden_layers", 1, SHAPE_MAX_LAYERS, &s->layers) ||
        !need_int(r, "hidden_size", 1, 1 << 17, &s->width) ||
        !need_int(r, "num_attention_heads", 1, 1 << 10, &s->heads))
        return false;
    if (r->a->mlp_times) s->mlp_width = r->a->mlp_times * s->width;
    if (!need_int(r, "intermediate_size", 1, 1 << 19, &s->mlp_width) ||
        !need_int(r, "vocab_size", 1, 1 << 21, &s->vocab))
        return false;
    if (!s->kv_heads) s->kv_heads = s->heads;
    if (!config_int(r, "num_key_value_heads", 1, s->heads, &s->kv_heads) ||
        !config_int(r, "max_position_embeddings", 1, 1 << 24, &s->context))
        return false;
    s->real_vocab = s->vocab;
    if (!config_int(r, "real_vocab_size", 1, s->vocab, &s->real_vocab) ||
        !config_int(r, "pard_token", 1, s->vocab - 1, &s->mask_token))
        return false;
    if (!config_int(r, "head_dim", 2, 2 * ROPE_MAX_PAIRS, &s->head_dim)) return false;
    if (s->head_dim) return true;
    if (s->width % s->heads)
        return error_input(r->e, "'hidden_size' %d in '%s' is not a multiple of 'num_attention_heads' %d",
                           s->width, r->place, s->heads);
    s->head_dim = s->width / s->heads;
    return true;
}

// --- windows

// Adds the layers with a window, of those that 'layer_types' lists.
static bool list_windowed(const ConfigReader *r, int layers, LayerSet *out) {
    const json_t *types = json_object_get(r->root, "layer_types");
    if (json_array_size(types) != (size_t)layers)
        return error_input(r->e, "'layer_types' in '%s' must be a list of %d, one a layer", r->place, layers);
    for (int i = 0; i < layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        if (type && strcmp(type, "sliding_attention") == 0) layer_add(out, i);
        else if (!type || strcmp(type, "full_attention") != 0)
            return error_input(r->e,
                               "'layer_types' in '%s' holds '%.40s', which is not supported: full_attention "
                               "and sliding_attention are",
                               r->place, type ? type : "no text");
    }
    return true;
}

// Finds the layers with a window: newer files list them; older ones give the number of the first layers
// without one, or make each n-th layer one without.
static bool read_windowed(const ConfigReader *r, bool use, int layers, LayerSet *out) {
    int full = r->a->full_layers, pattern = r->a->pattern;
    if (field_present(r->root, "layer_types")) return list_windowed(r, layers, out);
    if (use && !r->a->windowed && !config_int(r, "max_window_layers", 0, 1 << 20, &full)) return false;
    if (pattern && !config_int(r, "sliding_window_pattern", 1, 1 << 20, &pattern)) return false;
    for (int i = full; i < layers; i++)
        if (!pattern || (i + 1) % pattern) layer_add(out, i);
    return true;
}

// A window of null means none; without the key the architecture's counts.
static bool read_window(const ConfigReader *r, Shape *s) {
    static const char key[] = "sliding_window";
    bool use = r->a->windowed;
    int window = json_object_get(r->root, key) ? 0 : s->window, count = 0;
    if (!config_bool(r, "use_sliding_window", &use) || !config_int(r, key, use, 1 << 24, &window) ||
        !read_windowed(r, use && window, s->layers, &s->local))
        return false;
    for (int i = 0; i < s->layers; i++) count += layer_in(&s->local, i);
    s->window = use && count == s->layers ? window : 0;
    s->local_window = use && count ? window : 0;
    if (count == 0) s->local_theta = 0;
    return true;
}

// --- experts

// The layers with experts: every n-th, but for those that are listed.
static bool read_sparse(const ConfigReader *r, Shape *s) {
    static const char key[] = "mlp_only_layers";
    const json_t *dense = json_object_get(r->root, key), *x;
    int every = 1;
    size_t i;
    if (!config_int(r, "decoder_sparse_step", 1, 1 << 20, &every)) return false;
    for (int layer = every - 1; layer < s->layers; layer += every) layer_add(&s->sparse, layer);
    if (!field_present(r->root, key)) return true;
    if (!json_is_array(dense)) return error_input(r->e, "'%s' in '%s' must be a list", key, r->place);
    json_array_foreach(dense, i, x) {
        json_int_t layer = json_is_integer(x) ? json_integer_value(x) : -1;
        if (layer < 0) return error_input(r->e, "'%s' in '%s' must hold numbers of layers", key, r->place);
        if (layer < s->layers) s->sparse.word[layer / 64] &= ~((uint64_t)1 << layer % 64);
    }
    return true;
}

// Experts as wide as the MLP, where the architecture has no width of its own.
static bool read_experts(const ConfigReader *r, Shape *s) {
    Experts *x = &s->experts;
    static const LayerSet none;
    if (!x->count) return true;
    if (!x->width) x->width = s->mlp_width;
    else if (!config_int(r, "moe_intermediate_size", 1, 1 << 19, &x->width)) return false;
    if (x->shared_width && !config_int(r, "shared_expert_intermediate_size", 0, 1 << 19, &x->shared_width))
        return false;
    const char *key = field_present(r->root, "num_local_experts") ? "num_local_experts" : "num_experts";
    if (!config_int(r, key, 0, EXPERTS_MAX, &x->count)) return false;
    int most = x->count < CHOSEN_MAX ? x->count : CHOSEN_MAX;
    if (x->chosen > most) x->chosen = most;
    if (x->count && !config_int(r, "num_experts_per_tok", 1, most, &x->chosen)) return false;
    if (!config_bool(r, "norm_topk_prob", &x->renormalised) || !read_sparse(r, s)) return false;
    if (!x->count) s->sparse = none;
    if (!memcmp(&s->sparse, &none, sizeof none)) *x = (Experts){.count = 0};
    return true;
}

// --- switches

static bool read_activation(const ConfigReader *r, Shape *s) {
    static const struct {
        const char *name;
        Activation activation;
    } known[] = {{"silu", ACTIVATION_SILU},          {"swish", ACTIVATION_SILU},
                 {"gelu", ACTIVATION_GELU},          {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
                 {"gelu_new", ACTIVATION_GELU_TANH}, {"gelu_fast", ACTIVATION_GELU_TANH},
                 {"relu2", ACTIVATION_RELU2}};
    const char *key = key_of(r, "hidden_act");
    if (!field_present(r->root, key)) return true;
    const char *name = field_text(r->root, key, r->place, r->e);
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0) {
            s->activation = known[i].activation;
            return true;
        }
    return name && error_input(r->e,
                               "'%s' '%s' in '%s' is not supported: silu, gelu, gelu_new, gelu_pytorch_tanh "
                               "and relu2 are",
                               key, name, r->place);
}

static bool read_switches(const ConfigReader *r, Shape *s) {
    bool attention_bias = s->qkv_bias;
    if (!config_bool(r, "tie_word_embeddings", &s->tied_head) ||
        !config_bool(r, "attention_bias", &attention_bias) || !config_bool(r, "mlp_bias", &s->mlp_bias))
        return false;
    if (key_of(r, "attention_bias") && field_present(r->root, key_of(r, "attention_bias")))
        s->qkv_bias = s->o_bias = attention_bias;
    return read_activation(r, s) && config_factor(r, "rms_norm_eps", 1e-12, 0.5, &s->norm_epsilon);
}

// --- ids

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

static bool read_type(ConfigReader *r, Model *m) {
    const char *type = field_text(r->root, "model_type", r->place, r->e);
    if (!type) return false;
    r->a = architecture_find(type);
    if (strcmp(type, "outpace_adapter") == 0)
        return error_input(
            r->e, "'%s' is that of an adapter or of heads: give a model, and these by --adapter", r->place);
    if (!r->a)
        return error_input(r->e, "model_type '%s' in '%s' is not supported: %s are", type, r->place,
                           ARCHITECTURES_SUPPORTED);
    snprintf(m->architecture, sizeof m->architecture, "%s", type);
    m->shape = r->a->shape;
    return true;
}

static void name_random(const json_t *mark, Model *m) {
    const char *path = json_string_value(json_object_get(mark, "shape"));
    const char *slash = path ? strrchr(path, '/') : NULL;
    char shape[80];
    config_shown(slash ? slash + 1 : path ? path : "", shape, sizeof shape);
    snprintf(m->stand_in, sizeof m->stand_in, "random weights%s%s", *shape ? ", shape " : "", shape);
}

// Tables print it unchanged, so it has no control characters.
static bool read_stand_in(const ConfigReader *r, Model *m) {
    static const char key[] = "outpace_stand_in";
    const json_t *random = json_object_get(r->root, "outpace_synth"); // as synth.c marks its models
    if (!field_present(r->root, key) && random) name_random(random, m);
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

// A model that also sees images has the keys of its text model in an object; its own count first.
static void take_text_part(json_t *root) {
    static const char *const types[] = {"gemma3", "mistral3"};
    const char *type = json_string_value(json_object_get(root, "model_type"));
    json_t *text = json_object_get(root, "text_config"), *inner = json_object_get(text, "model_type");
    bool nested = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        nested = nested || (type && strcmp(type, types[i]) == 0);
    if (!nested || !inner) return;
    json_object_set(root, "model_type", inner);
    json_object_update_missing(root, text);
}

static bool read_root(ConfigReader *r, Model *m) {
    Shape *s = &m->shape;
    m->bos = -1;
    if (!json_is_object(r->root)) return error_input(r->e, "'%s' must hold a JSON object", r->place);
    if (!read_type(r, m) || !read_sizes(r, s) || !read_window(r, s) || !read_switches(r, s) ||
        !config_codes(r, m) || !config_rope(r, s))
        return false;
    // Layers that differ in nothing from the others are no set of their own.
    if (!(s->local_theta > 0) && (!s->local_window || s->window)) {
        s->local = (LayerSet){.word = {0}};
        s->local_window = 0;
    }
    return read_experts(r, s) && (!r->a->read || r->a->read(r, s)) &&
           config_int(r, "num_nextn_predict_layers", 0, SHAPE_MAX_LAYERS, &m->mtp_layers) &&
           config_int(r, "bos_token_id", -1, s->vocab - 1, &m->bos) && read_eos(m, r->root, r->place, r->e) &&
           read_stand_in(r, m);
}

bool config_read(Model *m, const json_t *root, const char *place, Error *e) {
    ConfigReader r = {root, place, NULL, e};
    return read_root(&r, m) && shape_check(&m->shape, place, e);
}

bool config_parse(Model *m, const char *bytes, size_t n, const char *place, Error *e) {
    json_auto_t *root = json_from_bytes(bytes, n, place, e);
    if (root) take_text_part(root);
    return root && config_read(m, root, place, e);
}

bool config_parse_generation(Model *m, const char *bytes, size_t n, const char *place, Error *e) {
    json_auto_t *root = json_from_bytes(bytes, n, place, e);
    if (!root) return false;
    return json_is_object(root) ? read_eos(m, root, place, e)
                                : error_input(e, "'%s' must hold a JSON object", place);
}

// --- named shapes

char *shape_file(const char *name, Error *e) { return shipped_named("shapes", "shape", name, e); }

bool shape_names(Text *out, Error *e) { return shipped_names("shapes", out, e); }
