// Runs the groups of a plan.
//
// Invariants
//  1. Groups of one setup are neighbours in the schedule, so each model is opened once.
//  2. An answer is stored only with its whole round, and a warm group's only with its whole pass.
//  3. A failed point has a failure in the ledger and no answer in an unstored round. If a baseline fails, all
//     points of its group fail.
//  4. An interruption ends the run between two answers; the next start measures the open round, or the warm
//     group's pass, again. A run that is asked to end does so between two rounds, or two passes of a warm
//     group, and measures nothing again.
#include "harness/run/run.h"

#include "engine/base/memory.h"
#include "harness/cli/signals.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const Point *point_of(const GroupRun *g, int point) {
    return &g->ledger->inputs->schedule->points[g->points[point].point];
}

static const DatasetPrompt *prompt_of(const GroupRun *g, int prompt) {
    return &g->ledger->inputs->datasets[g->group->dataset].prompts[prompt];
}

static void group_run_check(const GroupRun *g) {
    assert(g->baseline >= 0 && g->baseline < g->group->count);
    assert(g->answer_count <= g->answer_capacity);
    for (int i = 0; i < g->group->count; i++) assert(g->points[i].point >= 0 && g->points[i].progress);
}

// --- failures --------------------------------------------------------------------------------------------

static bool fail_one(GroupRun *g, int point, const char *why, Error *e) {
    GroupPoint *p = &g->points[point];
    if (p->progress->failed) return true;
    p->progress->failed = true;
    snprintf(p->progress->why, sizeof p->progress->why, "%.255s", why);
    reporter_failure(g->reporter, text_get(&p->label), why);
    return ledger_failure(g->ledger, p->point, why, e);
}

// An input error fails the point, and with a baseline its group; any other error ends the run.
static bool fail_point(GroupRun *g, int point, const Error *why, Error *e) {
    if (why->kind != ERROR_INPUT) {
        *e = *why;
        return false;
    }
    if (!fail_one(g, point, why->text, e)) return false;
    for (int i = 0; point == g->baseline && i < g->group->count; i++)
        if (!fail_one(g, i, "its baseline failed", e)) return false;
    return true;
}

// --- a group's models and methods ------------------------------------------------------------------------

bool group_open_models(const Inputs *in, int setup, Progress progress, Models *out, Error *e) {
    ModelChoice choice = inputs_choice(in, setup);
    choice.engine.progress = progress;
    return models_open(out, &choice, e);
}

AnswerEnv group_env(const Inputs *in, const Group *g, Models *models, Clock clock, Watch *watch) {
    int model = in->schedule->setups[g->setup].model;
    return (AnswerEnv){.target = &models->target.session,
                       .tokenizer = in->models[model].tokenizer,
                       .template = in->templates[model][g->dataset],
                       .eos = models->target.model.eos,
                       .eos_count = models->target.model.eos_count,
                       .clock = clock,
                       .watch = watch};
}

void group_init(GroupRun *g, PointProgress *progress) {
    const Inputs *in = g->ledger->inputs;
    g->points = mem_new((size_t)g->group->count, sizeof *g->points);
    for (int i = 0; i < g->group->count; i++) {
        int point = in->schedule->members[g->group->first + i];
        LOCAL(point_name_release) PointName name;
        g->points[i] = (GroupPoint){.point = point, .progress = &progress[point]};
        g->points[i].methods = mem_new((size_t)options_batch(&in->schedule->points[point].settings.engine),
                                       sizeof *g->points[i].methods);
        point_name(in->experiment, &in->schedule->points[point], &name);
        g->points[i].label = name.label;
        name.label = (Text){0};
    }
    group_run_check(g);
}

static void close_methods(GroupPoint *p, int count) {
    while (count > 0) method_close(&p->methods[--count]);
    p->open = false;
}

bool group_open_point(GroupRun *g, OpenMethod open, int point, Error *e) {
    GroupPoint *p = &g->points[point];
    int opened = 0;
    const Settings *s = &point_of(g, point)->settings;
    Error why = {0};
    Sampling sampling = {s->temperature, s->top_k, s->top_p};
    double start = clock_now(g->env.clock);
    for (p->open = true; p->open && opened < models_batch(g->models); opened += p->open) {
        MethodEnv env = inputs_env(g->ledger->inputs, p->point, g->models, opened, &sampling);
        p->open = open(&p->methods[opened], point_of(g, point)->decoder, &env, &why);
    }
    if (!p->open) close_methods(p, opened);
    return p->open ? ledger_one_off(g->ledger, p->point, "open", clock_now(g->env.clock) - start, 0, e)
                   : fail_point(g, point, &why, e);
}

// Closing tells how much a method held: all that it grew to.
static bool group_close(GroupRun *g, Error *e) {
    bool ok = true;
    for (GroupPoint *p = g->points; p < g->points + g->group->count; p++) {
        size_t before = mem_in_use();
        if (!p->open) continue;
        close_methods(p, models_batch(g->models));
        ok = ledger_one_off(g->ledger, p->point, "state", 0, before - mem_in_use(), ok ? e : NULL) && ok;
    }
    return ok;
}

void group_forget(GroupRun *g) {
    while (g->answer_count) answer_release(&g->answers[--g->answer_count]);
}

void group_release(GroupRun *g) {
    group_forget(g);
    mem_free(g->answers);
    if (!g->points) return;
    group_close(g, NULL); // without a store that takes it, only this fact is lost
    for (int i = 0; i < g->group->count; i++) {
        text_release(&g->points[i].label);
        mem_free(g->points[i].methods);
    }
    mem_free(g->points);
}

void group_warm_up_prompts(const Models *models, int count, PromptList *out) {
    prompts_random(models->target.model.shape.real_vocab, (size_t)count, WARM_UP_SEED, out);
}

bool group_warm_up(GroupRun *g, int point, const PromptList *prompts, int tokens, Error *e) {
    GroupPoint *p = &g->points[point];
    const Settings *s = &point_of(g, point)->settings;
    Error why = {0};
    DecodeOptions o = {.max_tokens = tokens,
                       .ignore_eos = true,
                       .sampling = {s->temperature, s->top_k, s->top_p},
                       .verification = s->verification,
                       .layout = s->engine.layout,
                       .merge = !s->engine.no_merge,
                       .max_rows = s->engine.max_rows,
                       .clock = g->env.clock};
    for (size_t i = 0; p->open && !p->progress->failed && i < prompts->count; i++) {
        const IdList *ids = &prompts->prompts[i];
        LOCAL(decode_result_release) DecodeResult r = {0};
        o.answer = ids->ids; // nobody knows it; a wrong one makes steps as long as a right one
        o.answer_count = (int)ids->count;
        if (!decode(g->env.target, &p->methods[0], ids->ids, (int)ids->count, &o, &r, &why))
            return fail_point(g, point, &why, e);
        p->prefill_s = r.prefill_s / (double)ids->count;
        p->step_s = r.steps ? answer_decode_seconds(&r) / r.steps : 0;
    }
    return true;
}

// --- a round ---------------------------------------------------------------------------------------------

static Answer *add_answer(GroupRun *g, int point, int pass, int prompt, int position) {
    Answer *answer = LIST_ADD(g->answers, g->answer_count, g->answer_capacity);
    *answer = (Answer){.point = g->points[point].point,
                       .pass = pass,
                       .dataset = g->group->dataset,
                       .prompt = prompt,
                       .position = position,
                       .diverged = -1};
    return answer;
}

static void drop_answer(GroupRun *g, size_t i) {
    answer_release(&g->answers[i]);
    g->answers[i] = g->answers[--g->answer_count];
}

bool group_store(GroupRun *g, Error *e) {
    for (size_t i = g->answer_count; i-- > 0;)
        for (int k = 0; k < g->group->count; k++)
            if (g->points[k].point == g->answers[i].point && g->points[k].progress->failed) {
                drop_answer(g, i);
                break;
            }
    bool ok =
        g->answer_count == 0 || ledger_add(g->ledger, g->answers, (int)g->answer_count, g->env.tokenizer, e);
    for (size_t i = 0; ok && i < g->answer_count; i++)
        reporter_sample(g->reporter, g->ledger->inputs->schedule->points[g->answers[i].point].hash,
                        &g->answers[i]);
    group_forget(g);
    group_run_check(g);
    return ok;
}

// The round's answers are those from `from` on.
static Answer *answer_of(GroupRun *g, size_t from, int point) {
    for (size_t i = from; i < g->answer_count; i++)
        if (g->answers[i].point == g->points[point].point) return &g->answers[i];
    return NULL;
}

// Files that changed end the run first, or the difference would be taken for the method's. Sampled outputs
// aren't compared: each method draws in its own way, so texts differ; verify compares their distributions.
static bool compare_answers(GroupRun *g, size_t from, Error *e) {
    const Answer *base = answer_of(g, from, g->baseline);
    if (!models_are_unchanged(g->models, e)) return false;
    for (int i = 0; i < g->group->count; i++)
        if (g->points[i].open && !method_is_unchanged(&g->points[i].methods[0], e)) return false;
    for (int i = 0; base && i < g->group->count; i++) {
        Answer *answer = answer_of(g, from, i);
        if (!answer || i == g->baseline || point_of(g, i)->settings.temperature > 0) continue;
        if (!answer_compare(g->env.target, base, answer, e)) return false;
        if (answer->diverged >= 0)
            reporter_divergence(g->reporter, text_get(&g->points[i].label), prompt_of(g, answer->prompt)->id,
                                answer);
    }
    return true;
}

static RoundTimes times_of(const Answer *answer, double *all) {
    RoundTimes t = {.pass = answer->pass, .prompt = answer->prompt, .diverged = answer->diverged >= 0};
    for (int i = 0; i < answer->count; i++) {
        const AnswerTurn *turn = &answer->turns[i];
        t.tokens += turn->result.tokens;
        t.steps += turn->result.steps;
        t.decode_s += answer_decode_seconds(&turn->result);
        t.flagged = t.flagged || turn->flags & FLAGS_FROM_OUTSIDE;
        *all += turn->result.prefill_s - turn->shared_s + answer_decode_seconds(&turn->result);
    }
    return t;
}

static void count_answers(GroupRun *g, size_t from) {
    const Answer *base = answer_of(g, from, g->baseline);
    double all = 0, ignored = 0, base_s = base ? times_of(base, &ignored).decode_s : 0;
    for (int i = 0; i < g->group->count; i++) {
        const Answer *answer = answer_of(g, from, i);
        if (!answer) continue;
        RoundTimes t = times_of(answer, &all);
        point_progress_add(g->points[i].progress, &t);
        g->points[i].progress->base_s += base_s;
    }
    g->decode_s += all;
}

// Points that need the baseline's answer come after it.
static void order_round(const GroupRun *g, int round, int *order) {
    int base = 0;
    schedule_order(g->group->count, round, order);
    while (order[base] != g->baseline) base++;
    for (int i = base - 1; i >= 0; i--) {
        int point = order[i];
        if (!g->points[point].open || !(g->points[point].methods[0].info->needs & NEEDS_ANSWER)) continue;
        memmove(order + i, order + i + 1, (size_t)(base - i) * sizeof *order);
        order[base--] = point;
    }
}

bool run_round(GroupRun *g, int pass, int prompt, const bool *wanted, Error *e) {
    int n = g->group->count;
    LOCAL_MEMORY int *order = mem_new((size_t)n, sizeof *order);
    const DatasetPrompt *p = prompt_of(g, prompt);
    size_t from = g->answer_count;
    bool ok = true;
    order_round(g, pass + prompt, order);
    for (int i = 0; ok && i < n; i++) {
        GroupPoint *point = &g->points[order[i]];
        const Settings *s = &point_of(g, order[i])->settings;
        bool takes_part = !wanted || wanted[order[i]] || order[i] == g->baseline;
        Error why = {0};
        if (!point->open || point->progress->failed || !takes_part) continue;
        Answer *answer = add_answer(g, order[i], pass, prompt, i);
        reporter_method(g->reporter, i, n, text_get(&point->label), s->max_tokens);
        const Answer *known = answer_of(g, from, g->baseline);
        AnswerEnv env = g->env;
        env.round = order[i] == g->baseline ? NULL : g->answers + from; // no method can have spoilt its cache
        env.round_count = (int)(g->answer_count - 1 - from);
        if (answer_prompt(&env, point->methods, s, p->turns, p->turn_count, known, answer, &why)) continue;
        drop_answer(g, g->answer_count - 1);
        error_within(&why, "prompt '%s'", p->id);
        ok = fail_point(g, order[i], &why, e);
    }
    if (!ok || !compare_answers(g, from, e)) return false;
    count_answers(g, from);
    group_run_check(g);
    return true;
}

// --- a batch ---------------------------------------------------------------------------------------------

static const size_t NOWHERE = SIZE_MAX;

// A point's answers to prompts from `first` on, from number `from` of the group's on.
typedef struct BatchWork {
    GroupRun *g;
    GroupPoint *point;
    const Settings *settings;
    int first;
    size_t from, known; // known: where the baseline's begin; NOWHERE: it has none
} BatchWork;

static bool answer_in_batch(void *work, int sequence, int i, Clock clock, Error *e) {
    const BatchWork *w = work;
    GroupRun *g = w->g;
    AnswerEnv env = g->env;
    const DatasetPrompt *p = prompt_of(g, w->first + i);
    env.target = engine_session(&g->models->target, sequence);
    env.clock = clock;
    return answer_prompt(&env, &w->point->methods[sequence], w->settings, p->turns, p->turn_count,
                         w->known == NOWHERE ? NULL : &g->answers[w->known + (size_t)i],
                         &g->answers[w->from + (size_t)i], e) ||
           error_within(e, "prompt '%s'", p->id);
}

// False with e filled if the run can't continue. *from: of its answers; the point's, unless it failed.
static bool batch_point(const BatchWork *part, int point, int pass, int count, int position, size_t *from,
                        Error *e) {
    BatchWork w = *part;
    GroupRun *g = w.g;
    Error why = {0};
    *from = w.from = g->answer_count;
    w.point = &g->points[point];
    w.settings = &point_of(g, point)->settings;
    for (int i = 0; i < count; i++) add_answer(g, point, pass, w.first + i, position);
    Outputs outputs = {count, answer_in_batch, &w, g->env.clock};
    if (models_run(g->models, &outputs, &why)) return true;
    while (g->answer_count > *from) answer_release(&g->answers[--g->answer_count]);
    return fail_point(g, point, &why, e);
}

// Compares and counts as run_round does, prompt by prompt.
static bool judge_batch(GroupRun *g, int first, int count, Error *e) {
    Answer *all = g->answers;
    size_t answers = g->answer_count;
    GroupRun one = *g; // sees one prompt's answers
    one.answers = mem_new((size_t)g->group->count, sizeof *one.answers);
    bool ok = true;
    for (int i = first; ok && i < first + count; i++) {
        one.answer_count = 0;
        for (size_t k = 0; k < answers; k++)
            if (all[k].prompt == i) one.answers[one.answer_count++] = all[k];
        ok = compare_answers(&one, 0, e);
        if (ok) count_answers(&one, 0);
        for (size_t k = 0, at = 0; k < answers; k++)
            if (all[k].prompt == i) all[k] = one.answers[at++];
    }
    g->decode_s = one.decode_s;
    mem_free(one.answers);
    return ok;
}

bool run_batch(GroupRun *g, int pass, int first, int count, const bool *wanted, Error *e) {
    int n = g->group->count;
    LOCAL_MEMORY int *order = mem_new((size_t)n, sizeof *order);
    BatchWork work = {.g = g, .first = first, .known = NOWHERE};
    size_t from;
    bool ok = true;
    assert(g->answer_count == 0);
    order_round(g, pass + first, order);
    for (int i = 0; ok && i < n; i++) {
        const GroupPoint *point = &g->points[order[i]];
        bool takes_part = !wanted || wanted[order[i]] || order[i] == g->baseline;
        if (!point->open || point->progress->failed || !takes_part) continue;
        const Settings *s = &point_of(g, order[i])->settings;
        reporter_method(g->reporter, i, n, text_get(&point->label), s->max_tokens);
        ok = batch_point(&work, order[i], pass, count, i, &from, e);
        if (order[i] == g->baseline && !point->progress->failed) work.known = from;
    }
    ok = ok && judge_batch(g, first, count, e);
    group_run_check(g);
    return ok;
}

// --- a pass ----------------------------------------------------------------------------------------------

typedef struct Run {
    Ledger *ledger;
    const Inputs *in;
    const Schedule *schedule;
    RunProgress progress;
    RunSeams seams;
    Reporter reporter;
    Watch watch;
    Models models; // of the open setup
    int setup;     // -1: none is open
    int rounds;
    double decode_s, round_s;
    bool interrupted;
} Run;

static bool open_points(Run *r, GroupRun *g, Error *e) {
    if (!group_close(g, e)) return false;
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "opening the methods"});
    for (int i = 0; i < g->group->count; i++) {
        const GroupPoint *p = &g->points[i];
        if (p->progress->failed || inputs_refusal(r->in, p->point)) continue;
        reporter_method(&r->reporter, i, g->group->count, text_get(&p->label), 0);
        if (!group_open_point(g, r->seams.open_method, i, e)) return false;
    }
    return true;
}

// The place of the round that begins, with the S and speedup of one method, a different one in each round.
static ReporterPlace round_place(const Run *r, const GroupRun *g, int pass, int prompt) {
    const Group *group = g->group;
    const Schedule *s = r->schedule;
    const GroupPoint *point = &g->points[prompt % group->count];
    const PointProgress *p = point->progress;
    int first = s->members[group->first], last = first;
    for (int i = 0; i < group->count; i++) {
        int number = s->members[group->first + i];
        if (number < s->sweep_count && number > last) last = number;
    }
    return (ReporterPlace){.model = r->in->experiment->models[s->setups[group->setup].model].name,
                           .dataset = r->in->experiment->datasets[group->dataset].name,
                           .of = text_get(&point->label),
                           .first_point = first + 1,
                           .last_point = last + 1,
                           .pass = pass,
                           .prompt = prompt,
                           .prompts = p->prompts,
                           .S = p->steps > 0 ? p->tokens / p->steps : NAN,
                           .speedup = p->decode_s > 0 ? p->base_s / p->decode_s : NAN};
}

// A warm group's pass begins with empty pools, at its first prompt, and is stored at its end. With a batch it
// is one round.
static bool run_pass(Run *r, GroupRun *g, int pass, const bool *wanted, Error *e) {
    int prompts = (int)r->in->datasets[g->group->dataset].count;
    bool warm = g->group->warm, batch = models_batch(&r->models) > 1;
    int first = progress_next(&r->progress, g->group, pass, 0);
    if (first < prompts && r->seams.asked()) return error_interrupted(e, NULL);
    if (first < prompts && warm && !open_points(r, g, e)) return false;
    if (first < prompts && batch) first = 0;
    for (int i = first, next; i < prompts; i = next) {
        ReporterPlace place = round_place(r, g, pass, i);
        double start = clock_now(g->env.clock);
        reporter_place(&r->reporter, &place);
        reporter_round(&r->reporter, progress_tokens(&r->progress, g->group) / (batch ? 1 : prompts));
        bool ok = batch ? run_batch(g, pass, 0, prompts, wanted, e) : run_round(g, pass, i, wanted, e);
        if (!ok || (!warm && !group_store(g, e))) return false;
        g->rounds++;
        g->round_s += clock_now(g->env.clock) - start;
        reporter_round_end(&r->reporter);
        if (g->points[g->baseline].progress->failed) break;
        next = batch ? prompts : warm ? i + 1 : progress_next(&r->progress, g->group, pass, i + 1);
        if (!warm && r->seams.asked() && next < prompts) return error_interrupted(e, NULL);
    }
    return group_store(g, e);
}

// --- a group ---------------------------------------------------------------------------------------------

// Flags repeats of a prompt that are far from the others.
static bool mark_outliers(Run *r, const GroupRun *g, Error *e) {
    LOCAL_MEMORY LedgerRepeat *list = NULL;
    size_t count = 0, capacity = 0;
    for (int i = 0; i < g->group->count; i++) {
        const PointProgress *p = g->points[i].progress;
        LOCAL_MEMORY bool *out = mem_new((size_t)p->passes, sizeof *out);
        for (int prompt = 0; prompt < p->prompts; prompt++) {
            int passes = 0;
            while (point_progress_has(p, passes, prompt)) passes++;
            repeat_outliers(p->seconds + prompt, passes, p->prompts, out);
            for (int pass = 0; pass < passes; pass++) {
                if (!out[pass]) continue;
                *LIST_ADD(list, count, capacity) =
                    (LedgerRepeat){g->points[i].point, pass, g->group->dataset, prompt};
            }
        }
    }
    return ledger_flag(r->ledger, list, count, FLAG_OUTLIER, e);
}

// A model that can't be opened on this device fails the points of its setup; lack of memory or disk ends the
// run.
static bool fail_setup(Run *r, int setup, const Error *why, Error *e) {
    const Schedule *s = r->schedule;
    for (int i = 0; i < s->group_count; i++) {
        GroupRun g = {.ledger = r->ledger, .reporter = &r->reporter, .group = &s->groups[i]};
        g.baseline = g.group->baseline - g.group->first;
        if (g.group->setup != setup || progress_is_done(&r->progress, g.group)) continue;
        group_init(&g, r->progress.points);
        bool ok = fail_point(&g, g.baseline, why, e);
        group_release(&g);
        if (!ok) return false;
    }
    return true;
}

static bool open_setup(Run *r, int setup, Error *e) {
    if (r->setup == setup) return true;
    models_close(&r->models);
    r->setup = -1;
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "opening the models"});
    if (!group_open_models(r->in, setup, reporter_progress(&r->reporter), &r->models, e) ||
        !inputs_are_unchanged(r->in, setup, e))
        return false;
    r->setup = setup;
    return true;
}

static bool run_group(Run *r, const Group *group, Error *e) {
    Error why = {0};
    if (r->seams.asked()) return error_interrupted(e, NULL);
    if (!open_setup(r, group->setup, &why)) {
        if (why.kind == ERROR_INPUT) return fail_setup(r, group->setup, &why, e);
        *e = why;
        return false;
    }
    GroupRun g = {.ledger = r->ledger,
                  .reporter = &r->reporter,
                  .group = group,
                  .models = &r->models,
                  .env = group_env(r->in, group, &r->models, r->seams.clock, &r->watch),
                  .baseline = group->baseline - group->first};
    g.env.record = r->ledger->record;
    LOCAL_MEMORY bool *wanted = mem_new((size_t)group->count, sizeof *wanted);
    group_init(&g, r->progress.points);
    bool ok = open_points(r, &g, e);
    PromptList prompts = {0};
    group_warm_up_prompts(&r->models, r->progress.measurement->warmup, &prompts);
    if (ok) reporter_place(&r->reporter, &(ReporterPlace){.phase = "warming up"});
    for (int i = 0; ok && i < group->count; i++) { // a warm method is closed and opened again after it
        reporter_method(&r->reporter, i, group->count, text_get(&g.points[i].label), WARM_UP_TOKENS);
        ok = group_warm_up(&g, i, &prompts, WARM_UP_TOKENS, e);
    }
    prompts_release(&prompts);
    watch_judge(&r->watch); // no sample is blamed for what happened during the opening
    for (int pass = 0; ok && progress_wants(&r->progress, group, pass, wanted); pass++)
        ok = run_pass(r, &g, pass, wanted, e);
    ok = ok && mark_outliers(r, &g, e);
    r->rounds += g.rounds;
    r->decode_s += g.decode_s;
    r->round_s += g.round_s;
    reporter_place(&r->reporter, &(ReporterPlace){.phase = "closing the methods"});
    group_release(&g);
    return ok;
}

// --- a plan ----------------------------------------------------------------------------------------------

static void count_point(const Run *r, const Group *g, int member, RunResult *out) {
    int point = r->schedule->members[g->first + member];
    const PointProgress *p = &r->progress.points[point];
    out->diverged += p->diverged > 0;
    if (point >= r->schedule->sweep_count) {
        out->baselines += !p->failed && !progress_is_left(&r->progress, g, member);
        return;
    }
    if (inputs_refusal(r->in, point)) out->skipped++;
    else if (p->failed) out->failed++;
    else if (progress_is_left(&r->progress, g, member)) out->left++;
    else out->points++;
}

// Flags greedy texts that a baseline didn't write again, and counts them as differing ones.
static bool compare_baselines(Run *r, RunResult *out, Error *e) {
    LOCAL_MEMORY LedgerRepeat *list = NULL;
    size_t count;
    bool ok =
        ledger_strays(r->ledger, &list, &count, e) && ledger_flag(r->ledger, list, count, FLAG_DIVERGED, e);
    for (size_t i = 0, end; ok && i < count; i = end) {
        const LedgerRepeat *s = &list[i];
        for (end = i; end < count && list[end].point == s->point;) end++;
        reporter_stray(&r->reporter, s->point, (int)(end - i),
                       r->in->datasets[s->dataset].prompts[s->prompt].id, s->pass);
        out->diverged++;
    }
    return ok;
}

bool run_plan(Ledger *ledger, bool json, const RunSeams *seams, RunResult *out, Error *e) {
    Run r = {.ledger = ledger,
             .in = ledger->inputs,
             .schedule = ledger->inputs->schedule,
             .seams = seams ? *seams : (RunSeams){0},
             .setup = -1};
    if (!r.seams.open_method) r.seams.open_method = method_open;
    if (!r.seams.interrupted) r.seams.interrupted = interrupt_seen;
    if (!r.seams.asked) r.seams.asked = interrupt_asked;
    if (!r.seams.clock.now) r.seams.clock = clock_monotonic();
    r.watch.look = r.seams.look;
    r.watch.state = r.seams.look_state;
    watch_begin(&r.watch, r.seams.clock);
    *out = (RunResult){0};
    if (!progress_open(&r.progress, ledger, e)) return false;
    Error why = {0};
    bool ok = true;
    // A failure for each point that can't run: if its group has begun without it, a later start that could
    // run it must not (see progress.c).
    for (int i = 0; ok && i < r.schedule->sweep_count; i++) {
        const char *refused = inputs_refusal(r.in, i);
        if (!refused || r.progress.points[i].failed) continue;
        r.progress.points[i].failed = true;
        ok = ledger_failure(r.ledger, i, refused, &why);
    }
    if (ok)
        reporter_begin(&r.reporter, json, r.schedule->sweep_count, progress_work(&r.progress),
                       r.seams.interrupted);
    for (int i = 0; ok && i < r.schedule->group_count; i++)
        ok = progress_is_done(&r.progress, &r.schedule->groups[i]) ||
             run_group(&r, &r.schedule->groups[i], &why);
    models_close(&r.models);
    r.interrupted = why.kind == ERROR_INTERRUPTED; // the open round is measured again (invariant 4)
    if (!ok && !r.interrupted && e) *e = why;
    reporter_clear(&r.reporter);
    *out = (RunResult){.interrupted = r.interrupted,
                       .rounds = r.rounds,
                       .seconds = r.round_s,
                       .harness_s = r.round_s - r.decode_s};
    for (const Group *g = r.schedule->groups; g < r.schedule->groups + r.schedule->group_count; g++)
        for (int k = 0; k < g->count; k++) count_point(&r, g, k, out);
    ok = ok && compare_baselines(&r, out, e);
    assert(out->points + out->skipped + out->failed + out->left == r.schedule->sweep_count);
    progress_release(&r.progress);
    return ok || r.interrupted;
}
