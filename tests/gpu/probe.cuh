// What the probe's kernels share: whether code has the instructions of 9.0a, launches in clusters, barriers
// in shared memory.
#pragma once
#include "engine/cuda/kernels/warpgroups.cuh"

#include "tests/gpu/probe.h"

#if defined(__CUDACC__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HOPPER 1
#else
#define HOPPER 0
#endif

#ifdef __CUDACC__
template <typename... Parameters, typename... Arguments>
static void launch_clusters(void (*kernel)(Parameters...), int blocks, int threads, size_t shared,
                            int cluster, void *stream, Arguments... arguments) {
    cudaLaunchAttribute size = {};
    cudaLaunchConfig_t launch = {};
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim.x = (unsigned)cluster;
    size.val.clusterDim.y = size.val.clusterDim.z = 1;
    launch.gridDim = dim3((unsigned)(blocks / cluster * cluster));
    launch.blockDim = dim3((unsigned)threads);
    launch.dynamicSmemBytes = shared;
    launch.stream = (cudaStream_t)stream;
    launch.attrs = &size;
    launch.numAttrs = cluster > 1 ? 1 : 0;
    request_memory((const void *)kernel, shared);
    cudaLaunchKernelEx(&launch, kernel, arguments...);
}
#else // never called
template <typename... Arguments> static void launch_clusters(Arguments...) {}
#endif

#if HOPPER
__device__ __forceinline__ void barrier_init(uint64_t *b) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(b)) : "memory");
}
__device__ __forceinline__ void barriers_visible() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_expect(uint64_t *b, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(b)), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void barrier_await(uint64_t *b, uint32_t parity) {
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}" ::"r"(
            shared_address(b)),
        "r"(parity)
        : "memory");
}
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}
__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}
#endif
