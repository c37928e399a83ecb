// The time that a plan takes: tokens and rows, counted, times the price of a step.
#include "harness/run/cost.h"

#include "engine/base/memory.h"
#include "engine/base/shipped.h"
#include "harness/run/run.h"
#include "results/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double HOST_RATE = 2e9;   // operations a second, of a table that the host makes: assumed
static const double WIDE_SHARE = 0.65; // of the machine's peak, reached by a step of many rows: assumed

static Compute cost_compute(const Setup *s, const InputModel *m) {
    return compute_choose(s->settings->engine.compute, m->model.dtype);
}

double cost_weights(const Plan *p, int setup) {
    return (double)p->inputs.models[p->schedule.setups[setup].model].bytes;
}

double cost_cache(const Plan *p, int setup) {
    const Setup *s = &p->schedule.setups[setup];
    const InputModel *m = &p->inputs.models[s->model];
    const Shape *shape = &m->model.shape;
    size_t width = dtype_size(compute_dtype(cost_compute(s, m)));
    return 2.0 * shape->layers * (double)shape_kv_width(shape) * (double)width * p->inputs.positions[setup];
}

// --- the rest ----------------------------------------------------------------------------------------------

// Methods of a group that take part, how often they run a prompt, and the time that a token takes them all; a
// baseline takes part wherever another one does.
typedef struct TakingPart {
    int methods;
    int runs; // of a first turn's prompt: the baseline's, each that reads it, and one for the others
    double step_s;
} TakingPart;

static TakingPart methods_in(const Plan *p, const Group *g, const CostPrice *price, const CostShard *only) {
    const Schedule *s = &p->schedule;
    int base = s->members[g->baseline];
    TakingPart out = {0};
    bool any = false, shared = false;
    for (int i = g->first; i < g->first + g->count; i++) {
        int point = s->members[i];
        bool here = !only || (point < s->sweep_count && only->shard_of[point] == only->shard);
        if (inputs_refusal(&p->inputs, point) || (!here && point != base)) continue;
        bool own = point == base || p->inputs.work[point].reads_prompt;
        out.runs += own || !shared;
        shared = shared || !own;
        out.methods++;
        // A step reads the weights of target and drafts once a forward, then multiplies by them row by row.
        const PointWork *w = &p->inputs.work[point];
        out.step_s += price->all_methods
                          ? price->token_s
                          : (1 + w->drafts) * price->token_s + (w->rows - 1 + w->draft_rows) * price->row_s;
        any = any || (here && point < s->sweep_count); // an added baseline alone is compared with nothing
    }
    return any ? out : (TakingPart){0};
}

static void add_group_parts(const Plan *p, const CostDone *done, const Group *g, const CostPrice *price,
                            const CostShard *only, CostParts *out, bool *any) {
    int warmup = p->experiment.measurement.warmup;
    const Dataset *d = &p->inputs.datasets[g->dataset];
    const Setup *setup = &p->schedule.setups[g->setup];
    TakingPart all = methods_in(p, g, price, only);
    // Rounds that are left, as far as that is fixed.
    double left =
        (double)d->count * p->experiment.measurement.passes - done->rounds[p->schedule.members[g->baseline]];
    double read = 0, turns = 0;
    if (!(left > 0) || !all.methods) return;
    for (size_t i = 0; i < d->count; i++) turns += d->prompts[i].turn_count;
    bool alone =
        turns > (double)d->count || options_batch(&setup->settings->engine) > 1; // later turns aren't shared
    double prompts = left / (double)d->count * p->inputs.prefill[g - p->schedule.groups] *
                     (alone ? all.methods : all.runs),
           tokens = left * (turns / (double)d->count) *
                    p->schedule.points[p->schedule.members[g->first]].settings.max_tokens;
    LOCAL(prompts_release) PromptList random = {0};
    prompts_random(p->inputs.models[setup->model].model.shape.real_vocab, (size_t)warmup, WARM_UP_SEED,
                   &random);
    for (size_t i = 0; i < random.count; i++) read += (double)random.prompts[i].count;
    out->warmup += all.methods * read * price->row_s + warmup * WARM_UP_TOKENS * all.step_s;
    out->prefill += prompts * price->row_s;
    out->decoding += tokens * all.step_s;
    out->prompt_tokens += prompts;
    out->tokens += tokens * all.methods;
    *any = true;
}

CostParts cost_parts(const Plan *p, const CostDone *done, const CostPrice *prices, const CostShard *only) {
    CostParts out = {0};
    const Schedule *s = &p->schedule;
    for (int i = 0; i < s->setup_count; i++) {
        const InputModel *m = &p->inputs.models[s->setups[i].model];
        const Rehearsal *r = &p->inputs.rehearsals[i];
        bool any = false;
        for (const Group *g = s->groups; g < s->groups + s->group_count; g++)
            if (g->setup == i) add_group_parts(p, done, g, &prices[i], only, &out, &any);
        if (!any) continue;
        out.opening += (double)m->bytes / COST_OPENED_BYTES;
        out.tables += r->rows * prices[i].row_s + r->operations / HOST_RATE;
        out.table_rows += r->rows;
    }
    for (int i = 0; out.tokens > 0 && i < p->experiment.model_count; i++) {
        const InputModel *m = &p->inputs.models[i];
        if (m->files.unmade)
            out.made_bytes += (double)(shape_parameters(&m->model.shape) * dtype_size(m->model.dtype));
    }
    out.making = out.made_bytes / COST_WRITTEN_BYTES;
    return out;
}

double cost_seconds(const CostParts *t) {
    return t->making + t->opening + t->tables + t->warmup + t->prefill + t->decoding;
}

const char *cost_time_text(double seconds, char out[32]) {
    if (seconds < 99.5) snprintf(out, 32, "%.0f s", seconds);
    else if (seconds < 5970) snprintf(out, 32, "%.0f min", seconds / 60);
    else snprintf(out, 32, "%.1f h", seconds / 3600);
    return out;
}

// --- prices ------------------------------------------------------------------------------------------------

EMBED(cost_sql, "harness/run/cost.sql")

// By samples of this model, device and number of threads, on this machine: those of this run, all methods
// together; or else the baselines of others.
static bool stored_price(const Plan *p, const CostDone *done, int setup, CostPrice *out, bool *found,
                         Error *e) {
    const Setup *s = &p->schedule.setups[setup];
    const char *machine = "";
    for (int i = 0; i < p->inputs.content_count; i++)
        if (strcmp(p->inputs.contents[i].kind, "machine") == 0) machine = p->inputs.contents[i].hash;
    *found = false;
    if (!done->store) return true;
    Rows *r = rows_open(done->store, cost_sql, e);
    rows_bind_text(r, 1, p->inputs.models[s->model].hash);
    rows_bind_int(r, 2, done->run);
    rows_bind_text(r, 3, s->settings->engine.device);
    rows_bind_int(r, 4, s->settings->engine.threads);
    rows_bind_text(r, 5, machine);
    *found = rows_next(r) && rows_real(r, 1) > 0 && rows_real(r, 3) > 0;
    if (*found) {
        *out = (CostPrice){.token_s = 1e-9 * rows_real(r, 0) / rows_real(r, 1),
                           .row_s = 1e-9 * rows_real(r, 2) / rows_real(r, 3),
                           .all_methods = done->run};
        snprintf(out->from, sizeof out->from, "measured: %lld samples of %s in %s", (long long)rows_int(r, 4),
                 done->run ? "this run" : "its baseline", store_path(done->store));
    }
    return rows_end(r, true, e);
}

// A step reads all weights, and multiplies by all but the embedding.
static void reckon_price(const Plan *p, int setup, const Ceilings *c, CostPrice *out) {
    const Setup *s = &p->schedule.setups[setup];
    const InputModel *m = &p->inputs.models[s->model];
    const Shape *shape = &m->model.shape;
    double operations = 2 * ((double)shape_layers_parameters(shape) + (double)shape->vocab * shape->width),
           rate = WIDE_SHARE * c->operations_per_s[compute_rate(cost_compute(s, m), m->model.dtype)],
           read = c->bytes_per_s > 0 ? (double)m->bytes / c->bytes_per_s : 0;
    *out = (CostPrice){.row_s = rate > 0 ? operations / rate : 0};
    out->token_s = read > out->row_s ? read : out->row_s;
    if (!(read > 0))
        snprintf(out->from, sizeof out->from, "nothing: no weights are read on %.60s here",
                 s->settings->engine.device);
    else
        snprintf(out->from, sizeof out->from,
                 "reckoned: %.3g GB a step at %.3g GB/s, or %.3g GFLOP a row at %.0f%% of %.3g TFLOP/s, "
                 "which were measured now",
                 (double)m->bytes / 1e9, c->bytes_per_s / 1e9, operations / 1e9, 100 * WIDE_SHARE,
                 rate / WIDE_SHARE / 1e12);
}

bool cost_prices(const Plan *p, const CostDone *done, CostPrice *prices, Error *e) {
    int setups = p->schedule.setup_count;
    LOCAL_MEMORY Ceilings *ceilings = mem_new((size_t)setups, sizeof *ceilings);
    bool ok = true;
    for (int i = 0; ok && i < setups; i++) {
        bool found;
        ok = stored_price(p, done, i, &prices[i], &found, e);
        if (!ok || found) continue;
        // The ceilings of the setup's device, measured once for all setups on it; all 0 where it is not here,
        // or has no arithmetic.
        const EngineOptions *on = &p->schedule.setups[i].settings->engine;
        BackendOptions o = {.isa = getenv("OUTPACE_ISA"), .threads = on->threads};
        int k = 0;
        for (; k < i; k++) {
            const EngineOptions *other = &p->schedule.setups[k].settings->engine;
            if (strcmp(other->device, on->device) == 0 && other->threads == o.threads) break;
        }
        if (k < i) ceilings[i] = ceilings[k];
        else if (!engine_ceilings(on->device, &o, &ceilings[i], &(Error){0})) ceilings[i] = (Ceilings){0};
        reckon_price(p, i, &ceilings[i], &prices[i]);
    }
    return ok;
}
