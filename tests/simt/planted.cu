// A reversal through shared memory, sums of a warp and a copy that does not wait, with bugs to order.
#include "tests/simt/planted.h"

#include "engine/cuda/kernels/instructions.cuh"
#include "engine/cuda/kernels/runtime.h"

enum { THREADS = 64, BLOCKS = PLANTED_ITEMS / THREADS };

struct Buffers {
    float copied[THREADS];
    float reversed[THREADS];
    float tail[4];
};

// Some number: what matrices of the buffers give.
static __device__ float multiplied(Plant plant, const Buffers *sm) {
    float d[4] = {0, 0, 0, 0};
    uint32_t a[4];
    load_matrices(a, sm->copied + warp_lane() % 8 * 4 + (plant == PLANT_MATRIX));
    if (plant == PLANT_MMA && threadIdx.x % WARP < 16) return 0;
    mma_16816<DTYPE_BF16>(d, a, a[0], a[1]);
    return d[0];
}

// out[i] = input reversed within the block + sum of the lane's warp + twice the input
__global__ void __launch_bounds__(THREADS) mixed(Plant plant, const float *input, float *out, int items) {
    SHARED(Buffers, sm);
    int t = (int)threadIdx.x, i = (int)blockIdx.x * THREADS + t;
    float x = input[plant == PLANT_GLOBAL_READ ? i + 1 : i];
    if (t < THREADS / 4) copy_async(&sm->copied[t * 4], &input[blockIdx.x * THREADS + (unsigned)t * 4]);
    copy_commit();
    if (plant == PLANT_LEAVE) return;
    if (plant != PLANT_WAIT) copy_wait<0>();
    float others = plant == PLANT_WAIT_OTHERS ? sm->copied[THREADS - 1 - t] : 0;
    sm->reversed[THREADS - 1 - t] = x;
    if (plant != PLANT_BARRIER) __syncthreads();
    float sum = plant == PLANT_UNWRITTEN && t == 3 ? sm->tail[3] : 0;
    if (plant == PLANT_COLLECTIVE && t % WARP < 16) sum += __ballot_sync(ALL_LANES, 1);
    else sum += warp_sum(x);
    float y = sm->reversed[t] + sum + 2 * sm->copied[t] + others;
    if (plant == PLANT_MATRIX || plant == PLANT_MMA) y += multiplied(plant, sm);
    if (plant == PLANT_ARRAY) y += sm->tail[t % 5];
    if (plant == PLANT_SHARED) y += ((float *)sm)[sizeof *sm / sizeof(float) + (unsigned)t * 4];
    if (plant == PLANT_ALIGNMENT) y += ((const float4 *)(sm->copied + 1 + t % 2))->x;
    if (plant == PLANT_BLOCKS && blockIdx.x) y += out[i - THREADS];
    if (plant == PLANT_GLOBAL && i == items - 1) out[items + 4] = y;
    out[i] = y;
    copy_wait<0>();
}

__global__ void __launch_bounds__(THREADS) leaving(Plant plant, float *out) {
    int t = (int)threadIdx.x;
    if (plant == PLANT_HALF_BARRIER && t >= WARP) return;
    if (plant == PLANT_TWO_BARRIERS && t >= WARP) {
        __syncthreads();
        return;
    }
    if (plant == PLANT_LANE_LEAVES && t == 5) return;
    out[t] = warp_sum(1);
    if (plant == PLANT_HALF_BARRIER && t < 16) return;
    if (plant == PLANT_HALF_BARRIER) out[t] += warp_sum(2);
    __syncthreads();
}

// The same numbers as the input's; what stands in `constant` may be read at once.
__global__ void __launch_bounds__(THREADS)
    early(Plant plant, const float *constant, const float *input, float *out) {
    SHARED(Buffers, sm);
    int t = (int)threadIdx.x, i = (int)blockIdx.x * THREADS + t;
    let_next_begin();
    float zero = constant[i];
    if (plant == PLANT_EARLY_READ) zero += 0 * input[i];
    if (plant == PLANT_EARLY_COPY && t < 4)
        copy_async(&sm->copied[t * 4], &input[blockIdx.x * THREADS + (unsigned)t * 4]);
    if (plant != PLANT_EARLY_LEAVE || t % WARP != 7) wait_for_launches();
    copy_commit();
    copy_wait<0>();
    out[i] = input[i] + zero;
}

static bool is_early(Plant p) {
    return p == PLANT_EARLY_NONE || p == PLANT_EARLY_READ || p == PLANT_EARLY_COPY || p == PLANT_EARLY_LEAVE;
}

static bool leaves(Plant p) {
    return p == PLANT_HALF_BARRIER || p == PLANT_TWO_BARRIERS || p == PLANT_LANE_LEAVES;
}

__global__ void __launch_bounds__(THREADS) doubled(const float *in, float *out) {
    int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    out[i] = 2 * in[i];
}

struct Card {
    void *stream, *event, *in, *out, *other; // other: nobody writes it
};
static Card card_open(int ordinal, size_t bytes) {
    Card c;
    gpu_use(ordinal);
    gpu_stream_open(&c.stream);
    gpu_event_open(&c.event);
    gpu_take(&c.in, bytes);
    gpu_take(&c.out, bytes);
    gpu_take(&c.other, bytes);
    return c;
}
static void card_close(const Card *c) {
    gpu_give(c->in);
    gpu_give(c->out);
    gpu_give(c->other);
    gpu_event_close(c->event);
    gpu_stream_close(c->stream);
}
static int double_on(int ordinal, const Card *c, const void *in) {
    gpu_use(ordinal);
    LAUNCH(doubled, BLOCKS, THREADS, 0, c->stream, (const float *)in, (float *)c->out);
    return gpu_launched();
}

// out: four times the input.
static void run_cards(Plant plant, const float *input, float *out) {
    size_t bytes = PLANTED_ITEMS * sizeof(float);
    Card a = card_open(0, bytes), b = card_open(1, bytes);
    gpu_copy(a.in, input, bytes, a.stream);
    int code = double_on(0, &a, a.in);
    code |= gpu_event_record(a.event, plant == PLANT_CARDS_EVENT ? b.stream : a.stream);
    if (plant != PLANT_CARDS_UNORDERED) gpu_stream_after(b.stream, a.event);
    if (plant == PLANT_CARDS_COPY) gpu_copy(b.in, a.out, bytes, b.stream);
    else gpu_copy_peer(b.in, 1, a.out, 0, bytes, b.stream);
    gpu_event_record(b.event, b.stream);
    if (plant != PLANT_CARDS_OVERWRITE) gpu_stream_after(a.stream, b.event);
    code |= double_on(0, &a, a.other);
    code |= double_on(plant != PLANT_CARDS_LAUNCH, &b, plant == PLANT_CARDS_POINTER ? a.out : b.in);
    gpu_copy(out, b.out, bytes, b.stream);
    gpu_stream_wait(plant == PLANT_CARDS_OVERWRITE ? a.stream : b.stream);
    gpu_stream_wait(a.stream);
    gpu_stream_wait(b.stream);
    if (code) abort();
    card_close(&a);
    card_close(&b);
}

void planted_run(Plant plant, const float *input, float *out) {
    if (plant >= PLANT_CARDS_NONE) {
        run_cards(plant, input, out);
        return;
    }
    void *stream, *device_in, *device_out;
    size_t bytes = PLANTED_ITEMS * sizeof(float), shared = sizeof(Buffers);
    int threads = plant == PLANT_THREADS ? 2048 : THREADS;
    if (plant == PLANT_SHARED_BYTES) shared = 300 << 10;
    if (plant == PLANT_SHARED_STRUCT) shared = 64;
    gpu_stream_open(&stream);
    gpu_take(&device_in, bytes);
    gpu_take(&device_out, bytes);
    gpu_copy(device_in, input, bytes, stream);
    void *zeros;
    gpu_take(&zeros, bytes);
    gpu_fill(zeros, 0, bytes, stream);
    if (is_early(plant))
        LAUNCH_EARLY(early, BLOCKS, THREADS, shared, stream, zeros, plant, (const float *)zeros,
                     (const float *)device_in, (float *)device_out);
    else if (leaves(plant)) LAUNCH(leaving, 1, threads, shared, stream, plant, (float *)device_out);
    else
        LAUNCH(mixed, BLOCKS, threads, shared, stream, plant, (const float *)device_in, (float *)device_out,
               (int)PLANTED_ITEMS);
    gpu_copy(out, device_out, bytes, stream);
    gpu_stream_wait(stream);
    gpu_give(zeros);
    gpu_give(device_in);
    gpu_give(device_out);
    gpu_stream_close(stream);
}
