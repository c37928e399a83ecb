#include "engine/base/shipped.h"
#include "results/connect.h"
#include "results/rows.h"
#include "results/transfer.h"

#include <sys/stat.h>

EMBED(results_merge, "results/merge.sql")

static const char FORGET[] = "DROP TABLE IF EXISTS temp.map_run; DROP TABLE IF EXISTS temp.map_environment;"
                             "DROP TABLE IF EXISTS temp.map_attempt; DROP TABLE IF EXISTS temp.map_model;"
                             "DROP TABLE IF EXISTS temp.map_dataset; DROP TABLE IF EXISTS temp.map_prompt;"
                             "DROP TABLE IF EXISTS temp.map_point; DROP TABLE IF EXISTS temp.map_source;"
                             "DROP TABLE IF EXISTS temp.map_output; DROP TABLE IF EXISTS temp.map_sample;"
                             "DROP TABLE IF EXISTS temp.map_fit; DROP TABLE IF EXISTS temp.before";

static bool count(Store *s, StoreMerged *out, Error *e) {
    return rows_one_int(s, "SELECT count(*) FROM map_sample", 0, &out->samples, e) &&
           rows_one_int(s, "SELECT count(*) FROM run WHERE id > (SELECT run FROM before)", 0, &out->runs, e);
}

static bool merge_attached(Store *s, const Store *other, StoreMerged *out, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = sql_script(s, results_merge, e) && count(s, out, e) && sql_script(s, FORGET, e) &&
              store_unchanged(other, e);
    return sql_leave(s, ok, e);
}

// Another store of this version, open to be read: not one that ATTACH would make.
static Store *open_other(const Store *s, const char *path, Error *e) {
    struct stat own, there;
    if (stat(s->path, &own) == 0 && stat(path, &there) == 0 && own.st_dev == there.st_dev &&
        own.st_ino == there.st_ino) {
        error_input(e, "store '%s': it cannot be merged into itself", path);
        return NULL;
    }
    return store_open(path, STORE_READ, NULL, e);
}

// SQLite does not tell which of two files is damaged.
static void blame(Store *other, Error *e) {
    Error of_other = {0};
    if (e && e->kind == ERROR_SYSTEM && !store_check(other, &of_other)) *e = of_other;
}

bool store_merge(Store *s, const char *path, StoreMerged *out, Error *e) {
    *out = (StoreMerged){0};
    Store *other = open_other(s, path, e);
    if (!other) return false;
    bool ok = store_attach(s, other, e);
    if (ok) {
        ok = merge_attached(s, other, out, e);
        sql_run(s, STATEMENT_DETACH, NULL, 0, NULL);
    }
    if (!ok) blame(other, e);
    store_close(other);
    return ok || error_within(e, "merging '%s'", path);
}
