// A stored run's expected result on another machine, as `outpace simulate` prints it and figures draw
// it.
#pragma once
#include "engine/base/error.h"
#include "engine/base/json.h"
#include "engine/base/ranges.h"
#include "engine/base/text.h"
#include "harness/cli/table.h"
#include "harness/price/simulation.h"

#include <stdbool.h>
#include <stdint.h>

// As on the command line; NULL: not given.
typedef struct PredictionArguments {
    const char *on, *shape;  // needed
    const char *beside;      // another target, priced too; figures draw both
    const char *draft_shape; // of the draft model, for points that run one
    const char *against,
        *against_db;            // a run of the same points measured there, and its store (else the run's)
    const char *batch, *bits;   // lists: every sequence a step of so many, weights of so many bits
    const char *devices, *link; // strong scaling: how many, and what joins them
    double cut;                 // see Devices
} PredictionArguments;

// The options of a command that prices a whole run; NULL fields are not given.
#define PRICED_OPTIONS(AT, of)                                                                            \
    {"on", ARG_WORD, AT(of.on), .help = "price the steps there, too ('outpace simulate')",                \
     .value = "MACHINE"},                                                                                 \
        {"shape", ARG_WORD, AT(of.shape), .help = "of the target there", .value = "SHAPE"}, {             \
        "draft-shape", ARG_WORD, AT(of.draft_shape), .help = "of the draft model there", .value = "SHAPE" \
    }

// The run's points with one batch and one width of weights.
typedef struct PredictionCell {
    int batch; // 0: each point's own
    int bits;
    Simulation points;
} PredictionCell;

typedef struct Prediction {
    const PredictionArguments *of;
    Store *store;
    Pricing pricing; // of the target with 16 bits
    IntList batches, bits;
    IntList devices; // of none: no strong scaling
    Link link;
    PredictionCell *cells; // (count): for each of bits, each of batches
    int count;
} Prediction;

// With the cell's batch and bits.
Pricing prediction_pricing(const Prediction *p, const PredictionCell *cell);

// Of the run (stored_run). Mistakes of the command line come before those of the store, which is opened
// between. Release also what failed.
bool prediction_asked(const PredictionArguments *a, bool *asked, Error *e); // fails without a shape
bool prediction_read(const PredictionArguments *a, Prediction *out, Error *e);
bool prediction_make(Prediction *p, Store *store, int64_t run, Error *e);
void prediction_release(Prediction *p);

// The rows of these tables: points; each point of lookahead over each number of devices (one cell then).
extern const TableForm prediction_points, prediction_scaling;
void prediction_put_points(const Prediction *p, RecordTable *t);
bool prediction_put_scaling(const Prediction *p, RecordTable *t, Error *e);

// All of it as one JSON object; NULL with e filled.
json_t *prediction_json(const Prediction *p, Error *e);

// --- published lengths ----------------------------------------------------------------------------------

// Mean lengths of guesses that others published, priced on a machine: how many tokens to draft there. A file
// of them has, for a model and a mode, tokens a step by how many are drafted:
//
//      kimi-k2.5:
//        thinking_on:
//          1: 1.83
//          2: 2.43
enum { LENGTHS_MOST = 512, DRAFTED_MOST = 64 };

// Texts are the tree's.
typedef struct PublishedLength {
    const char *model, *mode;
    int drafted;
    double length; // tokens a step, the model's own included
} PublishedLength;

typedef struct PublishedLengths {
    PublishedLength *items; // (count) as in the file
    int count;
    struct YamlTree *tree; // harness/config/yaml.h
} PublishedLengths;

// False with e filled, at the place of the mistake. Release takes an empty one.
bool lengths_open(const char *path, PublishedLengths *out, Error *e);
void lengths_release(PublishedLengths *l);

// How a draft is priced, beside the prediction's own arguments.
typedef struct LengthsPrice {
    int context; // committed tokens of a sequence
    bool block;  // the draft guesses all tokens in one pass
} LengthsPrice;

extern const TableForm lengths_form;
void lengths_put(const PublishedLengths *l, const Prediction *p, const LengthsPrice *how, RecordTable *t);

// --- a machine fitted to a surface ----------------------------------------------------------------------

// A machine of configs/hardware, fitted to a surface that was measured on it.
typedef struct SurfaceArguments {
    const char *surface; // CSV of `outpace bench --csv`
    const char *model;   // directory of the model whose steps they are: its widths, and its weights' type
    const char *shape;   // or a name under configs/shapes
    const char *machine; // a file of configs/hardware
    const char *save;    // where the fitted machine is written, for 'outpace simulate'; NULL: nowhere
    uint64_t seed;       // of the points held out
    bool json;
    bool force; // `save` may replace any file
} SurfaceArguments;

bool fit_surface(const SurfaceArguments *a, Error *e);
