// Invariant: while a ledger is open, every point, prompt and dataset of its inputs has a row, and `points`,
// `prompts` and `datasets` hold the ids. Opening, also of a run that continues, writes those rows in one
// transaction.
#include "harness/run/ledger.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/cli/signals.h"
#include "harness/cli/version.h"
#include "results/row.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// --- the run ---------------------------------------------------------------------------------------------

enum { UID_DIGITS = 32 };

static bool open_run(Ledger *l, const LedgerStart *start, Error *e) {
    const Inputs *in = l->inputs;
    const Experiment *x = in->experiment;
    // The parts of a sweep have the same uid in every store, so that merging makes one run of them. Other
    // runs get a random one.
    LOCAL_MEMORY char *uid = in->sweep->shards == 1 ? NULL : mem_text(in->hash, UID_DIGITS);
    StoreContent contents[INPUT_CONTENTS];
    for (int i = 0; i < in->content_count; i++) {
        const InputContent *c = &in->contents[i];
        contents[i] = (StoreContent){.kind = c->kind, .name = c->name, .hash = c->hash, .path = c->path};
    }
    StoreRun run = {.hash = in->hash,
                    .kind = "sweep",
                    .name = x->name,
                    .about = x->about,
                    .config_file = start->config_file,
                    .config = start->config,
                    .overrides = start->overrides,
                    .uid = uid,
                    .version = version_text(),
                    .dirty = !version_is_commit(),
                    .contents = contents,
                    .content_count = in->content_count};
    bool ok = start->again && uid ? error_input(e, "--again: a part of a sweep is measured again by giving "
                                                   "another store, --db FILE")
              : start->again      ? store_run_new(l->store, &run, &l->run, e)
                                  : store_run(l->store, &run, &l->run, &l->found, e);
    return ok && store_claim(l->store, l->run, e);
}

static bool open_attempt(Ledger *l, const LedgerStart *start, Error *e) {
    LOCAL(environment_release) Environment v = {0};
    const Inputs *in = l->inputs;
    for (int i = 0; i < in->schedule->setup_count; i++)
        engine_list_gpus(in->schedule->setups[i].settings->engine.device, &l->gpus);
    for (int i = 0; i < in->experiment->model_count; i++)
        if (in->experiment->models[i].draft_device)
            engine_list_gpus(in->experiment->models[i].draft_device, &l->gpus);
    environment_open(&v, start->machine, l->gpus.length ? text_get(&l->gpus) : NULL);
    return store_attempt(l->store, l->run, start->argc, start->argv, &v.on, &l->attempt, e);
}

static bool add_reading(Ledger *l, const char *moment, const Machine *m, Error *e) {
    StoreReading r;
    row_unknown(ROW_READING, &r);
    r.at = clock_wall(), r.moment = moment, r.device = "cpu";
    r.load = m->load, r.busy_others = m->busy_others;
    StoreReading gpu;
    GaugeReading gauge;
    bool ok = store_reading(l->store, l->attempt, &r, e);
    for (int i = 0; ok && l->gpus.length && gauges_reading(text_get(&l->gpus), i, moment, &gauge, &gpu); i++)
        ok = store_reading(l->store, l->attempt, &gpu, e);
    return ok;
}

// --- models, datasets, points ----------------------------------------------------------------------------

static bool add_models(Ledger *l, Error *e) {
    const Experiment *x = l->inputs->experiment;
    for (int i = 0; i < x->model_count; i++) {
        const InputModel *m = &l->inputs->models[i];
        LOCAL_MEMORY char *shape = shape_text(&m->model, m->adapters);
        StoreModel row = {.name = x->models[i].name,
                          .hash = m->hash,
                          .path = m->files.target,
                          .shape = shape,
                          .dtype = model_dtype_name(&m->model),
                          .stand_in = m->model.stand_in[0] ? m->model.stand_in : NULL,
                          .layers = m->model.shape.layers};
        bool ok = store_model(l->store, &row, &l->models[i], e);
        if (!ok) return false;
    }
    return true;
}

static bool add_datasets(Ledger *l, Error *e) {
    const Experiment *x = l->inputs->experiment;
    for (int i = 0; i < x->dataset_count; i++) {
        const Dataset *d = &l->inputs->datasets[i];
        StoreDataset row = {
            .name = x->datasets[i].name, .hash = d->named_sha256, .path = x->datasets[i].path};
        l->prompts[i] = mem_new(d->count, CONVERSATION_TURNS * sizeof **l->prompts);
        if (!store_dataset(l->store, &row, &l->datasets[i], e)) return false;
        for (size_t k = 0; k < d->count; k++)
            for (int turn = 0; turn < d->prompts[k].turn_count; turn++) {
                StorePrompt prompt = {.dataset = l->datasets[i],
                                      .number = (int)k,
                                      .turn = turn,
                                      .name = d->prompts[k].id,
                                      .task = d->prompts[k].task};
                if (!store_prompt(l->store, &prompt, &l->prompts[i][k * CONVERSATION_TURNS + (size_t)turn],
                                  e))
                    return false;
            }
    }
    return true;
}

// Stores a point, or renames its baselines: the point that it is compared with, and the one with the same
// settings; -1: none.
static bool put_point(Ledger *l, int number, int baseline, int same_path, Error *e) {
    const Point *p = &l->inputs->schedule->points[number];
    LOCAL(point_name_release) PointName name = {0};
    point_name(l->inputs->experiment, p, &name);
    const char *rounding = inputs_rounding(l->inputs, p->model, &p->settings);
    if (rounding) name.params[name.param_count++] = (StoreParam){"hardware", "weights_rounded", rounding};
    StorePoint row = {.number = p->number + 1,
                      .hash = p->hash,
                      .model = l->models[p->model],
                      .dataset = l->datasets[p->dataset],
                      .method = name.method,
                      .decoder = p->decoder,
                      .label = text_get(&name.label),
                      .skipped = inputs_refusal(l->inputs, number),
                      .temperature = p->settings.temperature,
                      .baseline = baseline < 0 ? 0 : l->points[baseline],
                      .same_path = same_path < 0 ? 0 : l->points[same_path],
                      .params = name.params,
                      .param_count = name.param_count};
    return store_point(l->store, l->run, &row, &l->points[number], e);
}

static bool add_all(Ledger *l, const LedgerStart *start, Error *e) {
    const Schedule *s = l->inputs->schedule;
    if (!open_run(l, start, e) || !open_attempt(l, start, e) ||
        !add_reading(l, "before", start->machine, e) || !add_models(l, e) || !add_datasets(l, e))
        return false;
    for (const Group *g = s->groups; g < s->groups + s->group_count; g++) {
        int base = s->members[g->baseline];
        if (!put_point(l, base, -1, -1, e)) return false; // first: the others refer to it
        for (int i = g->first; i < g->first + g->count; i++)
            if (i != g->baseline && !put_point(l, s->members[i], base, base, e)) return false;
    }
    return true;
}

static void ledger_check(const Ledger *l) {
    assert(l->store && l->run > 0 && l->attempt > 0);
    for (int i = 0; i < l->inputs->schedule->point_count; i++) assert(l->points[i] > 0);
    for (int i = 0; i < l->inputs->experiment->model_count; i++) assert(l->models[i] > 0);
    for (int i = 0; i < l->inputs->experiment->dataset_count; i++)
        assert(l->datasets[i] > 0 && l->prompts[i]);
}

bool ledger_open(Ledger *l, const Inputs *in, const LedgerStart *start, Error *e) {
    *l = (Ledger){.inputs = in, .record = start->record};
    l->points = mem_new((size_t)in->schedule->point_count, sizeof *l->points);
    l->store = store_open(start->store, STORE_WRITE, &interrupt_patience, e);
    if (l->store && store_begin(l->store, e) && add_all(l, start, e) && store_commit(l->store, e)) {
        ledger_check(l);
        return true;
    }
    ledger_close(l);
    return false;
}

bool ledger_end(Ledger *l, const char *result, Error *e) {
    Machine now;
    machine_read(&now);
    return add_reading(l, "after", &now, e) && store_attempt_end(l->store, l->attempt, result, e);
}

bool ledger_end_early(Ledger *l, const Error *why) {
    Error ignored = {0};
    ledger_end(l, why->kind == ERROR_INTERRUPTED ? "interrupted" : "failed", &ignored);
    return false;
}

void ledger_close(Ledger *l) {
    for (int i = 0; i < EXPERIMENT_DATASETS; i++) mem_free(l->prompts[i]);
    mem_free(l->points);
    text_release(&l->gpus);
    store_close(l->store);
    *l = (Ledger){0};
}

// --- failures, one-off costs, outliers ------------------------------------------------------------------

bool ledger_failure(Ledger *l, int point, const char *message, Error *e) {
    return store_failure(l->store, l->attempt, l->points[point], 0, -1, message, e);
}

bool ledger_one_off(Ledger *l, int point, const char *name, double seconds, size_t bytes, Error *e) {
    return store_one_off(l->store, l->points[point], name, seconds, (int64_t)bytes, e);
}

bool ledger_flag(Ledger *l, const LedgerRepeat *list, size_t count, int flags, Error *e) {
    bool ok = true;
    if (count == 0) return true;
    if (!store_begin(l->store, e)) return false;
    for (const LedgerRepeat *o = list; ok && o < list + count; o++) {
        assert(l->prompts[o->dataset]);
        const int64_t *turns = l->prompts[o->dataset] + (size_t)o->prompt * CONVERSATION_TURNS;
        for (int i = 0; ok && i < CONVERSATION_TURNS && turns[i]; i++)
            ok = store_flag(l->store, l->points[o->point], o->pass, turns[i], flags, e);
    }
    ok = ok && store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    return ok;
}

// --- baselines --------------------------------------------------------------------------------------------

static const Point *baseline_of(const Schedule *s, const Group *g) {
    return &s->points[s->members[g->baseline]];
}

static bool same_batch(const Point *p, const Point *q) {
    return options_batch(&p->settings.engine) == options_batch(&q->settings.engine);
}

// Whether two baselines ask for the same output. Threads, math, batch and the location of weights may differ.
static bool same_output(const Point *p, const Point *q) {
    const EngineOptions *x = &p->settings.engine, *y = &q->settings.engine;
    return p->model == q->model && p->dataset == q->dataset && strcmp(x->device, y->device) == 0 &&
           x->compute == y->compute && x->no_window == y->no_window && x->attention == y->attention &&
           schedule_same_output(&p->settings, &q->settings);
}

// Whether the texts must be equal. Fast sums depend on a row's neighbours, so there batches must be equal,
// too.
static bool same_text(const Point *p, const Point *q) {
    return p->settings.engine.math == q->settings.engine.math && same_output(p, q) &&
           (p->settings.engine.math == MATH_EXACT || same_batch(p, q));
}

EMBED(ledger_sql, "harness/run/ledger.sql")

// Whether the run went on another machine than it began on, as a part of a sweep may.
static bool read_moved(Ledger *l, bool *out, Error *e) {
    int64_t machines;
    bool ok = rows_named_int(l->store, ledger_sql, "machines", l->run, &machines, e);
    *out = ok && machines > 1;
    return ok;
}

bool ledger_choose_baselines(Ledger *l, Error *e) {
    const Schedule *s = l->inputs->schedule;
    bool moved, ok = read_moved(l, &moved, e);
    if (!ok || moved) return ok; // another group's baseline may have run elsewhere
    LOCAL_MEMORY double *paces = mem_new((size_t)s->group_count, sizeof *paces);
    for (int i = 0; ok && i < s->group_count; i++) { // seconds per token over all samples
        int64_t point = l->points[s->members[s->groups[i].baseline]];
        Rows *r = rows_named(l->store, ledger_sql, "pace", point, e);
        bool any = rows_next(r) && rows_real(r, 1) > 0;
        paces[i] = any ? rows_real(r, 0) / rows_real(r, 1) : INFINITY;
        ok = rows_end(r, true, e);
    }
    ok = ok && store_begin(l->store, e);
    for (int own_group = 0; ok && own_group < s->group_count; own_group++) {
        const Group *g = &s->groups[own_group];
        const Point *p = baseline_of(s, g);
        int best = own_group, own = s->members[g->baseline];
        for (int i = 0; i < s->group_count; i++) {
            const Point *q = baseline_of(s, &s->groups[i]);
            bool same = g->warm == s->groups[i].warm && same_batch(p, q) && same_output(p, q);
            if (same && paces[i] < paces[best]) best = i;
        }
        int fastest = s->members[s->groups[best].baseline];
        for (int i = g->first; ok && fastest != own && i < g->first + g->count; i++) // else as it was opened
            ok = put_point(l, s->members[i], fastest, s->members[i] == own ? -1 : own, e);
    }
    ok = ok && store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    ledger_check(l);
    return ok;
}

bool ledger_strays(Ledger *l, LedgerRepeat **list, size_t *count, Error *e) {
    const Schedule *s = l->inputs->schedule;
    size_t capacity = 0;
    bool moved, ok = read_moved(l, &moved, e);
    *list = NULL;
    *count = 0;
    for (int i = 0; ok && !moved && i < s->group_count; i++) {
        const Point *own = baseline_of(s, &s->groups[i]);
        int first = 0;
        if (own->settings.temperature > 0) continue;
        while (!same_text(own, baseline_of(s, &s->groups[first]))) first++;
        // Its outputs that differ from the first one of that baseline for their prompt.
        int point = s->members[s->groups[i].baseline];
        Rows *r = rows_named(l->store, ledger_sql, "strays", l->points[point], e);
        rows_bind_int(r, 2, l->points[s->members[s->groups[first].baseline]]);
        while (rows_next(r)) {
            mem_grow(list, &capacity, *count + 1, sizeof **list);
            (*list)[(*count)++] =
                (LedgerRepeat){point, (int)rows_int(r, 0), own->dataset, (int)rows_int(r, 1)};
        }
        ok = rows_end(r, true, e);
    }
    return ok;
}

// --- reading back ----------------------------------------------------------------------------------------

Rows *ledger_samples(Store *store, int64_t run, Error *e) {
    return rows_named(store, ledger_sql, "samples", run, e);
}

bool ledger_sample(Rows *r, LedgerSample *out) {
    if (!rows_next(r)) return false;
    *out = (LedgerSample){.point = (int)rows_int(r, 0) - 1,
                          .pass = (int)rows_int(r, 1),
                          .prompt = (int)rows_int(r, 2),
                          .turn = (int)rows_int(r, 3),
                          .flags = (int)rows_int(r, 4),
                          .tokens = rows_real(r, 5),
                          .steps = rows_real(r, 6),
                          .decode_s = 1e-9 * rows_real(r, 7),
                          .diverged = rows_int(r, 8) != 0};
    return true;
}

Rows *ledger_failures(Store *store, int64_t run, Error *e) {
    return rows_named(store, ledger_sql, "failures", run, e);
}
