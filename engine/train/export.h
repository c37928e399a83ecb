// A trained model as a Hugging Face directory of the Llama kind, in bf16, that `outpace generate` and other
// programs run: config.json, generation_config.json, model.safetensors. The tokenizer's files are the
// caller's to put beside them.
#pragma once
#include "engine/train/trainer.h"

typedef struct ExportNotes {
    int bos, eos;         // ids, or -1
    double held_out_loss; // for config.json; NAN: not known
} ExportNotes;

// Makes `dir` if it is not there. Every file appears whole or not at all, config.json last.
bool export_model(const Trainer *t, const ExportNotes *notes, const char *dir, Error *e);

// An adapter's directory (engine/model/adapter.h), in bf16 too; of the notes it takes the loss, with which
// t->agreement is written.
bool export_adapter(const Trainer *t, const ExportNotes *notes, const char *dir, Error *e);
