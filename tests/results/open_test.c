// Files that aren't stores, or not ours, or not now: one clear line each, and nothing changed.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "results/rows.h"
#include "results/sql.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/filled_store.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void make(const char *path) {
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, path, NULL, 2, 2, &e) || !filled_add_all(&f, 1, &e)) fail_msg("%s", e.text);
    filled_close(&f);
}

static void expect_refused(const char *path, StoreMode mode, const char *want, ErrorKind kind) {
    Error e = {0};
    Store *s = store_open(path, mode, &(StoreOptions){.wait_s = 0.05}, &e);
    if (s || !strstr(e.text, want) || !strstr(e.text, path) || e.kind != kind)
        fail_msg("%s: wanted '%s', got %s '%s'", path, want, s ? "a store" : "error", e.text);
}

static void run_sql(const char *path, const char *sql) {
    sqlite3 *db;
    char *why = NULL;
    if (sqlite3_open(path, &db) || sqlite3_exec(db, sql, NULL, NULL, &why)) fail_msg("%s: %s", sql, why);
    sqlite3_close(db);
}

static void not_a_store(void **state) {
    const char *path = folder_path(*state, "a.db");
    expect_refused(path, STORE_READ, "there is none", ERROR_INPUT);
    expect_refused(*state, STORE_WRITE, "not a regular file", ERROR_INPUT);
    expect_refused("", STORE_WRITE, "this names none", ERROR_INPUT);
    expect_refused(":memory:", STORE_WRITE, "this names none", ERROR_INPUT);
    static const char text[] =
        "some text that is long enough to be read as a header of a database, which it is"
        " not, for it says so itself in its hundred and more bytes";
    scratch_write(*state, "a.db", text, sizeof text - 1);
    expect_refused(path, STORE_WRITE, "no SQLite database", ERROR_INPUT);
    unlink(path);
    run_sql(path, "CREATE TABLE t (x); PRAGMA user_version = 1");
    expect_refused(path, STORE_WRITE, "another program", ERROR_INPUT);
    expect_refused(path, STORE_READ, "another program", ERROR_INPUT);
    unlink(path);
    scratch_write(*state, "a.db", "", 0); // an empty file is a new store
    make(path);
}

// It takes what a store takes, and leaves nothing, whatever is at its path.
static void trial(void **state) {
    const char *path = folder_path(*state, "a.db");
    StoreModel model = {.name = "m", .hash = "h"};
    int64_t first, again;
    for (int i = 0; i < 2; i++) {
        Error e = {0};
        Store *s = store_open(path, STORE_TRIAL, NULL, &e);
        if (!s) fail_msg("%s", e.text);
        assert_true(store_begin(s, &e) && store_model(s, &model, &first, &e) && store_commit(s, &e));
        assert_true(store_model(s, &model, &again, &e) && first == 1 && again == 1);
        assert_string_equal(store_path(s), path);
        store_close(s);
        assert_int_equal(access(path, F_OK), -1);
    }
    expect_refused("", STORE_TRIAL, "this names none", ERROR_INPUT);
}

static void newer(void **state) {
    const char *path = folder_path(*state, "a.db");
    size_t before, after;
    make(path);
    run_sql(path, "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    mem_free(scratch_read(*state, "a.db", &before));
    expect_refused(path, STORE_WRITE, "use a newer outpace", ERROR_INPUT);
    expect_refused(path, STORE_READ, "use a newer outpace", ERROR_INPUT);
    mem_free(scratch_read(*state, "a.db", &after));
    assert_int_equal(before, after);
}

// Bytes changed anywhere must never bring the program down; it says so, or what they were in is not asked.
static void damaged(void **state) {
    const char *path = folder_path(*state, "a.db");
    Random r = test_random(1);
    size_t size;
    make(path);
    unsigned char *bytes = (unsigned char *)scratch_read(*state, "a.db", &size);
    int found = 0;
    for (int i = 0; i < 60; i++) {
        size_t at = 100 + random_below(&r, (uint32_t)size - 164);
        unsigned char kept[64];
        memcpy(kept, bytes + at, sizeof kept);
        for (size_t j = 0; j < sizeof kept; j++) bytes[at + j] = (unsigned char)random_bits(&r);
        scratch_write(*state, "a.db", bytes, size);
        Error e = {0};
        Store *s = store_open(path, STORE_READ, NULL, &e);
        if (!s || !store_check(s, &e)) {
            found++;
            if (e.kind == ERROR_NONE || !strstr(e.text, path)) fail_msg("damage %d: '%s'", i, e.text);
        }
        store_close(s);
        memcpy(bytes + at, kept, sizeof kept);
    }
    assert_true(found > 5);
    scratch_write(*state, "a.db", bytes, size / 2 / 4096 * 4096); // cut
    Error e = {0};
    Store *s = store_open(path, STORE_READ, NULL, &e);
    assert_false(s && store_check(s, &e));
    assert_int_equal(e.kind, ERROR_SYSTEM);
    store_close(s);
    mem_free(bytes);
}

static void locked(void **state) {
    const char *path = folder_path(*state, "a.db");
    FilledStore f;
    Error e = {0};
    int64_t id;
    make(path);
    assert_true(filled_open(&f, path, &(StoreOptions){.wait_s = 0.05}, 2, 2, NULL));
    sqlite3 *other;
    sqlite3_open(path, &other);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    StoreRun run = {.hash = "new", .kind = "sweep", .name = "new", .version = "1"};
    assert_false(store_run(f.store, &run, &id, NULL, &e));
    assert_non_null(strstr(e.text, "another process has kept it locked"));
    assert_int_equal(e.kind, ERROR_INPUT);
    bool done = false;
    assert_true(store_done(f.store, f.points[0], 0, f.prompts[0], &done, NULL) && done); // reading goes on
    sqlite3_close(other);
    assert_true(store_run(f.store, &run, &id, NULL, NULL));
    filled_close(&f);
}

static sqlite3 *holder;
static int times;

// Past wait_s, and then the other lets go.
static bool waits(const char *store, double before, double now) {
    assert_non_null(strstr(store, "a.db"));
    assert_true(times == 0 ? before == 0 && now < 0.04 : now >= before + 0.04);
    if (++times == 4) sqlite3_close(holder);
    return true;
}

static bool is_told_to_end(const char *store, double before, double now) {
    (void)store, (void)before, (void)now;
    return ++times < 3;
}

static void waits_as_long_as_asked(void **state) {
    const char *path = folder_path(*state, "a.db");
    StoreModel model = {.name = "m", .hash = "h"};
    int64_t id;
    make(path);
    for (int i = 0; i < 2; i++) {
        Error e = {0};
        Store *s = store_open(path, STORE_WRITE,
                              &(StoreOptions){.wait_s = 0.05, .waits = i ? waits : is_told_to_end}, &e);
        sqlite3_open(path, &holder);
        assert_int_equal(sqlite3_exec(holder, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
        times = 0;
        assert_true(store_model(s, &model, &id, &e) == (i == 1));
        assert_int_equal(times, i ? 4 : 3);
        assert_int_equal(e.kind, i ? ERROR_NONE : ERROR_INTERRUPTED);
        assert_true(i == 1 || strstr(e.text, "interrupted while waiting for store '"));
        if (i == 0) sqlite3_close(holder);
        store_close(s);
    }
}

// As root every file may be written, so the child gives that up.
static void read_only(void **state) {
    const char *path = folder_path(*state, "a.db");
    make(path);
    chmod(path, 0444);
    chmod(*state, 0555);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534)) _exit(3);
        Error e = {0};
        int64_t samples = 0;
        Store *s = store_open(path, STORE_READ, NULL, &e);
        bool reads = s && rows_one_int(s, "SELECT sum(samples) FROM result", 0, &samples, &e) && samples == 4;
        if (!reads) fprintf(stderr, "%s\n", e.text);
        store_close(s);
        s = store_open(path, STORE_WRITE, NULL, &e);
        bool refuses = !s && e.kind == ERROR_INPUT && strstr(e.text, "read-only");
        if (!refuses) fprintf(stderr, "%s\n", e.text);
        _exit(reads && refuses ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    chmod(*state, 0755);
    assert_int_equal(status, 0);
}

// A store that was only read is one file afterwards, also where views of another program are renewed; while
// another process has it open, what that one needs stays, and what it adds is seen.
static void readers_leave_nothing(void **state) {
    const char *path = folder_path(*state, "a.db");
    FilledStore f;
    Error e = {0};
    int64_t n = 0;
    make(path);
    for (int i = 0; i < 2; i++) {
        Store *s = store_open(path, STORE_READ, NULL, &e);
        assert_true(s && rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e) && n == 4);
        store_close(s);
        assert_int_equal(folder_count(*state), 1);
        run_sql(path, "UPDATE made SET hash = 'older'");
    }
    assert_true(filled_open(&f, path, NULL, 2, 2, &e));
    Store *s = store_open(path, STORE_READ, NULL, &e);
    assert_true(filled_add_all(&f, 2, &e));
    assert_true(s && rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e) && n == 8);
    store_close(s);
    assert_int_equal(folder_count(*state), 3);
    assert_true(filled_add_all(&f, 3, &e));
    filled_close(&f);
    assert_int_equal(folder_count(*state), 1);
}

// One that nobody can lock is read as if nobody wrote it; when somebody does, the answer is not given.
static void writers_are_noticed(void **state) {
    const char *path = folder_path(*state, "a.db");
    StoreOptions o = {.vfs = fault_vfs()};
    Error e = {0};
    int64_t n = 0;
    make(path);
    fault_vfs_apart(true);
    Store *s = store_open(path, STORE_READ, &o, &e);
    fault_vfs_apart(false);
    assert_true(s && rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e) && n == 4);
    FilledStore f;
    assert_true(filled_open(&f, path, NULL, 2, 2, &e) && filled_add_all(&f, 2, &e));
    for (int open = 1; open >= 0; open--) {
        e = (Error){0};
        assert_false(rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e));
        assert_non_null(strstr(e.text, "another process wrote it while it was read"));
        if (open) filled_close(&f);
    }
    store_close(s);
}

// A store whose file is not at its path any more holds what nobody will find: it takes nothing.
static void deleted_or_replaced(void **state) {
    static const char *const WAYS[][2] = {{"delete", "its file was deleted or replaced"},
                                          {"replace", "its file was deleted or replaced"},
                                          {"log", "its log"}};
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        const char *path = folder_path(*state, "a.db"), *other = folder_path(*state, "b.db");
        FilledStore f;
        Error e = {0};
        assert_true(filled_open(&f, path, NULL, 2, 2, &e) && filled_add_all(&f, 1, &e));
        make(other);
        if (i == 0) assert_int_equal(unlink(path), 0);
        if (i == 1) assert_int_equal(rename(other, path), 0);
        if (i == 2) assert_int_equal(unlink(folder_path(*state, "a.db-wal")), 0);
        if (filled_add_all(&f, 2, &e) || !strstr(e.text, WAYS[i][1]) || e.kind != ERROR_SYSTEM)
            fail_msg("%s: '%s'", WAYS[i][0], e.text);
        filled_close(&f);
        if (i == 1) { // the other one is as it was
            int64_t n = 0;
            Store *s = store_open(path, STORE_READ, NULL, &e);
            assert_true(s && store_check(s, &e));
            assert_true(rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e) && n == 4);
            store_close(s);
        }
        unlink(path);
        unlink(other);
        unlink(folder_path(*state, "a.db-wal"));
        unlink(folder_path(*state, "a.db-shm"));
    }
}

// Where WAL cannot work, a rollback journal does; what was in WAL elsewhere goes on as well.
static void without_shared_memory(void **state) {
    const char *path = folder_path(*state, "a.db");
    StoreOptions o = {.vfs = fault_vfs()};
    FilledStore f;
    Error e = {0};
    int64_t n = 0;
    fault_vfs_apart(true);
    if (!filled_open(&f, path, &o, 2, 2, &e) || !filled_add_all(&f, 1, &e)) fail_msg("%s", e.text);
    assert_true(
        rows_one_int(f.store, "SELECT journal_mode = 'delete' FROM pragma_journal_mode", 0, &n, NULL) &&
        n == 1);
    assert_int_equal(folder_count(*state), 1); // no -wal, no -shm
    filled_close(&f);
    fault_vfs_apart(false);
    make(path);
    Store *s = store_open(path, STORE_READ, NULL, NULL);
    assert_true(rows_one_int(s, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 0, &n, NULL) &&
                n == 1);
    assert_true(rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, NULL) && n == 4);
    store_close(s);
    fault_vfs_apart(true); // the same store, moved
    if (!filled_open(&f, path, &o, 2, 2, &e) || !filled_add_all(&f, 2, &e)) fail_msg("%s", e.text);
    assert_true(rows_one_int(f.store, "SELECT count(*) FROM sample", 0, &n, NULL) && n == 8);
    filled_close(&f);
    fault_vfs_apart(false);
}

// --- network file systems --------------------------------------------------------------------------------

enum { NFS = 0x6969, LUSTRE = 0x0bd00bd0 };

// One process writes, with a rollback journal, while others read; its lock ends with it.
static void one_writer_on_a_network(void **state) {
    const char *path = folder_path(*state, "a.db");
    StoreOptions o = {.file_system = NFS, .wait_s = 0.05};
    int ready[2];
    char byte;
    int64_t n = 0;
    Error e = {0};
    make(path); // in WAL, as on a disk of its own; then it was copied
    assert_int_equal(pipe(ready), 0);
    pid_t writer = fork();
    if (writer == 0) {
        FilledStore f;
        bool ok = filled_open(&f, path, &o, 2, 2, NULL) && filled_add_all(&f, 2, NULL);
        if (write(ready[1], ok ? "y" : "n", 1) == 1) pause();
        _exit(1);
    }
    assert_true(read(ready[0], &byte, 1) == 1 && byte == 'y');
    assert_int_equal(folder_count(*state), 1); // no -wal, no -shm
    assert_null(store_open(path, STORE_WRITE, &o, &e));
    if (e.kind != ERROR_INPUT ||
        !strstr(e.text, "another process writes it, and on NFS only one may: give each"))
        fail_msg("%s", e.text);
    Store *s = store_open(path, STORE_READ, &o, &e);
    assert_true(s && rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e) && n == 8);
    store_close(s);
    kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    s = store_open(path, STORE_WRITE, &o, &e);
    assert_true(s && rows_one_int(s, "SELECT journal_mode = 'delete' FROM pragma_journal_mode", 0, &n, &e) &&
                n);
    store_close(s);
    close(ready[0]);
    close(ready[1]);
}

// A file system without locks, here by a filter of system calls that fails those of open file descriptions.
static bool forbid_locks(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void a_network_without_locks(void **state) {
    enum { REFUSED = 0, OTHER = 1, NO_FILTER = 77 };
    const char *path = folder_path(*state, "a.db");
    int status;
    pid_t child = fork();
    if (child == 0) {
        Error e = {0};
        if (!forbid_locks()) _exit(NO_FILTER);
        Store *s = store_open(path, STORE_WRITE, &(StoreOptions){.file_system = LUSTRE}, &e);
        bool refused = !s && e.kind == ERROR_INPUT && strstr(e.text, "Lustre, has no locks") &&
                       strstr(e.text, "write a store on this machine's own disk (--db)");
        _exit(refused ? REFUSED : OTHER);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER) skip();
    assert_int_equal(WEXITSTATUS(status), REFUSED);
}

// --- syncs -----------------------------------------------------------------------------------------------

// Syncs that one pass more takes.
static int syncs_of(FilledStore *f, int passes, bool lightly) {
    Error e = {0};
    int before = fault_vfs_syncs();
    if (!(lightly ? store_begin_lightly : store_begin)(f->store, &e) || !filled_add_all(f, passes, &e) ||
        !store_commit(f->store, &e))
        fail_msg("%s", e.text);
    return fault_vfs_syncs() - before;
}

static void light_ones_do_not_sync(void **state) {
    StoreOptions o = {.vfs = fault_vfs()};
    FilledStore f;
    Error e = {0};
    if (!filled_open(&f, folder_path(*state, "a.db"), &o, 2, 2, &e)) fail_msg("%s", e.text);
    assert_int_equal(syncs_of(&f, 1, true), 0);
    assert_int_equal(syncs_of(&f, 2, false), 1);
    assert_int_equal(syncs_of(&f, 3, true), 0);
    filled_close(&f);
    fault_vfs_apart(true); // no log: every one syncs
    if (!filled_open(&f, folder_path(*state, "b.db"), &o, 2, 2, &e)) fail_msg("%s", e.text);
    int like_this = syncs_of(&f, 1, false);
    assert_int_equal(syncs_of(&f, 2, true), like_this);
    filled_close(&f);
    fault_vfs_apart(false);
}

// The log as it may be after a loss of power: cut after the last sync, or followed by anything.
static void expect_first_pass(const char *folder, const char *db, size_t db_size, const char *log,
                              size_t size, bool noise) {
    Error e = {0};
    int64_t n = 0;
    unlink(folder_path(folder, "lost.db-shm"));
    scratch_write(folder, "lost.db", db, db_size);
    char *bytes = mem_new(size + 5000, 1);
    assert_non_null(bytes);
    memcpy(bytes, log, size);
    memset(bytes + size, 0x5a, 5000);
    scratch_write(folder, "lost.db-wal", bytes, noise ? size + 5000 : size);
    mem_free(bytes);
    Store *s = store_open(folder_path(folder, "lost.db"), STORE_READ, NULL, &e);
    if (!s || !store_check(s, &e) || !rows_one_int(s, "SELECT count(*) FROM sample", 0, &n, &e))
        fail_msg("log of %zu bytes: %s", size, e.text);
    if (n != 4 && n != 8) fail_msg("log of %zu bytes: %lld samples", size, (long long)n);
    store_close(s);
}

static void light_ones_lose_only_themselves(void **state) {
    const char *path = folder_path(*state, "a.db");
    FilledStore f;
    Error e = {0};
    size_t db_size, synced, size;
    if (!filled_open(&f, path, NULL, 2, 2, &e)) fail_msg("%s", e.text);
    syncs_of(&f, 1, false);
    mem_free(scratch_read(*state, "a.db-wal", &synced));
    syncs_of(&f, 2, true);
    char *db = scratch_read(*state, "a.db", &db_size), *log = scratch_read(*state, "a.db-wal", &size);
    assert_true(size > synced);
    for (size_t cut = synced; cut <= size; cut += (size - synced) / 16)
        expect_first_pass(*state, db, db_size, log, cut, cut % 2);
    filled_close(&f);
    mem_free(db);
    mem_free(log);
}

// A query may not write, however it is written.
static void only_reading(void **state) {
    const char *path = folder_path(*state, "a.db");
    static const char *const BAD[] = {"DELETE FROM step",   "SELECT 1; DELETE FROM step", "", "SELEC",
                                      "CREATE TABLE t (x)", "PRAGMA user_version = 7"};
    make(path);
    for (int mode = 0; mode < 2; mode++) {
        Store *s = store_open(path, mode ? STORE_READ : STORE_WRITE, NULL, NULL);
        for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
            Error e = {0};
            Rows *r = rows_open(s, BAD[i], &e);
            if (r || e.kind != ERROR_INPUT) fail_msg("'%s' was taken: '%s'", BAD[i], e.text);
        }
        int64_t n;
        assert_true(rows_one_int(s, "SELECT count(*) FROM step", 0, &n, NULL) && n > 0);
        store_close(s);
    }
}

// --- versions --------------------------------------------------------------------------------------------

// A store of an older version is refused, and stays as it is.
static void older(void **state) {
    const char *path = folder_path(*state, "a.db");
    size_t before, after;
    char why[128];
    int64_t own;
    make(path);
    Store *s = store_open(path, STORE_READ, NULL, NULL);
    assert_true(rows_one_int(s, "PRAGMA user_version", 0, &own, NULL) && own > 3);
    store_close(s);
    snprintf(why, sizeof why,
             "its version is 3, this program reads %d: export its runs with the outpace that wrote it",
             (int)own);
    run_sql(path, "PRAGMA user_version = 3; PRAGMA wal_checkpoint(TRUNCATE)");
    char *old = scratch_read(*state, "a.db", &before);
    for (int mode = STORE_WRITE; mode <= STORE_READ; mode++)
        expect_refused(path, (StoreMode)mode, why, ERROR_INPUT);
    char *now = scratch_read(*state, "a.db", &after);
    assert_true(before == after && memcmp(old, now, before) == 0);
    mem_free(old);
    mem_free(now);
}

// Views of another program version are made anew; where nothing may be written, they stand in front of the
// old ones.
static void views_are_renewed(void **state) {
    const char *path = folder_path(*state, "a.db");
    int64_t n;
    make(path);
    run_sql(path,
            "DROP VIEW point_sums; CREATE VIEW point_sums AS SELECT 7 AS point_id, 7 AS S, 7 AS samples;"
            " CREATE VIEW old AS SELECT 1; UPDATE made SET hash = 'older'");
    Store *s = store_open(path, STORE_READ, NULL, NULL);
    assert_true(rows_one_int(s, "SELECT sum(samples) FROM point_sums", 0, &n, NULL) && n == 4);
    store_close(s);
    store_close(store_open(path, STORE_WRITE, NULL, NULL));
    s = store_open(path, STORE_READ, NULL, NULL);
    assert_true(rows_one_int(s, "SELECT sum(samples) FROM main.point_sums", 0, &n, NULL) && n == 4);
    assert_null(rows_open(s, "SELECT * FROM old", NULL));
    store_close(s);
}

// Whatever somebody else put into the schema is refused by name, before anything of it runs. Views with
// numbers of their own give none.
static void foreign_schemas(void **state) {
    static const struct {
        const char *change, *want;
    } ROWS[] = {
        {"CREATE TRIGGER e AFTER INSERT ON attempt BEGIN DELETE FROM sample; END", "its trigger 'e' was not"},
        {"CREATE TABLE mine (x)", "its table 'mine' was not"},
        {"CREATE INDEX mine ON run (name)", "its index 'mine' was not"},
        {"CREATE VIEW mine AS SELECT 1", "its view 'mine' was not"},
        {"CREATE VIRTUAL TABLE mine USING fts5(x)", "its table 'mine"},
        {"ALTER TABLE run ADD COLUMN x TEXT", "its table 'run' is not as"},
        {"ALTER TABLE surface ADD COLUMN x TEXT", "its table 'surface' is not as"},
        {"DROP TABLE step_source", "its table 'step_source' is missing"},
        {"DROP INDEX run_hash", "its index 'run_hash' is missing"},
        {"DROP TABLE step_batch; CREATE TABLE step_batch (sample_id INTEGER)",
         "its table 'step_batch' is not"},
    };
    const char *path = folder_path(*state, "a.db");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        make(path);
        run_sql(path, ROWS[i].change);
        expect_refused(path, STORE_READ, ROWS[i].want, ERROR_INPUT);
        expect_refused(path, STORE_WRITE, ROWS[i].want, ERROR_INPUT);
        unlink(path);
    }
    make(path);
    run_sql(path, "ANALYZE; DROP VIEW step_time; DROP VIEW point_sums;"
                  " CREATE VIEW point_sums AS SELECT 7 AS point_id, 7 AS S, 7 AS samples");
    for (int i = 0; i < 3; i++) {
        Error e = {0};
        int64_t n, same;
        Store *s = store_open(path, i == 1 ? STORE_WRITE : STORE_READ, NULL, &e);
        if (!s) fail_msg("%s", e.text);
        assert_true(rows_one_int(s, "SELECT sum(samples) FROM point_sums", 0, &n, &e) && n == 4);
        assert_true(rows_one_int(s, "SELECT count(*) FROM step_time", 0, &n, &e) && n > 0);
        bool renewed = rows_one_int(s, "SELECT sum(samples) FROM main.point_sums", 0, &same, &e) && same == 4;
        assert_int_equal(renewed, i > 0);
        store_close(s);
    }
}

static void empty_files(void **state) {
    const char *path = folder_path(*state, "a.db");
    scratch_write(*state, "a.db", "", 0);
    expect_refused(path, STORE_READ, "it is empty; 'outpace run CONFIG' fills it", ERROR_INPUT);
}

// Sums that are not those of the steps are found; so are steps that are gone.
static void altered_sums(void **state) {
    static const char *const ROWS[][2] = {
        {"steps = 1", "steps is 1, but its steps give "},
        {"tokens = 1000", "tokens is 1000, but its steps give "},
        {"accepted = accepted + 1", "accepted is "},
        {"rows = rows + 1", "rows is "},
        {"tried = NULL", "tried is unknown, but its steps give "},
        {"forward_ns = forward_ns + 1000000", "forward_ns is "},
    };
    static const char *const TABLES[] = {"DELETE FROM sample_accept",
                                         "UPDATE sample_rank SET steps = steps + 1",
                                         "UPDATE sample_source SET tokens = tokens + 1"};
    static const char *const TOLD[] = {"sample_accept is not", "sample_rank is not", "sample_source is not"};
    enum { COLUMNS = sizeof ROWS / sizeof *ROWS };
    const char *path = folder_path(*state, "a.db");
    for (int i = 0; i <= COLUMNS + 3; i++) {
        char change[160];
        Error e = {0};
        const char *want = i < COLUMNS       ? ROWS[i][1]
                           : i < COLUMNS + 3 ? TOLD[i - COLUMNS]
                                             : "none of them is there";
        if (i < COLUMNS) snprintf(change, sizeof change, "UPDATE sample SET %s WHERE id = 3", ROWS[i][0]);
        else if (i < COLUMNS + 3)
            snprintf(change, sizeof change, "%s WHERE sample_id = (SELECT max(sample_id) FROM sample_rank)",
                     TABLES[i - COLUMNS]);
        else snprintf(change, sizeof change, "DELETE FROM step WHERE sample_id = 3");
        make(path);
        run_sql(path, change);
        Store *s = store_open(path, STORE_READ, NULL, &e);
        assert_non_null(s);
        if (store_check(s, &e) || !strstr(e.text, want) || !strstr(e.text, "it was altered: run 1, point "))
            fail_msg("%s: wanted '%s', got '%s'", change, want, e.text);
        store_close(s);
        unlink(path);
    }
}

// --- killed ----------------------------------------------------------------------------------------------

// Killed 30 times while it fills; each next one goes on. What comes out is what an undisturbed one holds.
static void killed(void **state) {
    Text want = {0}, got = {0};
    Random r = test_random(2);
    const char *path = folder_path(*state, "a.db"), *calm = folder_path(*state, "calm.db");
    FilledStore f;
    assert_true(filled_open(&f, calm, NULL, 3, 20, NULL) && filled_add_all(&f, 2, NULL));
    filled_dump(f.store, &want);
    filled_close(&f);
    for (int i = 0; i <= 30; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(filled_open(&f, path, NULL, 3, 20, NULL) && filled_add_all(&f, 2, NULL) ? 0 : 1);
        if (i < 30) usleep(random_below(&r, 40000));
        if (i < 30) kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        if (i == 30) assert_int_equal(status, 0);
    }
    Store *s = store_open(path, STORE_WRITE, NULL, NULL);
    assert_true(store_check(s, NULL));
    filled_dump(s, &got);
    size_t at = 0;
    while (at < want.length && text_get(&got)[at] == text_get(&want)[at]) at++;
    if (got.length != want.length || at < want.length)
        fail_msg("at byte %zu: wanted '%.80s', got '%.80s'", at, text_get(&want) + at, text_get(&got) + at);
    store_close(s);
    text_release(&got);
    text_release(&want);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_FOLDER(not_a_store),
        IN_FOLDER(trial),
        IN_FOLDER(trial),
        IN_FOLDER(newer),
        IN_FOLDER(damaged),
        IN_FOLDER(locked),
        IN_FOLDER(waits_as_long_as_asked),
        IN_FOLDER(read_only),
        IN_FOLDER(only_reading),
        IN_FOLDER(readers_leave_nothing),
        IN_FOLDER(writers_are_noticed),
        IN_FOLDER(deleted_or_replaced),
        IN_FOLDER(older),
        IN_FOLDER(views_are_renewed),
        IN_FOLDER(foreign_schemas),
        IN_FOLDER(empty_files),
        IN_FOLDER(altered_sums),
        IN_FOLDER(killed),
        IN_FOLDER(without_shared_memory),
        IN_FOLDER(one_writer_on_a_network),
        IN_FOLDER(a_network_without_locks),
        IN_FOLDER(light_ones_do_not_sync),
        IN_FOLDER(light_ones_lose_only_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
