// The forms of products, and activations packed for them; part of each kernel set (see lanes.h).
//
// Groups have up to BLOCK_ROWS rows, in steps of LANE_PAIRS columns one after another, so that the inner loop
// reads one stream. Groups are as even as possible: with few rows a step loads about as much as it
// multiplies, so that 4 and 4 rows take three quarters of the time of 6 and 2. For bf16 weights a step of
// floats has its even columns, then its odd ones; if the set multiplies pairs of bf16, a step is 32 of them
// in order. Columns are padded with zeros.
//
//      group of rows r0 r1 .. | step 0: r0's 32, r1's 32, .. | step 1: r0's 32, ..
#pragma once
#include "engine/cpu/kernels/lanes.h"
#include "engine/cpu/kernels/ops.h"

// The way of a product, by the weights' type and the rounding of activations.
typedef enum { FORM_F32, FORM_F16, FORM_BF16, FORM_PAIRS } Form;

static inline Form packed_form(const Packed *p) {
    if (p->weights == DTYPE_F32) return FORM_F32;
    if (p->weights == DTYPE_F16) return FORM_F16;
    return HAS_PAIRS && p->compute == COMPUTE_BF16 ? FORM_PAIRS : FORM_BF16;
}

static inline int padded_columns(int columns) { return (columns + LANE_PAIRS - 1) / LANE_PAIRS * LANE_PAIRS; }

// Bytes of a weight; of a step of a packed row; of the row.
static inline size_t weight_bytes(Form form) { return form == FORM_F32 ? sizeof(float) : sizeof(uint16_t); }
static inline size_t step_bytes(Form form) {
    return LANE_PAIRS * (form == FORM_PAIRS ? sizeof(uint16_t) : sizeof(float));
}
static inline size_t row_bytes(Form form, int columns) {
    return (size_t)padded_columns(columns) / LANE_PAIRS * step_bytes(form);
}

static inline int group_count(int rows) { return (rows + BLOCK_ROWS - 1) / BLOCK_ROWS; }
static inline int group_first(int rows, int group) { return rows * group / group_count(rows); }
static inline int group_of(int rows, int row) { return ((row + 1) * group_count(rows) - 1) / rows; }

// Packs one step of one row, n <= LANE_PAIRS columns; the rest are zeros.
static inline void pack_step(const float *x, int n, const Packed *p, Form form, void *to) {
    float step[LANE_PAIRS] = {0};
    memcpy(step, x, (size_t)n * sizeof *x);
    if (form == FORM_PAIRS) {
        uint16_t half[LANE_PAIRS] = {0};
        for (int i = 0; i < LANE_PAIRS; i++) half[i] = f32_to_bf16(step[i]);
        memcpy(to, half, sizeof half);
        return;
    }
    if (p->compute == COMPUTE_BF16)
        for (int i = 0; i < LANE_PAIRS; i++) step[i] = bf16_round(step[i]);
    if (p->compute == COMPUTE_F16)
        for (int i = 0; i < LANE_PAIRS; i++) step[i] = f16_round(step[i]);
    if (form != FORM_BF16) {
        memcpy(to, step, sizeof step);
        return;
    }
    float *even = to;
    for (int i = 0; i < LANES; i++) {
        even[i] = step[2 * i];
        even[LANES + i] = step[2 * i + 1];
    }
}

static inline void pack_values(const float *x, const Packed *p, int first, int last) {
    Form form = packed_form(p);
    int columns = p->columns;
    for (int r = first; r < last; r++) {
        int group = group_of(p->rows, r), first_row = group_first(p->rows, group);
        int rows = group_first(p->rows, group + 1) - first_row;
        unsigned char *to = (unsigned char *)p->data + (size_t)first_row * row_bytes(form, columns) +
                            (size_t)(r - first_row) * step_bytes(form);
        const float *from = x + (size_t)r * (size_t)columns;
        for (int k = 0; k < columns; k += LANE_PAIRS, to += (size_t)rows * step_bytes(form))
            pack_step(from + k, columns - k < LANE_PAIRS ? columns - k : LANE_PAIRS, p, form, to);
    }
}
