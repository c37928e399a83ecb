// The objects of measurements: runs, starts, models, datasets, prompts, points. Each is found or added.
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "results/row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- runs ------------------------------------------------------------------------------------------------

static bool add_run(Store *s, const StoreRun *run, int64_t *id, Error *e) {
    bool ok = row_insert(s, ROW_RUN, VALUES(of_text(run->hash)), run, e);
    *id = ok ? sql_last_id(s) : 0;
    if (ok && run->uid) ok = sql_run(s, "run_uid", VALUES(of_int(*id), of_text(run->uid)), e);
    for (int i = 0; i < run->content_count && ok; i++)
        ok = row_insert(s, ROW_CONTENT, VALUES(of_int(*id)), &run->contents[i], e);
    return ok;
}

bool store_run(Store *s, const StoreRun *run, int64_t *id, bool *found, Error *e) {
    bool there = false;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, "run_find", VALUES(of_text(run->hash)), id, &there, e) &&
              (there || add_run(s, run, id, e));
    if (found) *found = there;
    return sql_leave(s, ok, e);
}

bool store_run_new(Store *s, const StoreRun *run, int64_t *id, Error *e) {
    return sql_enter(s, e) && sql_leave(s, add_run(s, run, id, e), e);
}

// --- starts ----------------------------------------------------------------------------------------------

// The hash of a list of values, each with its type and length: no two lists have the same bytes.
static bool hash_values(const Value *values, int count, char out[SHA256_TEXT], Error *e) {
    LOCAL_TEXT t = {0};
    for (int i = 0; i < count; i++) {
        const Value *v = &values[i];
        if (v->type == VALUE_INT) text_printf(&t, "i%lld;", (long long)v->i);
        else if (v->type == VALUE_REAL) text_printf(&t, "r%.17g;", v->r);
        else if (v->type == VALUE_NULL) text_puts(&t, "n;");
        else {
            text_printf(&t, "t%lld:", (long long)v->i);
            text_add(&t, v->bytes, (size_t)v->i);
        }
    }
    return sha256_bytes(text_get(&t), t.length, out, e);
}

bool store_environment(Store *s, const Value *values, int count, int64_t *id, Error *e) {
    char hash[SHA256_TEXT];
    bool found = false;
    Value all[ROW_MOST];
    if (!hash_values(values, count, hash, e)) return false;
    all[0] = of_text(hash);
    memcpy(all + 1, values, (size_t)count * sizeof *values);
    if (!sql_find(s, "environment_find", all, 1, id, &found, e)) return false;
    if (found) return true;
    if (!sql_insert(s, &store_rows[ROW_ENVIRONMENT], all, 1 + count, e)) return false;
    *id = sql_last_id(s);
    return true;
}

bool store_attempt(Store *s, int64_t run, int argc, char *const *argv, const StoreEnvironment *on,
                   int64_t *id, Error *e) {
    int64_t environment;
    Value values[ROW_MOST];
    int count = 0;
    row_values(ROW_ENVIRONMENT, on, values, &count);
    json_auto_t *list = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        json_array_append_new(list, word ? word : json_string("?")); // not UTF-8
    }
    LOCAL_MEMORY char *words = json_text(list, JSON_COMPACT);
    bool ok = sql_enter(s, e);
    if (ok) {
        ok = store_environment(s, values, count, &environment, e) &&
             sql_run(s, "attempt_add", VALUES(of_int(run), of_int(environment), of_text(words)), e);
        *id = ok ? sql_last_id(s) : 0;
        ok = sql_leave(s, ok, e);
    }
    return ok;
}

bool store_attempt_end(Store *s, int64_t attempt, const char *result, Error *e) {
    return sql_enter(s, e) &&
           sql_leave(s, sql_run(s, "attempt_end", VALUES(of_int(attempt), of_text(result)), e), e);
}

bool store_reading(Store *s, int64_t attempt, const StoreReading *r, Error *e) {
    int64_t number;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, "reading_next", VALUES(of_int(attempt)), &number, NULL, e) &&
              row_insert(s, ROW_READING, VALUES(of_int(attempt), of_int(number)), r, e);
    return sql_leave(s, ok, e);
}

// --- what points are made of -----------------------------------------------------------------------------

// Finds by the row's first `keys` values; else adds it. No slow work, one transaction.
static bool find_or_add(Store *s, const char *find, int keys, RowId row, const void *from, int64_t *id,
                        Error *e) {
    Value values[ROW_MOST];
    int count = 0;
    bool found = false;
    row_values(row, from, values, &count);
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, find, values, keys, id, &found, e) &&
              (found || sql_insert(s, &store_rows[row], values, count, e));
    if (ok && !found) *id = sql_last_id(s);
    return sql_leave(s, ok, e);
}

bool store_model(Store *s, const StoreModel *m, int64_t *id, Error *e) {
    return find_or_add(s, "model_find", 2, ROW_MODEL, m, id, e);
}

bool store_dataset(Store *s, const StoreDataset *d, int64_t *id, Error *e) {
    return find_or_add(s, "dataset_find", 2, ROW_DATASET, d, id, e);
}

bool store_prompt(Store *s, const StorePrompt *p, int64_t *id, Error *e) {
    return find_or_add(s, "prompt_find", 3, ROW_PROMPT, p, id, e);
}

// --- points ----------------------------------------------------------------------------------------------

// A number if the whole text reads as one.
static Value of_param(const char *text) {
    if (!text || !*text || strchr(" \t\n+", *text)) return of_text(text);
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (*end == 0 && errno == 0) return of_int(whole);
    double real = strtod(text, &end);
    return *end == 0 && isfinite(real) && strspn(text, "0123456789.eE-+") == strlen(text) ? of_real(real)
                                                                                          : of_text(text);
}

static bool add_point(Store *s, int64_t run, const StorePoint *p, int64_t *id, Error *e) {
    bool ok = row_insert(s, ROW_POINT, VALUES(of_int(run)), p, e);
    *id = ok ? sql_last_id(s) : 0;
    for (int i = 0; i < p->param_count && ok; i++) {
        const StoreParam *q = &p->params[i];
        ok = sql_run(s, "param_add",
                     VALUES(of_int(*id), of_text(q->section), of_text(q->name), of_param(q->value)), e);
    }
    return ok;
}

bool store_point(Store *s, int64_t run, const StorePoint *p, int64_t *id, Error *e) {
    bool found = false;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, "point_find", VALUES(of_int(run), of_text(p->hash)), id, &found, e);
    if (ok && found)
        ok = sql_run(s, "point_renew",
                     VALUES(of_int(*id), of_id(p->baseline), of_id(p->same_path), of_text(p->skipped)), e);
    else if (ok) ok = add_point(s, run, p, id, e);
    return sql_leave(s, ok, e);
}

// --- facts about a point --------------------------------------------------------------------------------

static bool write_one(Store *s, const char *name, const Value *values, int count, Error *e) {
    return sql_enter(s, e) && sql_leave(s, sql_run(s, name, values, count, e), e);
}

bool store_one_off(Store *s, int64_t point, const char *name, double seconds, int64_t bytes, Error *e) {
    return write_one(s, "one_off_set", VALUES(of_int(point), of_text(name), of_ns(seconds), of_count(bytes)),
                     e);
}

bool store_estimate(Store *s, int64_t point, const StoreEstimate *x, Error *e) {
    return sql_enter(s, e) && sql_leave(s, row_insert(s, ROW_ESTIMATE, VALUES(of_int(point)), x, e), e);
}

bool store_failure(Store *s, int64_t attempt, int64_t point, int64_t prompt, int pass, const char *message,
                   Error *e) {
    return write_one(s, "failure_add",
                     VALUES(of_int(attempt), of_id(point), of_id(prompt), of_count(pass), of_text(message)),
                     e);
}

bool store_surface(Store *s, const StoreSurface *rows, int count, Error *e) {
    bool ok = true;
    if (!sql_enter(s, e)) return false;
    for (int i = 0; i < count && ok; i++) {
        StoreSurface row = rows[i];
        if (row.k < 0) row.w = -1;
        if (row.b < 0) row.a = -1;
        ok = row_insert(s, ROW_SURFACE, VALUES(of_int(row.attempt), of_int(row.model)), &row, e);
    }
    return sql_leave(s, ok, e);
}

// --- fits ------------------------------------------------------------------------------------------------

static bool add_fit(Store *s, int64_t run, const StoreFit *x, bool *added, Error *e) {
    bool ok = row_insert(s, ROW_FIT, VALUES(of_int(run)), x, e);
    *added = ok && sql_changes(s) > 0;
    if (!*added) return ok;
    int64_t fit = sql_last_id(s);
    ok = sql_run(s, "fit_points", VALUES(of_int(fit), of_text(x->point_ids)), e);
    for (int i = 0; ok && i < x->estimate_count; i++)
        ok = row_insert(s, ROW_FIT_ESTIMATE, VALUES(of_int(fit)), &x->estimates[i], e);
    return ok;
}

bool store_fit(Store *s, int64_t run, const StoreFit *fit, bool *added, Error *e) {
    return sql_enter(s, e) && sql_leave(s, add_fit(s, run, fit, added, e), e);
}
