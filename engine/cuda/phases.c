// Phases of a card's stream, and waiting for it. The device's time is split into phases by an event wherever
// the phase changes, between calls and never inside a recorded graph. The events are read when the host waits
// for the stream anyway:
//
//      host:     run          head        wait     commit
//      stream:   | layers ....| head .... |        | moves |
//      marks:    run          head        (read)   commit  idle
//
// Nothing waits for a commit, so an idle mark follows it: the time that the host then takes to propose counts
// for no phase. There's none between a run and its head, because the host gets there first except with the
// smallest models.
//
// Invariant: marks[0 .. mark_count) are the phases since the last wait, and mark_count < MARKS outside of a
// wait, so that the closing mark always has an event.
#include "engine/cuda/instance.h"

#include "engine/base/clock.h"

#include <assert.h>

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
    assert(c->mark_count < MARKS);
    c->marks[c->mark_count].phase = phase;
    return cuda_ok(c, gpu_event_record(c->marks[c->mark_count++].event, c->stream), "cannot mark its work",
                   e);
}

// The last mark is reserved for the end: if nothing has waited for that many phases, this waits.
bool cuda_begin(Cuda *c, Phase phase, Error *e) {
    assert(c->mark_count >= 0 && c->mark_count < MARKS);
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

// Only compute f16 can overflow. An overflow is reported once: the next step may process another text.
static bool nothing_overflowed(Cuda *c, Error *e) {
    if (*c->host_overflow == OVERFLOW_NONE) return true;
    gpu_use(c->ordinal);
    gpu_fill(c->overflow, 0xff, sizeof *c->overflow, c->stream);
    return overflow_refuse(*c->host_overflow, c->model->shape.layers, e);
}

static bool wait_for_card(Cuda *c, Error *e) {
    if (!c->mark_count) return true;
    bool watched = c->compute == COMPUTE_F16;
    bool ok = !watched || cuda_ok(c, gpu_copy(c->host_overflow, c->overflow, sizeof *c->overflow, c->stream),
                                  "cannot copy from it", e);
    ok = ok && ((phase_of(c) == PHASE_IDLE && !watched) || mark(c, PHASE_IDLE, e));
    int marks = c->mark_count;
    c->mark_count = 0;
    c->unread = false;
    if (!ok) return false;
    double start = clock_now(clock_monotonic());
    ok = cuda_ok(c, gpu_event_wait(c->marks[marks - 1].event), "a kernel failed", e);
    c->waited_s += clock_now(clock_monotonic()) - start;
    return ok && count_time(c, marks, e) && (!watched || nothing_overflowed(c, e));
}

// Reports the first card that fails: a later card waits for those in front of it and may fail because of
// them.
bool cuda_wait(Cuda *c, Error *e) {
    bool ok = true;
    for (c = c->first; c; c = c->next) ok = wait_for_card(c, ok ? e : NULL) && ok;
    return ok;
}
