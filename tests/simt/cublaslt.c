// A library with cuBLASLt's names, whose products run on the host, in the stream's order: what the engine
// asks of the real one is checked call by call, and a wrong call ends the program with a line that says
// which.
//
// It offers several algorithms: one that is slow, some that may not or cannot be used, and the one that must
// be chosen. $OUTPACE_FAKE_CUBLAS=refuse: none; slow: the slow one takes its time.
#include "tests/simt/cublaslt.h"

#include "engine/base/numbers.h"
#include "engine/cuda/cublas.h"
#include "tests/simt/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

FakeCublas fake_cublas;

typedef enum { HANDLE = 71, OPERATION, LAYOUT, PREFERENCE } Kind;
typedef struct Thing {
    Kind kind;
    int compute, scale, transposed_a; // of an operation
    int type;                         // of a layout
    uint64_t rows, columns;
    int64_t leading;
    size_t workspace; // of a preference
} Thing;

enum { NOT_SUPPORTED = 15, SLOW_MICROSECONDS = 3000 };
static const size_t NEEDED = 1 << 20;

static void check(int good, const char *what) {
    if (good) return;
    fprintf(stderr, "cuBLASLt: %s\n", what);
    abort();
}

static const Thing *thing(const void *p, Kind kind) {
    const Thing *t = p;
    check(t && t->kind == kind, "an argument is not what it must be");
    return t;
}

static int create(void **out, Thing t) {
    Thing *made = malloc(sizeof *made);
    check(made != NULL, "no memory");
    *made = t;
    *out = made;
    fake_cublas.live++;
    return 0;
}

static int destroy(void *p, Kind kind) {
    thing(p, kind);
    memset(p, 0xff, sizeof(Thing));
    free(p);
    fake_cublas.live--;
    return 0;
}

int cublasLtCreate(void **handle) { return create(handle, (Thing){.kind = HANDLE}); }
int cublasLtDestroy(void *handle) { return destroy(handle, HANDLE); }
size_t cublasLtGetVersion(void) { return 130203; }

int cublasLtMatmulDescCreate(void **operation, int compute, int scale) {
    return create(operation, (Thing){.kind = OPERATION, .compute = compute, .scale = scale});
}
int cublasLtMatmulDescDestroy(void *operation) { return destroy(operation, OPERATION); }
int cublasLtMatmulDescSetAttribute(void *operation, int attribute, const void *value, size_t size) {
    thing(operation, OPERATION);
    check(attribute == CUBLAS_MATMUL_TRANSA && size == sizeof(int), "only the first operand is transposed");
    memcpy(&((Thing *)operation)->transposed_a, value, size);
    return 0;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    check(type == CUBLAS_R_32F || type == CUBLAS_R_16F || type == CUBLAS_R_16BF,
          "a type that no product here has");
    check(rows > 0 && columns > 0 && leading >= (int64_t)rows, "columns overlap");
    return create(
        layout, (Thing){.kind = LAYOUT, .type = type, .rows = rows, .columns = columns, .leading = leading});
}
int cublasLtMatrixLayoutDestroy(void *layout) { return destroy(layout, LAYOUT); }

int cublasLtMatmulPreferenceCreate(void **preference) {
    return create(preference, (Thing){.kind = PREFERENCE});
}
int cublasLtMatmulPreferenceDestroy(void *preference) { return destroy(preference, PREFERENCE); }
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t size) {
    thing(preference, PREFERENCE);
    check(attribute == CUBLAS_PREFERENCE_MAX_WORKSPACE && size == sizeof(size_t), "an attribute is unknown");
    memcpy(&((Thing *)preference)->workspace, value, size);
    return 0;
}

static int mode_is(const char *word) {
    const char *mode = getenv("OUTPACE_FAKE_CUBLAS");
    return mode && strcmp(mode, word) == 0;
}

// d (m, n) = a (k, m)^T b (k, n), all column after column.
static void check_shapes(const Thing *o, const Thing *a, const Thing *b, const Thing *c, const Thing *d) {
    check(o->compute == CUBLAS_COMPUTE_IN_32F && o->scale == CUBLAS_R_32F, "sums must be of f32");
    check(o->transposed_a == CUBLAS_TRANSPOSED, "the first operand must be transposed");
    check(a->type == b->type && c->type == CUBLAS_R_32F && d->type == CUBLAS_R_32F,
          "types do not go together");
    check(a->rows == b->rows && a->columns == d->rows && b->columns == d->columns,
          "shapes do not go together");
    check(c->rows == d->rows && c->columns == d->columns && c->leading == d->leading, "c and d differ");
    check(a->leading % 8 == 0 && b->leading % 8 == 0 && d->leading % 4 == 0, "columns are not aligned");
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                   void *preference, int most, CublasFound *found, int *count) {
    const Thing *p = thing(preference, PREFERENCE), *x = thing(a, LAYOUT), *y = thing(d, LAYOUT);
    thing(handle, HANDLE);
    check_shapes(thing(operation, OPERATION), x, thing(b, LAYOUT), thing(c, LAYOUT), y);
    check(most >= FAKE_ALGORITHMS, "fewer algorithms are asked for than there are");
    for (int i = 0; i < FAKE_ALGORITHMS; i++)
        found[i] = (CublasFound){.algorithm.data = {(uint64_t)i, x->rows, y->rows, y->columns},
                                 .workspace = i == FAKE_FASTEST     ? NEEDED
                                              : i == FAKE_TOO_LARGE ? p->workspace + 1
                                                                    : 0,
                                 .status = i == FAKE_UNUSABLE ? NOT_SUPPORTED : 0};
    *count = mode_is("refuse") ? 0 : FAKE_ALGORITHMS;
    return *count ? 0 : NOT_SUPPORTED;
}

typedef struct Work {
    Thing a, b, d;
    const void *x, *y;
    float *out;
    unsigned char *workspace;
    int algorithm;
} Work;

static double number(const Thing *t, const void *data, uint64_t row, uint64_t column) {
    size_t at = (size_t)column * (size_t)t->leading + (size_t)row;
    Dtype dtype = t->type == CUBLAS_R_16BF ? DTYPE_BF16 : t->type == CUBLAS_R_16F ? DTYPE_F16 : DTYPE_F32;
    return (double)dtype_load(dtype, data, at);
}

static void multiply(void *work) {
    const Work *w = work;
    if (w->algorithm == FAKE_SLOW && mode_is("slow")) usleep(SLOW_MICROSECONDS);
    if (w->workspace) memset(w->workspace, 0xee, NEEDED);
    for (uint64_t n = 0; n < w->d.columns; n++)
        for (uint64_t m = 0; m < w->d.rows; m++) {
            double sum = 0;
            for (uint64_t k = 0; k < w->a.rows; k++)
                sum += number(&w->a, w->x, k, m) * number(&w->b, w->y, k, n);
            w->out[(size_t)n * (size_t)w->d.leading + (size_t)m] = (float)sum;
        }
}

int cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *x, void *a, const void *y,
                   void *b, const void *beta, const void *z, void *c, void *out, void *d,
                   const CublasAlgorithm *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
    Work w = {
        .a = *thing(a, LAYOUT), .b = *thing(b, LAYOUT), .d = *thing(d, LAYOUT), .x = x, .y = y, .out = out};
    float one, zero;
    memcpy(&one, alpha, sizeof one);
    memcpy(&zero, beta, sizeof zero);
    thing(handle, HANDLE);
    check_shapes(thing(operation, OPERATION), &w.a, &w.b, thing(c, LAYOUT), &w.d);
    check(!(one < 1) && !(one > 1) && !(zero < 0) && !(zero > 0),
          "the product must be as it is, onto nothing");
    check(z == out, "c and d must be the same");
    check((uintptr_t)x % 16 == 0 && (uintptr_t)y % 16 == 0 && (uintptr_t)out % 16 == 0,
          "an operand is not aligned");
    check(algorithm->data[1] == w.a.rows && algorithm->data[2] == w.d.rows &&
              algorithm->data[3] == w.d.columns,
          "the algorithm is of another shape");
    w.algorithm = (int)algorithm->data[0];
    check(w.algorithm != FAKE_UNUSABLE && w.algorithm != FAKE_TOO_LARGE, "the algorithm may not be used");
    if (w.algorithm == FAKE_REFUSING) return NOT_SUPPORTED;
    if (w.algorithm == FAKE_FASTEST) {
        check(workspace && workspace_bytes >= NEEDED && (uintptr_t)workspace % 16 == 0,
              "there is no workspace");
        w.workspace = workspace;
    }
    fake_cublas.products[w.algorithm]++;
    fake_cublas.columns = (int)w.d.columns;
    simt_call(stream, multiply, &w, sizeof w);
    return 0;
}
