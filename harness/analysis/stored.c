// See stored.h. Reads only; what a store of an older program lacks is unknown, not zero.
#include "harness/analysis/stored.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/cli/version.h"
#include "plots/plots.h"
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

// The pattern, with its folder's name taken literally: "res[1]/*.db" is not "res1/*.db".
static void escape_folder(const char *pattern, const char *name, Text *out) {
    for (const char *c = pattern; c < name; c++) {
        if (strchr("*?[\\", *c)) text_puts(out, "\\");
        text_add(out, c, 1);
    }
    text_puts(out, name);
}

// A folder that isn't there may be a pattern, too.
bool stored_match(const char *pattern, glob_t *out, Error *e) {
    const char *slash = strrchr(pattern, '/');
    char *folder = mem_text(pattern, slash ? (size_t)(slash - pattern) : 0);
    Text literal = {0};
    escape_folder(pattern, slash && file_exists(folder) ? slash : pattern, &literal);
    bool found = glob(text_get(&literal), GLOB_TILDE, NULL, out) == 0;
    text_release(&literal);
    mem_free(folder);
    if (found) return true;
    globfree(out);
    return error_input(e, "no store matches '%s'", pattern);
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

EMBED(harness_stored, "harness/analysis/stored.sql")

// Its columns, in order.
enum {
    NUMBER,
    MODEL,
    STAND_IN,
    QUANTISED,
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
    COLUMNS, // as many are keys of its JSON
    DOUBTFUL = COLUMNS,
    REASON,
    ALIKE, // all points of this model and dataset have as many prompts and passes:
    ALL_PROMPTS,
    ALL_PASSES
};

static double real_at(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? NAN : rows_real(r, column);
}

// The columns of the table; those that go first where a terminal is narrow are the variants of a number.
static const GridColumn COLUMN[] = {
    {"point", true, 0, 0},   {"method", false, 16, 0}, {"S", true, 0, 0},         {"[95%]", false, 0, 11},
    {"speedup", true, 0, 0}, {"[95%]", false, 0, 10},  {"", false, 0, 0}, // the mark of doubtful times
    {"same", false, 4, 0},   {"prompts", true, 0, 0},  {"rows/step", true, 0, 8}, {"CTAR1", true, 0, 5},
    {"CTAR2", true, 0, 4},   {"CTAR4", true, 0, 3},    {"tokens/s", true, 0, 7},  {"e2e", true, 0, 2},
    {"sb", true, 0, 1},      {"note", false, 16, 9},
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

// The verdict on the text; sampled text is checked by 'outpace verify'.
static void put_lossless(Text *out, const Rows *r) {
    if (rows_int(r, IS_BASELINE)) text_puts(out, "base");
    else if (rows_int(r, DIVERGED))
        text_printf(out, "NO, %lld of %lld differ", (long long)rows_int(r, DIVERGED),
                    (long long)rows_int(r, SAMPLES));
    else if (rows_real(r, TEMPERATURE) > 0) text_puts(out, "sampled");
    else text_puts(out, rows_type(r, DIVERGED) == VALUE_NULL ? "not compared" : "yes");
}

// "12 prompts", "1 prompt x 3 passes".
static void put_amount(Text *out, int64_t prompts, int64_t passes) {
    text_printf(out, "%lld prompt%s", (long long)prompts, prompts == 1 ? "" : "s");
    if (passes > 1) text_printf(out, " x %lld passes", (long long)passes);
}

static void put_head(Grid *g, const Rows *r) {
    const char *stand_in = rows_text(r, STAND_IN), *quantised = rows_text(r, QUANTISED);
    grid_end(g);
    text_printf(&g->cell, "%s, %s", rows_text(r, MODEL), rows_text(r, DATASET));
    if (rows_int(r, ALIKE))
        put_amount((text_puts(&g->cell, ": "), &g->cell), rows_int(r, ALL_PROMPTS), rows_int(r, ALL_PASSES));
    if (stand_in[0]) text_printf(&g->cell, "  (stand-in: %s)", stand_in);
    if (quantised[0]) text_printf(&g->cell, "  (quantised: %s)", quantised);
    grid_rest(g);
    grid_heads(g);
}

static void put_measured(Grid *g, const Rows *r) {
    char own[MEASURED_SIZE];
    put_interval(g, r, S);
    put_interval(g, r, SPEEDUP);
    text_puts(&g->cell, rows_int(r, DOUBTFUL) ? "*" : ""), grid_next(g);
    put_lossless(&g->cell, r), grid_next(g);
    if (!rows_int(r, ALIKE))
        text_printf(&g->cell, "%lldx%lld", (long long)rows_int(r, PROMPTS), (long long)rows_int(r, PASSES));
    grid_next(g);
    text_puts(&g->cell, measured_text(own, real_at(r, ROWS_PER_STEP), NAN, NAN)), grid_next(g);
    for (int i = CTAR_1; i <= CTAR_4; i++) put_share(g, real_at(r, i), real_at(r, STEPS));
    put_number(g, r, RATE);
    put_number(g, r, E2E);
    put_number(g, r, SPECBENCH);
    if (rows_type(r, AGAINST) != VALUE_NULL) text_printf(&g->cell, "against %s", rows_text(r, AGAINST));
    if (rows_type(r, SAME_PATH) != VALUE_NULL)
        text_printf(
            &g->cell, ", %s against its own settings",
            measured_text(own, rows_real(r, SAME_PATH), real_at(r, SPEEDUP_LOW), real_at(r, SPEEDUP_HIGH)));
    if (rows_type(r, REASON) != VALUE_NULL)
        text_printf(&g->cell, "%s%s", g->cell.length ? "; " : "", rows_text(r, REASON));
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

// Before the table, what disturbed the run.
static bool put_doubt(Store *store, int64_t run, Grid *g, Error *e) {
    Rows *r = rows_open(store, report_doubt, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    if (rows_next(r)) text_puts(&g->cell, rows_text(r, 0)), grid_rest(g);
    return rows_end(r, true, e);
}

bool stored_table(Store *store, int64_t run, Grid *out, Error *e) {
    Table t = {.grid = out};
    out->columns = COLUMN, out->count = sizeof COLUMN / sizeof *COLUMN;
    bool ok = put_doubt(store, run, out, e) && each_point(store, run, put_row, &t, e);
    text_release(&t.last);
    return ok;
}

// --- by category -----------------------------------------------------------------------------------------

__asm__(".globl stored_tasks\n"); // a command asks it, too
EMBED(stored_tasks, "harness/analysis/tasks.sql")

// Its columns, in order.
enum {
    TASK = 2,
    TASK_POINT,
    TASK_METHOD,
    TASK_PROMPTS,
    TASK_S,
    TASK_ACCEPTANCE = TASK_S + 3,
    TASK_SPEEDUP = TASK_ACCEPTANCE + 3,
    TASK_DOUBT = TASK_SPEEDUP + 3,
    TASK_DOUBTFUL
};

static const GridColumn TASK_COLUMN[] = {
    {"category", false, 0, 0}, {"point", true, 0, 1},  {"method", false, 24, 0}, {"prompts", true, 0, 2},
    {"S", true, 0, 0},         {"[95%]", false, 0, 4}, {"accepted", true, 0, 0}, {"[95%]", false, 0, 3},
    {"speedup", true, 0, 0},   {"[95%]", false, 0, 5}, {"", false, 0, 0}, // the mark of doubtful times
};

static void put_task(Grid *g, const Rows *r, bool first, bool another) {
    if (first) {
        grid_end(g);
        text_printf(&g->cell, "%s, %s", rows_text(r, 0), rows_text(r, 1));
        grid_rest(g);
        grid_heads(g);
    }
    text_puts(&g->cell, another ? rows_text(r, TASK) : ""), grid_next(g);
    for (int i = TASK_POINT; i <= TASK_PROMPTS; i++) text_puts(&g->cell, rows_text(r, i)), grid_next(g);
    for (int i = TASK_S; i < TASK_DOUBT; i += 3) put_interval(g, r, i);
    text_puts(&g->cell, rows_int(r, TASK_DOUBTFUL) ? "*" : ""), grid_next(g);
    grid_end(g);
}

bool stored_task_table(Store *store, int64_t run, Grid *out, Error *e) {
    Rows *r = rows_open(store, stored_tasks, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    out->columns = TASK_COLUMN, out->count = sizeof TASK_COLUMN / sizeof *TASK_COLUMN;
    bool ok = put_doubt(store, run, out, e);
    Text last = {0}, task = {0};
    bool any = false;
    for (; rows_next(r); any = true) {
        Text now = {0};
        text_printf(&now, "%s\n%s", rows_text(r, 0), rows_text(r, 1));
        bool first = strcmp(text_get(&now), text_get(&last)) != 0;
        put_task(out, r, first, first || strcmp(text_get(&task), rows_text(r, TASK)) != 0);
        text_clear(&task), text_puts(&task, rows_text(r, TASK));
        text_release(&last);
        last = now;
    }
    text_release(&last);
    text_release(&task);
    if (!rows_end(r, ok, e)) return false;
    return any || error_input(e, "run %lld has no data of several tasks, so no categories", (long long)run);
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

json_t *stored_json(Store *store, int64_t run, Error *e) {
    json_t *list = json_array();
    bool ok = each_point(store, run, put_object, list, e);
    if (ok) return list;
    json_decref(list);
    return NULL;
}

void stored_alone(int64_t points, Text *out) {
    if (points)
        text_printf(out,
                    "points without an autoregressive baseline: %lld; they have no speedup: import them with "
                    "it (--baseline FILE, or its lines in the same file)\n",
                    (long long)points);
}

// --- points of S for a fit

EMBED(stored_points_sql, "harness/analysis/stored_points.sql")

static bool add_set(StoredSets *out, size_t *capacity, const Rows *r) {
    mem_grow(&out->sets, capacity, out->count + 1, sizeof *out->sets);
    StoredSet *s = &out->sets[out->count++];
    Text title = {0};
    text_puts(&title, rows_text(r, 0));
    if (rows_int(r, 4)) text_printf(&title, "; %s", rows_text(r, 1)); // a title is of one set alone
    if (rows_int(r, 5)) text_printf(&title, "; bonus %s", rows_int(r, 3) ? "dropped" : "kept");
    *s = (StoredSet){.title = mem_text(text_get(&title), title.length),
                     .points = mem_text(rows_text(r, 2), strlen(rows_text(r, 2))),
                     .bonus_dropped = rows_int(r, 3) != 0};
    text_release(&title);
    return (s->title && s->points);
}

bool stored_sets(Store *store, int64_t run, StoredSets *out, Error *e) {
    size_t capacity = 0;
    *out = (StoredSets){0};
    Rows *r = rows_named(store, stored_points_sql, "sets", run, e);
    bool ok = true;
    while (ok && rows_next(r)) ok = add_set(out, &capacity, r);
    if (!rows_end(r, ok, e)) return false;
    return out->count || error_input(e,
                                     "run %lld of '%s' has no point whose law is known: measured, of "
                                     "lookahead, with its own N, W and G above 0",
                                     (long long)run, store_path(store));
}

void stored_sets_release(StoredSets *s) {
    for (size_t i = 0; i < s->count; i++) {
        mem_free(s->sets[i].title);
        mem_free(s->sets[i].points);
    }
    mem_free(s->sets);
    *s = (StoredSets){0};
}

// Runs that were imported may not know what steps accepted, or what guesses they had: a column is there where
// each row has it.
enum { TOKENS = 4, POINT_STEPS, OUTPUTS, FILLING, ACCEPTED_AT, CANDIDATES_AT, ALL_ACCEPTED, ALL_CANDIDATES };

static void put_points_head(Text *tsv, const Rows *r) {
    text_puts(tsv, "N\tW\tG\tS\tprompt\tsteps");
    if (rows_int(r, ALL_ACCEPTED)) text_puts(tsv, "\taccepted");
    if (rows_int(r, ALL_CANDIDATES)) text_puts(tsv, "\tcandidates");
    text_puts(tsv, "\n");
}

static void put_point_row(Text *tsv, const Rows *r) {
    double tokens = rows_real(r, TOKENS), steps = rows_real(r, POINT_STEPS);
    for (int i = 0; i < 3; i++) text_printf(tsv, "%s\t", rows_text(r, i));
    text_printf(tsv, "%.17g\t%s\t%s", tokens / steps, rows_text(r, 3), rows_text(r, POINT_STEPS));
    if (rows_int(r, ALL_ACCEPTED)) text_printf(tsv, "\t%s", rows_text(r, ACCEPTED_AT));
    if (rows_int(r, ALL_CANDIDATES)) text_printf(tsv, "\t%s", rows_text(r, CANDIDATES_AT));
    text_puts(tsv, "\n");
}

bool stored_points(Store *store, const StoredSet *set, Text *tsv, double *output, Error *e) {
    double tokens = 0, outputs = 0, filling = 0;
    int count = 0;
    Rows *r = rows_named(store, stored_points_sql, "points", 0, e);
    rows_bind_text(r, 1, set->points);
    for (; rows_next(r); count++) {
        if (count == 0) put_points_head(tsv, r);
        put_point_row(tsv, r);
        tokens += rows_real(r, TOKENS), outputs += rows_real(r, OUTPUTS), filling += rows_real(r, FILLING);
    }
    if (!rows_end(r, true, e)) return false;
    *output = filling > 0 ? tokens / outputs : 0;
    return count > 0 || error_input(e, "%s: no prompt with a step past filling at every point", set->title);
}

// --- fits that are kept

static const char *const DRAWN[] = {"prompts", "errors", "residuals", "steps"};

static void add_estimate(StoreFit *to, const char *estimator, const FitEstimate *x) {
    if (!x->given) return;
    bool known = x->interval;
    to->estimates[to->estimate_count++] = (StoreFitEstimate){.estimator = estimator,
                                                             .alpha = x->alpha.value,
                                                             .alpha_low = known ? x->alpha.low : NAN,
                                                             .alpha_high = known ? x->alpha.high : NAN,
                                                             .f = x->f.value,
                                                             .f_low = known ? x->f.low : NAN,
                                                             .f_high = known ? x->f.high : NAN,
                                                             .rms = x->rms,
                                                             .condition = x->condition,
                                                             .correlation = x->correlation,
                                                             .drawn = known ? DRAWN[x->drawn] : NULL};
}

static bool hash_all(StoredFit *out, const char *tsv, Error *e) {
    const StoreFit *f = &out->fit;
    Text all = {0};
    bool ok = sha256_bytes(tsv, strlen(tsv), out->points, e);
    text_printf(&all, "%s\n%s\n%s\n%s\n%.17g\n%d\n%lld\n", out->points, f->title, f->law, f->bonus, f->output,
                f->resamples, (long long)f->seed);
    ok = ok && sha256_bytes(text_get(&all), all.length, out->hash, e);
    text_release(&all);
    return ok;
}

bool stored_fit_make(StoredFit *out, const StoredSet *set, const char *tsv, const FitOptions *o,
                     const Fit *fit, Error *e) {
    *out = (StoredFit){.fit = {.hash = out->hash,
                               .points = out->points,
                               .point_ids = set->points,
                               .title = set->title,
                               .law = o->law == FIT_PAPER ? "paper" : "corrected",
                               .bonus = o->bonus_dropped ? "dropped" : "kept",
                               .output = o->output,
                               .estimator = fit->best == &fit->likelihood ? "likelihood" : "least_squares",
                               .fitted = fit->fitted,
                               .prompts = fit->prompts,
                               .resamples = o->resamples,
                               .seed = (int64_t)o->seed,
                               .version = version_text()}};
    add_estimate(&out->fit, "least_squares", &fit->least_squares);
    add_estimate(&out->fit, "likelihood", &fit->likelihood);
    return hash_all(out, tsv, e);
}

bool stored_fits_keep(const char *db, int64_t run, const StoredFit *fits, size_t count, Error *e) {
    bool added;
    Store *store = store_open(db, STORE_WRITE, NULL, e);
    bool ok = store && store_begin(store, e);
    for (size_t i = 0; ok && i < count; i++) ok = store_fit(store, run, &fits[i].fit, &added, e);
    ok = ok && store_commit(store, e);
    store_close(store);
    return ok;
}

bool stored_fits_text(Store *store, int64_t run, Text *out, Error *e) {
    Rows *r = rows_named(store, stored_points_sql, "fits", run, e);
    while (rows_next(r)) text_printf(out, "fit of %s\n", rows_text(r, 0));
    return rows_end(r, true, e);
}
