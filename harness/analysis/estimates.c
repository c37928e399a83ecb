// A point's samples and its baseline's, joined by pass and prompt; the turns of a prompt are not summed by
// SQLite, which takes twice as long.
#include "harness/analysis/estimates.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/base/text.h"
#include "results/rows.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct PairList {
    TallyPair *pairs; // (count)
    size_t count, capacity;
} PairList;

EMBED(estimates_sql, "harness/analysis/estimates.sql")

// A point's baseline is NULL if it has none. Of imported samples prefill may be in decode_ns.
static bool read_pairs(Store *store, int64_t point, const SampleChoice *choice, PairList *out, Error *e) {
    Rows *r = rows_named(store, estimates_sql, "pairs", point, e);
    out->count = 0;
    rows_bind_text(r, 2, choice->subtask);
    rows_bind_int(r, 3, choice->parity);
    rows_bind_text(r, 4, choice->task);
    while (rows_next(r)) {
        *LIST_ADD(out->pairs, out->count, out->capacity) =
            (TallyPair){.prompt = (int)rows_int(r, 0),
                        .pass = (int)rows_int(r, 1),
                        .tokens = rows_real(r, 2),
                        .steps = rows_real(r, 3),
                        .decode_s = 1e-9 * rows_real(r, 4),
                        .prefill_s = 1e-9 * rows_real(r, 5),
                        .base_tokens = rows_real(r, 6),
                        .base_decode_s = 1e-9 * rows_real(r, 7),
                        .base_prefill_s = 1e-9 * rows_real(r, 8),
                        .prefill_tokens = rows_real(r, 9),
                        .prefill_steps = rows_real(r, 10),
                        .accepted = rows_real(r, 11),
                        .drafted = rows_real(r, 12)};
    }
    out->count = (size_t)tally_sum_turns(out->pairs, (int)out->count);
    return rows_end(r, true, e);
}

// All metrics, or some of them of a task (else NULL). A value that doesn't apply isn't stored: a null
// backend's times are all 0.
static bool store_tally(Store *store, int64_t point, const Tally *t, const char *task, Error *e) {
    bool ok = true;
    for (int m = 0; ok && m < TALLY_METRICS; m++) {
        LOCAL_TEXT name = {0};
        if (isnan(t->value[m]) || (task && m != TALLY_S && m != TALLY_ACCEPTANCE && m != TALLY_SPEEDUP))
            continue;
        text_printf(&name, "%s%s%s", tally_names[m], task ? " of " : "", task ? task : "");
        StoreEstimate row = {.metric = text_get(&name),
                             .value = t->value[m],
                             .low = t->has_interval ? t->interval[m].low : NAN,
                             .high = t->has_interval ? t->interval[m].high : NAN,
                             .deviation = t->has_interval ? t->interval[m].se : NAN,
                             .resamples = t->resamples[m],
                             .seed = TALLY_SEED};
        ok = store_estimate(store, point, &row, e);
    }
    return ok;
}

bool estimates_missing(Store *store, int64_t run, EstimatesScope scope, bool *missing, Error *e) {
    int64_t points, tasks = 0;
    if (!rows_named_int(store, estimates_sql, "missing", run, &points, e) ||
        (scope == ESTIMATES_OF_TASKS &&
         !rows_named_int(store, estimates_sql, "missing_of_tasks", run, &tasks, e)))
        return false;
    *missing = points > 0 || tasks > 0;
    return true;
}

static bool make_tasks(Store *store, int64_t point, PairList *list, Error *e) {
    Rows *r = rows_named(store, estimates_sql, "tasks", point, e);
    bool ok = true;
    while (ok && rows_next(r)) {
        SampleChoice choice = {.parity = -1, .task = rows_text(r, 0)};
        Tally t;
        if (!(ok = read_pairs(store, point, &choice, list, e)) || !list->count) continue;
        tally(list->pairs, (int)list->count, false, &t);
        ok = store_tally(store, point, &t, choice.task, e);
    }
    return rows_end(r, ok, e);
}

bool estimates_make(Store *store, int64_t run, EstimatesScope scope, Error *e) {
    LOCAL_MEMORY int64_t *points = NULL;
    PairList list = {0};
    size_t count = 0, capacity = 0;
    Rows *r = rows_named(store, estimates_sql, "points", run, e);
    while (rows_next(r)) { *LIST_ADD(points, count, capacity) = rows_int(r, 0); }
    bool ok = rows_end(r, true, e);
    for (const int64_t *p = points; ok && p < points + count; p++) {
        Tally t;
        if (!(ok = read_pairs(store, *p, &(SampleChoice){.parity = -1}, &list, e))) break;
        tally(list.pairs, (int)list.count, false, &t);
        ok = store_begin_lightly(store, e) && store_tally(store, *p, &t, NULL, e) &&
             (scope == ESTIMATES_OF_POINTS || make_tasks(store, *p, &list, e)) && store_commit(store, e);
    }
    if (!ok) store_rollback(store);
    mem_free(list.pairs);
    return ok;
}

bool estimates_ensure(Store **store, int64_t run, EstimatesScope scope, Error *e) {
    bool missing, ok = estimates_missing(*store, run, scope, &missing, e);
    if (ok && !missing) return true;
    LOCAL_MEMORY char *path = mem_text(store_path(*store), strlen(store_path(*store)));
    store_close(*store);
    *store = ok ? store_open(path, STORE_WRITE, NULL, NULL) : NULL;
    if (*store) estimates_make(*store, run, scope, NULL);
    store_close(*store);
    *store = ok ? store_open(path, STORE_READ, NULL, e) : NULL;
    return *store != NULL;
}

bool estimates_tally(Store *store, int64_t point, const SampleChoice *choice, Tally *out, Error *e) {
    PairList list = {0};
    bool ok = read_pairs(store, point, choice, &list, e);
    if (ok) tally(list.pairs, (int)list.count, choice->plain, out);
    mem_free(list.pairs);
    return ok;
}

// --- sums over samples, and their intervals

const char *const tally_names[TALLY_METRICS] = {
    "S",           "speedup",          "speedup_e2e",    "speedup_specbench", "tokens_per_s",
    "S_reference", "tokens_per_s_e2e", "speedup_over_S", "acceptance"};

// Tokens per second: of one pair, or of prompts summed over a pass. Spec-Bench divides within a pass, and
// takes the mean of passes.
typedef struct Rates {
    int pass; // its place in Pairs.of_pass
    double own, base;
} Rates;

typedef struct Pairs {
    const TallyPair *items;
    int count;
    Rates *of_pair; // (count): found once, as thousands of resamples ask for them
    Rates *of_pass; // (pass_count), of one resample
    int pass_count;
} Pairs;

static void add_pair(TallyPair *sum, const TallyPair *p, double weight) {
    sum->tokens += weight * p->tokens;
    sum->steps += weight * p->steps;
    sum->decode_s += weight * p->decode_s;
    sum->prefill_s += weight * p->prefill_s;
    sum->base_tokens += weight * p->base_tokens;
    sum->base_decode_s += weight * p->base_decode_s;
    sum->base_prefill_s += weight * p->base_prefill_s;
    sum->prefill_tokens += weight * p->prefill_tokens;
    sum->prefill_steps += weight * p->prefill_steps;
    sum->accepted += weight * p->accepted;
    sum->drafted += weight * p->drafted;
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

// Passes that a resample drew nothing of have no ratio.
static double mean_of_passes(const Pairs *pairs) {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < pairs->pass_count; i++)
        if (pairs->of_pass[i].base > 0) {
            sum += pairs->of_pass[i].own / pairs->of_pass[i].base;
            count++;
        }
    return ratio(sum, count);
}

static void metrics(const TallyPair *sum, double *out) {
    double tokens = ratio(sum->tokens, sum->base_tokens); // 1, where texts are the same
    double both_s = sum->decode_s + sum->prefill_s, base_both_s = sum->base_decode_s + sum->base_prefill_s;
    out[TALLY_S] = ratio(sum->tokens, sum->steps);
    out[TALLY_SPEEDUP] = ratio(sum->base_decode_s, sum->decode_s) * tokens;
    out[TALLY_SPEEDUP_E2E] = ratio(base_both_s, both_s) * tokens;
    out[TALLY_RATE] = ratio(sum->tokens, sum->decode_s);
    out[TALLY_S_REFERENCE] = ratio(sum->tokens + sum->prefill_tokens, sum->steps + sum->prefill_steps);
    out[TALLY_RATE_E2E] = ratio(sum->tokens, both_s);
    out[TALLY_OVER_S] = ratio(out[TALLY_SPEEDUP], out[TALLY_S]);
    out[TALLY_ACCEPTANCE] = ratio(sum->accepted, sum->drafted);
}

// NAN is what the point does not have (a null backend takes no time that a clock sees), or what a resample
// does not (of answers without a step).
static bool statistic(void *context, const double *draws, double *out) {
    const Pairs *pairs = context;
    TallyPair sum = {0};
    for (int i = 0; i < pairs->pass_count; i++) pairs->of_pass[i] = (Rates){0};
    for (int i = 0; i < pairs->count; i++) {
        double weight = draws ? draws[i] : 1;
        add_pair(&sum, &pairs->items[i], weight);
        const Rates *pair = &pairs->of_pair[i];
        pairs->of_pass[pair->pass].own += weight * pair->own;
        pairs->of_pass[pair->pass].base += weight * pair->base;
    }
    metrics(&sum, out);
    out[TALLY_SPECBENCH] = mean_of_passes(pairs);
    return true;
}

int sample_order(const void *a, const void *b) {
    const int *p = a, *q = b;
    if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
    return (p[1] > q[1]) - (p[1] < q[1]);
}

int sample_prompts(const void *samples, size_t count, size_t size, size_t *starts) {
    int prompts = 0, last = 0;
    for (size_t i = 0; i < count; i++) {
        int prompt = *(const int *)(const void *)((const char *)samples + i * size);
        if (i == 0 || prompt != last) starts[prompts++] = i;
        last = prompt;
    }
    starts[prompts] = count;
    return prompts;
}

static void sort(TallyPair *pairs, int count) {
    if (count) qsort(pairs, (size_t)count, sizeof *pairs, sample_order);
}

int tally_sum_turns(TallyPair *pairs, int count) {
    int kept = 0;
    sort(pairs, count);
    for (int i = 0; i < count; i++)
        if (kept && sample_order(&pairs[kept - 1], &pairs[i]) == 0) add_pair(&pairs[kept - 1], &pairs[i], 1);
        else pairs[kept++] = pairs[i];
    return kept;
}

static int by_number(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

// Fills `passes` by the passes that there are, and gives their number.
static int list_passes(const TallyPair *pairs, int count, int *passes) {
    int distinct = 0;
    for (int i = 0; i < count; i++) passes[i] = pairs[i].pass;
    if (count) qsort(passes, (size_t)count, sizeof *passes, by_number);
    for (int i = 0; i < count; i++)
        if (i == 0 || passes[i] != passes[i - 1]) passes[distinct++] = passes[i];
    return distinct;
}

static Rates rates_of(const TallyPair *p, const int *passes, int pass_count) {
    const int *at = bsearch(&p->pass, passes, (size_t)pass_count, sizeof *passes, by_number);
    double seconds = p->decode_s + p->prefill_s, base_seconds = p->base_decode_s + p->base_prefill_s;
    return (Rates){.pass = (int)(at - passes),
                   .own = seconds > 0 ? p->tokens / seconds : 0,
                   .base = base_seconds > 0 ? p->base_tokens / base_seconds : 0};
}

void tally(TallyPair *pairs, int count, bool plain, Tally *out) {
    size_t room = (size_t)count + 1;
    LOCAL_MEMORY size_t *starts = mem_new(room, sizeof *starts);
    LOCAL_MEMORY int *passes = mem_new(room, sizeof *passes);
    Pairs all = {.items = pairs,
                 .count = count,
                 .of_pair = mem_new(room, sizeof(Rates)),
                 .of_pass = mem_new(room, sizeof(Rates))};
    sort(pairs, count);
    all.pass_count = list_passes(pairs, count, passes);
    for (int i = 0; i < count; i++) all.of_pair[i] = rates_of(&pairs[i], passes, all.pass_count);
    *out = (Tally){.pairs = count, .prompts = sample_prompts(pairs, (size_t)count, sizeof *pairs, starts)};
    out->has_interval = !plain && out->prompts > 1;
    statistic(&all, NULL, out->value);
    NestedPlan plan = {starts, (size_t)out->prompts};
    Bootstrap b = {.draws = (size_t)count,
                   .draw = draw_nested,
                   .plan = &plan,
                   .statistic = statistic,
                   .context = &all,
                   .outputs = TALLY_METRICS,
                   .resamples = TALLY_RESAMPLES,
                   .level = 0.95,
                   .seed = TALLY_SEED};
    UNUSED bool ok = !out->has_interval || bootstrap(&b, out->interval, out->resamples, NULL);
    assert(ok); // every resample has an answer
    MEM_FREE(all.of_pass, all.of_pair);
}
