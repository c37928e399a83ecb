// An adapter is a model of one layer, or a few, with parts missing (LayerWeights lists which may be).
// Opening, synth, training and inflation all take its weights from adapter_weights.
#include "engine/model/adapter.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_JSON = 1 << 16 };

static const char MODEL_TYPE[] = "outpace_adapter";
static const char *const VARIANTS[] = {"kangaroo", "with-head", "one-layer", "mlp",   "medusa",
                                       "eagle",    "mtp",       "eagle3",    "dflash"};
enum { VARIANT_COUNT = sizeof VARIANTS / sizeof *VARIANTS };

const char *adapter_role_name(AdapterRole role) {
    return (const char *[]){"adapter", "heads", "eagle", "eagle3", "mtp", "dflash"}[role];
}

const char *adapter_variant_name(AdapterVariant v) { return VARIANTS[v]; }

bool adapter_variant_find(const char *name, AdapterVariant *out, Error *e) {
    for (int i = 0; i < VARIANT_COUNT; i++)
        if (strcmp(VARIANTS[i], name) == 0) {
            *out = (AdapterVariant)i;
            return true;
        }
    LOCAL_TEXT names = {0};
    for (int i = 0; i < VARIANT_COUNT; i++) text_printf(&names, "%s%s", i ? ", " : "", VARIANTS[i]);
    return error_input(e, "unknown adapter variant '%s': %s", name, text_get(&names));
}

// --- shape and weights

// The sizes outside a layer, and what happens to the logits of the target's head.
static Shape plain_of(const Shape *target) {
    return (Shape){.layers = 1,
                   .width = target->width,
                   .vocab = target->vocab,
                   .real_vocab = target->real_vocab,
                   .context = target->context,
                   .window = target->window,
                   .activation = target->activation,
                   .logit_scale = target->logit_scale,
                   .logit_cap = target->logit_cap,
                   .norm_epsilon = target->norm_epsilon};
}

// A layer with the target's sizes, for as many tokens.
static Shape eagle_shape(const AdapterKind *kind, const Shape *target) {
    AdapterVariant v = kind->variant;
    Shape s = plain_of(target);
    s.heads = target->heads;
    s.kv_heads = target->kv_heads;
    s.head_dim = target->head_dim;
    s.mlp_width = target->mlp_width;
    s.input = v == ADAPTER_EAGLE3 ? INPUT_PAIRED : v == ADAPTER_MTP ? INPUT_MTP : INPUT_FUSED;
    s.layers = kind->layers ? kind->layers : 1;
    if (kind->kv_heads) s.kv_heads = kind->kv_heads;
    s.rope = (Rope){.kind = ROPE_PLAIN, .theta = target->rope.theta, .factor = 1, .attention_factor = 1};
    s.rope.pairs = s.head_dim / 2;
    s.tokens = target->vocab;
    if (kind->vocab) s.vocab = s.real_vocab = kind->vocab;
    s.states = adapter_captures(kind, target).count;
    s.fc_bias = v == ADAPTER_EAGLE;
    s.mask_token = kind->mask;
    if (kind->normed_heads) s.qk_norm = QK_NORM_HEADS;
    return s;
}

// Without attention the cache is as small as one can be. The target's biases and norms of heads, and a tied
// head, are not taken over.
bool adapter_is_eagle(AdapterVariant v) { return v >= ADAPTER_EAGLE && v <= ADAPTER_EAGLE3; }

Shape adapter_shape(const AdapterKind *kind, const Shape *target) {
    if (kind->variant == ADAPTER_DFLASH) return block_shape(kind, target);
    if (adapter_is_eagle(kind->variant)) return eagle_shape(kind, target);
    Shape s = plain_of(target);
    s.input = INPUT_HIDDEN;
    if (kind->variant != ADAPTER_MLP && kind->variant != ADAPTER_MEDUSA) { // it has attention
        s.heads = target->heads;
        s.kv_heads = kind->kv_heads ? kind->kv_heads : target->heads;
        s.head_dim = target->head_dim;
        s.rope = target->rope;
        s.rope.neighbours = false;
        s.mlp_width = kind->variant == ADAPTER_ONE_LAYER ? target->mlp_width : 0;
        return s;
    }
    s.mlp_width = target->width;
    s.activation = ACTIVATION_SILU;
    s.heads = s.kv_heads = 1;
    s.head_dim = 2;
    s.rope = (Rope){.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 1, .attention_factor = 1};
    return s;
}

// A weight's stored name without its ending, maybe written to `out`; NULL: the adapter lacks the weight.
static const char *name_of(AdapterVariant v, const Shape *s, int part, Weight w, char out[TENSOR_NAME]) {
    static const char *const mlp[WEIGHTS] = {[W_MLP_NORM] = "input_layernorm",
                                             [W_GATE] = "linear.0",
                                             [W_DOWN] = "linear.1",
                                             [W_FINAL_NORM] = "norm",
                                             [W_HEAD] = "lm_head"};
    static const char *const medusa[WEIGHTS] = {
        [W_GATE] = "0.linear", [W_GATE_BIAS] = "0.linear", [W_HEAD] = "1"};
    if (v == ADAPTER_DFLASH) return block_name(s, part, w, out);
    if (adapter_is_eagle(v)) return eagle_name(v, s, part, w, out);
    if (v == ADAPTER_MEDUSA) return medusa[w];
    if (v == ADAPTER_MLP || w == W_FINAL_NORM) return mlp[w];
    if (w == W_HEAD) return v == ADAPTER_WITH_HEAD ? mlp[w] : NULL;
    return weight_present(s, 0, w) ? WEIGHT_ROWS[w].name : NULL;
}

static bool has_layers(AdapterVariant v) { return v == ADAPTER_DFLASH || adapter_is_eagle(v); }

int adapter_parts(const AdapterKind *k) { return has_layers(k->variant) && k->layers ? k->layers : k->heads; }

void adapter_weights(AdapterVariant v, const Shape *s, int part, WeightSpec specs[WEIGHTS]) {
    int layer = has_layers(v) ? part : 0;
    for (Weight w = 0; w < WEIGHTS; w++) {
        char own[TENSOR_NAME];
        const char *name = name_of(v, s, part, w, own),
                   *ending = WEIGHT_ROWS[w].kind == WEIGHT_BIAS ? "bias" : "weight";
        specs[w] = weight_sized(s, layer, w);
        specs[w].layer = layer;
        if (!name) continue;
        if (v == ADAPTER_MEDUSA) snprintf(specs[w].name, TENSOR_NAME, "%d.%s.%s", part, name, ending);
        else snprintf(specs[w].name, TENSOR_NAME, "%.100s.%s", name, ending);
    }
}

bool adapter_check(const AdapterKind *k, const Model *target, const char *place, Error *e) {
    int layers = target->shape.layers, heads = target->shape.heads;
    if (k->variant == ADAPTER_EAGLE3 && layers < 2)
        return error_input(
            e, "'%s' is EAGLE-3's, which reads layers below the last; the target has one layer", place);
    if (k->variant == ADAPTER_DFLASH && (layers < 2 || k->layers < 1 || k->block.rows < 2))
        return error_input(
            e, "'%s' is DFlash's, which has layers and reads the target's below the last: at least 1 and 2",
            place);
    bool reads_final = k->variant >= ADAPTER_MEDUSA;
    if (!reads_final && (k->exit_layer < 1 || k->exit_layer >= layers))
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
    *a = (Adapter){.kind = *kind, .captures = adapter_captures(kind, &target->shape)};
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
        return error_input(e, "'%s' has no \"model_type\": \"%s\": it isn't an adapter", place, MODEL_TYPE);
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
    if (!file_exists(path)) return error_input(e, "cannot read '%s': give an adapter's directory", path);
    json_auto_t *root = json_from_file(path, MAX_JSON, e);
    bool ok = root && (json_is_object(root) || error_input(e, "'%s' must be a JSON object", path));
    bool block = ok && block_is(root), eagle = ok && !block && eagle_is(root), ours = !block && !eagle;
    ok = ok && (block   ? block_read(a, root, target, path, e) && adapter_check(&a->kind, target, path, e)
                : eagle ? eagle_read(a, root, target, path, e)
                        : read_kind(root, target, path, &a->kind, e));
    if (ok && ours) adapter_describe(a, &a->kind, target);
    if (ok && ours)
        a->trained = json_integer_value(json_object_get(json_object_get(root, "outpace_train"), "tokens"));
    return ok;
}

bool adapter_open_config(Adapter *a, const Model *target, const char *dir, Error *e) {
    *a = (Adapter){.kind.variant = ADAPTER_KANGAROO};
    LOCAL_MEMORY char *path = file_path(dir, "config.json");
    bool ok = read_config(a, target, path, e);
    if (!ok) adapter_close(a);
    return ok;
}

static bool bind(Adapter *a, int head, const Model *target, const Shard *shard, const char *dir, Error *e) {
    Model *m = &a->models[head];
    WeightSpec specs[WEIGHTS];
    m->layers = &a->weights.layers[head];
    m->head = target->head;
    adapter_weights(a->kind.variant, &m->shape, head, specs);
    for (Weight w = 0; w < WEIGHTS; w++)
        if (!weight_bind(m, &a->weights, &specs[w], shard, dir, e)) return false;
    return true;
}

// A config without a draft vocabulary looks like EAGLE-1's; the layer's norms show EAGLE-3.
static bool reread_eagle(Adapter *a, const Model *target, const Shard *shard, const char *dir, Error *e) {
    if (a->kind.variant != ADAPTER_EAGLE || !eagle_has_hidden_norm(shard)) return true;
    a->kind.variant = ADAPTER_EAGLE3;
    LOCAL_MEMORY char *path = file_path(dir, "config.json");
    return read_config(a, target, path, e);
}

// Only an MTP layer may be in several files: its target's.
static bool bind_all(Adapter *a, const Model *target, const Shard *shards, const char *dir, Error *e) {
    AdapterVariant v = a->kind.variant;
    if (a->weights.file_count > 1 && v != ADAPTER_MTP)
        return error_input(e, "the weights of '%s' are in several files: save them as model.safetensors",
                           dir);
    if (v == ADAPTER_DFLASH) return block_bind(a, target, shards, dir, e);
    if (adapter_is_eagle(v))
        return reread_eagle(a, target, shards, dir, e) && eagle_bind(a, target, shards, dir, e);
    for (int i = 0; i < a->kind.heads; i++)
        if (!bind(a, i, target, shards, dir, e)) return false;
    return true;
}

size_t adapter_parameters(const Adapter *a) {
    size_t sum = 0;
    for (int part = 0; a->models[0].shape.width && part < adapter_parts(&a->kind); part++) {
        WeightSpec specs[WEIGHTS];
        adapter_weights(a->kind.variant, &a->models[0].shape, part, specs);
        for (Weight w = 0; w < WEIGHTS; w++)
            if (specs[w].name[0]) sum += (size_t)specs[w].rows * (size_t)specs[w].columns;
    }
    return sum;
}

// Every tensor is in the adapter's files, or joined from several, except a head or an embedding that is the
// target's.
static void adapter_check_tensors(const Adapter *a, UNUSED const Model *target) {
    assert(a->kind.heads >= 1 && a->kind.heads <= ADAPTER_HEADS_MAX);
    for (int i = 0; i < adapter_parts(&a->kind); i++)
        for (Weight w = 0; w < WEIGHTS; w++) {
            bool layer = has_layers(a->kind.variant);
            UNUSED const Tensor *t = weight_tensor(&a->models[layer ? 0 : i], layer ? i : 0, 0, w);
            assert(!t->data || t->data == target->head.data || t->data == target->embedding.data ||
                   shards_hold(&a->weights, t));
        }
}

bool adapter_open(Adapter *a, const Model *target, const char *dir, Error *e) {
    if (!adapter_open_config(a, target, dir, e)) return false;
    a->weights =
        (ModelWeights){.dir = mem_text(dir, strlen(dir)),
                       .layers = mem_new((size_t)adapter_parts(&a->kind), sizeof *a->weights.layers)};
    Shard *shards = mem_new(MODEL_MAX_SHARDS, sizeof *shards);
    bool ok = shards_open(&a->weights, dir, shards, e) && bind_all(a, target, shards, dir, e);
    shards_close(&a->weights, shards);
    if (ok) adapter_check_tensors(a, target);
    else adapter_close(a);
    return ok;
}

void adapter_close(Adapter *a) {
    MEM_FREE(a->draft_ids, a->mask_states);
    model_close(&a->weights);
    *a = (Adapter){.kind.variant = ADAPTER_KANGAROO};
}

// --- writing

void adapter_config(const AdapterKind *k, const Shape *target, Text *t) {
    if (k->variant == ADAPTER_DFLASH) {
        block_config(k, target, t);
        return;
    }
    if (adapter_is_eagle(k->variant)) {
        eagle_config(k, target, t);
        return;
    }
    text_printf(t, "{\"model_type\": \"%s\", \"variant\": \"%s\", ", MODEL_TYPE, VARIANTS[k->variant]);
    if (k->variant == ADAPTER_MEDUSA) text_printf(t, "\"heads\": %d, ", k->heads);
    else text_printf(t, "\"exit_layer\": %d, ", k->exit_layer);
    if (k->kv_heads) text_printf(t, "\"num_key_value_heads\": %d, ", k->kv_heads);
    text_printf(t, "\"hidden_size\": %d, \"vocab_size\": %d}", target->width, target->vocab);
}
