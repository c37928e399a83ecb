// All that a sweep stands on, read and checked before anything starts: models, tokenizers, datasets, prompts
// as ids, what methods need; and the hashes that name it.
#pragma once
#include "datasets/datasets.h"
#include "engine/model/model.h"
#include "engine/text/tokenizer.h"
#include "harness/models/model_files.h"
#include "harness/run/schedule.h"

typedef struct InputContent {
    const char *kind, *name,
        *path; // kind: weights, draft, adapter, heads, tokenizer, dataset, program, machine
    char hash[SHA256_TEXT];
} InputContent;

typedef struct InputModel {
    ModelFiles files;
    Model model; // config.json; no weights
    Tokenizer *tokenizer;
    size_t bytes;           // of weights that a step may read; 0 for a device that has none
    char hash[SHA256_TEXT]; // of weights, tokenizer, draft, adapter, heads
} InputModel;

enum { INPUT_CONTENTS = 5 * EXPERIMENT_MODELS + EXPERIMENT_DATASETS + 2 };

typedef struct Inputs {
    const Experiment *experiment;
    const Schedule *schedule;
    InputModel models[EXPERIMENT_MODELS];
    Dataset datasets[EXPERIMENT_DATASETS];
    InputContent contents[INPUT_CONTENTS];
    int content_count;
    int *positions;         // (setups): of a context that holds every conversation; see EngineOptions
    char hash[SHA256_TEXT]; // of the sweep and all contents: the run's
} Inputs;

// machine: what names the machine, so that its times are never mixed with another's. False with e filled, and
// `out` empty. experiment and schedule outlive it.
bool inputs_open(Inputs *out, const Experiment *x, const Schedule *s, const char *sweep_hash,
                 const char *machine, Error *e);
void inputs_release(Inputs *in); // takes an empty one

// Why a point cannot be run with its model, or NULL.
const char *inputs_skips(const Inputs *in, const Point *p);
