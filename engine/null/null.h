// The null backend: no arithmetic. What comes next is a hash of what came before.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

extern const Backend null_backend;

// *self is an instance for null_backend. It copies the shape; the model is not needed after this call.
bool null_open(const Model *model, const BackendOptions *o, void **self, Error *e);
