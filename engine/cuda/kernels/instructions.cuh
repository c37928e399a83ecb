// Every instruction that C cannot express, once for the device and once with its plain meaning for the host,
// where the tests run the kernels (tests/simt/simt.hpp is included before this file then). No other file of
// engine/cuda distinguishes the two machines.
//
// A kernel is launched by LAUNCH(kernel, grid, block, bytes of shared memory, stream, arguments...), and
// names its shared memory once, SHARED(Type, name). Collectives are of whole warps.
//
// A kernel launched by LAUNCH_EARLY(.., stream, constant, arguments...) may begin while the launch in front
// still runs, as soon as all of that launch's blocks have called let_next_begin() or ended (gpu_begins_early;
// otherwise it is LAUNCH). Every thread calls wait_for_launches(), after which all work in front is complete.
// Before it a kernel may read only its arguments and the memory that `constant` points at, which no step
// writes.
#pragma once
#include "engine/base/numbers.h"

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include "engine/cuda/kernels/runtime.h"

#include <atomic>

// A kernel must request more than 48 KB of shared memory. All kernels want the same split of a processor's
// memory: the processor has to become idle before the split changes.
static inline bool request_memory(const void *kernel, size_t shared) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                         cudaSharedmemCarveoutMaxShared);
    return shared <= 48 << 10 || cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                      (int)shared) == cudaSuccess;
}

// The runtime keeps a request, by kernel and device, as long as the process lives. So does the place that
// launches the kernel, always the same one: it makes each request once.
enum { DEVICES_MOST = 64 };
struct Requests {
    std::atomic<size_t> shared[DEVICES_MOST]; // the most bytes so far, and 1; 0: none was made
};
static inline void prepare_kernel(Requests *made, const void *kernel, size_t shared) {
    int device = 0;
    bool known = cudaGetDevice(&device) == cudaSuccess && device < DEVICES_MOST;
    if (known && made->shared[device].load(std::memory_order_relaxed) > shared) return;
    if (request_memory(kernel, shared) && known)
        made->shared[device].store(shared + 1, std::memory_order_relaxed);
}
#define LAUNCH(kernel, grid, block, shared, stream, ...)                              \
    do {                                                                              \
        static Requests made;                                                         \
        prepare_kernel(&made, (const void *)(kernel), (shared));                      \
        (kernel)<<<(grid), (block), (shared), (cudaStream_t)(stream)>>>(__VA_ARGS__); \
    } while (0)
template <typename... Parameters, typename... Arguments>
static inline void launch_early(Requests *made, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                size_t shared, void *stream, Arguments... arguments) {
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t launch = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.dynamicSmemBytes = shared;
    launch.stream = (cudaStream_t)stream;
    launch.attrs = &early;
    launch.numAttrs = gpu_early() ? 1 : 0;
    prepare_kernel(made, (const void *)kernel, shared);
    cudaLaunchKernelEx(&launch, kernel, arguments...);
}
#define LAUNCH_EARLY(kernel, grid, block, shared, stream, constant, ...)                         \
    do {                                                                                         \
        static Requests made;                                                                    \
        launch_early(&made, (kernel), dim3(grid), dim3(block), (shared), (stream), __VA_ARGS__); \
    } while (0)
#define SHARED(T, name)                                     \
    extern __shared__ __align__(128) unsigned char arena[]; \
    T *name = (T *)arena
#endif

enum { WARP = 32 };
static const unsigned ALL_LANES = 0xffffffffu;

__device__ __forceinline__ int warp_lane() { return (int)(threadIdx.x % WARP); }
__device__ __forceinline__ int warp_number() { return (int)(threadIdx.x / WARP); }

// Whether code before the wait runs early. If not, fetching there only gets in the way.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
static const bool BEGINS_EARLY = false;
#else
static const bool BEGINS_EARLY = true;
#endif

#ifdef __CUDACC__
__device__ __forceinline__ void wait_for_launches() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#else
static inline void wait_for_launches() { simt_wait_for_launches(); }
static inline void let_next_begin() {}
#endif

// --- numbers

__device__ __forceinline__ float bits_f32(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
__device__ __forceinline__ uint32_t f32_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
__device__ __forceinline__ float bf16_f32(uint16_t h) { return bits_f32((uint32_t)h << 16); }

// Rounds to nearest, ties to even, as the CPU does.
__device__ __forceinline__ uint16_t f32_bf16(float f) {
#ifdef __CUDACC__
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t u = f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
#endif
}
__device__ __forceinline__ float f16_f32(uint16_t h) {
#ifdef __CUDACC__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31u, fraction = h & 1023u;
    if (exponent == 0) return sign ? -(float)fraction * 0x1p-24f : (float)fraction * 0x1p-24f;
    return bits_f32(sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13);
#endif
}
__device__ __forceinline__ uint16_t f32_f16(float f) {
#ifdef __CUDACC__
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t u = f32_bits(f), size = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
    if (size > 0x7f800000u) return 0x7fff;
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); // 65520 and above
    if (size < 0x38800000u)                                     // the sum's last bit is f16's smallest step
        return (uint16_t)(sign | (f32_bits(bits_f32(size) + 0.5f) - f32_bits(0.5f)));
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13);
#endif
}

// Either 16-bit format.
__device__ __forceinline__ float half_f32(Dtype format, uint16_t h) {
    return format == DTYPE_F16 ? f16_f32(h) : bf16_f32(h);
}
__device__ __forceinline__ uint16_t f32_half(Dtype format, float f) {
    uint16_t h = f32_f16(f), b = f32_bf16(f); // both: no branch
    return format == DTYPE_F16 ? h : b;
}
__device__ __forceinline__ uint32_t half_pair(Dtype format, float low, float high) {
#ifdef __CUDACC__
    uint32_t pair;
    if (format == DTYPE_F16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (uint32_t)f32_half(format, low) | (uint32_t)f32_half(format, high) << 16;
#endif
}

// a * b + c of each half of bf16 pairs, rounded once, to nearest.
#ifdef __CUDACC__
__device__ __forceinline__ uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
#else
// The first two roundings are to odd where the sum doesn't fit, so that only the last one counts.
static inline uint16_t fma_bf16(uint16_t a, uint16_t b, uint16_t c) {
    double product = (double)bf16_f32(a) * (double)bf16_f32(b), add = (double)bf16_f32(c);
    double sum = product + add, added = sum - product, rest = (product - (sum - added)) + (add - added);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (rest != 0 && !(bits & 1)) sum = nextafter(sum, rest > 0 ? HUGE_VAL : -HUGE_VAL);
    float f = (float)sum;
    if ((double)f != sum && !(f32_bits(f) & 1)) f = nextafterf(f, sum > (double)f ? HUGE_VALF : -HUGE_VALF);
    return f32_bf16(f);
}
static inline uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
    return fma_bf16((uint16_t)a, (uint16_t)b, (uint16_t)c) |
           (uint32_t)fma_bf16((uint16_t)(a >> 16), (uint16_t)(b >> 16), (uint16_t)(c >> 16)) << 16;
}
#endif

// (a & mask) | set, one instruction.
template <uint32_t MASK, uint32_t SET> __device__ __forceinline__ uint32_t masked(uint32_t a) {
#ifdef __CUDACC__
    uint32_t d;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "n"(MASK), "n"(SET));
    return d;
#else
    return (a & MASK) | SET;
#endif
}

// Byte i is number (selector >> 4i & 7) of the eight bytes of a and b.
__device__ __forceinline__ uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef __CUDACC__
    return __byte_perm(a, b, selector);
#else
    uint64_t both = (uint64_t)b << 32 | a;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= (uint32_t)(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
#endif
}

// 2^x: 1 for 0, 0 for -INFINITY, and 0 if the result would be subnormal.
__device__ __forceinline__ float exp2_fast(float x) {
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return x < -126 ? 0 : exp2f(x);
#endif
}

// --- tensor cores: d (16, 8) += a (16, 16) b (16, 8), of one 16-bit format FORMAT into f32
//
//      lane 4g + q holds   a[0] a[1]   rows g, g + 8, columns 2q and 2q + 1
//                          a[2] a[3]   the same, columns 8 further on
//                          b[0] b[1]   rows 2q and 2q + 1, and 8 further on, of column g
//                          d[0] d[1]   row g, columns 2q and 2q + 1;  d[2] d[3]: row g + 8

#ifdef __CUDACC__
#define MMA(format)                                                                 \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." format "." format ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"  \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
template <Dtype FORMAT>
__device__ __forceinline__ void mma_16816(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    if (FORMAT == DTYPE_F16) MMA("f16");
    else MMA("bf16");
}
#undef MMA
#else
struct MmaLane {
    float *d;
    const uint32_t *a;
    uint32_t b[2];
};
// Two rows by two columns. Each is summed in double over ascending k, so it doesn't depend on other columns.
static inline void add_products(float *d, const double *a, const double *c, const double *b,
                                const double *e) {
    double sum[4] = {d[0], d[1], d[2], d[3]};
    for (int k = 0; k < 16; k++) {
        sum[0] += a[k] * b[k];
        sum[1] += a[k] * e[k];
        sum[2] += c[k] * b[k];
        sum[3] += c[k] * e[k];
    }
    for (int i = 0; i < 4; i++) d[i] = (float)sum[i];
}
template <Dtype FORMAT> static void mma_lanes(void *const lanes[32]) {
    double a[16][16], b[8][16];
    for (int t = 0; t < WARP; t++) {
        const MmaLane *l = (const MmaLane *)lanes[t];
        int g = t / 4, q = t % 4 * 2;
        for (int i = 0; i < 4; i++)
            for (int h = 0; h < 2; h++)
                a[g + i % 2 * 8][q + i / 2 * 8 + h] = half_f32(FORMAT, (uint16_t)(l->a[i] >> 16 * h));
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < 2; h++) b[g][q + i * 8 + h] = half_f32(FORMAT, (uint16_t)(l->b[i] >> 16 * h));
    }
    for (int t = 0; t < WARP; t++) {
        const MmaLane *l = (const MmaLane *)lanes[t];
        add_products(l->d, a[t / 4], a[t / 4 + 8], b[t % 4 * 2], b[t % 4 * 2 + 1]);
    }
}
template <Dtype FORMAT>
static inline void mma_16816(float d[4], const uint32_t a[4], uint32_t b0, uint32_t b1) {
    MmaLane l = {d, a, {b0, b1}};
    simt_warp(mma_lanes<FORMAT>, &l);
}
#endif

// --- ldmatrix: four 8x8 matrices of 16-bit elements from shared memory. Lane 8i + r points at row r of
// matrix i (16 bytes). out[i] of lane 4g + q: elements 2q and 2q + 1 of row g of matrix i; transposed: of
// column g.

#ifdef __CUDACC__
__device__ __forceinline__ uint32_t shared_address(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void load_matrices(uint32_t out[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(row))
                 : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(uint32_t out[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(shared_address(row))
                 : "memory");
}
#else
struct MatrixLane {
    uint32_t *out;
    const void *row;
};
static inline uint16_t matrix_element(void *const lanes[32], int matrix, int row, int column) {
    const uint4 *at = (const uint4 *)((const MatrixLane *)lanes[8 * matrix + row])->row; // must be aligned
    uint16_t elements[8];
    uint4 v = *at;
    memcpy(elements, &v, sizeof v);
    return elements[column];
}
static void matrix_lanes(void *const lanes[32]) {
    for (int t = 0; t < WARP; t++)
        for (int i = 0; i < 4; i++)
            ((MatrixLane *)lanes[t])->out[i] = matrix_element(lanes, i, t / 4, t % 4 * 2) |
                                               (uint32_t)matrix_element(lanes, i, t / 4, t % 4 * 2 + 1) << 16;
}
static void matrix_lanes_transposed(void *const lanes[32]) {
    for (int t = 0; t < WARP; t++)
        for (int i = 0; i < 4; i++)
            ((MatrixLane *)lanes[t])->out[i] = matrix_element(lanes, i, t % 4 * 2, t / 4) |
                                               (uint32_t)matrix_element(lanes, i, t % 4 * 2 + 1, t / 4) << 16;
}
static inline void load_matrices(uint32_t out[4], const void *row) {
    MatrixLane l = {out, row};
    simt_warp(matrix_lanes, &l);
}
static inline void load_matrices_transposed(uint32_t out[4], const void *row) {
    MatrixLane l = {out, row};
    simt_warp(matrix_lanes_transposed, &l);
}
#endif

// --- asynchronous copies of 16 bytes from global to shared memory; or zeros if there is nothing to copy

#ifdef __CUDACC__
__device__ __forceinline__ void copy_async(void *shared, const void *global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global)
                 : "memory");
}
// Copies 16 bytes, or none: then nothing is read.
__device__ __forceinline__ void copy_async_some(void *shared, const void *global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
                 "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int GROUPS_LEFT> __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS_LEFT) : "memory");
}
#else
static inline void copy_async(void *shared, const void *global) { simt_copy(shared, global); }
static inline void copy_async_some(void *shared, const void *global, int bytes) {
    simt_copy(shared, bytes ? global : NULL);
}
static inline void copy_commit() { simt_copy_commit(); }
template <int GROUPS_LEFT> static inline void copy_wait() { simt_copy_wait(GROUPS_LEFT); }
#endif

// --- what L2 should have soon: `bytes`, a multiple of 16, as is the address

__device__ __forceinline__ void prefetch(const void *global, int bytes) {
#ifndef __CUDACC__
    simt_prefetch(global, bytes);
#elif __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes));
#else
    const int line = 128;
#pragma unroll 1
    for (int i = 0; i < bytes; i += line)
        asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)global + i));
#endif
}

// --- sums and maxima of a warp, the same in every lane: lanes are added in a fixed order

__device__ __forceinline__ float warp_sum(float x) {
#ifdef __CUDACC__
#pragma unroll
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(ALL_LANES, x, step);
    return x;
#else
    return simt_warp_sum(x);
#endif
}

// --- predicated stores of several numbers at once, without a branch, so that none waits for another

struct alignas(8) Pair {
    float x, y;
};

#ifdef __CUDACC__
#define SOME(instruction) "{\n\t.reg .pred there;\n\tsetp.ne.s32 there, %2, 0;\n\t@there " instruction "\n\t}"
__device__ __forceinline__ void store_some(void *to, uint16_t x, bool there) {
    asm volatile(SOME("st.global.u16 [%0], %1;")::"l"(__cvta_generic_to_global(to)), "h"(x), "r"((int)there)
                 : "memory");
}
__device__ __forceinline__ void store_some(void *to, uint32_t x, bool there) {
    asm volatile(SOME("st.global.u32 [%0], %1;")::"l"(__cvta_generic_to_global(to)), "r"(x), "r"((int)there)
                 : "memory");
}
__device__ __forceinline__ void store_some(void *to, Pair p, bool there) {
    asm volatile(SOME("st.global.v2.f32 [%0], {%1, %3};")::"l"(__cvta_generic_to_global(to)), "f"(p.x),
                 "r"((int)there), "f"(p.y)
                 : "memory");
}
#undef SOME
#else
template <typename T> static inline void store_some(void *to, T x, bool there) {
    if (there) *(T *)to = x;
}
#endif

// --- shared memory by its own address, and values that stay in their registers: a compiler that sees where
// they are from makes them again at each use, in a loop as well, by several instructions

#ifdef __CUDACC__
typedef uint32_t SharedAt;
__device__ __forceinline__ SharedAt shared_at(const void *p) {
    SharedAt at = shared_address(p);
    asm volatile("" : "+r"(at));
    return at;
}
__device__ __forceinline__ const uint4 *held(const uint4 *p) {
    asm volatile("" : "+l"(p));
    return p;
}
__device__ __forceinline__ uint32_t held(uint32_t x) {
    asm volatile("" : "+r"(x));
    return x;
}
__device__ __forceinline__ int held(int x) {
    asm volatile("" : "+r"(x));
    return x;
}
__device__ __forceinline__ uint32_t shared_word(SharedAt at) {
    uint32_t x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}
__device__ __forceinline__ uint4 shared_piece(SharedAt at) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}
__device__ __forceinline__ void load_matrices_at(uint32_t out[4], SharedAt at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(at)
                 : "memory");
}
// Without a branch.
__device__ __forceinline__ void copy_async_if(SharedAt to, const uint4 *from, bool there) {
    asm volatile("{\n\t.reg .pred there;\n\tsetp.ne.s32 there, %2, 0;\n\t"
                 "@there cp.async.cg.shared.global [%0], [%1], 16;\n\t}" ::"r"(to),
                 "l"(from), "r"((int)there)
                 : "memory");
}
// The same, of bytes that nothing reads again soon: they leave L2 before others do.
__device__ __forceinline__ uint64_t first_to_leave() {
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
__device__ __forceinline__ void copy_async_if(SharedAt to, const uint4 *from, bool there, uint64_t policy) {
    asm volatile("{\n\t.reg .pred there;\n\tsetp.ne.s32 there, %2, 0;\n\t"
                 "@there cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %3;\n\t}" ::"r"(to),
                 "l"(from), "r"((int)there), "l"(policy)
                 : "memory");
}
#else
typedef char *SharedAt;
static inline SharedAt shared_at(const void *p) { return (char *)p; }
template <typename T> static inline T held(T x) { return x; }
static inline uint32_t shared_word(SharedAt at) { return *(const uint32_t *)at; }
static inline uint4 shared_piece(SharedAt at) { return *(const uint4 *)at; }
static inline void load_matrices_at(uint32_t out[4], SharedAt at) { load_matrices(out, at); }
static inline void copy_async_if(SharedAt to, const uint4 *from, bool there) {
    if (there) copy_async(to, from);
}
static inline uint64_t first_to_leave() { return 0; }
static inline void copy_async_if(SharedAt to, const uint4 *from, bool there, uint64_t) {
    copy_async_if(to, from, there);
}
#endif
