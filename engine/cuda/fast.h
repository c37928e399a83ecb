// Products by cuBLASLt, for --math fast: the sums of a row may then depend on how many rows go along. What
// becomes of the sums is the same as in the exact products (put.cuh), in a kernel of its own.
//
// Which of the library's algorithms is fastest is measured on the card when a shape first comes, and kept for
// the instance's life: the first step of a size takes longer, and nothing is measured while a step is
// recorded. Where the model has several matrices of a shape, runs take turns with them, so that weights come
// from memory as in a step, not from the cache.
#pragma once
#include "engine/cuda/cublas.h"
#include "engine/cuda/instance.h"

// One shape, with the way that was fastest.
typedef struct FastProduct {
    Dtype dtype;
    int outputs, pitch, rows; // of weights and activations (dtype, pitch); rows: as fast_rows gives them
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

// The number of rows that a product of `rows` rows is done with: few shapes are measured and recorded, and
// little is wasted.
int fast_rows(int rows);

Fast *fast_open(Error *e); // NULL with e filled
void fast_close(Fast *f);  // takes NULL; when the device has finished
bool fast_take(Cuda *c, Error *e);

// Has every product of layers [a, b), or of the head, measured for this number of rows.
bool fast_prepare(Cuda *c, int rows, int a, int b, Error *e);
bool fast_prepare_head(Cuda *c, int rows, Error *e);

// Puts a measured product into the stream; a refusal shows in fast_ok.
void fast_multiply(Cuda *c, const Product *p, int rows);
bool fast_ok(const Cuda *c, Error *e);
