// A machine of configs/hardware, fitted to a surface that was measured on it.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stdint.h>

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
