// bf16 products and attention (attend_tiles.c) on matrix tiles; everything else is as in avx512_bf16.
//
// Weights are the left operand, straight from the file: 16 rows of 32 are one tile, without copying or
// packing. Activations are packed, 16 rows side by side in pairs along k. Sums come out with outputs as rows
// and are transposed on their way to y. One block is 32 outputs by 32 rows: four tiles of sums, and four
// products for four loads. Rows beyond 32 are padded with zeros to a multiple of 32.
//
// Each row of a weight matrix is a page or more, so hardware prefetchers don't run ahead. While one block of
// outputs is multiplied with one block of rows after another, the next block is fetched into the second-level
// cache, a part of it with each: fetched all with the first, it would slow that one down to the memory's
// speed and leave the memory idle during the others. Activations too large for that cache are read once for
// two blocks of outputs.
//
// A sum runs over k in steps of 32, from first to last, whatever the number of rows: exact in the sense of
// ops.h. Products with weights other than bf16, and with f32 activations, are in lanes.
//
// Floor: a tile product takes 16 cycles for 16,384 operations. Of that rate a step of 121 rows reaches
// 31%, one row 67% of the memory's speed (results/speed.md).
#include "engine/cpu/kernels/attend.h"
#include "engine/cpu/kernels/codes.h"
#include "engine/cpu/kernels/product.h"
#include "engine/cpu/kernels/rows.h"
#include "engine/cpu/kernels/tiles.h"
#include "engine/cpu/kernels/transpose.h"

// The set whose lanes this object packs for, and whose products it calls: compiled here again, they would be
// most of it. The tests' emulation names its own.
#if !defined(SET_BELOW) && defined(__x86_64__)
#define SET_BELOW cpu_ops_avx512_bf16
#elif !defined(SET_BELOW) && defined(__aarch64__)
#define SET_BELOW cpu_ops_neon
#elif !defined(SET_BELOW)
#define SET_BELOW cpu_ops_portable
#endif

enum { GROUP = TILE_ROWS, BLOCK = 2 * GROUP, PAIRS = TILE_K / 2 };

static inline bool on_tiles(const Packed *p) {
    return p->compute == COMPUTE_BF16 && p->weights == DTYPE_BF16;
}

static inline int k_steps(int columns) { return (columns + TILE_K - 1) / TILE_K; }

// Packed rows of a group: not padded if one block has all rows.
static inline int group_rows(int rows, int first) {
    int left = rows - first;
    return rows > BLOCK || left >= GROUP ? GROUP : left > 0 ? left : 0;
}

static inline int packed_rows(int rows) { return rows > BLOCK ? (rows + BLOCK - 1) / BLOCK * BLOCK : rows; }

static size_t amx_packed_bytes(int rows, int columns) {
    size_t tiles = (size_t)packed_rows(rows) * (size_t)k_steps(columns) * TILE_BYTES;
    size_t lanes = packed_bytes(rows, columns);
    return tiles > lanes ? tiles : lanes;
}

// The group's tile of this step of k; its pairs are group_rows words apart.
static inline uint32_t *packed_tile(const Packed *p, int first, int step) {
    size_t steps = (size_t)k_steps(p->columns), before = (size_t)first * steps * PAIRS;
    return (uint32_t *)p->data + before + (size_t)step * PAIRS * (size_t)group_rows(p->rows, first);
}

// --- packing

// Columns [k, k + TILE_K) of row r as bf16 pairs, padded with zeros.
static inline void round_step(const float *x, const Packed *p, int r, int k, uint32_t pairs[PAIRS]) {
    float step[TILE_K] = {0};
    const float *from = x + (size_t)r * (size_t)p->columns + (size_t)k;
    int count = r >= p->rows ? 0 : p->columns - k < TILE_K ? p->columns - k : TILE_K;
    if (count < TILE_K) from = memcpy(step, from, (size_t)count * sizeof *x);
    tile_round(from, pairs);
}

static inline void pack_group(const float *x, const Packed *p, int first) {
    int rows = group_rows(p->rows, first);
    uint32_t square[SQUARE][SQUARE] = {{0}};
    for (int step = 0; step < k_steps(p->columns); step++) {
        for (int r = 0; r < rows; r++) round_step(x, p, first + r, step * TILE_K, square[r]);
        transpose_square((const uint32_t(*)[SQUARE])square, packed_tile(p, first, step), (size_t)rows, rows,
                         PAIRS);
    }
}

static void amx_pack(const float *x, const Packed *p, int first, int last) {
    if (!on_tiles(p)) {
        pack(x, p, first, last);
        return;
    }
    int end = last == p->rows ? packed_rows(p->rows) : last; // the thread with the last rows pads them
    for (int r = first; r < end; r += GROUP) pack_group(x, p, r);
}

// --- products

// 16 rows of weights from row n, column k on, padded with zeros.
static inline void edge_tile(const Tensor *w, int n, int k, uint16_t tile[GROUP][TILE_K]) {
    int columns = w->columns - k < TILE_K ? w->columns - k : TILE_K;
    memset(tile, 0, GROUP * TILE_K * sizeof(uint16_t));
    for (int r = 0; r < GROUP && n + r < w->rows; r++)
        memcpy(tile[r], (const uint16_t *)w->data + (size_t)(n + r) * (size_t)w->columns + (size_t)k,
               (size_t)columns * sizeof(uint16_t));
}

// One block of a product: outputs [n, n + BLOCK) of rows [first, first + BLOCK).
typedef struct BlockTask {
    const Tensor *w;
    const Packed *p;
    int n, first;
    int left, right;      // rows of the two groups
    int ahead;            // outputs from here to the block that is fetched meanwhile
    int fetch, fetch_end; // its outputs that this block fetches
} BlockTask;

enum {
    KEPT_BYTES = 1 << 20
}; // of activations in the second-level cache, which has 2 MB on processors with tiles

static inline void fetch_part(UNUSED const BlockTask *b, UNUSED int k) {
#if defined(TILES_ARE_REAL)
    size_t row = (size_t)b->w->columns;
    const uint16_t *w = (const uint16_t *)b->w->data + (size_t)(b->n + b->ahead + b->fetch) * row + (size_t)k;
    for (int r = b->fetch; r < b->fetch_end; r++, w += row) _mm_prefetch((const char *)w, _MM_HINT_T1);
#else
#endif
}

// Adds one step of k to the four tiles of sums.
INLINE void block_step(UNUSED Tiles *t, const BlockTask *b, const void *upper, const void *lower, size_t row,
                       int step) {
    tile_load(t, 4, upper, row);
    tile_load(t, 6, packed_tile(b->p, b->first, step), 4 * (size_t)b->left);
    tile_multiply(t, 0, 4, 6);
    tile_load(t, 5, lower, row);
    tile_multiply(t, 2, 5, 6);
    if (!b->right) return;
    tile_load(t, 7, packed_tile(b->p, b->first + GROUP, step), 4 * (size_t)b->right);
    tile_multiply(t, 1, 4, 7);
    tile_multiply(t, 3, 5, 7);
}

static void sum_block(Tiles *t, const BlockTask *b) {
    const Tensor *w = b->w;
    size_t row = (size_t)w->columns * sizeof(uint16_t);
    const unsigned char *at = (const unsigned char *)w->data + (size_t)b->n * row;
    int whole = b->n + BLOCK <= w->rows ? w->columns / TILE_K : 0, steps = k_steps(w->columns);
    tile_zero(t, 0);
    tile_zero(t, 1);
    tile_zero(t, 2);
    tile_zero(t, 3);
    for (int step = 0; step < whole; step++, at += TILE_BYTES) {
        block_step(t, b, at, at + GROUP * row, row, step);
        fetch_part(b, step * TILE_K);
    }
    for (int step = whole; step < steps; step++) {
        uint16_t upper[GROUP][TILE_K], lower[GROUP][TILE_K];
        edge_tile(w, b->n, step * TILE_K, upper);
        edge_tile(w, b->n + GROUP, step * TILE_K, lower);
        tiles_see_memory();
        block_step(t, b, upper, lower, TILE_BYTES, step);
    }
}

// Writes a tile of sums, outputs as rows, to y[row * stride + output].
static inline void put_sums(const float sums[GROUP][GROUP], float *y, size_t stride, int outputs, int rows) {
    if (outputs <= 0 || rows <= 0) return;
    uint32_t words[SQUARE][SQUARE];
    memcpy(words, sums, sizeof words);
    transpose_square((const uint32_t(*)[SQUARE])words, (uint32_t *)(void *)y, stride,
                     outputs < GROUP ? outputs : GROUP, rows < GROUP ? rows : GROUP);
}

static void put_block(UNUSED Tiles *t, const BlockTask *b, float *y, size_t stride, int outputs) {
    float sums[GROUP][GROUP];
    int rows = b->p->rows - b->first;
    tile_store(t, 0, sums, sizeof *sums);
    put_sums((const float(*)[GROUP])sums, y, stride, outputs, rows);
    tile_store(t, 2, sums, sizeof *sums);
    put_sums((const float(*)[GROUP])sums, y + GROUP, stride, outputs - GROUP, rows);
    if (rows <= GROUP) return;
    tile_store(t, 1, sums, sizeof *sums);
    put_sums((const float(*)[GROUP])sums, y + GROUP * stride, stride, outputs, rows - GROUP);
    tile_store(t, 3, sums, sizeof *sums);
    put_sums((const float(*)[GROUP])sums, y + GROUP * stride + GROUP, stride, outputs - GROUP, rows - GROUP);
}

// Multiplies block b, and fetches its part of the next one.
static inline void multiply_block(Tiles *t, BlockTask *b, float *y, size_t stride, int to) {
    int blocks = (b->p->rows + BLOCK - 1) / BLOCK, i = b->first / BLOCK;
    bool more = b->n + b->ahead + BLOCK <= to;
    b->fetch = more ? BLOCK * i / blocks : 0;
    b->fetch_end = more ? BLOCK * (i + 1) / blocks : 0;
    sum_block(t, b);
    put_block(t, b, y, stride, to - b->n < BLOCK ? to - b->n : BLOCK);
}

static void multiply_on_tiles(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    Tiles tiles;
    BlockTask b = {.w = w, .p = p, .left = group_rows(p->rows, 0), .right = group_rows(p->rows, GROUP)};
    size_t activations = (size_t)packed_rows(p->rows) * (size_t)k_steps(p->columns) * TILE_BYTES;
    b.ahead = activations > KEPT_BYTES ? 2 * BLOCK : BLOCK;
    tiles_begin(&tiles, b.left, b.right);
    for (int n = from; n < to; n += b.ahead)
        for (b.first = 0; b.first < p->rows; b.first += BLOCK)
            for (b.n = n; b.n < to && b.n < n + b.ahead; b.n += BLOCK)
                multiply_block(&tiles, &b, y + (size_t)b.first * stride + (b.n - from), stride, to);
    tiles_end(&tiles);
}

static void amx_matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    if (!on_tiles(p)) SET_BELOW.matmul(w, p, y, stride, from, to);
    else if (w->codes.bits) multiply_decoded(multiply_on_tiles, BLOCK, w, p, y, stride, from, to);
    else multiply_on_tiles(w, p, y, stride, from, to);
}

static void amx_attend(const Attend *a) {
    if (a->part != ATTEND_WHOLE || a->cap > 0 || !attend_on_tiles(a)) attend(a);
}

// Tile products with all operands in tiles; not of zeros, which would take less power.
static double amx_peak(Compute compute, long rounds) {
    if (compute != COMPUTE_BF16) return peak(compute, rounds);
    Tiles tiles;
    uint16_t ones[GROUP][TILE_K];
    for (int r = 0; r < GROUP; r++)
        for (int i = 0; i < TILE_K; i++) ones[r][i] = (uint16_t)(0x3f00 + r + i);
    tiles_begin(&tiles, GROUP, GROUP);
    tiles_see_memory();
    tile_load(&tiles, 4, ones, TILE_BYTES);
    tile_load(&tiles, 5, ones, TILE_BYTES);
    tile_load(&tiles, 6, ones, TILE_BYTES);
    tile_load(&tiles, 7, ones, TILE_BYTES);
    for (long i = 0; i < rounds / GROUP; i++) {
        tile_multiply(&tiles, 0, 4, 6);
        tile_multiply(&tiles, 1, 4, 7);
        tile_multiply(&tiles, 2, 5, 6);
        tile_multiply(&tiles, 3, 5, 7);
    }
    tiles_end(&tiles);
    return 4.0 * 2 * GROUP * GROUP * TILE_K * (double)(rounds / GROUP);
}

const CpuOps cpu_ops_amx = {.name = "amx",
                            .pack_unit = GROUP,
                            .packed_bytes = amx_packed_bytes,
                            .pack = amx_pack,
                            .matmul = amx_matmul,
                            .rmsnorm = rmsnorm,
                            .layernorm = layernorm,
                            .rope = rope,
                            .gate = gate,
                            .attend = amx_attend,
                            .exp_sum = exp_sum,
                            .peak = amx_peak};

// --- the test of a processor before its tiles are used

// A product with edges on all sides, on tiles and in plain C; and one of its rows on its own, which must be
// the same bits.
bool cpu_amx_works(void) {
    enum { ROWS = 35, OUTPUTS = 41, COLUMNS = 70 };
    static const float allowed = 1e-3f; // of sums of 70 products of numbers below 2
    uint16_t weights[OUTPUTS * COLUMNS];
    float x[ROWS * COLUMNS], y[ROWS * OUTPUTS] = {0}, alone[OUTPUTS] = {0};
    uint32_t packed[2 * BLOCK * 3 * PAIRS] = {0};
    bool works = true;
    for (int i = 0; i < OUTPUTS * COLUMNS; i++) weights[i] = f32_to_bf16((float)(i * 37 % 101) / 64 - 0.75f);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = bf16_round((float)(i * 53 % 97) / 64 - 0.7f);
    Tensor w = {.data = weights, .dtype = DTYPE_BF16, .rows = OUTPUTS, .columns = COLUMNS};
    for (int pass = 0; pass < 2; pass++) {
        Packed p = {.data = packed,
                    .rows = pass ? 1 : ROWS,
                    .columns = COLUMNS,
                    .compute = COMPUTE_BF16,
                    .weights = DTYPE_BF16};
        amx_pack(x, &p, 0, p.rows);
        amx_matmul(&w, &p, pass ? alone : y, OUTPUTS, 0, OUTPUTS);
    }
    for (int r = 0; r < ROWS; r++)
        for (int n = 0; n < OUTPUTS; n++) {
            float sum = 0;
            for (int k = 0; k < COLUMNS; k++)
                sum += bf16_to_f32(weights[n * COLUMNS + k]) * x[r * COLUMNS + k];
            works = works && fabsf(sum - y[r * OUTPUTS + n]) < allowed;
        }
    return works && memcmp(alone, y, sizeof alone) == 0;
}
