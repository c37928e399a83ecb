// Tables for programs: --json prints an array of objects, --csv a line for each. docs/json.md names every
// command's keys, and a test compares them with what is printed.
#pragma once
#include "engine/base/json.h"
#include "engine/base/output.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct Records {
    bool json, csv;
} Records;

// The rows of a command's options, for the Records at `place` of its values.
#define RECORDS_OPTIONS(place)                                                                          \
    {"json", ARG_FLAG, (place) + offsetof(Records, json), .help = "print JSON (keys: docs/json.md)"}, { \
        "csv", ARG_FLAG, (place) + offsetof(Records, csv), .help = "print the same as CSV"              \
    }

static inline bool records_asked(const Records *r) { return r && (r->json || r->csv); } // NULL: no

// The paths of the files that a command wrote, as an array.
json_t *records_files(const Output *out);

// The format of such a file: as asked, else as its name ends, else `otherwise`. NULL: not asked, no file.
const char *records_format(const char *asked, const char *path, const char *otherwise);

// Appends an array of objects as CSV.
void records_csv(json_t *list, Text *out);

// Prints an array of objects, or one object, and releases it; of an object with an array `rows` (not NULL),
// CSV has only that. In CSV a nested object's keys become columns "key.key", a list stays JSON, and null is
// empty.
bool records_print(json_t *records, const char *rows, const Records *r, Error *e);
