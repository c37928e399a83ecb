// Opening: find out whose file this is, bring it to this version, renew the views.
//
// A new store and an old one come to this version alike: by the scripts that they have not seen, all in one
// transaction. Views are no data: where their text is another than the program's, they are made anew; of a
// store that may only be read they are made beside it, in memory.
#include "results/open.h"

#include "engine/base/shipped.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/connect.h"
#include "results/rows.h"
#include "results/sql.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION = 1330992208, DEFAULT_WAIT_S = 10 };

EMBED(results_schema, "results/schema.sql")
EMBED(results_schema_2, "results/schema_2.sql")
EMBED(results_schema_3, "results/schema_3.sql")
EMBED(results_schema_4, "results/schema_4.sql")
EMBED(results_schema_5, "results/schema_5.sql")
EMBED(results_views, "results/views.sql")

static const StoreScript SCRIPTS[] = {results_schema, results_schema_2, results_schema_3, results_schema_4,
                                      results_schema_5};
enum { VERSION = sizeof SCRIPTS / sizeof *SCRIPTS };

// --- what the file says of itself ------------------------------------------------------------------------

static bool ask(Store *s, const char *sql, int64_t *out, Error *e) {
    *out = 0;
    Error own = {0};
    if (rows_one_int(s, sql, 0, out, &own) || own.kind == ERROR_NONE) return true;
    if (e) *e = own;
    return false;
}

// Its version; 0: it is new.
static bool read_version(Store *s, int newest, int64_t *version, Error *e) {
    int64_t application, tables;
    if (!ask(s, "PRAGMA application_id", &application, e) || !ask(s, "PRAGMA user_version", version, e) ||
        !ask(s, "SELECT count(*) FROM sqlite_schema", &tables, e))
        return false;
    if (application != APPLICATION && (tables > 0 || application || *version))
        return error_input(e, "store '%s': it is a database of another program", s->path);
    if (*version < 0 || *version > newest)
        return error_input(
            e, "store '%s': its version is %lld, this program knows up to %d: use a newer outpace", s->path,
            (long long)*version, newest);
    return true;
}

// --- versions and views ----------------------------------------------------------------------------------

bool store_migrate(Store *s, const StoreScript *scripts, int count, Error *e) {
    int64_t version;
    if (!read_version(s, count, &version, e)) return false;
    if (version == count) return true;
    if (!sql_enter(s, e)) return false;
    bool ok = read_version(s, count, &version, e); // again: another process may have been first
    for (int64_t v = version; ok && v < count; v++) ok = sql_script(s, scripts[v], e);
    return sql_leave(s, ok, e);
}

static bool drop_views(Store *s, Error *e) {
    Text t = {0};
    Rows *r =
        rows_open(s,
                  "SELECT 'DROP VIEW \"' || replace(name, '\"', '\"\"') || '\";' FROM main.sqlite_schema"
                  " WHERE type = 'view'",
                  e);
    if (!r) return false;
    while (rows_next(r)) text_puts(&t, rows_text(r, 0));
    bool ok = rows_end(r, !t.failed || error_system(e, "out of memory"), e) && sql_script(s, text_get(&t), e);
    text_release(&t);
    return ok;
}

// In memory, in front of those in the file. No comment of views.sql says CREATE VIEW.
static bool views_aside(Store *s, Error *e) {
    static const char CREATE[] = "CREATE VIEW ";
    Text t = {0};
    const char *from = results_views;
    for (const char *at; (at = strstr(from, CREATE)); from = at + strlen(CREATE)) {
        text_add(&t, from, (size_t)(at - from));
        text_puts(&t, "CREATE TEMP VIEW ");
    }
    text_puts(&t, from);
    bool ok = t.failed ? error_system(e, "out of memory") : sql_script(s, text_get(&t), e);
    text_release(&t);
    return ok;
}

static bool make_views(Store *s, const char *hash, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = drop_views(s, e) && sql_script(s, results_views, e) &&
              sql_run(s, STATEMENT_VIEWS_SET, VALUES(of_text(hash)), e);
    return sql_leave(s, ok, e);
}

static bool renew_views(Store *s, Error *e) {
    char hash[SHA256_TEXT];
    int64_t same;
    if (!sha256_bytes(results_views, strlen(results_views), hash, e) ||
        !sql_find(s, STATEMENT_VIEWS_SAME, VALUES(of_text(hash)), &same, NULL, e))
        return false;
    return same || (s->writable ? make_views(s, hash, e) : views_aside(s, e));
}

// --- open and close --------------------------------------------------------------------------------------

static bool check_path(const char *path, StoreMode mode, Error *e) {
    struct stat st;
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!path[0] || strcmp(path, ":memory:") == 0) // SQLite would forget what these hold
        return error_input(e, "store '%s': a store is a file, and this names none", path);
    if (mode == STORE_TRIAL) return true;
    if (stat(path, &st) == 0)
        return S_ISREG(st.st_mode) || error_input(e, "store '%s': not a regular file", path);
    if (errno != ENOENT && errno != ENOTDIR)
        return error_system(e, "store '%s': cannot look at it: %s", path, strerror(errno));
    if (mode == STORE_READ)
        return error_input(e, "store '%s': there is none; 'outpace run CONFIG' makes it", path);
    if (!slash || slash == path) return true;
    if ((size_t)(slash - path) >= sizeof directory)
        return error_input(e, "store '%s': the path is too long", path);
    snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
    return file_make_directory(directory, e);
}

static bool prepare(Store *s, Error *e) {
    int64_t version;
    if (!read_version(s, VERSION, &version, e)) return false; // before anything is changed
    if (!s->writable && version < VERSION)
        return error_input(e,
                           "store '%s': its version is %lld, this program reads %d: 'outpace store gc --db "
                           "%s' brings it there",
                           s->path, (long long)version, (int)VERSION, s->path);
    if (s->writable && !(store_journal(s, e) && store_migrate(s, SCRIPTS, VERSION, e))) return false;
    return sql_script(s, "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL", e) && renew_views(s, e) &&
           (s->writable || sql_script(s, "PRAGMA query_only = ON", e));
}

Store *store_open(const char *path, StoreMode mode, const StoreOptions *options, Error *e) {
    if (!check_path(path, mode, e)) return NULL;
    Store *s = mem_alloc(1, sizeof *s);
    if (!s || !(s->path = mem_text(path, strlen(path)))) {
        mem_free(s);
        error_system(e, "out of memory");
        return NULL;
    }
    s->claims = -1;
    s->wait_s = options && options->wait_s > 0 ? options->wait_s : DEFAULT_WAIT_S;
    s->waits = options ? options->waits : NULL;
    s->writable = mode != STORE_READ;
    s->trial = mode == STORE_TRIAL;
    s->vfs = options ? options->vfs : NULL;
    if (store_connect(s, e) && prepare(s, e)) return s;
    store_close(s);
    return NULL;
}

void store_close(Store *s) {
    if (!s) return;
    store_rollback(s);
    for (int i = 0; i < STATEMENTS; i++) sqlite3_finalize(s->prepared[i]);
    sqlite3_close(s->db);
    if (s->claims >= 0) close(s->claims);
    mem_free(s->path);
    mem_free(s);
}

const char *store_path(const Store *s) { return s->path; }
