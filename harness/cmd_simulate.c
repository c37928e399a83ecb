// A stored run's steps priced on another machine and model: what it would have come to there.
#include "harness/command.h"

#include "harness/lists.h"
#include "harness/prepare.h"
#include "harness/scaled.h"
#include "harness/simulation.h"
#include "harness/step_model.h"
#include "harness/stored.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *db, *on, *shape, *draft_shape, *against, *against_db, *devices, *link;
    bool json;
} SimulateOptions;

#define AT(name) offsetof(SimulateOptions, name)
static const Option OPTIONS[] = {
    {"on",          0, OPTION_TEXT, AT(on),          0, 0, "MACHINE",
     "of configs/hardware, or a file of 'fit --surface --save'",                                                            NULL         },
    {"shape",       0, OPTION_TEXT, AT(shape),       0, 0, "SHAPE",   "of the target: of configs/shapes, or a config.json",
     NULL                                                                                                                                },
    {"draft-shape", 0, OPTION_TEXT, AT(draft_shape), 0, 0, "SHAPE",
     "of the draft model, for points that run one",                                                                         NULL         },
    {"against",     0, OPTION_TEXT, AT(against),     0, 0, "RUN",
     "the same points measured on that machine: print errors",                                                              NULL         },
    {"against-db",  0, OPTION_TEXT, AT(against_db),  0, 0, "FILE",    "the store of that run",                              "as --db"    },
    {"devices",     0, OPTION_TEXT, AT(devices),     0, 0, "LIST",
     "strong scaling of lookahead over so many of MACHINE",                                                                 NULL         },
    {"link",        0, OPTION_TEXT, AT(link),        0, 0, "GB/S,US",
     "with --devices: a link's speed and a message's latency",                                                              NULL         },
    {"db",          0, OPTION_TEXT, AT(db),          0, 0, "FILE",    "the store",                                          STORE_DEFAULT},
    {"json",        0, OPTION_FLAG, AT(json),        0, 0, NULL,      "print one JSON object",                              NULL         },
};
#undef AT

// --- for people ------------------------------------------------------------------------------------------

static void print_interval(const Tally *t, TallyMetric m) {
    printf(" %6.3f", t->value[m]);
    if (t->has_interval) printf(" [%6.3f, %6.3f]", t->interval[m].low, t->interval[m].high);
    else printf(" %16s", "");
}

static void print_error(double error) {
    if (isfinite(error)) printf(" %+7.1f%%", 100 * error);
    else printf(" %8s", "-");
}

static void print_point(const SimulatedPoint *p, bool against) {
    printf("%5lld  %-36s", (long long)p->number, p->label);
    if (p->needs_draft) {
        puts(" runs a draft model: give its --draft-shape");
        return;
    }
    print_interval(&p->tally, TALLY_S);
    printf(" %9.3f %9.1f", 1e3 * p->step_s, p->tally.value[TALLY_RATE]);
    print_interval(&p->tally, TALLY_SPEEDUP);
    printf(" %6.3f", p->tally.value[TALLY_SPEEDUP_E2E]);
    for (int i = 0; against && i < SIMULATED_COUNT; i++) print_error(simulation_error(p, (SimulatedWhat)i));
    puts("");
}

static void print_points(const Simulation *s, bool against) {
    for (size_t i = 0; i < s->count; i++) {
        if (i == 0 || strcmp(s->points[i].group, s->points[i - 1].group) != 0) {
            printf("\n%s\n%5s  %-36s %6s %-16s %9s %9s %6s %-16s %6s", s->points[i].group, "point", "method",
                   "S", " [95%]", "step ms", "tokens/s", "speedup", " [95%]", "e2e");
            puts(against ? "   errors: step       S  speedup" : "");
        }
        print_point(&s->points[i], against);
    }
}

static bool print_errors(const Simulation *s, Error *e) {
    static const char *const NAMES[] = {"step time", "S", "speedup"};
    puts("");
    for (int i = 0; i < SIMULATED_COUNT; i++) {
        SimulationError x;
        if (!simulation_errors(s, (SimulatedWhat)i, &x, e)) return false;
        printf("error of %-10s", NAMES[i]);
        if (x.points)
            printf(" median %.1f%%, worst %.1f%%, %d points\n", 100 * x.median, 100 * x.worst, x.points);
        else puts(" no point was measured there");
    }
    return true;
}

static void print_head(const SimulateOptions *o, const Pricing *p) {
    double bytes = step_model_bytes(&p->target) + (p->has_draft ? step_model_bytes(&p->draft) : 0);
    printf("predicted  %s, shape %s: no number here was measured on it\n", p->machine.name, o->shape);
    if (bytes > p->machine.memory_bytes)
        printf("note       weights of %.1f GB do not fit into its %.1f GB\n", 1e-9 * bytes,
               1e-9 * p->machine.memory_bytes);
}

// --- strong scaling --------------------------------------------------------------------------------------

typedef struct Scaling {
    IntList devices;
    Link link;
} Scaling;

static bool read_scaling(const SimulateOptions *o, Scaling *out, Error *e) {
    double speed, latency;
    char *end;
    *out = (Scaling){0};
    if (!o->devices != !o->link)
        return error_input(e,
                           "simulate: --devices and --link go together: how fast is what joins the devices?");
    if (!o->devices) return true;
    if (!int_list_parse(o->devices, "--devices", 1, SCALING_MOST_DEVICES, &out->devices, e)) return false;
    speed = strtod(o->link, &end);
    latency = *end == ',' ? strtod(end + 1, &end) : NAN;
    if (*end || !isfinite(latency))
        return error_input(e, "simulate: --link is '%s', must be GB/s and microseconds, as 300,5", o->link);
    out->link = (Link){1e9 * speed, 1e-6 * latency};
    return link_check(&out->link, e);
}

typedef void (*TakeScaled)(void *state, const SimulatedPoint *p, int devices, const Scaled *x);

// Each point of lookahead over each number of devices.
static bool each_scaled(Store *store, const Pricing *pricing, const Scaling *s, const Simulation *all,
                        TakeScaled take, void *state, Error *e) {
    for (size_t i = 0; i < all->count; i++)
        for (int k = 0; k < s->devices.count && !all->points[i].needs_draft; k++) {
            Scaled x;
            int devices = s->devices.items[k];
            if (!scaled_point(store, &all->points[i], pricing, &s->link, devices, &x, e)) return false;
            if (x.given) take(state, &all->points[i], devices, &x);
        }
    return true;
}

static void print_scaled(void *state, const SimulatedPoint *p, int devices, const Scaled *x) {
    (void)state;
    printf("%5lld  %-36s %7d %9.3f %9.3f %9.3f %14.3f %9.3f\n", (long long)p->number, p->label, devices,
           x->lookahead, x->tensor, x->pipeline, x->autoregressive_tensor, x->autoregressive_pipeline);
}

// Nothing of it is measured: a price of the split's rows, and of the messages over the stated link.
static bool print_scalings(Store *store, const Pricing *pricing, const Scaling *s, const Simulation *all,
                           Error *e) {
    printf("\nstrong scaling, predicted, over links of %g GB/s and %g us: speedup over autoregressive "
           "decoding on one\n"
           "%5s  %-36s %7s %9s %9s %9s %14s %9s\n",
           1e-9 * s->link.bytes_per_s, 1e6 * s->link.latency_s, "point", "method", "devices", "lookahead",
           "tensor", "pipeline", "autoreg.tensor", "pipeline");
    return each_scaled(store, pricing, s, all, print_scaled, NULL, e);
}

// --- JSON ------------------------------------------------------------------------------------------------

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static void set_interval(json_t *o, const Tally *t, TallyMetric m) {
    char low[48], high[48];
    snprintf(low, sizeof low, "%s_low", tally_names[m]);
    snprintf(high, sizeof high, "%s_high", tally_names[m]);
    json_object_set_new(o, tally_names[m], number(t->value[m]));
    if (!t->has_interval) return;
    json_object_set_new(o, low, number(t->interval[m].low));
    json_object_set_new(o, high, number(t->interval[m].high));
}

static json_t *point_json(const SimulatedPoint *p) {
    json_t *o = json_pack("{s:I, s:s, s:s, s:b}", "point", (json_int_t)p->number, "of", p->group, "label",
                          p->label, "needs_draft", p->needs_draft);
    if (!o || p->needs_draft) return o;
    json_object_set_new(o, "step_s", number(p->step_s));
    set_interval(o, &p->tally, TALLY_S);
    set_interval(o, &p->tally, TALLY_RATE);
    set_interval(o, &p->tally, TALLY_SPEEDUP);
    set_interval(o, &p->tally, TALLY_SPEEDUP_E2E);
    if (!p->measured) return o;
    json_object_set_new(o, "error_step", number(simulation_error(p, SIMULATED_STEP)));
    json_object_set_new(o, "error_S", number(simulation_error(p, SIMULATED_S)));
    json_object_set_new(o, "error_speedup", number(simulation_error(p, SIMULATED_SPEEDUP)));
    return o;
}

static void add_scaled(void *state, const SimulatedPoint *p, int devices, const Scaled *x) {
    json_array_append_new(state, json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:f}", "point",
                                           (json_int_t)p->number, "devices", devices, "lookahead",
                                           x->lookahead, "tensor", x->tensor, "pipeline", x->pipeline,
                                           "autoregressive_tensor", x->autoregressive_tensor,
                                           "autoregressive_pipeline", x->autoregressive_pipeline));
}

static bool print_json(const SimulateOptions *o, Store *store, const Pricing *p, const Scaling *scaling,
                       const Simulation *s, Error *e) {
    json_t *scalings = json_array();
    if (!each_scaled(store, p, scaling, s, add_scaled, scalings, e)) {
        json_decref(scalings);
        return false;
    }
    json_t *points = json_array();
    for (size_t i = 0; i < s->count; i++) json_array_append_new(points, point_json(&s->points[i]));
    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "machine", p->machine.name, "shape", o->shape, "points",
                             points, "scaling", scalings);
    char *line = root ? json_dumps(root, 0) : NULL;
    if (line) puts(line);
    free(line); // jansson's own
    json_decref(root);
    return line || error_system(e, "simulate: cannot make the JSON object: out of memory");
}

// --- all of it -------------------------------------------------------------------------------------------

static bool open_pricing(const SimulateOptions *o, Pricing *p, Error *e) {
    *p = (Pricing){.has_draft = o->draft_shape != NULL};
    return machine_open(o->on, &p->machine, e) && step_model_open(o->shape, &p->target, e) &&
           (!p->has_draft || step_model_open(o->draft_shape, &p->draft, e));
}

static bool print(const SimulateOptions *o, Store *store, const Pricing *p, const Scaling *scaling,
                  const Simulation *s, Error *e) {
    if (o->json) return print_json(o, store, p, scaling, s, e);
    print_head(o, p);
    print_points(s, o->against != NULL);
    return (!o->against || print_errors(s, e)) &&
           (!scaling->devices.count || print_scalings(store, p, scaling, s, e));
}

static bool simulate(const SimulateOptions *o, const char *which, Error *e) {
    Pricing pricing;
    Simulation s = {0};
    SimulationAgainst against = {0};
    Scaling scaling;
    int64_t run;
    if (!read_scaling(o, &scaling, e) || !open_pricing(o, &pricing, e)) return false;
    Store *store = store_open(o->db, STORE_READ, NULL, e);
    bool ok = store && stored_run(store, which, &run, e);
    if (ok && o->against) {
        against.store = store_open(o->against_db ? o->against_db : o->db, STORE_READ, NULL, e);
        ok = against.store && stored_run(against.store, o->against, &against.run, e);
    }
    ok = ok && simulation_run(store, run, &pricing, &against, &s, e) &&
         print(o, store, &pricing, &scaling, &s, e);
    simulation_release(&s);
    store_close(against.store);
    store_close(store);
    return ok;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    SimulateOptions o = {.db = STORE_DEFAULT};
    Positionals rest;
    bool stop;
    (void)code;
    if (!command_parse(&command_simulate, argc, argv, &o, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count != 1 || !o.on || !o.shape)
        return error_input(e, "simulate: usage: outpace simulate %s", command_simulate.usage);
    return simulate(&o, rest.items[0], e);
}

const Command command_simulate = {
    .name = "simulate",
    .usage = "RUN --on MACHINE --shape SHAPE [OPTIONS]",
    .summary = "a stored run's steps priced on another machine: tokens/s and speedups there",
    .lesson =
        "Every pass that the run's steps ran is priced on MACHINE for a model of SHAPE: layers, head, draft\n"
        "passes, prefill and commit by what they read and compute; the host's part is as it was recorded.\n"
        "What was accepted is the run's own, so S is that of the model that ran. Intervals draw prompts\n"
        "again; they know nothing of the price's own error, which --against prints, for step time, S and\n"
        "speedup apart, where the same points were measured there. A machine of configs/hardware is a data\n"
        "sheet, and its prices are floors; fitted to a measured surface (fit --surface --save) it is a "
        "model.\n"
        "\n"
        "--devices predicts lookahead's strong scaling: by lookahead parallelism, which cuts a step's "
        "tokens, and\n"
        "by tensor and pipeline parallelism, which cut the model, with no cost but products and messages.\n"
        "\n"
        "  outpace simulate demo --on a100-80gb --shape llama2-7b\n"
        "  outpace simulate 12 --on a100-40gb --shape codellama-7b --devices 1,2,4,8 --link 300,5\n"
        "  outpace simulate 12 --on mine.json --shape models/x/config.json --against 12\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
