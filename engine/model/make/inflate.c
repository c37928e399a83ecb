// Opens the small model, builds the large one's config and parses it like any other, then plans the stored
// tensors, which weights_out writes (inflated_rows.c).
//
// Invariant of a plan: the parts of a tensor follow each other without gaps and fill all of its rows.
#include "engine/model/make/inflate.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/make/placement.h"
#include "engine/model/make/weights_out.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT = 2 }; // FORMAT: of the written files, part of every key
static const char MARK[] = "outpace_inflate";

// The files to read, and the config that follows from them.
typedef struct Sources {
    const InflateOptions *o;
    Model small, large;   // large: config only
    ModelWeights weights; // of the small one
    Adapter adapter;      // to inflate; empty if the model is inflated
    AdapterKind kind;     // of the adapter to be written
    json_t *config;       // to be written
    char key[SHA256_TEXT];
} Sources;

typedef struct InflatePlan {
    WeightsOut out;
    Part *parts;
    int *first; // (out.count + 1): of each tensor's parts
    int part_count;
    Inflation inflation;
    Placement places;
} InflatePlan;

// --- config

static json_t *read_object(const char *path, Error *e) {
    json_auto_t *root = json_from_file(path, MADE_MAX_CONFIG, e);
    if (json_is_object(root)) return json_incref(root);
    if (root) error_input(e, "'%s' must be a JSON object", path);
    return NULL;
}

// Takes over the keys that the model's function depends on, and removes those that only one model has. Keys
// that the small model's config lacks have the same defaults in both.
static void take_over(json_t *root, const json_t *small) {
    static const char *const keys[] = {"hidden_act",
                                       "rope_theta",
                                       "rope_scaling",
                                       "rope_parameters",
                                       "partial_rotary_factor",
                                       "original_max_position_embeddings",
                                       "bos_token_id"};
    static const char *const gone[] = {"dtype",
                                       "pad_token_id",
                                       "sliding_window",
                                       "max_window_layers",
                                       "use_sliding_window",
                                       "layer_types",
                                       "outpace_synth",
                                       MARK};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) json_object_del(root, gone[i]);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(small, keys[i]);
        if (value) json_object_set(root, keys[i], value);
        else json_object_del(root, keys[i]);
    }
}

static void set_numbers(json_t *root, const json_t *small_root, const Model *small) {
    static const char *const dtypes[] = {"float32", "float16", "bfloat16"};
    const json_t *epsilon = json_object_get(small_root, "rms_norm_eps");
    json_int_t width = json_integer_value(json_object_get(root, "hidden_size"));
    double ratio = width > 0 ? small->shape.width / (double)width : 1; // config_parse refuses a bad width
    json_t *ends = json_array();
    for (int i = 0; i < small->eos_count; i++) json_array_append_new(ends, json_integer(small->eos[i]));
    json_auto_t *more = json_pack(
        "{s:f, s:i, s:i, s:s, s:o}", "rms_norm_eps", (epsilon ? json_number_value(epsilon) : 1e-6) * ratio,
        "max_position_embeddings", small->shape.context, "real_vocab_size", small->shape.real_vocab,
        "torch_dtype", dtypes[small->dtype], "eos_token_id", ends);
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const Architecture *a = type ? architecture_find(type) : NULL;
    if (!small->shape.window && a && a->shape.window) // else its default counts
        json_object_set_new(more, "sliding_window", json_null());
    if (small->shape.window) // in keys that every architecture reads
        json_object_update_missing_new(more,
                                       json_pack("{s:i, s:b, s:i}", "sliding_window", small->shape.window,
                                                 "use_sliding_window", true, "max_window_layers", 0));
    json_object_update(root, more);
}

enum { LABEL = 48 };

// The last part of a path, as plain text that fits any table.
static void label(const char *path, char out[LABEL]) {
    size_t n = strlen(path), begin;
    while (n > 1 && path[n - 1] == '/') n--;
    for (begin = n; begin > 0 && path[begin - 1] != '/'; begin--) {}
    snprintf(out, LABEL, "%.*s", (int)(n - begin), path + begin);
    for (; *out; out++)
        if (*out < ' ' || *out > '~') *out = '?';
}

static void set_marks(json_t *root, const Sources *s, const char identity[SHA256_TEXT]) {
    char small[LABEL], shape[LABEL], text[MODEL_STAND_IN];
    label(s->o->small, small);
    label(s->o->shape, shape);
    snprintf(text, sizeof text, "%s (%.12s) inflated to %s", small, identity, shape);
    json_t *mark =
        json_pack("{s:s, s:s, s:I}", "key", s->key, "shape", shape, "seed", (json_int_t)s->o->seed);
    json_object_set_new(root, "outpace_stand_in", json_string(text));
    json_object_set_new(root, MARK, mark);
}

// config.json of the large model, without marks; parsed into s->large.
static json_t *large_config(Sources *s, Error *e) {
    LOCAL_MEMORY char *small_path = file_path(s->o->small, "config.json"),
                      *shape_path = shape_file(s->o->shape, e);
    json_auto_t *small = shape_path ? read_object(small_path, e) : NULL;
    json_auto_t *root = small ? read_object(shape_path, e) : NULL;
    json_int_t vocabulary = json_integer_value(json_object_get(root, "vocab_size"));
    bool ok = root;
    // Checked before ids are, whose message would hide the cause.
    if (vocabulary > 0 && vocabulary < s->small.shape.vocab)
        ok =
            error_input(e, "the vocabulary of '%s' is %lld, the model to inflate has %d: take a larger shape",
                        s->o->shape, (long long)vocabulary, s->small.shape.vocab);
    if (ok) {
        take_over(root, small);
        set_numbers(root, small, &s->small);
    }
    LOCAL_MEMORY char *text = ok ? json_text(root, JSON_SORT_KEYS) : NULL;
    ok = ok && config_parse(&s->large, text, strlen(text), s->o->shape, e);
    return ok ? json_incref(root) : NULL;
}

// --- does it fit?

// Norms of heads come out right only at the head size and epsilon that they were trained with.
static bool check_weight(const Sources *s, Weight w, Error *e) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    bool small = weight_present(&s->small.shape, 0, w), large = weight_present(&s->large.shape, 0, w);
    const char *ending = row->kind == WEIGHT_BIAS ? "bias" : "weight";
    if (small && (w == W_Q_NORM || w == W_K_NORM))
        return error_input(e,
                           "'%s' has '%s.%s' tensors, which cannot be inflated: take a model without them; "
                           "model synth makes a random one of any shape",
                           s->o->small, row->name, ending);
    if (large && (w == W_Q_NORM || w == W_K_NORM))
        return error_input(
            e, "'%s' has '%s.%s' tensors, '%s' doesn't: take a shape without them, such as mistral-7b",
            s->o->shape, row->name, ending, s->o->small);
    return large || !small ||
           error_input(e, "'%s' has '%s.%s' tensors, '%s' doesn't: take a shape of its architecture",
                       s->o->small, row->name, ending, s->o->shape);
}

static bool check_fit(const Sources *s, Error *e) {
    const Shape *small = &s->small.shape, *large = &s->large.shape;
    if (s->o->first > small->layers)
        return error_input(e, "the first %d layers are to stay the first, '%s' has %d", s->o->first,
                           s->o->small, small->layers);
    if (large->tied_head && !small->tied_head)
        return error_input(e,
                           "the head of '%s' is its embedding, that of '%s' is not: take a shape without "
                           "tie_word_embeddings",
                           s->o->shape, s->o->small);
    if (!shape_is_plain(small) || !shape_is_plain(large))
        return error_input(
            e,
            "'%s' computes other things than Llama in its layers, and cannot be inflated: take "
            "llama, mistral, qwen2 or phi3",
            shape_is_plain(small) ? s->o->shape : s->o->small);
    for (Weight w = 0; w < LAYER_WEIGHTS; w++)
        if (!check_weight(s, w, e)) return false;
    return true;
}

static bool other_embedding(const Sources *s) {
    return s->adapter.models[0].embedding.data != s->small.embedding.data;
}

// An inflated draft of EAGLE's has no more than such a draft has by default.
static bool check_eagle(const Sources *s, Error *e) {
    const Model *m = &s->adapter.models[0];
    const Shape own = m->shape, usual = adapter_shape(&s->adapter.kind, &s->small.shape);
    if (s->adapter.kind.variant == ADAPTER_DFLASH)
        return error_input(e, "'%s' guesses blocks (DFlash), and cannot be inflated", s->o->adapter);
    bool turns_same = own.rope.kind == ROPE_PLAIN && fabs(own.rope.theta - usual.rope.theta) < 1e-9;
    const char *what = s->adapter.draft_ids ? "a vocabulary of its own (d2t)"
                       : other_embedding(s) && m->shape.input == INPUT_PAIRED ? "an embedding of its own"
                       : own.normed_residual                                  ? "norm_before_residual"
                       : own.fc_norm                                          ? "norms before fc"
                       : own.mask_token                                       ? "a mask (P-EAGLE)"
                       : own.qk_norm                                          ? "norms of q and k"
                       : own.normed_output                                    ? "norm_output"
                       : own.qkv_bias                                         ? "biases of q, k and v"
                       : !turns_same ? "other rotary frequencies than its target"
                                     : NULL;
    return !adapter_is_eagle(s->adapter.kind.variant) || !what ||
           error_input(e, "'%s' has %s, and cannot be inflated: take a draft without", s->o->adapter, what);
}

static Layers layers_of(const Sources *s) {
    return (Layers){s->small.shape.layers, s->large.shape.layers, s->o->first};
}

// Gives the adapter as many query heads per key head as the small one has, if the large model's heads allow
// it.
static void choose_kind(Sources *s) {
    const AdapterKind *small = &s->adapter.kind;
    int heads = s->large.shape.heads;
    const Layers layers = layers_of(s);
    int group = small->kv_heads ? s->small.shape.heads / small->kv_heads : 1;
    s->kind = *small;
    s->kind.exit_layer = small->variant >= ADAPTER_MEDUSA ? s->large.shape.layers
                                                          : placement_layer(&layers, small->exit_layer);
    for (int i = 0; i < small->captures.count; i++)
        s->kind.captures.layers[i] = small->captures.layers[i] == layers.small
                                         ? layers.large // an MTP layer's
                                         : placement_layer(&layers, small->captures.layers[i]);
    if (small->kv_heads) s->kind.kv_heads = heads % group == 0 ? heads / group : 0;
}

static bool make_key(Sources *s, char identity[SHA256_TEXT], Error *e) {
    char adapter[SHA256_TEXT] = "none";
    LOCAL_MEMORY char *config = json_text(s->config, JSON_SORT_KEYS | JSON_COMPACT);
    LOCAL_TEXT all = {0};
    bool ok = model_identity(&s->weights, s->o->small, identity, e);
    if (ok && s->o->adapter) ok = model_identity(&s->adapter.weights, s->o->adapter, adapter, e);
    text_printf(&all, "inflate %d\n%s\n%s\n%llu\n%s\n", FORMAT, identity, adapter,
                (unsigned long long)s->o->seed, config);
    if (s->o->first) text_printf(&all, "first %d\n", s->o->first);
    return ok && sha256_bytes(text_get(&all), all.length, s->key, e);
}

// Replaces the model's config, which is part of the key, by the adapter's.
static bool adapter_config_json(Sources *s, Error *e) {
    LOCAL_TEXT text = {0};
    adapter_config(&s->kind, &s->large.shape, &text);
    json_decref(s->config);
    s->config = json_from_bytes(text_get(&text), text.length, s->o->adapter, e);
    if (!s->config || s->adapter.trained <= 0) return s->config;
    json_int_t tokens = s->adapter.trained;
    bool eagle = adapter_is_eagle(s->kind.variant);
    json_object_set_new(s->config, eagle ? "outpace" : "outpace_train",
                        json_pack("{s:I}", eagle ? "trained_tokens" : "tokens", tokens));
    return true;
}

static void sources_close(Sources *s) {
    json_decref(s->config);
    adapter_close(&s->adapter);
    model_close(&s->weights);
}

static bool sources_open(Sources *s, const InflateOptions *o, Error *e) {
    char identity[SHA256_TEXT];
    *s = (Sources){.o = o};
    if (!model_open(&s->small, &s->weights, o->small, e)) return false;
    const Tensor *coded = model_coded(&s->small);
    if (coded)
        return error_input(e, "'%s' has weights of %d bits, and can't be inflated: give its original",
                           o->small, coded->codes.bits);
    if (!(s->config = large_config(s, e)) || !check_fit(s, e)) return false;
    if (o->adapter && !(adapter_open(&s->adapter, &s->small, o->adapter, e) && check_eagle(s, e)))
        return false;
    if (!make_key(s, identity, e)) return false;
    if (o->adapter) choose_kind(s);
    if (o->adapter && !adapter_config_json(s, e)) return false;
    set_marks(s->config, s, identity);
    return true;
}

// --- plan

static void fill(const void *source, int tensor, size_t from, size_t count, unsigned char *out) {
    const InflatePlan *p = source;
    Elements which = {.parts = p->parts + p->first[tensor],
                      .part_count = p->first[tensor + 1] - p->first[tensor],
                      .tensor = tensor,
                      .dtype = p->out.tensors[tensor].dtype,
                      .from = from,
                      .count = count};
    inflated_fill(&p->inflation, &which, out);
}

// Adds a weight to the plan; parts of a fused tensor come one after another. `dtype`: of weights that the
// small model lacks.
static void add_part(InflatePlan *p, const WeightSpec *s, const Tensor *small, Dtype dtype) {
    if (!s->name[0]) return;
    TensorPlan *t = &p->out.tensors[p->out.count];
    // Vectors are f32: exact, and they take no time. If the parts of a tensor have two types, it is f32 too.
    Dtype own = s->vector ? DTYPE_F32 : small && small->data ? small->dtype : dtype;
    if (tensor_plan(s, own, t)) p->out.count++;
    else if ((--t)->dtype != own) t->dtype = DTYPE_F32;
    p->parts[p->part_count++] = (Part){s->first_row, s->rows, s->columns, s->which, small};
    p->first[p->out.count] = p->part_count;
}

static void add_model(InflatePlan *p, const Sources *s) {
    const Layers layers = layers_of(s);
    for (int i = 0; i < weights_count(&s->large); i++) {
        WeightSpec w = weights_at(&s->large, i);
        int from = w.layer < 0 ? 0 : placement_layer_from(&layers, w.layer);
        add_part(p, &w, from < 0 ? NULL : weight_tensor(&s->small, from, 0, w.which), s->small.dtype);
    }
}

static void add_adapter(InflatePlan *p, const Sources *s) {
    WeightSpec specs[WEIGHTS];
    Shape large = adapter_shape(&s->kind, &s->large.shape);
    for (int i = 0; i < s->kind.heads; i++) {
        const Model *small = &s->adapter.models[i];
        adapter_weights(s->kind.variant, &large, i, specs);
        if (!other_embedding(s)) specs[W_EMBEDDING].name[0] = 0;
        for (Weight w = 0; w < WEIGHTS; w++)
            add_part(p, &specs[w], weight_tensor(small, 0, 0, w), small->dtype);
    }
}

static void check_plan(const InflatePlan *p) {
    for (int i = 0; i < p->out.count; i++) {
        UNUSED size_t row = 0;
        for (int k = p->first[i]; k < p->first[i + 1]; k++) {
            assert((size_t)p->parts[k].first_row == row &&
                   (size_t)p->parts[k].columns == p->out.tensors[i].columns);
            row += (size_t)p->parts[k].rows;
        }
        assert(row == p->out.tensors[i].rows);
    }
    assert(p->first[p->out.count] == p->part_count);
}

static bool plan_init(InflatePlan *p, Sources *s, Error *e) {
    bool adapter = s->o->adapter != NULL;
    size_t most = adapter ? (size_t)ADAPTER_HEADS_MAX * WEIGHTS : (size_t)weights_count(&s->large);
    Shape large = adapter ? adapter_shape(&s->kind, &s->large.shape) : s->large.shape;
    *p =
        (InflatePlan){.out = {.fill = fill,
                              .source = p,
                              .shard_bytes = adapter ? SIZE_MAX : s->o->shard_bytes, // an adapter is one file
                              .progress = s->o->progress},
                      .inflation = {&p->places, (double)large.width / s->small.shape.width, s->o->seed}};
    const Shape *small = adapter ? &s->adapter.models[0].shape : &s->small.shape;
    if (!placement_init(&p->places, small, &large, s->o->shape, e)) return false;
    p->out.tensors = mem_new(most, sizeof *p->out.tensors);
    p->parts = mem_new(most, sizeof *p->parts);
    p->first = mem_new(most + 1, sizeof *p->first);
    if (adapter) add_adapter(p, s);
    else add_model(p, s);
    check_plan(p);
    return true;
}

static void plan_release(InflatePlan *p) {
    placement_release(&p->places);
    MEM_FREE(p->out.tensors, p->parts, p->first);
}

// --- the directory

bool model_inflate(const char *dir, const InflateOptions *o, Error *e) {
    LOCAL(sources_close) Sources s = {0};
    LOCAL(plan_release) InflatePlan p = {0};
    Made made = {dir, "inflate", MARK, .adapter = o->adapter, .force = o->force};
    return sources_open(&s, o, e) && plan_init(&p, &s, e) &&
           weights_made(&p.out, &made, s.config, o->adapter ? NULL : o->small, e);
}

bool inflate_describe(const InflateOptions *o, Inflated *out, Error *e) {
    LOCAL(sources_close) Sources s = {0};
    LOCAL(plan_release) InflatePlan p = {0};
    if (!sources_open(&s, o, e)) return false;
    bool ok = plan_init(&p, &s, e); // checks that the small one fits into the large one
    *out = (Inflated){.model = s.large, .kind = s.kind};
    out->model.dtype = s.small.dtype;
    memcpy(out->key, s.key, SHA256_TEXT);
    return ok;
}

bool inflate_is(const char *dir, const char key[SHA256_TEXT]) {
    LOCAL_MEMORY char *path = file_path(dir, "config.json");
    json_auto_t *root = file_exists(path) ? json_from_file(path, MADE_MAX_CONFIG, NULL) : NULL;
    const char *its = json_string_value(json_object_get(json_object_get(root, MARK), "key"));
    return its && strcmp(its, key) == 0;
}
