// SQLite's write-ahead log (WAL) needs files beside the store, and memory that all processes share through
// them. Where those cannot be had, the store is opened
//
//      to read, if no log was left beside it    as a file that nobody changes ("immutable")
//      to write                                 by one process alone, which needs no shared memory; then a
//                                               rollback journal takes over, and others may come in again
//
// A trial is in memory, and has none of this.
#include "results/connect.h"

#include "engine/base/text.h"
#include "results/functions.h"
#include "results/rows.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
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

static bool has_log(const char *path) {
    char wal[PATH_MAX];
    return snprintf(wal, sizeof wal, "%s-wal", path) < (int)sizeof wal && access(wal, F_OK) == 0;
}

// Closes what was open, and opens `name` anew.
static bool open_as(Store *s, const char *name, int flags, Error *e) {
    sqlite3_close(s->db);
    s->db = NULL;
    int code = sqlite3_open_v2(name, &s->db, flags, s->vfs);
    if (code) return sql_error(s, code, e);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_timeout(s->db, (int)(s->wait_s * 1000));
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    code = functions_add(s->db);
    return code ? sql_error(s, code, e) : true;
}

static bool open_immutable(Store *s, Error *e) {
    Text uri = {0};
    text_puts(&uri, "file:");
    for (const char *p = s->path; *p; p++)
        if (strchr("?#%", *p)) text_printf(&uri, "%%%02x", (unsigned)*p);
        else text_add(&uri, p, 1);
    text_puts(&uri, "?immutable=1");
    bool ok = uri.failed ? error_system(e, "out of memory")
                         : open_as(s, text_get(&uri), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);
    text_release(&uri);
    return ok;
}

static bool open_alone(Store *s, Error *e) {
    s->alone = true;
    return open_as(s, s->path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e) &&
           sql_script(s, "PRAGMA locking_mode = EXCLUSIVE", e);
}

// SQLite looks into the file for these too, so that they come after the first look.
static bool settle(Store *s, Error *e) {
    return sql_script(
        s, "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536", e);
}

bool store_connect(Store *s, Error *e) {
    static const char LOOK[] = "SELECT count(*) FROM sqlite_schema";
    int flags = s->writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    if (!open_as(s, s->trial ? ":memory:" : s->path, flags, e)) return false;
    int code = try_script(s, LOOK);
    if (code == SQLITE_OK) return settle(s, e);
    if (s->writable && sqlite3_db_readonly(s->db, "main") == 1) return sql_error(s, SQLITE_READONLY, e);
    bool apart = wants_sharing(code) || (code & 0xff) == SQLITE_READONLY;
    if (!apart || (!s->writable && has_log(s->path))) return sql_error(s, code, e);
    return (s->writable ? open_alone : open_immutable)(s, e) && settle(s, e);
}

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
