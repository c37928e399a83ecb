// "Did you mean": the nearest of some known names.
#pragma once
#include <stddef.h>

// Edits (insert, delete, replace, swap of neighbours) from a to b, for names of up to 63 characters; more for
// longer.
int suggest_distance(const char *a, const char *b);

// The name in a table of `count` rows that is nearest to `word`, or NULL if none is near enough to be meant.
const char *suggest(const char *word, const void *table, size_t count,
                    const char *(*name_at)(const void *, size_t));
