// engine/cuda/runtime.h by the CUDA runtime.
#include "engine/cuda/runtime.h"

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gpu_error(int code) { return cudaGetErrorString((cudaError_t)code); }

int gpu_versions(int *driver, int *runtime) {
    *driver = *runtime = 0;
    cudaError_t code = cudaDriverGetVersion(driver);
    if (code == cudaSuccess) code = cudaRuntimeGetVersion(runtime);
    return (int)code;
}

// Without a driver the call fails and leaves the count unset; where there is one, but too old, it says the
// same, and only the driver's version tells them apart.
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

// A call that fails leaves its code as the runtime's last error. It's taken back here: gpu_launched would
// return it for a launch that had nothing to do with it.
static int told(cudaError_t code) {
    if (code != cudaSuccess) cudaGetLastError();
    return (int)code;
}

int gpu_use(int ordinal) { return told(cudaSetDevice(ordinal)); }

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
    if (code != cudaSuccess) return told(code);
    snprintf(out->name, sizeof out->name, "%s", p.name);
    write_uuid((const unsigned char *)p.uuid.bytes, out->uuid);
    out->major = p.major;
    out->minor = p.minor;
    out->multiprocessors = p.multiProcessorCount;
    out->shared_bytes = p.sharedMemPerBlockOptin;
    return 0;
}

int gpu_take(void **device, size_t bytes) {
    *device = NULL;
    return told(cudaMalloc(device, bytes ? bytes : 1));
}
int gpu_give(void *device) { return told(cudaFree(device)); }
int gpu_take_pinned(void **host, size_t bytes) {
    *host = NULL;
    return told(cudaHostAlloc(host, bytes ? bytes : 1, cudaHostAllocDefault));
}
int gpu_give_pinned(void *host) { return host ? told(cudaFreeHost(host)) : 0; }

int gpu_stream_open(void **stream) {
    return told(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}
int gpu_stream_close(void *stream) { return told(cudaStreamDestroy((cudaStream_t)stream)); }
int gpu_stream_wait(void *stream) { return told(cudaStreamSynchronize((cudaStream_t)stream)); }
int gpu_copy(void *to, const void *from, size_t bytes, void *stream) {
    return told(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, (cudaStream_t)stream));
}
// Where neither device reaches the other's memory, it goes over the host, in the stream's order all the same.
int gpu_copy_peer(void *to, int to_ordinal, const void *from, int from_ordinal, size_t bytes, void *stream) {
    return told(cudaMemcpyPeerAsync(to, to_ordinal, from, from_ordinal, bytes, (cudaStream_t)stream));
}
int gpu_fill(void *device, int byte, size_t bytes, void *stream) {
    return told(cudaMemsetAsync(device, byte, bytes, (cudaStream_t)stream));
}
int gpu_launched(void) { return (int)cudaGetLastError(); }

// A kernel like every other here, to see which of the compiled codes a device has loaded.
__global__ void witness() {}

// Only code compiled for 9.0 or later has the instruction that waits for the launch in front. Which code runs
// is not the card's choice alone: a build for other architectures, or one whose machine code is passed over
// (CUDA_FORCE_PTX_JIT), has none of it on a 9.0 card.
static bool may(const char *name) {
    const char *wanted = getenv(name);
    cudaFuncAttributes code;
    if (wanted && strcmp(wanted, "no") == 0) return false;
    return told(cudaFuncGetAttributes(&code, witness)) == 0 && code.ptxVersion >= 90;
}
bool gpu_begins_early(void) { return may("OUTPACE_EARLY"); }
bool gpu_has_clusters(void) { return may("OUTPACE_CLUSTERS"); }

int gpu_event_open(void **event) { return told(cudaEventCreate((cudaEvent_t *)event)); }
int gpu_event_close(void *event) { return told(cudaEventDestroy((cudaEvent_t)event)); }
int gpu_event_record(void *event, void *stream) {
    return told(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}
int gpu_event_wait(void *event) { return told(cudaEventSynchronize((cudaEvent_t)event)); }
int gpu_stream_after(void *stream, void *event) {
    return told(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}
int gpu_event_seconds(void *from, void *to, double *seconds) {
    float ms = 0;
    cudaError_t code = cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to);
    *seconds = ms * 1e-3;
    return told(code);
}

// Relaxed: a kernel is loaded when it is first launched, which is while a step is recorded, and the other
// modes refuse the calls that this may take.
int gpu_graph_begin(void *stream) {
    return told(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeRelaxed));
}
// A launch that could not be made leaves no node, and the graph is whole without it: so it is asked for here.
int gpu_graph_end(void *stream, void **graph) {
    cudaGraph_t captured = NULL;
    *graph = NULL;
    cudaError_t launched = cudaGetLastError(), code = cudaStreamEndCapture((cudaStream_t)stream, &captured);
    if (launched != cudaSuccess) code = launched;
    if (code == cudaSuccess) code = cudaGraphInstantiate((cudaGraphExec_t *)graph, captured, 0);
    if (captured) cudaGraphDestroy(captured);
    return told(code);
}
int gpu_graph_run(void *graph, void *stream) {
    return told(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream));
}
int gpu_graph_close(void *graph) { return told(cudaGraphExecDestroy((cudaGraphExec_t)graph)); }
