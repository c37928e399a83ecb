// A program run as a child, in a folder of its own: what end-to-end tests are made of.
#pragma once
#include "engine/base/text.h"
#include "tests/support/folder.h"

#include <sys/types.h>

typedef struct Child {
    int code;          // exit code, or 128 + the signal that ended it
    double seconds;    // of processor time: a busy machine makes it no longer
    size_t peak_bytes; // most memory that it held
    Text out, err;     // all that it wrote
} Child;

// Runs argv (NULL at its end; argv[0] a path or a name on $PATH) in `folder` (NULL: here), with `input`
// (NULL: nothing) on its standard input, until it ends. The test fails if it cannot be started.
void child_run(Child *c, const char *folder, const char *input, const char *const *argv);
void child_release(Child *c); // takes an empty one

// Starts it with these files as its standard ones; child_wait gives the code as above.
pid_t child_start(const char *folder, const char *const *argv, int in, int out, int err);
int child_wait(pid_t pid);

// Runs the program under test ($OUTPACE, or ./outpace) with these words in `folder`; the test fails unless it
// ends with `code`. What `c` held before is not released.
void child_outpace(Child *c, const char *folder, int code, const char *const *words);
#define CHILD_OUTPACE(c, folder, code, ...) \
    child_outpace(c, folder, code, (const char *const[]){__VA_ARGS__, NULL})

// The same with a terminal of so many columns as its standard output, which `out` holds as it was written.
void child_terminal(Child *c, const char *folder, int columns, int code, const char *const *words);
#define CHILD_TERMINAL(c, folder, columns, code, ...) \
    child_terminal(c, folder, columns, code, (const char *const[]){__VA_ARGS__, NULL})

int child_widest(const Child *c); // letters of the longest line of its output
