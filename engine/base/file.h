// Whole files: read, mapped, copied into memory, hashed, and written so that a reader never sees half of one.
#pragma once
#include "engine/base/error.h"
#include "engine/base/progress.h"

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

// Puts memory with the same content in the place of a view's mapping, in huge pages where the system has
// them, and so that byte `first` of it begins a cache line. It is then read faster than the file's pages
// (docs/speed.md), and a file that is cut shorter takes nothing with it. The view is elsewhere afterwards; on
// failure it is what it was.
bool file_hold(const char *path, FileView *view, size_t first, const Progress *progress, Error *e);

// Reads a whole file of at most max_size bytes into memory, with a NUL after it. Free with mem_free.
bool file_read(const char *path, size_t max_size, char **data, size_t *size, Error *e);

// A file that is being written in the directory of a path, and takes that path's name when it is whole. Where
// the file system can (O_TMPFILE) it has no name until then: whatever ends the program, nothing is left of
// it. Elsewhere it has a temporary one.
typedef struct FilePart {
    int fd;
    char *name; // NULL: none yet
} FilePart;

bool file_part_open(FilePart *p, const char *path, Error *e);
bool file_part_write(FilePart *p, const void *data, size_t size); // false: errno tells why
// Syncs, closes, takes the path's name, syncs the directory: at any moment, and after a crash, path holds
// either all of the old content or all of the new. A failure leaves the old content in place unless it was
// the last step that failed. The part is gone in any case.
bool file_part_finish(FilePart *p, const char *path, Error *e);
void file_part_drop(FilePart *p);

// Writes a whole file as a part. Permissions are what the umask gives; a symbolic link is replaced, anything
// else that is not a regular file is refused.
bool file_write(const char *path, const void *data, size_t size, Error *e);

// Whether there is something readable there, of whatever kind.
bool file_exists(const char *path);

// Whether what is written there reaches nobody any more: of a pipe whose reader has left, poll says POLLERR;
// of a full disk it does not.
bool file_reader_left(int descriptor);

// Makes a directory, and those above it, where they are missing.
bool file_make_directory(const char *path, Error *e);

// Asked before something large is written there: a disk that is full fails others, too. `what` is it ("the
// weights"). True where the file system does not tell.
bool file_has_room(const char *path, double bytes, const char *what, Error *e);

// "dir/name", for mem_free; NULL if there is no memory.
char *file_path(const char *dir, const char *name);

// The directory that a path is in, for mem_free; NULL if there is no memory.
char *file_directory(const char *path);

// SHA-256 of bytes and files, as 64 lower-case hexadecimal digits: names the content that a result came from.
enum { SHA256_TEXT = 65 }; // digits and the NUL
bool sha256_bytes(const void *data, size_t n, char out[SHA256_TEXT], Error *e);
bool sha256_file(const char *path, char out[SHA256_TEXT], Error *e);
