// A card's ceilings, measured: reading and copying buffers far larger than its caches, and multiplying. bf16
// is multiplied by wgmma where the code has it, else by mma.sync, which a Hopper card does at two thirds of
// the rate. The rate of f32 is that of fused multiply-adds, because f32 weights are multiplied by them
// (product_plain.cu; cuBLASLt isn't allowed less than f32 either), so it's an upper bound for those too.
//
// A run of a probe is long enough that its launch doesn't matter, and is repeated until the card's clocks
// have had time to rise. The best run of reading counts; of multiplying all runs do, since a card slows down
// when it draws too much power.
#include "engine/cuda/cuda.h"

#include "engine/cuda/device.h"
#include "engine/cuda/kernels/kernels.h"

enum { RUNS = 5, MOST_ROUNDS = 1 << 20, BLOCKS_EACH = 8, WIDE_BLOCKS_EACH = 2, THREADS = 256 };
static const double RUN_S = 1e-3, ENOUGH_S = 0.05, HELD_S = 0.2;

typedef struct Probe {
    int ordinal;
    void *stream, *from, *to, *data;
    void *sink;
    size_t bytes;
    int blocks, rounds;
} Probe;

// Puts one run into the stream and returns its bytes or operations.
typedef double Work(const Probe *p);

static double read_memory(const Probe *p) {
    gpu_probe_read(p->data, p->bytes, p->blocks, p->sink, p->stream);
    return (double)p->bytes;
}

// Counts bytes read and bytes written; gpu_launched reports a copy that is refused.
static double copy_memory(const Probe *p) {
    size_t half = p->bytes / 2;
    gpu_copy((unsigned char *)p->data + half, p->data, half, p->stream);
    return 2.0 * (double)half;
}

static double multiply_mma(const Probe *p) { return gpu_probe_mma(p->rounds, p->blocks, p->sink, p->stream); }
static double multiply_wgmma(const Probe *p) {
    return gpu_probe_wgmma(p->rounds, p->blocks / BLOCKS_EACH * WIDE_BLOCKS_EACH, p->sink, p->stream);
}
static double multiply_fma(const Probe *p) { return gpu_probe_fma(p->rounds, p->blocks, p->sink, p->stream); }

static bool probe_ok(const Probe *p, int code, Error *e) {
    return code == 0 || error_system(e, "cuda:%d: cannot be measured: %s", p->ordinal, gpu_error(code));
}

static void probe_close(Probe *p) {
    if (p->stream) gpu_stream_wait(p->stream);
    gpu_give(p->data);
    gpu_give(p->sink);
    if (p->from) gpu_event_close(p->from);
    if (p->to) gpu_event_close(p->to);
    if (p->stream) gpu_stream_close(p->stream);
}

// Takes an eighth of the free memory, at most 4 GB.
static bool probe_open(Probe *p, int ordinal, const GpuFacts *f, Error *e) {
    const size_t most = (size_t)4 << 30;
    *p = (Probe){.ordinal = ordinal,
                 .bytes = f->free_bytes / 8 / 4096 * 4096,
                 .blocks = f->multiprocessors * BLOCKS_EACH};
    if (p->bytes > most) p->bytes = most;
    return probe_ok(p, gpu_stream_open(&p->stream), e) && probe_ok(p, gpu_event_open(&p->from), e) &&
           probe_ok(p, gpu_event_open(&p->to), e) && probe_ok(p, gpu_take(&p->data, p->bytes), e) &&
           probe_ok(p, gpu_take(&p->sink, (size_t)p->blocks * THREADS * sizeof(float)), e) &&
           probe_ok(p, gpu_fill(p->data, 0x5a, p->bytes, p->stream), e);
}

static bool time_run(Probe *p, Work *work, double *done, double *seconds, Error *e) {
    if (!probe_ok(p, gpu_event_record(p->from, p->stream), e)) return false;
    *done = work(p);
    return probe_ok(p, gpu_launched(), e) && probe_ok(p, gpu_event_record(p->to, p->stream), e) &&
           probe_ok(p, gpu_event_wait(p->to), e) &&
           probe_ok(p, gpu_event_seconds(p->from, p->to, seconds), e);
}

// Measures bytes or operations per second: the best, or all that was done while it was held.
static bool measure(Probe *p, Work *work, bool held, double *rate, Error *e) {
    double done, seconds, spent = 0, all = 0, best = 0;
    p->rounds = 1;
    do {
        p->rounds *= 2;
        if (!time_run(p, work, &done, &seconds, e)) return false;
    } while (seconds < RUN_S && p->rounds < MOST_ROUNDS);
    for (int i = 0; i < RUNS || spent < (held ? HELD_S : ENOUGH_S); i++) {
        if (!time_run(p, work, &done, &seconds, e)) return false;
        if (seconds > 0 && done / seconds > best) best = done / seconds;
        all += done;
        spent += seconds > 0 ? seconds : HELD_S;
    }
    *rate = held ? all / spent : best;
    return true;
}

// By wgmma if the code that the device has loaded has it. *wide: whether it has.
static bool measure_bf16(Probe *p, double *rate, bool *wide, Error *e) {
    float first = 0;
    p->rounds = 1;
    multiply_wgmma(p);
    if (!probe_ok(p, gpu_launched(), e) ||
        !probe_ok(p, gpu_copy(&first, p->sink, sizeof first, p->stream), e) ||
        !probe_ok(p, gpu_stream_wait(p->stream), e))
        return false;
    *wide = first > 0;
    return measure(p, *wide ? multiply_wgmma : multiply_mma, true, rate, e);
}

bool cuda_ceilings(const BackendOptions *o, Ceilings *out, Error *e) {
    GpuFacts facts;
    int ordinal = o->cards.ordinal[0];
    bool wide = false;
    *out = (Ceilings){.isa = NULL};
    if (!device_find(ordinal, &facts, e)) return false;
    LOCAL(probe_close) Probe p;
    bool ok = probe_open(&p, ordinal, &facts, e) && measure(&p, read_memory, false, &out->bytes_per_s, e) &&
              measure_bf16(&p, &out->operations_per_s[COMPUTE_BF16], &wide, e) &&
              measure(&p, multiply_fma, true, &out->operations_per_s[COMPUTE_F32], e);
    out->isa = wide ? "wgmma bf16, fma f32" : "mma.sync bf16, fma f32";
    out->operations_per_s[COMPUTE_F16] = out->operations_per_s[COMPUTE_BF16]; // the same cores, as fast
    return ok;
}

bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e) {
    GpuFacts facts;
    if (!device_find(ordinal, &facts, e)) return false;
    LOCAL(probe_close) Probe p;
    return probe_open(&p, ordinal, &facts, e) && measure(&p, copy_memory, false, bytes_per_s, e);
}
