// The inputs of a sweep, read and checked before anything starts: models, tokenizers, datasets, prompts as
// ids, and whether each method can be opened; and the hashes that name them.
// Nothing is written: a model to be made is only described, until inputs_make.
#pragma once
#include "engine/decode/method.h"
#include "engine/decode/model_tables.h"
#include "engine/engine.h"
#include "engine/text/template.h"
#include "harness/config/schedule.h"
#include "harness/inputs/models.h"

typedef struct InputContent {
    // weights, draft, adapter_role_name, tokenizer, dataset, template, program, machine, left out
    const char *kind, *name, *path;
    char hash[SHA256_TEXT];
} InputContent;

typedef struct InputModel {
    ModelFiles files;
    Model model, draft;
    ModelWeights weights, draft_weights; // mapped, as the adapters' are, unless the device is null
    Adapter adapters[ADAPTER_ROLES];
    Tokenizer *tokenizer;
    size_t bytes;           // of weights that a step may read; 0 for the null device
    char hash[SHA256_TEXT]; // of weights, tokenizer, draft, adapters
} InputModel;

// A point's step, as its method plans it.
typedef struct PointWork {
    int longest; // tokens that it can emit
    double rows; // of the target, root included
    // Forwards of drafts, and their rows after the first, each counted as the share of the target's
    // parameters that it multiplies.
    double drafts, draft_rows;
    bool reads_prompt; // see method_reads_prompt
} PointWork;

enum {
    INPUT_FILES = 64,
    INPUT_CONTENTS = (4 + ADAPTER_ROLES) * EXPERIMENT_MODELS + 3 * EXPERIMENT_DATASETS + INPUT_FILES + 2
};

typedef struct Inputs {
    const Experiment *experiment;
    const Schedule *schedule;
    const Sweep *sweep;
    char *machine;
    InputModel models[EXPERIMENT_MODELS];
    Dataset datasets[EXPERIMENT_DATASETS];
    // (model, dataset): of the dataset's prompts for the model; NULL: texts as written
    const Template *templates[EXPERIMENT_MODELS][EXPERIMENT_DATASETS];
    char *left_out[EXPERIMENT_DATASETS]; // a text: how many prompts were too long, of how many; NULL: none
    InputContent contents[INPUT_CONTENTS];
    int content_count;
    char *files[INPUT_FILES]; // (file_count) that methods' parameters name: trees, schedules, datastores
    int file_count;
    int *positions;           // (setups): of a context that holds every conversation; see EngineOptions
    double *prefill;          // (groups): tokens that a method reads as prompts in one pass, at most
    char **refusals;          // (points of the schedule): why a point can't run; NULL: it can
    PointWork *work;          // (points of the schedule): of a point that can't run one row
    Rehearsal *rehearsals;    // (setups): cost of opening their methods
    EngineMemory *memory;     // (setups): that the target takes
    const char *cache_option; // as given
    const Team *team;         // see SweepOptions
    char *cache;              // a directory for models and tables that are made once; NULL: none
    char hash[SHA256_TEXT];   // of the sweep and all contents: the run's; empty before inputs_make
} Inputs;

// machine: names the machine, so that its times are never mixed with another's. cache: see models_cache.
// On failure e is filled and `out` is empty. The experiment, the schedule with its sweep, and cache must
// outlive it.
bool inputs_open(Inputs *out, const Experiment *x, const Schedule *s, const char *machine, const char *cache,
                 Error *e);
void inputs_release(Inputs *in); // accepts an empty one

// False with e filled if weights that a setup opens changed since they were hashed.
bool inputs_are_unchanged(const Inputs *in, int setup, Error *e);

// Makes the models that don't exist yet, and names the run.
bool inputs_make(Inputs *in, Progress progress, Error *e);

// Why a point of the schedule can't run, or NULL; and how many points of the sweep can't.
static inline const char *inputs_refusal(const Inputs *in, int point) { return in->refusals[point]; }
int inputs_refused(const Inputs *in);

// How a setup opens its models, and a point its method, in the rehearsal and in the run. `m` is open.
ModelChoice inputs_choice(const Inputs *in, int setup);
MethodEnv inputs_env(const Inputs *in, int point, Models *m, int sequence, const Sampling *sampling);

// The template of a dataset's prompts if the experiment leaves it to the model's files; else NULL.
const Template *inputs_own_template(const Inputs *in, int model, int dataset);

// How a GPU rounds a model's weights as it loads them with these settings, "f16 to bf16"; NULL: it doesn't.
const char *inputs_rounding(const Inputs *in, int model, const Settings *settings);

// Fills refusals, work and rehearsals: opens each method as the run will, with models that compute nothing.
void inputs_rehearse(Inputs *in);

// work (points of the schedule): the same on every machine, whether it can run a point or not.
void inputs_work(Inputs *in, PointWork *work);

// --- quality --------------------------------------------------------------------------------------------

// How well a model predicts texts, and how much it differs from the model that it was quantised from.
//
// A text is a prompt and what follows it. Every token but the first is predicted from those before it, in
// pieces of at most the sessions' context. The same words are counted in every run: no random numbers.

// Sums over texts; quality_mean and the like make means of them.
typedef struct Quality {
    size_t texts, tokens;       // tokens: predicted ones
    double loss, of_original;   // -ln p of the text's own token
    double divergence;          // of the original's distribution from the model's (Kullback-Leibler), in nats
    size_t same;                // tokens at which both models' likeliest one is the same
    size_t greedy, greedy_same; // tokens that the original writes after the prompts; the model's choice, too
    size_t unbroken;            // of these, tokens before an output's first other choice
} Quality;

// Measures a text of n >= 2 tokens. original: NULL, and the model is measured alone.
bool quality_text(Engine *model, Engine *original, const int *ids, int n, Quality *sum, Error *e);

// The original writes at most `most` tokens after a prompt; the model chooses one at each place of this
// output.
bool quality_greedy(Engine *model, Engine *original, const int *prompt, int n, int most, Quality *sum,
                    Error *e);

// Whether both models give ids the same meaning.
bool quality_comparable(const Engine *model, const Engine *original, Error *e);

void quality_add(Quality *sum, const Quality *part);
