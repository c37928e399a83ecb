// Whole files: read, mapped, written so that a reader never sees half of one.
#pragma once
#include "engine/base/error.h"

#include <stddef.h>

typedef struct FileView {
    const unsigned char *data; // size bytes; NULL when size is 0
    size_t size;
} FileView;

// Maps a regular file read-only. Pages arrive when touched. file_unmap takes a zeroed view too.
//
// A file that is cut shorter while it is mapped takes its last pages with it: touching them raises SIGBUS.
// Whoever keeps a view for long (a model's weights) has to reckon with that; file_read does not, it reports
// the end.
bool file_map(const char *path, FileView *view, Error *e);
void file_unmap(FileView *view);

// Reads a whole file of at most max_size bytes into memory, with a NUL after it. Free with mem_free.
bool file_read(const char *path, size_t max_size, char **data, size_t *size, Error *e);

// Writes under a temporary name beside path, syncs, renames, syncs the directory: at any moment, and after a
// crash, path holds either all of the old content or all of the new. A failure leaves nothing behind, and the
// old content in place unless it was the last step that failed. Permissions are what the umask gives; a
// symbolic link is replaced, anything else that is not a regular file is refused.
bool file_write(const char *path, const void *data, size_t size, Error *e);

// Whether there is something readable there, of whatever kind.
bool file_exists(const char *path);

// Whether what is written there reaches nobody any more: of a pipe whose reader has left, poll says POLLERR;
// of a full disk it does not.
bool file_reader_left(int descriptor);

// Makes a directory, and those above it, where they are missing.
bool file_make_directory(const char *path, Error *e);

// "dir/name", for mem_free; NULL if there is no memory.
char *file_path(const char *dir, const char *name);
