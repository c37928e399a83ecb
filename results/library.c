#include "results/library.h"

#include <sqlite3.h>

#if SQLITE_VERSION_NUMBER < 3037000
#error "Outpace needs SQLite 3.37 or newer: the tables of its stores are STRICT"
#endif

const char *results_library(void) { return sqlite3_libversion(); }
