// `outpace train adapter` and `outpace train heads`: models on top of a frozen one's states.
#pragma once
#include "engine/base/error.h"
#include "harness/program/options.h"

typedef struct TrainAdapterOptions {
    const char *variant, *config, *out, *separator; // config, out, separator: NULL where not given
    int exit_layer, heads, steps, batch;            // steps, batch: 0 where not given
    double rate;                                    // likewise
    OptionList files;
    int stop_after;
    bool fresh, force;
} TrainAdapterOptions;

bool train_adapter(const char *model, const TrainAdapterOptions *o, bool heads, int *code, Error *e);
