// The directory of a model that this program makes. At any moment, and after a crash, it has either no
// config.json or the whole model:
//
//      made_begin      writes outpace-unfinished.json and removes an earlier model of the same maker
//      the maker       writes its files
//      made_finish     renames outpace-unfinished.json to config.json
//      made_abandon    or removes all of them, and the directory if nothing else is in it
//
// A key in config.json names the maker of a directory. Another maker's directory is refused, and so is a
// model in place of an adapter, or an adapter in place of a model.
#pragma once
#include "engine/base/error.h"
#include "engine/base/json.h"

enum { MADE_MAX_PATH = 4096, MADE_MAX_CONFIG = 16 << 20 };

typedef struct Made {
    const char *dir;
    const char *maker;   // "synth"
    const char *mark;    // the maker's key in config.json: "outpace_synth"
    bool adapter;        // else a model
    bool force;          // replace another maker's model
    const char *rereads; // a file that may be in the directory and is written again unchanged; NULL: none
} Made;

// Refuses the directories that made_begin would refuse, and changes nothing. The directory needn't exist.
bool made_check(const Made *m, Error *e);

// Whether the directory has no files of a model yet, besides `rereads`: after a failure made_abandon may then
// remove all of them. After made_check.
bool made_is_new(const Made *m);

// Makes the directory, and those above it, if necessary. False with e filled, and nothing changed, if it is
// another maker's.
bool made_begin(const Made *m, const json_t *config, Error *e);
bool made_finish(const Made *m, Error *e);
void made_abandon(const Made *m); // only after made_begin succeeded

// Like made_begin, for a maker whose files are all ready: they replace the files of the earlier model, and
// only its config.json is removed before.
bool made_replace(const Made *m, const json_t *config, Error *e);

// Write a file of a directory, whole or not at all.
bool made_text(const char *dir, const char *name, const char *text, Error *e);
bool made_json(const char *dir, const char *name, const json_t *root, Error *e);

// Copies the tokenizer and the generation's ids of another model, as far as there are any.
bool made_copy_tokenizer(const char *from, const char *dir, Error *e);
