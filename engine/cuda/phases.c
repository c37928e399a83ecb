// How long the device works at what: an event wherever the phase changes, between calls and never inside a
// recorded graph. The events are looked at when the stream is waited for anyway.
//
//      host:     run          head        wait     commit
//      stream:   | layers ....| head .... |        | moves |
//      marks:    run          head        (read)   commit  idle
//
// A commit is not waited for, so an idle mark stands after it: what the host then takes to propose is
// nobody's. Between a run and its head there is none, since the host is there first but with the smallest of
// models.
#include "engine/cuda/instance.h"

#include "engine/base/clock.h"

bool cuda_take_events(Cuda *c, Error *e) {
    for (int i = 0; i < MARKS; i++)
        if (!cuda_ok(c, gpu_event_open(&c->marks[i].event), "no event", e)) return false;
    return cuda_ok(c, gpu_event_open(&c->passed), "no event", e);
}

void cuda_give_events(Cuda *c) {
    for (int i = 0; i < MARKS; i++)
        if (c->marks[i].event) gpu_event_close(c->marks[i].event);
    if (c->passed) gpu_event_close(c->passed);
}

static Phase phase_of(const Cuda *c) {
    return c->mark_count ? c->marks[c->mark_count - 1].phase : PHASE_IDLE;
}

static bool mark(Cuda *c, Phase phase, Error *e) {
    Mark *m = &c->marks[c->mark_count++];
    m->phase = phase;
    return cuda_ok(c, gpu_event_record(m->event, c->stream), "cannot mark its work", e);
}

// The last mark is kept free for the end: where nothing has waited for as many phases, something does now.
bool cuda_begin(Cuda *c, Phase phase, Error *e) {
    if (!cuda_ok(c, gpu_use(c->ordinal), "cannot be used", e)) return false;
    if (phase == phase_of(c)) return true;
    return (c->mark_count < MARKS - 1 || cuda_wait(c, e)) && mark(c, phase, e);
}

// Each phase lasts until the next mark.
static bool count_time(Cuda *c, int marks, Error *e) {
    for (int i = 0; i + 1 < marks; i++) {
        double seconds = 0;
        if (!cuda_ok(c, gpu_event_seconds(c->marks[i].event, c->marks[i + 1].event, &seconds),
                     "cannot time its work", e))
            return false;
        c->seconds[c->marks[i].phase] += seconds;
    }
    return true;
}

static bool wait_for(Cuda *c, const Mark *last, Error *e) {
    double start = clock_now(clock_monotonic());
    bool ok = cuda_ok(c, gpu_event_wait(last->event), "a kernel failed", e);
    c->waited_s += clock_now(clock_monotonic()) - start;
    return ok;
}

// Compute f16 alone can overflow; what it told comes back in front of the last mark. It is told once: the
// next step may be of another text.
static bool ask_for_overflow(Cuda *c, Error *e) {
    return cuda_ok(c, gpu_copy(c->host_overflow, c->overflow, sizeof *c->overflow, c->stream),
                   "cannot copy from it", e);
}

static bool nothing_overflowed(Cuda *c, Error *e) {
    if (*c->host_overflow == OVERFLOW_NONE) return true;
    gpu_use(c->ordinal);
    gpu_fill(c->overflow, 0xff, sizeof *c->overflow, c->stream);
    return overflow_refuse(*c->host_overflow, c->model->shape.layers, e);
}

static bool wait_for_card(Cuda *c, Error *e) {
    if (!c->mark_count) return true;
    bool watched = c->compute == COMPUTE_F16, ok = !watched || ask_for_overflow(c, e);
    ok = ok && ((phase_of(c) == PHASE_IDLE && !watched) || mark(c, PHASE_IDLE, e));
    int marks = c->mark_count;
    c->mark_count = 0;
    c->unread = false;
    return ok && wait_for(c, &c->marks[marks - 1], e) && count_time(c, marks, e) &&
           (!watched || nothing_overflowed(c, e));
}

// The first card to fail is told: a later one waits for those in front of it, and may fail for their sake.
bool cuda_wait(Cuda *c, Error *e) {
    bool ok = true;
    for (c = c->first; c; c = c->next) ok = wait_for_card(c, ok ? e : NULL) && ok;
    return ok;
}
