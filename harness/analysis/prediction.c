// A stored run on another machine: its request, its points priced, and the result for people and programs.
// Every number comes from the simulation; nothing is measured here.
#include "harness/analysis/prediction.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "harness/analysis/priced.h"
#include "harness/analysis/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// --- the request ---------------------------------------------------------------------------------------

static bool read_scaling(const PredictionArguments *a, Prediction *out, Error *e) {
    double speed, latency;
    char *end;
    if (!a->devices != !a->link)
        return error_input(e, "--devices and --link go together: how fast is what joins the devices?");
    if (!a->devices && a->cut > 0) return error_input(e, "--cut goes with --devices");
    if (!a->devices) return true;
    if (a->batch || out->bits.count > 1)
        return error_input(e, "--devices cut the steps of one sequence: leave out --batch, give one --bits");
    if (!int_list_parse(a->devices, "--devices", 1, SCALING_MOST_DEVICES, &out->devices, e)) return false;
    speed = strtod(a->link, &end);
    latency = *end == ',' ? strtod(end + 1, &end) : NAN;
    if (*end || !isfinite(latency))
        return error_input(e, "--link is '%s', must be GB/s and microseconds, as 300,5", a->link);
    out->link = (Link){1e9 * speed, 1e-6 * latency};
    return link_check(&out->link, e);
}

bool prediction_asked(const PredictionArguments *a, bool *asked, Error *e) {
    *asked = a->on != NULL;
    return !*asked || a->shape || error_input(e, "--on goes with --shape: of which model?");
}

bool prediction_read(const PredictionArguments *a, Prediction *out, Error *e) {
    *out = (Prediction){.of = a, .pricing.has_draft = a->draft_shape != NULL};
    Pricing *p = &out->pricing;
    if (!priced_lists(a->batch, a->bits, 0, &out->batches, &out->bits, e)) return false;
    if (a->against && out->batches.count * out->bits.count > 1)
        return error_input(e, "--against holds one price against a run: give one --batch and one --bits");
    return read_scaling(a, out, e) && machine_open(a->on, &p->machine, e) &&
           step_model_open(a->shape, &p->target, e) &&
           (!p->has_draft || step_model_open(a->draft_shape, &p->draft, e));
}

// --- the prediction --------------------------------------------------------------------------------------

Pricing prediction_pricing(const Prediction *p, const PredictionCell *cell) {
    Pricing out = p->pricing;
    step_model_code(&out.target, cell->bits, CODE_GROUP);
    out.batch = cell->batch;
    return out;
}

static bool make_cells(Prediction *p, int64_t run, const SimulationAgainst *against, Error *e) {
    p->cells = mem_new((size_t)(p->batches.count * p->bits.count), sizeof *p->cells);
    for (int i = 0; i < p->bits.count; i++)
        for (int k = 0; k < p->batches.count; k++) {
            PredictionCell *cell = &p->cells[p->count++];
            *cell = (PredictionCell){.batch = p->batches.items[k], .bits = p->bits.items[i]};
            Pricing pricing = prediction_pricing(p, cell);
            if (!simulation_run(p->store, run, &pricing, against, &cell->points, e)) return false;
        }
    return true;
}

bool prediction_make(Prediction *p, Store *store, int64_t run, Error *e) {
    const PredictionArguments *a = p->of;
    SimulationAgainst against = {0};
    bool ok = true;
    p->store = store;
    if (a->against) {
        const char *path = a->against_db ? a->against_db : store_path(store);
        against.store = store_open(path, STORE_READ, NULL, e);
        ok = against.store && stored_run(against.store, a->against, &against.run, e);
    }
    ok = ok && make_cells(p, run, &against, e);
    store_close(against.store);
    return ok;
}

void prediction_release(Prediction *p) {
    for (int i = 0; i < p->count; i++) simulation_release(&p->cells[i].points);
    mem_free(p->cells);
    p->cells = NULL;
    p->count = 0;
}

bool prediction_scaled(const Prediction *p, TakeScaled take, void *state, Error *e) {
    const Simulation *s = &p->cells[0].points;
    const Pricing pricing = prediction_pricing(p, &p->cells[0]);
    for (size_t i = 0; p->devices.count && i < s->count; i++)
        for (int k = 0; k < p->devices.count && !s->points[i].needs_draft; k++) {
            Scaled x;
            const SimulatedPoint *point = &s->points[i];
            Devices devices = {p->devices.items[k], p->link, p->of->cut};
            if (!scaled_point(p->store, point, &pricing, &devices, &x, e)) return false;
            if (x.given) take(state, point, p->devices.items[k], &x);
        }
    return true;
}

// --- JSON ------------------------------------------------------------------------------------------------

static void set_interval(json_t *o, const Tally *t, TallyMetric m) {
    char low[48], high[48];
    snprintf(low, sizeof low, "%s_low", tally_names[m]);
    snprintf(high, sizeof high, "%s_high", tally_names[m]);
    json_object_set_new(o, tally_names[m], json_number(t->value[m]));
    if (!t->has_interval) return;
    json_object_set_new(o, low, json_number(t->interval[m].low));
    json_object_set_new(o, high, json_number(t->interval[m].high));
}

static json_t *point_json(const SimulatedPoint *p, int bits) {
    json_t *o = json_pack("{s:I, s:s, s:s, s:i, s:i, s:b}", "point", (json_int_t)p->number, "of", p->group,
                          "label", p->label, "batch", p->batch, "bits", bits, "needs_draft", p->needs_draft);
    if (!o || p->needs_draft) return o;
    json_object_set_new(o, "step_s", json_number(p->step_s));
    set_interval(o, &p->tally, TALLY_S);
    set_interval(o, &p->tally, TALLY_RATE);
    set_interval(o, &p->tally, TALLY_SPEEDUP);
    set_interval(o, &p->tally, TALLY_SPEEDUP_E2E);
    if (!p->measured) return o;
    json_object_set_new(o, "measured_step_s", json_number(p->measured_step_s));
    json_object_set_new(o, "measured_S", json_number(p->measured_S));
    json_object_set_new(o, "measured_speedup", json_number(p->measured_speedup));
    if (p->doubt) json_object_set_new(o, "measured_doubt", json_string(p->doubt));
    json_object_set_new(o, "measured_doubtful", json_boolean(p->doubtful));
    json_object_set_new(o, "error_step", json_number(simulation_error(p, SIMULATED_STEP)));
    json_object_set_new(o, "error_S", json_number(simulation_error(p, SIMULATED_S)));
    json_object_set_new(o, "error_speedup", json_number(simulation_error(p, SIMULATED_SPEEDUP)));
    return o;
}

static void add_scaled(void *state, const SimulatedPoint *p, int devices, const Scaled *x) {
    json_array_append_new(state, json_pack("{s:I, s:i, s:f, s:f, s:f, s:f, s:f}", "point",
                                           (json_int_t)p->number, "devices", devices, "lookahead",
                                           x->lookahead, "tensor", x->tensor, "pipeline", x->pipeline,
                                           "autoregressive_tensor", x->autoregressive_tensor,
                                           "autoregressive_pipeline", x->autoregressive_pipeline));
}

static json_t *prediction_object(const Prediction *p, Error *e) {
    json_t *scalings = json_array(), *points = json_array();
    bool ok = prediction_scaled(p, add_scaled, scalings, e);
    for (int c = 0; ok && c < p->count; c++)
        for (size_t i = 0; i < p->cells[c].points.count; i++)
            json_array_append_new(points, point_json(&p->cells[c].points.points[i], p->cells[c].bits));
    json_t *root = json_pack("{s:s, s:s, s:o, s:o}", "machine", p->pricing.machine.name, "shape",
                             p->of->shape, "points", points, "scaling", scalings);
    if (ok) return root;
    json_decref(root);
    return NULL;
}

json_t *prediction_json(const Prediction *p, Error *e) {
    json_t *root = prediction_object(p, e);
    if (!root) return NULL;
    json_object_set_new(
        root, "link",
        json_pack("{s:f, s:f}", "bytes_per_s", p->link.bytes_per_s, "latency_s", p->link.latency_s));
    if (p->of->cut > 0) json_object_set_new(root, "cut", json_real(p->of->cut));
    return root;
}
