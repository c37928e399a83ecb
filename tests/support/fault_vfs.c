#include "tests/support/fault_vfs.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

static int left, syncs;
static bool is_full, stays_dead, seen, is_apart;

void fault_vfs_after(int n, bool full, bool dead) {
    left = n;
    is_full = full;
    stays_dead = dead;
    seen = false;
}

bool fault_vfs_seen(void) { return seen; }
int fault_vfs_syncs(void) { return syncs; }
void fault_vfs_apart(bool apart) { is_apart = apart; }

static bool fails(void) {
    if (seen && stays_dead) return true;
    if (left == 0 || --left > 0) return false;
    return seen = true;
}

// --- files -----------------------------------------------------------------------------------------------

// Ours, and after it the real one.
typedef struct {
    sqlite3_file base;
    sqlite3_file *real;
} File;

#define REAL(f)              (((File *)(f))->real)
#define ASK(f, method)       REAL(f)->pMethods->method(REAL(f))
#define CALL(f, method, ...) REAL(f)->pMethods->method(REAL(f), __VA_ARGS__)

static int file_close(sqlite3_file *f) {
    int code = ASK(f, xClose);
    free(REAL(f));
    return code;
}
static int file_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) { return CALL(f, xRead, p, n, at); }
static int file_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
    if (!fails()) return CALL(f, xWrite, p, n, at);
    return is_full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}
static int file_truncate(sqlite3_file *f, sqlite3_int64 n) {
    return fails() ? SQLITE_IOERR_TRUNCATE : CALL(f, xTruncate, n);
}
static int file_sync(sqlite3_file *f, int flags) {
    (void)f;
    (void)flags;
    syncs++; // it doesn't test power cuts, so there's no need to wait for the disk
    return fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}
static int file_size(sqlite3_file *f, sqlite3_int64 *n) { return CALL(f, xFileSize, n); }
static int file_lock(sqlite3_file *f, int kind) { return CALL(f, xLock, kind); }
static int file_unlock(sqlite3_file *f, int kind) { return CALL(f, xUnlock, kind); }
static int file_reserved(sqlite3_file *f, int *out) { return CALL(f, xCheckReservedLock, out); }
static int file_control(sqlite3_file *f, int op, void *p) { return CALL(f, xFileControl, op, p); }
static int file_sector(sqlite3_file *f) { return ASK(f, xSectorSize); }
static int file_device(sqlite3_file *f) { return ASK(f, xDeviceCharacteristics); }
static int file_shm_map(sqlite3_file *f, int i, int n, int extend, void volatile **p) {
    if (is_apart) return SQLITE_IOERR_SHMMAP;
    return CALL(f, xShmMap, i, n, extend, p);
}
static int file_shm_lock(sqlite3_file *f, int at, int n, int flags) {
    return CALL(f, xShmLock, at, n, flags);
}
static void file_shm_barrier(sqlite3_file *f) { ASK(f, xShmBarrier); }
static int file_shm_unmap(sqlite3_file *f, int delete) { return CALL(f, xShmUnmap, delete); }

static const sqlite3_io_methods METHODS = {.iVersion = 2,
                                           .xClose = file_close,
                                           .xRead = file_read,
                                           .xWrite = file_write,
                                           .xTruncate = file_truncate,
                                           .xSync = file_sync,
                                           .xFileSize = file_size,
                                           .xLock = file_lock,
                                           .xUnlock = file_unlock,
                                           .xCheckReservedLock = file_reserved,
                                           .xFileControl = file_control,
                                           .xSectorSize = file_sector,
                                           .xDeviceCharacteristics = file_device,
                                           .xShmMap = file_shm_map,
                                           .xShmLock = file_shm_lock,
                                           .xShmBarrier = file_shm_barrier,
                                           .xShmUnmap = file_shm_unmap};

// --- the file system -------------------------------------------------------------------------------------

static sqlite3_vfs *real_vfs(sqlite3_vfs *v) { return v->pAppData; }

static int vfs_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out) {
    File *file = (File *)f;
    *file = (File){.real = calloc(1, (size_t)real_vfs(v)->szOsFile)};
    if (!file->real) return SQLITE_NOMEM;
    int code = real_vfs(v)->xOpen(real_vfs(v), name, file->real, flags, out);
    if (code) free(file->real);
    else file->base.pMethods = &METHODS;
    return code;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync) {
    (void)sync;
    return fails() ? SQLITE_IOERR_DELETE : real_vfs(v)->xDelete(real_vfs(v), name, 0);
}

const char *fault_vfs(void) {
    static sqlite3_vfs vfs;
    if (vfs.zName) return vfs.zName;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    vfs = *real;
    vfs.zName = "fault";
    vfs.szOsFile = sizeof(File);
    vfs.pAppData = real;
    vfs.xOpen = vfs_open;
    vfs.xDelete = vfs_delete;
    sqlite3_vfs_register(&vfs, 0);
    return vfs.zName;
}
