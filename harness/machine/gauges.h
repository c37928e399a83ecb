// What a GPU reports of itself, in the form that a run stores: its name and limits in the environment, its
// clocks, power and heat in readings.
#pragma once
#include "engine/engine.h"
#include "results/record.h"

#include <jansson.h>

// Names the GPU in the environment, whose texts then point into `g`. Nothing changes for a device that says
// nothing of itself.
void gauges_name(const char *device, Gauge *g, StoreEnvironment *on);

// Enters the ceilings of the measured device, and the kernels that they were measured with. A GPU's have
// columns of their own, apart from the processor's. peak: the rate for products of the model's type; kernels:
// the open backend's name for its kernels, NULL where none is open. The texts of `on` point into `c` and
// `kernels`.
void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on);

// What it says, with null for what it does not; NULL: no memory.
json_t *gauges_json(const Gauge *g);

// False where the device says nothing of itself. The texts of `out` point into `g` and the arguments.
bool gauges_reading(const char *device, const char *moment, Gauge *g, StoreReading *out);
