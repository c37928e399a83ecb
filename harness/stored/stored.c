#include "harness/stored/stored.h"

#include "engine/base/shipped.h"
#include "engine/base/json.h"
#include "results/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- runs ------------------------------------------------------------------------------------------------

// One id of a question with one parameter, a text or a number; 0: no row.
static bool ask(Store *store, const char *sql, const char *text, int64_t number, int64_t *out, Error *e) {
    Rows *r = rows_open(store, sql, e);
    if (!r) return false;
    if (text) rows_bind_text(r, 1, text);
    else if (rows_parameters(r)) rows_bind_int(r, 1, number);
    *out = rows_next(r) ? rows_int(r, 0) : 0;
    return rows_end(r, true, e);
}

bool stored_by_hash(Store *store, const char *hash, int64_t *id, Error *e) {
    return ask(store, "SELECT id FROM run WHERE hash = ?1 ORDER BY id DESC LIMIT 1", hash, 0, id, e);
}

bool stored_run(Store *store, const char *which, int64_t *id, Error *e) {
    if (which && strcmp(which, "last") == 0) which = NULL;
    bool number = which && which[0] && strspn(which, "0123456789") == strlen(which) && strlen(which) < 18;
    bool ok =
        number ? ask(store, "SELECT id FROM run WHERE id = ?1", NULL, strtoll(which, NULL, 10), id, e)
        : which
            ? ask(store, "SELECT id FROM run WHERE name = ?1 ORDER BY id DESC LIMIT 1", which, 0, id, e)
            : ask(store, "SELECT id FROM run ORDER BY kind = 'sweep' DESC, id DESC LIMIT 1", NULL, 0, id, e);
    if (!ok || *id) return ok;
    if (which)
        return error_input(e, "'%s' has no run '%s'; 'outpace show' lists them", store_path(store), which);
    return error_input(e, "'%s' has no run yet: 'outpace run CONFIG' makes one", store_path(store));
}

// --- points ----------------------------------------------------------------------------------------------

EMBED(harness_stored, "harness/stored/stored.sql")

// Its columns, in order.
enum {
    NUMBER,
    MODEL,
    STAND_IN,
    DATASET,
    LABEL,
    TEMPERATURE,
    IS_BASELINE,
    SKIPPED,
    FAILED,
    PROMPTS,
    PASSES,
    SAMPLES,
    DISTURBED,
    DOUBT,
    DIVERGED,
    STEPS,
    CTAR_1,
    CTAR_2,
    CTAR_4,
    S,
    S_LOW,
    S_HIGH,
    ROWS_PER_STEP,
    RATE,
    RATE_LOW,
    RATE_HIGH,
    SPEEDUP,
    SPEEDUP_LOW,
    SPEEDUP_HIGH,
    E2E,
    E2E_LOW,
    E2E_HIGH,
    SPECBENCH,
    SPECBENCH_LOW,
    SPECBENCH_HIGH,
    AGAINST,
    SAME_PATH,
    COLUMNS
};

static double real_at(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? NAN : rows_real(r, column);
}

// The columns of the table; those that go first where a terminal is narrow are the variants of a number.
static const GridColumn COLUMN[] = {
    {"point", true, 0, 0},  {"method", false, 24, 0},  {"prompts", true, 0, 6},     {"S", true, 0, 0},
    {"[95%]", false, 0, 9}, {"rows/step", true, 0, 8}, {"CTAR1", true, 0, 5},       {"CTAR2", true, 0, 4},
    {"CTAR4", true, 0, 3},  {"tokens/s", true, 0, 7},  {"speedup", true, 0, 0},     {"[95%]", false, 0, 10},
    {"e2e", true, 0, 2},    {"sb", true, 0, 1},        {"same text", false, 12, 0},
};

// The value of a column, to the digits that the interval in the two columns after it supports.
static void put_number(Grid *g, const Rows *r, int column) {
    char own[MEASURED_SIZE];
    text_puts(&g->cell,
              measured_text(own, real_at(r, column), real_at(r, column + 1), real_at(r, column + 2)));
    grid_next(g);
}

static void put_interval(Grid *g, const Rows *r, int column) {
    put_number(g, r, column);
    text_reach(&g->cell, real_at(r, column), real_at(r, column + 1), real_at(r, column + 2)), grid_next(g);
}

// A share of so many steps, by the normal law.
static void put_share(Grid *g, double share, double steps) {
    char own[MEASURED_SIZE];
    double reach = 1.96 * sqrt(share * (1 - share) / steps);
    text_puts(&g->cell, measured_text(own, share, share - reach, share + reach)), grid_next(g);
}

// What can be said of the text: a sampled one is 'outpace verify's.
static void put_lossless(Text *out, const Rows *r) {
    if (rows_int(r, IS_BASELINE)) text_puts(out, "baseline");
    else if (rows_int(r, DIVERGED))
        text_printf(out, "NO, %lld of %lld differ", (long long)rows_int(r, DIVERGED),
                    (long long)rows_int(r, SAMPLES));
    else if (rows_real(r, TEMPERATURE) > 0) text_puts(out, "sampled");
    else text_puts(out, rows_type(r, DIVERGED) == VALUE_NULL ? "not compared" : "yes");
}

static void put_head(Grid *g, const Rows *r) {
    const char *stand_in = rows_text(r, STAND_IN);
    grid_end(g);
    text_printf(&g->cell, "%s, %s", rows_text(r, MODEL), rows_text(r, DATASET));
    if (stand_in[0]) text_printf(&g->cell, "  (stand-in: %s)", stand_in);
    grid_rest(g);
    grid_heads(g);
}

static void put_measured(Grid *g, const Rows *r) {
    char own[MEASURED_SIZE];
    text_printf(&g->cell, "%lldx%lld", (long long)rows_int(r, PROMPTS), (long long)rows_int(r, PASSES));
    grid_next(g);
    put_interval(g, r, S);
    text_puts(&g->cell, measured_text(own, real_at(r, ROWS_PER_STEP), NAN, NAN)), grid_next(g);
    for (int i = CTAR_1; i <= CTAR_4; i++) put_share(g, real_at(r, i), real_at(r, STEPS));
    put_number(g, r, RATE);
    put_interval(g, r, SPEEDUP);
    put_number(g, r, E2E);
    put_number(g, r, SPECBENCH);
    put_lossless(&g->cell, r);
    if (rows_type(r, AGAINST) != VALUE_NULL) text_printf(&g->cell, "; against %s", rows_text(r, AGAINST));
    if (rows_type(r, SAME_PATH) != VALUE_NULL)
        text_printf(
            &g->cell, ", %s against its own settings",
            measured_text(own, rows_real(r, SAME_PATH), real_at(r, SPEEDUP_LOW), real_at(r, SPEEDUP_HIGH)));
    if (rows_type(r, DOUBT) != VALUE_NULL) text_printf(&g->cell, "; %s", rows_text(r, DOUBT));
    grid_next(g);
    grid_end(g);
}

static void put_point(Grid *g, const Rows *r) {
    text_printf(&g->cell, "%lld", (long long)rows_int(r, NUMBER));
    grid_next(g);
    text_puts(&g->cell, rows_text(r, LABEL));
    grid_next(g);
    bool skipped = rows_type(r, SKIPPED) != VALUE_NULL, failed = rows_type(r, FAILED) != VALUE_NULL;
    if (skipped) text_printf(&g->cell, "skipped: %s", rows_text(r, SKIPPED));
    else if (failed) text_printf(&g->cell, "failed: %s", rows_text(r, FAILED));
    else if (rows_int(r, SAMPLES) == 0) text_puts(&g->cell, "not measured yet");
    if (g->cell.length) grid_rest(g);
    else put_measured(g, r);
}

static bool each_point(Store *store, int64_t run, void (*put)(void *state, const Rows *r), void *state,
                       Error *e) {
    Rows *r = rows_open(store, harness_stored, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (rows_next(r)) put(state, r);
    return rows_end(r, true, e);
}

typedef struct Table {
    Grid *grid;
    Text last; // model and dataset of the row above
} Table;

static void put_row(void *state, const Rows *r) {
    Table *t = state;
    Text now = {0};
    text_printf(&now, "%s\n%s", rows_text(r, MODEL), rows_text(r, DATASET));
    if (strcmp(text_get(&now), text_get(&t->last)) != 0) put_head(t->grid, r);
    text_release(&t->last);
    t->last = now;
    put_point(t->grid, r);
}

bool stored_table(Store *store, int64_t run, Grid *out, Error *e) {
    Table t = {.grid = out};
    out->columns = COLUMN, out->count = sizeof COLUMN / sizeof *COLUMN;
    bool ok = each_point(store, run, put_row, &t, e);
    text_release(&t.last);
    return ok;
}

// --- as JSON ---------------------------------------------------------------------------------------------

static json_t *value_at(const Rows *r, int column) {
    switch (rows_type(r, column)) {
    case VALUE_INT: return json_integer(rows_int(r, column));
    case VALUE_REAL: return json_real(rows_real(r, column));
    case VALUE_TEXT: return json_string(rows_text(r, column));
    default: return json_null();
    }
}

static void put_object(void *state, const Rows *r) {
    json_t *object = json_object();
    for (int i = 0; i < COLUMNS; i++) json_object_set_new(object, rows_name(r, i), value_at(r, i));
    json_array_append_new(state, object);
}

bool stored_json(Store *store, int64_t run, Text *out, Error *e) {
    json_t *list = json_array();
    bool ok = each_point(store, run, put_object, list, e);
    if (!ok) json_decref(list);
    return ok && (json_append(list, JSON_COMPACT, out));
}

void stored_alone(int64_t points, Text *out) {
    if (points)
        text_printf(out,
                    "points without an autoregressive baseline: %lld; they have no speedup: import them with "
                    "it (--baseline FILE, or its lines in the same file)\n",
                    (long long)points);
}
