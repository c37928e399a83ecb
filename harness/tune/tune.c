// See tune.h. Every answer is kept: points are compared by the summed times of the prompts that all of them
// have answered, and how long the next round will take is expected from the answers so far.
#include "harness/tune/tune.h"

#include "engine/base/memory.h"
#include "harness/cli/signals.h"
#include "simulate/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double GUESSED_S = 1.5;     // tokens per step where nothing is measured yet
static const double SURFACE_SHARE = 0.1; // most of the budget, and of a sweep's share, for the surface

enum {
    CONTEXT_PROMPTS = 8,
    WAKE_TOKENS = 2,  // that a seat writes before its first round
    CUT = 3,          // a rung keeps one point in so many
    LEAST_ROUNDS = 4, // of a race; fewer decide nothing
    LEAST_POINTS = 6, // the smallest sample and race that the share of a sweep must leave room for
    LEAST_PROMPTS = 2,
    LEAST_RACERS = 2
};

typedef struct Tune {
    const Inputs *in;
    const TuneSpace *space;
    const TuneOptions *o;
    TuneSeams seams;
    TuneResult *out;
    Models models;
    GroupRun g;
    PointProgress *states; // (points of the schedule)
    PromptList warm_up;
    Reporter reporter;
    char phase[96]; // of its place
    Watch watch;
    bool *asked;               // (seats) for the next round
    int *passes;               // (units) so far
    double *planned;           // (seats) seconds of a round with its prefill, before any was measured
    double *expected;          // (seats) the same, by what was measured since
    double wall_s, answered_s; // of all rounds by the wall clock; of their answers by the measuring clock
    double begin_s;            // expected time to open one more point and wake it up
    double prompt_tokens;      // of the dataset's prompts, on average
    Clock wall;                // of the budget
    double began;
    double limit_s; // the smaller of the budget and the share of a sweep
    double least_s; // lower bound of that share, counted from the start
    int *in_race;   // (in_count) points that are left
    int in_count;
    int rounds; // so far
    int awake;  // seats
    int units;  // rounds that it takes to answer every prompt
} Tune;

// What holds between rounds.
static void tune_check(const Tune *t) {
    assert(t->in_count >= 0 && t->in_count <= t->space->count);
    assert(t->out->seats[t->space->count].count == (size_t)t->rounds); // the baseline answers in every round
    for (int i = 0; i < t->in_count; i++) {
        const TuneSeat *s = &t->out->seats[t->in_race[i]];
        assert(s->count <= (size_t)t->rounds);
        assert(s->count == 0 || s->answers[s->count - 1].round < t->rounds);
    }
}

// --- rounds

static double spent_s(const Tune *t) { return clock_now(t->wall) - t->began; }

static bool is_over(Tune *t, double until, double next) {
    if (t->seams.interrupted()) t->out->end = TUNE_INTERRUPTED;
    bool gone = !t->o->exhaustive && spent_s(t) + next > until;
    return t->out->end == TUNE_INTERRUPTED || gone;
}

static void show_phase(Tune *t, const char *what, int round) {
    snprintf(t->phase, sizeof t->phase, "%s, round %d; %.0f of %s%.0f s", what, round, spent_s(t),
             t->o->exhaustive ? "about " : "", t->o->exhaustive ? t->out->sweep_s : t->limit_s);
    reporter_place(&t->reporter, &(ReporterPlace){.phase = t->phase});
}

static bool goes_on(Tune *t, bool ok, Error *e) {
    if (ok || e->kind != ERROR_INTERRUPTED) return ok;
    *e = (Error){0};
    t->out->end = TUNE_INTERRUPTED;
    return true;
}

// --- how long answers take

// Wall-clock seconds per second of the measuring clock, so far: above 1 where others use the machine, too.
static double wall_scale(const Tune *t) { return t->answered_s > 0 ? t->wall_s / t->answered_s : 1; }

// A step of the point, by its warm-up: of one sequence, which in a batch tells nothing of a shared step.
static double warm_step(const Tune *t, const GroupPoint *p, double by_surface) {
    return t->out->batch > 1 ? fmax(p->step_s, by_surface) : p->step_s;
}

// Of all points, from the surface and the warm-up of one point and the baseline.
static void expect_planned(Tune *t, int seat) {
    const TuneSpace *space = t->space;
    const GroupPoint *base = &t->g.points[t->g.baseline], *one = &t->g.points[seat];
    double seconds[TUNING_MOST_CURVE], tokens = t->in->schedule->points[0].settings.max_tokens;
    TuningCurve curve = tune_curve(&t->out->surface, seconds);
    double whole = tuning_curve_at(&curve, t->prompt_tokens);
    double of_surface = tuning_curve_at(&curve, space->points[seat].rows);
    double slow = warm_step(t, one, of_surface) / of_surface;
    t->planned[space->count] = t->out->batch * fmin(whole, t->prompt_tokens * base->prefill_s) +
                               tokens * warm_step(t, base, curve.seconds[0]);
    for (int i = 0; i < space->count; i++)
        t->planned[i] = t->out->batch * fmin(whole, t->prompt_tokens * one->prefill_s) +
                        tokens / GUESSED_S * slow * tuning_curve_at(&curve, space->points[i].rows);
    memcpy(t->expected, t->planned, (size_t)(space->count + 1) * sizeof *t->expected);
    t->begin_s = one->prefill_s * (double)t->warm_up.prompts[0].count + one->step_s;
}

// Points that have not answered are expected to differ from their plan as those do that have.
static void expect_rest(Tune *t) {
    double took = 0, planned = 0;
    for (int i = 0; i < t->space->count; i++)
        if (t->out->seats[i].count) took += t->expected[i], planned += t->planned[i];
    for (int i = 0; i < t->space->count && planned > 0; i++)
        if (!t->out->seats[i].count) t->expected[i] = t->planned[i] * took / planned;
}

static void set_limit(Tune *t) {
    double sum = 0;
    for (int i = 0; i <= t->space->count; i++) sum += t->expected[i];
    t->out->sweep_s = wall_scale(t) * sum * t->units;
    t->limit_s = fmin(t->o->budget_s, fmax(t->o->share * t->out->sweep_s, t->least_s));
    if (t->out->end != TUNE_INTERRUPTED) t->out->end = t->limit_s < t->o->budget_s ? TUNE_SHARE : TUNE_BUDGET;
}

// One round by these points and the baseline, by the wall clock.
static double round_seconds(const Tune *t, const int *points, int count) {
    double sum = t->expected[t->space->count];
    for (int i = 0; i < count; i++) sum += t->expected[points[i]];
    return wall_scale(t) * sum;
}

static TuneAnswer answer_of(const Answer *entry, int round) {
    TuneAnswer a = {.round = round, .diverged = entry->diverged >= 0};
    for (int i = 0; i < entry->count; i++) {
        const DecodeResult *r = &entry->turns[i].result;
        a.tokens += r->tokens, a.steps += r->steps, a.rows += r->rows;
        a.seconds += answer_decode_seconds(r);
        a.whole_s += r->prefill_s - entry->turns[i].shared_s;
    }
    a.whole_s += a.seconds;
    return a;
}

// A sequence's times are its part of the batch's, so they add up.
static void add_answer(TuneSeat *s, const TuneAnswer *a) {
    TuneAnswer *last = s->count ? &s->answers[s->count - 1] : NULL;
    if (!last || last->round != a->round) {
        *LIST_ADD(s->answers, s->count, s->capacity) = *a;
        return;
    }
    last->tokens += a->tokens, last->steps += a->steps, last->rows += a->rows;
    last->seconds += a->seconds, last->whole_s += a->whole_s;
    last->diverged = last->diverged || a->diverged;
}

// Seats are in the order of the sweep, the baseline's last.
static bool take_answers(Tune *t, Error *e) {
    for (size_t i = 0; i < t->g.answer_count; i++) {
        int seat = t->g.answers[i].point;
        TuneAnswer a = answer_of(&t->g.answers[i], t->rounds);
        if (!(a.seconds > 0)) // times are divided by
            return error_system(e, "tune: an answer took no time by the clock, which is too coarse; leave "
                                   "--processor-time away");
        add_answer(&t->out->seats[seat], &a);
        t->answered_s += a.whole_s;
        const TuneSeat *s = &t->out->seats[seat];
        double sum = 0;
        for (size_t k = 0; k < s->count; k++) sum += s->answers[k].whole_s;
        t->expected[seat] = sum / (double)s->count;
    }
    return true;
}

static bool ask_round(Tune *t, int unit, Error *e) {
    double from = spent_s(t);
    int pass = t->passes[unit], batch = t->out->batch;
    bool ok = batch > 1 ? run_batch(&t->g, pass, unit * batch, batch, t->asked, e)
                        : run_round(&t->g, pass, unit, t->asked, e);
    if (!ok) {
        group_forget(&t->g);
        return goes_on(t, false, e);
    }
    if (!take_answers(t, e) || !group_store(&t->g, e)) return false;
    t->passes[unit]++;
    t->rounds++;
    t->wall_s += spent_s(t) - from;
    const PointProgress *base = t->g.points[t->g.baseline].progress;
    if (base->failed) return error_input(e, "tune: the baseline failed: %s", base->why);
    tune_check(t);
    return true;
}

// The first points to be opened also wake up what all of them share, so they run longer.
static bool open_seat(Tune *t, int seat, Error *e) {
    t->asked[seat] = true;
    if (t->g.points[seat].open) return true;
    int tokens = t->awake < 2 ? WARM_UP_TOKENS : WAKE_TOKENS;
    t->awake++;
    bool ok =
        group_open_point(&t->g, method_open, seat, e) && group_warm_up(&t->g, seat, &t->warm_up, tokens, e);
    return goes_on(t, ok, e);
}

// Sets the mean number of tokens of a prompt, from the first few.
static bool measure_prompts(Tune *t, Error *e) {
    const Dataset *d = &t->in->datasets[0];
    size_t sum = 0, n = 0;
    for (; n < d->count && n < CONTEXT_PROMPTS; n++) {
        LOCAL(ids_release) IdList ids = {0};
        const char *text = d->prompts[n].turns[0];
        bool ok = tokenizer_encode(t->g.env.tokenizer, text, strlen(text), false, &ids, e);
        sum += ids.count;
        if (!ok) return false;
    }
    t->prompt_tokens = (double)sum / (double)n;
    return true;
}

// For the limit a sweep is taken to run steps of one row that emit GUESSED_S tokens.
static bool measure_surface(Tune *t, Error *e) {
    double max_tokens = t->in->schedule->points[0].settings.max_tokens;
    double answers = (double)(t->space->count + 1) * t->units;
    TuneSurfaceAsk ask = {.most_rows = t->space->most_rows,
                          .longest = t->space->longest,
                          .seconds = SURFACE_SHARE * t->o->budget_s,
                          .steps = SURFACE_SHARE * t->o->share * answers * max_tokens / GUESSED_S,
                          .clock = t->g.env.clock,
                          .watch = t->o->processor || t->seams.clock ? NULL
                                                                     : &t->watch}; // of the wall's time only
    show_phase(t, "surface", 1);
    if (!measure_prompts(t, e)) return false;
    ask.context = (int)(t->prompt_tokens + max_tokens / 2);
    if (!goes_on(t, tune_surface(&t->models.target, &ask, &t->out->surface, e), e)) return false;
    for (int i = 0; i < t->o->context_count && t->out->end != TUNE_INTERRUPTED; i++) {
        ask.context = t->o->contexts[i];
        show_phase(t, "surface", 2 + i);
        if (!goes_on(t, tune_surface(&t->models.target, &ask, &t->out->elsewhere[i], e), e)) return false;
    }
    return true;
}

// --- halving ---------------------------------------------------------------------------------------------

typedef struct Ranked {
    double value;
    int point;
} Ranked;

static int by_value(const void *a, const void *b) {
    const Ranked *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->point - y->point;
}

// The points that can win, those with the fewest planned rows first. A point can't win if the models refuse
// it, or if its step takes longer than the N tokens that it emits at most; where that holds of all, all of
// them are in. Gives their number.
static int list_points(Tune *t, Ranked *out) {
    double seconds[TUNING_MOST_CURVE];
    TuningCurve curve = tune_curve(&t->out->surface, seconds);
    int n = 0;
    for (int all = t->o->exhaustive; n == 0; all = true)
        for (int i = 0; i < t->space->count; i++) {
            const TuningPoint *p = &t->space->points[i];
            bool can =
                !inputs_refusal(t->in, i) && tuning_curve_at(&curve, p->rows) / curve.seconds[0] < p->N;
            t->out->excluded += !can && (!all || t->o->exhaustive);
            if (all || can) out[n++] = (Ranked){p->rows, i};
        }
    qsort(out, (size_t)n, sizeof *out, by_value);
    return n;
}

// How many times `count` points are cut, if each cut leaves one in CUT: at least once.
static int count_rungs(int count) {
    int rungs = 1;
    for (int left = CUT; left < count; left *= CUT) rungs++;
    return rungs;
}

// `count` of the listed points, evenly spread over the list.
static void spread(const Ranked *listed, int n, int count, int *out) {
    for (int i = 0; i < count; i++)
        out[i] = listed[count > 1 ? (int)((int64_t)i * (n - 1) / (count - 1)) : 0].point;
}

static double first_seconds(const Tune *t, int count) {
    return wall_scale(t) * count * t->begin_s + round_seconds(t, t->in_race, count);
}

// As many points as can answer one prompt in the first rung's part of the time; two, if they can in all of
// it.
static bool choose_first(Tune *t, const Ranked *listed, int n, Error *e) {
    int count = n, fewest = n < 2 ? n : 2;
    // The smallest sample and race that tell anything.
    int points = n < LEAST_POINTS ? n : LEAST_POINTS, racers = n < LEAST_RACERS ? n : LEAST_RACERS;
    spread(listed, n, points, t->in_race);
    t->least_s = spent_s(t) + first_seconds(t, points) +
                 (LEAST_PROMPTS - 1) * round_seconds(t, t->in_race, points) +
                 LEAST_ROUNDS * round_seconds(t, t->in_race, racers);
    set_limit(t);
    double left = t->limit_s - spent_s(t);
    for (; count > fewest; count--) {
        spread(listed, n, count, t->in_race);
        if (first_seconds(t, count) <= left / count_rungs(count)) break;
    }
    spread(listed, n, count, t->in_race);
    if (count <= fewest && first_seconds(t, count) > left)
        return error_input(
            e,
            "tune: nothing can be told in --budget %gs: one prompt by %d points and the baseline takes "
            "about %.2g s here; give --budget %.0fs, or fewer --max-tokens",
            t->o->budget_s, fewest, first_seconds(t, fewest) + spent_s(t), ceil(t->least_s));
    t->in_count = count;
    return true;
}

// All remaining points answer further prompts until `until`, at least one round in the first rung.
static bool run_rung(Tune *t, double until, Error *e) {
    while (t->rounds < t->units) {
        double next = round_seconds(t, t->in_race, t->in_count);
        if (is_over(t, t->rounds ? until : HUGE_VAL, next)) break;
        show_phase(t, "sample", t->rounds + 1);
        if (!ask_round(t, t->rounds, e)) return false;
    }
    return true;
}

static double seconds_of(const TuneSeat *s) {
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->answers[i].seconds;
    return sum;
}

// Keeps the `most` that were fastest so far: all have answered the same prompts.
static void cut(Tune *t, int most) {
    LOCAL_MEMORY Ranked *ranked = mem_new((size_t)t->in_count + 1, sizeof *ranked);
    int n = 0;
    for (int i = 0; i < t->in_count; i++) {
        int point = t->in_race[i];
        t->asked[point] = false;
        if (!t->g.points[point].progress->failed)
            ranked[n++] = (Ranked){seconds_of(&t->out->seats[point]), point};
    }
    qsort(ranked, (size_t)n, sizeof *ranked, by_value);
    t->in_count = n < most ? n : most;
    for (int i = 0; i < t->in_count; i++) t->in_race[i] = ranked[i].point, t->asked[ranked[i].point] = true;
    tune_check(t);
}

// Rungs, each of an equal part of the time that is left, until no more are in than may race.
static bool halve(Tune *t, Error *e) {
    int rungs = count_rungs(t->in_count);
    for (int rung = 0;; rung++) {
        double share = (t->limit_s - spent_s(t)) / (rungs > rung ? rungs - rung : 1);
        if (!run_rung(t, spent_s(t) + share, e)) return false;
        if (t->rounds == 0 || t->out->end == TUNE_INTERRUPTED) return true;
        expect_rest(t);
        set_limit(t);
        int most = (t->in_count + CUT - 1) / CUT;
        cut(t, most > t->o->racers ? most : t->o->racers);
        if (t->in_count == 0) return error_input(e, "tune: none of the sample's points could be run");
        if (t->in_count <= t->o->racers) return true;
    }
}

static bool take_sample(Tune *t, Error *e) {
    double from = spent_s(t);
    LOCAL_MEMORY Ranked *listed = mem_new((size_t)t->space->count, sizeof *listed);
    int n = list_points(t, listed);
    bool ok = open_seat(t, t->space->count, e) && open_seat(t, listed[0].point, e);
    if (ok && t->out->end != TUNE_INTERRUPTED) {
        expect_planned(t, listed[0].point);
        if (t->o->exhaustive) {
            set_limit(t);
            spread(listed, n, t->in_count = n, t->in_race);
        } else ok = choose_first(t, listed, n, e);
        memset(t->asked, 0, (size_t)t->space->count * sizeof *t->asked);
        for (int i = 0; ok && i < t->in_count; i++) {
            ok = open_seat(t, t->in_race[i], e);
            t->out->seats[t->in_race[i]].sampled = ok && t->out->end != TUNE_INTERRUPTED;
        }
        if (ok && t->out->end != TUNE_INTERRUPTED)
            ok = t->o->exhaustive ? run_rung(t, HUGE_VAL, e) : halve(t, e);
    }
    t->out->sample_rounds = t->rounds;
    t->out->sample_s = spent_s(t) - from;
    return ok;
}

// --- the race among the best -----------------------------------------------------------------------------

static const double LEVEL = 0.05;

typedef struct Racing {
    Tune *t;
    int *points; // (count): those that were in when it began
    bool *out;   // (count)
    int count, units;
    int first;       // rounds before the race
    double *seconds; // (count + 1, units) means over laps; the baseline's last
} Racing;

// Mean time of each unit over the laps in which it was run.
static void mean_times(const Racing *r, const TuneSeat *s, double *out) {
    int laps;
    for (int unit = 0; unit < r->units; unit++) {
        out[unit] = 0, laps = 0;
        for (size_t i = 0; i < s->count; i++) {
            int round = s->answers[i].round - r->first;
            if (round < 0 || round % r->t->units != unit) continue;
            out[unit] += s->answers[i].seconds;
            laps++;
        }
        if (laps) out[unit] /= laps;
    }
}

static void set_times(Racing *r) {
    int rounds = r->t->rounds - r->first;
    r->units = rounds < r->t->units ? rounds : r->t->units;
    for (int i = 0; i <= r->count; i++) {
        int seat = i < r->count ? r->points[i] : r->t->space->count;
        mean_times(r, &r->t->out->seats[seat], r->seconds + i * r->units);
    }
}

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
    int rounds = r->t->rounds - r->first, number = race_look_at(rounds);
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

static double asked_seconds(const Tune *t) {
    double sum = t->expected[t->space->count];
    for (int i = 0; i < t->space->count; i++) sum += t->asked[i] ? t->expected[i] : 0;
    return wall_scale(t) * sum;
}

static bool run_rounds(Racing *r, Error *e) {
    Tune *t = r->t;
    int most = t->o->laps * t->units;
    while (t->rounds - r->first < most) {
        if (drop_failed(r) < 2 && t->rounds - r->first >= LEAST_ROUNDS) {
            t->out->end = TUNE_CERTAIN;
            return true;
        }
        if (is_over(t, t->limit_s, asked_seconds(t))) return true;
        show_phase(t, "race", t->rounds - r->first + 1);
        // Those after the sample's come first.
        int unit = (t->out->sample_rounds + t->rounds - r->first) % t->units;
        if (!ask_round(t, unit, e)) return false;
        look(r);
    }
    t->out->end = drop_failed(r) < 2 ? TUNE_CERTAIN : TUNE_LAPS;
    return true;
}

static bool judge(Racing *r, Error *e) {
    TuneResult *out = r->t->out;
    out->race_rounds = r->t->rounds - r->first;
    drop_failed(r);
    int best = -1; // of those left, by all that it has answered
    for (int i = 0; i < r->count; i++)
        if (!r->out[i] &&
            (best < 0 || seconds_of(&out->seats[r->points[i]]) < seconds_of(&out->seats[r->points[best]])))
            best = i;
    if (best < 0) return error_input(e, "tune: every point of the race failed");
    out->choice = r->points[best];
    if (out->race_rounds == 0) return true;
    set_times(r);
    const double *base = r->seconds + r->count * r->units, *own = r->seconds + best * r->units;
    return r->units < 2 ||
           bootstrap_ratio(base, own, (size_t)r->units, TALLY_RESAMPLES, 0.95, TALLY_SEED, &out->speedup, e);
}

static bool run_race(Tune *t, Error *e) {
    double began = spent_s(t), left = t->limit_s - spent_s(t);
    // Takes out the slowest until LEAST_ROUNDS rounds fit into the time that is left, but leaves two. The
    // fastest of the sample come first.
    while (t->in_count > LEAST_RACERS && LEAST_ROUNDS * round_seconds(t, t->in_race, t->in_count) > left)
        t->asked[t->in_race[--t->in_count]] = false;
    size_t most = (size_t)t->in_count;
    Racing r = {.t = t, .points = t->in_race, .count = t->in_count, .first = t->rounds};
    r.out = mem_new(most, sizeof *r.out);
    r.seconds = mem_new((most + 1) * (size_t)t->units, sizeof *r.seconds);
    if (t->out->end != TUNE_INTERRUPTED && 2 * asked_seconds(t) <= t->limit_s - spent_s(t))
        for (int i = 0; i < r.count; i++) t->out->seats[r.points[i]].raced = true;
    bool run = r.count > 0 && t->out->seats[r.points[0]].raced;
    bool ok = (!run || run_rounds(&r, e)) && judge(&r, e);
    t->out->race_s = spent_s(t) - began;
    MEM_FREE(r.out, r.seconds);
    return ok;
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
    size_t seats = (size_t)s->groups[0].count;
    t->states = mem_new((size_t)s->point_count, sizeof *t->states);
    t->asked = mem_new(seats, sizeof *t->asked);
    t->expected = mem_new(seats, sizeof *t->expected);
    t->planned = mem_new(seats, sizeof *t->planned);
    t->in_race = mem_new(seats, sizeof *t->in_race);
    t->out->batch = options_batch(&s->points[0].settings.engine);
    t->units = (int)t->in->datasets[0].count / t->out->batch;
    t->passes = mem_new((size_t)t->units, sizeof *t->passes);
    t->out->seats = mem_new(seats, sizeof *t->out->seats);
    for (int i = 0; i < s->point_count; i++) t->states[i].prompts = (int)t->in->datasets[0].count;
    reporter_begin(&t->reporter, false, 0, 0, t->seams.interrupted);
    t->reporter.line.on = !t->o->quiet;
    if (!group_open_models(t->in, 0, reporter_progress(&t->reporter), &t->models, e)) return false;
    Clock clock = t->o->processor ? clock_processor() : clock_monotonic();
    t->wall = clock_monotonic();
    if (t->seams.clock) t->wall = clock = t->seams.clock(&t->models.target.session);
    watch_begin(&t->watch, t->wall);
    t->began = clock_now(t->wall);
    t->g.env = group_env(t->in, t->g.group, &t->models, clock, &t->watch);
    group_warm_up_prompts(&t->models, 1, &t->warm_up);
    group_init(&t->g, t->states);
    return true;
}

static void close_tune(Tune *t) {
    reporter_clear(&t->reporter);
    group_release(&t->g);
    for (int i = 0; t->states && i < t->in->schedule->point_count; i++) {
        t->out->failed += t->states[i].failed;
        t->out->diverged += t->states[i].diverged > 0;
        point_progress_release(&t->states[i]);
    }
    MEM_FREE(t->states, t->asked, t->expected, t->planned, t->in_race, t->passes);
    prompts_release(&t->warm_up);
    models_close(&t->models);
}

bool tune_run(Ledger *ledger, const TuneSpace *space, const TuneOptions *o, const TuneSeams *seams,
              TuneResult *out, Error *e) {
    *out = (TuneResult){.points = space->count, .choice = -1, .end = TUNE_BUDGET};
    Tune t = {.in = ledger->inputs, .space = space, .o = o, .out = out};
    t.seams = seams ? *seams : (TuneSeams){0};
    if (!t.seams.interrupted) t.seams.interrupted = interrupt_seen;
    t.g = (GroupRun){
        .ledger = ledger, .reporter = &t.reporter, .models = &t.models, .group = &t.in->schedule->groups[0]};
    t.g.baseline = t.g.group->baseline - t.g.group->first;
    bool ok = open_tune(&t, e) && measure_surface(&t, e);
    if (ok && out->end != TUNE_INTERRUPTED) ok = take_sample(&t, e);
    if (ok && out->sample_rounds > 0) ok = o->exhaustive ? sweep(&t, e) : run_race(&t, e);
    close_tune(&t);
    return ok;
}
