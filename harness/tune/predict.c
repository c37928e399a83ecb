// What the sample says of all of the space.
#include "harness/tune/parts.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

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
    return s->count > 0;
}

// What a step gains beyond one token. On some prompts it is large for all points, on others small for all, as
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
