// Stores that runs of a test have left in a folder.
#pragma once
#include "engine/base/text.h"
#include "results/rows.h"

// One whole number.
int64_t stores_ask(const char *folder, const char *name, const char *sql);

// Adds all of a store's content except times, moments and the machine's load. False if it's damaged.
bool stores_describe(const char *path, Text *out, Error *e);

// Both are equal except for times, moments and the machine's load, and neither is damaged.
void stores_same(const char *folder, const char *one, const char *two);
