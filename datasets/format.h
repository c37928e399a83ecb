// How a row of a file becomes a prompt: a format is a row of a table, and so is each other frame that a paper
// put the same fields in. Patterns are texts with {fields} of the row in them (pattern.h).
#pragma once
#include "engine/base/error.h"

#include <jansson.h>

typedef struct Frame {
    const char *format, *name;
    const char *pattern; // of the prompt
    const char *from;    // whose frame it is
} Frame;

// Known parts of a dataset that is published in one file: rows whose id, a number, is from `first` to `last`.
typedef struct FormatSplit {
    const char *name; // NULL: no more
    int first, last;
} FormatSplit;

typedef struct Format {
    const char *name;
    const char *about;
    const char
        *keys;      // that a row must have, space between, and by which the format is told; the last fits all
    const char *id; // the key of the id; NULL: the row's number
    const char *task;      // what it is about, or, of task_key, what a row is about that does not say
    const char *task_key;  // NULL: no row says
    const char *turns_key; // a list, a turn each; used where the row has it
    const char *prompt;    // pattern of the only turn; NULL: turns_key is needed
    const char *reference; // pattern; NULL: none
    const char
        *references_key; // a text, or a list of them, one a turn, each itself perhaps a list; may be missing
    const FormatSplit *splits; // NULL: a row says its "split"
    bool is_text;              // a line of text a row
} Format;

const Format *const *format_table(size_t *count);

// By name, or "FORMAT:FRAME", where *frame is set; else *frame is NULL. NULL with e filled if there is none.
const Format *format_find(const char *name, const Frame **frame, Error *e);
// The i-th of a format; NULL after the last.
const Frame *format_frames(const Format *format, size_t i);
const Frame *format_frame(const Format *format, const char *name, Error *e);

// The first of the table whose keys the row has.
const Format *format_of_row(const json_t *row);
