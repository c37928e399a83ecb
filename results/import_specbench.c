// Answers as Spec-Bench publishes them. Their steps, tokens and times count prefill, which cannot be taken
// out again: S of such a point is theirs, and its prefill time is unknown. Only the first choice of a line
// counts, as there.
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "results/import.h"
#include "results/sql.h"

#include <string.h>

enum { MOST_TURNS = 64, MOST_STEPS = 1 << 20, MOST = 1 << 24 };

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

static bool at(const json_t *list, size_t i, double high, double *out, const char *what, const char *place,
               Error *e) {
    const json_t *value = json_array_get(list, i);
    *out = json_number_value(value);
    return (json_is_number(value) && *out >= 0 && *out <= high) ||
           error_input(e, "%s: entry %zu of '%s' must be a number from 0 to %g", place, i, what, high);
}

// accept_lengths runs on over the turns: a turn's are told apart where its sum of tokens and its steps agree.
static bool read_lengths(const Choice *c, size_t *from, int steps, int tokens, StoreStep *out, bool *fits,
                         const char *place, Error *e) {
    double sum = 0;
    *fits = *from + (size_t)steps <= json_array_size(c->lengths);
    for (int i = 0; i < steps && *fits; i++) {
        double emitted;
        if (!at(c->lengths, *from + (size_t)i, MOST, &emitted, "accept_lengths", place, e)) return false;
        out[i] = (StoreStep){STORE_STEADY, -1, -1, -1, -1, -1, -1, -1,   -1, 0,    0, NULL, 0,
                             -1,           -1, -1, -1, -1, -1, -1, NULL, 0,  NULL, 0};
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
    if (!at(c->steps, turn, MOST_STEPS, &steps, "decoding_steps", place, e) ||
        !at(c->tokens, turn, MOST, &tokens, "new_tokens", place, e) ||
        !at(c->times, turn, 1e8, &time, "wall_time", place, e) ||
        !store_prompt(a->import->store, p, &x.prompt, e) ||
        !import_start(a->import, NULL, &x.attempt, place, e))
        return false;
    StoreStep *list = mem_alloc((size_t)steps, sizeof *list);
    if (!list) return error_system(e, "out of memory");
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

static bool add_line(void *state, const json_t *line, const char *place, Error *e) {
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
    return import_point(m, &p, &a.point, &a.dataset, e) && import_lines(from, add_line, &a, e);
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
