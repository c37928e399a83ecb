// Shared by the products on tensor cores (product.cu, product_narrow.cu): stages of 64 columns, and the put
// of sums that are in a block's shared memory.
#pragma once
#include "engine/cuda/kernels/put.cuh"

enum { K_STAGE = 64 };
// Pieces of 16 bytes in a stage: of a block of 8 rows of activations, and of a 16-row tile of weights, of
// which a lane has 4, or of codes of BITS 2 or 1. BITS 16: values (matrix_form).
enum { X_PIECES = K_STAGE };
template <int BITS> struct Weights {
    enum { PIECES = BITS / 4, W_PIECES = PIECES * WARP };
};

// Pieces from one of those to the next.
template <int BITS> __device__ __forceinline__ size_t weight_pieces(const Product &p) {
    return (size_t)(p.w.pitch / K_STAGE) * Weights<BITS>::W_PIECES;
}
__device__ __forceinline__ size_t activation_pieces(const Product &p) { return (size_t)(p.x.pitch / 8) * 8; }

// The first piece of the launch's matrix, which is that of an expert in a launch of experts.
__device__ __forceinline__ const uint4 *first_weights(const Product &p) {
    return (const uint4 *)p.w.data + blockIdx.z * (p.expert_bytes / sizeof(uint4));
}

// A lane's share of a tile's scales (codes.cuh): stage k has those of a group, or of two groups of 32
// columns.
struct ScaleFeed {
    const uint4 *first; // of stage 0
    int rare;           // stage k begins in group 2k >> rare
    bool two;
    int to; // the stage that ends the part; 0 for a lane without a piece
};
// Pieces from one tile's scales to the next's.
template <int BITS> __device__ __forceinline__ size_t scale_pieces(const Product &p) {
    return (size_t)(BITS == FULL_8 ? p.w.pitch / 32 : matrix_groups(&p.w)) * ScaleRun<BITS>::PIECES;
}
template <int BITS> __device__ __forceinline__ ScaleFeed scale_feed(const Product &p, int tile, int to) {
    const uint4 *scales = first_weights(p) + matrix_code_bytes(&p.w) / sizeof(uint4);
    bool two = p.w.group < K_STAGE, there = warp_lane() < (two ? 2 : 1) * ScaleRun<BITS>::PIECES;
    scales += (size_t)tile * scale_pieces<BITS>(p) + warp_lane();
    return {held(scales), p.w.group / K_STAGE, two, held(there ? to : 0)};
}
template <int BITS> __device__ __forceinline__ const uint4 *scales_of(const ScaleFeed &f, int k) {
    return f.first + (2 * k >> f.rare) * ScaleRun<BITS>::PIECES;
}

// Memory would be idle from a product's last stage until the first of the next one.
__device__ __forceinline__ void ask_for_next(const Prefetch &n) {
    int blocks = (int)(gridDim.x * gridDim.y), block = (int)(blockIdx.y * gridDim.x + blockIdx.x);
#pragma unroll 1
    for (int i = (int)threadIdx.x * blocks + block; i < n.count; i += (int)blockDim.x * blocks)
        prefetch((const char *)n.from + (size_t)i * n.step, n.bytes);
}

// Sums in shared memory, row after row: `at` is a thread's first output in row 0, of the first part.
struct Sums {
    const float *at;
    int row, part, parts; // elements from one row to the next, and from one part to the next
};

// A thread's share of a block's outputs: two neighbours, in rows own, own + step, ..
template <int AT_ONCE> struct Share {
    int own, step;
    Place at;
    Ahead<AT_ONCE> next;
};

// Shares `rows` rows of `pairs` outputs each, from output `first` on, among the block's first `threads`.
// Loads the values that the thread's first outputs are combined with: nothing else in this launch writes
// them.
template <int AT_ONCE>
__device__ __forceinline__ Share<AT_ONCE> begin_share(const Product &p, int first, int pairs, int first_row,
                                                      int rows, int first_node, int threads) {
    Share<AT_ONCE> s;
    int m = first + (int)threadIdx.x % pairs * 2;
    bool idle = m >= p.w.rows;
    s.own = (int)threadIdx.x / pairs;
    s.step = threads / pairs;
    s.at = place_of(p.put, p.w.rows, idle ? 0 : m);
    s.next.row = first_row + s.own;
    s.next.step = s.step;
    s.next.count = idle ? 0 : (rows - s.own + s.step - 1) / s.step;
    look_ahead(s.next, p.put, s.at, p.rows, first_node);
    return s;
}

// Puts the share, some rows at a time, whose loads begin a turn before. One copy of this code for all turns:
// it's most of a kernel, and its instructions come from memory.
template <int AT_ONCE>
__device__ __forceinline__ void put_share(Share<AT_ONCE> &s, const Product &p, const Sums &sums, int rows,
                                          int first_node) {
    int step = s.step * AT_ONCE, each = s.step * sums.row;
    const float *at = sums.at + s.own * sums.row;
#pragma unroll 1
    for (int row = 0; row < rows; row += step, at += AT_ONCE * each) {
        Ahead<AT_ONCE> now = s.next;
        s.next.row += step;
        s.next.count -= AT_ONCE;
        if (row + step < rows) look_ahead(s.next, p.put, s.at, p.rows, first_node);
        Pair sum[AT_ONCE]; // put_pairs takes all rows: an absent one reads the first sum
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++) sum[i] = *(const Pair *)(i < now.count ? at + i * each : sums.at);
#pragma unroll 1
        for (int k = 1; k < sums.parts; k++)
#pragma unroll
            for (int i = 0; i < AT_ONCE; i++)
                sum[i] =
                    add(sum[i], *(const Pair *)((i < now.count ? at + i * each : sums.at) + k * sums.part));
        put_pairs(now, p.put, s.at, sum);
    }
}

// product_narrow.cu: products of up to NARROW_ROWS rows, or of any number, which read the weights as often.
enum { NARROW_ROWS = 16 };
void gpu_product_narrow(const Product *p, int most, void *stream);

// product_wide.cu: products of any number of rows, where the code has wgmma (gpu_has_warpgroups).
void gpu_product_wide(const Product *p, int most, Cutting cut, const GpuFacts *card, void *stream);
