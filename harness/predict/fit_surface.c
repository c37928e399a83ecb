#include "harness/predict/fit_surface.h"

#include "engine/base/output.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "harness/predict/step_model.h"
#include "simulate/surface.h"
#include "harness/cli/terminal.h"

#include <stdio.h>
#include <string.h>

static const double HELD_OUT = 0.3;

static void print_error(const char *name, const SurfaceError *x) {
    printf("%-10s %d points: median error %.1f%%, worst %.1f%%\n", name, x->points, 100 * x->median,
           100 * x->worst);
}

static void print_fit(const SurfaceFit *f, const SurfaceError *contexts) {
    const Hardware *h = &f->machine;
    printf("machine    %s\n", SHOWN(h->name));
    printf("reached    reads %.0f%%, products %.0f%%, attention %.1f%% of the data sheet's peaks\n",
           100 * h->read_share, 100 * h->compute_share, 100 * h->attention_share);
    printf("beside     %.3g passes over a row's activations a layer, %.3g ms a step, overlap %.2f\n",
           h->row_passes, 1e3 * h->step_s, h->overlap);
    print_error("fitted", &f->fitted);
    print_error("held out", &f->held_out);
    if (contexts->points) print_error("contexts", contexts);
    if (contexts->points) puts("           contexts: each in turn held out whole");
}

static json_t *error_json(const SurfaceError *x) {
    return json_pack("{s:i, s:f, s:f}", "points", x->points, "median", x->median, "worst", x->worst);
}

static bool print_json(const SurfaceFit *f, const SurfaceError *contexts) {
    const Hardware *h = &f->machine;
    json_t *root = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o}", "machine", h->name,
                             "read_share", h->read_share, "compute_share", h->compute_share,
                             "attention_share", h->attention_share, "row_passes", h->row_passes, "step_s",
                             h->step_s, "overlap", h->overlap, "fitted", error_json(&f->fitted), "held_out",
                             error_json(&f->held_out), "contexts", error_json(contexts));
    return json_print(root, 0, stdout);
}

// A file that hardware_write wrote from here.
static const OutputKind MACHINE = {.start = "{\n  \"name\": ", .holds = ", which names its source\""};

static bool save(const SurfaceArguments *a, const SurfaceFit *f, Output *out, Error *e) {
    Text sheet = {0}, reached = {0};
    text_printf(&sheet, "as in '%s', which names its source", a->machine);
    text_printf(&reached, "fitted to '%s'; median error of %d points held out %.1f%%", a->surface,
                f->held_out.points, 100 * f->held_out.median);
    char *text = hardware_write(&f->machine, text_get(&sheet), text_get(&reached));
    bool ok = text ? output_add(out, a->save, &MACHINE, text, strlen(text), e) && output_finish(out, e)
                   : error_system(e, "fit: cannot make '%s': a path is not UTF-8", a->save);
    mem_free(text);
    text_release(&sheet);
    text_release(&reached);
    return ok;
}

bool fit_surface(const SurfaceArguments *a, Error *e) {
    Model model = {0};
    Surface surface = {0};
    Hardware machine;
    SurfaceFit fit;
    SurfaceError contexts;
    if (!a->model || !a->machine)
        return error_input(
            e, "fit: --surface needs --model DIR, whose steps were measured, and --on MACHINE.json");
    Output out = {.force = a->force};
    output_reads(&out, a->surface);
    output_reads(&out, a->model);
    output_reads(&out, a->machine);
    bool ok = (!a->save || output_check(&out, a->save, &MACHINE, e)) &&
              surface_open(a->surface, &surface, e) && machine_open(a->machine, &machine, e) &&
              model_open(&model, a->model, e);
    if (ok) {
        StepModel shape = step_model(&model.shape, (double)dtype_size(model.dtype));
        surface_hold_out(&surface, HELD_OUT, a->seed);
        ok = surface_fit(&surface, &machine, &shape, &fit, e) &&
             surface_leave_context(&surface, &machine, &shape, &contexts, e);
    }
    if (ok && a->save) ok = save(a, &fit, &out, e);
    if (ok && a->json) ok = print_json(&fit, &contexts);
    else if (ok) print_fit(&fit, &contexts);
    model_close(&model);
    surface_release(&surface);
    output_release(&out);
    return ok;
}
