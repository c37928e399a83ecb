// Records that other programs keep of speculative decoding: counts, and seldom steps. Every sum that a record
// states is checked against its parts, so that a file that was changed by hand is refused.
//
//      vllm           metrics.speculative_decoding of a response; the same keys bare, as of AIPerf; the JSON
//                     of `vllm bench serve`
//      specdec-bench  acceptance_rate.json, or responses.jsonl with its acceptance_lengths
//      specforge      data.json: means alone
//      spec-bench     answers as Spec-Bench publishes them
//
// import_records.sql has a query for each, which gives a record's samples. Counts without an order become
// steps ordered by their accepted tokens; nothing that asks of their order is asked of a histogram.
#include "results/transfer/import.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/row.h"
#include "results/rows.h"

#include <string.h>

EMBED(results_import_records, "results/transfer/import_records.sql")

enum { PLACE = 512, MOST = 1 << 24, MOST_PARAMS = 4 };

typedef struct Records {
    Import *import;
    const StoreImport *from;
    RecordKind kind;
    int number;        // of the next record
    const char *query; // that `rows` asks, the last record's
    Rows *rows;
} Records;

// The columns of every query.
enum {
    WRONG,
    WITHIN,
    MODEL,
    DATASET,
    METHOD,
    LABEL,
    NAME,
    TASK,
    PROMPT,
    TURN,
    PASS,
    PROMPT_TOKENS,
    DECODE_S,
    TOKENS,
    STEPS,
    PARTS,
    PARAMS,
    ONCE,
    TEXT // of queries that have it
};

// --- objects ---------------------------------------------------------------------------------------------

typedef bool Take(void *state, const json_t *object, const char *place, Error *e);

// Calls `take` with the file's object, with each of its array, or with each line's.
static bool each_object(const StoreImport *from, Take *take, void *state, Error *e) {
    json_auto_t *whole = json_loadb(from->bytes, from->size, JSON_REJECT_DUPLICATES, NULL);
    char place[PLACE];
    bool ok = true;
    if (!whole) return import_lines(from, take, state, e);
    if (json_is_object(whole)) ok = take(state, whole, from->path, e);
    for (size_t i = 0; ok && i < json_array_size(whole); i++) {
        snprintf(place, sizeof place, "%s: row %zu", from->path, i + 1);
        ok = json_is_object(json_array_get(whole, i)) ? take(state, json_array_get(whole, i), place, e)
                                                      : error_input(e, "%s: must be an object", place);
    }
    return ok;
}

// --- a sample --------------------------------------------------------------------------------------------

// A list of steps alike, for mem_free; the sample's numbers follow from them.
static StoreStep *read_parts(const char *text, StoreSample *x) {
    json_auto_t *parts = json_loads(text, 0, NULL);
    json_t *part;
    StoreStep *list = NULL;
    size_t i, capacity = 0, count = 0;
    int64_t tokens = 0;
    json_array_foreach(parts, i, part) {
        json_t *drafted = json_array_get(part, 3);
        StoreStep t = {.kind = STORE_STEADY};
        row_unknown(ROW_STEP, &t);
        t.accepted = (int)json_integer_value(json_array_get(part, 1));
        t.emitted = (int)json_integer_value(json_array_get(part, 2));
        if (json_is_integer(drafted)) t.depth = t.candidates = t.drafted = (int)json_integer_value(drafted);
        for (json_int_t n = json_integer_value(json_array_get(part, 0)); n > 0; n--) {
            *LIST_ADD(list, count, capacity) = t;
            tokens += t.emitted;
        }
    }
    x->steps = list;
    x->step_count = (int)count;
    x->tokens = tokens > MOST ? -1 : (int)tokens;
    return list;
}

static const char *word_or(const Rows *r, int column, const char *other) {
    return rows_type(r, column) == VALUE_TEXT ? rows_text(r, column) : other;
}

static bool add_sample(Records *r, const Rows *row, ImportPoint *p, StorePrompt *prompt, const char *place,
                       Error *e) {
    Import *m = r->import;
    StoreSample x = {.pass = (int)rows_int(row, PASS),
                     .prompt_tokens = (int)rows_int(row, PROMPT_TOKENS),
                     .prefill_s = -1,
                     .decode_s = rows_real(row, DECODE_S),
                     .tokens = (int)rows_int(row, TOKENS),
                     .step_count = (int)rows_int(row, STEPS)};
    const char *parts = word_or(row, PARTS, NULL),
               *text = rows_columns(row) > TEXT ? word_or(row, TEXT, NULL) : NULL;
    StoreOutput output = {.text = text, .text_bytes = text ? (int64_t)strlen(text) : 0, .repeated = -1};
    StoreStep *steps = parts ? read_parts(parts, &x) : NULL;
    bool there = false;
    x.output = text ? &output : NULL;
    if (parts && x.step_count == 0) return true; // its first token ended it
    bool ok = (x.tokens >= 0 || error_input(e, "more than %d tokens", MOST)) &&
              import_point(m, p, &x.point, &prompt->dataset, e) &&
              store_prompt(m->store, prompt, &x.prompt, e) && import_start(m, NULL, &x.attempt, place, e) &&
              (!rows_int(row, ONCE) || store_done(m->store, x.point, x.pass, x.prompt, &there, e)) &&
              (there || import_sample(m, &x, e));
    mem_free(steps);
    return ok || error_within(e, "%s", place);
}

static bool add_row(Records *r, const Rows *row, const char *place, Error *e) {
    StoreParam params[MOST_PARAMS];
    char values[MOST_PARAMS][24];
    ImportPoint p = {.model = word_or(row, MODEL, r->from->model),
                     .dataset = word_or(row, DATASET, r->from->dataset),
                     .method = word_or(row, METHOD, r->from->method),
                     .params = params};
    p.label = word_or(row, LABEL, p.method);
    StorePrompt prompt = {.number = (int)rows_int(row, PROMPT),
                          .turn = (int)rows_int(row, TURN),
                          .name = word_or(row, NAME, NULL),
                          .task = word_or(row, TASK, NULL)};
    json_t *list = json_loads(word_or(row, PARAMS, "[]"), 0, NULL), *one;
    size_t i;
    json_array_foreach(list, i, one) {
        snprintf(values[i], sizeof values[i], "%lld", (long long)json_integer_value(json_array_get(one, 2)));
        params[p.param_count++] = (StoreParam){json_string_value(json_array_get(one, 0)),
                                               json_string_value(json_array_get(one, 1)), values[i]};
    }
    bool ok = add_sample(r, row, &p, &prompt, place, e);
    json_decref(list);
    return ok;
}

// The query that reads an object; NULL: it is none of this kind's.
static const char *query_of(RecordKind kind, const json_t *o) {
    const json_t *spec = json_object_get(json_object_get(o, "metrics"), "speculative_decoding");
    if (kind == RECORDS_SPECFORGE) return "specforge";
    if (kind == RECORDS_SPECBENCH) return "specbench";
    if (kind == RECORDS_SPECDEC)
        return json_is_array(json_object_get(o, "acceptance_lengths")) ? "lengths"
               : field_present(o, "Acceptance_Length_Histogram")       ? "acceptance"
                                                                       : NULL;
    return spec || field_present(o, "acceptance_histogram") ? "vllm"
           : field_present(o, "total_output_tokens")        ? "bench"
                                                            : NULL;
}

static bool add_record(void *state, const json_t *o, const char *place, Error *e) {
    static const char *const WANTED[] = {
        "has neither 'metrics.speculative_decoding', nor "
        "'acceptance_histogram', nor what 'vllm bench serve' writes",
        "has neither 'Acceptance_Length_Histogram' nor 'acceptance_lengths'"};
    Records *r = state;
    const char *query = query_of(r->kind, o);
    if (!query) return error_input(e, "%s: %s", place, WANTED[r->kind]);
    if (!r->query || strcmp(r->query, query) != 0) {
        rows_end(r->rows, true, NULL);
        r->query = query;
        r->rows = rows_named(r->import->store, results_import_records, query, 0, e);
    }
    LOCAL_MEMORY char *text = json_text(o, JSON_COMPACT);
    Rows *rows = r->rows;
    rows_bind_text(rows, 1, text);
    rows_bind_int(rows, 2, r->number++);
    bool ok = true;
    while (ok && rows_next(rows)) {
        char where[PLACE];
        const char *within = word_or(rows, WITHIN, NULL);
        snprintf(where, sizeof where, "%s%s%s", place, within ? ": " : "", within ? within : "");
        ok = rows_type(rows, WRONG) == VALUE_NULL ? add_row(r, rows, where, e)
                                                  : error_input(e, "%s: %s", where, rows_text(rows, WRONG));
    }
    bool read = rows_again(rows, ok, e);
    return read || (ok ? error_within(e, "%s", place) : false);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool add_file(Import *m, const StoreImport *from, RecordKind kind, Error *e) {
    Records r = {.import = m, .from = from, .kind = kind};
    bool ok = each_object(from, add_record, &r, e);
    rows_end(r.rows, true, NULL);
    return ok;
}

bool store_import_records(Store *s, RecordKind kind, const StoreImport *from, const StoreImport *baseline,
                          StoreImported *out, Error *e) {
    Import m = {0};
    if (!sql_enter(s, e)) return false;
    bool ok = import_begin(&m, s, from, baseline, out, e) && (!baseline || add_file(&m, baseline, kind, e)) &&
              add_file(&m, from, kind, e) &&
              (out->samples || error_input(e, "'%s' holds no %s", from->path,
                                           kind == RECORDS_SPECBENCH ? "answers" : "records"));
    return sql_leave(s, import_end(&m, ok, e), e);
}
