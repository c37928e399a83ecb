// All that a sweep stands on, read and checked before anything starts: models, tokenizers, datasets, prompts
// as ids, whether each method can be opened; and the hashes that name it.
//
// Nothing is written: a model that is to be made first is only described, until inputs_make makes it.
#pragma once
#include "datasets/datasets.h"
#include "engine/model/model.h"
#include "engine/text/tokenizer.h"
#include "engine/decode/model_tables.h"
#include "harness/models/model_files.h"
#include "harness/models/models.h"
#include "harness/run/schedule.h"

typedef struct InputContent {
    const char *kind, *name,
        *path; // kind: weights, draft, adapter, heads, tokenizer, dataset, template, program, machine, left
               // out
    char hash[SHA256_TEXT];
} InputContent;

typedef struct InputModel {
    ModelFiles files;
    Model model, draft;     // draft: config.json; no weights
    Adapter adapter, heads; // likewise
    Tokenizer *tokenizer;
    size_t bytes;           // of weights that a step may read; 0 for a device that has none
    char hash[SHA256_TEXT]; // of weights, tokenizer, draft, adapter, heads
} InputModel;

enum { INPUT_CONTENTS = 5 * EXPERIMENT_MODELS + 3 * EXPERIMENT_DATASETS + 2 };

typedef struct Inputs {
    const Experiment *experiment;
    const Schedule *schedule;
    const char *sweep_hash;
    char *machine;
    InputModel models[EXPERIMENT_MODELS];
    Dataset datasets[EXPERIMENT_DATASETS];
    char *left_out[EXPERIMENT_DATASETS]; // how many prompts were too long, and of how many; NULL: none
    InputContent contents[INPUT_CONTENTS];
    int content_count;
    int *positions;           // (setups): of a context that holds every conversation; see EngineOptions
    double *prefill;          // (groups): tokens that a method reads as prompts in one pass, at most
    char **refusals;          // (points of the schedule): why it cannot be run, NULL: it can
    Rehearsal *rehearsals;    // (setups): what opening their methods takes
    const char *cache_option; // as given
    char *cache;              // a directory for what is made once; NULL: none
    char hash[SHA256_TEXT];   // of the sweep and all contents: the run's; empty before inputs_make
} Inputs;

// machine: what names the machine, so that its times are never mixed with another's. cache: see facts_cache.
// False with e filled, and `out` empty. The experiment, the schedule, sweep_hash and cache outlive it.
bool inputs_open(Inputs *out, const Experiment *x, const Schedule *s, const char *sweep_hash,
                 const char *machine, const char *cache, Error *e);
void inputs_release(Inputs *in); // takes an empty one

// Makes the models that are not there yet, and names the run. False with e filled.
bool inputs_make(Inputs *in, Progress progress, Error *e);
bool inputs_unmade(const Inputs *in); // whether there are any

// Why a point of the schedule cannot be run, or NULL; how many of the sweep's cannot.
static inline const char *inputs_refusal(const Inputs *in, int point) { return in->refusals[point]; }
int inputs_refused(const Inputs *in);

// How a setup opens its models, and a point its method: rehearsed, and then run. `m` is open.
ModelChoice inputs_choice(const Inputs *in, int setup);
MethodEnv inputs_env(const Inputs *in, int point, Models *m, const Sampling *sampling);

// How a GPU rounds a model's weights as it loads them for these settings, "f16 to bf16"; NULL: it does not.
const char *inputs_rounding(const Inputs *in, int model, const Settings *settings);

// Fills refusals and rehearsals: opens each method as the run will, but with models that compute nothing.
bool inputs_rehearse(Inputs *in, Error *e);
