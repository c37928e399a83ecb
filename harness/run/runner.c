// Setups, groups, passes. Rounds are round.c's; what is left to do is agenda.c's.
#include "harness/run/runner.h"

#include "engine/base/memory.h"
#include "harness/program/interrupt.h"
#include "harness/run/agenda.h"
#include "harness/config/repeat.h"
#include "harness/run/seats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Runner {
    Ledger *ledger;
    const Inputs *in;
    const Schedule *schedule;
    Agenda agenda;
    RunnerSeams seams;
    Reporter reporter;
    Watch watch;
    Models models; // of the open setup
    int rounds;
    double decode_s, round_s;
    bool interrupted;
} Runner;

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for a run"); }

// --- a group's methods -----------------------------------------------------------------------------------

static bool open_seats(Runner *r, GroupRun *g, Error *e) {
    seats_close(g);
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "opening the methods"});
    for (int i = 0; i < g->group->count; i++) {
        const Seat *s = &g->seats[i];
        if (s->state->failed || agenda_skips(&r->agenda, s->point)) continue;
        reporter_method(&r->reporter, i, g->group->count, text_get(&s->label), 0);
        if (!seat_open(g, &r->models, r->seams.open_method, i, e)) return false;
    }
    return true;
}

// A warm method is closed afterwards.
static bool warm_up(Runner *r, GroupRun *g, Error *e) {
    PromptList prompts = {0};
    bool ok = seats_warm_up_prompts(&r->models, r->agenda.measurement->warmup, &prompts, e);
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "warming up"});
    for (int i = 0; ok && i < g->group->count; i++) {
        reporter_method(&r->reporter, i, g->group->count, text_get(&g->seats[i].label), WARM_UP_TOKENS);
        ok = seat_warm_up(g, i, &prompts, WARM_UP_TOKENS, e);
    }
    prompts_release(&prompts);
    return ok;
}

// --- passes ----------------------------------------------------------------------------------------------

// Of the round that begins. Its S and speedup are those of one method, of another in each round.
static ReporterPlace place_of(const Runner *r, const GroupRun *g, int pass, int prompt) {
    const Group *group = g->group;
    const Schedule *s = r->schedule;
    const Seat *seat = &g->seats[prompt % group->count];
    const PointState *p = seat->state;
    int first = s->members[group->first], last = first;
    for (int i = 0; i < group->count; i++) {
        int point = s->members[group->first + i];
        if (point < s->sweep_count && point > last) last = point;
    }
    return (ReporterPlace){.model = r->in->experiment->models[s->setups[group->setup].model].name,
                           .dataset = r->in->experiment->datasets[group->dataset].name,
                           .of = text_get(&seat->label),
                           .first_point = first + 1,
                           .last_point = last + 1,
                           .pass = pass,
                           .prompt = prompt,
                           .prompts = p->prompts,
                           .S = p->steps > 0 ? p->tokens / p->steps : NAN,
                           .speedup = p->decode_s > 0 ? p->base_s / p->decode_s : NAN};
}

// A warm group's pass begins with empty pools, at its first prompt, and is stored at its end.
static bool run_pass(Runner *r, GroupRun *g, int pass, const bool *asked, Error *e) {
    int prompts = (int)r->in->datasets[g->group->dataset].count;
    bool warm = g->group->warm;
    int first = agenda_next(&r->agenda, g->group, pass, 0);
    if (first < prompts && warm && !open_seats(r, g, e)) return false;
    for (int i = first; i < prompts; i = warm ? i + 1 : agenda_next(&r->agenda, g->group, pass, i + 1)) {
        ReporterPlace place = place_of(r, g, pass, i);
        double start = clock_now(g->measuring.clock);
        reporter_place(&r->reporter, &place);
        reporter_round(&r->reporter, agenda_tokens(&r->agenda, g->group) / prompts);
        if (!round_run(g, pass, i, asked, e) || (!warm && !round_store(g, e))) return false;
        g->rounds++;
        g->round_s += clock_now(g->measuring.clock) - start;
        reporter_round_end(&r->reporter);
        if (g->seats[g->baseline].state->failed) break;
    }
    return round_store(g, e);
}

typedef struct Outliers {
    LedgerOutlier *list; // (count)
    size_t count, capacity;
} Outliers;

static bool add_outlier(Outliers *all, LedgerOutlier o, Error *e) {
    void *list = all->list;
    if (!mem_grow(&list, &all->capacity, all->count + 1, sizeof *all->list)) return out_of_memory(e);
    all->list = list;
    all->list[all->count++] = o;
    return true;
}

// Repeats of a prompt that are far from the others. out: (passes)
static bool find_outliers(const GroupRun *g, const Seat *s, bool *out, Outliers *all, Error *e) {
    const PointState *p = s->state;
    for (int k = 0; k < p->prompts; k++) {
        int n = 0;
        while (state_has(p, n, k)) n++;
        repeat_outliers(p->seconds + k, n, p->prompts, out);
        for (int pass = 0; pass < n; pass++)
            if (out[pass] && !add_outlier(all, (LedgerOutlier){s->point, pass, g->group->dataset, k}, e))
                return false;
    }
    return true;
}

static bool mark_outliers(Runner *r, const GroupRun *g, Error *e) {
    Outliers all = {0};
    bool ok = true;
    for (int i = 0; ok && i < g->group->count; i++) {
        bool *out = mem_alloc((size_t)g->seats[i].state->passes, sizeof *out);
        ok = out ? find_outliers(g, &g->seats[i], out, &all, e) : out_of_memory(e);
        mem_free(out);
    }
    ok = ok && ledger_outliers(r->ledger, all.list, all.count, e);
    mem_free(all.list);
    return ok;
}

static bool run_passes(Runner *r, GroupRun *g, Error *e) {
    bool *asked = mem_alloc((size_t)g->group->count, sizeof *asked), ok = asked || out_of_memory(e);
    for (int pass = 0; ok && agenda_ask(&r->agenda, g->group, pass, asked); pass++)
        ok = run_pass(r, g, pass, asked, e);
    mem_free(asked);
    return ok && mark_outliers(r, g, e);
}

// --- groups ----------------------------------------------------------------------------------------------

static bool run_group(Runner *r, const Group *group, Error *e) {
    int number = r->schedule->setups[group->setup].model;
    const InputModel *model = &r->in->models[number];
    const char *template = experiment_template(r->in->experiment, number, group->dataset);
    GroupRun g = {.ledger = r->ledger,
                  .reporter = &r->reporter,
                  .group = group,
                  .measuring = {.target = &r->models.target.session,
                                .tokenizer = model->tokenizer,
                                .template = template ? template_find(template, e) : NULL,
                                .eos = r->models.target.model.eos,
                                .eos_count = r->models.target.model.eos_count,
                                .clock = r->seams.clock,
                                .watch = &r->watch},
                  .tokenizer = model->tokenizer,
                  .baseline = group->baseline - group->first};
    bool ok = seats_make(&g, r->agenda.states, e) && open_seats(r, &g, e) && warm_up(r, &g, e) &&
              run_passes(r, &g, e);
    r->rounds += g.rounds;
    r->decode_s += g.decode_s;
    r->round_s += g.round_s;
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "closing the methods"});
    seats_release(&g);
    return ok;
}

// --- setups ----------------------------------------------------------------------------------------------

// A model that cannot be opened on this device fails its points; what fails for want of memory or disk ends
// the run.
static bool fail_setup(Runner *r, int setup, const char *why, Error *e) {
    const Schedule *s = r->schedule;
    for (int i = 0; i < s->group_count; i++) {
        GroupRun g = {.ledger = r->ledger, .reporter = &r->reporter, .group = &s->groups[i]};
        g.baseline = g.group->baseline - g.group->first;
        if (g.group->setup != setup || agenda_is_done(&r->agenda, g.group)) continue;
        bool ok = seats_make(&g, r->agenda.states, e) && round_fail(&g, g.baseline, why, e);
        seats_release(&g);
        if (!ok) return false;
    }
    return true;
}

static bool run_setup(Runner *r, int setup, Error *e) {
    const Schedule *s = r->schedule;
    Error why = {0};
    bool any = false, ok = true;
    for (int i = 0; i < s->group_count; i++)
        any = any || (s->groups[i].setup == setup && !agenda_is_done(&r->agenda, &s->groups[i]));
    if (!any) return true;
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "opening the models"});
    if (!seats_open_models(r->in, setup, reporter_progress(&r->reporter), &r->models, &why)) {
        if (why.kind == ERROR_INPUT) return fail_setup(r, setup, why.text, e);
        *e = why;
        return false;
    }
    for (int i = 0; ok && i < s->group_count; i++)
        if (s->groups[i].setup == setup && !agenda_is_done(&r->agenda, &s->groups[i]))
            ok = run_group(r, &s->groups[i], e);
    models_close(&r->models);
    return ok;
}

// --- all of it -------------------------------------------------------------------------------------------

static void count_point(const Runner *r, const Group *g, int member, RunnerResult *out) {
    int point = r->schedule->members[g->first + member];
    const PointState *p = &r->agenda.states[point];
    out->diverged += p->diverged > 0;
    if (point >= r->schedule->sweep_count) {
        out->baselines += !p->failed && !agenda_is_left(&r->agenda, g, member);
        return;
    }
    if (agenda_skips(&r->agenda, point)) out->skipped++;
    else if (p->failed) out->failed++;
    else if (agenda_is_left(&r->agenda, g, member)) out->left++;
    else out->points++;
}

static void sum_up(const Runner *r, RunnerResult *out) {
    *out = (RunnerResult){.interrupted = r->interrupted,
                          .rounds = r->rounds,
                          .seconds = r->round_s,
                          .harness_s = r->round_s - r->decode_s};
    for (int i = 0; i < r->schedule->group_count; i++)
        for (int k = 0; k < r->schedule->groups[i].count; k++)
            count_point(r, &r->schedule->groups[i], k, out);
}

// What cannot be run is a failure, too, in the store: a later start that could run it must not, where its
// group has begun without it (see agenda.c).
static bool leave_out(Runner *r, Error *e) {
    for (int i = 0; i < r->schedule->sweep_count; i++) {
        const char *why = inputs_refusal(r->in, i);
        if (!why || r->agenda.states[i].failed) continue;
        r->agenda.states[i].failed = true;
        if (!ledger_failure(r->ledger, i, why, e)) return false;
    }
    return true;
}

static RunnerSeams real_seams(const RunnerSeams *given) {
    RunnerSeams s = given ? *given : (RunnerSeams){0};
    if (!s.open_method) s.open_method = method_open;
    if (!s.interrupted) s.interrupted = interrupt_seen;
    if (!s.clock.now) s.clock = clock_monotonic();
    return s;
}

bool runner_run(Ledger *ledger, bool json, const RunnerSeams *seams, RunnerResult *out, Error *e) {
    Runner r = {.ledger = ledger, .in = ledger->inputs, .seams = real_seams(seams)};
    r.schedule = r.in->schedule;
    r.watch.look = r.seams.look;
    r.watch.state = r.seams.look_state;
    watch_begin(&r.watch, r.seams.clock);
    bool ok = agenda_open(&r.agenda, ledger, e);
    ok = ok && leave_out(&r, e);
    Error why = {0};
    if (ok)
        reporter_begin(&r.reporter, json, r.schedule->sweep_count, agenda_work(&r.agenda),
                       r.seams.interrupted);
    for (int i = 0; ok && i < r.schedule->setup_count; i++) ok = run_setup(&r, i, &why);
    r.interrupted = why.kind == ERROR_INTERRUPTED; // what was being measured then is measured again
    if (!ok && why.kind != ERROR_NONE && !r.interrupted && e) *e = why;
    ok = ok || r.interrupted;
    reporter_clear(&r.reporter);
    *out = (RunnerResult){0};
    if (r.agenda.states) sum_up(&r, out);
    agenda_release(&r.agenda);
    return ok;
}
