#include "harness/tune/tune.h"

#include "engine/base/memory.h"

#include <math.h>

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
