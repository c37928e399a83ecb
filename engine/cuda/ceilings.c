// A card's ceilings, measured: reading and copying buffers far larger than its caches, and multiplying in
// registers. The rate of f32 is that of fused multiply-adds, because f32 weights are multiplied by them
// (product_plain.cu; cuBLASLt isn't allowed less than f32 either), so it's an upper bound for those too.
//
// A run of a probe is long enough that its launch doesn't matter, and is repeated until the card's clocks
// have had time to rise; the best run counts.
#include "engine/cuda/cuda.h"

#include "engine/cuda/device.h"
#include "engine/cuda/kernels.h"

enum { RUNS = 5, FIRST_ROUNDS = 16, MOST_ROUNDS = 1 << 20, BLOCKS_EACH = 8, THREADS = 256 };
static const double RUN_S = 1e-3, ENOUGH_S = 0.05;

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

// Measures bytes or operations per second.
static bool measure(Probe *p, Work *work, double *best, Error *e) {
    double done, seconds, spent = 0;
    *best = 0;
    p->rounds = FIRST_ROUNDS;
    do {
        p->rounds *= 2;
        if (!time_run(p, work, &done, &seconds, e)) return false;
    } while (seconds < RUN_S && p->rounds < MOST_ROUNDS);
    for (int i = 0; i < RUNS || spent < ENOUGH_S; i++) {
        if (!time_run(p, work, &done, &seconds, e)) return false;
        if (seconds > 0 && done / seconds > *best) *best = done / seconds;
        spent += seconds > 0 ? seconds : ENOUGH_S;
    }
    return true;
}

bool cuda_ceilings(int ordinal, const BackendOptions *o, Ceilings *out, Error *e) {
    GpuFacts facts;
    Probe p;
    (void)o;
    *out = (Ceilings){.isa = "mma.sync bf16, fma f32"};
    if (!device_find(ordinal, &facts, e)) return false;
    bool ok = probe_open(&p, ordinal, &facts, e) && measure(&p, read_memory, &out->bytes_per_s, e) &&
              measure(&p, multiply_mma, &out->operations_per_s[COMPUTE_BF16], e) &&
              measure(&p, multiply_fma, &out->operations_per_s[COMPUTE_F32], e);
    out->operations_per_s[COMPUTE_F16] = out->operations_per_s[COMPUTE_BF16]; // the same cores, as fast
    probe_close(&p);
    return ok;
}

bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e) {
    GpuFacts facts;
    Probe p;
    if (!device_find(ordinal, &facts, e)) return false;
    bool ok = probe_open(&p, ordinal, &facts, e) && measure(&p, copy_memory, bytes_per_s, e);
    probe_close(&p);
    return ok;
}
