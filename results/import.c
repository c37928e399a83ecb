#include "results/import.h"

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "results/rows.h"
#include "results/sql.h"

#include <string.h>

enum { PLACE = 512 };

static bool hash_all(const StoreImport *a, const StoreImport *b, char out[SHA256_TEXT], Error *e) {
    Text t = {0};
    text_printf(&t, "%zu %zu ", a->size, b ? b->size : 0);
    text_add(&t, a->bytes, a->size);
    if (b) text_add(&t, b->bytes, b->size);
    bool ok = t.failed ? error_system(e, "out of memory") : sha256_bytes(text_get(&t), t.length, out, e);
    text_release(&t);
    return ok;
}

bool import_begin(Import *m, Store *s, const StoreImport *from, const StoreImport *second, StoreImported *out,
                  Error *e) {
    char hash[SHA256_TEXT];
    bool found = false;
    *out = (StoreImported){0};
    *m = (Import){.store = s, .from = from, .out = out};
    if (!hash_all(from, second, hash, e)) return false;
    StoreContent content = {.kind = "import", .name = from->path, .hash = hash, .path = from->path};
    StoreRun run = {
        .hash = hash, .kind = "import", .name = from->name, .version = "imported", .contents = &content};
    run.content_count = 1;
    StoreEnvironment elsewhere = {.version = "imported"};
    if (!store_run(s, &run, &m->run, &found, e)) return false;
    if (found)
        return error_input(e, "'%s' is in the store already, as run %lld", from->path, (long long)m->run);
    out->run = m->run;
    return store_attempt(s, m->run, from->argc, from->argv, &elsewhere, &m->attempt, e);
}

bool import_end(Import *m, Error *e) {
    static const char ALONE[] =
        "SELECT count(*) FROM point WHERE run_id = ?1 AND baseline_id IS NULL AND method <> 'autoregressive'";
    return sql_run(m->store, STATEMENT_IMPORT_BASELINES, VALUES(of_int(m->run)), e) &&
           rows_one_int(m->store, ALONE, m->run, &m->out->alone, e) &&
           store_attempt_end(m->store, m->attempt, "done", e);
}

// Names a point by all that tells it from others.
static bool hash_point(const ImportPoint *p, char out[SHA256_TEXT], Error *e) {
    Text t = {0};
    const char *const words[] = {p->model, p->dataset, p->method, p->label};
    for (int i = 0; i < 4; i++)
        text_printf(&t, "%zu:%s", words[i] ? strlen(words[i]) : 0, words[i] ? words[i] : "");
    text_printf(&t, "%.17g;%d", p->temperature, p->layers);
    for (int i = 0; i < p->param_count; i++)
        text_printf(&t, ";%zu:%s=%s", strlen(p->params[i].name), p->params[i].name, p->params[i].value);
    bool ok = t.failed ? error_system(e, "out of memory") : sha256_bytes(text_get(&t), t.length, out, e);
    text_release(&t);
    return ok;
}

bool import_point(Import *m, const ImportPoint *p, int64_t *point, int64_t *dataset, Error *e) {
    char hash[SHA256_TEXT];
    int64_t count = 0;
    StoreModel model = {.name = p->model, .hash = "imported", .layers = p->layers};
    StoreDataset data = {.name = p->dataset, .hash = "imported"};
    const char *label = p->label ? p->label : p->method;
    StorePoint x = {
        .hash = hash, .method = p->method, .decoder = label, .label = label, .temperature = p->temperature};
    x.params = p->params;
    x.param_count = p->param_count;
    if (!hash_point(p, hash, e) || !store_model(m->store, &model, &x.model, e) ||
        !store_dataset(m->store, &data, &x.dataset, e) ||
        !rows_one_int(m->store, "SELECT count(*) FROM point WHERE run_id = ?1", m->run, &count, e))
        return false;
    x.number = (int)count + 1;
    *dataset = x.dataset;
    return store_point(m->store, m->run, &x, point, e);
}

bool import_sample(Import *m, StoreSample *x, Error *e) {
    x->attempt = m->attempt;
    m->out->samples++;
    m->out->steps += x->step_count;
    return store_samples(m->store, x, 1, e);
}

// No more than n bytes are looked at: nothing need stand behind them.
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
