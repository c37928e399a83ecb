// Prints stored runs: the list of them, or the table of a run's points.
#include "harness/cli/command.h"

#include "engine/base/shipped.h"
#include "harness/cli/table.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "harness/papers/computed.h"
#include "plots/plots.h"
#include "results/rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *db, *prompt;
    bool tasks, tokens;
    Records records;
    PredictionArguments of;
    Choice choice;
} ShowOptions;

#define AT(name) offsetof(ShowOptions, name)
static const Arg OPTIONS[] = {
    STORE_OPTION(AT(db)),
    RECORDS_OPTIONS(AT(records)),
    {"tasks", ARG_FLAG, AT(tasks), .help = "by category of the data: S, acceptance, speedup"},
    {"tokens", ARG_FLAG, AT(tokens), .help = "texts, each token in the colour of the source that guessed it"},
    {"prompt", ARG_WORD, AT(prompt), .help = "--tokens of this prompt, by its name or number", .value = "ID",
     .fallback = "each method's median, best and worst"},
    CHOICE_OPTIONS(AT, choice),
    PRICED_OPTIONS(AT, of),
};

// --- show ------------------------------------------------------------------------------------------------

EMBED(show_sql, "harness/commands/show.sql")

static const Column SURFACE[] = {
    {"kind", .head = "kind"},
    {"context", "context", .kind = AS_COUNT},
    {"sequences", "batch", .kind = AS_COUNT},
    {"grid", "k x w", .kind = AS_COUNT},
    {"layers", "layers", AS_COUNT, .drop = 4},
    {"rows", "rows", .kind = AS_COUNT},
    {"samples", "samples", AS_COUNT, .drop = 2},
    {"median low high", "median ms", AS_MEASURED, .scale = 1e-6, .optional = true},
    {.head = "[95%]", .kind = AS_REACH, .scale = 1e-6, .drop = 3},
    {"slowdown slowdown_low slowdown_high", "slowdown", AS_MEASURED, .optional = true},
    {.head = "[95%]", .kind = AS_REACH},
    {"floor", "floor ms", AS_MEASURED, .scale = 1e-6, .drop = 5},
    {"disturbed", .head = "disturbed"},
};
static const TableForm SURFACE_FORM = {TABLE_COLUMNS(SURFACE)};

static bool print_surface(Store *store, int64_t run, Error *e) {
    RecordTable t = {.form = &SURFACE_FORM};
    Rows *r = rows_named(store, show_sql, "surface", run, e);
    for (bool first = true; rows_next(r); first = false) {
        if (first) table_group(&t, NULL);
        table_query_row(&t, r, NULL);
    }
    return table_end(&t, rows_end(r, true, e), e);
}

// --- priced on another machine

static Rows *ask_priced(Store *store, const char *query, int64_t run, const Text *computed, Error *e) {
    Rows *r = rows_named(store, report_sql, query, run, e);
    rows_bind_text(r, 2, text_get(computed));
    return r;
}

static const Column PRICED[] = {
    {"method", "method", .least = 16},     {"S", "S", .kind = AS_TEXT},
    {"rows", "rows", .kind = AS_MEASURED}, {.head = "same text"},
    {"here", "here", .kind = AS_TEXT}, // *: doubtful times
    {"priced", "priced", .kind = AS_TEXT}, {"model", "model", .drop = 3},
    {"dataset", "dataset", .drop = 2},     {"point", "point", AS_COUNT, .drop = 1},
};
static const TableForm PRICED_FORM = {TABLE_COLUMNS(PRICED)};

static bool print_priced_table(Rows *r, Error *e) {
    RecordTable t = {.form = &PRICED_FORM};
    table_group(&t, NULL);
    while (rows_next(r))
        table_query_row(&t, r, (const Cell[]){CELL(rows_text(r, query_column(r, "same text")))});
    return table_end(&t, rows_end(r, true, e), e);
}

static bool print_priced(Store *store, int64_t run, const PredictionArguments *of, Error *e) {
    LOCAL_TEXT computed = {0};
    bool ok = computed_json(store, run, &(ComputedWanted){.prediction = of}, &computed, e) &&
              query_sentences(rows_named(store, report_sql, "doubt", run, e), e) &&
              print_priced_table(ask_priced(store, "priced", run, &computed, e), e);
    if (ok) puts("");
    return ok && query_sentences(ask_priced(store, "summary", run, &computed, e), e);
}

// --- the list of runs

static const Column RUNS[] = {
    {"id", "run", .kind = AS_COUNT},
    {"name", "name", .least = 24},
    {"made", "made", .drop = 2},
    {.head = "state"},
    {"begun", "begun", .kind = AS_COUNT},
    {"samples", "samples", AS_COUNT, .drop = 3},
    {"starts", "starts", AS_COUNT, .drop = 1},
};
static const TableForm RUNS_FORM = {TABLE_COLUMNS(RUNS)};

static bool list_runs(Store *store, Error *e) {
    RecordTable t = {.form = &RUNS_FORM};
    Rows *r = rows_named(store, show_sql, "runs", 0, e);
    while (rows_next(r)) {
        bool running = store_claimed(store, rows_int(r, query_column(r, "id")));
        const char *state = running ? "running" : rows_text(r, query_column(r, "state"));
        table_query_row(&t, r, (const Cell[]){CELL(state)});
    }
    return table_end(&t, rows_end(r, true, e), e);
}

// --- the command

// All about a run.
static bool print_all(Store *store, int64_t run, const Records *as, Error *e) {
    RecordTable t;
    bool ok = table_end(&t, stored_table(store, run, as, &t, e), e);
    if (!ok || records_asked(as)) return ok;
    LOCAL_TEXT alone = {0}, fits = {0};
    int64_t points;
    if (!rows_named_int(store, show_sql, "alone", run, &points, e) || !stored_fits_text(store, run, &fits, e))
        return false;
    stored_alone(points, &alone);
    if (points) terminal_printf("\n%s", text_get(&alone)); // why imported points lack a speedup
    if (fits.length) terminal_printf("\n%s", text_get(&fits));
    return print_surface(store, run, e) && query_sentences(rows_named(store, show_sql, "changed", run, e), e);
}

static bool show(void *options, CommandLine *line, Error *e) {
    ShowOptions *o = options;
    bool priced;
    int64_t run;
    RecordTable tasks;
    bool records = records_asked(&o->records);
    if (records && o->tasks)
        return error_input(e, "show: --tasks is a table: 'outpace table tasks' has others");
    if (!prediction_asked(&o->of, &priced, e)) return false;
    if (o->prompt && !o->tokens) return error_input(e, "show: --prompt goes with --tokens");
    if (o->tokens && (o->tasks || priced))
        return error_input(e, "show: --tokens prints texts, and no table: leave out --tasks and --on");
    if (priced && (records || o->tasks))
        return error_input(e, "show: --on goes with the table alone: 'outpace simulate' has others");
    LOCAL_STORE *store = store_open(o->db, STORE_READ, NULL, e);
    if (line->words.count == 0 && !records && !o->tasks && !o->tokens && !priced)
        return store && list_runs(store, e);
    return store && stored_run(store, line->words.items[0], &run, e) &&
           estimates_ensure(&store, run, o->tasks ? ESTIMATES_OF_TASKS : ESTIMATES_OF_POINTS, e) &&
           choice_apply(&o->choice, store, run, e) &&
           (records || query_sentences(rows_named(store, show_sql, "head", run, e), e)) &&
           (o->tokens  ? stored_tokens(store, run, o->prompt, &o->records, e)
            : priced   ? print_priced(store, run, &o->of, e)
            : o->tasks ? table_end(&tasks, stored_task_table(store, run, &tasks, e), e)
                       : print_all(store, run, &o->records, e));
}

const Command command_show = {
    .name = "show",
    .usage = "[RUN] [OPTIONS]",
    .summary = "list the runs of a store; print one: S, CTAR, speedups, whether the text is the same",
    .arguments = {0, 1},
    COMMAND_OPTIONS(OPTIONS, ShowOptions),
    .run = show,
    .tables = TABLES(&stored_points_form, &stored_tokens_form)};
