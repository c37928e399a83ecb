// SQLite's write-ahead log (WAL) needs files beside the store, and memory that all processes share through
// them. The last one that closes a store removes them, if it may write: so a store is opened to be written
// even where it is only read (and then refuses to change anything). Where they cannot be had, it is opened
//
//      to read, if no log was left beside it    as a file that nobody changes ("immutable"); every query ends
//                                               by looking whether somebody did
//      to write                                 by one process alone, which needs no shared memory; then a
//                                               rollback journal takes over, and others may come in again
//
// A trial is in memory, and has none of this.
#include "results/connect.h"

#include "engine/base/clock.h"
#include "engine/base/text.h"
#include "results/functions.h"
#include "results/rows.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int try_script(Store *s, const char *script) { return sqlite3_exec(s->db, script, NULL, NULL, NULL); }

// Whether this says that files beside the store, or memory shared through them, are not to be had.
static bool wants_sharing(int code) {
    int primary = code & 0xff;
    return primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_PROTOCOL;
}

// A network file system cannot share memory, though it may say so.
static bool on_network(const char *path) {
    static const unsigned long KINDS[] = {0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x65735546};
    struct statfs at; // NFS, SMB (three), 9P, FUSE
    if (statfs(path, &at)) return false;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (((unsigned long)at.f_type & 0xffffffff) == KINDS[i]) return true;
    return false;
}

// One that holds anything; it is beside the file itself, not beside a link to it.
static bool has_log(const char *path) {
    char file[PATH_MAX], wal[PATH_MAX + 8];
    struct stat st;
    if (!realpath(path, file)) return false;
    snprintf(wal, sizeof wal, "%s-wal", file);
    return stat(wal, &st) == 0 && st.st_size > 0;
}

// The path as SQLite takes it where parameters may follow it.
static bool uri_of(const char *path, bool immutable, Text *out, Error *e) {
    text_puts(out, path[0] == '/' ? "file://" : "file:");
    for (const char *p = path; *p; p++)
        if (strchr("?#%", *p)) text_printf(out, "%%%02x", (unsigned)*p);
        else text_add(out, p, 1);
    if (immutable) text_puts(out, "?immutable=1");
    return !out->failed || error_system(e, "out of memory");
}

// SQLite asks this again and again while another process has the lock. 0 gives up, and SQLite says BUSY.
static int wait_for_lock(void *state, int asked) {
    static const struct timespec MOMENT = {.tv_nsec = 50000000};
    Store *s = state;
    double now = clock_now(clock_monotonic()), before = asked ? s->waited : 0;
    if (!asked) s->began = now;
    s->waited = now - s->began;
    s->ended = s->waits && !s->waits(s->path, before, s->waited);
    if (s->ended || (!s->waits && s->waited >= s->wait_s)) return 0;
    nanosleep(&MOMENT, NULL);
    return 1;
}

// Closes what was open, and opens it anew.
static bool open_as(Store *s, int flags, bool immutable, Error *e) {
    Text uri = {0};
    sqlite3_close(s->db);
    s->db = NULL;
    bool named = s->trial || uri_of(s->path, immutable, &uri, e);
    const char *name = s->trial ? ":memory:" : text_get(&uri);
    int code = named ? sqlite3_open_v2(name, &s->db, flags | SQLITE_OPEN_URI, s->vfs) : SQLITE_NOMEM;
    text_release(&uri);
    if (code) return sql_error(s, code, e);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_handler(s->db, wait_for_lock, s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    code = functions_add(s->db);
    return code ? sql_error(s, code, e) : true;
}

static bool look(const char *path, StoreFile *out) {
    struct stat st;
    if (stat(path, &st)) return false;
    *out = (StoreFile){.device = st.st_dev, .inode = st.st_ino, .bytes = st.st_size, .changed = st.st_mtim};
    return true;
}

// How the file was is seen before its first byte is read.
static bool open_immutable(Store *s, Error *e) {
    if (has_log(s->path))
        return error_input(e,
                           "store '%s': its last writer did not end well, and what it left in '%s-wal' can "
                           "only be read where both may be written: copy them elsewhere",
                           s->path, s->path);
    s->fixed = look(s->path, &s->file);
    if (!s->fixed) return sql_error(s, SQLITE_CANTOPEN, e);
    return open_as(s, SQLITE_OPEN_READONLY, true, e);
}

bool store_unchanged(const Store *s, Error *e) {
    StoreFile now;
    if (!s->fixed) return true;
    if (!has_log(s->path) && look(s->path, &now) && now.device == s->file.device &&
        now.inode == s->file.inode && now.bytes == s->file.bytes &&
        now.changed.tv_sec == s->file.changed.tv_sec && now.changed.tv_nsec == s->file.changed.tv_nsec)
        return true;
    return error_input(e, "store '%s': another process wrote it while it was read; ask again", s->path);
}

static bool open_alone(Store *s, Error *e) {
    s->alone = true;
    return open_as(s, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, false, e) &&
           sql_script(s, "PRAGMA locking_mode = EXCLUSIVE", e);
}

// SQLite looks into the file for these too, so that they come after the first look.
static bool settle(Store *s, Error *e) {
    return sql_script(
        s, "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536", e);
}

// Others' logs cannot be removed again by who may not write; without a log there is nothing in it to read.
static bool try_to_open(Store *s, int *code, Error *e) {
    static const char LOOK[] = "SELECT count(*) FROM sqlite_schema";
    bool may_write = s->writable || access(s->path, W_OK) == 0;
    int flags = may_write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
    *code = SQLITE_READONLY;
    if (!may_write && !has_log(s->path)) return true;
    if (!open_as(s, flags | (s->writable ? SQLITE_OPEN_CREATE : 0), false, e)) return false;
    *code = try_script(s, LOOK);
    return true;
}

bool store_connect(Store *s, Error *e) {
    int code;
    if (!try_to_open(s, &code, e)) return false;
    if (code == SQLITE_OK) return settle(s, e);
    if (s->writable && sqlite3_db_readonly(s->db, "main") == 1) return sql_error(s, SQLITE_READONLY, e);
    if (!wants_sharing(code) && (code & 0xff) != SQLITE_READONLY) return sql_error(s, code, e);
    return (s->writable ? open_alone : open_immutable)(s, e) && settle(s, e);
}

bool store_attach(Store *s, const Store *other, Error *e) {
    Text uri = {0};
    bool ok = uri_of(other->path, other->fixed, &uri, e) &&
              sql_run(s, STATEMENT_ATTACH, VALUES(of_text(text_get(&uri))), e);
    text_release(&uri);
    return ok;
}

// --- while it is open ------------------------------------------------------------------------------------

bool store_there(const Store *s, Error *e) {
    int moved = 0;
    if (s->trial) return true;
    sqlite3_file_control(s->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    const char *wal = sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
    bool log_is_gone = s->logged && access(wal, F_OK) && errno == ENOENT;
    if (!moved && !log_is_gone) return true;
    return error_system(
        e,
        "store '%s': %s was deleted or replaced while the store was in use, so nothing more can "
        "be stored in it: run the same command again to begin anew",
        s->path, moved ? "its file" : "its log, the -wal beside it,");
}

// --- journals --------------------------------------------------------------------------------------------

// A file system may leave the journal as it was, and say nothing.
static bool see_journal(Store *s, Error *e) {
    int64_t wal = 0;
    bool ok = rows_one_int(s, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0, &wal, e);
    s->logged = wal != 0;
    return ok;
}

bool store_journal(Store *s, Error *e) {
    if (s->trial) return true;
    static const char TRY[] = "PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema";
    static const char ELSE[] =
        "PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema";
    int code = s->alone || on_network(s->path) ? SQLITE_IOERR : try_script(s, TRY);
    if (code == SQLITE_OK) return see_journal(s, e);
    if (!wants_sharing(code)) return sql_error(s, code, e);
    return (s->alone || (open_alone(s, e) && settle(s, e))) && sql_script(s, ELSE, e);
}
