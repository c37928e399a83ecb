// Quantities of stored points, by name: a query or a view for each. Unknown is NaN, never a guess.
#include "harness/papers/ours.h"

#include "engine/base/shipped.h"
#include "harness/analysis/estimates.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <math.h>
#include <string.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

EMBED(quantities_sql, "harness/papers/quantities.sql")

// --- the table -------------------------------------------------------------------------------------------

typedef struct QuantityInfo {
    const char *name, *own;
    int tally;            // TallyMetric; below 0: a query
    const char *query;    // of quantities.sql; NULL: tally
    const char *argument; // NULL: the part of the name after its point
    unsigned kind;        // of QuantityKind
} QuantityInfo;

static const QuantityInfo QUANTITIES[] = {
    {"S", NULL, TALLY_S, NULL, NULL, 0},
    {"S_reference", "S", TALLY_S_REFERENCE, NULL, NULL, 0},
    {"speedup", NULL, TALLY_SPEEDUP, NULL, NULL, QUANTITY_TIME},
    {"speedup_e2e", "speedup", TALLY_SPEEDUP_E2E, NULL, NULL, QUANTITY_TIME},
    {"speedup_specbench", "speedup", TALLY_SPECBENCH, NULL, NULL, QUANTITY_TIME},
    {"tokens_per_s", NULL, TALLY_RATE, NULL, NULL, QUANTITY_TIME},
    {"tokens_per_s_e2e", "tokens_per_s", TALLY_RATE_E2E, NULL, NULL, QUANTITY_TIME},
    {"ctar", NULL, -1, "ctar", NULL, 0},
    {"asked_per_step", "rows_per_step", -1, "asked_per_step", "", 0},
    {"rows_per_step", NULL, -1, "rows_per_step", "", 0},
    {"won", NULL, -1, "won", NULL, 0},
    {"rows", NULL, -1, "rows", NULL, 0},
    {"common_prefix", NULL, -1, "common_prefix", "", 0},
    {"matched", NULL, -1, NULL, "", 0},
    {"best", NULL, -1, "best", NULL, QUANTITY_BEST},
    {"parameters", NULL, -1, "parameters", "", 0},
    {"alpha", NULL, -1, "alpha", "", QUANTITY_FITTED},
    {"f", NULL, -1, "f", "", QUANTITY_FITTED},
    {"cache_saving", NULL, -1, NULL, "", 0},
    {"window_speedup", NULL, -1, NULL, "", 0},
    {"rouge1", NULL, -1, "score", "rouge1", QUANTITY_QUALITY},
    {"rouge2", NULL, -1, "score", "rouge2", QUANTITY_QUALITY},
    {"rougeL", NULL, -1, "score", "rougeL", QUANTITY_QUALITY},
    {"slowdown", NULL, -1, NULL, "", 0}, // this one and two above: harness/papers/table.sql
    {"-", NULL, -1, NULL, "", 0},
};

static const QuantityInfo *find(const char *name) {
    size_t n = strcspn(name, ".");
    for (size_t i = 0; i < sizeof QUANTITIES / sizeof *QUANTITIES; i++)
        if (strlen(QUANTITIES[i].name) == n && strncmp(QUANTITIES[i].name, name, n) == 0)
            return (name[n] != 0) == (QUANTITIES[i].argument == NULL && QUANTITIES[i].query != NULL)
                       ? &QUANTITIES[i]
                       : NULL;
    return NULL;
}

bool quantity_known(const char *name) { return find(name) != NULL; }

bool quantity_is(const char *name, unsigned kinds) {
    const QuantityInfo *m = find(name);
    return m && m->kind & kinds;
}

const char *quantity_own(const char *name) {
    const QuantityInfo *m = find(name);
    return m ? m->own : NULL;
}

// --- asking ----------------------------------------------------------------------------------------------

static void take_row(const Rows *r, Quantity *out) {
    out->value = rows_real(r, 0);
    if (rows_columns(r) == 1 || rows_int(r, 2) < 2) return;
    mean_reach(rows_real(r, 0), rows_real(r, 1), (size_t)rows_int(r, 2), 0.95, &out->low, &out->high);
}

static void take_interval(const Rows *r, Quantity *out) {
    *out = (Quantity){rows_real(r, 0), rows_real(r, 1), rows_real(r, 2)};
}

static bool ask_query(Store *store, const TableQuestion *q, const QuantityInfo *m, const char *query,
                      Quantity *out, Error *e) {
    Rows *r = rows_named(store, quantities_sql, query, q->point, e);
    int parameters = rows_parameters(r);
    if (parameters > 1) rows_bind_text(r, 2, m->argument ? m->argument : strchr(q->measure, '.') + 1);
    if (parameters > 2) rows_bind_text(r, 3, q->subtask);
    if (parameters > 3) rows_bind_int(r, 4, q->baseline);
    if (rows_next(r)) (m->kind & QUANTITY_FITTED ? take_interval : take_row)(r, out);
    return rows_end(r, true, e);
}

// Drafted tokens of a step that are the target's at their place, whatever precedes them.
static bool ask_matched(Store *store, int64_t point, Quantity *out, Error *e) {
    double bits = 0, steps = 0;
    Rows *r = rows_named(store, quantities_sql, "matches", point, e);
    for (; rows_next(r); steps++) {
        size_t n;
        const unsigned char *bytes = rows_blob(r, 0, &n);
        for (size_t i = 0; i < n; i++) bits += __builtin_popcount(bytes[i]);
    }
    out->value = steps > 0 ? bits / steps : NAN;
    return rows_end(r, true, e);
}

bool quantity(Store *store, const TableQuestion *q, Quantity *out, Error *e) {
    const QuantityInfo *m = find(q->measure);
    bool whole = !q->subtask && q->parity < 0;
    *out = UNKNOWN;
    if (!m || (q->above && !(m->kind & QUANTITY_QUALITY && q->baseline))) return true;
    if (m->query && (whole || !(m->kind & QUANTITY_FITTED)))
        return ask_query(store, q, m, q->above ? "score_above" : m->query, out, e);
    if (strcmp(m->name, "matched") == 0 && !q->subtask) return ask_matched(store, q->point, out, e);
    if (m->tally < 0) return true;
    if (whole) { // computed when its run ended
        Rows *r = rows_named(store, quantities_sql, "estimate", q->point, e);
        rows_bind_text(r, 2, tally_names[m->tally]);
        if (rows_next(r)) take_interval(r, out);
        return rows_end(r, true, e);
    }
    SampleChoice choice = {.subtask = q->subtask, .parity = q->parity, .plain = q->plain};
    Tally t;
    if (!estimates_tally(store, q->point, &choice, &t, e)) return false;
    out->value = t.value[m->tally];
    if (t.has_interval) out->low = t.interval[m->tally].low, out->high = t.interval[m->tally].high;
    return true;
}

bool quantity_passes(Store *store, int64_t point, int64_t baseline, const char *name, QuantityPasses *out,
                     Error *e) {
    *out = (QuantityPasses){NAN, NAN, 0};
    Rows *r = rows_named(store, quantities_sql, "passes", point, e);
    rows_bind_int(r, 2, baseline);
    rows_bind_text(r, 3, name);
    if (rows_next(r) && rows_int(r, 2) > 1)
        *out = (QuantityPasses){rows_real(r, 0), rows_real(r, 1), (int)rows_int(r, 2)};
    return rows_end(r, true, e);
}
