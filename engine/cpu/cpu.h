// The CPU backend: one forward pass over a token tree, on kernels from a table of ops.
//
//      kernels/    the kernel sets: ops.h is their table, keys.h the layout of keys and values in memory
//      instance    an open model's memory; cpu.c opens it and is the row of backend.h
//      forward     layers, panel by panel          attention   which keys each node sees; copies of the cache
//      head        logits and best ids             pool        threads, and the cores they run on
//      products    norms and matrices of rows      experts     layers of experts
//      ceilings    the limits of the machine
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend cpu_backend;

// Opens an instance for cpu_backend in *self. The model remains the caller's and must outlive it.
bool cpu_open(const Model *model, const BackendOptions *o, void **self, Error *e);

// The name of the kernel set that cpu_open would use: `isa`, or this machine's best set if that is NULL.
// NULL, with e filled, if there isn't such a set.
const char *cpu_isa(const char *isa, Error *e);

// Why kernels for which the processor has instructions aren't used: one line, with the fix. NULL if all are
// used.
const char *cpu_kernels_refused(void);

// Measures the limits of this machine, the two floors under every step's time. Reads a buffer far larger than
// any cache with all threads, in a few ways of which the fastest counts, and runs the kernel set's
// multiply-adds in registers, in f32 and in bf16. Takes about a second.
bool cpu_ceilings(const BackendOptions *o, Ceilings *out, Error *e);
