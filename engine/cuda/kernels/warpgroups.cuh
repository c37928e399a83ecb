// Instructions of 9.0a beyond instructions.cuh, each for the device and, in plain C++, for the host:
// multiplications by warpgroups, which go on while their warps do; and what product_wide.cu alone needs,
// barriers in shared memory that count copies, and copies of whole pieces.
#pragma once
#include "engine/cuda/kernels/instructions.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || !defined(__CUDACC__)
#define HAS_WARPGROUPS 1
#else
#define HAS_WARPGROUPS 0
#endif

// --- barriers: a phase ends when all arrivals and all announced bytes have come. Phases are numbered 0, 1,
// 0, 1, ..; a wait for the phase before the current one is over at once.
//
// copy_bulk: a barrier counts its bytes as they arrive. Their number is a multiple of 16, as are both
// addresses.

#ifdef __CUDACC__
typedef uint64_t Barrier;
#endif
#if HAS_WARPGROUPS && defined(__CUDACC__)
__device__ __forceinline__ void barrier_open(Barrier *b, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(arrivals)
                 : "memory");
}
// After barrier_open, before a __syncthreads().
__device__ __forceinline__ void barriers_opened() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(Barrier *b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
__device__ __forceinline__ void barrier_announce(Barrier *b, int bytes) { // and arrive
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
                 : "memory");
}
// A phase that never ends is a bug in the kernel: better a failed launch than a card that hangs.
__device__ __forceinline__ void barrier_wait(Barrier *b, int phase) {
    const int many = 1 << 22;
    uint32_t done = 0, at = shared_address(b);
#pragma unroll 1
    for (int i = 0; i < many; i++) {
        asm volatile("{\n\t.reg .pred done;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, done;\n\t}"
                     : "=r"(done)
                     : "r"(at), "r"(phase)
                     : "memory");
        if (done) return;
    }
    asm volatile("trap;");
}
__device__ __forceinline__ void copy_bulk(void *shared, const void *global, int bytes, Barrier *b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(shared)),
        "l"(global), "r"(bytes), "r"(shared_address(b))
        : "memory");
}
#elif !defined(__CUDACC__)
typedef SimtBarrier Barrier;
static inline void barrier_open(Barrier *b, int arrivals) { simt_barrier_open(b, arrivals); }
static inline void barriers_opened() {}
static inline void barrier_arrive(Barrier *b) { simt_barrier_arrive(b, 0); }
static inline void barrier_announce(Barrier *b, int bytes) { simt_barrier_arrive(b, bytes); }
static inline void barrier_wait(Barrier *b, int phase) { simt_barrier_wait(b, phase); }
static inline void copy_bulk(void *shared, const void *global, int bytes, Barrier *b) {
    simt_copy_bulk(shared, global, bytes, b);
}
#endif

// --- wgmma: d (64, WIDTH) += a (64, 16) b (16, WIDTH), by the four warps of a warpgroup, from shared memory.
// Warp i of the group has rows 16i to 16i + 15 of d, in blocks of 8 columns, each as mma_16816 has its d.
// Operands are 8x8 matrices of 128 bytes, `rows` bytes apart from 8 rows (or columns of b) to the next, `k`
// bytes from 8 of k to the next.
//
// The tensor cores see what copies and stores have put there after show_to_tensor_cores() and a barrier.
// Multiplications after groups_begin(), which orders them behind the sums' last use, form a group that
// group_end() closes. groups_wait<LEFT>() waits until no more than LEFT groups are under way: until then
// their operands may not change, and the sums may not be read. group_mma_held: of bf16, with `a` in
// registers, where each warp has its 16 rows as mma_16816 does.

__device__ __forceinline__ void show_to_tensor_cores() { // does nothing without wgmma
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
#if HAS_WARPGROUPS && defined(__CUDACC__)
typedef uint64_t Operand;
__device__ __forceinline__ Operand operand(const void *at, size_t k, size_t rows) {
    return shared_address(at) >> 4 | (uint64_t)(k >> 4) << 16 | (uint64_t)(rows >> 4) << 32;
}
__device__ __forceinline__ Operand operand_at(Operand o, int bytes) { // in the lower half, without a carry
    return (o >> 32 << 32) | (uint32_t)((uint32_t)o + (uint32_t)(bytes >> 4));
}
// The sums stay where they are from before the first multiplication until the last has ended.
template <int WIDTH> __device__ __forceinline__ void hold_sums(float (*d)[4]) {
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) asm volatile("" : "+f"(d[i / 4][i % 4])::"memory");
}
__device__ __forceinline__ void groups_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void group_end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void groups_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
// Waits for all groups, after which the sums can be read.
template <int WIDTH> __device__ __forceinline__ void groups_end(float (*d)[4]) {
    groups_wait<0>();
    hold_sums<WIDTH>(d);
}
#define TEN(t)   "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define EIGHT(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7"
#define SIXTY    TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5")
#define LIST_32  TEN("") "%10, %11, %12, %13, %14, %15"
#define LIST_64  TEN("") TEN("1") TEN("2") "%30, %31"
#define LIST_96  TEN("") TEN("1") TEN("2") TEN("3") EIGHT("4")
#define LIST_128 SIXTY "%60, %61, %62, %63"
#define LIST_160 SIXTY TEN("6") EIGHT("7") ", %78, %79"
#define LIST_192 SIXTY TEN("6") TEN("7") TEN("8") "%90, %91, %92, %93, %94, %95"
#define LIST_256 SIXTY TEN("6") TEN("7") TEN("8") TEN("9") TEN("10") TEN("11") EIGHT("12")
#define D4(i)    "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define D16(i)   D4(i), D4(i + 1), D4(i + 2), D4(i + 3)
#define D64(i)   D16(i), D16(i + 4), D16(i + 8), D16(i + 12)
#define OUT_32   D16(0)
#define OUT_64   D16(0), D16(4)
#define OUT_96   D16(0), D16(4), D16(8)
#define OUT_128  D64(0)
#define OUT_160  D64(0), D16(16)
#define OUT_192  D64(0), D16(16), D16(20)
#define OUT_256  D64(0), D64(16)
template <int WIDTH> struct Wgmma;
#define WGMMA(n, format, a_at, b_at)                                                               \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." format "." format " {" LIST_##n \
                 "}, %" #a_at ", %" #b_at ", 1, 1, 1, 0, 0;"                                       \
                 : OUT_##n                                                                         \
                 : "l"(a), "l"(b))
// s0, s1: numbers of the operands behind the sums; r0 to r4: the same with `a` in registers.
#define WGMMA_OF(n, s0, s1, r0, r1, r2, r3, r4)                                                           \
    template <> struct Wgmma<n> {                                                                         \
        template <Dtype FORMAT>                                                                           \
        static __device__ __forceinline__ void shared(float (*d)[4], Operand a, Operand b) {              \
            if (FORMAT == DTYPE_F16) WGMMA(n, "f16", s0, s1);                                             \
            else WGMMA(n, "bf16", s0, s1);                                                                \
        }                                                                                                 \
        static __device__ __forceinline__ void registers(float (*d)[4], const uint32_t a[4], Operand b) { \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" LIST_##n            \
                         "}, {%" #r0 ", %" #r1 ", %" #r2 ", %" #r3 "}, %" #r4 ", 1, 1, 1, 0;"             \
                         : OUT_##n                                                                        \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                           \
        }                                                                                                 \
    };
WGMMA_OF(32, 16, 17, 16, 17, 18, 19, 20)
WGMMA_OF(64, 32, 33, 32, 33, 34, 35, 36)
WGMMA_OF(96, 48, 49, 48, 49, 50, 51, 52)
WGMMA_OF(128, 64, 65, 64, 65, 66, 67, 68)
WGMMA_OF(160, 80, 81, 80, 81, 82, 83, 84)
WGMMA_OF(192, 96, 97, 96, 97, 98, 99, 100)
WGMMA_OF(256, 128, 129, 128, 129, 130, 131, 132)
template <Dtype FORMAT, int WIDTH>
__device__ __forceinline__ void group_mma(float (*d)[4], Operand a, Operand b) {
    Wgmma<WIDTH>::template shared<FORMAT>(d, a, b);
}
template <int WIDTH>
__device__ __forceinline__ void group_mma_held(float (*d)[4], const uint32_t a[4], Operand b) {
    Wgmma<WIDTH>::registers(d, a, b);
}
// Waits for all groups; `a` stays in its registers until then.
__device__ __forceinline__ void groups_end_held(uint32_t (*a)[4], int count) {
    groups_wait<0>();
#pragma unroll
    for (int i = 0; i < count; i++) asm volatile("" ::"r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]));
}
#elif !defined(__CUDACC__)
struct Operand {
    const char *at;
    int k, rows;
};
static inline Operand operand(const void *at, size_t k, size_t rows) {
    return {(const char *)at, (int)k, (int)rows};
}
static inline Operand operand_at(Operand o, int bytes) { return {o.at + bytes, o.k, o.rows}; }
template <int WIDTH> static inline void hold_sums(float (*)[4]) {}
static inline void groups_begin() {}
static inline void group_end() { simt_group_end(); }
template <int LEFT> static inline void groups_wait() { // of a whole warp, like the instruction
    simt_groups_wait(LEFT);
    __syncwarp();
}
template <int WIDTH> static inline void groups_end(float (*)[4]) { groups_wait<0>(); }
// Row or column i of an operand, its 16 numbers.
template <Dtype FORMAT> static inline void operand_numbers(const Operand &o, int i, double *to) {
    for (int k = 0; k < 16; k++) {
        const char *at = o.at + i / 8 * o.rows + k / 8 * o.k + i % 8 * 16 + k % 8 * 2;
        to[k] = (double)half_f32(FORMAT, *(const uint16_t *)at);
    }
}
// A thread's own share of the sums, as mma_lanes adds them, and as late as its wait allows.
template <Dtype FORMAT, int WIDTH> static inline void group_mma(float (*d)[4], Operand a, Operand b) {
    int row = warp_number() % 4 * 16 + warp_lane() / 4, q = warp_lane() % 4 * 2;
    simt_later([=] {
        double x[2][16], y[2][16];
        operand_numbers<FORMAT>(a, row, x[0]);
        operand_numbers<FORMAT>(a, row + 8, x[1]);
        for (int n = 0; n < WIDTH / 8; n++) {
            operand_numbers<FORMAT>(b, n * 8 + q, y[0]);
            operand_numbers<FORMAT>(b, n * 8 + q + 1, y[1]);
            add_products(d[n], x[0], x[1], y[0], y[1]);
        }
    });
}
// A quad of lanes has the two rows.
static void quad_lanes(void *const lanes[32]) {
    uint32_t all[WARP][4];
    for (int t = 0; t < WARP; t++) memcpy(all[t], lanes[t], sizeof all[t]);
    for (int t = 0; t < WARP; t++) memcpy((uint32_t *)lanes[t] + 4, all[t / 4 * 4], 4 * sizeof all[t]);
}
template <int WIDTH> static inline void group_mma_held(float (*d)[4], const uint32_t a[4], Operand b) {
    struct {
        uint32_t own[4], quad[4][4];
    } rows;
    int q = warp_lane() % 4 * 2;
    memcpy(rows.own, a, sizeof rows.own);
    simt_warp(quad_lanes, &rows);
    simt_later([=] {
        double x[2][16], y[2][16];
        for (int i = 0; i < 32; i++) // row i / 16, column i % 16
            x[i / 16][i % 16] =
                (double)bf16_f32((uint16_t)(rows.quad[i % 8 / 2][i % 16 / 8 * 2 + i / 16] >> i % 2 * 16));
        for (int n = 0; n < WIDTH / 8; n++) {
            operand_numbers<DTYPE_BF16>(b, n * 8 + q, y[0]);
            operand_numbers<DTYPE_BF16>(b, n * 8 + q + 1, y[1]);
            add_products(d[n], x[0], x[1], y[0], y[1]);
        }
    });
}
static inline void groups_end_held(uint32_t (*)[4], int) { groups_wait<0>(); }
#endif
