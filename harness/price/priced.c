// See priced.h. A price is computed from recorded passes and a machine; it is never called measured.
#include "harness/price/priced.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "engine/model/config.h"
#include "harness/cli/version.h"
#include "results/row.h"
#include "results/rows.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

EMBED(priced_sql, "harness/price/priced.sql")

// --- recorded steps -----------------------------------------------------------------------------------

typedef struct Reading {
    const Pricing *pricing;
    PricedPoint *out;
    double draft_layers;
    StepModel adapter;
    int states;        // of the target, that its fc reads
    int filled_layers; // whose keys and values of the context come with fc: all of a block's
} Reading;

static bool read_samples(Store *store, int64_t point, const Reading *g, Error *e) {
    PricedPoint *out = g->out;
    size_t capacity = 0;
    Rows *r = rows_named(store, priced_sql, "samples", point, e);
    while (rows_next(r)) {
        PricedSample *s = LIST_ADD(out->samples, out->count, capacity);
        *s = (PricedSample){.prompt = (int)rows_int(r, 0),
                            .pass = (int)rows_int(r, 1),
                            .tokens = rows_real(r, 2),
                            .steps = rows_real(r, 3)};
        s->commit_s = recorded_commit(&g->pricing->machine, &g->pricing->target, s->tokens, s->steps);
    }
    return rows_end(r, true, e);
}

// The median step is used for all: the host's times are microseconds, and one interrupt is thousands of them.
static bool read_host(Store *store, int64_t point, PricedPoint *out, Error *e) {
    LOCAL_MEMORY double *host = NULL;
    size_t count = 0, capacity = 0;
    int64_t proposes = 0;
    if (!rows_named_int(store, priced_sql, "proposes", point, &proposes, e)) return false;
    Rows *r = rows_named(store, priced_sql, "host", point, e);
    while (rows_next(r)) {
        *LIST_ADD(host, count, capacity) = 1e-9 * (rows_real(r, 0) + (proposes ? 0 : rows_real(r, 1)));
    }
    double middle = count ? median(host, count) : 0;
    for (int i = 0; i < out->count; i++) out->samples[i].host_s = middle * out->samples[i].steps;
    return rows_end(r, true, e);
}

static PricedSample *find(const PricedPoint *p, int prompt, int pass) {
    PricedSample key = {.prompt = prompt, .pass = pass};
    return p->count ? bsearch(&key, p->samples, (size_t)p->count, sizeof key, sample_order) : NULL;
}

// That of the row's prompt and pass. Samples may come in while this is read.
static PricedSample *sample_of(const PricedPoint *p, const Rows *r, Error *e) {
    PricedSample *s = find(p, (int)rows_int(r, 0), (int)rows_int(r, 1));
    if (!s)
        error_input(e, "prompt %lld has steps but no sample: is the run still going on?",
                    (long long)rows_int(r, 0));
    return s;
}

static bool read_prefills(Store *store, int64_t point, const Reading *g, Error *e) {
    const Pricing *p = g->pricing;
    bool ok = true;
    Rows *r = rows_named(store, priced_sql, "prefills", point, e);
    while (ok && rows_next(r)) {
        PricedSample *s = sample_of(g->out, r, e);
        if ((ok = s)) s->prefill_s += recorded_prefill(&p->machine, &p->target, (int)rows_int(r, 2) - 1);
    }
    return rows_end(r, ok, e);
}

// An adapter's layers never have experts, nor codes; its head is the target's. EAGLE's are whole layers with
// more in front of them; its third version's head keeps its share of the vocabulary. DFlash's are whole, too.
static bool read_adapter(Store *store, int64_t point, Reading *g, Error *e) {
    StepModel *m = &g->adapter;
    *m = g->pricing->target;
    m->experts = (StepExperts){0};
    if (m->plain_bytes > 0) m->weight_bytes = m->plain_bytes;
    m->mlp_width = 0;
    Rows *r = rows_named(store, priced_sql, "adapter", point, e);
    while (rows_next(r)) {
        const char *kind = rows_text(r, 0);
        bool block = strcmp(kind, "dflash") == 0;
        if (!block && strncmp(kind, "eagle", 5) != 0 && strcmp(kind, "mtp") != 0) continue;
        m->mlp_width = g->pricing->target.mlp_width;
        m->vocab = (int)(rows_real(r, 1) * m->vocab);
        if (strcmp(kind, "eagle3") == 0) {
            m->attention_width = 2 * m->width;
            m->head_bytes = 0; // its own, not the target's
        } else if (!block) m->fc_width = 2 * m->width;
        g->states = (int)rows_int(r, 2);
        g->filled_layers = block ? (int)rows_int(r, 3) : 0;
    }
    return rows_end(r, true, e);
}

enum { TARGET, DRAFT_MODEL, ADAPTER }; // as table pass_model has them

// fc on the target's states, and a block's keys and values of its output.
static double price_fc(const Reading *g, int rows) {
    const Hardware *h = &g->pricing->machine;
    const StepModel *m = &g->adapter;
    return hardware_product(h, rows, g->states * m->width, m->width, m->weight_bytes) +
           g->filled_layers * hardware_product(h, rows, m->width, 2 * m->kv_width, m->weight_bytes);
}

static void add_pass(const Reading *g, const Rows *r, PricedSample *s) {
    const Pricing *p = g->pricing;
    int model = (int)rows_int(r, 2), n = p->batch;
    double a = rows_real(r, 3), b = rows_real(r, 4);
    RecordedPass pass = {.head = a == b,
                         .rows = (int)rows_int(r, 5),
                         .context = (int)rows_int(r, 6),
                         .sequences = n,
                         .count = rows_real(r, 7)};
    if (pass.rows < 1) return;
    if (pass.rows * n > g->out->most_rows) g->out->most_rows = pass.rows * n;
    const StepModel *m = model == DRAFT_MODEL ? &p->draft : model == ADAPTER ? &g->adapter : &p->target;
    if (!pass.head) // layers keep their share of the model
        pass.layers = model == ADAPTER
                          ? b - a
                          : (b - a) / (model == TARGET ? rows_real(r, 8) : g->draft_layers) * m->layers;
    s->passes_s += model == ADAPTER && b == 0 ? pass.count / n * price_fc(g, n * pass.rows)
                                              : recorded_price(&p->machine, m, &pass);
    if (model == TARGET && !pass.head) s->runs += pass.count;
}

// Steps of other engines may lack their passes: then there is no price.
static bool read_passes(Store *store, int64_t point, const Reading *g, Error *e) {
    bool ok = true;
    Rows *r = rows_named(store, priced_sql, "passes", point, e);
    while (ok && rows_next(r)) {
        PricedSample *s = sample_of(g->out, r, e);
        if ((ok = s)) add_pass(g, r, s);
    }
    for (PricedSample *s = g->out->samples; s < g->out->samples + g->out->count; s++)
        if (s->runs < s->steps) s->passes_s = NAN;
    return rows_end(r, ok, e);
}

bool priced_as_run(Store *store, int64_t point, const Pricing *p, Pricing *out, Error *e) {
    int64_t plain = 0, batch = 0;
    *out = *p;
    if (!rows_named_int(store, priced_sql, "plain", point, &plain, e) ||
        !rows_named_int(store, priced_sql, "batch", point, &batch, e))
        return false;
    out->target.plain = out->draft.plain = plain != 0;
    if (!out->batch) out->batch = batch > 1 ? (int)batch : 1;
    return true;
}

bool priced_point(Store *store, int64_t point, const Pricing *p, PricedPoint *out, Error *e) {
    Pricing own;
    Reading g = {.pricing = &own, .out = out};
    int64_t draft = 0;
    *out = (PricedPoint){0};
    if (!priced_as_run(store, point, p, &own, e) ||
        !rows_named_int(store, priced_sql, "draft", point, &draft, e))
        return false;
    g.draft_layers = (double)draft;
    out->needs_draft = draft > 0 && !p->has_draft;
    return out->needs_draft || (read_adapter(store, point, &g, e) && read_samples(store, point, &g, e) &&
                                read_prefills(store, point, &g, e) && read_passes(store, point, &g, e) &&
                                read_host(store, point, out, e));
}

void priced_release(PricedPoint *p) {
    mem_free(p->samples);
    *p = (PricedPoint){0};
}

// --- sums ------------------------------------------------------------------------------------

static double decode_s(const PricedSample *s) { return s->passes_s + s->commit_s + s->host_s; }

void priced_tally(const PricedPoint *point, const PricedPoint *baseline, Tally *out) {
    LOCAL_MEMORY TallyPair *pairs = mem_new((size_t)point->count + 1, sizeof *pairs);
    int count = 0;
    for (int i = 0; i < point->count; i++) {
        const PricedSample *s = &point->samples[i], *b = baseline ? find(baseline, s->prompt, s->pass) : NULL;
        if (baseline && !b) continue;
        pairs[count++] = (TallyPair){.prompt = s->prompt,
                                     .pass = s->pass,
                                     .tokens = s->tokens,
                                     .steps = s->steps,
                                     .decode_s = decode_s(s),
                                     .prefill_s = s->prefill_s,
                                     .base_tokens = b ? b->tokens : NAN,
                                     .base_decode_s = b ? decode_s(b) : NAN,
                                     .base_prefill_s = b ? b->prefill_s : NAN};
    }
    tally(pairs, count, false, out);
}

double priced_step(const PricedPoint *point) {
    double seconds = 0, steps = 0;
    for (int i = 0; i < point->count; i++) {
        seconds += decode_s(&point->samples[i]);
        steps += point->samples[i].steps;
    }
    return steps > 0 ? seconds / steps : 0;
}

// --- the model of a step

enum { MOST_BYTES = 1 << 20 };

// weight_bytes: of one number. The cache holds 16-bit numbers on every backend.
static StepModel step_model(const Shape *s, double weight_bytes) {
    const Experts *x = &s->experts;
    return (StepModel){.layers = s->layers,
                       .width = s->width,
                       .q_width = shape_q_width(s),
                       .kv_width = shape_kv_width(s),
                       .mlp_width = s->mlp_width,
                       .vocab = s->vocab,
                       .heads = s->heads,
                       .window = s->window,
                       .local_window = s->local_window,
                       .local_share = (double)layers_in(&s->local, s->layers) / s->layers,
                       .ungated = s->ungated,
                       .experts = {.count = x->count,
                                   .chosen = x->chosen,
                                   .width = x->width,
                                   .shared = x->shared_width,
                                   .share = (double)layers_in(&s->sparse, s->layers) / s->layers},
                       .weight_bytes = weight_bytes,
                       .cache_bytes = 2,
                       .score_bytes = (double)SCORE_BYTES * s->heads};
}

StepModel step_model_of(const Model *m) {
    StepModel out = step_model(&m->shape, (double)dtype_size(m->dtype));
    if (m->bits) step_model_code(&out, m->bits, m->group);
    return out;
}

bool step_model_open(const char *name, StepModel *out, Error *e) {
    Model m = {0};
    LOCAL_MEMORY char *data = NULL, *path = shape_file(name, e);
    size_t size;
    bool ok = path && file_read(path, MOST_BYTES, &data, &size, e) && config_parse(&m, data, size, path, e);
    if (ok) *out = step_model(&m.shape, 2);
    return ok;
}

bool machine_open(const char *name, Hardware *out, Error *e) {
    LOCAL_MEMORY char *path = shipped_named("hardware", "machine", name, e);
    return path && hardware_open(path, out, e);
}

void priced_reads(Output *out, const char *machine, const char *shape) {
    char *paths[] = {machine ? shipped_named("hardware", "machine", machine, NULL) : NULL,
                     shape ? shape_file(shape, NULL) : NULL};
    for (int i = 0; i < 2; i++) {
        output_reads(out, paths[i]);
        mem_free(paths[i]);
    }
}

// --- a surface priced on a machine

// Grids end with 0. Trees are those of N-Grammys' Figure 1, with its contexts.
static const int CHAIN_ROWS[] = {1, 8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 0};
static const int CHAIN_CONTEXTS[] = {25, 100, 250, 500, 700, 900, 2000, 4000, 0};
static const int TREE_K[] = {1, 2, 4, 8, 12, 16, 25, 32, 0};
static const int TREE_W[] = {1, 2, 3, 5, 7, 10, 15, 0};
static const int TREE_CONTEXTS[] = {25, 100, 500, 0};

typedef struct Grid {
    Hardware machine;
    StepModel model;
    int sequences;
    Store *store;
    StoreSurface row; // what all rows have alike
} Grid;

bool priced_lists(const char *batch, const char *bits, int fallback, IntList *batches, IntList *widths,
                  Error *e) {
    *batches = (IntList){{fallback}, 1};
    *widths = (IntList){{16}, 1};
    if ((batch && !int_list_parse(batch, "--batch", 1, PRICED_BATCH_MAX, batches, e)) ||
        (bits && !int_list_parse(bits, "--bits", 4, 16, widths, e)))
        return false;
    for (int i = 0; i < widths->count; i++)
        if (widths->items[i] != 16 && widths->items[i] != 8 && widths->items[i] != 4)
            return error_input(e, "--bits has %d, must be 16, 8 or 4", widths->items[i]);
    return true;
}

static double price(const Grid *g, StepPlan step) {
    return hardware_price(&g->machine, &g->model, &step).total;
}

static bool add_step(Grid *g, int k, int w, StepPlan one, Error *e) {
    StepPlan step = step_shared(one, g->sequences);
    StoreSurface *row = &g->row;
    row->k = k, row->w = w;
    row->sequences = g->sequences;
    row->rows = row->head_rows = step.rows;
    row->context = step.context;
    row->mean_s = row->median_s = price(g, step);
    row->slowdown = row->median_s / price(g, step_chain(1, step.context));
    return store_surface(g->store, row, 1, e);
}

static bool add_steps(Grid *g, bool chains, Error *e) {
    g->row.layout = chains ? "chain" : "tree";
    for (const int *context = chains ? CHAIN_CONTEXTS : TREE_CONTEXTS; *context; context++) {
        for (const int *rows = CHAIN_ROWS; chains && *rows; rows++)
            if (!add_step(g, 1, *rows - 1, step_chain(*rows, *context), e)) return false;
        for (const int *k = TREE_K; !chains && *k; k++)
            for (const int *w = TREE_W; *w; w++)
                if (!add_step(g, *k, *w, step_tree(*k, *w, *context), e)) return false;
    }
    return true;
}

static bool add_run(Grid *g, const char *on, int64_t *run, Error *e) {
    StoreRun r = {.hash = "", .kind = "surface", .name = on, .version = version_text()};
    StoreEnvironment environment = {.version = version_text(), .gpu = g->machine.name};
    row_unknown(ROW_SURFACE, &g->row);
    g->row.kind = "step";
    g->row.device = on;
    g->row.cache = "viewed";
    g->row.a = 0, g->row.b = g->model.layers;
    g->row.samples = 1;
    return store_run(g->store, &r, run, NULL, e) &&
           store_attempt(g->store, *run, 0, NULL, &environment, &g->row.attempt, e) &&
           store_attempt_end(g->store, g->row.attempt, "done", e);
}

// The figure's steps for each width of weights and each batch.
static bool add_grids(Grid *g, const Figure *f, const char *shape, const IntList *batches,
                      const IntList *widths, Error *e) {
    const StepModel plain = g->model;
    for (int i = 0; i < widths->count; i++) {
        g->model = plain;
        step_model_code(&g->model, widths->items[i], CODE_GROUP);
        // The model's name, in every panel's title, marks it as not measured.
        char name[256], own[32] = "";
        if (widths->items[i] < 16) snprintf(own, sizeof own, " Q%d", widths->items[i]);
        snprintf(name, sizeof name, "%s%s, priced", shape, own);
        StoreModel m = {.name = name, .hash = own, .layers = plain.layers};
        if (!store_model(g->store, &m, &g->row.model, e)) return false;
        for (int k = 0; k < batches->count; k++) {
            g->sequences = batches->items[k];
            if (!add_steps(g, f->priced == PRICED_CHAINS, e)) return false;
        }
    }
    return true;
}

bool priced_surface(const Figure *f, const PricedAsk *ask, PricedSurface *out, Text *notes, Error *e) {
    Grid g = {0};
    IntList batches, widths;
    *out = (PricedSurface){0};
    if (!priced_lists(ask->batch, ask->bits, 1, &batches, &widths, e) ||
        !machine_open(ask->on, &g.machine, e) || !step_model_open(ask->shape, &g.model, e))
        return false;
    snprintf(out->title, sizeof out->title, "Priced, not measured: %s", f->summary);
    json_t *o = json_pack("{s:{s:s, s:s, s:b, s:i}}", "prediction", "machine", g.machine.name, "shape",
                          ask->shape, "surface", 1, "most_rows", g.machine.most_rows);
    json_append(o, 0, notes);
    g.store = out->store = store_open(ask->on, STORE_TRIAL, NULL, e);
    return g.store && store_begin(g.store, e) && add_run(&g, ask->on, &out->run, e) &&
           add_grids(&g, f, ask->shape, &batches, &widths, e) && store_commit(g.store, e);
}
