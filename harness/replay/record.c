// A replay's rows in the store, by the same ledger as a run's: a set of texts is a dataset, a text a prompt
// of one turn. A replay knows no model's time: decode_ns is 0, forward_ns NULL. The host's own times are
// those of the methods here, so that steps can be priced on another machine (outpace simulate).
#include "harness/replay/replay.h"

#include "engine/base/memory.h"
#include "harness/analysis/estimates.h"
#include "harness/cli/signals.h"
#include "harness/cli/version.h"
#include "harness/run/ledger.h"

#include <assert.h>
#include <string.h>

typedef struct Recording {
    const ReplayRecord *r;
    Ledger ledger;
    int set, method; // now
} Recording;

static const ReplayTexts *set_of(const Recording *g) { return &g->r->sets[g->set]; }
static int point_of(const Recording *g, int method) { return g->set * g->r->method_count + method; }

// --- the run ---------------------------------------------------------------------------------------------

static bool hash_run(const ReplayRecord *r, char out[SHA256_TEXT], Error *e) {
    LOCAL_TEXT all = {0};
    text_printf(&all, "replay %s", r->model ? r->model : "");
    for (int i = 0; i < r->set_count; i++) text_printf(&all, "\n%s %zu", r->sets[i].sha256, r->sets[i].count);
    for (int i = 0; i < r->method_count; i++) text_printf(&all, "\n%s", r->methods[i]);
    return sha256_bytes(text_get(&all), all.length, out, e);
}

static bool add_run(Recording *g, Error *e) {
    const ReplayRecord *r = g->r;
    char hash[SHA256_TEXT];
    StoreContent contents[EXPERIMENT_DATASETS];
    bool found;
    for (int i = 0; i < r->set_count; i++)
        contents[i] = (StoreContent){.kind = "dataset", .name = r->sets[i].name, .hash = r->sets[i].sha256};
    StoreRun run = {.hash = hash,
                    .kind = "import",
                    .name = r->name,
                    .about = "a replay of given texts: no model ran, and no time is a model's",
                    .version = version_text(),
                    .contents = contents,
                    .content_count = r->set_count};
    if (!hash_run(r, hash, e) || !store_run(g->ledger.store, &run, &g->ledger.run, &found, e)) return false;
    return !found || error_input(e, "these texts and methods are in '%s' already, as run %lld", r->db,
                                 (long long)g->ledger.run);
}

// The names of prompts are unique within a set only by their numbers.
static bool add_set(Recording *g, Error *e) {
    const ReplayTexts *t = set_of(g);
    Ledger *l = &g->ledger;
    const char *model = t->model ? t->model : g->r->model;
    StoreModel m = {.name = model ? model : "unknown", .hash = "imported", .layers = 1};
    StoreDataset d = {.name = t->name, .hash = t->sha256};
    l->prompts[g->set] = mem_new(t->count, CONVERSATION_TURNS * sizeof **l->prompts);
    bool ok =
        store_model(l->store, &m, &l->models[0], e) && store_dataset(l->store, &d, &l->datasets[g->set], e);
    for (size_t i = 0; ok && i < t->count; i++) {
        const ReplayText *x = &t->texts[i];
        StorePrompt p = {l->datasets[g->set], x->number, x->turn, x->name, x->task};
        ok = store_prompt(l->store, &p, &l->prompts[g->set][i * CONVERSATION_TURNS], e);
    }
    return ok;
}

// --- a point ---------------------------------------------------------------------------------------------

// The method's parameters one by one: each value of `texts` ends with a NUL.
static StoreParam *params_of(const Method *m, Text *texts) {
    StoreParam *params = mem_new(m->info->param_count + 1, sizeof *params);
    for (size_t i = 0; i < m->info->param_count; i++) {
        arg_write(&m->info->params[i], m->values, texts);
        text_add(texts, "", 1);
    }
    const char *at = text_get(texts);
    for (size_t i = 0; i < m->info->param_count; i++, at += strlen(at) + 1)
        params[i] = (StoreParam){"method", m->info->params[i].name, at};
    return params;
}

static bool add_point(void *state, const Method *m, Error *e) {
    Recording *g = state;
    LOCAL_TEXT decoder = {0}, texts = {0};
    LOCAL_MEMORY StoreParam *params = params_of(m, &texts);
    text_printf(&decoder, "%s%s", m->info->name, m->info->param_count ? ":" : "");
    args_write(m->info->params, m->info->param_count, m->values, &decoder);
    int64_t base = g->method ? g->ledger.points[point_of(g, 0)] : 0;
    StorePoint p = {.number = point_of(g, g->method) + 1,
                    .model = g->ledger.models[0],
                    .dataset = g->ledger.datasets[g->set],
                    .method = m->info->name,
                    .label = g->r->methods[g->method],
                    .baseline = base,
                    .same_path = base,
                    .params = params,
                    .param_count = (int)m->info->param_count};
    Ledger *l = &g->ledger;
    char hash[SHA256_TEXT];
    LOCAL_TEXT all = {0};
    text_printf(&all, "%s\n%s\n%lld", set_of(g)->sha256, text_get(&decoder), (long long)l->models[0]);
    bool ok = sha256_bytes(text_get(&all), all.length, hash, e);
    p.hash = hash;
    p.decoder = text_get(&decoder);
    return ok && store_point(l->store, l->run, &p, &l->points[point_of(g, g->method)], e);
}

// No forward ran, and the loop's own time is not a decode's.
static bool add_answer(void *state, size_t text, AnswerTurn *turn, Error *e) {
    Recording *g = state;
    DecodeResult *r = &turn->result;
    for (int i = 0; i < r->steps; i++) turn->steps[i].forward_s = -1;
    r->propose_s = r->forward_s = r->verify_s = r->observe_s = 0;
    r->prefill_s = -1;
    turn->prompt.count = (size_t)set_of(g)->texts[text].prompt;
    Answer answer = {.point = point_of(g, g->method),
                     .dataset = g->set,
                     .prompt = (int)text,
                     .turns = turn,
                     .count = 1,
                     .diverged = -1};
    return ledger_add(&g->ledger, &answer, 1, NULL, e);
}

// --- all of it -------------------------------------------------------------------------------------------

static bool add_all(Recording *g, Clock clock, Replay *out, Error *e) {
    const ReplayRecord *r = g->r;
    ReplaySink sink = {add_point, add_answer, g, clock_monotonic()};
    Machine machine;
    LOCAL(environment_release) Environment on = {0};
    if (!add_run(g, e)) return false;
    machine_read(&machine);
    environment_open(&on, &machine, NULL);
    if (!store_attempt(g->ledger.store, g->ledger.run, r->argc, r->argv, &on.on, &g->ledger.attempt, e))
        return false;
    for (g->set = 0; g->set < r->set_count; g->set++) {
        if (!add_set(g, e)) return false;
        for (g->method = 0; g->method < r->method_count; g->method++)
            if (!replay_run(set_of(g), r->methods[g->method], clock, &sink, &out[point_of(g, g->method)], e))
                return error_within(e, "replay of '%s'", set_of(g)->name);
    }
    return store_attempt_end(g->ledger.store, g->ledger.attempt, "done", e) &&
           estimates_make(g->ledger.store, g->ledger.run, ESTIMATES_OF_TASKS, e);
}

bool replay_record(const ReplayRecord *r, Clock clock, Replay *out, int64_t *run, Error *e) {
    Recording g = {.r = r};
    Ledger *l = &g.ledger;
    assert(r->method_count > 0 && strcmp(r->methods[0], "autoregressive") == 0);
    if (r->set_count > EXPERIMENT_DATASETS)
        return error_input(e, "%d files are too many: %d are the most", r->set_count, EXPERIMENT_DATASETS);
    for (int i = 0; i < r->set_count * r->method_count; i++)
        if (!replay_check(&r->sets[i / r->method_count], r->methods[i % r->method_count], e)) return false;
    l->points = mem_new((size_t)r->set_count * (size_t)r->method_count, sizeof *l->points);
    l->store = store_open(r->db, STORE_WRITE, &interrupt_patience, e);
    bool ok = l->store && store_begin(l->store, e);
    ok = ok && add_all(&g, clock, out, e) && store_commit(l->store, e);
    if (!ok && l->store) store_rollback(l->store);
    *run = l->run;
    ledger_close(l);
    return ok;
}
