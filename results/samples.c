// Samples with their steps. SQL sums the steps that were written, so sums and steps always agree.
#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "engine/base/text.h"
#include "results/row.h"
#include "results/rows.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

// --- outputs ---------------------------------------------------------------------------------------------

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(int) == 4, "ids are stored as they are");

static bool find_or_add_output(Store *s, const StoreOutput *o, int64_t *id, Error *e) {
    char hash[SHA256_TEXT];
    LOCAL_TEXT all = {0};
    bool found = false;
    *id = 0;
    if (!o) return true;
    size_t n = (size_t)o->count * sizeof *o->ids;
    if (n) text_add(&all, (const char *)o->ids, n);
    if (o->text) text_add(&all, o->text, (size_t)o->text_bytes);
    bool ok = sha256_bytes(text_get(&all), all.length, hash, e);
    Value text = {.type = o->text ? VALUE_TEXT : VALUE_NULL, .bytes = o->text, .i = o->text_bytes};
    ok = ok && sql_find(s, "output_find", VALUES(of_text(hash)), id, &found, e);
    if (!ok || found) return ok;
    ok = sql_run(s, "output_add",
                 VALUES(of_text(hash), of_blob(n ? (const void *)o->ids : "", n), of_int(o->count), text,
                        of_count(o->text ? o->text_bytes : -1), of_measure(o->repeated), of_int(o->looping),
                        of_text(o->pieces)),
                 e);
    *id = sql_last_id(s);
    return ok;
}

// --- steps -----------------------------------------------------------------------------------------------

// Whether the view `pass` can derive the step's passes from its other columns; *head is then the head's rows.
static bool is_plain(const StoreStep *t, int layers, int *head) {
    if (t->pass_count != 2) return false;
    const StorePass *whole = t->passes, *top = t->passes + 1;
    *head = top->rows;
    return whole->model == ROLE_TARGET && whole->a == 0 && whole->b == layers && whole->rows == t->rows &&
           whole->context == t->context && whole->count == 1 && top->model == ROLE_TARGET &&
           top->a == layers && top->b == layers && top->context == t->context && top->count == 1;
}

static bool add_passes(Store *s, int64_t sample, int number, const StoreStep *t, Error *e) {
    for (int i = 0; i < t->pass_count; i++) {
        const StorePass *p = &t->passes[i];
        if (!row_insert(s, ROW_PASS, VALUES(of_int(sample), of_int(number), of_int(i), of_int(p->model)), p,
                        e))
            return false;
    }
    return true;
}

static bool source_id(Store *s, const char *name, int64_t *id, Error *e) {
    bool found = false;
    if (!sql_find(s, "source_find", VALUES(of_text(name)), id, &found, e)) return false;
    if (found) return true;
    if (!sql_run(s, "source_name", VALUES(of_text(name)), e)) return false;
    *id = sql_last_id(s);
    return true;
}

static bool add_sources(Store *s, int64_t sample, int number, const StoreStep *t, Error *e) {
    int best = 0;
    for (int i = 1; i < t->source_count; i++)
        if (t->sources[i].length > t->sources[best].length) best = i;
    for (int i = 0; i < t->source_count; i++) {
        const StoreSource *q = &t->sources[i];
        int64_t id;
        if (q->rows == 0) continue;
        if (!source_id(s, q->name, &id, e) ||
            !row_insert(
                s, ROW_SOURCE,
                VALUES(of_int(sample), of_int(number), of_int(id), of_int(i == best && q->length > 0)), q, e))
            return false;
    }
    return true;
}

static bool add_step(Store *s, int64_t sample, int number, int layers, const StoreStep *t, Error *e) {
    int head;
    bool plain = is_plain(t, layers, &head);
    StoreStep row = *t;
    if (row.pool < 0) row.pool_hits = -1;
    bool ok =
        row_insert(s, ROW_STEP,
                   VALUES(of_int(sample), of_int(number), of_int(t->kind),
                          of_blob(t->matches, (size_t)t->match_bytes), plain ? of_int(head) : of_count(-1)),
                   &row, e) &&
        (t->sequences < 1 ||
         row_insert(s, ROW_BATCH, VALUES(of_int(sample), of_int(number), of_int(t->shared_run)), t, e)) &&
        (plain || add_passes(s, sample, number, t, e)) && add_sources(s, sample, number, t, e);
    for (int i = 0; ok && i < t->rejected_count; i++)
        ok = row_insert(s, ROW_GUESS, VALUES(of_int(sample), of_int(number), of_int(i)), &t->rejected[i], e);
    return ok;
}

// --- samples ---------------------------------------------------------------------------------------------

static bool add_sample_row(Store *s, const StoreSample *x, int64_t *id, Error *e) {
    int64_t output, there;
    bool found = false;
    StoreSample row = *x;
    if (!x->steps) row.device_head_s = row.device_commit_s = -1;
    int flags = x->flags | (x->divergence ? FLAG_DIVERGED : 0);
    if (!sql_find(s, "sample_find", VALUES(of_int(x->point), of_int(x->pass), of_int(x->prompt)), &there,
                  &found, e))
        return false;
    if (found)
        return error_input(e,
                           "store '%s': prompt %lld of pass %d of point %lld is there already: does another "
                           "process run this?",
                           s->path, (long long)x->prompt, x->pass, (long long)x->point);
    if (!find_or_add_output(s, x->output, &output, e)) return false;
    Value values[ROW_MOST] = {of_int(x->point), of_int(x->pass),     of_int(x->prompt),   of_int(x->attempt),
                              of_id(output),    of_int(x->position), of_real(x->started), of_int(flags)};
    int count = 8;
    row_values(ROW_SAMPLE, &row, values, &count);
    values[count++] = of_int(x->step_count);
    bool ok = sql_run(s, "sample_add", values, count, e);
    *id = sql_last_id(s);
    return ok;
}

static bool add_sample(Store *s, const StoreSample *x, Error *e) {
    int64_t id = 0, layers;
    if (!sql_find(s, "layers_of", VALUES(of_int(x->point)), &layers, NULL, e) ||
        !add_sample_row(s, x, &id, e))
        return false;
    for (int i = 0; x->steps && i < x->step_count; i++)
        if (!add_step(s, id, i, (int)layers, &x->steps[i], e)) return false;
    return (!x->steps || sql_run(s, "sum_steps", VALUES(of_int(id)), e)) &&
           sql_run(s, "sum_accept", VALUES(of_int(id)), e) &&
           sql_run(s, "sum_source", VALUES(of_int(id)), e) && sql_run(s, "sum_rank", VALUES(of_int(id)), e) &&
           (!x->divergence || row_insert(s, ROW_DIVERGENCE, VALUES(of_int(id)), x->divergence, e)) &&
           sql_run(s, "estimates_drop", VALUES(of_int(x->point)), e);
}

bool store_samples(Store *s, const StoreSample *samples, int count, Error *e) {
    bool ok = true;
    if (!sql_enter(s, e)) return false;
    for (int i = 0; i < count && ok; i++) ok = add_sample(s, &samples[i], e);
    return sql_leave(s, ok, e);
}

// --- reading --------------------------------------------------------------------------------------------

bool store_done(Store *s, int64_t point, int pass, int64_t prompt, bool *done, Error *e) {
    int64_t id;
    return sql_find(s, "sample_find", VALUES(of_int(point), of_int(pass), of_int(prompt)), &id, done, e);
}

bool store_score(Store *s, int64_t point, int pass, int64_t prompt, const char *metric, double value,
                 Error *e) {
    int64_t output;
    bool found = false;
    if (!sql_enter(s, e)) return false;
    bool ok =
        sql_find(s, "output_of", VALUES(of_int(point), of_int(pass), of_int(prompt)), &output, &found, e) &&
        (found ||
         error_input(e, "store '%s': no output is kept of this sample, so it has no %s", s->path, metric)) &&
        sql_run(s, "score_set", VALUES(of_int(output), of_int(prompt), of_text(metric), of_real(value)), e);
    return sql_leave(s, ok, e);
}

bool store_flag(Store *s, int64_t point, int pass, int64_t prompt, int flags, Error *e) {
    if (!sql_enter(s, e)) return false;
    bool ok = sql_run(s, "flag_add", VALUES(of_int(point), of_int(pass), of_int(prompt), of_int(flags)), e);
    return sql_leave(s, ok, e);
}
