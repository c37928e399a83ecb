// Plans a run: the config is checked as `run` checks it, but nothing is measured.
#include "harness/cli/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/engine.h"
#include "harness/config/point_name.h"
#include "harness/analysis/stored.h"
#include "harness/cli/terminal.h"
#include "harness/run/plan.h"
#include "harness/run/run.h"
#include "results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    SweepOptions sweep;
    bool points, check;
} PlanOptions;

#define AT(name) offsetof(PlanOptions, name)
static const Arg OPTIONS[] = {
    SWEEP_OPTIONS(AT),
    {"points", ARG_FLAG, AT(points), .help = "list every point"},
    {"check", ARG_FLAG, AT(check), .help = "only check it: no plan, no times"},
};
#undef AT

static bool prepare(const Command *c, int argc, char **argv, PlanOptions *o, Plan **out, Error *e) {
    Words rest;
    bool stop;
    *o = (PlanOptions){.sweep = {.threads = -1, .db = STORE_DEFAULT}};
    *out = NULL;
    if (!command_parse(c, argc, argv, o, &rest, &stop, e)) return false;
    if (stop) return true;
    *out = mem_new(1, sizeof **out);
    if (!plan_open(*out, rest.items[0], &o->sweep, e)) {
        mem_free(*out);
        *out = NULL;
        return false;
    }
    plan_warn(*out);
    return true;
}

static void release(Plan *p) {
    if (p) plan_release(p);
    mem_free(p);
}

// Points that cannot be run; the exit code is that of a run without them.
static void print_refusals(const Plan *p, int *code) {
    Text lines = {0};
    plan_refusals(p, &lines);
    terminal_print(&lines);
    if (inputs_refused(&p->inputs)) *code = EXIT_PARTIAL;
    text_release(&lines);
}

static void print_check(const Plan *p, int *code) {
    print_refusals(p, code);
    terminal_printf("%s: %d points, %d cannot be run; %d models, %d datasets and %d methods are in order\n",
                    SHOWN(p->file), p->sweep.count, inputs_refused(&p->inputs), p->experiment.model_count,
                    p->experiment.dataset_count, p->experiment.method_count);
}

// --- plan ------------------------------------------------------------------------------------------------

typedef struct Done {
    const Schedule *schedule;
    int *rounds;  // (points): prompts and passes that are stored
    Store *store; // NULL: there is none
    int64_t run;  // 0: not begun
} Done;

static bool take(void *state, const LedgerSample *s, Error *e) {
    Done *d = state;
    int point = schedule_find(d->schedule, s->point);
    (void)e;
    if (point >= 0) d->rounds[point] += s->turn == 0;
    return true;
}

// A store that is not there, or has no run of this content, has nothing done.
static bool read_done(const Plan *p, const char *db, Done *out, Error *e) {
    *out = (Done){.schedule = &p->schedule};
    out->rounds = mem_new((size_t)p->schedule.point_count, sizeof *out->rounds);
    if (!file_exists(db)) return true;
    out->store = store_open(db, STORE_READ, NULL, e);
    bool ok = out->store && stored_by_hash(out->store, p->inputs.hash, &out->run, e) &&
              (!out->run || ledger_samples(out->store, out->run, take, out, e));
    if (ok && out->run) terminal_printf("run        %lld in %s goes on\n", (long long)out->run, SHOWN(db));
    return ok;
}

static Compute compute_of(const Setup *s, const InputModel *m) {
    return compute_choose(s->settings->engine.compute, m->model.dtype);
}

// Bytes of weights, and of keys and values at the context that the prompts need.
static void print_memory(const Plan *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    const InputModel *m = &p->inputs.models[s->model];
    const Shape *shape = &m->model.shape;
    size_t width = dtype_size(compute_dtype(compute_of(s, m)));
    double cache =
        2.0 * shape->layers * (double)shape_kv_width(shape) * (double)width * p->inputs.positions[setup];
    terminal_printf("           about %.2f GB: weights %.2f, cache of %d positions %.2f\n",
                    ((double)m->bytes + cache) / 1e9, (double)m->bytes / 1e9, p->inputs.positions[setup],
                    cache / 1e9);
}

static void print_setup(const Plan *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    const EngineOptions *o = &s->settings->engine;
    const char *compute = o->compute ? compute_name(compute_choose(o->compute, DTYPE_F32)) : "as stored";
    terminal_printf("\nmodel      %s on %s, compute %s, %d threads%s\n",
                    SHOWN(p->experiment.models[s->model].name), o->device, compute, o->threads,
                    o->threads ? "" : " (one a core)");
    const char *rounding = inputs_rounding(&p->inputs, s->model, s->settings);
    if (rounding)
        terminal_printf("           weights are rounded from %s: not quite the published model\n", rounding);
    print_memory(p, setup);
}

static void print_point(const Plan *p, const Done *done, int number, int rounds) {
    const Point *point = &p->schedule.points[number];
    const char *skipped = inputs_refusal(&p->inputs, number);
    Text line = {0};
    PointName name;
    point_name(&p->experiment, point, &name);
    if (number < p->sweep.count)
        text_printf(&line, "  %5d    %s", point->number + 1, SHOWN(text_get(&name.label)));
    else text_printf(&line, "           %s", SHOWN(text_get(&name.label)));
    if (skipped) text_printf(&line, ": skipped, %s\n", SHOWN(skipped));
    else text_printf(&line, ": %d of %d prompts and passes done\n", done->rounds[number], rounds);
    terminal_print(&line);
    point_name_release(&name);
}

static void print_group(const Plan *p, const Done *done, const Group *g, bool points) {
    const Schedule *s = &p->schedule;
    const Settings *set = &s->points[s->members[g->first]].settings;
    int prompts = (int)p->inputs.datasets[g->dataset].count,
        rounds = prompts * p->experiment.measurement.passes;
    int base = s->members[g->baseline];
    terminal_printf(
        "dataset    %s: %d prompts, %d passes%s, %d tokens at most, temperature %g, seed %d: %d methods side "
        "by side, baseline %s%s, %d of %d rounds done\n",
        SHOWN(p->experiment.datasets[g->dataset].name), prompts, p->experiment.measurement.passes,
        p->experiment.measurement.stop == STOP_TIMING ? " at least" : "", set->max_tokens, set->temperature,
        set->seed, g->count, base < p->sweep.count ? "among them" : "added",
        g->warm ? ", in whole passes, since they keep state" : "", done->rounds[base], rounds);
    for (int i = g->first; points && i < g->first + g->count; i++)
        print_point(p, done, s->members[i], rounds);
}

// --- how long it takes ------------------------------------------------------------------------------------

// Assumed, not measured; the parts are printed with them.
static const double WRITTEN_BYTES = 3e8; // a second, of a model that is made
static const double OPENED_BYTES = 1e9;  // a second, of weights that are read first
static const double HOST_RATE = 2e9;     // operations a second, of a table that the host makes
static const double WIDE_SHARE = 0.65;   // of the machine's peak, reached by a step of many rows

// The cost of a setup's steps.
typedef struct Price {
    double token_s; // a step of one token
    double row_s;   // a row of a step of many
    char from[200]; // its source
} Price;

// Seconds left; 0: nothing.
typedef struct Parts {
    double making, opening, tables, warmup, prefill, decoding;
    double made_bytes, table_rows, prompt_tokens, tokens;
} Parts;

// Rounds of a group that are left, as far as that is fixed, and methods that take part.
static double rounds_left(const Plan *p, const Done *done, const Group *g, int *methods) {
    const Schedule *s = &p->schedule;
    double rounds = (double)p->inputs.datasets[g->dataset].count * p->experiment.measurement.passes,
           left = rounds - done->rounds[s->members[g->baseline]];
    *methods = 0;
    for (int i = g->first; i < g->first + g->count; i++)
        *methods += !inputs_refusal(&p->inputs, s->members[i]);
    bool base_alone = *methods == 1 && s->members[g->baseline] >= s->sweep_count; // nobody is held against it
    return left > 0 && !base_alone ? left * (*methods > 0) : 0;
}

static double average_turns(const Dataset *d) {
    double turns = 0;
    for (size_t i = 0; i < d->count; i++) turns += d->prompts[i].turn_count;
    return d->count ? turns / (double)d->count : 0;
}

static void add_group_parts(const Plan *p, const Done *done, const Group *g, const Price *price, Parts *out,
                            bool *any) {
    int methods, warmup = p->experiment.measurement.warmup;
    const Dataset *d = &p->inputs.datasets[g->dataset];
    const Setup *setup = &p->schedule.setups[g->setup];
    double left = rounds_left(p, done, g, &methods), read = 0;
    if (!(left > 0)) return;
    double prompts = left / (double)d->count * p->inputs.prefill[g - p->schedule.groups] * methods,
           tokens = left * average_turns(d) * methods *
                    p->schedule.points[p->schedule.members[g->first]].settings.max_tokens;
    PromptList random = {0};
    prompts_random(p->inputs.models[setup->model].model.shape.real_vocab, (size_t)warmup, WARM_UP_SEED,
                   &random);
    for (size_t i = 0; i < random.count; i++) read += (double)random.prompts[i].count;
    prompts_release(&random);
    out->warmup += methods * (read * price->row_s + warmup * WARM_UP_TOKENS * price->token_s);
    out->prefill += prompts * price->row_s;
    out->decoding += tokens * price->token_s;
    out->prompt_tokens += prompts;
    out->tokens += tokens;
    *any = true;
}

static void add_setup_parts(const Plan *p, const Done *done, int setup, const Price *price, Parts *out) {
    const Schedule *s = &p->schedule;
    const InputModel *m = &p->inputs.models[s->setups[setup].model];
    const Rehearsal *r = &p->inputs.rehearsals[setup];
    bool any = false;
    for (int i = 0; i < s->group_count; i++)
        if (s->groups[i].setup == setup) add_group_parts(p, done, &s->groups[i], price, out, &any);
    if (!any) return;
    out->opening += (double)m->bytes / OPENED_BYTES;
    out->tables += r->rows * price->row_s + r->operations / HOST_RATE;
    out->table_rows += r->rows;
}

static void add_making(const Plan *p, Parts *out) {
    for (int i = 0; i < p->experiment.model_count; i++) {
        const InputModel *m = &p->inputs.models[i];
        if (m->files.unmade)
            out->made_bytes += (double)(shape_parameters(&m->model.shape) * dtype_size(m->model.dtype));
    }
    out->making = out->made_bytes / WRITTEN_BYTES;
}

// --- prices

// By samples of this model, device and number of threads, on this machine: those of this run, all methods
// together; or else the baselines of others.
static bool stored_price(const Plan *p, const Done *done, int setup, Price *out, bool *found, Error *e) {
    static const char SQL[] =
        "SELECT sum(decode_ns), sum(tokens), sum(prefill_ns), sum(prompt_tokens), count(*) FROM sample"
        " JOIN point ON point.id = point_id JOIN model ON model.id = model_id WHERE model.hash = ?1"
        " AND CASE WHEN ?2 THEN run_id = ?2 ELSE method = 'autoregressive' END"
        " AND (SELECT count(*) FROM point_param WHERE point_param.point_id = point.id AND section = "
        "'hardware'"
        "      AND (name = 'device' AND value = ?3 OR name = 'threads' AND value = ?4)) = 2"
        " AND EXISTS (SELECT 1 FROM content WHERE content.run_id = point.run_id AND kind = 'machine' AND "
        "hash = ?5)";
    const Setup *s = &p->schedule.setups[setup];
    const char *machine = "";
    for (int i = 0; i < p->inputs.content_count; i++)
        if (strcmp(p->inputs.contents[i].kind, "machine") == 0) machine = p->inputs.contents[i].hash;
    *found = false;
    if (!done->store) return true;
    Rows *r = rows_open(done->store, SQL, e);
    if (!r) return false;
    rows_bind_text(r, 1, p->inputs.models[s->model].hash);
    rows_bind_int(r, 2, done->run);
    rows_bind_text(r, 3, s->settings->engine.device);
    rows_bind_int(r, 4, s->settings->engine.threads);
    rows_bind_text(r, 5, machine);
    *found = rows_next(r) && rows_real(r, 1) > 0 && rows_real(r, 3) > 0;
    if (*found) {
        *out =
            (Price){1e-9 * rows_real(r, 0) / rows_real(r, 1), 1e-9 * rows_real(r, 2) / rows_real(r, 3), ""};
        snprintf(out->from, sizeof out->from, "measured: %lld samples of %s in %s", (long long)rows_int(r, 4),
                 done->run ? "this run" : "its baseline", store_path(done->store));
    }
    return rows_end(r, true, e);
}

// The ceilings of the setup's device, measured once for all setups on it; all 0 where it is not here, or has
// no arithmetic.
static void measure_device(const Schedule *s, int setup, Ceilings *all) {
    const char *device = s->setups[setup].settings->engine.device;
    BackendOptions o = {.isa = getenv("OUTPACE_ISA"), .threads = s->setups[setup].settings->engine.threads};
    for (int i = 0; i < setup; i++) {
        const EngineOptions *other = &s->setups[i].settings->engine;
        if (strcmp(other->device, device) || other->threads != o.threads) continue;
        all[setup] = all[i];
        return;
    }
    Error ignored = {0};
    if (!engine_ceilings(device, &o, &all[setup], &ignored)) all[setup] = (Ceilings){0};
}

// A step reads all weights, and multiplies by all but the embedding.
static void reckon_price(const Plan *p, int setup, const Ceilings *c, Price *out) {
    const Setup *s = &p->schedule.setups[setup];
    const InputModel *m = &p->inputs.models[s->model];
    const Shape *shape = &m->model.shape;
    double operations = 2 * ((double)shape->layers * (double)shape_layer_parameters(shape) +
                             (double)shape->vocab * shape->width),
           rate = WIDE_SHARE * c->operations_per_s[compute_rate(compute_of(s, m), m->model.dtype)],
           read = c->bytes_per_s > 0 ? (double)m->bytes / c->bytes_per_s : 0;
    *out = (Price){.row_s = rate > 0 ? operations / rate : 0};
    out->token_s = read > out->row_s ? read : out->row_s;
    if (!(read > 0))
        snprintf(out->from, sizeof out->from, "nothing: no weights are read on %.60s here",
                 s->settings->engine.device);
    else
        snprintf(out->from, sizeof out->from,
                 "reckoned: %.3g GB a step at %.3g GB/s, or %.3g GFLOP a row at %.0f%% of %.3g TFLOP/s, "
                 "which were "
                 "measured now",
                 (double)m->bytes / 1e9, c->bytes_per_s / 1e9, operations / 1e9, 100 * WIDE_SHARE,
                 rate / WIDE_SHARE / 1e12);
}

static bool price(const Plan *p, const Done *done, int setup, Ceilings *ceilings, Price *out, Error *e) {
    bool found;
    if (!stored_price(p, done, setup, out, &found, e)) return false;
    if (found) return true;
    measure_device(&p->schedule, setup, ceilings);
    reckon_price(p, setup, &ceilings[setup], out);
    return true;
}

// --- printing

static const char *seconds_text(double seconds, char out[32]) {
    if (seconds < 99.5) snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 5970) snprintf(out, 32, "%.0f min", seconds / 60);
    else snprintf(out, 32, "%.1f h", seconds / 3600);
    return out;
}

static void print_part(const char *name, double seconds, const char *what, double amount, const char *unit) {
    char time[32], much[32] = "";
    if (!(amount > 0)) return;
    if (unit)
        snprintf(much, sizeof much, "%.*f %s", amount < 100 && amount != (int)amount ? 1 : 0, amount, unit);
    terminal_printf("  %-8s %-9s%s%s\n", name, seconds_text(seconds, time), much, what);
}

static void print_parts(const Parts *t) {
    char time[32];
    printf("\ntime       about %s, in parts:\n",
           seconds_text(t->making + t->opening + t->tables + t->warmup + t->prefill + t->decoding, time));
    print_part("making", t->making, " of models, at 0.3 GB/s (assumed)", t->made_bytes / 1e9, "GB");
    print_part("opening", t->opening, "weights read first, at 1 GB/s (assumed)", t->opening, NULL);
    print_part("tables", t->tables, " through the model, for tables of n-grams that are not kept yet",
               t->table_rows, "rows");
    print_part("warm-up", t->warmup, "each method, before its first prompt", t->warmup, NULL);
    print_part("prefill", t->prefill, " of prompts, read by each method", t->prompt_tokens, "tokens");
    print_part("decoding", t->decoding, ", as if outputs were as long as they may be, and no method gained",
               t->tokens, "tokens");
}

static bool print_time(const Plan *p, const Done *done, Error *e) {
    Parts parts = {0};
    int setups = p->schedule.setup_count;
    Price *prices = mem_new((size_t)setups, sizeof *prices);
    Ceilings *ceilings = mem_new((size_t)setups, sizeof *ceilings);
    bool ok = true;
    for (int i = 0; ok && i < setups; i++)
        if ((ok = price(p, done, i, ceilings, &prices[i], e)))
            add_setup_parts(p, done, i, &prices[i], &parts);
    bool left = ok && parts.tokens > 0;
    if (ok && !left) printf("\ntime       nothing is left\n");
    if (left) {
        add_making(p, &parts);
        print_parts(&parts);
    }
    for (int i = 0; left && i < setups; i++)
        terminal_printf("  %s on %s: a token %.3g ms, a row of many %.3g ms; %s\n",
                        SHOWN(p->experiment.models[p->schedule.setups[i].model].name),
                        p->schedule.setups[i].settings->engine.device, 1e3 * prices[i].token_s,
                        1e3 * prices[i].row_s, prices[i].from);
    mem_free(prices);
    mem_free(ceilings);
    return ok;
}

static bool print_plan(const Plan *p, const PlanOptions *o, int *code, Error *e) {
    Done done;
    const Schedule *s = &p->schedule;
    terminal_printf("config     %s: %d points, %d skipped; %d combinations excluded, %d written twice\n",
                    SHOWN(p->file), p->sweep.count, inputs_refused(&p->inputs), p->sweep.excluded,
                    p->sweep.repeated);
    bool ok = read_done(p, p->db ? p->db : o->sweep.db, &done, e);
    for (int setup = 0; ok && setup < s->setup_count; setup++) {
        print_setup(p, setup);
        for (int i = 0; i < s->group_count; i++)
            if (s->groups[i].setup == setup) print_group(p, &done, &s->groups[i], o->points);
    }
    if (ok && inputs_refused(&p->inputs)) printf("\n");
    if (ok) print_refusals(p, code);
    ok = ok && print_time(p, &done, e);
    store_close(done.store);
    mem_free(done.rounds);
    return ok;
}

static bool plan(int argc, char **argv, int *code, Error *e) {
    PlanOptions o;
    Plan *p;
    if (!prepare(&command_plan, argc, argv, &o, &p, e)) return false;
    bool ok = !p || o.check || print_plan(p, &o, code, e);
    if (p && o.check) print_check(p, code);
    release(p);
    return ok;
}

const Command command_plan = {
    .name = "plan",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "plan an experiment: its points, what is done, and how long the rest takes",
    .arguments = {1, 1},
    .lesson =
        "Reads everything that 'outpace run' would read before it starts. An error names file, line and "
        "column.\n"
        "Each method is opened, on models that compute nothing, so it also reports which points cannot run "
        "and\n"
        "why (exit code 3). Then it lists the models, the groups of methods that are measured side by side,\n"
        "what a store already has of them, and how much time and memory the rest takes. Nothing is measured\n"
        "and nothing is written.\n"
        "\n"
        "  outpace plan mine.yaml --check\n"
        "  outpace plan mine.yaml --points\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = plan};
