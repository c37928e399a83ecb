// Plans a run: the config is checked as `run` checks it, but nothing is measured.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/analysis/stored.h"
#include "harness/cli/table.h"
#include "harness/run/cost.h"
#include "harness/run/ledger.h"

#include <stdio.h>

typedef struct {
    SweepOptions sweep;
    bool points, check;
    Records records;
} PlanOptions;

#define AT(name) offsetof(PlanOptions, name)
static const Arg OPTIONS[] = {
    SWEEP_OPTIONS(AT),
    {"points", ARG_FLAG, AT(points), .help = "list every point"},
    {"check", ARG_FLAG, AT(check), .help = "only check it: no plan, no times"},
    RECORDS_OPTIONS(AT(records)), // of the points
};

static void print_refusals(const Plan *p) {
    Text lines = {0};
    plan_refusals(p, &lines);
    terminal_print(&lines);
}

static const char *plural(int count) { return count == 1 ? "" : "s"; }

// --- plan ------------------------------------------------------------------------------------------------

// A store that is not there, or has no run of this content, has nothing done.
static bool read_done(const Plan *p, const char *db, CostDone *out, Error *e) {
    out->rounds = mem_new((size_t)p->schedule.point_count, sizeof *out->rounds);
    if (!file_exists(db)) return true;
    out->store = store_open(db, STORE_READ, NULL, e);
    if (!out->store || !stored_by_hash(out->store, p->inputs.hash, &out->run, e)) return false;
    if (!out->run) return true;
    Rows *r = ledger_samples(out->store, out->run, e);
    for (LedgerSample s; ledger_sample(r, &s);) {
        int point = schedule_find(&p->schedule, s.point);
        if (point >= 0) out->rounds[point] += s.turn == 0;
    }
    return rows_end(r, true, e);
}

static void print_setup(const Plan *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    const EngineOptions *o = &s->settings->engine;
    const char *compute = o->compute ? compute_name(compute_choose(o->compute, DTYPE_F32)) : "as stored";
    int threads = engine_threads(o);
    terminal_printf("\nmodel      %s on %s, compute %s, %d thread%s%s\n",
                    SHOWN(p->experiment.models[s->model].name), o->device, compute, threads, plural(threads),
                    o->threads ? "" : " (one a core)");
    const char *rounding = inputs_rounding(&p->inputs, s->model, s->settings);
    if (rounding)
        terminal_printf("           weights are rounded from %s: not quite the published model\n", rounding);
    size_t decoded, there = engine_gpu_weights(&p->inputs.models[s->model].model, o, &decoded);
    double weights = there ? (double)there : cost_weights(p, setup), cache = cost_cache(p, setup);
    terminal_printf("           about %.2f GB: weights %.2f, cache of %d positions %.2f\n",
                    (weights + cache) / 1e9, weights / 1e9, p->inputs.positions[setup], cache / 1e9);
    if (decoded)
        terminal_printf(
            "           %.2f GB of the weights are values of codes that a GPU's kernels can't read\n",
            (double)decoded / 1e9);
}

static void print_point(const Plan *p, const CostDone *done, int number, int rounds) {
    const Point *point = &p->schedule.points[number];
    const char *skipped = inputs_refusal(&p->inputs, number);
    Text line = {0};
    LOCAL(point_name_release) PointName name;
    point_name(&p->experiment, point, &name);
    if (number < p->sweep.count)
        text_printf(&line, "  %5d    %s", point->number + 1, SHOWN(text_get(&name.label)));
    else text_printf(&line, "           %s", SHOWN(text_get(&name.label)));
    if (skipped) text_printf(&line, ": skipped, %s\n", SHOWN(skipped));
    else text_printf(&line, ": %d of %d prompts and passes done\n", done->rounds[number], rounds);
    terminal_print(&line);
}

static void print_group(const Plan *p, const CostDone *done, const Group *g, bool points) {
    const Schedule *s = &p->schedule;
    const Settings *set = &s->points[s->members[g->first]].settings;
    int prompts = (int)p->inputs.datasets[g->dataset].count, passes = p->experiment.measurement.passes,
        rounds = prompts * passes, base = s->members[g->baseline];
    const Template *t = p->inputs.templates[s->setups[g->setup].model][g->dataset];
    terminal_printf(
        "dataset    %s%s%s: %d prompt%s, %d pass%s%s, %d tokens at most, temperature %g, seed %d: %d "
        "method%s side "
        "by side, baseline %s%s, %d of %d rounds done\n",
        SHOWN(p->experiment.datasets[g->dataset].name), t ? ", template " : "", t ? t->name : "", prompts,
        plural(prompts), passes, passes == 1 ? "" : "es",
        p->experiment.measurement.stop == STOP_TIMING ? " at least" : "", set->max_tokens, set->temperature,
        set->seed, g->count, plural(g->count), base < p->sweep.count ? "among them" : "added",
        g->warm ? ", in whole passes, since they keep state" : "", done->rounds[base], rounds);
    for (int i = g->first; points && i < g->first + g->count; i++)
        print_point(p, done, s->members[i], rounds);
}

// --- printing

static void print_part(const char *name, double seconds, const char *what, double amount, const char *unit) {
    char time[32], much[32] = "";
    if (!(amount > 0)) return;
    if (unit)
        snprintf(much, sizeof much, "%.*f %s", amount < 100 && amount != (int)amount ? 1 : 0, amount, unit);
    terminal_printf("  %-8s %-9s%s%s\n", name, cost_time_text(seconds, time), much, what);
}

static bool print_time(const Plan *p, const CostDone *done, Error *e) {
    int setups = p->schedule.setup_count;
    LOCAL_MEMORY CostPrice *prices = mem_new((size_t)setups, sizeof *prices);
    bool ok = cost_prices(p, done, prices, e);
    CostParts parts = ok ? cost_parts(p, done, prices, NULL) : (CostParts){0};
    bool left = ok && parts.tokens > 0;
    if (ok && !left) printf("\ntime       nothing is left\n");
    if (left) {
        char time[32];
        printf("\ntime       about %s, in parts:\n", cost_time_text(cost_seconds(&parts), time));
        print_part("making", parts.making, " of models; a disk that writes 0.3 GB/s is assumed",
                   parts.made_bytes / 1e9, "GB");
        print_part("opening", parts.opening, "weights read first; a disk that reads 1 GB/s is assumed",
                   parts.opening, NULL);
        print_part("tables", parts.tables, " through the model, for tables of n-grams that are not kept yet",
                   parts.table_rows, "rows");
        print_part("warm-up", parts.warmup, "each method, before its first prompt", parts.warmup, NULL);
        print_part("prefill", parts.prefill, " of prompts; methods that can share a run of them do",
                   parts.prompt_tokens, "tokens");
        print_part("decoding", parts.decoding,
                   ", outputs as long as they may be, a step for each: no guess is right", parts.tokens,
                   "tokens");
    }
    for (int i = 0; left && i < setups; i++)
        terminal_printf("  %s on %s: %s %.3g ms, %s %.3g ms; %s\n",
                        SHOWN(p->experiment.models[p->schedule.setups[i].model].name),
                        p->schedule.setups[i].settings->engine.device,
                        prices[i].all_methods ? "a token" : "a step of one row", 1e3 * prices[i].token_s,
                        prices[i].all_methods ? "a row of prompts" : "each further row",
                        1e3 * prices[i].row_s, prices[i].from);
    return ok;
}

static const Column COLUMNS[] = {
    {"point label model dataset", .help = "the point"},
    {"added_baseline", .help = "not in the config: added to compare with"},
    {"done wanted", .help = "rounds"},
    {"refused", .help = "why it can't be run"},
};
static const TableForm FORM = {"plan", TABLE_COLUMNS(COLUMNS)};

static void put_point(const Plan *p, const CostDone *done, int number, RecordTable *t) {
    const Point *point = &p->schedule.points[number];
    const Dataset *data = &p->inputs.datasets[point->dataset];
    LOCAL(point_name_release) PointName name;
    point_name(&p->experiment, point, &name);
    TABLE_ROW(t, CELL(point->number + 1), CELL(text_get(&name.label)),
              CELL(p->experiment.models[point->model].name),
              CELL(p->experiment.datasets[point->dataset].name), CELL((bool)(number >= p->sweep.count)),
              CELL(done->rounds[number]), CELL((int)data->count * p->experiment.measurement.passes),
              CELL(inputs_refusal(&p->inputs, number)));
}

static bool print_plan(const Plan *p, const CostDone *done, const PlanOptions *o, const char *db, Error *e) {
    const Schedule *s = &p->schedule;
    terminal_printf("config     %s: %d points, %d skipped; %d combinations excluded, %d written twice\n",
                    SHOWN(p->file), p->sweep.count, inputs_refused(&p->inputs), p->sweep.excluded,
                    p->sweep.repeated);
    if (done->run) terminal_printf("run        %lld in %s goes on\n", (long long)done->run, SHOWN(db));
    for (int setup = 0; setup < s->setup_count; setup++) {
        print_setup(p, setup);
        for (int i = 0; i < s->group_count; i++)
            if (s->groups[i].setup == setup) print_group(p, done, &s->groups[i], o->points);
    }
    if (inputs_refused(&p->inputs)) printf("\n");
    print_refusals(p);
    return print_time(p, done, e);
}

static bool plan(void *options, CommandLine *line, Error *e) {
    const PlanOptions *o = options;
    CostDone done = {0};
    RecordTable t = {.form = &FORM, .as = &o->records};
    LOCAL_MEMORY Plan *p = mem_new(1, sizeof *p);
    bool ok = plan_open(p, line->words.items[0], &o->sweep, e), opened = ok;
    const char *db = p->db ? p->db : o->sweep.db;
    if (opened) plan_warn(p);
    if (opened) plan_warn_memory(p);
    ok = ok && (o->check || read_done(p, db, &done, e));
    if (ok && o->check) {
        const Experiment *x = &p->experiment;
        print_refusals(p);
        terminal_printf(
            "%s: %d point%s, %d cannot be run; %d model%s, %d dataset%s and %d method%s are in order\n",
            SHOWN(p->file), p->sweep.count, plural(p->sweep.count), inputs_refused(&p->inputs),
            x->model_count, plural(x->model_count), x->dataset_count, plural(x->dataset_count),
            x->method_count, plural(x->method_count));
    } else if (records_asked(&o->records)) {
        for (int i = 0; ok && i < p->schedule.point_count; i++) put_point(p, &done, i, &t);
        ok = table_end(&t, ok, e);
    } else ok = ok && print_plan(p, &done, o, db, e);
    if (opened && inputs_refused(&p->inputs)) line->code = EXIT_PARTIAL;
    store_close(done.store);
    mem_free(done.rounds);
    if (opened) plan_release(p);
    return ok;
}

const Command command_plan = {.name = "plan",
                              .usage = "CONFIG.yaml [OPTIONS]",
                              .summary =
                                  "plan an experiment: its points, what is done, and how long the rest takes",
                              .arguments = {1, 1},
                              COMMAND_OPTIONS(OPTIONS, PlanOptions),
                              .parts = (const Command *const[]){&command_plan_slurm, NULL},
                              .run = plan,
                              .tables = TABLES(&FORM)};
