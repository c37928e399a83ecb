// The race among the best few points, and who won it. Its answers improve the prediction of the whole space.
// Points that by this could still be faster than the winner race against it in a further heat, if there is
// time.
#include "harness/tune/parts.h"

#include "engine/base/memory.h"
#include "simulate/plan.h"
#include "simulate/race.h"

#include <math.h>
#include <string.h>

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
