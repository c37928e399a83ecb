// Care of a store: deleting runs, what then nothing refers to, and looking for damage.
#include "results/rows.h"
#include "results/sql.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static int64_t file_bytes(const char *path, const char *end) {
    char name[PATH_MAX];
    struct stat st;
    int n = snprintf(name, sizeof name, "%s%s", path, end);
    return n < 0 || (size_t)n >= sizeof name || stat(name, &st) ? 0 : (int64_t)st.st_size;
}

// With its log, in which nearly all of a store may be.
static int64_t store_bytes(const char *path) { return file_bytes(path, "") + file_bytes(path, "-wal"); }

static bool sweep(Store *s, StatementId id, int64_t *count, Error *e) {
    if (!sql_run(s, id, NULL, 0, e)) return false;
    *count = sql_changes(s);
    return true;
}

static bool delete_all(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e) {
    for (int i = 0; i < count; i++) {
        if (!sql_run(s, STATEMENT_RUN_DELETE, VALUES(of_int(runs[i])), e)) return false;
        if (sql_changes(s) == 0)
            return error_input(e, "store '%s': there is no run %lld", s->path, (long long)runs[i]);
    }
    return sweep(s, STATEMENT_OUTPUT_SWEEP, &out->outputs, e) &&
           sweep(s, STATEMENT_PROMPT_SWEEP, &out->prompts, e) &&
           sweep(s, STATEMENT_DATASET_SWEEP, &out->datasets, e) &&
           sweep(s, STATEMENT_MODEL_SWEEP, &out->models, e) &&
           sweep(s, STATEMENT_ENVIRONMENT_SWEEP, &out->environments, e);
}

bool store_gc(Store *s, const int64_t *runs, int count, StoreGarbage *out, Error *e) {
    *out = (StoreGarbage){.bytes_before = store_bytes(s->path)};
    if (!sql_enter(s, e) || !sql_leave(s, delete_all(s, runs, count, out, e), e)) return false;
    bool ok = sql_script(s, "VACUUM", e) && sql_script(s, "PRAGMA wal_checkpoint(TRUNCATE)", e);
    out->bytes_after = store_bytes(s->path);
    return ok || error_within(e, "what was to go is gone, but its space is not given back");
}

bool store_check(Store *s, Error *e) {
    Rows *r = rows_open(s,
                        "SELECT * FROM (SELECT * FROM pragma_integrity_check LIMIT 1) UNION ALL"
                        " SELECT 'a row of ' || \"table\" || ' refers to nothing in ' || parent"
                        " FROM pragma_foreign_key_check",
                        e);
    if (!r) return false;
    bool ok = true;
    while (ok && rows_next(r)) {
        const char *said = rows_text(r, 0);
        if (said[0] == 'o' && said[1] == 'k' && !said[2]) continue;
        ok = error_system(e, "store '%s': it is damaged: %s", s->path, said);
    }
    return rows_end(r, ok, e);
}
