// A round of tuning: the seats that are asked answer one prompt, and what they said is kept.
#include "harness/tune/parts.h"

#include "engine/base/memory.h"

#include <stdio.h>

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

// Seats stand in the order of the sweep, the baseline's last.
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
