// Rows out, as CSV and JSON lines; steps as docs/steps.md has them; answers as Spec-Bench has them.
#include "engine/base/json.h"
#include "engine/base/text.h"
#include "results/rows.h"
#include "results/sql.h"
#include "results/transfer.h"

#include <errno.h>
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

// Bytes that are no UTF-8 (a path may be any) are told as "?". jansson gives NULL for them, and where there
// is no memory; then malloc has said so. It reads no NUL: what is behind one is left out.
static json_t *text_json(const char *text) {
    errno = 0;
    json_t *j = json_string(text);
    return j || errno == ENOMEM ? j : json_string("?");
}

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
    case VALUE_TEXT: return text_json(rows_text(r, i));
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

// What a point is. Its number, those of its baselines, and hashes tell it from others, whatever they are
// called.
#define POINT                                                                           \
    "model.name AS model, dataset.name AS dataset, method, label, temperature, layers," \
    " point.number AS point, point.hash AS hash, decoder, skipped,"                     \
    " (SELECT number FROM point AS b WHERE b.id = point.baseline_id) AS baseline,"      \
    " (SELECT number FROM point AS b WHERE b.id = point.same_path_id) AS same_path,"    \
    " model.hash AS model_hash, dataset.hash AS dataset_hash"

// The method's parameters, and by their sections all others.
static bool add_params(json_t *object, int64_t point, Store *s, Error *e) {
    json_t *params = json_object(), *settings = json_object();
    bool ok = json_object_set_new(object, "params", params) == 0;
    ok = json_object_set_new(object, "settings", settings) == 0 && ok;
    Rows *r = ask(s, "SELECT section, name, value FROM point_param WHERE point_id = ?1", point, e);
    if (!r) return false;
    while (ok && rows_next(r)) {
        json_t *to = params;
        if (strcmp(rows_text(r, 0), "method") != 0) {
            to = json_object_get(settings, rows_text(r, 0));
            if (!to && json_object_set_new(settings, rows_text(r, 0), json_object()) == 0)
                to = json_object_get(settings, rows_text(r, 0));
        }
        ok = to && json_object_set_new(to, rows_text(r, 1), value_json(r, 2)) == 0;
    }
    if (!ok) error_system(e, "out of memory");
    return rows_end(r, ok, e);
}

// --- a sample ---

static bool out_of_memory(Error *e) { return error_system(e, "out of memory"); }

static bool add_ids(json_t *sample, const Rows *r, int column, Error *e) {
    size_t n;
    const unsigned char *bytes = rows_blob(r, column, &n);
    if (n == 0) return true;
    json_t *ids = json_array();
    bool ok = json_object_set_new(sample, "ids", ids) == 0;
    for (; ok && n >= 4; n -= 4, bytes += 4) {
        uint32_t id =
            bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        ok = json_array_append_new(ids, json_integer((int32_t)id)) == 0;
    }
    return ok || out_of_memory(e);
}

// JSON's strings hold no NUL here: a text that has some goes out in pieces.
static bool add_text(json_t *sample, const Rows *r, int column, Error *e) {
    size_t n;
    if (rows_type(r, column) == VALUE_NULL) return true;
    const char *text = rows_blob(r, column, &n), *end = text + n;
    json_t *more = json_array();
    bool ok = more && json_object_set_new(sample, "text", text_json(n ? text : "")) == 0;
    for (const char *at = text; ok && n && (at = memchr(at, 0, (size_t)(end - at)));)
        ok = json_array_append_new(more, text_json(++at)) == 0;
    if (ok && json_array_size(more)) ok = json_object_set(sample, "more_text", more) == 0;
    json_decref(more);
    return ok || out_of_memory(e);
}

static bool add_scores(Store *s, json_t *sample, int64_t id, Error *e) {
    Rows *r = ask(s,
                  "SELECT metric, value FROM sample JOIN score ON score.output_id = sample.output_id"
                  " AND score.prompt_id = sample.prompt_id WHERE sample.id = ?1",
                  id, e);
    json_t *scores = json_object();
    bool ok = r && scores;
    while (ok && rows_next(r)) ok = json_object_set_new(scores, rows_text(r, 0), value_json(r, 1)) == 0;
    if (ok && json_object_size(scores)) ok = json_object_set(sample, "scores", scores) == 0;
    json_decref(scores);
    if (r && !ok) out_of_memory(e);
    return rows_end(r, ok, e);
}

static bool add_divergence(Store *s, json_t *sample, int64_t id, Error *e) {
    json_t *list = rows_json(s, "SELECT position, wanted, got, margin FROM divergence WHERE sample_id = ?1",
                             id, 0, NULL, e);
    bool ok = list != NULL;
    if (ok && json_array_size(list))
        ok = json_object_set(sample, "divergence", json_array_get(list, 0)) == 0 || out_of_memory(e);
    json_decref(list);
    return ok;
}

// The first columns of SAMPLES are not for the line as they are.
enum { SAMPLE_ID, POINT_ID, IDS, TEXT, UNLIKE };

static bool add_steps(Store *s, json_t *sample, int64_t id, Error *e) {
    static const char STEPS[] =
        "SELECT number, step_kind.name AS kind, context, rows, asked, depth, candidates, probes, drafted, "
        "tried, accepted,"
        " emitted, matches, pool, pool_hits, propose_ns / 1e9 AS propose_s, forward_ns / 1e9 AS forward_s,"
        " verify_ns / 1e9 AS verify_s, observe_ns / 1e9 AS observe_s, device_ns / 1e9 AS device_s"
        " FROM step JOIN step_kind ON step_kind.id = kind WHERE sample_id = ?1 ORDER BY number";
    return add_list(sample, "steps", rows_json(s, STEPS, id, 0, add_to_step, e), e);
}

// The first line's object gets the run's.
static bool export_sample(Store *s, Rows *r, json_t **run, FILE *out, Error *e) {
    json_t *sample = row_json(r, true);
    if (!sample) return out_of_memory(e);
    for (int i = SAMPLE_ID; i < UNLIKE; i++) json_object_del(sample, rows_name(r, i));
    bool ok = !*run || json_object_set_new(sample, "run", *run) == 0 || out_of_memory(e);
    *run = NULL;
    int64_t id = rows_int(r, SAMPLE_ID);
    ok = ok && add_params(sample, rows_int(r, POINT_ID), s, e) && add_ids(sample, r, IDS, e) &&
         add_text(sample, r, TEXT, e) && add_scores(s, sample, id, e) && add_divergence(s, sample, id, e) &&
         add_steps(s, sample, id, e);
    if (ok) return put_json(sample, out, e);
    json_decref(sample);
    return false;
}

// --- the run ---

static bool add_to_start(Store *s, int64_t run, json_t *start, Error *e) {
    static const char ON[] =
        "SELECT version, compiler, flags, libraries, host, system, kernel, cpu, isa, governor,"
        " cores, threads, virtual_machine, l1d, l2, l3, memory, bandwidth, peak, gpu,"
        " gpu_uuid, driver, cuda, cublas, gpu_memory, gpu_bandwidth, gpu_peak"
        " FROM environment WHERE id = ?1";
    static const char READINGS[] =
        "SELECT at, moment, device, clock_mhz, memory_clock_mhz, power_w, temperature_c, throttle, load,"
        " busy_others FROM reading WHERE attempt_id = ?1 ORDER BY number";
    int64_t id = json_integer_value(json_object_get(start, "id"));
    int64_t on = json_integer_value(json_object_get(start, "environment_id"));
    (void)run;
    json_object_del(start, "id");
    json_object_del(start, "environment_id");
    return add_list(start, "on", rows_json(s, ON, on, 0, NULL, e), e) &&
           add_list(start, "readings", rows_json(s, READINGS, id, 0, NULL, e), e);
}

static bool add_to_point(Store *s, int64_t run, json_t *point, Error *e) {
    static const char ONCE[] = "SELECT name, ns, bytes FROM one_off WHERE point_id = ?1 ORDER BY name";
    static const char FAILURES[] = "SELECT message, at, pass, (SELECT count(*) FROM attempt AS b WHERE "
                                   "b.run_id = a.run_id AND b.id < a.id)"
                                   " AS start FROM failure JOIN attempt AS a ON a.id = attempt_id WHERE "
                                   "point_id = ?1 ORDER BY failure.id";
    int64_t id = json_integer_value(json_object_get(point, "id"));
    (void)run;
    json_object_del(point, "id");
    return add_params(point, id, s, e) && add_list(point, "once", rows_json(s, ONCE, id, 0, NULL, e), e) &&
           add_list(point, "failures", rows_json(s, FAILURES, id, 0, NULL, e), e);
}

// All of a run but its samples; NULL with e filled.
static json_t *run_json(Store *s, int64_t run, Error *e) {
    static const char RUN[] =
        "SELECT kind, name, about, config_file, config, overrides, version, dirty, created, (SELECT count(*)"
        " FROM point JOIN sample ON point_id = point.id WHERE run_id = run.id) AS samples FROM run WHERE id "
        "= ?1";
    static const struct {
        const char *key, *sql;
        bool (*each)(Store *, int64_t, json_t *, Error *);
    } LISTS[] = {
        {"contents", "SELECT kind, name, hash, path FROM content WHERE run_id = ?1 AND kind <> 'import'",
         NULL},
        {"models",
         "SELECT name, hash, path, shape, layers, dtype, stand_in FROM model WHERE id IN"
         " (SELECT model_id FROM point WHERE run_id = ?1) ORDER BY id",
         NULL},
        {"datasets",
         "SELECT name, hash, path FROM dataset WHERE id IN"
         " (SELECT dataset_id FROM point WHERE run_id = ?1) ORDER BY id",
         NULL},
        {"starts",
         "SELECT id, environment_id, argv, started, ended, result FROM attempt WHERE run_id = ?1"
         " ORDER BY id",
         add_to_start},
        {"points",
         "SELECT point.id AS id, " POINT " FROM point JOIN model ON model.id = model_id"
         " JOIN dataset ON dataset.id = dataset_id WHERE run_id = ?1 ORDER BY point.number",
         add_to_point},
    };
    json_t *rows = rows_json(s, RUN, run, 0, NULL, e), *all = json_incref(json_array_get(rows, 0));
    bool ok = all != NULL;
    for (size_t i = 0; ok && i < sizeof LISTS / sizeof *LISTS; i++)
        ok = add_list(all, LISTS[i].key, rows_json(s, LISTS[i].sql, run, 0, LISTS[i].each, e), e);
    json_decref(rows);
    if (ok) return all;
    json_decref(all);
    return NULL;
}

bool store_export_steps(Store *s, int64_t run, FILE *out, Error *e) {
    static const char SAMPLES[] =
        "SELECT sample.id AS sample_id, point.id AS point_id, ids, text, " POINT ","
        " pass, prompt.number AS prompt, turn, prompt.name AS name, task, started, position, flags, "
        "prompt_tokens,"
        " (SELECT count(*) FROM attempt AS a WHERE a.run_id = point.run_id AND a.id < attempt_id) AS start,"
        " sample.tokens, prefill_tokens, prefill_steps, prefill_ns / 1e9 AS prefill_s, decode_ns / 1e9 AS "
        "decode_s, device_head_ns / 1e9 AS device_head_s, device_commit_ns / 1e9 AS device_commit_s,"
        " repeated, looping"
        " FROM point JOIN sample ON point_id = point.id JOIN model ON model.id = model_id JOIN prompt ON "
        "prompt.id = prompt_id"
        " JOIN dataset ON dataset.id = prompt.dataset_id LEFT JOIN output ON output.id = output_id"
        " WHERE run_id = ?1 ORDER BY point.number, pass, prompt.number, turn";
    json_t *all = run_json(s, run, e);
    if (!all) return false;
    Rows *r = ask(s, SAMPLES, run, e);
    bool ok = r != NULL;
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
