#include "harness/stored/compare.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "harness/stored/stored.h"
#include "results/rows.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for a comparison"); }

// --- the judgement ---------------------------------------------------------------------------------------

Judgement compare_judge(const Tally *t, double margin) {
    const Interval *i = &t->interval[TALLY_SPEEDUP];
    if (!t->has_interval) return JUDGED_UNCLEAR;
    if (i->low >= 1 - margin && i->high <= 1 + margin) return JUDGED_SAME;
    if (i->low > 1 + margin) return JUDGED_FASTER;
    return i->high < 1 - margin ? JUDGED_SLOWER : JUDGED_UNCLEAR;
}

const char *compare_word(Judgement v) {
    static const char *const WORDS[] = {[JUDGED_SAME] = "same",
                                        [JUDGED_FASTER] = "faster",
                                        [JUDGED_SLOWER] = "slower",
                                        [JUDGED_UNCLEAR] = "cannot tell"};
    return WORDS[v];
}

// --- sides -----------------------------------------------------------------------------------------------

// "12/3" is cut at the slash where a number stands after it.
static bool find_run(char *text, CompareSide *out, Error *e) {
    char *slash = strrchr(text, '/'), *end = NULL;
    long point = slash ? strtol(slash + 1, &end, 10) : 0;
    if (slash && slash[1] && !*end && point > 0 && point < INT_MAX) {
        *slash = 0;
        out->point = (int)point;
    }
    return stored_run(out->store, text[0] ? text : NULL, &out->run, e);
}

// FILE, or what stands before the last colon, if that is one.
bool compare_find(const char *text, const char *store, CompareSide *out, Error *e) {
    *out = (CompareSide){0};
    char empty[] = "", *copy = mem_text(text, strlen(text)), *run = copy;
    if (!copy) return out_of_memory(e);
    char *colon = strrchr(copy, ':');
    if (file_exists(text)) run = empty;
    else if (colon) {
        *colon = 0;
        if (file_exists(copy)) run = colon + 1;
        else *colon = ':';
    }
    out->store = store_open(run == copy ? store : copy, STORE_READ, NULL, e);
    bool ok = out->store && find_run(run, out, e);
    mem_free(copy);
    if (ok) return true;
    store_close(out->store);
    *out = (CompareSide){0};
    return error_within(e, "'%s'", text);
}

// --- what is there ---------------------------------------------------------------------------------------

typedef struct PointRow {
    int64_t id;
    char *hash, *label, *dataset, *dataset_hash;
    bool diverged;
} PointRow;

typedef struct PointList {
    PointRow *rows; // (count)
    size_t count, capacity;
} PointList;

static void release_points(PointList *l) {
    for (size_t i = 0; i < l->count; i++) {
        mem_free(l->rows[i].hash);
        mem_free(l->rows[i].label);
        mem_free(l->rows[i].dataset);
        mem_free(l->rows[i].dataset_hash);
    }
    mem_free(l->rows);
}

static char *text_at(const Rows *r, int column) {
    const char *s = rows_text(r, column);
    return mem_text(s, strlen(s));
}

static bool add_point(PointList *l, const Rows *r, Error *e) {
    void *rows = l->rows;
    if (!mem_grow(&rows, &l->capacity, l->count + 1, sizeof *l->rows)) return out_of_memory(e);
    l->rows = rows;
    PointRow *p = &l->rows[l->count++];
    *p = (PointRow){rows_int(r, 0), text_at(r, 1), text_at(r, 2),
                    text_at(r, 3),  text_at(r, 4), rows_int(r, 5) != 0};
    return (p->hash && p->label && p->dataset && p->dataset_hash) || out_of_memory(e);
}

// Measured points of a side, in order.
static bool list_points(const CompareSide *side, PointList *out, Error *e) {
    static const char SQL[] =
        "SELECT point.id, point.hash, label, dataset.name, dataset.hash,"
        " EXISTS (SELECT 1 FROM sample WHERE point_id = point.id AND flags & 16)"
        " FROM point JOIN dataset ON dataset.id = dataset_id"
        " WHERE run_id = ?1 AND (?2 = 0 OR point.number = ?2)"
        " AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id) ORDER BY point.number";
    Rows *r = rows_open(side->store, SQL, e);
    if (!r) return false;
    bool ok = true;
    rows_bind_int(r, 1, side->run);
    rows_bind_int(r, 2, side->point);
    while (ok && rows_next(r)) ok = add_point(out, r, e);
    if (!rows_end(r, ok, e)) return false;
    if (out->count) return true;
    return error_input(e, "run %lld of '%s' has no such point, or nothing of it is measured",
                       (long long)side->run, store_path(side->store));
}

// --- samples, joined -------------------------------------------------------------------------------------

// Prompt by prompt, pass by pass, all turns of a prompt together.
static Rows *open_samples(Store *store, int64_t point, Error *e) {
    static const char SQL[] = "SELECT number, pass, sum(tokens), sum(steps), sum(decode_ns), sum(prefill_ns)"
                              " FROM sample JOIN prompt ON prompt.id = prompt_id WHERE point_id = ?1"
                              " GROUP BY number, pass ORDER BY number, pass";
    Rows *r = rows_open(store, SQL, e);
    if (r) rows_bind_int(r, 1, point);
    return r;
}

static int64_t place_of(const Rows *r) { return rows_int(r, 0) << 32 | rows_int(r, 1); }

typedef struct PairList {
    TallyPair *pairs; // (count)
    size_t count, capacity;
} PairList;

// A stands where tally has the baseline.
static bool add_pair(PairList *l, const Rows *a, const Rows *b, int offset, Error *e) {
    void *pairs = l->pairs;
    if (!mem_grow(&pairs, &l->capacity, l->count + 1, sizeof *l->pairs)) return out_of_memory(e);
    l->pairs = pairs;
    l->pairs[l->count++] = (TallyPair){.prompt = offset + (int)rows_int(b, 0),
                                       .pass = (int)rows_int(b, 1),
                                       .tokens = rows_real(b, 2),
                                       .steps = rows_real(b, 3),
                                       .decode_s = 1e-9 * rows_real(b, 4),
                                       .prefill_s = 1e-9 * rows_real(b, 5),
                                       .base_tokens = rows_real(a, 2),
                                       .base_decode_s = 1e-9 * rows_real(a, 4),
                                       .base_prefill_s = 1e-9 * rows_real(a, 5)};
    return true;
}

typedef struct Joined {
    PairList pairs;
    double tokens_a, steps_a;
} Joined;

// Merges two sorted lists; what stands in one only is left out. offset is added to the prompts' numbers.
static bool join(Rows *a, Rows *b, int offset, Joined *out, Error *e) {
    bool ok = true, has_a = rows_next(a), has_b = rows_next(b);
    while (ok && has_a && has_b) {
        int64_t at_a = place_of(a), at_b = place_of(b);
        if (at_a == at_b) {
            ok = add_pair(&out->pairs, a, b, offset, e);
            out->tokens_a += rows_real(a, 2);
            out->steps_a += rows_real(a, 3);
        }
        if (at_a <= at_b) has_a = rows_next(a);
        if (at_b <= at_a) has_b = rows_next(b);
    }
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

typedef struct Comparing {
    const CompareSide *a, *b;
    PointList p, q; // the points of a, of b
    Joined all;     // the samples of all pairs
    Comparison *out;
} Comparing;

static bool join_points(const Comparing *c, const PointRow *p, const PointRow *q, int offset, Joined *out,
                        Error *e) {
    Rows *a = open_samples(c->a->store, p->id, e), *b = a ? open_samples(c->b->store, q->id, e) : NULL;
    bool ok = b && join(a, b, offset, out, e);
    return rows_end(a, rows_end(b, ok, e), e);
}

static bool is_counterpart(const Comparing *c, const PointRow *p, const PointRow *q) {
    if (!p->label || !q->label || strcmp(p->dataset_hash, q->dataset_hash) != 0) return false;
    return (c->a->point && c->b->point) || strcmp(p->hash, q->hash) == 0;
}

// Which of the side's datasets a point is of, from 0.
static int dataset_number(const PointList *l, const PointRow *p) {
    int number = 0;
    for (const PointRow *one = l->rows; strcmp(one->dataset_hash, p->dataset_hash) != 0; one++) {
        const PointRow *first = l->rows;
        while (strcmp(first->dataset_hash, one->dataset_hash) != 0) first++;
        number += first == one;
    }
    return number;
}

// Takes the texts of both rows, which then have no counterpart any more. In c->all a prompt that several
// points decoded is one unit, so prompts of different datasets are kept APART.
static bool compare_points(Comparing *c, PointRow *p, PointRow *q, Error *e) {
    enum { APART = 1 << 24 }; // more than a dataset has prompts
    Joined own = {0};
    ComparePair *pair = &c->out->pairs[c->out->count];
    int offset = dataset_number(&c->p, p) % 100 * APART;
    bool ok = join_points(c, p, q, 0, &own, e) && join_points(c, p, q, offset, &c->all, e) &&
              tally(own.pairs.pairs, (int)own.pairs.count, true, &pair->tally, e);
    mem_free(own.pairs.pairs);
    if (!ok) return false;
    pair->S_a = own.steps_a > 0 ? own.tokens_a / own.steps_a : 0;
    pair->lost_text = q->diverged && !p->diverged;
    pair->label_a = p->label;
    pair->label_b = q->label;
    pair->dataset = p->dataset;
    p->label = q->label = p->dataset = NULL;
    c->out->count++;
    return true;
}

static bool compare_all(Comparing *c, Error *e) {
    const PairList *all = &c->all.pairs;
    bool ok = true;
    c->out->pairs = mem_alloc(c->p.count, sizeof *c->out->pairs);
    if (!c->out->pairs) return out_of_memory(e);
    for (size_t i = 0; ok && i < c->p.count; i++)
        for (size_t k = 0; ok && k < c->q.count; k++)
            if (is_counterpart(c, &c->p.rows[i], &c->q.rows[k]))
                ok = compare_points(c, &c->p.rows[i], &c->q.rows[k], e);
    c->out->alone = (int)(c->p.count + c->q.count) - 2 * c->out->count;
    if (ok && all->count == 0)
        ok =
            error_input(e, "no prompt stands on both sides: the points, or what their datasets hold, differ");
    return ok && tally(all->pairs, (int)all->count, true, &c->out->all, e);
}

bool compare_sides(const CompareSide *a, const CompareSide *b, Comparison *out, Error *e) {
    Comparing c = {.a = a, .b = b, .out = out};
    *out = (Comparison){0};
    bool ok = list_points(a, &c.p, e) && list_points(b, &c.q, e) && compare_all(&c, e);
    mem_free(c.all.pairs.pairs);
    release_points(&c.p);
    release_points(&c.q);
    if (!ok) compare_release(out);
    return ok;
}

void compare_release(Comparison *c) {
    for (int i = 0; i < c->count; i++) {
        mem_free(c->pairs[i].label_a);
        mem_free(c->pairs[i].label_b);
        mem_free(c->pairs[i].dataset);
    }
    mem_free(c->pairs);
    *c = (Comparison){0};
}
