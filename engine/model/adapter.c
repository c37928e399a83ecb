// An adapter is a model of one layer with parts missing (LayerWeights says which may be). The list of its
// weights is made once, by adapter_weights; opening and synth read it.
#include "engine/model/adapter.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/synth.h"

#include <stdio.h>
#include <string.h>

enum { MAX_JSON = 1 << 16 };

static const char MODEL_TYPE[] = "outpace_adapter";
static const char *const VARIANTS[] = {"kangaroo", "with-head", "one-layer", "mlp", "medusa"};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof *VARIANTS };

const char *adapter_variant_name(AdapterVariant v) { return VARIANTS[v]; }

bool adapter_variant_find(const char *name, AdapterVariant *out, Error *e) {
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (strcmp(VARIANTS[i], name) == 0) {
            *out = (AdapterVariant)i;
            return true;
        }
    return error_input(
        e, "there is no adapter variant '%s': kangaroo, with-head, one-layer, mlp and medusa are known",
        name);
}

// --- what it looks like

static bool has_attention(AdapterVariant v) { return v != ADAPTER_MLP && v != ADAPTER_MEDUSA; }

static bool has_head(AdapterVariant v) {
    return v == ADAPTER_WITH_HEAD || v == ADAPTER_MLP || v == ADAPTER_MEDUSA;
}

// Without attention the cache is as small as one can be.
Shape adapter_shape(const AdapterKind *kind, const Shape *target) {
    Shape s = *target;
    s.input = INPUT_HIDDEN;
    s.layers = 1;
    s.kv_heads = kind->kv_heads ? kind->kv_heads : s.heads;
    s.qkv_bias = s.qk_norm = s.tied_head = false;
    s.mlp_width = kind->variant == ADAPTER_ONE_LAYER ? target->mlp_width
                  : has_attention(kind->variant)     ? 0
                                                     : s.width;
    if (has_attention(kind->variant)) return s;
    s.activation = ACTIVATION_SILU;
    s.heads = s.kv_heads = 1;
    s.head_dim = 2;
    s.rope = (Rope){.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 1, .attention_factor = 1};
    return s;
}

static WeightSpec weight(const char *name, int rows, int columns, bool vector) {
    WeightSpec s = {.rows = rows, .columns = columns, .stored_rows = rows, .vector = vector};
    snprintf(s.name, sizeof s.name, "%s.weight", name);
    return s;
}

static WeightSpec matrix(const char *name, int rows, int columns) {
    return weight(name, rows, columns, false);
}
static WeightSpec vector(const char *name, int n) { return weight(name, 1, n, true); }

static void medusa_weights(const Shape *s, int head, WeightSpec specs[ADAPTER_WEIGHTS]) {
    char name[32];
    snprintf(name, sizeof name, "%d.0.linear", head);
    specs[WEIGHT_GATE] = matrix(name, s->width, s->width);
    specs[WEIGHT_GATE_BIAS] = vector(name, s->width);
    snprintf(specs[WEIGHT_GATE_BIAS].name, TENSOR_NAME, "%d.0.linear.bias", head);
    snprintf(name, sizeof name, "%d.1", head);
    specs[ADAPTER_HEAD] = matrix(name, s->vocab, s->width);
}

void adapter_weights(AdapterVariant v, const Shape *s, int head, WeightSpec specs[ADAPTER_WEIGHTS]) {
    int q = shape_q_width(s), kv = shape_kv_width(s), width = s->width, mlp = s->mlp_width;
    for (int i = 0; i < ADAPTER_WEIGHTS; i++) specs[i] = (WeightSpec){.name = ""};
    if (v == ADAPTER_MEDUSA) {
        medusa_weights(s, head, specs);
        return;
    }
    specs[ADAPTER_FINAL_NORM] = vector("norm", width);
    if (has_head(v)) specs[ADAPTER_HEAD] = matrix("lm_head", s->vocab, width);
    if (v == ADAPTER_MLP) {
        specs[WEIGHT_MLP_NORM] = vector("input_layernorm", width);
        specs[WEIGHT_GATE] = matrix("linear.0", width, width);
        specs[WEIGHT_DOWN] = matrix("linear.1", width, width);
        return;
    }
    specs[WEIGHT_ATTENTION_NORM] = vector("input_layernorm", width);
    specs[WEIGHT_Q] = matrix("self_attn.q_proj", q, width);
    specs[WEIGHT_K] = matrix("self_attn.k_proj", kv, width);
    specs[WEIGHT_V] = matrix("self_attn.v_proj", kv, width);
    specs[WEIGHT_O] = matrix("self_attn.o_proj", width, q);
    if (v != ADAPTER_ONE_LAYER) return;
    specs[WEIGHT_MLP_NORM] = vector("post_attention_layernorm", width);
    specs[WEIGHT_GATE] = matrix("mlp.gate_proj", mlp, width);
    specs[WEIGHT_UP] = matrix("mlp.up_proj", mlp, width);
    specs[WEIGHT_DOWN] = matrix("mlp.down_proj", width, mlp);
}

bool adapter_check(const AdapterKind *k, const Model *target, const char *place, Error *e) {
    int layers = target->shape.layers, heads = target->shape.heads;
    if (k->variant != ADAPTER_MEDUSA && (k->exit_layer < 1 || k->exit_layer >= layers))
        return error_input(e, "the exit layer of '%s' is %d, must be from 1 to %d, below the target's last",
                           place, k->exit_layer, layers - 1);
    if (k->heads < 1 || k->heads > ADAPTER_HEADS_MAX)
        return error_input(e, "'%s' has %d heads, must be from 1 to %d", place, k->heads, ADAPTER_HEADS_MAX);
    if (k->kv_heads < 0 || k->kv_heads > heads || (k->kv_heads && heads % k->kv_heads))
        return error_input(e, "'%s' has %d key-value heads, which must divide the target's %d heads", place,
                           k->kv_heads, heads);
    return true;
}

// --- opening

void adapter_describe(Adapter *a, const AdapterKind *kind, const Model *target) {
    *a = (Adapter){.kind = *kind};
    for (int i = 0; i < kind->heads; i++) {
        a->models[i] =
            (Model){.shape = adapter_shape(&a->kind, &target->shape), .dtype = target->dtype, .bos = -1};
        snprintf(a->models[i].architecture, sizeof a->models[i].architecture, "%s",
                 VARIANTS[a->kind.variant]);
    }
}

static bool same_size(const json_t *root, const char *key, int want, const char *place, Error *e) {
    int64_t got;
    if (!field_int(root, key, 1, 1 << 24, &got, place, e)) return false;
    return got == want || error_input(e, "'%s' in '%s' is %lld, the target's is %d: it is of another model",
                                      key, place, (long long)got, want);
}

static bool read_kind(const json_t *root, const Model *target, const char *place, AdapterKind *out,
                      Error *e) {
    const char *type = json_string_value(json_object_get(root, "model_type"));
    if (!type || strcmp(type, MODEL_TYPE) != 0)
        return error_input(e, "'%s' has no \"model_type\": \"%s\": it is not an adapter's", place,
                           MODEL_TYPE);
    const char *variant = field_text(root, "variant", place, e);
    if (!variant) return false;
    if (!adapter_variant_find(variant, &out->variant, e)) return error_within(e, "%s", place);
    int64_t layer = target->shape.layers, heads = 1, kv_heads = 0;
    bool medusa = out->variant == ADAPTER_MEDUSA;
    if (!medusa && !field_int(root, "exit_layer", 1, 1000, &layer, place, e)) return false;
    if (medusa && !field_int(root, "heads", 1, ADAPTER_HEADS_MAX, &heads, place, e)) return false;
    if (!field_int_optional(root, "num_key_value_heads", 1, 1 << 10, &kv_heads, place, e)) return false;
    out->exit_layer = (int)layer;
    out->heads = (int)heads;
    out->kv_heads = (int)kv_heads;
    return same_size(root, "hidden_size", target->shape.width, place, e) &&
           same_size(root, "vocab_size", target->shape.vocab, place, e) &&
           adapter_check(out, target, place, e);
}

static bool read_config(Adapter *a, const Model *target, const char *path, Error *e) {
    if (!file_exists(path))
        return error_input(e, "there is no readable '%s': give an adapter's directory", path);
    json_t *root = json_from_file(path, MAX_JSON, e);
    bool ok = root && (json_is_object(root) || error_input(e, "'%s' must be a JSON object", path));
    ok = ok && read_kind(root, target, path, &a->kind, e);
    if (ok) adapter_describe(a, &a->kind, target);
    if (ok)
        a->trained = json_integer_value(json_object_get(json_object_get(root, "outpace_train"), "tokens"));
    json_decref(root);
    return ok;
}

bool adapter_open_config(Adapter *a, const Model *target, const char *dir, Error *e) {
    *a = (Adapter){.kind.variant = ADAPTER_KANGAROO};
    char *path = file_path(dir, "config.json");
    bool ok = read_config(a, target, path, e);
    mem_free(path);
    if (!ok) adapter_close(a);
    return ok;
}

static bool bind(Adapter *a, int head, const Model *target, const Shard *shard, const char *dir, Error *e) {
    Model *m = &a->models[head];
    WeightSpec specs[ADAPTER_WEIGHTS];
    m->layers = mem_new(1, sizeof *m->layers);
    adapter_weights(a->kind.variant, &m->shape, head, specs);
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        if (!weight_bind(weights_field(m->layers, i), &specs[i], shard, 1, dir, e)) return false;
    if (!weight_bind(&m->final_norm, &specs[ADAPTER_FINAL_NORM], shard, 1, dir, e)) return false;
    m->head = target->head;
    return weight_bind(&m->head, &specs[ADAPTER_HEAD], shard, 1, dir, e);
}

static bool load(Adapter *a, const Model *target, const char *dir, const char *path, Error *e) {
    Shard shard = {.name = a->file.name};
    bool ok = file_map(path, &a->file.view, e);
    shard.data = a->file.view.data;
    ok = ok && safetensors_parse(shard.data, a->file.view.size, path, &shard.header, e);
    for (int i = 0; ok && i < a->kind.heads; i++) ok = bind(a, i, target, &shard, dir, e);
    safetensors_release(&shard.header);
    return ok;
}

size_t adapter_parameters(const Adapter *a) {
    size_t sum = 0;
    for (int head = 0; head < a->kind.heads && a->models[0].shape.width; head++) {
        WeightSpec specs[ADAPTER_WEIGHTS];
        adapter_weights(a->kind.variant, &a->models[head].shape, head, specs);
        for (int i = 0; i < ADAPTER_WEIGHTS; i++)
            if (specs[i].name[0]) sum += (size_t)specs[i].rows * (size_t)specs[i].columns;
    }
    return sum;
}

bool adapter_open(Adapter *a, const Model *target, const char *dir, Error *e) {
    if (!adapter_open_config(a, target, dir, e)) return false;
    snprintf(a->file.name, sizeof a->file.name, "model.safetensors");
    char *path = file_path(dir, a->file.name);
    bool ok = load(a, target, dir, path, e);
    mem_free(path);
    if (!ok) adapter_close(a);
    return ok;
}

void adapter_close(Adapter *a) {
    for (int i = 0; i < ADAPTER_HEADS_MAX; i++) mem_free(a->models[i].layers);
    file_unmap(&a->file.view);
    *a = (Adapter){.kind.variant = ADAPTER_KANGAROO};
}

// --- writing

void adapter_config(const AdapterKind *k, const Shape *target, Text *t) {
    text_printf(t, "{\"model_type\": \"%s\", \"variant\": \"%s\", ", MODEL_TYPE, VARIANTS[k->variant]);
    if (k->variant == ADAPTER_MEDUSA) text_printf(t, "\"heads\": %d, ", k->heads);
    else text_printf(t, "\"exit_layer\": %d, ", k->exit_layer);
    if (k->kv_heads) text_printf(t, "\"num_key_value_heads\": %d, ", k->kv_heads);
    text_printf(t, "\"hidden_size\": %d, \"vocab_size\": %d}", target->width, target->vocab);
}

bool adapter_synth(const char *dir, const Model *target, const AdapterKind *kind, uint64_t seed, bool force,
                   Error *e) {
    WeightSpec specs[ADAPTER_HEADS_MAX * ADAPTER_WEIGHTS];
    Shape shape = adapter_shape(kind, &target->shape);
    Text config = {0};
    if (!adapter_check(kind, target, dir, e)) return false;
    for (int i = 0; i < kind->heads; i++)
        adapter_weights(kind->variant, &shape, i, specs + (size_t)i * ADAPTER_WEIGHTS);
    adapter_config(kind, &target->shape, &config);
    SynthTensors t = {specs, kind->heads * ADAPTER_WEIGHTS, target->dtype, text_get(&config), seed, force};
    bool ok = synth_tensors(dir, &t, e);
    text_release(&config);
    return ok;
}
