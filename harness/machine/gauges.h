// What a GPU says of itself, as a run stores it: who it is in the environment, how it fares in a reading.
#pragma once
#include "engine/engine.h"
#include "results/record.h"

#include <jansson.h>

// Names the GPU in the environment, whose texts then point into `g`. Nothing changes for a device that says
// nothing of itself.
void gauges_name(const char *device, Gauge *g, StoreEnvironment *on);

// The ceilings of the device that was measured, and the kernels that reach them, into its own columns: a
// GPU's rates are not the processor's. peak: of the products that the model has. The texts of `on` point into
// `c` and `kernels`, which is what an open backend calls its own (NULL: none is open).
void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on);

// What it says, with null for what it does not; NULL: no memory.
json_t *gauges_json(const Gauge *g);

// False where the device says nothing of itself. The texts of `out` point into `g` and the arguments.
bool gauges_reading(const char *device, const char *moment, Gauge *g, StoreReading *out);
