#include "harness/run/point_state.h"

#include "engine/base/memory.h"
#include "harness/config/repeat.h"

#include <math.h>

static bool grow(PointState *s, int passes, Error *e) {
    void *seconds = s->seconds, *flagged = s->flagged;
    size_t cells = (size_t)passes * (size_t)s->prompts;
    bool ok = mem_grow(&seconds, &s->seconds_capacity, cells, sizeof *s->seconds);
    if (ok) s->seconds = seconds;
    ok = ok && mem_grow(&flagged, &s->flagged_capacity, (size_t)passes, sizeof *s->flagged);
    if (!ok) return error_system(e, "out of memory for %d passes", passes);
    s->flagged = flagged;
    for (size_t i = (size_t)s->passes * (size_t)s->prompts; i < cells; i++) s->seconds[i] = NAN;
    s->passes = passes;
    return true;
}

bool state_add(PointState *s, const RoundTimes *t, Error *e) {
    if (t->pass >= s->passes && !grow(s, t->pass + 1, e)) return false;
    s->seconds[(size_t)t->pass * (size_t)s->prompts + (size_t)t->prompt] = t->decode_s;
    s->flagged[t->pass] = s->flagged[t->pass] || t->flagged;
    s->tokens += t->tokens;
    s->steps += t->steps;
    s->decode_s += t->decode_s;
    s->diverged += t->diverged;
    return true;
}

void state_release(PointState *s) {
    mem_free(s->seconds);
    mem_free(s->flagged);
    *s = (PointState){0};
}

bool state_has(const PointState *s, int pass, int prompt) {
    return pass < s->passes && !isnan(s->seconds[(size_t)pass * (size_t)s->prompts + (size_t)prompt]);
}

// Passes from the first on that have every prompt.
static int whole_passes(const PointState *s, int most) {
    int n = 0;
    for (; n < most; n++)
        for (int i = 0; i < s->prompts; i++)
            if (!state_has(s, n, i)) return n;
    return n;
}

bool state_is_done(const PointState *s, const Measurement *m, int passes, bool warm) {
    int whole = whole_passes(s, passes), flagged = 0;
    double spent = 0;
    for (int i = 0; i < whole; i++) flagged += s->flagged[i];
    for (int i = 0; i < whole * s->prompts; i++) spent += s->seconds[i];
    int again = !warm ? 0 : flagged < m->reruns ? flagged : m->reruns;
    return repeat_is_done(m, whole - again, repeat_error(s->seconds, whole, s->prompts), spent);
}
