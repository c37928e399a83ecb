// What a card can do at most: it reads and copies buffers far larger than its caches, and multiplies in
// registers. f32's rate is that of fused multiply-adds, which f32 weights are multiplied by
// (product_plain.cu; cuBLASLt is asked for no less than f32 either), so theirs is an upper bound too.
//
// A pass is made so long that its launch does not count, and passes go on until the card's clocks have had
// time to rise; the best one counts.
#include "engine/cuda/cuda.h"

#include "engine/cuda/device.h"
#include "engine/cuda/kernels.h"

enum { PASSES = 5, FIRST_ROUNDS = 16, MOST_ROUNDS = 1 << 20, BLOCKS_EACH = 8, THREADS = 256 };
static const double PASS_S = 1e-3, ENOUGH_S = 0.05;

typedef struct Probe {
    int ordinal;
    void *stream, *from, *to, *data;
    void *sink;
    size_t bytes;
    int blocks, rounds;
} Probe;

// Puts one pass into the stream; gives its bytes or operations.
typedef double Pass(const Probe *p);

static double read_pass(const Probe *p) {
    gpu_probe_read(p->data, p->bytes, p->blocks, p->sink, p->stream);
    return (double)p->bytes;
}

// Bytes read and bytes written count; a copy that is refused shows in gpu_launched.
static double copy_pass(const Probe *p) {
    size_t half = p->bytes / 2;
    gpu_copy((unsigned char *)p->data + half, p->data, half, p->stream);
    return 2.0 * (double)half;
}

static double mma_pass(const Probe *p) { return gpu_probe_mma(p->rounds, p->blocks, p->sink, p->stream); }
static double fma_pass(const Probe *p) { return gpu_probe_fma(p->rounds, p->blocks, p->sink, p->stream); }

static bool check(const Probe *p, int code, Error *e) {
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

// An eighth of what is free, at most 4 GB.
static bool probe_open(Probe *p, int ordinal, const GpuFacts *f, Error *e) {
    const size_t most = (size_t)4 << 30;
    *p = (Probe){.ordinal = ordinal,
                 .bytes = f->free_bytes / 8 / 4096 * 4096,
                 .blocks = f->multiprocessors * BLOCKS_EACH};
    if (p->bytes > most) p->bytes = most;
    return check(p, gpu_stream_open(&p->stream), e) && check(p, gpu_event_open(&p->from), e) &&
           check(p, gpu_event_open(&p->to), e) && check(p, gpu_take(&p->data, p->bytes), e) &&
           check(p, gpu_take(&p->sink, (size_t)p->blocks * THREADS * sizeof(float)), e) &&
           check(p, gpu_fill(p->data, 0x5a, p->bytes, p->stream), e);
}

static bool time_pass(Probe *p, Pass *pass, double *work, double *seconds, Error *e) {
    if (!check(p, gpu_event_record(p->from, p->stream), e)) return false;
    *work = pass(p);
    return check(p, gpu_launched(), e) && check(p, gpu_event_record(p->to, p->stream), e) &&
           check(p, gpu_event_wait(p->to), e) && check(p, gpu_event_seconds(p->from, p->to, seconds), e);
}

// Bytes or operations in a second.
static bool measure(Probe *p, Pass *pass, double *best, Error *e) {
    double work, seconds, spent = 0;
    *best = 0;
    p->rounds = FIRST_ROUNDS;
    do {
        p->rounds *= 2;
        if (!time_pass(p, pass, &work, &seconds, e)) return false;
    } while (seconds < PASS_S && p->rounds < MOST_ROUNDS);
    for (int i = 0; i < PASSES || spent < ENOUGH_S; i++) {
        if (!time_pass(p, pass, &work, &seconds, e)) return false;
        if (seconds > 0 && work / seconds > *best) *best = work / seconds;
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
    bool ok = probe_open(&p, ordinal, &facts, e) && measure(&p, read_pass, &out->bytes_per_s, e) &&
              measure(&p, mma_pass, &out->operations_per_s[COMPUTE_BF16], e) &&
              measure(&p, fma_pass, &out->operations_per_s[COMPUTE_F32], e);
    out->operations_per_s[COMPUTE_F16] = out->operations_per_s[COMPUTE_BF16]; // the same cores, as fast
    probe_close(&p);
    return ok;
}

bool cuda_copy_rate(int ordinal, double *bytes_per_s, Error *e) {
    GpuFacts facts;
    Probe p;
    if (!device_find(ordinal, &facts, e)) return false;
    bool ok = probe_open(&p, ordinal, &facts, e) && measure(&p, copy_pass, bytes_per_s, e);
    probe_close(&p);
    return ok;
}
