// Describes this machine, its limits, and anything that would spoil a measurement on it.
#include "harness/cli/command.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/machine/machine.h"
#include "harness/cli/version.h"
#include "harness/ranks/ranks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int threads;
    const char *isa;
    RanksOver ranks;
    bool json;
} DoctorOptions;

#define AT(name) offsetof(DoctorOptions, name)
static const Arg OPTIONS[] = {
    {"threads", ARG_INT, AT(threads), 0, 1024, "0", .help = "0: one a core", .value = "N"},
    {"isa", ARG_WORD, AT(isa), .help = "measure this set of kernels", .value = "NAME",
     .fallback = "the best there is"},
    RANKS_OPTION(AT(ranks)),
    {"json", ARG_FLAG, AT(json), .help = "print one JSON object"},
};

typedef struct {
    char device[24];
    Ceilings ceilings;
    double copies; // bytes a second
    Gauge gauge;
    Error useless; // why it cannot be used
} Gpu;

typedef struct {
    Machine machine;
    Ceilings cpu;
    Gpu *gpus; // (gpu_count)
    int gpu_count;
    Error no_gpu; // why there is none
    Text warnings, libraries, mpi;
    int processes; // of `link`; 0: not measured
    LinkSpeed link;
} Report;

static const char *known(const char *text) { return text[0] ? text : "unknown"; }

static void put_number(Text *out, const char *before, double x, double of, const char *unit) {
    if (isnan(x)) return;
    text_printf(out, "%s%.0f", before, x);
    if (!isnan(of)) text_printf(out, " of %.0f", of);
    text_printf(out, " %s", unit);
}

static void put_gpu(const Gpu *gpu, Text *out) {
    const Gauge *g = &gpu->gauge;
    const Ceilings *c = &gpu->ceilings;
    if (gpu->useless.kind != ERROR_NONE) {
        text_printf(out, "GPU         %s\n", gpu->useless.text);
        return;
    }
    text_printf(out, "GPU         %s: %s, %.1f GB, driver %s, CUDA %s, %s\n", gpu->device, g->name,
                (double)g->memory / 1e9, known(g->driver), g->runtime, g->uuid);
    text_printf(out, "GPU code    %s%s\n", g->code,
                g->compiles ? ", which the driver compiles at its first use: about half a minute, then kept"
                            : "");
    text_printf(out,
                "GPU kernels %s: reads %.0f GB/s, copies %.0f, computes %.1f TFLOP/s in bf16, %.1f in f32\n",
                c->isa, c->bytes_per_s / 1e9, gpu->copies / 1e9, c->operations_per_s[COMPUTE_BF16] / 1e12,
                c->operations_per_s[COMPUTE_F32] / 1e12);
    if (!g->throttle[0]) {
        text_puts(out, "GPU now     unknown: there is no NVML (libnvidia-ml.so.1), or it does not know it\n");
        return;
    }
    text_printf(out, "GPU now     slowed down by %s", g->throttle);
    put_number(out, "; clock ", g->clock_mhz, g->most_clock_mhz, "MHz");
    put_number(out, ", memory ", g->memory_clock_mhz, NAN, "MHz");
    put_number(out, ", power ", g->power_w, g->power_limit_w, "W");
    put_number(out, ", ", g->temperature_c, NAN, "C");
    text_puts(out, "\n");
}

static void print_report(const Report *r) {
    const Machine *m = &r->machine;
    Text out = {0}; // the lines as they come
    text_printf(&out, "outpace     %s, %s\n", version_text(), version_compiler());
    text_printf(&out, "system      %s, kernel %s\n", known(m->system), known(m->kernel));
    text_printf(&out, "processor   %s%s\n", known(m->cpu), m->virtual_machine ? " (virtual machine)" : "");
    text_printf(&out, "features    %s\n", m->isa[0] ? m->isa : "none that the kernels use");
    text_printf(&out, "cores       %d of %d usable, ", m->cores, m->cores_present);
    if (isfinite(m->limits.cores)) text_printf(&out, "a quota of %.3g, ", m->limits.cores);
    text_printf(&out, "governor %s, load %.2f\n", known(m->governor), m->load);
    text_printf(&out, "caches      L1 %zu KB, L2 %zu KB, L3 %zu KB\n", m->l1d >> 10, m->l2 >> 10,
                m->l3 >> 10);
    text_printf(&out, "memory      %.1f GB, %.1f GB free", (double)m->memory / 1e9,
                (double)m->available / 1e9);
    if (m->limits.memory < m->memory)
        text_printf(&out, " below the container's limit of %.1f GB", (double)m->limits.memory / 1e9);
    text_printf(&out, "\nkernels     %s, %d thread%s\n", r->cpu.isa, r->cpu.threads,
                r->cpu.threads == 1 ? "" : "s");
    text_printf(&out, "reads       %.1f GB/s from memory", r->cpu.bytes_per_s / 1e9);
    if (r->cpu.few_bytes)
        text_printf(&out, ", %zu MB of it: no more could be had, and a large cache may hold these",
                    r->cpu.few_bytes >> 20);
    text_printf(&out, "\ncomputes    %.3f TFLOP/s in bf16, %.3f in f32, operands in registers\n",
                r->cpu.operations_per_s[COMPUTE_BF16] / 1e12, r->cpu.operations_per_s[COMPUTE_F32] / 1e12);
    for (int i = 0; i < r->gpu_count; i++) put_gpu(&r->gpus[i], &out);
    if (r->gpu_count == 0) text_printf(&out, "GPU         none: %s\n", r->no_gpu.text);
    text_printf(&out, "MPI         %s\n",
                r->mpi.length ? text_get(&r->mpi) : "none, and so no --ranks mpi: ./setup mpi");
    if (r->processes)
        text_printf(
            &out,
            "messages    %d processes: a gather of 8 bytes a rank takes %.2f us, large ones %.1f GB/s; "
            "'outpace simulate --link %.1f,%.2f'\n",
            r->processes, 1e6 * r->link.gather_s, 1e-9 * r->link.bytes_per_s, 1e-9 * r->link.bytes_per_s,
            1e6 * r->link.latency_s);
    text_printf(&out, "libraries   %s\n", text_get(&r->libraries));
    for (const char *line = text_get(&r->warnings); *line; line += strcspn(line, "\n") + 1)
        text_printf(&out, "warning     %.*s\n", (int)strcspn(line, "\n"), line);
    terminal_print(&out);
}

// A rate that was not measured is null.
static json_t *rate_json(double per_s) { return per_s > 0 ? json_real(per_s) : json_null(); }

static json_t *ceilings_json(const Ceilings *c) {
    return json_pack("{s:s, s:i, s:f, s:o, s:o, s:o}", "kernels", c->isa, "threads", c->threads,
                     "read_bytes_per_s", c->bytes_per_s, "operations_per_s",
                     rate_json(c->operations_per_s[COMPUTE_BF16]), "operations_per_s_f32",
                     rate_json(c->operations_per_s[COMPUTE_F32]), "read_from_few_bytes",
                     c->few_bytes ? json_integer((json_int_t)c->few_bytes) : json_null());
}

static json_t *gpu_json(const Gpu *gpu) {
    if (gpu->useless.kind != ERROR_NONE)
        return json_pack("{s:s, s:s}", "device", gpu->device, "error", gpu->useless.text);
    json_t *o = ceilings_json(&gpu->ceilings), *gauge = gauges_json(&gpu->gauge);
    if (o && gauge) json_object_update(o, gauge);
    if (o) json_object_set_new(o, "device", json_string(gpu->device));
    if (o) json_object_set_new(o, "code", json_string(gpu->gauge.code));
    if (o) json_object_set_new(o, "copy_bytes_per_s", rate_json(gpu->copies));
    json_decref(gauge);
    return o;
}

static bool print_json(const Report *r) {
    json_t *gpus = json_array(), *warnings = json_array();
    for (int i = 0; i < r->gpu_count; i++) json_array_append_new(gpus, gpu_json(&r->gpus[i]));
    for (const char *line = text_get(&r->warnings); *line; line += strcspn(line, "\n") + 1)
        json_array_append_new(warnings, json_stringn(line, strcspn(line, "\n")));
    json_t *messages = r->processes ? json_pack("{s:i, s:f, s:f, s:f}", "processes", r->processes, "gather_s",
                                                r->link.gather_s, "latency_s", r->link.latency_s,
                                                "bytes_per_s", r->link.bytes_per_s)
                                    : NULL;
    json_t *root = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s*, s:o*}", "version", version_text(),
                             "compiler", version_compiler(), "machine", machine_json(&r->machine), "cpu",
                             ceilings_json(&r->cpu), "gpus", gpus, "libraries", libraries_json(), "warnings",
                             warnings, "mpi", r->mpi.length ? text_get(&r->mpi) : NULL, "messages", messages);
    return json_print(root, 0, stdout);
}

static bool run(void *options, UNUSED CommandLine *line, Error *e) {
    DoctorOptions *o = options;
    Report r = {.cpu.isa = ""};
    Processes processes;
    if (!processes_join(&processes, o->ranks, e)) return false;
    const Team *team = processes_team(&processes);
    if (team) r.processes = team->count;
    if (team && !link_measure(team, &r.link, e)) return false;
    if (processes_follows(&processes)) return processes_follow(&processes, e);
    processes_leave(&processes);
    BackendOptions measured = {.threads = o->threads, .isa = o->isa ? o->isa : getenv("OUTPACE_ISA")};
    machine_read(&r.machine);
    bool ok = engine_ceilings("cpu", &measured, &r.cpu, e);
    r.gpu_count = ok ? engine_gpus() : 0;
    if (r.gpu_count == 0) engine_ceilings("cuda", &(BackendOptions){0}, &(Ceilings){0}, &r.no_gpu);
    else r.gpus = mem_new((size_t)r.gpu_count, sizeof *r.gpus);
    for (int i = 0; i < r.gpu_count; i++) { // an unusable one doesn't hide the others
        Gpu *g = &r.gpus[i];
        snprintf(g->device, sizeof g->device, "cuda:%d", i);
        (void)(engine_ceilings(g->device, &(BackendOptions){0}, &g->ceilings, &g->useless) &&
               engine_copy_rate(g->device, &g->copies, &g->useless) &&
               engine_gauge(g->device, 0, &g->gauge, &g->useless));
    }
    machine_warnings(&r.machine, &r.warnings);
    libraries_text(&r.libraries);
    mpi_version(&r.mpi);
    if (ok && o->json) ok = print_json(&r);
    else if (ok) print_report(&r);
    mem_free(r.gpus);
    text_release(&r.warnings);
    text_release(&r.libraries);
    text_release(&r.mpi);
    return ok;
}

const Command command_doctor = {.name = "doctor",
                                .usage = "[OPTIONS]",
                                .summary =
                                    "describe this machine, its limits, and what would spoil a measurement",
                                COMMAND_OPTIONS(OPTIONS, DoctorOptions),
                                .run = run};
