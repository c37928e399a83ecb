// The files that ship with the program. They're found wherever it runs (the first of $OUTPACE_CONFIGS,
// configs next to the executable, ../share/outpace/configs from there, and ./configs), or embedded in it.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

enum { SHIPPED_PATH = 4096 };

// The folder of the running program, without the last slash; empty if it's unknown.
void shipped_own_folder(char out[SHIPPED_PATH]);

// The path of a file below configs ("shapes/tiny.json"), for mem_free. NULL if it doesn't exist.
char *shipped_path(const char *name);

// Resolves a short name: `name` itself if it's a path (it has a slash or an ending), else FOLDER/NAME.json.
// For mem_free. NULL with e filled if there's no such file; the error lists the known names. `what`: "shape",
// "machine".
char *shipped_named(const char *folder, const char *what, const char *name, Error *e);

// The names in a folder, one per line, sorted.
bool shipped_names(const char *folder, Text *out, Error *e);

// Embeds a file of the source tree in the program: the assembler reads it, and the Makefile lists it as a
// dependency. The text begins at `symbol` and ends at `symbol_end`, where there's a NUL. The symbols are
// hidden because on Arm the table of addresses that visible symbols go through has one entry for the whole
// section.
#define EMBED(symbol, path)                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n" #symbol \
            "_end:\n.byte 0\n.popsection\n");                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[];
