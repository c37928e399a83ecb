// Texts with fields of a row in them: "Q: {question}\nA:". {a/b} is the field b of the object a, a list of
// texts is its lines. After an @ stands which part of it: {text@first} its first line,
// {text@rest} what follows that line, {text@marked} what follows its last "####", or all where there is none.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <jansson.h>

// A row of a file, and where: all that a message about it needs.
typedef struct Row {
    const json_t *json; // an object
    const char *file;
    const char *unit;   // "line", or "row" of an array
    size_t number;      // from 1
    const char *format; // its name
    const char *keys;   // that it needs
} Row;

// "'FILE', line 7: field 'question' " and what is wrong with it. Returns false.
bool row_error(const Row *row, const char *field, const char *what, Error *e);
bool row_missing(const Row *row, const char *field, Error *e);

// The value at a path of keys; NULL: not there, or null.
const json_t *row_find(const json_t *row, const char *path, size_t n);

// Appends the value as a text, of a field called `name`.
bool row_text(const Row *row, const char *name, const json_t *value, Text *out, Error *e);

bool pattern_expand(const char *pattern, const Row *row, Text *out, Error *e);
