// Everything that a training run is, in one safetensors file: a killed run goes on from it to the same
// result, bit for bit.
//
//      NAME          F32  a parameter, under its Hugging Face name
//      NAME.mean     F32  the optimiser's moving average of its gradient
//      NAME.square   F32  AdamW's, and of the gradient's square; Muon has none
//      progress      I64  steps done; epoch, document and offset where reading stands
//      loss          F64  of the last step
//      identity      U8   SHA-256 (as text) of configuration, kernel set and corpus
//
// Random numbers are functions of the seed and of where reading stands (engine/base/random.h), so there is no
// other state.
#pragma once
#include "engine/train/trainer.h"

bool checkpoint_write(const Trainer *t, const char *path, Error *e);

// Into a trainer that was opened with the same configuration and corpus; anything else is refused, and the
// trainer then stands at its start.
bool checkpoint_read(Trainer *t, const char *path, Error *e);

// Whether a file is a checkpoint at all, of whatever run: only that may be replaced by another.
bool checkpoint_is(const char *path);
