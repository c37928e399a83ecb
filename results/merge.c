#include "engine/base/embed.h"
#include "results/rows.h"
#include "results/sql.h"
#include "results/transfer.h"

#include <sys/stat.h>

EMBED(results_merge, "results/merge.sql")

static const char FORGET[] = "DROP TABLE IF EXISTS temp.map_run; DROP TABLE IF EXISTS temp.map_environment;"
                             "DROP TABLE IF EXISTS temp.map_attempt; DROP TABLE IF EXISTS temp.map_model;"
                             "DROP TABLE IF EXISTS temp.map_dataset; DROP TABLE IF EXISTS temp.map_prompt;"
                             "DROP TABLE IF EXISTS temp.map_point; DROP TABLE IF EXISTS temp.map_source;"
                             "DROP TABLE IF EXISTS temp.map_output; DROP TABLE IF EXISTS temp.map_sample;"
                             "DROP TABLE IF EXISTS temp.before";

static bool count(Store *s, StoreMerged *out, Error *e) {
    return rows_one_int(s, "SELECT count(*) FROM map_sample", 0, &out->samples, e) &&
           rows_one_int(s, "SELECT count(*) FROM run WHERE id > (SELECT run FROM before)", 0, &out->runs, e);
}

static bool merge_attached(Store *s, StoreMerged *out, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = sql_script(s, results_merge, e) && count(s, out, e) && sql_script(s, FORGET, e);
    return sql_leave(s, ok, e);
}

// Another store of this version, opened as what it says: not one that ATTACH would make.
static bool can_merge(const Store *s, const char *path, Error *e) {
    struct stat own, there;
    if (stat(s->path, &own) == 0 && stat(path, &there) == 0 && own.st_dev == there.st_dev &&
        own.st_ino == there.st_ino)
        return error_input(e, "store '%s': it cannot be merged into itself", path);
    Store *other = store_open(path, STORE_READ, NULL, e);
    store_close(other);
    return other != NULL;
}

bool store_merge(Store *s, const char *path, StoreMerged *out, Error *e) {
    *out = (StoreMerged){0};
    if (!can_merge(s, path, e)) return false;
    if (!sql_run(s, STATEMENT_ATTACH, VALUES(of_text(path)), e)) return error_within(e, "merging '%s'", path);
    bool ok = merge_attached(s, out, e);
    sql_run(s, STATEMENT_DETACH, NULL, 0, NULL);
    return ok || error_within(e, "merging '%s'", path);
}
