// Products of rows with weights, by all threads: forward.c multiplies the rows of a panel, experts.c the rows
// that chose an expert.
#pragma once
#include "engine/cpu/work.h"

enum { PRODUCTS = 3, PACKED_ALIGN = 64 };

// Rows of x, and of the outputs, that the same weights multiply.
typedef struct Batch {
    int first, rows;
    const Tensor *w[PRODUCTS];
    int expert; // experts.c
    Packed packed;
} Batch;

typedef struct Products {
    const Work *work;
    void (*ready)(const Work *k, int row, float *x); // fills the row of x; NULL: x is filled already
    float *x;                                        // (rows, columns)
    const int *rows;                                 // the panel's row of each row of x; NULL: the same
    const Tensor *w[PRODUCTS];
    float *y[PRODUCTS]; // (rows, outputs)
    int count;
    Batch *batches; // (batch_count), each with weights of its own; NULL: all rows of the panel, with w
    int batch_count;
    bool residual;      // the outputs are added to the residual stream
    const Tensor *bias; // of the outputs of `residual`
    Rounded what;       // the place of x, for overflows
    bool filled;
    const Tensor *like; // the weights of one packing are multiplied at a time
    int units, least;   // their MATMUL_UNITs in all; how many a thread takes at least
} Products;

void cpu_project(const Products *p);

// How many MATMUL_UNITs of such weights a thread takes at least.
int cpu_least_units(const Tensor *w);

// Runs a task on each row of the panel, by all threads.
typedef void RowTask(const void *argument, int row);
void cpu_each_row(const Work *k, RowTask *task, const void *argument);

// Records an overflow at `place` if one of n numbers becomes infinite in f16; for compute f16 only; and of
// a row of the panel.
void cpu_watch(Cpu *c, const float *x, size_t n, unsigned place);
void cpu_watch_row(const Work *k, int row, const float *x, int n, Rounded what);

// The model's norm of one row; y may be x, bias may have no data.
void cpu_norm(const Cpu *c, const Tensor *weight, const Tensor *bias, const float *x, float *y);
void cpu_norm_layer(const Work *k, Weight which, const float *from, float *x); // the layer's: weight, bias

void cpu_add_bias(const Tensor *bias, float *row); // which may have no data
void cpu_copy_hidden(const Work *k, int row, float *x);

// The MLP's input of a row of the panel.
void cpu_norm_mlp(const Work *k, int row, float *x);

// Adds the panel's rows of `delta` to the residual stream, with a bias (which may have no data), under a norm
// if the layer has it.
void cpu_add_output(const Work *k, const Tensor *bias, Weight post);

// Activates a row of an MLP's products; its width is n.
void cpu_gate(const Work *k, const float *gate, const float *up, int n, float *x);

// Takes c->mixture, the experts' scratch, for `rows` rows of a panel; nothing if the model has none. False if
// memory runs out.
bool cpu_mixture_open(Cpu *c, size_t rows);
void cpu_run_experts(const Work *k); // the layer's MLP, on k's rows
