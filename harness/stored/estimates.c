// A point's samples and its baseline's, joined by pass and prompt; the turns of a prompt are not summed by
// SQLite, which takes twice as long.
#include "harness/stored/estimates.h"

#include "engine/base/memory.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

typedef struct PairList {
    TallyPair *pairs; // (count)
    size_t count, capacity;
} PairList;

static double real_or_nan(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? NAN : rows_real(r, column);
}

static bool add_row(PairList *list, Rows *r) {
    mem_grow(&list->pairs, &list->capacity, list->count + 1, sizeof *list->pairs);
    list->pairs[list->count++] = (TallyPair){.prompt = (int)rows_int(r, 0),
                                             .pass = (int)rows_int(r, 1),
                                             .tokens = rows_real(r, 2),
                                             .steps = rows_real(r, 3),
                                             .decode_s = 1e-9 * rows_real(r, 4),
                                             .prefill_s = 1e-9 * rows_real(r, 5),
                                             .base_tokens = real_or_nan(r, 6),
                                             .base_decode_s = 1e-9 * real_or_nan(r, 7),
                                             .base_prefill_s = 1e-9 * real_or_nan(r, 8),
                                             .prefill_tokens = rows_real(r, 9),
                                             .prefill_steps = rows_real(r, 10)};
    return true;
}

// What a point divides by is NULL where it has no baseline. Of imported samples prefill may be in decode_ns.
static bool read_pairs(Store *store, int64_t point, const SampleChoice *choice, PairList *out, Error *e) {
    static const char SQL[] =
        "SELECT number, a.pass, a.tokens, a.steps, a.decode_ns, coalesce(a.prefill_ns, 0),"
        " b.tokens, b.decode_ns, iif(b.id, coalesce(b.prefill_ns, 0), NULL), a.prefill_tokens, "
        "a.prefill_steps"
        " FROM point_base AS p JOIN sample a ON a.point_id = p.point_id JOIN prompt ON prompt.id = "
        "a.prompt_id"
        " LEFT JOIN sample b ON b.point_id = base_id AND b.pass = a.pass AND b.prompt_id = a.prompt_id"
        " WHERE p.point_id = ?1 AND (base_id IS NULL OR b.id)"
        " AND (?2 IS NULL OR ?2 = (SELECT subtask FROM subtask WHERE prompt_id = prompt.id))"
        " AND (?3 < 0 OR number % 2 = ?3)";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    bool ok = true;
    out->count = 0;
    rows_bind_int(r, 1, point);
    rows_bind_text(r, 2, choice->subtask);
    rows_bind_int(r, 3, choice->parity);
    while (ok && rows_next(r)) ok = add_row(out, r);
    out->count = (size_t)tally_sum_turns(out->pairs, (int)out->count);
    return rows_end(r, ok, e);
}

// What does not apply is not stored: a null backend's times are all 0.
static bool store_tally(Store *store, int64_t point, const Tally *t, Error *e) {
    for (int i = 0; i < TALLY_METRICS; i++) {
        const Interval *in = &t->interval[i];
        StoreEstimate row = {.metric = tally_names[i],
                             .value = t->value[i],
                             .low = t->has_interval ? in->low : NAN,
                             .high = t->has_interval ? in->high : NAN,
                             .deviation = t->has_interval ? in->se : NAN,
                             .resamples = t->resamples[i],
                             .seed = TALLY_SEED};
        if (!isnan(t->value[i]) && !store_estimate(store, point, &row, e)) return false;
    }
    return true;
}

static const SampleChoice ALL = {.parity = -1};

typedef struct PointRow {
    int64_t id;
    bool sampled;
} PointRow;

static bool list_points(Store *store, int64_t run, PointRow **out, size_t *count, Error *e) {
    static const char SQL[] = "SELECT id, temperature > 0 FROM point WHERE run_id = ?1"
                              " AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)";
    size_t capacity = 0;
    void *rows = NULL;
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    *count = 0;
    rows_bind_int(r, 1, run);
    bool ok = true;
    while (ok && rows_next(r)) {
        mem_grow(&rows, &capacity, *count + 1, sizeof **out);
        ((PointRow *)rows)[(*count)++] = (PointRow){rows_int(r, 0), rows_int(r, 1) != 0};
    }
    *out = rows;
    return rows_end(r, ok, e);
}

bool estimates_missing(Store *store, int64_t run, bool *missing, Error *e) {
    static const char SQL[] =
        "SELECT count(*) FROM point WHERE run_id = ?1"
        " AND iif(EXISTS (SELECT 1 FROM estimate WHERE point_id = point.id AND metric = 'speedup'),"
        " 'speedup_over_S', 'S_reference')"
        " NOT IN (SELECT metric FROM estimate WHERE point_id = point.id)"
        " AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)";
    int64_t count;
    if (!rows_one_int(store, SQL, run, &count, e)) return false;
    *missing = count > 0;
    return true;
}

bool estimates_make(Store *store, int64_t run, Error *e) {
    PointRow *points = NULL;
    PairList list = {0};
    size_t count = 0;
    bool ok = list_points(store, run, &points, &count, e);
    for (size_t i = 0; ok && i < count; i++) {
        Tally t;
        ok = read_pairs(store, points[i].id, &ALL, &list, e) &&
             tally(list.pairs, (int)list.count, points[i].sampled, &t, e) && store_begin_lightly(store, e) &&
             store_tally(store, points[i].id, &t, e) && store_commit(store, e);
    }
    if (!ok) store_rollback(store);
    mem_free(list.pairs);
    mem_free(points);
    return ok;
}

bool estimates_ensure(Store **store, int64_t run, Error *e) {
    bool missing;
    if (estimates_missing(*store, run, &missing, e)) {
        if (!missing) return true;
        char *path = mem_text(store_path(*store), strlen(store_path(*store)));
        store_close(*store);
        *store = store_open(path, STORE_WRITE, NULL, NULL);
        if (*store) estimates_make(*store, run, NULL);
        store_close(*store);
        *store = store_open(path, STORE_READ, NULL, e);
        mem_free(path);
        return *store != NULL;
    }
    store_close(*store);
    *store = NULL;
    return false;
}

bool estimates_tally(Store *store, int64_t point, bool sampled, const SampleChoice *choice, Tally *out,
                     Error *e) {
    PairList list = {0};
    bool ok = read_pairs(store, point, choice, &list, e) &&
              (choice->plain ? tally_plain : tally)(list.pairs, (int)list.count, sampled, out, e);
    mem_free(list.pairs);
    return ok;
}
