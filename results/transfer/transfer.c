// Export: rows as CSV and JSON lines, steps as docs/other-engines.md has them, answers as Spec-Bench does.
// Merge: merge.sql copies another store's rows, in one transaction.
#include "results/transfer/transfer.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/row.h"
#include "results/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

EMBED(results_merge, "results/transfer/merge.sql")
EMBED(results_transfer, "results/transfer/transfer.sql")

static bool written(FILE *out, Error *e) {
    return !ferror(out) || error_system(e, "cannot write the export: is the disk full?");
}

// --- CSV -------------------------------------------------------------------------------------------------

static void csv_line(const Rows *r, const char *(*field)(const Rows *, int), FILE *out) {
    LOCAL_TEXT line = {0};
    for (int i = 0; i < rows_columns(r); i++) {
        text_puts(&line, i ? "," : "");
        text_csv(&line, field(r, i));
    }
    fprintf(out, "%s\r\n", text_get(&line));
}

bool store_export_csv(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = rows_ask(s, sql, run, e);
    if (!r) return false;
    csv_line(r, rows_name, out);
    while (!ferror(out) && rows_next(r)) csv_line(r, rows_text, out);
    return rows_end(r, true, e) && written(out, e);
}

// --- JSON ------------------------------------------------------------------------------------------------

// Sets a key that the store's content names. Takes the value.
static bool set_key(const Store *s, json_t *object, const char *key, json_t *value, Error *e) {
    return json_object_set_new(object, key, value) == 0 ||
           error_input(e, "store '%s': the name '%s' is not UTF-8", s->path, key);
}

// A blob becomes hexadecimal digits.
static json_t *hex(const void *bytes, size_t n) {
    static const char DIGITS[] = "0123456789abcdef";
    LOCAL_TEXT t = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned char b = ((const unsigned char *)bytes)[i];
        text_add(&t, (const char[]){DIGITS[b >> 4], DIGITS[b & 15]}, 2);
    }
    return json_string(text_get(&t));
}

static json_t *value_json(const Rows *r, int i) {
    size_t n;
    const void *bytes;
    switch (rows_type(r, i)) {
    case VALUE_INT: return json_integer(rows_int(r, i));
    case VALUE_REAL: return json_real(rows_real(r, i));
    case VALUE_TEXT: return json_from_text(rows_text(r, i));
    case VALUE_BLOB: bytes = rows_blob(r, i, &n); return hex(bytes, n);
    case VALUE_NULL: break;
    }
    return json_null();
}

// The row of a table, without NULLs, its times in seconds.
static json_t *described_json(const Rows *r) {
    json_t *object = json_object();
    for (int i = 0; i < rows_columns(r); i++) {
        const char *name = rows_name(r, i);
        char key[64];
        if (rows_type(r, i) == VALUE_NULL) continue;
        snprintf(key, sizeof key, "%.*ss", (int)strlen(name) - 2, name); // propose_ns: propose_s
        if (text_ends(name, "_ns")) json_object_set_new(object, key, json_real(rows_real(r, i) / 1e9));
        else json_object_set_new(object, name, value_json(r, i));
    }
    return object;
}

// Takes the object.
static bool put_json(json_t *object, FILE *out, Error *e) {
    json_print(object, JSON_COMPACT, out);
    return written(out, e);
}

bool store_export_jsonl(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = rows_ask(s, sql, run, e);
    bool ok = true;
    while (ok && rows_next(r)) {
        json_t *object = json_object();
        for (int i = 0; i < rows_columns(r); i++) {
            json_auto_t *value = value_json(r, i);
            if (json_object_set(object, rows_name(r, i), value))
                json_object_set(object, "?", value); // the column's name is not UTF-8
        }
        ok = put_json(object, out, e);
    }
    return rows_end(r, ok, e);
}

// --- steps -----------------------------------------------------------------------------------------------

// The rows of a query of transfer.sql with parameters ?1 and ?2, as sparse objects that `each` may add to.
// NULL with e filled.
static json_t *rows_json(Store *s, const char *name, int64_t first, int64_t second,
                         bool (*each)(Store *s, int64_t sample, json_t *object, Error *e), Error *e) {
    json_auto_t *list = json_array();
    Rows *r = rows_named(s, results_transfer, name, first, e);
    if (rows_parameters(r) > 1) rows_bind_int(r, 2, second);
    bool ok = true;
    while (ok && rows_next(r)) {
        json_t *object = described_json(r);
        ok = !each || each(s, first, object, e);
        json_array_append_new(list, object);
    }
    return rows_end(r, ok, e) ? json_incref(list) : NULL;
}

// Takes the list and adds it under `key` unless it is empty. False for NULL.
static bool add_list(json_t *object, const char *key, json_t *list) {
    if (json_array_size(list)) json_object_set(object, key, list);
    json_decref(list);
    return list != NULL;
}

static bool add_to_step(Store *s, int64_t sample, json_t *step, Error *e) {
    int64_t number = json_integer_value(json_object_get(step, "number"));
    json_object_del(step, "number");
    return add_list(step, "sources", rows_json(s, "step_sources", sample, number, NULL, e)) &&
           add_list(step, "passes", rows_json(s, "step_passes", sample, number, NULL, e)) &&
           add_list(step, "rejected", rows_json(s, "step_rejected", sample, number, NULL, e));
}

// The method's parameters, and the others by section.
static bool add_params(json_t *object, int64_t point, Store *s, Error *e) {
    json_t *params = json_object(), *settings = json_object();
    json_object_set_new(object, "params", params);
    json_object_set_new(object, "settings", settings);
    Rows *r = rows_named(s, results_transfer, "params", point, e);
    bool ok = true;
    while (ok && rows_next(r)) {
        const char *section = rows_text(r, 0);
        json_t *to = strcmp(section, "method") == 0 ? params : json_object_get(settings, section);
        if (!to) ok = set_key(s, settings, section, to = json_object(), e);
        ok = ok && set_key(s, to, rows_text(r, 1), value_json(r, 2), e);
    }
    return rows_end(r, ok, e);
}

// --- a sample ---

static void add_ids(json_t *sample, const Rows *r, int column) {
    size_t n;
    const unsigned char *bytes = rows_blob(r, column, &n);
    if (n == 0) return;
    json_t *ids = json_array();
    json_object_set_new(sample, "ids", ids);
    for (int32_t id; n >= sizeof id; n -= sizeof id, bytes += sizeof id) {
        memcpy(&id, bytes, sizeof id);
        json_array_append_new(ids, json_integer(id));
    }
}

// JSON strings hold no NUL here: a text with NULs is exported in pieces.
static void add_text(json_t *sample, const Rows *r, int column) {
    size_t n;
    if (rows_type(r, column) == VALUE_NULL) return;
    const char *text = rows_blob(r, column, &n), *end = text + n;
    json_auto_t *more = json_array();
    json_object_set_new(sample, "text", json_from_text(n ? text : ""));
    for (const char *at = text; n && (at = memchr(at, 0, (size_t)(end - at)));)
        json_array_append_new(more, json_from_text(++at));
    if (json_array_size(more)) json_object_set(sample, "more_text", more);
}

static bool add_scores(Store *s, json_t *sample, int64_t id, Error *e) {
    Rows *r = rows_named(s, results_transfer, "scores", id, e);
    json_auto_t *scores = json_object();
    bool ok = true;
    while (ok && rows_next(r)) ok = set_key(s, scores, rows_text(r, 0), value_json(r, 1), e);
    if (json_object_size(scores)) json_object_set(sample, "scores", scores);
    return rows_end(r, ok, e);
}

static bool add_divergence(Store *s, json_t *sample, int64_t id, Error *e) {
    json_auto_t *list = rows_json(s, "divergence", id, 0, NULL, e);
    if (json_array_size(list)) json_object_set(sample, "divergence", json_array_get(list, 0));
    return list != NULL;
}

// The first columns of `samples` are not exported as they are.
enum { SAMPLE_ID, POINT_ID, IDS, TEXT, PIECES, UNLIKE };

// The first line's object takes *run.
static bool export_sample(Store *s, Rows *r, json_t **run, FILE *out, Error *e) {
    json_t *sample = described_json(r);
    for (int i = SAMPLE_ID; i < UNLIKE; i++) json_object_del(sample, rows_name(r, i));
    if (*run) json_object_set_new(sample, "run", *run);
    *run = NULL;
    int64_t id = rows_int(r, SAMPLE_ID);
    add_ids(sample, r, IDS);
    add_text(sample, r, TEXT);
    json_auto_t *pieces = json_loads(rows_text(r, PIECES), 0, NULL);
    if (json_is_array(pieces)) json_object_set(sample, "pieces", pieces);
    bool ok = add_params(sample, rows_int(r, POINT_ID), s, e) && add_scores(s, sample, id, e) &&
              add_divergence(s, sample, id, e) &&
              add_list(sample, "steps", rows_json(s, "steps", id, 0, add_to_step, e));
    if (ok) return put_json(sample, out, e);
    json_decref(sample);
    return false;
}

// --- the run ---

static bool add_to_start(Store *s, UNUSED int64_t run, json_t *start, Error *e) {
    int64_t id = json_integer_value(json_object_get(start, "id"));
    int64_t on = json_integer_value(json_object_get(start, "environment_id"));
    json_object_del(start, "id");
    json_object_del(start, "environment_id");
    return add_list(start, "on", rows_json(s, "environment", on, 0, NULL, e)) &&
           add_list(start, "readings", rows_json(s, "readings", id, 0, NULL, e));
}

static bool add_to_point(Store *s, UNUSED int64_t run, json_t *point, Error *e) {
    int64_t id = json_integer_value(json_object_get(point, "point_id"));
    json_object_del(point, "point_id");
    return add_params(point, id, s, e) && add_list(point, "once", rows_json(s, "once", id, 0, NULL, e)) &&
           add_list(point, "failures", rows_json(s, "failures", id, 0, NULL, e));
}

// A run without its samples; NULL with e filled.
static json_t *run_json(Store *s, int64_t run, Error *e) {
    static const struct {
        const char *key; // and the query's name
        bool (*each)(Store *, int64_t, json_t *, Error *);
    } LISTS[] = {{"contents", NULL},
                 {"models", NULL},
                 {"datasets", NULL},
                 {"starts", add_to_start},
                 {"points", add_to_point}};
    json_auto_t *rows = rows_json(s, "run", run, 0, NULL, e);
    json_t *all = json_array_get(rows, 0);
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < sizeof LISTS / sizeof *LISTS; i++)
        ok = add_list(all, LISTS[i].key, rows_json(s, LISTS[i].key, run, 0, LISTS[i].each, e));
    return ok ? json_incref(all) : NULL;
}

bool store_export_steps(Store *s, int64_t run, FILE *out, Error *e) {
    json_t *all = run_json(s, run, e);
    if (!all) return false;
    Rows *r = rows_named(s, results_transfer, "samples", run, e);
    bool ok = true;
    while (ok && rows_next(r)) ok = export_sample(s, r, &all, out, e);
    ok = rows_end(r, ok, e);
    if (!ok || !all) {
        json_decref(all);
        return ok;
    }
    if (json_array_size(json_object_get(all, "points")))
        return put_json(json_pack("{s:o}", "run", all), out, e);
    json_decref(all);
    return error_input(e, "run %lld of '%s' has no points, so no steps: is it a surface?", (long long)run,
                       s->path);
}

// --- Spec-Bench's answer files --------------------------------------------------------------------------

// One line per conversation, with lists over its turns. Times, tokens and steps are those of the whole call,
// prefill included.
typedef struct {
    int64_t number, dataset;                                 // of the conversation
    json_t *line, *turns, *steps, *tokens, *times, *lengths; // the last five: of its only choice
} Answer;

static void begin_answer(Answer *a, const Rows *r) {
    char *end;
    const char *name = rows_text(r, 1);
    long long id = strtoll(name, &end, 10);
    if (*end || !*name) id = rows_int(r, 0);
    a->number = rows_int(r, 0);
    a->dataset = rows_int(r, 11);
    a->line = json_pack("{s:I, s:o, s:o, s:o, s:[{s:i, s:[], s:[], s:[], s:[], s:[]}], s:f}", "question_id",
                        (json_int_t)id, "category", json_from_text(rows_text(r, 2)), "answer_id",
                        json_from_text(rows_text(r, 3)), "model_id", json_from_text(rows_text(r, 4)),
                        "choices", "index", 0, "turns", "decoding_steps", "new_tokens", "wall_time",
                        "accept_lengths", "tstamp", rows_real(r, 5));
    json_t *choice = json_array_get(json_object_get(a->line, "choices"), 0);
    a->turns = json_object_get(choice, "turns");
    a->steps = json_object_get(choice, "decoding_steps");
    a->tokens = json_object_get(choice, "new_tokens");
    a->times = json_object_get(choice, "wall_time");
    a->lengths = json_object_get(choice, "accept_lengths");
}

static bool add_turn(Store *s, const Answer *a, const Rows *r, Error *e) {
    json_array_append_new(a->turns, json_from_text(rows_text(r, 7)));
    json_array_append_new(a->steps, json_integer(rows_int(r, 8)));
    json_array_append_new(a->tokens, json_integer(rows_int(r, 9)));
    json_array_append_new(a->times, json_real(rows_real(r, 10)));
    Rows *steps = rows_named(s, results_transfer, "lengths", rows_int(r, 6), e);
    while (rows_next(steps)) json_array_append_new(a->lengths, json_integer(rows_int(steps, 0)));
    return rows_end(steps, true, e);
}

static bool end_answer(Answer *a, FILE *out, int *lines, Error *e) {
    if (!a->line) return true;
    json_print(a->line, 0, out);
    a->line = NULL;
    if (!written(out, e)) return false;
    ++*lines;
    return true;
}

bool store_export_specbench(Store *s, int64_t point, int pass, FILE *out, int *lines, Error *e) {
    Answer a = {.line = NULL};
    Rows *r = rows_named(s, results_transfer, "answers", point, e);
    *lines = 0;
    rows_bind_int(r, 2, pass);
    bool ok = true;
    while (ok && rows_next(r)) {
        if (a.number != rows_int(r, 0) || a.dataset != rows_int(r, 11)) ok = end_answer(&a, out, lines, e);
        if (ok && !a.line) begin_answer(&a, r);
        ok = ok && add_turn(s, &a, r, e);
    }
    ok = rows_end(r, ok, e) && end_answer(&a, out, lines, e);
    json_decref(a.line);
    return ok;
}

// --- merge ----------------------------------------------------------------------------------------------

static bool merge_attached(Store *s, const Store *other, StoreMerged *out, Error *e) {
    if (!sql_enter(s, e)) return false;
    LOCAL_TEXT script = {0};
    row_expand(results_merge, &script);
    LOCAL_MEMORY char *forget = sql_named(results_transfer, "forget");
    Rows *r = sql_script(s, text_get(&script), e) ? rows_named(s, results_transfer, "merged", 0, e) : NULL;
    if (rows_next(r))
        *out = (StoreMerged){rows_int(r, 0), rows_int(r, 1), .differ = rows_int(r, 2),
                             .altered = rows_int(r, 3)};
    bool ok = rows_end(r, true, e) && sql_script(s, forget, e) && store_unchanged(other, e);
    return sql_leave(s, ok, e);
}

// Opens the other store for reading, and so checks that it exists and has this version: ATTACH would create
// it.
static Store *open_other(const Store *s, const char *path, Error *e) {
    struct stat own, there;
    if (stat(s->path, &own) == 0 && stat(path, &there) == 0 && own.st_dev == there.st_dev &&
        own.st_ino == there.st_ino) {
        error_input(e, "store '%s': it cannot be merged into itself", path);
        return NULL;
    }
    return store_open(path, STORE_READ, NULL, e);
}

bool store_merge(Store *s, const char *path, StoreMerged *out, Error *e) {
    *out = (StoreMerged){0};
    LOCAL_STORE *other = open_other(s, path, e);
    if (!other) return false;
    bool ok = store_attach(s, other, e);
    if (ok) {
        ok = merge_attached(s, other, out, e);
        sql_run(s, "detach", NULL, 0, NULL);
    }
    // SQLite does not report which of the two files is damaged.
    Error of_other = {0};
    if (!ok && e && e->kind == ERROR_SYSTEM && !store_check(other, &of_other)) *e = of_other;
    return ok || error_within(e, "merging '%s'", path);
}
