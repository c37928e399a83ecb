// Invariant: a unit is stored in one transaction, so a unit with any stored point is complete and is not
// measured again.
#include "harness/bench/surface.h"

#include "engine/base/memory.h"
#include "results/row.h"
#include "results/rows.h"

#include <stdio.h>
#include <string.h>

typedef struct Unit {
    SurfaceRun *run;
    Watch watch;
    int context;
    StoreSurface *rows; // (count)
    size_t count, capacity;
    size_t unseen; // the first row that the watch has not judged
} Unit;

int surface_tokens(Layout layout, int k, int w) { return layout == LAYOUT_TREE ? 1 + k * w : k * (w + 1); }

// --- rows ------------------------------------------------------------------------------------------------

static const char *arithmetic(const SurfaceRun *s) {
    static const char *const names[2][2][COMPUTE_KINDS] = {
        {{"f32", "bf16", "f16", "int8"}, {"f32, fast", "bf16, fast", "f16, fast"}},
        {{"f32", "bf16, weights rounded", "f16, weights rounded"},
         {"f32, fast", "bf16, fast, weights rounded", "f16, fast, weights rounded"}},
    };
    Compute c = s->engine.session.compute;
    bool gpu = strncmp(s->device, "cuda", 4) == 0;
    return names[gpu && compute_rounds(c, s->engine.model.dtype)][s->fast][c];
}

// The watch may find a disturbance some points later; its flags go to the points that it disturbed.
static StoreSurface *add_row(Unit *u, const char *kind, const char *layout, const BenchTime *t) {
    const SurfaceRun *s = u->run;
    mem_grow(&u->rows, &u->capacity, u->count + 1, sizeof *u->rows);
    for (; t->looked && u->unseen < u->count; u->unseen++) u->rows[u->unseen].flags |= t->flags_before;
    StoreSurface *row = &u->rows[u->count++];
    row_unknown(ROW_SURFACE, row);
    row->attempt = s->attempt;
    row->model = s->model;
    row->kind = kind;
    row->device = s->device;
    row->compute = arithmetic(s);
    row->layout = layout;
    row->weights = s->engine.weights.held ? "held" : "mapped";
    row->context = u->context;
    row->samples = t->n;
    row->mean_s = t->mean_s, row->median_s = t->median_s, row->deviation_s = t->mad_s;
    row->low_s = t->low_s, row->high_s = t->high_s;
    row->disturbed = t->disturbed;
    row->flags = t->flags;
    return row;
}

static void add_step(Unit *u, const BenchPoint *p) {
    StoreSurface *row = add_row(u, "step", p->layout == LAYOUT_TREE ? "tree" : "batch", &p->time);
    row->sequences = bench_sequences(p);
    row->cache = p->layout == LAYOUT_COPIED ? "copied" : "viewed";
    row->k = p->k;
    row->w = p->w;
    row->a = 0;
    row->b = u->run->engine.model.shape.layers;
    row->rows = row->head_rows = p->tokens * bench_sequences(p);
    row->slowdown = p->slowdown.value;
    row->slowdown_low = p->slowdown.low;
    row->slowdown_high = p->slowdown.high;
    row->floor_s = p->floor_bandwidth_s > p->floor_compute_s ? p->floor_bandwidth_s : p->floor_compute_s;
    row->bytes = p->bytes;
    row->operations = p->operations;
}

// --- measuring -------------------------------------------------------------------------------------------

static BenchOptions options_of(Unit *u) {
    const SurfacePlan *p = &u->run->plan;
    return (BenchOptions){.warm_up = 1,
                          .min_samples = p->samples,
                          .max_samples = p->samples,
                          .seed = p->seed,
                          .clock = clock_monotonic(),
                          .watch = &u->watch};
}

static void show(const Unit *u, const char *what, int rows) {
    LOCAL_TEXT text = {0};
    text_printf(&text, "context %d, %s of %d rows, %d points", u->context, what, rows,
                u->run->points + (int)u->count);
    if (line_due(&u->run->line)) line_show(&u->run->line, text_get(&text));
}

static Benched benched(const Unit *u) {
    Engine *engine = &u->run->engine;
    return (Benched){&engine->session, engine->model.dtype, &u->run->ceilings, engine->more};
}

static bool measure_step(Unit *u, int sequences, int k, int w, const BenchTime *one, BenchTime *time,
                         Error *e) {
    BenchOptions o = options_of(u);
    BenchPoint p = {
        .context = u->context, .k = k, .w = w, .sequences = sequences, .layout = u->run->plan.layout};
    Benched b = benched(u);
    show(u, "a step", sequences * surface_tokens(p.layout, k, w));
    if (!bench_point(&b, &o, one, &p, e)) return false;
    *time = p.time;
    add_step(u, &p);
    return true;
}

// Times one token again when the grid is done: if it has changed, so may the points between.
static bool look_for_drift(Unit *u, const BenchTime *one, Error *e) {
    BenchOptions o = options_of(u);
    BenchPoint p = {.context = u->context, .k = 1, .layout = u->run->plan.layout};
    Benched b = benched(u);
    if (!bench_point(&b, &o, NULL, &p, e)) return false;
    for (size_t i = 0; i < u->count; i++) {
        StoreSurface *row = &u->rows[i];
        const BenchTime step = {.median_s = row->median_s, .low_s = row->low_s, .high_s = row->high_s};
        Reach slowdown = bench_slowdown(&step, one, &p.time);
        row->drift = p.time.median_s / one->median_s;
        if (i > 0) row->slowdown_low = slowdown.low, row->slowdown_high = slowdown.high; // 0 is `one`
    }
    if (!bench_drifted(one->median_s, p.time.median_s)) return true;
    line_clear(&u->run->line);
    fprintf(stderr,
            "warning: at context %d one token took %.3f ms before the grid and %.3f ms after it: the machine "
            "changed meanwhile, and slowdowns there may be as wrong as that\n",
            u->context, 1e3 * one->median_s, 1e3 * p.time.median_s);
    return true;
}

// Times of a whole text, from nothing to the context, in chunks of as many rows as a step holds.
typedef struct Sequence {
    Unit *unit;
    double operations;
} Sequence;

static bool time_sequence(void *state, BenchSample *out, Error *e) {
    Sequence *q = state;
    BenchOptions o = options_of(q->unit);
    *out = (BenchSample){0};
    return bench_prefill(&q->unit->run->engine.session, &o, q->unit->context, &out->step, &q->operations, e);
}

// k and w distinguish it from a part of a step: one row of `context` tokens, after nothing.
static bool measure_sequence(Unit *u, Error *e) {
    BenchOptions o = options_of(u);
    BenchSample samples[BENCH_SAMPLES];
    BenchTime time;
    Sequence q = {.unit = u};
    o.warm_up = 0;
    show(u, "a text", u->context);
    if (!bench_take(&o, time_sequence, &q, samples, &time, e)) return false;
    StoreSurface *row = add_row(u, "prefill", "chain", &time);
    row->context = 0;
    row->k = 1;
    row->w = u->context - 1;
    row->rows = u->context;
    row->operations = q.operations;
    return true;
}

// All others are compared with (1, 0) of one sequence, whether the grid has it or not. It is stored once, so
// that the slowdowns of a context are ratios of stored times.
static bool measure_grid(Unit *u, Error *e) {
    const SurfacePlan *p = &u->run->plan;
    BenchTime one, ignored;
    if (!measure_step(u, 1, 1, 0, NULL, &one, e)) return false;
    for (int i = 0; i < p->batch.count; i++)
        for (int j = 0; j < p->k.count * p->w.count; j++) {
            int sequences = p->batch.items[i], k = p->k.items[j / p->w.count], w = p->w.items[j % p->w.count];
            bool is_one = sequences == 1 && k == 1 && w == 0;
            if (!is_one && !measure_step(u, sequences, k, w, &one, &ignored, e)) return false;
        }
    return (u->count == 1 || look_for_drift(u, &one, e)) &&
           (!p->sequence || u->context == 0 || measure_sequence(u, e));
}

static bool measure_part(Unit *u, PartPoint p, Error *e) {
    BenchOptions o = options_of(u);
    show(u, part_names[p.kind], p.rows);
    if (!part_time(&u->run->engine.session, &o, &p, e)) return false;
    StoreSurface *row = add_row(u, part_names[p.kind], "chain", &p.time);
    if (p.kind == PART_LAYERS) row->a = p.a, row->b = p.b;
    if (p.kind == PART_HEAD) row->head_rows = p.rows;
    row->rows = p.rows;
    return true;
}

// All layers, and those before and after each exit: the cost of a layer, and the rest of a step's cost.
static bool measure_layers(Unit *u, int rows, Error *e) {
    const IntList *exits = &u->run->plan.exits;
    int layers = u->run->engine.model.shape.layers;
    PartPoint p = {.kind = PART_LAYERS, .a = 0, .b = layers, .rows = rows, .context = u->context};
    if (!measure_part(u, p, e)) return false;
    for (int i = 0; i < exits->count; i++) {
        PartPoint before = p, behind = p;
        before.b = behind.a = exits->items[i];
        if (exits->items[i] < layers && !(measure_part(u, before, e) && measure_part(u, behind, e)))
            return false;
    }
    return true;
}

// --- units -----------------------------------------------------------------------------------------------

// Stored points of a unit: of the parts of `rows` rows, or, if rows is 0, of the grid.
static bool count_stored(const SurfaceRun *s, int context, int rows, int *out, Error *e) {
    static const char SQL[] =
        "SELECT count(*) FROM surface JOIN attempt ON attempt.id = attempt_id WHERE run_id = ?1"
        " AND context = ?2 AND CASE WHEN ?3 THEN kind <> 'step' AND k IS NULL AND surface.rows = ?3"
        " ELSE kind = 'step' END";
    Rows *r = rows_ask(s->store, SQL, s->run, e);
    rows_bind_int(r, 2, context);
    rows_bind_int(r, 3, rows);
    *out = rows_next(r) ? (int)rows_int(r, 0) : 0;
    return rows_end(r, true, e);
}

static bool measure_unit(SurfaceRun *s, int context, int rows, Error *e) {
    Unit u = {.run = s, .context = context};
    int found;
    if (!count_stored(s, context, rows, &found, e)) return false;
    s->found += found;
    if (found) return true;
    watch_begin(&u.watch, clock_monotonic());
    bool ok = rows ? measure_layers(&u, rows, e) : measure_grid(&u, e);
    for (int kind = PART_HEAD; ok && rows && kind < PART_KINDS; kind++)
        ok = measure_part(&u, (PartPoint){.kind = (PartKind)kind, .rows = rows, .context = context}, e);
    ok = ok && model_is_unchanged(&s->engine.weights, e) && store_surface(s->store, u.rows, (int)u.count, e);
    if (ok) s->points += (int)u.count;
    mem_free(u.rows);
    return ok;
}

bool surface_run(SurfaceRun *s, Error *e) {
    const SurfacePlan *p = &s->plan;
    bool ok = true;
    for (int i = 0; ok && i < p->contexts.count; i++) {
        ok = measure_unit(s, p->contexts.items[i], 0, e);
        for (int j = 0; ok && j < p->rows.count; j++)
            ok = p->rows.items[j] == 0 || measure_unit(s, p->contexts.items[i], p->rows.items[j], e);
    }
    line_clear(&s->line);
    return ok;
}
