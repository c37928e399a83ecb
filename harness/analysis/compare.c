// A ratio is made of eight sums: seconds and tokens of both points and of both baselines. Absolute times are
// the same with baselines that took a second for a token.
#include "harness/analysis/compare.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "results/rows.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- the judgement ---------------------------------------------------------------------------------------

Judgement compare_judge(const Ratio *r, double margin, int judgements) {
    const Interval *i = &r->interval;
    if (!isfinite(r->value) || r->prompts < COMPARE_PROMPTS || !r->calm || r->doubted) return JUDGED_UNCLEAR;
    double more = joint_widening((size_t)r->prompts, judgements);
    if (i->low >= 1 - margin && i->high <= 1 + margin) return JUDGED_SAME;
    if (r->value - more * (r->value - i->low) > 1 + margin) return JUDGED_FASTER;
    return r->value + more * (i->high - r->value) < 1 - margin ? JUDGED_SLOWER : JUDGED_UNCLEAR;
}

const char *compare_says(Judgement v) {
    static const char *const WORDS[] = {[JUDGED_SAME] = "no difference",
                                        [JUDGED_FASTER] = "B is faster",
                                        [JUDGED_SLOWER] = "B is slower",
                                        [JUDGED_UNCLEAR] = "no clear difference"};
    return WORDS[v];
}

int compare_judgements(const Comparison *c) {
    int count = 0;
    for (int i = 0; i < c->count; i++) count += c->pairs[i].kind != COMPARED_MACHINE;
    return count > 1 ? count + 1 : count;
}

const char *compare_word(Judgement v) {
    static const char *const WORDS[] = {[JUDGED_SAME] = "same",
                                        [JUDGED_FASTER] = "faster",
                                        [JUDGED_SLOWER] = "slower",
                                        [JUDGED_UNCLEAR] = "unclear"};
    return WORDS[v];
}

// --- sides -----------------------------------------------------------------------------------------------

// "12/3" is cut at the slash if a number follows.
static bool find_run(char *text, CompareSide *out, Error *e) {
    char *slash = strrchr(text, '/'), *end = NULL;
    long point = slash ? strtol(slash + 1, &end, 10) : 0;
    if (slash && slash[1] && !*end && point > 0 && point < INT_MAX) {
        *slash = 0;
        out->point = (int)point;
    }
    return stored_run(out->store, text[0] ? text : NULL, &out->run, e);
}

// FILE, or the part before the last colon if that is a file.
bool compare_find(const char *text, const char *store, CompareSide *out, Error *e) {
    *out = (CompareSide){0};
    char empty[] = "", *copy = mem_text(text, strlen(text)), *run = copy;
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

// --- samples ---------------------------------------------------------------------------------------------

typedef struct Sums {
    double tokens, steps, seconds, base_tokens, base_seconds;
} Sums;

// One prompt in one pass, all its turns, on both sides.
typedef struct Joined {
    int prompt, pass;
    bool disturbed; // any of the four
    Sums a, b;
} Joined;

typedef struct JoinedList {
    Joined *items; // (count)
    size_t count, capacity;
} JoinedList;

EMBED(compare_sql, "harness/analysis/compare.sql")
__asm__(".globl compare_sql\n"); // acceptance.c asks it, too

static int64_t place_of(const Rows *r) { return rows_int(r, 0) << 32 | rows_int(r, 1); }

static Sums sums_of(const Rows *r) {
    return (Sums){rows_real(r, 2), rows_real(r, 3), 1e-9 * rows_real(r, 4), rows_real(r, 5),
                  1e-9 * rows_real(r, 6)};
}

// Merges two sorted lists; items of only one list are left out. offset is added to the prompts' numbers.
static void join(Rows *a, Rows *b, int offset, JoinedList *out) {
    bool has_a = rows_next(a), has_b = rows_next(b);
    while (has_a && has_b) {
        int64_t at_a = place_of(a), at_b = place_of(b);
        if (at_a == at_b) {
            *LIST_ADD(out->items, out->count, out->capacity) =
                (Joined){.prompt = offset + (int)rows_int(a, 0),
                         .pass = (int)rows_int(a, 1),
                         .disturbed = rows_int(a, 7) || rows_int(b, 7),
                         .a = sums_of(a),
                         .b = sums_of(b)};
        }
        if (at_a <= at_b) has_a = rows_next(a);
        if (at_b <= at_a) has_b = rows_next(b);
    }
}

// --- ratios ----------------------------------------------------------------------------------------------

static void add_sums(Sums *to, const Sums *s, double weight) {
    to->tokens += weight * s->tokens;
    to->steps += weight * s->steps;
    to->seconds += weight * s->seconds;
    to->base_tokens += weight * s->base_tokens;
    to->base_seconds += weight * s->base_seconds;
}

static double speedup_of(const Sums *s) {
    double own = s->seconds / s->tokens, base = s->base_seconds / s->base_tokens;
    return own > 0 && base > 0 ? base / own : NAN;
}

static bool ratio_of(void *context, const double *draws, double *out) {
    const JoinedList *l = context;
    Sums a = {0}, b = {0};
    for (size_t i = 0; i < l->count; i++) {
        add_sums(&a, &l->items[i].a, draws ? draws[i] : 1);
        add_sums(&b, &l->items[i].b, draws ? draws[i] : 1);
    }
    *out = speedup_of(&b) / speedup_of(&a);
    return true;
}

// Keeps the undisturbed ones, which stay sorted, where they are enough.
static void drop_disturbed(JoinedList *l, size_t *starts, Ratio *out) {
    JoinedList calm = {.items = mem_new(l->count + 1, sizeof *calm.items), .capacity = l->count + 1};
    for (size_t i = 0; i < l->count; i++)
        if (!l->items[i].disturbed) calm.items[calm.count++] = l->items[i];
    out->disturbed = (int)(l->count - calm.count);
    out->calm = out->disturbed == 0 ||
                sample_prompts(calm.items, calm.count, sizeof *calm.items, starts) >= COMPARE_PROMPTS;
    mem_free(out->calm ? l->items : calm.items);
    if (out->calm) *l = calm;
}

// Sorts the list. all: disturbed or not.
static bool make_ratio(JoinedList *l, bool all, Ratio *out, Error *e) {
    LOCAL_MEMORY size_t *starts = mem_new(l->count + 1, sizeof *starts);
    *out = (Ratio){.value = NAN, .interval = {NAN, NAN, NAN}, .samples = (int)l->count};
    if (l->count) qsort(l->items, l->count, sizeof *l->items, sample_order);
    if (!all) drop_disturbed(l, starts, out);
    out->prompts = sample_prompts(l->items, l->count, sizeof *l->items, starts);
    NestedPlan plan = {starts, (size_t)out->prompts};
    Bootstrap b = {.draws = l->count,
                   .draw = draw_nested,
                   .plan = &plan,
                   .statistic = ratio_of,
                   .context = l,
                   .outputs = 1,
                   .resamples = 2000,
                   .level = 0.95,
                   .seed = 1};
    ratio_of(l, NULL, &out->value);
    return out->prompts < 2 || bootstrap(&b, &out->interval, NULL, e);
}

// --- points ----------------------------------------------------------------------------------------------

typedef struct ComparedRow {
    int64_t id,
        base; // base: the baseline of the same settings, or else the one its speedup divides by; 0: none
    char *label, *dataset, *doubt; // NULL: it has found its counterpart
    char *hash, *rows;       // as configs name it: with the paths of its files; its dataset by the rows' hash
    char *content, *prompts; // by content alone
    bool diverged, above_S;
} ComparedRow;

typedef struct PointList {
    ComparedRow *rows; // (count)
    size_t count, capacity;
} PointList;

static void release_points(PointList *l) {
    for (size_t i = 0; i < l->count; i++) {
        const ComparedRow *r = &l->rows[i];
        MEM_FREE(r->label, r->dataset, r->doubt, r->hash, r->rows, r->content, r->prompts);
    }
    mem_free(l->rows);
}

static char *text_at(const Rows *r, int column) {
    const char *s = rows_text(r, column);
    return mem_text(s, strlen(s));
}

// Measured points of a side, in order. The hash of a file of the user's own that an older program wrote down
// holds its path: such runs are paired by the points' hashes, which hold it, too.
static bool list_points(const CompareSide *side, PointList *out, Error *e) {
    Rows *r = rows_named(side->store, compare_sql, "points", side->run, e);
    rows_bind_int(r, 2, side->point);
    while (rows_next(r)) {
        *LIST_ADD(out->rows, out->count, out->capacity) = (ComparedRow){.id = rows_int(r, 0),
                                                                        .base = rows_int(r, 1),
                                                                        .label = text_at(r, 2),
                                                                        .dataset = text_at(r, 3),
                                                                        .doubt = text_at(r, 4),
                                                                        .hash = text_at(r, 5),
                                                                        .rows = text_at(r, 6),
                                                                        .content = text_at(r, 7),
                                                                        .prompts = text_at(r, 8),
                                                                        .diverged = rows_int(r, 9) != 0,
                                                                        .above_S = rows_int(r, 10) != 0};
    }
    if (!rows_end(r, true, e)) return false;
    return out->count || error_input(e, "run %lld of '%s' has no such point, or nothing of it is measured",
                                     (long long)side->run, store_path(side->store));
}

// --- all of it -------------------------------------------------------------------------------------------

typedef struct Comparing {
    const CompareSide *a, *b;
    bool absolute, same_run;
    PointList p, q;                 // the points of a, of b
    JoinedList all[COMPARED_KINDS]; // the samples of all pairs of a kind
    Comparison *out;
} Comparing;

// base 0: absolute times. Passes that the baseline has not are left out.
static bool join_points(const Comparing *c, const int64_t a[2], const int64_t b[2], int offset,
                        JoinedList *out, Error *e) {
    Rows *x = rows_named(c->a->store, compare_sql, "samples", a[0], e),
         *y = x ? rows_named(c->b->store, compare_sql, "samples", b[0], e) : NULL;
    rows_bind_int(x, 2, a[1]);
    rows_bind_int(y, 2, b[1]);
    join(x, y, offset, out);
    return rows_end(x, rows_end(y, true, e), e);
}

typedef enum { BY_NAMES, BY_CONTENT, BY_PROMPTS } Matching;

static bool is_counterpart(Matching by, const ComparedRow *p, const ComparedRow *q) {
    if (!p->label || !q->label) return false;
    bool same_rows = strcmp(p->rows, q->rows) == 0, same_prompts = strcmp(p->prompts, q->prompts) == 0;
    if (by == BY_NAMES) return same_rows && strcmp(p->hash, q->hash) == 0;
    if (by == BY_CONTENT) return strcmp(p->content, q->content) == 0;
    bool unknown = strcmp(p->rows, "imported") == 0 || strcmp(q->rows, "imported") == 0;
    return same_rows || same_prompts || unknown;
}

// Which of the side's datasets a point is of, from 0.
static int dataset_number(const PointList *l, const ComparedRow *p) {
    int number = 0;
    for (const ComparedRow *one = l->rows; strcmp(one->prompts, p->prompts) != 0; one++) {
        const ComparedRow *first = l->rows;
        while (strcmp(first->prompts, one->prompts) != 0) first++;
        number += first == one;
    }
    return number;
}

static void sum_up(const JoinedList *l, ComparePair *out) {
    Sums a = {0}, b = {0};
    for (size_t i = 0; i < l->count; i++) add_sums(&a, &l->items[i].a, 1), add_sums(&b, &l->items[i].b, 1);
    bool has = out->kind == COMPARED_SPEEDUP;
    out->speedup_a = has ? speedup_of(&a) : NAN;
    out->speedup_b = has ? speedup_of(&b) : NAN;
    out->S_a = a.tokens / a.steps;
    out->S_b = b.tokens / b.steps;
}

// Takes texts of both rows, which then have no counterpart any more. In c->all a prompt that several
// points decoded is one unit, so prompts of different datasets are kept APART.
static bool compare_points(Comparing *c, ComparedRow *p, ComparedRow *q, Error *e) {
    enum { APART = 1 << 24 }; // more than a dataset has prompts
    JoinedList own = {0};
    ComparePair *pair = &c->out->pairs[c->out->count];
    int offset = dataset_number(&c->p, p) % 100 * APART;
    pair->a = p->id, pair->b = q->id;
    pair->kind = c->absolute || !p->base || !q->base                    ? COMPARED_TIME
                 : p->base == p->id && q->base == q->id && !c->same_run ? COMPARED_MACHINE
                                                                        : COMPARED_SPEEDUP;
    bool based = pair->kind == COMPARED_SPEEDUP, machine = p->base && q->base && !c->same_run;
    for (size_t i = 0; i < c->p.count; i++) // a pair that was compared has this baseline, too
        machine = machine && (c->p.rows[i].label || c->p.rows[i].base != p->base);
    const int64_t a[2] = {p->id, based ? p->base : 0}, b[2] = {q->id, based ? q->base : 0};
    bool ok = join_points(c, a, b, 0, &own, e) &&
              (pair->kind == COMPARED_MACHINE || join_points(c, a, b, offset, &c->all[pair->kind], e)) &&
              (!machine || join_points(c, (int64_t[2]){p->base, 0}, (int64_t[2]){q->base, 0}, offset,
                                       &c->all[COMPARED_MACHINE], e)) &&
              make_ratio(&own, pair->kind == COMPARED_MACHINE, &pair->ratio, e);
    if (ok) sum_up(&own, pair);
    mem_free(own.items);
    if (!ok) return false;
    pair->ratio.doubted = based && (p->above_S || q->above_S);
    pair->lost_text = q->diverged && !p->diverged;
    pair->label_a = p->label, pair->label_b = q->label, pair->dataset = p->dataset;
    pair->doubt_a = p->doubt, pair->doubt_b = q->doubt;
    p->label = q->label = p->dataset = p->doubt = q->doubt = NULL;
    c->out->count++;
    return true;
}

// Each point once: equal names first, for several may have equal content.
static bool pair_all(Comparing *c, Error *e) {
    bool ok = true, single = c->a->point && c->b->point;
    c->out->pairs = mem_new(c->p.count, sizeof *c->out->pairs);
    for (int by = single ? BY_PROMPTS : BY_NAMES; by <= (single ? BY_PROMPTS : BY_CONTENT); by++)
        for (size_t i = 0; ok && i < c->p.count; i++)
            for (size_t k = 0; ok && k < c->q.count; k++)
                if (is_counterpart((Matching)by, &c->p.rows[i], &c->q.rows[k]))
                    ok = compare_points(c, &c->p.rows[i], &c->q.rows[k], e);
    c->out->alone = (int)(c->p.count + c->q.count) - 2 * c->out->count;
    return ok;
}

// Whether the runs differ in content of this kind, as far as both know theirs.
static bool ask_contents(const Comparing *c, const char *kind, bool *differ, Error *e) {
    Rows *x = rows_named(c->a->store, compare_sql, "content", c->a->run, e),
         *y = x ? rows_named(c->b->store, compare_sql, "content", c->b->run, e) : NULL;
    rows_bind_text(x, 2, kind);
    rows_bind_text(y, 2, kind);
    *differ = rows_next(x) && rows_next(y) && strcmp(rows_text(x, 0), rows_text(y, 0)) != 0;
    return rows_end(x, rows_end(y, true, e), e);
}

static bool compare_all(Comparing *c, Error *e) {
    Comparison *out = c->out;
    if (!pair_all(c, e) || !ask_contents(c, "program", &out->other_program, e) ||
        !ask_contents(c, "machine", &out->other_machine, e))
        return false;
    bool any = false;
    for (int i = 0; i < COMPARED_KINDS; i++) any = any || c->all[i].count;
    if (!any)
        return error_input(
            e, "no prompt is on both sides: the content of models, prompts, methods or settings differs; "
               "two single points, as 12/3, need only the same prompts");
    out->kind = c->all[COMPARED_SPEEDUP].count ? COMPARED_SPEEDUP : COMPARED_TIME;
    for (int i = 0; i < out->count; i++)
        out->all.doubted =
            out->all.doubted || (out->pairs[i].kind == out->kind && out->pairs[i].ratio.doubted);
    bool doubted = out->all.doubted, ok = make_ratio(&c->all[out->kind], false, &out->all, e) &&
                                          make_ratio(&c->all[COMPARED_MACHINE], true, &out->machine, e);
    out->all.doubted = doubted;
    return ok;
}

bool compare_sides(const CompareSide *a, const CompareSide *b, bool absolute, Comparison *out, Error *e) {
    Comparing c = {.a = a, .b = b, .absolute = absolute, .out = out};
    c.same_run = a->run == b->run && strcmp(store_path(a->store), store_path(b->store)) == 0;
    *out = (Comparison){0};
    bool ok = list_points(a, &c.p, e) && list_points(b, &c.q, e) && compare_all(&c, e);
    for (int i = 0; i < COMPARED_KINDS; i++) mem_free(c.all[i].items);
    release_points(&c.p);
    release_points(&c.q);
    if (!ok) compare_release(out);
    return ok;
}

void compare_release(Comparison *c) {
    for (int i = 0; i < c->count; i++) {
        ComparePair *p = &c->pairs[i];
        MEM_FREE(p->label_a, p->label_b, p->dataset, p->doubt_a, p->doubt_b);
    }
    mem_free(c->pairs);
    *c = (Comparison){0};
}
