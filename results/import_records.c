// Records that other programs keep of speculative decoding: counts, and seldom steps. Every sum that a record
// states is checked against its parts, so that a file that was changed by hand is refused.
//
//      vllm           metrics.speculative_decoding of a response; the same keys bare, as of AIPerf; the JSON
//                     of `vllm bench serve`
//      specdec-bench  acceptance_rate.json, or responses.jsonl with its acceptance_lengths
//      specforge      data.json: means alone
//
// Counts without an order become steps ordered by their accepted tokens; nothing that asks of their order
// is asked of a histogram.
#include "results/import.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/row.h"

#include <math.h>
#include <string.h>

enum { MOST_LENGTH = 4096, MOST_STEPS = 1 << 20, MOST = 1 << 24, PLACE = 512 };

typedef struct Records {
    Import *import;
    const StoreImport *from;
    int number; // of the next record
} Records;

// --- objects ---------------------------------------------------------------------------------------------

typedef bool Take(void *state, const json_t *object, const char *place, Error *e);

// Calls `take` with the file's object, with each of its array, or with each line's.
static bool each_object(const StoreImport *from, Take *take, void *state, Error *e) {
    json_t *whole = json_loadb(from->bytes, from->size, JSON_REJECT_DUPLICATES, NULL);
    char place[PLACE];
    bool ok = true;
    if (!whole) return import_lines(from, take, state, e);
    if (json_is_object(whole)) ok = take(state, whole, from->path, e);
    for (size_t i = 0; ok && i < json_array_size(whole); i++) {
        snprintf(place, sizeof place, "%s: row %zu", from->path, i + 1);
        ok = json_is_object(json_array_get(whole, i)) ? take(state, json_array_get(whole, i), place, e)
                                                      : error_input(e, "%s: must be an object", place);
    }
    json_decref(whole);
    return ok;
}

static bool is_count(const json_t *value) {
    return json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= MOST;
}

// A text that is not there is the one given.
static const char *word_or(const json_t *object, const char *key, const char *other) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : other;
}

// --- steps -----------------------------------------------------------------------------------------------

typedef struct Steps {
    StoreStep *list; // (count)
    size_t count, capacity;
    int64_t accepted, emitted, drafted; // sums; drafted below 0: unknown
} Steps;

static void add_step(Steps *s, int accepted, int emitted, int drafted) {
    mem_grow(&s->list, &s->capacity, s->count + 1, sizeof *s->list);
    StoreStep *t = &s->list[s->count++];
    *t = (StoreStep){.kind = STORE_STEADY};
    row_unknown(ROW_STEP, t);
    t->depth = t->candidates = t->drafted = drafted;
    t->accepted = accepted;
    t->emitted = emitted;
    s->accepted += accepted;
    s->emitted += emitted;
    s->drafted = drafted < 0 || s->drafted < 0 ? -1 : s->drafted + drafted;
}

static bool add_steps(Steps *s, int64_t count, int accepted, int emitted, int drafted, const char *place,
                      Error *e) {
    if (count + (int64_t)s->count > MOST_STEPS)
        return error_input(e, "%s: more than %d steps", place, MOST_STEPS);
    for (int64_t i = 0; i < count; i++) add_step(s, accepted, emitted, drafted);
    return true;
}

// A dense list, or an object whose keys are the numbers. bonus: 1 if lengths count it.
static bool add_histogram(Steps *s, const json_t *histogram, int bonus, int drafted, const char *place,
                          Error *e) {
    const char *key;
    json_t *value, *one;
    size_t i;
    bool ok = json_is_array(histogram) || json_is_object(histogram) ||
              error_input(e, "%s: the histogram must be a list or an object", place);
    json_array_foreach(histogram, i, value) {
        ok = ok && ((is_count(value) && i <= MOST_LENGTH) ||
                    error_input(e, "%s: entry %zu of the histogram isn't a number of steps", place, i));
        ok = ok &&
             add_steps(s, json_integer_value(value), (int)i - bonus, (int)i + 1 - bonus, drafted, place, e);
    }
    for (int length = 0; ok && json_is_object(histogram) && length <= MOST_LENGTH; length++) {
        char name[16];
        snprintf(name, sizeof name, "%d", length);
        one = json_object_get(histogram, name);
        int accepted = length > bonus ? length - bonus : 0;
        ok = !one || ((is_count(one) ||
                       error_input(e, "%s: '%s' of the histogram isn't a number of steps", place, name)) &&
                      add_steps(s, json_integer_value(one), accepted, length + 1 - bonus, drafted, place, e));
    }
    json_object_foreach((json_t *)(size_t)histogram, key, value) {
        char *end;
        long length = strtol(key, &end, 10);
        ok = ok && ((*key && !*end && length >= 0 && length <= MOST_LENGTH) ||
                    error_input(e, "%s: '%s' of the histogram isn't a length", place, key));
    }
    return ok;
}

// --- a sample --------------------------------------------------------------------------------------------

typedef struct Facts {
    const char *model, *dataset, *method, *label, *name, *task;
    int prompt, turn, pass, prompt_tokens;
    double decode_s, tokens, steps; // tokens and steps where there are none in a list
    const StoreParam *params;       // (param_count)
    int param_count;
} Facts;

static bool add_sample(Records *r, const Facts *f, const Steps *s, const char *place, Error *e) {
    Import *m = r->import;
    int64_t dataset;
    if (s && s->emitted > MOST) return error_input(e, "%s: more than %d tokens", place, MOST);
    StoreSample x = {.pass = f->pass,
                     .prompt_tokens = f->prompt_tokens,
                     .prefill_s = -1,
                     .decode_s = f->decode_s,
                     .tokens = s ? (int)s->emitted : (int)f->tokens,
                     .step_count = s ? (int)s->count : (int)f->steps,
                     .steps = s ? s->list : NULL};
    ImportPoint p = {.model = f->model, .dataset = f->dataset, .method = f->method, .label = f->label};
    p.params = f->params;
    p.param_count = f->param_count;
    StorePrompt prompt = {.number = f->prompt, .turn = f->turn, .name = f->name, .task = f->task};
    return (import_point(m, &p, &x.point, &dataset, e) && (prompt.dataset = dataset) &&
            store_prompt(m->store, &prompt, &x.prompt, e) && import_start(m, NULL, &x.attempt, place, e) &&
            import_sample(m, &x, e)) ||
           error_within(e, "%s", place);
}

// Who made it, where the record tells; otherwise as the command line has it.
static bool read_facts(const Records *r, const json_t *o, Facts *f, const char *place, Error *e) {
    int64_t prompt = r->number, turn = 0, pass = 0, tokens = 0;
    const json_t *usage = json_object_get(o, "usage");
    *f = (Facts){.model = word_or(o, "model", r->from->model),
                 .dataset = word_or(o, "dataset", r->from->dataset),
                 .method = word_or(o, "method", r->from->method),
                 .name = word_or(o, "id", NULL),
                 .task = word_or(o, "category", NULL)};
    f->label = word_or(o, "label", f->method);
    bool ok =
        field_int_optional(o, "prompt", 0, MOST, &prompt, place, e) &&
        field_int_optional(o, "turn", 0, MOST, &turn, place, e) &&
        field_int_optional(o, "pass", 0, MOST, &pass, place, e) &&
        (!json_is_object(usage) || field_int_optional(usage, "prompt_tokens", 0, MOST, &tokens, place, e));
    f->prompt = (int)prompt, f->turn = (int)turn, f->pass = (int)pass, f->prompt_tokens = (int)tokens;
    return ok;
}

// --- vLLM's and AIPerf's record --------------------------------------------------------------------------

static bool check_sum(const json_t *o, const char *key, int64_t sum, const char *place, Error *e) {
    int64_t stated;
    if (!field_int(o, key, 0, MOST, &stated, place, e)) return false;
    return stated == sum || error_input(e, "%s: '%s' is %lld, but its steps have %lld", place, key,
                                        (long long)stated, (long long)sum);
}

static bool read_ordered(const json_t *accepted, const json_t *drafted, Steps *s, const char *place,
                         Error *e) {
    size_t n = json_array_size(accepted);
    if (!json_is_array(accepted) || (json_is_array(drafted) && json_array_size(drafted) != n))
        return error_input(e, "%s: 'per_step_accepted' and 'per_step_drafted' must be lists of one length",
                           place);
    for (size_t i = 0; i < n; i++) {
        const json_t *a = json_array_get(accepted, i), *d = json_array_get(drafted, i);
        if (!is_count(a) || (d && (!is_count(d) || json_integer_value(d) < json_integer_value(a))))
            return error_input(e, "%s: step %zu accepts more than it drafted, or has no counts", place, i);
        int k = (int)json_integer_value(a);
        add_step(s, k, k + 1, d ? (int)json_integer_value(d) : -1);
    }
    return n <= MOST_STEPS || error_input(e, "%s: more than %d steps", place, MOST_STEPS);
}

// Tokens drafted in every step, if that many explain the sum; else -1.
static int fixed_draft(const json_t *o) {
    json_int_t steps = json_integer_value(json_object_get(o, "num_spec_steps")),
               most = json_integer_value(json_object_get(o, "num_spec_tokens")),
               all = json_integer_value(json_object_get(o, "num_draft_tokens"));
    return most > 0 && most <= MOST_LENGTH && all / most == steps && all % most == 0 ? (int)most : -1;
}

static bool read_spec(const json_t *o, Steps *s, const char *place, Error *e) {
    const json_t *ordered = json_object_get(o, "per_step_accepted");
    if (!ordered || json_is_null(ordered)) {
        if (!add_histogram(s, json_object_get(o, "acceptance_histogram"), 0, fixed_draft(o), place, e))
            return false;
    } else if (!read_ordered(ordered, json_object_get(o, "per_step_drafted"), s, place, e)) return false;
    return check_sum(o, "num_spec_steps", (int64_t)s->count, place, e) &&
           check_sum(o, "num_accepted_draft_tokens", s->accepted, place, e) &&
           (s->drafted < 0 || s->count == 0 || check_sum(o, "num_draft_tokens", s->drafted, place, e));
}

// The last step's tokens beyond the output's end. Where steps have no order, there is no last one.
static void cut_last(Steps *s, const json_t *o, const json_t *spec) {
    const json_t *usage = json_object_get(o, "usage");
    const json_t *tokens = json_object_get(usage ? usage : o, "completion_tokens");
    int64_t beyond = is_count(tokens) ? s->emitted - json_integer_value(tokens) : 0;
    bool ordered = json_is_array(json_object_get(spec, "per_step_accepted"));
    if (!ordered || s->count == 0 || beyond <= 0 || beyond >= s->list[s->count - 1].emitted) return;
    s->list[s->count - 1].emitted -= (int)beyond;
    s->emitted -= beyond;
}

static bool add_record(Records *r, const json_t *o, const json_t *spec, const char *place, Error *e) {
    Steps s = {.count = 0};
    Facts f;
    bool ok = read_facts(r, o, &f, place, e) && read_spec(spec, &s, place, e);
    if (ok) cut_last(&s, o, spec);
    // A request whose first token ended it had no step.
    ok = ok && (s.count == 0 || add_sample(r, &f, &s, place, e));
    mem_free(s.list);
    return ok;
}

// --- vllm bench serve ------------------------------------------------------------------------------------

// Position j's rate is the share of steps that accepted j or more: with the number of steps, a histogram.
// *fits: it is one, of all accepted tokens.
static bool read_positions(const json_t *rates, int64_t drafts, int64_t accepted, Steps *s, bool *fits,
                           const char *place, Error *e) {
    double last = (double)drafts, sum = 0;
    size_t n = json_array_size(rates);
    *fits = n > 0 && n <= MOST_LENGTH && drafts <= MOST_STEPS;
    for (size_t i = 0; *fits && i <= n; i++) {
        double at = i < n ? json_number_value(json_array_get(rates, i)) * (double)drafts : 0;
        double count = floor(at + 0.5);
        *fits = fabs(at - count) < 1e-3 && count >= 0 && count <= last;
        if (*fits && !add_steps(s, (int64_t)(last - count), (int)i, (int)i + 1, -1, place, e)) return false;
        last = count;
        sum += count;
    }
    *fits = *fits && sum == (double)accepted;
    return true;
}

static bool add_drafts(Records *r, Facts *f, const json_t *o, const char *place, Error *e) {
    int64_t drafts, accepted;
    Steps s = {.count = 0};
    bool fits = false;
    bool ok = field_int(o, "spec_decode_num_drafts", 1, MOST, &drafts, place, e) &&
              field_int(o, "spec_decode_accepted_tokens", 0, MOST, &accepted, place, e) &&
              read_positions(json_object_get(o, "spec_decode_per_position_acceptance_rates"), drafts,
                             accepted, &s, &fits, place, e);
    if (ok) f->steps = (double)drafts, f->tokens = (double)(drafts + accepted);
    ok = ok && add_sample(r, f, fits ? &s : NULL, place, e);
    mem_free(s.list);
    return ok;
}

// All requests of a benchmark are one sample: its counts are sums, its time that of all.
static bool add_bench(Records *r, const json_t *o, const char *place, Error *e) {
    Facts f;
    int64_t output;
    if (!read_facts(r, o, &f, place, e) || !field_real_optional(o, "duration", 0, 1e8, &f.decode_s, place, e))
        return false;
    f.model = word_or(o, "model_id", f.model);
    f.name = "all requests";
    f.prompt = 0;
    if (field_present(o, "spec_decode_num_drafts")) return add_drafts(r, &f, o, place, e);
    if (!field_int(o, "total_output_tokens", 1, MOST, &output, place, e)) return false;
    f.method = f.label = "autoregressive";
    f.steps = f.tokens = (double)output;
    return add_sample(r, &f, NULL, place, e);
}

static bool add_vllm(void *state, const json_t *o, const char *place, Error *e) {
    Records *r = state;
    const json_t *spec = json_object_get(json_object_get(o, "metrics"), "speculative_decoding");
    if (!spec && field_present(o, "acceptance_histogram")) spec = o;
    bool ok =
        spec ? add_record(r, o, spec, place, e)
        : field_present(o, "total_output_tokens")
            ? add_bench(r, o, place, e)
            : error_input(e,
                          "%s: has neither 'metrics.speculative_decoding', nor 'acceptance_histogram', nor "
                          "what 'vllm bench serve' writes",
                          place);
    r->number++;
    return ok;
}

// --- specdec_bench ---------------------------------------------------------------------------------------

static bool add_lengths(Records *r, const json_t *o, const json_t *lengths, const char *place, Error *e) {
    Steps s = {.count = 0};
    Facts f;
    int64_t id = r->number;
    char name[32];
    bool ok = read_facts(r, o, &f, place, e) && field_int_optional(o, "question_id", 0, MOST, &id, place, e);
    snprintf(name, sizeof name, "%lld", (long long)id);
    f.name = name;
    f.prompt = (int)id;
    for (size_t i = 0; ok && i < json_array_size(lengths); i++) {
        const json_t *length = json_array_get(lengths, i);
        ok = is_count(length) ||
             error_input(e, "%s: entry %zu of 'acceptance_lengths' isn't a number of tokens", place, i);
        int n = (int)json_integer_value(length);
        if (ok) add_step(&s, n > 1 ? n - 1 : 0, n, -1);
    }
    ok = ok && (s.count == 0 || add_sample(r, &f, &s, place, e));
    mem_free(s.list);
    return ok;
}

// The file has lengths of requests as means, and of all steps as a histogram: all requests are one sample.
static bool add_acceptance(Records *r, const json_t *o, const char *place, Error *e) {
    Steps s = {.count = 0};
    Facts f;
    bool ok = read_facts(r, o, &f, place, e) &&
              add_histogram(&s, json_object_get(o, "Acceptance_Length_Histogram"), 1, -1, place, e) &&
              (s.count || error_input(e, "%s: the histogram is empty", place));
    f.name = "all requests";
    ok = ok && add_sample(r, &f, &s, place, e);
    mem_free(s.list);
    return ok;
}

static bool add_specdec(void *state, const json_t *o, const char *place, Error *e) {
    Records *r = state;
    const json_t *lengths = json_object_get(o, "acceptance_lengths");
    bool ok =
        json_is_array(lengths) ? add_lengths(r, o, lengths, place, e)
        : field_present(o, "Acceptance_Length_Histogram")
            ? add_acceptance(r, o, place, e)
            : error_input(e, "%s: has neither 'Acceptance_Length_Histogram' nor 'acceptance_lengths'", place);
    r->number++;
    return ok;
}

// --- SpecForge -------------------------------------------------------------------------------------------

// The file has means alone. Every point gets this many tokens, so that their times compare; the steps are as
// many as make the mean, to seven digits.
static const double TOKENS = 1e7;

typedef struct Setting {
    int64_t batch, steps, topk, tokens;
    char texts[4][24];
    StoreParam params[4];
} Setting;

static bool read_setting(const json_t *o, Setting *s, const char *place, Error *e) {
    static const char *const KEYS[] = {"batch_size", "steps", "topk", "num_draft_tokens"};
    int64_t *const values[] = {&s->batch, &s->steps, &s->topk, &s->tokens};
    *s = (Setting){.batch = 1};
    for (int i = 0; i < 4; i++) {
        if (!field_int_optional(o, KEYS[i], 0, MOST, values[i], place, e)) return false;
        snprintf(s->texts[i], sizeof s->texts[i], "%lld", (long long)*values[i]);
        s->params[i] = (StoreParam){i ? "method" : "generation", KEYS[i], s->texts[i]};
    }
    return true;
}

// The baseline of a batch is repeated under each setting.
static bool add_metric(Records *r, Facts *f, const Setting *s, const json_t *o, const char *place, Error *e) {
    const char *name = field_text(o, "Name", place, e);
    double length, rate = 0;
    char label[256];
    if (!name || !field_real(o, "accept_length", 1, MOST_LENGTH, &length, place, e) ||
        !field_real_optional(o, "output_throughput", 0, 1e12, &rate, place, e))
        return false;
    // As the file spells it, or as it should.
    bool base = strncmp(name, "Wihtout ", 8) == 0 || strncmp(name, "Without ", 8) == 0;
    snprintf(label, sizeof label, "%s %lld-%lld-%lld-%lld", name, (long long)s->batch, (long long)s->steps,
             (long long)s->topk, (long long)s->tokens);
    f->method = base ? "autoregressive" : r->from->method;
    f->label = base ? "autoregressive" : label;
    f->params = s->params;
    f->param_count = base ? 1 : 4;
    f->tokens = TOKENS;
    f->steps = floor(TOKENS / length + 0.5);
    f->decode_s = rate > 0 ? f->tokens / rate : 0;
    if (!base) return add_sample(r, f, NULL, place, e);
    ImportPoint p = {.model = f->model, .dataset = f->dataset, .method = f->method, .label = f->label};
    p.params = f->params, p.param_count = 1;
    StorePrompt prompt = {.number = f->prompt, .name = f->name};
    int64_t point, id;
    bool there;
    return import_point(r->import, &p, &point, &prompt.dataset, e) &&
           store_prompt(r->import->store, &prompt, &id, e) &&
           store_done(r->import->store, point, 0, id, &there, e) &&
           (there || add_sample(r, f, NULL, place, e));
}

static bool add_results(Records *r, const char *model, const char *name, const json_t *benchmark,
                        const char *place, Error *e) {
    Facts f = {.model = model, .dataset = name, .name = "all requests"};
    const json_t *results = json_object_get(benchmark, "results");
    bool ok = json_is_array(results) || error_input(e, "%s: has no list 'results'", place);
    for (size_t i = 0; ok && i < json_array_size(results); i++) {
        const json_t *one = json_array_get(results, i), *metrics = json_object_get(one, "metrics");
        Setting s;
        ok = (json_is_array(metrics) || error_input(e, "%s: result %zu has no 'metrics'", place, i + 1)) &&
             read_setting(one, &s, place, e);
        for (size_t k = 0; ok && k < json_array_size(metrics); k++)
            ok = add_metric(r, &f, &s, json_array_get(metrics, k), place, e);
    }
    return ok;
}

static bool add_specforge(void *state, const json_t *o, const char *place, Error *e) {
    const char *model, *name;
    json_t *benchmarks, *benchmark;
    bool ok = true;
    char where[PLACE];
    json_object_foreach((json_t *)(size_t)o, model, benchmarks) {
        ok = ok && (json_is_object(benchmarks) ||
                    error_input(e, "%s: '%s' isn't an object of benchmarks", place, model));
        json_object_foreach(benchmarks, name, benchmark) {
            snprintf(where, sizeof where, "%s: %.80s, %.80s", place, model, name);
            ok = ok && add_results(state, model, name, benchmark, where, e);
        }
    }
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool add_file(Import *m, const StoreImport *from, Take *take, Error *e) {
    Records r = {.import = m, .from = from};
    return each_object(from, take, &r, e);
}

bool store_import_records(Store *s, RecordKind kind, const StoreImport *from, const StoreImport *baseline,
                          StoreImported *out, Error *e) {
    static Take *const TAKES[] = {add_vllm, add_specdec, add_specforge};
    Import m = {0};
    if (!sql_enter(s, e)) return false;
    bool ok = import_begin(&m, s, from, baseline, out, e) &&
              (!baseline || add_file(&m, baseline, TAKES[kind], e)) && add_file(&m, from, TAKES[kind], e) &&
              (out->samples || error_input(e, "'%s' holds no records", from->path));
    return sql_leave(s, import_end(&m, ok, e), e);
}
