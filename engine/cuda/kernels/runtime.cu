// See runtime.h: thin wrappers around the CUDA runtime. No failed call leaves its code behind as the
// runtime's last error, except a launch's, which gpu_launched or gpu_graph_end returns.
#include "engine/cuda/kernels/runtime.h"

#include <atomic>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARPGROUP_MARK = 32 };

const char *gpu_error(int code) { return cudaGetErrorString((cudaError_t)code); }

const char *gpu_codes(void) { return CUDA_CODES; }

int gpu_versions(int *driver, int *runtime) {
    *driver = *runtime = 0;
    cudaError_t code = cudaDriverGetVersion(driver);
    if (code == cudaSuccess) code = cudaRuntimeGetVersion(runtime);
    return (int)code;
}

// Without a driver the call fails and leaves the count unset. With a driver that is too old it returns the
// same code, and only the driver's version distinguishes the two.
int gpu_count(int *count) {
    int driver, runtime;
    *count = 0;
    cudaError_t code = cudaGetDeviceCount(count);
    if (code == cudaSuccess) return 0;
    *count = 0;
    cudaGetLastError();
    bool none = code == cudaErrorNoDevice ||
                (code == cudaErrorInsufficientDriver && (gpu_versions(&driver, &runtime) || driver == 0));
    return none ? 0 : (int)code;
}

// A call that fails leaves its code as the runtime's last error. This clears it, or gpu_launched would return
// it for an unrelated launch.
static int cleared(cudaError_t code) {
    if (code != cudaSuccess) cudaGetLastError();
    return (int)code;
}

int gpu_use(int ordinal) { return cleared(cudaSetDevice(ordinal)); }

static void write_uuid(const unsigned char *bytes, char out[48]) {
    int n = snprintf(out, 48, "GPU-");
    for (int i = 0; i < 16; i++)
        n += snprintf(out + n, (size_t)(48 - n), i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x",
                      bytes[i]);
}

int gpu_facts(int ordinal, GpuFacts *out) {
    cudaDeviceProp p;
    *out = {};
    cudaError_t code = cudaGetDeviceProperties(&p, ordinal);
    if (code == cudaSuccess) code = cudaMemGetInfo(&out->free_bytes, &out->total_bytes);
    if (code == cudaSuccess) code = (cudaError_t)gpu_versions(&out->driver, &out->runtime);
    if (code != cudaSuccess) return cleared(code);
    snprintf(out->name, sizeof out->name, "%s", p.name);
    write_uuid((const unsigned char *)p.uuid.bytes, out->uuid);
    out->major = p.major;
    out->minor = p.minor;
    out->multiprocessors = p.multiProcessorCount;
    out->shared_bytes = p.sharedMemPerBlockOptin;
    out->shared_processor = p.sharedMemPerMultiprocessor;
    out->l2_bytes = (size_t)p.l2CacheSize;
    return 0;
}

int gpu_take(void **device, size_t bytes) {
    *device = NULL;
    return cleared(cudaMalloc(device, bytes ? bytes : 1));
}
int gpu_give(void *device) { return cleared(cudaFree(device)); }
int gpu_take_pinned(void **host, size_t bytes) {
    *host = NULL;
    return cleared(cudaHostAlloc(host, bytes ? bytes : 1, cudaHostAllocDefault));
}
int gpu_give_pinned(void *host) { return host ? cleared(cudaFreeHost(host)) : 0; }

int gpu_stream_open(void **stream) {
    return cleared(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}
int gpu_stream_close(void *stream) { return cleared(cudaStreamDestroy((cudaStream_t)stream)); }
int gpu_stream_wait(void *stream) { return cleared(cudaStreamSynchronize((cudaStream_t)stream)); }
int gpu_copy(void *to, const void *from, size_t bytes, void *stream) {
    return cleared(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}
// If neither device reaches the other's memory, the copy goes through the host, still in the stream's order.
int gpu_copy_peer(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes, void *stream) {
    return cleared(cudaMemcpyPeerAsync(to, to_ordinal, from, from_ordinal, bytes, (cudaStream_t)stream));
}
int gpu_fill(void *device, int byte, size_t bytes, void *stream) {
    return cleared(cudaMemsetAsync(device, byte, bytes, (cudaStream_t)stream));
}
int gpu_launched(void) { return (int)cudaGetLastError(); }

// A kernel like every other here, to find out which of the compiled codes a device has loaded.
__global__ void witness() {}

// The same for wgmma: its static shared memory tells which code was loaded.
__global__ void warpgroup_witness(int *out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ int there[WARPGROUP_MARK];
    there[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    if (out) *out = there[0];
#else
    (void)out;
#endif
}
bool gpu_has_warpgroups(void) {
    cudaFuncAttributes code;
    return cleared(cudaFuncGetAttributes(&code, warpgroup_witness)) == 0 && code.sharedSizeBytes != 0;
}

// Only code compiled for 9.0 or later has the instruction that waits for the launch in front. The card
// doesn't decide alone: a build for other architectures, or one whose machine code is ignored
// (CUDA_FORCE_PTX_JIT), lacks it on a 9.0 card.
static bool ask_early(void) {
    const char *wanted = getenv("OUTPACE_EARLY");
    cudaFuncAttributes code;
    if (wanted && strcmp(wanted, "no") == 0) return false;
    return cleared(cudaFuncGetAttributes(&code, witness)) == 0 && code.ptxVersion >= 90;
}

// Every launch needs the answer, so each device's last one is kept.
enum { DEVICES = 64 };
enum Answer { UNASKED, IN_TURN, EARLY };
static std::atomic<Answer> answer[DEVICES];

static bool remember(int device, bool early) {
    if (device >= 0 && device < DEVICES)
        answer[device].store(early ? EARLY : IN_TURN, std::memory_order_relaxed);
    return early;
}
static int device_in_use(void) {
    int device = -1;
    return cleared(cudaGetDevice(&device)) == 0 ? device : -1;
}
bool gpu_begins_early(void) { return remember(device_in_use(), ask_early()); }
bool gpu_early(void) {
    int device = device_in_use();
    Answer known = device >= 0 && device < DEVICES ? answer[device].load(std::memory_order_relaxed) : UNASKED;
    return known == UNASKED ? remember(device, ask_early()) : known == EARLY;
}

int gpu_event_open(void **event) { return cleared(cudaEventCreate((cudaEvent_t *)event)); }
int gpu_event_close(void *event) { return cleared(cudaEventDestroy((cudaEvent_t)event)); }
int gpu_event_record(void *event, void *stream) {
    return cleared(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}
int gpu_event_wait(void *event) { return cleared(cudaEventSynchronize((cudaEvent_t)event)); }
int gpu_stream_after(void *stream, void *event) {
    return cleared(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}
int gpu_event_seconds(void *from, void *to, double *seconds) {
    float ms = 0;
    cudaError_t code = cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to);
    *seconds = ms * 1e-3;
    return cleared(code);
}

// Relaxed: a kernel is loaded at its first launch, which may be while a step is recorded, and the other modes
// refuse the calls that loading makes.
int gpu_graph_begin(void *stream) {
    return cleared(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeRelaxed));
}
// A launch that fails leaves no node, and the graph would be complete without it: this checks for its error.
int gpu_graph_end(void *stream, void **graph) {
    cudaGraph_t captured = NULL;
    *graph = NULL;
    cudaError_t launched = cudaGetLastError(), code = cudaStreamEndCapture((cudaStream_t)stream, &captured);
    if (launched != cudaSuccess) code = launched;
    if (code == cudaSuccess) code = cudaGraphInstantiate((cudaGraphExec_t *)graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    return cleared(code);
}
int gpu_graph_run(void *graph, void *stream) {
    return cleared(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream));
}
int gpu_graph_close(void *graph) { return cleared(cudaGraphExecDestroy((cudaGraphExec_t)graph)); }
