// What a card can do at most: it reads a buffer far larger than its caches, and multiplies in registers.
#include "engine/cuda/cuda.h"

#include "engine/cuda/device.h"
#include "engine/cuda/kernels.h"

#include <string.h>

enum { PASSES = 5, ROUNDS = 4000, BLOCKS_EACH = 8, THREADS = 256 };

typedef struct Probe {
    void *stream, *from, *to, *data;
    void *sink;
    size_t bytes;
    int blocks;
} Probe;

static bool check(int code, Error *e) {
    return code == 0 || error_system(e, "cuda: cannot be measured: %s", gpu_error(code));
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
static bool probe_open(Probe *p, const GpuFacts *f, Error *e) {
    const size_t most = (size_t)4 << 30;
    *p = (Probe){.bytes = f->free_bytes / 8, .blocks = f->multiprocessors * BLOCKS_EACH};
    if (p->bytes > most) p->bytes = most;
    return check(gpu_stream_open(&p->stream), e) && check(gpu_event_open(&p->from), e) &&
           check(gpu_event_open(&p->to), e) && check(gpu_take(&p->data, p->bytes), e) &&
           check(gpu_take(&p->sink, (size_t)p->blocks * THREADS * sizeof(float)), e) &&
           check(gpu_fill(p->data, 0x5a, p->bytes, p->stream), e);
}

// The best of a few passes; `read` or multiply. Gives bytes or operations in a second.
static bool measure(Probe *p, bool read, double *best, Error *e) {
    *best = 0;
    for (int i = 0; i < PASSES; i++) {
        double work = (double)p->bytes, seconds;
        if (!check(gpu_event_record(p->from, p->stream), e)) return false;
        if (read) gpu_probe_read(p->data, p->bytes, p->blocks, p->sink, p->stream);
        else work = gpu_probe_mma(ROUNDS, p->blocks, p->sink, p->stream);
        if (!check(gpu_launched(), e) || !check(gpu_event_record(p->to, p->stream), e) ||
            !check(gpu_event_wait(p->to), e) || !check(gpu_event_seconds(p->from, p->to, &seconds), e))
            return false;
        if (work / seconds > *best) *best = work / seconds;
    }
    return true;
}

bool cuda_ceilings(int ordinal, const BackendOptions *o, Ceilings *out, Error *e) {
    GpuFacts facts;
    Probe p;
    (void)o;
    *out = (Ceilings){.isa = "mma.sync bf16"};
    if (!device_find(ordinal, &facts, e)) return false;
    bool ok = probe_open(&p, &facts, e) && measure(&p, true, &out->bytes_per_s, e) &&
              measure(&p, false, &out->operations_per_s[COMPUTE_BF16], e);
    probe_close(&p);
    return ok;
}
