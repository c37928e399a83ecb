// The files that come with the program: found from wherever it is run (the first of $OUTPACE_CONFIGS, configs
// beside the executable, ../share/outpace/configs from it, and configs here), or embedded in it.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

// The path of a file below configs ("shapes/tiny.json"), for mem_free. NULL where there is none.
char *shipped_path(const char *name);

// The path that a short name means: `name` itself if it is a path (it has a slash or an ending), else
// FOLDER/NAME.json. For mem_free. NULL with e filled: an unknown name is answered with the known ones.
// `what`: a shape, a machine.
char *shipped_named(const char *folder, const char *what, const char *name, Error *e);

// The names that a folder has, one a line, in order.
bool shipped_names(const char *folder, Text *out, Error *e);

// A file of the source tree as a text in the program: the assembler reads it, and the Makefile lists it as a
// dependency. The text begins at `symbol` and ends at `symbol_end`, where a NUL is. Hidden, because the table
// of addresses that other symbols go through has one entry for the whole section on Arm.
#define EMBED(symbol, path)                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n" #symbol \
            "_end:\n.byte 0\n.popsection\n");                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[];
