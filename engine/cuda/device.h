// The devices of this machine: finding one, and reading its gauges.
#pragma once
#include "engine/core/backend.h"
#include "engine/cuda/kernels/runtime.h"

// Makes device `ordinal` this thread's device and reads its facts. On failure the error names the missing
// piece: a driver, a GPU, this number, or the compute capability.
bool device_find(int ordinal, GpuFacts *out, Error *e);

// Reads clocks, power, temperature and throttling of the card with this UUID from NVML; other fields of `out`
// are left alone. Without the library, or where the card doesn't report a value, the value is NAN or the text
// empty.
void nvml_read(const char *uuid, Gauge *out);
