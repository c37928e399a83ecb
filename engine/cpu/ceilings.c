// The two floors under a step's time, measured: how fast memory is read, in the same parts as products read
// weights, and how fast the kernels multiply in registers. Keeps no state.
#include "engine/cpu/cpu.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/system.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/pool.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RUNS = 7, TRIALS = 2, PEAK_ROUNDS = 400000, CACHE_LINE = 64, CACHES = 8 };
static const size_t LEAST_BYTES = (size_t)1 << 24,
                    MOST_BYTES = (size_t)1 << 29; // virtual machines report caches of up to 480 MB

typedef struct {
    const CpuOps *ops;
    unsigned char *buffer;
    size_t bytes;
    int read; // a Read
    Compute compute;
    double operations; // of one thread
    uint64_t seen;
    Pool *pool;
} Probe;

static void touch(void *argument, int thread, int threads) {
    Probe *p = argument;
    size_t lines = p->bytes / CACHE_LINE;
    size_t from = lines * (size_t)thread / (size_t)threads * CACHE_LINE;
    size_t to = lines * ((size_t)thread + 1) / (size_t)threads * CACHE_LINE;
    memset(p->buffer + from, thread + 1, to - from);
}

// Reads a part of the buffer as `streams` streams side by side, prefetched into the second-level cache
// `ahead` bytes early, or by the processor's own prefetchers. The sums are independent, and the compiler
// vectorises them.
static inline uint64_t read_streams(const unsigned char *from, size_t bytes, size_t streams, size_t ahead) {
    enum { WORDS = 32 };
    uint64_t sum[WORDS] = {0}, total = 0;
    size_t part = bytes / streams / sizeof sum * sizeof sum;
    for (size_t i = 0; i < part; i += sizeof sum)
        for (size_t s = 0; s < streams; s++) {
            const unsigned char *at = from + s * part + i;
            for (size_t line = 0; ahead && line < sizeof sum; line += CACHE_LINE)
                __builtin_prefetch(at + ahead + line, 0, 2);
            for (size_t j = 0; j < WORDS; j++) sum[j] += ((const uint64_t *)(const void *)at)[j];
        }
    for (int j = 0; j < WORDS; j++) total += sum[j];
    return total;
}

// Which way of reading is the fastest depends on the processor: the fastest of a trial counts.
typedef enum { READ_ONE, READ_FOUR, READ_FOUR_AHEAD, READS } Read;

// Threads take parts as they do in products.
static void read_all(void *argument, int thread, UNUSED int threads) {
    enum { AHEAD = 1024, UNIT = 128 << 10 };
    Probe *p = argument;
    uint64_t seen = 0;
    int from, to;
    while (pool_take(p->pool, (int)(p->bytes / UNIT), 1, thread, &from, &to)) {
        const unsigned char *at = p->buffer + (size_t)from * UNIT;
        size_t bytes = (size_t)(to - from) * UNIT;
        if (p->read == READ_ONE) seen += read_streams(at, bytes, 1, 0);
        if (p->read == READ_FOUR) seen += read_streams(at, bytes, 4, 0);
        if (p->read == READ_FOUR_AHEAD) seen += read_streams(at, bytes, 4, AHEAD);
    }
    if (thread == 0) p->seen = seen;
}

static void multiply_all(void *argument, int thread, UNUSED int threads) {
    Probe *p = argument;
    double operations = p->ops->peak(p->compute, PEAK_ROUNDS);
    if (thread == 0) p->operations = operations;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The median of so many runs, after one to warm up.
static double seconds_of(Pool *pool, PoolTask *task, Probe *p, int runs) {
    double seconds[RUNS] = {0};
    pool_run(pool, task, p);
    for (int i = 0; i < runs; i++) {
        double start = clock_now(clock_monotonic());
        pool_run(pool, task, p);
        seconds[i] = clock_now(clock_monotonic()) - start;
    }
    qsort(seconds, (size_t)runs, sizeof *seconds, by_value);
    return seconds[runs / 2];
}

// Many times the last cache, so that hardly a line is still there when it is read again.
static size_t enough_bytes(void) {
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE); // 0 or less: the system doesn't know
    size_t bytes = cache > 0 ? CACHES * (size_t)cache : MOST_BYTES;
    bytes = (bytes + LEAST_BYTES - 1) / LEAST_BYTES * LEAST_BYTES;
    return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

static size_t buffer_bytes(size_t enough) {
    size_t free = system_memory(), quarter = free / 4 / LEAST_BYTES * LEAST_BYTES;
    if (free == 0 || quarter > enough) return enough;
    return quarter > LEAST_BYTES ? quarter : LEAST_BYTES;
}

// A buffer on huge pages if the system has them, so that memory is measured and not address translation. If
// there isn't enough memory, half as much, and so on.
static bool take_buffer(Probe *p) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (!(p->buffer = mem_try(p->bytes, 1)) && p->bytes > LEAST_BYTES) p->bytes /= 2;
    if (!p->buffer) return false;
    unsigned char *first = p->buffer + (page - (size_t)p->buffer % page);
    size_t whole = (size_t)(p->buffer + p->bytes - first) / page * page;
    madvise(first, whole, MADV_HUGEPAGE); // if refused, ordinary pages will do
    return true;
}

bool cpu_ceilings(const BackendOptions *o, Ceilings *out, Error *e) {
    const size_t enough = enough_bytes();
    Probe p = {.ops = cpu_ops_find(o->isa, e), .bytes = buffer_bytes(enough)};
    Pool *pool = p.ops ? pool_open(o->threads > 0 ? o->threads : pool_cores(), e) : NULL;
    if (!pool) return false;
    p.pool = pool;
    bool ok = take_buffer(&p);
    if (ok) {
        pool_run(pool, touch, &p);
        *out = (Ceilings){.isa = p.ops->name, .threads = pool_threads(pool)};
        out->few_bytes = p.bytes < enough ? p.bytes : 0;
        double least = INFINITY;
        int fastest = 0;
        for (p.read = 0; p.read < READS; p.read++) {
            double seconds = seconds_of(pool, read_all, &p, TRIALS);
            if (seconds < least) least = seconds, fastest = p.read;
        }
        p.read = fastest;
        out->bytes_per_s = (double)p.bytes / seconds_of(pool, read_all, &p, RUNS);
        for (int compute = 0; compute < COMPUTE_KINDS; compute++) {
            if (compute == COMPUTE_F16) continue;
            p.compute = (Compute)compute;
            double seconds = seconds_of(pool, multiply_all, &p, RUNS);
            out->operations_per_s[compute] = out->threads * p.operations / seconds;
        }
        out->operations_per_s[COMPUTE_F16] = out->operations_per_s[COMPUTE_F32]; // f16 is widened to it
    }
    pool_close(pool);
    mem_free(p.buffer);
    return ok || error_system(e, "out of memory for measuring %zu bytes", p.bytes);
}
