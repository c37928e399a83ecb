// What a card says of its clocks, power and heat, through NVIDIA's management library (NVML), found when it
// is asked for. Without the library, or where a card does not say, a value is NAN or a text empty.
#pragma once
#include "engine/core/backend.h"

// Fills in what NVML knows of the card with this UUID; the rest of `out` stays.
void nvml_read(const char *uuid, Gauge *out);
