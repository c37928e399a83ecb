// A method's parameters, declared once: parser, --help, configs, store and docs all read these rows.
#pragma once
#include "engine/base/error.h"
#include "engine/base/text.h"

#include <stdbool.h>
#include <stddef.h>

// METHODS: a text that names methods, each with its own parameters in parentheses. It may be given without
// its key, as the first of all.
typedef enum { PARAM_INT, PARAM_REAL, PARAM_BOOL, PARAM_CHOICE, PARAM_TEXT, PARAM_METHODS } ParamType;

enum { PARAM_TEXT_SIZE = 256, PARAM_MAX = 64 }; // bytes of a text, parameters of a method

// The value stands at `offset` in the method's own parameter struct, as int (INT, CHOICE: the choice's
// number), double, bool or char[PARAM_TEXT_SIZE] (TEXT, METHODS).
typedef struct Param {
    const char *name;
    ParamType type;
    size_t offset;
    double low, high;           // INT, REAL: inclusive
    const char *fallback;       // the default, as a user would write it
    const char *const *choices; // CHOICE: names, ending in NULL
    const char *help;           // one line
} Param;

// Fills `values` with the defaults.
void param_defaults(const Param *params, size_t count, void *values);

// Sets one parameter from text; an unknown key names the nearest known one.
bool param_set(const Param *params, size_t count, void *values, const char *key, const char *value, Error *e);

// Sets all of "key=value,key=value" ("" sets none). A comma in parentheses ends no value. A key given twice
// is an error.
bool param_parse(const Param *params, size_t count, void *values, const char *text, Error *e);

// Bytes of text in front of the first `end` that no parenthesis holds.
size_t param_span(const char *text, char end);

// Writes every parameter as key=value, comma separated, in table order: the form param_parse reads back.
void param_write(const Param *params, size_t count, const void *values, Text *out);

// One line per parameter: name, range, default, help.
void param_describe(const Param *params, size_t count, Text *out);
