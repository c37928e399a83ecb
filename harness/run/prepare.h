// From a config's text to a checked sweep: what run, validate and plan do first, alike.
#pragma once
#include "harness/models/facts.h"
#include "harness/run/inputs.h"
#include "harness/machine/machine.h"

// What the command line says beside the config.
typedef struct SweepOptions {
    Words sets;
    const char *scale, *model, *device, *cache, *db;
    int threads; // below 0: as the config says
} SweepOptions;

#define SWEEP_OPTIONS(AT)                                                                                  \
    {"scale",                                                                                              \
     ARG_WORD,                                                                                             \
     AT(sweep.scale),                                                                                      \
     .help = "smoke: what the config says of it, in minutes on two cores",                                 \
     .value = "smoke|full",                                                                                \
     .fallback = "full"},                                                                                  \
        {"set", ARG_WORDS, AT(sweep.sets), .help = "change the config; repeatable", .value = "a.b=VALUE"}, \
        {"model", ARG_WORD, AT(sweep.model), .help = "in place of the config's models",                    \
         .value = "target=DIR[,draft=DIR,...]"},                                                           \
        {"threads",                                                                                        \
         ARG_INT,                                                                                          \
         AT(sweep.threads),                                                                                \
         0,                                                                                                \
         1024,                                                                                             \
         "the config's",                                                                                   \
         .help = "the same as --set hardware.threads=N",                                                   \
         .value = "N"},                                                                                    \
        {"device",         ARG_WORD,                                                                       \
         AT(sweep.device), .help = "the same as --set hardware.device=NAME",                               \
         .value = "NAME",  .fallback = "the config's"},                                                    \
        CACHE_OPTION(AT(sweep.cache)), {                                                                   \
        "db", ARG_WORD, AT(sweep.db), .help = "the store", .value = "FILE", .fallback = STORE_DEFAULT      \
    }

typedef struct Prepared {
    char *config, *file; // the config's text, and what it is called
    char *overrides;     // a JSON array of the words that change it
    const char *cache;   // see facts_cache
    ExperimentChanges changes;
    Words sets; // with what --threads and --device stand for
    char *threads, *device;
    Experiment experiment;
    Sweep sweep;
    Schedule schedule;
    Inputs inputs;
    Machine machine;
} Prepared;

// Reads `file`. False with e filled, and `out` empty. The options outlive it; `out` may not move.
bool prepare_file(Prepared *out, const char *file, const SweepOptions *o, Error *e);

// The config of a stored run, with the overrides that it was run with.
bool prepare_text(Prepared *out, const char *config, const char *file, const char *overrides,
                  const char *cache, Error *e);

// Says on stderr which datasets are not as they were published.
void prepare_warn(const Prepared *p);
void prepare_release(Prepared *p); // takes an empty one

// A line for each point that cannot be run: which, and why.
bool prepare_refusals(const Prepared *p, Text *out, Error *e);
