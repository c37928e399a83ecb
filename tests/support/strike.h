// A program run under our eyes: the kernel stops it, its threads and its children at every system call that
// touches a file of `folder`, and asks us (seccomp's user notification; Linux 5.9 or later). We count, and
// let the n-th one fail, do half of its work, or kill the program. Nothing is preloaded or linked: calls of
// the C library, SQLite and gnuplot are struck like our own.
#pragma once
#include "engine/base/error.h"
#include "tests/support/child.h"

typedef enum StrikeKind {
    STRIKE_OPEN,   // open, openat
    STRIKE_READ,   // read, pread, readv
    STRIKE_WRITE,  // write, pwrite, writev
    STRIKE_SYNC,   // fsync, fdatasync
    STRIKE_RENAME, // rename, link
    STRIKE_MAP,    // mmap of a file
    STRIKE_CLOSE,
    STRIKE_RESIZE, // ftruncate, fallocate
    STRIKE_REMOVE, // unlink, rmdir
    STRIKE_FOLDER, // mkdir
    STRIKE_LOCK,   // fcntl's locks, flock
    STRIKE_STAT,   // stat and its kin
    STRIKE_PIPE,   // read and write of a pipe, of the program itself only
    STRIKE_START,  // pipe, and a new thread or process; of the program itself only
    STRIKE_MEMORY, // mmap of memory, brk; of the program itself only
    STRIKE_KINDS
} StrikeKind;

extern const char *const STRIKE_NAMES[STRIKE_KINDS];

typedef struct Strike {
    // Set by the caller.
    unsigned kinds; // bits of 1 << kind: the calls that are numbered; 0: the program runs unwatched
    int at;         // which of them, from 1; 0: none
    enum { STRIKE_FAILS, STRIKE_HALF, STRIKE_KILLS } way;
    int error;    // of the failing call
    bool lasting; // all after it fail, too, as on a full disk
    bool named;   // the file system has no files without a name (O_TMPFILE)
    // Set by strike_run.
    int counts[STRIKE_KINDS]; // of `kinds`
    int nameless;             // files without a name that were asked for
    bool struck;
    bool hung;       // it did not end, and was killed by us
    char where[300]; // the struck call, and its file
} Strike;

// Whether this kernel allows it; if not, `why` is filled.
bool strike_possible(Error *why);

// Runs argv in the folder `work`; the files in `folder`, a path without links, are those that count. Its
// standard output goes into the file `out`, so that it can be struck, too; `c` has the rest.
void strike_run(Strike *s, Child *c, const char *folder, const char *work, const char *out,
                const char *const *argv);
