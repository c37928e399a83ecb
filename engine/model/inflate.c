// The small model is opened, the large one's config put together and read as any other; then the list of
// stored tensors is laid out, and weights_out writes them, part by part (inflated_rows.h).
#include "engine/model/inflate.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "engine/model/placement.h"
#include "engine/model/made.h"
#include "engine/model/weights_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FORMAT = 1, MAX_TOKENIZER = 64 << 20 }; // FORMAT: of what is written, as keys take it in
static const char MARK[] = "outpace_inflate";

// What is read, and what becomes of it.
typedef struct Sources {
    const InflateOptions *o;
    Model small, large; // large: config only
    Adapter adapter;    // empty, unless it is what is inflated
    AdapterKind kind;   // of the adapter to be written
    json_t *config;     // to be written
    char key[SHA256_TEXT];
} Sources;

typedef struct Plan {
    WeightsOut out;
    Part *parts;
    int *first; // (out.count + 1): of each tensor's parts
    int part_count;
    Inflation inflation;
    Placement places;
} Plan;

// --- config

static json_t *read_object(const char *path, Error *e) {
    json_t *root = json_from_file(path, MADE_MAX_CONFIG, e);
    if (root && !json_is_object(root)) {
        error_input(e, "'%s' must be a JSON object", path);
        json_decref(root);
        return NULL;
    }
    return root;
}

// Takes over what the function hangs on; where the small model's config says nothing, the defaults are the
// same.
static bool take_over(json_t *root, const json_t *small) {
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
    bool ok = true;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) json_object_del(root, gone[i]);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *value = json_object_get(small, keys[i]);
        if (value) ok = json_object_set(root, keys[i], value) == 0 && ok;
        else json_object_del(root, keys[i]);
    }
    return ok;
}

static json_t *eos_list(const Model *m) {
    json_t *list = json_array();
    for (int i = 0; i < m->eos_count; i++) json_array_append_new(list, json_integer(m->eos[i]));
    return list;
}

static bool set_numbers(json_t *root, const json_t *small_root, const Model *small) {
    static const char *const dtypes[] = {"float32", "float16", "bfloat16"};
    const json_t *epsilon = json_object_get(small_root, "rms_norm_eps");
    double width = json_number_value(json_object_get(root, "hidden_size"));
    double ratio = width > 0 ? small->shape.width / width : 1; // a bad width is refused when it is parsed
    json_t *more = json_pack("{s:f, s:i, s:i, s:s, s:o}", "rms_norm_eps",
                             (epsilon ? json_number_value(epsilon) : 1e-6) * ratio, "max_position_embeddings",
                             small->shape.context, "real_vocab_size", small->shape.real_vocab, "torch_dtype",
                             dtypes[small->dtype], "eos_token_id", eos_list(small));
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const Architecture *a = type ? architecture_find(type) : NULL;
    if (more && !small->shape.window && a && a->window) // which it would have where it says nothing
        json_object_set_new(more, "sliding_window", json_null());
    if (more && small->shape.window) // in the words that every architecture is read by
        json_object_update_missing_new(more,
                                       json_pack("{s:i, s:b, s:i}", "sliding_window", small->shape.window,
                                                 "use_sliding_window", true, "max_window_layers", 0));
    bool ok = more && json_object_update(root, more) == 0;
    json_decref(more);
    return ok;
}

enum { LABEL = 48 };

// The last part of a path, as plain text that any table can take.
static void label(const char *path, char out[LABEL]) {
    size_t n = strlen(path), begin;
    while (n > 1 && path[n - 1] == '/') n--;
    for (begin = n; begin > 0 && path[begin - 1] != '/'; begin--) {}
    snprintf(out, LABEL, "%.*s", (int)(n - begin), path + begin);
    for (; *out; out++)
        if (*out < ' ' || *out > '~') *out = '?';
}

static bool set_marks(json_t *root, const Sources *s, const char identity[SHA256_TEXT]) {
    char small[LABEL], shape[LABEL], text[MODEL_STAND_IN];
    label(s->o->small, small);
    label(s->o->shape, shape);
    snprintf(text, sizeof text, "%s (%.12s) inflated to %s", small, identity, shape);
    json_t *mark =
        json_pack("{s:s, s:s, s:I}", "key", s->key, "shape", shape, "seed", (json_int_t)s->o->seed);
    return json_object_set_new(root, "outpace_stand_in", json_string(text)) == 0 &&
           json_object_set_new(root, MARK, mark) == 0;
}

// Before ids are checked against it: the message would be about them.
static bool check_vocabulary(const json_t *root, const Sources *s, Error *e) {
    json_int_t vocabulary = json_integer_value(json_object_get(root, "vocab_size"));
    return vocabulary >= s->small.shape.vocab || vocabulary <= 0 ||
           error_input(e, "the vocabulary of '%s' is %lld, the model to inflate has %d: take a larger shape",
                       s->o->shape, (long long)vocabulary, s->small.shape.vocab);
}

// config.json of the large model, without marks; parsed into s->large.
static json_t *large_config(Sources *s, Error *e) {
    char *small_path = file_path(s->o->small, "config.json"), *shape_path = shape_file(s->o->shape, e);
    json_t *small = shape_path ? read_object(small_path, e) : NULL;
    json_t *root = small ? read_object(shape_path, e) : NULL;
    bool ok = root && check_vocabulary(root, s, e) &&
              ((take_over(root, small) && set_numbers(root, small, &s->small)));
    char *text = ok ? json_text(root, JSON_SORT_KEYS) : NULL;
    ok = ok && config_parse(&s->large, text, strlen(text), s->o->shape, e);
    mem_free(text);
    json_decref(small);
    mem_free(small_path);
    mem_free(shape_path);
    if (ok) return root;
    json_decref(root);
    return NULL;
}

// --- what fits

static bool check_fit(const Sources *s, Error *e) {
    const Shape *small = &s->small.shape, *large = &s->large.shape;
    if (large->tied_head && !small->tied_head)
        return error_input(e,
                           "the head of '%s' is its embedding, that of '%s' is not: take a shape without "
                           "tie_word_embeddings",
                           s->o->shape, s->o->small);
    if (small->qkv_bias && !large->qkv_bias)
        return error_input(e, "'%s' has attention biases, '%s' has none: take a shape of its architecture",
                           s->o->small, s->o->shape);
    if (small->qk_norm) // which come out right for heads, and an epsilon, of the size that they have only
        return error_input(e,
                           "'%s' norms the q and k of each head, which cannot be inflated: take a model that "
                           "does not; a random one of any shape is made by model synth",
                           s->o->small);
    if (large->qk_norm)
        return error_input(e,
                           "'%s' norms the q and k of each head, '%s' does not: take a shape that does not, "
                           "as mistral-7b",
                           s->o->shape, s->o->small);
    return true;
}

// As many query heads to a key head as the small adapter has, where the large model's heads allow that.
static void choose_kind(Sources *s) {
    const AdapterKind *small = &s->adapter.kind;
    int heads = s->large.shape.heads, layers = s->small.shape.layers;
    int group = small->kv_heads ? s->small.shape.heads / small->kv_heads : 1;
    s->kind = *small;
    s->kind.exit_layer = small->variant == ADAPTER_MEDUSA
                             ? s->large.shape.layers
                             : placement_layer(small->exit_layer, layers, s->large.shape.layers);
    if (small->kv_heads) s->kind.kv_heads = heads % group == 0 ? heads / group : 0;
}

static bool make_key(Sources *s, char identity[SHA256_TEXT], Error *e) {
    char adapter[SHA256_TEXT] = "none";
    char *config = json_text(s->config, JSON_SORT_KEYS | JSON_COMPACT);
    Text all = {0};
    bool ok = model_identity(&s->small, s->o->small, identity, e);
    if (ok && s->o->adapter)
        ok =
            model_identity(&(Model){.shards = &s->adapter.file, .shard_count = 1}, s->o->adapter, adapter, e);
    text_printf(&all, "inflate %d\n%s\n%s\n%llu\n%s\n", FORMAT, identity, adapter,
                (unsigned long long)s->o->seed, config ? config : "");
    ok = ok && sha256_bytes(text_get(&all), all.length, s->key, e);
    mem_free(config);
    text_release(&all);
    return ok;
}

// An adapter's config says less than its model's: that has gone into the key.
static bool adapter_config_json(Sources *s, Error *e) {
    Text text = {0};
    adapter_config(&s->kind, &s->large.shape, &text);
    json_decref(s->config);
    s->config = json_from_bytes(text_get(&text), text.length, s->o->adapter, e);
    text_release(&text);
    return s->config;
}

static void sources_close(Sources *s) {
    json_decref(s->config);
    adapter_close(&s->adapter);
    model_close(&s->small);
}

static bool sources_open(Sources *s, const InflateOptions *o, Error *e) {
    char identity[SHA256_TEXT];
    *s = (Sources){.o = o};
    bool ok = model_open(&s->small, o->small, e) && (s->config = large_config(s, e)) && check_fit(s, e) &&
              (!o->adapter || adapter_open(&s->adapter, &s->small, o->adapter, e)) &&
              make_key(s, identity, e);
    if (ok && o->adapter) {
        choose_kind(s);
        ok = adapter_config_json(s, e);
    }
    ok = ok && set_marks(s->config, s, identity);
    if (!ok) sources_close(s);
    return ok;
}

// --- plan

static void fill(const void *source, int tensor, size_t from, size_t count, unsigned char *out) {
    const Plan *p = source;
    Elements which = {.parts = p->parts + p->first[tensor],
                      .part_count = p->first[tensor + 1] - p->first[tensor],
                      .tensor = tensor,
                      .dtype = p->out.tensors[tensor].dtype,
                      .from = from,
                      .count = count};
    inflated_fill(&p->inflation, &which, out);
}

// Vectors are f32 (they are not what a step's time goes into, and so exact); parts of one tensor that come
// from two types have one that holds both.
static Dtype dtype_for(const WeightSpec *s, const Tensor *small, Dtype dtype) {
    return s->vector ? DTYPE_F32 : small && small->data ? small->dtype : dtype;
}

// The parts of a fused tensor follow each other. `dtype`: of weights that the small model does not have.
static void add_part(Plan *p, const WeightSpec *s, int role, const Tensor *small, Dtype dtype) {
    if (!s->name[0]) return;
    TensorPlan *t = &p->out.tensors[p->out.count];
    Dtype own = dtype_for(s, small, dtype);
    if (tensor_plan(s, own, t)) p->out.count++;
    else if ((--t)->dtype != own) t->dtype = DTYPE_F32;
    p->parts[p->part_count++] = (Part){s->first_row, s->rows, s->columns, role, small};
    p->first[p->out.count] = p->part_count;
}

static void add_layer(Plan *p, const WeightSpec *specs, LayerWeights *small, Dtype dtype) {
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        add_part(p, &specs[i], i, small ? weights_field(small, i) : NULL, dtype);
}

static void add_model(Plan *p, Sources *s) {
    WeightSpec specs[LAYER_WEIGHTS], ends[3];
    int end_count = weights_of_ends(&s->large, ends), layers = s->large.shape.layers;
    add_part(p, &ends[0], ROLE_EMBEDDING, &s->small.embedding, s->small.dtype);
    for (int i = 0; i < layers; i++) {
        int from = placement_layer_from(i, s->small.shape.layers, layers);
        weights_of_layer(&s->large, i, specs);
        add_layer(p, specs, from >= 0 ? &s->small.layers[from] : NULL, s->small.dtype);
    }
    add_part(p, &ends[1], ADAPTER_FINAL_NORM, &s->small.final_norm, s->small.dtype);
    if (end_count == 3) add_part(p, &ends[2], ADAPTER_HEAD, &s->small.head, s->small.dtype);
}

static void add_adapter(Plan *p, Sources *s) {
    WeightSpec specs[ADAPTER_WEIGHTS];
    Shape large = adapter_shape(&s->kind, &s->large.shape);
    for (int i = 0; i < s->kind.heads; i++) {
        Model *small = &s->adapter.models[i];
        adapter_weights(s->kind.variant, &large, i, specs);
        add_layer(p, specs, small->layers, small->dtype);
        add_part(p, &specs[ADAPTER_FINAL_NORM], ADAPTER_FINAL_NORM, &small->final_norm, small->dtype);
        add_part(p, &specs[ADAPTER_HEAD], ADAPTER_HEAD, &small->head, small->dtype);
    }
}

static bool plan_init(Plan *p, Sources *s, Error *e) {
    bool adapter = s->o->adapter != NULL;
    size_t most = adapter ? (size_t)ADAPTER_HEADS_MAX * ADAPTER_WEIGHTS
                          : (size_t)s->large.shape.layers * LAYER_WEIGHTS + 3;
    Shape large = adapter ? adapter_shape(&s->kind, &s->large.shape) : s->large.shape;
    *p = (Plan){.out = {.fill = fill,
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
    return true;
}

static void plan_release(Plan *p) {
    placement_release(&p->places);
    mem_free(p->out.tensors);
    mem_free(p->parts);
    mem_free(p->first);
}

// --- the directory

static bool copy_file(const char *from_dir, const char *to_dir, const char *name, Error *e) {
    char *from = file_path(from_dir, name), *to = file_path(to_dir, name), *bytes = NULL;
    size_t n;
    bool ok = (from && to);
    if (ok && file_exists(from))
        ok = file_read(from, MAX_TOKENIZER, &bytes, &n, e) && file_write(to, bytes, n, e);
    mem_free(bytes);
    mem_free(from);
    mem_free(to);
    return ok;
}

static bool write_files(Plan *p, const Sources *s, const char *dir, Error *e) {
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "tokenizer.model",
                                        "generation_config.json"};
    for (size_t i = 0; !s->o->adapter && i < sizeof files / sizeof *files; i++)
        if (!copy_file(s->o->small, dir, files[i], e)) return false;
    return weights_out(&p->out, dir, e);
}

bool model_inflate(const char *dir, const InflateOptions *o, Error *e) {
    Sources s;
    Plan p;
    Made made = {dir, "inflate", MARK, .adapter = o->adapter, .force = o->force};
    if (!sources_open(&s, o, e)) return false;
    bool ok = plan_init(&p, &s, e) && made_begin(&made, s.config, e);
    if (ok && !(write_files(&p, &s, dir, e) && made_finish(&made, e))) {
        made_abandon(&made);
        ok = false;
    }
    plan_release(&p);
    sources_close(&s);
    return ok;
}

bool inflate_describe(const InflateOptions *o, Inflated *out, Error *e) {
    Sources s;
    Plan p;
    if (!sources_open(&s, o, e)) return false;
    bool ok = plan_init(&p, &s, e); // which sees that the small one fits into the large one
    *out = (Inflated){.model = s.large, .kind = s.kind};
    out->model.dtype = s.small.dtype;
    memcpy(out->key, s.key, SHA256_TEXT);
    plan_release(&p);
    sources_close(&s);
    return ok;
}

bool inflate_is(const char *dir, const char key[SHA256_TEXT]) {
    char *path = file_path(dir, "config.json");
    json_t *root = path && file_exists(path) ? json_from_file(path, MADE_MAX_CONFIG, NULL) : NULL;
    const char *its = json_string_value(json_object_get(json_object_get(root, MARK), "key"));
    bool same = its && strcmp(its, key) == 0;
    json_decref(root);
    mem_free(path);
    return same;
}
