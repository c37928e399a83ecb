// Arguments of the kernels that rank logits and draw from them (see kernels.h).
#pragma once
#include "engine/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// The best k of each row of logits (rows, stride): largest first, lowest id first among equals.
enum { TOP_SLICES = 16, TOP_MAX = 64 };
typedef struct Top {
    const RowList *rows;
    const float *logits;
    int stride, real, k;
    int *id, *slice_id;         // (rows, k), (rows, TOP_SLICES, k)
    float *logit, *slice_logit; // likewise
    unsigned *done;             // (rows)
} Top;
void gpu_top(const Top *t, int most, void *stream);

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
