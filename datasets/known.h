// Datasets that have a name: our small sets (datasets/small), which are part of the program, and published
// ones (datasets/sources.tsv), which datasets/fetch downloads.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stddef.h>

// A piece of the table, without a NUL at its end. It lives as long as the program.
typedef struct KnownText {
    const char *at;
    size_t n;
} KnownText;

// One file of a dataset.
typedef struct KnownFile {
    KnownText name, split; // the first split of a name is its default; "-": all in one
    KnownText format;      // as format_find takes it
    KnownText file;        // path in the folder; of our sets "datasets/small/NAME.jsonl"
    KnownText rows, bytes, sha256, licence, url, about;
    const char *content; // embedded; NULL: the file has to be found
    size_t content_size;
} KnownFile;

// The i-th, in the order of the table; false after the last.
bool known_at(size_t i, KnownFile *out);

// Finds a file by name and split. split NULL: the first one. A split of a dataset that is one file ("-") is
// accepted here: its format may know it.
bool known_find(const char *name, const char *split, KnownFile *out, Error *e);

// The file's path in `folder`, for mem_free; NULL if it isn't there. Accepted are the file as published, the
// same unpacked, and Parquet as a hub serves it: "xsum/test.jsonl" may be "xsum/test.parquet" or
// "xsum/test-00000-of-00001.parquet".
char *known_path(const KnownFile *file, const char *folder);

// *changed: the file at `path` differs from the published one. Always false for an unpacked file, for
// Parquet, and where the hash is unknown. False with e filled if the file can't be read.
bool known_changed(const KnownFile *file, const char *path, bool *changed, Error *e);

// Whether `text` equals the n bytes at s up to a colon: "gsm8k:qa" is gsm8k.
bool known_is(KnownText text, const char *s, size_t n);
