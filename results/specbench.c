// Spec-Bench's answer files: one line per conversation, with lists over its turns. Their wall time is that of
// the whole call, prefill and all, and so are their counts of tokens and steps; accept_lengths has what each
// step emitted.
#include "engine/base/json.h"
#include "results/rows.h"
#include "results/sql.h"
#include "results/transfer.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t number, dataset;                                 // of the conversation
    json_t *line, *turns, *steps, *tokens, *times, *lengths; // the last five: of its only choice
} Answer;

static bool begin(Answer *a, const Rows *r, Error *e) {
    char *end;
    const char *name = rows_text(r, 1);
    long long id = strtoll(name, &end, 10);
    if (*end || !*name) id = rows_int(r, 0);
    a->number = rows_int(r, 0);
    a->dataset = rows_int(r, 11);
    a->line = json_pack("{s:I, s:s, s:s, s:s, s:[{s:i, s:[], s:[], s:[], s:[], s:[]}], s:f}", "question_id",
                        (json_int_t)id, "category", rows_text(r, 2), "answer_id", rows_text(r, 3), "model_id",
                        rows_text(r, 4), "choices", "index", 0, "turns", "decoding_steps", "new_tokens",
                        "wall_time", "accept_lengths", "tstamp", rows_real(r, 5));
    json_t *choice = json_array_get(json_object_get(a->line, "choices"), 0);
    a->turns = json_object_get(choice, "turns");
    a->steps = json_object_get(choice, "decoding_steps");
    a->tokens = json_object_get(choice, "new_tokens");
    a->times = json_object_get(choice, "wall_time");
    a->lengths = json_object_get(choice, "accept_lengths");
    return a->line || error_system(e, "out of memory");
}

static bool add_lengths(Store *s, const Answer *a, int64_t sample, Error *e) {
    bool ok = true;
    Rows *r = rows_open(s, "SELECT emitted FROM step WHERE sample_id = ?1 ORDER BY number", e);
    if (!r) return false;
    rows_bind_int(r, 1, sample);
    while (ok && rows_next(r)) ok = json_array_append_new(a->lengths, json_integer(rows_int(r, 0))) == 0;
    return rows_end(r, ok || error_system(e, "out of memory"), e);
}

static bool add_turn(Store *s, const Answer *a, const Rows *r, Error *e) {
    bool ok = json_array_append_new(a->turns, json_string(rows_text(r, 7))) == 0 &&
              json_array_append_new(a->steps, json_integer(rows_int(r, 8))) == 0 &&
              json_array_append_new(a->tokens, json_integer(rows_int(r, 9))) == 0 &&
              json_array_append_new(a->times, json_real(rows_real(r, 10))) == 0;
    return (ok || error_system(e, "out of memory")) && add_lengths(s, a, rows_int(r, 6), e);
}

static bool end(Answer *a, FILE *out, int *lines, Error *e) {
    if (!a->line) return true;
    bool ok = json_print(a->line, 0, out)
                  ? !ferror(out) || error_system(e, "cannot write the export: is the disk full?")
                  : error_system(e, "out of memory");
    a->line = NULL;
    *lines += ok;
    return ok;
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
        if (a.number != rows_int(r, 0) || a.dataset != rows_int(r, 11)) ok = end(&a, out, lines, e);
        ok = ok && (a.line || begin(&a, r, e)) && add_turn(s, &a, r, e);
    }
    ok = rows_end(r, ok, e) && end(&a, out, lines, e);
    json_decref(a.line);
    return ok;
}
