// All places of a text of tokens, sorted by what stands there: what begins alike stands together, so a binary
// search finds every place of a phrase. A place where the text ends first comes before one that goes on.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>

// places (n); tokens are below `vocab`, and from -1 on. O(n log n); takes 12 bytes a token while it runs.
bool suffix_array_build(const int *tokens, int n, int vocab, int *places, Error *e);
