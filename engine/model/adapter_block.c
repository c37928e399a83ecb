// Drafts of blocks (engine/core/block.h) as others store them: config.json is that of a Qwen3 model of
// as many layers as the draft has.
//
//      z-lab          ["DFlashDraftModel"], whose dflash_config has mask_token_id and target_layer_ids;
//                     fc, hidden_norm, norm, layers.I.*, and no more: embedding and head are the target's
//      DeepSpec       ["Qwen3DSparkModel"], DFlash's files too: these keys at the top, markov_rank and
//                     others; embed_tokens, lm_head, copies of the target's; markov_head, confidence_head
//      speculators    speculators_model_type "dflash" or "dspark": the model's keys in
//                     transformer_layer_config; perhaps a head of fewer tokens, d2t and t2d
//
// Whether a row guesses the token in its place or the one behind it isn't seen from sizes: the key
// sample_from_anchor has it, or else the form of the file. Layers with a window are refused, since engines
// disagree on where it begins, and so are relatives whose arithmetic is another.
#include "engine/model/adapter.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const MARKOVS[] = {"none", "vanilla", "gated", "rnn"};
static const char TYPE[] = "speculators_model_type", INNER[] = "dflash_config", TOP[] = "model.";

// --- config.json

static const char *architecture_of(const json_t *root) {
    const char *name = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    return name ? name : "";
}

static bool has_type(const json_t *root, const char *type) {
    const char *own = json_string_value(json_object_get(root, TYPE));
    return own && strcmp(own, type) == 0;
}

static bool is_dspark(const json_t *root) {
    return has_type(root, "dspark") || strstr(architecture_of(root), "DSpark");
}

bool block_is(const json_t *root) {
    const char *name = architecture_of(root);
    return has_type(root, "dflash") || is_dspark(root) || strstr(name, "DFlash") || strstr(name, "Dflash") ||
           field_present(root, INNER);
}

// The object that has a key: z-lab's own part, or the top.
static const json_t *part_with(const json_t *root, const char *key) {
    const json_t *inner = json_object_get(root, INNER);
    return field_present(inner, key) ? inner : root;
}

static bool read_int(const json_t *root, const char *key, int64_t low, int64_t high, int *out,
                     const char *place, Error *e) {
    int64_t value = *out;
    if (!field_int_optional(part_with(root, key), key, low, high, &value, place, e)) return false;
    *out = (int)value;
    return true;
}

static bool read_bool(const json_t *root, const char *key, bool *out, const char *place, Error *e) {
    return field_bool_optional(part_with(root, key), key, out, place, e);
}

// Keys of relatives whose arithmetic is another.
static bool refuse_others(const json_t *root, const char *place, Error *e) {
    static const struct {
        const char *key;
        bool usual;
    } KEYS[] = {{"causal", false},       {"is_causal", false},           {"use_swa", false},
                {"is_neox_style", true}, {"attention_sink_bias", false}, {"use_aux_hidden_state", true}};
    const json_t *types = json_object_get(root, "layer_types"), *type;
    size_t i;
    if (strstr(architecture_of(root), "DFlash2"))
        return error_input(e, "'%s' is that of DFlash 2, whose convolutions are not supported", place);
    for (i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        bool on = KEYS[i].usual;
        if (!read_bool(root, KEYS[i].key, &on, place, e)) return false;
        if (on != KEYS[i].usual)
            return error_input(e, "'%s' in '%s' is %s, which is not supported for drafts of blocks",
                               KEYS[i].key, place, on ? "true" : "false");
    }
    if (field_present(root, "logit_scale") &&
        fabs(json_number_value(json_object_get(root, "logit_scale")) - 1) > 1e-9)
        return error_input(e, "'logit_scale' in '%s' isn't 1, which is not supported for drafts of blocks",
                           place);
    json_array_foreach(types, i, type) {
        const char *name = json_string_value(type);
        if (!name || strcmp(name, "full_attention") != 0)
            return error_input(e,
                               "'layer_types' in '%s' holds '%.40s': layers with a window are not supported",
                               place, name ? name : "no text");
    }
    return true;
}

static bool same_size(const char *key, int got, int want, const char *place, Error *e) {
    return got == want || error_input(e, "'%s' in '%s' is %d, the target's is %d: it is of another model",
                                      key, place, got, want);
}

static bool check_target(const json_t *root, const Shape *s, const Shape *target, const char *place,
                         Error *e) {
    int read = target->width, layers = target->layers;
    Shape plain = *s;
    plain.o_bias = false;
    if (!shape_is_plain(&plain) || s->window)
        return error_input(
            e, "'%s' is that of a draft whose layers aren't those of Qwen3, which is not supported", place);
    return read_int(root, "target_hidden_size", 1, 1 << 24, &read, place, e) &&
           same_size("target_hidden_size", read, target->width, place, e) &&
           read_int(root, "num_target_layers", 1, 1 << 24, &layers, place, e) &&
           same_size("num_target_layers", layers, target->layers, place, e) &&
           same_size("hidden_size", s->width, target->width, place, e) &&
           same_size("vocab_size", s->vocab, target->vocab, place, e);
}

// The authors' layers, where a file names none: evenly from the second to the last but two.
static Captures usual_layers(int draft_layers, int layers) {
    Captures c = {.count = draft_layers < SHAPE_MAX_STATES ? draft_layers : SHAPE_MAX_STATES};
    for (int i = 0; i < c.count; i++) {
        double at = c.count == 1 ? layers / 2 : nearbyint(1 + (double)i * (layers - 4) / (c.count - 1));
        int after = (int)at + 1;
        c.layers[i] = after < 1 ? 1 : after < layers ? after : layers - 1;
    }
    return c;
}

Captures block_captures(const AdapterKind *kind, const Shape *target) {
    return kind->captures.count ? kind->captures : usual_layers(kind->layers, target->layers);
}

static bool read_markov(const json_t *root, BlockDraft *b, const char *place, Error *e) {
    static const char key[] = "markov_head_type";
    if (!read_int(root, "markov_rank", 0, 1 << 12, &b->rank, place, e)) return false;
    if (!b->rank) return true;
    const json_t *type = json_object_get(part_with(root, key), key);
    const char *name = type ? json_string_value(type) : MARKOVS[MARKOV_VANILLA];
    for (int i = MARKOV_VANILLA; name && i <= MARKOV_RNN; i++)
        if (strcmp(name, MARKOVS[i]) == 0) b->markov = (Markov)i;
    return b->markov || error_input(e, "'%s' in '%s' must be \"vanilla\", \"gated\" or \"rnn\"", key, place);
}

static bool read_heads(const json_t *root, BlockDraft *b, const char *place, Error *e) {
    bool on = false, token = false;
    if (!read_markov(root, b, place, e) || !read_bool(root, "enable_confidence_head", &on, place, e) ||
        !read_bool(root, "confidence_head_with_markov", &token, place, e))
        return false;
    if (on && token && !b->markov)
        return error_input(e, "'confidence_head_with_markov' in '%s' is true, and 'markov_rank' is 0", place);
    b->confidence = !on ? CONFIDENCE_NONE : token ? CONFIDENCE_TOKEN : CONFIDENCE_ROW;
    return true;
}

static bool read_draft(Adapter *a, const json_t *root, Shape *s, const Shape *target, const char *place,
                       Error *e) {
    static const char mask[] = "mask_token_id";
    int vocab = s->vocab;
    s->input = INPUT_BLOCK;
    s->tokens = s->vocab;
    s->block.from_root = is_dspark(root);
    if (!field_present(part_with(root, mask), mask))
        return error_input(e, "'%s' has no '%s', which stands for the tokens to come", place, mask);
    if (!read_int(root, mask, 0, s->tokens - 1, &s->mask_token, place, e)) return false;
    if (!field_present(part_with(root, "block_size"), "block_size"))
        return error_input(e, "'%s' has no 'block_size', the rows of a step", place);
    if (!read_int(root, "block_size", 2, BLOCK_MOST, &s->block.rows, place, e) ||
        !read_bool(root, "sample_from_anchor", &s->block.from_root, place, e) ||
        !read_int(root, "draft_vocab_size", 1, s->vocab, &vocab, place, e) ||
        !read_heads(root, &s->block, place, e))
        return false;
    a->captures = usual_layers(s->layers, target->layers);
    if (!adapter_read_layers(root, json_object_get(root, INNER), target->layers, &a->captures, place, e))
        return false;
    s->vocab = vocab;
    s->real_vocab = s->vocab < s->tokens ? s->vocab : target->real_vocab;
    s->states = a->captures.count;
    return true;
}

bool block_read(Adapter *a, const json_t *root, const Model *target, const char *place, Error *e) {
    const json_t *inner = json_object_get(root, "transformer_layer_config");
    const json_t *model = field_present(root, TYPE) && inner ? inner : root;
    LOCAL_MEMORY char *text = json_text(model, 0);
    Model m = {0};
    Shape *s = &m.shape;
    bool ok = refuse_others(model, place, e) && refuse_others(root, place, e) &&
              config_parse(&m, text, strlen(text), place, e) &&
              check_target(root, s, &target->shape, place, e);
    if (!ok) return false;
    s->tied_head = false;
    s->mask_token = 0;
    s->logit_scale = target->shape.logit_scale;
    s->logit_cap = target->shape.logit_cap;
    s->context = target->shape.context;
    if (!read_draft(a, root, s, &target->shape, place, e) || !shape_check(s, place, e)) return false;
    a->kind = (AdapterKind){.variant = ADAPTER_DFLASH,
                            .exit_layer = target->shape.layers,
                            .heads = 1,
                            .captures = a->captures,
                            .vocab = s->vocab < target->shape.vocab ? s->vocab : 0,
                            .normed_heads = true,
                            .layers = s->layers,
                            .block = s->block,
                            .mask = s->mask_token};
    a->models[0] = (Model){.shape = *s, .dtype = target->dtype, .bos = -1};
    snprintf(a->models[0].architecture, sizeof a->models[0].architecture, "%s",
             adapter_variant_name(ADAPTER_DFLASH));
    a->trained = json_integer_value(json_object_get(json_object_get(root, "outpace"), "trained_tokens"));
    return true;
}

void block_config(const AdapterKind *k, const Shape *target, Text *out) {
    const Shape s = adapter_shape(k, target);
    const BlockDraft *b = &s.block;
    text_printf(
        out,
        "{\"outpace_adapter\": \"dflash\", \"architectures\": [\"Qwen3DSparkModel\"], \"model_type\": "
        "\"qwen3\", \"num_hidden_layers\": %d, \"hidden_size\": %d, \"intermediate_size\": %d, "
        "\"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d, \"vocab_size\": "
        "%d, \"rms_norm_eps\": %.9g, \"rope_theta\": %.17g, \"max_position_embeddings\": %d, "
        "\"attention_bias\": false, \"num_target_layers\": %d, \"block_size\": %d, \"mask_token_id\": "
        "%d, \"sample_from_anchor\": %s, \"target_layer_ids\": [",
        s.layers, s.width, s.mlp_width, s.heads, s.kv_heads, s.head_dim, target->vocab,
        (double)s.norm_epsilon, s.rope.theta, s.context, target->layers, b->rows, s.mask_token,
        b->from_root ? "true" : "false");
    Captures c = block_captures(k, target);
    for (int i = 0; i < c.count; i++) text_printf(out, "%s%d", i ? ", " : "", c.layers[i] - 1);
    text_printf(out, "], \"markov_rank\": %d, \"enable_confidence_head\": %s", b->rank,
                b->confidence ? "true" : "false");
    if (b->markov) text_printf(out, ", \"markov_head_type\": \"%s\"", MARKOVS[b->markov]);
    if (b->confidence)
        text_printf(out, ", \"confidence_head_with_markov\": %s",
                    b->confidence == CONFIDENCE_TOKEN ? "true" : "false");
    text_puts(out, "}");
}

// A layer with the target's sizes.
Shape block_shape(const AdapterKind *kind, const Shape *target) {
    Shape s = {.input = INPUT_BLOCK,
               .layers = kind->layers,
               .width = target->width,
               .heads = target->heads,
               .kv_heads = kind->kv_heads ? kind->kv_heads : target->kv_heads,
               .head_dim = target->head_dim,
               .mlp_width = target->mlp_width,
               .vocab = target->vocab,
               .real_vocab = target->real_vocab,
               .tokens = target->vocab,
               .context = target->context,
               .logit_scale = target->logit_scale,
               .logit_cap = target->logit_cap,
               .norm_epsilon = target->norm_epsilon,
               .qk_norm = kind->normed_heads ? QK_NORM_HEADS : QK_NORM_NONE,
               .mask_token = kind->mask,
               .states = block_captures(kind, target).count,
               .block = kind->block};
    s.rope = (Rope){.kind = ROPE_PLAIN, .theta = target->rope.theta, .factor = 1, .attention_factor = 1};
    s.rope.pairs = s.head_dim / 2;
    return s;
}

// --- tensors

const char *block_name(const Shape *s, int layer, Weight w, char out[TENSOR_NAME]) {
    bool whole = w >= MODEL_WEIGHTS;
    if (!weight_present(s, 0, w) || (whole && layer) || w == W_EMBEDDING || w == W_HEAD) return NULL;
    if (w == W_FINAL_NORM) return "norm";
    if (s->block.markov == MARKOV_RNN && (w == W_MARKOV_GATE || w == W_MARKOV_GATE_BIAS))
        return "markov_head.joint_proj";
    if (whole) return WEIGHT_ROWS[w].name;
    snprintf(out, TENSOR_NAME, "layers.%d.%s", layer, WEIGHT_ROWS[w].name);
    return out;
}

static bool has(const Shard *shard, const char *name) { return safetensors_find(&shard->header, name); }

// The names of this file, which may have a first word, its own embedding and its own head.
static void name_weights(const Adapter *a, const Shard *shard, int layer, WeightSpec specs[WEIGHTS]) {
    bool topped = has(shard, "model.fc.weight");
    adapter_weights(ADAPTER_DFLASH, &a->models[0].shape, layer, specs);
    if (!layer) snprintf(specs[W_EMBEDDING].name, TENSOR_NAME, "embed_tokens.weight");
    if (!layer) snprintf(specs[W_HEAD].name, TENSOR_NAME, "lm_head.weight");
    for (Weight w = 0; topped && w < WEIGHTS; w++) {
        char name[TENSOR_NAME];
        if (!specs[w].name[0] || (w == W_HEAD && has(shard, specs[w].name))) continue;
        snprintf(name, sizeof name, "%s%.150s", TOP, specs[w].name);
        memcpy(specs[w].name, name, sizeof name);
    }
    if (!has(shard, specs[W_EMBEDDING].name)) specs[W_EMBEDDING].name[0] = 0;
    if (!has(shard, specs[W_HEAD].name) && a->models[0].shape.vocab == shape_tokens(&a->models[0].shape))
        specs[W_HEAD].name[0] = 0;
}

// The relatives by tensors that only they have.
static const char *relative(const char *name) {
    static const struct {
        const char *part, *whose;
    } ROWS[] = {{"qkv_proj", "Laguna"},          {"g_proj", "Laguna"},
                {"aux_hidden_norms", "Laguna"},  {"mask_embedding", "MiMo"},
                {"attention_sink_bias", "MiMo"}, {"encoder.fc", "Muse"},
                {"encoder.output_norm", "Muse"}, {"attention_conv", "DFlash 2"},
                {"mlp_conv", "DFlash 2"},        {"candidate_selector", "DFlash 2"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (strstr(name, ROWS[i].part)) return ROWS[i].whose;
    return NULL;
}

static bool is_used(const WeightSpec *specs, int layers, const char *name) {
    if (strcmp(name, "d2t") == 0 || strcmp(name, "t2d") == 0 || text_ends(name, "rotary_emb.inv_freq"))
        return true;
    for (int i = 0; i < layers * (int)WEIGHTS; i++)
        if (strcmp(specs[i].name, name) == 0) return true;
    return false;
}

static bool check_used(const WeightSpec *specs, int layers, const Shard *shard, const char *dir, Error *e) {
    for (size_t i = 0; i < shard->header.count; i++) {
        const char *name = shard->header.tensors[i].name;
        if (is_used(specs, layers, name)) continue;
        if (relative(name))
            return error_input(e, "tensor '%s' in '%s/%s' is of a draft of %s's, which is not supported",
                               name, dir, shard->name, relative(name));
        return error_input(
            e,
            "tensor '%s' in '%s/%s' doesn't belong to such a draft, which would leave it out: is "
            "its config.json right?",
            name, dir, shard->name);
    }
    return true;
}

// A copy of the target's own is read there, so that it is in memory once.
static void share_equal(Tensor *own, const Tensor *target) {
    bool alike = own->data && target->data && own->dtype == target->dtype && own->rows == target->rows &&
                 own->columns == target->columns && !own->codes.bits && !target->codes.bits;
    if (!own->data || (alike && memcmp(own->data, target->data, tensor_bytes(own)) == 0)) *own = *target;
}

bool block_bind(Adapter *a, const Model *target, const Shard *shard, const char *dir, Error *e) {
    Model *m = &a->models[0];
    int layers = m->shape.layers;
    bool ok = true;
    a->kind.normed_heads = has(shard, "layers.0.self_attn.q_norm.weight") ||
                           has(shard, "model.layers.0.self_attn.q_norm.weight");
    m->shape.qk_norm = a->kind.normed_heads ? QK_NORM_HEADS : QK_NORM_NONE;
    m->layers = a->weights.layers;
    LOCAL_MEMORY WeightSpec *specs = mem_new((size_t)layers * WEIGHTS, sizeof *specs);
    for (int layer = 0; layer < layers; layer++) name_weights(a, shard, layer, specs + layer * (int)WEIGHTS);
    for (int i = 0; ok && i < layers * (int)WEIGHTS; i++)
        ok = weight_bind(m, &a->weights, &specs[i], shard, dir, e);
    ok = ok && check_used(specs, layers, shard, dir, e) && adapter_read_maps(a, shard, dir, e);
    if (!ok) return false;
    share_equal(&m->embedding, &target->embedding);
    share_equal(&m->head, &target->head);
    return true;
}
