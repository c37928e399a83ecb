// Why something failed, in one line that a user can act on.
//
// A function that can fail on outside input returns bool (or NULL) and fills the Error it was given. The code
// that knows the facts writes the message: lower case, the failure, 'the subject', the place, the fix. Only
// main prints it and picks the exit code. A programming error is an assert instead.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Before a parameter that a function doesn't read, as others of its table do, and before a parameter or a
// variable that only asserts read.
#define UNUSED __attribute__((unused))

typedef enum {
    ERROR_NONE,
    ERROR_INPUT,       // the user's file, option or config: exit code 2
    ERROR_SYSTEM,      // memory, disk, device: exit code 1
    ERROR_INTERRUPTED, // by a signal: exit code 130
} ErrorKind;

typedef struct Error {
    ErrorKind kind;
    char text[1024]; // one line of valid UTF-8 without control characters; cut between characters if too long
} Error;

// Both return false, so that a failing function can end with `return error_input(e, ...)`. The last message
// wins. e may be NULL. Bytes of foreign files may be passed with %s: control characters and invalid UTF-8
// become '?', so the message stays one line that any terminal or file can take. Arguments must not point into
// e itself; use error_within.
bool error_input(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool error_system(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The user interrupted the work (progress.h). what: its name, or NULL. Returns false.
bool error_interrupted(Error *e, const char *what);

// Puts "prefix: " before the message, for callers that know the place; leaves the message of an interruption
// alone. Returns false.
bool error_within(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The exit code of a program that stops for this error.
int error_exit_code(const Error *e);

// "Did you mean": the name nearest to `word` in a table, or NULL if none is near enough. A row of `size`
// bytes begins with its name; size 0: the table has pointers to such rows.
// suggest_distance counts the edits (insert, delete, replace, swap neighbours) that turn a into b; names of
// 64 characters or more are either equal (0) or far apart (64).
const char *suggest(const char *word, const void *table, size_t count, size_t size);
int suggest_distance(const char *a, const char *b);
