// The null backend, for tests and for measuring the harness: it does no arithmetic. The next token is a hash
// of the last ones.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend null_backend;

// Opens an instance for null_backend in *self. It copies the shape; the model isn't needed after this call.
bool null_open(const Model *model, const BackendOptions *o, void **self, Error *e);
