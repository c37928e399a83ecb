// What the sample says of all of the space.
#include "harness/tune/parts.h"

#include "engine/base/memory.h"

#include <math.h>

static bool out_of_memory(Error *e) { return error_system(e, "out of memory for what a sample says"); }

// Of S, on the prompts that are known: from point to point it changes by jumps that small, no model knows
// which.
static const double ROUGH = 0.02;

static double log_S(const TuneAnswer *a) { return log(a->tokens / a->steps); }
static double log_step(const TuneAnswer *a) { return log(a->seconds / a->steps); }

// Whether it has answered each of the sample's prompts, in their order.
static bool is_whole(const TuneResult *r, int point) {
    const TuneSeat *s = &r->seats[point];
    return s->sampled && (int)s->count == r->sample_prompts;
}

// The standard error of a point's mean, beside what prompts do to all points alike: from the residuals of
// point + prompt. One prompt alone says nothing of it.
static double ranking_error(const TuneResult *r, double (*value)(const TuneAnswer *a)) {
    const double UNKNOWN = 0.05;
    int prompts = r->sample_prompts, points = 0;
    double squares = 0;
    if (prompts < 2) return UNKNOWN;
    double *common = mem_alloc((size_t)prompts, sizeof *common);
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

// Points were measured at different times: each counts beside the baseline of its own rounds, so that a
// machine that has become slower meanwhile leaves them where they were.
static double token_seconds(const TuneResult *r, const TuneSeat *s) {
    const TuneSeat *base = &r->seats[r->points];
    double tokens = 0, seconds = 0;
    for (size_t i = 0, k = 0; i < s->count && k < base->count; i++) {
        while (k < base->count && base->answers[k].round < s->answers[i].round) k++;
        if (k < base->count) tokens += base->answers[k].tokens, seconds += base->answers[k].seconds;
    }
    return tokens > 0 ? seconds / tokens : 0;
}

static int list_measured(const Tune *t, double token_s, TuningMeasured *out) {
    const TuneResult *r = t->out;
    double S_error = fmin(ROUGH, r->prompt_error), time_error = ranking_error(r, log_step);
    int n = 0;
    for (int i = 0; i < r->points; i++) {
        TuneAnswer sum;
        const TuneSeat *s = &r->seats[i];
        if (!s->sampled || t->g.seats[i].state->failed || !tune_sum(s, 0, t->rounds, &sum)) continue;
        double own = token_seconds(r, s);
        out[n++] = (TuningMeasured){.point = i,
                                    .tokens = sum.tokens,
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
    TuningMeasured *measured = mem_alloc((size_t)out->points, sizeof *measured);
    TuneAnswer base;
    if (!measured) return out_of_memory(e);
    bool ok = tune_sum(&out->seats[out->points], 0, t->rounds, &base);
    TuningProblem p = {.space = t->space->points,
                       .count = t->space->count,
                       .axes = t->space->axes,
                       .measured = measured,
                       .curve = tune_curve(&out->surface, seconds),
                       .token_s = ok ? base.seconds / base.tokens : 0};
    out->prompt_error = ranking_error(out, log_S);
    if (ok) p.measured_count = list_measured(t, p.token_s, measured);
    ok = p.measured_count > 0 || error_input(e, "tune: none of the sample's points could be run");
    ok = ok && tuning_predict(&p, out->predictions, &out->law, e);
    mem_free(measured);
    if (!ok) return false;
    tune_expect_predicted(t);
    tune_set_limit(t);
    return true;
}
