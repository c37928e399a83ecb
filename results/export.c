// Rows out, as CSV and JSON lines; steps as docs/steps.md has them; answers as Spec-Bench has them.
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "results/rows.h"
#include "results/sql.h"
#include "results/transfer.h"

#include <string.h>

static bool written(FILE *out, Error *e) {
    return !ferror(out) || error_system(e, "cannot write the export: is the disk full?");
}

// Opens a query with its ?1 bound.
static Rows *ask(Store *s, const char *sql, int64_t first, Error *e) {
    Rows *r = rows_open(s, sql, e);
    if (r && rows_parameters(r) > 0) rows_bind_int(r, 1, first);
    return r;
}

// --- CSV -------------------------------------------------------------------------------------------------

static void csv_field(const char *text, FILE *out) {
    if (!text[strcspn(text, "\",\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"') fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void csv_line(const Rows *r, const char *(*field)(const Rows *, int), FILE *out) {
    for (int i = 0; i < rows_columns(r); i++) {
        if (i) fputc(',', out);
        csv_field(field(r, i), out);
    }
    fputs("\r\n", out);
}

bool store_export_csv(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = ask(s, sql, run, e);
    if (!r) return false;
    csv_line(r, rows_name, out);
    while (!ferror(out) && rows_next(r)) csv_line(r, rows_text, out);
    return rows_end(r, true, e) && written(out, e);
}

// --- JSON ------------------------------------------------------------------------------------------------

// A blob is told as its hexadecimal digits.
static json_t *hex(const void *bytes, size_t n) {
    static const char DIGITS[] = "0123456789abcdef";
    Text t = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned char b = ((const unsigned char *)bytes)[i];
        text_add(&t, (const char[]){DIGITS[b >> 4], DIGITS[b & 15]}, 2);
    }
    json_t *j = t.failed ? NULL : json_string(text_get(&t));
    text_release(&t);
    return j;
}

static json_t *value_json(const Rows *r, int i) {
    size_t n;
    const void *bytes;
    switch (rows_type(r, i)) {
    case VALUE_INT: return json_integer(rows_int(r, i));
    case VALUE_REAL: return json_real(rows_real(r, i));
    case VALUE_TEXT: return json_string(rows_text(r, i));
    case VALUE_BLOB: bytes = rows_blob(r, i, &n); return hex(bytes, n);
    case VALUE_NULL: break;
    }
    return json_null();
}

// The row as an object; a NULL of the table is left out where `sparse`. NULL: no memory.
static json_t *row_json(const Rows *r, bool sparse) {
    json_t *object = json_object();
    bool ok = object != NULL;
    for (int i = 0; i < rows_columns(r) && ok; i++)
        if (!(sparse && rows_type(r, i) == VALUE_NULL))
            ok = json_object_set_new(object, rows_name(r, i), value_json(r, i)) == 0;
    if (ok) return object;
    json_decref(object);
    return NULL;
}

// Releases the object.
static bool put_json(json_t *object, FILE *out, Error *e) {
    return json_print(object, JSON_COMPACT, out) ? written(out, e) : error_system(e, "out of memory");
}

bool store_export_jsonl(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = ask(s, sql, run, e);
    if (!r) return false;
    bool ok = true;
    while (ok && rows_next(r)) ok = put_json(row_json(r, false), out, e);
    return rows_end(r, ok, e);
}

// --- steps -----------------------------------------------------------------------------------------------

// All rows of a query about `first` as an array of sparse objects; `each` may add to one. NULL with e filled.
static json_t *rows_json(Store *s, const char *sql, int64_t first, int64_t second,
                         bool (*each)(Store *s, int64_t sample, json_t *object, Error *e), Error *e) {
    json_t *list = json_array();
    Rows *r = list ? ask(s, sql, first, e) : NULL;
    if (!list) error_system(e, "out of memory");
    if (r && rows_parameters(r) > 1) rows_bind_int(r, 2, second);
    bool ok = r != NULL;
    while (ok && rows_next(r)) {
        json_t *object = row_json(r, true);
        ok = !object || !each || each(s, first, object, e);
        if (!ok) json_decref(object);
        else ok = !json_array_append_new(list, object) || error_system(e, "out of memory");
    }
    if (rows_end(r, ok, e)) return list;
    json_decref(list);
    return NULL;
}

// Adds a list under `key` where it is not empty.
static bool add_list(json_t *object, const char *key, json_t *list, Error *e) {
    if (!list) return false;
    if (json_array_size(list) == 0) {
        json_decref(list);
        return true;
    }
    return json_object_set_new(object, key, list) == 0 || error_system(e, "out of memory");
}

static bool add_to_step(Store *s, int64_t sample, json_t *step, Error *e) {
    static const char SOURCES[] =
        "SELECT name, rows, length, rank FROM step_source JOIN source ON source.id = source_id"
        " WHERE sample_id = ?1 AND number = ?2 ORDER BY won DESC, source_id";
    static const char PASSES[] = "SELECT model, a, b, rows, context, count FROM pass"
                                 " WHERE sample_id = ?1 AND number = ?2 ORDER BY place";
    int64_t number = json_integer_value(json_object_get(step, "number"));
    json_object_del(step, "number");
    return add_list(step, "sources", rows_json(s, SOURCES, sample, number, NULL, e), e) &&
           add_list(step, "passes", rows_json(s, PASSES, sample, number, NULL, e), e);
}

static bool add_params(json_t *sample, int64_t point, Store *s, Error *e) {
    json_t *params = json_object();
    bool ok = json_object_set_new(sample, "params", params) == 0;
    Rows *r =
        ask(s, "SELECT name, value FROM point_param WHERE point_id = ?1 AND section = 'method'", point, e);
    if (!r) return false;
    while (ok && rows_next(r)) ok = json_object_set_new(params, rows_text(r, 0), value_json(r, 1)) == 0;
    if (!ok) error_system(e, "out of memory");
    return rows_end(r, ok, e);
}

static bool export_sample(Store *s, Rows *r, FILE *out, Error *e) {
    static const char STEPS[] =
        "SELECT number, step_kind.name AS kind, context, rows, asked, depth, candidates, probes, drafted, "
        "tried, accepted,"
        " emitted, matches, pool, pool_hits, propose_ns / 1e9 AS propose_s, forward_ns / 1e9 AS forward_s,"
        " verify_ns / 1e9 AS verify_s, observe_ns / 1e9 AS observe_s, device_ns / 1e9 AS device_s"
        " FROM step JOIN step_kind ON step_kind.id = kind WHERE sample_id = ?1 ORDER BY number";
    json_t *sample = row_json(r, true);
    if (!sample) return error_system(e, "out of memory");
    json_object_del(sample, "sample_id");
    json_object_del(sample, "point_id");
    bool ok = add_params(sample, rows_int(r, 1), s, e) &&
              add_list(sample, "steps", rows_json(s, STEPS, rows_int(r, 0), 0, add_to_step, e), e);
    if (ok) return put_json(sample, out, e);
    json_decref(sample);
    return false;
}

bool store_export_steps(Store *s, int64_t run, FILE *out, Error *e) {
    static const char SAMPLES[] =
        "SELECT sample.id AS sample_id, point.id AS point_id, model.name AS model, dataset.name AS dataset, "
        "method, label,"
        " temperature, layers, pass, prompt.number AS prompt, turn, prompt.name AS name, task, started, "
        "flags, prompt_tokens,"
        " sample.tokens, prefill_tokens, prefill_steps, prefill_ns / 1e9 AS prefill_s, decode_ns / 1e9 AS "
        "decode_s, device_head_ns / 1e9 AS device_head_s, device_commit_ns / 1e9 AS device_commit_s, text"
        " FROM point JOIN sample ON point_id = point.id JOIN model ON model.id = model_id JOIN prompt ON "
        "prompt.id = prompt_id"
        " JOIN dataset ON dataset.id = prompt.dataset_id LEFT JOIN output ON output.id = output_id"
        " WHERE run_id = ?1 ORDER BY point.number, pass, prompt.number, turn";
    Rows *r = ask(s, SAMPLES, run, e);
    if (!r) return false;
    bool ok = true;
    while (ok && rows_next(r)) ok = export_sample(s, r, out, e);
    return rows_end(r, ok, e);
}
