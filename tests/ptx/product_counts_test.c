// The end of a product of Llama-2 7B, after its last multiplication, counted on the blocks of one tile: all
// of them take part in putting its outputs, and none waits for L2 more than three times in a row. At 121 rows
// tiles are as high as the card of 132 processors wants them, and no warp reads a whole stage of activations.
#include "tests/ptx/machine.h"
#include "tests/support/check.h"

#include "engine/cuda/product.h"
#include "engine/cuda/runtime.h"

#include <string.h>

enum { ROWS = 128, WIDTH = 4096, ROW_COUNTS = 4 };
static const int ROW[ROW_COUNTS] = {1, 8, 32, 121};

typedef struct Case {
    const char *name;
    int rows, columns;
    PutKind kind;
    uint64_t tail[ROW_COUNTS]; // at most; in cycles, reckoned
    int tile;                  // rows of weights, at 121 rows
} Case;

static const Case CASES[] = {
    {"o", WIDTH, WIDTH, PUT_RESIDUAL, {1200, 1200, 1200, 1900}, 256},
    {"down", WIDTH, 11008, PUT_RESIDUAL, {1500, 1500, 1700, 3000}, 256},
    {"q k v", 3 * WIDTH, WIDTH, PUT_QKV, {1100, 1100, 1900, 5400}, 256},
    {"gate up", 22016, WIDTH, PUT_GATED, {800, 1200, 2600, 7500}, 192},
};

static bool is_first_tile(const Launch *l, uint32_t block) { return block < l->grid[0]; }

static void *take(size_t bytes) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    return block;
}

static Product product_of(const Case *c) {
    int pitch = (c->columns + PACKED_K - 1) / PACKED_K * PACKED_K;
    size_t rows = (size_t)c->rows;
    Product p = {.rows = NULL};
    p.w = (Matrix){.rows = c->rows, .columns = c->columns, .pitch = pitch};
    p.w.dtype = DTYPE_BF16;
    p.w.form = FORM_PACKED;
    p.w.splits = gpu_product_splits(c->rows, pitch);
    p.x = (Activations){.pitch = pitch, .form = FORM_PACKED, .dtype = DTYPE_BF16};
    p.put = (Put){.kind = c->kind, .stride = c->rows, .real = c->rows, .area = ROWS};
    p.put.to = (Activations){.pitch = c->rows, .form = FORM_PACKED, .dtype = DTYPE_BF16};
    p.put.heads = (Heads){.heads = 32, .kv_heads = 32, .head_dim = 128, .pitch = 128, .pairs = 64};
    p.put.heads.dtype = DTYPE_BF16;
    p.rows = take(sizeof(RowList));
    p.w.data = take(gpu_matrix_bytes(&p.w));
    p.x.data = take((size_t)ROWS * (size_t)pitch * 2);
    p.put.out = take(ROWS * rows * sizeof(float));
    p.put.to.data = p.put.q = take(ROWS * rows * 2);
    p.put.k = take(ROWS * WIDTH * 2);
    p.put.v = take(ROWS * WIDTH * 2);
    p.put.cosine = take(ROWS * 64 * sizeof(float));
    p.put.sine = take(ROWS * 64 * sizeof(float));
    p.parts = take((size_t)p.w.splits * PANEL_ROWS * rows * sizeof(float));
    return p;
}

static void give(const Product *p) {
    void *const all[] = {(void *)(uintptr_t)p->rows,
                         p->w.data,
                         p->x.data,
                         p->put.out,
                         p->put.q,
                         p->put.k,
                         p->put.v,
                         (void *)(uintptr_t)p->put.cosine,
                         (void *)(uintptr_t)p->put.sine,
                         p->parts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
}

static void most(uint64_t got, uint64_t limit, const Case *c, int rows, const char *what) {
    if (got > limit)
        fail_msg("%s, %d rows: %lu %s, at most %lu", c->name, rows, (unsigned long)got, what,
                 (unsigned long)limit);
}

static void check(const Case *c, int which) {
    int rows = ROW[which], bound = 8;
    RowList list = {.count = rows, .first = 0};
    Product p = product_of(c);
    void *stream;
    while (bound < rows) bound *= 2;
    assert_int_equal(gpu_stream_open(&stream), 0);
    gpu_copy((void *)(uintptr_t)p.rows, &list, sizeof list, stream);
    ptx_counters_clear();
    GpuFacts card = {.multiprocessors = 132, .shared_bytes = 227 << 10};
    gpu_product(&p, bound, &card, stream);
    gpu_stream_wait(stream);
    const Counters *k = ptx_counters("product");
    assert_non_null(k);
    print_message("%-8s %3d rows: %u blocks a tile, tail %lu of %lu cycles, %lu trips\n", c->name, rows,
                  (unsigned)k->blocks, (unsigned long)k->tail, (unsigned long)k->path,
                  (unsigned long)k->tail_trips);
    assert_int_equal(k->blocks, p.w.splits);
    assert_null(ptx_counters("put_rows"));
    assert_int_equal(k->atomics + k->warp[COUNT_FENCE], 0);
    most(k->tail, c->tail[which], c, rows, "cycles after the last multiplication");
    most(k->tail_trips, 3, c, rows, "trips to L2 after it");
    // Activations come in blocks of 8.
    int tile = bound < 64 ? 128 : c->tile, columns = (rows + 7) / 8 * 8;
    uint64_t ideal = (uint64_t)(tile / 16 * (p.w.pitch / 16) * (columns / 8));
    assert_in_range(k->warp[COUNT_MMA], ideal, ideal * 21 / 20);
    // Of a stage of 64 columns weights are read twice and activations by four warps: 128 bytes a pass.
    uint64_t passes =
        (uint64_t)(p.w.pitch / 64 * (3 * tile + 5 * columns) + p.w.splits * columns * tile / 16);
    if (bound > 64) most(k->shared_waves * 10, passes * 11, c, rows, "tenths of passes through the banks");
    most(k->copy_sectors, k->copy_ideal, c, rows, "sectors copied");
    give(&p);
    gpu_stream_close(stream);
}

static void one_tile(void **state) {
    (void)state;
    ptx_settings.checked = false; // nobody has written the weights
    ptx_settings.only = is_first_tile;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (int r = 0; r < ROW_COUNTS; r++) check(&CASES[i], r);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_tile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
