// The arguments of the kernels that move keys and values: accepted nodes to caches, and caches to copies.
#pragma once
#include "engine/cuda/kernels/product.h"

#ifdef __cplusplus
extern "C" {
#endif

// Moves keys and values of nodes to slots, in all layers. The list is on the device.
typedef struct Move {
    int node, slot, sequence;
} Move;
typedef struct MoveList {
    int count;
    Move move[]; // (count)
} MoveList;
typedef struct Commit {
    const MoveList *list;
    void *cache_k, *cache_v;     // sequence i's is number i * each + nth
    const void *step_k, *step_v; // (layers, kv_heads, slots or nodes, pitch)
    int layers, slots, area, each, nth;
    Heads heads;
} Commit;
void gpu_commit(const Commit *c, int count, void *stream);

// Copies the keys and values of `positions` slots from `slot` on, in all layers, to each of `count` copies.
typedef struct Copies {
    const void *cache_k, *cache_v;
    void *copies_k, *copies_v; // the first of these copies
    size_t copy_bytes;         // from a copy to the next
    int count, layers, slots, slot, positions;
    Heads heads;
} Copies;
void gpu_copies(const Copies *c, void *stream);

#ifdef __cplusplus
}
#endif
