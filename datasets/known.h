// Datasets that are known by name: the small sets of our own (datasets/small), which are in the program, and
// those that others publish (datasets/sources.tsv), which datasets/fetch downloads.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stddef.h>

// One file of a dataset. Texts live as long as the program, but are no C strings: sizes stand beside them.
typedef struct KnownText {
    const char *at;
    size_t n;
} KnownText;

typedef struct KnownFile {
    KnownText name, split; // the first split of a name is its default; "-": all in one
    KnownText format;      // of format.h
    KnownText file;        // where it lies in the folder; of our own "datasets/small/NAME.jsonl"
    KnownText rows, bytes, sha256, licence, url, about;
    const char *content; // of our own; NULL: to be found
    size_t content_size;
} KnownFile;

// The i-th, in the order of the table; false after the last.
bool known_at(size_t i, KnownFile *out);

// By name and split. split NULL: the first; where the dataset is one file, its format may know splits.
bool known_find(const char *name, const char *split, KnownFile *out, Error *e);

// Its path in `folder`, as it is published or unpacked, for mem_free; NULL if it isn't there.
char *known_path(const KnownFile *file, const char *folder);

// *changed: the file at `path` has other bytes than the published one. Of an unpacked file that cannot be
// told, nor where no hash is known. False with e filled where it cannot be read.
bool known_changed(const KnownFile *file, const char *path, bool *changed, Error *e);

// The name without the frame: "gsm8k:qa" is gsm8k.
bool known_is(KnownText text, const char *s, size_t n);
