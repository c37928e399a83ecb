// `outpace fit --surface`: a machine fitted to measured steps, and how well it prices those it has not seen.
#pragma once
#include "engine/base/error.h"

#include <stdint.h>

typedef struct SurfaceArguments {
    const char *surface; // CSV of `outpace bench --csv`
    const char *model;   // directory of the model whose steps they are: its widths, and its weights' type
    const char *machine; // a file of configs/hardware
    const char *save;    // where the fitted machine is written, for 'outpace simulate'; NULL: nowhere
    uint64_t seed;       // of what is held out
    bool json;
    bool force; // `save` may replace any file
} SurfaceArguments;

bool fit_surface(const SurfaceArguments *a, Error *e);
