// The objects of measurements: runs, starts, models, datasets, prompts, points. Each is found or added.
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "results/fit.h"
#include "results/sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// --- runs ------------------------------------------------------------------------------------------------

static bool add_run(Store *s, const StoreRun *run, int64_t *id, Error *e) {
    bool ok = sql_run(s, STATEMENT_RUN_ADD,
                      VALUES(of_text(run->hash), of_text(run->kind), of_text(run->name), of_text(run->about),
                             of_text(run->config_file), of_text(run->config), of_text(run->overrides),
                             of_text(run->version), of_int(run->dirty), of_text(run->uid)),
                      e);
    *id = ok ? sql_last_id(s) : 0;
    for (int i = 0; i < run->content_count && ok; i++) {
        const StoreContent *c = &run->contents[i];
        ok = sql_run(
            s, STATEMENT_CONTENT_ADD,
            VALUES(of_int(*id), of_text(c->kind), of_text(c->name), of_text(c->hash), of_text(c->path)), e);
    }
    return ok;
}

bool store_run(Store *s, const StoreRun *run, int64_t *id, bool *found, Error *e) {
    bool there = false;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, STATEMENT_RUN_FIND, VALUES(of_text(run->hash)), id, &there, e) &&
              (there || add_run(s, run, id, e));
    if (found) *found = there;
    return sql_leave(s, ok, e);
}

bool store_run_new(Store *s, const StoreRun *run, int64_t *id, Error *e) {
    return sql_enter(s, e) && sql_leave(s, add_run(s, run, id, e), e);
}

// --- starts ----------------------------------------------------------------------------------------------

// The hash of a list of values, each with its type and length: no two lists have the same bytes.
static bool hash_values(const Value *values, int count, char out[SHA256_TEXT], Error *e) {
    Text t = {0};
    for (int i = 0; i < count; i++) {
        const Value *v = &values[i];
        if (v->type == VALUE_INT) text_printf(&t, "i%lld;", (long long)v->i);
        else if (v->type == VALUE_REAL) text_printf(&t, "r%.17g;", v->r);
        else if (v->type == VALUE_NULL) text_puts(&t, "n;");
        else {
            text_printf(&t, "t%lld:", (long long)v->i);
            text_add(&t, v->bytes, (size_t)v->i);
        }
    }
    bool ok = sha256_bytes(text_get(&t), t.length, out, e);
    text_release(&t);
    return ok;
}

// clang-format off
const char *const store_environment_columns[STORE_ENVIRONMENT_VALUES] = {
    "version", "compiler", "flags", "libraries", "host", "system", "kernel", "cpu", "isa", "governor",
    "cores", "threads", "virtual_machine", "l1d", "l2", "l3", "memory", "bandwidth", "peak", "gpu",
    "gpu_uuid", "driver", "cuda", "cublas", "gpu_memory", "gpu_bandwidth", "gpu_peak"};
// clang-format on

bool store_environment(Store *s, const Value values[STORE_ENVIRONMENT_VALUES], int64_t *id, Error *e) {
    char hash[SHA256_TEXT];
    bool found = false;
    Value all[1 + STORE_ENVIRONMENT_VALUES];
    if (!hash_values(values, STORE_ENVIRONMENT_VALUES, hash, e)) return false;
    all[0] = of_text(hash);
    memcpy(all + 1, values, STORE_ENVIRONMENT_VALUES * sizeof *values);
    if (!sql_find(s, STATEMENT_ENVIRONMENT_FIND, all, 1, id, &found, e)) return false;
    if (found) return true;
    if (!sql_run(s, STATEMENT_ENVIRONMENT_ADD, all, 1 + STORE_ENVIRONMENT_VALUES, e)) return false;
    *id = sql_last_id(s);
    return true;
}

static bool find_environment(Store *s, const StoreEnvironment *on, int64_t *id, Error *e) {
    // clang-format off
    const Value values[STORE_ENVIRONMENT_VALUES] = {
        of_text(on->version), of_text(on->compiler), of_text(on->flags), of_text(on->libraries),
        of_text(on->host), of_text(on->system), of_text(on->kernel), of_text(on->cpu), of_text(on->isa),
        of_text(on->governor), of_int(on->cores), of_int(on->threads), of_int(on->virtual_machine),
        of_int(on->l1d), of_int(on->l2), of_int(on->l3), of_int(on->memory), of_known(on->bandwidth),
        of_known(on->peak), of_text(on->gpu), of_text(on->gpu_uuid), of_text(on->driver), of_text(on->cuda),
        of_text(on->cublas), of_id(on->gpu_memory), of_known(on->gpu_bandwidth), of_known(on->gpu_peak)};
    // clang-format on
    return store_environment(s, values, id, e);
}

// An argument that is not UTF-8 becomes "?". For mem_free.
static char *words_json(int argc, char *const *argv) {
    json_t *list = json_array();
    for (int i = 0; i < argc; i++) {
        json_t *word = json_string(argv[i]);
        json_array_append_new(list, word ? word : json_string("?"));
    }
    char *text = json_text(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

bool store_attempt(Store *s, int64_t run, int argc, char *const *argv, const StoreEnvironment *on,
                   int64_t *id, Error *e) {
    int64_t environment;
    char *words = words_json(argc, argv);
    bool ok = sql_enter(s, e);
    if (ok) {
        ok = find_environment(s, on, &environment, e) &&
             sql_run(s, STATEMENT_ATTEMPT_ADD, VALUES(of_int(run), of_int(environment), of_text(words)), e);
        *id = ok ? sql_last_id(s) : 0;
        ok = sql_leave(s, ok, e);
    }
    mem_free(words);
    return ok;
}

bool store_attempt_end(Store *s, int64_t attempt, const char *result, Error *e) {
    return sql_enter(s, e) &&
           sql_leave(s, sql_run(s, STATEMENT_ATTEMPT_END, VALUES(of_int(attempt), of_text(result)), e), e);
}

bool store_reading(Store *s, int64_t attempt, const StoreReading *r, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = sql_run(s, STATEMENT_READING_ADD,
                      VALUES(of_int(attempt), of_real(r->at), of_text(r->moment), of_text(r->device),
                             of_real(r->clock_mhz), of_real(r->memory_clock_mhz), of_real(r->power_w),
                             of_real(r->temperature_c), of_text(r->throttle), of_real(r->load),
                             of_int(r->busy_others)),
                      e);
    return sql_leave(s, ok, e);
}

// --- what points are made of -----------------------------------------------------------------------------

// Finds by the first `keys` values; else adds by all of them. No slow work, one transaction.
static bool find_or_add(Store *s, StatementId find, int keys, StatementId add, const Value *values, int count,
                        int64_t *id, Error *e) {
    bool found = false;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, find, values, keys, id, &found, e) && (found || sql_run(s, add, values, count, e));
    if (ok && !found) *id = sql_last_id(s);
    return sql_leave(s, ok, e);
}

bool store_model(Store *s, const StoreModel *m, int64_t *id, Error *e) {
    return find_or_add(s, STATEMENT_MODEL_FIND, 2, STATEMENT_MODEL_ADD,
                       VALUES(of_text(m->name), of_text(m->hash), of_text(m->path), of_text(m->shape),
                              of_int(m->layers), of_text(m->dtype), of_text(m->stand_in)),
                       id, e);
}

bool store_dataset(Store *s, const StoreDataset *d, int64_t *id, Error *e) {
    return find_or_add(s, STATEMENT_DATASET_FIND, 2, STATEMENT_DATASET_ADD,
                       VALUES(of_text(d->name), of_text(d->hash), of_text(d->path)), id, e);
}

bool store_prompt(Store *s, const StorePrompt *p, int64_t *id, Error *e) {
    return find_or_add(
        s, STATEMENT_PROMPT_FIND, 3, STATEMENT_PROMPT_ADD,
        VALUES(of_int(p->dataset), of_int(p->number), of_int(p->turn), of_text(p->name), of_text(p->task)),
        id, e);
}

// --- points ----------------------------------------------------------------------------------------------

// A number if the whole text reads as one.
static Value of_param(const char *text) {
    if (!text || !*text || strchr(" \t\n+", *text)) return of_text(text);
    char *end;
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (*end == 0 && errno == 0) return of_int(whole);
    double real = strtod(text, &end);
    return *end == 0 && isfinite(real) && strspn(text, "0123456789.eE-+") == strlen(text) ? of_real(real)
                                                                                          : of_text(text);
}

static bool add_point(Store *s, int64_t run, const StorePoint *p, int64_t *id, Error *e) {
    bool ok =
        sql_run(s, STATEMENT_POINT_ADD,
                VALUES(of_int(run), of_int(p->number), of_text(p->hash), of_int(p->model), of_int(p->dataset),
                       of_text(p->method), of_text(p->decoder), of_text(p->label), of_real(p->temperature),
                       of_id(p->baseline), of_id(p->same_path), of_text(p->skipped)),
                e);
    *id = ok ? sql_last_id(s) : 0;
    for (int i = 0; i < p->param_count && ok; i++) {
        const StoreParam *q = &p->params[i];
        ok = sql_run(s, STATEMENT_PARAM_ADD,
                     VALUES(of_int(*id), of_text(q->section), of_text(q->name), of_param(q->value)), e);
    }
    return ok;
}

bool store_point(Store *s, int64_t run, const StorePoint *p, int64_t *id, Error *e) {
    bool found = false;
    if (!sql_enter(s, e)) return false;
    bool ok = sql_find(s, STATEMENT_POINT_FIND, VALUES(of_int(run), of_text(p->hash)), id, &found, e);
    if (ok && found)
        ok = sql_run(s, STATEMENT_POINT_RENEW,
                     VALUES(of_int(*id), of_id(p->baseline), of_id(p->same_path), of_text(p->skipped)), e);
    else if (ok) ok = add_point(s, run, p, id, e);
    return sql_leave(s, ok, e);
}

// --- facts about a point --------------------------------------------------------------------------------

static bool write_one(Store *s, StatementId id, const Value *values, int count, Error *e) {
    return sql_enter(s, e) && sql_leave(s, sql_run(s, id, values, count, e), e);
}

bool store_one_off(Store *s, int64_t point, const char *name, double seconds, int64_t bytes, Error *e) {
    return write_one(s, STATEMENT_ONE_OFF_SET,
                     VALUES(of_int(point), of_text(name), of_ns(seconds), of_count(bytes)), e);
}

bool store_estimate(Store *s, int64_t point, const StoreEstimate *x, Error *e) {
    return write_one(s, STATEMENT_ESTIMATE_SET,
                     VALUES(of_int(point), of_text(x->metric), of_real(x->value), of_real(x->low),
                            of_real(x->high), of_real(x->deviation), of_int(x->resamples), of_int(x->seed)),
                     e);
}

bool store_failure(Store *s, int64_t attempt, int64_t point, int64_t prompt, int pass, const char *message,
                   Error *e) {
    return write_one(s, STATEMENT_FAILURE_ADD,
                     VALUES(of_int(attempt), of_id(point), of_id(prompt), of_count(pass), of_text(message)),
                     e);
}

bool store_surface(Store *s, const StoreSurface *rows, int count, Error *e) {
    bool ok = true;
    if (!sql_enter(s, e)) return false;
    for (int i = 0; i < count && ok; i++) {
        const StoreSurface *r = &rows[i];
        ok = sql_run(s, STATEMENT_SURFACE_ADD,
                     VALUES(of_int(r->attempt), of_int(r->model), of_text(r->kind), of_text(r->device),
                            of_text(r->compute), of_text(r->layout), of_text(r->cache), of_count(r->k),
                            r->k < 0 ? of_count(-1) : of_int(r->w), r->b < 0 ? of_count(-1) : of_int(r->a),
                            of_count(r->b), of_int(r->rows), of_count(r->head_rows), of_int(r->context),
                            of_int(r->samples), of_real(r->mean_s * 1e9), of_real(r->median_s * 1e9),
                            of_measure(r->deviation_s * 1e9), of_measure(r->slowdown),
                            of_measure(r->floor_s * 1e9), of_measure(r->bytes), of_measure(r->operations),
                            of_int(r->flags), of_text(r->weights), of_measure(r->drift),
                            of_measure(r->low_s * 1e9), of_measure(r->high_s * 1e9),
                            of_measure(r->slowdown_low), of_measure(r->slowdown_high), of_int(r->disturbed),
                            of_id(r->sequences)),
                     e);
    }
    return sql_leave(s, ok, e);
}

// --- fits ------------------------------------------------------------------------------------------------

static bool add_fit_estimate(Store *s, int64_t fit, const StoreFitEstimate *x, Error *e) {
    return sql_run(s, STATEMENT_FIT_ESTIMATE,
                   VALUES(of_int(fit), of_text(x->estimator), of_real(x->alpha), of_real(x->alpha_low),
                          of_real(x->alpha_high), of_real(x->f), of_real(x->f_low), of_real(x->f_high),
                          of_real(x->rms), of_real(x->condition), of_real(x->correlation), of_text(x->drawn)),
                   e);
}

static bool add_fit(Store *s, int64_t run, const StoreFit *x, bool *added, Error *e) {
    bool ok =
        sql_run(s, STATEMENT_FIT_ADD,
                VALUES(of_int(run), of_text(x->hash), of_text(x->points), of_text(x->title), of_text(x->law),
                       of_text(x->bonus), of_known(x->output), of_text(x->estimator), of_int(x->fitted),
                       of_int(x->prompts), of_int(x->resamples), of_int(x->seed), of_text(x->version)),
                e);
    *added = ok && sql_changes(s) > 0;
    if (!*added) return ok;
    int64_t fit = sql_last_id(s);
    ok = sql_run(s, STATEMENT_FIT_POINTS, VALUES(of_int(fit), of_text(x->point_ids)), e);
    for (int i = 0; ok && i < x->estimate_count; i++) ok = add_fit_estimate(s, fit, &x->estimates[i], e);
    return ok;
}

bool store_fit(Store *s, int64_t run, const StoreFit *fit, bool *added, Error *e) {
    return sql_enter(s, e) && sql_leave(s, add_fit(s, run, fit, added, e), e);
}
