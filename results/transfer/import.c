// What all imports share: the run, its points and baselines, lines with their place.
#include "results/transfer/import.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "results/sql.h"

#include <string.h>

enum { PLACE = 512 };

bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e) {
    char hash[SHA256_TEXT];
    bool found = false;
    *out = (StoreImported){0};
    *m = (Import){.store = s, .from = from, .out = out, .promised = -1};
    LOCAL_TEXT all = {0};
    text_printf(&all, "%zu %zu ", from->size, second ? second->size : 0);
    text_add(&all, from->bytes, from->size);
    if (second) text_add(&all, second->bytes, second->size);
    if (!sha256_bytes(text_get(&all), all.length, hash, e)) return false;
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

bool import_end(Import *m, bool ok, Error *e) {
    ok = ok && set_baselines(m, e) &&
         sql_find(m->store, "import_alone", VALUES(of_int(m->run)), &m->out->alone, NULL, e) &&
         // A file that was cut or filtered holds fewer samples than its starts measured.
         (m->promised <= m->out->samples || sql_run(m->store, "import_part", VALUES(of_int(m->run)), e)) &&
         (!m->attempt || store_attempt_end(m->store, m->attempt, "done", e));
    m->out->promised = m->promised;
    MEM_FREE(m->starts, m->baselines);
    return ok;
}

// --- points ----------------------------------------------------------------------------------------------

// The hash of everything that distinguishes a point from others.
static bool hash_point(const ImportPoint *p, char out[SHA256_TEXT], Error *e) {
    LOCAL_TEXT t = {0};
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
    return sha256_bytes(text_get(&t), t.length, out, e);
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
    if (!p->number || (m->baseline_count && m->baselines[m->baseline_count - 1].point == *point)) return true;
    *LIST_ADD(m->baselines, m->baseline_count, m->baseline_capacity) =
        (ImportBaseline){*point, p->baseline, p->same_path};
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
            json_auto_t *object = json_from_bytes(line, n, place, e);
            bool ok = object &&
                      (json_is_object(object) || error_input(e, "%s: the line is no JSON object", place)) &&
                      take(state, object, place, e);
            if (!ok) return false;
        }
        line += n + 1;
    }
    return true;
}
