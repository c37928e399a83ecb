// What all imports share: the run, its points and baselines, lines with their place. Then answers as
// Spec-Bench publishes them: their steps, tokens and times include prefill, which cannot be separated again,
// so S of such a point is Spec-Bench's own and its prefill time is unknown. Only the first choice of a line
// counts, as in Spec-Bench.
#include "results/transfer/import.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/row.h"

#include <string.h>

enum { PLACE = 512, MOST_TURNS = 64, MOST_STEPS = 1 << 20, MOST = 1 << 24 };

static bool hash_all(const StoreImport *a, const StoreImport *b, char out[SHA256_TEXT], Error *e) {
    Text t = {0};
    text_printf(&t, "%zu %zu ", a->size, b ? b->size : 0);
    text_add(&t, a->bytes, a->size);
    if (b) text_add(&t, b->bytes, b->size);
    bool ok = sha256_bytes(text_get(&t), t.length, out, e);
    text_release(&t);
    return ok;
}

bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e) {
    char hash[SHA256_TEXT];
    bool found = false;
    *out = (StoreImported){0};
    *m = (Import){.store = s, .from = from, .out = out, .promised = -1};
    if (!hash_all(from, second, hash, e)) return false;
    StoreContent content = {.kind = "import", .name = from->path, .hash = hash, .path = from->path};
    StoreRun run = {.hash = hash,
                    .kind = "import",
                    .name = from->name ? from->name : from->path,
                    .version = "imported",
                    .contents = &content,
                    .content_count = 1};
    if (!store_run(s, &run, &m->run, &found, e)) return false;
    if (found)
        return error_input(e, "'%s' is in the store already, as run %lld", from->path, (long long)m->run);
    out->run = m->run;
    return true;
}

bool import_start(Import *m, const json_t *object, int64_t *attempt, const char *place, Error *e) {
    StoreEnvironment elsewhere = {.version = "imported"};
    int64_t start = -1;
    if (m->start_count) {
        if (!field_int(object, "start", 0, m->start_count - 1, &start, place, e)) return false;
        *attempt = m->starts[start];
        return true;
    }
    bool ok = m->attempt ||
              store_attempt(m->store, m->run, m->from->argc, m->from->argv, &elsewhere, &m->attempt, e);
    *attempt = m->attempt;
    return ok;
}

static bool set_baselines(Import *m, Error *e) {
    bool ok = true;
    if (!m->numbered) return sql_run(m->store, "import_baselines", VALUES(of_int(m->run)), e);
    for (size_t i = 0; ok && i < m->baseline_count; i++) {
        const ImportBaseline *b = &m->baselines[i];
        ok = sql_run(m->store, "import_baseline",
                     VALUES(of_int(m->run), of_int(b->point), of_int(b->baseline), of_int(b->same_path)), e);
    }
    return ok;
}

// A file that was cut or filtered holds fewer samples than its starts measured.
static bool end_starts(Import *m, Error *e) {
    m->out->promised = m->promised;
    if (m->promised > m->out->samples && !sql_run(m->store, "import_part", VALUES(of_int(m->run)), e))
        return false;
    return !m->attempt || store_attempt_end(m->store, m->attempt, "done", e);
}

bool import_end(Import *m, bool ok, Error *e) {
    ok = ok && set_baselines(m, e) &&
         sql_find(m->store, "import_alone", VALUES(of_int(m->run)), &m->out->alone, NULL, e) &&
         end_starts(m, e);
    mem_free(m->starts);
    mem_free(m->baselines);
    return ok;
}

// --- points ----------------------------------------------------------------------------------------------

// The hash of everything that distinguishes a point from others.
static bool hash_point(const ImportPoint *p, char out[SHA256_TEXT], Error *e) {
    Text t = {0};
    const char *const words[] = {p->model, p->dataset, p->method, p->label};
    for (int i = 0; i < 4; i++)
        text_printf(&t, "%zu:%s", words[i] ? strlen(words[i]) : 0, words[i] ? words[i] : "");
    text_printf(&t, "%.17g;%d", p->temperature, p->layers);
    for (int i = 0; i < p->param_count; i++) {
        const StoreParam *q = &p->params[i];
        bool own = strcmp(q->section, "method") == 0;
        text_printf(&t, ";%s%s%zu:%s=%s", own ? "" : q->section, own ? "" : ".", strlen(q->name), q->name,
                    q->value);
    }
    bool ok = sha256_bytes(text_get(&t), t.length, out, e);
    text_release(&t);
    return ok;
}

static void note_baselines(Import *m, const ImportPoint *p, int64_t point) {
    if (m->baseline_count && m->baselines[m->baseline_count - 1].point == point) return;
    mem_grow(&m->baselines, &m->baseline_capacity, m->baseline_count + 1, sizeof *m->baselines);
    m->baselines[m->baseline_count++] = (ImportBaseline){point, p->baseline, p->same_path};
}

// A number belongs to one point, and a point has one number.
static bool check_number(Import *m, const ImportPoint *p, const char *hash, Error *e) {
    int64_t fits = 0;
    bool found;
    if (p->number ? m->plain : m->numbered)
        return error_input(
            e, "either all lines of a file have 'point', or none: are these lines of several files?");
    m->numbered = p->number > 0;
    m->plain = !m->numbered;
    if (m->plain) return true;
    return sql_find(m->store, "import_number", VALUES(of_int(m->run), of_int(p->number), of_text(hash)),
                    &fits, &found, e) &&
           (!found || fits ||
            error_input(e, "point %d is another one on an earlier line: are these lines of several files?",
                        p->number));
}

bool import_point(Import *m, const ImportPoint *p, int64_t *point, int64_t *dataset, Error *e) {
    char made[SHA256_TEXT];
    int64_t last = 0;
    StoreModel model = {
        .name = p->model, .hash = p->model_hash ? p->model_hash : "imported", .layers = p->layers};
    StoreDataset data = {.name = p->dataset, .hash = p->dataset_hash ? p->dataset_hash : "imported"};
    const char *label = p->label ? p->label : p->method;
    StorePoint x = {.hash = p->hash ? p->hash : made,
                    .method = p->method,
                    .decoder = p->decoder ? p->decoder : label,
                    .label = label,
                    .skipped = p->skipped,
                    .temperature = p->temperature,
                    .params = p->params,
                    .param_count = p->param_count};
    if (!hash_point(p, made, e) || !check_number(m, p, x.hash, e) ||
        !store_model(m->store, &model, &x.model, e) || !store_dataset(m->store, &data, &x.dataset, e) ||
        !sql_find(m->store, "import_last", VALUES(of_int(m->run)), &last, NULL, e))
        return false;
    x.number = p->number ? p->number : (int)last + 1;
    *dataset = x.dataset;
    if (!store_point(m->store, m->run, &x, point, e)) return false;
    if (p->number) note_baselines(m, p, *point);
    return true;
}

bool import_sample(Import *m, StoreSample *x, Error *e) {
    bool twice = false;
    if (!store_done(m->store, x->point, x->pass, x->prompt, &twice, e)) return false;
    if (twice)
        return error_input(
            e,
            "pass %d of this prompt at this point is on an earlier line: is 'pass', or what tells "
            "the points apart, missing, or is the file doubled?",
            x->pass);
    m->out->samples++;
    m->out->steps += x->step_count;
    return store_samples(m->store, x, 1, e);
}

// --- lines -----------------------------------------------------------------------------------------------

// Reads at most n bytes: the line need not end with a NUL.
static bool is_blank(const char *line, size_t n) {
    while (n > 0 && (*line == ' ' || *line == '\t' || *line == '\r')) line++, n--;
    return n == 0;
}

bool import_lines(const StoreImport *from, bool (*take)(void *, const json_t *, const char *, Error *),
                  void *state, Error *e) {
    int number = 1;
    for (const char *line = from->bytes, *end = from->bytes + from->size; line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t n = (size_t)((stop ? stop : end) - line);
        char place[PLACE];
        snprintf(place, sizeof place, "%s:%d", from->path, number);
        if (!is_blank(line, n)) {
            json_t *object = json_from_bytes(line, n, place, e);
            bool ok = object &&
                      (json_is_object(object) || error_input(e, "%s: the line is no JSON object", place)) &&
                      take(state, object, place, e);
            json_decref(object);
            if (!ok) return false;
        }
        line += n + 1;
    }
    return true;
}

// --- Spec-Bench -----------------------------------------------------------------------------------------

typedef struct {
    Import *import;
    int64_t point, dataset;
} Answers;

typedef struct {
    const json_t *turns, *steps, *tokens, *times, *lengths;
    size_t count; // of turns
} Choice;

static bool read_choice(const json_t *line, Choice *c, const char *place, Error *e) {
    const json_t *first = json_array_get(json_object_get(line, "choices"), 0);
    *c = (Choice){.turns = json_object_get(first, "turns"),
                  .steps = json_object_get(first, "decoding_steps"),
                  .tokens = json_object_get(first, "new_tokens"),
                  .times = json_object_get(first, "wall_time"),
                  .lengths = json_object_get(first, "accept_lengths")};
    c->count = json_array_size(c->turns);
    if (c->count == 0 || c->count > MOST_TURNS || json_array_size(c->steps) != c->count ||
        json_array_size(c->tokens) != c->count || json_array_size(c->times) != c->count)
        return error_input(
            e, "%s: a choice needs 'turns', 'decoding_steps', 'new_tokens' and 'wall_time' of equal length",
            place);
    return true;
}

static bool number_at(const json_t *list, size_t i, double high, double *out, const char *what,
                      const char *place, Error *e) {
    const json_t *value = json_array_get(list, i);
    *out = json_number_value(value);
    return (json_is_number(value) && *out >= 0 && *out <= high) ||
           error_input(e, "%s: entry %zu of '%s' must be a number from 0 to %g", place, i, what, high);
}

// accept_lengths continues over the turns. *fits: the turn's share of it agrees with its steps and tokens.
static bool read_lengths(const Choice *c, size_t *from, int steps, int tokens, StoreStep *out, bool *fits,
                         const char *place, Error *e) {
    double sum = 0;
    *fits = *from + (size_t)steps <= json_array_size(c->lengths);
    for (int i = 0; i < steps && *fits; i++) {
        double emitted;
        if (!number_at(c->lengths, *from + (size_t)i, MOST, &emitted, "accept_lengths", place, e))
            return false;
        row_unknown(ROW_STEP, &out[i]);
        out[i].emitted = (int)emitted;
        out[i].accepted = emitted > 1 ? (int)emitted - 1 : 0;
        sum += emitted;
    }
    *from += (size_t)steps;
    *fits = *fits && sum == tokens;
    return true;
}

static bool add_turn(Answers *a, const Choice *c, size_t turn, StorePrompt *p, size_t *from,
                     const char *place, Error *e) {
    double steps, tokens, time;
    bool fits = false;
    const char *text = json_string_value(json_array_get(c->turns, turn));
    StoreSample x = {.point = a->point, .prefill_s = -1};
    StoreOutput output = {.text = text, .text_bytes = text ? (int64_t)strlen(text) : 0, .repeated = -1};
    p->turn = (int)turn;
    if (!number_at(c->steps, turn, MOST_STEPS, &steps, "decoding_steps", place, e) ||
        !number_at(c->tokens, turn, MOST, &tokens, "new_tokens", place, e) ||
        !number_at(c->times, turn, 1e8, &time, "wall_time", place, e) ||
        !store_prompt(a->import->store, p, &x.prompt, e) ||
        !import_start(a->import, NULL, &x.attempt, place, e))
        return false;
    StoreStep *list = mem_new((size_t)steps, sizeof *list);
    x.tokens = (int)tokens;
    x.step_count = (int)steps;
    x.decode_s = time;
    x.output = text ? &output : NULL;
    bool ok = read_lengths(c, from, x.step_count, x.tokens, list, &fits, place, e);
    x.steps = fits ? list : NULL;
    ok = ok && (import_sample(a->import, &x, e) || error_within(e, "%s", place));
    mem_free(list);
    return ok;
}

static bool add_answer(void *state, const json_t *line, const char *place, Error *e) {
    Answers *a = state;
    Choice c;
    int64_t id;
    size_t from = 0;
    char name[32];
    StorePrompt p = {.dataset = a->dataset, .name = name};
    if (!field_int(line, "question_id", 0, MOST, &id, place, e) || !read_choice(line, &c, place, e))
        return false;
    if (field_present(line, "category") && !(p.task = field_text(line, "category", place, e))) return false;
    snprintf(name, sizeof name, "%lld", (long long)id);
    p.number = (int)id;
    for (size_t turn = 0; turn < c.count; turn++)
        if (!add_turn(a, &c, turn, &p, &from, place, e)) return false;
    return true;
}

static bool add_file(Import *m, const StoreImport *from, const char *method, Error *e) {
    ImportPoint p = {.model = from->model, .dataset = from->dataset, .method = method};
    Answers a = {.import = m};
    return import_point(m, &p, &a.point, &a.dataset, e) && import_lines(from, add_answer, &a, e);
}

bool store_import_specbench(Store *s, const StoreImport *from, const StoreImport *baseline,
                            StoreImported *out, Error *e) {
    Import m = {0};
    if (!sql_enter(s, e)) return false;
    bool ok = import_begin(&m, s, from, baseline, out, e) &&
              (!baseline || add_file(&m, baseline, "autoregressive", e)) &&
              add_file(&m, from, from->method, e) &&
              (out->samples || error_input(e, "'%s' holds no answers", from->path));
    return sql_leave(s, import_end(&m, ok, e), e);
}
