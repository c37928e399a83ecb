// The memory-to-compute surface of a model on this machine, and the times of a step's parts, into the store.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "engine/base/file.h"
#include "engine/base/ranges.h"
#include "engine/base/shipped.h"
#include "harness/inputs/models.h"
#include "harness/machine/machine.h"
#include "harness/cli/signals.h"
#include "harness/cli/table.h"
#include "harness/bench/surface.h"
#include "harness/cli/version.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *k, *w, *context, *batch, *rows, *exits, *name, *db;
    EngineOptions engine;
    int layout, copied, samples;
    uint64_t seed;
    bool sequence, again;
} SurfaceArguments;

// To 512, dense where the tiles of products begin and end.
#define SURFACE_ROWS "1..4,7..9,15..17,24,31..33,48,63..65,96,127..129,192,255..257,384,511,512"

static const char *const LAYOUTS[] = {"tree", "batch", NULL}, *const CACHES[] = {"viewed", "copied", NULL};

#define AT(name) offsetof(SurfaceArguments, name)
static const Arg OPTIONS[] = {
    {"k", ARG_WORD, AT(k), .help = "rows", .value = "LIST", .fallback = "1,2,4,8,16,32", .literal = true,
     .letter = 'k'},
    {"w", ARG_WORD, AT(w), .help = "tokens of a row after its first", .value = "LIST",
     .fallback = "0,1,3,5,10,15", .literal = true, .letter = 'w'},
    {"context", ARG_WORD, AT(context), .help = "committed tokens before the step", .value = "LIST",
     .fallback = "25,100,500", .literal = true, .letter = 'c'},
    {"batch", ARG_WORD, AT(batch), .help = "sequences that run a step together, each with such a context",
     .value = "LIST", .fallback = "1", .literal = true},
    {"layout", ARG_CHOICE, AT(layout), .help = "do rows share the context, or repeat it", .choices = LAYOUTS,
     .fallback = "batch"},
    {"cache", ARG_CHOICE, AT(copied), .help = "do rows of a batch look at one cache, or copy it",
     .choices = CACHES, .fallback = "viewed"},
    {"rows", ARG_WORD, AT(rows), .help = "rows of a step's parts, timed by themselves; 0: none",
     .value = "LIST", .fallback = SURFACE_ROWS, .literal = true},
    {"exits", ARG_WORD, AT(exits), .help = "layers that are timed by themselves, up to and from each",
     .value = "LIST", .fallback = "1", .literal = true},
    {"samples", ARG_INT, AT(samples), 1, 200, "5", .help = "of each point; their mean and median are kept",
     .value = "N"},
    {"sequence", ARG_FLAG, AT(sequence), .help = "time the prefill of each context's text too, from nothing"},
    {"seed", ARG_SEED, AT(seed), .help = "of the tokens that are run", .value = "N", .fallback = "0"},
    {"name", ARG_WORD, AT(name), .help = "name of the run", .value = "NAME", .fallback = "MODEL"},
    {"again", ARG_FLAG, AT(again), .help = "a new run, though one like this is there"},
    STORE_OPTION(AT(db)),
};

typedef struct Work {
    const SurfaceArguments *a;
    const char *dir;
    EngineMemory memory;
    Machine machine;
    SurfaceRun run;
    Line silent; // of the session, which tells of parts of a sample
} Work;

// --- before ----------------------------------------------------------------------------------------------

static bool read_plan(const SurfaceArguments *a, SurfacePlan *p, Error *e) {
    p->samples = a->samples;
    p->seed = a->seed;
    p->sequence = a->sequence;
    p->layout = a->copied ? LAYOUT_COPIED : (Layout)a->layout;
    if (a->copied && a->layout != LAYOUT_BATCH)
        return error_input(e, "--cache copied needs --layout batch: a tree's rows share the context");
    if (!int_list_parse(a->k, "--k", 1, TREE_MAX_NODES, &p->k, e) ||
        !int_list_parse(a->w, "--w", 0, TREE_MAX_NODES, &p->w, e) ||
        !int_list_parse(a->context, "--context", 0, 1 << 24, &p->contexts, e) ||
        !int_list_parse(a->batch, "--batch", 1, SEQUENCES_MAX, &p->batch, e) ||
        !int_list_parse(a->rows, "--rows", 0, TREE_MAX_NODES, &p->rows, e) ||
        !int_list_parse(a->exits, "--exits", 1, 1 << 16, &p->exits, e))
        return false;
    for (int i = 0; i < p->k.count; i++)
        for (int j = 0; j < p->w.count; j++)
            if (surface_tokens(p->layout, p->k.items[i], p->w.items[j]) > TREE_MAX_NODES)
                return error_input(e, "%d rows of %d tokens are more than the %d that a step holds",
                                   p->k.items[i], p->w.items[j] + 1, TREE_MAX_NODES);
    return true;
}

static bool open_model(Work *s, Error *e) {
    const SurfacePlan *p = &s->run.plan;
    int rows = surface_tokens(p->layout, int_list_most(&p->k), int_list_most(&p->w)), layers,
        need =
            int_list_most(&p->contexts) + (rows > int_list_most(&p->rows) ? rows : int_list_most(&p->rows));
    EngineOptions o = s->a->engine;
    BackendOptions machine = {.threads = o.threads, .isa = o.isa};
    o.layout = s->run.plan.layout;
    o.context = need;
    o.batch = int_list_most(&s->run.plan.batch);
    o.progress = line_progress(&s->silent);
    cards_warn(o.device);
    if (!engine_check(&o, e) || !engine_ceilings(o.device, &machine, &s->run.ceilings, e) ||
        !engine_open(&s->run.engine, s->dir, &o, &s->memory, e))
        return false;
    shape_warn(&s->run.engine.model, s->dir);
    if (s->run.engine.session.context < need)
        return error_input(e, "the largest point needs %d positions, the model has %d", need,
                           s->run.engine.session.context);
    layers = s->run.engine.model.shape.layers;
    return int_list_most(&s->run.plan.exits) <= (layers > 1 ? layers : 1) ||
           error_input(e, "--exits has %d, the model %d layers", int_list_most(&s->run.plan.exits), layers);
}

// --- the store -------------------------------------------------------------------------------------------

static void put_list(Text *out, const char *name, const IntList *l) {
    text_printf(out, "%s", name);
    for (int i = 0; i < l->count; i++) text_printf(out, " %d", l->items[i]);
    text_puts(out, "\n");
}

// Everything that affects the measurement: repeated, it is the same run.
static bool hash_plan(const Work *s, const char *weights, const char *program, char out[SHA256_TEXT],
                      Error *e) {
    const SurfacePlan *p = &s->run.plan;
    EngineOptions o = s->a->engine; // as they turned out
    Gauge gpu;
    LOCAL_TEXT all = {0};
    text_printf(&all, "surface %s %s\n", weights, program);
    machine_name(&s->machine, &all);
    for (int i = 0; engine_gauge(o.device, i, &gpu, NULL); i++) text_printf(&all, ", %s", gpu.name);
    put_list(&all, "\nk", &p->k);
    put_list(&all, "w", &p->w);
    put_list(&all, "contexts", &p->contexts);
    put_list(&all, "batch", &p->batch);
    put_list(&all, "rows", &p->rows);
    put_list(&all, "exits", &p->exits);
    o.layout = p->layout;
    o.compute = (ComputeChoice)(s->run.engine.session.compute + CHOOSE_F32);
    o.threads = s->run.ceilings.threads;
    args_write(MODEL_OPTIONS, MODEL_SETTINGS, &o, &all);
    text_printf(&all, ", isa %s, %d samples%s, seed %llu\n",
                s->run.ceilings.isa ? s->run.ceilings.isa : "none", p->samples,
                p->sequence ? ", sequence" : "", (unsigned long long)p->seed);
    return sha256_bytes(text_get(&all), all.length, out, e);
}

static bool add_run(Work *s, Error *e) {
    char weights[SHA256_TEXT], program[SHA256_TEXT], hash[SHA256_TEXT];
    bool computes = strcmp(s->a->engine.device, "null") != 0, found;
    if (!content_model(s->dir, computes, weights, e) || !sha256_file("/proc/self/exe", program, e) ||
        !hash_plan(s, weights, program, hash, e))
        return false;
    StoreContent contents[] = {{.kind = "weights", .name = s->dir, .hash = weights, .path = s->dir},
                               {.kind = "program", .name = "outpace", .hash = program}};
    StoreRun run = {.hash = hash,
                    .kind = "surface",
                    .name = s->a->name ? s->a->name : s->dir,
                    .version = version_text(),
                    .dirty = !version_is_commit(),
                    .contents = contents,
                    .content_count = 2};
    // Without its window the shape is not the model's.
    const Adapter none[ADAPTER_ROLES] = {0};
    LOCAL_MEMORY char *shape = s->a->engine.no_window ? NULL : shape_text(&s->run.engine.model, none);
    StoreModel model = {.name = s->dir,
                        .hash = weights,
                        .path = s->dir,
                        .shape = shape,
                        .dtype = model_dtype_name(&s->run.engine.model),
                        .stand_in = s->run.engine.model.stand_in[0] ? s->run.engine.model.stand_in : NULL,
                        .layers = s->run.engine.model.shape.layers};
    return (s->a->again ? store_run_new(s->run.store, &run, &s->run.run, e)
                        : store_run(s->run.store, &run, &s->run.run, &found, e)) &&
           store_claim(s->run.store, s->run.run, e) && store_model(s->run.store, &model, &s->run.model, e);
}

// --- all of it -------------------------------------------------------------------------------------------

EMBED(bench_store_sql, "harness/commands/bench_store.sql")

// A sentence, if any point or context isn't as it should be.
static void report_doubts(const Work *s, const char *doubts, int all) {
    Rows *r = rows_named(s->run.store, bench_store_sql, doubts, s->run.run, NULL);
    rows_bind_int(r, 2, all);
    query_sentences(r, NULL);
}

static void tell(const Work *s, const char *result) {
    printf("run %lld in %s: %d points of the surface, ", (long long)s->run.run,
           SHOWN(store_path(s->run.store)), s->run.points + s->run.found);
    if (s->run.found) printf("%d of them from before, ", s->run.found);
    printf("%s; a cache of %.2f MB for %d positions\n", result, 1e-6 * (double)s->memory.cache,
           s->run.engine.session.context);
    report_doubts(s, "disturbed", s->run.points + s->run.found);
    report_doubts(s, "drifted", s->run.plan.contexts.count);
    if (strcmp(result, "interrupted") == 0) puts("interrupted: the same command goes on");
}

static bool surface(Work *s, CommandLine *line, Error *e) {
    const char *device = s->a->engine.device;
    machine_read(&s->machine);
    interrupt_catch();
    if (!read_plan(s->a, &s->run.plan, e) || !open_model(s, e)) return false;
    const Session *session = &s->run.engine.session;
    BackendReport report;
    LOCAL(environment_release) Environment v;
    Benched b = {&s->run.engine.session, s->run.engine.model.dtype, &s->run.ceilings, NULL};
    environment_open(&v, &s->machine, device);
    session->backend->report(session->self, &report);
    gauges_ceilings(device, &s->run.ceilings, bench_peak(&b), report.isa, &v.on);
    s->run.store = store_open(s->a->db, STORE_WRITE, &interrupt_patience, e);
    bool ok = s->run.store && store_begin(s->run.store, e) && add_run(s, e) &&
              store_attempt(s->run.store, s->run.run, line->argc, line->argv, &v.on, &s->run.attempt, e) &&
              store_commit(s->run.store, e);
    if (!ok) return false;
    s->run.device = strcmp(device, "auto") == 0 ? s->run.engine.session.backend->name : device;
    s->run.fast = s->a->engine.math == MATH_FAST;
    line_begin(&s->run.line, true);
    ok = surface_run(&s->run, e);
    bool interrupted = !ok && e->kind == ERROR_INTERRUPTED;
    const char *result = ok ? "done" : interrupted ? "interrupted" : "failed";
    if (interrupted) line->code = EXIT_INTERRUPTED;
    if (interrupted) *e = (Error){0};
    ok = ok || interrupted;
    if (!store_attempt_end(s->run.store, s->run.attempt, result, ok ? e : &(Error){0})) return false;
    if (ok) tell(s, result);
    return ok;
}

static bool run(void *options, CommandLine *line, Error *e) {
    LOCAL_MEMORY Work *s = mem_new(1, sizeof *s);
    s->a = options;
    s->dir = line->words.items[0];
    bool ok = surface(s, line, e);
    store_close(s->run.store);
    engine_close(&s->run.engine);
    return ok;
}

const Command command_bench_store = {
    .name = "bench --store",
    .usage = "MODEL [OPTIONS]",
    .summary = "measure what steps of every size cost, and their parts, into the store",
    .arguments = {1, 1},
    .kept = "measured points are kept: the same command continues",
    COMMAND_OPTIONS(OPTIONS, SurfaceArguments),
    .shared = MODEL_SET(offsetof(SurfaceArguments, engine), "layout context merge max_rows batch"),
    .run = run};
