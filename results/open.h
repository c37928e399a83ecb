// How a store comes to the program's version, apart from opening, so that a test can bring other scripts.
#pragma once
#include "results/store.h"

typedef const char *StoreScript; // SQL that ends by setting user_version

// scripts[v] brings version v to v + 1. All that are missing run, or none.
bool store_migrate(Store *s, const StoreScript *scripts, int count, Error *e);
