// The directory of a model that this program makes. A program that looks at it, at any moment and after a
// crash, finds either no config.json or all of the model:
//
//      made_begin      outpace-unfinished.json is written; an earlier model of the same maker goes
//      the maker       writes its files
//      made_finish     outpace-unfinished.json becomes config.json
//      made_abandon    or all of them go again, and the directory too where nothing else is in it
//
// Whose a directory is stands in its config.json, under a key of the maker's: what another made is refused,
// and a model where an adapter is to be, or the other way round.
#pragma once
#include "engine/base/error.h"
#include "engine/base/json.h"

enum { MADE_MAX_PATH = 4096, MADE_MAX_CONFIG = 16 << 20 };

typedef struct Made {
    const char *dir;
    const char *maker;   // "synth"
    const char *mark;    // the key that its config.json has: "outpace_synth"
    bool adapter;        // it is one; else it is a model
    bool force;          // whoever made what is there
    const char *rereads; // a file that may be in the directory, and is written again as it was; NULL: none
} Made;

// Refuses the directories that made_begin would refuse, and changes nothing. A directory may not exist yet.
bool made_check(const Made *m, Error *e);

// Whether the directory has no files of a model yet, besides `rereads`: after a failure made_abandon may then
// remove all of them. After made_check.
bool made_is_new(const Made *m);

// Makes the directory if it is not there, and those above it. False with e filled, and nothing changed, where
// it is another's.
bool made_begin(const Made *m, const json_t *config, Error *e);
bool made_finish(const Made *m, Error *e);
void made_abandon(const Made *m); // only after made_begin gave true

// made_begin for a maker that has all of its files ready: those of the earlier model stay until theirs
// replace them, only its config.json goes.
bool made_replace(const Made *m, const json_t *config, Error *e);

// Files of a directory, each whole or not at all.
bool made_text(const char *dir, const char *name, const char *text, Error *e);
bool made_json(const char *dir, const char *name, const json_t *root, Error *e);
// The text of a file of JSON, for mem_free; NULL with e filled where memory ran out.
char *made_json_text(const char *name, const json_t *root, Error *e);
