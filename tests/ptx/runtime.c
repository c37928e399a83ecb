// The calls of the CUDA runtime that nvcc's host objects make, on the machine that runs their PTX. As the
// real one where programs trip over it:
//
// - Work in a stream happens as late as it may: when somebody waits for it. Until then pinned memory must
//   stay as it is; pageable memory is read at once, and a copy to it is waited for.
// - A call that fails leaves its code as the thread's last error until cudaGetLastError asks for it.
// - While a stream is captured, a call that would have to wait for it fails, and spoils the capture.
// - An early launch has no order with the work before it until it waits (memory.c).
// - A stream or an event belongs to the device that was the thread's when it was made. Kernels, fills and
//   graphs go only into streams of the thread's device, and an event marks only streams of its own device.
// - A stream that waits for another's event is ordered behind that event alone (order.h).
// - A copy without "Peer" in its name is within its stream's device.
//
// OUTPACE_FAKE_GPUS lists devices: what each can do, and after a colon, if it isn't 1,024, its memory in MB:
// "90:300,80".
#include "tests/ptx/runtime.h"

#include "tests/ptx/memory.h"
#include "tests/simt/settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

SimtSettings simt_settings = {.poison = 0xff, .fail_after = -1, .driver = 13000, .lost = -1};

// The point an event marks: a new one each time it is recorded.
typedef struct Mark {
    struct CUstream_st *stream;
    Clock clock;
    unsigned held;
    bool come;
} Mark;
typedef enum { WORK_COPY, WORK_FILL, WORK_LAUNCH, WORK_EVENT, WORK_WAIT, WORK_GRAPH } WorkKind;
typedef struct Work {
    WorkKind kind;
    void *to;
    const void *from;
    size_t bytes;
    unsigned char *staged; // of pageable memory
    int byte;
    Launch launch;
    struct CUevent_st *event;
    Mark *mark; // of an event, and of who waits for it
    struct CUgraphExec_st *graph;
    uint32_t to_device, from_device; // of a copy
    Clock host;                      // what the host knew
} Work;
typedef struct Works {
    Work *list;
    size_t count, space;
} Works;

struct CUstream_st {
    Works queue;
    size_t happened; // of them
    int number;
    Clock clock;
    Works *captured; // NULL: nothing is recorded
    bool spoiled, behind_launch;
    uint32_t device, overlap;
    struct CUstream_st *next;
};
struct CUevent_st {
    uint32_t device;
    Mark *mark;    // the last; NULL: none
    bool recorded; // into a graph
    double at;
};
struct CUgraph_st {
    Works works;
    uint32_t device;
};
struct CUgraphExec_st {
    Works works;
    uint32_t device;
};

typedef struct Pinned {
    unsigned char *data;
    size_t bytes;
} Pinned;

static struct {
    struct CUstream_st *streams;
    Pinned *pinned;
    size_t pinned_count, pinned_bytes;
    uint32_t launches;
    Clock host;       // what it has waited for
    uint32_t numbers; // bits: in use
    Clock clocks;     // of each number, how far it is
    double ticked;
    pthread_mutex_t lock;
} m = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static _Thread_local cudaError_t last;
static _Thread_local int current;

static cudaError_t failed(cudaError_t code) {
    if (code != cudaSuccess) last = code;
    return code;
}
cudaError_t runtime_failed(cudaError_t code) { return failed(code); }
uint32_t runtime_device(void) { return (uint32_t)current; }

#define ENTER pthread_mutex_lock(&m.lock)
#define LEAVE(code)                    \
    do {                               \
        cudaError_t result_ = (code);  \
        pthread_mutex_unlock(&m.lock); \
        return failed(result_);        \
    } while (0)

const bool simt_emulated = true;
size_t simt_live_bytes(void) { return memory_live_bytes() + m.pinned_bytes; }
unsigned long simt_blocks(void) { return (unsigned long)ptx_blocks(); }

// --- devices

static int list_devices(int capability[MOST_DEVICES], size_t memory[MOST_DEVICES]) {
    const char *given = getenv("OUTPACE_FAKE_GPUS");
    int n = 0;
    for (const char *p = given ? given : "90"; *p && n < MOST_DEVICES; p += *p == ',') {
        capability[n] = (int)strtol(p, (char **)&p, 10);
        memory[n++] = (size_t)(*p == ':' ? strtol(p + 1, (char **)&p, 10) : 1024) << 20;
    }
    return n;
}
static int devices(int capability[MOST_DEVICES]) {
    size_t memory[MOST_DEVICES];
    return list_devices(capability, memory);
}
static bool is_lost(uint32_t device) { return simt_settings.lost == (int)device; }
Code runtime_code(uint32_t device) {
    int capability[MOST_DEVICES] = {90};
    devices(capability);
    return capability[device] < 90 || ptx_settings.old_code ? CODE_80
           : capability[device] > 90                        ? CODE_90
                                                            : CODE_90A;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = simt_settings.driver;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int *count) { // unset where it fails
    int capability[MOST_DEVICES], n = devices(capability);
    if (simt_settings.driver / 1000 < CUDART_VERSION / 1000) return failed(cudaErrorInsufficientDriver);
    if (!n) return failed(cudaErrorNoDevice);
    *count = n;
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
    *device = current;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    int capability[MOST_DEVICES];
    if (device < 0 || device >= devices(capability)) return failed(cudaErrorInvalidDevice);
    current = device;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    int capability[MOST_DEVICES];
    devices(capability);
    if (attribute == cudaDevAttrComputeCapabilityMajor) *value = capability[device] / 10;
    else if (attribute == cudaDevAttrMultiProcessorCount) *value = ptx_settings.processors;
    else return failed(cudaErrorInvalidValue);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    int capability[MOST_DEVICES], n = devices(capability);
    if (device >= n) return failed(cudaErrorInvalidDevice);
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "PTX machine");
    out->uuid.bytes[15] = (char)(device + 1);
    out->major = capability[device] / 10, out->minor = capability[device] % 10;
    out->multiProcessorCount = ptx_settings.processors;
    out->sharedMemPerBlockOptin = (size_t)ptx_settings.shared_kb << 10;
    out->sharedMemPerMultiprocessor = (size_t)(ptx_settings.shared_kb + 1) << 10;
    out->l2CacheSize = 50 << 20;
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    int capability[MOST_DEVICES];
    size_t memory[MOST_DEVICES] = {0}, live = memory_live_of((uint32_t)current);
    list_devices(capability, memory);
    *total = memory[current];
    *free_bytes = live < *total ? *total - live : 0;
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t code) {
    return code == cudaSuccess                         ? "no error"
           : code == cudaErrorMemoryAllocation         ? "out of memory"
           : code == cudaErrorInsufficientDriver       ? "the driver is too old"
           : code == cudaErrorInvalidResourceHandle    ? "it is another device's"
           : code == cudaErrorLaunchFailure            ? "the device is lost"
           : code == cudaErrorStreamCaptureUnsupported ? "not permitted while a stream is recorded"
           : code == cudaErrorStreamCaptureInvalidated ? "the recording was spoiled"
                                                       : "the call failed";
}
cudaError_t cudaGetLastError(void) {
    cudaError_t code = last;
    last = cudaSuccess;
    return code;
}
cudaError_t cudaPeekAtLastError(void) { return last; }

// --- streams

static void push(struct CUstream_st *s, Work work) {
    Works *to = s->captured ? s->captured : &s->queue;
    if (to->count == to->space) {
        to->space = to->space ? 2 * to->space : 64;
        to->list = realloc(to->list, to->space * sizeof *to->list);
        if (!to->list) machine_fault("no memory");
    }
    work.host = m.host;
    to->list[to->count++] = work;
}

static double now(void) {
    struct timespec t;
    if (simt_settings.tick > 0) return m.ticked;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *reach(const void *p, size_t bytes, bool write, uint32_t device) {
    void *there = memory_reach(p, bytes, write, "a copy");
    if (memory_owner(p) != device)
        machine_fault(
            "a copy %s memory of device %u for device %u's: between them there is cudaMemcpyPeerAsync",
            write ? "takes" : "reads", memory_owner(p), device);
    return there;
}
static void copy(const Work *w) {
    bool to = memory_is_device(w->to), from = !w->staged && memory_is_device(w->from);
    const void *source = w->staged ? w->staged
                         : from    ? reach(w->from, w->bytes, false, w->from_device)
                                   : w->from;
    memcpy(to ? reach(w->to, w->bytes, true, w->to_device) : w->to, source, w->bytes);
    if (to && from) memory_copied(w->to, w->from, w->bytes);
    else if (to) memory_written_by_host(w->to, w->bytes);
}

static void let_go(Mark *mark) {
    if (mark && --mark->held == 0) free(mark);
}

static void happen_next(struct CUstream_st *s);
static void wait_for(struct CUstream_st *s, const Mark *mark) {
    while (!mark->come) happen_next(mark->stream); // as late as may be: nothing that is behind the event
    clock_join(&s->clock, &mark->clock);
}

static void happen(struct CUstream_st *s, Work *w) {
    bool launch = w->kind == WORK_LAUNCH;
    clock_join(&s->clock, &w->host);
    s->clock.at[s->number] = ++m.clocks.at[s->number];
    order_begin(s->number, s->device, &s->clock);
    if (launch) {
        Launch l = w->launch;
        l.number = ++m.launches;
        l.early = l.early && s->behind_launch;
        l.overlap = l.early ? s->overlap : l.number;
        s->overlap = l.overlap;
        ptx_launch(&l);
    } else if (w->kind == WORK_COPY && w->bytes) copy(w);
    else if (w->kind == WORK_FILL && w->bytes) {
        memset(reach(w->to, w->bytes, true, s->device), w->byte, w->bytes);
        memory_written_by_host(w->to, w->bytes);
    } else if (w->kind == WORK_EVENT) {
        w->event->at = now();
        w->mark->clock = s->clock;
        w->mark->come = true;
    } else if (w->kind == WORK_WAIT) wait_for(s, w->mark);
    else if (w->kind == WORK_GRAPH)
        for (size_t i = 0; i < w->graph->works.count; i++) happen(s, &w->graph->works.list[i]);
    if (launch || w->kind == WORK_COPY || w->kind == WORK_FILL) m.ticked += simt_settings.tick;
    if (w->kind != WORK_GRAPH) s->behind_launch = launch;
}

static void happen_next(struct CUstream_st *s) {
    if (s->happened == s->queue.count) machine_fault("a stream waits for an event that nothing leads to");
    Work *w = &s->queue.list[s->happened++];
    happen(s, w);
    free(w->staged);
    let_go(w->mark);
    if (w->kind == WORK_LAUNCH) free(w->launch.params);
}
static void drain(struct CUstream_st *s) {
    while (s->happened < s->queue.count) happen_next(s);
    s->happened = s->queue.count = 0;
}
// The host waits for all of it.
static void finish(struct CUstream_st *s) {
    drain(s);
    clock_join(&m.host, &s->clock);
}
static void finish_device(uint32_t device) {
    for (struct CUstream_st *s = m.streams; s; s = s->next)
        if (s->device == device) finish(s);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags) {
    struct CUstream_st *s = calloc(1, sizeof *s);
    (void)flags;
    if (!s) return failed(cudaErrorMemoryAllocation);
    ENTER;
    while (s->number < MOST_STREAMS && m.numbers >> s->number & 1) s->number++;
    if (s->number == MOST_STREAMS) machine_fault("too many streams");
    m.numbers |= 1u << s->number;
    s->device = (uint32_t)current;
    s->next = m.streams;
    m.streams = *out = s;
    LEAVE(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    ENTER;
    drain(s);
    m.numbers &= ~(1u << s->number);
    for (struct CUstream_st **p = &m.streams; *p; p = &(*p)->next)
        if (*p == s) {
            *p = s->next;
            break;
        }
    free(s->queue.list);
    free(s);
    LEAVE(cudaSuccess);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    ENTER;
    if (s->captured) {
        s->spoiled = true;
        LEAVE(cudaErrorStreamCaptureUnsupported);
    }
    finish(s);
    LEAVE(is_lost(s->device) ? cudaErrorLaunchFailure : cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)flags;
    ENTER;
    if (s->captured) {
        s->spoiled = true;
        LEAVE(cudaErrorStreamCaptureUnsupported);
    }
    if (!e->mark) LEAVE(cudaSuccess); // it was never recorded
    e->mark->held++;
    push(s, (Work){.kind = WORK_WAIT, .mark = e->mark});
    LEAVE(is_lost(s->device) ? cudaErrorLaunchFailure : cudaSuccess);
}

// --- memory

static bool may_take(void) {
    if (simt_settings.fail_after > 0) simt_settings.fail_after--;
    else if (simt_settings.fail_after == 0) return false;
    return true;
}
cudaError_t cudaMalloc(void **out, size_t bytes) {
    size_t room, total;
    ENTER;
    cudaMemGetInfo(&room, &total);
    if (is_lost((uint32_t)current)) LEAVE(cudaErrorLaunchFailure);
    if (!may_take() || bytes > room) LEAVE(cudaErrorMemoryAllocation);
    memory_take(out, bytes, (uint32_t)current);
    LEAVE(cudaSuccess);
}
// A device finishes all its work before it gives memory back.
cudaError_t cudaFree(void *p) {
    if (!p) return cudaSuccess;
    ENTER;
    finish_device(memory_owner(p));
    LEAVE(memory_give(p) ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    ENTER;
    if (!may_take()) LEAVE(cudaErrorMemoryAllocation);
    m.pinned = realloc(m.pinned, (m.pinned_count + 1) * sizeof *m.pinned);
    *out = malloc(bytes);
    if (!m.pinned || !*out) machine_fault("no memory");
    memset(*out, simt_settings.poison, bytes);
    m.pinned[m.pinned_count++] = (Pinned){*out, bytes};
    m.pinned_bytes += bytes;
    LEAVE(cudaSuccess);
}
cudaError_t cudaFreeHost(void *p) {
    ENTER;
    for (struct CUstream_st *s = m.streams; s; s = s->next) drain(s);
    for (size_t i = 0; i < m.pinned_count; i++) {
        if (m.pinned[i].data != p) continue;
        m.pinned_bytes -= m.pinned[i].bytes;
        m.pinned[i] = m.pinned[--m.pinned_count];
        free(p);
        LEAVE(cudaSuccess);
    }
    LEAVE(cudaErrorInvalidValue);
}
static bool is_pageable(const void *p) {
    if (memory_is_device(p)) return false;
    for (size_t i = 0; i < m.pinned_count; i++)
        if ((const unsigned char *)p >= m.pinned[i].data &&
            (const unsigned char *)p < m.pinned[i].data + m.pinned[i].bytes)
            return false;
    return true;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t s) {
    Work w = {.kind = WORK_COPY,
              .to = to,
              .from = from,
              .bytes = bytes,
              .to_device = s->device,
              .from_device = s->device};
    (void)kind;
    ENTER;
    if (is_lost(s->device)) LEAVE(cudaErrorLaunchFailure);
    if (is_pageable(from) && bytes && !s->captured) {
        w.staged = malloc(bytes);
        if (!w.staged) machine_fault("no memory");
        memcpy(w.staged, from, bytes);
    }
    if (s->captured && (is_pageable(from) || is_pageable(to)))
        machine_fault("a copy of pageable memory is recorded");
    push(s, w);
    if (is_pageable(to)) finish(s);
    LEAVE(cudaSuccess);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t s) {
    ENTER;
    if (!memory_is_device(to) || !memory_is_device(from)) LEAVE(cudaErrorInvalidValue);
    if (is_lost(s->device)) LEAVE(cudaErrorLaunchFailure);
    push(s, (Work){.kind = WORK_COPY,
                   .to = to,
                   .from = from,
                   .bytes = bytes,
                   .to_device = (uint32_t)to_device,
                   .from_device = (uint32_t)from_device});
    LEAVE(cudaSuccess);
}
// A thread must have a stream's device current before it puts work into the stream.
static cudaError_t usable(cudaStream_t s) {
    return s->device != (uint32_t)current ? cudaErrorInvalidResourceHandle
           : is_lost(s->device)           ? cudaErrorLaunchFailure
                                          : cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t s) {
    ENTER;
    if (usable(s)) LEAVE(usable(s));
    push(s, (Work){.kind = WORK_FILL, .to = to, .byte = byte, .bytes = bytes});
    LEAVE(cudaSuccess);
}

// --- launches

void runtime_begin(void) { ENTER; }
cudaError_t runtime_end(cudaError_t code) { LEAVE(code); }
cudaError_t runtime_usable(cudaStream_t s) { return usable(s); }
void runtime_put(cudaStream_t s, Launch l) { push(s, (Work){.kind = WORK_LAUNCH, .launch = l}); }

// --- events

cudaError_t cudaEventCreate(cudaEvent_t *out) {
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->device = (uint32_t)current;
    return *out ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    ENTER;
    if (e->mark && !e->mark->come) drain(e->mark->stream);
    let_go(e->mark);
    free(e);
    LEAVE(cudaSuccess);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    ENTER;
    if (e->device != s->device) LEAVE(cudaErrorInvalidResourceHandle);
    if (is_lost(s->device)) LEAVE(cudaErrorLaunchFailure);
    e->recorded = s->captured != NULL;
    if (e->recorded) LEAVE(cudaSuccess);
    let_go(e->mark);
    e->mark = calloc(1, sizeof *e->mark);
    if (!e->mark) machine_fault("no memory");
    *e->mark = (Mark){.stream = s, .held = 2}; // by the event, and by the work
    push(s, (Work){.kind = WORK_EVENT, .event = e, .mark = e->mark});
    LEAVE(cudaSuccess);
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    ENTER;
    if (e->recorded) LEAVE(cudaErrorStreamCaptureUnsupported);
    if (is_lost(e->device)) LEAVE(cudaErrorLaunchFailure);
    if (e->mark && !e->mark->come) drain(e->mark->stream);
    if (e->mark) clock_join(&m.host, &e->mark->clock);
    LEAVE(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    if (from->recorded || to->recorded || !from->mark || !to->mark || from->device != to->device)
        return failed(cudaErrorInvalidResourceHandle);
    if (!from->mark->come || !to->mark->come) return failed(cudaErrorNotReady);
    *ms = (float)((to->at - from->at) * 1e3);
    return cudaSuccess;
}

// --- graphs

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    (void)mode;
    ENTER;
    if (s->captured) LEAVE(cudaErrorIllegalState);
    s->captured = calloc(1, sizeof *s->captured);
    s->spoiled = false;
    LEAVE(s->captured ? cudaSuccess : cudaErrorMemoryAllocation);
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *out) {
    ENTER;
    *out = NULL;
    if (!s->captured) LEAVE(cudaErrorIllegalState);
    Works works = *s->captured;
    free(s->captured);
    s->captured = NULL;
    if (s->spoiled || simt_settings.no_graphs) {
        free(works.list);
        LEAVE(cudaErrorStreamCaptureInvalidated);
    }
    *out = calloc(1, sizeof **out);
    if (!*out) machine_fault("no memory");
    (*out)->works = works;
    (*out)->device = s->device;
    LEAVE(cudaSuccess);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t g, unsigned long long flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    if (!*out) machine_fault("no memory");
    (*out)->works = g->works;
    (*out)->device = g->device;
    g->works = (Works){0};
    return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
    free(g->works.list);
    free(g);
    return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
    ENTER;
    for (struct CUstream_st *s = m.streams; s; s = s->next) drain(s); // it may be in a queue
    for (size_t i = 0; i < g->works.count; i++)
        if (g->works.list[i].kind == WORK_LAUNCH) free(g->works.list[i].launch.params);
    free(g->works.list);
    free(g);
    LEAVE(cudaSuccess);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
    ENTER;
    if (g->device != s->device) LEAVE(cudaErrorInvalidResourceHandle);
    if (usable(s)) LEAVE(usable(s));
    push(s, (Work){.kind = WORK_GRAPH, .graph = g});
    LEAVE(cudaSuccess);
}
