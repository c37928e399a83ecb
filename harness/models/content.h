// Hashes of what a measurement stands on.
#pragma once
#include "engine/base/file.h"
#include "engine/model/model.h"

// A model directory; without weights, its config.json alone.
bool content_model(const char *dir, bool weights, char out[SHA256_TEXT], Error *e);
bool content_adapter(const Model *target, const char *dir, char out[SHA256_TEXT], Error *e);
bool content_tokenizer(const char *dir, char out[SHA256_TEXT], Error *e);
