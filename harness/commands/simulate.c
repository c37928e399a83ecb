// A stored run's steps priced on another machine and model: its expected result there.
#include "harness/cli/command.h"

#include "engine/base/shipped.h"
#include "harness/price/prediction.h"
#include "harness/cli/table.h"
#include "harness/price/priced.h"
#include "harness/analysis/choice.h"
#include "harness/analysis/stored.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *db;
    PredictionArguments of;
    LengthsPrice lengths;
    Choice choice;
    Records records;
} SimulateOptions;

#define AT(name) offsetof(SimulateOptions, name)
static const Arg OPTIONS[] = {
    {"on", ARG_WORD, AT(of.on), .help = "of configs/hardware, or a file of 'fit --surface --save'",
     .value = "MACHINE"},
    {"shape", ARG_WORD, AT(of.shape), .help = "of the target: of configs/shapes, or a config.json",
     .value = "SHAPE"},
    {"draft-shape", ARG_WORD, AT(of.draft_shape), .help = "of the draft model, for points that run one",
     .value = "SHAPE"},
    {"batch", ARG_WORD, AT(of.batch), .help = "sequences that share each step, each as the recorded one",
     .value = "LIST", .fallback = "as each point ran"},
    {"bits", ARG_WORD, AT(of.bits), .help = "of the target's weights, 16, 8 or 4, in groups of 32",
     .value = "LIST", .fallback = "16"},
    {"against", ARG_WORD, AT(of.against), .help = "the same points measured on that machine: print errors",
     .value = "RUN"},
    {"against-db", ARG_WORD, AT(of.against_db), .help = "the store of that run", .value = "FILE",
     .fallback = "as --db"},
    {"devices", ARG_WORD, AT(of.devices), .help = "strong scaling of lookahead over so many of MACHINE",
     .value = "LIST"},
    {"link", ARG_WORD, AT(of.link), .help = "with --devices: a link's speed and a message's latency",
     .value = "GB/S,US"},
    {"cut", ARG_REAL, AT(of.cut), 0, 10,
     .help = "with --devices: of TP and PP with one token a step, as seen: fitted to", .value = "SPEEDUP"},
    {"context", ARG_INT, AT(lengths.context), 0, 1 << 24, "1000",
     .help = "of a file of lengths: committed tokens of a sequence", .value = "N"},
    {"block", ARG_FLAG, AT(lengths.block),
     .help = "of a file of lengths: the draft guesses all tokens in one pass"},
    STORE_OPTION(AT(db)),
    RECORDS_OPTIONS(AT(records)),
    CHOICE_OPTIONS(AT, choice),
};

// --- for people ------------------------------------------------------------------------------------------

static const Column ERRORS[] = {
    {.head = "errors against the measurement", .least = 20},
    {.head = "step: median", .kind = AS_SHARE, .digits = 1},
    {.head = "step: worst", .kind = AS_SHARE, .digits = 1, .drop = 2},
    {.head = "step: n", .kind = AS_COUNT, .drop = 1},
    {.head = "S: median", .kind = AS_SHARE, .digits = 1},
    {.head = "S: worst", .kind = AS_SHARE, .digits = 1, .drop = 3},
    {.head = "S: n", .kind = AS_COUNT, .drop = 1},
    {.head = "speedup: median", .kind = AS_SHARE, .digits = 1},
    {.head = "speedup: worst", .kind = AS_SHARE, .digits = 1, .drop = 4},
    {.head = "speedup: n", .kind = AS_COUNT, .drop = 1},
};
static const TableForm ERRORS_FORM = {TABLE_COLUMNS(ERRORS)};

// Median and worst of step time, S and speedup apart; method, group: see simulation_errors.
static void put_part(RecordTable *t, const Simulation *s, const char *method, const char *group) {
    Cell cells[1 + 3 * SIMULATED_COUNT] = {CELL(method  ? method
                                                : group ? group
                                                        : "all points")},
                       *at = cells + 1;
    for (int i = 0; i < SIMULATED_COUNT; i++) {
        SimulationError x = simulation_errors(s, method, group, (SimulatedWhat)i);
        *at++ = x.points ? cell_real(x.median) : cell_text("-");
        *at++ = x.points ? cell_real(x.worst) : cell_text("-");
        *at++ = CELL(x.points);
    }
    table_row(t, cells, TABLE_COUNT(cells));
}

// A line for each method, or group, that the points have, where there are several.
static void put_parts(RecordTable *t, const Simulation *s, bool methods) {
#define PART(i) (methods ? s->points[i].method : s->points[i].group)
    bool several = false;
    for (size_t i = 1; i < s->count; i++) several = several || strcmp(PART(i), PART(0)) != 0;
    for (size_t i = 0; several && i < s->count; i++) {
        size_t k = 0;
        while (k < i && strcmp(PART(k), PART(i)) != 0) k++;
        if (k == i) put_part(t, s, methods ? PART(i) : NULL, methods ? NULL : PART(i));
    }
#undef PART
}

static void print_head(const Prediction *of) {
    const Pricing most = prediction_pricing(of, &of->cells[0]), *p = &most;
    double bytes = step_model_bytes(&p->target) + (p->has_draft ? step_model_bytes(&p->draft) : 0);
    terminal_printf("predicted  %s, shape %s: no number here was measured on it\n", SHOWN(p->machine.name),
                    SHOWN(of->of->shape));
    terminal_printf("prices     %s\n", hardware_is_floor(&p->machine)
                                           ? "a data sheet's: floors, no step there can be faster"
                                           : "as its steps were measured and fitted");
    if (p->machine.most_rows)
        terminal_printf("rows       steps and prompts of more than %d rows are outside what was fitted\n",
                        p->machine.most_rows);
    const StepExperts *x = &p->target.experts;
    if (x->count)
        terminal_printf(
            "experts    %d of %d a row, each as likely: a layer reads %.1f for 8 rows, %.1f for 32, "
            "%.1f for 128\n",
            x->chosen, x->count, experts_touched(x, 8), experts_touched(x, 32), experts_touched(x, 128));
    bool batch = false;
    for (int i = 0; i < of->count; i++)
        for (size_t k = 0; k < of->cells[i].points.count; k++)
            batch = batch || of->cells[i].points.points[k].batch > 1;
    if (batch)
        puts("batch      sequences share each step, all in the same phase; tokens/s are those of all, a step "
             "is a\n           sequence's part of it, speedups are over one token each in the same batch");
    puts("accepted   tokens that the run's own models accepted: S is theirs");
    if (bytes > p->machine.memory_bytes)
        terminal_printf("note       weights of %.1f GB do not fit into its %.1f GB\n", 1e-9 * bytes,
                        1e-9 * p->machine.memory_bytes);
}

EMBED(simulate_sql, "harness/commands/simulate.sql")

// --- strong scaling --------------------------------------------------------------------------------------

// Nothing of it is measured: a price of the split's rows, and of the messages over the stated link.
static bool print_scalings(const Prediction *p, Error *e) {
    RecordTable t = {.form = &prediction_scaling};
    terminal_printf(
        "\nstrong scaling, predicted, over links of %g GB/s and %g us: speedup over autoregressive "
        "decoding on one\n",
        1e-9 * p->link.bytes_per_s, 1e6 * p->link.latency_s);
    if (p->of->cut > 0)
        terminal_printf(
            "fitted: tensor and pipeline parallelism have a cost a step that brings autoregressive "
            "decoding to %g; these columns do not test the price\n",
            p->of->cut);
    else
        terminal_printf(
            "ideal: tensor and pipeline parallelism cost products and messages, and no host's time "
            "(--cut fits that)\n");
    return table_end(&t, prediction_put_scaling(p, &t, e), e);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool print(const SimulateOptions *o, Store *store, int64_t run, const Prediction *p, Error *e) {
    if (records_asked(&o->records)) {
        json_t *all = prediction_json(p, e);
        return all && records_print(all, "points", &o->records, e);
    }
    print_head(p);
    Rows *notes = rows_named(store, simulate_sql, "notes", run, e);
    rows_bind_int(notes, 2, p->pricing.target.layers);
    if (!query_sentences(notes, e)) return false;
    RecordTable points = {.form = &prediction_points}, errors = {.form = &ERRORS_FORM};
    const Simulation *s = &p->cells[0].points;
    prediction_put_points(p, &points);
    bool ok = table_end(&points, true, e);
    if (ok && o->of.against) {
        // The machine was fitted, if at all, to plain steps, to no method and no dataset's contexts.
        table_group(&errors, NULL);
        put_part(&errors, s, NULL, NULL);
        put_parts(&errors, s, true);
        put_parts(&errors, s, false);
        ok = table_end(&errors, true, e);
    }
    return ok && (!p->devices.count || print_scalings(p, e));
}

// --- published lengths -----------------------------------------------------------------------------------

static bool run_lengths(const SimulateOptions *o, const char *path, Prediction *p, Error *e) {
    LOCAL(lengths_release) PublishedLengths l = {0};
    if (o->of.against || o->of.devices)
        return error_input(e, "--against and --devices are of a run, '%s' is a file of lengths", path);
    if (!lengths_open(path, &l, e)) return false;
    RecordTable t = {.form = &lengths_form, .as = &o->records};
    lengths_put(&l, p, &o->lengths, &t);
    if (!records_asked(&o->records))
        terminal_printf("predicted  %s, shape %s, context %d: lengths are published, times are priced; %s\n",
                        SHOWN(p->pricing.machine.name), SHOWN(o->of.shape), o->lengths.context,
                        !p->pricing.has_draft ? "drafting costs nothing: a bound (--draft-shape)"
                        : o->lengths.block    ? "a draft is one pass"
                                              : "a draft is a pass a token");
    return table_end(&t, true, e);
}

static bool run(void *options, CommandLine *line, Error *e) {
    const SimulateOptions *o = options;
    LOCAL(prediction_release) Prediction p = {0};
    int64_t run;
    if (!line->words.count || !o->of.on || !o->of.shape) return command_misused(line->command, e);
    if (!prediction_read(&o->of, &p, e)) return false;
    const char *dot = strrchr(line->words.items[0], '.');
    if (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0))
        return run_lengths(o, line->words.items[0], &p, e);
    LOCAL_STORE *store = store_open(o->db, STORE_READ, NULL, e);
    return store && stored_run(store, line->words.items[0], &run, e) &&
           choice_apply(&o->choice, store, run, e) && prediction_make(&p, store, run, e) &&
           print(o, store, run, &p, e);
}

const Command command_simulate = {
    .name = "simulate",
    .usage = "RUN|LENGTHS.yaml --on MACHINE --shape SHAPE [OPTIONS]",
    .summary = "a stored run's steps priced on another machine: tokens/s and speedups there",
    .arguments = {0, 1},
    COMMAND_OPTIONS(OPTIONS, SimulateOptions),
    .run = run,
    .tables = TABLES(&prediction_points, &prediction_scaling, &lengths_form)};
