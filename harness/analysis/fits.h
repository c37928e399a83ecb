// Fits, printed for people and as JSON.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"
#include "simulate/fit.h"

#include <stdint.h>

// title: of the fitted set; NULL: it needs no name.
void fit_report(const char *title, const FitOptions *o, const Fit *fit);

// One object, on one line without its end. Fails without memory.
bool fit_report_json(const char *title, const FitOptions *o, const Fit *fit, Text *out);

// --- a machine fitted to a surface

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
