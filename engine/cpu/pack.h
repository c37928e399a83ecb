// Activations as products in lanes read them; part of each kernel set (see product.h).
//
// Activations are packed BLOCK_ROWS rows together, steps of LANE_PAIRS columns behind each other, so that the
// inner loop reads one stream. In front of bf16 weights a step holds its even columns, then its odd ones.
// Columns are filled up with zeros.
//
//      group of rows r0 r1 .. | step 0: r0's 32, r1's 32, .. | step 1: r0's 32, ..
#pragma once
#include "engine/cpu/lanes.h"
#include "engine/cpu/ops.h"

static inline int padded_columns(int columns) { return (columns + LANE_PAIRS - 1) / LANE_PAIRS * LANE_PAIRS; }

static inline size_t packed_bytes(int rows, int columns) {
    return (size_t)rows * (size_t)padded_columns(columns) * sizeof(float);
}

// One step of one row: n of its LANE_PAIRS columns are there.
static inline void pack_step(const float *x, int n, const Packed *p, float *to) {
    float step[LANE_PAIRS] = {0};
    memcpy(step, x, (size_t)n * sizeof *x);
    if (p->compute == COMPUTE_BF16)
        for (int i = 0; i < LANE_PAIRS; i++) step[i] = bf16_round(step[i]);
    if (p->weights != DTYPE_BF16) memcpy(to, step, sizeof step);
    else
        for (int i = 0; i < LANES; i++) {
            to[i] = step[2 * i];
            to[LANES + i] = step[2 * i + 1];
        }
}

static inline void pack(const float *x, const Packed *p, int first, int last) {
    int columns = p->columns;
    for (int r = first; r < last; r++) {
        int group = r / BLOCK_ROWS * BLOCK_ROWS, rows = p->rows - group;
        if (rows > BLOCK_ROWS) rows = BLOCK_ROWS;
        float *to = (float *)p->data + (size_t)group * (size_t)padded_columns(columns) +
                    (size_t)(r - group) * LANE_PAIRS;
        const float *from = x + (size_t)r * (size_t)columns;
        for (int k = 0; k < columns; k += LANE_PAIRS, to += rows * LANE_PAIRS)
            pack_step(from + k, columns - k < LANE_PAIRS ? columns - k : LANE_PAIRS, p, to);
    }
}
