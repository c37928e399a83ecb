// Functions that nvcc's host objects register, and how they are launched. As the real runtime:
//
// - A kernel has 48 KB of shared memory unless it was given more. Blocks have 1,024 threads at most.
// - A device of 9.0 gets the PTX for 9.0a of a file that has one; that for 9.0 of the others, as later devices
//   do; an older one that for 8.0.
#include "tests/ptx/runtime.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FUNCTIONS = 512, FREE_SHARED = 48 << 10 };

typedef struct Function {
    const void *host;
    char name[256];
    const Kernel *of[CODES];
    int shared[MOST_DEVICES]; // most that it may have
} Function;

static struct {
    Function functions[MOST_FUNCTIONS];
    size_t function_count;
    bool loaded[CODES];
    struct {
        dim3 grid, block;
        size_t shared;
        cudaStream_t stream;
    } call;
} m;

// "name.compute_90a.ptx"
static bool is_for(const char *path, const char *code) {
    size_t n = strlen(path), end = strlen(code);
    return n > end && strcmp(path + n - end, code) == 0;
}
static void load(Code code) {
    static const char *const ends[CODES] = {".compute_80.ptx", ".compute_90.ptx", ".compute_90a.ptx"};
    glob_t found;
    if (m.loaded[code]) return;
    m.loaded[code] = true;
    const char *folder = getenv("OUTPACE_PTX");
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/*.compute_*.ptx", folder ? folder : PTX_FOLDER);
    if (glob(pattern, 0, NULL, &found)) machine_fault("there is no PTX in '%s'; run make", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (is_for(found.gl_pathv[i], ends[code])) ptx_load(found.gl_pathv[i]);
    globfree(&found);
}

static Function *function_of(const void *host) {
    for (size_t i = 0; i < m.function_count; i++)
        if (m.functions[i].host == host || (const void *)&m.functions[i] == host) return &m.functions[i];
    return NULL;
}
static const Kernel *kernel_of(Function *f, uint32_t device) {
    static const int targets[CODES] = {80, 90, 91};
    Code code = runtime_code(device);
    if (f->of[code]) return f->of[code];
    load(code);
    f->of[code] = ptx_kernel(f->name, targets[code]);
    if (!f->of[code] && code == CODE_90A) {
        load(CODE_90);
        f->of[code] = ptx_kernel(f->name, targets[CODE_90]);
    }
    if (!f->of[code])
        machine_fault("there is no PTX of '%s' for %s", f->name, code == CODE_80 ? "8.0" : "9.0");
    return f->of[code];
}

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            uint3 *thread, uint3 *block, dim3 *size, dim3 *grid, int *warps);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary) { return binary; }
void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                            uint3 *thread, uint3 *block, dim3 *size, dim3 *grid, int *warps) {
    (void)handle, (void)device, (void)limit, (void)thread, (void)block, (void)size, (void)grid, (void)warps;
    if (m.function_count == MOST_FUNCTIONS) machine_fault("too many kernels");
    Function *f = &m.functions[m.function_count++];
    f->host = host;
    for (int i = 0; i < MOST_DEVICES; i++) f->shared[i] = FREE_SHARED;
    snprintf(f->name, sizeof f->name, "%s", name);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
    m.call.grid = grid, m.call.block = block, m.call.shared = shared, m.call.stream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = m.call.grid, *block = m.call.block, *shared = m.call.shared;
    *(cudaStream_t *)stream = m.call.stream;
    return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value) {
    Function *f = function_of(host);
    if (!f) return runtime_failed(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > ptx_settings.shared_kb << 10)
        return runtime_failed(cudaErrorInvalidValue);
    f->shared[runtime_device()] = value;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *host) {
    Function *f = function_of(host);
    if (!f) return runtime_failed(cudaErrorInvalidDeviceFunction);
    memset(out, 0, sizeof *out);
    out->sharedSizeBytes = kernel_of(f, runtime_device())->shared_bytes;
    out->ptxVersion = out->binaryVersion = runtime_code(runtime_device()) == CODE_80 ? 80 : 90;
    return cudaSuccess;
}

static cudaError_t launch(Function *f, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t s,
                          bool early, int cluster) {
    if (!f) return cudaErrorInvalidDeviceFunction;
    if (runtime_usable(s)) return runtime_usable(s);
    const uint32_t device = runtime_device(); // the stream's, then
    const Kernel *k = kernel_of(f, device);
    unsigned threads = block.x * block.y * block.z;
    if (threads > 1024 || !threads || !grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    if (shared > (size_t)f->shared[device]) return cudaErrorInvalidValue;
    if (!cluster) cluster = k->cluster ? k->cluster : 1;
    if ((k->cluster && cluster != k->cluster) || grid.x % (unsigned)cluster)
        return cudaErrorInvalidConfiguration;
    Launch l = {.kernel = k,
                .grid = {grid.x, grid.y, grid.z},
                .threads = threads,
                .cluster = cluster,
                .shared = shared,
                .device = device,
                .early = early,
                .params = calloc(1, k->param_bytes + 1)};
    if (!l.params) machine_fault("no memory");
    for (int i = 0; i < k->params; i++) memcpy(l.params + k->param_at[i], arguments[i], k->param_size[i]);
    runtime_put(s, l);
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *out, const void *host) {
    *out = (cudaKernel_t)(void *)function_of(host);
    return *out ? cudaSuccess : runtime_failed(cudaErrorInvalidDeviceFunction);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               cudaStream_t s) {
    runtime_begin();
    return runtime_end(launch(function_of(kernel), grid, block, arguments, shared, s, false, 0));
}
cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared,
                             cudaStream_t s) {
    runtime_begin();
    return runtime_end(launch(function_of(host), grid, block, arguments, shared, s, false, 0));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *host, void **arguments) {
    bool early = false;
    int cluster = 0;
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const cudaLaunchAttribute *a = &c->attrs[i];
        if (a->id == cudaLaunchAttributeProgrammaticStreamSerialization)
            early = a->val.programmaticStreamSerializationAllowed;
        else if (a->id == cudaLaunchAttributeClusterDimension && a->val.clusterDim.y == 1 &&
                 a->val.clusterDim.z == 1)
            cluster = (int)a->val.clusterDim.x;
        else return cudaErrorNotSupported;
    }
    runtime_begin();
    return runtime_end(launch(function_of(host), c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes,
                              c->stream, early, cluster));
}
