// See table.h. A published row gets our numbers next to it; they are compared only if model, dataset, dtype
// and device are the published ones, and otherwise the row holds the reason.
#include "harness/papers/table.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/config/yaml.h"
#include "harness/papers/match.h"
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Quantity UNKNOWN = {NAN, NAN, NAN};

// --- rows

static TableRow *add_row(Table *t) {
    TableRow *row = LIST_ADD(t->rows, t->row_count, t->row_capacity);
    *row = (TableRow){.row = "",
                      .model = "",
                      .dataset = "",
                      .task = "",
                      .our_model = "",
                      .our_dataset = "",
                      .our_method = "",
                      .published = "",
                      .spread = "",
                      .own_name = "",
                      .why_not = "",
                      .stand_in = "",
                      .doubt = "",
                      .note = "",
                      .ours = UNKNOWN,
                      .passes = {NAN, NAN, 0},
                      .own = UNKNOWN,
                      .difference = UNKNOWN,
                      .above = UNKNOWN,
                      .text = {NAN, NAN, NAN, NAN, NAN}};
    return row;
}

// With the published number's names, and our measure of it.
static TableRow *add_named(Table *t, const PublishedRow *p) {
    TableRow *row = add_row(t);
    row->row = p->row;
    row->model = p->model;
    row->dataset = p->dataset;
    row->task = p->task;
    row->metric = p->metric;
    row->measure = published_metric(&t->item, p->metric)->measure;
    row->note = p->note;
    return row;
}

void table_release(Table *t) {
    for (size_t i = 0; i < t->texts.count; i++) mem_free(t->texts.list[i]);
    MEM_FREE(t->texts.list, t->chosen, t->rows);
    published_release(&t->item);
    *t = (Table){0};
}

// --- which run a table is about

// A config is read as a tree only: what names it must be found in configs of older programs, too.
static bool lists(const YamlNode *root, const char *key, const char *name) {
    const YamlNode *list = root->kind == NODE_MAP ? yaml_find(root, key) : NULL;
    if (list && list->kind == NODE_VALUE) return strcmp(list->text, name) == 0;
    for (const YamlNode *n = list ? list->first : NULL; n; n = n->next)
        if (n->kind == NODE_VALUE && strcmp(n->text, name) == 0) return true;
    return false;
}

static bool names_it(const char *config, const char *name) {
    LOCAL(yaml_release) YamlTree tree = {0};
    if (!yaml_parse(&tree, config, strlen(config), "config", NULL)) return false;
    return lists(tree.root, "tables", name) || lists(tree.root, "plots", name);
}

EMBED(table_sql, "harness/papers/table.sql")

bool table_run_names(Store *store, int64_t run, const char *item, bool *names, Error *e) {
    Rows *r = rows_named(store, table_sql, "run", run, e);
    *names = rows_next(r) && (strcmp(rows_text(r, 0), item) == 0 || names_it(rows_text(r, 1), item));
    return rows_end(r, true, e);
}

bool table_run_find(Store *store, const char *name, const char *kind, int64_t *run, Error *e) {
    Rows *r = rows_named(store, table_sql, "named", 0, e);
    *run = 0;
    rows_bind_text(r, 1, strcmp(kind, "sweep") == 0 ? kind : "surface");
    while (!*run && rows_next(r))
        if (strcmp(rows_text(r, 1), name) == 0 || names_it(rows_text(r, 2), name)) *run = rows_int(r, 0);
    if (!rows_end(r, true, e)) return false;
    return *run || strcmp(kind, "surface") != 0 || rows_named_int(store, table_sql, "any_surface", 0, run, e);
}

// --- the config's choices

static void add_chosen(Table *t, const char *text) {
    *LIST_ADD(t->chosen, t->chosen_count, t->chosen_capacity) = table_keep(&t->texts, text);
}

static void add_list(Table *t, const char *config) {
    LOCAL(yaml_release) YamlTree tree = {0};
    if (!yaml_parse(&tree, config, strlen(config), "config", NULL)) return;
    const YamlNode *list = tree.root->kind == NODE_MAP ? yaml_find(tree.root, "chosen") : NULL;
    if (list && list->kind == NODE_VALUE) add_chosen(t, list->text);
    for (const YamlNode *n = list ? list->first : NULL; n; n = n->next)
        if (n->kind == NODE_VALUE) add_chosen(t, n->text);
}

bool table_run_chosen(Store *store, int64_t run, Table *t, Error *e) {
    Rows *r = rows_named(store, table_sql, "chosen", run, e);
    if (rows_next(r)) add_list(t, rows_text(r, 0));
    if (!rows_end(r, true, e)) return false;
    r = rows_named(store, table_sql, "left_out", run, e);
    while (rows_next(r)) add_chosen(t, rows_text(r, 0));
    return rows_end(r, true, e);
}

// --- tables of steps of given shapes

static const char *why_not(const PublishedRow *p, bool measured) {
    if (strcmp(p->value, "NA") == 0) return "not legible in what we have";
    if (!measured) return "not measured";
    return *p->device ? "" : "the paper names no device";
}

static void add_own_step(Table *t, const PublishedMetric *metric, const Rows *r) {
    TableRow *row = add_row(t);
    row->row = table_keep(&t->texts, rows_text(r, 0));
    row->metric = metric->name;
    row->measure = metric->measure;
    row->ours.value = rows_real(r, 1);
    row->our_model = table_keep(&t->texts, rows_text(r, 2));
    row->stand_in = table_keep(&t->texts, rows_text(r, 3));
    row->other_model = !table_match_same_model(&t->item.rows[0], rows_text(r, 2));
    row->our_method = table_keep(&t->texts, rows_text(r, 4));
}

static bool table_surface_fill(Store *store, int64_t run, Table *t, Error *e) {
    const PublishedMetric *metric = &t->item.metrics[0];
    size_t published = t->item.row_count;
    Rows *r = rows_named(store, table_sql, metric->measure, run, e);
    for (size_t i = 0; i < published; i++) add_named(t, &t->item.rows[i])->published = t->item.rows[i].value;
    while (rows_next(r)) add_own_step(t, metric, r);
    for (size_t i = 0; i < published; i++)
        t->rows[i].why_not = why_not(&t->item.rows[i], t->row_count > published);
    return rows_end(r, true, e);
}

// --- a table of points

// A table while it is made.
typedef struct Maker {
    Store *store;
    int64_t run;
    Table *t;
    TablePoints points;
    TableAsk ask;
} Maker;

// --- rows ------------------------------------------------------------------------------------------------

static bool is_named(const Table *t, const char *model) {
    for (size_t i = 0; i < t->item.row_count; i++)
        if (table_match_same_model(&t->item.rows[i], model)) return true;
    return false;
}

// A label as the config gives it, but for the seed where there are several.
static const char *keep_label(Table *t, const TableGroup *g) {
    LOCAL_TEXT text = {0};
    const char *seed = g->count > 1 ? strstr(g->label, " seed=") : NULL;
    text_add(&text, g->label, seed ? (size_t)(seed - g->label) : strlen(g->label));
    if (seed) text_puts(&text, seed + 1 + strcspn(seed + 1, " "));
    return table_keep(&t->texts, text_get(&text));
}

// Of all points that the row's number is a mean of.
static const char *keep_doubts(Maker *m, const TableMatch *match) {
    LOCAL_TEXT text = {0};
    for (int i = 0; i < match->count; i++)
        for (size_t k = 0; k < match->groups[i]->count; k++) {
            const TableSeed *s = &m->points.seeds[match->groups[i]->first + k];
            if (*s->doubt) text_printf(&text, "%s%s", text.length ? "; " : "", s->doubt);
        }
    return table_keep(&m->t->texts, text_get(&text));
}

static bool describe_ours(Maker *m, const TableMatch *match, TableRow *row, Error *e) {
    const TableGroup *g = match->groups[0];
    row->point = g->number;
    row->seeds = (int)g->count;
    row->our_model = g->model;
    row->our_dataset = g->dataset;
    row->our_method = quantity_is(row->measure, QUANTITY_FITTED) ? g->fitted : keep_label(m->t, g);
    row->stand_in = g->stand_in;
    row->other_model = !is_named(m->t, g->model);
    if (quantity_is(row->measure, QUANTITY_TIME)) row->doubt = keep_doubts(m, match);
    return quantity_is(row->measure, QUANTITY_FITTED) || table_ask_text(&m->ask, g, &row->text, e);
}

static bool fill_quantities(Maker *m, const TableMatch *match, int parity, TableRow *row, Error *e) {
    const char *own = quantity_own(row->measure);
    TableQuestion ours = {.measure = row->measure, .parity = parity}, beside = ours, above = ours;
    beside.measure = own;
    above.above = true;
    if (own) row->own_name = own;
    bool ok = table_ask_match(&m->ask, match, &ours, &row->ours, e) &&
              (!own || table_ask_match(&m->ask, match, &beside, &row->own, e)) &&
              (!quantity_is(row->measure, QUANTITY_QUALITY) ||
               table_ask_match(&m->ask, match, &above, &row->above, e));
    if (ok && parity < 0 && match->count == 1 && match->groups[0]->count == 1 && !match->subtasks[0]) {
        // as papers print a spread over runs: of one point, on all its prompts
        const TableSeed *s = &m->points.seeds[match->groups[0]->first];
        ok = quantity_passes(m->store, s->point, s->baseline, row->measure, &row->passes, e);
    }
    if (!ok || isfinite(row->ours.value)) return ok && describe_ours(m, match, row, e);
    row->own = row->above = UNKNOWN; // we have nothing to show next to the row
    row->own_name = "";
    return true;
}

// Filled only where nothing speaks against it.
static void compare(const Maker *m, const TableMatch *match, TableRow *row) {
    char *end;
    double published = strtod(row->published, &end);
    const char *why = match->why.length ? text_get(&match->why) : "";
    if (*end) why = strcmp(row->published, "NA") == 0 ? "not legible in what we have" : "not one number";
    else if (!match->count)
        why = strcmp(row->measure, "-") == 0 ? "not a measurement" : "not measured in this run";
    else if (!isfinite(row->ours.value))
        why = quantity_is(row->measure, QUANTITY_FITTED)
                  ? "these points are not fitted: 'outpace fit RUN' does it"
                  : "not measured in this run";
    row->why_not = table_keep(&m->t->texts, why);
    if (*why) return;
    row->difference =
        (Quantity){row->ours.value - published, row->ours.low - published, row->ours.high - published};
}

// The group, and of a number that is fitted to many points all of these.
static void mark(Maker *m, const TableGroup *g, const char *measure) {
    bool fitted = quantity_is(measure, QUANTITY_FITTED) && g->fit;
    for (size_t k = 0; k < m->points.group_count; k++)
        if (&m->points.groups[k] == g || (fitted && m->points.groups[k].fit == g->fit))
            m->points.groups[k].used = true;
}

static bool add_published(Maker *m, const PublishedRow *p, Error *e) {
    LOCAL(table_match_release) TableMatch match = {0};
    TableRow *row = add_named(m->t, p);
    if (!table_match(&m->t->item, p, &m->ask, false, &match, e)) return false;
    row->published = p->value;
    row->spread = p->spread;
    bool ok = !match.count || fill_quantities(m, &match, -1, row, e);
    if (ok) compare(m, &match, row);
    for (int i = 0; i < match.count; i++) mark(m, match.groups[i], row->measure);
    return ok;
}

// Where the paper reports the fastest of several settings: chosen on even prompts, scored on odd ones.
static bool add_halves(Maker *m, const PublishedRow *p, Error *e) {
    LOCAL(table_match_release) TableMatch match = {0};
    const char *measure = published_metric(&m->t->item, p->metric)->measure;
    if (!method_text_open(p->method) || quantity_is(measure, QUANTITY_BEST | QUANTITY_FITTED)) return true;
    if (!table_match(&m->t->item, p, &m->ask, true, &match, e)) return false;
    if (!match.count) return true;
    TableRow *row = add_named(m->t, p);
    LOCAL_TEXT name = {0};
    text_printf(&name, "%s, even to odd", p->row);
    row->row = table_keep(&m->t->texts, text_get(&name));
    row->note = "chosen on even prompts, scored on odd ones";
    return fill_quantities(m, &match, 1, row, e);
}

static bool add_own(Maker *m, const TableGroup *g, const PublishedMetric *metric, Error *e) {
    TableMatch match = {.groups = {g}, .count = 1};
    TableRow *row = add_row(m->t);
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
            if (strcmp(measure, "-") != 0 && !quantity_is(measure, QUANTITY_BEST) &&
                !add_own(m, g, &item->metrics[k], e))
                return false;
            mark(m, g, measure);
        }
    }
    return true;
}

// --- about the run ---------------------------------------------------------------------------------------

static bool make(Maker *m, Error *e) {
    const Published *item = &m->t->item;
    Rows *r = rows_named(m->store, table_sql, "about", m->run, e);
    bool found = rows_next(r);
    m->t->run = table_keep(&m->t->texts, found ? rows_text(r, 0) : "");
    m->t->machine = table_keep(&m->t->texts, found ? rows_text(r, 1) : "");
    m->t->date = table_keep(&m->t->texts, found ? rows_text(r, 2) : "");
    m->t->command = table_keep(&m->t->texts, found ? rows_text(r, 3) : "");
    if (!rows_end(r, true, e)) return false;
    r = rows_named(m->store, table_sql, "unlike", m->run, e);
    m->t->unlike = table_keep(&m->t->texts, rows_next(r) ? rows_text(r, 0) : "");
    if (!rows_end(r, true, e)) return false;
    if (strcmp(item->kind, "sweep") != 0) return table_surface_fill(m->store, m->run, m->t, e);
    if (!table_points_read(m->store, m->run, &m->t->texts, &m->points, e)) return false;
    const PublishedMetric *speedup = published_metric(item, "speedup");
    table_ask_open(&m->ask, m->store, &m->points, speedup ? speedup->measure : "speedup");
    for (size_t i = 0; i < item->row_count; i++)
        if (!add_published(m, &item->rows[i], e) || !add_halves(m, &item->rows[i], e)) return false;
    drop_others(m);
    return add_owns(m, e);
}

bool table_make(Store *store, int64_t run, const PublishedItem *item, Table *out, Error *e) {
    Maker m = {.store = store, .run = run, .t = out};
    *out = (Table){.name = item->name};
    published_open(&out->item, item);
    bool ok = make(&m, e);
    table_ask_release(&m.ask);
    table_points_release(&m.points);
    if (!ok) table_release(out);
    return ok;
}
