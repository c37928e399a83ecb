// Prompts from the formats that people have: a file's rows become turns, a task and references, through one
// table of formats (format.h). Includes engine/base only.
//
// A file is read whole and checked whole before anything is taken from it: a malformed row is one line with
// file, line and field, whatever the limit is. Bytes become the same prompts, in the same order, on any
// machine.
#pragma once
#include "engine/base/error.h"
#include "engine/base/file.h"

#include <stddef.h>
#include <stdint.h>

// A reference answer: what the dataset says a good answer to turn `turn` (from 0) is. A turn may have
// several.
typedef struct Reference {
    int turn;
    char *text;
} Reference;

typedef struct DatasetPrompt {
    char *set;    // the dataset that it comes from: of a concatenation, the part
    char *id;     // as the file says, or the row's number from 1; differs within a set
    char *task;   // "math", "translation"...: as the row says, or what the format is about; may be empty
    char **turns; // (turn_count) what the user says, one after the other; none is empty
    int turn_count;
    Reference *references; // (reference_count)
    int reference_count;
    size_t row; // where it stands: its line in the file, or its place in a JSON array, from 1
} DatasetPrompt;

typedef enum { ORDER_WRITTEN, ORDER_SHUFFLED, ORDER_BY_TASK, ORDER_FIRST_SHUFFLED } DatasetOrder;

// What to load. First the rows are put into order, then the limit is taken; of a concatenation, `limit` rows
// of each part, then the order. FIRST_SHUFFLED takes the limit of the rows as written, then shuffles those.
typedef struct DatasetRequest {
    const char *name;   // known (datasets_known), or what that of `path` or `parts` is called. "NAME:FRAME":
                        // the prompt in another frame, as "gsm8k:qa" (format.h)
    const char *path;   // a file; NULL: found by its name. May be compressed by gzip
    const char *format; // of `path`, "FORMAT" or "FORMAT:FRAME"; NULL: told by the keys of its first row, or
                        // by its ending, .txt
    const char *split;  // NULL: all, or what the known name has first
    const char *const *parts; // known names to concatenate instead (part_count)
    int part_count;
    const char *folder; // where known files are looked for ($OUTPACE_DATA); NULL: nowhere
    size_t limit;       // prompts; 0: all
    int turns;          // of a prompt, at most; 0: all
    DatasetOrder
        order; // BY_TASK: parts (of a dataset without parts: its tasks) take turns, by `consecutive` rows
    int consecutive; // 0: all rows of one, then all of the next
    uint64_t seed;   // of SHUFFLED, FIRST_SHUFFLED
} DatasetRequest;

typedef struct Dataset {
    char *name;
    DatasetPrompt *prompts; // (count)
    size_t count, capacity;
    bool changed;             // a file of it is not as it was published
    char sha256[SHA256_TEXT]; // the content: sets, ids, tasks, turns, references, in their order; of a file
                              // of the user's own without the set, which is what the user calls it
    char named_sha256[SHA256_TEXT]; // with the set, as older programs have it
} Dataset;

// False with e filled, and an empty dataset.
bool dataset_open(Dataset *d, const DatasetRequest *request, Error *e);

// The same from bytes: `place` names them in messages. Of the request, parts and folder are not looked
// at.
bool dataset_parse(Dataset *d, const char *bytes, size_t n, const char *place, const DatasetRequest *request,
                   Error *e);

// Leaves prompts out, leave_out[i] each, and names what is left. False with e filled.
bool dataset_leave_out(Dataset *d, const bool *leave_out, bool own_file, Error *e);
void dataset_release(Dataset *d); // takes an empty one
