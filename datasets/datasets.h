// Prompts from common file formats: a file's rows become turns, a task and references, through one table of
// formats (format.h).
//
// The whole file is read and checked, whatever the limit is: a malformed row is an error with file, line and
// field. The same bytes give the same prompts, in the same order, on every machine.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"
#include "engine/base/text.h"

#include <stddef.h>
#include <stdint.h>

// The dataset's reference answer to turn `turn` (from 0). A turn may have several.
typedef struct Reference {
    int turn;
    char *text;
} Reference;

typedef struct DatasetPrompt {
    char *set;    // its dataset; in a concatenation, the member it comes from; one block with id and task
    char *id;     // from the file, or the row's number from 1; unique within a set
    char *task;   // "math", "translation"...: from the row, or that of the format; may be empty
    char **turns; // (turn_count) the user's messages, in order; none is empty; one block with its texts
    int turn_count;
    Reference *references; // (reference_count)
    int reference_count;
    bool asks;  // a question, an instruction or a conversation; else a text to continue
    size_t row; // its line in the file, or its place in a JSON array, from 1
} DatasetPrompt;

typedef enum { ORDER_WRITTEN, ORDER_SHUFFLED, ORDER_BY_TASK, ORDER_FIRST_SHUFFLED } DatasetOrder;

// A request for prompts. Rows are ordered first, then cut to the limit; a concatenation takes `limit` rows of
// each part, then orders them. FIRST_SHUFFLED takes the first `limit` rows as written and shuffles those.
typedef struct DatasetRequest {
    const char *name;   // a known name, a file's if it has a '/', or the name to give to `path` or `parts`.
                        // "NAME:FRAME": with the prompts in another frame, as "gsm8k:qa" (format.h)
    const char *path;   // a file, perhaps gzipped; NULL: found by its name
    const char *format; // of `path`, "FORMAT" or "FORMAT:FRAME"; NULL: text for *.txt, else recognized by the
                        // keys of its first row
    const char *split;  // NULL: all, or the first split of the known name
    const char *const *parts; // known names to concatenate instead (part_count)
    int part_count;
    const char *folder; // holds the known files ($OUTPACE_DATA); NULL: none does
    size_t limit;       // prompts; 0: all
    int turns;          // at most, per prompt; 0: all
    DatasetOrder order; // BY_TASK: parts (or the tasks of one dataset) take turns, `consecutive` rows each
    int consecutive;    // 0: all rows of one, then all of the next
    uint64_t seed;      // for SHUFFLED, FIRST_SHUFFLED
} DatasetRequest;

typedef struct Dataset {
    char *name;
    DatasetPrompt *prompts; // (count)
    size_t count, capacity;
    bool changed;             // one of its files differs from the published one
    char sha256[SHA256_TEXT]; // of the content: sets, ids, tasks, turns, references, in order; for a user's
                              // own file without the set, which is only the name that the user gives it
    char named_sha256[SHA256_TEXT]; // with the set, as older versions hash it
} Dataset;

// Whether each of its prompts asks.
bool dataset_asks(const Dataset *d);

// False with e filled; the dataset is then empty.
bool dataset_open(Dataset *d, const DatasetRequest *request, Error *e);

// The same from bytes; messages call them `place`. The request's parts and folder are ignored.
bool dataset_parse(Dataset *d, const char *bytes, size_t n, const char *place, const DatasetRequest *request,
                   Error *e);

// Removes every prompt i with leave_out[i] and hashes the rest. False with e filled.
bool dataset_leave_out(Dataset *d, const bool *leave_out, bool own_file, Error *e);
void dataset_release(Dataset *d); // also an empty one

// --- known data sets ------------------------------------------------------------------------------------

// Datasets that have a name: our small sets (datasets/small), which are part of the program, and published
// ones (datasets/sources.tsv), which datasets/fetch downloads.

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
