// gnuplot as a program of its own.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// Runs `script` and adds what it drew to `out`. It leaves no file, whatever ends the program. False with e
// filled: gnuplot is not there (how to install it), or the last line of its complaints.
bool gnuplot_text(const char *program, const Text *script, Text *out, Error *e);

// For a script that must write files: runs it in a folder of its own, and adds the two files that it wrote
// there under these names. A signal that ends the program waits until the folder is gone.
bool gnuplot_files(const char *program, const Text *script, const char *const names[2], Text out[2],
                   Error *e);
