// A condition over parameters, as `exclude where` takes it:
//
//   W > 15 and not (G == 3 or mode == reference)
//
// Comparisons (== != < <= > >=) between parameters, numbers and words; `and`, `or`, `not`, parentheses. `not`
// binds closest, then `and`. Words are equal or not, and have no order; a word that the parameter can never
// be is an error, so that a slip of the pen does not silently exclude nothing.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { CONDITION_BYTES = 1000 };

// A value that can be compared: a number, or a word (text not NULL).
typedef struct Variable {
    const char *name;
    double number;
    const char *text;
    const char *const *choices; // all that text can be, ending in NULL; NULL: anything
} Variable;

typedef struct Scope {
    const Variable *variables;
    size_t count;
} Scope;

extern const char *const condition_on_off[]; // the choices of a switch; true and false mean them, too

// All of the text is checked, whatever the outcome. False with e filled: the reason, without its place.
bool condition_holds(const char *text, const Scope *scope, bool *holds, Error *e);
