// The cells of a table that are computed from many points at once: fits. Their inputs are the points of the
// run that the table shows.
#include "harness/papers/computed.h"

#include "engine/base/json.h"

#include "engine/base/memory.h"
#include "harness/analysis/compare.h"
#include "harness/analysis/stored.h"
#include "harness/papers/table.h"
#include "harness/price/priced.h"

// --- fits ------------------------------------------------------------------------------------------------

// The paper's law where a point has W = G; where none has, each step's own candidates, which take longer.
static bool put_set(Store *store, const StoredSet *set, bool alone, Text *out, Error *e) {
    LOCAL_TEXT tsv = {0};
    LOCAL(points_release) Points points = {0};
    LOCAL(fit_release) Fit fit = {0};
    Error why = {0};
    FitOptions o = {.bonus_dropped = set->bonus_dropped, .resamples = 1000, .level = 0.95, .alone = alone};
    text_printf(out, "{\"points_of\": %s, \"fit\": ", set->points);
    bool read = stored_points(store, set, &tsv, &o.output, &why) &&
                points_parse(text_get(&tsv), tsv.length, set->title, &points, &why),
         fitted = read && fit_run(&points, &o, &fit, &why);
    if (read && !fitted) {
        o.law = FIT_CORRECTED, o.resamples = 100;
        fitted = fit_run(&points, &o, &fit, &why);
    }
    if (!fitted && why.kind == ERROR_SYSTEM) *e = why;
    bool ok = fitted ? fit_report_json(NULL, &o, &fit, out) : why.kind != ERROR_SYSTEM;
    if (!fitted) text_puts(out, "null");
    text_puts(out, "}");
    return ok;
}

static bool put_fits(Store *store, int64_t run, bool alone, Text *out, Error *e) {
    LOCAL(stored_sets_release) StoredSets sets = {0};
    Error none = {0};
    bool ok = stored_sets(store, run, &sets, &none) || none.kind != ERROR_SYSTEM;
    if (!ok) *e = none;
    text_puts(out, ", \"fits\": [");
    for (size_t i = 0; ok && i < sets.count; i++) {
        text_puts(out, i ? ", " : "");
        ok = put_set(store, &sets.sets[i], alone, out, e);
    }
    text_puts(out, "]");
    return ok;
}

// --- tables ----------------------------------------------------------------------------------------------

static bool put_tables(Store *store, int64_t run, Text *out, Error *e) {
    const char *between = "";
    text_puts(out, ", \"tables\": [");
    for (int i = 0; i < published_count; i++) {
        bool named;
        LOCAL(table_release) Table t = {0};
        if (!table_run_names(store, run, published_items[i].name, &named, e)) return false;
        if (!named) continue;
        text_puts(out, between);
        between = ", ";
        if (!table_make(store, run, &published_items[i], &t, e) || !table_run_chosen(store, run, &t, e) ||
            !table_fields_json(&t, out))
            return false;
    }
    text_puts(out, "]");
    return true;
}

// --- another run -----------------------------------------------------------------------------------------

static json_t *ratio_json(const Ratio *r, CompareKind kind, int judgements) {
    static const double MARGIN = 0.02; // as `outpace compare` has it
    static const char *const OF[COMPARED_KINDS] = {"speedup", "time", "baseline"};
    Judgement j = kind == COMPARED_MACHINE ? JUDGED_UNCLEAR : compare_judge(r, MARGIN, judgements);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:i, s:i, s:i}", "says",
                     kind == COMPARED_MACHINE ? "the baseline" : compare_says(j), "of", OF[kind], "ratio",
                     json_number(r->value), "low", json_number(r->interval.low), "high",
                     json_number(r->interval.high), "prompts", r->prompts, "samples", r->samples, "disturbed",
                     r->disturbed);
}

static bool put_against(Store *store, int64_t run, int64_t other, Text *out, Error *e) {
    const CompareSide a = {.store = store, .run = run}, b = {.store = store, .run = other};
    LOCAL(compare_release) Comparison c = {0};
    bool ok = compare_sides(&a, &b, false, &c, e);
    json_t *points = json_array();
    int judgements = compare_judgements(&c);
    for (const ComparePair *p = c.pairs; ok && p < c.pairs + c.count; p++) {
        json_t *row = ratio_json(&p->ratio, p->kind, judgements);
        json_object_set_new(row, "label", json_from_text(p->label_b));
        json_object_set_new(row, "dataset", json_from_text(p->dataset));
        json_object_set_new(row, "speedup_a", json_number(p->speedup_a));
        json_object_set_new(row, "speedup_b", json_number(p->speedup_b));
        json_object_set_new(row, "S_a", json_number(p->S_a));
        json_object_set_new(row, "S_b", json_number(p->S_b));
        json_array_append_new(points, row);
    }
    text_puts(out, ", \"against\": ");
    json_t *all = ok ? ratio_json(&c.all, c.kind, judgements) : json_null();
    ok = json_append(json_pack("{s:I, s:o, s:o, s:i}", "run", (json_int_t)other, "all", all, "points", points,
                               "alone", c.alone),
                     0, out) &&
         ok;
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool put_prediction(Store *store, int64_t run, const char *name, const PredictionArguments *a,
                           Text *out, Error *e) {
    LOCAL(prediction_release) Prediction p;
    text_printf(out, ", \"%s\": ", name);
    return prediction_read(a, &p, e) && prediction_make(&p, store, run, e) &&
           json_append(prediction_json(&p, e), 0, out);
}

bool computed_json(Store *store, int64_t run, const ComputedWanted *wanted, Text *out, Error *e) {
    text_printf(out, "{\"run\": %lld", (long long)run);
    if ((wanted->fits && !put_fits(store, run, wanted->alone, out, e)) ||
        (wanted->tables && !put_tables(store, run, out, e)))
        return false;
    if (wanted->prediction) {
        PredictionArguments beside = *wanted->prediction;
        beside.shape = beside.beside;
        if (!put_prediction(store, run, "prediction", wanted->prediction, out, e) ||
            (beside.shape && !put_prediction(store, run, "beside", &beside, out, e)))
            return false;
    }
    if (wanted->surface) {
        text_puts(out, ", \"surface\": ");
        if (!priced_beside(store, wanted->surface, wanted->on, out, e)) return false;
    }
    if (wanted->against && !put_against(store, run, wanted->against, out, e)) return false;
    text_puts(out, "}");
    return true;
}
