// All three formats print the same points; only JSON has the machine, too.
#include "harness/bench/bench_report.h"

#include "harness/cli/version.h"

#include <stdio.h>

// The part of the step that one of its sequences pays, over a step of one token by itself.
static double slowdown_of_one(const BenchPoint *p) { return p->slowdown.value / bench_sequences(p); }

// Names the kernels as the device does (its architecture, and with fast math the library's version), and
// all of several cards.
static BackendReport report_of(const BenchRun *b) {
    BackendReport report;
    b->benched.session->backend->report(b->benched.session->self, &report);
    return report;
}

// --- table -----------------------------------------------------------------------------------------------

static void print_machine(const BenchRun *b) {
    const Ceilings *c = &b->ceilings;
    double peak = bench_peak(&b->benched);
    if (b->gpu)
        terminal_printf("GPU       %s, kernels %s: reads %.0f GB/s, copies %.0f, computes %.1f TFLOP/s\n",
                        report_of(b).device, report_of(b).isa, c->bytes_per_s / 1e9,
                        b->copy_bytes_per_s / 1e9, peak / 1e12);
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

static const Column COLUMNS[] = {
    {.head = "batch", .kind = AS_COUNT},
    {"tokens", "tokens", AS_COUNT, .help = "of the step"},
    {"context", "context", AS_COUNT, .help = "tokens before it"},
    {"k w", .help = "k rows of w tokens; 0: a chain"},
    {.head = "k x w", .kind = AS_COUNT},
    {"layout", "layout", AS_COUNT, .drop = 2, .help = "chain, tree, batch or copied"},
    {.head = "step ms [95%]", .kind = AS_INTERVAL, .scale = 1e3},
    {"median_s mad_s n", .help = "its time; the median's deviation; samples"},
    {"bytes", .help = "that it reads"},
    {"gb_per_s", "GB/s", AS_FIXED, 1, .drop = 6, .help = "the rate that this makes"},
    {"tflop_per_s", "TFLOP/s", AS_FIXED, 3, .drop = 5, .help = "its operations, likewise"},
    {"slowdown", "slowdown [95%]", AS_INTERVAL, .help = "over one token of one sequence"},
    {.head = "a sequence", .kind = AS_SHORT, .digits = 3},
    {.head = "experts", .kind = AS_FIXED, .digits = 1, .drop = 10},
    {.head = "expected", .kind = AS_FIXED, .digits = 1, .drop = 9},
    {"floor_bandwidth_s", "memory ms", AS_SHORT, 3, .scale = 1e3, .drop = 4,
     .help = "the least that memory allows"},
    {"floor_compute_s", "compute ms", AS_SHORT, 3, .scale = 1e3, .drop = 3,
     .help = "the least that arithmetic allows"},
    {.head = "floor", .kind = AS_SHARE, .drop = 7},
    {"submit_s busy_s layers_s head_s", .help = "parts of the time"},
    {.head = "submit us", .kind = AS_FIXED, .digits = 1, .scale = 1e6, .drop = 1}, // the host's, for a GPU
    {.head = "idle us", .kind = AS_FIXED, .digits = 1, .scale = 1e6, .drop = 8}, // the GPU's, waiting for it
    {"low_s high_s", .help = "the median's interval"},
    {"slowdown_low slowdown_high", .help = "the slowdown's"},
    {"repeated disturbed", .help = "samples taken again; whether some are kept although disturbed"},
    {"experts experts_expected",
     .help = "of a mixture: experts that a step read, over all layers; by chance"},
    {"batch",
     .help = "sequences that ran it together, each over such a context; `tokens`, `k` and `w` are of one"},
    {"slowdown_sequence", .help = "slowdown / batch: the part of each sequence"},
    {.head = ""}, // disturbed
};
const TableForm bench_points = {"bench", TABLE_COLUMNS(COLUMNS), .within = "points"};

static void put_point(const BenchRun *b, const BenchPoint *p, RecordTable *t) {
    const BenchTime *time = &p->time;
    double floor_s = p->floor_bandwidth_s > p->floor_compute_s ? p->floor_bandwidth_s : p->floor_compute_s;
    bool mixed = p->experts > 0;
    static const char *const LAYOUTS[] = {"tree", "batch", "copied"};
    char rows[32] = "-";
    if (p->k) snprintf(rows, sizeof rows, "%dx%d", p->k, p->w);
    TABLE_ROW(t, b->batches ? CELL(bench_sequences(p)) : NO_CELL, CELL(p->tokens), CELL(p->context),
              CELL(p->k), CELL(p->w), CELL(rows), CELL(p->k ? LAYOUTS[p->layout] : "chain"),
              cell_measured(time->median_s, time->low_s, time->high_s), CELL(time->median_s),
              CELL(time->mad_s), CELL(time->n), CELL(p->bytes), CELL(p->bytes / time->median_s / 1e9),
              CELL(p->operations / time->median_s / 1e12),
              cell_measured(p->slowdown.value, p->slowdown.low, p->slowdown.high),
              b->batches ? CELL(slowdown_of_one(p)) : NO_CELL, mixed ? CELL(p->experts) : NO_CELL,
              mixed ? CELL(p->experts_expected) : NO_CELL, CELL(p->floor_bandwidth_s),
              CELL(p->floor_compute_s), CELL(floor_s / time->median_s), CELL(p->submit_s), CELL(p->busy_s),
              CELL(p->layers_s), CELL(p->head_s), b->gpu ? CELL(p->submit_s) : NO_CELL,
              b->gpu ? CELL(time->median_s - p->busy_s) : NO_CELL, CELL(time->low_s), CELL(time->high_s),
              CELL(p->slowdown.low), CELL(p->slowdown.high), CELL(time->disturbed),
              CELL((bool)(time->flags != 0)), CELL(p->experts), CELL(p->experts_expected),
              CELL(bench_sequences(p)), CELL(slowdown_of_one(p)), CELL(time->flags ? "disturbed" : ""));
}

static void put_points(const BenchRun *b, const Records *as, RecordTable *out) {
    *out = (RecordTable){.form = &bench_points, .as = as};
    table_group(out, NULL);
    for (int i = 0; i < b->measured; i++) put_point(b, &b->points[i], out);
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
            "%s %d of %d points could not be measured undisturbed: others took the processor, its "
            "clock changed, or this program was stopped or short of memory. They are marked: trust no "
            "slowdown of theirs\n",
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
    RecordTable points;
    Text text = {0};
    print_machine(b);
    put_points(b, NULL, &points);
    bool ok = table_end(&points, true, e);
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

bool bench_report_csv(const BenchRun *b, Error *e) {
    LOCAL_TEXT warnings = {0};
    RecordTable points;
    put_points(b, &(Records){.csv = true}, &points);
    bool ok = table_end(&points, true, e);
    say_disturbed(b, "warning:", &warnings);
    say_drift(b, "warning:", " ", &warnings);
    fputs(text_get(&warnings), stderr);
    return ok;
}

// --- JSON ------------------------------------------------------------------------------------------------

// For json_pack, which leaves out a key without a text.
static const char *text_or_none(const char *text) { return text[0] ? text : NULL; }

bool bench_report_json(const BenchRun *b, const char *ended, Error *e) {
    const Model *model = b->adapter_dir ? &b->adapter.adapter.models[0] : &b->engine.model;
    const Ceilings *c = &b->ceilings;
    json_t *machine = machine_json(&b->machine), *speeds = json_object(), *gpu = b->gpu ? speeds : NULL;
    RecordTable points;
    put_points(b, &(Records){.json = true}, &points);
    json_object_set_new(speeds, "kernels", json_string(gpu ? report_of(b).isa : c->isa));
    if (!gpu) json_object_set_new(speeds, "threads", json_integer(c->threads));
    json_object_set_new(speeds, "read_bytes_per_s", json_real(c->bytes_per_s));
    json_object_set_new(speeds, "operations_per_s", json_real(bench_peak(&b->benched)));
    if (gpu) {
        json_object_set_new(gpu, "cards", json_string(report_of(b).device));
        json_object_set_new(gpu, "copy_bytes_per_s", json_real(b->copy_bytes_per_s));
        json_object_set_new(gpu, "operations_per_s_bf16", json_real(c->operations_per_s[COMPUTE_BF16]));
        json_object_set_new(gpu, "operations_per_s_f32", json_real(c->operations_per_s[COMPUTE_F32]));
        json_object_set_new(gpu, "before", gauges_json(&b->before));
        json_object_set_new(gpu, "after", gauges_json(&b->after));
    } else json_object_update_new(machine, speeds);
    json_t *drift = b->drifted < 0 ? NULL
                                   : json_pack("{s:i, s:f, s:f}", "context", b->drifted, "before_s",
                                               b->before_s, "after_s", b->after_s);
    json_t *prefill = b->prefill_s > 0
                          ? json_pack("{s:i, s:f, s:f}", "tokens", b->prefill, "seconds", b->prefill_s,
                                      "tflop_per_s", b->prefill_operations / b->prefill_s / 1e12)
                          : NULL;
    json_t *root =
        json_pack("{s:s, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:o*, s:o*, s:s*, s:s*, "
                  "s:s*, s:s*, s:o*}",
                  "version", version_text(), "compiler", version_compiler(), "machine", machine, "points",
                  table_list(&points), "model", b->dir, "weights", model_dtype_name(model), "compute",
                  compute_name(b->benched.session->compute), "math", b->math, "open_s", b->open_s,
                  "peak_memory_bytes", (json_int_t)machine_peak_memory(), "huge_page_bytes",
                  (json_int_t)machine_huge_pages(), "gpu", gpu, "drift", drift, "ended", ended, "adapter",
                  b->adapter_dir, "stand_in", text_or_none(b->engine.model.stand_in), "quantised",
                  text_or_none(b->engine.model.quantised), "prefill", prefill);
    return json_print(root, 0, stdout) ||
           error_system(e, "cannot make the JSON object: the path is not UTF-8");
}
