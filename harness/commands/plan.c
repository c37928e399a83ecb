// What a config would run: checked as run checks it, but nothing is measured of it.
#include "harness/program/command.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/engine.h"
#include "harness/run/ledger.h"
#include "harness/config/point_name.h"
#include "harness/run/prepare.h"
#include "harness/stored/stored.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    SweepOptions sweep;
    bool points;
} PlanOptions;

#define AT(name) offsetof(PlanOptions, name)
static const Option OPTIONS[] = {
    SWEEP_OPTIONS(AT),
    {"points", 0, OPTION_FLAG, AT(points), 0, 0, NULL, "list every point", NULL},
};
#undef AT

static bool prepare(const Command *c, int argc, char **argv, PlanOptions *o, Prepared **out, Error *e) {
    Positionals rest;
    bool stop;
    *o = (PlanOptions){
        .sweep = {.threads = -1, .db = STORE_DEFAULT}
    };
    *out = NULL;
    if (!command_parse(c, argc, argv, o, &rest, &stop, e)) return false;
    if (stop) return true;
    *out = mem_alloc(1, sizeof **out);
    if (!*out) return error_system(e, "out of memory");
    if (prepare_file(*out, rest.items[0], &o->sweep, e)) return true;
    mem_free(*out);
    *out = NULL;
    return false;
}

static void release(Prepared *p) {
    if (p) prepare_release(p);
    mem_free(p);
}

// Points that cannot be run; the exit code is that of a run without them.
static bool print_refusals(const Prepared *p, int *code, Error *e) {
    Text lines = {0};
    bool ok = prepare_refusals(p, &lines, e);
    if (ok) fputs(text_get(&lines), stdout);
    if (inputs_refused(&p->inputs)) *code = EXIT_PARTIAL;
    text_release(&lines);
    return ok;
}

// --- validate --------------------------------------------------------------------------------------------

static bool validate(int argc, char **argv, int *code, Error *e) {
    PlanOptions o;
    Prepared *p;
    if (!prepare(&command_validate, argc, argv, &o, &p, e)) return false;
    bool ok = !p || print_refusals(p, code, e);
    if (p && ok)
        printf("%s: %d points, %d cannot be run; %d models, %d datasets and %d methods are in order\n",
               p->file, p->sweep.count, inputs_refused(&p->inputs), p->experiment.model_count,
               p->experiment.dataset_count, p->experiment.method_count);
    release(p);
    return ok;
}

const Command command_validate = {
    .name = "validate",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "check an experiment: config, models, datasets, templates, prompts",
    .arguments = {1, 1},
    .lesson =
        "Reads all that 'outpace run' would read before it starts, and says what is wrong with file, line\n"
        "and column; of points that cannot be run, which and why: each method is opened, on models that\n"
        "compute nothing. Nothing is measured, and nothing is written.\n"
        "\n"
        "Exit codes: 0 in order; 2 nothing can be run; 3 some points cannot.\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS - 1, // no --points
    .run = validate
};

// --- plan ------------------------------------------------------------------------------------------------

typedef struct Done {
    const Schedule *schedule;
    int *rounds;    // (points): prompts and passes that are stored
    double seconds; // that they took
    double tokens;
} Done;

static bool take(void *state, const LedgerSample *s, Error *e) {
    Done *d = state;
    (void)e;
    if (s->point < 0 || s->point >= d->schedule->point_count) return true;
    d->rounds[s->point] += s->turn == 0;
    d->seconds += s->prefill_s + s->decode_s;
    d->tokens += s->tokens;
    return true;
}

// A store that is not there, or has no run of this content, has nothing done.
static bool read_done(const Prepared *p, const char *db, Done *out, Error *e) {
    int64_t run = 0;
    *out = (Done){.schedule = &p->schedule};
    out->rounds = mem_alloc((size_t)p->schedule.point_count, sizeof *out->rounds);
    if (!out->rounds) return error_system(e, "out of memory");
    if (!file_exists(db)) return true;
    Store *store = store_open(db, STORE_READ, NULL, e);
    bool ok = store && stored_by_hash(store, p->inputs.hash, &run, e) &&
              (!run || ledger_samples(store, run, take, out, e));
    store_close(store);
    if (ok && run) printf("run        %lld in %s goes on\n", (long long)run, db);
    return ok;
}

// Bytes of weights, and of keys and values at the context that the prompts need.
static void print_memory(const Prepared *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    const InputModel *m = &p->inputs.models[s->model];
    const Shape *shape = &m->model.shape;
    size_t width = s->settings->compute == SETTINGS_F32 || m->model.dtype != DTYPE_BF16 ? 4 : 2;
    double cache =
        2.0 * shape->layers * (double)shape_kv_width(shape) * (double)width * p->inputs.positions[setup];
    printf("           about %.2f GB: weights %.2f, cache of %d positions %.2f\n",
           ((double)m->bytes + cache) / 1e9, (double)m->bytes / 1e9, p->inputs.positions[setup], cache / 1e9);
}

static void print_setup(const Prepared *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    printf("\nmodel      %s on %s, compute %s, %d threads%s\n", p->experiment.models[s->model].name,
           s->settings->device,
           s->settings->compute == SETTINGS_AS_STORED ? "as stored"
           : s->settings->compute == SETTINGS_F32     ? "f32"
                                                      : "bf16",
           s->settings->threads, s->settings->threads ? "" : " (one a core)");
    print_memory(p, setup);
}

static bool print_point(const Prepared *p, const Done *done, int number, int rounds, Error *e) {
    const Point *point = &p->schedule.points[number];
    const char *skipped = inputs_refusal(&p->inputs, number);
    PointName name;
    if (!point_name(&p->experiment, point, &name, e)) return false;
    if (number < p->sweep.count) printf("  %5d    %s", number + 1, text_get(&name.label));
    else printf("           %s", text_get(&name.label));
    if (skipped) printf(": skipped, %s\n", skipped);
    else printf(": %d of %d prompts and passes done\n", done->rounds[number], rounds);
    point_name_release(&name);
    return true;
}

static bool print_group(const Prepared *p, const Done *done, const Group *g, bool points, Error *e) {
    const Schedule *s = &p->schedule;
    const Settings *set = &s->points[s->members[g->first]].settings;
    int prompts = (int)p->inputs.datasets[g->dataset].count,
        rounds = prompts * p->experiment.measurement.passes;
    int base = s->members[g->baseline];
    printf(
        "dataset    %s: %d prompts, %d passes%s, %d tokens at most, temperature %g, seed %d: %d methods side "
        "by side, baseline %s%s, %d of %d rounds done\n",
        p->experiment.datasets[g->dataset].name, prompts, p->experiment.measurement.passes,
        p->experiment.measurement.stop == STOP_TIMING ? " at least" : "", set->max_tokens, set->temperature,
        set->seed, g->count, base < p->sweep.count ? "among them" : "added",
        g->warm ? ", in whole passes, since they keep state" : "", done->rounds[base], rounds);
    for (int i = g->first; points && i < g->first + g->count; i++)
        if (!print_point(p, done, s->members[i], rounds, e)) return false;
    return true;
}

// Tokens that are left, if every output is as long as it may be.
static double tokens_left(const Prepared *p, const Done *done, int setup) {
    const Schedule *s = &p->schedule;
    double tokens = 0;
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        if (g->setup != setup) continue;
        const Dataset *d = &p->inputs.datasets[g->dataset];
        double turns = 0, rounds = (double)d->count * p->experiment.measurement.passes;
        for (size_t k = 0; k < d->count; k++) turns += d->prompts[k].turn_count;
        double left = rounds > done->rounds[s->members[g->baseline]]
                          ? rounds - done->rounds[s->members[g->baseline]]
                          : 0;
        for (int k = g->first; k < g->first + g->count; k++)
            if (!inputs_refusal(&p->inputs, s->members[k]))
                tokens += left * turns / (double)d->count * s->points[s->members[k]].settings.max_tokens;
    }
    return tokens;
}

static void print_seconds(double seconds) {
    if (seconds < 100) printf("%.0f s", seconds);
    else if (seconds < 6000) printf("%.0f min", seconds / 60);
    else printf("%.1f h", seconds / 3600);
}

// How fast the setup's device reads, measured once for all setups on it, and said in `told`; 0 where it is
// not here, or has no arithmetic.
static double reading_rate(const Schedule *s, int setup, double *rates, Text *told) {
    const char *device = s->setups[setup].settings->device;
    BackendOptions o = {.isa = getenv("OUTPACE_ISA")};
    Ceilings c;
    Error why = {0};
    for (int i = 0; i < setup; i++)
        if (strcmp(s->setups[i].settings->device, device) == 0) return rates[setup] = rates[i];
    rates[setup] = engine_ceilings(device, &o, &c, &why) ? c.bytes_per_s : 0;
    if (why.kind != ERROR_NONE) text_printf(told, "; without %s: %s", device, why.text);
    else if (c.bytes_per_s > 0) text_printf(told, ", %s at %.1f GB/s", device, c.bytes_per_s / 1e9);
    return rates[setup];
}

// As if every method gave one token a step, and a step were a read of the weights at the memory's measured
// speed.
static bool print_floor(const Prepared *p, const Done *done, Error *e) {
    double seconds = 0, tokens = 0, *rates = mem_alloc((size_t)p->schedule.setup_count, sizeof *rates);
    Text told = {0};
    if (!rates) return error_system(e, "out of memory for %d setups", p->schedule.setup_count);
    for (int i = 0; i < p->schedule.setup_count; i++) {
        double left = tokens_left(p, done, i), rate = reading_rate(&p->schedule, i, rates, &told);
        tokens += left;
        if (rate > 0) seconds += left * (double)p->inputs.models[p->schedule.setups[i].model].bytes / rate;
    }
    printf("\ntime       about ");
    print_seconds(seconds);
    printf(" for %.0f tokens, were each a read of the weights%s; prefill and computing come on top, methods "
           "that gain shorten it\n",
           tokens, text_get(&told));
    text_release(&told);
    mem_free(rates);
    return true;
}

// By the rate so far where there is one.
static bool print_time(const Prepared *p, const Done *done, Error *e) {
    double tokens = 0;
    if (!(done->tokens > 0)) return print_floor(p, done, e);
    for (int i = 0; i < p->schedule.setup_count; i++) tokens += tokens_left(p, done, i);
    printf("\ntime       about ");
    print_seconds(tokens * done->seconds / done->tokens);
    printf(" for %.0f tokens, at the rate so far\n", tokens);
    return true;
}

static bool print_plan(const Prepared *p, const PlanOptions *o, int *code, Error *e) {
    Done done;
    const Schedule *s = &p->schedule;
    printf("config     %s: %d points, %d skipped; %d combinations excluded, %d said twice\n", p->file,
           p->sweep.count, inputs_refused(&p->inputs), p->sweep.excluded, p->sweep.repeated);
    bool ok = read_done(p, o->sweep.db, &done, e);
    for (int setup = 0; ok && setup < s->setup_count; setup++) {
        print_setup(p, setup);
        for (int i = 0; ok && i < s->group_count; i++)
            if (s->groups[i].setup == setup) ok = print_group(p, &done, &s->groups[i], o->points, e);
    }
    if (ok && inputs_refused(&p->inputs)) printf("\n");
    ok = ok && print_refusals(p, code, e) && print_time(p, &done, e);
    mem_free(done.rounds);
    return ok;
}

static bool plan(int argc, char **argv, int *code, Error *e) {
    PlanOptions o;
    Prepared *p;
    if (!prepare(&command_plan, argc, argv, &o, &p, e)) return false;
    bool ok = !p || print_plan(p, &o, code, e);
    release(p);
    return ok;
}

const Command command_plan = {
    .name = "plan",
    .usage = "CONFIG.yaml [OPTIONS]",
    .summary = "say what an experiment would run, what is done, and how long it takes",
    .arguments = {1, 1},
    .lesson =
        "Checks the experiment as 'outpace validate' does, and lists its models, groups of methods that are\n"
        "measured side by side, what a store has of them already, which points cannot be run and why (exit\n"
        "code 3), and about how much time and memory the rest takes. Nothing is written.\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = plan
};
