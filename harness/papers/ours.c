// See ours.h. Values are asked of the store when a row needs them; a value that was not measured is NaN.
#include "harness/papers/ours.h"

#include "engine/base/memory.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <math.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

void table_ask_open(TableAsk *a, Store *store, const TablePoints *points, const char *by) {
    size_t n = points->group_count;
    *a = (TableAsk){.store = store, .points = points, .by = by};
    a->speeds = mem_new(n, 2 * sizeof *a->speeds);
    a->texts = mem_new(n, sizeof *a->texts);
    a->has_text = mem_new(n, sizeof *a->has_text);
    for (size_t i = 0; i < 2 * n; i++) a->speeds[i] = NAN;
}

void table_ask_release(TableAsk *a) {
    MEM_FREE(a->speeds, a->texts, a->has_text);
    *a = (TableAsk){0};
}

// --- quantities ------------------------------------------------------------------------------------------

static bool ask_seed(const TableAsk *a, const TableGroup *g, size_t i, TableQuestion q, Quantity *out,
                     Error *e) {
    const TableSeed *s = &a->points->seeds[g->first + i];
    q.point = s->point, q.baseline = s->baseline;
    return quantity(a->store, &q, out, e);
}

static bool ask_group(const TableAsk *a, const TableGroup *g, const TableQuestion *q, Quantity *out,
                      Error *e) {
    if (g->count == 1) return ask_seed(a, g, 0, *q, out, e);
    LOCAL_MEMORY double *values = mem_new(g->count, sizeof *values);
    double sum = 0;
    *out = UNKNOWN;
    for (size_t i = 0; i < g->count; i++) {
        Quantity one;
        if (!ask_seed(a, g, i, *q, &one, e)) return false;
        sum += values[i] = one.value;
    }
    out->value = sum / (double)g->count;
    if (isfinite(sum) && g->count >= TABLE_SEEDS)
        mean_interval(values, g->count, 0.95, &out->low, &out->high);
    return true;
}

// Prompts of other parts are others, and so are their errors.
bool table_ask_match(TableAsk *a, const TableMatch *match, const TableQuestion *q, Quantity *out, Error *e) {
    double sum = 0, low = 0, high = 0, n = 0;
    for (int i = 0; i < match->count; i++) {
        Quantity one;
        TableQuestion part = *q;
        part.subtask = match->subtasks[i];
        if (!ask_group(a, match->groups[i], &part, &one, e)) return false;
        if (!isfinite(one.value)) continue;
        n++;
        sum += one.value;
        low += (one.value - one.low) * (one.value - one.low);
        high += (one.high - one.value) * (one.high - one.value);
    }
    *out = n > 0 ? (Quantity){sum / n, sum / n - sqrt(low) / n, sum / n + sqrt(high) / n} : UNKNOWN;
    return true;
}

// --- the fastest -----------------------------------------------------------------------------------------

bool table_ask_speed(TableAsk *a, const TableGroup *g, const char *subtask, bool even, double *out,
                     Error *e) {
    double *known = &a->speeds[2 * (size_t)(g - a->points->groups) + even];
    TableQuestion q = {.measure = a->by, .subtask = subtask, .parity = even ? 0 : -1, .plain = true};
    Quantity speed;
    if (!subtask && !isnan(*known)) {
        *out = *known;
        return true;
    }
    if (!ask_group(a, g, &q, &speed, e)) return false;
    *out = isfinite(speed.value) ? speed.value : -1;
    if (!subtask) *known = *out;
    return true;
}

// --- texts -----------------------------------------------------------------------------------------------

static bool add_text(const TableAsk *a, int64_t point, double share, TableText *sum, Error *e) {
    static const char SQL[] =
        "SELECT bytes_per_step, repeated, S_calm, rows, S FROM (SELECT 1.0 * sum(rows) /"
        " nullif(sum(steps), 0) AS rows, 1.0 * sum(tokens) / nullif(sum(steps), 0) AS S FROM sample"
        " WHERE point_id = ?1) LEFT JOIN (SELECT * FROM point_text WHERE point_id = ?1)";
    Rows *r = rows_ask(a->store, SQL, point, e);
    bool is_there = rows_next(r);
    sum->bytes_per_step += is_there ? share * rows_real(r, 0) : NAN;
    sum->repeated += is_there ? share * rows_real(r, 1) : NAN;
    sum->calm += is_there ? share * rows_real(r, 2) : NAN;
    sum->rows_per_step += is_there ? share * rows_real(r, 3) : NAN;
    sum->S += is_there ? share * rows_real(r, 4) : NAN;
    return rows_end(r, true, e);
}

// Means over the seeds.
bool table_ask_text(TableAsk *a, const TableGroup *g, TableText *out, Error *e) {
    size_t at = (size_t)(g - a->points->groups);
    TableText sum = {0};
    for (size_t i = 0; !a->has_text[at] && i < g->count; i++)
        if (!add_text(a, a->points->seeds[g->first + i].point, 1 / (double)g->count, &sum, e)) return false;
    if (!a->has_text[at]) a->texts[at] = sum;
    a->has_text[at] = true;
    *out = a->texts[at];
    return true;
}
