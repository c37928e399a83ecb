// The table of weights, and their search in a model's shards under the names of its architecture, with every
// shape checked against the config.
#include "engine/model/weights.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/binding.h"
#include "engine/model/config.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MATRIX(rows, columns) WEIGHT_MATRIX, AXIS_##rows, AXIS_##columns
#define NORM(columns)         WEIGHT_NORM, AXIS_ONE, AXIS_##columns
#define BIAS(columns)         WEIGHT_BIAS, AXIS_ONE, AXIS_##columns
#define FUSED_QKV             .fused = "self_attn.qkv_proj", .gguf_fused = "attn_qkv"
#define Q_K_V                 FUSED_QKV, .padded = FILL_SILENT
#define BIASES                FUSED_QKV, .optional = true
#define HEAD_NORMS            .optional = true
#define DENSE                 .layers = DENSE_LAYERS
#define GATE_UP               .fused = "mlp.gate_up_proj", .gguf_fused = "ffn_up", DENSE
#define SPARSE                .layers = SPARSE_LAYERS
#define SHARED_IN             .fused = "shared_mlp.input_linear", SPARSE
#define EXPERT_IN             .fused = "block_sparse_moe.input_linear", SPARSE

const WeightRow WEIGHT_ROWS[WEIGHTS] = {
    [W_ATTENTION_NORM] = {"input_layernorm", NORM(RESIDUAL), GROUP_ATTENTION_NORM, .gguf = "attn_norm"},
    [W_ATTENTION_NORM_BIAS] = {"input_layernorm", BIAS(RESIDUAL), GROUP_ATTENTION_NORM_BIAS,
                               .gguf = "attn_norm"},
    [W_Q] = {"self_attn.q_proj", MATRIX(Q, ATTENTION), GROUP_QKV, Q_K_V, .gguf = "attn_q"},
    [W_K] = {"self_attn.k_proj", MATRIX(K, ATTENTION), GROUP_QKV, Q_K_V, .gguf = "attn_k"},
    [W_V] = {"self_attn.v_proj", MATRIX(V, ATTENTION), GROUP_QKV, Q_K_V, .added = FILL_SILENT,
             .gguf = "attn_v"},
    [W_Q_BIAS] = {"self_attn.q_proj", BIAS(Q), GROUP_QKV_BIAS, BIASES, .gguf = "attn_q"},
    [W_K_BIAS] = {"self_attn.k_proj", BIAS(K), GROUP_QKV_BIAS, BIASES, .gguf = "attn_k"},
    [W_V_BIAS] = {"self_attn.v_proj", BIAS(V), GROUP_QKV_BIAS, BIASES, .gguf = "attn_v"},
    [W_Q_NORM] = {"self_attn.q_norm", NORM(Q_NORM), GROUP_QK_NORM, HEAD_NORMS, .gguf = "attn_q_norm"},
    [W_K_NORM] = {"self_attn.k_norm", NORM(K_NORM), GROUP_QK_NORM, HEAD_NORMS, .gguf = "attn_k_norm"},
    [W_O] = {"self_attn.o_proj", MATRIX(RESIDUAL, O), GROUP_O, .padded = FILL_SILENT, .gguf = "attn_output"},
    [W_O_BIAS] = {"self_attn.o_proj", BIAS(RESIDUAL), GROUP_O_BIAS, .gguf = "attn_output"},
    [W_ATTENTION_POST] = {"post_attention_layernorm", NORM(RESIDUAL), GROUP_ATTENTION_POST,
                          .gguf = "post_attention_norm"},
    [W_MLP_NORM] = {"post_attention_layernorm", NORM(RESIDUAL), GROUP_MLP_NORM, .gguf = "ffn_norm"},
    [W_MLP_NORM_BIAS] = {"post_attention_layernorm", BIAS(RESIDUAL), GROUP_MLP_NORM_BIAS, .gguf = "ffn_norm"},
    [W_GATE] = {"mlp.gate_proj", MATRIX(MLP, RESIDUAL), GROUP_IN, GATE_UP, .padded = FILL_SILENT,
                .added = FILL_SILENT, .gguf = "ffn_gate"},
    [W_UP] = {"mlp.up_proj", MATRIX(MLP, RESIDUAL), GROUP_IN, GATE_UP, .gguf = "ffn_up"},
    [W_DOWN] = {"mlp.down_proj", MATRIX(RESIDUAL, MLP), GROUP_DOWN, DENSE, .padded = FILL_SILENT,
                .gguf = "ffn_down"},
    [W_GATE_BIAS] = {"mlp.gate_proj", BIAS(MLP), GROUP_IN_BIAS, DENSE, .gguf = "ffn_gate"},
    [W_UP_BIAS] = {"mlp.up_proj", BIAS(MLP), GROUP_IN_BIAS, DENSE, .gguf = "ffn_up"},
    [W_DOWN_BIAS] = {"mlp.down_proj", BIAS(RESIDUAL), GROUP_DOWN_BIAS, DENSE, .gguf = "ffn_down"},
    [W_MLP_POST] = {"post_feedforward_layernorm", NORM(RESIDUAL), GROUP_MLP_POST, .gguf = "post_ffw_norm"},
    [W_ROUTER] = {"mlp.gate", MATRIX(EXPERTS, RESIDUAL), GROUP_ROUTER, SPARSE},
    [W_SHARED_ROUTER] = {"mlp.shared_expert_gate", MATRIX(ONE, RESIDUAL), GROUP_ROUTER, SPARSE},
    [W_SHARED_GATE] = {"mlp.shared_expert.gate_proj", MATRIX(SHARED, RESIDUAL), GROUP_SHARED_IN, SHARED_IN},
    [W_SHARED_UP] = {"mlp.shared_expert.up_proj", MATRIX(SHARED, RESIDUAL), GROUP_SHARED_IN, SHARED_IN},
    [W_SHARED_DOWN] = {"mlp.shared_expert.down_proj", MATRIX(RESIDUAL, SHARED), GROUP_SHARED_DOWN, SPARSE},
    [W_EXPERT_GATE] = {"gate_proj", MATRIX(EXPERT, RESIDUAL), GROUP_EXPERT_IN, EXPERT_IN},
    [W_EXPERT_UP] = {"up_proj", MATRIX(EXPERT, RESIDUAL), GROUP_EXPERT_IN, EXPERT_IN},
    [W_EXPERT_DOWN] = {"down_proj", MATRIX(RESIDUAL, EXPERT), GROUP_EXPERT_DOWN,
                       .fused = "block_sparse_moe.output_linear", SPARSE},
    [W_FINAL_NORM] = {"model.norm", NORM(RESIDUAL), GROUPS, .gguf = "output_norm"},
    [W_HEAD] = {"lm_head", MATRIX(VOCABULARY, RESIDUAL), GROUPS, .gguf = "output"},
    [W_FC] = {"fc", MATRIX(RESIDUAL, FC), GROUPS, .padded = FILL_SILENT},
    [W_FC_BIAS] = {"fc", BIAS(RESIDUAL), GROUPS},
    [W_TOKEN_NORM] = {"token_norm", NORM(RESIDUAL), GROUPS},
    [W_FC_NORM] = {"fc_norm", NORM(FC), GROUPS},
    [W_STATE_NORM] = {"hidden_norm", NORM(RESIDUAL), GROUPS},
    [W_MARKOV_FROM] = {"markov_head.markov_w1", MATRIX(TOKENS, RANK), GROUPS},
    [W_MARKOV_TO] = {"markov_head.markov_w2", MATRIX(VOCABULARY, RANK), GROUPS},
    [W_MARKOV_GATE] = {"markov_head.gate_proj", MATRIX(GATED, GATE), GROUPS},
    [W_MARKOV_GATE_BIAS] = {"markov_head.gate_proj", BIAS(GATED), GROUPS},
    [W_CONFIDENCE] = {"confidence_head.proj", MATRIX(ONE, CONFIDENCE), GROUPS},
    [W_CONFIDENCE_BIAS] = {"confidence_head.proj", BIAS(ONE), GROUPS},
    [W_FINAL_NORM_BIAS] = {"model.norm", BIAS(RESIDUAL), GROUPS, .gguf = "output_norm"},
    [W_HEAD_BIAS] = {"lm_head", BIAS(VOCABULARY), GROUPS, .gguf = "output"},
    [W_POSITIONS] = {"transformer.wpe", MATRIX(POSITIONS, RESIDUAL), GROUPS, .gguf = "position_embd"},
    [W_EMBEDDING] = {"model.embed_tokens", MATRIX(TOKENS, RESIDUAL), GROUPS, .padded = FILL_EMBEDDING,
                     .gguf = "token_embd"},
};

int axis_size(const Shape *s, int layer, AxisName axis) {
    const int sizes[AXES] = {[AXIS_ONE] = 1,
                             [AXIS_RESIDUAL] = s->width,
                             [AXIS_MLP] = s->mlp_width,
                             [AXIS_EXPERTS] = s->experts.count,
                             [AXIS_EXPERT] = s->experts.width,
                             [AXIS_SHARED] = s->experts.shared_width,
                             [AXIS_VOCABULARY] = s->vocab,
                             [AXIS_TOKENS] = shape_tokens(s),
                             [AXIS_POSITIONS] = s->context,
                             [AXIS_ATTENTION] = shape_attention_width(s, layer),
                             [AXIS_FC] = shape_fc_width(s),
                             [AXIS_RANK] = s->block.rank,
                             [AXIS_GATE] = block_gate_width(&s->block, s->width),
                             [AXIS_GATED] = block_gate_outputs(&s->block),
                             [AXIS_CONFIDENCE] = block_confidence_width(&s->block, s->width),
                             [AXIS_Q] = shape_q_width(s),
                             [AXIS_K] = shape_kv_width(s),
                             [AXIS_V] = shape_kv_width(s),
                             [AXIS_O] = shape_q_width(s),
                             [AXIS_Q_NORM] = s->qk_norm > QK_NORM_HEADS ? shape_q_width(s) : s->head_dim,
                             [AXIS_K_NORM] = s->qk_norm > QK_NORM_HEADS ? shape_kv_width(s) : s->head_dim};
    return sizes[axis];
}

// Whether models of this shape have the weight in the layers that may have it.
static bool is_of_shape(Weight w, const Shape *s) {
    const Experts *x = &s->experts;
    bool norms = s->input != INPUT_FUSED; // before the attention and the head
    bool before = s->norm_place != NORMS_AFTER, after = s->norm_place != NORMS_BEFORE;
    bool dense = s->mlp_width > 0, mlp = dense || x->count > 0;
    bool mlp_norm = mlp && before && s->mlp_input != MLP_SHARES_NORM;
    switch (w) {
    case W_ATTENTION_NORM: return norms && before;
    case W_ATTENTION_NORM_BIAS: return norms && before && s->norm_bias;
    case W_Q_BIAS:
    case W_K_BIAS:
    case W_V_BIAS: return s->qkv_bias;
    case W_Q_NORM:
    case W_K_NORM: return s->qk_norm != QK_NORM_NONE;
    case W_O_BIAS: return s->o_bias;
    case W_ATTENTION_POST: return after;
    case W_MLP_NORM: return mlp_norm;
    case W_MLP_NORM_BIAS: return mlp_norm && s->norm_bias;
    case W_GATE:
    case W_DOWN: return dense;
    case W_UP: return dense && !s->ungated;
    case W_GATE_BIAS:
    case W_DOWN_BIAS: return dense && s->mlp_bias;
    case W_UP_BIAS: return dense && !s->ungated && s->mlp_bias;
    case W_MLP_POST: return mlp && after;
    case W_SHARED_ROUTER: return x->shared_width > 0 && x->shared_gate;
    case W_SHARED_GATE:
    case W_SHARED_UP:
    case W_SHARED_DOWN: return x->shared_width > 0;
    case W_ROUTER:
    case W_EXPERT_GATE:
    case W_EXPERT_UP:
    case W_EXPERT_DOWN: return x->count > 0;
    case W_FINAL_NORM: return norms;
    case W_FINAL_NORM_BIAS: return norms && s->norm_bias;
    case W_HEAD: return !s->tied_head;
    case W_HEAD_BIAS: return s->head_bias;
    case W_FC: return shape_reads_both(s);
    case W_FC_BIAS: return s->input == INPUT_FUSED && s->fc_bias;
    case W_TOKEN_NORM: return s->input == INPUT_PAIRED || s->input == INPUT_MTP;
    case W_FC_NORM: return s->input == INPUT_PAIRED && s->fc_norm != FC_NORM_NONE;
    case W_STATE_NORM: return s->input == INPUT_BLOCK || s->input == INPUT_MTP;
    case W_MARKOV_FROM:
    case W_MARKOV_TO: return s->block.markov != MARKOV_NONE;
    case W_MARKOV_GATE:
    case W_MARKOV_GATE_BIAS: return s->block.markov >= MARKOV_GATED;
    case W_CONFIDENCE:
    case W_CONFIDENCE_BIAS: return s->block.confidence != CONFIDENCE_NONE;
    case W_POSITIONS: return s->positions;
    case W_EMBEDDING: return s->input != INPUT_HIDDEN;
    default: return true;
    }
}

bool weight_present(const Shape *s, int layer, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    if (row->layers != EVERY_LAYER && layer_in(&s->sparse, layer) != (row->layers == SPARSE_LAYERS))
        return false;
    return is_of_shape(w, s);
}

Weight weight_optional(const Shape *s) {
    Weight w = 0;
    while (w < WEIGHTS && !(WEIGHT_ROWS[w].optional && weight_present(s, 0, w))) w++;
    return w;
}

// --- names and sizes

WeightSpec weight_sized(const Shape *s, int layer, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    int rows = axis_size(s, layer, row->rows);
    return (WeightSpec){.which = w,
                        .rows = rows,
                        .columns = axis_size(s, layer, row->columns),
                        .stored_rows = rows,
                        .vector = row->kind != WEIGHT_MATRIX};
}

// Places a weight in its group's tensor, which holds the group's weights in their order.
static void fuse(WeightSpec *spec, const Shape *s) {
    spec->stored_rows = 0;
    for (Weight w = 0; w < MODEL_WEIGHTS; w++) {
        if (WEIGHT_ROWS[w].group != WEIGHT_ROWS[spec->which].group) continue;
        if (w == spec->which) spec->first_row = spec->stored_rows;
        spec->stored_rows += axis_size(s, 0, WEIGHT_ROWS[w].rows);
    }
    assert(spec->first_row + spec->rows <= spec->stored_rows);
}

static bool is_of_heads(const WeightRow *row) {
    return row->group == GROUP_QKV || row->group == GROUP_QKV_BIAS;
}

static StoredForm form_of(const Architecture *a, const Shape *s, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    if (!a) return STORED_AS_READ;
    if (s->qk_norm == QK_NORM_OWN && row->group == GROUP_QK_NORM)
        return a->heads_apart ? STORED_EACH_HEAD : STORED_ROW_A_HEAD;
    if (a->head_by_head && is_of_heads(row)) return STORED_HEAD_BY_HEAD;
    if (a->transposed && row->kind == WEIGHT_MATRIX && w < LAYER_WEIGHTS) return STORED_TRANSPOSED;
    return a->norms_less_one && row->kind == WEIGHT_NORM ? STORED_LESS_ONE : STORED_AS_READ;
}

static const char *layers_of(const Model *m, const Architecture *a) {
    if (m->gguf.is) return "blk";
    return a && a->layers ? a->layers : "model.layers";
}

// The name of a tensor in a GGUF file; an MLP without a gate has its first matrix under the name of up.
static const char *name_in_gguf(const Model *m, Weight w, bool fused) {
    if (fused) return WEIGHT_ROWS[w].gguf_fused;
    if (m->gguf.post_named && w == W_MLP_NORM) w = W_ATTENTION_POST;
    if (m->shape.ungated && w == W_GATE) w = W_UP;
    if (m->shape.ungated && w == W_GATE_BIAS) w = W_UP_BIAS;
    return WEIGHT_ROWS[w].gguf;
}

static const char *name_of(const Architecture *a, Weight w, bool fused) {
    if (a && a->names[w]) return a->names[w];
    return fused ? WEIGHT_ROWS[w].fused : WEIGHT_ROWS[w].name;
}

static bool is_expert(Weight w) { return w >= LAYER_WEIGHTS && w < MODEL_WEIGHTS; }
static const char *experts_of(const Architecture *a) { return a && a->experts ? a->experts : "mlp.experts"; }

// Files begin all names but the head's with "model." or, in older architectures, another word. A base model
// saved alone leaves it out; a model that also sees images puts its own words in front.
static const struct {
    const char *before;
    bool whole; // with the usual first word, and before the head's name, too
} NAME_FORMS[] = {{"", true}, {"", false}, {"language_model.", true}, {"model.language_model.", false}};
enum { NAME_FORM_COUNT = sizeof NAME_FORMS / sizeof *NAME_FORMS };

// Writes a usual name in the form of the model's files.
static void put_in_form(const Model *m, const char *usual, char out[TENSOR_NAME]) {
    if (m->gguf.is) {
        snprintf(out, TENSOR_NAME, "%s", usual);
        return;
    }
    const Architecture *a = architecture_find(m->architecture);
    const char *embedding =
        a && a->names[W_EMBEDDING] ? a->names[W_EMBEDDING] : WEIGHT_ROWS[W_EMBEDDING].name;
    size_t first = strcspn(embedding, ".") + 1;
    bool whole = NAME_FORMS[m->name_form].whole, inner = strncmp(usual, embedding, first) == 0;
    snprintf(out, TENSOR_NAME, "%s%s", whole || inner ? NAME_FORMS[m->name_form].before : "",
             usual + (inner && !whole ? first : 0));
}

static const char EACH_HEAD_ENDING[] = "0.weight";

void weight_of_head(const WeightSpec *s, int head, char out[TENSOR_NAME]) {
    size_t stem = strlen(s->name) - strlen(EACH_HEAD_ENDING);
    snprintf(out, TENSOR_NAME, "%.*s%d.weight", (int)stem, s->name, head);
}

static WeightSpec named(const Model *m, int layer, int expert, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    const Architecture *a = architecture_find(m->architecture);
    WeightSpec s = weight_sized(&m->shape, layer < 0 ? 0 : layer, w);
    const char *ending = row->kind == WEIGHT_BIAS ? "bias" : "weight";
    unsigned groups = m->gguf.is ? m->gguf.fused : a ? a->fused : 0;
    bool in_group = row->fused && groups >> row->group & 1, fused = in_group && !m->unfused;
    s.layer = layer;
    s.expert = expert;
    if (!weight_present(&m->shape, layer, w)) return s;
    if (fused) fuse(&s, &m->shape);
    if (fused && is_expert(w)) s.planes = m->shape.experts.count;
    const char *name =
        m->gguf.is ? name_in_gguf(m, w, fused) : name_of(in_group && !fused ? NULL : a, w, fused);
    bool paired = m->gguf.paired && is_of_heads(row) && w != W_V && w != W_V_BIAS;
    if (!m->unfused)
        s.form = !m->gguf.is ? form_of(a, &m->shape, w) : paired ? STORED_PAIRED : STORED_AS_READ;
    s.heads = s.columns / m->shape.head_dim;
    if (!name) return s;
    if (s.form == STORED_EACH_HEAD) ending = EACH_HEAD_ENDING;
    char usual[TENSOR_NAME];
    if (layer < 0) snprintf(usual, sizeof usual, "%s.%s", name, ending);
    else if (!is_expert(w) || s.planes)
        snprintf(usual, sizeof usual, "%s.%d.%s.%s", layers_of(m, a), layer, name, ending);
    else
        snprintf(usual, sizeof usual, "%s.%d.%s.%d.%s.%s", layers_of(m, a), layer, experts_of(a), expert,
                 name, ending);
    put_in_form(m, usual, s.name);
    return s;
}

static int weights_of_layer(const Shape *s) { return LAYER_WEIGHTS + EXPERT_WEIGHTS * s->experts.count; }

int weights_count(const Model *m) {
    return m->shape.layers * weights_of_layer(&m->shape) + WEIGHTS - MODEL_WEIGHTS;
}

WeightSpec weights_at(const Model *m, int i) {
    int at = i - 1, each = weights_of_layer(&m->shape), behind = at - m->shape.layers * each;
    int layer = at / each, which = at % each, inner = which - LAYER_WEIGHTS;
    assert(i >= 0 && i < weights_count(m));
    if (i == 0) return named(m, -1, 0, W_EMBEDDING);
    if (behind >= 0) return named(m, -1, 0, (Weight)(W_FINAL_NORM + behind));
    if (inner < 0) return named(m, layer, 0, (Weight)which);
    return named(m, layer, inner / EXPERT_WEIGHTS, (Weight)(W_EXPERT_GATE + inner % EXPERT_WEIGHTS));
}

void weights_take_layers(Model *m, ModelWeights *w) {
    const Shape *s = &m->shape;
    size_t each = (size_t)s->experts.count * EXPERT_WEIGHTS, sparse = 0;
    m->layers = w->layers = mem_new((size_t)s->layers, sizeof *w->layers);
    for (int i = 0; i < s->layers; i++) sparse += layer_in(&s->sparse, i);
    if (sparse && each) w->experts = mem_new(each * sparse, sizeof *w->experts);
    Tensor *next = w->experts;
    for (int i = 0; i < s->layers; i++) {
        if (!layer_in(&s->sparse, i)) continue;
        m->layers[i].experts = next;
        next += each;
    }
}

static Tensor *place_of(Model *m, int layer, int expert, Weight w) {
    Tensor *const ends[] = {&m->final_norm,
                            &m->head,
                            &m->fc,
                            &m->fc_bias,
                            &m->token_norm,
                            &m->fc_norm,
                            &m->state_norm,
                            &m->markov_from,
                            &m->markov_to,
                            &m->markov_gate,
                            &m->markov_gate_bias,
                            &m->confidence,
                            &m->confidence_bias,
                            &m->final_norm_bias,
                            &m->head_bias,
                            &m->positions,
                            &m->embedding};
    if (is_expert(w)) return &m->layers[layer].experts[expert * EXPERT_WEIGHTS + (int)(w - W_EXPERT_GATE)];
    if (w < LAYER_WEIGHTS) return &m->layers[layer].w[w];
    assert(w >= MODEL_WEIGHTS);
    return ends[w - MODEL_WEIGHTS];
}

const Tensor *weight_tensor(const Model *m, int layer, int expert, Weight w) {
    static const Tensor none;
    if (is_expert(w) && !m->layers[layer].experts) return &none;
    return place_of((Model *)(uintptr_t)m, layer, expert, w); // which it doesn't change
}

static size_t parameters(const Shape *s, int layer, Weight from, Weight to) {
    size_t sum = 0;
    for (Weight w = from; w < to; w++) {
        const WeightRow *row = &WEIGHT_ROWS[w];
        if (weight_present(s, layer, w))
            sum += (size_t)axis_size(s, layer, row->rows) * (size_t)axis_size(s, layer, row->columns);
    }
    return sum;
}

// Of all layers, with so many experts in each that has any.
static size_t layers_parameters(const Shape *s, int experts) {
    size_t sum = 0;
    for (int i = 0; i < s->layers; i++)
        sum += parameters(s, i, 0, LAYER_WEIGHTS) +
               (size_t)experts * parameters(s, i, W_EXPERT_GATE, MODEL_WEIGHTS);
    return sum;
}

size_t shape_layers_parameters(const Shape *s) { return layers_parameters(s, s->experts.chosen); }

size_t shape_active_parameters(const Shape *s) {
    return shape_layers_parameters(s) + parameters(s, 0, MODEL_WEIGHTS, WEIGHTS);
}

size_t shape_parameters(const Shape *s) {
    return layers_parameters(s, s->experts.count) + parameters(s, 0, MODEL_WEIGHTS, WEIGHTS);
}

// --- binding

// The part of the files that gives the sizes.
static const char *config_of(const Model *m) { return m->gguf.is ? "header" : "config.json"; }

bool binding_has(const Binding *b, const char *name) {
    for (int i = 0; i < b->count; i++)
        if (safetensors_find(&b->shards[i].header, name)) return true;
    return false;
}

bool binding_find(const Binding *b, const char *name, Found *out, Error *e) {
    *out = (Found){NULL, NULL};
    for (int i = 0; i < b->count; i++) {
        const StoredTensor *t = safetensors_find(&b->shards[i].header, name);
        if (t && out->t)
            return error_input(e,
                               "tensor '%s' is in '%s/%s' and in '%s' too; remove the file that isn't "
                               "of this model",
                               name, b->dir, out->shard->name, b->shards[i].name);
        if (t) *out = (Found){t, &b->shards[i]};
    }
    return out->t ||
           error_input(e, "'%s' has no tensor '%s', which its %s needs: are both of the same model?", b->dir,
                       name, config_of(b->m));
}

Tensor *binding_place(const Binding *b, const WeightSpec *s) {
    return place_of(b->m, s->layer, s->expert, s->which);
}

// The stored dimensions; returns how many there are.
static int stored_shape(const WeightSpec *s, int64_t dims[3]) {
    bool turned = s->form == STORED_TRANSPOSED;
    if (s->form == STORED_EACH_HEAD) return dims[0] = s->columns / s->heads, 1;
    if (s->form == STORED_ROW_A_HEAD) return dims[0] = s->heads, dims[1] = s->columns / s->heads, 2;
    if (s->planes) return dims[0] = s->planes, dims[1] = s->stored_rows, dims[2] = s->columns, 3;
    if (s->vector) return dims[0] = (int64_t)s->stored_rows * s->columns, 1;
    dims[turned] = s->stored_rows;
    dims[!turned] = s->columns;
    return 2;
}

static void write_shape(const int64_t *dims, int rank, char *out, size_t size) {
    size_t n = 0;
    *out = 0;
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? ", " : "", (long long)dims[i]);
}

bool binding_check_dims(const Binding *b, const Found *f, const int64_t *dims, int rank, Error *e) {
    char found[128], wanted[64];
    if (f->t->rank == rank && !memcmp(f->t->dims, dims, (size_t)rank * sizeof *dims)) return true;
    write_shape(f->t->dims, f->t->rank, found, sizeof found);
    write_shape(dims, rank, wanted, sizeof wanted);
    return error_input(e,
                       "tensor '%s' in '%s/%s' has shape (%s), %s needs (%s): are "
                       "both of the same model?",
                       f->t->name, b->dir, f->shard->name, found, config_of(b->m), wanted);
}

static bool check_stored(const Binding *b, const WeightSpec *s, const Found *f, Error *e) {
    int64_t dims[3];
    int rank = stored_shape(s, dims);
    return binding_check_dims(b, f, dims, rank, e);
}

size_t binding_row(const Binding *b, const WeightSpec *s, size_t row) {
    size_t head = (size_t)b->m->shape.head_dim;
    if (s->form == STORED_PAIRED) { // of q or k, whose pairs are half a head apart
        size_t i = row % head;
        return (size_t)s->first_row + row - i + i % (head / 2) * 2 + i / (head / 2);
    }
    if (s->form == STORED_HEAD_BY_HEAD) { // of q, k and v that take turns
        size_t part = (size_t)(s->which >= W_Q_BIAS ? s->which - W_Q_BIAS : s->which - W_Q);
        return (row / head * 3 + part) * head + row % head;
    }
    return (size_t)s->first_row + row;
}

// The place of an element of the weight in the stored tensor.
static size_t stored_at(const Binding *b, const WeightSpec *s, size_t row, size_t column) {
    if (s->form == STORED_LESS_ONE) return column;
    if (s->vector) return binding_row(b, s, column);
    if (s->form == STORED_TRANSPOSED) return column * (size_t)s->stored_rows + binding_row(b, s, row);
    return binding_row(b, s, row) * (size_t)s->columns + column;
}

void *binding_take(const Binding *b, const WeightSpec *s, size_t count, size_t size, Error *e) {
    void *to;
    if (!mem_take(&b->w->rearranged, &to, count, size))
        error_system(e, "out of memory for '%s', which is rearranged", s->name);
    return to;
}

// Copies a weight out of its stored form into memory of the model.
static bool rearrange(const Binding *b, const WeightSpec *s, const void *stored, Tensor *out, Error *e) {
    Dtype dtype = s->form == STORED_LESS_ONE ? DTYPE_F32 : out->dtype;
    size_t rows = (size_t)s->rows, columns = (size_t)s->columns, size = dtype_size(dtype);
    unsigned char *to = binding_take(b, s, rows * columns, size, e);
    if (!to) return false;
    for (size_t r = 0, i = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++, i++) {
            size_t at = stored_at(b, s, r, c);
            float one_more = s->form == STORED_LESS_ONE ? 1 + dtype_load(out->dtype, stored, at) : 0;
            if (s->form == STORED_LESS_ONE) memcpy(to + i * size, &one_more, size);
            else memcpy(to + i * size, (const unsigned char *)stored + at * size, size);
        }
    *out = (Tensor){.data = to, .dtype = dtype, .rows = s->rows, .columns = s->columns};
    return true;
}

// The numbers of a found tensor, if it has the weight's dimensions.
static bool locate(const Binding *b, const WeightSpec *s, const Found *f, Dtype *dtype, Error *e) {
    const StoredTensor *t = f->t;
    if (!check_stored(b, s, f, e)) return false;
    if (!safetensors_dtype(t, dtype))
        return error_input(e,
                           "tensor '%s' in '%s/%s' has dtype %s; BF16, F16 and F32 are supported: save the "
                           "model in one of them",
                           t->name, b->dir, f->shard->name, t->dtype);
    return t->begin % dtype_size(*dtype) == 0 ||
           error_input(
               e,
               "tensor '%s' in '%s/%s' begins at byte %zu, not a multiple of its element's %zu; save the "
               "model again with the safetensors library",
               t->name, b->dir, f->shard->name, t->begin, dtype_size(*dtype));
}

// Joins the tensors of all heads, as f32.
static bool join_heads(const Binding *b, const WeightSpec *s, Error *e) {
    float *to = binding_take(b, s, (size_t)s->columns, sizeof *to, e);
    if (!to) return false;
    *binding_place(b, s) = (Tensor){.data = to, .dtype = DTYPE_F32, .rows = s->rows, .columns = s->columns};
    for (int h = 0; h < s->heads; h++) {
        char name[TENSOR_NAME];
        Found f;
        Dtype dtype;
        weight_of_head(s, h, name);
        if (!binding_find(b, name, &f, e) || !locate(b, s, &f, &dtype, e)) return false;
        for (size_t i = 0; i < (size_t)(s->columns / s->heads); i++)
            *to++ = dtype_load(dtype, found_data(&f), i);
    }
    return true;
}

static bool bind(const Binding *b, const WeightSpec *s, Error *e) {
    Found f;
    Dtype dtype;
    Tensor *to = binding_place(b, s);
    if (!s->name[0]) return true;
    if (s->form == STORED_EACH_HEAD) return join_heads(b, s, e);
    if (packed_has(b, s)) return packed_bind(b, s, e);
    if (!binding_find(b, s->name, &f, e)) return false;
    bool codes = strcmp(f.t->dtype, "I8") == 0 || strcmp(f.t->dtype, "U8") == 0;
    if (b->m->unfused && codes && !s->vector) return codes_bind(b, s, &f, e);
    const BlockFormat *blocks = b->m->gguf.is && !s->vector ? block_format(f.t->dtype) : NULL;
    if (blocks) return check_stored(b, s, &f, e) && blocks_bind(b, s, blocks, &f, e);
    if (!locate(b, s, &f, &dtype, e)) return false;
    const unsigned char *data = found_data(&f);
    size_t before = (s->planes ? (size_t)s->expert * (size_t)s->stored_rows : 0) + (size_t)s->first_row;
    *to = (Tensor){.data = data, .dtype = dtype, .rows = s->rows, .columns = s->columns};
    if (s->form != STORED_AS_READ && s->form != STORED_ROW_A_HEAD) return rearrange(b, s, data, to, e);
    to->data = data + before * (size_t)s->columns * dtype_size(dtype);
    return true;
}

bool weight_bind(Model *m, ModelWeights *w, const WeightSpec *s, const Shard *shard, const char *dir,
                 Error *e) {
    return bind(&(Binding){m, w, shard, 1, dir}, s, e);
}

// Old files also store the frequencies of rotation, which config.json gives, and masks of attention.
static bool is_known(const char *name) {
    static const char *const endings[] = {
        ".rotary_emb.inv_freq", ".masked_bias",          ".attn.bias",
        ".attention.bias",      ".attn_rot_embd.weight", ".rope_freqs.weight"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (text_ends(name, endings[i])) return true;
    return false;
}

// The number of the expert that a tensor of a layer belongs to; -1: none.
static int expert_in(const Model *m, const char *name) {
    int expert = -1;
    const char *experts = experts_of(architecture_find(m->architecture)), *at = strstr(name, experts);
    return at && sscanf(at + strlen(experts), ".%4d.", &expert) == 1 ? expert : -1;
}

// Refuses a layer's tensor that no row asks for, such as a bias or a norm: the model's arithmetic is another.
// Layers behind those that config.json names are only counted: a model may have been cut there by hand.
static bool check_used(const Binding *b, const Found *f, Error *e) {
    Model *m = b->m;
    const StoredTensor *t = f->t;
    int layer = -1;
    char layers[TENSOR_NAME];
    put_in_form(m, layers_of(m, architecture_find(m->architecture)), layers);
    size_t n = strlen(layers);
    if (strncmp(t->name, layers, n) != 0 || sscanf(t->name + n, ".%4d.", &layer) != 1 || layer < 0 ||
        is_known(t->name))
        return true;
    if (layer >= m->shape.layers) {
        int behind = layer + 1 - m->shape.layers;
        if (behind > m->unused_layers) m->unused_layers = behind;
        return true;
    }
    int expert = expert_in(m, t->name);
    if (expert >= m->shape.experts.count)
        return error_input(e, "tensor '%s' in '%s/%s' is of an expert too many: config.json gives %d",
                           t->name, b->dir, f->shard->name, m->shape.experts.count);
    for (Weight w = expert < 0 ? 0 : W_EXPERT_GATE; w < MODEL_WEIGHTS; w++) {
        WeightSpec s = named(m, layer, expert < 0 ? 0 : expert, w);
        char scales[TENSOR_NAME];
        bool its = strcmp(s.name, t->name) == 0 || packed_owns(b, &s, f);
        if (m->unfused && !s.vector && scales_name(scales, s.name)) its |= strcmp(scales, t->name) == 0;
        for (int h = 0; s.form == STORED_EACH_HEAD && h < s.heads; h++) {
            char head[TENSOR_NAME];
            weight_of_head(&s, h, head);
            its |= strcmp(head, t->name) == 0;
        }
        if (its) return true;
    }
    return error_input(e,
                       "tensor '%s' in '%s/%s' doesn't belong to a %s model, which would leave it out; is "
                       "'model_type' in its config.json right?",
                       t->name, b->dir, f->shard->name, m->architecture);
}

// Chooses the form under which the files have the embedding; the usual one if none.
static void find_form(Model *m, const Shard *shards, int count) {
    for (m->name_form = 0; m->name_form < NAME_FORM_COUNT; m->name_form++) {
        WeightSpec s = named(m, -1, 0, W_EMBEDDING);
        for (int i = 0; i < count; i++)
            if (safetensors_find(&shards[i].header, s.name)) return;
    }
    m->name_form = 0;
}

bool weights_bind(Model *m, ModelWeights *w, const Shard *shards, int count, const char *dir, Error *e) {
    Binding b = {m, w, shards, count, dir};
    find_form(m, shards, count);
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        if (!bind(&b, &s, e)) return false;
    }
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < shards[i].header.count; k++)
            if (!check_used(&b, &(Found){&shards[i].header.tensors[k], &shards[i]}, e)) return false;
    if (m->shape.tied_head) m->head = m->embedding;
    for (int i = 0; i < m->shape.layers && m->shape.mlp_input == MLP_SHARES_NORM; i++) {
        Tensor *layer = m->layers[i].w;
        layer[W_MLP_NORM] = layer[W_ATTENTION_NORM];
        layer[W_MLP_NORM_BIAS] = layer[W_ATTENTION_NORM_BIAS];
    }
    if (!binding_has(&b, "model.mtp_layers.0.self_attn.q_proj.weight")) m->mtp_layers = 0;
    const Tensor *q = &m->layers[0].w[W_Q];
    m->dtype = q->dtype;
    m->bits = q->codes.bits;
    m->group = q->codes.group;
    return true;
}
