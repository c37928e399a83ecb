// What prices are made of, by name: a model's shape as prices see it, and machines.
#pragma once
#include "engine/model/model.h"
#include "simulate/hardware.h"

// weight_bytes: of one number. The cache holds 16-bit numbers on every backend.
StepModel step_model(const Shape *s, double weight_bytes);

// A name under configs/shapes, or the path of a config.json; weights of 16 bits.
bool step_model_open(const char *name, StepModel *out, Error *e);

// A name under configs/hardware (engine/base/shipped.h), or the path of such a file.
bool machine_open(const char *name, Hardware *out, Error *e);
