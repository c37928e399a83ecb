#include "results/library.h"

#include <sqlite3.h>

const char *results_library(void) { return sqlite3_libversion(); }
