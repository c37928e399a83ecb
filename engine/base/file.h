// Whole files: read, mapped, written so that a reader never sees half of one.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct FileView {
    const unsigned char *data; // size bytes; NULL when size is 0
    size_t size;
} FileView;

// Maps a regular file read-only. Pages arrive when touched. file_unmap takes a zeroed view too.
bool file_map(const char *path, FileView *view, Error *e);
void file_unmap(FileView *view);

// Reads a whole file of at most max_size bytes into memory, with a NUL behind it. Free with mem_free.
bool file_read(const char *path, size_t max_size, char **data, size_t *size, Error *e);

// Writes to a temporary name beside path, syncs, renames: path holds either the old content or all of the
// new.
bool file_write(const char *path, const void *data, size_t size, Error *e);

bool file_exists(const char *path);

// "dir/name", for mem_free; NULL if there is no memory.
char *file_path(const char *dir, const char *name);
