// A product as an H100 does it: one warp fetches the first matrix by bulk copies into a ring, four multiply it
// by wgmma with a second one that they write themselves; with bugs to order.
//
//      a: 64 rows, b: 32, both of GROUPS_K columns;  out (64, 32) = a b^T
#include "tests/ptx/planted.h"

#include "tests/gpu/wgmma.cuh"

enum { ROWS = 64, COLUMNS = 32, STAGE_K = 64, STAGES = GROUPS_K / STAGE_K, SLOTS = 2, MULTIPLIERS = 128 };
enum { STAGE_BYTES = ROWS * STAGE_K * 2 };

struct Ring {
    uint16_t a[SLOTS][STAGE_K / 8][ROWS / 8][64], b[COLUMNS / 8][STAGE_K / 8][64];
    float passed[4];
    uint64_t full[SLOTS], empty[SLOTS];
};

#if HOPPER
__device__ __forceinline__ void mbarrier_of(uint64_t *b, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
}
__device__ __forceinline__ void arrive(uint64_t *b) {
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(b)) : "memory");
}
__device__ __forceinline__ void try_once(uint64_t *b, uint32_t parity) {
    asm volatile(
        "{\n\t.reg .pred done;\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t}" ::"r"(
            shared_address(b)),
        "r"(parity)
        : "memory");
}
__device__ __forceinline__ void bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *b) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(from), "r"(bytes), "r"(shared_address(b))
        : "memory");
}
__device__ __forceinline__ bool elected() {
    uint32_t is;
    asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(is));
    return is;
}
__device__ __forceinline__ void meet(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ void fetch_all(GroupPlant plant, Ring *sm, const uint16_t *a) {
    for (int k = 0; k < STAGES; k++) {
        int slot = k % SLOTS;
        const uint16_t *from = a + k * ROWS * STAGE_K;
        uint32_t bytes = STAGE_BYTES;
        if (k >= SLOTS && plant != GROUPS_COPY_OVER) barrier_await(&sm->empty[slot], (k / SLOTS - 1) & 1);
        if (plant == GROUPS_COPY_SIZE) bytes -= 8;
        if (plant == GROUPS_COPY_ALIGNED) from++;
        if (plant == GROUPS_COPY_BEYOND && k == STAGES - 1) from += 16;
        barrier_expect(&sm->full[slot], plant == GROUPS_EXPECT ? bytes / 2 : bytes);
        bulk_copy(sm->a[slot], from, bytes, &sm->full[slot]);
    }
    if (plant == GROUPS_COPY_LEFT) {
        barrier_await(&sm->empty[0], (STAGES / SLOTS - 1) & 1);
        barrier_expect(&sm->full[0], 16);
        bulk_copy(sm->a[0], a, 16, &sm->full[0]);
    }
}

// Row n of b is n % 8 of a block of eight.
__device__ void write_b(GroupPlant plant, Ring *sm, const uint16_t *b, int k) {
    for (int i = (int)threadIdx.x; i < COLUMNS * STAGE_K; i += MULTIPLIERS) {
        int n = i / STAGE_K, c = i % STAGE_K;
        sm->b[n / 8][c / 8][n % 8 * 8 + c % 8] = b[n * GROUPS_K + k * STAGE_K + c];
    }
    if (plant == GROUPS_SHOW_LATE) meet(1, MULTIPLIERS);
    if (plant != GROUPS_SHOW) show_to_tensor_cores();
    if (plant != GROUPS_RACE && plant != GROUPS_SHOW_LATE)
        meet(1, plant == GROUPS_THREADS && threadIdx.x < 32 ? 64 : MULTIPLIERS);
}

__device__ void multiply_stage(GroupPlant plant, Ring *sm, int k, float (*d)[4]) {
    const uint16_t(*a)[ROWS / 8][64] = sm->a[k % SLOTS];
    uint32_t fragment[4];
    for (int i = 0; i < 4; i++) asm volatile("mov.u32 %0, 0;" : "=r"(fragment[i]));
    if (plant == GROUPS_FENCE && k > 0) d[0][0] += 1;
    if (plant != GROUPS_FENCE || k == 0) {
        hold_sums<COLUMNS>(d);
        groups_begin();
    }
#pragma unroll
    for (int c = 0; c < STAGE_K / 8; c += 2) {
        uint64_t of_a = operand(a[c], sizeof a[0], 128), of_b = operand(sm->b[0][c], 128, sizeof sm->b[0]);
        if (plant == GROUPS_OUTSIDE) of_b += sizeof *sm >> 4;
        if (plant == GROUPS_SWIZZLED) of_a = swizzled_matrices((const char *)a[c] + 128);
        if (plant == GROUPS_DIFFERENT && c == 0 && threadIdx.x / 32 == 1) of_b += 8;
        if (plant == GROUPS_LANES) of_b += threadIdx.x % 2 * 8;
        Wgmma<COLUMNS>::template shared<DTYPE_BF16>(d, of_a, of_b);
    }
    if (plant == GROUPS_REGISTERS) {
        Wgmma<COLUMNS>::registers(d, fragment, operand(sm->b, 128, sizeof sm->b[0]));
        asm volatile("mov.u32 %0, 1;" : "+r"(fragment[0]));
    }
    group_end();
    if (plant == GROUPS_OVERWRITE && threadIdx.x == 0) sm->b[0][0][0] = 0;
    if (plant == GROUPS_EMPTY_EARLY && threadIdx.x % 32 == 0) arrive(&sm->empty[k % SLOTS]);
    if (plant == GROUPS_SUMS) d[0][0] *= 2;
    groups_wait<0>();
    hold_sums<COLUMNS>(d);
}

__device__ void multiply_all(GroupPlant plant, Ring *sm, const uint16_t *b, float *out) {
    float d[COLUMNS / 8][4], seen = 0;
    int warp = warp_number(), lane = warp_lane();
    for (int i = 0; i < COLUMNS / 2; i++) d[i / 4][i % 4] = 0;
    for (int k = 0; k < STAGES; k++) {
        uint32_t parity = (uint32_t)(k / SLOTS) & 1;
        write_b(plant, sm, b, k);
        if (plant == GROUPS_PARITY) parity ^= 1;
        if (plant == GROUPS_WAIT_ONCE) try_once(&sm->full[k % SLOTS], parity);
        else if (plant != GROUPS_WAIT) barrier_await(&sm->full[k % SLOTS], parity);
        multiply_stage(plant, sm, k, d);
        if (plant == GROUPS_READ_LANES) seen += bf16_f32(sm->a[k % SLOTS][0][0][threadIdx.x % 64]);
        if (lane == 0 && plant != GROUPS_EMPTY_EARLY) arrive(&sm->empty[k % SLOTS]);
        if (lane == 0 && plant == GROUPS_ARRIVE_TWICE) arrive(&sm->empty[k % SLOTS]);
    }
    for (int i = 0; i < COLUMNS / 2; i++)
        out[(warp * 16 + lane / 4 + i % 4 / 2 * 8) * COLUMNS + i / 4 * 8 + lane % 4 * 2 + i % 2] =
            d[i / 4][i % 4] + 0 * seen;
}
#endif

__global__ void __launch_bounds__(MULTIPLIERS + WARP)
    groups(GroupPlant plant, const uint16_t *a, const uint16_t *b, float *out) {
#if HOPPER
    SHARED(Ring, sm);
    if (plant == GROUPS_STORED) sm->a[0][0][0][threadIdx.x % 64] = 0;
    if (threadIdx.x == 0) {
        for (int i = 0; i < SLOTS; i++) {
            mbarrier_of(&sm->full[i], 1);
            mbarrier_of(&sm->empty[i], MULTIPLIERS / WARP);
        }
        if (plant == GROUPS_INIT_AGAIN) mbarrier_of(&sm->full[0], 1);
        if (plant != GROUPS_INIT_SHOWN) barriers_visible();
        if (plant == GROUPS_PREFETCH)
            asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a),
                         "r"(GROUPS_K * ROWS * 2 + 16));
    }
    if (plant != GROUPS_INIT_RACE) __syncthreads();
    if (plant == GROUPS_AS_MEMORY) sm->passed[0] = (float)((volatile uint32_t *)sm->full)[0];
    if (warp_number() < MULTIPLIERS / WARP) multiply_all(plant, sm, b, out);
    else if (elected()) fetch_all(plant, sm, a);
#else
    (void)plant, (void)a, (void)b, (void)out;
#endif
}

void planted_groups(GroupPlant plant, const uint16_t *a, const uint16_t *b, float *out) {
    void *stream, *of_a, *of_b, *to;
    size_t a_bytes = ROWS * GROUPS_K * 2, b_bytes = COLUMNS * GROUPS_K * 2,
           bytes = ROWS * COLUMNS * sizeof(float);
    gpu_stream_open(&stream);
    gpu_take(&of_a, a_bytes);
    gpu_take(&of_b, b_bytes);
    gpu_take(&to, bytes);
    gpu_copy(of_a, a, a_bytes, stream);
    gpu_copy(of_b, b, b_bytes, stream);
    LAUNCH(groups, 1, MULTIPLIERS + WARP, sizeof(Ring), stream, plant, (const uint16_t *)of_a,
           (const uint16_t *)of_b, (float *)to);
    gpu_copy(out, to, bytes, stream);
    gpu_stream_wait(stream);
    gpu_give(of_a);
    gpu_give(of_b);
    gpu_give(to);
    gpu_stream_close(stream);
}
