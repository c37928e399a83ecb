// A sum over blocks by the last of them, a reversal through shared memory and an early launch, with bugs to
// order.
#include "tests/ptx/planted.h"

#include "engine/cuda/kernels/instructions.cuh"
#include "engine/cuda/kernels/runtime.h"

enum { THREADS = 64, BLOCKS = PLANTED_ITEMS / THREADS };

struct Buffers {
    float copied[THREADS], passed[THREADS], tail[4];
    int is_last;
};

__device__ float unwritten() {
    float x;
    asm volatile("{ .reg .f32 lost; mov.f32 %0, lost; }" : "=f"(x));
    return x;
}

// 0. A product's column n is row n of the second matrix, of which the last four are `tail`; lane t has
// columns t%4*2 and t%4*2 + 1.
__device__ float multiplied(const float *known, const float *tail, bool all) {
    uint32_t m[4], zero[4] = {0, 0, 0, 0};
    float d[4] = {0, 0, 0, 0};
    int lane = (int)threadIdx.x % WARP;
    load_matrices(m, lane / 8 == 1 && lane % 8 >= 4 ? tail : known);
    mma_16816<DTYPE_BF16>(d, zero, m[1], m[0]);
    return all || lane % 4 < 2 ? 0 * d[0] : 0;
}

// out[i] = input of the opposite thread + twice its own; from the last block on, + the sum of all blocks'
// parts.
__global__ void __launch_bounds__(THREADS)
    last_block(Plant plant, const float *input, float *parts, float *out, unsigned *done) {
    SHARED(Buffers, sm);
    int t = (int)threadIdx.x, i = (int)blockIdx.x * THREADS + t;
    if (t < THREADS / 4) copy_async(&sm->copied[t * 4], &input[blockIdx.x * THREADS + (unsigned)t * 4]);
    copy_commit();
    float early = plant == PLANT_COPY_EARLY && t < 4 ? sm->copied[t * 4] : 0;
    if (plant == PLANT_COPY_LEFT) return;
    copy_wait<0>();
    sm->passed[t] = out[i] = 0;
    __syncthreads();
    float x = sm->copied[t] + 0 * early;
    if (plant == PLANT_COPY_RACE && t < 4) {
        copy_async(&sm->copied[16 * (t + 1) % THREADS], &input[t * 4]);
        copy_commit();
        copy_wait<0>();
    }
    int to = plant == PLANT_LANES ? t ^ 1 : THREADS - 1 - t;
    sm->passed[to] = x;
    if (plant != PLANT_WARPS && plant != PLANT_LANES) __syncthreads();
    float y = ((volatile float *)sm->passed)[t];
    if (plant == PLANT_OVERWRITE) sm->passed[to] = y;
    if (plant == PLANT_UNKNOWN_SHARED) y += sm->tail[t % 4];
    float lost = unwritten();
    if (plant == PLANT_REGISTER_STORED) out[i] = lost;
    if (plant == PLANT_REGISTER_SUMMED) y += 2 * lost;
    if (plant == PLANT_REGISTER_ADDRESS) y += input[(int)lost & 63];
    if (plant == PLANT_REGISTER_ASKED && lost > 0) out[i] = y;
    if (plant == PLANT_MATRIX || plant == PLANT_MATRIX_NONE)
        y += multiplied(sm->copied, sm->tail, plant == PLANT_MATRIX);
    if (plant == PLANT_OUTSIDE_SHARED) y += ((float *)sm)[sizeof *sm / sizeof(float) + (unsigned)t];
    if (plant == PLANT_UNKNOWN_GLOBAL) y += parts[i];
    if (plant == PLANT_ALIGNED) {
        float2 pair = *(const float2 *)(input + 1 + t % 2);
        y += pair.x + pair.y;
    }
    if (plant == PLANT_GLOBAL_WARPS) {
        ((volatile float *)out)[blockIdx.x * THREADS + THREADS - 1 - (unsigned)t] = y;
        y += ((volatile float *)out)[i];
    }
    if (plant == PLANT_BARRIER && t % WARP < 16) __syncthreads();
    if (plant == PLANT_SHUFFLE && t % WARP < 16) y += (float)__ballot_sync(ALL_LANES, t & 1);
    if (plant == PLANT_TWO_BLOCKS) out[t] = y;
    if (plant == PLANT_ENDLESS && blockIdx.x == 0)
        while (((volatile unsigned *)done)[0] < 1) {}
    parts[i] = x;
    out[i] = y + 2 * x;
    if (plant == PLANT_CONSTANT) {
        __threadfence();
        __syncthreads();
        out[i] += 0 * __ldg(&parts[blockIdx.x * THREADS + (unsigned)(THREADS - 1 - t)]);
    }
    if (plant != PLANT_RELEASE) __threadfence();
    __syncthreads();
    if (t == 0)
        sm->is_last = plant == PLANT_COUNTER ? blockIdx.x == BLOCKS - 1 : atomicAdd(done, 1u) == BLOCKS - 1;
    __syncthreads();
    if (plant != PLANT_ACQUIRE) __threadfence();
    if (!sm->is_last) return;
    float sum = 0;
    for (int b = 0; b < BLOCKS; b++) sum += parts[b * THREADS + t];
    parts[PLANTED_ITEMS + t] = sum;
    if (plant == PLANT_BEYOND) parts[PLANTED_ITEMS + THREADS + 4 + t] = sum;
}

__global__ void __launch_bounds__(THREADS)
    early(Plant plant, const float *constant, const float *parts, float *out) {
    int t = (int)threadIdx.x, i = (int)blockIdx.x * THREADS + t;
    let_next_begin();
    float x = constant[i];
    if (plant == PLANT_EARLY_READ) x += 0 * parts[PLANTED_ITEMS + t];
    if (plant == PLANT_EARLY_WRITE) out[i] = x;
    if (plant != PLANT_EARLY_LEAVE || t % WARP != 7) wait_for_launches();
    if (i >= PLANTED_ITEMS - THREADS) out[i] += parts[PLANTED_ITEMS + t] + 0 * x;
}

__global__ void __launch_bounds__(THREADS) doubled(const float *in, float *out) {
    int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    out[i] = 2 * in[i];
}

struct Card {
    void *stream, *event, *in, *out;
};
static Card card_open(int ordinal, size_t bytes) {
    Card c;
    gpu_use(ordinal);
    gpu_stream_open(&c.stream);
    gpu_event_open(&c.event);
    gpu_take(&c.in, bytes);
    gpu_take(&c.out, bytes);
    return c;
}
static void card_close(const Card *c) {
    gpu_give(c->in);
    gpu_give(c->out);
    gpu_event_close(c->event);
    gpu_stream_close(c->stream);
}
static int double_on(int ordinal, const Card *c, const void *in) {
    gpu_use(ordinal);
    LAUNCH(doubled, BLOCKS, THREADS, 0, c->stream, (const float *)in, (float *)c->out);
    return gpu_launched();
}

// out: four times the input; -1 where a call is refused.
static void run_cards(Plant plant, const float *input, float *out) {
    size_t bytes = PLANTED_ITEMS * sizeof(float);
    Card a = card_open(0, bytes), b = card_open(1, bytes);
    bool peer = plant == PLANT_CARDS_PEER;
    gpu_copy(a.in, input, bytes, a.stream);
    int code = double_on(0, &a, a.in);
    code |= gpu_event_record(a.event, plant == PLANT_CARDS_EVENT ? b.stream : a.stream);
    if (plant != PLANT_CARDS_UNORDERED) gpu_stream_after(b.stream, a.event);
    if (plant == PLANT_CARDS_COPY) gpu_copy(b.in, a.out, bytes, b.stream);
    else gpu_copy_peer(b.in, !peer, a.out, peer, bytes, b.stream);
    gpu_event_record(b.event, b.stream);
    if (plant != PLANT_CARDS_OVERWRITE) gpu_stream_after(a.stream, b.event);
    code |= double_on(0, &a, a.in);
    code |= double_on(plant != PLANT_CARDS_LAUNCH, &b, plant == PLANT_CARDS_POINTER ? a.out : b.in);
    if (code) {
        out[0] = -1;
        return;
    }
    gpu_stream_wait(a.stream);
    gpu_copy(out, b.out, bytes, b.stream);
    gpu_stream_wait(b.stream);
    card_close(&a);
    card_close(&b);
}

void planted_run(Plant plant, const float *input, float *out) {
    if (plant >= PLANT_CARDS_NONE) {
        run_cards(plant, input, out);
        return;
    }
    void *stream, *in, *parts, *to, *done, *zeros;
    size_t bytes = PLANTED_ITEMS * sizeof(float);
    gpu_stream_open(&stream);
    gpu_take(&in, bytes);
    gpu_take(&parts, bytes + THREADS * sizeof(float));
    gpu_take(&to, bytes);
    gpu_take(&done, sizeof(unsigned));
    gpu_take(&zeros, bytes);
    gpu_copy(in, input, bytes, stream);
    gpu_fill(done, 0, sizeof(unsigned), stream);
    gpu_fill(zeros, 0, bytes, stream);
    if (plant == PLANT_FREED) gpu_give(in);
    if (plant == PLANT_SHARED_LIMIT)
        last_block<<<BLOCKS, THREADS, 100 << 10, (cudaStream_t)stream>>>(
            plant, (const float *)in, (float *)parts, (float *)to, (unsigned *)done);
    else
        LAUNCH(last_block, BLOCKS, THREADS, sizeof(Buffers), stream, plant, (const float *)in, (float *)parts,
               (float *)to, (unsigned *)done);
    int code = gpu_launched();
    if (!code)
        LAUNCH_EARLY(early, BLOCKS, THREADS, 0, stream, zeros, plant, (const float *)zeros,
                     (const float *)parts, (float *)to);
    gpu_copy(out, to, bytes, stream);
    gpu_stream_wait(stream);
    if (code) out[0] = -1;
    void *const all[] = {in, parts, to, done, zeros};
    for (size_t i = plant == PLANT_FREED; i < sizeof all / sizeof *all; i++) gpu_give(all[i]);
    gpu_stream_close(stream);
}

// Each time: done, which a real runtime refuses, or the other way round.
const char *planted_refusals() {
    static float from[PLANTED_ITEMS], back[PLANTED_ITEMS];
    cudaStream_t stream;
    cudaGraph_t graph;
    void *device, *pinned;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMalloc(&device, sizeof from);
    cudaHostAlloc(&pinned, sizeof from, cudaHostAllocDefault);
    const char *passed = NULL;
    last_block<<<BLOCKS, 2048, sizeof(Buffers), stream>>>(PLANT_NONE, NULL, NULL, NULL, NULL);
    if (cudaStreamSynchronize(stream) != cudaSuccess) passed = "a call after a launch that could not be made";
    cudaError_t last = cudaGetLastError();
    if (last == cudaSuccess) passed = "a last error that another call takes back";
    if (cudaGetLastError() != cudaSuccess) passed = "a last error that has been asked for";
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (cudaStreamSynchronize(stream) == cudaSuccess) passed = "a wait for a stream that is recorded";
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) passed = "a recording that was spoiled";
    if (cudaGetLastError() == cudaSuccess) passed = "the last error of a recording";
    ((float *)pinned)[0] = from[0] = 1;
    cudaMemcpyAsync((float *)device + 1, from, sizeof *from, cudaMemcpyDefault, stream);
    cudaMemcpyAsync(device, pinned, sizeof *from, cudaMemcpyDefault, stream);
    ((float *)pinned)[0] = from[0] = 2;
    cudaMemcpyAsync(back, device, 2 * sizeof *back, cudaMemcpyDefault, stream);
    if (back[0] != 2) passed = "pinned memory that is changed before its copy has happened";
    if (back[1] != 1) passed = "pageable memory, which is copied at once,";
    cudaFree(device);
    cudaFreeHost(pinned);
    cudaStreamDestroy(stream);
    return passed;
}

__global__ void counted(const float *in, float *out, unsigned *counter, int stride, int mmas) {
    SHARED(float, sm);
    int t = (int)threadIdx.x;
    sm[t * stride] = in[t * stride];
    __syncthreads();
    float d[4] = {sm[t * stride], 0, 0, 0};
    uint32_t a[4] = {0, 0, 0, 0};
#pragma unroll 1
    for (int i = 0; i < mmas; i++) mma_16816<DTYPE_BF16>(d, a, a[0], a[1]);
    atomicAdd(counter, 1u);
    out[t] = d[0];
}

void planted_count(int warps, int stride, int mmas) {
    void *stream, *in, *out, *counter;
    size_t threads = (size_t)warps * WARP, bytes = threads * (size_t)stride * sizeof(float);
    gpu_stream_open(&stream);
    gpu_take(&in, bytes);
    gpu_take(&out, threads * sizeof(float));
    gpu_take(&counter, sizeof(unsigned));
    gpu_fill(in, 0, bytes, stream);
    gpu_fill(counter, 0, sizeof(unsigned), stream);
    LAUNCH(counted, 1, (unsigned)threads, bytes, stream, (const float *)in, (float *)out, (unsigned *)counter,
           stride, mmas);
    gpu_stream_wait(stream);
    gpu_give(in);
    gpu_give(out);
    gpu_give(counter);
    gpu_stream_close(stream);
}
