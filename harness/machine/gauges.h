// What a GPU says of itself, as a run stores it: who it is in the environment, how it fares in a reading.
#pragma once
#include "engine/engine.h"
#include "results/record.h"

// Names the GPU in the environment, whose texts then point into `g`. Nothing changes for a device that says
// nothing of itself.
void gauges_name(const char *device, Gauge *g, StoreEnvironment *on);

// False where the device says nothing of itself. The texts of `out` point into `g` and the arguments.
bool gauges_reading(const char *device, const char *moment, Gauge *g, StoreReading *out);
