// The table of weights, and their search in a model's shards under the names of its architecture, with every
// shape checked against the config.
#include "engine/model/weights.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/model.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool has_experts(const Shape *s) { return s->experts.count > 0; }
static bool has_shared(const Shape *s) { return s->experts.shared_width > 0; }
static bool has_shared_router(const Shape *s) { return has_shared(s) && s->experts.shared_gate; }
static bool has_dense(const Shape *s) { return s->mlp_width > 0; }
static bool has_mlp(const Shape *s) { return has_dense(s) || has_experts(s); }
static bool has_up(const Shape *s) { return has_dense(s) && !s->ungated; }
static bool has_biases(const Shape *s) { return s->qkv_bias; }
static bool has_o_bias(const Shape *s) { return s->o_bias; }
static bool has_mlp_bias(const Shape *s) { return has_dense(s) && s->mlp_bias; }
static bool has_up_bias(const Shape *s) { return has_up(s) && s->mlp_bias; }
static bool has_head_norms(const Shape *s) { return s->qk_norm != QK_NORM_NONE; }
static bool has_head(const Shape *s) { return !s->tied_head; }
static bool has_head_bias(const Shape *s) { return s->head_bias; }
static bool has_fc_bias(const Shape *s) { return s->input == INPUT_FUSED && s->fc_bias; }
static bool is_paired(const Shape *s) { return s->input == INPUT_PAIRED; }
static bool has_fc_norm(const Shape *s) { return is_paired(s) && s->normed_fc; }
static bool has_norms(const Shape *s) { return s->input != INPUT_FUSED; } // before the attention and the head
static bool has_final_bias(const Shape *s) { return has_norms(s) && s->norm_bias; }
static bool has_positions(const Shape *s) { return s->positions; }
static bool has_embedding(const Shape *s) { return s->input != INPUT_HIDDEN; }

static bool has_attention_norm(const Shape *s) { return has_norms(s) && s->norm_place != NORMS_AFTER; }
static bool has_attention_norm_bias(const Shape *s) { return has_attention_norm(s) && s->norm_bias; }
static bool has_mlp_norm(const Shape *s) {
    return has_mlp(s) && s->norm_place != NORMS_AFTER && s->mlp_input != MLP_SHARES_NORM;
}
static bool has_mlp_norm_bias(const Shape *s) { return has_mlp_norm(s) && s->norm_bias; }
static bool has_post(const Shape *s) { return s->norm_place != NORMS_BEFORE; }
static bool has_mlp_post(const Shape *s) { return has_mlp(s) && has_post(s); }

#define MATRIX(rows, columns) WEIGHT_MATRIX, AXIS_##rows, AXIS_##columns
#define NORM(columns)         WEIGHT_NORM, AXIS_ONE, AXIS_##columns
#define BIAS(columns)         WEIGHT_BIAS, AXIS_ONE, AXIS_##columns
#define FUSED_QKV             .fused = "self_attn.qkv_proj", .gguf_fused = "attn_qkv"
#define Q_K_V                 FUSED_QKV, .padded = FILL_SILENT
#define BIASES                FUSED_QKV, .present = has_biases, .optional = true
#define HEAD_NORMS            .present = has_head_norms, .optional = true
#define DENSE                 .layers = DENSE_LAYERS
#define GATE_UP               .fused = "mlp.gate_up_proj", .gguf_fused = "ffn_up", DENSE
#define SPARSE(has)           .present = has, .layers = SPARSE_LAYERS
#define SHARED_IN             .fused = "shared_mlp.input_linear", SPARSE(has_shared)
#define EXPERT_IN             .fused = "block_sparse_moe.input_linear", SPARSE(has_experts)

const WeightRow WEIGHT_ROWS[WEIGHTS] = {
    [W_ATTENTION_NORM] = {"input_layernorm", NORM(RESIDUAL), GROUP_ATTENTION_NORM,
                          .present = has_attention_norm, .gguf = "attn_norm"},
    [W_ATTENTION_NORM_BIAS] = {"input_layernorm", BIAS(RESIDUAL), GROUP_ATTENTION_NORM_BIAS,
                               .present = has_attention_norm_bias, .gguf = "attn_norm"},
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
    [W_O_BIAS] = {"self_attn.o_proj", BIAS(RESIDUAL), GROUP_O_BIAS, .present = has_o_bias,
                  .gguf = "attn_output"},
    [W_ATTENTION_POST] = {"post_attention_layernorm", NORM(RESIDUAL), GROUP_ATTENTION_POST,
                          .present = has_post, .gguf = "post_attention_norm"},
    [W_MLP_NORM] = {"post_attention_layernorm", NORM(RESIDUAL), GROUP_MLP_NORM, .present = has_mlp_norm,
                    .gguf = "ffn_norm"},
    [W_MLP_NORM_BIAS] = {"post_attention_layernorm", BIAS(RESIDUAL), GROUP_MLP_NORM_BIAS,
                         .present = has_mlp_norm_bias, .gguf = "ffn_norm"},
    [W_GATE] = {"mlp.gate_proj", MATRIX(MLP, RESIDUAL), GROUP_IN, GATE_UP, .present = has_dense,
                .padded = FILL_SILENT, .added = FILL_SILENT, .gguf = "ffn_gate"},
    [W_UP] = {"mlp.up_proj", MATRIX(MLP, RESIDUAL), GROUP_IN, GATE_UP, .present = has_up, .gguf = "ffn_up"},
    [W_DOWN] = {"mlp.down_proj", MATRIX(RESIDUAL, MLP), GROUP_DOWN, DENSE, .present = has_dense,
                .padded = FILL_SILENT, .gguf = "ffn_down"},
    [W_GATE_BIAS] = {"mlp.gate_proj", BIAS(MLP), GROUP_IN_BIAS, DENSE, .present = has_mlp_bias,
                     .gguf = "ffn_gate"},
    [W_UP_BIAS] = {"mlp.up_proj", BIAS(MLP), GROUP_IN_BIAS, DENSE, .present = has_up_bias, .gguf = "ffn_up"},
    [W_DOWN_BIAS] = {"mlp.down_proj", BIAS(RESIDUAL), GROUP_DOWN_BIAS, DENSE, .present = has_mlp_bias,
                     .gguf = "ffn_down"},
    [W_MLP_POST] = {"post_feedforward_layernorm", NORM(RESIDUAL), GROUP_MLP_POST, .present = has_mlp_post,
                    .gguf = "post_ffw_norm"},
    [W_ROUTER] = {"mlp.gate", MATRIX(EXPERTS, RESIDUAL), GROUP_ROUTER, SPARSE(has_experts)},
    [W_SHARED_ROUTER] = {"mlp.shared_expert_gate", MATRIX(ONE, RESIDUAL), GROUP_ROUTER,
                         SPARSE(has_shared_router)},
    [W_SHARED_GATE] = {"mlp.shared_expert.gate_proj", MATRIX(SHARED, RESIDUAL), GROUP_SHARED_IN, SHARED_IN},
    [W_SHARED_UP] = {"mlp.shared_expert.up_proj", MATRIX(SHARED, RESIDUAL), GROUP_SHARED_IN, SHARED_IN},
    [W_SHARED_DOWN] = {"mlp.shared_expert.down_proj", MATRIX(RESIDUAL, SHARED), GROUP_SHARED_DOWN,
                       SPARSE(has_shared)},
    [W_EXPERT_GATE] = {"gate_proj", MATRIX(EXPERT, RESIDUAL), GROUP_EXPERT_IN, EXPERT_IN},
    [W_EXPERT_UP] = {"up_proj", MATRIX(EXPERT, RESIDUAL), GROUP_EXPERT_IN, EXPERT_IN},
    [W_EXPERT_DOWN] = {"down_proj", MATRIX(RESIDUAL, EXPERT), GROUP_EXPERT_DOWN,
                       .fused = "block_sparse_moe.output_linear", SPARSE(has_experts)},
    [W_FINAL_NORM] = {"model.norm", NORM(RESIDUAL), GROUPS, .present = has_norms, .gguf = "output_norm"},
    [W_HEAD] = {"lm_head", MATRIX(VOCABULARY, RESIDUAL), GROUPS, .present = has_head, .gguf = "output"},
    [W_FC] = {"fc", MATRIX(RESIDUAL, FC), GROUPS, .present = shape_reads_both, .padded = FILL_SILENT},
    [W_FC_BIAS] = {"fc", BIAS(RESIDUAL), GROUPS, .present = has_fc_bias},
    [W_TOKEN_NORM] = {"token_norm", NORM(RESIDUAL), GROUPS, .present = is_paired},
    [W_FC_NORM] = {"fc_norm", NORM(FC), GROUPS, .present = has_fc_norm},
    [W_FINAL_NORM_BIAS] = {"model.norm", BIAS(RESIDUAL), GROUPS, .present = has_final_bias,
                           .gguf = "output_norm"},
    [W_HEAD_BIAS] = {"lm_head", BIAS(VOCABULARY), GROUPS, .present = has_head_bias, .gguf = "output"},
    [W_POSITIONS] = {"transformer.wpe", MATRIX(POSITIONS, RESIDUAL), GROUPS, .present = has_positions,
                     .gguf = "position_embd"},
    [W_EMBEDDING] = {"model.embed_tokens", MATRIX(TOKENS, RESIDUAL), GROUPS, .present = has_embedding,
                     .padded = FILL_EMBEDDING, .gguf = "token_embd"},
};

int axis_size(const Shape *s, AxisName axis) {
    const int sizes[AXES] = {[AXIS_ONE] = 1,
                             [AXIS_RESIDUAL] = s->width,
                             [AXIS_MLP] = s->mlp_width,
                             [AXIS_EXPERTS] = s->experts.count,
                             [AXIS_EXPERT] = s->experts.width,
                             [AXIS_SHARED] = s->experts.shared_width,
                             [AXIS_VOCABULARY] = s->vocab,
                             [AXIS_TOKENS] = shape_tokens(s),
                             [AXIS_POSITIONS] = s->context,
                             [AXIS_ATTENTION] = shape_attention_width(s),
                             [AXIS_FC] = shape_fc_width(s),
                             [AXIS_Q] = shape_q_width(s),
                             [AXIS_K] = shape_kv_width(s),
                             [AXIS_V] = shape_kv_width(s),
                             [AXIS_O] = shape_q_width(s),
                             [AXIS_Q_NORM] = s->qk_norm > QK_NORM_HEADS ? shape_q_width(s) : s->head_dim,
                             [AXIS_K_NORM] = s->qk_norm > QK_NORM_HEADS ? shape_kv_width(s) : s->head_dim};
    return sizes[axis];
}

bool weight_present(const Shape *s, int layer, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    if (row->layers != EVERY_LAYER && layer_in(&s->sparse, layer) != (row->layers == SPARSE_LAYERS))
        return false;
    return !row->present || row->present(s);
}

Weight weight_optional(const Shape *s) {
    Weight w = 0;
    while (w < WEIGHTS && !(WEIGHT_ROWS[w].optional && weight_present(s, 0, w))) w++;
    return w;
}

// --- names and sizes

WeightSpec weight_sized(const Shape *s, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    int rows = axis_size(s, row->rows);
    return (WeightSpec){.which = w,
                        .rows = rows,
                        .columns = axis_size(s, row->columns),
                        .stored_rows = rows,
                        .vector = row->kind != WEIGHT_MATRIX};
}

// Places a weight in its group's tensor, which holds the group's weights in their order.
static void fuse(WeightSpec *spec, const Shape *s) {
    spec->stored_rows = 0;
    for (Weight w = 0; w < MODEL_WEIGHTS; w++) {
        if (WEIGHT_ROWS[w].group != WEIGHT_ROWS[spec->which].group) continue;
        if (w == spec->which) spec->first_row = spec->stored_rows;
        spec->stored_rows += axis_size(s, WEIGHT_ROWS[w].rows);
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

static StoredForm form_in_gguf(const Model *m, Weight w) {
    bool turned = is_of_heads(&WEIGHT_ROWS[w]) && w != W_V && w != W_V_BIAS;
    return m->gguf.paired && turned ? STORED_PAIRED : STORED_AS_READ;
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

// The tensor of a head of STORED_EACH_HEAD.
static void name_of_head(const WeightSpec *s, int head, char out[TENSOR_NAME]) {
    size_t stem = strlen(s->name) - strlen(EACH_HEAD_ENDING);
    snprintf(out, TENSOR_NAME, "%.*s%d.weight", (int)stem, s->name, head);
}

static WeightSpec named(const Model *m, int layer, int expert, Weight w) {
    const WeightRow *row = &WEIGHT_ROWS[w];
    const Architecture *a = architecture_find(m->architecture);
    WeightSpec s = weight_sized(&m->shape, w);
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
    if (!m->unfused) s.form = m->gguf.is ? form_in_gguf(m, w) : form_of(a, &m->shape, w);
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

void weights_take_layers(Model *m) {
    const Shape *s = &m->shape;
    size_t each = (size_t)s->experts.count * EXPERT_WEIGHTS, sparse = 0;
    m->layers = mem_new((size_t)s->layers, sizeof *m->layers);
    for (int i = 0; i < s->layers; i++) sparse += layer_in(&s->sparse, i);
    if (sparse && each) m->experts = mem_new(each * sparse, sizeof *m->experts);
    Tensor *next = m->experts;
    for (int i = 0; i < s->layers; i++) {
        if (!layer_in(&s->sparse, i)) continue;
        m->layers[i].experts = next;
        next += each;
    }
}

static Tensor *place_of(Model *m, int layer, int expert, Weight w) {
    Tensor *const ends[] = {
        &m->final_norm,      &m->head,      &m->fc,        &m->fc_bias,  &m->token_norm, &m->fc_norm,
        &m->final_norm_bias, &m->head_bias, &m->positions, &m->embedding};
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
            sum += (size_t)axis_size(s, row->rows) * (size_t)axis_size(s, row->columns);
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

size_t shape_expert_parameters(const Shape *s) {
    return EXPERT_WEIGHTS * (size_t)s->experts.width * (size_t)s->width;
}

size_t shape_active_parameters(const Shape *s) {
    return shape_layers_parameters(s) + parameters(s, 0, MODEL_WEIGHTS, WEIGHTS);
}

size_t shape_parameters(const Shape *s) {
    return layers_parameters(s, s->experts.count) + parameters(s, 0, MODEL_WEIGHTS, WEIGHTS);
}

// --- binding

// What names the sizes.
static const char *config_of(const Model *m) { return m->gguf.is ? "header" : "config.json"; }

// The tensor and its shard; NULL with e filled unless exactly one shard has it.
static const StoredTensor *find(const Model *m, const Shard *shards, int count, const char *name,
                                const char *dir, const Shard **where, Error *e) {
    const StoredTensor *found = NULL;
    for (int i = 0; i < count; i++) {
        const StoredTensor *t = safetensors_find(&shards[i].header, name);
        if (t && found) {
            error_input(e,
                        "tensor '%s' is in '%s/%s' and in '%s' too; remove the file that isn't "
                        "of this model",
                        name, dir, (*where)->name, shards[i].name);
            return NULL;
        }
        if (!t) continue;
        *where = &shards[i];
        found = t;
    }
    if (!found)
        error_input(e, "'%s' has no tensor '%s', which its %s needs: are both of the same model?", dir, name,
                    config_of(m));
    return found;
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

static bool check_shape(const Model *m, const StoredTensor *t, const WeightSpec *s, const char *dir,
                        const char *file, Error *e) {
    char found[128], wanted[64];
    int64_t dims[3];
    int rank = stored_shape(s, dims);
    if (t->rank == rank && !memcmp(t->dims, dims, (size_t)rank * sizeof *dims)) return true;
    write_shape(t->dims, t->rank, found, sizeof found);
    write_shape(dims, rank, wanted, sizeof wanted);
    return error_input(e,
                       "tensor '%s' in '%s/%s' has shape (%s), %s needs (%s): are "
                       "both of the same model?",
                       t->name, dir, file, found, config_of(m), wanted);
}

// The stored row of a row of q or k, whose pairs are half a head apart.
static size_t paired_row(const WeightSpec *s, size_t head, size_t row) {
    size_t i = row % head;
    return (size_t)s->first_row + row - i + i % (head / 2) * 2 + i / (head / 2);
}

// The place of an element of the weight in the stored tensor; `head` is the size of one.
static size_t stored_at(const WeightSpec *s, size_t head, size_t row, size_t column) {
    size_t columns = (size_t)s->columns;
    if (s->form == STORED_PAIRED)
        return s->vector ? paired_row(s, head, column) : paired_row(s, head, row) * columns + column;
    if (s->form == STORED_TRANSPOSED) return column * (size_t)s->stored_rows + (size_t)s->first_row + row;
    if (s->form == STORED_LESS_ONE) return column;
    size_t part = (size_t)(s->which >= W_Q_BIAS ? s->which - W_Q_BIAS : s->which - W_Q);
    size_t i = s->vector ? column : row, at = (i / head * 3 + part) * head + i % head;
    return s->vector ? at : at * columns + column;
}

// Memory for a weight that isn't used as it is stored; NULL with e filled.
static void *take(Model *m, const WeightSpec *s, size_t count, size_t size, Error *e) {
    void *to = mem_try(count, size);
    if (!to) {
        error_system(e, "out of memory for '%s', which is rearranged", s->name);
        return NULL;
    }
    mem_grow(&m->rearranged, &m->rearranged_capacity, m->rearranged_count + 1, sizeof *m->rearranged);
    m->rearranged[m->rearranged_count++] = to;
    return to;
}

// Copies a weight out of its stored form into memory of the model.
static bool rearrange(Model *m, const WeightSpec *s, const void *stored, Tensor *out, Error *e) {
    Dtype dtype = s->form == STORED_LESS_ONE ? DTYPE_F32 : out->dtype;
    size_t rows = (size_t)s->rows, columns = (size_t)s->columns, size = dtype_size(dtype);
    unsigned char *to = take(m, s, rows * columns, size, e);
    if (!to) return false;
    for (size_t r = 0, i = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++, i++) {
            size_t at = stored_at(s, (size_t)m->shape.head_dim, r, c);
            float one_more = s->form == STORED_LESS_ONE ? 1 + dtype_load(out->dtype, stored, at) : 0;
            if (s->form == STORED_LESS_ONE) memcpy(to + i * size, &one_more, size);
            else memcpy(to + i * size, (const unsigned char *)stored + at * size, size);
        }
    *out = (Tensor){.data = to, .dtype = dtype, .rows = s->rows, .columns = s->columns};
    return true;
}

bool scales_name(char out[TENSOR_NAME], const char *weight) {
    int n = snprintf(out, TENSOR_NAME, "%s.scales", weight);
    return n > 0 && n < TENSOR_NAME;
}

// A scale that is 0, infinite or a NaN wasn't written by any quantiser.
static bool check_scales(const StoredTensor *t, const unsigned char *data, const Shard *shard,
                         const char *dir, Error *e) {
    size_t count = (t->end - t->begin) / sizeof(uint16_t), columns = (size_t)t->dims[1];
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, data + i * sizeof half, sizeof half);
        const char *what = !(half & 0x7fffu)             ? "0"
                           : (half & 0x7c00u) != 0x7c00u ? NULL
                           : half & 0x3ffu               ? "a NaN"
                                                         : "an infinity";
        if (what)
            return error_input(
                e,
                "tensor '%s' in '%s/%s' holds %s at row %zu, column %zu, which is not a scale: "
                "quantise the model again",
                t->name, dir, shard->name, what, i / columns, i % columns);
    }
    return true;
}

// The scales of a weight that is stored as codes `t` (quantise.h).
static bool bind_codes(Model *m, const WeightSpec *s, const StoredTensor *t, const Shard *shard,
                       const Shard *shards, int count, const char *dir, Error *e) {
    const Shard *where = NULL;
    char name[TENSOR_NAME];
    int bits = strcmp(t->dtype, "I8") == 0 ? 8 : 4, group = m->group;
    Tensor *to = place_of(m, s->layer, s->expert, s->which);
    if (t->rank != 2 || t->dims[0] != s->rows || t->dims[1] != (int64_t)s->columns * bits / 8 ||
        s->columns % group)
        return error_input(
            e,
            "tensor '%s' in '%s/%s' isn't codes of %d bits for (%d, %d) numbers in groups of %d, "
            "which config.json needs: are both of the same model?",
            t->name, dir, shard->name, bits, s->rows, s->columns, group);
    if (!scales_name(name, s->name)) return error_input(e, "the name of tensor '%s' is too long", s->name);
    const StoredTensor *scales = find(m, shards, count, name, dir, &where, e);
    if (!scales) return false;
    if (strcmp(scales->dtype, "F16") != 0 || scales->rank != 2 || scales->dims[0] != s->rows ||
        scales->dims[1] != s->columns / group || scales->begin % sizeof(uint16_t))
        return error_input(e, "tensor '%s' in '%s/%s' must hold (%d, %d) scales in F16, at an even byte",
                           name, dir, where->name, s->rows, s->columns / group);
    *to = (Tensor){.data = shard->data + t->begin,
                   .dtype = DTYPE_BF16,
                   .rows = s->rows,
                   .columns = s->columns,
                   .codes = {bits, group, SCALES_F16, where->data + scales->begin}};
    return check_scales(scales, to->codes.scales, where, dir, e);
}

// Makes codes of the blocks of a GGUF file; of codes that kernels don't know, values.
static bool bind_blocks(Model *m, const WeightSpec *s, const BlockFormat *f, const StoredTensor *stored,
                        const Shard *shard, const char *dir, Tensor *out, Error *e) {
    Tensor t = {.dtype = DTYPE_BF16, .rows = 1, .columns = s->columns, .codes = f->codes};
    bool valued = f->codes.bits == 8 && f->codes.kind == SCALES_PAIRS, paired = s->form == STORED_PAIRED;
    size_t row = (size_t)s->columns / (size_t)f->numbers * (size_t)f->bytes, rows = (size_t)s->rows;
    size_t code_bytes = tensor_row_bytes(&t), scale_bytes = tensor_row_scale_bytes(&t), bad = 0;
    size_t value_bytes = (size_t)s->columns * sizeof(uint16_t), groups = (size_t)(t.columns / t.codes.group);
    unsigned char *codes = take(m, s, valued ? 1 : rows, code_bytes, e);
    unsigned char *scales = codes ? take(m, s, valued ? 1 : rows, scale_bytes, e) : NULL;
    unsigned char *values = scales && valued ? take(m, s, rows, value_bytes, e) : NULL;
    if (!scales || (valued && !values)) return false;
    for (size_t r = 0; r < rows; r++) {
        size_t at = paired ? paired_row(s, (size_t)m->shape.head_dim, r) : (size_t)s->first_row + r;
        size_t place = valued ? 0 : r;
        t.data = codes + place * code_bytes;
        t.codes.scales = scales + place * scale_bytes;
        block_row(f, shard->data + stored->begin + at * row, s->columns, codes + place * code_bytes,
                  scales + place * scale_bytes);
        if ((bad = tensor_bad_scale(&t)) < groups)
            return error_input(
                e,
                "tensor '%s' in '%s/%s' has a scale that isn't finite, at row %zu, group %zu: fetch the "
                "model again",
                s->name, dir, shard->name, r, bad);
        if (valued) tensor_decode_row(&t, 0, (uint16_t *)(void *)(values + r * value_bytes));
    }
    *out = (Tensor){
        .data = valued ? values : codes, .dtype = DTYPE_BF16, .rows = s->rows, .columns = s->columns};
    if (valued) return true;
    out->codes = f->codes;
    out->codes.scales = scales;
    return true;
}

// The numbers of a found tensor, if it has the weight's dimensions.
static bool locate(const Model *m, const WeightSpec *s, const StoredTensor *t, const Shard *shard,
                   const char *dir, const unsigned char **data, Dtype *dtype, Error *e) {
    if (!check_shape(m, t, s, dir, shard->name, e)) return false;
    if (!safetensors_dtype(t, dtype))
        return error_input(e,
                           "tensor '%s' in '%s/%s' has dtype %s; BF16, F16 and F32 are supported: save the "
                           "model in one of them",
                           t->name, dir, shard->name, t->dtype);
    if (t->begin % dtype_size(*dtype))
        return error_input(
            e,
            "tensor '%s' in '%s/%s' begins at byte %zu, not a multiple of its element's %zu; save the "
            "model again with the safetensors library",
            t->name, dir, shard->name, t->begin, dtype_size(*dtype));
    *data = shard->data + t->begin;
    return true;
}

// Joins the tensors of all heads, as f32.
static bool join_heads(Model *m, const WeightSpec *s, const Shard *shards, int count, const char *dir,
                       Error *e) {
    float *to = take(m, s, (size_t)s->columns, sizeof *to, e);
    if (!to) return false;
    *place_of(m, s->layer, s->expert, s->which) =
        (Tensor){.data = to, .dtype = DTYPE_F32, .rows = s->rows, .columns = s->columns};
    for (int h = 0; h < s->heads; h++) {
        char name[TENSOR_NAME];
        const unsigned char *data;
        const Shard *shard = NULL;
        Dtype dtype;
        name_of_head(s, h, name);
        const StoredTensor *t = find(m, shards, count, name, dir, &shard, e);
        if (!t || !locate(m, s, t, shard, dir, &data, &dtype, e)) return false;
        for (size_t i = 0; i < (size_t)(s->columns / s->heads); i++) *to++ = dtype_load(dtype, data, i);
    }
    return true;
}

bool weight_bind(Model *m, const WeightSpec *s, const Shard *shards, int count, const char *dir, Error *e) {
    const unsigned char *data;
    const Shard *shard = NULL;
    Dtype dtype;
    if (!s->name[0]) return true;
    if (s->form == STORED_EACH_HEAD) return join_heads(m, s, shards, count, dir, e);
    const StoredTensor *t = find(m, shards, count, s->name, dir, &shard, e);
    if (!t) return false;
    bool codes = strcmp(t->dtype, "I8") == 0 || strcmp(t->dtype, "U8") == 0;
    if (m->unfused && codes && !s->vector) return bind_codes(m, s, t, shard, shards, count, dir, e);
    Tensor *to = place_of(m, s->layer, s->expert, s->which);
    const BlockFormat *blocks = m->gguf.is && !s->vector ? block_format(t->dtype) : NULL;
    if (blocks)
        return check_shape(m, t, s, dir, shard->name, e) && bind_blocks(m, s, blocks, t, shard, dir, to, e);
    if (!locate(m, s, t, shard, dir, &data, &dtype, e)) return false;
    size_t before = (s->planes ? (size_t)s->expert * (size_t)s->stored_rows : 0) + (size_t)s->first_row;
    size_t skip = before * (size_t)s->columns * dtype_size(dtype);
    *to = (Tensor){.data = data, .dtype = dtype, .rows = s->rows, .columns = s->columns};
    if (s->form != STORED_AS_READ && s->form != STORED_ROW_A_HEAD) return rearrange(m, s, data, to, e);
    to->data = data + skip;
    return true;
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
static bool check_used(Model *m, const StoredTensor *t, const char *dir, const char *file, Error *e) {
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
                           t->name, dir, file, m->shape.experts.count);
    for (Weight w = expert < 0 ? 0 : W_EXPERT_GATE; w < MODEL_WEIGHTS; w++) {
        WeightSpec s = named(m, layer, expert < 0 ? 0 : expert, w);
        char scales[TENSOR_NAME];
        bool its = strcmp(s.name, t->name) == 0;
        if (m->unfused && !s.vector && scales_name(scales, s.name)) its |= strcmp(scales, t->name) == 0;
        for (int h = 0; s.form == STORED_EACH_HEAD && h < s.heads; h++) {
            char head[TENSOR_NAME];
            name_of_head(&s, h, head);
            its |= strcmp(head, t->name) == 0;
        }
        if (its) return true;
    }
    return error_input(e,
                       "tensor '%s' in '%s/%s' doesn't belong to a %s model, which would leave it out; is "
                       "'model_type' in its config.json right?",
                       t->name, dir, file, m->architecture);
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

bool weights_bind(Model *m, const Shard *shards, int count, const char *dir, Error *e) {
    find_form(m, shards, count);
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        if (!weight_bind(m, &s, shards, count, dir, e)) return false;
    }
    for (int i = 0; i < count; i++)
        for (size_t k = 0; k < shards[i].header.count; k++)
            if (!check_used(m, &shards[i].header.tensors[k], dir, shards[i].name, e)) return false;
    if (m->shape.tied_head) m->head = m->embedding;
    for (int i = 0; i < m->shape.layers && m->shape.mlp_input == MLP_SHARES_NORM; i++) {
        Tensor *w = m->layers[i].w;
        w[W_MLP_NORM] = w[W_ATTENTION_NORM];
        w[W_MLP_NORM_BIAS] = w[W_ATTENTION_NORM_BIAS];
    }
    m->dtype = m->layers[0].w[W_Q].dtype;
    return true;
}
