// See fast.h. Row after row for us is column after column for the library, so it computes the transposed:
// sums (outputs, rows) = weights (pitch, outputs)^T activations (pitch, rows).
//
// Invariant: products[0 .. count) have a measured algorithm each; no two have the same shape and rows.
#include "engine/cuda/fast.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>

enum { CANDIDATES = 8, REPEATS = 6 };
static const size_t WORKSPACE = (size_t)32 << 20; // the library's manual recommends this for Hopper

Fast *fast_open(Error *e) {
    Fast *f = mem_new(1, sizeof *f);
    if (cublas_open(&f->library, e)) return f;
    mem_free(f);
    return NULL;
}

static void release(const Cublas *l, FastProduct *p) {
    if (p->operation) l->operation_destroy(p->operation);
    if (p->weights) l->layout_destroy(p->weights);
    if (p->activations) l->layout_destroy(p->activations);
    if (p->sums) l->layout_destroy(p->sums);
}

void fast_close(Fast *f) {
    if (!f) return;
    for (size_t i = 0; i < f->count; i++) release(&f->library, &f->products[i]);
    mem_free(f->products);
    cublas_close(&f->library);
    mem_free(f);
}

// --- the matrices

static const Matrix *matrix_of(const GpuLayer *l, int kind) {
    const Matrix *const all[] = {&l->qkv, &l->o, &l->in, &l->down};
    return all[kind];
}
enum { KINDS = 4 };

static int stride_of(const Matrix *m) { return round_up(m->rows, 16); }

bool fast_take(Cuda *c, Error *e) {
    if (!c->fast) return true;
    size_t limit = (size_t)cuda_rows_limit(c),
           most = (size_t)fast_rows(PANEL_ROWS) * (size_t)stride_of(&c->head),
           fc = limit * (size_t)stride_of(&c->fc);
    if (fc > most) most = fc;
    for (int i = 0; i < c->model->shape.layers; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            size_t n = limit * (size_t)stride_of(matrix_of(&c->layers[i], kind));
            if (n > most) most = n;
        }
    return cuda_take(c, &c->fast->results, most * sizeof(float), false, &c->step_bytes, e) &&
           cuda_take(c, &c->fast->workspace, WORKSPACE, false, &c->step_bytes, e);
}

// --- one shape

static bool refused(const Cuda *c, int status, const char *what, Error *e) {
    return error_system(e, "cuda:%d: cuBLASLt %s %s: status %d; --math exact does without it", c->ordinal,
                        c->fast->library.version, what, status);
}

static bool describe(const Cuda *c, FastProduct *p, int stride, Error *e) {
    const Cublas *l = &c->fast->library;
    const int transposed = CUBLAS_TRANSPOSED, type = p->dtype == DTYPE_F32   ? CUBLAS_R_32F
                                                     : p->dtype == DTYPE_F16 ? CUBLAS_R_16F
                                                                             : CUBLAS_R_16BF;
    uint64_t outputs = (uint64_t)p->outputs, pitch = (uint64_t)p->pitch, rows = (uint64_t)p->rows;
    int status = l->operation_create(&p->operation, CUBLAS_COMPUTE_IN_32F, CUBLAS_R_32F);
    if (!status)
        status = l->operation_set(p->operation, CUBLAS_MATMUL_TRANSA, &transposed, sizeof transposed);
    if (!status) status = l->layout_create(&p->weights, type, pitch, outputs, p->pitch);
    if (!status) status = l->layout_create(&p->activations, type, pitch, rows, p->pitch);
    if (!status) status = l->layout_create(&p->sums, CUBLAS_R_32F, outputs, rows, stride);
    return status == 0 || refused(c, status, "cannot describe a product", e);
}

static int multiply(const Cuda *c, const FastProduct *p, const CublasAlgorithm *algorithm, size_t workspace,
                    const void *weights, const void *activations) {
    const Fast *f = c->fast;
    const float one = 1, zero = 0;
    return f->library.multiply(f->library.handle, p->operation, &one, weights, p->weights, activations,
                               p->activations, &zero, f->results, p->sums, f->results, p->sums, algorithm,
                               workspace ? f->workspace : NULL, workspace, c->stream);
}

static int candidates(const Cuda *c, const FastProduct *p, CublasFound found[CANDIDATES], int *count) {
    const Cublas *l = &c->fast->library;
    void *preference = NULL;
    *count = 0;
    int status = l->preference_create(&preference);
    if (!status)
        status = l->preference_set(preference, CUBLAS_PREFERENCE_MAX_WORKSPACE, &WORKSPACE, sizeof WORKSPACE);
    if (!status)
        status = l->find(l->handle, p->operation, p->weights, p->activations, p->sums, p->sums, preference,
                         CANDIDATES, found, count);
    if (preference) l->preference_destroy(preference);
    return status;
}

// --- measuring

// Matrices of one shape, which the timed runs take in turn.
typedef struct Alike {
    const void *weights[REPEATS];
    const void *activations;
    int count;
} Alike;

// Measures the seconds of a run; INFINITY if the library refuses it.
static bool time_one(Cuda *c, const FastProduct *p, const CublasFound *found, const Alike *on,
                     double *seconds, Error *e) {
    *seconds = INFINITY;
    if (found->status || found->workspace > WORKSPACE) return true;
    if (multiply(c, p, &found->algorithm, found->workspace, on->weights[0], on->activations)) return true;
    bool ok = cuda_ok(c, gpu_event_record(c->marks[0].event, c->stream), "cannot mark its work", e);
    for (int i = 0; ok && i < REPEATS; i++)
        if (multiply(c, p, &found->algorithm, found->workspace, on->weights[i % on->count], on->activations))
            return true;
    return ok && cuda_ok(c, gpu_event_record(c->marks[1].event, c->stream), "cannot mark its work", e) &&
           cuda_ok(c, gpu_event_wait(c->marks[1].event), "cuBLASLt failed", e) &&
           cuda_ok(c, gpu_event_seconds(c->marks[0].event, c->marks[1].event, seconds),
                   "cannot time its work", e);
}

static bool choose(Cuda *c, FastProduct *p, const Alike *on, Error *e) {
    CublasFound found[CANDIDATES];
    int count, status = candidates(c, p, found, &count);
    double best = INFINITY, seconds;
    for (int i = 0; !status && i < count; i++) {
        if (!time_one(c, p, &found[i], on, &seconds, e)) return false;
        if (!(seconds < best)) continue;
        best = seconds;
        p->algorithm = found[i].algorithm;
        p->workspace = found[i].workspace;
    }
    return best < INFINITY || refused(c, status, "has no way to do a product", e);
}

static FastProduct *find(const Fast *f, const Matrix *m, int rows) {
    for (size_t i = 0; i < f->count; i++) {
        FastProduct *p = &f->products[i];
        if (p->outputs == m->rows && p->pitch == m->pitch && p->dtype == m->dtype && p->rows == rows)
            return p;
    }
    return NULL;
}

static bool measure(Cuda *c, const Matrix *m, int rows, const Alike *on, Error *e) {
    Fast *f = c->fast;
    assert(!find(f, m, rows));
    mem_grow(&f->products, &f->capacity, f->count + 1, sizeof *f->products);
    FastProduct p = {.dtype = m->dtype, .outputs = m->rows, .pitch = m->pitch, .rows = rows};
    if (describe(c, &p, stride_of(m), e) && choose(c, &p, on, e)) {
        f->products[f->count++] = p;
        return true;
    }
    release(&f->library, &p);
    return false;
}

// The events for measuring are also the marks of phases, so this waits for the stream first.
// kind: KINDS of a matrix that's not a layer's.
static bool prepare(Cuda *c, const Matrix *m, int kind, Role role, int rows, Error *e) {
    Alike on = {.activations = cuda_role(c, role, m)->data};
    if (!m->library || find(c->fast, m, rows)) return true;
    for (int i = 0; kind < KINDS && i < c->model->shape.layers && on.count < REPEATS; i++) {
        const Matrix *other = matrix_of(&c->layers[i], kind);
        if (other->library && other->rows == m->rows && other->pitch == m->pitch && other->dtype == m->dtype)
            on.weights[on.count++] = other->data;
    }
    if (on.count == 0) on.weights[on.count++] = m->data;
    return cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e) && cuda_wait(c, e) &&
           measure(c, m, rows, &on, e);
}

bool fast_prepare(Cuda *c, int rows, int a, int b, Error *e) {
    if (a == 0 && !prepare(c, &c->fc, KINDS, ROLE_JOINED, rows, e)) return false;
    for (int layer = a; layer < b; layer++) {
        const Role reads[KINDS] = {attention_role(&c->model->shape, layer), ROLE_MIXED, ROLE_NORMED,
                                   ROLE_GATED};
        for (int kind = 0; kind < KINDS; kind++)
            if (!prepare(c, matrix_of(&c->layers[layer], kind), kind, reads[kind], rows, e)) return false;
    }
    return true;
}

bool fast_prepare_head(Cuda *c, int rows, Error *e) {
    return prepare(c, &c->head, KINDS, ROLE_NORMED, rows, e);
}

// --- running

void fast_multiply(Cuda *c, const Product *p, int rows) {
    const FastProduct *known = find(c->fast, &p->w, rows);
    assert(known); // fast_prepare has measured it
    PutRows put = {.rows = p->rows,
                   .parts = 1,
                   .sums = c->fast->results,
                   .outputs = p->w.rows,
                   .stride = stride_of(&p->w),
                   .put = p->put};
    int status = multiply(c, known, &known->algorithm, known->workspace, p->w.data, p->x.data);
    if (!c->fast->status) c->fast->status = status;
    gpu_put_rows(&put, rows, c->stream);
}

bool fast_ok(const Cuda *c, Error *e) {
    return !c->fast || c->fast->status == 0 || refused(c, c->fast->status, "refused a product", e);
}
