// The arguments of the kernels of a layer with experts (engine/core/experts.h), in their order. A row has a
// slot for each expert that it chose; an expert's slots are neighbours, from a multiple of 8 on.
#pragma once
#include "engine/cuda/kernels/product.h"

#ifdef __cplusplus
extern "C" {
#endif

// The device memory of a step's layers with experts.
typedef struct ExpertBuffers {
    float *logits; // (rows, experts and 1)
    int *expert;   // (rows, chosen), as weight and slot
    float *weight;
    int *slot;
    Slice *slices;  // (experts)
    float *outputs; // (slots, width)
} ExpertBuffers;

// Each row's experts, in ascending order, and their weights.
typedef struct Choose {
    const RowList *rows;
    const float *logits; // (rows, stride): of experts
    int stride;
    Experts experts;
    int *expert;   // (rows, chosen)
    float *weight; // (rows, chosen)
} Choose;
void gpu_choose(const Choose *c, int most, void *stream);

// The slots.
typedef struct Sort {
    const RowList *rows;
    Experts experts;
    const int *expert; // (rows, chosen)
    int *slot;         // (rows, chosen)
    Slice *slices;     // (experts)
} Sort;
void gpu_sort(const Sort *s, void *stream);

// Copies each row's activations to its slots.
typedef struct Gather {
    const RowList *rows;
    int chosen;
    const int *slot;
    Activations from, to; // of the same form and pitch
} Gather;
void gpu_gather(const Gather *g, int most, void *stream);

// Adds up each row's outputs: the shared MLP's, then its experts' in ascending order.
typedef struct Mix {
    const RowList *rows;
    Experts experts;
    const int *slot;
    const float *weight, *outputs; // (rows, chosen); (slots, width)
    const float *logits;           // of the shared MLP's weight, (rows, stride) from its first; NULL: 1
    int stride, width;
    float *sums;   // (rows, width): the shared MLP's outputs if there is one; then the sums
    float *hidden; // (nodes, width): the sums times `scale` are added here; NULL: they are stored
    float scale;
} Mix;
void gpu_mix(const Mix *m, int most, void *stream);

#ifdef __cplusplus
}
#endif
