#include "harness/run/ledger.h"

#include "engine/base/memory.h"
#include "harness/machine/environment.h"
#include "harness/machine/gauges.h"
#include "harness/config/point_name.h"
#include "harness/program/interrupt.h"
#include "harness/program/shape_text.h"
#include "harness/program/version.h"
#include "results/rows.h"

#include <math.h>
#include <string.h>

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for a run's record"); }

// --- the run ---------------------------------------------------------------------------------------------

static bool open_run(Ledger *l, const LedgerStart *start, Error *e) {
    const Inputs *in = l->inputs;
    const Experiment *x = in->experiment;
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
                    .version = version_text(),
                    .dirty = strstr(version_text(), "-dirty") != NULL,
                    .contents = contents,
                    .content_count = in->content_count};
    return (start->again ? store_run_new(l->store, &run, &l->run, e)
                         : store_run(l->store, &run, &l->run, &l->found, e)) &&
           store_claim(l->store, l->run, e);
}

// The GPUs that points run on.
static void list_gpus(const Inputs *in, Text *list) {
    for (int i = 0; i < in->schedule->setup_count; i++)
        engine_list_gpus(in->schedule->setups[i].settings->device, list);
    for (int i = 0; i < in->experiment->model_count; i++)
        if (in->experiment->models[i].draft_device)
            engine_list_gpus(in->experiment->models[i].draft_device, list);
}

static bool open_attempt(Ledger *l, const LedgerStart *start, Error *e) {
    Environment v;
    list_gpus(l->inputs, &l->gpus);
    if (!environment_open(&v, start->machine, l->gpus.length ? text_get(&l->gpus) : NULL, e)) return false;
    bool ok = store_attempt(l->store, l->run, start->argc, start->argv, &v.on, &l->attempt, e);
    environment_release(&v);
    return ok;
}

static bool add_reading(Ledger *l, const char *moment, const Machine *m, Error *e) {
    StoreReading r = {.at = clock_wall(),
                      .moment = moment,
                      .device = "cpu",
                      .clock_mhz = NAN,
                      .memory_clock_mhz = NAN,
                      .power_w = NAN,
                      .temperature_c = NAN,
                      .load = m->load,
                      .busy_others = m->busy_others};
    StoreReading gpu;
    GaugeReading gauge;
    bool ok = store_reading(l->store, l->attempt, &r, e);
    for (int i = 0; ok && l->gpus.length && gauges_reading(text_get(&l->gpus), i, moment, &gauge, &gpu); i++)
        ok = store_reading(l->store, l->attempt, &gpu, e);
    return ok;
}

// --- what it measures ------------------------------------------------------------------------------------

static bool add_models(Ledger *l, Error *e) {
    const Experiment *x = l->inputs->experiment;
    for (int i = 0; i < x->model_count; i++) {
        const InputModel *m = &l->inputs->models[i];
        char *shape = shape_text(&m->model.shape, &m->adapter, &m->heads);
        StoreModel row = {.name = x->models[i].name,
                          .hash = m->hash,
                          .path = m->files.target,
                          .shape = shape,
                          .dtype = dtype_name(m->model.dtype),
                          .stand_in = m->model.stand_in[0] ? m->model.stand_in : NULL,
                          .layers = m->model.shape.layers};
        bool ok = store_model(l->store, &row, &l->models[i], e);
        mem_free(shape);
        if (!ok) return false;
    }
    return true;
}

static bool add_prompt(Ledger *l, int64_t dataset, const DatasetPrompt *p, int number, int64_t *ids,
                       Error *e) {
    for (int turn = 0; turn < p->turn_count; turn++) {
        StorePrompt row = {
            .dataset = dataset, .number = number, .turn = turn, .name = p->id, .task = p->task};
        if (!store_prompt(l->store, &row, &ids[turn], e)) return false;
    }
    return true;
}

static bool add_datasets(Ledger *l, Error *e) {
    const Experiment *x = l->inputs->experiment;
    for (int i = 0; i < x->dataset_count; i++) {
        const Dataset *d = &l->inputs->datasets[i];
        StoreDataset row = {
            .name = x->datasets[i].name, .hash = d->named_sha256, .path = x->datasets[i].path};
        size_t cells;
        if (!size_mul(d->count, CONVERSATION_TURNS, &cells)) return out_of_memory(e);
        l->prompts[i] = mem_alloc(cells, sizeof **l->prompts);
        if (!l->prompts[i]) return out_of_memory(e);
        if (!store_dataset(l->store, &row, &l->datasets[i], e)) return false;
        for (size_t k = 0; k < d->count; k++)
            if (!add_prompt(l, l->datasets[i], &d->prompts[k], (int)k, l->prompts[i] + k * CONVERSATION_TURNS,
                            e))
                return false;
    }
    return true;
}

static int64_t id_of(const Ledger *l, int point) { return point < 0 ? 0 : l->points[point]; }

bool ledger_baseline(Ledger *l, int number, int baseline, int same_path, Error *e) {
    const Point *p = &l->inputs->schedule->points[number];
    PointName name;
    if (!point_name(l->inputs->experiment, p, &name)) return false;
    const char *rounding = inputs_rounding(l->inputs, p->model, &p->settings);
    if (rounding) name.params[name.param_count++] = (StoreParam){"hardware", "weights_rounded", rounding};
    StorePoint row = {.number = number + 1,
                      .hash = p->hash,
                      .model = l->models[p->model],
                      .dataset = l->datasets[p->dataset],
                      .method = name.method,
                      .decoder = p->decoder,
                      .label = text_get(&name.label),
                      .skipped = inputs_refusal(l->inputs, number),
                      .temperature = p->settings.temperature,
                      .baseline = id_of(l, baseline),
                      .same_path = id_of(l, same_path),
                      .params = name.params,
                      .param_count = name.param_count};
    bool ok = store_point(l->store, l->run, &row, &l->points[number], e);
    point_name_release(&name);
    return ok;
}

// A group's baseline first: the others name it.
static bool add_group(Ledger *l, const Group *g, Error *e) {
    const Schedule *s = l->inputs->schedule;
    int base = s->members[g->baseline];
    if (!ledger_baseline(l, base, -1, -1, e)) return false;
    for (int i = g->first; i < g->first + g->count; i++)
        if (i != g->baseline && !ledger_baseline(l, s->members[i], base, base, e)) return false;
    return true;
}

static bool add_all(Ledger *l, const LedgerStart *start, Error *e) {
    const Schedule *s = l->inputs->schedule;
    if (!open_run(l, start, e) || !open_attempt(l, start, e) ||
        !add_reading(l, "before", start->machine, e) || !add_models(l, e) || !add_datasets(l, e))
        return false;
    for (int i = 0; i < s->group_count; i++)
        if (!add_group(l, &s->groups[i], e)) return false;
    return true;
}

bool ledger_open(Ledger *l, const Inputs *in, const LedgerStart *start, Error *e) {
    *l = (Ledger){.inputs = in};
    l->points = mem_alloc((size_t)in->schedule->point_count, sizeof *l->points);
    if (!l->points) return out_of_memory(e);
    l->store = store_open(start->store, STORE_WRITE, &interrupt_patience, e);
    if (l->store && store_begin(l->store, e) && add_all(l, start, e) && store_commit(l->store, e))
        return true;
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

// --- what goes wrong, what it cost once ------------------------------------------------------------------

bool ledger_failure(Ledger *l, int point, const char *message, Error *e) {
    return store_failure(l->store, l->attempt, l->points[point], 0, -1, message, e);
}

bool ledger_one_off(Ledger *l, int point, double seconds, Error *e) {
    return store_one_off(l->store, l->points[point], "open", seconds, 0, e);
}

static bool flag_outlier(Ledger *l, const LedgerOutlier *o, Error *e) {
    const int64_t *turns = l->prompts[o->dataset] + (size_t)o->prompt * CONVERSATION_TURNS;
    for (int i = 0; i < CONVERSATION_TURNS && turns[i]; i++)
        if (!store_flag(l->store, l->points[o->point], o->pass, turns[i], FLAG_OUTLIER, e)) return false;
    return true;
}

bool ledger_outliers(Ledger *l, const LedgerOutlier *list, size_t count, Error *e) {
    bool ok = true;
    if (count == 0) return true;
    if (!store_begin(l->store, e)) return false;
    for (size_t i = 0; ok && i < count; i++) ok = flag_outlier(l, &list[i], e);
    ok = ok && store_commit(l->store, e);
    if (!ok) store_rollback(l->store);
    return ok;
}

// --- reading back ----------------------------------------------------------------------------------------

bool ledger_samples(Store *store, int64_t run, bool (*take)(void *state, const LedgerSample *s, Error *e),
                    void *state, Error *e) {
    static const char SQL[] =
        "SELECT point.number, pass, prompt.number, turn, flags, tokens, steps, prefill_ns, decode_ns,"
        " EXISTS (SELECT 1 FROM divergence WHERE sample_id = sample.id)"
        " FROM point JOIN sample ON point_id = point.id JOIN prompt ON prompt_id = prompt.id"
        " WHERE run_id = ?1 ORDER BY 1, 2, 3, 4";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    bool ok = true;
    rows_bind_int(r, 1, run);
    while (ok && rows_next(r)) {
        LedgerSample s = {.point = (int)rows_int(r, 0) - 1,
                          .pass = (int)rows_int(r, 1),
                          .prompt = (int)rows_int(r, 2),
                          .turn = (int)rows_int(r, 3),
                          .flags = (int)rows_int(r, 4),
                          .tokens = rows_real(r, 5),
                          .steps = rows_real(r, 6),
                          .prefill_s = 1e-9 * rows_real(r, 7),
                          .decode_s = 1e-9 * rows_real(r, 8),
                          .diverged = rows_int(r, 9) != 0};
        ok = take(state, &s, e);
    }
    return rows_end(r, ok, e);
}

bool ledger_failures(Store *store, int64_t run, bool (*take)(void *state, int point, const char *why),
                     void *state, Error *e) {
    static const char SQL[] =
        "SELECT point.number, message FROM failure AS f JOIN point ON point.id = f.point_id"
        " WHERE run_id = ?1 AND NOT EXISTS (SELECT 1 FROM sample AS s"
        " WHERE s.point_id = f.point_id AND s.attempt_id > f.attempt_id) ORDER BY f.id";
    Rows *r = rows_open(store, SQL, e);
    if (!r) return false;
    rows_bind_int(r, 1, run);
    while (rows_next(r))
        if (!take(state, (int)rows_int(r, 0) - 1, rows_text(r, 1))) break;
    return rows_end(r, true, e);
}
