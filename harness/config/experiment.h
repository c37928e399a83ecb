// An experiment: a YAML file read into plain structs, by tables of fields (experiment.c), with
// overrides. configs/README.md shows all keys.
//
// Texts and nodes belong to the tree, which lives until experiment_release. Each struct begins with its
// place.
#pragma once
#include "engine/model/adapter.h"
#include "datasets/datasets.h"
#include "engine/decode/method.h"
#include "harness/config/settings.h"
#include "harness/config/values.h"
#include "harness/config/yaml.h"

#include <jansson.h>
#include <stdbool.h>

enum { EXPERIMENT_MODELS = 32, EXPERIMENT_DATASETS = 32, EXPERIMENT_METHODS = 64, EXPERIMENT_SCALES = 2 };

#define INFLATE_NONE "none"

// One of target, reference and synthesise names the model.
typedef struct ModelSpec {
    const YamlNode *at;
    const char *name;                    // in tables; by default the target, reference or shape
    const char *target;                  // a model directory
    const char *reference;               // a member of the reference family (models/)
    const char *synthesise;              // a shape (configs/shapes), with random weights
    const char *inflate;                 // a shape to which target or reference is inflated; NULL: as it is
    int inflate_first;                   // so many of its layers stay the first (model/make/placement.h)
    const char *draft;                   // a directory; NULL: none
    const char *adapters[ADAPTER_ROLES]; // a directory each; NULL: none
    const char *inflate_draft;           // a shape for the draft of an inflated model; INFLATE_NONE: as it is
    const char *draft_device;            // NULL: the target's, of several cards the last
    const char *template; // chat template, for datasets whose own is TEMPLATE_OF_MODEL; NULL: its files'
    uint64_t seed;        // of random weights
} ModelSpec;

typedef struct DatasetSpec {
    const YamlNode *at;
    const char *name;     // a dataset that is known, or of `path`
    const char *path;     // a file; NULL: known by its name
    const char *format;   // of path; NULL: by its ending
    const char *split;    // NULL: all
    const char *template; // chat template, or TEMPLATE_OF_MODEL; NULL: texts as written
    Words parts;          // names of datasets to concatenate, `limit` rows of each; none: it is one itself
    int limit;            // rows; 0: all
    int turns;            // of a conversation, at most
    int order;            // DatasetOrder
    int too_long;    // a prompt that a model's context does not hold: 0 is a mistake, 1 is left out of all
    int consecutive; // BY_TASK: rows of a part before the next part's
    uint64_t seed;   // of SHUFFLED
} DatasetSpec;

typedef struct MethodSpec {
    const YamlNode *at;
    const char *name; // "NAME", or "NAME:k=v,..." as on the command line
    const MethodInfo *info;
    const char *params;      // of the name; ""
    const char *label;       // in tables; NULL: name and parameters
    YamlNode *matrix, *zip;  // axes, values written out; NULL: none. zip: a map, or a list of maps
    const YamlNode *exclude; // "exclude where": a condition (sweep.h), or a list of them; NULL: none
} MethodSpec;

typedef enum { STOP_PASSES, STOP_TIMING } StopRule;

typedef struct Measurement {
    const YamlNode *at;
    int warmup;              // prompts before the first that counts
    int passes, most_passes; // most: under STOP_TIMING
    int reruns;              // of passes that keep state and were disturbed
    int stop;                // StopRule
    double timing_error;     // relative, within a prompt; STOP_TIMING ends there
    double time_limit;       // seconds a point; 0: none
} Measurement;

typedef struct Experiment {
    const YamlNode *at;
    const char *name, *about;
    Words tables, plots; // that it is for
    Words chosen;        // choices where the paper is silent
    ModelSpec models[EXPERIMENT_MODELS];
    DatasetSpec datasets[EXPERIMENT_DATASETS];
    MethodSpec methods[EXPERIMENT_METHODS];
    int model_count, dataset_count, method_count;
    YamlNode *settings[SETTINGS_SECTIONS]; // axes of the whole experiment, values written out; NULL: none
    Measurement measurement;
    YamlNode *scales[EXPERIMENT_SCALES]; // the differences at each smaller one; NULL: none
    YamlTree tree;
} Experiment;

// Changes from the command line, in this order: scale, model, sets.
typedef struct ExperimentChanges {
    const Words *sets; // "path=value" each (yaml_set), in order; NULL: none
    const char *model; // "target=DIR[,draft=DIR,...]" in place of all models; NULL: as written
    const char *
        scale; // one of experiment_scales: with the config's section of that name; NULL or "full": as written
} ExperimentChanges;

extern const ArgTable experiment_keys; // all that a config may hold

// The same as a JSON Schema (draft 7), for editors; for json_decref. From these tables, so that it can't
// drift (schema.c).
json_t *config_schema(void);

// False with e filled, and an empty config. `changes` may be NULL. The config's section for another scale is
// checked, too.
bool experiment_parse(Experiment *x, const char *bytes, size_t n, const char *file,
                      const ExperimentChanges *changes, Error *e);
bool experiment_open(Experiment *x, const char *path, const ExperimentChanges *changes, Error *e);
// The chat template of a dataset's prompts for a model, which by default is the model's if they ask: its
// name, TEMPLATE_OF_MODEL if that is left to the model's files, or NULL for none.
const char *experiment_template(const Experiment *x, int model, int dataset, bool asks);
void experiment_release(Experiment *x); // takes an empty one

// --- smaller scales

#define SCALE_SMALL "small" // published small models, on two cores
#define SCALE_SMOKE "smoke" // stand-ins, in minutes

extern const char *const experiment_scales[EXPERIMENT_SCALES];

// scale: "full" or NULL, which changes nothing, or one of those. Below its section nothing is left then.
bool scale_apply(YamlTree *t, const char *scale, Error *e);
