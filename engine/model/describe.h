// A model in words: what `outpace model info` prints.
#pragma once
#include "engine/base/text.h"
#include "engine/model/model.h"

// Shape, parameters, ids; weights too where the model was opened with them.
void model_describe(const Model *m, Text *out);
