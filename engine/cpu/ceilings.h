// What this machine can do at most, measured: the two floors under every step's time.
#pragma once
#include "engine/core/backend.h"

// Reads a buffer far larger than any cache with all threads, in a few ways of which the fastest counts, and
// runs the kernel set's multiply-adds in registers, of f32 and of bf16. Takes about a second.
bool cpu_ceilings(const BackendOptions *o, Ceilings *out, Error *e);
