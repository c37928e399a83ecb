// A stored run on another machine: its request, its points priced, and the result for people and programs.
// Every number comes from the simulation; nothing is measured here.
#include "harness/price/prediction.h"

#include "engine/base/memory.h"
#include "harness/price/priced.h"
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

// --- rows ------------------------------------------------------------------------------------------------

static const Column POINTS[] = {
    {"point", "point", AS_COUNT, .help = "a point"},
    {"of", .help = "its model and dataset"},
    {"label", "method", .least = 14, .help = "its label"},
    {"batch bits", .help = "sequences that share a step; bits of a weight"},
    {"needs_draft", .help = "it has no price without `--draft-shape`: the keys below are left out"},
    {.kind = AS_REST},
    {"step_s", .help = "a step's price"},
    {"S S_low S_high", "S", AS_MEASURED, .help = "tokens a step"},
    {.head = "[95%]", .kind = AS_REACH, .drop = 3},
    {.head = "step ms", .kind = AS_MEASURED, .scale = 1e3},
    {"tokens_per_s tokens_per_s_low tokens_per_s_high", "tokens/s", AS_MEASURED, .drop = 4,
     .help = "decoding, of all sequences"},
    {"speedup speedup_low speedup_high", "speedup", AS_MEASURED, .help = "over the baseline, decoding"},
    {.head = "[95%]", .kind = AS_REACH, .drop = 5},
    {"speedup_e2e speedup_e2e_low speedup_e2e_high", "e2e", AS_MEASURED, .drop = 2, .help = "with prefill"},
    {"measured_step_s measured_S measured_speedup", .optional = true,
     .help = "with `--against`: the same point, measured"},
    {"measured_doubt measured_doubtful", .optional = true, .help = "why its times may be wrong, and whether"},
    {"error_step error_S error_speedup", .optional = true, .help = "price / measured - 1"},
    {.head = "err. step", .kind = AS_COUNT, .drop = 6},
    {.head = "err. S", .kind = AS_COUNT, .drop = 1},
    {.head = "err. speedup", .kind = AS_COUNT, .drop = 7},
    {.head = "note", .least = 14},
    {"beyond_rows", .optional = true, .help = "of a step of more rows than the machine was fitted to"},
};
static const Column SCALING[] = {
    {"point", "point", AS_COUNT, .optional = true, .help = "of lookahead"},
    {.head = "method", .least = 14},
    {"devices", "devices", AS_COUNT, .optional = true, .help = "how many"},
    {"lookahead", "lookahead", AS_FIXED, 3, .optional = true, .help = "speedup by lookahead parallelism"},
    {"tensor", "tensor", AS_FIXED, 3, .optional = true, .help = "by tensor parallelism"},
    {"pipeline", "pipeline", AS_FIXED, 3, .optional = true, .help = "by pipeline parallelism"},
    {"autoregressive_tensor", "autoreg.tensor", AS_FIXED, 3, .drop = 2, .optional = true,
     .help = "of the baseline, likewise"},
    {"autoregressive_pipeline", "autoreg.pipeline", AS_FIXED, 3, .drop = 1, .optional = true,
     .help = "likewise"},
};
const TableForm prediction_points = {"simulate", TABLE_COLUMNS(POINTS), .within = "points"},
                prediction_scaling = {TABLE_COLUMNS(SCALING), .within = "scaling"};

// As many digits as drawing prompts again leaves.
static Cell metric(const SimulatedPoint *p, TallyMetric m) {
    const Tally *t = &p->tally;
    return t->has_interval ? cell_measured(t->value[m], t->interval[m].low, t->interval[m].high)
                           : cell_real(t->value[m]);
}

static Cell measured(const SimulatedPoint *p, Cell x) { return p->measured ? x : NO_CELL; }

static void put_point(const SimulatedPoint *p, int bits, bool against, int fitted, RecordTable *t) {
    char errors[SIMULATED_COUNT][16] = {{0}}, note[192], beyond[64] = "";
    if (p->needs_draft) {
        TABLE_ROW(t, CELL(p->number), CELL(p->group), CELL(p->label), CELL(p->batch), CELL(bits),
                  CELL(p->needs_draft), CELL("runs a draft model: give its --draft-shape"));
        return;
    }
    double error[SIMULATED_COUNT];
    for (int i = 0; i < SIMULATED_COUNT; i++) {
        error[i] = simulation_error(p, (SimulatedWhat)i);
        if (against)
            snprintf(errors[i], sizeof errors[i], isfinite(error[i]) ? "%+.1f%%" : "-", 100 * error[i]);
    }
    bool doubtful = against && p->doubtful, lacks = !isfinite(p->step_s);
    if (p->beyond_rows)
        snprintf(beyond, sizeof beyond, "a step of %d rows, fitted to %d%s", p->beyond_rows, fitted,
                 doubtful || lacks ? "; " : "");
    snprintf(note, sizeof note, "%s%s%s%s", beyond, doubtful ? "measured times are in doubt" : "",
             doubtful && lacks ? "; " : "",
             lacks ? "its steps lack their passes: docs/other-engines.md" : "");
    TABLE_ROW(t, CELL(p->number), CELL(p->group), CELL(p->label), CELL(p->batch), CELL(bits),
              CELL(p->needs_draft), NO_CELL, CELL(p->step_s), metric(p, TALLY_S), CELL(p->step_s),
              metric(p, TALLY_RATE), metric(p, TALLY_SPEEDUP), metric(p, TALLY_SPEEDUP_E2E),
              measured(p, CELL(p->measured_step_s)), measured(p, CELL(p->measured_S)),
              measured(p, CELL(p->measured_speedup)), p->doubt ? measured(p, CELL(p->doubt)) : NO_CELL,
              measured(p, CELL(p->doubtful)), measured(p, CELL(error[0])), measured(p, CELL(error[1])),
              measured(p, CELL(error[2])), CELL(errors[0]), CELL(errors[1]), CELL(errors[2]), CELL(note),
              p->beyond_rows ? CELL(p->beyond_rows) : NO_CELL);
}

static void put_cell(const PredictionCell *cell, bool against, int fitted, RecordTable *t) {
    const SimulatedPoint *points = cell->points.points;
    for (size_t i = 0; i < cell->points.count; i++) {
        if (i == 0 || strcmp(points[i].group, points[i - 1].group) != 0) {
            LOCAL_TEXT title = {0};
            text_puts(&title, points[i].group);
            if (cell->batch) text_printf(&title, "; priced in batches of %d", cell->batch);
            if (cell->bits < 16) text_printf(&title, "; weights of %d bits", cell->bits);
            table_group(t, text_get(&title));
        }
        put_point(&points[i], cell->bits, against, fitted, t);
    }
}

void prediction_put_points(const Prediction *p, RecordTable *t) {
    for (int i = 0; i < p->count; i++)
        put_cell(&p->cells[i], p->of->against != NULL, p->pricing.machine.most_rows, t);
}

bool prediction_put_scaling(const Prediction *p, RecordTable *t, Error *e) {
    const Simulation *s = &p->cells[0].points;
    const Pricing pricing = prediction_pricing(p, &p->cells[0]);
    for (size_t i = 0; p->devices.count && i < s->count; i++)
        for (int k = 0; k < p->devices.count && !s->points[i].needs_draft; k++) {
            Scaled x;
            const SimulatedPoint *point = &s->points[i];
            Devices devices = {p->devices.items[k], p->link, p->of->cut};
            if (!scaled_point(p->store, point, &pricing, &devices, &x, e)) return false;
            if (x.given)
                TABLE_ROW(t, CELL(point->number), CELL(point->label), CELL(devices.count), CELL(x.lookahead),
                          CELL(x.tensor), CELL(x.pipeline), CELL(x.autoregressive_tensor),
                          CELL(x.autoregressive_pipeline));
        }
    return true;
}

// --- JSON ------------------------------------------------------------------------------------------------

json_t *prediction_json(const Prediction *p, Error *e) {
    const Records json = {.json = true};
    RecordTable points = {.form = &prediction_points, .as = &json},
                scaling = {.form = &prediction_scaling, .as = &json};
    prediction_put_points(p, &points);
    bool ok = prediction_put_scaling(p, &scaling, e);
    json_t *root = json_pack("{s:s, s:s, s:i, s:o, s:o, s:{s:f, s:f}}", "machine", p->pricing.machine.name,
                             "shape", p->of->shape, "most_rows", p->pricing.machine.most_rows, "points",
                             table_list(&points), "scaling", table_list(&scaling), "link", "bytes_per_s",
                             p->link.bytes_per_s, "latency_s", p->link.latency_s);
    if (root && p->of->cut > 0) json_object_set_new(root, "cut", json_real(p->of->cut));
    if (ok) return root;
    json_decref(root);
    return NULL;
}
