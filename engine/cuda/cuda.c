#include "engine/cuda/cuda.h"

#include "engine/base/memory.h"
#include "engine/cuda/cards.h"
#include "engine/cuda/device.h"
#include "engine/cuda/fast.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void close_card(Cuda *c) {
    gpu_use(c->ordinal);
    if (c->stream) gpu_stream_wait(c->stream);
    for (int i = 0; i < GRAPHS; i++)
        if (c->graphs[i].graph) gpu_graph_close(c->graphs[i].graph);
    cuda_give_all(c);
    fast_close(c->fast);
    cuda_give_events(c);
    if (c->stream && !c->shares_stream) gpu_stream_close(c->stream);
    mem_free(c->holder);
    mem_free(c->layers);
    mem_free(c);
}

static void cuda_close(void *self) {
    for (Cuda *c = self, *next; c; c = next) {
        next = c->next;
        close_card(c);
    }
}

// --- opening

static Heads heads_of(const Shape *s, Compute compute) {
    Dtype dtype = compute_dtype(compute);
    int unit = dtype == DTYPE_F32 ? 4 : 16;
    return (Heads){.heads = s->heads,
                   .kv_heads = s->kv_heads,
                   .head_dim = s->head_dim,
                   .pitch = (s->head_dim + unit - 1) / unit * unit,
                   .dtype = dtype,
                   .pairs = s->rope.pairs};
}

// Instances on a device take turns, in one stream: what one leaves there the next finds.
static bool take_stream(Cuda *c, const Cuda *beside, Error *e) {
    while (beside && beside->ordinal != c->ordinal) beside = beside->next;
    c->shares_stream = beside != NULL;
    if (beside) c->stream = beside->stream;
    return beside || cuda_ok(c, gpu_stream_open(&c->stream), "no stream", e);
}

static bool take_all(Cuda *c, const BackendOptions *o, Error *e) {
    c->weight_bytes = c->cache_bytes = c->step_bytes = 0;
    return cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e) && take_stream(c, o->beside, e) &&
           cuda_take_events(c, e) && cuda_take_weights(c, e) && cuda_take_buffers(c, e) &&
           cuda_take_pinned(c, e) && cuda_load_weights(c, &o->progress, e);
}

static bool check_shape(const Cuda *c, Error *e) {
    int dim = c->model->shape.head_dim;
    return dim <= HEAD_DIM_MAX ||
           error_input(e, "cuda:%d: heads of %d dimensions, at most %d are supported; --device cpu has them",
                       c->ordinal, dim, HEAD_DIM_MAX);
}

static bool open_library(Cuda *c, bool wanted, Error *e) {
    return !wanted || (c->fast = fast_open(e)) != NULL;
}

void cuda_name_all(const Cuda *first, char *out, size_t size) {
    size_t n = 0;
    for (const Cuda *c = first; c && n < size; c = c->next)
        n += (size_t)snprintf(out + n, size - n, "%scuda:%d", n ? "," : "", c->ordinal);
}

// "sm_90 + sm_90, cuBLASLt 13.1.0" of two cards.
static void name_kernels(Cuda *first) {
    size_t n = 0, m = 0;
    for (Cuda *c = first; c && n < sizeof first->isa && m < sizeof first->names; c = c->next) {
        gpu_use(c->ordinal);
        bool in_turn = c->facts.major >= 9 && !gpu_begins_early();
        n += (size_t)snprintf(first->isa + n, sizeof first->isa - n, "%ssm_%d%d%s", n ? " + " : "",
                              c->facts.major, c->facts.minor, in_turn ? ", none early" : "");
        m += (size_t)snprintf(first->names + m, sizeof first->names - m, "%s%s", m ? " + " : "",
                              c->facts.name);
    }
    if (first->fast && n < sizeof first->isa)
        n += (size_t)snprintf(first->isa + n, sizeof first->isa - n, ", cuBLASLt %s",
                              first->fast->library.version);
    bool rounded = false;
    for (Cuda *c = first; c; c = c->next) rounded |= c->rounded;
    if (rounded && n < sizeof first->isa)
        snprintf(first->isa + n, sizeof first->isa - n, ", %s weights rounded to %s",
                 first->compute == COMPUTE_BF16 ? "f16" : "bf16", compute_name(first->compute));
}

// Gives NULL where there is no memory.
static Cuda *make_card(const Model *model, int ordinal, const BackendOptions *o) {
    const Shape *s = &model->shape;
    Cuda *c = mem_alloc(1, sizeof *c);
    GpuLayer *layers = mem_alloc((size_t)s->layers, sizeof *layers);
    if (!c || !layers) {
        mem_free(c);
        mem_free(layers);
        return NULL;
    }
    *c = (Cuda){.model = model, .compute = o->compute, .ordinal = ordinal, .layers = layers};
    c->heads = heads_of(s, o->compute);
    c->max_nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    return c;
}

static Cuda *make_cards(const Model *model, const CudaCards *cards, const BackendOptions *o, Error *e) {
    Cuda *first = NULL, **end = &first;
    for (int i = 0; i < cards->count; i++, end = &(*end)->next) {
        *end = make_card(model, cards->ordinal[i], o);
        if (*end) (*end)->first = first;
        if (*end && (i || (first->holder = mem_alloc((size_t)first->max_nodes, sizeof(Cuda *))))) continue;
        cuda_close(first);
        error_system(e, "out of memory for a CUDA instance");
        return NULL;
    }
    assert(first); // there is a card, at least
    for (int i = 0; i < first->max_nodes; i++) first->holder[i] = first;
    int own = model->shape.context, asked = o->context;
    cuda_set_context(first, asked > 0 && asked < own ? asked : own, o);
    return first;
}

static bool find_cards(Cuda *first, const BackendOptions *o, Error *e) {
    for (Cuda *c = first; c; c = c->next)
        if (!device_find(c->ordinal, &c->facts, e) || !check_shape(c, e) || !open_library(c, o->fast, e))
            return false;
    return true;
}

static bool take_cards(Cuda *first, const BackendOptions *o, Error *e) {
    for (Cuda *c = first; c; c = c->next)
        if (!take_all(c, o, e)) return false;
    return true;
}

bool cuda_open_on(const Model *model, const CudaCards *cards, const BackendOptions *o, void **self,
                  Error *e) {
    *self = NULL;
    Cuda *first = make_cards(model, cards, o, e);
    if (!first) return false;
    if (find_cards(first, o, e) && cuda_fit(first, o, e) && take_cards(first, o, e)) {
        name_kernels(first);
        *self = first;
        return true;
    }
    cuda_close(first);
    return false;
}

bool cuda_open(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e) {
    return cuda_open_on(model, &(CudaCards){1, {ordinal}}, o, self, e);
}

int cuda_fits(const Model *model, const CudaCards *cards, const BackendOptions *o) {
    Cuda *first = make_cards(model, cards, o, NULL);
    int fits = 0;
    if (first && find_cards(first, o, NULL)) fits = cuda_longest(first, o);
    cuda_close(first);
    return fits;
}

bool cuda_usable(int ordinal, Error *e) {
    GpuFacts facts;
    return device_find(ordinal, &facts, e);
}

// --- the table

// Cards have their layers one after another; what the one in front leaves goes on to the next.
static bool cuda_run(void *self, const StepRun *run, Error *e) {
    Cuda *first = self, *before = NULL;
    size_t width = (size_t)first->model->shape.width, at = (size_t)run->first * width;
    size_t bytes = (size_t)(run->last - run->first) * width * sizeof(float);
    for (Cuda *c = first; c && run->first < run->last; before = c, c = c->next) {
        StepRun part = *run;
        if (part.a < c->from) part.a = c->from;
        if (part.b > c->to) part.b = c->to;
        if (part.a >= part.b) continue;
        if (before && part.a == c->from &&
            !cuda_pass(before, c, c->hidden + at, before->hidden + at, bytes, e))
            return false;
        if (!cuda_step(c, &part, e)) return false;
        for (int i = run->first; i < run->last; i++) first->holder[i] = c;
    }
    return true;
}

static bool cuda_run_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    return cuda_head(cuda_last(self), nodes, count, want, out, e);
}

static bool cuda_get_distribution(void *self, int node, const Sampling *sampling, int vocab, float *p,
                                  Error *e) {
    return cuda_distribution(cuda_last(self), node, sampling, vocab, p, e);
}

// Neighbours come back in one copy.
static bool get_raw(Cuda *first, const int *nodes, int count, float *rows, Error *e) {
    size_t width = (size_t)first->model->shape.width;
    for (int i = 0, n; i < count; i += n) {
        Cuda *c = first->holder[nodes[i]];
        for (n = 1; i + n < count && nodes[i + n] == nodes[i] + n && first->holder[nodes[i + n]] == c; n++) {}
        const float *from = c->hidden + (size_t)nodes[i] * width;
        if (!cuda_begin(c, PHASE_HEAD, e) ||
            !cuda_ok(c, gpu_copy(rows + (size_t)i * width, from, (size_t)n * width * sizeof *rows, c->stream),
                     "cannot copy from it", e))
            return false;
    }
    return cuda_wait(first, e);
}

static bool cuda_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    return kind == HIDDEN_NORMED ? cuda_normed(cuda_last(self), nodes, count, rows, e)
                                 : get_raw(self, nodes, count, rows, e);
}

static bool cuda_set_hidden(void *self, int first, int count, const float *rows, Error *e) {
    Cuda *c = self;
    size_t width = (size_t)c->model->shape.width;
    if (!cuda_begin(c, PHASE_RUN, e)) return false;
    for (int done = 0, n; done < count; done += n) {
        n = count - done < PANEL_ROWS ? count - done : PANEL_ROWS;
        memcpy(staging_begin(&c->rows), rows + (size_t)done * width, (size_t)n * width * sizeof *rows);
        if (!staging_send(c, &c->rows, c->hidden + (size_t)(first + done) * width,
                          (size_t)n * width * sizeof *rows, e))
            return false;
    }
    for (int i = 0; i < count; i++) c->holder[first + i] = c;
    return true;
}

static bool commit_on(Cuda *c, const int *nodes, const int *slots, int count, Error *e) {
    if (!cuda_begin(c, PHASE_COMMIT, e)) return false;
    CommitList *list = staging_begin(&c->list);
    list->count = count;
    for (int i = 0; i < count; i++) {
        list->pair[2 * i] = nodes[i];
        list->pair[2 * i + 1] = slots[i];
    }
    if (!staging_send(c, &c->list, c->moves, sizeof *list + 2 * (size_t)count * sizeof *nodes, e))
        return false;
    Commit commit = {.list = c->moves,
                     .cache_k = c->cache_k,
                     .cache_v = c->cache_v,
                     .step_k = c->step_k,
                     .step_v = c->step_v,
                     .layers = c->to - c->from,
                     .slots = c->slots,
                     .area = c->max_nodes,
                     .heads = c->heads};
    gpu_commit(&commit, count, c->stream);
    return cuda_ok(c, gpu_launched(), "cannot commit", e) && cuda_begin(c, PHASE_IDLE, e);
}

static bool cuda_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    Cuda *first = self;
    bool unread = false;
    if (!first->layers[0].qkv.data) return true; // an adapter without attention has no keys and values
    for (Cuda *c = first; c; c = c->next) {
        if (!commit_on(c, nodes, slots, count, e)) return false;
        unread |= c->unread;
    }
    return !unread || cuda_wait(first, e);
}

static void cuda_reset(void *self) { (void)self; } // no slot is read before it is written again

static void cuda_report(const void *self, BackendReport *out) {
    const Cuda *first = self;
    const Model *m = first->model;
    *out = (BackendReport){.name = "cuda",
                           .device = first->names,
                           .isa = first->isa,
                           .layer_bytes = model_layer_bytes(m, 0),
                           .head_bytes = tensor_bytes(&m->head) + tensor_bytes(&m->final_norm),
                           .own_clock = true};
    for (const Cuda *c = first; c; c = c->next) {
        out->cache_bytes += c->cache_bytes;
        out->step_bytes += c->step_bytes;
        out->seconds.run += c->seconds[PHASE_RUN];
        out->seconds.head += c->seconds[PHASE_HEAD];
        out->seconds.commit += c->seconds[PHASE_COMMIT];
        out->waited_s += c->waited_s;
    }
    out->weight_bytes = (size_t)m->shape.layers * out->layer_bytes + out->head_bytes;
    out->kv_bytes_per_position =
        2 * (size_t)m->shape.layers * (size_t)shape_kv_width(&m->shape) * dtype_size(first->heads.dtype);
}

const Backend cuda_backend = {.name = "cuda",
                              .run = cuda_run,
                              .head = cuda_run_head,
                              .distribution = cuda_get_distribution,
                              .get_hidden = cuda_get_hidden,
                              .set_hidden = cuda_set_hidden,
                              .hidden = &cuda_hidden,
                              .commit = cuda_commit,
                              .reset = cuda_reset,
                              .report = cuda_report,
                              .close = cuda_close};
