// The sample: points of a design, then those that may be the best, on the same prompts. How many points and
// prompts there are, the time decides.
#include "engine/base/memory.h"
#include "harness/tune/parts.h"
#include "harness/tune/tune.h"
#include "simulate/design.h"
#include "simulate/plan.h"
#include "simulate/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Shares of the time that is left after the surface; what remains is for the race.
static const double DESIGN_SHARE = 0.45, SAMPLE_SHARE = 0.6;
enum { CLOSE = 2 }; // points that are added at a time when closing in

// --- which points ----------------------------------------------------------------------------------------

// Where steps of many rows are slow, the corners of the space take the most time and win the least. So a
// point is allowed into the design only if it can win at all (a step is faster than the tokens that it could
// emit), and if its step is among the shorter half, or not much longer than one token's. The half is made
// larger where a design could not spread over it, and is no bound where none of it can win.
static bool allow(Tune *t, int sample, bool *allowed) {
    enum { SPREAD = 4 };
    const double NOT_MUCH = 1.5;
    double seconds[TUNING_MOST_CURVE];
    TuningCurve curve = tune_curve(&t->out->surface, seconds);
    int count = t->space->count, half = count / 2 > SPREAD * sample ? count / 2 : SPREAD * sample;
    double *times = mem_new(2 * (size_t)count, sizeof *times);
    double *sorted = times + count;
    for (int i = 0; i < count; i++) {
        const TuningPoint *p = &t->space->points[i];
        times[i] = sorted[i] = tuning_curve_at(&curve, p->rows) / curve.seconds[0];
        t->out->excluded += times[i] >= p->N;
    }
    double most = fmax(NOT_MUCH, quantile(sorted, (size_t)count, fmin(1, (double)half / count)));
    bool all = t->o->exhaustive || t->out->excluded == count, any = false;
    for (int i = 0; i < count; i++) {
        allowed[i] = all || (times[i] <= most && times[i] < t->space->points[i].N);
        any = any || allowed[i];
    }
    for (int i = 0; !any && i < count; i++) allowed[i] = times[i] < t->space->points[i].N;
    mem_free(times);
    return true;
}

static int design_size(const Tune *t) {
    if (t->o->exhaustive) return t->space->count;
    return t->o->sample ? t->o->sample : 2 * t->space->axes + 3;
}

// Returns the number of points chosen.
static int design(Tune *t, int *chosen) {
    const TuneSpace *s = t->space;
    bool *allowed = mem_new((size_t)s->count, sizeof *allowed);
    int n = -1;
    if (allow(t, design_size(t), allowed))
        n = design_points(s->places, allowed, s->count, s->axes, design_size(t), chosen);
    mem_free(allowed);
    return n;
}

// --- how much of it --------------------------------------------------------------------------------------

static bool too_little(const Tune *t, const PlanCosts *c, Error *e) {
    int fewest = c->count < 2 ? c->count : 2;
    double scale = tune_scale(t), least = scale * (fewest * c->begin + plan_round(c, fewest));
    return error_input(
        e,
        "tune: nothing can be told in --budget %gs: one prompt by %d points and the baseline takes "
        "about %.2g s here; give --budget %.0fs, or fewer --max-tokens",
        t->o->budget_s, fewest, least + tune_spent(t), ceil(t->least_s));
}

// Cuts the design to what fits into the time. chosen: (count), of which the first is open.
static bool plan(Tune *t, const int *chosen, int count, PlanSample *out, Error *e) {
    int prompts = (int)t->in->datasets[0].count, least = t->space->axes + 2;
    *out = (PlanSample){count, prompts};
    double *points = mem_new((size_t)count, sizeof *points);
    tune_expect_planned(t, chosen[0]);
    for (int i = 0; i < count; i++) points[i] = t->expected[chosen[i]];
    PlanCosts costs = {t->begin_s, t->expected[t->space->count], points, count};
    double scale = tune_scale(t), spent = tune_spent(t);
    t->least_s = spent + scale * plan_least(&costs, least);
    tune_set_limit(t);
    bool ok = true;
    if (!t->o->exhaustive) {
        double left = (t->limit_s - spent) / scale;
        if (prompts > t->o->prompts) prompts = t->o->prompts;
        *out = plan_sample(&costs, prompts, least, DESIGN_SHARE * left);
        if (out->points == 0) *out = plan_sample(&costs, prompts, least, left);
        ok = out->points > 0 || too_little(t, &costs, e);
    }
    mem_free(points);
    return ok;
}

// --- measuring -------------------------------------------------------------------------------------------

static void ask_nobody(Tune *t) {
    for (int i = 0; i < t->space->count; i++) t->asked[i] = false;
}

// All points chosen on *prompts prompts, or on as many as there is time for: *prompts is then their number.
static bool answer_all(Tune *t, const int *chosen, int count, int *prompts, double until, Error *e) {
    int most = *prompts;
    ask_nobody(t);
    for (int i = 0; i < count; i++) {
        if (!tune_seat(t, chosen[i], e)) return false;
        t->out->seats[chosen[i]].sampled = t->out->end != TUNE_INTERRUPTED;
    }
    for (*prompts = 0; *prompts < most; ++*prompts) {
        bool begun = *prompts > 0;
        if (tune_is_over(t, begun ? until : HUGE_VAL, tune_round_seconds(t))) break;
        tune_say(t, "sample", t->rounds + 1);
        if (!tune_round(t, *prompts, e)) return false;
    }
    return true;
}

static bool measure_design(Tune *t, Error *e) {
    PlanSample fits;
    int *chosen = mem_new((size_t)design_size(t), sizeof *chosen);
    int n = design(t, chosen);
    bool ok = n > 0 && tune_seat(t, t->space->count, e) && tune_seat(t, chosen[0], e);
    if (!ok || t->out->end == TUNE_INTERRUPTED) {
        mem_free(chosen);
        return ok;
    }
    ok = plan(t, chosen, n, &fits, e);
    double left = t->limit_s - tune_spent(t);
    ok = ok && answer_all(t, chosen, fits.points, &fits.prompts, tune_spent(t) + SAMPLE_SHARE * left, e);
    if (ok) t->out->sample_prompts = fits.prompts;
    mem_free(chosen);
    return ok;
}

// --- closing in ------------------------------------------------------------------------------------------

// How long it takes to open n more points and measure them.
static double closing_seconds(Tune *t, const int *chosen, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += t->expected[chosen[i]];
    sum += t->expected[t->space->count];
    return tune_scale(t) * (sum * t->out->sample_prompts + n * t->begin_s);
}

// Measures further points until none that is left could be faster than the measured ones. from: when the
// sample began. The predictions, and how long points take, are known better after each step.
static bool close_in(Tune *t, double from, Error *e) {
    TuneResult *out = t->out;
    bool *known = mem_new((size_t)out->points, sizeof *known);
    bool ok = known;
    while (ok && out->end != TUNE_INTERRUPTED) {
        int chosen[CLOSE], prompts = out->sample_prompts;
        for (int i = 0; i < out->points; i++) known[i] = out->seats[i].sampled;
        int n = tuning_close_in(out->predictions, known, out->points, CLOSE, chosen);
        double until = from + SAMPLE_SHARE * (t->limit_s - from);
        while (n > 0 && tune_is_over(t, until, closing_seconds(t, chosen, n))) n--;
        if (n == 0) break;
        ok = answer_all(t, chosen, n, &prompts, HUGE_VAL, e) &&
             (out->end == TUNE_INTERRUPTED || tune_predict(t, e));
    }
    mem_free(known);
    return ok;
}

bool tune_sample(Tune *t, Error *e) {
    double from = tune_spent(t);
    bool ok = measure_design(t, e);
    if (ok && t->rounds > 0) {
        t->out->sample_rounds = t->rounds;
        ok = tune_predict(t, e) && (t->o->exhaustive || close_in(t, from, e));
    }
    t->out->sample_rounds = t->rounds;
    t->out->sample_s = tune_spent(t) - from;
    return ok;
}

// --- steps that are timed first

enum { LEAST_SAMPLES = 2, MOST_SAMPLES = 30 };

// 1, 2, 3, 4, 6, 8, 12, 16, ...: tiles of kernels end at some of these, on every machine. Where there is
// little time, the powers of two.
static int next_rows(int rows, bool coarse) {
    if (coarse) return 2 * rows;
    if (rows < 4) return rows + 1;
    return rows & (rows - 1) ? rows / 3 * 4 : rows / 2 * 3;
}

// If rows grow by a factor of 1.4, all steps up to the last together take about 3.5 times as long as the
// last, which takes at most `longest` times as long as one row. Each is run LEAST_SAMPLES times, after a
// warm-up.
static bool is_coarse(const TuneSurfaceAsk *ask) {
    return ask->steps < 3.5 * (LEAST_SAMPLES + 1) * ask->longest;
}

// How many numbers of rows there are to measure.
static int count_rows(const TuneSurfaceAsk *ask) {
    int count = 1;
    for (int rows = 1; rows < ask->most_rows && rows <= TREE_MAX_NODES;
         rows = next_rows(rows, is_coarse(ask)))
        count++;
    return count;
}

static double limit(const TuneSurfaceAsk *ask, const TuneSurface *s) {
    return s->count ? fmin(ask->seconds, ask->steps * s->seconds[0]) : ask->seconds;
}

static bool measure_rows(Engine *engine, const TuneSurfaceAsk *ask, int rows, double most_s, TuneSurface *out,
                         Error *e) {
    BenchOptions o = {.warm_up = 1,
                      .min_samples = LEAST_SAMPLES,
                      .max_samples = (int)fmin(MOST_SAMPLES, fmax(LEAST_SAMPLES, ask->steps / 10)),
                      .seconds =
                          fmin(0.25, most_s / (2 * count_rows(ask))), // so that large ones have their time
                      .clock = ask->clock,
                      .watch = ask->watch};
    Ceilings unknown = {0};
    BenchPoint p = {.context = ask->context, .tokens = rows, .layout = LAYOUT_TREE};
    if (!bench_point(engine, &unknown, &o, NULL, &p, e)) return false;
    out->rows[out->count] = rows;
    out->seconds[out->count++] = p.time.median_s;
    out->disturbed += p.time.flags != 0;
    return true;
}

static bool is_enough(const TuneSurfaceAsk *ask, const TuneSurface *s, double spent) {
    if (s->count < 2) return false;
    if (s->count == TUNING_MOST_CURVE || spent > limit(ask, s)) return true;
    return s->rows[s->count - 1] >= ask->most_rows || s->seconds[s->count - 1] > ask->longest * s->seconds[0];
}

bool tune_surface(Engine *engine, const TuneSurfaceAsk *ask, TuneSurface *out, Error *e) {
    double began = clock_now(ask->clock);
    int room = engine->session.context - ask->context;
    *out = (TuneSurface){.context = ask->context};
    for (int rows = 1; rows <= TREE_MAX_NODES && rows <= room; rows = next_rows(rows, is_coarse(ask))) {
        if (is_enough(ask, out, clock_now(ask->clock) - began)) break;
        if (!measure_rows(engine, ask, rows, limit(ask, out), out, e)) return false;
    }
    out->took_s = clock_now(ask->clock) - began;
    return true;
}

TuningCurve tune_curve(const TuneSurface *s, double *seconds) {
    TuningCurve c = {s->rows, seconds, s->count};
    memcpy(seconds, s->seconds, (size_t)c.count * sizeof *seconds);
    tuning_curve_rise(&c);
    return c;
}

// --- predictions of the whole space

// Relative error of S on known prompts: between neighbouring points S jumps by about this much, which no
// model predicts.
static const double ROUGH = 0.02;

static double log_S(const TuneAnswer *a) { return log(a->tokens / a->steps); }
static double log_step(const TuneAnswer *a) { return log(a->seconds / a->steps); }

// Whether the point has answered every prompt of the sample, which then are its first answers.
static bool is_whole(const TuneResult *r, int point) {
    const TuneSeat *s = &r->seats[point];
    return s->sampled && (int)s->count >= r->sample_prompts;
}

// The standard error of a point's mean, without the part that a prompt adds to all points alike: from the
// residuals of the additive model point + prompt. A single prompt has no residuals.
static double ranking_error(const TuneResult *r, double (*value)(const TuneAnswer *a)) {
    const double UNKNOWN = 0.05;
    int prompts = r->sample_prompts, points = 0;
    double squares = 0;
    if (prompts < 2) return UNKNOWN;
    double *common = mem_new((size_t)prompts, sizeof *common);
    if (!common) return UNKNOWN;
    for (int i = 0; i < r->points; i++) points += is_whole(r, i);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < r->points; i++) {
            const TuneSeat *s = &r->seats[i];
            double mean = 0;
            if (!is_whole(r, i)) continue;
            for (int k = 0; k < prompts; k++) mean += value(&s->answers[k]) / prompts;
            for (int k = 0; k < prompts; k++) {
                double off = value(&s->answers[k]) - mean;
                if (pass == 0) common[k] += off / points;
                else squares += (off - common[k]) * (off - common[k]);
            }
        }
    mem_free(common);
    return points > 1 ? sqrt(squares / ((points - 1) * (prompts - 1)) / prompts) : UNKNOWN;
}

// Seconds per token of the baseline in those rounds in which the seat answered. Points are measured at
// different times; compared with the baseline of its own rounds, none suffers if the machine has become
// slower.
static double token_seconds(const TuneResult *r, const TuneSeat *s) {
    const TuneSeat *base = &r->seats[r->points];
    double tokens = 0, seconds = 0;
    for (size_t i = 0, k = 0; i < s->count && k < base->count; i++) {
        while (k < base->count && base->answers[k].round < s->answers[i].round) k++;
        if (k < base->count) tokens += base->answers[k].tokens, seconds += base->answers[k].seconds;
    }
    return tokens > 0 ? seconds / tokens : 0;
}

static bool is_measured(const Tune *t, int point) {
    const TuneSeat *s = &t->out->seats[point];
    return s->count > 0 && !t->g.points[point].progress->failed;
}

// A step's gain beyond one token. On some prompts it is large for all points, on others small for all, as
// if each prompt had a phi of its own (Lookahead, Eq. 7).
static double gain(const TuneAnswer *a) { return a->tokens / a->steps - 1; }

// Points have answered different prompts: racers more than others. So each gain is taken to be a factor of
// the point times a factor of the prompt, both fitted by least squares, in turns. With these a point's S is
// reckoned over all prompts that any point has answered, as if it had answered all of them itself. logs:
// (points) becomes ln S; own, of: (prompts) the prompts' factors, and scratch.
static void set_logs(const Tune *t, double *logs, double *own, double *of) {
    enum { TURNS = 40 };
    const TuneResult *r = t->out;
    int prompts = (int)t->in->datasets[0].count;
    for (int p = 0; p < prompts; p++) own[p] = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        double whole = 0, seen = 0;
        for (int i = 0; i < r->points; i++) {
            double up = 0, down = 0;
            for (size_t k = 0; is_measured(t, i) && k < r->seats[i].count; k++) {
                const TuneAnswer *a = &r->seats[i].answers[k];
                up += own[a->prompt] * gain(a), down += own[a->prompt] * own[a->prompt];
            }
            logs[i] = down > 0 ? up / down : 0;
        }
        for (int p = 0; p < prompts; p++) own[p] = of[p] = 0;
        for (int i = 0; i < r->points; i++)
            for (size_t k = 0; is_measured(t, i) && k < r->seats[i].count; k++) {
                const TuneAnswer *a = &r->seats[i].answers[k];
                own[a->prompt] += logs[i] * gain(a), of[a->prompt] += logs[i] * logs[i];
            }
        for (int p = 0; p < prompts; p++)
            if (of[p] > 0) whole += own[p] /= of[p], seen++;
        for (int p = 0; p < prompts && whole > 0; p++) own[p] *= seen / whole;
        if (!(whole > 0)) break; // nothing was gained anywhere
    }
    for (int i = 0; i < r->points; i++) {
        double steps = 0, seen = 0;
        for (int p = 0; p < prompts; p++)
            if (of[p] > 0) steps += 1 / (1 + logs[i] * own[p]), seen++;
        logs[i] = seen > 0 ? -log(steps / seen) : 0;
    }
}

static int list_measured(const Tune *t, double token_s, const double *logs, TuningMeasured *out) {
    const TuneResult *r = t->out;
    double S_error = fmin(ROUGH, r->prompt_error), time_error = ranking_error(r, log_step);
    int n = 0;
    for (int i = 0; i < r->points; i++) {
        TuneAnswer sum;
        const TuneSeat *s = &r->seats[i];
        if (!is_measured(t, i) || !tune_sum(s, 0, t->rounds, &sum)) continue;
        double own = token_seconds(r, s);
        out[n++] = (TuningMeasured){.point = i,
                                    .tokens = exp(logs[i]) * sum.steps,
                                    .steps = sum.steps,
                                    .rows = sum.rows,
                                    .seconds = own > 0 ? sum.seconds * token_s / own : sum.seconds,
                                    .S_error = S_error,
                                    .time_error = time_error};
    }
    return n;
}

bool tune_predict(Tune *t, Error *e) {
    TuneResult *out = t->out;
    double seconds[TUNING_MOST_CURVE];
    size_t points = (size_t)out->points, prompts = t->in->datasets[0].count;
    TuningMeasured *measured = mem_new(points, sizeof *measured);
    double *logs = mem_new(points + 2 * prompts, sizeof *logs);
    TuneAnswer base;
    set_logs(t, logs, logs + points, logs + points + prompts);
    bool ok = tune_sum(&out->seats[out->points], 0, t->rounds, &base);
    TuningProblem p = {.space = t->space->points,
                       .count = t->space->count,
                       .axes = t->space->axes,
                       .measured = measured,
                       .curve = tune_curve(&out->surface, seconds),
                       .token_s = ok ? base.seconds / base.tokens : 0};
    out->prompt_error = ranking_error(out, log_S);
    if (ok) p.measured_count = list_measured(t, p.token_s, logs, measured);
    ok = p.measured_count > 0 || error_input(e, "tune: none of the sample's points could be run");
    ok = ok && tuning_predict(&p, out->predictions, &out->law, e);
    mem_free(measured);
    mem_free(logs);
    if (!ok) return false;
    tune_expect_predicted(t);
    tune_set_limit(t);
    return true;
}

// --- how long answers take

void tune_expect_planned(Tune *t, int seat) {
    const TuneSpace *space = t->space;
    const GroupPoint *base = &t->g.points[t->g.baseline], *one = &t->g.points[seat];
    double seconds[TUNING_MOST_CURVE], tokens = t->in->schedule->points[0].settings.max_tokens;
    TuningCurve curve = tune_curve(&t->out->surface, seconds);
    double whole = tuning_curve_at(&curve, t->prompt_tokens);
    double slow = one->step_s / tuning_curve_at(&curve, space->points[seat].rows);
    t->expected[space->count] = fmin(whole, t->prompt_tokens * base->prefill_s) + tokens * base->step_s;
    for (int i = 0; i < space->count; i++)
        t->expected[i] = fmin(whole, t->prompt_tokens * one->prefill_s) +
                         tokens / GUESSED_S * slow * tuning_curve_at(&curve, space->points[i].rows);
    t->begin_s += one->prefill_s * (double)t->warm_up.prompts[0].count + one->step_s;
}

// Mean time of an answer that is not decoding.
static double prefill_seconds(const TuneResult *r) {
    double sum = 0, n = 0;
    for (int i = 0; i < r->points; i++)
        for (size_t k = 0; k < r->seats[i].count; k++) {
            const TuneAnswer *a = &r->seats[i].answers[k];
            sum += a->whole_s - a->seconds, n++;
        }
    return n > 0 ? sum / n : 0;
}

void tune_expect_predicted(Tune *t) {
    const TuneResult *r = t->out;
    TuneAnswer base;
    if (!tune_sum(&r->seats[r->points], 0, t->rounds, &base)) return;
    double tokens = base.tokens / t->rounds, prefill = prefill_seconds(r);
    for (int i = 0; i < r->points; i++)
        if (r->seats[i].count == 0)
            t->expected[i] = prefill + tokens / r->predictions[i].S * r->predictions[i].step_s;
}

void tune_expect_answered(Tune *t, int seat) {
    const TuneSeat *s = &t->out->seats[seat];
    double sum = 0;
    for (size_t i = 0; i < s->count; i++) sum += s->answers[i].whole_s;
    if (s->count) t->expected[seat] = sum / (double)s->count;
}

double tune_scale(const Tune *t) { return t->answered_s > 0 ? t->wall_s / t->answered_s : 1; }

double tune_round_seconds(const Tune *t) {
    double sum = t->expected[t->space->count];
    for (int i = 0; i < t->space->count; i++) sum += t->asked[i] ? t->expected[i] : 0;
    return tune_scale(t) * sum;
}

void tune_set_limit(Tune *t) {
    double sum = 0;
    for (int i = 0; i <= t->space->count; i++) sum += t->expected[i];
    t->out->sweep_s = tune_scale(t) * sum * (double)t->in->datasets[0].count;
    t->limit_s = fmin(t->o->budget_s, fmax(t->o->share * t->out->sweep_s, t->least_s));
    if (t->out->end != TUNE_INTERRUPTED) t->out->end = t->limit_s < t->o->budget_s ? TUNE_SHARE : TUNE_BUDGET;
}
