#include "engine/model/weights.h"

#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/model.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

Tensor *weights_field(LayerWeights *w, int which) {
    Tensor *const fields[LAYER_WEIGHTS] = {
        &w->attention_norm, &w->q, &w->k,        &w->v,    &w->q_bias, &w->k_bias, &w->v_bias,   &w->q_norm,
        &w->k_norm,         &w->o, &w->mlp_norm, &w->gate, &w->up,     &w->down,   &w->gate_bias};
    return fields[which];
}

static WeightSpec matrix(int layer, const char *part, int rows, int columns) {
    WeightSpec s = {.rows = rows, .columns = columns, .stored_rows = rows};
    snprintf(s.name, sizeof s.name, "model.layers.%d.%s.weight", layer, part);
    return s;
}

static WeightSpec vector(int layer, const char *part, int n) {
    WeightSpec s = matrix(layer, part, 1, n);
    s.vector = true;
    return s;
}

static WeightSpec bias(int layer, const char *part, int n) {
    WeightSpec s = vector(layer, part, n);
    snprintf(s.name, sizeof s.name, "model.layers.%d.%s.bias", layer, part);
    return s;
}

static WeightSpec slice(int layer, const char *part, int first, int rows, int stored, int columns) {
    WeightSpec s = matrix(layer, part, rows, columns);
    s.first_row = first;
    s.stored_rows = stored;
    return s;
}

int weights_of_layer(const Model *m, int layer, WeightSpec specs[LAYER_WEIGHTS]) {
    const Architecture *a = architecture_find(m->architecture);
    const Shape *s = &m->shape;
    int q = shape_q_width(s), kv = shape_kv_width(s), width = s->width, mlp = s->mlp_width;
    for (int i = 0; i < LAYER_WEIGHTS; i++) specs[i] = (WeightSpec){.name = ""};
    specs[WEIGHT_ATTENTION_NORM] = vector(layer, "input_layernorm", width);
    specs[WEIGHT_O] = matrix(layer, "self_attn.o_proj", width, q);
    specs[WEIGHT_MLP_NORM] = vector(layer, "post_attention_layernorm", width);
    specs[WEIGHT_DOWN] = matrix(layer, "mlp.down_proj", width, mlp);
    if (a && a->fused_qkv) {
        specs[WEIGHT_Q] = slice(layer, "self_attn.qkv_proj", 0, q, q + 2 * kv, width);
        specs[WEIGHT_K] = slice(layer, "self_attn.qkv_proj", q, kv, q + 2 * kv, width);
        specs[WEIGHT_V] = slice(layer, "self_attn.qkv_proj", q + kv, kv, q + 2 * kv, width);
    } else {
        specs[WEIGHT_Q] = matrix(layer, "self_attn.q_proj", q, width);
        specs[WEIGHT_K] = matrix(layer, "self_attn.k_proj", kv, width);
        specs[WEIGHT_V] = matrix(layer, "self_attn.v_proj", kv, width);
    }
    if (s->qkv_bias) {
        specs[WEIGHT_Q_BIAS] = bias(layer, "self_attn.q_proj", q);
        specs[WEIGHT_K_BIAS] = bias(layer, "self_attn.k_proj", kv);
        specs[WEIGHT_V_BIAS] = bias(layer, "self_attn.v_proj", kv);
    }
    if (s->qk_norm) {
        specs[WEIGHT_Q_NORM] = vector(layer, "self_attn.q_norm", s->head_dim);
        specs[WEIGHT_K_NORM] = vector(layer, "self_attn.k_norm", s->head_dim);
    }
    if (a && a->fused_gate_up) {
        specs[WEIGHT_GATE] = slice(layer, "mlp.gate_up_proj", 0, mlp, 2 * mlp, width);
        specs[WEIGHT_UP] = slice(layer, "mlp.gate_up_proj", mlp, mlp, 2 * mlp, width);
    } else {
        specs[WEIGHT_GATE] = matrix(layer, "mlp.gate_proj", mlp, width);
        specs[WEIGHT_UP] = matrix(layer, "mlp.up_proj", mlp, width);
    }
    return LAYER_WEIGHTS;
}

int weights_of_ends(const Model *m, WeightSpec specs[3]) {
    const Shape *s = &m->shape;
    specs[0] = (WeightSpec){"model.embed_tokens.weight", s->vocab, s->width, 0, s->vocab, false, false};
    specs[1] = (WeightSpec){"model.norm.weight", 1, s->width, 0, 1, true, false};
    specs[2] = (WeightSpec){"lm_head.weight", s->vocab, s->width, 0, s->vocab, false, false};
    return s->tied_head ? 2 : 3;
}

// The tensor and its shard; NULL with e filled unless exactly one shard has it.
static const StoredTensor *find(const Shard *shards, int count, const char *name, const char *dir,
                                const Shard **where, Error *e) {
    const StoredTensor *found = NULL;
    for (int i = 0; i < count; i++) {
        const StoredTensor *t = safetensors_find(&shards[i].header, name);
        if (t && found) {
            error_input(e,
                        "tensor '%s' is in '%s/%s' and in '%s' too; remove the file that is not of this "
                        "model",
                        name, dir, (*where)->name, shards[i].name);
            return NULL;
        }
        if (!t) continue;
        *where = &shards[i];
        found = t;
    }
    if (!found)
        error_input(e, "'%s' has no tensor '%s', which its config.json needs: is one of another model?", dir,
                    name);
    return found;
}

static bool has_shape(const StoredTensor *t, const WeightSpec *s) {
    if (s->vector) return t->rank == 1 && t->dims[0] == s->columns;
    return t->rank == 2 && t->dims[0] == s->stored_rows && t->dims[1] == s->columns;
}

static bool wrong_shape(const StoredTensor *t, const WeightSpec *s, const char *dir, const char *file,
                        Error *e) {
    char found[128] = "", wanted[64];
    size_t n = 0;
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    if (s->vector) snprintf(wanted, sizeof wanted, "%d", s->columns);
    else snprintf(wanted, sizeof wanted, "%d, %d", s->stored_rows, s->columns);
    return error_input(e,
                       "tensor '%s' in '%s/%s' has shape (%s), config.json needs (%s): is one of "
                       "another model?",
                       t->name, dir, file, found, wanted);
}

bool weight_bind(Tensor *out, const WeightSpec *s, const Shard *shards, int count, const char *dir,
                 Error *e) {
    const Shard *shard = NULL;
    Dtype dtype;
    if (!s->name[0]) return true; // this architecture has no such weight
    const StoredTensor *t = find(shards, count, s->name, dir, &shard, e);
    if (!t) return false;
    if (!has_shape(t, s)) return wrong_shape(t, s, dir, shard->name, e);
    if (!safetensors_dtype(t, &dtype))
        return error_input(e,
                           "tensor '%s' in '%s/%s' has dtype %s; BF16, F16 and F32 are supported: save the "
                           "model in one of them",
                           t->name, dir, shard->name, t->dtype);
    if (t->begin % dtype_size(dtype))
        return error_input(
            e,
            "tensor '%s' in '%s/%s' begins at byte %zu, which is no multiple of its element's %zu; save "
            "the model again with the safetensors library",
            t->name, dir, shard->name, t->begin, dtype_size(dtype));
    size_t skip = (size_t)s->first_row * (size_t)s->columns * dtype_size(dtype);
    *out = (Tensor){shard->data + t->begin + skip, dtype, s->rows, s->columns};
    return true;
}

// A weight of a layer that is never asked for, as a bias or a norm, is one of another arithmetic. Old files
// also keep the frequencies of rotation, which config.json gives. Layers behind those that config.json names
// are only counted: a model may be cut there by hand.
static bool check_used(Model *m, const StoredTensor *t, const char *dir, const char *file, Error *e) {
    WeightSpec specs[LAYER_WEIGHTS];
    int layer = -1, count;
    if (sscanf(t->name, "model.layers.%4d.", &layer) != 1 || layer < 0 ||
        text_ends(t->name, ".rotary_emb.inv_freq"))
        return true;
    if (layer >= m->shape.layers) {
        int behind = layer + 1 - m->shape.layers;
        if (behind > m->unused_layers) m->unused_layers = behind;
        return true;
    }
    count = weights_of_layer(m, layer, specs);
    for (int i = 0; i < count; i++)
        if (strcmp(specs[i].name, t->name) == 0) return true;
    return error_input(e,
                       "tensor '%s' in '%s/%s' is none of a %s model: what it does would be left out; is "
                       "'model_type' in its config.json right?",
                       t->name, dir, file, m->architecture);
}

bool weights_bind(Model *m, const Shard *shards, int count, const char *dir, Error *e) {
    WeightSpec specs[LAYER_WEIGHTS];
    for (int layer = 0; layer < m->shape.layers; layer++) {
        int n = weights_of_layer(m, layer, specs);
        for (int i = 0; i < n; i++)
            if (!weight_bind(weights_field(&m->layers[layer], i), &specs[i], shards, count, dir, e))
                return false;
    }
    Tensor *const ends[3] = {&m->embedding, &m->final_norm, &m->head};
    int n = weights_of_ends(m, specs);
    for (int i = 0; i < n; i++)
        if (!weight_bind(ends[i], &specs[i], shards, count, dir, e)) return false;
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < shards[i].header.count; k++)
            if (!check_used(m, &shards[i].header.tensors[k], dir, shards[i].name, e)) return false;
    if (m->shape.tied_head) m->head = m->embedding;
    m->dtype = m->layers[0].q.dtype;
    return true;
}

// --- finite?

static size_t count_halves(const uint16_t *x, size_t n, uint16_t exponent) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += (x[i] & exponent) == exponent;
    return bad;
}

static size_t count_words(const uint32_t *x, size_t n, uint32_t exponent) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += (x[i] & exponent) == exponent;
    return bad;
}

static size_t count_bad(const Tensor *t) {
    size_t n = (size_t)t->rows * (size_t)t->columns;
    switch (t->dtype) {
    case DTYPE_F32: return count_words(t->data, n, 0x7f800000u);
    case DTYPE_F16: return count_halves(t->data, n, 0x7c00u);
    case DTYPE_BF16: return count_halves(t->data, n, 0x7f80u);
    }
    return 0;
}

// What was found so far.
typedef struct {
    size_t total;
    WeightSpec spec; // of the first tensor that holds any
    const Tensor *tensor;
} Found;

static void scan(Found *f, const Tensor *t, const WeightSpec *spec) {
    size_t bad = t->data ? count_bad(t) : 0;
    if (bad && !f->total) {
        f->spec = *spec;
        f->tensor = t;
    }
    f->total += bad;
}

static const char *file_of(const Model *m, const void *data) {
    uintptr_t at = (uintptr_t)data;
    for (int i = 0; i < m->shard_count; i++) {
        uintptr_t start = (uintptr_t)m->shards[i].view.data;
        if (at >= start && at - start < m->shards[i].view.size) return m->shards[i].name;
    }
    return "?";
}

static bool report(const Found *f, const Model *m, const char *dir, Error *e) {
    const Tensor *t = f->tensor;
    size_t i = 0, columns = (size_t)t->columns;
    while (isfinite(dtype_load(t->dtype, t->data, i))) i++;
    return error_input(
        e,
        "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, the first of %zu weights that "
        "are not finite: fetch or save the model again",
        f->spec.name, dir, file_of(m, t->data),
        isnan(dtype_load(t->dtype, t->data, i)) ? "a NaN" : "an infinity",
        (size_t)f->spec.first_row + i / columns, i % columns, f->total);
}

bool model_check_finite(const Model *m, const char *dir, Error *e) {
    WeightSpec specs[LAYER_WEIGHTS];
    Found f = {0};
    const Tensor *const ends[3] = {&m->embedding, &m->final_norm, &m->head};
    int n = weights_of_ends(m, specs);
    for (int i = 0; i < n; i++) scan(&f, ends[i], &specs[i]);
    for (int layer = 0; layer < m->shape.layers; layer++) {
        n = weights_of_layer(m, layer, specs);
        for (int i = 0; i < n; i++) scan(&f, weights_field(&m->layers[layer], i), &specs[i]);
    }
    return f.total == 0 || report(&f, m, dir, e);
}
