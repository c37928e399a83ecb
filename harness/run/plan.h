// From a config's text to a checked plan: the points to measure, their order, and everything they need
// (inputs.h). The commands run and plan share all of it. Nothing is written.
#pragma once
#include "harness/inputs/inputs.h"
#include "harness/machine/machine.h"

// The command line's changes to the config.
typedef struct SweepOptions {
    Words sets;
    const char *scale, *model, *device, *threads, *cache, *db;
    const char *shard; // "i/n"; NULL: the task of a Slurm array, or all
    const Team *team;  // processes that share lookahead's steps; NULL: this one only
} SweepOptions;

// clang-format off
#define SWEEP_OPTIONS(AT) \
    {"scale", ARG_WORD, AT(sweep.scale), .help = "small: published models; smoke: stand-ins, in minutes", \
     .value = "small|smoke|full", .fallback = "full"}, \
    {"set", ARG_WORDS, AT(sweep.sets), .help = "change the config; repeatable", .value = "a.b=VALUE"}, \
    {"model", ARG_WORD, AT(sweep.model), .help = "in place of the config's models", \
     .value = "target=DIR[,draft=DIR,...]"}, \
    {"threads", ARG_WORD, AT(sweep.threads), .help = "the same as --set hardware.threads=N", .value = "N", \
     .fallback = "the config's"}, \
    {"device", ARG_WORD, AT(sweep.device), .help = "the same as --set hardware.device=NAME", \
     .value = "NAME", .fallback = "the config's"}, \
    {"shard", ARG_WORD, AT(sweep.shard), .help = "the i-th of n parts of about the same cost", \
     .value = "i/n", .fallback = "the task of a Slurm array, else all"}, \
    CACHE_OPTION(AT(sweep.cache)), \
    {"db", ARG_WORD, AT(sweep.db), .help = "the store; a part has outpace.i-n.db", .value = "FILE", \
     .fallback = STORE_DEFAULT, .literal = true}
// clang-format on

typedef struct Plan {
    char *config, *file; // the config's text and name
    char *overrides;     // a JSON array of the words that change it
    const char *cache;   // see models_cache
    ExperimentChanges changes;
    Words sets; // including those of --threads and --device
    char *threads, *device;
    int shard, shards; // which part, from 0, and of how many
    char *db;          // of a part, in place of the default; NULL: as the options have it
    Experiment experiment;
    Sweep sweep;
    Schedule schedule;
    Inputs inputs;
    Machine machine;
} Plan;

// `file`: a path or a shipped config's name. On failure `out` is empty. It can't move or outlive the options.
bool plan_open(Plan *out, const char *file, const SweepOptions *o, Error *e);

// From a config's text; `file` is its name in messages. The options may go.
bool plan_parse(Plan *out, const char *config, const char *file, const SweepOptions *o, Error *e);
// From the config of a stored run, with its overrides; `given` has only cache and team.
bool plan_reopen(Plan *out, const char *config, const char *file, const char *overrides,
                 const SweepOptions *given, Error *e);
void plan_release(Plan *p); // accepts an empty one

// How a stored run is measured, and the points of the sweep whose part it is: reads these texts alone.
bool plan_measurement(const char *config, const char *file, const char *words, Measurement *out, int *points,
                      Error *e);

// Cuts the whole plan into parts of about the same cost: shard_of (points of the sweep), from 0.
void plan_shards(Plan *p, int shards, int *shard_of);

void plan_warn(const Plan *p);                // on stderr: datasets that differ from the published ones
void plan_warn_memory(const Plan *p);         // models that are larger than this machine's free memory
void plan_refusals(const Plan *p, Text *out); // appends a line for each point that can't run, with the reason
