// The files that ship with the program. They're found wherever it runs (the first of $OUTPACE_CONFIGS,
// configs next to the executable, ../share/outpace/configs from there, and ./configs; models likewise, with
// $OUTPACE_MODELS), or embedded in it.
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

// The names in a folder of configs, one per line, sorted; with "" those of the experiments.
bool shipped_names(const char *folder, Text *out, Error *e);

// The config that `word` means where it isn't a file: "NAME" and "configs/NAME", with or without ".yaml", are
// "configs/NAME.yaml", for mem_free. NULL: there is none; e is filled if one has a similar name.
char *shipped_config(const char *word, Error *e);

// The path of a model, for mem_free: `name` itself if a model is there; else the one of that name, with or
// without "models/" and ".gguf", that ships with the program or was fetched; else the folder at `name`. NULL
// with e filled: there is none, and e lists the models that there are.
char *shipped_model(const char *name, Error *e);
char *shipped_member(const char *name, Error *e); // only those that ship
bool shipped_model_at(const char *path);          // whether it is a model: a folder with a config, or GGUF

void shipped_models(Text *out); // their names, one per line, sorted
char *shipped_fetch(void);      // the script models/fetch, for mem_free; NULL: it isn't here

// Embeds a file of the source tree in the program: the assembler reads it, and the Makefile lists it as a
// dependency. The text begins at `symbol` and ends at `symbol_end`, where there's a NUL. The symbols are
// hidden because on Arm the table of addresses that visible symbols go through has one entry for the whole
// section.
#define EMBED(symbol, path)                                                      \
    __asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"" path "\"\n" #symbol \
            "_end:\n.byte 0\n.popsection\n");                                    \
    extern __attribute__((visibility("hidden"))) const char symbol[], symbol##_end[];
