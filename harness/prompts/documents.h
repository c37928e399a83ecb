// Text files as documents: what training and tokenizers learn from.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

// Gets every document; false with e filled stops the reading.
typedef bool TakeDocument(void *state, const char *text, size_t n, Error *e);

// Hands out the documents of the files that the patterns name ("corpus/*.txt"), file by file in sorted order.
// A file is one document; with a separator it is several, each ended by a line that is the separator and
// nothing else. Empty documents are left out. A pattern that names no file is an error.
bool documents_read(const char *const *patterns, int count, const char *separator, TakeDocument *take,
                    void *state, Error *e);
