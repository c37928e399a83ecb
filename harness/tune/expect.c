// How long each point's answers are expected to take: what the budget is planned with.
#include "harness/tune/parts.h"

#include <math.h>

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
