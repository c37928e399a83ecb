// Why something failed, in one line that a user can act on.
//
// A function that can fail on outside input returns bool (or NULL) and fills the Error it was given. The
// message is written where the knowledge is: lower case, what failed, 'the subject', the place, the mend.
// Only main prints it and picks the exit code. A programming error is an assert instead.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef enum {
    ERROR_NONE,
    ERROR_INPUT,       // a file, flag or config of the user's: exit code 2
    ERROR_SYSTEM,      // memory, disk, device: exit code 1
    ERROR_INTERRUPTED, // by a signal: exit code 130
} ErrorKind;

typedef struct Error {
    ErrorKind kind;
    char text[1024]; // one line, no control characters, valid UTF-8; cut at a character's border if too long
} Error;

// Both return false, so that a failing function can end with `return error_input(e, ...)`. The last
// message wins. e may be NULL. Bytes of foreign files may be passed with %s: control characters and what is
// not UTF-8 are replaced by '?', so that the message stays one line that any terminal or file can take. No
// argument may point into e itself; use error_within.
bool error_input(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool error_system(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The work was told to end (progress.h). what: its name, or NULL. Returns false.
bool error_interrupted(Error *e, const char *what);

// Puts "prefix: " before the message that is there; for callers that know the place. Work that was
// interrupted has none. Returns false.
bool error_within(Error *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The exit code of a program that stops for this error.
int error_exit_code(const Error *e);

// "Did you mean": the name in a table of `count` rows that is nearest to `word`, or NULL if none is near
// enough to be meant. suggest_distance counts edits (insert, delete, replace, swap of neighbours) from a to
// b, for names of up to 63 characters; more for longer.
const char *suggest(const char *word, const void *table, size_t count,
                    const char *(*name_at)(const void *, size_t));
int suggest_distance(const char *a, const char *b);
