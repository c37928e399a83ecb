// Which devices there are, and what one of them can do.
#pragma once
#include "engine/base/error.h"
#include "engine/cuda/runtime.h"

// Makes it this thread's device. False with a line that says what is missing: a driver, a GPU, this number.
bool device_find(int ordinal, GpuFacts *out, Error *e);
