// All three formats print the same points; only the table folds to the terminal, and only JSON has every
// number.
#include "harness/machine/bench_report.h"

#include "engine/base/json.h"
#include "harness/machine/machine.h"
#include "harness/cli/terminal.h"
#include "harness/cli/version.h"

#include <math.h>
#include <stdio.h>

static double floor_of(const BenchPoint *p) {
    return p->floor_bandwidth_s > p->floor_compute_s ? p->floor_bandwidth_s : p->floor_compute_s;
}

// The part of the step that one of its sequences pays, over a step of one token by itself.
static double slowdown_of_one(const BenchPoint *p) { return p->slowdown.value / bench_sequences(p); }

static const char *layout_name(const BenchPoint *p) {
    static const char *const names[] = {"tree", "batch", "copied"};
    return p->k == 0 ? "chain" : names[p->layout];
}

// As the device names them: its architecture, and with fast math the library's version.
static const char *kernels_of(const BenchRun *b) {
    BackendReport report;
    b->benched.session->backend->report(b->benched.session->self, &report);
    return report.isa;
}

// Of several cards, all.
static const char *device_of(const BenchRun *b) {
    BackendReport report;
    b->benched.session->backend->report(b->benched.session->self, &report);
    return report.device;
}

// --- table -----------------------------------------------------------------------------------------------

static void print_machine(const BenchRun *b) {
    const Ceilings *c = &b->ceilings;
    double peak = bench_peak(&b->benched);
    if (b->gpu)
        terminal_printf("GPU       %s, kernels %s: reads %.0f GB/s, copies %.0f, computes %.1f TFLOP/s\n",
                        device_of(b), kernels_of(b), c->bytes_per_s / 1e9, b->copy_bytes_per_s / 1e9,
                        peak / 1e12);
    else
        terminal_printf("machine   %s, %d thread%s, kernels %s: reads %.1f GB/s, computes %.3f TFLOP/s\n",
                        b->machine.cpu, c->threads, c->threads == 1 ? "" : "s", c->isa, c->bytes_per_s / 1e9,
                        peak / 1e12);
    if (!b->gpu && b->machine.refused) terminal_printf("warning   %s\n", b->machine.refused);
    if (b->passed.kind != ERROR_NONE) terminal_printf("warning   %s\n", b->passed.text);
    if (b->processor) puts("times     of the processor, not the wall's: no speed that anybody sees");
    terminal_printf(
        "model     %s: first logits %.3f s after opening; peak memory %.2f GB, %.2f GB in huge pages\n",
        SHOWN(b->dir), b->open_s, (double)machine_peak_memory() / 1e9, (double)machine_huge_pages() / 1e9);
    if (b->engine.model.stand_in[0]) terminal_printf("stand-in  %s\n", b->engine.model.stand_in);
    if (b->engine.model.quantised[0]) terminal_printf("quantised %s\n", b->engine.model.quantised);
    if (b->adapter_dir)
        terminal_printf("adapter   %s: all that follows is of %s\n", SHOWN(b->adapter_dir),
                        b->adapter.count > 1 ? "its first head" : "its steps");
}

static const GridColumn COLUMNS[] = {
    {"batch", true, 0, 0},      {"tokens", true, 0, 0},     {"context", true, 0, 0},
    {"k x w", true, 0, 0},      {"layout", true, 0, 2},     {"step ms [95%]", false, 0, 0},
    {"GB/s", true, 0, 6},       {"TFLOP/s", true, 0, 5},    {"slowdown [95%]", false, 0, 0},
    {"a sequence", true, 0, 0}, {"experts", true, 0, 10},   {"expected", true, 0, 9},
    {"memory ms", true, 0, 4},  {"compute ms", true, 0, 3}, {"floor", true, 0, 7},
    {"submit us", true, 0, 1},  {"idle us", true, 0, 8},    {"", false, 0, 0}, // disturbed
};

static void put_reach(Grid *g, Reach r) { text_measured(&g->cell, r.value, r.low, r.high), grid_next(g); }
static void put_rounded(Grid *g, int digits, double x) {
    text_printf(&g->cell, "%.*f", digits, x), grid_next(g);
}

// Two more columns for a GPU: the host's time to submit a step, and the GPU's time to wait for it.
static void put_point(const BenchRun *b, const BenchPoint *p, Grid *g) {
    if (b->batches) text_printf(&g->cell, "%d", bench_sequences(p));
    grid_next(g);
    text_printf(&g->cell, "%d", p->tokens), grid_next(g);
    text_printf(&g->cell, "%d", p->context), grid_next(g);
    if (p->k) text_printf(&g->cell, "%dx%d", p->k, p->w);
    else text_puts(&g->cell, "-");
    grid_next(g);
    text_puts(&g->cell, layout_name(p)), grid_next(g);
    put_reach(g, (Reach){1e3 * p->time.median_s, 1e3 * p->time.low_s, 1e3 * p->time.high_s});
    put_rounded(g, 1, p->bytes / p->time.median_s / 1e9);
    put_rounded(g, 3, p->operations / p->time.median_s / 1e12);
    put_reach(g, p->slowdown);
    if (b->batches) text_printf(&g->cell, "%.3g", slowdown_of_one(p));
    grid_next(g);
    if (p->experts > 0) text_printf(&g->cell, "%.1f", p->experts);
    grid_next(g);
    if (p->experts > 0) text_printf(&g->cell, "%.1f", p->experts_expected);
    grid_next(g);
    text_printf(&g->cell, "%.3g", 1e3 * p->floor_bandwidth_s), grid_next(g);
    text_printf(&g->cell, "%.3g", 1e3 * p->floor_compute_s), grid_next(g);
    text_printf(&g->cell, "%.0f%%", 100 * floor_of(p) / p->time.median_s), grid_next(g);
    if (b->gpu) text_printf(&g->cell, "%.1f", 1e6 * p->submit_s);
    grid_next(g);
    if (b->gpu) text_printf(&g->cell, "%.1f", 1e6 * (p->time.median_s - p->busy_s));
    grid_next(g);
    if (p->time.flags) text_puts(&g->cell, "disturbed");
    grid_next(g);
    grid_end(g);
}

// Warns about points that do not show the machine's own speed.
static void say_disturbed(const BenchRun *b, const char *before, Text *out) {
    int points = 0, repeated = 0;
    for (int i = 0; i < b->measured; i++) {
        points += b->points[i].time.flags != 0;
        repeated += b->points[i].time.disturbed;
    }
    if (points)
        text_printf(
            out,
            "%s %d of %d points could not be measured undisturbed: others took the processor, its clock "
            "changed, or this program was stopped or short of memory. They are marked: trust no slowdown of "
            "theirs\n",
            before, points, b->measured);
    else if (repeated) text_printf(out, "%s %d samples were disturbed, and repeated\n", before, repeated);
}

// In one line, or two of the table's.
static void say_drift(const BenchRun *b, const char *before, const char *between, Text *out) {
    if (b->drifted >= 0)
        text_printf(out,
                    "%s at context %d one token took %.3f ms before the other points, %.3f ms after "
                    "them:%sthe machine changed, and slowdowns may be as wrong as that; measure again\n",
                    before, b->drifted, 1e3 * b->before_s, 1e3 * b->after_s, between);
}

bool bench_report_table(const BenchRun *b, Error *e) {
    double peak = bench_peak(&b->benched);
    Grid g = {.columns = COLUMNS, .count = sizeof COLUMNS / sizeof *COLUMNS};
    Text text = {0};
    print_machine(b);
    grid_end(&g);
    grid_heads(&g);
    for (int i = 0; i < b->measured; i++) put_point(b, &b->points[i], &g);
    bool ok = grid_show(&g, e);
    grid_release(&g);
    say_disturbed(b, "\nwarning  ", &text);
    say_drift(b, "\nwarning  ", "\n          ", &text);
    if (b->prefill_s > 0)
        text_printf(
            &text, "\nprefill   %d tokens in %.3f s, %.0f tokens/s, %.3f TFLOP/s, %.0f%% of the machine's\n",
            b->prefill, b->prefill_s, b->prefill / b->prefill_s, b->prefill_operations / b->prefill_s / 1e12,
            peak > 0 ? 100 * b->prefill_operations / b->prefill_s / peak : 0);
    terminal_print(&text);
    return ok;
}

static void put_known(double x) {
    if (isfinite(x)) printf("%.9g", x);
    putchar(',');
}

void bench_report_csv(const BenchRun *b) {
    Text warnings = {0};
    puts("tokens,context,k,w,layout,median_s,mad_s,n,bytes,gb_per_s,tflop_per_s,slowdown,floor_bandwidth_s,"
         "floor_compute_s,low_s,high_s,slowdown_low,slowdown_high,repeated,disturbed,experts,experts_"
         "expected,batch,slowdown_sequence");
    for (int i = 0; i < b->measured; i++) {
        const BenchPoint *p = &b->points[i];
        printf("%d,%d,%d,%d,%s,%.9g,%.9g,%d,%.0f,%.6g,%.6g,%.6g,%.9g,%.9g,", p->tokens, p->context, p->k,
               p->w, layout_name(p), p->time.median_s, p->time.mad_s, p->time.n, p->bytes,
               p->bytes / p->time.median_s / 1e9, p->operations / p->time.median_s / 1e12, p->slowdown.value,
               p->floor_bandwidth_s, p->floor_compute_s);
        put_known(p->time.low_s), put_known(p->time.high_s);
        put_known(p->slowdown.low), put_known(p->slowdown.high);
        printf("%d,%d,%.6g,%.6g,", p->time.disturbed, p->time.flags != 0, p->experts, p->experts_expected);
        printf("%d,%.6g\n", bench_sequences(p), slowdown_of_one(p));
    }
    say_disturbed(b, "warning:", &warnings);
    say_drift(b, "warning:", " ", &warnings);
    fputs(text_get(&warnings), stderr);
    text_release(&warnings);
}

// --- JSON ------------------------------------------------------------------------------------------------

static json_t *point_json(const BenchPoint *p) {
    return json_pack(
        "{s:i, s:i, s:i, s:i, s:s, s:f, s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, "
        "s:o, s:o, s:o, "
        "s:i, s:b, s:f, s:f, s:i, s:f}",
        "tokens", p->tokens, "context", p->context, "k", p->k, "w", p->w, "layout", layout_name(p),
        "median_s", p->time.median_s, "mad_s", p->time.mad_s, "n", p->time.n, "bytes", p->bytes, "gb_per_s",
        p->bytes / p->time.median_s / 1e9, "tflop_per_s", p->operations / p->time.median_s / 1e12, "slowdown",
        p->slowdown.value, "floor_bandwidth_s", p->floor_bandwidth_s, "floor_compute_s", p->floor_compute_s,
        "submit_s", p->submit_s, "busy_s", p->busy_s, "layers_s", p->layers_s, "head_s", p->head_s, "low_s",
        json_number(p->time.low_s), "high_s", json_number(p->time.high_s), "slowdown_low",
        json_number(p->slowdown.low), "slowdown_high", json_number(p->slowdown.high), "repeated",
        p->time.disturbed, "disturbed", p->time.flags != 0, "experts", p->experts, "experts_expected",
        p->experts_expected, "batch", bench_sequences(p), "slowdown_sequence", slowdown_of_one(p));
}

static json_t *ceilings_json(const BenchRun *b) {
    const Ceilings *c = &b->ceilings;
    return json_pack("{s:s, s:i, s:f, s:f}", "kernels", b->gpu ? kernels_of(b) : c->isa, "threads",
                     c->threads, "read_bytes_per_s", c->bytes_per_s, "operations_per_s",
                     bench_peak(&b->benched));
}

static json_t *gpu_json(const BenchRun *b) {
    json_t *o = ceilings_json(b);
    json_object_del(o, "threads");
    json_object_set_new(o, "cards", json_string(device_of(b)));
    json_object_set_new(o, "copy_bytes_per_s", json_real(b->copy_bytes_per_s));
    json_object_set_new(o, "operations_per_s_bf16", json_real(b->ceilings.operations_per_s[COMPUTE_BF16]));
    json_object_set_new(o, "operations_per_s_f32", json_real(b->ceilings.operations_per_s[COMPUTE_F32]));
    json_object_set_new(o, "before", gauges_json(&b->before));
    json_object_set_new(o, "after", gauges_json(&b->after));
    return o;
}

static json_t *machine_and_ceilings(const BenchRun *b) {
    json_t *machine = machine_json(&b->machine), *ceilings = b->gpu ? json_object() : ceilings_json(b);
    if (machine && ceilings) json_object_update(machine, ceilings);
    json_decref(ceilings);
    return machine;
}

static json_t *points_json(const BenchRun *b) {
    json_t *points = json_array();
    for (int i = 0; i < b->measured; i++) json_array_append_new(points, point_json(&b->points[i]));
    return points;
}

static json_t *root_json(const BenchRun *b) {
    const Model *model = b->adapter_dir ? &b->adapter.adapter.models[0] : &b->engine.model;
    const char *compute = compute_name(b->benched.session->compute);
    return json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:f, s:I, s:I}", "version", version_text(),
                     "compiler", version_compiler(), "machine", machine_and_ceilings(b), "points",
                     points_json(b), "model", b->dir, "weights", model_dtype_name(model), "compute", compute,
                     "math", b->math, "open_s", b->open_s, "peak_memory_bytes",
                     (json_int_t)machine_peak_memory(), "huge_page_bytes", (json_int_t)machine_huge_pages());
}

bool bench_report_json(const BenchRun *b, const char *ended, Error *e) {
    json_t *root = root_json(b);
    if (root && b->gpu) json_object_set_new(root, "gpu", gpu_json(b));
    if (root && b->drifted >= 0)
        json_object_set_new(root, "drift",
                            json_pack("{s:i, s:f, s:f}", "context", b->drifted, "before_s", b->before_s,
                                      "after_s", b->after_s));
    if (root && ended) json_object_set_new(root, "ended", json_string(ended));
    if (root && b->adapter_dir) json_object_set_new(root, "adapter", json_string(b->adapter_dir));
    if (root && b->engine.model.stand_in[0])
        json_object_set_new(root, "stand_in", json_string(b->engine.model.stand_in));
    if (root && b->engine.model.quantised[0])
        json_object_set_new(root, "quantised", json_string(b->engine.model.quantised));
    if (root && b->prefill_s > 0)
        json_object_set_new(root, "prefill",
                            json_pack("{s:i, s:f, s:f}", "tokens", b->prefill, "seconds", b->prefill_s,
                                      "tflop_per_s", b->prefill_operations / b->prefill_s / 1e12));
    return json_print(root, 0, stdout) ||
           error_system(e, "cannot make the JSON object: the path is not UTF-8");
}
