// Opening a store, and the care of its file.
//
// Connecting. SQLite's write-ahead log (WAL) needs files next to the store, and memory that all processes
// share through them. The last process that closes a store removes these files, if it may write: so a store
// is opened for writing even if it is only read (and then refuses changes). Where that is impossible, it is
// opened
//
//      to read, if there is no log     "immutable", as a file that nobody changes; at its end every query
//                                      checks whether somebody did
//      to write                        by this process alone, which needs no shared memory; a rollback
//                                      journal then replaces the log, and others may open it again
//
// A trial is in memory and needs none of this.
//
// Versions. A new store is made by schema.sql, in one transaction; one of another version is refused. Views
// hold no data: where their text differs from the program's, they are made again; for a store that is only
// read they are made in memory, in front of those in the file. All other differences of the schema are
// refused (schema.c).
//
// Machines that mount a network file system share no memory. A store on one has a rollback journal, so that
// other machines can read it meanwhile, and one writer, which holds a lock on byte RUN_LOCKS. A second writer
// is refused, and so is one that cannot lock.
//
// Run locks. A lock on one byte of the file, far behind its end: byte RUN_LOCKS + run. The system releases it
// when the process ends, however it ends. SQLite's own locks belong to the process, and closing any
// descriptor of the file drops them: so the descriptor of the run locks is closed after SQLite's
// (store_close), and a process that takes run locks opens its store once.
#include "results/sql.h"

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#if SQLITE_VERSION_NUMBER < 3037000
#error "Outpace needs SQLite 3.37 or newer: the tables of its stores are STRICT"
#endif

enum { APPLICATION = 1330992208, DEFAULT_WAIT_S = 10 };

EMBED(results_schema, "results/schema.sql")
EMBED(results_views, "results/views.sql")

// --- connecting -----------------------------------------------------------------------------------------

static int try_script(Store *s, const char *script) { return sqlite3_exec(s->db, script, NULL, NULL, NULL); }

// Whether the code means that files next to the store, or memory shared through them, are unavailable.
static bool wants_sharing(int code) {
    int primary = code & 0xff;
    return primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_PROTOCOL;
}

// File systems that several machines may have mounted: no memory is shared through their files, even where
// they claim so. By statfs.
static const struct {
    uint32_t kind;
    const char *name;
} NETWORKS[] = {
    {0x6969, "NFS"},          {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
    {0x00c36400, "CephFS"},   {0x517b, "SMB"},        {0xff534d42, "SMB"},    {0xfe534d42, "SMB"},
    {0x01021997, "9P"},       {0x65735546, "FUSE"},   {0x5346414f, "AFS"},    {0x6b414653, "AFS"},
    {0x7461636f, "OCFS2"},    {0x01161970, "GFS2"},   {0xaad7aaea, "PanFS"},  {0x20030528, "OrangeFS"},
    {0xbeefdead, "StorNext"}, {0x73757245, "Coda"},   {0x786f4256, "vboxsf"}, {0xbacbacbc, "vmhgfs"},
};

// The network file system that the store is on, or NULL.
static const char *network_of(const Store *s) {
    struct statfs at;
    uint32_t kind = s->file_system;
    if (s->trial || (!kind && statfs(s->path, &at))) return NULL;
    if (!kind) kind = (uint32_t)at.f_type;
    for (size_t i = 0; i < sizeof NETWORKS / sizeof *NETWORKS; i++)
        if (NETWORKS[i].kind == kind) return NETWORKS[i].name;
    return NULL;
}

// Whether a log with content is next to the file itself (not next to a link to it).
static bool has_log(const char *path) {
    char file[PATH_MAX], wal[PATH_MAX + 8];
    struct stat st;
    if (!realpath(path, file)) return false;
    snprintf(wal, sizeof wal, "%s-wal", file);
    return stat(wal, &st) == 0 && st.st_size > 0;
}

// Appends the path as a URI, which parameters may follow.
static void put_uri(const char *path, bool immutable, Text *out) {
    text_puts(out, path[0] == '/' ? "file://" : "file:");
    for (const char *p = path; *p; p++)
        if (strchr("?#%", *p)) text_printf(out, "%%%02x", (unsigned)*p);
        else text_add(out, p, 1);
    if (immutable) text_puts(out, "?immutable=1");
}

// SQLite calls this repeatedly while another process has the lock. 0 gives up with SQLITE_BUSY.
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

// Closes the connection if there is one, and opens another.
static bool open_as(Store *s, int flags, bool immutable, Error *e) {
    LOCAL_TEXT uri = {0};
    sqlite3_close(s->db);
    s->db = NULL;
    if (s->trial) text_puts(&uri, ":memory:");
    else put_uri(s->path, immutable, &uri);
    int code = sqlite3_open_v2(text_get(&uri), &s->db, flags | SQLITE_OPEN_URI, s->vfs);
    if (code) return sql_error(s, code, e);
    sqlite3_extended_result_codes(s->db, 1);
    sqlite3_busy_handler(s->db, wait_for_lock, s);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    code = sql_functions(s->db);
    return code ? sql_error(s, code, e) : true;
}

static bool look(const char *path, StoreFile *out) {
    struct stat st;
    if (stat(path, &st)) return false;
    *out = (StoreFile){.device = st.st_dev, .inode = st.st_ino, .bytes = st.st_size, .changed = st.st_mtim};
    return true;
}

// Records the state of the file before its first byte is read.
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

// These read the file too, so they come after the first query.
static bool settle(Store *s, Error *e) {
    return sql_script(
        s, "PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536", e);
}

// *code: SQLite's for the first query. A process that may not write could not remove the log files again, so
// without a log it does not even try (SQLITE_READONLY).
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

// Opens s->path by s->writable and s->vfs, so that queries run. Changes nothing in the file.
static bool connect_file(Store *s, Error *e) {
    int code;
    if (!try_to_open(s, &code, e)) return false;
    if (code == SQLITE_OK) return settle(s, e);
    if (s->writable && sqlite3_db_readonly(s->db, "main") == 1) return sql_error(s, SQLITE_READONLY, e);
    if (!wants_sharing(code) && (code & 0xff) != SQLITE_READONLY) return sql_error(s, code, e);
    return (s->writable ? open_alone : open_immutable)(s, e) && settle(s, e);
}

bool store_attach(Store *s, const Store *other, Error *e) {
    LOCAL_TEXT uri = {0};
    put_uri(other->path, other->fixed, &uri);
    return sql_run(s, "attach", VALUES(of_text(text_get(&uri))), e);
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
        "be stored in it: run the same command again to start over",
        s->path, moved ? "its file" : "its log, the -wal file,");
}

// --- journals --------------------------------------------------------------------------------------------

// Sets WAL where that works, else a rollback journal. Only for a file that is known to be a store.
static bool set_journal(Store *s, Error *e) {
    if (s->trial) return true;
    static const char TRY[] = "PRAGMA journal_mode = WAL; SELECT count(*) FROM sqlite_schema";
    static const char ELSE[] =
        "PRAGMA journal_mode = DELETE; PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema";
    int64_t wal = 0;
    int code = s->alone || network_of(s) ? SQLITE_IOERR : try_script(s, TRY);
    if (code == SQLITE_OK) { // though a file system may keep the old mode
        bool ok = rows_one_int(s, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0, &wal, e);
        s->logged = wal != 0;
        return ok;
    }
    if (!wants_sharing(code)) return sql_error(s, code, e);
    return (s->alone || (open_alone(s, e) && settle(s, e))) && sql_script(s, ELSE, e);
}

// --- versions and views ---------------------------------------------------------------------------------

static bool ask(Store *s, const char *sql, int64_t *out, Error *e) {
    *out = 0;
    Error own = {0};
    if (rows_one_int(s, sql, 0, out, &own) || own.kind == ERROR_NONE) return true;
    if (e) *e = own;
    return false;
}

// Which schema.sql makes.
static int own_version(void) {
    static const char MARK[] = "PRAGMA user_version = ";
    return (int)strtol(strstr(results_schema, MARK) + strlen(MARK), NULL, 10);
}

// Fails for a file of another program or another version. *version: 0 for a new file.
static bool read_version(Store *s, int64_t *version, Error *e) {
    int64_t application, tables;
    if (!ask(s, "PRAGMA application_id", &application, e) || !ask(s, "PRAGMA user_version", version, e) ||
        !ask(s, "SELECT count(*) FROM sqlite_schema", &tables, e))
        return false;
    if (application != APPLICATION && (tables > 0 || application || *version))
        return error_input(e, "store '%s': it is a database of another program", s->path);
    if (*version == 0 || *version == own_version()) return true;
    if (*version > own_version())
        return error_input(
            e, "store '%s': its version is %lld, this program knows up to %d: use a newer outpace", s->path,
            (long long)*version, own_version());
    return error_input(e,
                       "store '%s': its version is %lld, this program reads %d: export its runs with the "
                       "outpace that wrote it (store export --what steps -o RUN.jsonl), and import them",
                       s->path, (long long)*version, own_version());
}

// Makes the tables of a new file.
static bool make_tables(Store *s, Error *e) {
    int64_t version;
    if (!read_version(s, &version, e)) return false;
    if (version) return true;
    if (!sql_enter(s, e)) return false;
    bool ok = read_version(s, &version, e); // again: another process may have been first
    ok = ok && (version || sql_script(s, results_schema, e));
    return sql_leave(s, ok, e);
}

// Makes the views in memory, in front of those in the file. No comment of views.sql has "CREATE VIEW" in it.
static bool views_aside(Store *s, Error *e) {
    static const char CREATE[] = "CREATE VIEW ";
    LOCAL_TEXT t = {0};
    const char *from = results_views;
    for (const char *at; (at = strstr(from, CREATE)); from = at + strlen(CREATE)) {
        text_add(&t, from, (size_t)(at - from));
        text_puts(&t, "CREATE TEMP VIEW ");
    }
    text_puts(&t, from);
    return sql_script(s, text_get(&t), e);
}

static bool make_views(Store *s, const char *hash, Error *e) {
    LOCAL_TEXT script = {0};
    if (!sql_enter(s, e)) return false;
    Rows *r = rows_named(s, NULL, "view_names", 0, e);
    while (rows_next(r)) text_printf(&script, "DROP VIEW \"%s\";", rows_text(r, 0));
    text_puts(&script, results_views);
    bool ok = rows_end(r, true, e) && sql_script(s, text_get(&script), e) &&
              sql_run(s, "views_set", VALUES(of_text(hash)), e);
    return sql_leave(s, ok, e);
}

static bool renew_views(Store *s, Error *e) {
    char hash[SHA256_TEXT];
    int64_t current;
    bool same;
    if (!sha256_bytes(results_views, strlen(results_views), hash, e) ||
        !sql_find(s, "views_same", VALUES(of_text(hash)), &current, NULL, e) ||
        !store_check_views(s, results_views, current, &same, e))
        return false;
    return (current && same) || (s->writable ? make_views(s, hash, e) : views_aside(s, e));
}

// --- functions of queries -------------------------------------------------------------------------------

static bool any_null(int count, sqlite3_value **values) {
    for (int i = 0; i < count; i++)
        if (sqlite3_value_type(values[i]) == SQLITE_NULL) return true;
    return false;
}

static void bits(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    const uint8_t *row = sqlite3_value_blob(values[0]);
    int64_t size = sqlite3_value_bytes(values[0]), at = sqlite3_value_int64(values[1]);
    int64_t n = sqlite3_value_int64(values[2]), number = 0;
    if (at < 0 || n < 0 || n > 63) {
        sqlite3_result_error(c, "bits: at must be 0 or more, n from 0 to 63", -1);
        return;
    }
    for (int64_t i = 0; i < n && at < 8 * size - i; i++)
        number |= (int64_t)(row[(at + i) / 8] >> ((at + i) % 8) & 1) << i;
    sqlite3_result_int64(c, number);
}

static void ones(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    sqlite3_result_int(c, __builtin_popcountll((uint64_t)sqlite3_value_int64(values[0])));
}

static void root(sqlite3_context *c, int count, sqlite3_value **values) {
    if (any_null(count, values)) return;
    sqlite3_result_double(c, sqrt(sqlite3_value_double(values[0]))); // NaN becomes NULL
}

static double number_of(sqlite3_value *value) {
    return sqlite3_value_type(value) == SQLITE_NULL ? NAN : sqlite3_value_double(value);
}

static void measured(sqlite3_context *c, UNUSED int count, sqlite3_value **values) {
    LOCAL_TEXT text = {0};
    text_measured(&text, number_of(values[0]), number_of(values[1]), number_of(values[2]));
    if (text.length) sqlite3_result_text(c, text_get(&text), (int)text.length, SQLITE_TRANSIENT);
}

int sql_functions(sqlite3 *db) {
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int code = sqlite3_create_function(db, "bits", 3, flags, NULL, bits, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function(db, "ones", 1, flags, NULL, ones, NULL, NULL);
    if (code == SQLITE_OK) code = sqlite3_create_function(db, "sqrt", 1, flags, NULL, root, NULL, NULL);
    return code ? code : sqlite3_create_function(db, "measured", 3, flags, NULL, measured, NULL, NULL);
}

// --- run locks ------------------------------------------------------------------------------------------

#define RUN_LOCKS ((off_t)1 << 60)

static struct flock byte_of(int64_t run) {
    return (struct flock){
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RUN_LOCKS + (off_t)run, .l_len = 1};
}

// The descriptor, opened once; below 0 on failure.
static int locks_file(Store *s, int flags) {
    if (s->locks < 0) s->locks = open(s->path, flags | O_CLOEXEC);
    return s->locks;
}

bool store_claim(Store *s, int64_t run, Error *e) {
    struct flock lock = byte_of(run);
    int file = locks_file(s, O_RDWR);
    if (file < 0) return error_system(e, "store '%s': it cannot be opened to be locked", s->path);
    if (fcntl(file, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES)) return true;
    return error_input(e,
                       "store '%s': another process measures run %lld at this moment: let it end, or end it",
                       s->path, (long long)run);
}

bool store_claimed(Store *s, int64_t run) {
    struct flock lock = byte_of(run);
    int file = locks_file(s, s->writable ? O_RDWR : O_RDONLY);
    return file >= 0 && fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Waits as SQLite does for its own locks, but not for long: the other may write for days.
static bool claim_network(Store *s, Error *e) {
    const char *network = network_of(s);
    struct flock lock = byte_of(0);
    double patience_s = s->wait_s, began = clock_now(clock_monotonic());
    if (!network) return true;
    int file = locks_file(s, O_RDWR);
    if (file < 0) return error_system(e, "store '%s': it cannot be opened to be locked", s->path);
    while (fcntl(file, F_OFD_SETLK, &lock)) {
        static const struct timespec MOMENT = {.tv_nsec = 50000000};
        if (errno != EAGAIN && errno != EACCES)
            return error_input(
                e,
                "store '%s': its file system, %s, has no locks, so two processes could write it at "
                "once: write a store on this machine's own disk (--db), and copy it afterwards",
                s->path, network);
        if (clock_now(clock_monotonic()) - began >= patience_s)
            return error_input(
                e,
                "store '%s': another process writes it, and on %s only one may: give each a store of "
                "its own (--db), and unite them with 'outpace store merge'",
                s->path, network);
        nanosleep(&MOMENT, NULL);
    }
    return true;
}

// --- open and close --------------------------------------------------------------------------------------

static bool check_path(const char *path, StoreMode mode, const StoreOptions *options, Error *e) {
    struct stat st;
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!path[0] || strcmp(path, ":memory:") == 0) // for SQLite these are temporary
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
    bool there = file_exists(directory), ok = file_make_directory(directory, e);
    if (ok && !there && options && options->makes) options->makes(directory);
    return ok;
}

// Before anything changes; in one transaction, since another process may make its tables meanwhile.
static bool check_content(Store *s, int64_t *version, Error *e) {
    if (!sql_script(s, "BEGIN", e)) return false;
    bool ok = read_version(s, version, e) && store_check_schema(s, *version ? results_schema : "", e);
    return sql_script(s, "COMMIT", ok ? e : NULL) && ok;
}

static bool prepare(Store *s, Error *e) {
    int64_t version;
    if (!check_content(s, &version, e)) return false;
    if (!s->writable && version == 0)
        return error_input(e, "store '%s': it is empty; 'outpace run CONFIG' fills it", s->path);
    if (s->writable && !(claim_network(s, e) && set_journal(s, e) && make_tables(s, e))) return false;
    return sql_script(s, "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL", e) && renew_views(s, e) &&
           (s->writable || sql_script(s, "PRAGMA query_only = ON", e));
}

Store *store_open(const char *path, StoreMode mode, const StoreOptions *options, Error *e) {
    if (!check_path(path, mode, options, e)) return NULL;
    Store *s = mem_new(1, sizeof *s);
    s->path = mem_text(path, strlen(path));
    s->locks = -1;
    s->wait_s = options && options->wait_s > 0 ? options->wait_s : DEFAULT_WAIT_S;
    s->waits = options ? options->waits : NULL;
    s->writable = mode != STORE_READ;
    s->trial = mode == STORE_TRIAL;
    s->vfs = options ? options->vfs : NULL;
    s->file_system = options ? options->file_system : 0;
    if (connect_file(s, e) && prepare(s, e)) {
        if (options && options->most_bytes) {
            sqlite3_hard_heap_limit64(options->most_bytes);
            sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, (int)(options->most_bytes / 16));
        }
        return s;
    }
    store_close(s);
    return NULL;
}

void store_close(Store *s) {
    if (!s) return;
    store_rollback(s);
    for (size_t i = 0; i < s->statement_count; i++) sqlite3_finalize(s->statements[i].prepared);
    mem_free(s->statements);
    sqlite3_close(s->db);
    if (s->locks >= 0) close(s->locks);
    MEM_FREE(s->path, s);
}

void store_close_local(Store **s) { store_close(*s); }

const char *store_path(const Store *s) { return s->path; }
const char *results_library(void) { return sqlite3_libversion(); }

// --- maintenance ----------------------------------------------------------------------------------------

static int64_t file_bytes(const char *path, const char *end) {
    char name[PATH_MAX];
    struct stat st;
    int n = snprintf(name, sizeof name, "%s%s", path, end);
    return n < 0 || (size_t)n >= sizeof name || stat(name, &st) ? 0 : (int64_t)st.st_size;
}

// With the log, which may hold nearly all of a store.
static int64_t store_bytes(const char *path) { return file_bytes(path, "") + file_bytes(path, "-wal"); }

static bool sweep(Store *s, const char *name, int64_t *count, Error *e) {
    if (!sql_run(s, name, NULL, 0, e)) return false;
    *count = sql_changes(s);
    return true;
}

static bool delete_all(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e) {
    for (int i = 0; i < count; i++) {
        if (!sql_run(s, "run_delete", VALUES(of_int(runs[i])), e)) return false;
        if (sql_changes(s) == 0)
            return error_input(e, "store '%s': there is no run %lld", s->path, (long long)runs[i]);
    }
    return sweep(s, "output_sweep", &out->outputs, e) && sweep(s, "prompt_sweep", &out->prompts, e) &&
           sweep(s, "dataset_sweep", &out->datasets, e) && sweep(s, "model_sweep", &out->models, e) &&
           sweep(s, "environment_sweep", &out->environments, e);
}

bool store_gc(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e) {
    *out = (StoreGarbage){.bytes_before = store_bytes(s->path)};
    if (!sql_enter(s, e) || !sql_leave(s, delete_all(s, runs, count, out, e), e)) return false;
    bool ok = sql_script(s, "VACUUM", e) && sql_script(s, "PRAGMA wal_checkpoint(TRUNCATE)", e);
    out->bytes_after = store_bytes(s->path);
    return ok || error_within(e, "what was to go is gone, but its space is not given back");
}

bool store_check(Store *s, Error *e) {
    Rows *r = rows_named(s, NULL, "damage", 0, e);
    bool ok = !rows_next(r) || error_system(e, "store '%s': it is damaged: %s", s->path, rows_text(r, 0));
    return rows_end(r, ok, e) && store_check_sums(s, e);
}

bool store_check_sums(Store *s, Error *e) {
    Rows *r = rows_named(s, NULL, "altered", 0, e);
    bool ok =
        !rows_next(r) ||
        error_system(e, "store '%s': it was altered: %s; samples like this: %lld; take an untouched copy",
                     s->path, rows_text(r, 0), (long long)rows_int(r, 1));
    return rows_end(r, ok, e);
}
