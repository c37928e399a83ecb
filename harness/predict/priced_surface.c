#include "harness/predict/priced_surface.h"

#include "engine/base/json.h"
#include "harness/predict/step_model.h"
#include "harness/cli/version.h"

#include <stdio.h>

// The most rows and the longest context that reckoned machines were fitted to (tests/ptx/reckon.c).
enum { RECKONED_ROWS = 128, RECKONED_CONTEXT = 900 };

// Grids end with 0. Trees are those of N-Grammys' Figure 1, with its contexts.
static const int CHAIN_ROWS[] = {1, 8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 0};
static const int CHAIN_CONTEXTS[] = {25, 100, 250, 500, 700, 900, 2000, 4000, 0};
static const int TREE_K[] = {1, 2, 4, 8, 12, 16, 25, 32, 0};
static const int TREE_W[] = {1, 2, 3, 5, 7, 10, 15, 0};
static const int TREE_CONTEXTS[] = {25, 100, 500, 0};

typedef struct Grid {
    Hardware machine;
    StepModel model;
    Store *store;
    StoreSurface row; // what all rows have alike
} Grid;

static double price(const Grid *g, StepPlan step) {
    return hardware_price(&g->machine, &g->model, &step).total;
}

static bool add_step(Grid *g, int k, int w, StepPlan step, Error *e) {
    if (g->machine.reckoned && (step.rows > RECKONED_ROWS || step.context > RECKONED_CONTEXT)) return true;
    StoreSurface *row = &g->row;
    row->k = k, row->w = w;
    row->rows = row->head_rows = step.rows;
    row->context = step.context;
    row->mean_s = row->median_s = price(g, step);
    row->slowdown = row->median_s / price(g, step_chain(1, step.context));
    return store_surface(g->store, row, 1, e);
}

static bool add_chains(Grid *g, Error *e) {
    g->row.layout = "chain";
    for (const int *context = CHAIN_CONTEXTS; *context; context++)
        for (const int *rows = CHAIN_ROWS; *rows; rows++)
            if (!add_step(g, 1, *rows - 1, step_chain(*rows, *context), e)) return false;
    return true;
}

static bool add_trees(Grid *g, Error *e) {
    g->row.layout = "tree";
    for (const int *context = TREE_CONTEXTS; *context; context++)
        for (const int *k = TREE_K; *k; k++)
            for (const int *w = TREE_W; *w; w++)
                if (!add_step(g, *k, *w, step_tree(*k, *w, *context), e)) return false;
    return true;
}

// The model's name, in every panel's title, says that it was not measured.
static bool add_run(Grid *g, const char *on, const char *shape, const char *made, int64_t *run, Error *e) {
    char name[256];
    snprintf(name, sizeof name, "%s, %s", shape, made);
    StoreRun r = {.hash = "", .kind = "surface", .name = on, .version = version_text()};
    StoreModel m = {.name = name, .hash = "", .layers = g->model.layers};
    StoreEnvironment environment = {.version = version_text(), .gpu = g->machine.name};
    g->row = (StoreSurface){.kind = "step",
                            .device = on,
                            .cache = "viewed",
                            .b = g->model.layers,
                            .samples = 1,
                            .deviation_s = -1,
                            .floor_s = -1,
                            .bytes = -1,
                            .operations = -1,
                            .drift = -1,
                            .low_s = -1,
                            .high_s = -1,
                            .slowdown_low = -1,
                            .slowdown_high = -1};
    return store_run(g->store, &r, run, NULL, e) && store_model(g->store, &m, &g->row.model, e) &&
           store_attempt(g->store, *run, 0, NULL, &environment, &g->row.attempt, e) &&
           store_attempt_end(g->store, g->row.attempt, "done", e);
}

bool priced_surface(const Figure *f, const char *on, const char *shape, PricedSurface *out, Text *notes,
                    Error *e) {
    Grid g = {0};
    *out = (PricedSurface){0};
    if (!machine_open(on, &g.machine, e) || !step_model_open(shape, &g.model, e)) return false;
    bool reckoned = g.machine.reckoned;
    snprintf(out->title, sizeof out->title, "%s, not measured: %s", reckoned ? "Reckoned" : "Priced",
             f->summary);
    json_t *o = json_pack("{s:{s:s, s:s, s:b}}", "prediction", "machine", g.machine.name, "shape", shape,
                          "surface", 1);
    json_append(o, 0, notes);
    g.store = out->store = store_open(on, STORE_TRIAL, NULL, e);
    return g.store && store_begin(g.store, e) &&
           add_run(&g, on, shape, reckoned ? "reckoned" : "priced", &out->run, e) &&
           (f->priced == PRICED_CHAINS ? add_chains(&g, e) : add_trees(&g, e)) && store_commit(g.store, e);
}
