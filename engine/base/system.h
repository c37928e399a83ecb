// The kernel's text files (/proc, /sys), and the limits that they set this process on processors and memory,
// in a container, too (control groups, versions 1 and 2). A file that is missing sets no limit.
#pragma once
#include <stddef.h>

// The first bytes of a file, without the last newline; empty if it cannot be read.
void system_text(const char *path, char *out, size_t size);

// The number after "key<blanks>" at the start of a line; `none` if there is none.
size_t system_number(const char *text, const char *key, size_t none);

// Of the process's groups and all groups above them, the smallest.
typedef struct Limits {
    double cores;  // whose time it may use; INFINITY: no quota
    size_t memory; // bytes; SIZE_MAX: no limit
    size_t room;   // bytes of it that are free, or hold pages of files that could be dropped
} Limits;

// root: a folder in place of /, for tests; otherwise "".
void limits_read(const char *root, Limits *out);

// Of so many processors those whose time the process may use: down to whole ones, at least 1.
int system_processors(int present);

// Bytes that it may still take; 0: the system doesn't say.
size_t system_memory(void);
