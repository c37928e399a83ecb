// cuBLASLt through a small table of its functions, loaded on demand. The build doesn't need the library; a
// machine without it has no --math fast.
//
// Names, numbers and layouts are those of NVIDIA's cublasLt.h, unchanged since its version 11. Every call
// returns 0 or a status. Matrices are column after column.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CUBLAS_R_32F = 0,
    CUBLAS_R_16F = 2,
    CUBLAS_R_16BF = 14,
    CUBLAS_COMPUTE_IN_32F = 68,
    CUBLAS_TRANSPOSED = 1,
    CUBLAS_MATMUL_TRANSA = 3,            // attributes of an operation,
    CUBLAS_PREFERENCE_MAX_WORKSPACE = 1, // of a preference
};

// The library's own description of an algorithm, valid only for the shapes of the query.
typedef struct CublasAlgorithm {
    uint64_t data[8];
} CublasAlgorithm;

typedef struct CublasFound {
    CublasAlgorithm algorithm;
    size_t workspace; // bytes that the algorithm needs
    int status;       // 0: usable
    float waves;
    int reserved[4];
} CublasFound;

typedef struct Cublas {
    void *library, *handle;
    char version[24]; // "13.0.0"
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    size_t (*get_version)(void);
    int (*operation_create)(void **operation, int compute, int scale);
    int (*operation_destroy)(void *operation);
    int (*operation_set)(void *operation, int attribute, const void *value, size_t size);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t leading);
    int (*layout_destroy)(void *layout);
    int (*preference_create)(void **preference);
    int (*preference_destroy)(void *preference);
    int (*preference_set)(void *preference, int attribute, const void *value, size_t size);
    int (*find)(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference, int most,
                CublasFound *found, int *count);
    int (*multiply)(void *handle, void *operation, const void *alpha, const void *a, void *a_layout,
                    const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,
                    void *d_layout, const CublasAlgorithm *algorithm, void *workspace, size_t workspace_bytes,
                    void *stream);
} Cublas;

// Finds and opens the library for this thread's device; the error names the places searched.
bool cublas_open(Cublas *c, Error *e);
void cublas_close(Cublas *c); // takes an empty one
