// Steps of other engines, or of our own export: one line per sample (docs/other-engines.md). A field that
// a line lacks stays unknown. Our export also has the run on its first line, with its models, datasets,
// starts, machines and points: there keys are the names of the store's columns, and the tables check the
// types.
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/transfer/import.h"
#include "results/row.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 1 << 20, MOST = 1 << 24, MOST_PARAMS = 64, MATCH_BYTES = 128, MOST_STARTS = 1 << 16 };
static const double LONG_S = 1e8;

// All steps of a line, with lists of their own.
typedef struct {
    StoreStep *steps; // (count)
    int count;
} Steps;

static void release(Steps *s) {
    for (StoreStep *t = s->steps; t < s->steps + s->count; t++)
        MEM_FREE(t->passes, t->sources, t->matches, t->rejected);
    mem_free(s->steps);
}

// --- fields ----------------------------------------------------------------------------------------------

static bool number(const json_t *from, const char *key, int fallback, int *out, const char *place, Error *e) {
    int64_t value = fallback;
    bool ok = field_int_optional(from, key, 0, MOST, &value, place, e);
    *out = (int)value;
    return ok;
}

static bool word(const json_t *from, const char *key, const char **out, const char *place, Error *e) {
    *out = NULL;
    return !field_present(from, key) || (*out = field_text(from, key, place, e)) != NULL;
}

// One of a list of words; absent is the first.
static bool choice(const json_t *from, const char *key, const char *const *words, int count, int *out,
                   const char *place, Error *e) {
    const char *text;
    *out = 0;
    if (!word(from, key, &text, place, e)) return false;
    for (int i = 0; text && i < count; i++)
        if (strcmp(words[i], text) == 0) {
            *out = i;
            return true;
        }
    return !text || error_input(e, "%s: '%s' is '%s'; known are %s, %s, %s", place, key, text, words[0],
                                words[1], words[2]);
}

static bool list(const json_t *from, const char *key, size_t most, const json_t **out, size_t *count,
                 const char *place, Error *e) {
    *out = json_object_get(from, key);
    *count = 0;
    if (!*out || json_is_null(*out)) return true;
    if (!json_is_array(*out)) return error_input(e, "%s: '%s' must be a list", place, key);
    *count = json_array_size(*out);
    for (size_t i = 0; i < *count; i++)
        if (!json_is_object(json_array_get(*out, i)))
            return error_input(e, "%s: '%s' must hold objects", place, key);
    return *count <= most ||
           error_input(e, "%s: '%s' has %zu entries, at most %zu are taken", place, key, *count, most);
}

// --- one step --------------------------------------------------------------------------------------------

static bool read_passes(const json_t *from, StoreStep *t, const char *place, Error *e) {
    static const char *const MODELS[] = {"target", "draft", "adapter"};
    const json_t *all;
    size_t n;
    if (!list(from, "passes", MOST_STEPS, &all, &n, place, e)) return false;
    StorePass *passes = mem_new(n, sizeof *passes);
    t->passes = passes;
    t->pass_count = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(all, i);
        StorePass *x = &passes[i];
        int model;
        *x = (StorePass){.rows = 1, .count = 1};
        if (!choice(p, "model", MODELS, 3, &model, place, e) || !row_from_json(ROW_PASS, p, x, place, e))
            return false;
        x->model = (StoreRole)model;
    }
    return true;
}

static bool read_sources(const json_t *from, StoreStep *t, const char *place, Error *e) {
    const json_t *all;
    size_t n;
    if (!list(from, "sources", MOST_PARAMS, &all, &n, place, e)) return false;
    StoreSource *sources = mem_new(n, sizeof *sources);
    t->sources = sources;
    t->source_count = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *p = json_array_get(all, i);
        StoreSource *x = &sources[i];
        x->rows = 1;
        if (!(x->name = field_text(p, "name", place, e)) || !row_from_json(ROW_SOURCE, p, x, place, e))
            return false;
        for (size_t j = 0; j < i; j++)
            if (strcmp(sources[j].name, x->name) == 0)
                return error_input(e, "%s: source '%s' is in a step twice", place, x->name);
    }
    return true;
}

static bool read_rejected(const json_t *from, StoreStep *t, const char *place, Error *e) {
    const json_t *all;
    size_t n;
    if (!list(from, "rejected", MOST_STEPS, &all, &n, place, e)) return false;
    StoreGuess *guesses = mem_new(n, sizeof *guesses);
    t->rejected = guesses;
    t->rejected_count = (int)n;
    for (size_t i = 0; i < n; i++)
        if (!row_from_json(ROW_GUESS, json_array_get(all, i), &guesses[i], place, e)) return false;
    return true;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_matches(const json_t *from, StoreStep *t, const char *place, Error *e) {
    const char *text;
    if (!word(from, "matches", &text, place, e)) return false;
    if (!text) return true;
    size_t n = strlen(text);
    if (n % 2 || n / 2 > MATCH_BYTES || strspn(text, "0123456789abcdef") != n)
        return error_input(e, "%s: 'matches' must be at most %d pairs of hexadecimal digits", place,
                           (int)MATCH_BYTES);
    uint8_t *to = mem_new(n / 2, 1);
    t->matches = to;
    for (size_t i = 0; i < n / 2; i++) to[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    t->match_bytes = (int)(n / 2);
    return true;
}

static bool read_numbers(const json_t *from, StoreStep *t, const char *place, Error *e) {
    static const char *const KINDS[] = {"steady", "filling", "prefill"};
    int kind;
    row_unknown(ROW_STEP, t);
    row_unknown(ROW_BATCH, t);
    if (!row_from_json(ROW_STEP, from, t, place, e) || !row_from_json(ROW_BATCH, from, t, place, e) ||
        !number(from, "shared_run", -1, &t->shared_run, place, e) ||
        !choice(from, "kind", KINDS, 3, &kind, place, e))
        return false;
    t->kind = (StoreStepKind)kind;
    if (t->sequences > 0 && (t->shared_run < 0 || t->latency_s < 0))
        return error_input(e, "%s: a step with 'sequences' must have 'shared_run' and 'latency_s'", place);
    if (t->accepted >= 0 && t->emitted >= 0) return true;
    return error_input(e, "%s: a step must have 'accepted' and 'emitted'", place);
}

static bool read_steps(const json_t *line, Steps *out, const char *place, Error *e) {
    const json_t *all;
    size_t n;
    if (!list(line, "steps", MOST_STEPS, &all, &n, place, e)) return false;
    *out = (Steps){mem_new(n, sizeof *out->steps), (int)n};
    for (size_t i = 0; i < n; i++) {
        const json_t *from = json_array_get(all, i);
        StoreStep *t = &out->steps[i];
        if (!read_numbers(from, t, place, e) || !read_matches(from, t, place, e) ||
            !read_passes(from, t, place, e) || !read_sources(from, t, place, e) ||
            !read_rejected(from, t, place, e))
            return error_within(e, "step %zu", i);
    }
    return true;
}

// --- points and samples ---------------------------------------------------------------------------------

typedef struct {
    StoreParam rows[3 * MOST_PARAMS]; // of the method, and of two sections
    char *texts[3 * MOST_PARAMS];     // of values
    int count;
} Params;

// exact: a real number keeps its point, so that it is stored as real again.
static char *value_text(const json_t *value, bool exact) {
    LOCAL_TEXT t = {0};
    if (json_is_string(value)) text_puts(&t, json_string_value(value));
    else if (json_is_integer(value)) text_printf(&t, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value)) text_printf(&t, "%.17g", json_real_value(value));
    else text_puts(&t, json_is_true(value) ? "true" : "false");
    if (exact && json_is_real(value) && !strpbrk(text_get(&t), ".e")) text_puts(&t, ".0");
    return mem_text(text_get(&t), t.length);
}

static bool read_params(json_t *from, const char *section, bool exact, Params *out, const char *place,
                        Error *e) {
    const char *key;
    json_t *value;
    if (!from || json_is_null(from)) return true;
    if (!json_is_object(from) || json_object_size(from) > MOST_PARAMS)
        return error_input(e, "%s: 'params', and each of 'settings', must be an object of at most %d values",
                           place, (int)MOST_PARAMS);
    json_object_foreach(from, key, value) {
        if (json_is_array(value) || json_is_object(value) || json_is_null(value))
            return error_input(e, "%s: parameter '%s' must be a number, a text, true or false", place, key);
        char *text = out->texts[out->count] = value_text(value, exact);
        out->rows[out->count++] = (StoreParam){section, key, text};
    }
    return true;
}

static bool read_settings(const json_t *object, bool exact, Params *out, const char *place, Error *e) {
    json_t *settings = json_object_get(object, "settings");
    if (settings && !json_is_null(settings) && !json_is_object(settings))
        return error_input(e, "%s: 'settings' must be an object", place);
    return read_params(json_object_get(object, "params"), "method", exact, out, place, e) &&
           read_params(json_object_get(settings, "hardware"), "hardware", exact, out, place, e) &&
           read_params(json_object_get(settings, "generation"), "generation", exact, out, place, e);
}

// Adds the point that an object describes, as docs/other-engines.md defines it.
static bool import_described(Import *m, const json_t *object, int64_t *point, int64_t *dataset,
                             const char *place, Error *e) {
    ImportPoint p = {.layers = 0};
    Params params = {.count = 0};
    bool ok =
        (p.model = field_text(object, "model", place, e)) &&
        (p.dataset = field_text(object, "dataset", place, e)) &&
        (p.method = field_text(object, "method", place, e)) && word(object, "label", &p.label, place, e) &&
        word(object, "hash", &p.hash, place, e) && word(object, "decoder", &p.decoder, place, e) &&
        word(object, "skipped", &p.skipped, place, e) &&
        word(object, "model_hash", &p.model_hash, place, e) &&
        word(object, "dataset_hash", &p.dataset_hash, place, e) &&
        number(object, "layers", 0, &p.layers, place, e) && number(object, "point", 0, &p.number, place, e) &&
        number(object, "baseline", 0, &p.baseline, place, e) &&
        number(object, "same_path", 0, &p.same_path, place, e) &&
        field_real_optional(object, "temperature", 0, 100, &p.temperature, place, e) &&
        read_settings(object, p.number > 0, &params, place, e);
    p.params = params.rows;
    p.param_count = params.count;
    ok = ok && (import_point(m, &p, point, dataset, e) || error_within(e, "%s", place));
    for (int i = 0; i < params.count; i++) mem_free(params.texts[i]);
    return ok;
}

static bool find_prompt(Import *m, const json_t *line, int64_t dataset, int64_t *prompt, const char *place,
                        Error *e) {
    StorePrompt p = {.dataset = dataset};
    return number(line, "prompt", -1, &p.number, place, e) &&
           (p.number >= 0 || error_input(e, "%s: 'prompt', the number of the prompt, is missing", place)) &&
           number(line, "turn", 0, &p.turn, place, e) && word(line, "name", &p.name, place, e) &&
           word(line, "task", &p.task, place, e) && store_prompt(m->store, &p, prompt, e);
}

static bool read_sample(const json_t *line, const Steps *steps, StoreSample *x, const char *place, Error *e) {
    int64_t emitted = 0;
    for (int i = 0; i < steps->count; i++) emitted += steps->steps[i].emitted;
    if (emitted > MOST) return error_input(e, "%s: the steps emitted more than %d tokens", place, (int)MOST);
    x->steps = steps->steps;
    x->step_count = steps->count;
    if (steps->count == 0) return error_input(e, "%s: 'steps' is missing or empty", place);
    row_unknown(ROW_SAMPLE, x);
    x->tokens = (int)emitted;
    if (!number(line, "pass", 0, &x->pass, place, e) || !number(line, "flags", 0, &x->flags, place, e) ||
        !row_from_json(ROW_SAMPLE, line, x, place, e) ||
        !field_real(line, "decode_s", 0, LONG_S, &x->decode_s, place, e) ||
        !field_real_optional(line, "started", 0, 1e12, &x->started, place, e))
        return false;
    return x->tokens == emitted ||
           error_input(e, "%s: 'tokens' is %d, but the steps emitted %d", place, x->tokens, (int)emitted);
}

// --- outputs --------------------------------------------------------------------------------------------

typedef struct {
    StoreOutput row;
    Text text;
    int *ids;
    char *pieces;
    bool is_there;
} Written;

static bool read_ids(const json_t *line, Written *w, const char *place, Error *e) {
    const json_t *list = json_object_get(line, "ids");
    size_t n = json_array_size(list);
    if (list && !json_is_null(list) && !json_is_array(list))
        return error_input(e, "%s: 'ids' must be a list", place);
    if (n > MOST) return error_input(e, "%s: 'ids' has %zu entries", place, n);
    w->ids = mem_new(n, sizeof *w->ids);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < INT32_MIN || json_integer_value(id) > INT32_MAX)
            return error_input(e, "%s: 'ids' must hold tokens", place);
        w->ids[i] = (int)json_integer_value(id);
    }
    w->row.ids = w->ids;
    w->row.count = (int)n;
    w->is_there = w->is_there || json_is_array(list);
    return true;
}

// Each piece of `more_text` follows a NUL.
static bool read_text(const json_t *line, Written *w, const char *place, Error *e) {
    const char *text;
    const json_t *more = json_object_get(line, "more_text");
    if (!word(line, "text", &text, place, e)) return false;
    if (!text) return true;
    text_puts(&w->text, text);
    for (size_t i = 0; i < json_array_size(more); i++) {
        text_add(&w->text, "", 1);
        if (!json_is_string(json_array_get(more, i)))
            return error_input(e, "%s: 'more_text' must hold texts", place);
        text_puts(&w->text, json_string_value(json_array_get(more, i)));
    }
    w->row.text = text_get(&w->text);
    w->row.text_bytes = (int64_t)w->text.length;
    w->is_there = true;
    return true;
}

static bool read_pieces(const json_t *line, Written *w, const char *place, Error *e) {
    const json_t *list = json_object_get(line, "pieces");
    if (!field_present(line, "pieces")) return true;
    bool ok = json_array_size(list) == (size_t)w->row.count;
    for (size_t i = 0; ok && i < json_array_size(list); i++) ok = json_is_string(json_array_get(list, i));
    if (!ok) return error_input(e, "%s: 'pieces' must hold a text for each of 'ids'", place);
    w->row.pieces = w->pieces = json_text(list, JSON_COMPACT);
    return true;
}

static bool read_written(const json_t *line, Written *w, const char *place, Error *e) {
    int looping;
    w->row.repeated = -1;
    bool ok = read_ids(line, w, place, e) && read_text(line, w, place, e) && read_pieces(line, w, place, e) &&
              field_real_optional(line, "repeated", 0, 1, &w->row.repeated, place, e) &&
              number(line, "looping", 0, &looping, place, e);
    if (ok) w->row.looping = looping != 0;
    return ok;
}

static bool read_divergence(const json_t *line, StoreDivergence *d, bool *is_there, const char *place,
                            Error *e) {
    const json_t *from = json_object_get(line, "divergence");
    int64_t wanted, got;
    *is_there = field_present(line, "divergence");
    *d = (StoreDivergence){.margin = NAN};
    if (!*is_there) return true;
    if (!json_is_object(from)) return error_input(e, "%s: 'divergence' must be an object", place);
    bool ok = number(from, "position", 0, &d->position, place, e) &&
              field_int(from, "wanted", -1, INT32_MAX, &wanted, place, e) &&
              field_int(from, "got", -1, INT32_MAX, &got, place, e) &&
              field_real_optional(from, "margin", -1e30, 1e30, &d->margin, place, e);
    if (ok) d->wanted = (int)wanted, d->got = (int)got;
    return ok;
}

static bool add_scores(Import *m, const json_t *line, const StoreSample *x, const char *place, Error *e) {
    json_t *scores = json_object_get(line, "scores"), *value;
    const char *metric;
    if (!scores || json_is_null(scores)) return true;
    if (!json_is_object(scores)) return error_input(e, "%s: 'scores' must be an object", place);
    json_object_foreach(scores, metric, value) {
        if (!json_is_number(value)) return error_input(e, "%s: score '%s' must be a number", place, metric);
        if (!store_score(m->store, x->point, x->pass, x->prompt, metric, json_number_value(value), e))
            return error_within(e, "%s", place);
    }
    return true;
}

// --- the run of an export -------------------------------------------------------------------------------

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

// Runs a statement that takes two ids and an object, or a list of them, as JSON.
static bool put(Import *m, const char *statement, int64_t first, int64_t second, const json_t *from,
                const char *place, Error *e) {
    size_t count = json_is_array(from) ? json_array_size(from) : 1;
    const char *key;
    json_t *value;
    for (size_t i = 0; i < count; i++) {
        json_t *row = json_is_array(from) ? json_array_get(from, i) : (json_t *)(uintptr_t)from;
        json_object_foreach(row, key, value) {
            if (json_is_object(value))
                return error_input(e, "%s: '%s' of 'run' must be a text or a number", place, key);
        }
    }
    LOCAL_MEMORY char *text = json_text(from, JSON_COMPACT);
    return sql_run(m->store, statement, VALUES(of_int(first), of_int(second), of_text(text)), e) ||
           error_within(e, "%s: 'run'", place);
}

// *list: under a key, NULL if there is none.
static bool list_of(const json_t *from, const char *key, const json_t **list, const char *place, Error *e) {
    *list = json_object_get(from, key);
    return !*list || json_is_array(*list) || error_input(e, "%s: '%s' of 'run' must be a list", place, key);
}

static bool put_list(Import *m, const char *statement, int64_t first, int64_t second, const json_t *from,
                     const char *key, const char *place, Error *e) {
    const json_t *list;
    return list_of(from, key, &list, place, e) && (!list || put(m, statement, first, second, list, place, e));
}

static bool find_environment(Import *m, const json_t *on, int64_t *id, const char *place, Error *e) {
    const StoreRow *row = &store_rows[ROW_ENVIRONMENT];
    Value values[ROW_MOST] = {{.type = VALUE_NULL}};
    for (int i = 0; i < row->count; i++)
        if (!value_of(on, row->columns[i].name, &values[i], place, e)) return false;
    if (values[0].type != VALUE_TEXT) values[0] = of_text("imported");
    return store_environment(m->store, values, row->count, id, e) || error_within(e, "%s: 'run'", place);
}

static bool add_starts(Import *m, const json_t *run, const char *place, Error *e) {
    const json_t *list, *start;
    size_t i;
    if (!list_of(run, "starts", &list, place, e)) return false;
    if (json_array_size(list) > MOST_STARTS)
        return error_input(e, "%s: 'run' has %zu starts", place, json_array_size(list));
    m->starts = mem_new(json_array_size(list), sizeof *m->starts);
    json_array_foreach(list, i, start) {
        int64_t environment;
        const json_t *on = json_array_get(json_object_get(start, "on"), 0);
        if (!find_environment(m, on, &environment, place, e) ||
            !put(m, "import_start", m->run, environment, start, place, e))
            return false;
        int64_t id = m->starts[m->start_count++] = sql_last_id(m->store);
        if (!put_list(m, "import_readings", id, 0, start, "readings", place, e)) return false;
    }
    return true;
}

static bool add_points(Import *m, const json_t *run, const char *place, Error *e) {
    const json_t *list, *row;
    size_t i;
    if (!list_of(run, "points", &list, place, e)) return false;
    json_array_foreach(list, i, row) {
        int64_t point, dataset;
        if (!import_described(m, row, &point, &dataset, place, e) ||
            !put_list(m, "import_once", m->run, point, row, "once", place, e) ||
            !put_list(m, "import_failures", m->run, point, row, "failures", place, e))
            return false;
    }
    return true;
}

static bool import_run(Import *m, const json_t *run, const char *place, Error *e) {
    if (m->starts || m->lines > 0)
        return error_input(e,
                           "%s: another run begins here: the lines of one export are one file, and its 'run' "
                           "is on the first",
                           place);
    if (!json_is_object(run)) return error_input(e, "%s: 'run' must be an object", place);
    const char *kind = field_text(run, "kind", place, e);
    if (!kind) return false;
    if (strcmp(kind, "sweep") != 0 && strcmp(kind, "import") != 0)
        return error_input(e, "%s: 'kind' of 'run' is '%s', must be sweep or import", place, kind);
    return field_int_optional(run, "samples", 0, INT64_MAX, &m->promised, place, e) &&
           put(m, "import_run", m->run, 0, run, place, e) &&
           (!m->from->name ||
            sql_run(m->store, "import_name", VALUES(of_int(m->run), of_text(m->from->name)), e)) &&
           put_list(m, "import_contents", m->run, 0, run, "contents", place, e) &&
           put_list(m, "import_models", m->run, 0, run, "models", place, e) &&
           put_list(m, "import_datasets", m->run, 0, run, "datasets", place, e) &&
           add_starts(m, run, place, e) && add_points(m, run, place, e);
}

// --- lines -----------------------------------------------------------------------------------------------

static bool add_sample(Import *m, const json_t *line, StoreSample *x, const char *place, Error *e) {
    Written written = {.is_there = false};
    StoreDivergence divergence;
    bool diverged;
    int64_t dataset;
    bool ok =
        read_written(line, &written, place, e) && read_divergence(line, &divergence, &diverged, place, e) &&
        import_described(m, line, &x->point, &dataset, place, e) &&
        find_prompt(m, line, dataset, &x->prompt, place, e) &&
        number(line, "position", 0, &x->position, place, e) && import_start(m, line, &x->attempt, place, e);
    x->output = written.is_there ? &written.row : NULL;
    x->divergence = ok && diverged ? &divergence : NULL;
    ok = ok && (import_sample(m, x, e) || error_within(e, "%s", place)) && add_scores(m, line, x, place, e);
    text_release(&written.text);
    MEM_FREE(written.pieces, written.ids);
    return ok;
}

// A run without samples is a line of its own.
static bool add_line(void *state, const json_t *line, const char *place, Error *e) {
    Import *m = state;
    LOCAL(release) Steps steps = {.count = 0};
    StoreSample x = {.pass = 0};
    const json_t *run = json_object_get(line, "run");
    if (run && !import_run(m, run, place, e)) return false;
    m->lines++;
    if (run && json_object_size(line) == 1) return true;
    return read_steps(line, &steps, place, e) && read_sample(line, &steps, &x, place, e) &&
           add_sample(m, line, &x, place, e);
}

bool store_import_steps(Store *s, const StoreImport *from, StoreImported *out, Error *e) {
    Import m = {0};
    if (!sql_enter(s, e)) return false;
    bool ok = import_begin(&m, s, from, NULL, out, e) && import_lines(from, add_line, &m, e) &&
              (out->samples || m.promised == 0 || error_input(e, "'%s' holds no samples", from->path));
    return sql_leave(s, import_end(&m, ok, e), e);
}
