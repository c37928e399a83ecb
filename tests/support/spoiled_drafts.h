// Drafts of fixtures with one thing wrong in each. Opening refuses each in one line, with the file and these
// words.
#pragma once
#include "engine/model/adapter.h"
#include "tests/support/spoil.h"

typedef struct SpoiledDraft {
    const char *name, *fixture;
    Spoil *spoil;
    const char *a, *b, *file, *words;
} SpoiledDraft;

// A path in the repository.
const char *fixture_path(const char *name, char path[512]);

// `folder` has the fixtures.
void spoiled_drafts_are_refused(const Model *target, const char *folder, const SpoiledDraft *cases,
                                size_t count);
