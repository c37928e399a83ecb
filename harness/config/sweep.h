// The points of an experiment: every model, dataset, method and combination of axes that its config asks for.
// A pure function of the config: the same config gives the same points in the same order, with the same
// hashes.
//
// Order, the last varying fastest: models, datasets and methods as written; the settings that the experiment
// varies, in the order of settings.c; the method's matrix as written; its zips as written. A setting that is
// an axis of the method replaces the experiment's.
#pragma once
#include "harness/config/experiment.h"
#include "results/record.h"

enum { SWEEP_MAX = 1 << 15 }; // points

typedef struct Point {
    int number;                 // from 0, in the whole sweep; of an added baseline, beyond all of them
    int model, dataset, method; // which of the config's
    Settings settings;
    bool warm;              // it keeps state from prompt to prompt
    char *decoder;          // "lookahead:W=15,...", all parameters, as method_open takes it
    char hash[SHA256_TEXT]; // of everything that affects the measurement: not names or labels
} Point;

typedef struct Sweep {
    Point *points; // (count)
    int count;
    int excluded;           // combinations that an `exclude where` took away
    int repeated;           // duplicates of earlier points, dropped
    char hash[SHA256_TEXT]; // of the points, in order, and of how they are measured
    int total;              // points before a cut
    int shard, shards;      // which part this is, from 0, and of how many; 0 of 1: all of it
    // Of all the points, whatever the cut: whether any runs the model on a device that computes, and on the
    // dataset.
    bool computes[EXPERIMENT_MODELS], reads[EXPERIMENT_MODELS][EXPERIMENT_DATASETS];
} Sweep;

// False with e filled, and an empty sweep.
bool sweep_expand(const Experiment *x, Sweep *out, Error *e);
void sweep_release(Sweep *s); // takes an empty one

// Leaves one part of several: the points with shard_of[i] == shard. Numbers and the hash stay those of all.
void sweep_cut(Sweep *s, const int *shard_of, int shard, int shards);

// The text whose SHA-256 is the point's hash, one line per fact. Texts carry their length, so that no value
// can look like two facts.
void sweep_describe(const Experiment *x, const Point *p, Text *out);

// --- a point's name in tables, and its parameters one by one

typedef struct PointName {
    const char *method;
    Text label;         // the config's label, or the method; with the parameters that the config gives it
    StoreParam *params; // (param_count), with room for one more: of the method, hardware, generation
    int param_count;
    char *texts; // that params point to
} PointName;

void point_name(const Experiment *x, const Point *p, PointName *out);
void point_name_release(PointName *n); // takes an empty one

// --- conditions (condition.c), as `exclude where` takes them
//
//   W > 15 and not (G == 3 or mode == reference)
//
// Comparisons (== != < <= > >=) between parameters, numbers and words; `and`, `or`, `not`, parentheses. `not`
// binds closest, then `and`. Words are equal or not, and have no order; a word that the parameter can never
// be is an error, so that a slip of the pen does not silently exclude nothing.

enum { CONDITION_BYTES = 1000 };

// A value that can be compared: a number, or a word (text not NULL).
typedef struct Variable {
    const char *name;
    double number;
    const char *text;
    const char *const *choices; // all that text can be, ending in NULL; NULL: anything
} Variable;

typedef struct Scope {
    const Variable *variables;
    size_t count;
} Scope;

extern const char *const condition_on_off[]; // the choices of a switch; true and false mean them, too

// All of the text is checked, whatever the outcome. False with e filled: the reason, without its place.
bool condition_holds(const char *text, const Scope *scope, bool *holds, Error *e);
