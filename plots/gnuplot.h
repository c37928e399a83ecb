// gnuplot as a program of its own.
#pragma once
#include "engine/base/error.h"

// Runs `script` (a name in `folder`) there. False with e filled: it is not there (how to install it), or the
// first line of what it said.
bool gnuplot_run(const char *program, const char *folder, const char *script, Error *e);
