// Keys and values of an accepted path from the step area to their slots, all layers in one launch.
#include "engine/cuda/rows.cuh"

enum { THREADS = 64 };

// One head of one node in one layer, 16 bytes at a time; a head's pitch is a multiple of that.
__global__ void __launch_bounds__(THREADS) commit(Commit c) {
    if ((int)blockIdx.x >= c.list->count) return;
    size_t node = (size_t)c.list->pair[2 * blockIdx.x], slot = (size_t)c.list->pair[2 * blockIdx.x + 1];
    size_t size = c.heads.dtype == DTYPE_F32 ? 4 : 2, pieces = (size_t)c.heads.pitch * size / sizeof(uint4);
    size_t head = (size_t)blockIdx.z * (size_t)c.heads.kv_heads + blockIdx.y;
    size_t from = (head * (size_t)c.area + node) * pieces, to = (head * (size_t)c.slots + slot) * pieces;
    for (size_t i = threadIdx.x; i < pieces; i += THREADS) {
        ((uint4 *)c.cache_k)[to + i] = ((const uint4 *)c.step_k)[from + i];
        ((uint4 *)c.cache_v)[to + i] = ((const uint4 *)c.step_v)[from + i];
    }
}

void gpu_commit(const Commit *c, int count, void *stream) {
    LAUNCH(commit, dim3((unsigned)count, (unsigned)c->heads.kv_heads, (unsigned)c->layers), THREADS, 0,
           stream, *c);
}
