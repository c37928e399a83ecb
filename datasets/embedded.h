// Files that are part of the program: the small sets of our own and the table of sources.
#pragma once
#include <stddef.h>

typedef struct Embedded {
    const char *file;       // its path in the repository
    const char *data, *end; // a NUL stands at the end
} Embedded;

const Embedded *embedded_find(const char *file, size_t n); // NULL: it is not one of them
