// Times steps of one model over a grid of sizes and contexts, beside what the machine could do at most.
#include "harness/program/command.h"

#include "engine/base/memory.h"
#include "harness/machine/bench.h"
#include "harness/program/interrupt.h"
#include "harness/program/lists.h"
#include "harness/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_POINTS = 4096 };

typedef struct {
    const char *tokens, *context, *k, *w, *layout, *device, *window, *compute, *math, *isa;
    int threads, samples, prefill;
    double seconds;
    uint64_t seed;
    bool processor, json, csv;
} BenchArguments;

#define AT(name) offsetof(BenchArguments, name)
static const Option OPTIONS[] = {
    {"tokens",         'n', OPTION_TEXT, AT(tokens),    0, 0,       "LIST",       "tokens of a step, as a chain",
     "1,2,4,8,16,32,64,121,128,256"                                                                                                              },
    {"context",        'c', OPTION_TEXT, AT(context),   0, 0,       "LIST",       "committed tokens before it",               "25,100,500"       },
    {"k",              'k', OPTION_TEXT, AT(k),         0, 0,       "LIST",       "rows in place of a chain: k rows of w",    NULL               },
    {"w",              'w', OPTION_TEXT, AT(w),         0, 0,       "LIST",       "tokens of a row behind the root",          NULL               },
    {"layout",         0,   OPTION_TEXT, AT(layout),    0, 0,       "tree|batch", "do rows share the context, or repeat it",
     "tree"                                                                                                                                      },
    {"prefill",        0,   OPTION_INT,  AT(prefill),   0, 1 << 20, "N",          "time a prompt of N tokens too",            "0"                },
    {"samples",        0,   OPTION_INT,  AT(samples),   1, 200,     "N",          "of each point at least",                   "5"                },
    {"seconds",        0,   OPTION_REAL, AT(seconds),   0, 3600,    "S",          "for each point, once it has the samples",  "1"                },
    {"threads",        0,   OPTION_INT,  AT(threads),   0, 1024,    "N",          "0: one a core",                            "0"                },
    {"compute",        0,   OPTION_TEXT, AT(compute),   0, 0,       "f32|bf16",   "how activations enter products",
     "as the weights"                                                                                                                            },
    {"math",           0,   OPTION_TEXT, AT(math),      0, 0,       "exact|fast", "fast: products by cuBLASLt, on cuda",      "exact"            },
    {"isa",            0,   OPTION_TEXT, AT(isa),       0, 0,       "NAME",       "force a set of CPU kernels",               "the best there is"},
    {"device",         0,   OPTION_TEXT, AT(device),    0, 0,       "NAME",       "cpu, cuda[:n], auto, null",                "cpu"              },
    {"sliding-window", 0,   OPTION_TEXT, AT(window),    0, 0,       "on|off",     "off: see all, as if there were no window",
     "on"                                                                                                                                        },
    {"seed",           0,   OPTION_SEED, AT(seed),      0, 0,       "N",          "of the tokens that are run",               "0"                },
    {"processor-time", 0,   OPTION_FLAG, AT(processor), 0, 0,       NULL,
     "measure that, for a machine that is not at rest; with --threads 1",                                                     NULL               },
    {"json",           0,   OPTION_FLAG, AT(json),      0, 0,       NULL,         "print one JSON object",                    NULL               },
    {"csv",            0,   OPTION_FLAG, AT(csv),       0, 0,       NULL,         "print the points as CSV",                  NULL               },
};
#undef AT

typedef struct {
    const BenchArguments *a;
    const char *dir;
    Engine engine;
    Ceilings ceilings;
    Machine machine;
    BenchPoint points[MAX_POINTS];
    int count;
    double open_s; // from nothing to the first logits
    double prefill_s, prefill_operations;
} Bench;

// --- the grid --------------------------------------------------------------------------------------------

static bool add_point(Bench *b, BenchPoint p, Error *e) {
    if (b->count == MAX_POINTS) return error_input(e, "bench: more than %d points", MAX_POINTS);
    b->points[b->count++] = p;
    return true;
}

// Rows of a grid point: the root, then in a tree k chains of w, in a batch k roots with w each.
static int grid_tokens(int k, int w, Layout layout) {
    return layout == LAYOUT_BATCH ? k * (w + 1) : 1 + k * w;
}

static bool add_grid(Bench *b, int context, Layout layout, Error *e) {
    IntList k, w;
    if (!b->a->k || !b->a->w) return error_input(e, "bench: --k and --w go together");
    if (!int_list_parse(b->a->k, "--k", 1, TREE_MAX_NODES, &k, e) ||
        !int_list_parse(b->a->w, "--w", 0, TREE_MAX_NODES, &w, e))
        return false;
    for (int i = 0; i < k.count; i++)
        for (int j = 0; j < w.count; j++) {
            int tokens = grid_tokens(k.items[i], w.items[j], layout);
            if (tokens > TREE_MAX_NODES)
                return error_input(e, "bench: %d rows of %d are %d tokens, a step holds %d", k.items[i],
                                   w.items[j], tokens, TREE_MAX_NODES);
            BenchPoint p = {.context = context, .k = k.items[i], .w = w.items[j], .tokens = tokens};
            p.layout = layout;
            if (!add_point(b, p, e)) return false;
        }
    return true;
}

static bool add_chains(Bench *b, int context, Error *e) {
    IntList tokens;
    if (!int_list_parse(b->a->tokens, "--tokens", 1, TREE_MAX_NODES, &tokens, e)) return false;
    for (int i = 0; i < tokens.count; i++)
        if (!add_point(b, (BenchPoint){.context = context, .tokens = tokens.items[i]}, e)) return false;
    return true;
}

static bool make_grid(Bench *b, Error *e) {
    IntList contexts;
    Layout layout = strcmp(b->a->layout, "batch") == 0 ? LAYOUT_BATCH : LAYOUT_TREE;
    if (layout == LAYOUT_TREE && strcmp(b->a->layout, "tree") != 0)
        return error_input(e, "bench: --layout is '%s', must be tree or batch", b->a->layout);
    if (!int_list_parse(b->a->context, "--context", 0, 1 << 24, &contexts, e)) return false;
    for (int i = 0; i < contexts.count; i++)
        if (!(b->a->k || b->a->w ? add_grid(b, contexts.items[i], layout, e)
                                 : add_chains(b, contexts.items[i], e)))
            return false;
    return true;
}

// Positions that the largest point needs.
static int needed_context(const Bench *b) {
    int most = b->a->prefill + 1;
    for (int i = 0; i < b->count; i++)
        if (b->points[i].context + b->points[i].tokens > most)
            most = b->points[i].context + b->points[i].tokens;
    return most;
}

// --- measuring -------------------------------------------------------------------------------------------

static bool open_model(Bench *b, Error *e) {
    const BenchArguments *a = b->a;
    int need = needed_context(b);
    EngineOptions o = {
        .device = a->device,
        .window = a->window,
        .compute = a->compute,
        .math = a->math,
        .backend = {.context = need, .threads = a->threads, .isa = a->isa}
    };
    BenchPoint first = {.tokens = 1};
    BenchOptions once = {.max_samples = 1, .min_samples = 1, .clock = clock_monotonic()};
    double start = clock_now(once.clock);
    if (!engine_open(&b->engine, b->dir, &o, NULL, e)) return false;
    if (b->engine.session.context < need)
        return error_input(e, "bench: the largest point needs %d positions, the model has %d", need,
                           b->engine.session.context);
    if (!bench_point(&b->engine, &b->ceilings, &once, 0, &first, e)) return false;
    b->open_s = clock_now(once.clock) - start;
    return true;
}

static void show_progress(const Bench *b, int done) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\rpoint %d of %d ", done, b->count);
    if (isatty(STDERR_FILENO) && done == b->count) fputs("\r                    \r", stderr);
}

// One token is measured anew at every context, as what the others are slower than.
static bool measure(Bench *b, Error *e) {
    BenchOptions o = {.warm_up = 2,
                      .min_samples = b->a->samples,
                      .max_samples = 200,
                      .seconds = b->a->seconds,
                      .seed = b->a->seed,
                      .clock = b->a->processor ? clock_processor() : clock_monotonic(),
                      .interrupted = interrupt_seen};
    BenchPoint one = {.context = -1};
    for (int i = 0; i < b->count; i++) {
        BenchPoint *p = &b->points[i];
        show_progress(b, i + 1);
        if (one.context != p->context) {
            one = (BenchPoint){.context = p->context, .tokens = 1};
            if (!bench_point(&b->engine, &b->ceilings, &o, 0, &one, e)) return false;
        }
        if (p->tokens == 1 && p->k == 0) *p = one;
        else if (!bench_point(&b->engine, &b->ceilings, &o, one.median_s, p, e)) return false;
    }
    return b->a->prefill == 0 ||
           bench_prefill(&b->engine, &o, b->a->prefill, &b->prefill_s, &b->prefill_operations, e);
}

// --- what is said of it ----------------------------------------------------------------------------------

static double floor_of(const BenchPoint *p) {
    return p->floor_bandwidth_s > p->floor_compute_s ? p->floor_bandwidth_s : p->floor_compute_s;
}

static const char *layout_name(const BenchPoint *p) {
    return p->k == 0 ? "chain" : p->layout == LAYOUT_BATCH ? "batch" : "tree";
}

static void print_table(const Bench *b) {
    const Ceilings *c = &b->ceilings;
    double peak = bench_peak(&b->engine, c);
    printf("machine   %s, %d thread%s, kernels %s: reads %.1f GB/s, computes %.3f TFLOP/s\n", b->machine.cpu,
           c->threads, c->threads == 1 ? "" : "s", c->isa, c->bytes_per_s / 1e9, peak / 1e12);
    if (b->a->processor) puts("times     of the processor, not the wall's: no speed that anybody sees");
    printf("model     %s: first logits %.3f s after opening; peak memory %.2f GB\n", b->dir, b->open_s,
           (double)machine_peak_memory() / 1e9);
    if (b->engine.model.stand_in[0]) printf("stand-in  %s\n", b->engine.model.stand_in);
    printf("\n%7s %7s %5s %7s %10s %6s %7s %8s %9s %9s %9s %7s\n", "tokens", "context", "k x w", "layout",
           "step ms", "+- %", "GB/s", "TFLOP/s", "slowdown", "memory ms", "compute ms", "floor");
    for (int i = 0; i < b->count; i++) {
        const BenchPoint *p = &b->points[i];
        char grid[24] = "-";
        if (p->k) snprintf(grid, sizeof grid, "%dx%d", p->k, p->w);
        printf("%7d %7d %5s %7s %10.3f %6.1f %7.1f %8.3f %9.3f %9.3f %10.3f %6.0f%%\n", p->tokens, p->context,
               grid, layout_name(p), 1e3 * p->median_s, 100 * p->mad_s / p->median_s,
               p->bytes / p->median_s / 1e9, p->operations / p->median_s / 1e12, p->slowdown,
               1e3 * p->floor_bandwidth_s, 1e3 * p->floor_compute_s, 100 * floor_of(p) / p->median_s);
    }
    if (b->prefill_s > 0)
        printf("\nprefill   %d tokens in %.3f s, %.0f tokens/s, %.3f TFLOP/s, %.0f%% of the machine's\n",
               b->a->prefill, b->prefill_s, b->a->prefill / b->prefill_s,
               b->prefill_operations / b->prefill_s / 1e12,
               peak > 0 ? 100 * b->prefill_operations / b->prefill_s / peak : 0);
}

static void print_csv(const Bench *b) {
    puts("tokens,context,k,w,layout,median_s,mad_s,n,bytes,gb_per_s,tflop_per_s,slowdown,floor_bandwidth_s,"
         "floor_compute_s");
    for (int i = 0; i < b->count; i++) {
        const BenchPoint *p = &b->points[i];
        printf("%d,%d,%d,%d,%s,%.9g,%.9g,%d,%.0f,%.6g,%.6g,%.6g,%.9g,%.9g\n", p->tokens, p->context, p->k,
               p->w, layout_name(p), p->median_s, p->mad_s, p->n, p->bytes, p->bytes / p->median_s / 1e9,
               p->operations / p->median_s / 1e12, p->slowdown, p->floor_bandwidth_s, p->floor_compute_s);
    }
}

static json_t *point_json(const BenchPoint *p) {
    return json_pack("{s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "tokens",
                     p->tokens, "context", p->context, "k", p->k, "w", p->w, "layout", layout_name(p),
                     "median_s", p->median_s, "mad_s", p->mad_s, "n", p->n, "bytes", p->bytes, "gb_per_s",
                     p->bytes / p->median_s / 1e9, "tflop_per_s", p->operations / p->median_s / 1e12,
                     "slowdown", p->slowdown, "floor_bandwidth_s", p->floor_bandwidth_s, "floor_compute_s",
                     p->floor_compute_s);
}

static bool print_json(const Bench *b, Error *e) {
    const Ceilings *c = &b->ceilings;
    json_t *machine = machine_json(&b->machine), *points = json_array();
    json_t *ceilings =
        json_pack("{s:s, s:i, s:f, s:f}", "kernels", c->isa, "threads", c->threads, "read_bytes_per_s",
                  c->bytes_per_s, "operations_per_s", bench_peak(&b->engine, c));
    for (int i = 0; i < b->count; i++) json_array_append_new(points, point_json(&b->points[i]));
    json_t *root = NULL;
    if (machine && ceilings && json_object_update(machine, ceilings) == 0)
        root = json_pack("{s:O, s:O, s:s, s:s, s:f, s:I}", "machine", machine, "points", points, "model",
                         b->dir, "math", b->a->math ? b->a->math : "exact", "open_s", b->open_s,
                         "peak_memory_bytes", (json_int_t)machine_peak_memory());
    if (root && b->engine.model.stand_in[0])
        json_object_set_new(root, "stand_in", json_string(b->engine.model.stand_in));
    if (root && b->prefill_s > 0)
        json_object_set_new(root, "prefill",
                            json_pack("{s:i, s:f, s:f}", "tokens", b->a->prefill, "seconds", b->prefill_s,
                                      "tflop_per_s", b->prefill_operations / b->prefill_s / 1e12));
    char *line = root ? json_dumps(root, 0) : NULL;
    if (line) puts(line);
    free(line); // jansson's own
    json_decref(machine);
    json_decref(points);
    json_decref(ceilings);
    json_decref(root);
    return line || error_system(e, "cannot make the JSON object: no memory, or the path is not UTF-8");
}

static bool bench(Bench *b, int *code, Error *e) {
    const BenchArguments *a = b->a;
    BackendOptions machine = {.threads = a->threads, .isa = a->isa};
    if (!make_grid(b, e) || !engine_ceilings(a->device, &machine, &b->ceilings, e) || !open_model(b, e))
        return false;
    machine_read(&b->machine);
    interrupt_catch();
    if (!measure(b, e)) {
        if (e->kind == ERROR_NONE) *code = EXIT_INTERRUPTED;
        return e->kind == ERROR_NONE;
    }
    if (a->json) return print_json(b, e);
    if (a->csv) print_csv(b);
    else print_table(b);
    return true;
}

static bool run(int argc, char **argv, int *code, Error *e) {
    BenchArguments a = {.tokens = "1,2,4,8,16,32,64,121,128,256",
                        .context = "25,100,500",
                        .layout = "tree",
                        .samples = 5,
                        .seconds = 1,
                        .isa = getenv("OUTPACE_ISA")};
    Positionals rest;
    bool stop;
    if (!command_parse(&command_bench, argc, argv, &a, &rest, &stop, e)) return false;
    if (stop) return true;
    if (rest.count != 1) return error_input(e, "bench: usage: outpace bench %s", command_bench.usage);
    if (a.json && a.csv) return error_input(e, "bench: give --json or --csv, not both");
    Bench *b = mem_alloc(1, sizeof *b);
    if (!b) return error_system(e, "out of memory");
    b->a = &a;
    b->dir = rest.items[0];
    bool ok = bench(b, code, e);
    engine_close(&b->engine);
    mem_free(b);
    return ok;
}

const Command command_bench = {
    .name = "bench",
    .usage = "MODEL [OPTIONS]",
    .summary = "time single steps beside the machine's floors",
    .lesson =
        "Times one step of so many tokens on top of so much context: forward pass, LM head on every node,\n"
        "best token of each. Verification pays where a step of many tokens costs little more than a step of\n"
        "one: that ratio is the slowdown. Two floors stand beside it, both measured on this machine just\n"
        "before: the bytes a step must read at the memory's speed, and its operations at the processor's.\n"
        "The last column is how much of the step's time the larger floor explains.\n"
        "\n"
        "  outpace bench MODEL\n"
        "  outpace bench MODEL --tokens 1,8..64:8 --context 100\n"
        "  outpace bench MODEL --k 1,5,10 --w 2..14:2 --layout batch --csv > surface.csv\n"
        "  outpace bench MODEL --tokens 1 --context 100 --prefill 1024\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof *OPTIONS,
    .run = run};
