// Products of f32 activations by weights of any type, with fused multiply-adds: f32 compute, and f32 weights.
// The plain kernel: it accepts every format that the CPU backend accepts. product.cu is the fast one.
//
// A warp has two weight rows and COLUMNS activation rows. Lane l takes four columns from 4 l on, then four
// from 128 further on, ..; lanes are added by shuffles. The order of an element's sum depends only on K.
#include "engine/cuda/kernels/put.cuh"

enum { COLUMNS = 8, WARPS = 8 };

template <Dtype DTYPE> __device__ __forceinline__ void load_four(const void *data, size_t i, float out[4]) {
    if (DTYPE == DTYPE_F32) {
        float4 v = ((const float4 *)data)[i / 4];
        out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
        return;
    }
    uint64_t bits = ((const uint64_t *)data)[i / 4];
#pragma unroll
    for (int k = 0; k < 4; k++) out[k] = half_f32(DTYPE, (uint16_t)(bits >> 16 * k));
}

template <Dtype DTYPE> __global__ void __launch_bounds__(WARPS *WARP, 2) product_plain(Product p) {
    let_next_begin();
    wait_for_launches();
    int pair = (int)blockIdx.x * WARPS + warp_number(), first = (int)blockIdx.y * COLUMNS, lane = warp_lane();
    int rows = p.rows->count - first, m = pair * 2;
    if (p.slices) {
        Slice own = p.slices[blockIdx.z];
        rows = own.count - first;
        first += own.first;
    }
    if (rows <= 0 || m >= p.w.rows) return;
    size_t k_pitch = (size_t)p.w.pitch;
    bool both = m + 1 < p.w.rows;
    const char *weights = (const char *)p.w.data + blockIdx.z * p.expert_bytes;
    const float *x = (const float *)p.x.data + (size_t)first * (size_t)p.x.pitch;
    float sum[COLUMNS][2];
#pragma unroll
    for (int r = 0; r < COLUMNS; r++) sum[r][0] = sum[r][1] = 0;
    for (int k = lane * 4; k < p.w.pitch; k += PLAIN_K) {
        float w[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
        load_four<DTYPE>(weights, (size_t)m * k_pitch + (size_t)k, w[0]);
        if (both) load_four<DTYPE>(weights, (size_t)(m + 1) * k_pitch + (size_t)k, w[1]);
#pragma unroll
        for (int r = 0; r < COLUMNS; r++) {
            if (r >= rows) continue;
            float v[4];
            load_four<DTYPE_F32>(x, (size_t)r * (size_t)p.x.pitch + (size_t)k, v);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                sum[r][0] = fmaf(w[0][i], v[i], sum[r][0]);
                sum[r][1] = fmaf(w[1][i], v[i], sum[r][1]);
            }
        }
    }
    float a = 0, b = 0; // lane r keeps row r's
#pragma unroll
    for (int r = 0; r < COLUMNS; r++) {
        if (r >= rows) continue;
        float u = warp_sum(sum[r][0]), v = warp_sum(sum[r][1]);
        if (lane == r) a = u, b = v;
    }
    if (lane >= COLUMNS || lane >= rows) return;
    Place at = place_of(p.put, p.w.rows, m);
    put_pair(p.put, at, p.rows, first + lane, {a, b});
}

void gpu_product_plain(const Product *p, int most, void *stream) {
    unsigned pairs = (unsigned)(p->w.rows + 1) / 2;
    dim3 grid((pairs + WARPS - 1) / WARPS, (unsigned)(most + COLUMNS - 1) / COLUMNS,
              p->slices ? (unsigned)p->w.experts : 1);
    if (p->w.dtype == DTYPE_F32)
        LAUNCH_EARLY((product_plain<DTYPE_F32>), grid, WARPS * WARP, 0, stream, NULL, *p);
    else if (p->w.dtype == DTYPE_F16)
        LAUNCH_EARLY((product_plain<DTYPE_F16>), grid, WARPS * WARP, 0, stream, NULL, *p);
    else LAUNCH_EARLY((product_plain<DTYPE_BF16>), grid, WARPS * WARP, 0, stream, NULL, *p);
}
