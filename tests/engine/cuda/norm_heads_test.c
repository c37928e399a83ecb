// The norm of heads between their product and rotation, against sums in double, for heads of every size and
// part of them that is rotated; v as it was; and the same bits whichever thread goes first, and whatever
// shares the launch.
#include "tests/simt/settings.h"
#include "tests/support/check.h"

#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 5, ROWS = 3, HEADS = 3, KV_HEADS = 2, ALL = HEADS + 2 * KV_HEADS };
enum { SUMS = ROWS * ALL * HEAD_DIM_MAX, ANGLES = NODES * HEAD_DIM_MAX / 2 };

typedef struct World {
    Heads heads;
    bool own; // LayerNorm with weights of each head
    float sums[SUMS], weight[ALL * HEAD_DIM_MAX], cosine[ANGLES], sine[ANGLES];
} World;

// Of all rows, (ROWS, HEADS, pitch); and of all nodes, (KV_HEADS, NODES, pitch).
typedef struct Out {
    float q[ROWS * HEADS * HEAD_DIM_MAX], k[KV_HEADS * NODES * HEAD_DIM_MAX],
        v[KV_HEADS * NODES * HEAD_DIM_MAX];
} Out;

static const int NODE[ROWS] = {4, 0, 2};
static const float EPSILON = 1e-3f;

static void *take(size_t bytes, const void *from, void *stream) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    gpu_copy(block, from, bytes, stream);
    return block;
}

// Rows [0, count) of the list; what is not written stays NAN.
static void run(const World *w, int count, Out *out) {
    void *stream;
    int rows[2 + ROWS] = {count, -1}; // a RowList
    memcpy(rows + 2, NODE, sizeof NODE);
    memset(out, 0xff, sizeof *out);
    assert_int_equal(gpu_stream_open(&stream), 0);
    NormHeads n = {.rows = take(sizeof rows, rows, stream),
                   .sums = take(sizeof w->sums, w->sums, stream),
                   .weight = take(sizeof w->weight, w->weight, stream),
                   .own = w->own,
                   .epsilon = EPSILON,
                   .put = {.kind = PUT_QKV,
                           .heads = w->heads,
                           .q = take(sizeof out->q, out->q, stream),
                           .k = take(sizeof out->k, out->k, stream),
                           .v = take(sizeof out->v, out->v, stream),
                           .area = NODES,
                           .cosine = take(sizeof w->cosine, w->cosine, stream),
                           .sine = take(sizeof w->sine, w->sine, stream)}};
    gpu_norm_heads(&n, 8, stream);
    gpu_copy(out->q, n.put.q, sizeof out->q, stream);
    gpu_copy(out->k, n.put.k, sizeof out->k, stream);
    gpu_copy(out->v, n.put.v, sizeof out->v, stream);
    gpu_stream_wait(stream);
    const void *const all[] = {n.rows, n.sums, n.weight, n.put.q, n.put.k, n.put.v, n.put.cosine, n.put.sine};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give((void *)(uintptr_t)all[i]);
    gpu_stream_close(stream);
}

// Dimension d of a row's head, as it must come out.
static double reckon(const World *w, int row, int head, int d) {
    int n = w->heads.head_dim, pairs = w->heads.pairs, even = d / 2 * 2;
    const float *x = w->sums + ((size_t)row * ALL + (size_t)head) * (size_t)n;
    const float *weight = w->weight + (w->own ? head : head >= HEADS) * n;
    if (head >= HEADS + KV_HEADS) return (double)x[d];
    double sum = 0, mean = 0;
    for (int i = 0; w->own && i < n; i++) mean += (double)x[i] / n;
    for (int i = 0; i < n; i++) sum += ((double)x[i] - mean) * ((double)x[i] - mean);
    double scale = 1 / sqrt(sum / n + (double)EPSILON);
    double a = ((double)x[even] - mean) * scale * (double)weight[even],
           b = ((double)x[even + 1] - mean) * scale * (double)weight[even + 1];
    if (d / 2 >= pairs) return d % 2 ? b : a;
    size_t at = (size_t)NODE[row] * (size_t)pairs + (size_t)(d / 2);
    double c = (double)w->cosine[at], s = (double)w->sine[at];
    return d % 2 ? b * c + a * s : a * c - b * s;
}

static const float *head_of(const World *w, const Out *out, int row, int head) {
    int kv = head < HEADS ? 0 : (head - HEADS) % KV_HEADS;
    const float *area = head < HEADS ? out->q : head < HEADS + KV_HEADS ? out->k : out->v;
    int at = head < HEADS ? row * HEADS + head : kv * NODES + NODE[row];
    return area + (size_t)at * (size_t)w->heads.pitch;
}

static void check_head(const World *w, const Out *out, int row, int head) {
    const float *got = head_of(w, out, row, head);
    for (int d = 0; d < w->heads.pitch; d++) {
        double want = d < w->heads.head_dim ? reckon(w, row, head, d) : 0;
        if (!(fabs((double)got[d] - want) <= 4e-6))
            fail_msg("size %d, %d pairs, row %d, head %d: dimension %d is %.9g, wanted %.9g",
                     w->heads.head_dim, w->heads.pairs, row, head, d, (double)got[d], want);
    }
}

static void check(const World *w, Out *got, Out *other) {
    for (int order = 0; order < SIMT_ORDERS; order++) {
        simt_settings.order = (SimtOrder)order;
        simt_settings.early = order > 0;
        run(w, ROWS, order ? other : got);
        if (order && memcmp(other, got, sizeof *got))
            fail_msg("size %d: other bits in another order", w->heads.head_dim);
    }
    simt_settings.order = SIMT_NATURAL;
    simt_settings.early = false;
    for (int row = 0; row < ROWS; row++)
        for (int head = 0; head < ALL; head++) check_head(w, got, row, head);
    run(w, 1, other);
    size_t bytes = (size_t)w->heads.pitch * sizeof(float);
    for (int head = 0; head < ALL; head++) {
        assert_memory_equal(head_of(w, other, 0, head), head_of(w, got, 0, head), bytes);
        assert_true(isnan(head_of(w, other, 1, head)[0])); // the next row's
    }
}

static void any_size(void **state) {
    static const int SIZES[][2] = {{2, 1},   {10, 5},  {24, 9},   {64, 32},
                                   {66, 33}, {80, 40}, {128, 48}, {128, 64}};
    static World w;
    static Out out[2];
    Random r = test_random(513);
    (void)state;
    for (int i = 0; i < SUMS; i++) w.sums[i] = random_normal(&r);
    for (int i = 0; i < ALL * HEAD_DIM_MAX; i++) w.weight[i] = random_normal(&r);
    for (int i = 0; i < ANGLES; i++) w.cosine[i] = random_normal(&r), w.sine[i] = random_normal(&r);
    size_t sizes = sizeof SIZES / sizeof *SIZES;
    for (size_t i = 0; i < 2 * sizes; i++) {
        int n = SIZES[i % sizes][0];
        w.own = i >= sizes;
        w.heads = (Heads){.heads = HEADS,
                          .kv_heads = KV_HEADS,
                          .head_dim = n,
                          .pitch = (n + 3) / 4 * 4,
                          .pairs = SIZES[i % sizes][1]};
        check(&w, &out[0], &out[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
