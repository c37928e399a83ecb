// What a table may ask of stored points, by name: the measures that results/published/*.tsv compute the
// papers' metrics by. "ctar.3" is the measure ctar with the argument 3.
#pragma once
#include "results/store.h"

typedef struct Quantity {
    double value, low, high; // NAN: unknown
} Quantity;

// Mean and standard deviation over passes; count 0: of fewer than two, or nothing that a pass has.
typedef struct QuantityPasses {
    double mean, deviation;
    int count;
} QuantityPasses;

// A point, and which of its prompts.
typedef struct QuantityPart {
    int64_t point, baseline; // baseline 0: the point is one, or has none
    bool sampled;            // temperature above 0
    const char *subtask;     // NULL: all of the dataset
    int parity;              // see SampleChoice
    bool plain;              // no interval is asked for
} QuantityPart;

// Unknown where the point has no such samples. False with e filled.
bool quantity(Store *store, const QuantityPart *part, const char *name, Quantity *out, Error *e);

// Of a quality: how much it is above the baseline's, over the same prompts and passes.
bool quantity_above_baseline(Store *store, const QuantityPart *part, const char *name, Quantity *out,
                             Error *e);

// Of all prompts of a point: each pass by itself, as papers give the spread over runs. False with e filled.
bool quantity_passes(Store *store, int64_t point, int64_t baseline, const char *name, QuantityPasses *out,
                     Error *e);

bool quantity_known(const char *name);       // "-" is one: by nothing that the store has
bool quantity_is_quality(const char *name);  // ROUGE
bool quantity_is_fitted(const char *name);   // by 'outpace fit', of many points at once: alpha, f
bool quantity_is_time(const char *name);     // a disturbed machine changes it
const char *quantity_own(const char *name);  // ours of the same thing, where that is another; NULL
const char *quantity_best(const char *name); // "best.W": "W", a parameter of the fastest; NULL: none
