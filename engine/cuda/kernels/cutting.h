// How the rows of a packed product are cut into blocks: all ways give the same bits. NARROW is for up to 16
// rows, the others for as many as they are named after, 128 for any number; DEEP has a processor to itself
// and fetches further ahead. WIDE ones are for any number, on 9.0 (product_wide.cu): 128 or 192 rows of
// weights a block, or whichever of them should be the fastest. Codes have one cut for all of these.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>

typedef enum {
    CUT_BY_ROWS,
    CUT_NARROW,
    CUT_32,
    CUT_32_DEEP,
    CUT_64,
    CUT_64_DEEP,
    CUT_128,
    CUT_128_DEEP,
    CUT_WIDE,
    CUT_WIDE_128,
    CUT_WIDE_128_DEEP,
    CUT_WIDE_192,
    CUTS
} Cutting;
enum { CUT_SIZES = 7 }; // of the rows that a launch is sized by: 8, 16, .. 512

static inline int cut_size(int most) {
    int i = 0;
    while (i < CUT_SIZES - 1 && most > 8 << i) i++;
    return i;
}

#ifdef __cplusplus
extern "C" {
#endif
bool gpu_cut_takes(Cutting cut, int most); // whether it is for so many rows

// The fastest ways, as measured (choices.c).
enum { CHOICES_MOST = 512 };
typedef struct Choice {
    int outputs, inputs, bits, rows, cut;
} Choice;
typedef struct Choices {
    int count;
    Choice choice[CHOICES_MOST];
} Choices;

bool choices_read(Choices *c, Error *e); // none without a file
struct Matrix;
// OUTPACE_WIDE=1: CUT_WIDE above 16 rows, of codes above 8, where no line says otherwise.
void choices_apply(const Choices *c, struct Matrix *m);
#ifdef __cplusplus
}
#endif
