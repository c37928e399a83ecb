// The CPU backend: one forward pass over a token tree, on kernels from a table of ops.
//
//      kernels/    the kernel sets: ops.h is their table, keys.h how keys and values lie in memory
//      instance    an open model's memory; cpu.c opens it and is the row of backend.h
//      forward     layers, panel by panel          attention   which keys each node sees
//      head        logits and best ids             copies      LAYOUT_COPIED's copies of the cache
//      pool        threads, on the cores of cores.h            ceilings    what the machine can do at most
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend cpu_backend;

// *self is an instance for cpu_backend; the model stays the caller's and must outlive it.
bool cpu_open(const Model *model, const BackendOptions *o, void **self, Error *e);

// The name of the kernels that it takes: `isa`, or the best set that there is where that is NULL. NULL with e
// filled: there is no such set here.
const char *cpu_isa(const char *isa, Error *e);

// Why kernels that this processor names are not used: one line, with the mend. NULL where there are none.
const char *cpu_kernels_refused(void);
