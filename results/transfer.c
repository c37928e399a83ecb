// Export: rows as CSV and JSON lines, steps as docs/steps.md defines them, answers as Spec-Bench has them.
// Merge: merge.sql copies another store's rows, in one transaction.
#include "results/transfer.h"

#include "engine/base/json.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/rows.h"
#include "results/sql.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

EMBED(results_merge, "results/merge.sql")

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

static void csv_line(const Rows *r, const char *(*field)(const Rows *, int), FILE *out) {
    Text line = {0};
    for (int i = 0; i < rows_columns(r); i++) {
        text_puts(&line, i ? "," : "");
        text_csv(&line, field(r, i));
    }
    fprintf(out, "%s\r\n", text_get(&line));
    text_release(&line);
}

bool store_export_csv(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = ask(s, sql, run, e);
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
    Text t = {0};
    for (size_t i = 0; i < n; i++) {
        unsigned char b = ((const unsigned char *)bytes)[i];
        text_add(&t, (const char[]){DIGITS[b >> 4], DIGITS[b & 15]}, 2);
    }
    json_t *j = json_string(text_get(&t));
    text_release(&t);
    return j;
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

// The row as an object; sparse: without NULLs. A column whose name is not UTF-8 is called "?".
static json_t *row_json(const Rows *r, bool sparse) {
    json_t *object = json_object();
    for (int i = 0; i < rows_columns(r); i++)
        if (!(sparse && rows_type(r, i) == VALUE_NULL)) {
            json_t *value = value_json(r, i);
            if (json_object_set(object, rows_name(r, i), value)) json_object_set(object, "?", value);
            json_decref(value);
        }
    return object;
}

// Takes the object.
static bool put_json(json_t *object, FILE *out, Error *e) {
    json_print(object, JSON_COMPACT, out);
    return written(out, e);
}

bool store_export_jsonl(Store *s, const char *sql, int64_t run, FILE *out, Error *e) {
    Rows *r = ask(s, sql, run, e);
    if (!r) return false;
    bool ok = true;
    while (ok && rows_next(r)) ok = put_json(row_json(r, false), out, e);
    return rows_end(r, ok, e);
}

// --- steps -----------------------------------------------------------------------------------------------

// The rows of a query with parameters ?1 and ?2, as sparse objects that `each` may add to. NULL with e
// filled.
static json_t *rows_json(Store *s, const char *sql, int64_t first, int64_t second,
                         bool (*each)(Store *s, int64_t sample, json_t *object, Error *e), Error *e) {
    json_t *list = json_array();
    Rows *r = ask(s, sql, first, e);
    if (r && rows_parameters(r) > 1) rows_bind_int(r, 2, second);
    bool ok = r != NULL;
    while (ok && rows_next(r)) {
        json_t *object = row_json(r, true);
        ok = !each || each(s, first, object, e);
        json_array_append_new(list, object);
    }
    if (rows_end(r, ok, e)) return list;
    json_decref(list);
    return NULL;
}

// Takes the list and adds it under `key` unless it is empty. False for NULL.
static bool add_list(json_t *object, const char *key, json_t *list) {
    if (json_array_size(list)) json_object_set(object, key, list);
    json_decref(list);
    return list != NULL;
}

static bool add_to_step(Store *s, int64_t sample, json_t *step, Error *e) {
    static const char SOURCES[] =
        "SELECT name, rows, length, rank FROM step_source JOIN source ON source.id = source_id"
        " WHERE sample_id = ?1 AND number = ?2 ORDER BY won DESC, source_id";
    static const char PASSES[] = "SELECT model, a, b, rows, context, count FROM pass"
                                 " WHERE sample_id = ?1 AND number = ?2 ORDER BY place";
    int64_t number = json_integer_value(json_object_get(step, "number"));
    json_object_del(step, "number");
    return add_list(step, "sources", rows_json(s, SOURCES, sample, number, NULL, e)) &&
           add_list(step, "passes", rows_json(s, PASSES, sample, number, NULL, e));
}

// A point. Its number, the numbers of its baselines, and hashes distinguish it, whatever its labels are.
#define POINT                                                                           \
    "model.name AS model, dataset.name AS dataset, method, label, temperature, layers," \
    " point.number AS point, point.hash AS hash, decoder, skipped,"                     \
    " (SELECT number FROM point AS b WHERE b.id = point.baseline_id) AS baseline,"      \
    " (SELECT number FROM point AS b WHERE b.id = point.same_path_id) AS same_path,"    \
    " model.hash AS model_hash, dataset.hash AS dataset_hash"

// The method's parameters, and the others by section.
static bool add_params(json_t *object, int64_t point, Store *s, Error *e) {
    json_t *params = json_object(), *settings = json_object();
    json_object_set_new(object, "params", params);
    json_object_set_new(object, "settings", settings);
    Rows *r = ask(s, "SELECT section, name, value FROM point_param WHERE point_id = ?1", point, e);
    bool ok = r != NULL;
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
    for (; n >= 4; n -= 4, bytes += 4) {
        uint32_t id =
            bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        json_array_append_new(ids, json_integer((int32_t)id));
    }
}

// JSON strings hold no NUL here: a text with NULs is exported in pieces.
static void add_text(json_t *sample, const Rows *r, int column) {
    size_t n;
    if (rows_type(r, column) == VALUE_NULL) return;
    const char *text = rows_blob(r, column, &n), *end = text + n;
    json_t *more = json_array();
    json_object_set_new(sample, "text", json_from_text(n ? text : ""));
    for (const char *at = text; n && (at = memchr(at, 0, (size_t)(end - at)));)
        json_array_append_new(more, json_from_text(++at));
    if (json_array_size(more)) json_object_set(sample, "more_text", more);
    json_decref(more);
}

static bool add_scores(Store *s, json_t *sample, int64_t id, Error *e) {
    Rows *r = ask(s,
                  "SELECT metric, value FROM sample JOIN score ON score.output_id = sample.output_id"
                  " AND score.prompt_id = sample.prompt_id WHERE sample.id = ?1",
                  id, e);
    json_t *scores = json_object();
    bool ok = r != NULL;
    while (ok && rows_next(r)) ok = set_key(s, scores, rows_text(r, 0), value_json(r, 1), e);
    if (json_object_size(scores)) json_object_set(sample, "scores", scores);
    json_decref(scores);
    return rows_end(r, ok, e);
}

static bool add_divergence(Store *s, json_t *sample, int64_t id, Error *e) {
    json_t *list = rows_json(s, "SELECT position, wanted, got, margin FROM divergence WHERE sample_id = ?1",
                             id, 0, NULL, e);
    if (json_array_size(list)) json_object_set(sample, "divergence", json_array_get(list, 0));
    json_decref(list);
    return list != NULL;
}

// The first columns of SAMPLES are not exported as they are.
enum { SAMPLE_ID, POINT_ID, IDS, TEXT, UNLIKE };

static bool add_steps(Store *s, json_t *sample, int64_t id, Error *e) {
    static const char STEPS[] =
        "SELECT number, step_kind.name AS kind, context, rows, asked, depth, candidates, probes, drafted, "
        "tried, accepted,"
        " emitted, matches, pool, pool_hits, propose_ns / 1e9 AS propose_s, forward_ns / 1e9 AS forward_s,"
        " verify_ns / 1e9 AS verify_s, observe_ns / 1e9 AS observe_s, device_ns / 1e9 AS device_s,"
        " sequences, run AS shared_run, latency_ns / 1e9 AS latency_s"
        " FROM step JOIN step_kind ON step_kind.id = kind LEFT JOIN step_batch USING (sample_id, number)"
        " WHERE sample_id = ?1 ORDER BY number";
    return add_list(sample, "steps", rows_json(s, STEPS, id, 0, add_to_step, e));
}

// The first line's object takes *run.
static bool export_sample(Store *s, Rows *r, json_t **run, FILE *out, Error *e) {
    json_t *sample = row_json(r, true);
    for (int i = SAMPLE_ID; i < UNLIKE; i++) json_object_del(sample, rows_name(r, i));
    if (*run) json_object_set_new(sample, "run", *run);
    *run = NULL;
    int64_t id = rows_int(r, SAMPLE_ID);
    add_ids(sample, r, IDS);
    add_text(sample, r, TEXT);
    bool ok = add_params(sample, rows_int(r, POINT_ID), s, e) && add_scores(s, sample, id, e) &&
              add_divergence(s, sample, id, e) && add_steps(s, sample, id, e);
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
    return add_list(start, "on", rows_json(s, ON, on, 0, NULL, e)) &&
           add_list(start, "readings", rows_json(s, READINGS, id, 0, NULL, e));
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
    return add_params(point, id, s, e) && add_list(point, "once", rows_json(s, ONCE, id, 0, NULL, e)) &&
           add_list(point, "failures", rows_json(s, FAILURES, id, 0, NULL, e));
}

// A run without its samples; NULL with e filled.
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
        ok = add_list(all, LISTS[i].key, rows_json(s, LISTS[i].sql, run, 0, LISTS[i].each, e));
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

static bool add_lengths(Store *s, const Answer *a, int64_t sample, Error *e) {
    Rows *r = rows_open(s, "SELECT emitted FROM step WHERE sample_id = ?1 ORDER BY number", e);
    if (!r) return false;
    rows_bind_int(r, 1, sample);
    while (rows_next(r)) json_array_append_new(a->lengths, json_integer(rows_int(r, 0)));
    return rows_end(r, true, e);
}

static bool add_turn(Store *s, const Answer *a, const Rows *r, Error *e) {
    json_array_append_new(a->turns, json_from_text(rows_text(r, 7)));
    json_array_append_new(a->steps, json_integer(rows_int(r, 8)));
    json_array_append_new(a->tokens, json_integer(rows_int(r, 9)));
    json_array_append_new(a->times, json_real(rows_real(r, 10)));
    return add_lengths(s, a, rows_int(r, 6), e);
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
    static const char SAMPLES[] =
        "SELECT prompt.number, coalesce(prompt.name, ''), coalesce(task, ''), run.uid || '-' || sample.id,"
        " model.name || '-' || label, started, sample.id, coalesce(text, ''), steps,"
        " sample.tokens, (decode_ns + coalesce(prefill_ns, 0)) / 1e9, prompt.dataset_id"
        " FROM sample JOIN point ON point.id = point_id JOIN run ON run.id = run_id JOIN model ON model.id = "
        "model_id"
        " JOIN prompt ON prompt.id = prompt_id LEFT JOIN output ON output.id = output_id"
        " WHERE point_id = ?1 AND pass = ?2 ORDER BY prompt.dataset_id, prompt.number, turn";
    Answer a = {.line = NULL};
    Rows *r = rows_open(s, SAMPLES, e);
    *lines = 0;
    if (!r) return false;
    rows_bind_int(r, 1, point);
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

static const char FORGET[] = "DROP TABLE IF EXISTS temp.map_run; DROP TABLE IF EXISTS temp.map_environment;"
                             "DROP TABLE IF EXISTS temp.map_attempt; DROP TABLE IF EXISTS temp.map_model;"
                             "DROP TABLE IF EXISTS temp.map_dataset; DROP TABLE IF EXISTS temp.map_prompt;"
                             "DROP TABLE IF EXISTS temp.map_point; DROP TABLE IF EXISTS temp.map_source;"
                             "DROP TABLE IF EXISTS temp.map_output; DROP TABLE IF EXISTS temp.map_sample;"
                             "DROP TABLE IF EXISTS temp.map_fit; DROP TABLE IF EXISTS temp.before";

// Flags may be added later, and so differ in copies.
static const char DIFFER[] =
    "SELECT count(*), coalesce(sum(m.attempt_id = a.new), 0)"
    " FROM other.sample AS o JOIN map_point AS p ON p.old = o.point_id JOIN map_prompt AS q ON q.old = "
    "o.prompt_id JOIN map_attempt AS a ON a.old = o.attempt_id"
    " JOIN main.sample AS m ON m.point_id = p.new AND m.pass = o.pass AND m.prompt_id = q.new"
    " WHERE (SELECT hash FROM main.output WHERE id = m.output_id)"
    " IS NOT (SELECT hash FROM other.output WHERE id = o.output_id)"
    " OR (m.prompt_tokens, m.tokens, m.steps, m.prefill_tokens, m.prefill_steps, m.filling_steps, m.rows, "
    "m.asked, m.drafted, m.accepted, m.tried, m.prefill_ns, m.decode_ns, m.propose_ns, m.forward_ns, "
    "m.verify_ns, m.observe_ns, m.device_ns, m.device_head_ns, m.device_commit_ns)"
    " IS NOT (o.prompt_tokens, o.tokens, o.steps, o.prefill_tokens, o.prefill_steps, o.filling_steps, "
    "o.rows, o.asked, o.drafted, o.accepted, o.tried, o.prefill_ns, o.decode_ns, o.propose_ns, "
    "o.forward_ns, o.verify_ns, o.observe_ns, o.device_ns, o.device_head_ns, o.device_commit_ns)";

static bool count_differing(Store *s, StoreMerged *out, Error *e) {
    Rows *r = rows_open(s, DIFFER, e);
    if (r && rows_next(r)) out->differ = rows_int(r, 0), out->altered = rows_int(r, 1);
    return rows_end(r, true, e);
}

static bool count_merged(Store *s, StoreMerged *out, Error *e) {
    return count_differing(s, out, e) &&
           rows_one_int(s, "SELECT count(*) FROM map_sample", 0, &out->samples, e) &&
           rows_one_int(s, "SELECT count(*) FROM run WHERE id > (SELECT run FROM before)", 0, &out->runs, e);
}

static bool merge_attached(Store *s, const Store *other, StoreMerged *out, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = sql_script(s, results_merge, e) && count_merged(s, out, e) && sql_script(s, FORGET, e) &&
              store_unchanged(other, e);
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

// SQLite does not report which of the two files is damaged.
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
