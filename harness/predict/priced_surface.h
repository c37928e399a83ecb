// A surface of steps that nobody measured: every one is priced on a machine (simulate/hardware.h), and stands
// in a store of its own, which is forgotten when it is closed. So figures of measured surfaces draw it, too.
#pragma once
#include "engine/base/text.h"
#include "plots/plots.h"
#include "results/store.h"

typedef struct PricedSurface {
    Store *store; // for store_close
    int64_t run;
    char title[160]; // of the figure
} PricedSurface;

// on, shape: as of machine_open and step_model_open. Of a card that was reckoned no step is there beyond
// those that were. notes: takes what the figure's notes ask (?2 of plots/plots.h). False with e
// filled; close the store then, too.
bool priced_surface(const Figure *f, const char *on, const char *shape, PricedSurface *out, Text *notes,
                    Error *e);
