// What an export of our own holds besides samples: the run, the models and data that it stands on, its starts
// with their machines, and all of its points. Keys are the names of the store's columns, and the tables check
// the types.
#include "results/import.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "results/sql.h"

#include <string.h>

enum { MOST_STARTS = 1 << 16, MOST_VALUES = 32 };

static bool value_of(const json_t *row, const char *key, Value *out, const char *place, Error *e) {
    const json_t *v = json_object_get(row, key);
    *out = (Value){.type = VALUE_NULL};
    if (json_is_string(v)) *out = of_text(json_string_value(v));
    else if (json_is_integer(v)) *out = of_int(json_integer_value(v));
    else if (json_is_real(v)) *out = of_real(json_real_value(v));
    else if (v && !json_is_null(v))
        return error_input(e, "%s: '%s' of 'run' must be a text or a number", place, key);
    return true;
}

// Runs a statement with the values that are given, and behind them those of the row by their keys.
typedef struct Put {
    StatementId statement;
    const char *keys[MOST_VALUES]; // up to NULL
} Put;

static bool put(Import *m, const Put *how, const json_t *row, const Value *given, int count,
                const char *place, Error *e) {
    Value values[MOST_VALUES];
    for (int i = 0; i < count; i++) values[i] = given[i];
    for (int i = 0; how->keys[i]; i++)
        if (!value_of(row, how->keys[i], &values[count++], place, e)) return false;
    return sql_run(m->store, how->statement, values, count, e) || error_within(e, "%s: 'run'", place);
}

// The objects of a list; NULL with *count 0 where there is none, or what is there is no list (told by *ok).
static const json_t *list_of(const json_t *from, const char *key, size_t *count, bool *ok, const char *place,
                             Error *e) {
    const json_t *list = json_object_get(from, key);
    *count = json_array_size(list);
    if (list && !json_is_array(list)) *ok = error_input(e, "%s: '%s' of 'run' must be a list", place, key);
    return list;
}

static bool put_all(Import *m, const Put *how, const json_t *from, const char *key, const Value *given,
                    int given_count, const char *place, Error *e) {
    size_t n;
    bool ok = true;
    const json_t *list = list_of(from, key, &n, &ok, place, e);
    for (size_t i = 0; ok && i < n; i++)
        ok = put(m, how, json_array_get(list, i), given, given_count, place, e);
    return ok;
}

// --- starts ----------------------------------------------------------------------------------------------

static bool find_environment(Import *m, const json_t *on, int64_t *id, const char *place, Error *e) {
    Value values[STORE_ENVIRONMENT_VALUES];
    for (int i = 0; i < STORE_ENVIRONMENT_VALUES; i++)
        if (!value_of(on, store_environment_columns[i], &values[i], place, e)) return false;
    if (values[0].type != VALUE_TEXT) values[0] = of_text("imported");
    return store_environment(m->store, values, id, e) || error_within(e, "%s: 'run'", place);
}

static bool add_start(Import *m, const json_t *start, const char *place, Error *e) {
    static const Put START = {STATEMENT_IMPORT_START, {"argv", "started", "ended", "result"}};
    static const Put READING = {STATEMENT_READING_ADD,
                                {"at", "moment", "device", "clock_mhz", "memory_clock_mhz", "power_w",
                                 "temperature_c", "throttle", "load", "busy_others"}};
    int64_t environment;
    const json_t *on = json_array_get(json_object_get(start, "on"), 0);
    if (!find_environment(m, on, &environment, place, e) ||
        !put(m, &START, start, VALUES(of_int(m->run), of_int(environment)), place, e))
        return false;
    int64_t id = m->starts[m->start_count++] = sql_last_id(m->store);
    return put_all(m, &READING, start, "readings", VALUES(of_int(id)), place, e);
}

static bool add_starts(Import *m, const json_t *run, const char *place, Error *e) {
    size_t n;
    bool ok = true;
    const json_t *list = list_of(run, "starts", &n, &ok, place, e);
    if (n > MOST_STARTS) return error_input(e, "%s: 'run' has %zu starts", place, n);
    m->starts = mem_alloc(n, sizeof *m->starts);
    if (!m->starts) return error_system(e, "out of memory");
    for (size_t i = 0; ok && i < n; i++) ok = add_start(m, json_array_get(list, i), place, e);
    return ok;
}

// --- points ----------------------------------------------------------------------------------------------

static bool add_failures(Import *m, const json_t *row, int64_t point, const char *place, Error *e) {
    static const Put FAILURE = {STATEMENT_IMPORT_FAILURE, {"pass", "at", "message"}};
    size_t n;
    bool ok = true;
    const json_t *list = list_of(row, "failures", &n, &ok, place, e);
    for (size_t i = 0; ok && i < n; i++) {
        const json_t *failure = json_array_get(list, i);
        int64_t start;
        ok = import_start(m, failure, &start, place, e) &&
             put(m, &FAILURE, failure, VALUES(of_int(start), of_int(point)), place, e);
    }
    return ok;
}

static bool add_points(Import *m, const json_t *run, const char *place, Error *e) {
    static const Put ONCE = {STATEMENT_ONE_OFF_SET, {"name", "ns", "bytes"}};
    size_t n;
    bool ok = true;
    const json_t *list = list_of(run, "points", &n, &ok, place, e);
    for (size_t i = 0; ok && i < n; i++) {
        const json_t *row = json_array_get(list, i);
        int64_t point, dataset;
        ok = import_described(m, row, &point, &dataset, place, e) &&
             put_all(m, &ONCE, row, "once", VALUES(of_int(point)), place, e) &&
             add_failures(m, row, point, place, e);
    }
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool add_all(Import *m, const json_t *run, const char *place, Error *e) {
    static const Put RUN = {
        STATEMENT_IMPORT_RUN,
        {"kind", "name", "about", "config_file", "config", "overrides", "version", "dirty", "created"}};
    static const Put CONTENT = {STATEMENT_CONTENT_ADD, {"kind", "name", "hash", "path"}};
    static const Put MODEL = {STATEMENT_IMPORT_MODEL,
                              {"name", "hash", "path", "shape", "layers", "dtype", "stand_in"}};
    static const Put DATASET = {STATEMENT_IMPORT_DATASET, {"name", "hash", "path"}};
    const char *kind = field_text(run, "kind", place, e);
    if (!kind) return false;
    if (strcmp(kind, "sweep") != 0 && strcmp(kind, "import") != 0)
        return error_input(e, "%s: 'kind' of 'run' is '%s', must be sweep or import", place, kind);
    return field_int_optional(run, "samples", 0, INT64_MAX, &m->promised, place, e) &&
           put(m, &RUN, run, VALUES(of_int(m->run), of_text(m->from->name)), place, e) &&
           put_all(m, &CONTENT, run, "contents", VALUES(of_int(m->run)), place, e) &&
           put_all(m, &MODEL, run, "models", NULL, 0, place, e) &&
           put_all(m, &DATASET, run, "datasets", NULL, 0, place, e) && add_starts(m, run, place, e) &&
           add_points(m, run, place, e);
}

bool import_run(Import *m, const json_t *run, const char *place, Error *e) {
    if (m->starts || m->lines > 0)
        return error_input(e,
                           "%s: another run begins here: the lines of one export are one file, and its 'run' "
                           "stands on the first",
                           place);
    if (!json_is_object(run)) return error_input(e, "%s: 'run' must be an object", place);
    return add_all(m, run, place, e);
}
