// A trained model as a Hugging Face directory of the Llama kind, in bf16, that `outpace generate` and other
// programs run: config.json, generation_config.json, model.safetensors. The tokenizer's files are the
// caller's to put beside them.
#pragma once
#include "engine/base/output.h"
#include "engine/train/trainer.h"

typedef struct ExportNotes {
    int bos, eos;          // ids, or -1
    double held_out_loss;  // for config.json; NAN: not known
    const char *tokenizer; // the file that a model was trained with; it may be in its directory already
} ExportNotes;

// Asks, before the training, whether its result may go into `dir`: by made.h, and by what `out` knows is
// read.
// tokenizer: as in ExportNotes; NULL for an adapter.
bool export_check(const char *dir, bool adapter, const char *tokenizer, const Output *out, Error *e);

// Makes `dir` if it is not there. What the caller has added to `out` appears with the model's files, all of
// them or, where there is no room for one, none; config.json comes last.
bool export_model(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e);

// An adapter's directory (engine/model/adapter.h), in bf16 too; of the notes it takes the loss, with which
// t->agreement is written.
bool export_adapter(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e);
