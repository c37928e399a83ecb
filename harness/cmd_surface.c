// The memory-to-compute surface of a model on this machine, and the times of a step's parts, into the store.
#include "harness/command.h"

#include "engine/base/memory.h"
#include "harness/content.h"
#include "harness/interrupt.h"
#include "harness/lists.h"
#include "harness/machine.h"
#include "harness/parts.h"
#include "harness/prepare.h"
#include "harness/version.h"
#include "results/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *k, *w, *context, *layout, *rows, *window, *device, *compute, *isa, *name, *db;
    int threads, samples;
    uint64_t seed;
} SurfaceArguments;

#define AT(name) offsetof(SurfaceArguments, name)
static const Option OPTIONS[] = {
    {"k",              'k', OPTION_TEXT, AT(k),       0, 0,    "LIST",       "rows",                                                 "1,2,4,8,16,32"    },
    {"w",              'w', OPTION_TEXT, AT(w),       0, 0,    "LIST",       "tokens of a row behind its first",                     "0,1,3,5,10,15"    },
    {"context",        'c', OPTION_TEXT, AT(context), 0, 0,    "LIST",       "committed tokens before the step",
     "25,100,500"                                                                                                                                       },
    {"layout",         0,   OPTION_TEXT, AT(layout),  0, 0,    "tree|batch", "do rows share the context, or repeat it",
     "batch"                                                                                                                                            },
    {"rows",           0,   OPTION_TEXT, AT(rows),    0, 0,    "LIST",       "rows of a step's parts, timed by themselves; 0: none",
     "1,2,3,4,8,15,16,17,31,32,33,64,65,128,256,512"                                                                                                    },
    {"samples",        0,   OPTION_INT,  AT(samples), 1, 200,  "N",          "of each point; their mean and median are kept",
     "5"                                                                                                                                                },
    {"sliding-window", 0,   OPTION_TEXT, AT(window),  0, 0,    "on|off",     "off: see all, as if there were no window",
     "on"                                                                                                                                               },
    {"threads",        0,   OPTION_INT,  AT(threads), 0, 1024, "N",          "0: one a core",                                        "0"                },
    {"compute",        0,   OPTION_TEXT, AT(compute), 0, 0,    "f32|bf16",   "how activations enter products",
     "as the weights"                                                                                                                                   },
    {"isa",            0,   OPTION_TEXT, AT(isa),     0, 0,    "NAME",       "force a set of CPU kernels",                           "the best there is"},
    {"device",         0,   OPTION_TEXT, AT(device),  0, 0,    "NAME",       "cpu, cuda[:n], null",                                  "cpu"              },
    {"seed",           0,   OPTION_SEED, AT(seed),    0, 0,    "N",          "of the tokens that are run",                           "0"                },
    {"name",           0,   OPTION_TEXT, AT(name),    0, 0,    "NAME",       "what the run is called",                               "MODEL"            },
    {"db",             0,   OPTION_TEXT, AT(db),      0, 0,    "FILE",       "the store",                                            STORE_DEFAULT      },
};
#undef AT

enum { MOST_ROWS = 8192 }; // of the store, a context

typedef struct Work {
    const SurfaceArguments *a;
    const char *dir;
    Engine engine;
    EngineMemory memory;
    Ceilings ceilings;
    Machine machine;
    Layout layout;
    IntList k, w, contexts, rows;
    Store *store;
    int64_t run, attempt, model;
    StoreSurface *out; // (count) of the open context
    int count, total;
} Work;

// --- before ----------------------------------------------------------------------------------------------

// Nodes of a step: in a batch k roots with w each, in a tree one root with k chains of w.
static int grid_tokens(const Work *s, int k, int w) {
    return s->layout == LAYOUT_BATCH ? k * (w + 1) : 1 + k * w;
}

static bool check_grid(const Work *s, Error *e) {
    for (int i = 0; i < s->k.count; i++)
        for (int j = 0; j < s->w.count; j++)
            if (grid_tokens(s, s->k.items[i], s->w.items[j]) > TREE_MAX_NODES)
                return error_input(e, "%d rows of %d tokens are more than the %d that a step holds",
                                   s->k.items[i], s->w.items[j] + 1, TREE_MAX_NODES);
    return true;
}

static bool read_lists(Work *s, Error *e) {
    const SurfaceArguments *a = s->a;
    s->layout = strcmp(a->layout, "batch") == 0 ? LAYOUT_BATCH : LAYOUT_TREE;
    if (s->layout == LAYOUT_TREE && strcmp(a->layout, "tree") != 0)
        return error_input(e, "--layout is '%s', must be tree or batch", a->layout);
    return int_list_parse(a->k, "--k", 1, TREE_MAX_NODES, &s->k, e) &&
           int_list_parse(a->w, "--w", 0, TREE_MAX_NODES, &s->w, e) &&
           int_list_parse(a->context, "--context", 0, 1 << 24, &s->contexts, e) &&
           int_list_parse(a->rows, "--rows", 0, TREE_MAX_NODES, &s->rows, e) && check_grid(s, e);
}

static int needed_context(const Work *s) {
    int context = 0, rows = 1;
    for (int i = 0; i < s->contexts.count; i++)
        if (s->contexts.items[i] > context) context = s->contexts.items[i];
    for (int i = 0; i < s->rows.count; i++)
        if (s->rows.items[i] > rows) rows = s->rows.items[i];
    for (int i = 0; i < s->k.count; i++)
        for (int j = 0; j < s->w.count; j++) {
            int tokens = grid_tokens(s, s->k.items[i], s->w.items[j]);
            if (tokens > rows) rows = tokens;
        }
    return context + rows;
}

static bool open_model(Work *s, Error *e) {
    const SurfaceArguments *a = s->a;
    int need = needed_context(s);
    EngineOptions o = {
        .device = a->device,
        .window = a->window,
        .compute = a->compute,
        .backend = {.context = need, .threads = a->threads, .isa = a->isa}
    };
    if (!engine_ceilings(a->device, &o.backend, &s->ceilings, e) ||
        !engine_open(&s->engine, s->dir, &o, &s->memory, e))
        return false;
    return s->engine.session.context >= need ||
           error_input(e, "the largest point needs %d positions, the model has %d", need,
                       s->engine.session.context);
}

// --- the store -------------------------------------------------------------------------------------------

static bool add_model(Work *s, Error *e) {
    char weights[SHA256_TEXT];
    bool computes = strcmp(s->a->device, "null") != 0;
    if (!content_model(s->dir, computes, weights, e)) return false;
    StoreContent content = {.kind = "weights", .name = s->dir, .hash = weights, .path = s->dir};
    StoreRun run = {.hash = weights,
                    .kind = "surface",
                    .name = s->a->name ? s->a->name : s->dir,
                    .version = version_text(),
                    .dirty = strstr(version_text(), "-dirty") != NULL,
                    .contents = &content,
                    .content_count = 1};
    StoreModel model = {.name = s->dir,
                        .hash = weights,
                        .path = s->dir,
                        .dtype = dtype_name(s->engine.model.dtype),
                        .stand_in = s->engine.model.stand_in[0] ? s->engine.model.stand_in : NULL,
                        .layers = s->engine.model.shape.layers};
    return store_run_new(s->store, &run, &s->run, e) && store_model(s->store, &model, &s->model, e);
}

static bool open_store(Work *s, int argc, char **argv, Error *e) {
    const Machine *m = &s->machine;
    StoreEnvironment on = {.version = version_text(),
                           .compiler = version_compiler(),
                           .host = m->host,
                           .system = m->system,
                           .kernel = m->kernel,
                           .cpu = m->cpu,
                           .isa = s->ceilings.isa,
                           .governor = m->governor,
                           .cores = m->cores,
                           .threads = s->ceilings.threads,
                           .virtual_machine = m->virtual_machine,
                           .l1d = (int64_t)m->l1d,
                           .l2 = (int64_t)m->l2,
                           .l3 = (int64_t)m->l3,
                           .memory = (int64_t)m->memory,
                           .bandwidth = s->ceilings.bytes_per_s,
                           .peak = s->ceilings.operations_per_s};
    s->store = store_open(s->a->db, STORE_WRITE, NULL, e);
    return s->store && store_begin(s->store, e) && add_model(s, e) &&
           store_attempt(s->store, s->run, argc, argv, &on, &s->attempt, e) && store_commit(s->store, e);
}

static StoreSurface *new_row(Work *s, const char *kind, int context) {
    StoreSurface *row = &s->out[s->count++];
    *row = (StoreSurface){.attempt = s->attempt,
                          .model = s->model,
                          .kind = kind,
                          .device = s->a->device,
                          .compute = s->engine.session.compute == COMPUTE_BF16 ? "bf16" : "f32",
                          .k = -1,
                          .b = -1,
                          .head_rows = -1,
                          .context = context,
                          .slowdown = -1,
                          .floor_s = -1,
                          .bytes = -1,
                          .operations = -1};
    return row;
}

static void add_step(Work *s, const BenchPoint *p, int k, int w) {
    StoreSurface *row = new_row(s, "step", p->context);
    row->layout = s->layout == LAYOUT_BATCH ? "batch" : "tree";
    row->cache = "viewed";
    row->k = k;
    row->w = w;
    row->a = 0;
    row->b = s->engine.model.shape.layers;
    row->rows = row->head_rows = p->tokens;
    row->samples = p->n;
    row->mean_s = p->mean_s;
    row->median_s = p->median_s;
    row->deviation_s = p->mad_s;
    row->slowdown = p->slowdown;
    row->floor_s = p->floor_bandwidth_s > p->floor_compute_s ? p->floor_bandwidth_s : p->floor_compute_s;
    row->bytes = p->bytes;
    row->operations = p->operations;
}

static void add_part(Work *s, const PartPoint *p) {
    StoreSurface *row = new_row(s, part_names[p->kind], p->context);
    row->layout = "chain";
    if (p->kind == PART_LAYERS) {
        row->a = p->a;
        row->b = p->b;
    }
    if (p->kind == PART_HEAD) row->head_rows = p->rows;
    row->rows = p->rows;
    row->samples = p->n;
    row->mean_s = p->mean_s;
    row->median_s = p->median_s;
    row->deviation_s = p->mad_s;
}

// --- measuring -------------------------------------------------------------------------------------------

static BenchOptions options_of(const Work *s) {
    return (BenchOptions){.warm_up = 1,
                          .min_samples = s->a->samples,
                          .max_samples = s->a->samples,
                          .seed = s->a->seed,
                          .clock = clock_monotonic(),
                          .interrupted = interrupt_seen};
}

static void say(const Work *s, int context, const char *what) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[Kcontext %d, %s, %d points", context, what, s->total + s->count);
}

// One row of one token is measured anew before every k, so that drift of the machine is drift of both.
static bool measure_grid(Work *s, int context, Error *e) {
    BenchOptions o = options_of(s);
    for (int i = 0; i < s->k.count; i++) {
        BenchPoint one = {.context = context, .tokens = 1};
        say(s, context, "steps");
        if (!bench_point(&s->engine, &s->ceilings, &o, 0, &one, e)) return false;
        for (int j = 0; j < s->w.count; j++) {
            BenchPoint p = {.context = context, .k = s->k.items[i], .w = s->w.items[j], .layout = s->layout};
            bool is_one = grid_tokens(s, p.k, p.w) == 1;
            if (is_one) p = one;
            else if (!bench_point(&s->engine, &s->ceilings, &o, one.median_s, &p, e)) return false;
            add_step(s, &p, s->k.items[i], s->w.items[j]);
            if (s->count == MOST_ROWS) return error_input(e, "more than %d points of one context", MOST_ROWS);
        }
    }
    return true;
}

static bool measure_part(Work *s, PartPoint p, Error *e) {
    BenchOptions o = options_of(s);
    if (!part_time(&s->engine.session, &o, &p, e)) return false;
    add_part(s, &p);
    return s->count < MOST_ROWS || error_input(e, "more than %d points of one context", MOST_ROWS);
}

// All layers and the first alone: what a layer costs, and what a step costs besides.
static bool measure_parts(Work *s, int context, Error *e) {
    int layers = s->engine.model.shape.layers;
    for (int i = 0; i < s->rows.count; i++) {
        int rows = s->rows.items[i];
        say(s, context, "parts");
        if (rows == 0) continue;
        PartPoint p = {.kind = PART_LAYERS, .a = 0, .b = layers, .rows = rows, .context = context};
        PartPoint first = p;
        first.b = 1;
        if (!measure_part(s, p, e) || (layers > 1 && !measure_part(s, first, e))) return false;
        for (int kind = PART_HEAD; kind < PART_KINDS; kind++)
            if (!measure_part(s, (PartPoint){.kind = (PartKind)kind, .rows = rows, .context = context}, e))
                return false;
    }
    return true;
}

static bool measure(Work *s, Error *e) {
    for (int i = 0; i < s->contexts.count; i++) {
        int context = s->contexts.items[i];
        s->count = 0;
        if (!measure_grid(s, context, e) || !measure_parts(s, context, e) ||
            !store_surface(s->store, s->out, s->count, e))
            return false;
        s->total += s->count;
    }
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    return true;
}

// --- all of it -------------------------------------------------------------------------------------------

static bool finish(Work *s, bool ok, int *code, Error *e) {
    bool interrupted = !ok && e->kind == ERROR_NONE;
    const char *result = ok ? "done" : interrupted ? "interrupted" : "failed";
    if (interrupted) *code = EXIT_INTERRUPTED;
    if (!store_attempt_end(s->store, s->attempt, result, ok || interrupted ? e : &(Error){0})) return false;
    if (ok || interrupted)
        printf("run %lld in %s: %d points of the surface, %s; a cache of %.2f MB for %d positions\n",
               (long long)s->run, store_path(s->store), s->total, result, 1e-6 * (double)s->memory.cache,
               s->engine.session.context);
    return ok || interrupted;
}

static bool surface(Work *s, int argc, char **argv, int *code, Error *e) {
    machine_read(&s->machine);
    s->out = mem_alloc(MOST_ROWS, sizeof *s->out);
    if (!s->out) return error_system(e, "out of memory");
    if (!read_lists(s, e) || !open_model(s, e) || !open_store(s, argc, argv, e)) return false;
    interrupt_catch();
    return finish(s, measure(s, e), code, e);
}

static bool run(int argc, char **argv, int *code, Error *e) {
    SurfaceArguments a = {.k = "1,2,4,8,16,32",
                          .w = "0,1,3,5,10,15",
                          .context = "25,100,500",
                          .layout = "batch",
                          .rows = "1,2,3,4,8,15,16,17,31,32,33,64,65,128,256,512",
                          .samples = 5,
                          .device = "cpu",
                          .isa = getenv("OUTPACE_ISA"),
                          .db = STORE_DEFAULT};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_surface, argc, argv, &a, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count != 1) return error_input(e, "surface: usage: outpace surface %s", command_surface.usage);
    Work *s = mem_alloc(1, sizeof *s);
    if (!s) return error_system(e, "out of memory");
    s->a = &a;
    s->dir = rest.items[0];
    bool ok = surface(s, argc, argv, code, e);
    store_close(s->store);
    engine_close(&s->engine);
    mem_free(s->out);
    mem_free(s);
    return ok;
}

const Command command_surface = {
    .name = "surface",
    .usage = "MODEL [OPTIONS]",
    .summary = "measure what steps of every size cost, and their parts, into the store",
    .lesson = "Times steps of k rows of w + 1 tokens over contexts, beside a step of one token measured just "
              "before: the\n"
              "memory-to-compute surface, slowdown(k, w, context). And a step's parts by themselves: layers "
              "(all, and\n"
              "the first alone), the LM head, prefill, committing, building a tree. Each point is called "
              "--samples\n"
              "times; mean, median and deviation go into table surface.\n"
              "\n"
              "  outpace surface MODEL\n"
              "  outpace surface MODEL --k 1..32 --w 0..15 --context 25,100,500\n"
              "  outpace surface MODEL --k 1 --w 0 --context 16000 --sliding-window off\n"
              "  outpace surface MODEL --layout tree --rows 0 --db mine.db\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
