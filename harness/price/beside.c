// Prices the steps of a measured surface, for figures that draw both. If no machine is named, a context's
// prices come from a machine fitted to the other contexts, so no step is priced by a fit that used it.
#include "harness/price/priced.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "results/rows.h"
#include "simulate/surface.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

EMBED(beside_sql, "harness/price/beside.sql")

typedef struct Beside {
    Surface surface; // of one model
    int64_t *ids;    // (surface.count)
    size_t capacity, id_capacity;
    StepModel model;
    Hardware machine; // named, or this one as measured, to start a fit
    bool named;
} Beside;

static StepPlan plan_of(const Rows *r) {
    int k = (int)rows_int(r, 3), w = (int)rows_int(r, 4), context = (int)rows_int(r, 5);
    const char *layout = rows_text(r, 6);
    int sequences = (int)rows_int(r, 8), rows = (int)rows_int(r, 7) / sequences;
    StepPlan one = strcmp(layout, "tree") == 0    ? step_tree(k, w, context)
                   : strcmp(layout, "batch") == 0 ? step_batch(k, w, context)
                                                  : step_chain(rows, context);
    one.rows = one.read = rows;
    if (strcmp(layout, "batch") == 0) one.copied = rows_int(r, 9) != 0;
    return step_shared(one, sequences);
}

// The model and the machine of the row. False: its shape isn't one that prices know.
static bool read_model(Beside *b, const Rows *r) {
    b->model = (StepModel){.layers = (int)rows_int(r, 10),
                           .width = (int)rows_int(r, 11),
                           .heads = (int)rows_int(r, 12),
                           .q_width = (int)(rows_int(r, 12) * rows_int(r, 14)),
                           .kv_width = (int)(rows_int(r, 13) * rows_int(r, 14)),
                           .mlp_width = (int)rows_int(r, 15),
                           .vocab = (int)rows_int(r, 16),
                           .window = (int)rows_int(r, 17),
                           .weight_bytes = rows_int(r, 18) > 16 ? 4 : 2,
                           .cache_bytes = 2};
    if (rows_int(r, 18) < 16) step_model_code(&b->model, (int)rows_int(r, 18), CODE_GROUP);
    if (!b->named) {
        // A processor's small tiles: products of its own, without launches.
        b->machine = (Hardware){.name = "this machine",
                                .bytes_per_s = rows_real(r, 19),
                                .operations_per_s = rows_real(r, 20),
                                .memory_bytes = 1e12,
                                .processors = (int)rows_int(r, 21),
                                .tile_rows = 6,
                                .tile_columns = 4,
                                .least_rows = 1};
        hardware_floor(&b->machine);
    }
    return b->model.layers > 0 && b->model.width > 0 && b->model.q_width > 0 && b->model.mlp_width > 0 &&
           b->model.vocab > 0 && hardware_check(&b->machine, NULL);
}

// Prices the points of the context of point i, by a machine fitted to all others, or if there are none, to
// these.
static bool price_context(Beside *b, int i, json_t *out, bool *alone, Error *e) {
    Surface *s = &b->surface;
    SurfaceFit fit = {.machine = b->machine};
    int context = s->points[i].step.context, others = 0;
    for (int k = 0; k < s->count; k++) others += s->points[k].step.context != context;
    *alone = *alone || others < 2;
    for (int k = 0; k < s->count; k++)
        s->points[k].held_out = others >= 2 && s->points[k].step.context == context;
    if (!b->named && s->count >= 2 && !surface_fit(s, &b->machine, &b->model, &fit, e)) return false;
    const StepPlan one = step_chain(1, context);
    for (int k = 0; k < s->count; k++) {
        if (s->points[k].step.context != context) continue;
        double seconds = hardware_price(&fit.machine, &b->model, &s->points[k].step).total;
        double alone_s = hardware_price(&fit.machine, &b->model, &one).total;
        json_array_append_new(out, json_pack("[I, o, o]", (json_int_t)b->ids[k], json_number(1e9 * seconds),
                                             json_number(seconds / alone_s)));
    }
    return true;
}

static bool price_model(Beside *b, json_t *out, bool *alone, Error *e) {
    bool ok = true;
    for (int i = 0; ok && i < b->surface.count; i++) {
        int k = 0;
        while (b->surface.points[k].step.context != b->surface.points[i].step.context) k++;
        ok = k < i || price_context(b, i, out, alone, e);
    }
    b->surface.count = 0;
    return ok;
}

bool priced_beside(Store *store, int64_t run, const char *on, Text *out, Error *e) {
    Beside b = {.named = on != NULL};
    json_t *steps = json_array();
    bool ok = !on || machine_open(on, &b.machine, e), alone = false, known = false;
    int64_t model = 0;
    Rows *r = ok ? rows_ask(store, beside_sql, run, e) : NULL;
    while (ok && rows_next(r)) {
        if (rows_int(r, 1) != model) ok = price_model(&b, steps, &alone, e), known = read_model(&b, r);
        model = rows_int(r, 1);
        if (!known) continue;
        size_t n = (size_t)b.surface.count++;
        mem_grow(&b.surface.points, &b.capacity, n + 1, sizeof *b.surface.points);
        mem_grow(&b.ids, &b.id_capacity, n + 1, sizeof *b.ids);
        b.surface.points[n] = (SurfacePoint){plan_of(r), 1e-9 * rows_real(r, 2), false};
        b.ids[n] = rows_int(r, 0);
    }
    if (r) ok = rows_end(r, ok, e);
    ok = ok && price_model(&b, steps, &alone, e);
    char says[160], range[48] = "";
    if (b.machine.most_rows)
        snprintf(range, sizeof range, ", fitted to steps of at most %d rows", b.machine.most_rows);
    if (on) snprintf(says, sizeof says, "priced for %.80s%s: a prediction", b.machine.name, range);
    else
        snprintf(says, sizeof says, "priced by a machine fitted to %s",
                 alone ? "these steps" : "the steps of the other contexts");
    ok = json_append(json_pack("{s:s, s:o}", "says", says, "steps", steps), JSON_COMPACT, out) && ok;
    mem_free(b.ids);
    surface_release(&b.surface);
    return ok;
}
