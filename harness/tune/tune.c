#include "harness/tune/tune.h"

#include "engine/base/memory.h"
#include "harness/cli/signals.h"
#include "harness/tune/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Most of the budget, and of the allowed share of a sweep, that the surface may take.
static const double SURFACE_SHARE = 0.1;
enum { CONTEXT_PROMPTS = 8 };

// Sets the mean number of tokens of a prompt, from the first few.
static bool measure_prompts(Tune *t, Error *e) {
    const Dataset *d = &t->in->datasets[0];
    size_t sum = 0, n = 0;
    for (; n < d->count && n < CONTEXT_PROMPTS; n++) {
        IdList ids = {0};
        const char *text = d->prompts[n].turns[0];
        bool ok = tokenizer_encode(t->g.env.tokenizer, text, strlen(text), false, &ids, e);
        sum += ids.count;
        ids_release(&ids);
        if (!ok) return false;
    }
    t->prompt_tokens = (double)sum / (double)n;
    return true;
}

// For the limit a sweep is taken to run steps of one row that emit GUESSED_S tokens.
static bool measure_surface(Tune *t, Error *e) {
    double max_tokens = t->in->schedule->points[0].settings.max_tokens;
    double answers = (double)(t->space->count + 1) * (double)t->in->datasets[0].count;
    TuneSurfaceAsk ask = {.most_rows = t->space->most_rows,
                          .longest = t->space->longest,
                          .seconds = SURFACE_SHARE * t->o->budget_s,
                          .steps = SURFACE_SHARE * t->o->share * answers * max_tokens / GUESSED_S,
                          .clock = t->g.env.clock,
                          .watch = t->o->processor || t->seams.clock ? NULL
                                                                     : &t->watch}; // of the wall's time only
    tune_say(t, "surface", 1);
    if (!measure_prompts(t, e)) return false;
    ask.context = (int)(t->prompt_tokens + max_tokens / 2);
    return tune_goes_on(t, tune_surface(&t->models.target, &ask, &t->out->surface, e), e);
}

// After a whole sweep the choice is the point that was measured fastest.
static bool sweep(Tune *t, Error *e) {
    TuneResult *out = t->out;
    double most = 0;
    for (int i = 0; i < out->points; i++) {
        double speedup = tune_speedup(out, i, 0);
        if (speedup > most) most = speedup, out->choice = i;
    }
    if (out->end != TUNE_INTERRUPTED) out->end = TUNE_SWEPT;
    return out->choice >= 0 || error_input(e, "tune: every point failed");
}

// --- all of it -------------------------------------------------------------------------------------------

static bool open_tune(Tune *t, Error *e) {
    const Schedule *s = t->in->schedule;
    const InputModel *model = &t->in->models[0];
    const char *template = experiment_template(t->in->experiment, 0, 0);
    size_t seats = (size_t)s->groups[0].count;
    t->states = mem_new((size_t)s->point_count, sizeof *t->states);
    t->asked = mem_new(seats, sizeof *t->asked);
    t->expected = mem_new(seats, sizeof *t->expected);
    t->passes = mem_new(t->in->datasets[0].count, sizeof *t->passes);
    t->out->seats = mem_new(seats, sizeof *t->out->seats);
    t->out->predictions = mem_new(seats, sizeof *t->out->predictions);
    for (int i = 0; i < s->point_count; i++) t->states[i].prompts = (int)t->in->datasets[0].count;
    reporter_begin(&t->reporter, false, 0, 0, t->seams.interrupted);
    t->reporter.line.on = !t->o->quiet;
    if (!group_open_models(t->in, 0, reporter_progress(&t->reporter), &t->models, e)) return false;
    Clock clock = t->o->processor ? clock_processor() : clock_monotonic();
    t->wall = clock_monotonic();
    if (t->seams.clock) t->wall = clock = t->seams.clock(&t->models.target.session);
    watch_begin(&t->watch, t->wall);
    t->began = clock_now(t->wall);
    t->g.env = (AnswerEnv){.target = &t->models.target.session,
                           .tokenizer = model->tokenizer,
                           .template = template ? template_find(template, e) : NULL,
                           .eos = t->models.target.model.eos,
                           .eos_count = t->models.target.model.eos_count,
                           .clock = clock,
                           .watch = &t->watch};
    group_warm_up_prompts(&t->models, 1, &t->warm_up);
    return group_init(&t->g, t->states);
}

static void close_tune(Tune *t) {
    reporter_clear(&t->reporter);
    group_release(&t->g);
    for (int i = 0; t->states && i < t->in->schedule->point_count; i++) {
        t->out->failed += t->states[i].failed;
        t->out->diverged += t->states[i].diverged > 0;
        point_progress_release(&t->states[i]);
    }
    mem_free(t->states);
    mem_free(t->asked);
    mem_free(t->expected);
    mem_free(t->passes);
    prompts_release(&t->warm_up);
    models_close(&t->models);
}

bool tune_run(Ledger *ledger, const TuneSpace *space, const TuneOptions *o, const TuneSeams *seams,
              TuneResult *out, Error *e) {
    *out = (TuneResult){.points = space->count, .choice = -1, .end = TUNE_BUDGET};
    Tune t = {.ledger = ledger, .in = ledger->inputs, .space = space, .o = o, .out = out};
    t.seams = seams ? *seams : (TuneSeams){0};
    if (!t.seams.interrupted) t.seams.interrupted = interrupt_seen;
    t.g = (GroupRun){.ledger = ledger, .reporter = &t.reporter, .group = &t.in->schedule->groups[0]};
    t.g.baseline = t.g.group->baseline - t.g.group->first;
    bool ok = open_tune(&t, e) && measure_surface(&t, e);
    if (ok && out->end != TUNE_INTERRUPTED) ok = tune_sample(&t, e);
    if (ok && out->sample_rounds > 0) ok = o->exhaustive ? sweep(&t, e) : tune_race(&t, e);
    close_tune(&t);
    return ok;
}
