// `outpace train adapter` and `outpace train heads`: models on top of a frozen one's states.
#pragma once
#include "engine/engine.h"
#include "engine/model/identity.h"
#include "harness/program/line.h"
#include "engine/base/args.h"
#include "harness/train/config.h"

// A model that runs in the engine while another learns from it.
typedef struct FrozenModel {
    Engine engine;
    char name[SHA256_TEXT + 32]; // its content, the kernels that run it, and f16
    TargetChoice choice;         // the caller sets its kind
} FrozenModel;

// By the pass, the threads and the context of c.
bool frozen_open(FrozenModel *f, const char *dir, const TrainConfig *c, Line *line, Error *e);
void frozen_close(FrozenModel *f); // takes an empty one

typedef struct TrainAdapterOptions {
    const char *variant, *config, *out, *separator; // config, out, separator: NULL where not given
    int exit_layer, heads, steps, batch;            // steps, batch: 0 where not given
    double rate;                                    // likewise
    Words files;
    int stop_after;
    const char *figure; // as in TrainRun
    bool fresh, force;
} TrainAdapterOptions;

bool train_adapter(const char *model, const TrainAdapterOptions *o, bool heads, int *code, Error *e);
