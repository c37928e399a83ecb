// Files that people have and that are not read: told by their bytes, their name or their keys, and refused
// with a command that converts them.
#pragma once
#include "datasets/pattern.h"

// A file of another kind: Parquet, Arrow, a zip archive (xlsx too), CSV or TSV. False with e filled, where it
// is one.
bool foreign_check_file(const char *bytes, size_t n, const char *file, Error *e);

// A row that lacks our keys and has those of ShareGPT, of chat messages or of Alpaca. False with e filled.
bool foreign_check_row(const Row *row, Error *e);
