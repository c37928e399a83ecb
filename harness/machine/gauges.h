// What a GPU reports of itself, in the form that a run stores: its name and limits in the environment, its
// clocks, power and heat in readings.
#pragma once
#include "engine/engine.h"
#include "results/record.h"

#include <jansson.h>

// Of all cards of a device, "one + other" where there are several.
typedef struct GaugeNames {
    Gauge first;
    char names[1024], uuids[1024];
} GaugeNames;

// Names the GPUs in the environment, whose texts then point into `g`; memory is that of all. Nothing changes
// for a device that says nothing of itself.
void gauges_name(const char *device, GaugeNames *g, StoreEnvironment *on);

// Enters the ceilings of the measured device, and the kernels that they were measured with. A GPU's have
// columns of their own, apart from the processor's. peak: the rate for products of the model's type; kernels:
// the open backend's name for its kernels, NULL where none is open. The texts of `on` point into `c` and
// `kernels`.
void gauges_ceilings(const char *device, const Ceilings *c, double peak, const char *kernels,
                     StoreEnvironment *on);

// What it says, with null for what it does not; NULL: no memory.
json_t *gauges_json(const Gauge *g);

// The reading of one of these GPUs (engine_list_gpus). False where there are no more. The texts of `out`
// point into `g` and `moment`.
typedef struct GaugeReading {
    Gauge gauge;
    char device[24];
} GaugeReading;
bool gauges_reading(const char *gpus, int card, const char *moment, GaugeReading *g, StoreReading *out);
