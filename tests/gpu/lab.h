// The lab's table: a row for each way to do a job that others do, too. A new kernel is a function and a row;
// where it wins, it enters the engine, and `cut` is how a file of choices (engine/cuda/kernels/choices.c) asks for
// it.
#pragma once
#include "engine/cuda/kernels/product.h"

typedef void LabRun(const Product *p, int most, const GpuFacts *card, void *stream);
typedef struct LabVariant {
    const char *name;
    LabRun *run;
    const char *shape; // the only one of a model's that it's for; NULL: all
    int least, most;   // rows
    Cutting cut;       // CUT_BY_ROWS: today's kernel, or one that the engine doesn't have
} LabVariant;

typedef struct LabShape {
    const char *name;
    int outputs, inputs;
} LabShape;

// A model's products, the same in each of its layers. A model is a row, too.
enum { LAB_SHAPES = 4 };
typedef struct LabModel {
    const char *name;
    LabShape shape[LAB_SHAPES];
} LabModel;
