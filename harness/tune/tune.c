#include "harness/tune/tune.h"

#include "engine/base/memory.h"
#include "harness/program/interrupt.h"
#include "harness/run/seats.h"
#include "harness/tune/race.h"
#include "simulate/design.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Shares of the budget that may be gone when the first parts end. A round that has begun ends.
static const double SURFACE_SHARE = 0.1, SAMPLE_SHARE = 0.4;
enum { CONTEXT_PROMPTS = 8 };

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for tuning"); }

static double spent(const Tune *t) { return clock_now(t->wall) - t->began; }

bool tune_is_over(Tune *t, double share) {
    if (t->seams.interrupted()) t->out->end = TUNE_INTERRUPTED;
    bool gone = !t->o->exhaustive && spent(t) > share * t->o->budget_s;
    return t->out->end == TUNE_INTERRUPTED || gone;
}

void tune_say(const Tune *t, const char *what, int round) {
    if (!t->o->quiet && isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s, round %d; %.0f of %.0f s", what, round, spent(t), t->o->budget_s);
}

// --- a round ---------------------------------------------------------------------------------------------

static TuneAnswer answer_of(const LedgerEntry *entry, int round) {
    TuneAnswer a = {.round = round, .diverged = entry->diverged >= 0};
    for (int i = 0; i < entry->said->count; i++) {
        const DecodeResult *r = &entry->said->turns[i].result;
        a.tokens += r->tokens, a.steps += r->steps, a.rows += r->rows;
        a.seconds += said_decode_seconds(r);
    }
    return a;
}

// Seats stand in the order of the sweep, the baseline's last.
static bool take_answers(Tune *t, Error *e) {
    for (size_t i = 0; i < t->g.entry_count; i++) {
        int seat = t->g.entries[i].point;
        TuneSeat *s = &t->out->seats[seat];
        if (!mem_grow((void **)&s->answers, &s->capacity, s->count + 1, sizeof *s->answers))
            return out_of_memory(e);
        s->answers[s->count++] = answer_of(&t->g.entries[i], t->rounds);
    }
    return true;
}

bool tune_round(Tune *t, Error *e) {
    int prompts = (int)t->in->datasets[0].count;
    if (!round_run(&t->g, t->rounds / prompts, t->rounds % prompts, t->asked, e) || !take_answers(t, e) ||
        !round_store(&t->g, e))
        return false;
    t->rounds++;
    const PointState *base = t->g.seats[t->g.baseline].state;
    return !base->failed || error_input(e, "tune: the baseline failed: %s", base->why);
}

bool tune_seat(Tune *t, int seat, Error *e) {
    t->asked[seat] = true;
    return t->g.seats[seat].open ||
           (seat_open(&t->g, &t->models, method_open, seat, e) && seat_warm_up(&t->g, seat, &t->warm_up, e));
}

// --- the surface -----------------------------------------------------------------------------------------

// Tokens of a prompt, and half of its answer.
static bool middle_context(const Tune *t, int *out, Error *e) {
    const Dataset *d = &t->in->datasets[0];
    size_t sum = 0, n = 0;
    for (; n < d->count && n < CONTEXT_PROMPTS; n++) {
        IdList ids = {0};
        const char *text = d->prompts[n].turns[0];
        if (!tokenizer_encode(t->g.tokenizer, text, strlen(text), false, &ids, e)) return false;
        sum += ids.count;
        ids_release(&ids);
    }
    *out = (int)(sum / n) + t->in->schedule->points[0].settings.max_tokens / 2;
    return true;
}

static bool measure_surface(Tune *t, Error *e) {
    TuneSurfaceAsk ask = {.most_rows = t->space->most_rows,
                          .longest = t->space->longest,
                          .seconds = SURFACE_SHARE * t->o->budget_s,
                          .clock = t->g.measuring.clock,
                          .interrupted = t->seams.interrupted};
    tune_say(t, "surface", 1);
    if (!middle_context(t, &ask.context, e)) return false;
    if (tune_surface(&t->models.target, &ask, &t->out->surface, e)) return true;
    t->out->end = TUNE_INTERRUPTED;
    return e->kind == ERROR_NONE;
}

static TuningCurve rising_curve(const TuneResult *r, double *seconds) {
    TuningCurve c = {r->surface.rows, seconds, r->surface.count};
    memcpy(seconds, r->surface.seconds, (size_t)c.count * sizeof *seconds);
    tuning_curve_rise(&c);
    return c;
}

// --- the sample ------------------------------------------------------------------------------------------

// Where steps of many rows are dear, the corners of the space cost most and win least: the sample is taken
// from the half of the points whose steps are shortest, from so many that it can be spread, and from all that
// are not much longer than one token's.
static bool allow(Tune *t, int sample, bool *allowed, Error *e) {
    enum { SPREAD = 4 };
    const double NOT_MUCH = 1.5;
    double seconds[TUNING_MOST_CURVE];
    TuningCurve curve = rising_curve(t->out, seconds);
    int count = t->space->count, half = count / 2 > SPREAD * sample ? count / 2 : SPREAD * sample;
    double *times = mem_alloc(2 * (size_t)count, sizeof *times);
    if (!times) return out_of_memory(e);
    double *sorted = times + count;
    for (int i = 0; i < count; i++) {
        const TuningPoint *p = &t->space->points[i];
        times[i] = sorted[i] = tuning_curve_at(&curve, p->rows) / curve.seconds[0];
        t->out->excluded += times[i] >= p->N; // if all it can emit is accepted, it is no faster
    }
    double most = fmax(NOT_MUCH, quantile(sorted, (size_t)count, fmin(1, (double)half / count)));
    for (int i = 0; i < count; i++) allowed[i] = t->o->exhaustive || times[i] <= most;
    mem_free(times);
    return true;
}

static int sample_size(const Tune *t) {
    if (t->o->exhaustive) return t->space->count;
    return t->o->sample ? t->o->sample : 2 * t->space->axes + 3;
}

static bool choose_sample(Tune *t, Error *e) {
    const TuneSpace *s = t->space;
    int most = sample_size(t), n = 0;
    int *chosen = mem_alloc((size_t)most, sizeof *chosen);
    bool *allowed = mem_alloc((size_t)s->count, sizeof *allowed);
    bool ok = (chosen && allowed) || out_of_memory(e);
    ok = ok && allow(t, most, allowed, e) && tune_seat(t, s->count, e);
    if (ok) n = design_points(s->places, allowed, s->count, s->axes, most, chosen, e);
    ok = ok && n >= 0;
    for (int i = 0; ok && i < n; i++) {
        t->out->seats[chosen[i]].sampled = true;
        ok = tune_seat(t, chosen[i], e);
    }
    mem_free(chosen);
    mem_free(allowed);
    return ok;
}

static bool measure_sample(Tune *t, Error *e) {
    double from = spent(t);
    int prompts = (int)t->in->datasets[0].count;
    if (!choose_sample(t, e)) return false;
    int most = t->o->exhaustive || t->o->prompts > prompts ? prompts : t->o->prompts;
    while (t->rounds < most) {
        if (tune_is_over(t, SAMPLE_SHARE) && (t->rounds > 0 || t->out->end == TUNE_INTERRUPTED)) break;
        tune_say(t, "sample", t->rounds + 1);
        if (!tune_round(t, e)) return false;
    }
    t->out->sample_rounds = t->rounds;
    t->out->sample_s = spent(t) - from;
    return true;
}

// --- what the sample says --------------------------------------------------------------------------------

static double log_S(const TuneAnswer *a) { return log(a->tokens / a->steps); }
static double log_step(const TuneAnswer *a) { return log(a->seconds / a->steps); }

// The standard error of a point's mean, beside what prompts do to all points alike: from the residuals of
// point + prompt. One prompt alone says nothing of it.
static double ranking_error(const TuneResult *r, double (*value)(const TuneAnswer *a)) {
    const double UNKNOWN = 0.05;
    int rounds = r->sample_rounds, points = 0;
    double squares = 0;
    if (rounds < 2) return UNKNOWN;
    double *common = mem_alloc((size_t)rounds, sizeof *common);
    if (!common) return UNKNOWN;
    for (int i = 0; i < r->points; i++) points += r->seats[i].sampled && (int)r->seats[i].count == rounds;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->points; i++) {
            const TuneSeat *s = &r->seats[i];
            double mean = 0;
            if (!s->sampled || (int)s->count != rounds) continue;
            for (int k = 0; k < rounds; k++) mean += value(&s->answers[k]) / rounds;
            for (int k = 0; k < rounds; k++) {
                double off = value(&s->answers[k]) - mean;
                if (pass == 0) common[k] += off / points;
                else squares += (off - common[k]) * (off - common[k]);
            }
        }
    mem_free(common);
    return points > 1 ? sqrt(squares / ((points - 1) * (rounds - 1)) / rounds) : UNKNOWN;
}

static int list_measured(const TuneResult *r, TuningMeasured *out) {
    double S_error = ranking_error(r, log_S), time_error = ranking_error(r, log_step);
    int n = 0;
    for (int i = 0; i < r->points; i++) {
        TuneAnswer sum;
        if (!r->seats[i].sampled || !tune_sum(&r->seats[i], 0, r->sample_rounds, &sum)) continue;
        out[n++] = (TuningMeasured){.point = i,
                                    .tokens = sum.tokens,
                                    .steps = sum.steps,
                                    .rows = sum.rows,
                                    .seconds = sum.seconds,
                                    .S_error = S_error,
                                    .time_error = time_error};
    }
    return n;
}

static bool predict(Tune *t, Error *e) {
    TuneResult *out = t->out;
    double seconds[TUNING_MOST_CURVE];
    TuningMeasured *measured = mem_alloc((size_t)out->points, sizeof *measured);
    TuneAnswer base;
    if (!measured) return out_of_memory(e);
    TuningProblem p = {.space = t->space->points,
                       .count = t->space->count,
                       .axes = t->space->axes,
                       .measured = measured,
                       .measured_count = list_measured(out, measured),
                       .curve = rising_curve(out, seconds)};
    bool ok = p.measured_count > 0 && tune_sum(&out->seats[out->points], 0, out->sample_rounds, &base);
    if (!ok) error_input(e, "tune: none of the sample's points could be run");
    p.token_s = ok ? base.seconds / base.tokens : 0;
    ok = ok && tuning_predict(&p, out->predictions, &out->law, e);
    mem_free(measured);
    return ok;
}

// The fastest of all.
static bool sweep(Tune *t, Error *e) {
    TuneResult *out = t->out;
    double most = 0;
    for (int i = 0; i < out->points; i++) {
        double speedup = tune_speedup(out, i, 0);
        if (speedup > most && !t->g.seats[i].state->failed) most = speedup, out->choice = i;
    }
    if (out->end != TUNE_INTERRUPTED) out->end = TUNE_SWEPT;
    return out->choice >= 0 || error_input(e, "tune: every point failed");
}

// --- all of it -------------------------------------------------------------------------------------------

static bool open_tune(Tune *t, Error *e) {
    const Schedule *s = t->in->schedule;
    const InputModel *model = &t->in->models[0];
    const char *template = t->in->experiment->datasets[0].template;
    size_t seats = (size_t)s->groups[0].count;
    t->states = mem_alloc((size_t)s->point_count, sizeof *t->states);
    t->asked = mem_alloc(seats, sizeof *t->asked);
    t->out->seats = mem_alloc(seats, sizeof *t->out->seats);
    t->out->predictions = mem_alloc(seats, sizeof *t->out->predictions);
    if (!t->states || !t->asked || !t->out->seats || !t->out->predictions) return out_of_memory(e);
    for (int i = 0; i < s->point_count; i++) t->states[i].prompts = (int)t->in->datasets[0].count;
    if (!seats_open_models(t->in, 0, &t->models, e)) return false;
    Clock clock = t->o->processor ? clock_processor() : clock_monotonic();
    t->wall = clock_monotonic();
    if (t->seams.clock) t->wall = clock = t->seams.clock(&t->models.target.session);
    watch_begin(&t->watch, t->wall);
    t->began = clock_now(t->wall);
    t->g.measuring = (Measuring){.target = &t->models.target.session,
                                 .tokenizer = model->tokenizer,
                                 .template = template ? template_find(template, e) : NULL,
                                 .eos = t->models.target.model.eos,
                                 .eos_count = t->models.target.model.eos_count,
                                 .clock = clock,
                                 .watch = &t->watch};
    t->g.tokenizer = model->tokenizer;
    return seats_make(&t->g, t->states, e) && seats_warm_up_prompts(&t->models, 1, &t->warm_up, e);
}

static void close_tune(Tune *t) {
    if (!t->o->quiet && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    seats_release(&t->g);
    for (int i = 0; t->states && i < t->in->schedule->point_count; i++) {
        t->out->failed += t->states[i].failed;
        t->out->diverged += t->states[i].diverged > 0;
        state_release(&t->states[i]);
    }
    mem_free(t->states);
    mem_free(t->asked);
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
    if (ok && out->end != TUNE_INTERRUPTED) ok = measure_sample(&t, e);
    if (ok && out->sample_rounds > 0)
        ok = predict(&t, e) && (o->exhaustive ? sweep(&t, e) : tune_race(&t, e));
    close_tune(&t);
    return ok;
}
