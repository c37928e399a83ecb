// Arguments of the kernels that rank logits and draw from them (see kernels.h).
#pragma once
#include "engine/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// The best k of each row of logits (rows, stride): largest first, lowest id first among equals.
enum { TOP_SLICES = 16, TOP_MAX = 64, TOPS = PANEL_ROWS * TOP_MAX }; // TOPS: k of all rows together
typedef struct Top {
    const RowList *rows;
    const float *logits;
    int stride, real, k;
    int *id, *slice_id;         // (rows, k), (rows, TOP_SLICES, k)
    float *logit, *slice_logit; // likewise
    unsigned *done;             // (rows)
} Top;
void gpu_top(const Top *t, int most, void *stream);

// ln of the sum of e^(logit - the largest) of each row.
typedef struct LogSums {
    const RowList *rows;
    const float *logits;
    int stride, real;
    float *log_sum; // (rows)
} LogSums;
void gpu_log_sums(const LogSums *l, int most, void *stream);

// The next level of a dynamic tree (Backend.grow): the k nodes of a step that has been copied with chains of
// placeholders get the tokens and parents of the best guesses below the level in front, and their turns the
// keys of their paths.
enum { GROW_MOST = 32 }; // k
typedef struct Grow {
    Step *step;
    int level, k;                 // level: from 1 on
    int end, first;               // what level 1 is below; the sequence's first node in the step area
    int position;                 // of `end`
    const int *id, *names;        // of the level in front, (1 or k, k), as in Top; tokens of ids, or NULL
    const float *logit, *log_sum; // likewise
    float *score;                 // (levels, k): sums of ln p along the nodes' paths
    int *above;                   // (levels, k): their parents, nodes of the level in front
} Grow;
void gpu_grow(const Grow *g, void *stream);

// The likeliest id of each row, as Top's first. Each slice of a row writes a key, 0 if it has no logits. The
// reader takes the largest of a row's keys, so no block waits for another.
enum { BEST_SLICES = 16 };
typedef struct Likeliest {
    const RowList *rows;
    const float *logits;
    int stride, real;
    uint64_t *keys; // (rows, BEST_SLICES)
} Likeliest;
void gpu_likeliest(const Likeliest *l, int most, void *stream);

HOST_AND_DEVICE static inline uint64_t largest_key(const uint64_t keys[BEST_SLICES]) {
    uint64_t best = 0;
    for (int i = 0; i < BEST_SLICES; i++)
        if (keys[i] > best) best = keys[i];
    return best;
}

// Draws from rows of logits (rows, stride), and chances (backend.h, HeadDraws). One copy brings DrawAsks.
typedef struct DrawAsks {
    double inverse, top_p;  // inverse: 1 / temperature
    int top_k, vocab, real; // vocab <= real
    double u[PANEL_ROWS];
    int first[PANEL_ROWS + 1];
    int token[]; // (first[rows])
} DrawAsks;
typedef struct Draw {
    const RowList *rows;
    int row; // the first
    const DrawAsks *asks;
    const float *logits;
    int stride, *drawn;          // drawn: (rows)
    double *chance, *confidence; // (tokens); (rows), or NULL
    float *p;                    // (vocab): the distribution of one row; or NULL
} Draw;
void gpu_draw(const Draw *d, int most, void *stream);

#ifdef __cplusplus
}
#endif
