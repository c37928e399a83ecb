// Translates the values of a GGUF file into the keys of a config.json, which are then read as those of one.
// The file has no key for switches that its tensors show: biases, fused tensors, a tied head.
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/model/config.h"
#include "engine/model/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const Gguf *g;
    const unsigned char *data;
    const char *name; // of the architecture: the prefix of its keys
    const Architecture *a;
    json_t *config;
    Error *e;
} Translator;

typedef struct {
    const char *name, *model_type;
    bool paired; // rows of q and k are stored pair by pair
} KnownName;

static const KnownName NAMES[] = {
    {"llama", "llama", true},        {"qwen2", "qwen2", false},
    {"qwen3", "qwen3", false},       {"gemma", "gemma", false},
    {"gemma2", "gemma2", false},     {"gemma3", "gemma3_text", false},
    {"phi2", "phi", false},          {"phi3", "phi3", false},
    {"granite", "granite", true},    {"olmo2", "olmo2", false},
    {"smollm3", "smollm3", true},    {"stablelm", "stablelm", false},
    {"glm4", "glm4", false},         {"starcoder2", "starcoder2", false},
    {"gptneox", "gpt_neox", false},  {"command-r", "cohere", false},
    {"cohere2", "cohere2", false},   {"exaone4", "exaone4", false},
    {"seed_oss", "seed_oss", false}, {"arcee", "arcee", true},
};

// The key of a config.json, and that of a GGUF file behind the architecture's name.
static const char *const KEYS[][2] = {
    {"num_hidden_layers", "block_count"},
    {"hidden_size", "embedding_length"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv"},
    {"max_position_embeddings", "context_length"},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
    {"rms_norm_eps", "attention.layer_norm_epsilon"},
    {"rope_theta", "rope.freq_base"},
    {"rope_local_base_freq", "rope.freq_base_swa"},
    {"use_parallel_residual", "use_parallel_residual"},
    {"embedding_multiplier", "embedding_scale"},
    {"residual_multiplier", "residual_scale"},
    {"attention_multiplier", "attention.scale"},
    {"logits_scaling", "logit_scale"},
    {"logit_scale", "logit_scale"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};

// --- values

static const GgufValue *value(const Translator *t, const char *key) {
    char whole[GGUF_KEY];
    int n = snprintf(whole, sizeof whole, "%s.%s", t->name, key);
    return n > 0 && n < GGUF_KEY ? gguf_find(t->g, whole) : NULL;
}

// A positive number; `other` where there is none.
static double number(const Translator *t, const char *key, double other) {
    const GgufValue *v = value(t, key);
    double x = v && v->count == 1 ? gguf_number(v, 0) : 0;
    return x > 0 ? x : other;
}

static bool has(const Translator *t, const char *tensor) { return gguf_tensor(t->g, tensor) != NULL; }

// Under the name that the architecture gives the key; takes the value.
static void set(const Translator *t, const char *key, json_t *v) {
    const char *own = architecture_key(t->a, key);
    if (own && v) json_object_set_new(t->config, own, v);
    else json_decref(v);
}

static bool copy_keys(const Translator *t) {
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const GgufValue *v = value(t, KEYS[i][1]);
        json_t *x = v ? gguf_json(v) : NULL;
        if (v && !x)
            return error_input(t->e, "'%s' in '%s' must be one number for all layers", v->key, t->g->place);
        set(t, KEYS[i][0], x);
    }
    return true;
}

// --- heads, windows

static void set_heads(const Translator *t, double *head, double *rotated) {
    double heads = number(t, "attention.head_count", 1);
    *head = number(t, "attention.key_length", floor(number(t, "embedding_length", 0) / heads));
    *rotated = number(t, "rope.dimension_count", *head);
    set(t, "head_dim", json_integer((json_int_t)fmin(*head, 1 << 20)));
    // Half a dimension more, so that the product with the head's size isn't below the number.
    set(t, "partial_rotary_factor", json_real(*rotated >= *head ? 1 : (*rotated + 0.5) / *head));
}

// One number, or for each layer whether it has a window.
static void set_pattern(const Translator *t) {
    const GgufValue *v = value(t, "attention.sliding_window_pattern");
    json_auto_t *types = json_array();
    for (size_t i = 0; v && v->list && i < v->count && i < SHAPE_MAX_LAYERS; i++)
        json_array_append_new(types,
                              json_string(gguf_number(v, i) != 0 ? "sliding_attention" : "full_attention"));
    bool listed = json_array_size(types) > 0 && number(t, "attention.sliding_window", 0) > 0;
    if (v && !v->list) set(t, "sliding_window_pattern", gguf_json(v));
    set(t, "layer_types", listed ? json_incref(types) : NULL);
}

// The scale of Gemma's scores isn't in the file. Only the 27B models have one that isn't of a head's size.
static void set_gemma_scale(const Translator *t, double head) {
    double layers = number(t, "block_count", 0), heads = number(t, "attention.head_count", 1);
    bool large = layers == 46 || layers == 62;
    if (strncmp(t->name, "gemma", 5) == 0)
        set(t, "query_pre_attn_scalar",
            json_real(large ? number(t, "embedding_length", 1) / heads : fmax(head, 1)));
}

// --- rope

static json_t *numbers_of(const Translator *t, const char *name) {
    const GgufTensor *tensor = gguf_tensor(t->g, name);
    json_t *list = json_array();
    if (!tensor || tensor->rank != 1 || strcmp(tensor->format->name, "F32") != 0) return list;
    for (int64_t i = 0; i < tensor->dims[0] && i < ROPE_MAX_PAIRS; i++) {
        json_t *x = json_real((double)dtype_load(DTYPE_F32, t->data + tensor->begin, (size_t)i));
        json_array_append_new(list, x ? x : json_null());
    }
    return list;
}

// Divisors of the frequencies: two lists of long ropes, or Llama 3's one.
static json_t *listed_rope(const Translator *t) {
    bool two = has(t, "rope_factors_long.weight");
    const char *near = two ? "rope_factors_short.weight" : "rope_freqs.weight";
    const char *far = two ? "rope_factors_long.weight" : near;
    json_t *scaling = json_object();
    double context = fmin(number(t, "context_length", 1), 1 << 24);
    json_object_set_new(scaling, "rope_type", json_string("longrope"));
    json_object_set_new(scaling, "short_factor", numbers_of(t, near));
    json_object_set_new(scaling, "long_factor", numbers_of(t, far));
    double original =
        two ? fmin(number(t, "rope.scaling.original_context_length", context), 1 << 24) : context;
    set(t, "original_max_position_embeddings", json_integer((json_int_t)original));
    json_object_set_new(scaling, "attention_factor", json_real(number(t, "rope.scaling.attn_factor", 1)));
    return scaling;
}

static json_t *scaled_rope(const Translator *t, const char *type) {
    json_t *scaling = json_object();
    double original = number(t, "rope.scaling.original_context_length", 0);
    json_object_set_new(scaling, "rope_type", json_string(type));
    json_object_set_new(scaling, "factor", json_real(number(t, "rope.scaling.factor", 1)));
    if (original > 0 && original <= 1 << 24)
        json_object_set_new(scaling, "original_max_position_embeddings", json_integer((json_int_t)original));
    return scaling;
}

static bool set_rope(const Translator *t) {
    const GgufValue *v = value(t, "rope.scaling.type");
    json_auto_t *type = v ? gguf_json(v) : NULL;
    const char *name = json_string_value(type) ? json_string_value(type) : "none";
    bool listed = has(t, "rope_factors_long.weight") || has(t, "rope_freqs.weight");
    bool ok = listed || strcmp(name, "longrope") != 0 ||
              error_input(t->e,
                          "'%s' has a long rope without its tensors 'rope_factors_long.weight' and "
                          "'rope_factors_short.weight'",
                          t->g->place);
    if (ok && !listed && strcmp(name, "yarn") == 0 && value(t, "rope.scaling.attn_factor"))
        ok = error_input(t->e, "'%s' has '%s.rope.scaling.attn_factor' beside yarn, which is not supported",
                         t->g->place, t->name);
    if (ok && listed) set(t, "rope_scaling", listed_rope(t));
    else if (ok && strcmp(name, "none") != 0) set(t, "rope_scaling", scaled_rope(t, name));
    return ok;
}

// --- ids

static void set_ids(const Translator *t) {
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const GgufValue *bos = gguf_find(t->g, "tokenizer.ggml.bos_token_id");
    const GgufTensor *embedding = gguf_tensor(t->g, "token_embd.weight");
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const GgufValue *v = gguf_find(t->g, ends[i]);
        json_t *id = v && !v->list ? gguf_json(v) : NULL;
        if (id) json_array_append_new(list, id);
    }
    set(t, "eos_token_id", list);
    if (bos) set(t, "bos_token_id", gguf_json(bos));
    if (embedding && embedding->rank == 2) set(t, "vocab_size", json_integer(embedding->dims[1]));
}

// --- the model

// Mistral's first models are stored as Llama's, with a window.
static const char *model_type(const Translator *t, const KnownName *known) {
    bool mistral = strcmp(known->name, "llama") == 0 && number(t, "attention.sliding_window", 0) > 0;
    return mistral ? "mistral" : known->model_type;
}

static bool find_name(Translator *t, const char *name, const KnownName **known) {
    LOCAL_TEXT all = {0};
    *known = NULL;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        text_printf(&all, "%s%s", i ? ", " : "", NAMES[i].name);
        if (name && strcmp(NAMES[i].name, name) == 0) *known = &NAMES[i];
    }
    if (!*known)
        error_input(t->e, "general.architecture '%.40s' in '%s' is not supported: %s are", name ? name : "",
                    t->g->place, text_get(&all));
    return *known != NULL;
}

static bool translate(Translator *t, const KnownName *known) {
    double head, rotated;
    const char *type = model_type(t, known);
    t->a = architecture_find(type);
    json_object_set_new(t->config, "model_type", json_string(type));
    set_heads(t, &head, &rotated);
    double window = number(t, "attention.sliding_window", 0);
    set(t, "sliding_window", window > 0 && window < 1 << 24 ? json_integer((json_int_t)window) : json_null());
    set_pattern(t);
    set_gemma_scale(t, head);
    set_ids(t);
    if (number(t, "expert_count", 0) != 0)
        return error_input(t->e, "'%s' is a mixture of experts, which is not supported in GGUF files",
                           t->g->place);
    double values = number(t, "attention.value_length", head);
    if (values != head)
        return error_input(t->e, "'%s' has heads of %g for keys and %g for values, must be equal",
                           t->g->place, head, values);
    return copy_keys(t) && set_rope(t);
}

// The part of the shape that only the tensors show.
static void read_form(const Translator *t, const KnownName *known, Model *m) {
    Shape *s = &m->shape;
    bool one_qkv = has(t, "blk.0.attn_qkv.weight");
    m->gguf = (GgufForm){.is = true, .paired = known->paired};
    m->gguf.post_named = s->norm_place == NORMS_BEFORE && !has(t, "blk.0.ffn_norm.weight");
    if (one_qkv) m->gguf.fused |= 1u << GROUP_QKV | 1u << GROUP_QKV_BIAS;
    if (!s->ungated && !has(t, "blk.0.ffn_gate.weight"))
        m->gguf.fused |= 1u << GROUP_IN | 1u << GROUP_IN_BIAS;
    s->tied_head = !has(t, "output.weight");
    s->head_bias = has(t, "output.bias");
    s->norm_bias = has(t, "output_norm.bias");
    s->qkv_bias = has(t, one_qkv ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias");
    s->o_bias = has(t, "blk.0.attn_output.bias");
    s->mlp_bias = has(t, "blk.0.ffn_down.bias");
}

// --- its codes

// The format of blocks that most numbers are in; NULL: no tensor is quantised.
static const char *common_format(const Gguf *g) {
    enum { IDS = 64 };
    double numbers[IDS] = {0}, most = 0;
    const char *name = NULL;
    for (size_t i = 0; i < g->tensor_count; i++) {
        const GgufTensor *t = &g->tensors[i];
        double n = 1;
        for (int k = 0; k < t->rank; k++) n *= (double)t->dims[k];
        if (t->format->numbers == 1 || t->format->id >= IDS) continue;
        numbers[t->format->id] += n;
        if (numbers[t->format->id] <= most) continue;
        most = numbers[t->format->id];
        name = t->format->name;
    }
    return name;
}

// The mix of formats that the file's maker chose, by its number; NULL: none of those that open.
static const char *file_type(const Gguf *g) {
    static const struct {
        int number;
        const char *name;
    } TYPES[] = {{2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
                 {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"},
                 {16, "Q5_K_S"}, {17, "Q5_K_M"}, {18, "Q6_K"},   {25, "IQ4_NL"}, {30, "IQ4_XS"}};
    const GgufValue *v = gguf_find(g, "general.file_type");
    for (size_t i = 0; v && v->count == 1 && i < sizeof TYPES / sizeof *TYPES; i++)
        if (gguf_number(v, 0) == TYPES[i].number) return TYPES[i].name;
    return NULL;
}

// A quantised model is marked with the file's type, or its most common format, and its original's name.
static void set_quantised(const Translator *t, Model *m) {
    static const char *const keys[] = {"general.base_model.0.name", "general.name", "general.basename"};
    const char *common = common_format(t->g), *type = file_type(t->g);
    char name[80] = "", form[32];
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !*name; i++) {
        const GgufValue *v = gguf_find(t->g, keys[i]);
        json_auto_t *text = v && !v->list ? gguf_json(v) : NULL;
        if (json_is_string(text)) snprintf(name, sizeof name, "%s", json_string_value(text));
    }
    if (!common) return;
    snprintf(form, sizeof form, "%s (GGUF)", type ? type : common);
    config_quantised(m, form, *name ? name : t->name);
}

bool config_read_gguf(Model *m, const Gguf *g, const unsigned char *data, Error *e) {
    const GgufValue *v = gguf_find(g, "general.architecture");
    json_auto_t *name = v ? gguf_json(v) : NULL;
    Translator t = {.g = g, .data = data, .name = json_string_value(name), .config = json_object(), .e = e};
    const KnownName *known = NULL;
    bool ok = find_name(&t, t.name, &known) && translate(&t, known) && config_read(m, t.config, g->place, e);
    if (ok) read_form(&t, known, m);
    if (ok) set_quantised(&t, m);
    json_decref(t.config);
    return ok;
}

Safetensors safetensors_of_gguf(const Gguf *g) {
    Safetensors s = {mem_new(g->tensor_count, sizeof *s.tensors), g->tensor_count};
    for (size_t i = 0; i < s.count; i++) {
        const GgufTensor *from = &g->tensors[i];
        StoredTensor *to = &s.tensors[i];
        *to = (StoredTensor){.rank = from->rank, .begin = from->begin, .end = from->end};
        snprintf(to->name, sizeof to->name, "%s", from->name);
        snprintf(to->dtype, sizeof to->dtype, "%s", from->format->name);
        for (int k = 0; k < to->rank; k++) to->dims[k] = from->dims[from->rank - 1 - k];
    }
    return s;
}
