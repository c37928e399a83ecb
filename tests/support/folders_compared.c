// Every comparison walks the regular files of one folder and looks for each by its name in another.
#include "tests/support/folders_compared.h"

#include "tests/support/stores.h"

#include <fts.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4400 };

typedef bool EachFile(void *self, const char *name, const char *path);

// Calls it for every regular file under `folder`, with its name relative to that; false if it returned
// false.
static bool each_file(const char *folder, EachFile *call, void *self) {
    char *paths[] = {(char *)(uintptr_t)folder, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    size_t above = strlen(folder) + 1;
    bool ok = walk;
    for (FTSENT *f; ok && (f = fts_read(walk));)
        if (f->fts_info == FTS_F) ok = call(self, f->fts_path + above, f->fts_path);
    if (walk) fts_close(walk);
    return ok;
}

// Files next to a store that aren't part of a command's result.
static bool is_journal(const char *name) {
    return text_ends(name, ".db-wal") || text_ends(name, ".db-shm") || text_ends(name, ".db-journal") ||
           text_ends(name, ".lock");
}

// A PDF has the moment in it: its length is compared.
static bool same_length(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_size == y.st_size;
}

static bool same_bytes(const char *a, const char *b) {
    if (text_ends(a, ".pdf")) return same_length(a, b);
    FILE *x = fopen(a, "re"), *y = fopen(b, "re");
    char one[8192], two[sizeof one];
    bool same = x && y;
    for (size_t n = sizeof one; same && n == sizeof one;) {
        n = fread(one, 1, sizeof one, x);
        same = fread(two, 1, sizeof two, y) == n && memcmp(one, two, n) == 0;
    }
    if (x) fclose(x);
    if (y) fclose(y);
    return same;
}

typedef struct {
    const char *other; // a folder to compare with
    Text *problem;
} Comparison;

static bool same_file(const char *name, const char *path, const char *other, Text *problem) {
    Text a = {0}, b = {0};
    Error e = {0};
    bool same;
    if (!text_ends(name, ".db")) same = same_bytes(path, other);
    else {
        same = stores_describe(path, &a, &e) && stores_describe(other, &b, &e) &&
               strcmp(text_get(&a), text_get(&b)) == 0;
        text_release(&a);
        text_release(&b);
    }
    if (!same && problem)
        text_printf(problem, "'%s' differs from the undisturbed one%s%s", name, *e.text ? ": " : "", e.text);
    return same;
}

static bool compare_wanted(void *self, const char *name, const char *path) {
    Comparison *c = self;
    char other[PATH_SIZE];
    snprintf(other, sizeof other, "%s/%s", c->other, name);
    return is_journal(name) || same_file(name, other, path, c->problem);
}

bool folders_same(const char *want, const char *got, Text *problem) {
    Comparison c = {.other = got, .problem = problem};
    return each_file(want, compare_wanted, &c);
}

typedef struct {
    const Folders *folders;
    bool killed;
    Text *problem;
} Left;

// By SQLite itself: a store that was cut off while it was made doesn't have our tables yet.
static bool store_is_sound(const char *path, const char *name, Text *problem) {
    sqlite3 *db = NULL;
    sqlite3_stmt *check = NULL;
    bool ok = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
              sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL) == SQLITE_OK &&
              sqlite3_step(check) == SQLITE_ROW &&
              strcmp((const char *)sqlite3_column_text(check, 0), "ok") == 0;
    if (!ok) text_printf(problem, "store '%s' is not sound: %s", name, sqlite3_errmsg(db));
    sqlite3_finalize(check);
    sqlite3_close(db);
    return ok;
}

static bool check_left(void *self, const char *name, const char *path) {
    Left *l = self;
    char before[PATH_SIZE], after[PATH_SIZE];
    snprintf(before, sizeof before, "%s/%s", l->folders->before, name);
    snprintf(after, sizeof after, "%s/%s", l->folders->after, name);
    if (is_journal(name) || text_ends(name, ".checkpoint") || text_ends(name, ".losses.tsv")) return true;
    if (text_ends(name, ".db")) return store_is_sound(path, name, l->problem);
    if (access(before, F_OK) == 0 && same_bytes(path, before)) return true;
    if (access(after, F_OK) == 0 && same_bytes(path, after)) return true;
    if (access(before, F_OK) == 0 || access(after, F_OK) == 0)
        text_printf(l->problem, "'%s' is neither the old nor the new one", name);
    else if (!l->killed) text_printf(l->problem, "'%s' was left behind", name);
    return l->problem->length == 0;
}

bool folders_left_whole(const Folders *f, bool killed, Text *problem) {
    Left l = {.folders = f, .killed = killed, .problem = problem};
    return each_file(f->now, check_left, &l);
}

static bool check_kept(void *self, const char *name, const char *path) {
    Left *l = self;
    char after[PATH_SIZE], left[PATH_SIZE];
    (void)path;
    snprintf(after, sizeof after, "%s/%s", l->folders->after, name);
    snprintf(left, sizeof left, "%s/%s", l->folders->now, name);
    if (!is_journal(name) && access(after, F_OK) == 0 && access(left, F_OK))
        text_printf(l->problem, "the old '%s' is gone", name);
    return l->problem->length == 0;
}

bool folders_kept(const Folders *f, Text *problem) {
    Left l = {.folders = f, .problem = problem};
    return each_file(f->before, check_kept, &l);
}

static bool count_rows(void *self, const char *name, const char *path) {
    static const char ROWS[] = "SELECT (SELECT count(*) FROM sample) + (SELECT count(*) FROM step)"
                               " + (SELECT count(*) FROM surface) + (SELECT count(*) FROM run)";
    int64_t n = 0, *all = self;
    // NULL: no tables yet
    Store *s = text_ends(name, ".db") ? store_open(path, STORE_READ, NULL, NULL) : NULL;
    if (s && rows_one_int(s, ROWS, 0, &n, NULL)) *all += n;
    store_close(s);
    return true;
}

int64_t folders_rows(const char *folder) {
    int64_t all = 0;
    each_file(folder, count_rows, &all);
    return all;
}
