// Products by cuBLASLt, for --math fast: the sums of a row may then depend on the number of rows in the call.
// A separate kernel puts the sums, the same way as after the exact products (put.cuh).
//
// The fastest of the library's algorithms is measured on the card when a shape first occurs, and kept for the
// instance's life. So the first step of a size takes longer, and nothing is measured while a step is
// recorded. If the model has several matrices of a shape, the timed runs take them in turn, so that weights
// come from memory as in a step, not from the cache.
#pragma once
#include "engine/cuda/cublas.h"
#include "engine/cuda/instance.h"

// One shape and its fastest algorithm.
typedef struct FastProduct {
    Dtype dtype;
    int outputs, pitch, rows; // of weights and activations (dtype, pitch); rows: from fast_rows
    void *operation, *weights, *activations, *sums;
    CublasAlgorithm algorithm;
    size_t workspace;
} FastProduct;

typedef struct Fast {
    Cublas library;
    FastProduct *products;
    size_t count, capacity;
    float *results; // (rows, outputs of the widest, up to a multiple of 16)
    void *workspace;
    int status; // the library's first refusal in a product; 0: none
} Fast;

// The rows that a product of `rows` rows is computed with: rounded up, so that few shapes are measured and
// recorded and little is wasted.
static inline int fast_rows(int rows) { return rows <= 8 ? 8 : round_up(rows, rows <= PANEL_ROWS ? 16 : 64); }

Fast *fast_open(Error *e);         // on failure returns NULL and fills e
void fast_close(Fast *f);          // takes NULL; the device must have finished
bool fast_take(Cuda *c, Error *e); // its buffers

// Measures every product of layers [a, b), or of the head, for this number of rows, unless that is done.
bool fast_prepare(Cuda *c, int rows, int a, int b, Error *e);
bool fast_prepare_head(Cuda *c, int rows, Error *e);

// Puts a measured product into the stream; fast_ok reports a refusal.
void fast_multiply(Cuda *c, const Product *p, int rows);
bool fast_ok(const Cuda *c, Error *e);
