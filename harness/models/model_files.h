// Where the models of a config lie: directories as written, members of the reference family, and random
// models that are made where they are not yet.
#pragma once
#include "harness/config/experiment.h"

typedef struct ModelFiles {
    char *target, *draft, *adapter, *heads; // directories; NULL: none
} ModelFiles;

// cache: a directory for what is made; NULL: there is none. False with e filled, and out empty.
bool model_files_find(const ModelSpec *m, const char *cache, ModelFiles *out, Error *e);
void model_files_release(ModelFiles *f); // takes an empty one
