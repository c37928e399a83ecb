// See tune.h. A budget of time goes to a sample, then to a race among the best; every answer is kept, so the
// choice at the end rests on all of them.
#include "harness/tune/tune.h"

#include "engine/base/memory.h"
#include "harness/cli/signals.h"
#include "harness/tune/parts.h"
#include "simulate/plan.h"
#include "simulate/race.h"

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
        if (speedup > most && !t->g.points[i].progress->failed) most = speedup, out->choice = i;
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

// --- rounds

// That a seat writes before its first round.
enum { WAKE_TOKENS = 2 };

double tune_spent(const Tune *t) { return clock_now(t->wall) - t->began; }

bool tune_is_over(Tune *t, double until, double next) {
    if (t->seams.interrupted()) t->out->end = TUNE_INTERRUPTED;
    bool gone = !t->o->exhaustive && tune_spent(t) + next > until;
    return t->out->end == TUNE_INTERRUPTED || gone;
}

void tune_say(Tune *t, const char *what, int round) {
    snprintf(t->phase, sizeof t->phase, "%s, round %d; %.0f of %s%.0f s", what, round, tune_spent(t),
             t->o->exhaustive ? "about " : "", t->o->exhaustive ? t->out->sweep_s : t->limit_s);
    reporter_place(&t->reporter, &(ReporterPlace){.phase = t->phase});
}

bool tune_goes_on(Tune *t, bool ok, Error *e) {
    if (ok || e->kind != ERROR_INTERRUPTED) return ok;
    *e = (Error){0};
    t->out->end = TUNE_INTERRUPTED;
    return true;
}

static TuneAnswer answer_of(const Answer *entry, int round) {
    TuneAnswer a = {.round = round, .prompt = entry->prompt, .diverged = entry->diverged >= 0};
    for (int i = 0; i < entry->count; i++) {
        const DecodeResult *r = &entry->turns[i].result;
        a.tokens += r->tokens, a.steps += r->steps, a.rows += r->rows;
        a.seconds += answer_decode_seconds(r);
        a.whole_s += r->prefill_s;
    }
    a.whole_s += a.seconds;
    return a;
}

// Seats are in the order of the sweep, the baseline's last.
static bool take_answers(Tune *t, Error *e) {
    for (size_t i = 0; i < t->g.answer_count; i++) {
        int seat = t->g.answers[i].point;
        TuneSeat *s = &t->out->seats[seat];
        mem_grow(&s->answers, &s->capacity, s->count + 1, sizeof *s->answers);
        TuneAnswer a = answer_of(&t->g.answers[i], t->rounds);
        if (!(a.seconds > 0)) // the law and the predictions are of logarithms
            return error_system(e, "tune: an answer took no time by the clock, which is too coarse; leave "
                                   "--processor-time away");
        s->answers[s->count++] = a;
        t->answered_s += a.whole_s;
        tune_expect_answered(t, seat);
    }
    return true;
}

bool tune_round(Tune *t, int prompt, Error *e) {
    double from = tune_spent(t);
    bool ok = run_round(&t->g, t->passes[prompt], prompt, t->asked, e);
    if (!ok) {
        group_forget(&t->g);
        return tune_goes_on(t, false, e);
    }
    if (!take_answers(t, e) || !group_store(&t->g, e)) return false;
    t->passes[prompt]++;
    t->rounds++;
    t->wall_s += tune_spent(t) - from;
    const PointProgress *base = t->g.points[t->g.baseline].progress;
    return !base->failed || error_input(e, "tune: the baseline failed: %s", base->why);
}

// The first points to be opened also wake up what all of them share, so they run longer.
bool tune_seat(Tune *t, int seat, Error *e) {
    t->asked[seat] = true;
    if (t->g.points[seat].open) return true;
    int tokens = t->awake < 2 ? WARM_UP_TOKENS : WAKE_TOKENS;
    t->awake++;
    bool ok = group_open_point(&t->g, &t->models, method_open, seat, e) &&
              group_warm_up(&t->g, seat, &t->warm_up, tokens, e);
    return tune_goes_on(t, ok, e);
}

// --- the race among the best

static const double LEVEL = 0.05, LEAST_ERROR = 1e-3;
enum { CHALLENGERS = 2 };
typedef struct Racing {
    Tune *t;
    int *points; // (count)
    bool *out;   // (count)
    int count, units;
    int first, from; // rounds before the race, and before this heat
    double *seconds; // (count + 1, units) means over laps; the baseline's last
} Racing;

// --- times -----------------------------------------------------------------------------------------------

// Mean time of each prompt over the laps in which it was run.
static void mean_times(const Racing *r, const TuneSeat *s, double *out) {
    int prompts = (int)r->t->in->datasets[0].count, laps;
    for (int unit = 0; unit < r->units; unit++) {
        out[unit] = 0, laps = 0;
        for (size_t i = 0; i < s->count; i++) {
            int round = s->answers[i].round - r->from;
            if (round < 0 || round % prompts != unit) continue;
            out[unit] += s->answers[i].seconds;
            laps++;
        }
        if (laps) out[unit] /= laps;
    }
}

static void set_times(Racing *r) {
    int prompts = (int)r->t->in->datasets[0].count, rounds = r->t->rounds - r->from;
    r->units = rounds < prompts ? rounds : prompts;
    for (int i = 0; i <= r->count; i++) {
        int seat = i < r->count ? r->points[i] : r->t->space->count;
        mean_times(r, &r->t->out->seats[seat], r->seconds + i * r->units);
    }
}

// --- the race --------------------------------------------------------------------------------------------

// Takes out what failed on the way. Gives the number that is left.
static int drop_failed(Racing *r) {
    int left = 0;
    for (int i = 0; i < r->count; i++) {
        if (!r->out[i] && r->t->g.points[r->points[i]].progress->failed) {
            r->out[i] = true;
            r->t->asked[r->points[i]] = false;
        }
        left += !r->out[i];
    }
    return left;
}

static void look(Racing *r) {
    int rounds = r->t->rounds - r->from, number = race_look_at(rounds);
    RaceRule rule = {.level = LEVEL, .margin = r->t->o->margin};
    if (!number) return;
    set_times(r);
    if (r->units < 2) return;
    race_look(&rule, r->seconds, r->count, r->units, number, r->out);
    for (int i = 0; i < r->count; i++) {
        TuneSeat *s = &r->t->out->seats[r->points[i]];
        if (!r->out[i] || s->out) continue;
        s->out = r->t->rounds - r->first;
        r->t->asked[r->points[i]] = false;
    }
}

// Those after the sample's come first.
static int prompt_of(const Racing *r) {
    int prompts = (int)r->t->in->datasets[0].count;
    return (r->t->out->sample_prompts + r->t->rounds - r->first) % prompts;
}

static bool run_rounds(Racing *r, Error *e) {
    Tune *t = r->t;
    int most = t->o->laps * (int)t->in->datasets[0].count;
    while (t->rounds - r->first < most) {
        if (drop_failed(r) < 2 && t->rounds - r->from >= PLAN_ROUNDS) {
            t->out->end = TUNE_CERTAIN;
            return true;
        }
        if (tune_is_over(t, t->limit_s, tune_round_seconds(t))) return true;
        tune_say(t, "race", t->rounds - r->first + 1);
        if (!tune_round(t, prompt_of(r), e)) return false;
        look(r);
    }
    t->out->end = drop_failed(r) < 2 ? TUNE_CERTAIN : TUNE_LAPS;
    return true;
}

// --- who won ---------------------------------------------------------------------------------------------

static int fastest(const Racing *r) {
    RacePrior *priors = mem_new((size_t)r->count, sizeof *priors);
    int best = -1;
    for (int i = 0; i < r->count; i++) {
        const TuningPrediction *said = &r->t->out->predictions[r->points[i]];
        double error = hypot(said->error, r->t->out->prompt_error);
        priors[i] = (RacePrior){said->speedup, fmax(error, LEAST_ERROR)};
    }
    best = race_settle(priors, r->seconds, r->count, r->units, r->out);
    mem_free(priors);
    return best;
}

static bool judge(Racing *r, Error *e) {
    TuneResult *out = r->t->out;
    out->race_rounds = r->t->rounds - r->first, out->heat = r->from;
    out->choice = r->points[0]; // as predicted
    if (r->t->rounds == r->from) return true;
    set_times(r);
    int best = fastest(r);
    if (best < 0 && e->kind == ERROR_NONE) error_input(e, "tune: every point of the race failed");
    if (best < 0) return false;
    out->choice = r->points[best];
    const double *base = r->seconds + r->count * r->units, *own = r->seconds + best * r->units;
    return r->units < 2 ||
           bootstrap_ratio(base, own, (size_t)r->units, TALLY_RESAMPLES, 0.95, TALLY_SEED, &out->speedup, e);
}

static bool seat_racers(Racing *r, Error *e) {
    Tune *t = r->t;
    memset(t->asked, 0, (size_t)t->space->count * sizeof *t->asked);
    for (int i = 0; i < r->count; i++) {
        t->out->seats[r->points[i]].raced = true;
        if (!tune_seat(t, r->points[i], e)) return false;
    }
    return true;
}

// As measured; -1: none.
static int best_of_sample(const TuneResult *r) {
    int best = -1;
    double most = 0;
    for (int i = 0; i < r->points; i++) {
        double speedup = r->seats[i].sampled ? tune_speedup(r, i, 0) : 0;
        if (speedup > most) most = speedup, best = i;
    }
    return best;
}

// Cuts the racers to as many as there is time for in PLAN_ROUNDS rounds. Two race if there is time for at
// least two rounds; otherwise none do.
static bool count_racers(Racing *r) {
    Tune *t = r->t;
    double *points = mem_new((size_t)r->count, sizeof *points);
    for (int i = 0; i < r->count; i++) points[i] = t->expected[r->points[i]];
    PlanCosts costs = {t->begin_s, t->expected[t->space->count], points, r->count};
    double left = (t->limit_s - tune_spent(t)) / tune_scale(t);
    int fit = plan_racers(&costs, left);
    if (r->count > fit) r->count = fit < PLAN_RACERS ? PLAN_RACERS : fit;
    if (fit < PLAN_RACERS && 2 * plan_round(&costs, PLAN_RACERS) > left) r->count = 0;
    mem_free(points);
    return true;
}

static bool run_heat(Racing *r, Error *e) {
    bool none = r->t->out->end == TUNE_INTERRUPTED || r->count == 0;
    return (none || (seat_racers(r, e) && run_rounds(r, e))) && judge(r, e);
}

// Lets those that could be faster than the winner race against it. False if there are none, if there is no
// time, or with e filled.
static bool challenge(Racing *r, Error *e) {
    Tune *t = r->t;
    TuneResult *out = t->out;
    if (t->rounds == r->from || t->o->racers < PLAN_RACERS || !tune_predict(t, e)) return false;
    bool *known = mem_new((size_t)out->points, sizeof *known);
    for (int i = 0; i < out->points; i++) known[i] = out->seats[i].raced;
    int most = t->o->racers - 1 < CHALLENGERS ? t->o->racers - 1 : CHALLENGERS;
    r->points[0] = out->choice;
    r->count = 1 + tuning_close_in(out->predictions, known, out->points, most, r->points + 1);
    mem_free(known);
    if (r->count < 2 || !count_racers(r) || r->count < 2) return false;
    memset(r->out, 0, (size_t)r->count * sizeof *r->out);
    r->from = t->rounds;
    return true;
}

static bool run_heats(Racing *r, Error *e) {
    bool ok = run_heat(r, e);
    while (ok && r->t->out->end == TUNE_CERTAIN) {
        if (challenge(r, e)) ok = run_heat(r, e);
        else {
            ok = e->kind == ERROR_NONE;
            r->t->out->end = TUNE_CERTAIN;
            break;
        }
    }
    return ok;
}

bool tune_race(Tune *t, Error *e) {
    size_t most = (size_t)t->o->racers, prompts = t->in->datasets[0].count;
    double began = clock_now(t->wall);
    Racing r = {.t = t, .first = t->rounds, .from = t->rounds};
    r.points = mem_new(most, sizeof *r.points);
    r.out = mem_new(most, sizeof *r.out);
    r.seconds = mem_new((most + 1) * prompts, sizeof *r.seconds);
    bool ok = (r.points && r.out && r.seconds);
    if (ok)
        r.count = tuning_choose(t->out->predictions, t->space->count, best_of_sample(t->out), t->o->racers,
                                r.points);
    ok = ok && count_racers(&r) && run_heats(&r, e);
    t->out->race_s = clock_now(t->wall) - began;
    mem_free(r.points);
    mem_free(r.out);
    mem_free(r.seconds);
    return ok;
}

// --- the result

void tune_release(TuneResult *r) {
    for (int i = 0; r->seats && i <= r->points; i++) mem_free(r->seats[i].answers);
    mem_free(r->seats);
    mem_free(r->predictions);
    *r = (TuneResult){.choice = -1};
}

bool tune_sum(const TuneSeat *s, int from, int to, TuneAnswer *out) {
    int found = 0;
    *out = (TuneAnswer){0};
    for (size_t i = 0; i < s->count; i++) {
        const TuneAnswer *a = &s->answers[i];
        if (a->round < from || a->round >= to) continue;
        out->tokens += a->tokens, out->steps += a->steps;
        out->rows += a->rows, out->seconds += a->seconds;
        out->diverged = out->diverged || a->diverged;
        found++;
    }
    return found > 0;
}

// The baseline answers in every round.
double tune_speedup(const TuneResult *r, int point, int from) {
    const TuneSeat *s = &r->seats[point], *base = &r->seats[r->points];
    double own = 0, whole = 0;
    for (size_t i = 0, k = 0; i < s->count; i++) {
        if (s->answers[i].round < from) continue;
        while (k < base->count && base->answers[k].round < s->answers[i].round) k++;
        if (k == base->count) break;
        own += s->answers[i].seconds, whole += base->answers[k].seconds;
    }
    return own > 0 ? whole / own : NAN;
}
