// Times steps of one model over a grid of sizes and contexts, with the machine's floors under each.
#include "harness/cli/command.h"

#include "engine/base/memory.h"
#include "harness/bench/bench_report.h"
#include "harness/bench/surface.h"
#include "engine/base/ranges.h"
#include "harness/inputs/models.h"

#include <stdio.h>

typedef struct {
    const char *tokens, *context, *k, *w, *batch;
    EngineOptions engine;
    const char *adapter;
    int samples, prefill;
    double seconds;
    uint64_t seed;
    bool processor, json, csv;
} BenchArguments;

#define AT(name) offsetof(BenchArguments, name)
static const Arg OPTIONS[] = {
    {"tokens", ARG_WORD, AT(tokens), .help = "tokens of a step, as a chain", .value = "LIST",
     .fallback = "1,2,4,8,16,32,64,121,128,256", .literal = true, .letter = 'n'},
    {"context", ARG_WORD, AT(context), .help = "committed tokens before it", .value = "LIST",
     .fallback = "25,100,500", .literal = true, .letter = 'c'},
    {"k", ARG_WORD, AT(k), .help = "rows in place of a chain: k rows of w", .value = "LIST", .letter = 'k'},
    {"w", ARG_WORD, AT(w), .help = "tokens of a row after the root", .value = "LIST", .letter = 'w'},
    {"batch", ARG_WORD, AT(batch), .help = "sequences that run it together, each with such a context",
     .value = "LIST", .fallback = "1", .literal = true},
    {"adapter", ARG_WORD, AT(adapter), .help = "time its steps in place of the model's", .value = "MODEL"},
    {"prefill", ARG_INT, AT(prefill), 0, 1 << 20, "0", .help = "time a prompt of N tokens too", .value = "N"},
    {"samples", ARG_INT, AT(samples), 1, 200, "5", .help = "of each point at least", .value = "N"},
    {"seconds", ARG_REAL, AT(seconds), 0, 3600, "1", .help = "for each point, once it has the samples",
     .value = "S"},
    {"seed", ARG_SEED, AT(seed), .help = "of the tokens that are run", .value = "N", .fallback = "0"},
    {"processor-time", ARG_FLAG, AT(processor),
     .help = "CPU time instead of wall time (busy machines; needs --threads 1)"},
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object"},
    {"csv", ARG_FLAG, AT(csv), .help = "print the points as CSV"},
};

typedef struct {
    const BenchArguments *a;
    BenchRun run;
    int sequences;     // of the largest point
    Line line, silent; // silent: for the session, which reports parts of a sample
} Bench;

// --- the grid --------------------------------------------------------------------------------------------

static bool add_point(Bench *b, BenchPoint p, Error *e) {
    if (b->run.count == BENCH_POINTS) return error_input(e, "bench: more than %d points", BENCH_POINTS);
    b->run.points[b->run.count++] = p;
    return true;
}

static bool add_grid(Bench *b, int context, int sequences, Error *e) {
    Layout layout = b->a->engine.layout;
    IntList k, w;
    if (!b->a->k || !b->a->w) return error_input(e, "bench: --k and --w go together");
    if (!int_list_parse(b->a->k, "--k", 1, TREE_MAX_NODES, &k, e) ||
        !int_list_parse(b->a->w, "--w", 0, TREE_MAX_NODES, &w, e))
        return false;
    for (int i = 0; i < k.count; i++)
        for (int j = 0; j < w.count; j++) {
            int tokens = surface_tokens(layout, k.items[i], w.items[j]);
            if (tokens > TREE_MAX_NODES)
                return error_input(e, "bench: %d rows of %d are %d tokens, a step holds %d", k.items[i],
                                   w.items[j], tokens, TREE_MAX_NODES);
            BenchPoint p = {.context = context,
                            .sequences = sequences,
                            .k = k.items[i],
                            .w = w.items[j],
                            .tokens = tokens,
                            .layout = layout};
            if (!add_point(b, p, e)) return false;
        }
    return true;
}

static bool add_chains(Bench *b, int context, int sequences, Error *e) {
    IntList tokens;
    if (!int_list_parse(b->a->tokens, "--tokens", 1, TREE_MAX_NODES, &tokens, e)) return false;
    for (int i = 0; i < tokens.count; i++) {
        BenchPoint p = {.context = context, .sequences = sequences, .tokens = tokens.items[i]};
        if (!add_point(b, p, e)) return false;
    }
    return true;
}

static bool make_grid(Bench *b, Error *e) {
    IntList contexts, batch;
    if (!int_list_parse(b->a->context, "--context", 0, 1 << 24, &contexts, e) ||
        !int_list_parse(b->a->batch, "--batch", 1, SEQUENCES_MAX, &batch, e))
        return false;
    int most = int_list_most(&batch);
    if (most > 1 && b->a->adapter)
        return error_input(e, "bench: an adapter's steps are timed of one sequence; leave out --batch");
    b->run.batches = most > 1;
    b->sequences = most;
    for (int i = 0; i < contexts.count; i++)
        for (int j = 0; j < batch.count; j++)
            if (!(b->a->k || b->a->w ? add_grid : add_chains)(b, contexts.items[i], batch.items[j], e))
                return false;
    return true;
}

// --- measuring -------------------------------------------------------------------------------------------

static bool open_model(Bench *b, Error *e) {
    int need = b->a->prefill + 1;
    for (const BenchPoint *p = b->run.points; p < b->run.points + b->run.count; p++)
        if (p->context + p->tokens > need) need = p->context + p->tokens;
    EngineOptions o = b->a->engine;
    o.context = need;
    o.batch = b->sequences;
    o.progress = line_progress(&b->silent);
    BenchPoint first = {.tokens = 1};
    BenchOptions once = {.max_samples = 1, .min_samples = 1, .clock = clock_monotonic()};
    double start = clock_now(once.clock);
    cards_warn(o.device);
    if (!engine_open(&b->run.engine, b->run.dir, &o, NULL, e)) return false;
    shape_warn(&b->run.engine.model, b->run.dir);
    if (b->run.engine.session.context < need)
        return error_input(e, "bench: the largest point needs %d positions, the model has %d", need,
                           b->run.engine.session.context);
    BenchRun *run = &b->run; // times the model, or its adapter
    run->benched = (Benched){&run->engine.session, run->engine.model.dtype, &run->ceilings, run->engine.more};
    if (b->a->adapter) {
        if (!engine_open_adapter(&run->adapter, &run->engine, b->a->adapter, &o, NULL, e)) return false;
        run->adapter_dir = b->a->adapter;
        run->benched.session = &run->adapter.sessions[0];
        run->benched.weights = run->adapter.adapter.models[0].dtype;
    }
    if (!bench_point(&b->run.benched, &once, NULL, &first, e)) return false;
    b->run.open_s = clock_now(once.clock) - start;
    return true;
}

// The step that the other points of its context are compared with.
static bool is_one(const BenchPoint *p) { return p->tokens == 1 && p->k == 0 && p->sequences == 1; }

// If one token's time has changed between before a context's points and after them, theirs may have, too.
// first: the first of these points.
static bool look_for_drift(Bench *b, const BenchOptions *o, const BenchPoint *one, int first, Error *e) {
    BenchPoint again = {.context = one->context, .tokens = 1};
    if (!bench_point(&b->run.benched, o, NULL, &again, e)) return false;
    BenchTime before = one->time;
    for (int i = first; i < b->run.measured; i++)
        if (is_one(&b->run.points[i])) before.flags |= b->run.points[i].time.flags; // found later
    for (int i = first; i < b->run.measured; i++)
        if (!is_one(&b->run.points[i])) bench_compare(&b->run.points[i], &before, &again.time);
    if (b->run.drifted >= 0 || !bench_drifted(one->time.median_s, again.time.median_s)) return true;
    b->run.drifted = one->context;
    b->run.before_s = one->time.median_s;
    b->run.after_s = again.time.median_s;
    return true;
}

// One token is measured again at every context: slowdowns are relative to it.
static bool measure(Bench *b, Error *e) {
    Watch watch = {0};
    BenchOptions o = {.warm_up = 2,
                      .min_samples = b->a->samples,
                      .max_samples = 200,
                      .seconds = b->a->seconds,
                      .seed = b->a->seed,
                      .clock = b->a->processor ? clock_processor() : clock_monotonic(),
                      .watch = b->a->processor ? NULL : &watch};
    BenchPoint one = {.context = -1};
    bool others = false;       // at this context
    int first = 0, unseen = 0; // points: of this context, that the watch has not judged
    watch_begin(&watch, o.clock);
    for (int i = 0; i < b->run.count; i++) {
        BenchPoint *p = &b->run.points[i];
        char text[64];
        snprintf(text, sizeof text, "point %d of %d", i + 1, b->run.count);
        if (line_due(&b->line)) line_show(&b->line, text);
        if (one.context != p->context) {
            one = (BenchPoint){.context = p->context, .sequences = 1, .tokens = 1};
            others = false;
            first = i;
            if (!bench_point(&b->run.benched, &o, NULL, &one, e)) return false;
        }
        if (is_one(p)) *p = one;
        else if (!bench_point(&b->run.benched, &o, &one.time, p, e)) return false;
        b->run.measured++;
        for (; p->time.looked && unseen < i; unseen++) // what the watch finds applies since its last look
            b->run.points[unseen].time.flags |= p->time.flags_before;
        others = others || !is_one(p);
        bool last = i + 1 == b->run.count || b->run.points[i + 1].context != p->context;
        if (last && others && !look_for_drift(b, &o, &one, first, e)) return false;
    }
    b->run.prefill = b->a->prefill;
    return b->a->prefill == 0 || bench_prefill(b->run.benched.session, &o, b->a->prefill, &b->run.prefill_s,
                                               &b->run.prefill_operations, e);
}

// --- all of it -------------------------------------------------------------------------------------------

// Points measured before a failure or an interruption are printed all the same; an error in writing the
// report must not hide the error that ended the run.
static bool bench(Bench *b, int *code, Error *e) {
    const EngineOptions *o = &b->a->engine;
    BackendOptions machine = {.threads = o->threads, .isa = o->isa};
    machine_read(&b->run.machine); // before threads are kept on their cores
    (void)engine_passes_over(o->device, &b->run.passed);
    if (!make_grid(b, e) || !engine_check(o, e) || !engine_ceilings(o->device, &machine, &b->run.ceilings, e))
        return false;
    b->run.gpu = engine_gauge(o->device, 0, &b->run.before, NULL);
    if ((b->run.gpu && !engine_copy_rate(o->device, &b->run.copy_bytes_per_s, e)) || !open_model(b, e))
        return false;
    interrupt_catch();
    line_begin(&b->line, true);
    bool ok = measure(b, e), interrupted = !ok && e->kind == ERROR_INTERRUPTED;
    line_clear(&b->line);
    if (interrupted) *code = EXIT_INTERRUPTED;
    if (b->run.gpu) engine_gauge(o->device, 0, &b->run.after, NULL);
    if (!ok && !b->run.measured) return interrupted;
    const char *ended = interrupted ? "interrupted" : ok ? NULL : e->text;
    Error *why = ended ? NULL : e;
    return (b->a->json  ? bench_report_json(&b->run, ended, why)
            : b->a->csv ? bench_report_csv(&b->run, why)
                        : bench_report_table(&b->run, why)) &&
           (ok || interrupted);
}

static bool run(void *options, CommandLine *line, Error *e) {
    BenchArguments *a = options;
    if (a->json && a->csv) return error_input(e, "bench: give --json or --csv, not both");
    LOCAL_MEMORY Bench *b = mem_new(1, sizeof *b);
    b->a = a;
    b->run.dir = line->words.items[0];
    b->run.math = a->engine.math == MATH_FAST ? "fast" : "exact";
    b->run.processor = a->processor;
    b->run.drifted = -1;
    bool ok = bench(b, &line->code, e);
    engine_close_adapter(&b->run.adapter);
    engine_close(&b->run.engine);
    return ok;
}

const Command command_bench = {
    .name = "bench",
    .usage = "MODEL [OPTIONS]",
    .summary = "time single steps, and the machine's floors under them; --store keeps them for figures",
    .arguments = {1, 1},
    COMMAND_OPTIONS(OPTIONS, BenchArguments),
    .shared = MODEL_SET(offsetof(BenchArguments, engine), "context merge max_rows batch"),
    .run = run,
    .parts = (const Command *const[]){&command_bench_store, NULL},
    .tables = TABLES(&bench_points)};
