// The files that come with the program, found from wherever it is run: in the first of $OUTPACE_CONFIGS,
// configs beside the executable, ../share/outpace/configs from it, and configs here.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// The path of a file below configs ("shapes/tiny.json"), for mem_free. NULL where there is none, or no
// memory.
char *configs_path(const char *name);

// What is named by a short name: its path where `name` is one (it has a slash or an ending), else
// FOLDER/NAME.json. For mem_free. NULL with e filled: an unknown name is answered with the known ones.
// `what`: a shape, a machine.
char *configs_named(const char *folder, const char *what, const char *name, Error *e);

// The names that a folder has, one a line, in order.
bool configs_names(const char *folder, Text *out, Error *e);
