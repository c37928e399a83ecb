#include "harness/table/surface.h"

#include "harness/table/match.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

// ?1 the run; columns: what the row is, the value, the model, what that stands in for, how it was run.
static const char SLOWDOWN[] =
    "SELECT 'context ' || context || ', k ' || k || ', w ' || w, slowdown, model.name, coalesce(stand_in, "
    "''), layout ||"
    " iif(context IN (SELECT context FROM drifted WHERE run_id = ?1), ', the machine changed meanwhile', '')"
    " FROM surface AS s JOIN attempt ON attempt.id = attempt_id JOIN model ON model.id = model_id"
    " WHERE run_id = ?1 AND s.kind = 'step' AND k IS NOT NULL AND slowdown IS NOT NULL ORDER BY context, k, "
    "w";

static const char CACHE[] =
    "SELECT 'context ' || max(context), 1.0 * max(context) / min(json_extract(shape, '$.window'), "
    "max(context)),"
    " model.name, coalesce(stand_in, ''), 'counted' FROM surface JOIN attempt ON attempt.id = attempt_id"
    " JOIN model ON model.id = model_id WHERE run_id = ?1 AND json_extract(shape, '$.window') > 0 GROUP BY "
    "model_id";

// The newest of this name with the window on, and with it off, as their command lines say: whole texts, and
// steps of one row.
static const char WINDOW[] =
    "WITH t AS (SELECT run.id AS run, s.kind, s.context, s.rows, s.median_ns, s.model_id, EXISTS "
    "(SELECT 1 FROM json_each(argv) AS a LEFT JOIN json_each(argv) AS b ON b.key = a.key + 1"
    " WHERE a.value = '--sliding-window' AND b.value = 'off' OR a.value = '--sliding-window=off') AS off"
    " FROM run JOIN attempt ON run_id = run.id JOIN surface AS s ON attempt_id = attempt.id"
    " WHERE run.name = (SELECT name FROM run WHERE id = ?1)"
    " AND k = 1 AND (s.kind = 'step' AND w = 0 OR s.kind = 'prefill')),"
    " n AS (SELECT off, max(run) AS run FROM t GROUP BY off)"
    " SELECT iif(x.kind = 'prefill', 'prefill of ' || x.rows, 'a step at ' || x.context),"
    " y.median_ns / x.median_ns, model.name, coalesce(stand_in, ''),"
    " iif(x.kind = 'prefill', 'chunks of at most 1,024', 'one row')"
    " FROM t AS x JOIN t AS y ON y.kind = x.kind AND y.context = x.context AND y.rows = x.rows AND y.off AND"
    " NOT x.off JOIN model ON model.id = x.model_id"
    " WHERE x.run = (SELECT run FROM n WHERE NOT off) AND y.run = (SELECT run FROM n WHERE off)"
    " ORDER BY x.kind, x.rows, x.context";

static const char *query_of(const char *measure) {
    return strcmp(measure, "slowdown") == 0       ? SLOWDOWN
           : strcmp(measure, "cache_saving") == 0 ? CACHE
                                                  : WINDOW;
}

static const char *why_not(const PublishedRow *p, bool measured) {
    if (strcmp(p->value, "NA") == 0) return "not legible in what we have";
    if (!measured) return "not measured";
    return *p->device ? "" : "the paper names no device";
}

static bool add_published(Table *t, const PublishedRow *p, bool measured) {
    TableRow *row = table_add_row(t);
    if (!row) return false;
    row->row = p->row;
    row->model = p->model;
    row->metric = p->metric;
    row->published = p->value;
    row->measure = published_metric(&t->item, p->metric)->measure;
    row->why_not = why_not(p, measured);
    row->note = p->note;
    return true;
}

static bool add_own(Table *t, const PublishedMetric *metric, const Rows *r) {
    TableRow *row = table_add_row(t);
    if (!row) return false;
    bool is_published = table_match_same_model(&t->item.rows[0], rows_text(r, 2));
    row->row = table_keep(t, rows_text(r, 0));
    row->metric = metric->name;
    row->measure = metric->measure;
    row->ours.value = rows_real(r, 1);
    row->our_model = table_keep(t, rows_text(r, 2));
    row->stand_in =
        table_keep(t, *rows_text(r, 3) || is_published ? rows_text(r, 3) : "no model of the paper");
    row->our_method = table_keep(t, rows_text(r, 4));
    return (row->row && row->our_model && row->stand_in && row->our_method);
}

bool table_surface_fill(Store *store, int64_t run, Table *t, Error *e) {
    const PublishedMetric *metric = &t->item.metrics[0];
    size_t published = t->item.row_count;
    bool ok = true;
    Rows *r = rows_open(store, query_of(metric->measure), e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    for (size_t i = 0; ok && i < published; i++) ok = add_published(t, &t->item.rows[i], true);
    while (ok && rows_next(r)) ok = add_own(t, metric, r);
    ok = rows_end(r, ok, e);
    for (size_t i = 0; ok && i < published && t->row_count == published; i++)
        t->rows[i].why_not = why_not(&t->item.rows[i], false);
    return ok;
}
