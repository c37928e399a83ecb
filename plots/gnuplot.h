// gnuplot as a program of its own.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// Runs `script` (a name in `folder`) there. False with e filled: it is not there (how to install it), or the
// first line of what it said.
bool gnuplot_run(const char *program, const char *folder, const char *script, Error *e);

// Runs `script` itself, and adds what it drew to its output. It leaves no file, whatever ends the program.
bool gnuplot_text(const char *program, const Text *script, Text *out, Error *e);
