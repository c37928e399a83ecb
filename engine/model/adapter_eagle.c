// EAGLE's drafts as their authors store them (EAGLE-1 and 2, HASS, EAGLE-3), EAGLE-3 in the forms of
// speculators and DeepSpec, P-EAGLE, and MTP layers: config.json is that of a model of one layer, or a few,
// alone or inside another; of an MTP layer its target's.
//
//      authors        EAGLE-1: fc, layers.0.*, embed_tokens
//                     EAGLE-3: fc, midlayer.*, norm, lm_head, d2t, t2d
//      speculators    EAGLE-3 with layers.0.* for midlayer.*; input_norm or fc_norm.0, fc_norm.1, ..
//      DeepSpec       EAGLE-3 with layers.0.*, where heads of q and k are normed, and an embedding
//      P-EAGLE        speculators' EAGLE-3, maybe with plain layers.1.*, ..; mask_hidden: a mask's states
//      MTP            MiMo's model.mtp_layers.0.*, among the target's own tensors or by itself
//
// A file is EAGLE-3's if its config names a draft vocabulary or such an architecture, or if the layer has a
// hidden_norm. Tensors show if heads are normed, too: the model_type of such files may be any. Tensors that
// nothing reads are refused.
#include "engine/model/adapter.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char IDS[] = "eagle_aux_hidden_state_layer_ids";
// The keys of a list of layers, whose numbers count the layers that have run, or begin with 0 for the first.
static const struct {
    const char *name;
    int first;
} LAYER_KEYS[] = {{IDS, 1}, {"target_layer_ids", 0}, {"aux_hidden_state_layer_ids", 1}};
enum { LAYER_KEY_COUNT = sizeof LAYER_KEYS / sizeof *LAYER_KEYS };
static const char MIDLAYER[] = "midlayer.", FIRST_LAYER[] = "layers.0.";
const char eagle_mask[] = "mask_hidden";
static const char MTP_LAYER[] = "model.mtp_layers.0.", MTP_LAYERS[] = "num_nextn_predict_layers";

// --- config.json

bool eagle_is(const json_t *root) {
    const char *type = json_string_value(json_object_get(root, "model_type"));
    return field_present(root, "speculators_model_type") || (type && architecture_find(type));
}

static AdapterVariant variant_of(const json_t *root) {
    const char *name = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    bool third = field_present(root, "speculators_model_type") || field_present(root, "draft_vocab_size") ||
                 (name && (strstr(name, "Eagle3") || strstr(name, "EAGLE3")));
    return field_present(root, MTP_LAYERS) ? ADAPTER_MTP : third ? ADAPTER_EAGLE3 : ADAPTER_EAGLE;
}

// A switch at the top, or in the authors' own part.
static bool read_switch(const json_t *root, const char *key, bool *on, const char *place, Error *e) {
    bool inner = false;
    *on = false;
    if (!field_bool_optional(root, key, on, place, e) ||
        !field_bool_optional(json_object_get(root, "eagle_config"), key, &inner, place, e))
        return false;
    *on = *on || inner;
    return true;
}

static bool is_parallel(const json_t *root) {
    const char *type = json_string_value(json_object_get(root, "speculators_model_type"));
    return type && strcmp(type, "peagle") == 0;
}

static bool check_kind(const json_t *root, const char *place, Error *e) {
    const char *type = json_string_value(json_object_get(root, "speculators_model_type"));
    return !field_present(root, "speculators_model_type") || is_parallel(root) ||
           (type && strcmp(type, "eagle3") == 0) ||
           error_input(
               e,
               "'speculators_model_type' in '%s' must be \"eagle3\" or \"peagle\"; others are not supported",
               place);
}

static bool read_fc_norm(const json_t *root, FcNorm *out, const char *place, Error *e) {
    bool row, each;
    if (!read_switch(root, "norm_before_fc", &row, place, e) ||
        !read_switch(root, "fc_norm", &each, place, e))
        return false;
    *out = row ? FC_NORM_ROW : each ? FC_NORM_EACH : FC_NORM_NONE;
    return !(row && each) ||
           error_input(e, "'norm_before_fc' and 'fc_norm' in '%s' are both true: a draft has one of them",
                       place);
}

static bool read_named_layers(const json_t *ids, int key, int layers, Captures *out, const char *place,
                              Error *e) {
    size_t count = json_array_size(ids);
    const char *name = LAYER_KEYS[key].name;
    int first = LAYER_KEYS[key].first, last = first + layers - 2;
    if (count < 1 || count > SHAPE_MAX_STATES)
        return error_input(e, "'%s' in '%s' must be a list of 1 to %d layers", name, place, SHAPE_MAX_STATES);
    out->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *layer = json_array_get(ids, i);
        json_int_t n = json_integer_value(layer);
        if (!json_is_integer(layer) || n < first || n > last)
            return error_input(e,
                               "'%s' in '%s' must hold numbers from %d to %d, below the target's %d layers",
                               name, place, first, last, layers);
        out->layers[i] = (int)n + 1 - first;
    }
    return true;
}

static bool collide(const Captures *c) {
    return c->layers[0] >= c->layers[1] || c->layers[1] >= c->layers[2];
}

static Captures authors_layers(int layers) { return (Captures){3, {2, layers / 2, layers - 3}}; }

// In a target that is too shallow for the authors' layers, its first, its middle and its last but one.
Captures adapter_captures(const AdapterKind *kind, const Shape *target) {
    int layers = target->layers;
    Captures c = authors_layers(layers);
    if (kind->variant == ADAPTER_DFLASH) return block_captures(kind, target);
    if (kind->variant != ADAPTER_EAGLE3 || kind->captures.count) return kind->captures;
    return collide(&c) ? (Captures){3, {1, layers > 3 ? layers / 2 : 1, layers - 1}} : c;
}

bool adapter_read_layers(const json_t *root, const json_t *inner, int layers, Captures *out,
                         const char *place, Error *e) {
    for (int i = 0; i < LAYER_KEY_COUNT; i++) {
        const char *key = LAYER_KEYS[i].name;
        const json_t *at = field_present(root, key) ? root : field_present(inner, key) ? inner : NULL;
        if (at) return read_named_layers(json_object_get(at, key), i, layers, out, place, e);
    }
    return true;
}

// The authors' layers, unless the file names others.
static bool read_layers(const json_t *root, int layers, Captures *out, const char *place, Error *e) {
    *out = (Captures){0};
    if (!adapter_read_layers(root, json_object_get(root, "eagle_config"), layers, out, place, e))
        return false;
    if (out->count) return true;
    *out = authors_layers(layers);
    if (!collide(out)) return true;
    return error_input(
        e,
        "EAGLE-3 reads the target after layers %d, %d and %d, which collide in a target of %d: "
        "name the layers in '%s' of '%s'",
        out->layers[0], out->layers[1], out->layers[2], layers, IDS, place);
}

static bool same_size(const char *key, int got, int want, const char *place, Error *e) {
    return got == want || error_input(e, "'%s' in '%s' is %d, the target's is %d: it is of another model",
                                      key, place, got, want);
}

// Whether a model of this config can be the draft's layer.
static bool check_layer(const json_t *root, const Shape *s, const Shape *target, const char *place,
                        Error *e) {
    int64_t read = target->width, layers = target->layers;
    bool mtp = variant_of(root) == ADAPTER_MTP; // whose config is the target's
    if (mtp && !same_size("num_hidden_layers", s->layers, target->layers, place, e)) return false;
    if (s->layers != 1 && !mtp && !is_parallel(root))
        return error_input(e,
                           "'num_hidden_layers' in '%s' is %d: an EAGLE draft has one layer, so this is "
                           "another kind of model",
                           place, s->layers);
    return field_int_optional(root, "target_hidden_size", 1, 1 << 24, &read, place, e) &&
           same_size("target_hidden_size", (int)read, target->width, place, e) &&
           field_int_optional(root, "num_target_layers", 1, 1 << 24, &layers, place, e) &&
           same_size("num_target_layers", (int)layers, target->layers, place, e) &&
           same_size("hidden_size", s->width, target->width, place, e) &&
           same_size("vocab_size", s->vocab, target->vocab, place, e);
}

// P-EAGLE's placeholder for a token to come, under either of its names.
static bool read_mask(const json_t *root, Shape *s, const char *place, Error *e) {
    static const char *const KEYS[] = {"mask_token_id", "ptd_token_id"};
    int64_t mask = 0;
    const char *key = KEYS[!field_present(root, KEYS[0])];
    if (!is_parallel(root)) return true;
    if (!field_int(root, key, 1, s->tokens - 1, &mask, place, e)) return false;
    s->mask_token = (int)mask;
    return true;
}

static bool finish_eagle3(const json_t *root, Adapter *a, Shape *s, const Shape *target, const char *place,
                          Error *e) {
    int64_t vocab = s->vocab;
    s->input = INPUT_PAIRED;
    s->tokens = s->vocab;
    if (!field_int_optional(root, "draft_vocab_size", 1, s->vocab, &vocab, place, e) ||
        !read_switch(root, "norm_before_residual", &s->normed_residual, place, e) ||
        !read_fc_norm(root, &s->fc_norm, place, e) ||
        !read_switch(root, "norm_output", &s->normed_output, place, e) || !read_mask(root, s, place, e) ||
        !read_layers(root, target->layers, &a->captures, place, e))
        return false;
    s->vocab = (int)vocab;
    s->real_vocab = s->vocab < s->tokens ? s->vocab : target->real_vocab;
    s->states = a->captures.count;
    return true;
}

// One of the two states on either side of a norm: "raw" or "normed". Without the key it's raw, as the program
// has it whose acceptance for MiMo is published.
static bool read_state(const json_t *root, const char *key, bool *normed, const char *place, Error *e) {
    const char *text = field_present(root, key) ? field_text(root, key, place, e) : "raw";
    if (!text) return false;
    *normed = strcmp(text, "normed") == 0;
    return *normed || strcmp(text, "raw") == 0 ||
           error_input(e, "'%s' in '%s' must be \"raw\" or \"normed\"", key, place);
}

static bool finish_mtp(const json_t *root, Adapter *a, Shape *s, int layers, const char *place, Error *e) {
    int64_t count;
    bool normed;
    s->input = INPUT_MTP;
    s->layers = 1;
    if (!field_int(root, MTP_LAYERS, 1, SHAPE_MAX_LAYERS, &count, place, e) ||
        !read_state(root, "mtp_state", &normed, place, e) ||
        !read_state(root, "mtp_recycle", &a->kind.recycles_normed, place, e))
        return false;
    a->captures = (Captures){.count = !normed, .layers = {layers}};
    return count == 1 || error_input(e, "'%s' in '%s' is %lld: more than one layer is not supported",
                                     MTP_LAYERS, place, (long long)count);
}

// Biases of q, k and v are the draft's own switch; the target's context holds for it, too.
static bool read_shape(Adapter *a, const json_t *root, const Model *target, const char *place, Shape *s,
                       Error *e) {
    if (!check_layer(root, s, &target->shape, place, e)) return false;
    if (!shape_is_plain(s))
        return error_input(
            e, "'%s' is that of a draft whose layer isn't one of Llama, which is not supported", place);
    bool mtp = a->kind.variant == ADAPTER_MTP;
    s->tied_head = false;
    s->qkv_bias = s->qkv_bias && mtp;
    s->logit_scale = target->shape.logit_scale;
    s->logit_cap = target->shape.logit_cap;
    s->context = target->shape.context;
    s->real_vocab = target->shape.real_vocab;
    if (!field_bool_optional(root, "qkv_bias", &s->qkv_bias, place, e)) return false;
    if (a->kind.variant == ADAPTER_EAGLE3) return finish_eagle3(root, a, s, &target->shape, place, e);
    if (mtp) return finish_mtp(root, a, s, target->shape.layers, place, e);
    s->input = INPUT_FUSED;
    s->fc_bias = true;
    return field_bool_optional(root, "bias", &s->fc_bias, place, e);
}

bool eagle_read(Adapter *a, const json_t *root, const Model *target, const char *place, Error *e) {
    const json_t *inner = json_object_get(root, "transformer_layer_config");
    LOCAL_MEMORY char *text =
        json_text(field_present(root, "speculators_model_type") && inner ? inner : root, 0);
    Model m = {0};
    if (a->kind.variant != ADAPTER_EAGLE3) a->kind.variant = variant_of(root);
    if (!check_kind(root, place, e) || !config_parse(&m, text, strlen(text), place, e) ||
        !read_shape(a, root, target, place, &m.shape, e) || !shape_check(&m.shape, place, e))
        return false;
    a->kind.captures = a->captures;
    a->kind.vocab = m.shape.vocab < target->shape.vocab ? m.shape.vocab : 0;
    a->kind.exit_layer = target->shape.layers;
    a->kind.heads = 1;
    a->kind.layers = m.shape.layers > 1 ? m.shape.layers : 0;
    a->kind.normed_heads = m.shape.qk_norm == QK_NORM_HEADS;
    a->kind.mask = m.shape.mask_token;
    a->models[0] = (Model){.shape = m.shape, .dtype = target->dtype, .bos = -1};
    snprintf(a->models[0].architecture, sizeof a->models[0].architecture, "%s",
             adapter_variant_name(a->kind.variant));
    a->trained = json_integer_value(json_object_get(json_object_get(root, "outpace"), "trained_tokens"));
    return true;
}

// made.c recognises an adapter's directory by the first key; the other keys are those of a model.
void eagle_config(const AdapterKind *k, const Shape *target, Text *out) {
    const Shape s = adapter_shape(k, target);
    bool third = k->variant == ADAPTER_EAGLE3, mtp = k->variant == ADAPTER_MTP, normed = k->normed_heads;
    text_printf(out,
                "{\"outpace_adapter\": \"%s\", \"architectures\": [\"%s\"], \"model_type\": \"%s\", "
                "\"num_hidden_layers\": %d, "
                "\"hidden_size\": %d, \"intermediate_size\": %d, \"num_attention_heads\": %d, "
                "\"num_key_value_heads\": %d, \"head_dim\": %d, \"vocab_size\": %d, \"rms_norm_eps\": %.9g, "
                "\"rope_theta\": %.17g, \"max_position_embeddings\": %d",
                adapter_variant_name(k->variant),
                normed  ? "Qwen3Eagle3Model"
                : third ? "LlamaForCausalLMEagle3"
                : mtp   ? "MiMoForCausalLM"
                        : "LlamaForCausalLMEagle",
                normed ? "qwen3"
                : mtp  ? "mimo"
                       : "llama",
                mtp ? target->layers : s.layers, s.width, s.mlp_width, s.heads, s.kv_heads, s.head_dim,
                target->vocab, (double)s.norm_epsilon, s.rope.theta, s.context);
    if (third) {
        Captures c = adapter_captures(k, target);
        text_printf(out, ", \"draft_vocab_size\": %d, \"%s\": [", s.vocab, LAYER_KEYS[normed].name);
        for (int i = 0; i < c.count; i++)
            text_printf(out, "%s%d", i ? ", " : "", c.layers[i] - 1 + LAYER_KEYS[normed].first);
        text_puts(out, "]");
        if (normed) text_printf(out, ", \"num_target_layers\": %d", target->layers);
        if (k->mask)
            text_printf(out, ", \"speculators_model_type\": \"peagle\", \"mask_token_id\": %d", k->mask);
    }
    static const char *const states[] = {"raw", "normed"};
    if (mtp)
        text_printf(out,
                    ", \"attention_bias\": false, \"%s\": 1, \"mtp_state\": \"%s\", \"mtp_recycle\": \"%s\"",
                    MTP_LAYERS, states[!k->captures.count], states[k->recycles_normed]);
    text_puts(out, third || mtp ? "}" : ", \"bias\": true}");
}

// --- tensors

const char *eagle_name(AdapterVariant v, const Shape *s, int part, Weight w, char out[TENSOR_NAME]) {
    bool third = v == ADAPTER_EAGLE3, mtp = v == ADAPTER_MTP;
    static const char *const of_mtp[WEIGHTS] = {[W_FINAL_NORM] = "final_layernorm",
                                                [W_FC] = "input_proj",
                                                [W_TOKEN_NORM] = "token_layernorm",
                                                [W_STATE_NORM] = "hidden_layernorm"};
    static const char *const whole[WEIGHTS] = {
        [W_FINAL_NORM] = "norm", [W_HEAD] = "lm_head",       [W_FC] = "fc",
        [W_FC_BIAS] = "fc",      [W_FC_NORM] = "input_norm", [W_EMBEDDING] = "embed_tokens"};
    if (!weight_present(s, 0, w) || (third ? w == W_EMBEDDING : w == W_HEAD)) return NULL;
    if (mtp) snprintf(out, TENSOR_NAME, "%s%s", MTP_LAYER, of_mtp[w] ? of_mtp[w] : WEIGHT_ROWS[w].name);
    if (mtp) return w == W_EMBEDDING ? NULL : out;
    if (part > 0) {
        snprintf(out, TENSOR_NAME, "layers.%d.%s", part, WEIGHT_ROWS[w].name);
        return w < LAYER_WEIGHTS ? out : NULL;
    }
    if (whole[w]) return whole[w];
    const char *layer = third && s->qk_norm == QK_NORM_NONE ? MIDLAYER : FIRST_LAYER;
    const char *name = w == W_TOKEN_NORM                ? "input_layernorm"
                       : third && w == W_ATTENTION_NORM ? "hidden_norm"
                                                        : WEIGHT_ROWS[w].name;
    snprintf(out, TENSOR_NAME, "%s%s", layer, name);
    return out;
}

static bool has(const Shard *shard, const char *name) { return safetensors_find(&shard->header, name); }

bool eagle_has_hidden_norm(const Shard *shard) {
    return has(shard, "midlayer.hidden_norm.weight") || has(shard, "layers.0.hidden_norm.weight");
}

// The names of this file's first layer: others' is layers.0, a norm of each state is a tensor of its own, and
// any file may hold its own embedding.
static void name_weights(const Adapter *a, const Shard *shard, WeightSpec specs[WEIGHTS]) {
    const Shape *s = &a->models[0].shape;
    bool usual = s->qk_norm == QK_NORM_NONE, middle = has(shard, "midlayer.hidden_norm.weight");
    const char *ours = usual ? MIDLAYER : FIRST_LAYER, *theirs = middle ? MIDLAYER : FIRST_LAYER;
    bool third = a->kind.variant == ADAPTER_EAGLE3 && (middle || has(shard, "layers.0.hidden_norm.weight"));
    adapter_weights(a->kind.variant, s, 0, specs);
    for (Weight w = 0; third && ours != theirs && w < WEIGHTS; w++) {
        char name[TENSOR_NAME];
        if (strncmp(specs[w].name, ours, strlen(ours)) != 0) continue;
        snprintf(name, sizeof name, "%s%.100s", theirs, specs[w].name + strlen(ours));
        memcpy(specs[w].name, name, sizeof name);
    }
    snprintf(specs[W_EMBEDDING].name, TENSOR_NAME, "embed_tokens.weight");
    if (!has(shard, specs[W_EMBEDDING].name)) specs[W_EMBEDDING].name[0] = 0;
    if (a->models[0].shape.fc_norm != FC_NORM_EACH) return;
    snprintf(specs[W_FC_NORM].name, TENSOR_NAME, "fc_norm.0.weight");
    specs[W_FC_NORM].form = STORED_EACH_HEAD;
    specs[W_FC_NORM].heads = a->models[0].shape.states;
}

static bool is_named(const WeightSpec *s, const char *name) {
    bool named = s->form != STORED_EACH_HEAD && strcmp(name, s->name) == 0;
    for (int i = 0; s->form == STORED_EACH_HEAD && i < s->heads; i++) {
        char part[TENSOR_NAME];
        weight_of_head(s, i, part);
        named |= strcmp(name, part) == 0;
    }
    return named;
}

// Every tensor is a weight, one of the two maps between vocabularies, or a mask's states; an MTP layer's are
// among the target's.
static bool check_used(const WeightSpec *specs, const Shape *s, const Shard *shard, const char *dir,
                       Error *e) {
    for (size_t i = 0; i < shard->header.count; i++) {
        const char *name = shard->header.tensors[i].name;
        bool used = strcmp(name, "d2t") == 0 || strcmp(name, "t2d") == 0 ||
                    text_ends(name, "rotary_emb.inv_freq") ||
                    (s->mask_token && strcmp(name, eagle_mask) == 0) ||
                    (s->input == INPUT_MTP && strncmp(name, MTP_LAYER, strcspn(MTP_LAYER, "0")) != 0);
        for (int k = 0; k < s->layers * (int)WEIGHTS && !used; k++) used = is_named(&specs[k], name);
        if (!used)
            return error_input(e,
                               "tensor '%s' in '%s/%s' doesn't belong to such a draft, which would leave it "
                               "out: is its config.json right?",
                               name, dir, shard->name);
    }
    return true;
}

static bool wrong_map(const StoredTensor *t, const char *dtype, int64_t size, const Shard *shard,
                      const char *dir, Error *e) {
    bool fits = t->rank == 1 && t->dims[0] == size && strcmp(t->dtype, dtype) == 0;
    if (!fits)
        error_input(e, "tensor '%s' in '%s/%s' must be %s of shape (%lld)", t->name, dir, shard->name, dtype,
                    (long long)size);
    return !fits;
}

// Fills draft_ids from d2t's offsets and marks the target's ids that they reach.
static bool read_ids(Adapter *a, const StoredTensor *t, unsigned char *reached, const Shard *shard,
                     const char *dir, Error *e) {
    const Shape *s = &a->models[0].shape;
    if (wrong_map(t, "I64", s->vocab, shard, dir, e)) return false;
    a->draft_ids = mem_new((size_t)s->vocab, sizeof *a->draft_ids);
    for (int i = 0; i < s->vocab; i++) {
        int64_t offset, low = -(int64_t)i, high = shape_tokens(s) - 1 - (int64_t)i;
        memcpy(&offset, shard->data + t->begin + (size_t)i * sizeof offset, sizeof offset);
        if (offset < low || offset > high)
            return error_input(e,
                               "'d2t' in '%s/%s' takes draft id %d %lld further, outside the target's "
                               "vocabulary of %d",
                               dir, shard->name, i, (long long)offset, shape_tokens(s));
        int id = i + (int)offset;
        if (reached[id])
            return error_input(e,
                               "'d2t' in '%s/%s' takes draft id %d to the target's %d, which has one already",
                               dir, shard->name, i, id);
        reached[id] = 1;
        a->draft_ids[i] = id;
    }
    return true;
}

static bool check_mask(const StoredTensor *t, const unsigned char *reached, int tokens, const Shard *shard,
                       const char *dir, Error *e) {
    if (wrong_map(t, "BOOL", tokens, shard, dir, e)) return false;
    for (int i = 0; i < tokens; i++)
        if ((shard->data[t->begin + (size_t)i] != 0) != reached[i])
            return error_input(e, "'t2d' in '%s/%s' has token %d %s, and 'd2t' doesn't: they must agree", dir,
                               shard->name, i, reached[i] ? "out" : "in");
    return true;
}

bool adapter_read_maps(Adapter *a, const Shard *shard, const char *dir, Error *e) {
    const Shape *s = &a->models[0].shape;
    const StoredTensor *ids = safetensors_find(&shard->header, "d2t");
    const StoredTensor *mask = safetensors_find(&shard->header, "t2d");
    int tokens = shape_tokens(s);
    if (a->kind.variant != ADAPTER_EAGLE3 && a->kind.variant != ADAPTER_DFLASH) return true;
    if (!ids && s->vocab < tokens)
        return error_input(e, "'%s/%s' has no tensor 'd2t', which a draft vocabulary of %d needs", dir,
                           shard->name, s->vocab);
    LOCAL_MEMORY unsigned char *reached = mem_new((size_t)tokens, 1);
    memset(reached, !ids, (size_t)tokens);
    return (!ids || read_ids(a, ids, reached, shard, dir, e)) &&
           (!mask || check_mask(mask, reached, tokens, shard, dir, e));
}

// The states of a mask, (1, 1, fc's input).
static bool read_mask_states(Adapter *a, const Shard *shard, const char *dir, Error *e) {
    const Shape *s = &a->models[0].shape;
    const StoredTensor *t = safetensors_find(&shard->header, eagle_mask);
    int columns = shape_fc_width(s);
    Dtype dtype;
    if (!s->mask_token) return true;
    if (!t)
        return error_input(e, "'%s/%s' has no tensor '%s', a mask's states", dir, shard->name, eagle_mask);
    bool fits = t->rank > 0 && t->dims[t->rank - 1] == columns && safetensors_dtype(t, &dtype);
    for (int i = 0; fits && i < t->rank - 1; i++) fits = t->dims[i] == 1;
    if (!fits)
        return error_input(e, "tensor '%s' in '%s/%s' must be numbers of shape (1, 1, %d)", eagle_mask, dir,
                           shard->name, columns);
    a->mask_states = mem_new((size_t)columns, sizeof *a->mask_states);
    for (int i = 0; i < columns; i++)
        a->mask_states[i] = dtype_load(dtype, shard->data + t->begin, (size_t)i);
    return true;
}

// The file that has a tensor; the first if none has.
static const Shard *shard_with(const Shard *shards, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (has(&shards[i], name)) return &shards[i];
    return shards;
}

bool eagle_bind(Adapter *a, const Model *target, const Shard *shards, const char *dir, Error *e) {
    Model *m = &a->models[0];
    int layers = m->shape.layers, count = a->weights.file_count;
    LOCAL_MEMORY WeightSpec *specs = mem_new((size_t)layers * WEIGHTS, sizeof *specs);
    bool normed =
        has(shards, "midlayer.self_attn.q_norm.weight") || has(shards, "layers.0.self_attn.q_norm.weight");
    a->kind.normed_heads = normed;
    m->shape.qk_norm = normed ? QK_NORM_HEADS : QK_NORM_NONE;
    m->layers = a->weights.layers;
    m->head = target->head;
    m->embedding = target->embedding;
    name_weights(a, shards, specs);
    for (int i = 1; i < layers; i++) adapter_weights(a->kind.variant, &m->shape, i, specs + i * WEIGHTS);
    for (int i = 0; i < layers * (int)WEIGHTS; i++)
        if (!weight_bind(m, &a->weights, &specs[i], shard_with(shards, count, specs[i].name), dir, e))
            return false;
    for (int i = 0; i < count; i++)
        if (!check_used(specs, &m->shape, &shards[i], dir, e)) return false;
    return read_mask_states(a, shards, dir, e) && adapter_read_maps(a, shards, dir, e);
}
