#include "tests/support/random_model.h"

#include "engine/base/memory.h"
#include "engine/model/make/quantise.h"
#include "engine/model/weights.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int pick(Random *r, const int *from, int n) { return from[random_below(r, (uint32_t)n)]; }

// Differences from a layer of Llama, each in some of the shapes.
static void vary(Shape *s, Random *r) {
    s->o_bias = random_below(r, 4) == 0;
    s->mlp_bias = random_below(r, 4) == 0;
    s->head_bias = random_below(r, 6) == 0;
    s->ungated = random_below(r, 4) == 0;
    s->positions = random_below(r, 5) == 0;
    s->activation = (Activation)random_below(r, 4);
    s->qk_norm = (QkNorm)random_below(r, 4);
    s->norm_kind = (NormKind)random_below(r, 2);
    s->norm_bias = s->norm_kind == NORM_LAYER && random_below(r, 2);
    s->norm_place = s->norm_kind == NORM_LAYER ? NORMS_BEFORE : (NormPlace)random_below(r, 3);
    s->mlp_input = s->norm_place == NORMS_BEFORE ? (MlpInput)random_below(r, 3) : MLP_AFTER;
    s->embedding_scale = random_below(r, 3) ? 0 : 1.5f;
    s->residual_scale = random_below(r, 3) ? 0 : 0.6f;
    s->score_scale = random_below(r, 3) ? 0 : 0.3f;
    s->logit_scale = random_below(r, 3) ? 0 : 0.5f;
    s->score_cap = random_below(r, 3) ? 0 : 3;
    s->logit_cap = random_below(r, 3) ? 0 : 20;
    s->rope.neighbours = random_below(r, 3) == 0;
    for (int i = 0; i < s->layers; i++) {
        if (random_below(r, 2)) layer_add(&s->local, i);
        if (random_below(r, 4) == 0) layer_add(&s->unrotated, i);
    }
    s->local_window = s->window ? s->window : 9; // a ring's window holds for all layers
    s->local_theta = random_below(r, 2) ? 500 : 0;
}

// Experts in some or all of the layers; they have an `up` and no biases.
static void mix(Shape *s, Random *r) {
    static const int counts[] = {1, 2, 5, 8, 33};
    int count = pick(r, counts, 5), most = count < 9 ? count : 9, every = 1 + (int)random_below(r, 2);
    s->ungated = s->mlp_bias = false;
    s->experts = (Experts){.count = count,
                           .chosen = 1 + (int)random_below(r, (uint32_t)most),
                           .width = 1 + (int)random_below(r, 70),
                           .renormalised = random_below(r, 2),
                           .shared_width = random_below(r, 2) ? 1 + (int)random_below(r, 90) : 0,
                           .shared_gate = random_below(r, 2)};
    for (int i = every - 1; i < s->layers; i += every) layer_add(&s->sparse, i);
    if (every > s->layers) layer_add(&s->sparse, 0);
}

static void make_plain(Shape *s) {
    Shape all = *s;
    *s = (Shape){.layers = all.layers,
                 .width = all.width,
                 .heads = all.heads,
                 .kv_heads = all.kv_heads,
                 .head_dim = all.head_dim,
                 .mlp_width = all.mlp_width,
                 .vocab = all.vocab,
                 .real_vocab = all.real_vocab,
                 .context = all.context,
                 .window = all.window,
                 .activation = all.activation,
                 .norm_epsilon = all.norm_epsilon,
                 .rope = all.rope};
}

Shape random_plain_shape(Random *r) {
    static const int groups[] = {1, 2, 5}, sizes[] = {4, 8, 10, 16, 32, 80}, windows[] = {0, 0, 1, 7, 20};
    int kv = pick(r, (int[]){1, 2}, 2), group = pick(r, groups, 3);
    Shape s = {.input = INPUT_TOKENS,
               .layers = 1 + (int)random_below(r, 3),
               .width = 4 * (1 + (int)random_below(r, 20)),
               .kv_heads = kv,
               .heads = kv * group,
               .head_dim = pick(r, sizes, 6),
               .mlp_width = 1 + (int)random_below(r, 90),
               .vocab = 17 + (int)random_below(r, 260),
               .context = 400,
               .window = pick(r, windows, 5),
               .qkv_bias = random_below(r, 3) == 0,
               .tied_head = random_below(r, 3) == 0,
               .activation = random_below(r, 4) ? ACTIVATION_SILU : ACTIVATION_GELU_TANH,
               .norm_epsilon = 1e-5f};
    s.real_vocab = random_below(r, 4) ? s.vocab : s.vocab - 5;
    s.qk_norm = random_below(r, 3) == 0;
    s.rope = (Rope){
        .kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = s.head_dim / 2, .attention_factor = 1};
    if (random_below(r, 4) == 0) s.rope.pairs = 1 + (int)random_below(r, (uint32_t)s.rope.pairs);
    return s;
}

Shape random_dense_shape(Random *r) {
    Shape s = random_plain_shape(r);
    if (random_below(r, 2)) vary(&s, r);
    return s;
}

Shape random_shape(Random *r) {
    Shape s = random_dense_shape(r);
    if (random_below(r, 3) == 0) mix(&s, r);
    return s;
}

static Tensor tensor(RandomModel *m, int rows, int columns, Dtype dtype, float centre, float spread,
                     Random *r) {
    size_t n = (size_t)rows * (size_t)columns;
    Tensor t = {.data = m->weights + m->used, .dtype = dtype, .rows = rows, .columns = columns};
    for (size_t i = 0; i < n; i++) {
        float x = centre + spread * random_normal(r);
        uint16_t h = dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
        unsigned char *to = m->weights + m->used + i * dtype_size(dtype);
        if (dtype == DTYPE_F32) memcpy(to, &x, 4);
        else memcpy(to, &h, 2);
    }
    m->used += (n * dtype_size(dtype) + 63) / 64 * 64;
    if (m->used > m->size) abort();
    return t;
}

// Drawn so that activations keep their size: norms around 1, biases around 0. The head is larger, for clear
// favourites.
static Tensor draw(RandomModel *m, int layer, Weight w, Dtype dtype, bool mixed, Random *r) {
    WeightSpec x = weight_sized(&m->model.shape, layer < 0 ? 0 : layer, w);
    float spread = w == W_HEAD ? 3 : w == W_EMBEDDING ? sqrtf((float)x.columns) : 1.5f;
    bool norm = WEIGHT_ROWS[w].kind == WEIGHT_NORM;
    if (!weight_present(&m->model.shape, layer, w)) return (Tensor){.data = NULL};
    return tensor(m, x.rows, x.columns, mixed ? (Dtype)random_below(r, 3) : dtype, norm ? 1 : 0,
                  x.vector ? 0.2f : spread / sqrtf((float)x.columns), r);
}

void random_model_init(RandomModel *m, const Shape *s, Dtype dtype, bool mixed, Random *r) {
    *m = (RandomModel){.size = shape_parameters(s) * 4 + (size_t)weights_count(&(Model){.shape = *s}) * 64};
    m->weights = mem_new(m->size, 1);
    m->model = (Model){.shape = *s, .dtype = dtype, .bos = -1};
    weights_take_layers(&m->model, &m->own);
    m->model.embedding = draw(m, 0, W_EMBEDDING, dtype, mixed, r);
    m->model.final_norm = draw(m, 0, W_FINAL_NORM, dtype, mixed, r);
    m->model.fc = draw(m, 0, W_FC, dtype, mixed, r);
    m->model.fc_bias = draw(m, 0, W_FC_BIAS, dtype, mixed, r);
    m->model.final_norm_bias = draw(m, 0, W_FINAL_NORM_BIAS, dtype, mixed, r);
    m->model.positions = draw(m, 0, W_POSITIONS, dtype, mixed, r);
    m->model.head_bias = draw(m, 0, W_HEAD_BIAS, dtype, mixed, r);
    m->model.token_norm = draw(m, 0, W_TOKEN_NORM, dtype, mixed, r);
    m->model.fc_norm = draw(m, 0, W_FC_NORM, dtype, mixed, r);
    m->model.state_norm = draw(m, 0, W_STATE_NORM, dtype, mixed, r);
    m->model.markov_from = draw(m, 0, W_MARKOV_FROM, dtype, mixed, r);
    m->model.markov_to = draw(m, 0, W_MARKOV_TO, dtype, mixed, r);
    m->model.markov_gate = draw(m, 0, W_MARKOV_GATE, dtype, mixed, r);
    m->model.markov_gate_bias = draw(m, 0, W_MARKOV_GATE_BIAS, dtype, mixed, r);
    m->model.confidence = draw(m, 0, W_CONFIDENCE, dtype, mixed, r);
    m->model.confidence_bias = draw(m, 0, W_CONFIDENCE_BIAS, dtype, mixed, r);
    m->model.head = s->tied_head ? m->model.embedding : draw(m, 0, W_HEAD, dtype, mixed, r);
    for (int i = 0; i < s->layers; i++) {
        Tensor *layer = m->model.layers[i].w;
        for (Weight w = 0; w < LAYER_WEIGHTS; w++) layer[w] = draw(m, i, w, dtype, mixed, r);
        Tensor *experts = m->model.layers[i].experts;
        for (int k = 0; experts && k < s->experts.count * EXPERT_WEIGHTS; k++)
            experts[k] = draw(m, i, W_EXPERT_GATE + (Weight)(k % EXPERT_WEIGHTS), dtype, mixed, r);
        if (s->mlp_input != MLP_SHARES_NORM || !s->mlp_width) continue;
        layer[W_MLP_NORM] = layer[W_ATTENTION_NORM];
        layer[W_MLP_NORM_BIAS] = layer[W_ATTENTION_NORM_BIAS];
    }
}

void random_model_release(RandomModel *m) {
    mem_free(m->weights);
    model_close(&m->own);
    *m = (RandomModel){.weights = NULL};
}

// --- codes

static int widened(int n) { return (n + GROUP_LEAST - 1) / GROUP_LEAST * GROUP_LEAST; }

void random_coded_shape(Shape *s) {
    s->width = widened(s->width);
    s->mlp_width = widened(s->mlp_width);
    s->experts.width = widened(s->experts.width);
    s->experts.shared_width = widened(s->experts.shared_width);
}

// Group and kind of codes for so many columns.
static Codes pick_codes(int columns, Random *r) {
    static const int bits[] = {4, 8, 4, 8, 5, 6};
    Codes c = {.bits = bits[random_below(r, sizeof bits / sizeof *bits)], .group = GROUP_LEAST};
    if (c.bits == 6) return (Codes){6, 16, columns % 256 ? SCALES_F32 : SCALES_TIMES, NULL};
    while (c.bits != 5 && c.group < GROUP_MOST && columns % (2 * c.group) == 0 && random_below(r, 2))
        c.group *= 2;
    if (c.bits == 8 && random_below(r, 4) == 0) c.group = 16;
    c.kind = (ScaleKind)random_below(r, c.bits == 8 ? SCALES_PAIRS : SCALES_HALVES + 1);
    if (c.kind == SCALES_NESTED && columns % (c.group * GROUPS_NESTED)) c.kind = SCALES_PAIRS;
    if (c.group < GROUP_LEAST && columns % (c.group * GROUPS_TIMES) == 0) c.kind = SCALES_TIMES;
    return c;
}

// The scale of a group in the kind's own form; zero points are near the middle. Groups that share a scale
// take the last one's.
static void put_scale(const Codes *c, uint16_t half, size_t group, unsigned char *of_row, Random *r) {
    float scale = f16_to_f32(half);
    int middle = c->bits == 5 ? 16 : 8;
    ScalePair pair = {scale, -scale * (float)(middle - 1 + (int)random_below(r, 3))};
    ScaleNest nest = {f32_to_f16(scale / 32), f32_to_f16(scale * (float)middle / 32), {0}, {0}};
    ScaleTimes times = {f32_to_f16(scale / 32), {0}};
    uint16_t halves[2] = {half, f32_to_f16(pair.low)};
    for (int i = 0; i < GROUPS_TIMES; i++) times.factor[i] = (int8_t)(28 + random_below(r, 8));
    for (int i = 0; i < GROUPS_NESTED; i++) {
        nest.factor[i] = (uint8_t)(28 + random_below(r, 8));
        nest.lows[i] = (uint8_t)(28 + random_below(r, 8));
    }
    switch (c->kind) {
    case SCALES_F16: memcpy(of_row + group * sizeof half, &half, sizeof half); break;
    case SCALES_F32: memcpy(of_row + group * sizeof scale, &scale, sizeof scale); break;
    case SCALES_PAIRS: memcpy(of_row + group * sizeof pair, &pair, sizeof pair); break;
    case SCALES_NESTED: memcpy(of_row + group / GROUPS_NESTED * sizeof nest, &nest, sizeof nest); break;
    case SCALES_HALVES: memcpy(of_row + group * sizeof halves, halves, sizeof halves); break;
    case SCALES_TIMES: memcpy(of_row + group / GROUPS_TIMES * sizeof times, &times, sizeof times); break;
    }
}

// Codes and, behind them, scales in the place of the values.
static void code(RandomModel *m, Tensor *t, const Codes *all, Random *r) {
    if (!t->data || t->columns % (all ? all->group : GROUP_LEAST) || (!all && random_below(r, 5) == 0))
        return;
    Tensor coded = *t;
    coded.dtype = DTYPE_BF16;
    coded.codes = all ? *all : pick_codes(t->columns, r);
    size_t group = (size_t)coded.codes.group, groups = (size_t)t->columns / group, rows = (size_t)t->rows;
    size_t bytes = tensor_row_bytes(&coded), scale_bytes = tensor_row_scale_bytes(&coded);
    unsigned char *codes = mem_new(rows * (bytes + scale_bytes), 1), *scales = codes + rows * bytes;
    int8_t *of_row = mem_new((size_t)t->columns, 1);
    for (size_t row = 0; row < rows; row++) {
        for (size_t g = 0; g < groups; g++) {
            float x[GROUP_MOST];
            for (size_t k = 0; k < group; k++) x[k] = tensor_value(t, row, g * group + k);
            unsigned char *own = codes + row * bytes + g * bytes / groups;
            int8_t *of_group = of_row + g * group;
            int bits = coded.codes.bits, less = bits == 5 ? 8 : group < GROUP_LEAST ? 4 : 1; // 6 bits in 16
            uint16_t half =
                quantise_group(x, (int)group, bits == 4 ? 4 : 8, bits == 4 ? own : (unsigned char *)of_group);
            for (size_t k = 0; k < group && bits != 4; k++)
                of_group[k] = (int8_t)(of_group[k] / less + (bits == 5 ? 16 : 0));
            half = f32_to_f16((float)less * f16_to_f32(half));
            put_scale(&coded.codes, half, g, scales + row * scale_bytes, r);
        }
        if (coded.codes.bits != 4)
            codes_store(coded.codes.bits, of_row, 0, (size_t)t->columns, t->columns, codes + row * bytes);
    }
    mem_free(of_row);
    assert(tensor_bytes(&coded) <= tensor_bytes(t));
    unsigned char *to = m->weights + ((const unsigned char *)t->data - m->weights);
    memcpy(to, codes, rows * (bytes + scale_bytes));
    mem_free(codes);
    coded.codes.scales = to + rows * bytes;
    *t = coded;
}

void random_model_code(RandomModel *m, const Codes *all, Random *r) {
    Model *x = &m->model;
    bool tied = x->head.data == x->embedding.data;
    code(m, &x->embedding, all, r);
    if (tied) x->head = x->embedding;
    else code(m, &x->head, all, r);
    for (int i = 0; i < x->shape.layers; i++) {
        for (Weight w = 0; w < LAYER_WEIGHTS; w++)
            if (WEIGHT_ROWS[w].kind == WEIGHT_MATRIX && w != W_ROUTER && w != W_SHARED_ROUTER)
                code(m, &x->layers[i].w[w], all, r);
        for (int k = 0; x->layers[i].experts && k < x->shape.experts.count * EXPERT_WEIGHTS; k++)
            code(m, &x->layers[i].experts[k], all, r);
    }
}

// --- models that agree now and then

static void shrink(RandomModel *m, const Tensor *t, float factor) {
    unsigned char *bytes = m->weights + ((const unsigned char *)t->data - m->weights);
    for (size_t i = 0; i < (size_t)t->rows * (size_t)t->columns; i++) {
        float x = dtype_load(t->dtype, t->data, i) * factor;
        uint16_t h = f32_to_bf16(x);
        if (t->dtype == DTYPE_F32) memcpy(bytes + 4 * i, &x, 4);
        else memcpy(bytes + 2 * i, &h, 2);
    }
}

void random_model_calm(RandomModel *m, int first) {
    for (int i = first; i < m->model.shape.layers; i++) {
        shrink(m, &m->model.layers[i].w[W_O], 0.05f);
        if (m->model.layers[i].w[W_DOWN].data) shrink(m, &m->model.layers[i].w[W_DOWN], 0.05f);
        if (m->model.layers[i].w[W_SHARED_DOWN].data) shrink(m, &m->model.layers[i].w[W_SHARED_DOWN], 0.05f);
        for (int k = 0; m->model.layers[i].experts && k < m->model.shape.experts.count; k++)
            shrink(m, &m->model.layers[i].experts[k * EXPERT_WEIGHTS + W_EXPERT_DOWN - W_EXPERT_GATE], 0.05f);
    }
}

void random_adapter_init(RandomModel *m, const Model *target, Random *r) {
    Shape shape = target->shape;
    make_plain(&shape);
    shape.input = INPUT_HIDDEN;
    shape.layers = 1;
    if (random_below(r, 2)) shape.mlp_width = 0;
    random_model_init(m, &shape, target->dtype, false, r);
    random_model_calm(m, 0);
    m->model.final_norm = target->final_norm;
    m->model.head = target->head;
}

void random_draft_init(RandomModel *m, const Model *target, InputKind input, int states, Random *r) {
    Shape shape = target->shape;
    make_plain(&shape);
    shape.input = input;
    shape.layers = input == INPUT_BLOCK ? 2 : 1;
    shape.tokens = shape.vocab;
    shape.states = input >= INPUT_PAIRED ? states : 0;
    if (input == INPUT_BLOCK) {
        shape.window = 0;
        shape.qk_norm = random_below(r, 2) ? QK_NORM_HEADS : QK_NORM_NONE;
        shape.mask_token = (int)random_below(r, (uint32_t)shape.vocab);
        shape.block = (BlockDraft){.rows = 2 + (int)random_below(r, 6),
                                   .from_root = random_below(r, 2),
                                   .markov = (Markov)random_below(r, 4),
                                   .confidence = random_below(r, 2) ? CONFIDENCE_ROW : CONFIDENCE_NONE};
        if (shape.block.markov) shape.block.rank = 1 + (int)random_below(r, 9);
    } else shape.fc_bias = shape.normed_residual = random_below(r, 2);
    if (input == INPUT_MTP) shape.qkv_bias = random_below(r, 2);
    shape.normed_output = shape.normed_residual && input == INPUT_PAIRED;
    if (shape.normed_output) shape.fc_norm = random_below(r, 2) ? FC_NORM_ROW : FC_NORM_EACH;
    random_model_init(m, &shape, target->dtype, false, r);
    random_model_calm(m, 0);
    m->model.embedding = target->embedding;
    m->model.head = target->head;
}
