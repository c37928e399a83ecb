// Prints the fit for people and as JSON, with its errors on points that it didn't see.
#include "harness/price/prediction.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/price/priced.h"
#include "harness/cli/terminal.h"
#include "simulate/surface.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const double HELD_OUT = 0.3;

static void print_error(const char *name, const SurfaceError *x) {
    printf("%-10s %d points: median error %.1f%%, worst %.1f%%\n", name, x->points, 100 * x->median,
           100 * x->worst);
}

// Steps of few rows, of a tile's and of more: a machine may be right about some and wrong about others.
static const int RANGES[][2] = {{1, 16}, {17, 128}, {129, INT_MAX}};
enum { RANGE_COUNT = sizeof RANGES / sizeof *RANGES };

typedef struct Tested {
    const SurfaceFit *fit;
    SurfaceError contexts;
    SurfaceError fitted[RANGE_COUNT], given[RANGE_COUNT]; // by the fitted machine, and by that of --on
    int most;                                             // rows of a step
} Tested;

static bool test_fit(const Surface *s, const Hardware *given, const StepModel *model, const SurfaceFit *fit,
                     Tested *out, Error *e) {
    *out = (Tested){.fit = fit};
    for (int i = 0; i < s->count; i++)
        if (s->points[i].step.rows > out->most) out->most = s->points[i].step.rows;
    for (int i = 0; i < RANGE_COUNT; i++) {
        out->fitted[i] = surface_error(s, &fit->machine, model, RANGES[i][0], RANGES[i][1]);
        out->given[i] = surface_error(s, given, model, RANGES[i][0], RANGES[i][1]);
    }
    return surface_leave_context(s, given, model, &out->contexts, e);
}

static int range_end(const Tested *t, int i) { return t->most < RANGES[i][1] ? t->most : RANGES[i][1]; }

static void print_fit(const Tested *t) {
    const SurfaceFit *f = t->fit;
    const Hardware *h = &f->machine;
    printf("machine    %s\n", SHOWN(h->name));
    printf("reached    reads %.0f%%, of the cache %.0f%%, products %.0f%%, attention %.1f%% of its peaks\n",
           100 * h->read_share, 100 * h->read_share * h->cache_share, 100 * h->compute_share,
           100 * h->attention_share);
    printf("beside     %.3g passes over a row's activations a layer, %.3g ms a step, overlap %.2f\n",
           h->row_passes, 1e3 * h->step_s, h->overlap);
    print_error("fitted", &f->fitted);
    print_error("held out", &f->held_out);
    if (t->contexts.points) print_error("contexts", &t->contexts);
    if (t->contexts.points) puts("           contexts: each in turn held out whole");
    for (int i = 0; i < RANGE_COUNT; i++) {
        char name[32];
        if (!t->fitted[i].points) continue;
        snprintf(name, sizeof name, "%d..%d rows", RANGES[i][0], range_end(t, i));
        printf("%-13s %d points: median error %.1f%%, worst %.1f%%; of the machine as given %.1f%%, %.1f%%\n",
               name, t->fitted[i].points, 100 * t->fitted[i].median, 100 * t->fitted[i].worst,
               100 * t->given[i].median, 100 * t->given[i].worst);
    }
}

static json_t *error_json(const SurfaceError *x) {
    return json_pack("{s:i, s:f, s:f}", "points", x->points, "median", x->median, "worst", x->worst);
}

static json_t *ranges_json(const Tested *t) {
    json_t *out = json_array();
    for (int i = 0; i < RANGE_COUNT; i++)
        if (t->fitted[i].points)
            json_array_append_new(out, json_pack("{s:i, s:i, s:o, s:o}", "from", RANGES[i][0], "to",
                                                 range_end(t, i), "fitted", error_json(&t->fitted[i]),
                                                 "given", error_json(&t->given[i])));
    return out;
}

static bool print_json(const Tested *t) {
    const SurfaceFit *f = t->fit;
    const Hardware *h = &f->machine;
    json_t *root = json_pack(
        "{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i, s:o, s:o, s:o, s:o}", "machine", h->name, "read_share",
        h->read_share, "compute_share", h->compute_share, "cache_share", h->cache_share, "attention_share",
        h->attention_share, "row_passes", h->row_passes, "step_s", h->step_s, "overlap", h->overlap,
        "most_rows", h->most_rows, "fitted", error_json(&f->fitted), "held_out", error_json(&f->held_out),
        "contexts", error_json(&t->contexts), "rows", ranges_json(t));
    return json_print(root, 0, stdout);
}

// A file that hardware_write wrote from here.
static const OutputKind MACHINE = {.start = "{\n  \"name\": ", .holds = ", which names its source\""};

static bool save(const SurfaceArguments *a, const Tested *t, Output *out, Error *e) {
    const SurfaceFit *f = t->fit;
    LOCAL_TEXT sheet = {0}, reached = {0};
    text_printf(&sheet, "as in '%s', which names its source", a->machine);
    text_printf(&reached, "fitted to '%s', steps of up to %d rows; median error of %d points held out %.1f%%",
                a->surface, t->most, f->held_out.points, 100 * f->held_out.median);
    LOCAL_MEMORY char *text = hardware_write(&f->machine, text_get(&sheet), text_get(&reached));
    return text ? output_add(out, a->save, &MACHINE, text, strlen(text), e) && output_finish(out, e)
                : error_system(e, "fit: cannot make '%s': a path is not UTF-8", a->save);
}

// The widths of --shape or of --model, with its own weights.
static bool open_model(const SurfaceArguments *a, StepModel *out, Error *e) {
    if (a->shape) return step_model_open(a->shape, out, e);
    Model model;
    LOCAL(model_close) ModelWeights weights = {.dir = NULL};
    LOCAL_MEMORY char *dir = shipped_model(a->model, e);
    bool ok = dir && model_open(&model, &weights, dir, e);
    if (ok) *out = step_model_of(&model);
    return ok;
}

bool fit_surface(const SurfaceArguments *a, Error *e) {
    LOCAL(surface_release) Surface surface = {0};
    Hardware machine;
    StepModel model;
    SurfaceFit fit;
    Tested tested;
    if (!a->model == !a->shape || !a->machine)
        return error_input(e, "fit: --surface needs --model MODEL or --shape SHAPE, whose steps were "
                              "measured, and --on MACHINE");
    LOCAL(output_release) Output out = {.force = a->force};
    output_reads(&out, a->surface);
    output_reads(&out, a->model);
    priced_reads(&out, a->machine, a->shape);
    bool ok = (!a->save || output_check(&out, a->save, &MACHINE, e)) &&
              surface_open(a->surface, &surface, e) && machine_open(a->machine, &machine, e) &&
              open_model(a, &model, e);
    if (ok) {
        surface_hold_out(&surface, HELD_OUT, a->seed);
        ok = surface_fit(&surface, &machine, &model, &fit, e) &&
             test_fit(&surface, &machine, &model, &fit, &tested, e);
    }
    if (ok && a->save) ok = save(a, &tested, &out, e);
    if (ok && a->json) ok = print_json(&tested);
    else if (ok) print_fit(&tested);
    return ok;
}
