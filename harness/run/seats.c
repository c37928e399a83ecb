#include "harness/run/seats.h"

#include "engine/base/memory.h"
#include "harness/config/point_name.h"

#include <stdlib.h>

bool seats_open_models(const Inputs *in, int setup, Progress progress, Models *out, Error *e) {
    ModelChoice choice = inputs_choice(in, setup);
    choice.progress = progress;
    return models_open(out, &choice, e);
}

// --- seats -----------------------------------------------------------------------------------------------

bool seats_make(GroupRun *g, PointState *states, Error *e) {
    const Inputs *in = g->ledger->inputs;
    g->seats = mem_alloc((size_t)g->group->count, sizeof *g->seats);
    if (!g->seats) return error_system(e, "out of memory for a run");
    for (int i = 0; i < g->group->count; i++) {
        int point = in->schedule->members[g->group->first + i];
        PointName name;
        g->seats[i] = (Seat){.point = point, .state = &states[point]};
        if (!point_name(in->experiment, &in->schedule->points[point], &name)) return false;
        g->seats[i].label = name.label;
        name.label = (Text){0};
        point_name_release(&name);
    }
    return true;
}

bool seat_open(GroupRun *g, Models *models, OpenMethod open, int seat, Error *e) {
    const Inputs *in = g->ledger->inputs;
    Seat *s = &g->seats[seat];
    const Point *p = &in->schedule->points[s->point];
    const Settings *set = &p->settings;
    Error why = {0};
    Sampling sampling = {set->temperature, set->top_k, set->top_p};
    MethodEnv env = inputs_env(in, s->point, models, &sampling);
    double start = clock_now(g->measuring.clock);
    s->open = open(&s->method, p->decoder, &env, &why);
    if (s->open) return ledger_one_off(g->ledger, s->point, clock_now(g->measuring.clock) - start, e);
    if (why.kind == ERROR_INPUT) return round_fail(g, seat, why.text, e);
    *e = why;
    return false;
}

void seats_close(GroupRun *g) {
    for (int i = 0; i < g->group->count; i++) {
        if (g->seats[i].open) method_close(&g->seats[i].method);
        g->seats[i].open = false;
    }
}

void seats_release(GroupRun *g) {
    round_forget(g);
    mem_free(g->entries);
    if (!g->seats) return;
    seats_close(g);
    for (int i = 0; i < g->group->count; i++) text_release(&g->seats[i].label);
    mem_free(g->seats);
}

// --- warming up ------------------------------------------------------------------------------------------

bool seats_warm_up_prompts(const Models *models, int count, PromptList *out, Error *e) {
    return prompts_random(models->target.model.shape.real_vocab, (size_t)count, WARM_UP_SEED, out, e);
}

static bool run_prompts(GroupRun *g, Seat *s, const PromptList *prompts, int tokens, Error *e) {
    const Settings *set = &g->ledger->inputs->schedule->points[s->point].settings;
    DecodeOptions o = {.max_tokens = tokens,
                       .ignore_eos = true,
                       .sampling = {set->temperature, set->top_k, set->top_p},
                       .layout = (Layout)set->layout,
                       .merge = set->merge,
                       .clock = g->measuring.clock};
    for (size_t i = 0; i < prompts->count; i++) {
        DecodeResult result;
        const IdList *p = &prompts->prompts[i];
        if (!decode(g->measuring.target, &s->method, p->ids, (int)p->count, &o, &result, e)) return false;
        s->prefill_s = result.prefill_s / (double)p->count;
        s->step_s = result.steps ? said_decode_seconds(&result) / result.steps : 0;
        decode_result_release(&result);
    }
    return true;
}

bool seat_warm_up(GroupRun *g, int seat, const PromptList *prompts, int tokens, Error *e) {
    Error why = {0};
    Seat *s = &g->seats[seat];
    if (!s->open || s->state->failed || run_prompts(g, s, prompts, tokens, &why)) return true;
    if (why.kind == ERROR_INPUT) return round_fail(g, seat, why.text, e);
    *e = why;
    return false;
}
