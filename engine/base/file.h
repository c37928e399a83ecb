// Whole files: read, mapped, copied into memory, hashed, and written so that a reader never sees half of one.
#pragma once
#include "engine/base/error.h"
#include "engine/base/progress.h"

#include <stddef.h>
#include <stdint.h>

// Changes when a file's content does: nobody writes to a file without changing one of these.
typedef struct FileMark {
    uint64_t device, inode;
    int64_t size, written_ns; // the latter since 1970
} FileMark;

typedef struct FileView {
    const unsigned char *data; // size bytes; NULL when size is 0
    size_t size;
    FileMark mark; // of the file when it was mapped
} FileView;

// Maps a regular file read-only. Pages arrive when touched. file_unmap takes a zeroed view too.
//
// If the file is truncated while it's mapped, touching the pages beyond its new end raises SIGBUS. Long-lived
// views (a model's weights) have that risk; file_read doesn't, it reports the end.
bool file_map(const char *path, FileView *view, Error *e);
void file_unmap(FileView *view);

// Memory of zeros in a view's form, none of which is taken before it's written to.
bool file_empty(size_t size, FileView *view, Error *e);

// False with e filled if the file changed or is gone since it was mapped: a mapping shows what others write
// to its file. A view that isn't a mapping doesn't change.
bool file_is_unchanged(const FileView *view, const char *path, Error *e);

// Replaces a view's mapping by a copy in memory, on huge pages if the system has them, with byte `first` at
// the start of a cache line. The copy is faster to read than the file's pages (docs/speed.md), and truncating
// the file no longer matters. On success the view points elsewhere; on failure it's unchanged.
bool file_hold(const char *path, FileView *view, size_t first, const Progress *progress, Error *e);

// Reads a whole file of at most max_size bytes into memory and appends a NUL. Free with mem_free.
bool file_read(const char *path, size_t max_size, char **data, size_t *size, Error *e);

// A file that is being written, in the directory of a path; it takes that path's name when it's complete. If
// the file system can (O_TMPFILE), it has no name until then, so nothing remains of it however the program
// ends. Otherwise it has a temporary name.
typedef struct FilePart {
    int fd;
    char *name; // NULL: none yet
} FilePart;

bool file_part_open(FilePart *p, const char *path, Error *e);
bool file_part_write(FilePart *p, const void *data, size_t size); // false: errno has the reason
// Syncs, closes, takes the path's name, syncs the directory: at any moment, and after a crash, path holds
// either all of the old content or all of the new. Unless only the last sync fails, a failure leaves the old
// content in place. The part is gone in any case.
bool file_part_finish(FilePart *p, const char *path, Error *e);
void file_part_drop(FilePart *p);

// Writes a whole file as a part. Permissions follow the umask. A symbolic link is replaced; any other path
// that isn't a regular file is refused.
bool file_write(const char *path, const void *data, size_t size, Error *e);

// Whether anything readable is there: a file, a directory, a device.
bool file_exists(const char *path);

// Whether the descriptor is a pipe whose reader has left: poll then reports POLLERR, which a full disk
// doesn't.
bool file_reader_left(int descriptor);

// Makes a directory and those above it, as far as they're missing.
bool file_make_directory(const char *path, Error *e);

// Checks for free space before something large (`what`: "the weights") is written there, since a full disk
// makes other programs fail too. True if the file system doesn't report its space.
bool file_has_room(const char *path, double bytes, const char *what, Error *e);

// "dir/name", for mem_free.
char *file_path(const char *dir, const char *name);

// The directory that a path is in, for mem_free.
char *file_directory(const char *path);

// SHA-256 of bytes and files, as 64 lower-case hexadecimal digits: the name of the content behind a result.
enum { SHA256_TEXT = 65 }; // digits and the NUL
bool sha256_bytes(const void *data, size_t n, char out[SHA256_TEXT], Error *e);
bool sha256_file(const char *path, char out[SHA256_TEXT], Error *e);
