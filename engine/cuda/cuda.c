#include "engine/cuda/cuda.h"

#include "engine/base/memory.h"
#include "engine/cuda/device.h"
#include "engine/cuda/fast.h"

#include <stdio.h>
#include <string.h>

static void cuda_close(void *self) {
    Cuda *c = self;
    if (!c) return;
    gpu_use(c->ordinal);
    if (c->stream) gpu_stream_wait(c->stream);
    for (int i = 0; i < GRAPHS; i++)
        if (c->graphs[i].graph) gpu_graph_close(c->graphs[i].graph);
    cuda_give_all(c);
    fast_close(c->fast);
    cuda_give_events(c);
    if (c->stream && !c->shares_stream) gpu_stream_close(c->stream);
    mem_free(c->layers);
    mem_free(c);
}

// --- what it needs, told before it is taken

// Beside what is in the list: the buffers that weights go up through, recorded graphs.
static const size_t ROOM = (size_t)192 << 20;

static void set_context(Cuda *c, int context, const BackendOptions *o) {
    c->context = context;
    cache_init(&c->cache, context, c->model->shape.window, o->slack > 0 ? o->slack : CACHE_SLACK);
    c->slots = c->cache.capacity;
}

static size_t needed(Cuda *c) {
    c->planning = true;
    c->weight_bytes = c->cache_bytes = c->step_bytes = 0;
    (void)(cuda_take_weights(c, NULL) && cuda_take_buffers(c, NULL));
    c->planning = false;
    return c->weight_bytes + c->cache_bytes + c->step_bytes + ROOM;
}

static size_t needed_with(const Cuda *c, int context, const BackendOptions *o) {
    Cuda tried = *c;
    set_context(&tried, context, o);
    return needed(&tried);
}

// The longest context that fits, with a little to spare; 0: none does.
static int longest_context(const Cuda *c, const BackendOptions *o) {
    int low = 0, high = c->context;
    size_t room = c->facts.free_bytes - c->facts.free_bytes / 32;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (needed_with(c, middle, o) <= room) low = middle;
        else high = middle - 1;
    }
    return low;
}

static bool check_memory(Cuda *c, const BackendOptions *o, Error *e) {
    const double gigabyte = 1e9;
    char mend[64] = "it does not fit, whatever the context";
    size_t need = needed(c);
    if (need <= c->facts.free_bytes) return true;
    int fits = longest_context(c, o);
    if (fits) snprintf(mend, sizeof mend, "--context %d would fit", fits);
    return error_system(
        e, "cuda:%d: the model needs %.1f GB (weights %.1f, cache %.1f, step %.1f), %.1f GB are free: %s",
        c->ordinal, (double)need / gigabyte, (double)c->weight_bytes / gigabyte,
        (double)c->cache_bytes / gigabyte, (double)c->step_bytes / gigabyte,
        (double)c->facts.free_bytes / gigabyte, mend);
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
    c->shares_stream = beside && beside->ordinal == c->ordinal;
    if (c->shares_stream) c->stream = beside->stream;
    return c->shares_stream || cuda_ok(c, gpu_stream_open(&c->stream), "no stream", e);
}

static bool take_all(Cuda *c, const BackendOptions *o, Error *e) {
    c->weight_bytes = c->cache_bytes = c->step_bytes = 0;
    return take_stream(c, o->beside, e) && cuda_take_events(c, e) && cuda_take_weights(c, e) &&
           cuda_take_buffers(c, e) && cuda_take_pinned(c, e) && cuda_load_weights(c, &o->progress, e);
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

static void name_kernels(Cuda *c) {
    const char *in_turn = c->facts.major >= 9 && !gpu_begins_early() ? ", none early" : "";
    int n = snprintf(c->isa, sizeof c->isa, "sm_%d%d%s", c->facts.major, c->facts.minor, in_turn);
    if (c->fast)
        n += snprintf(c->isa + n, sizeof c->isa - (size_t)n, ", cuBLASLt %s", c->fast->library.version);
    if (c->rounded)
        snprintf(c->isa + n, sizeof c->isa - (size_t)n, ", %s weights rounded to %s",
                 c->compute == COMPUTE_BF16 ? "f16" : "bf16", compute_name(c->compute));
}

// An instance that has taken nothing yet.
static Cuda *describe(const Model *model, int ordinal, const BackendOptions *o, Error *e) {
    const Shape *s = &model->shape;
    Cuda *c = mem_alloc(1, sizeof *c);
    GpuLayer *layers = mem_alloc((size_t)s->layers, sizeof *layers);
    if (!c || !layers) {
        mem_free(c);
        mem_free(layers);
        error_system(e, "out of memory for a CUDA instance");
        return NULL;
    }
    *c = (Cuda){.model = model, .compute = o->compute, .ordinal = ordinal, .layers = layers};
    c->heads = heads_of(s, o->compute);
    c->max_nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    set_context(c, o->context > 0 && o->context < s->context ? o->context : s->context, o);
    return c;
}

bool cuda_open(const Model *model, int ordinal, const BackendOptions *o, void **self, Error *e) {
    Cuda *c = describe(model, ordinal, o, e);
    *self = NULL;
    if (c && device_find(ordinal, &c->facts, e) && check_shape(c, e) && open_library(c, o->fast, e) &&
        check_memory(c, o, e) && take_all(c, o, e)) {
        name_kernels(c);
        *self = c;
        return true;
    }
    cuda_close(c);
    return false;
}

int cuda_fits(const Model *model, int ordinal, const BackendOptions *o) {
    Cuda *c = describe(model, ordinal, o, NULL);
    int fits = 0;
    if (c && device_find(ordinal, &c->facts, NULL) && check_shape(c, NULL))
        fits = needed(c) <= c->facts.free_bytes ? c->context : longest_context(c, o);
    cuda_close(c);
    return fits;
}

bool cuda_usable(int ordinal, Error *e) {
    GpuFacts facts;
    return device_find(ordinal, &facts, e);
}

// --- the table

static bool cuda_run(void *self, const StepRun *run, Error *e) { return cuda_step(self, run, e); }

static bool cuda_run_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    return cuda_head(self, nodes, count, want, out, e);
}

static bool cuda_get_distribution(void *self, int node, const Sampling *sampling, int vocab, float *p,
                                  Error *e) {
    return cuda_distribution(self, node, sampling, vocab, p, e);
}

// Neighbours come back in one copy.
static bool get_raw(Cuda *c, const int *nodes, int count, float *rows, Error *e) {
    size_t width = (size_t)c->model->shape.width;
    if (!cuda_begin(c, PHASE_HEAD, e)) return false;
    for (int i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && nodes[i + n] == nodes[i] + n; n++) {}
        const float *from = c->hidden + (size_t)nodes[i] * width;
        if (!cuda_ok(c, gpu_copy(rows + (size_t)i * width, from, (size_t)n * width * sizeof *rows, c->stream),
                     "cannot copy from it", e))
            return false;
    }
    return cuda_wait(c, e);
}

static bool cuda_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    return kind == HIDDEN_NORMED ? cuda_normed(self, nodes, count, rows, e)
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
    return true;
}

static bool cuda_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    Cuda *c = self;
    if (!c->layers[0].qkv.data) return true; // an adapter without attention has no keys and values
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
                     .layers = c->model->shape.layers,
                     .slots = c->slots,
                     .area = c->max_nodes,
                     .heads = c->heads};
    gpu_commit(&commit, count, c->stream);
    return cuda_ok(c, gpu_launched(), "cannot commit", e) && cuda_begin(c, PHASE_IDLE, e) &&
           (!c->unread || cuda_wait(c, e));
}

static void cuda_reset(void *self) { (void)self; } // no slot is read before it is written again

static void cuda_report(const void *self, BackendReport *out) {
    const Cuda *c = self;
    const Model *m = c->model;
    *out = (BackendReport){
        .name = "cuda",
        .device = c->facts.name,
        .isa = c->isa,
        .layer_bytes = model_layer_bytes(m, 0),
        .head_bytes = tensor_bytes(&m->head) + tensor_bytes(&m->final_norm),
        .cache_bytes = c->cache_bytes,
        .step_bytes = c->step_bytes,
        .seconds = {c->seconds[PHASE_RUN], c->seconds[PHASE_HEAD], c->seconds[PHASE_COMMIT]},
        .own_clock = true,
        .waited_s = c->waited_s
    };
    out->weight_bytes = (size_t)m->shape.layers * out->layer_bytes + out->head_bytes;
    out->kv_bytes_per_position =
        2 * (size_t)m->shape.layers * (size_t)shape_kv_width(&m->shape) * dtype_size(c->heads.dtype);
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
