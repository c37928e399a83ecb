// Prints stored runs: the list of them, or the table of a run's points.
#include "harness/cli/command.h"

#include "harness/cli/records.h"
#include "harness/cli/terminal.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/estimates.h"
#include "harness/analysis/stored.h"
#include "harness/papers/computed.h"
#include "plots/plots.h"
#include "results/rows.h"
#include "results/store.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *db;
    bool tasks;
    Records records;
    PredictionArguments of;
    Choice choice;
} ShowOptions;

#define AT(name) offsetof(ShowOptions, name)
static const Arg OPTIONS[] = {
    {"db", ARG_WORD, AT(db), .help = "the store", .value = "FILE", .fallback = STORE_DEFAULT},
    RECORDS_OPTIONS(AT(records)),
    {"tasks", ARG_FLAG, AT(tasks), .help = "by category of the data: S, acceptance, speedup"},
    CHOICE_OPTIONS(AT, choice),
    PRICED_OPTIONS(AT, of),
};
#undef AT

// --- show ------------------------------------------------------------------------------------------------

static bool print_run(Store *store, int64_t run, Error *e) {
    static const char SQL[] =
        "SELECT run.id, run.name, run.version, cpu, cores, host, run.kind,"
        " (SELECT ', weights ' || weights FROM run_weights WHERE run_id = run.id AND weights <> 'mapped'),"
        " ', ' || unfinished, (SELECT ', imported from ' || path FROM content WHERE run_id = run.id AND kind "
        "="
        " 'import') FROM run JOIN run_state ON run_state.run_id = run.id"
        " JOIN attempt ON attempt.run_id = run.id JOIN environment ON environment.id = environment_id"
        " WHERE run.id = ?1 ORDER BY attempt.id DESC";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    Text line = {0};
    if (rows_next(r)) {
        text_printf(&line, "run %lld, %s%s: ", (long long)rows_int(r, 0), SHOWN(rows_text(r, 1)),
                    rows_text(r, 8));
        if (strcmp(rows_text(r, 6), "import") == 0) text_puts(&line, "imported\n");
        else
            text_printf(&line, "outpace %s on %s, %lld cores (%s)%s%s\n", rows_text(r, 2), rows_text(r, 3),
                        (long long)rows_int(r, 4), rows_text(r, 5), rows_text(r, 7), rows_text(r, 9));
    }
    terminal_print(&line);
    return rows_end(r, true, e);
}

static const GridColumn SURFACE[] = {
    {"kind", false, 0, 0},      {"context", true, 0, 0},  {"batch", true, 0, 0},   {"k x w", true, 0, 0},
    {"layers", true, 0, 4},     {"rows", true, 0, 0},     {"samples", true, 0, 2}, {"median ms", true, 0, 0},
    {"[95%]", false, 0, 3},     {"slowdown", true, 0, 0}, {"[95%]", false, 0, 0},  {"floor ms", true, 0, 5},
    {"disturbed", false, 0, 0},
};

// The columns of print_surface's query, in order.
enum {
    KIND,
    CONTEXT,
    SEQUENCES,
    K,
    W,
    A,
    B,
    ROWS,
    SAMPLES,
    MEDIAN,
    SLOWDOWN = MEDIAN + 3,
    FLOOR = SLOWDOWN + 3,
    FLAGS,
    SLOWDOWN_DOUBTFUL,
    DISTURBED
};

static double real_at(const Rows *r, int column) {
    return rows_type(r, column) == VALUE_NULL ? NAN : rows_real(r, column);
}

// A number and, in the two columns after it, its interval; nothing where it is unknown.
static void put_measured(Grid *g, const Rows *r, int column) {
    double value = real_at(r, column), low = real_at(r, column + 1), high = real_at(r, column + 2);
    char own[MEASURED_SIZE];
    if (isfinite(value)) text_puts(&g->cell, measured_text(own, value, low, high));
    grid_next(g);
    text_reach(&g->cell, value, low, high), grid_next(g);
}

static void put_step(Grid *g, const Rows *r) {
    char own[MEASURED_SIZE];
    text_puts(&g->cell, rows_text(r, KIND)), grid_next(g);
    text_puts(&g->cell, rows_text(r, CONTEXT)), grid_next(g);
    if (rows_int(r, SEQUENCES) > 1) text_puts(&g->cell, rows_text(r, SEQUENCES));
    grid_next(g);
    if (rows_type(r, K) == VALUE_NULL) text_puts(&g->cell, "-");
    else text_printf(&g->cell, "%sx%s", rows_text(r, K), rows_text(r, W));
    grid_next(g);
    if (rows_type(r, B) == VALUE_NULL) text_puts(&g->cell, "-");
    else text_printf(&g->cell, "%s-%s", rows_text(r, A), rows_text(r, B));
    grid_next(g);
    text_puts(&g->cell, rows_text(r, ROWS)), grid_next(g);
    text_puts(&g->cell, rows_text(r, SAMPLES)), grid_next(g);
    put_measured(g, r, MEDIAN);
    put_measured(g, r, SLOWDOWN);
    if (isfinite(real_at(r, FLOOR))) text_puts(&g->cell, measured_text(own, real_at(r, FLOOR), NAN, NAN));
    grid_next(g);
    if (rows_int(r, FLAGS)) text_puts(&g->cell, "yes");
    else if (rows_int(r, SLOWDOWN_DOUBTFUL)) text_puts(&g->cell, "slowdown: one token was");
    else if (rows_int(r, DISTURBED)) text_printf(&g->cell, "%s repeated", rows_text(r, DISTURBED));
    grid_next(g);
    grid_end(g);
}

// The surface of a run of 'outpace bench --store'; nothing for others.
static bool print_surface(Store *store, int64_t run, Error *e) {
    static const char SQL[] =
        "SELECT s.kind, context, sequences, k, w, a, b, s.rows, samples, 1e-6 * median_ns, 1e-6 * low_ns, "
        "1e-6 * "
        "high_ns,"
        " slowdown, slowdown_low, slowdown_high, 1e-6 * floor_ns, flags, slowdown_doubtful, disturbed"
        " FROM surface_doubt AS s JOIN attempt ON"
        " attempt.id = attempt_id WHERE run_id = ?1 ORDER BY context, s.kind, sequences, k, w, b, "
        "s.rows";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    Grid g = {.columns = SURFACE, .count = sizeof SURFACE / sizeof *SURFACE};
    for (bool first = true; rows_next(r); first = false) {
        if (first) grid_end(&g), grid_heads(&g);
        put_step(&g, r);
    }
    bool ok = rows_end(r, true, e) && grid_show(&g, e);
    grid_release(&g);
    return ok;
}

// Why imported points lack a speedup.
static bool print_alone(Store *store, int64_t run, Error *e) {
    static const char SQL[] = "SELECT count(*) FROM point_base JOIN point ON point.id = point_id JOIN run ON "
                              "run.id = run_id WHERE run_id = ?1 AND kind = 'import' AND base_id IS NULL";
    Text line = {0};
    int64_t alone;
    if (!rows_one_int(store, SQL, run, &alone, e)) return false;
    stored_alone(alone, &line);
    if (alone) terminal_printf("\n%s", text_get(&line));
    text_release(&line);
    return true;
}

// alpha and f, where 'outpace fit' was run.
static bool print_fits(Store *store, int64_t run, Error *e) {
    Text lines = {0};
    bool ok = stored_fits_text(store, run, &lines, e);
    if (ok && lines.length) terminal_printf("\n%s", text_get(&lines));
    text_release(&lines);
    return ok;
}

// --- priced on another machine

static bool ask_priced(Store *store, const char *sql, int64_t run, const char *computed, Rows **out,
                       Error *e) {
    *out = rows_open(store, sql, e);
    if (!*out) return false;
    rows_bind_int(*out, 1, run);
    if (computed) rows_bind_text(*out, 2, computed);
    return true;
}

// A sentence, if there is one.
static bool print_sentence(Store *store, const char *sql, int64_t run, const char *computed, Error *e) {
    Rows *r;
    if (!ask_priced(store, sql, run, computed, &r, e)) return false;
    if (rows_next(r)) terminal_printf("%s\n", rows_text(r, 0));
    return rows_end(r, true, e);
}

// The columns of report_priced, the intervals in columns of their own.
static const GridColumn PRICED[] = {
    {"method", false, 16, 0}, {"S", true, 0, 0},          {"[95%]", false, 0, 6},
    {"rows", true, 0, 0},     {"same text", false, 0, 0}, {"here", true, 0, 0},
    {"[95%]", false, 0, 5},   {"", false, 0, 0}, // doubtful times
    {"priced", true, 0, 0},   {"[95%]", false, 0, 4},     {"model", false, 0, 3},
    {"dataset", false, 0, 2}, {"point", true, 0, 1},
};
enum { PRICED_S = 1, PRICED_HERE = 4, PRICED_THERE };

// "2.2 [1.8, 2.5] *"
static void put_parts(Grid *g, const char *text, bool marked) {
    size_t value = strcspn(text, " "), all = strcspn(text, "]");
    text_add(&g->cell, text, value), grid_next(g);
    if (text[all]) text_add(&g->cell, text + value + 1, all - value);
    grid_next(g);
    if (!marked) return;
    if (strchr(text, '*')) text_puts(&g->cell, "*");
    grid_next(g);
}

static bool print_priced_table(Store *store, int64_t run, const char *computed, Error *e) {
    Grid g = {.columns = PRICED, .count = sizeof PRICED / sizeof *PRICED};
    char own[MEASURED_SIZE];
    Rows *r;
    if (!ask_priced(store, report_priced, run, computed, &r, e)) return false;
    grid_end(&g);
    grid_heads(&g);
    while (rows_next(r)) {
        for (int i = 0; i < rows_columns(r); i++)
            if (i == PRICED_S || i == PRICED_HERE || i == PRICED_THERE)
                put_parts(&g, rows_text(r, i), i == PRICED_HERE);
            else {
                bool real = rows_type(r, i) == VALUE_REAL;
                text_puts(&g.cell, real ? measured_text(own, rows_real(r, i), NAN, NAN) : rows_text(r, i));
                grid_next(&g);
            }
        grid_end(&g);
    }
    bool ok = grid_show(&g, e);
    grid_release(&g);
    return rows_end(r, ok, e);
}

static bool print_priced(Store *store, int64_t run, const PredictionArguments *of, Error *e) {
    Text computed = {0};
    bool ok = computed_json(store, run, &(ComputedWanted){.prediction = of}, &computed, e) &&
              print_sentence(store, report_doubt, run, NULL, e) &&
              print_priced_table(store, run, text_get(&computed), e);
    if (ok) puts("");
    ok = ok && print_sentence(store, report_summary, run, text_get(&computed), e);
    text_release(&computed);
    return ok;
}

static bool print_disturbed(Store *store, int64_t run, Error *e) {
    static const char SQL[] = "SELECT count(*) FROM surface JOIN attempt ON attempt.id = attempt_id WHERE "
                              "run_id = ?1 AND flags <> 0";
    int64_t points;
    if (!rows_one_int(store, SQL, run, &points, e)) return false;
    if (points)
        terminal_printf("disturbed: %lld points could not be measured undisturbed; how far off their times "
                        "and slowdowns are is "
                        "not known\n",
                        (long long)points);
    return true;
}

static bool print_drift(Store *store, int64_t run, Error *e) {
    Rows *r = rows_open(store, "SELECT context, drift FROM drifted WHERE run_id = ?1 ORDER BY context", e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (rows_next(r))
        terminal_printf(
            "at context %lld one token took %.2f times as long after the grid as before it: the machine "
            "changed, and slowdowns there may be as wrong as that\n",
            (long long)rows_int(r, 0), rows_real(r, 1));
    return rows_end(r, true, e);
}

// --- the list of runs

static const GridColumn RUNS[] = {
    {"run", true, 0, 0},   {"name", false, 24, 0},  {"made", false, 0, 2},  {"state", false, 0, 0},
    {"begun", true, 0, 0}, {"samples", true, 0, 3}, {"starts", true, 0, 1},
};

static void put_moment(Grid *g, double seconds) {
    char text[32] = "?";
    time_t t = (time_t)seconds;
    struct tm day;
    if (localtime_r(&t, &day)) strftime(text, sizeof text, "%Y-%m-%d %H:%M", &day);
    text_puts(&g->cell, text), grid_next(g);
}

// How the last attempt of a row of list_runs ended.
static const char *state_of(Store *store, const Rows *r) {
    if (store_claimed(store, rows_int(r, 0))) return "running";
    return rows_type(r, 3) == VALUE_NULL ? "killed" : rows_text(r, 3);
}

static bool list_runs(Store *store, Error *e) {
    static const char SQL[] =
        "SELECT run.id, name, created, (SELECT result FROM attempt WHERE run_id = run.id ORDER BY id DESC "
        "LIMIT 1),"
        " (SELECT count(*) FROM point WHERE run_id = run.id) + shapes,"
        " (SELECT count(*) FROM point WHERE run_id = run.id"
        "  AND EXISTS (SELECT 1 FROM sample WHERE point_id = point.id)) + shapes,"
        " (SELECT count(*) FROM point JOIN sample ON point_id = point.id WHERE run_id = run.id) + timings,"
        " (SELECT count(*) FROM attempt WHERE run_id = run.id)"
        " FROM (SELECT *, (SELECT count(*) FROM attempt JOIN surface ON attempt_id = attempt.id"
        "                  WHERE run_id = run.id) AS shapes,"
        "       (SELECT coalesce(sum(samples), 0) FROM attempt JOIN surface ON attempt_id = attempt.id"
        "        WHERE run_id = run.id) AS timings FROM run) AS run ORDER BY run.id";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    Grid g = {.columns = RUNS, .count = sizeof RUNS / sizeof *RUNS};
    grid_heads(&g);
    while (rows_next(r)) {
        text_puts(&g.cell, rows_text(r, 0)), grid_next(&g);
        text_puts(&g.cell, rows_text(r, 1)), grid_next(&g);
        put_moment(&g, rows_real(r, 2));
        text_puts(&g.cell, state_of(store, r)), grid_next(&g);
        text_printf(&g.cell, "%s/%s", rows_text(r, 5), rows_text(r, 4)), grid_next(&g);
        text_puts(&g.cell, rows_text(r, 6)), grid_next(&g);
        text_puts(&g.cell, rows_text(r, 7)), grid_next(&g);
        grid_end(&g);
    }
    bool ok = rows_end(r, true, e) && grid_show(&g, e);
    grid_release(&g);
    return ok;
}

// --- the command

// All about a run.
static bool print_all(Store *store, int64_t run, Grid *table, Error *e) {
    return stored_table(store, run, table, e) && grid_show(table, e) && print_alone(store, run, e) &&
           print_fits(store, run, e) && print_surface(store, run, e) && print_disturbed(store, run, e) &&
           print_drift(store, run, e);
}

static bool print_records(Store *store, int64_t run, const Records *as, Error *e) {
    json_t *points = stored_json(store, run, e);
    return points && records_print(points, NULL, as, e);
}

static bool show(int argc, char **argv, int *code, Error *e) {
    (void)code;
    ShowOptions o = {.db = STORE_DEFAULT};
    Words rest;
    bool stop, priced;
    int64_t run;
    Grid table = {0};
    if (!command_parse(&command_show, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    bool records = records_asked(&o.records);
    if (records && o.tasks)
        return error_input(e, "show: --tasks is a table: 'outpace table tasks' has others");
    if (!prediction_asked(&o.of, &priced, e)) return false;
    if (priced && (records || o.tasks))
        return error_input(e, "show: --on goes with the table alone: 'outpace simulate' has others");
    Store *store = store_open(o.db, STORE_READ, NULL, e);
    if (rest.count == 0 && !records && !o.tasks && !priced) {
        bool listed = store && list_runs(store, e);
        store_close(store);
        return listed;
    }
    bool ok = store && stored_run(store, rest.count ? rest.items[0] : NULL, &run, e) &&
              estimates_ensure(&store, run, o.tasks ? ESTIMATES_OF_TASKS : ESTIMATES_OF_POINTS, e) &&
              choice_apply(&o.choice, store, run, e) && (records || print_run(store, run, e)) &&
              (records   ? print_records(store, run, &o.records, e)
               : priced  ? print_priced(store, run, &o.of, e)
               : o.tasks ? stored_task_table(store, run, &table, e) && grid_show(&table, e)
                         : print_all(store, run, &table, e));
    grid_release(&table);
    store_close(store);
    return ok;
}

const Command command_show = {
    .name = "show",
    .usage = "[RUN] [OPTIONS]",
    .summary = "list the runs of a store; print one: S, CTAR, speedups, whether the text is the same",
    .arguments = {0, 1},
    .lesson =
        "Without RUN, lists the runs and how far each has come. Interrupted (by Ctrl-C) or killed: 'outpace\n"
        "run RUN' continues it. Partial: some points can't be run; failed: the run couldn't continue, or a\n"
        "text differs from the baseline's. Begun counts the points that have a sample, with the baselines\n"
        "that the run added; of a surface, the shapes that were timed, and how often. 'outpace plan\n"
        "CONFIG' prints how much is left.\n"
        "\n"
        "RUN is a number, a name (its newest run), or 'last', the newest experiment. For a run of 'outpace\n"
        "bench --store' it prints the surface: k rows of w + 1 tokens, or a part of a step (layers a-b, the\n"
        "LM head, prefill, committing tokens, the host's work on a tree) of so many rows; [95%] contains "
        "the\n"
        "median, or the slowdown over one token. Disturbed: other processes ran, and too few samples were\n"
        "free of them (yes), or so many were repeated.\n"
        "\n"
        "S is tokens per step after prefill; speedup the ratio of summed decode times over the same\n"
        "prompts, e2e with prefill, sb as Spec-Bench has it (ratio of the means of the prompts' tokens per\n"
        "second). Same: whether the text is its baseline's (base: the point is one). Rows/step is what a\n"
        "step runs on the target, CTARw the share of steps in which w drafted tokens or more were accepted.\n"
        "Where points differ in prompts, each has their number x passes over them. Numbers have the digits\n"
        "that their intervals leave: these hold 95% of 2000 resamples of prompts, and of passes within\n"
        "prompts. Disturbed: other processes ran, clocks changed, or a time is far from its repeats; "
        "nothing\n"
        "is left out for that, and * marks times in doubt: more than a tenth of the samples, or of the\n"
        "baseline's, were disturbed, or the speedup is above S. A stand-in is a model\n"
        "with the shape of a published one, whose weights are copied (inflated) or random. The fits that\n"
        "'outpace fit RUN' made come last.\n"
        "\n"
        "--tasks prints the run by category of its data, and by the parts of one after a slash: S; "
        "accepted,\n"
        "the share of the longest drafted chains that was accepted; speedup. Their intervals draw the\n"
        "category's prompts again, and passes within them.\n"
        "\n"
        "--on adds the speedups as priced on another machine ('outpace simulate'), and says in a sentence\n"
        "what its fastest method gains here and there.\n"
        "\n"
        "  outpace show\n"
        "  outpace show last\n"
        "  outpace show 12 --method lookahead\n"
        "  outpace show last --tasks\n"
        "  outpace show last --on h100-measured --shape llama2-7b\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = show};
