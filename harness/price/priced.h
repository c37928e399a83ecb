// Stored runs priced on another machine: every pass that a step ran, its commit, its prefill, and what the
// host took, as recorded.
#pragma once
#include "engine/base/ranges.h"
#include "engine/base/text.h"
#include "engine/model/model.h"
#include "harness/analysis/estimates.h"
#include "plots/plots.h"
#include "results/store.h"
#include "simulate/hardware.h"

typedef struct Pricing {
    Hardware machine;
    StepModel target, draft;
    bool has_draft; // else a point that runs a draft model cannot be priced
    int batch;      // sequences that share every step, each as the recorded one; 0: as many as the point ran
} Pricing;

// *p with the attention that the point ran (StepModel.plain), and its batch if p has none.
bool priced_as_run(Store *store, int64_t point, const Pricing *p, Pricing *out, Error *e);

// One prompt in one pass, all its turns. Seconds; of those that a batch shares, the sequence's part.
typedef struct PricedSample {
    int prompt, pass;
    double tokens, steps;
    double runs;                          // of the target's layers, or a part of them
    double passes_s, commit_s, prefill_s; // priced; passes_s: NAN if some step lacks its passes
    double host_s; // recorded: propose, verify and observe of the point's median step, times the steps;
                   // propose is left out where it runs passes itself, as those are priced
} PricedSample;

typedef struct PricedPoint {
    PricedSample *samples; // (count), by prompt, then pass
    int count;
    int most_rows;    // of a pass, of all its sequences; a prompt's pass is no step's
    bool needs_draft; // it ran a draft model, and there is no shape for one: nothing is priced
} PricedPoint;

// Release also what failed. A draft model is as deep as the deepest of its passes; an adapter's layers are
// attention layers of the target's width, a draft of EAGLE's a layer of the target with its own head.
bool priced_point(Store *store, int64_t point, const Pricing *p, PricedPoint *out, Error *e);
void priced_release(PricedPoint *p);

// S, tokens a second and speedups of a point relative to its baseline (itself, for a baseline; NULL: it
// has none, and no speedup), as priced.
void priced_tally(const PricedPoint *point, const PricedPoint *baseline, Tally *out);

// Mean seconds of a step, decoding.
double priced_step(const PricedPoint *point);

// --- the model of a step

StepModel step_model_of(const Model *m); // with its own weights, codes too

// A name under configs/shapes, or the path of a config.json; weights of 16 bits.
bool step_model_open(const char *name, StepModel *out, Error *e);

// A name under configs/hardware (engine/base/shipped.h), or the path of such a file.
bool machine_open(const char *name, Hardware *out, Error *e);

// Both as inputs of a command; NULL and unknown names are ignored.
void priced_reads(Output *out, const char *machine, const char *shape);

// --- a surface priced on a machine

typedef struct PricedSurface {
    Store *store; // for store_close
    int64_t run;
    char title[160]; // of the figure
} PricedSurface;

// on, shape: as of machine_open and step_model_open; batch, bits: panels for each (NULL: 1 and 16).
typedef struct PricedAsk {
    const char *on, *shape, *batch, *bits;
} PricedAsk;

// notes: receives the values for the figure's notes (?2 of plots/plots.h). False with e filled; close the
// store then, too.
bool priced_surface(const Figure *f, const PricedAsk *ask, PricedSurface *out, Text *notes, Error *e);

// The steps that run `run` measured, as they would be priced, for the figures that show both
// (COMPUTED_SURFACE of plots/figures.h): by the machine `on`, or if it's NULL by one fitted to what the run
// measured. Appends {"says": how, "steps": [[id in table surface, ns, slowdown], ...]}.
bool priced_beside(Store *store, int64_t run, const char *on, Text *out, Error *e);

// Lists of a command line; NULL: `fallback`. Bits are 16, 8 or 4.
enum { PRICED_BATCH_MAX = 1024 };
bool priced_lists(const char *batch, const char *bits, int fallback, IntList *batches, IntList *widths,
                  Error *e);
