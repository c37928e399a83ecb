#include "harness/run/agenda.h"

#include "engine/base/memory.h"

#include <stdio.h>

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for a run"); }

// --- what was measured before ----------------------------------------------------------------------------

// Turns of a sample come one after the other.
static bool take_sample(void *state, const LedgerSample *s, Error *e) {
    Agenda *a = state;
    bool known = s->point >= 0 && s->point < a->schedule->point_count && s->prompt >= 0;
    PointState *p = known ? &a->states[s->point] : NULL;
    if (!known || s->prompt >= p->prompts || s->pass < 0)
        return error_system(e, "the store has a sample that this run cannot have");
    double before = state_has(p, s->pass, s->prompt)
                        ? p->seconds[(size_t)s->pass * (size_t)p->prompts + (size_t)s->prompt]
                        : 0;
    RoundTimes t = {.pass = s->pass,
                    .prompt = s->prompt,
                    .tokens = s->tokens,
                    .steps = s->steps,
                    .decode_s = s->decode_s,
                    .flagged = s->flags & (FLAG_LOAD | FLAG_CLOCK | FLAG_THROTTLED),
                    .diverged = s->diverged};
    if (!state_add(p, &t, e)) return false;
    p->seconds[(size_t)s->pass * (size_t)p->prompts + (size_t)s->prompt] += before;
    return true;
}

static bool take_failure(void *state, int point, const char *why) {
    Agenda *a = state;
    if (point < 0 || point >= a->schedule->point_count) return true;
    a->states[point].failed = true;
    snprintf(a->states[point].why, sizeof a->states[point].why, "%s", why);
    return true;
}

// What a point shares with its baseline, for what is said on the way.
static void share_times(const Agenda *a, const Group *g) {
    const PointState *base = &a->states[a->schedule->members[g->baseline]];
    for (int i = g->first; i < g->first + g->count; i++) {
        PointState *p = &a->states[a->schedule->members[i]];
        for (int k = 0; k < p->passes * p->prompts; k++)
            if (state_has(p, k / p->prompts, k % p->prompts) &&
                state_has(base, k / p->prompts, k % p->prompts))
                p->base_s += base->seconds[k];
    }
}

// What failed stays out of a group that has begun: it would be measured without its neighbours. Where nothing
// is measured yet, all may try again.
static void forgive(const Agenda *a, const Group *g) {
    if (a->states[a->schedule->members[g->baseline]].passes > 0) return;
    for (int i = g->first; i < g->first + g->count; i++) a->states[a->schedule->members[i]].failed = false;
}

static bool read_states(Agenda *a, Error *e) {
    const Schedule *s = a->schedule;
    a->states = mem_alloc((size_t)s->point_count, sizeof *a->states);
    if (!a->states) return out_of_memory(e);
    for (int i = 0; i < s->point_count; i++)
        a->states[i].prompts = (int)a->in->datasets[s->points[i].dataset].count;
    if (!ledger_samples(a->ledger->store, a->ledger->run, take_sample, a, e) ||
        !ledger_failures(a->ledger->store, a->ledger->run, take_failure, a, e))
        return false;
    for (int i = 0; i < s->group_count; i++) {
        share_times(a, &s->groups[i]);
        forgive(a, &s->groups[i]);
    }
    return true;
}

// --- what is left to do ----------------------------------------------------------------------------------

bool agenda_skips(const Agenda *a, int point) { return inputs_refusal(a->in, point) != NULL; }

static bool wants(const Agenda *a, const Group *g, int member, int passes) {
    int point = a->schedule->members[member];
    const PointState *p = &a->states[point];
    if (p->failed || agenda_skips(a, point)) return false;
    return !state_is_done(p, a->measurement, passes, g->warm);
}

// A baseline that nobody asked for runs beside others only.
bool agenda_ask(const Agenda *a, const Group *g, int passes, bool *asked) {
    bool any = false;
    for (int i = 0; i < g->count; i++) {
        bool own =
            g->first + i == g->baseline && a->schedule->members[g->baseline] >= a->schedule->sweep_count;
        asked[i] = !own && wants(a, g, g->first + i, passes);
        any = any || asked[i];
    }
    return any;
}

static bool round_is_there(const Agenda *a, const Group *g, int pass, int prompt) {
    return state_has(&a->states[a->schedule->members[g->baseline]], pass, prompt);
}

int agenda_next(const Agenda *a, const Group *g, int pass, int from) {
    int prompts = (int)a->in->datasets[g->dataset].count;
    while (from < prompts && round_is_there(a, g, pass, from)) from++;
    return from;
}

double agenda_tokens(const Agenda *a, const Group *g) {
    const Point *p = &a->schedule->points[a->schedule->members[g->first]];
    return (double)g->count * (double)a->in->datasets[g->dataset].count * p->settings.max_tokens;
}

double agenda_work(const Agenda *a) {
    const Schedule *s = a->schedule;
    double work = 0;
    for (int i = 0; i < s->group_count; i++) {
        const Group *g = &s->groups[i];
        int prompts = (int)a->in->datasets[g->dataset].count, rounds = 0;
        for (int pass = 0; pass < a->measurement->passes; pass++)
            for (int k = 0; k < prompts; k++) rounds += !round_is_there(a, g, pass, k);
        work += agenda_tokens(a, g) * rounds / (prompts ? prompts : 1);
    }
    return work;
}

bool agenda_is_done(const Agenda *a, const Group *g) {
    bool *asked = mem_alloc((size_t)g->count, sizeof *asked), any = true;
    int passes = a->states[a->schedule->members[g->baseline]].passes;
    if (asked) any = agenda_ask(a, g, passes, asked);
    mem_free(asked);
    return !any;
}

bool agenda_is_left(const Agenda *a, const Group *g, int member) {
    return wants(a, g, g->first + member, a->states[a->schedule->members[g->baseline]].passes);
}

// --- all of it -------------------------------------------------------------------------------------------

bool agenda_open(Agenda *a, const Ledger *ledger, Error *e) {
    const Inputs *in = ledger->inputs;
    *a = (Agenda){
        .ledger = ledger, .in = in, .schedule = in->schedule, .measurement = &in->experiment->measurement};
    if (read_states(a, e)) return true;
    agenda_release(a);
    return false;
}

void agenda_release(Agenda *a) {
    for (int i = 0; a->states && i < a->schedule->point_count; i++) state_release(&a->states[i]);
    mem_free(a->states);
    *a = (Agenda){0};
}
