#include "harness/table/table.h"

#include "harness/table/surface.h"
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

// A table while it is made.
typedef struct Maker {
    Store *store;
    int64_t run;
    Table *t;
    TablePoints points;
    TableAsk ask;
} Maker;

// --- rows ------------------------------------------------------------------------------------------------

// A model that the paper does not name stands in for its own, whatever else it may be.
static const char *stand_in_of(const Maker *m, const TableGroup *g) {
    if (*g->stand_in) return g->stand_in;
    for (size_t i = 0; i < m->t->item.row_count; i++)
        if (table_match_same_model(&m->t->item.rows[i], g->model)) return "";
    return "no model of the paper";
}

// A label as the config gives it, but for the seed where there are several.
static const char *keep_label(Table *t, const TableGroup *g) {
    Text text = {0};
    const char *seed = g->count > 1 ? strstr(g->label, " seed=") : NULL;
    text_add(&text, g->label, seed ? (size_t)(seed - g->label) : strlen(g->label));
    if (seed) text_puts(&text, seed + 1 + strcspn(seed + 1, " "));
    const char *kept = table_keep(t, text_get(&text));
    text_release(&text);
    return kept;
}

// Of all points that the row's number is a mean of.
static const char *keep_doubts(Maker *m, const TableMatch *match) {
    Text text = {0};
    for (int i = 0; i < match->count; i++)
        for (size_t k = 0; k < match->groups[i]->count; k++) {
            const TableSeed *s = &m->points.seeds[match->groups[i]->first + k];
            if (*s->doubt) text_printf(&text, "%s%s", text.length ? "; " : "", s->doubt);
        }
    const char *kept = table_keep(m->t, text_get(&text));
    text_release(&text);
    return kept;
}

static bool describe_ours(Maker *m, const TableMatch *match, TableRow *row, Error *e) {
    const TableGroup *g = match->groups[0];
    row->point = g->number;
    row->seeds = (int)g->count;
    row->our_model = table_keep(m->t, g->model);
    row->our_dataset = table_keep(m->t, g->dataset);
    row->our_method = quantity_is_fitted(row->measure) ? table_keep(m->t, g->fitted) : keep_label(m->t, g);
    row->stand_in = table_keep(m->t, stand_in_of(m, g));
    if (quantity_is_time(row->measure)) row->doubt = keep_doubts(m, match);
    return quantity_is_fitted(row->measure) || table_ask_text(&m->ask, g, &row->text, e);
}

// Nothing of ours stands beside the row.
static bool forget(TableRow *row) {
    row->own = row->above = UNKNOWN;
    row->own_name = "";
    return true;
}

// As papers print a spread over runs: of one point, on all its prompts.
static bool fill_passes(Maker *m, const TableMatch *match, TableRow *row, Error *e) {
    if (match->count != 1 || match->groups[0]->count != 1 || match->subtasks[0]) return true;
    const TableSeed *s = &m->points.seeds[match->groups[0]->first];
    return quantity_passes(m->store, s->point, s->baseline, row->measure, &row->passes, e);
}

static bool fill_quantities(Maker *m, const TableMatch *match, int parity, TableRow *row, Error *e) {
    const char *own = quantity_own(row->measure);
    TableQuestion ours = {.measure = row->measure, .parity = parity}, beside = ours, above = ours;
    beside.measure = own;
    above.above = true;
    if (own) row->own_name = own;
    return table_ask_match(&m->ask, match, &ours, &row->ours, e) &&
           (!own || table_ask_match(&m->ask, match, &beside, &row->own, e)) &&
           (!quantity_is_quality(row->measure) || table_ask_match(&m->ask, match, &above, &row->above, e)) &&
           (parity >= 0 || fill_passes(m, match, row, e)) &&
           (isfinite(row->ours.value) ? describe_ours(m, match, row, e) : forget(row));
}

// Filled only where nothing speaks against it.
static bool compare(const Maker *m, const TableMatch *match, TableRow *row) {
    char *end;
    double published = strtod(row->published, &end);
    const char *why = match->why.length ? text_get(&match->why) : "";
    if (*end) why = strcmp(row->published, "NA") == 0 ? "not legible in what we have" : "not one number";
    else if (!match->count)
        why = strcmp(row->measure, "-") == 0 ? "not a measurement" : "not measured in this run";
    else if (!isfinite(row->ours.value))
        why = quantity_is_fitted(row->measure) ? "these points are not fitted: 'outpace fit RUN' does it"
                                               : "not measured in this run";
    row->why_not = table_keep(m->t, why);
    if (*why) return true;
    row->difference =
        (Quantity){row->ours.value - published, row->ours.low - published, row->ours.high - published};
    return true;
}

// The group, and of a number that is fitted to many points all of these.
static void mark(Maker *m, const TableGroup *g, const char *measure) {
    bool fitted = quantity_is_fitted(measure) && g->fit;
    for (size_t k = 0; k < m->points.group_count; k++)
        if (&m->points.groups[k] == g || (fitted && m->points.groups[k].fit == g->fit))
            m->points.groups[k].used = true;
}

static bool add_published(Maker *m, const PublishedRow *p, Error *e) {
    TableJudge judge = {table_ask_speed, &m->ask};
    TableMatch match;
    TableRow *row = table_add_row(m->t);
    if (!row || !table_match(&m->t->item, p, &m->points, &judge, &match, e)) return false;
    row->row = p->row;
    row->model = p->model;
    row->dataset = p->dataset;
    row->task = p->task;
    row->metric = p->metric;
    row->published = p->value;
    row->spread = p->spread;
    row->note = p->note;
    row->measure = published_metric(&m->t->item, p->metric)->measure;
    bool ok = (!match.count || fill_quantities(m, &match, -1, row, e)) && compare(m, &match, row);
    for (int i = 0; i < match.count; i++) mark(m, match.groups[i], row->measure);
    table_match_release(&match);
    return ok;
}

// What the paper takes the fastest of, chosen on the even prompts and scored on the odd ones.
static bool add_halves(Maker *m, const PublishedRow *p, Error *e) {
    TableJudge judge = {table_ask_even_speed, &m->ask};
    TableMatch match;
    const char *measure = published_metric(&m->t->item, p->metric)->measure;
    if (!strstr(p->method, "=*") || quantity_best(measure) || quantity_is_fitted(measure)) return true;
    if (!table_match(&m->t->item, p, &m->points, &judge, &match, e)) return false;
    TableRow *row = match.count ? table_add_row(m->t) : NULL;
    bool ok = row != NULL || !match.count;
    if (row) {
        Text name = {0};
        text_printf(&name, "%s, even to odd", p->row);
        row->row = table_keep(m->t, text_get(&name));
        text_release(&name);
        row->model = p->model;
        row->dataset = p->dataset;
        row->metric = p->metric;
        row->measure = measure;
        row->note = "chosen on even prompts, scored on odd ones";
        ok = fill_quantities(m, &match, 1, row, e);
    }
    table_match_release(&match);
    return ok;
}

static bool add_own(Maker *m, const TableGroup *g, const PublishedMetric *metric, Error *e) {
    TableMatch match = {.groups = {g}, .count = 1};
    TableRow *row = table_add_row(m->t);
    if (!row) return false;
    row->metric = metric->name;
    row->measure = metric->measure;
    row->row = "ours";
    if (!fill_quantities(m, &match, -1, row, e)) return false;
    if (!isfinite(row->ours.value)) m->t->row_count--; // it has no such quantity
    return true;
}

static bool is_meant(const Published *item, const TableGroup *g) {
    for (size_t i = 0; i < item->row_count; i++)
        if (table_match_like_model(&item->rows[i], g->model)) return true;
    return false;
}

// Where some models of the run are meant for models of the paper, others belong to another table.
static void drop_others(Maker *m) {
    bool any = false;
    for (size_t i = 0; i < m->points.group_count; i++)
        any = any || is_meant(&m->t->item, &m->points.groups[i]);
    for (size_t i = 0; any && i < m->points.group_count; i++)
        if (!is_meant(&m->t->item, &m->points.groups[i])) m->points.groups[i].used = true;
}

static bool add_owns(Maker *m, Error *e) {
    const Published *item = &m->t->item;
    for (size_t i = 0; i < m->points.group_count; i++) {
        const TableGroup *g = &m->points.groups[i];
        if (g->used) continue;
        for (int k = 0; k < item->metric_count; k++) {
            const char *measure = item->metrics[k].measure;
            if (strcmp(measure, "-") != 0 && !quantity_best(measure) && !add_own(m, g, &item->metrics[k], e))
                return false;
            mark(m, g, measure);
        }
    }
    return true;
}

// --- about the run ---------------------------------------------------------------------------------------

// Machine and day are those of its last start; the command is that of its first, which says what was run.
static bool read_about(const Maker *m, Error *e) {
    static const char SQL[] =
        "SELECT 'run ' || run.id || ', ' || run.name || coalesce(', ' || unfinished, '') || ', outpace ' || "
        "run.version,"
        " coalesce(coalesce(gpu || ' beside ', '') || cpu || coalesce(', ' || cores || ' cores', ''), 'a "
        "machine that is not told'),"
        " strftime('%Y-%m-%d', attempt.started, 'unixepoch'), CASE json_extract(first.argv, '$[0]') WHEN "
        "'outpace' THEN '' ELSE 'outpace ' END || (SELECT group_concat(value, ' ') FROM "
        "json_each(first.argv))"
        " FROM run JOIN run_state ON run_state.run_id = run.id JOIN attempt ON attempt.run_id = run.id"
        " JOIN environment ON environment.id = attempt.environment_id JOIN attempt AS first ON first.id ="
        " (SELECT min(id) FROM attempt WHERE attempt.run_id = run.id)"
        " WHERE run.id = ?1 ORDER BY attempt.id DESC LIMIT 1";
    Rows *r = rows_open(m->store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, m->run);
    bool found = rows_next(r);
    m->t->run = table_keep(m->t, found ? rows_text(r, 0) : "");
    m->t->machine = table_keep(m->t, found ? rows_text(r, 1) : "");
    m->t->date = table_keep(m->t, found ? rows_text(r, 2) : "");
    m->t->command = table_keep(m->t, found ? rows_text(r, 3) : "");
    return rows_end(r, true, e) && ((m->t->run && m->t->machine && m->t->date && m->t->command));
}

// Tokens that its adapters and heads learnt from, as 'outpace train' says in their config.json: where they
// are not the same, or not known of all.
static bool read_unlike(const Maker *m, Error *e) {
    static const char SQL[] =
        "SELECT group_concat(name || ' ' || iif(tokens, printf('%.3g million tokens', 1e-6 * tokens),"
        " 'not known'), ', ') FROM (SELECT DISTINCT run_id, model.name || iif(method = 'medusa', ' (heads)', "
        "' (adapter)') "
        "AS name,"
        " CASE method WHEN 'medusa' THEN coalesce(json_extract(shape, '$.parts.heads.trained_tokens'),"
        " json_extract(shape, '$.parts.adapter.trained_tokens'))"
        " ELSE json_extract(shape, '$.parts.adapter.trained_tokens') END AS tokens"
        " FROM point JOIN model ON model.id = model_id WHERE run_id = ?1 AND method IN ('kangaroo', 'medusa')"
        " ORDER BY point.number)"
        " GROUP BY run_id HAVING count(*) > 1 AND (count(tokens) < count(*) OR min(tokens) <> max(tokens))";
    Rows *r = rows_open(m->store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, m->run);
    m->t->unlike = table_keep(m->t, rows_next(r) ? rows_text(r, 0) : "");
    return rows_end(r, true, e) && (m->t->unlike);
}

static bool make(Maker *m, Error *e) {
    const Published *item = &m->t->item;
    const PublishedMetric *speedup = published_metric(item, "speedup");
    const char *by = speedup ? speedup->measure : "speedup";
    if (!read_about(m, e) || !read_unlike(m, e)) return false;
    if (strcmp(item->kind, "sweep") != 0) return table_surface_fill(m->store, m->run, m->t, e);
    if (!table_points_read(m->store, m->run, &m->points, e) ||
        !table_ask_open(&m->ask, m->store, &m->points, by))
        return false;
    for (size_t i = 0; i < item->row_count; i++)
        if (!add_published(m, &item->rows[i], e) || !add_halves(m, &item->rows[i], e)) return false;
    drop_others(m);
    return add_owns(m, e);
}

bool table_make(Store *store, int64_t run, const PublishedItem *item, Table *out, Error *e) {
    Maker m = {.store = store, .run = run, .t = out};
    *out = (Table){.name = item->name};
    bool ok = published_open(&out->item, item, e) && make(&m, e);
    table_ask_release(&m.ask);
    table_points_release(&m.points);
    if (!ok) table_release(out);
    return ok;
}
