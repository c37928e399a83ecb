// The CPU backend: one forward pass over a token tree, on kernels from a table of ops.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend cpu_backend;

// *self is an instance for cpu_backend; the model stays the caller's and must outlive it.
bool cpu_open(const Model *model, const BackendOptions *o, void **self, Error *e);

// Why kernels that this processor names are not used: one line, with the mend. NULL where there are none.
const char *cpu_kernels_refused(void);
