// See stored.h. Reads only; what a store of an older program lacks is unknown, not zero.
#include "harness/analysis/stored.h"

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
    if (text) rows_bind_text(r, 1, text);
    else if (rows_parameters(r)) rows_bind_int(r, 1, number);
    *out = rows_next(r) ? rows_int(r, 0) : 0;
    return rows_end(r, true, e);
}

// The folder may be a pattern, too, unless one of that name exists: then "res[1]/*.db" is not "res1/*.db".
bool stored_match(const char *pattern, glob_t *out, Error *e) {
    const char *slash = strrchr(pattern, '/'), *c = pattern;
    LOCAL_MEMORY char *folder = mem_text(pattern, slash ? (size_t)(slash - pattern) : 0);
    LOCAL_TEXT literal = {0};
    for (bool escape = slash && file_exists(folder); *c; c++)
        text_printf(&literal, "%s%c", escape && c < slash && strchr("*?[\\", *c) ? "\\" : "", *c);
    return glob(text_get(&literal), GLOB_TILDE, NULL, out) == 0 ||
           error_input(e, "no store matches '%s'", pattern);
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

static const Column POINTS_COLUMNS[] = {
    {"point", "point", AS_COUNT, .help = "its number"},
    {"model", .help = "of the point"},
    {"stand_in",
     .help =
         "for a stand-in, how it was made: inflated from which model to which shape, or with random weights"},
    {"quantised", .help = "for a quantised model, the form of its codes and its original"},
    {"dataset", .help = "of the point"},
    {"label", "method", .least = 16, .help = "its name"},
    {"temperature", .help = "0: greedy"},
    {"baseline", .help = "1: the point is its own baseline"},
    {"skipped failed", .help = "why it has no samples"},
    {.kind = AS_REST},
    {"prompts passes samples", .help = "how many were measured"},
    {"disturbed doubt", .help = "samples with other work on the machine; why times may be wrong"},
    {"diverged", .help = "samples whose text is not the baseline's"},
    {"steps", .help = "how many"},
    {"CTAR1 CTAR2 CTAR4", .help = "share of steps that accept at least so many drafted tokens"},
    {"S S_low S_high", "S", AS_MEASURED, .help = "tokens a step"},
    {.head = "[95%]", .kind = AS_REACH, .drop = 11},
    {"rows_per_step", .help = "rows of a step on average"},
    {"tokens_per_s tokens_per_s_low tokens_per_s_high", .help = "decoding"},
    {"speedup speedup_low speedup_high", "speedup", AS_MEASURED, .help = "over the baseline, decoding"},
    {.head = "[95%]", .kind = AS_REACH, .drop = 10},
    {.head = ""}, // the mark of doubtful times
    {.head = "same", .least = 4},
    {.head = "prompts", .kind = AS_COUNT},
    {.head = "rows/step", .kind = AS_MEASURED, .drop = 8}, // from here on the variants of a number go first
    {.head = "CTAR1", .kind = AS_MEASURED, .drop = 5},
    {.head = "CTAR2", .kind = AS_MEASURED, .drop = 4},
    {.head = "CTAR4", .kind = AS_MEASURED, .drop = 3},
    {.head = "tokens/s", .kind = AS_MEASURED, .drop = 7},
    {"speedup_e2e speedup_e2e_low speedup_e2e_high", "e2e", AS_MEASURED, .drop = 2, .help = "with prefill"},
    {"speedup_specbench speedup_specbench_low speedup_specbench_high", "sb", AS_MEASURED, .drop = 1,
     .help = "as Spec-Bench counts"},
    {"against speedup_same_path",
     .help = "another baseline than the usual one; the speedup over the usual one"},
    {.head = "note", .least = 16, .drop = 9},
};
const TableForm stored_points_form = {"show", TABLE_COLUMNS(POINTS_COLUMNS),
                                      .about = "Points of a run: `outpace show RUN --json`."};

static double real_of(const Rows *r, const char *name) { return rows_real(r, query_column(r, name)); }
static int64_t int_of(const Rows *r, const char *name) { return rows_int(r, query_column(r, name)); }
static const char *text_of(const Rows *r, const char *name) { return rows_text(r, query_column(r, name)); }

// A share of the steps, by the normal law.
static Cell share(const Rows *r, const char *name) {
    double share = real_of(r, name), reach = 1.96 * sqrt(share * (1 - share) / real_of(r, "steps"));
    return cell_measured(share, share - reach, share + reach);
}

// The verdict on the text; sampled text is checked by 'outpace verify'.
static void put_lossless(Text *out, const Rows *r) {
    int64_t diverged = int_of(r, "diverged");
    if (int_of(r, "baseline")) text_puts(out, "base");
    else if (diverged)
        text_printf(out, "NO, %lld of %lld differ", (long long)diverged, (long long)int_of(r, "samples"));
    else if (real_of(r, "temperature") > 0) text_puts(out, "sampled");
    else text_puts(out, isnan(real_of(r, "diverged")) ? "not compared" : "yes");
}

static void put_note(Text *out, const Rows *r) {
    char own[MEASURED_SIZE];
    const char *against = text_of(r, "against"), *reason = text_of(r, "reason");
    double same_path = real_of(r, "speedup_same_path");
    if (*against) text_printf(out, "against %s", against);
    if (isfinite(same_path))
        text_printf(out, ", %s against its own settings",
                    measured_text(own, same_path, real_of(r, "speedup_low"), real_of(r, "speedup_high")));
    if (*reason) text_printf(out, "%s%s", out->length ? "; " : "", reason);
}

static void put_point(RecordTable *t, const Rows *r) {
    const char *skipped = text_of(r, "skipped"), *failed = text_of(r, "failed");
    LOCAL_TEXT rest = {0}, same = {0}, note = {0};
    char prompts[48] = "";
    if (*skipped) text_printf(&rest, "skipped: %s", skipped);
    else if (*failed) text_printf(&rest, "failed: %s", failed);
    else if (int_of(r, "samples") == 0) text_puts(&rest, "not measured yet");
    put_lossless(&same, r);
    put_note(&note, r);
    if (!int_of(r, "alike"))
        snprintf(prompts, sizeof prompts, "%lldx%lld", (long long)int_of(r, "prompts"),
                 (long long)int_of(r, "passes"));
    table_query_row(t, r,
                    (const Cell[]){CELL(text_get(&rest)), CELL(int_of(r, "doubtful") ? "*" : ""),
                                   CELL(text_get(&same)), CELL(prompts), CELL(real_of(r, "rows_per_step")),
                                   share(r, "CTAR1"), share(r, "CTAR2"), share(r, "CTAR4"),
                                   cell_measured(real_of(r, "tokens_per_s"), real_of(r, "tokens_per_s_low"),
                                                 real_of(r, "tokens_per_s_high")),
                                   CELL(text_get(&note))});
}

// "small, chat: 1 prompt x 3 passes  (stand-in: for 7B)"
static void put_title(RecordTable *t, const Rows *r) {
    const char *stand_in = text_of(r, "stand_in"), *quantised = text_of(r, "quantised");
    int64_t prompts = int_of(r, "all_prompts"), passes = int_of(r, "all_passes");
    LOCAL_TEXT title = {0};
    text_printf(&title, "%s, %s", text_of(r, "model"), text_of(r, "dataset"));
    if (int_of(r, "alike"))
        text_printf(&title, ": %lld prompt%s", (long long)prompts, prompts == 1 ? "" : "s");
    if (int_of(r, "alike") && passes > 1) text_printf(&title, " x %lld passes", (long long)passes);
    if (stand_in[0]) text_printf(&title, "  (stand-in: %s)", stand_in);
    if (quantised[0]) text_printf(&title, "  (quantised: %s)", quantised);
    table_group(t, text_get(&title));
}

// Before the table, what disturbed the run.
static bool put_doubt(Store *store, int64_t run, RecordTable *t, Error *e) {
    Rows *r = rows_named(store, report_sql, "doubt", run, e);
    if (rows_next(r)) table_line(t, 0, rows_text(r, 0));
    return rows_end(r, true, e);
}

// Whether model and dataset are others than those of the row before, which `last` keeps.
static bool begins(const Rows *r, Text *last) {
    Text now = {0};
    text_printf(&now, "%s\n%s", text_of(r, "model"), text_of(r, "dataset"));
    bool other = strcmp(text_get(&now), text_get(last)) != 0;
    text_release(last);
    *last = now;
    return other;
}

bool stored_table(Store *store, int64_t run, const Records *as, RecordTable *out, Error *e) {
    LOCAL_TEXT last = {0};
    *out = (RecordTable){.form = &stored_points_form, .as = as};
    bool ok = put_doubt(store, run, out, e);
    Rows *r = ok ? rows_open(store, harness_stored, e) : NULL;
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (rows_next(r)) {
        if (begins(r, &last)) put_title(out, r);
        put_point(out, r);
    }
    return rows_end(r, ok, e);
}

// --- by category -----------------------------------------------------------------------------------------

__asm__(".globl stored_tasks\n"); // a command asks it, too
EMBED(stored_tasks, "harness/analysis/tasks.sql")

static const Column TASK_COLUMNS[] = {
    {.head = "category"},
    {"point", "point", AS_COUNT, .drop = 1},
    {"method", "method", .least = 24},
    {"prompts", "prompts", AS_COUNT, .drop = 2},
    {"S S_low S_high", "S", .kind = AS_MEASURED},
    {.head = "[95%]", .kind = AS_REACH, .drop = 4},
    {"acceptance acceptance_low acceptance_high", "accepted", .kind = AS_MEASURED},
    {.head = "[95%]", .kind = AS_REACH, .drop = 3},
    {"speedup speedup_low speedup_high", "speedup", .kind = AS_MEASURED},
    {.head = "[95%]", .kind = AS_REACH, .drop = 5},
    {.head = ""}, // the mark of doubtful times
};
static const TableForm TASKS_FORM = {TABLE_COLUMNS(TASK_COLUMNS)};

bool stored_task_table(Store *store, int64_t run, RecordTable *out, Error *e) {
    LOCAL_TEXT last = {0}, task = {0};
    bool any = false;
    *out = (RecordTable){.form = &TASKS_FORM};
    if (!put_doubt(store, run, out, e)) return false;
    Rows *r = rows_ask(store, stored_tasks, run, e);
    for (; rows_next(r); any = true) {
        if (begins(r, &last)) {
            LOCAL_TEXT title = {0};
            text_printf(&title, "%s, %s", text_of(r, "model"), text_of(r, "dataset"));
            table_group(out, text_get(&title));
            text_clear(&task);
        }
        bool same = strcmp(text_get(&task), text_of(r, "task")) == 0;
        text_clear(&task), text_puts(&task, text_of(r, "task"));
        table_query_row(
            out, r,
            (const Cell[]){CELL(same ? "" : text_get(&task)), CELL(int_of(r, "doubtful") ? "*" : "")});
    }
    if (!rows_end(r, true, e)) return false;
    return any || error_input(e, "run %lld has no data of several tasks, so no categories", (long long)run);
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

bool stored_sets(Store *store, int64_t run, StoredSets *out, Error *e) {
    size_t capacity = 0;
    *out = (StoredSets){0};
    Rows *r = rows_named(store, stored_points_sql, "sets", run, e);
    while (rows_next(r)) {
        LOCAL_TEXT title = {0};
        text_puts(&title, rows_text(r, 0));
        if (rows_int(r, 4)) text_printf(&title, "; %s", rows_text(r, 1)); // a title is of one set alone
        if (rows_int(r, 5)) text_printf(&title, "; bonus %s", rows_int(r, 3) ? "dropped" : "kept");
        *LIST_ADD(out->sets, out->count, capacity) =
            (StoredSet){.title = mem_text(text_get(&title), title.length),
                        .points = mem_text(rows_text(r, 2), strlen(rows_text(r, 2))),
                        .bonus_dropped = rows_int(r, 3) != 0};
    }
    if (!rows_end(r, true, e)) return false;
    return out->count || error_input(e,
                                     "run %lld of '%s' has no point whose law is known: measured, of "
                                     "lookahead, with its own N, W and G above 0",
                                     (long long)run, store_path(store));
}

void stored_sets_release(StoredSets *s) {
    for (size_t i = 0; i < s->count; i++) { MEM_FREE(s->sets[i].title, s->sets[i].points); }
    mem_free(s->sets);
    *s = (StoredSets){0};
}

// Runs that were imported may not know what steps accepted, or what guesses they had: a column is there where
// each row has it.
enum { TOKENS = 4, POINT_STEPS, OUTPUTS, FILLING, ACCEPTED_AT, CANDIDATES_AT, ALL_ACCEPTED, ALL_CANDIDATES };

bool stored_points(Store *store, const StoredSet *set, Text *tsv, double *output, Error *e) {
    double tokens = 0, outputs = 0, filling = 0;
    Rows *r = rows_named(store, stored_points_sql, "points", 0, e);
    rows_bind_text(r, 1, set->points);
    while (rows_next(r)) {
        bool accepted = rows_int(r, ALL_ACCEPTED), candidates = rows_int(r, ALL_CANDIDATES);
        if (outputs == 0)
            text_printf(tsv, "N\tW\tG\tS\tprompt\tsteps%s%s\n", accepted ? "\taccepted" : "",
                        candidates ? "\tcandidates" : "");
        for (int i = 0; i < 3; i++) text_printf(tsv, "%s\t", rows_text(r, i));
        text_printf(tsv, "%.17g\t%s", rows_real(r, TOKENS) / rows_real(r, POINT_STEPS), rows_text(r, 3));
        text_printf(tsv, "\t%s", rows_text(r, POINT_STEPS));
        if (accepted) text_printf(tsv, "\t%s", rows_text(r, ACCEPTED_AT));
        if (candidates) text_printf(tsv, "\t%s", rows_text(r, CANDIDATES_AT));
        text_puts(tsv, "\n");
        tokens += rows_real(r, TOKENS), outputs += rows_real(r, OUTPUTS), filling += rows_real(r, FILLING);
    }
    if (!rows_end(r, true, e)) return false;
    *output = filling > 0 ? tokens / outputs : 0;
    return outputs > 0 || error_input(e, "%s: no prompt with a step past filling at every point", set->title);
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
    const StoreFit *f = &out->fit;
    LOCAL_TEXT all = {0};
    bool ok = sha256_bytes(tsv, strlen(tsv), out->points, e);
    text_printf(&all, "%s\n%s\n%s\n%s\n%.17g\n%d\n%lld\n", out->points, f->title, f->law, f->bonus, f->output,
                f->resamples, (long long)f->seed);
    return ok && sha256_bytes(text_get(&all), all.length, out->hash, e);
}

bool stored_fits_keep(const char *db, int64_t run, const StoredFit *fits, size_t count, Error *e) {
    bool added;
    LOCAL_STORE *store = store_open(db, STORE_WRITE, NULL, e);
    bool ok = store && store_begin(store, e);
    for (size_t i = 0; ok && i < count; i++) ok = store_fit(store, run, &fits[i].fit, &added, e);
    return ok && store_commit(store, e);
}

bool stored_fits_text(Store *store, int64_t run, Text *out, Error *e) {
    Rows *r = rows_named(store, stored_points_sql, "fits", run, e);
    while (rows_next(r)) text_printf(out, "fit of %s\n", rows_text(r, 0));
    return rows_end(r, true, e);
}
