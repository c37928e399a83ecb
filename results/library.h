// Which SQLite the store runs on.
#pragma once

const char *results_library(void); // "3.40.1"
