// Weights on the device: a group of tensors (weights.h) forms one matrix, in the order that its product
// wants.
//
// A group of bf16 or f16 is packed for tensor cores if the arithmetic is one
// of the two, and rounded to it; otherwise it keeps its type, or is widened to f32 if its tensors have
// several types. For cuBLASLt everything is row after row. Tensors are copied row by row as they are in the
// file, and the device puts them in order.
//
// Codes (tensor.h) stay codes where kernels multiply them: in bf16, if the tensors of a matrix agree in bits
// and groups. Scales are of SCALES_F16, or full: pairs for all other codes of 4 bits, SCALES_F32 for those of
// 8 bits in groups of 16. Otherwise the host decodes the codes on the way.
//
// Invariant: cuda_take_weights describes every matrix before any is filled, and a matrix that its card
// doesn't have keeps data NULL.
#include "engine/cuda/instance.h"
#include "engine/cuda/memory.h"

#include "engine/model/make/synth.h"
#include "engine/model/weights.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// A tensor's codes as kernels here may have them: those of 6 bits, and of 5 bits without lows of their own,
// as codes of 8; scales that share an f16 as f32.
static Codes codes_here(const Tensor *t) {
    Codes c = t->codes;
    if (c.bits == 6 || c.kind == SCALES_TIMES) c.bits = 8, c.kind = SCALES_F32;
    if (c.bits == 5) c.bits = c.kind == SCALES_F16 ? 8 : 0;
    return c;
}

// Fills in how codes are kept, if they are.
static void describe_codes(Matrix *m, const Tensor *const *t, int count) {
    const Codes own = codes_here(t[0]);
    bool small = true, kept = m->form == FORM_PACKED && m->dtype == DTYPE_BF16 && own.bits;
    for (int i = 0; i < count; i++) {
        Codes c = codes_here(t[i]);
        kept &= c.bits == own.bits && c.group == own.group;
        kept &= own.bits == 4 || c.kind == own.kind;
        small &= c.kind == SCALES_F16;
    }
    if (!small && own.bits == 8) kept &= own.kind == SCALES_F32 && own.group < GROUP_LEAST;
    else kept &= own.group >= GROUP_LEAST;
    if (kept) m->bits = own.bits, m->group = own.group, m->full = !small;
}

// The matrix that holds these tensors' rows, or each expert's. Experts are many blocks' work, so their sums
// aren't split. `sparse`: of a layer with experts, which cuBLASLt doesn't multiply.
static Matrix describe(const Cuda *c, const Tensor *const *t, int count, bool sparse, int experts) {
    Matrix m = {.dtype = t[0]->dtype, .columns = t[0]->columns, .splits = 1};
    for (int i = 0; i < count; i++) {
        if (t[i]->dtype != m.dtype) m.dtype = DTYPE_F32;
        m.rows += t[i]->rows;
        assert(t[i]->columns == m.columns);
    }
    bool tensor = c->compute != COMPUTE_F32 && m.dtype != DTYPE_F32;
    if (tensor) m.dtype = compute_dtype(c->compute);
    m.library = c->fast && !sparse && (tensor || m.dtype == DTYPE_F32);
    m.experts = experts;
    if (tensor) m.form = m.library ? FORM_ROWS : FORM_PACKED;
    m.pitch = round_up(m.columns, tensor ? PACKED_K : PLAIN_K);
    if (m.form == FORM_PACKED && !experts) m.splits = gpu_product_splits(m.rows, m.pitch);
    describe_codes(&m, t, count);
    choices_apply(&c->choices, &m);
    return m;
}

static void note_codes(Cuda *c, const Matrix *m, const Tensor *const *t, int count) {
    for (int i = 0; i < count; i++) {
        c->coded |= t[i]->codes.bits && m->bits;
        if (t[i]->codes.bits && !m->bits) c->decoded += tensor_value_bytes(t[i]);
    }
}

static bool take_matrix(Cuda *c, Matrix *m, const Tensor *const *t, int count, bool sparse, Error *e) {
    if (!t[0]->data) return true;
    *m = describe(c, t, count, sparse, 0);
    c->rounded |= m->dtype != DTYPE_F32 && compute_rounds(c->compute, t[0]->dtype);
    note_codes(c, m, t, count);
    return cuda_take(c, &m->data, gpu_matrix_bytes(m), true, &c->weight_bytes, e);
}

// The tensors of a group that a layer or one of its experts has, in order; returns how many.
static int tensors_of(const Model *m, int layer, int expert, WeightGroup g,
                      const Tensor *out[LAYER_WEIGHTS]) {
    int n = 0;
    for (Weight w = 0; w < MODEL_WEIGHTS; w++)
        if (WEIGHT_ROWS[w].group == g && weight_tensor(m, layer, expert, w)->data)
            out[n++] = weight_tensor(m, layer, expert, w);
    return n;
}

static bool is_of_experts(WeightGroup g) { return g == GROUP_EXPERT_IN || g == GROUP_EXPERT_DOWN; }

// A group is a matrix on the device, or a vector: the other one is NULL.
static Matrix *matrix_of(GpuLayer *l, WeightGroup g) {
    Matrix *const all[MATRIX_GROUPS] = {[GROUP_QKV] = &l->qkv,
                                        [GROUP_O] = &l->o,
                                        [GROUP_IN] = &l->in,
                                        [GROUP_DOWN] = &l->down,
                                        [GROUP_ROUTER] = &l->router,
                                        [GROUP_SHARED_IN] = &l->shared_in,
                                        [GROUP_SHARED_DOWN] = &l->shared_down,
                                        [GROUP_EXPERT_IN] = &l->expert_in,
                                        [GROUP_EXPERT_DOWN] = &l->expert_down};
    return g < MATRIX_GROUPS ? all[g] : NULL;
}

// How a group's tensors are laid out: one after another, or row by row in turns.
typedef struct Order {
    int turns;  // of the rows; 1: one after another
    int paired; // so many tensors, from the first, have their rows in rotary pairs
} Order;

static Order order_of(const Cuda *c, const GpuLayer *l, WeightGroup g) {
    bool in = g == GROUP_IN || g == GROUP_IN_BIAS, sparse = g == GROUP_SHARED_IN || g == GROUP_EXPERT_IN;
    bool heads = g == GROUP_QKV || g == GROUP_QKV_BIAS || g == GROUP_QK_NORM;
    return (Order){.turns = (in && l->gated) || sparse ? 2 : 1,
                   .paired = heads && !c->model->shape.rope.neighbours ? 2 : 0};
}

// Numbers of a vector. A tensor that takes turns with one that the layer lacks leaves it zeros.
static int vector_size(const Tensor *const *t, int count, Order o) {
    int sum = 0;
    for (int i = 0; i < count; i++) sum += t[i]->columns;
    return o.turns > 1 ? o.turns * t[0]->columns : sum;
}

static bool take_vector(Cuda *c, float **v, int n, Error *e) {
    return cuda_take(c, v, (size_t)n * sizeof(float), false, &c->weight_bytes, e);
}

// All experts' matrices are of one type, f32 if their tensors have several; codes if all have the same.
static bool take_experts(Cuda *c, Matrix *m, int layer, WeightGroup g, Error *e) {
    const Tensor *t[LAYER_WEIGHTS];
    int experts = c->model->shape.experts.count, count = tensors_of(c->model, layer, 0, g, t);
    if (!count) return true;
    bool mixed = false, coded = true;
    Matrix all = describe(c, t, count, true, experts);
    for (int i = 0; i < experts; i++) {
        count = tensors_of(c->model, layer, i, g, t);
        Matrix own = describe(c, t, count, true, experts);
        c->rounded |= own.dtype != DTYPE_F32 && compute_rounds(c->compute, t[0]->dtype);
        mixed |= own.dtype != all.dtype;
        coded &= own.bits == all.bits && own.group == all.group && own.full == all.full;
        if (own.dtype == DTYPE_F32) all = own;
    }
    if (mixed && all.form == FORM_PLAIN) all.dtype = DTYPE_F32;
    if (!coded) all.bits = all.group = all.full = 0;
    for (int i = 0; i < experts; i++) note_codes(c, &all, t, tensors_of(c->model, layer, i, g, t));
    *m = all;
    return cuda_take(c, &m->data, (size_t)experts * gpu_matrix_bytes(m), true, &c->weight_bytes, e);
}

static bool take_group(Cuda *c, int layer, WeightGroup g, Error *e) {
    const Tensor *t[LAYER_WEIGHTS];
    GpuLayer *l = &c->layers[layer];
    if (is_of_experts(g)) return take_experts(c, matrix_of(l, g), layer, g, e);
    int count = tensors_of(c->model, layer, 0, g, t);
    if (!count) return true;
    if (matrix_of(l, g)) return take_matrix(c, matrix_of(l, g), t, count, g >= GROUP_ROUTER, e);
    return take_vector(c, &l->vector[g], vector_size(t, count, order_of(c, l, g)), e);
}

// The weights in front of the first layer: learned positions, and those of a model of tokens and hidden
// states.
static bool take_front(Cuda *c, Error *e) {
    const Model *m = c->model;
    const Tensor *const fc[] = {&m->fc}, *const positions[] = {&m->positions};
    return take_matrix(c, &c->fc, fc, 1, false, e) && take_matrix(c, &c->positions, positions, 1, false, e) &&
           (!m->fc_bias.data || take_vector(c, &c->fc_bias, m->shape.width, e)) &&
           (!m->token_norm.data || take_vector(c, &c->token_norm, m->shape.width, e)) &&
           (!m->fc_norm.data || take_vector(c, &c->fc_norm, shape_fc_width(&m->shape), e)) &&
           (!m->state_norm.data || take_vector(c, &c->state_norm, m->shape.width, e));
}

// A tied embedding shares the head's matrix.
bool cuda_take_weights(Cuda *c, Error *e) {
    const Model *m = c->model;
    const Tensor *const embedding[] = {&m->embedding}, *const head[] = {&m->head},
                        *const markov[] = {&m->markov_to};
    bool last = !c->next;
    for (int i = c->from; i < c->to; i++) {
        c->layers[i].gated = m->layers[i].w[W_UP].data != NULL;
        for (WeightGroup g = 0; g < GROUPS; g++)
            if (!take_group(c, i, g, e)) return false;
    }
    if (last &&
        (!take_matrix(c, &c->head, head, 1, false, e) || !take_matrix(c, &c->markov, markov, 1, true, e)))
        return false;
    if (c->first == c && last && m->embedding.data == m->head.data) c->embedding = c->head;
    else if (c->first == c && !take_matrix(c, &c->embedding, embedding, 1, false, e)) return false;
    if (c->first == c && !take_front(c, e)) return false;
    if (!last) return true;
    return (!m->final_norm.data || take_vector(c, &c->final_norm, m->shape.width, e)) &&
           (!m->final_norm_bias.data || take_vector(c, &c->final_norm_bias, m->shape.width, e)) &&
           (!m->head_bias.data || take_vector(c, &c->head_bias, m->shape.vocab, e));
}

// --- the product that follows each one (choices.c): groups are in the order of a step

static bool is_packed(const Matrix *m) { return m->data && m->form == FORM_PACKED && !m->experts; }

void cuda_link_products(Cuda *c) {
    size_t bytes = prefetch_bytes(&c->facts);
    Matrix *before = NULL;
    for (int i = 0; i <= (c->to - c->from) * MATRIX_GROUPS && bytes; i++) {
        int layer = c->from + i / MATRIX_GROUPS;
        Matrix *m = layer < c->to ? matrix_of(&c->layers[layer], (WeightGroup)(i % MATRIX_GROUPS)) : &c->head;
        if (!m->data) continue;
        if (before && is_packed(before) && is_packed(m)) prefetch_next(before, m, bytes);
        before = m;
    }
}

// --- bytes that a step reads

// Of a row's codes, and of its scales, as a matrix of codes has them.
static size_t code_bytes(const Matrix *m, const Tensor *t) {
    return (size_t)t->columns * (size_t)m->bits / 8;
}
static size_t scale_bytes(const Matrix *m, const Tensor *t) {
    return (size_t)(t->columns / t->codes.group) * matrix_scale_bytes(m);
}
size_t cuda_tensor_reads(const Matrix *m, const Tensor *t) {
    if (!m->bits) return tensor_value_bytes(t);
    return t->data ? (size_t)t->rows * (code_bytes(m, t) + scale_bytes(m, t)) : 0;
}

size_t cuda_reads(const Cuda *c, int layer, bool expert) {
    size_t bytes = 0;
    for (WeightGroup g = 0; g < GROUPS; g++) {
        const Tensor *t[LAYER_WEIGHTS];
        const Matrix *m = matrix_of(&c->layers[layer], g);
        int count = is_of_experts(g) == expert ? tensors_of(c->model, layer, 0, g, t) : 0;
        for (int i = 0; i < count; i++) bytes += m ? cuda_tensor_reads(m, t[i]) : tensor_value_bytes(t[i]);
    }
    return bytes;
}

// --- filling: two buffers take turns, so that the file is read while the previous part is copied

typedef struct Loader {
    Cuda *c;
    Staging staging[2];
    void *device[2];
    size_t bytes;
    int turn;
} Loader;

static size_t largest_tensor(const Model *m) {
    size_t most = 0;
    for (int i = 0; i < weights_count(m); i++) {
        WeightSpec s = weights_at(m, i);
        size_t bytes = tensor_bytes(weight_tensor(m, s.layer, s.expert, s.which));
        if (bytes > most) most = bytes;
    }
    return most;
}

// A buffer holds at least a few rows of the largest matrix, and any vector as f32.
static bool loader_open(Loader *l, Cuda *c, Error *e) {
    const size_t most = (size_t)32 << 20;
    const Shape *s = &c->model->shape;
    int widest = s->mlp_width > s->width ? s->mlp_width : s->width;
    if (s->experts.width > widest) widest = s->experts.width;
    if (s->experts.shared_width > widest) widest = s->experts.shared_width;
    if (c->model->head_bias.data && s->vocab > widest) widest = s->vocab;
    size_t least = 4 * (size_t)(widest > shape_q_width(s) ? widest : shape_q_width(s)) * sizeof(double);
    *l = (Loader){.c = c, .bytes = largest_tensor(c->model)};
    if (l->bytes > most) l->bytes = most;
    if (l->bytes < least) l->bytes = least;
    for (int i = 0; i < 2; i++) {
        l->staging[i].bytes = l->bytes;
        if (!cuda_ok(c, gpu_take_pinned(&l->staging[i].host, l->bytes), "no pinned memory", e) ||
            !cuda_ok(c, gpu_event_open(&l->staging[i].event), "no event", e) ||
            !cuda_ok(c, gpu_take(&l->device[i], l->bytes), "no memory to load through", e))
            return false;
    }
    return true;
}

static void loader_close(Loader *l) {
    gpu_stream_wait(l->c->stream);
    for (int i = 0; i < 2; i++) {
        gpu_give_pinned(l->staging[i].host);
        if (l->staging[i].event) gpu_event_close(l->staging[i].event);
        gpu_give(l->device[i]);
    }
}

// One thread copies from mapped files at 2 to 4 GB/s, a fraction of the bus's rate, so several threads copy.
// load_tensor first asks the system to read a cold file.
enum { COPY_THREADS = 4, COPY_ALONE = 4 << 20 };
typedef struct Piece {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    pthread_t thread;
    bool began;
} Piece;

static void *copy_piece(void *piece) {
    const Piece *p = piece;
    memcpy(p->to, p->from, p->bytes);
    return NULL;
}

static void copy_mapped(void *to, const unsigned char *from, size_t bytes) {
    Piece pieces[COPY_THREADS];
    int count = bytes < COPY_ALONE ? 1 : COPY_THREADS;
    for (int i = 0; i < count; i++) {
        size_t begin = bytes * (size_t)i / (size_t)count, end = bytes * (size_t)(i + 1) / (size_t)count;
        Piece *p = &pieces[i];
        *p = (Piece){.to = (unsigned char *)to + begin, .from = from + begin, .bytes = end - begin};
        p->began = i > 0 && pthread_create(&p->thread, NULL, copy_piece, p) == 0;
    }
    for (int i = 0; i < count; i++)
        if (pieces[i].began) pthread_join(pieces[i].thread, NULL);
        else copy_piece(&pieces[i]);
}

static void put_scales(void *to, const Matrix *m, const Tensor *t, int first, int rows) {
    size_t row = tensor_row_scale_bytes(t), groups = (size_t)(t->columns / t->codes.group);
    if (!m->full)
        memcpy(to, (const unsigned char *)t->codes.scales + (size_t)first * row, (size_t)rows * row);
    for (size_t i = 0; m->full && i < (size_t)rows * groups; i++) {
        ScalePair pair = tensor_scale(t, (size_t)first + i / groups, i % groups);
        if (m->bits == 4) ((ScalePair *)to)[i] = pair;
        else ((float *)to)[i] = pair.scale;
    }
}

// Codes of 6 and 5 bits as codes of 8.
static void widen_codes(int8_t *to, const Tensor *t, int first, int rows) {
    int less = t->codes.bits == 5 ? 16 : 0; // in place of their low
    for (int r = first; r < first + rows; r++)
        for (int k = 0; k < t->columns; k++) *to++ = (int8_t)(tensor_code(t, (size_t)r, (size_t)k) - less);
}

// Rows as they go to the device: codes and then their scales, or the bf16 values that they stand for.
static void copy_rows(void *to, const Tensor *t, const Pack *p) {
    bool coded = p->to.bits, wide = coded && p->to.bits != t->codes.bits;
    size_t row = coded ? code_bytes(&p->to, t) : tensor_row_bytes(t), bytes = (size_t)p->rows * row;
    if (wide) widen_codes(to, t, p->first, p->rows);
    else if (coded || !t->codes.bits)
        copy_mapped(to, (const unsigned char *)t->data + (size_t)p->first * row, bytes);
    if (coded) put_scales((unsigned char *)to + bytes, &p->to, t, p->first, p->rows);
    if (coded || !t->codes.bits) return;
    for (int r = 0; r < p->rows; r++)
        tensor_decode_row(t, (size_t)(p->first + r), (uint16_t *)to + (size_t)r * (size_t)t->columns);
}

// Makes rows on the device by the rule of a model without files; only the scales of codes are in memory here.
static bool make_rows(Loader *l, const SynthRun *r, const Tensor *t, const Pack *p, Error *e) {
    Staging *s = &l->staging[l->turn];
    size_t row = r->bytes ? tensor_row_bytes(t) : (size_t)t->columns;
    size_t scales = r->bytes ? scale_bytes(&p->to, t) : 0;
    Numbers n = {.to = l->device[l->turn],
                 .dtype = t->dtype,
                 .bytes = r->bytes,
                 .seed = r->seed,
                 .stream = r->stream,
                 .first = r->first + (size_t)p->first * row,
                 .count = (size_t)p->rows * row,
                 .centre = r->centre,
                 .spread = r->spread};
    gpu_numbers(&n, l->c->stream);
    if (!r->bytes) return true;
    put_scales(staging_begin(s), &p->to, t, p->first, p->rows);
    return staging_send(l->c, s, (unsigned char *)l->device[l->turn] + n.count, (size_t)p->rows * scales, e);
}

static bool send_rows(Loader *l, const Tensor *t, const Pack *p, size_t row, Error *e) {
    SynthRun r;
    if (synth_run(l->c->model->numbers, t, &r) && r.bytes == (p->to.bits != 0))
        return make_rows(l, &r, t, p, e);
    Staging *s = &l->staging[l->turn];
    copy_rows(staging_begin(s), t, p);
    return staging_send(l->c, s, l->device[l->turn], (size_t)p->rows * row, e);
}

static bool load_tensor(Loader *l, const Tensor *t, Pack *p, Error *e) {
    bool coded = p->to.bits;
    size_t row =
        coded ? code_bytes(&p->to, t) + scale_bytes(&p->to, t) : (size_t)t->columns * dtype_size(t->dtype);
    assert(row <= l->bytes);
    int at_once = (int)(l->bytes / row < (size_t)t->rows ? l->bytes / row : (size_t)t->rows);
    p->dtype = t->dtype;
    p->columns = t->columns;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), off = (size_t)((uintptr_t)t->data % page);
    posix_madvise((void *)((uintptr_t)t->data - off), tensor_bytes(t) + off, POSIX_MADV_WILLNEED);
    for (p->first = 0; p->first < t->rows; p->first += p->rows) {
        l->turn ^= 1;
        p->rows = t->rows - p->first < at_once ? t->rows - p->first : at_once;
        p->from = l->device[l->turn];
        p->scales = (const unsigned char *)p->from + (size_t)p->rows * code_bytes(&p->to, t);
        if (!send_rows(l, t, p, row, e)) return false;
        gpu_pack(p, l->c->stream);
    }
    return cuda_ok(l->c, gpu_launched(), "cannot pack weights", e);
}

// Loads a matrix's tensors.
static bool load_matrix(Loader *l, const Matrix *m, const Tensor *const *t, int count, Order o, Error *e) {
    for (int i = 0, base = 0; i < count && m->data; base += t[i++]->rows) {
        Pack p = {.base = o.turns > 1 ? i : base,
                  .stride = o.turns,
                  .head = l->c->heads.head_dim,
                  .pairs = i < o.paired ? l->c->heads.pairs : 0,
                  .to = *m};
        if (!load_tensor(l, t[i], &p, e)) return false;
    }
    return true;
}

// Loads vectors in the same order, as f32.
static bool load_vector(Loader *l, float *to, const Tensor *const *t, int count, Order o, Error *e) {
    if (!to) return true;
    Staging *s = &l->staging[l->turn ^= 1];
    float *host = staging_begin(s);
    size_t bytes = (size_t)vector_size(t, count, o) * sizeof *host;
    memset(host, 0, bytes);
    for (int i = 0, base = 0; i < count; base += t[i++]->columns)
        for (int k = 0; k < t[i]->columns; k++)
            host[pack_row(k, o.turns > 1 ? i : base, o.turns, l->c->heads.head_dim,
                          i < o.paired ? l->c->heads.pairs : 0)] =
                dtype_load(t[i]->dtype, t[i]->data, (size_t)k);
    return staging_send(l->c, s, to, bytes, e);
}

static bool load_layer(Loader *l, int layer, Error *e) {
    GpuLayer *to = &l->c->layers[layer];
    for (WeightGroup g = 0; g < GROUPS; g++) {
        const Tensor *t[LAYER_WEIGHTS];
        const Matrix *all = matrix_of(to, g);
        int count = tensors_of(l->c->model, layer, 0, g, t);
        Order o = order_of(l->c, to, g);
        if (!all && !load_vector(l, to->vector[g], t, count, o, e)) return false;
        for (int i = 0; all && all->data && i < (all->experts ? all->experts : 1); i++) {
            Matrix own = *all;
            own.data = (unsigned char *)all->data + (size_t)i * gpu_matrix_bytes(all);
            count = tensors_of(l->c->model, layer, i, g, t);
            if (!load_matrix(l, &own, t, count, o, e)) return false;
        }
    }
    return true;
}

static bool load_frequencies(Loader *l, Error *e) {
    const Shape *shape = &l->c->model->shape;
    Staging *s = &l->staging[l->turn ^= 1];
    double *to = staging_begin(s);
    size_t pairs = (size_t)shape->rope.pairs, ropes = (size_t)shape_ropes(shape);
    for (size_t i = 0; i < ropes; i++) {
        const Rope r = shape_rope(shape, (int)i);
        rope_frequencies(&r, to + i * pairs);
    }
    return staging_send(l->c, s, l->c->frequency, ropes * pairs * sizeof(double), e);
}

static bool load_one_matrix(Loader *l, const Matrix *m, const Tensor *t, Error *e) {
    return load_matrix(l, m, &t, 1, (Order){.turns = 1}, e);
}

static bool load_one_vector(Loader *l, float *to, const Tensor *t, Error *e) {
    return load_vector(l, to, &t, 1, (Order){.turns = 1}, e);
}

static bool load_all(Loader *l, const Progress *progress, Error *e) {
    Cuda *c = l->c;
    const Model *m = c->model;
    for (int i = c->from; i < c->to; i++)
        if (!progress_say(progress, "loading weights", (double)i / m->shape.layers, e) ||
            !load_layer(l, i, e))
            return false;
    return load_one_matrix(l, &c->head, &m->head, e) &&
           (c->embedding.data == c->head.data || load_one_matrix(l, &c->embedding, &m->embedding, e)) &&
           load_one_matrix(l, &c->fc, &m->fc, e) && load_one_matrix(l, &c->positions, &m->positions, e) &&
           load_one_vector(l, c->fc_bias, &m->fc_bias, e) &&
           load_one_vector(l, c->token_norm, &m->token_norm, e) &&
           load_one_vector(l, c->fc_norm, &m->fc_norm, e) &&
           load_one_vector(l, c->state_norm, &m->state_norm, e) &&
           load_one_matrix(l, &c->markov, &m->markov_to, e) &&
           load_one_vector(l, c->final_norm, &m->final_norm, e) &&
           load_one_vector(l, c->final_norm_bias, &m->final_norm_bias, e) &&
           load_one_vector(l, c->head_bias, &m->head_bias, e) && load_frequencies(l, e);
}

bool cuda_load_weights(Cuda *c, const Progress *progress, Error *e) {
    LOCAL(loader_close) Loader l;
    return loader_open(&l, c, e) && load_all(&l, progress, e);
}
