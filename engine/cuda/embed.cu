// What a step starts from: rows of the embedding, and the cosines and sines of each node's position. Angles
// are taken in double, so that the last position is as exact as the first.
#include "engine/cuda/rows.cuh"

enum { THREADS = 128 };

__global__ void __launch_bounds__(THREADS) embed(Embed e) {
    let_next_begin();
    if ((int)blockIdx.x >= e.step->count) return;
    int node = e.step->first + (int)blockIdx.x;
    const StepNode *n = &step_nodes(e.step)[node];
    for (int i = (int)threadIdx.x; e.table.data && i < e.table.columns; i += THREADS)
        e.hidden[(size_t)node * (size_t)e.table.columns + (size_t)i] = matrix_at(e.table, n->token, i);
    for (int i = (int)threadIdx.x; i < e.pairs; i += THREADS) {
        double angle = n->position * e.frequency[i];
        size_t at = (size_t)node * (size_t)e.pairs + (size_t)i;
        e.cosine[at] = (float)(cos(angle) * e.factor);
        e.sine[at] = (float)(sin(angle) * e.factor);
    }
}

void gpu_embed(const Embed *e, int most, void *stream) {
    LAUNCH(embed, (unsigned)most, THREADS, 0, stream, *e);
}
