// A run in the records of other programs: the counterpart of import_records.c, which reads each of these
// again. docs/glossary.md compares their quantities with ours. Nothing is made up: keys whose numbers a
// sample lacks (times of a replay, drafted tokens of another engine) are left out.
#include "results/transfer.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ACCEPTED = 4096 };

// --- steps of a sample, and their sums -------------------------------------------------------------------

typedef struct Counts {
    int64_t steps, accepted, emitted, drafted; // drafted below 0: unknown of a step
    int64_t most;                              // drafted in a step
    bool fixed;                                // all steps drafted `most`
    int64_t by_accepted[MOST_ACCEPTED], by_emitted[MOST_ACCEPTED];
    int longest; // the largest index of the two with steps
} Counts;

static int bounded(int64_t n) { return n < 0 ? 0 : n < MOST_ACCEPTED ? (int)n : MOST_ACCEPTED - 1; }

static void count_step(Counts *c, int64_t accepted, int64_t emitted, int64_t drafted) {
    c->fixed = c->steps == 0 || (c->fixed && drafted == c->most);
    c->steps++;
    c->accepted += accepted;
    c->emitted += emitted;
    c->drafted = c->drafted < 0 || drafted < 0 ? -1 : c->drafted + drafted;
    if (drafted > c->most) c->most = drafted;
    c->by_accepted[bounded(accepted)]++;
    c->by_emitted[bounded(emitted)]++;
    if (bounded(accepted) > c->longest) c->longest = bounded(accepted);
    if (bounded(emitted) > c->longest) c->longest = bounded(emitted);
}

// Nodes that may be accepted are drafted tokens. Lists may be NULL.
static bool read_steps(Store *s, int64_t sample, Counts *c, json_t *accepted, json_t *drafted, Error *e) {
    Rows *r = rows_open(s,
                        "SELECT accepted, emitted, coalesce(candidates, drafted, -1) FROM step"
                        " WHERE sample_id = ?1 ORDER BY number",
                        e);
    if (!r) return false;
    rows_bind_int(r, 1, sample);
    while (rows_next(r)) {
        count_step(c, rows_int(r, 0), rows_int(r, 1), rows_int(r, 2));
        if (accepted) json_array_append_new(accepted, json_integer(rows_int(r, 0)));
        if (drafted) json_array_append_new(drafted, json_integer(rows_int(r, 2)));
    }
    return rows_end(r, true, e);
}

static void set(json_t *o, const char *key, json_t *value) { json_object_set_new(o, key, value); }

static void set_known(json_t *o, const char *key, double x) {
    if (isfinite(x)) set(o, key, json_real(x));
}

static json_t *text_or_null(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? json_null() : json_from_text(rows_text(r, column));
}

static bool put(json_t *o, FILE *out, Error *e) {
    json_print(o, JSON_COMPACT, out);
    return !ferror(out) || error_system(e, "cannot write the export: is the disk full?");
}

// --- a line a request: vLLM and AIPerf -------------------------------------------------------------------

enum { SAMPLE, MODEL, DATASET, METHOD, LABEL, PROMPT, TURN, PASS, NAME, TASK, PROMPT_TOKENS, TOKENS };

static const char REQUESTS[] =
    "SELECT sample.id, model.name, dataset.name, method, label, prompt.number, turn, pass, prompt.name, task,"
    " prompt_tokens, sample.tokens FROM point JOIN sample ON point_id = point.id JOIN model ON model.id = "
    "model_id"
    " JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = prompt.dataset_id"
    " WHERE run_id = ?1 AND method <> 'autoregressive' AND EXISTS (SELECT 1 FROM step WHERE sample_id = "
    "sample.id)"
    " ORDER BY point.number, pass, prompt.number, turn";

static json_t *request_json(const Rows *r) {
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "id", text_or_null(r, NAME), "model",
                     text_or_null(r, MODEL), "dataset", text_or_null(r, DATASET), "method",
                     text_or_null(r, METHOD), "label", text_or_null(r, LABEL), "prompt",
                     (json_int_t)rows_int(r, PROMPT), "turn", (json_int_t)rows_int(r, TURN), "pass",
                     (json_int_t)rows_int(r, PASS), "category", text_or_null(r, TASK));
}

// Dense, as vLLM has it, or an object of those that occur.
static json_t *histogram_json(const Counts *c, bool dense) {
    json_t *out = dense ? json_array() : json_object();
    int last = c->longest;
    while (last > 0 && c->by_accepted[last] == 0) last--;
    for (int i = 0; i <= last; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", i);
        json_t *n = json_integer(c->by_accepted[i]);
        if (dense) json_array_append(out, n);
        else if (c->by_accepted[i]) json_object_set(out, key, n);
        json_decref(n);
    }
    return out;
}

static json_t *spec_json(const Counts *c, json_t *accepted, json_t *drafted, bool dense) {
    json_t *o = json_pack(
        "{s:f, s:o, s:I, s:I, s:O}", "mean_acceptance_length", 1 + (double)c->accepted / (double)c->steps,
        "acceptance_histogram", histogram_json(c, dense), "num_spec_steps", (json_int_t)c->steps,
        "num_accepted_draft_tokens", (json_int_t)c->accepted, "per_step_accepted", accepted);
    if (c->drafted < 0) return o;
    set(o, "draft_acceptance_rate", json_real(c->drafted ? (double)c->accepted / (double)c->drafted : 0));
    set(o, "num_draft_tokens", json_integer(c->drafted));
    set(o, "num_spec_tokens", c->fixed ? json_integer(c->most) : json_null());
    json_object_set(o, "per_step_drafted", drafted);
    return o;
}

static bool put_request(Store *s, const Rows *r, bool aiperf, FILE *out, Error *e) {
    Counts *c = mem_new(1, sizeof *c);
    json_t *accepted = json_array(), *drafted = json_array(), *line = request_json(r);
    bool ok = read_steps(s, rows_int(r, SAMPLE), c, accepted, drafted, e);
    json_t *spec = ok ? spec_json(c, accepted, drafted, !aiperf) : NULL;
    if (ok && aiperf) {
        set(line, "engine", json_string("outpace"));
        set(line, "completion_tokens", json_integer(rows_int(r, TOKENS)));
        json_object_update(line, spec);
    } else if (ok) {
        set(line, "usage",
            json_pack("{s:I, s:I}", "prompt_tokens", (json_int_t)rows_int(r, PROMPT_TOKENS),
                      "completion_tokens", (json_int_t)rows_int(r, TOKENS)));
        set(line, "metrics", json_pack("{s:O}", "speculative_decoding", spec));
    }
    ok = ok && put(json_incref(line), out, e);
    json_decref(spec);
    json_decref(line);
    json_decref(accepted);
    json_decref(drafted);
    mem_free(c);
    return ok;
}

static bool put_requests(Store *s, int64_t run, bool aiperf, FILE *out, Error *e) {
    Rows *r = rows_open(s, REQUESTS, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    bool ok = true;
    while (ok && rows_next(r)) ok = put_request(s, r, aiperf, out, e);
    return rows_end(r, ok, e);
}

// --- a line a point: vllm bench serve --------------------------------------------------------------------

// Sums of a point over its samples.
enum { POINT, P_MODEL, P_DATASET, P_METHOD, P_LABEL, SAMPLES, INPUT, OUTPUT, STEPS, DECODE, PREFILL };

static const char POINTS[] =
    "SELECT point.id, model.name, dataset.name, method, label, count(*), sum(prompt_tokens), sum(tokens),"
    " sum(steps), 1e-9 * sum(decode_ns), 1e-9 * sum(prefill_ns) FROM point JOIN sample ON point_id = point.id"
    " JOIN model ON model.id = model_id JOIN dataset ON dataset.id = point.dataset_id WHERE run_id = ?1"
    " GROUP BY point.id ORDER BY point.number";

static bool count_point(Store *s, int64_t point, Counts *c, Error *e) {
    Rows *r = rows_open(s, "SELECT id FROM sample WHERE point_id = ?1", e);
    if (!r) return false;
    rows_bind_int(r, 1, point);
    bool ok = true;
    while (ok && rows_next(r)) ok = read_steps(s, rows_int(r, 0), c, NULL, NULL, e);
    return rows_end(r, ok, e);
}

static json_t *positions_json(const Counts *c) {
    json_t *rates = json_array();
    int64_t left = c->steps;
    for (int j = 0; j < c->longest && left > 0; j++) {
        left -= c->by_accepted[j];
        if (left > 0) json_array_append_new(rates, json_real((double)left / (double)c->steps));
    }
    return rates;
}

static void set_spec(json_t *o, const Counts *c) {
    if (c->steps == 0) return;
    set(o, "spec_decode_num_drafts", json_integer(c->steps));
    set(o, "spec_decode_accepted_tokens", json_integer(c->accepted));
    set(o, "spec_decode_acceptance_length", json_real(1 + (double)c->accepted / (double)c->steps));
    set(o, "spec_decode_per_position_acceptance_rates", positions_json(c));
    if (c->drafted < 0) return;
    set(o, "spec_decode_draft_tokens", json_integer(c->drafted));
    set(o, "spec_decode_acceptance_rate",
        json_real(c->drafted ? 100 * (double)c->accepted / (double)c->drafted : 0));
}

static json_t *bench_json(const Rows *r, const Counts *c) {
    double decode = rows_real(r, DECODE), prefill = rows_real(r, PREFILL), samples = rows_real(r, SAMPLES),
           output = rows_real(r, OUTPUT), duration = decode > 0 ? decode + prefill : NAN;
    json_t *o =
        json_pack("{s:s, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "backend", "outpace", "model_id",
                  text_or_null(r, P_MODEL), "dataset", text_or_null(r, P_DATASET), "method",
                  text_or_null(r, P_METHOD), "label", text_or_null(r, P_LABEL), "completed",
                  (json_int_t)rows_int(r, SAMPLES), "max_concurrency", (json_int_t)1, "total_input_tokens",
                  (json_int_t)rows_int(r, INPUT), "total_output_tokens", (json_int_t)rows_int(r, OUTPUT));
    set_known(o, "duration", duration);
    set_known(o, "request_throughput", samples / duration);
    set_known(o, "output_throughput", output / duration);
    set_known(o, "mean_tpot_ms", decode > 0 ? 1e3 * decode / output : NAN);
    if (strcmp(rows_text(r, P_METHOD), "autoregressive") != 0) set_spec(o, c);
    return o;
}

static bool put_points(Store *s, int64_t run, FILE *out, Error *e) {
    Counts *c = mem_new(1, sizeof *c);
    Rows *r = rows_open(s, POINTS, e);
    if (r) rows_bind_int(r, 1, run);
    bool ok = r != NULL;
    while (ok && rows_next(r)) {
        *c = (Counts){0};
        ok = count_point(s, rows_int(r, POINT), c, e) && put(bench_json(r, c), out, e);
    }
    if (r) ok = rows_end(r, ok, e);
    mem_free(c);
    return ok;
}

// --- SpecForge's data.json -------------------------------------------------------------------------------

// Their name, letter for letter.
static const char BASELINE[] = "Wihtout EAGLE3";

enum { F_MODEL, F_DATASET, F_LABEL, F_S, F_RATE, F_BASE_RATE, F_BATCH, F_STEPS, F_TOPK, F_TOKENS };

#define PARAM(name) "(SELECT value FROM point_param WHERE point_id = point.id AND name = '" name "')"
static const char SETTINGS[] = "SELECT model.name, dataset.name, label, t.S, t.tokens_per_s, "
                               "b.tokens_per_s, " PARAM("batch_size") ", " PARAM("steps") ", " PARAM(
                                   "topk") ", coalesce(" PARAM("num_draft_tokens") ", "
                                                                                   "CAST(round(t.rows_per_"
                                                                                   "step) AS INTEGER))"
                                                                                   " FROM point JOIN model "
                                                                                   "ON model.id = model_id "
                                                                                   "JOIN dataset ON "
                                                                                   "dataset.id = "
                                                                                   "point.dataset_id"
                                                                                   " JOIN point_sums AS t ON "
                                                                                   "t.point_id = point.id "
                                                                                   "LEFT JOIN point_sums AS "
                                                                                   "b ON b.point_id = "
                                                                                   "baseline_id"
                                                                                   " WHERE run_id = ?1 AND "
                                                                                   "method <> "
                                                                                   "'autoregressive' ORDER "
                                                                                   "BY model_id, "
                                                                                   "point.dataset_id, "
                                                                                   "point.number";

static json_t *number_or_null(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_INT    ? json_integer(rows_int(r, column))
           : rows_type(r, column) == VALUE_NULL ? json_null()
                                                : json_number(rows_real(r, column));
}

// The object under a key; made if it is not there.
static json_t *object_at(json_t *o, const char *key) {
    if (!json_object_get(o, key)) json_object_set_new(o, key, json_object());
    return json_object_get(o, key);
}

static void add_setting(json_t *all, const Rows *r) {
    json_t *of = object_at(object_at(all, rows_text(r, F_MODEL)), rows_text(r, F_DATASET));
    if (!json_object_get(of, "results")) {
        set(of, "benchmark_name", text_or_null(r, F_DATASET));
        set(of, "results", json_array());
    }
    json_t *batch = rows_type(r, F_BATCH) == VALUE_NULL ? json_integer(1) : number_or_null(r, F_BATCH);
    json_t *base = json_pack("{s:s, s:o, s:f}", "Name", BASELINE, "output_throughput",
                             number_or_null(r, F_BASE_RATE), "accept_length", 1.0);
    json_t *own = json_pack("{s:o, s:o, s:f}", "Name", text_or_null(r, F_LABEL), "output_throughput",
                            number_or_null(r, F_RATE), "accept_length", rows_real(r, F_S));
    json_array_append_new(json_object_get(of, "results"),
                          json_pack("{s:o, s:o, s:o, s:o, s:[o, o]}", "batch_size", batch, "steps",
                                    number_or_null(r, F_STEPS), "topk", number_or_null(r, F_TOPK),
                                    "num_draft_tokens", number_or_null(r, F_TOKENS), "metrics", base, own));
}

static bool put_settings(Store *s, int64_t run, FILE *out, Error *e) {
    json_t *all = json_object();
    Rows *r = rows_open(s, SETTINGS, e);
    if (r) rows_bind_int(r, 1, run);
    while (r && rows_next(r)) add_setting(all, r);
    bool ok = r && rows_end(r, true, e);
    ok = ok && (json_object_size(all) ||
                error_input(e, "run %lld has no method except its baseline", (long long)run));
    if (ok) json_print(json_incref(all), JSON_INDENT(1), out);
    json_decref(all);
    return ok && (!ferror(out) || error_system(e, "cannot write the export: is the disk full?"));
}

bool store_export_records(Store *s, int64_t run, RecordFormat format, FILE *out, Error *e) {
    switch (format) {
    case RECORD_VLLM: return put_requests(s, run, false, out, e);
    case RECORD_AIPERF: return put_requests(s, run, true, out, e);
    case RECORD_BENCH: return put_points(s, run, out, e);
    default: return put_settings(s, run, out, e);
    }
}

// --- specdec_bench ---------------------------------------------------------------------------------------

enum { A_SAMPLE, A_PROMPT, A_TURN, A_TASK, A_TEXT, A_TOKENS, A_STEPS, A_MODEL, A_DATASET, A_METHOD, A_LABEL };

static const char ANSWERS[] =
    "SELECT sample.id, prompt.number, turn, task, text, sample.tokens, steps, model.name, dataset.name,"
    " method, label FROM sample JOIN point ON point.id = point_id JOIN model ON model.id = model_id"
    " JOIN prompt ON prompt.id = prompt_id JOIN dataset ON dataset.id = prompt.dataset_id"
    " LEFT JOIN output ON output.id = output_id"
    " WHERE point_id = ?1 AND pass = ?2 ORDER BY prompt.dataset_id, prompt.number, turn";

// One request's turns while they are read, and all requests' sums.
typedef struct Bench {
    json_t *point;                                // keys by which an import of ours finds it
    json_t *requests, *lengths, *turns, *request; // lengths, turns, request: of the open one
    int64_t prompt;                               // of it; below 0: none is open
    int pass;
    char *task;
    json_t *tasks; // category: [sum, count]
    double sum, tokens, steps;
    int count; // of means in sum
    FILE *responses;
    Counts counts;
} Bench;

static void add_mean(json_t *tasks, const char *task, double mean) {
    json_t *old = json_object_get(tasks, task);
    json_object_set_new(tasks, task,
                        json_pack("[f, i]", mean + json_number_value(json_array_get(old, 0)),
                                  1 + (int)json_integer_value(json_array_get(old, 1))));
}

// A line of the responses file.
static bool end_request(Bench *b, Error *e) {
    char id[32];
    if (b->prompt < 0) return true;
    snprintf(id, sizeof id, "%lld", (long long)b->prompt);
    set(b->requests, id, b->request);
    if (b->task && b->steps > 0) add_mean(b->tasks, b->task, b->tokens / b->steps);
    json_t *line =
        json_pack("{s:I, s:s?, s:o, s:[{s:i, s:o}]}", "question_id", (json_int_t)b->prompt, "category",
                  b->task, "acceptance_lengths", b->lengths, "choices", "index", 0, "turns", b->turns);
    if (line) json_object_update_missing(line, b->point);
    mem_free(b->task);
    b->task = NULL;
    b->prompt = -1;
    return put(line, b->responses, e);
}

static void begin_request(Bench *b, const Rows *r) {
    const char *task = rows_type(r, A_TASK) == VALUE_NULL ? NULL : rows_text(r, A_TASK);
    if (!b->point)
        b->point = json_pack("{s:s, s:s, s:s, s:s, s:i}", "model", rows_text(r, A_MODEL), "dataset",
                             rows_text(r, A_DATASET), "method", rows_text(r, A_METHOD), "label",
                             rows_text(r, A_LABEL), "pass", b->pass);
    b->prompt = rows_int(r, A_PROMPT);
    b->task = task ? mem_text(task, strlen(task)) : NULL;
    b->request = json_object(), b->lengths = json_array(), b->turns = json_array();
    b->tokens = b->steps = 0;
}

static bool add_lengths(Store *s, int64_t sample, json_t *lengths, Error *e) {
    Rows *r = rows_open(s, "SELECT emitted FROM step WHERE sample_id = ?1 ORDER BY number", e);
    if (!r) return false;
    rows_bind_int(r, 1, sample);
    while (rows_next(r)) json_array_append_new(lengths, json_integer(rows_int(r, 0)));
    return rows_end(r, true, e);
}

static bool add_turn(Store *s, Bench *b, const Rows *r, Error *e) {
    char turn[32];
    if (b->prompt != rows_int(r, A_PROMPT) && !end_request(b, e)) return false;
    if (b->prompt < 0) begin_request(b, r);
    snprintf(turn, sizeof turn, "%lld", (long long)rows_int(r, A_TURN));
    double tokens = rows_real(r, A_TOKENS), steps = rows_real(r, A_STEPS);
    if (steps > 0) {
        set(b->request, turn, json_real(tokens / steps));
        b->sum += tokens / steps;
        b->count++;
    }
    b->tokens += tokens, b->steps += steps;
    json_array_append_new(b->turns, text_or_null(r, A_TEXT));
    return add_lengths(s, rows_int(r, A_SAMPLE), b->lengths, e) &&
           read_steps(s, rows_int(r, A_SAMPLE), &b->counts, NULL, NULL, e);
}

// Of steps with as many tokens as a length that occurs: all of them; those that have the one before, too.
static void set_rates(json_t *o, const Counts *c) {
    json_t *histogram = json_object(), *conditional = json_object(), *joint = json_object();
    double all = (double)c->steps, left = all, before = 1;
    for (int i = 0; i <= c->longest; i++) {
        char key[16];
        if (c->by_emitted[i] == 0) continue;
        snprintf(key, sizeof key, "%d", i);
        set(histogram, key, json_integer(c->by_emitted[i]));
        set(conditional, key, json_real(left / all / before));
        set(joint, key, json_real(left / all));
        before = left / all;
        left -= (double)c->by_emitted[i];
    }
    set(o, "Acceptance_Length_Histogram", histogram);
    set(o, "Conditional_Acceptance_Rate", conditional);
    set(o, "Joint_Acceptance_Rate", joint);
}

static json_t *acceptance_json(const Bench *b) {
    const char *task;
    json_t *pair, *tasks = json_object();
    json_object_foreach(b->tasks, task, pair) {
        set(tasks, task,
            json_real(json_number_value(json_array_get(pair, 0)) /
                      (double)json_integer_value(json_array_get(pair, 1))));
    }
    json_t *o = json_pack("{s:O, s:o, s:f}", "Request_AL", b->requests, "Category_AL", tasks, "Average_AL",
                          b->count ? b->sum / b->count : 0);
    set_rates(o, &b->counts);
    return o;
}

bool store_export_specdec(Store *s, int64_t point, int pass, Text *acceptance, FILE *responses, Error *e) {
    Bench *b = mem_new(1, sizeof *b);
    *b = (Bench){.requests = json_object(),
                 .tasks = json_object(),
                 .prompt = -1,
                 .pass = pass,
                 .responses = responses};
    Rows *r = rows_open(s, ANSWERS, e);
    if (r) rows_bind_int(r, 1, point), rows_bind_int(r, 2, pass);
    bool ok = r != NULL;
    while (ok && rows_next(r)) ok = add_turn(s, b, r, e);
    if (r) ok = rows_end(r, ok, e);
    ok = ok && end_request(b, e);
    json_t *rates = ok ? acceptance_json(b) : NULL;
    char *text = rates ? json_text(rates, JSON_COMPACT) : NULL;
    if (text) text_printf(acceptance, "%s\n", text);
    mem_free(text);
    json_decref(rates);
    if (b->prompt >= 0) json_decref(b->request), json_decref(b->lengths), json_decref(b->turns);
    mem_free(b->task);
    json_decref(b->point);
    json_decref(b->requests);
    json_decref(b->tasks);
    mem_free(b);
    return ok;
}
