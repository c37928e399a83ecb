// Stores that runs of a test have left in a folder.
#pragma once
#include "engine/base/text.h"
#include "results/rows.h"

// One whole number.
int64_t stores_ask(const char *folder, const char *name, const char *sql);

// Adds all that a store says but times, moments, and what the machine was doing. False where it is damaged.
bool stores_describe(const char *path, Text *out, Error *e);

// Both say the same, but for times, moments, and what the machine was doing; and neither is damaged.
void stores_same(const char *folder, const char *one, const char *two);
