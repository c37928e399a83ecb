// The turns of a batch. A lane's thread waits until `turn` is its number. It gives the turn away when it
// waits for a call, and when it ends; if no other lane can go on, it first answers the calls that are open.
//
// Invariants: only the lane whose turn it is runs; it isn't waiting; a lane that is in the batch and waits
// has an open call, and all calls are answered while the lanes sleep.
#include "engine/core/batch.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <pthread.h>

struct Lane {
    Batch *batch;
    int number;
    pthread_t thread;
    pthread_cond_t woken;
    bool alive, in, waiting;
    // the open call
    Session *session;
    bool heads; // of the head, else of layers
    RunCall run;
    HeadCall head;
    unsigned want;
    SharedRun shared;
    double part; // of the time
    bool ok;
    Error error;
};

struct Batch {
    pthread_mutex_t lock;
    Lane *lanes; // (count)
    int count;
    int turn; // a lane's number; -1: none is left
    BatchWork *work;
    void *state;
    bool failed;
    Error why;
    Clock clock;
    double last, alone; // the last reading; time of lanes that were out
    // the calls that are made together
    Lane *called[SEQUENCES_MAX]; // (calls)
    int calls;                   // 0: the lane whose turn it is works
    int runs_made;               // that ended steps
    RunCall runs[SEQUENCES_MAX];
    HeadCall heads[SEQUENCES_MAX];
};

int lane_number(const Lane *lane) { return lane->number; }
SharedRun lane_shared(const Lane *lane) { return lane->shared; }

// --- time

// Counts the time since the last reading for the lane at work, or for those whose calls were made.
static double read_clock(Batch *b) {
    double now = clock_now(b->clock), passed = now - b->last;
    Lane *lane = &b->lanes[b->turn];
    for (int i = 0; i < b->calls; i++) b->called[i]->part += passed / b->calls;
    if (!b->calls) lane->part += passed;
    if (!b->calls && !lane->in) b->alone += passed;
    b->last = now;
    return now;
}

static double lane_now(void *state) {
    const Lane *lane = state;
    read_clock(lane->batch);
    return lane->part;
}

Clock lane_clock(Lane *lane) { return (Clock){lane_now, lane}; }

double lane_time(Lane *lane) {
    double now = read_clock(lane->batch);
    return now - lane->batch->alone;
}

void lane_enter(Lane *lane) {
    assert(!lane->in);
    read_clock(lane->batch);
    lane->in = true;
}

void lane_leave(Lane *lane) {
    read_clock(lane->batch);
    lane->in = false;
}

// --- calls

void lane_take(Lane *lane, Session *s, int role) {
    assert(!s->lane && s->backend->run_together);
    s->lane = lane;
    s->role = role;
}

void lane_drop(Session *s) { s->lane = NULL; }

static bool ends_step(const Lane *lane) {
    const Session *s = lane->session;
    return !lane->heads && s->role == ROLE_TARGET && lane->run.run.b == s->shape.layers;
}

static bool draws_alike(const HeadDraws *a, const HeadDraws *b) {
    const Sampling *x = &a->sampling, *y = &b->sampling;
    return x->temperature == y->temperature && x->top_k == y->top_k && x->top_p == y->top_p &&
           a->vocab == b->vocab && !a->confidence == !b->confidence;
}

static bool goes_with(const Lane *a, const Lane *b) {
    if (a->session->role != b->session->role || a->heads != b->heads) return false;
    if (!a->heads)
        return a->run.run.a == b->run.run.a && a->run.run.b == b->run.run.b &&
               a->run.run.tree->mutual == b->run.run.tree->mutual;
    const HeadOut *x = a->head.out, *y = b->head.out;
    return a->want == b->want &&
           (!(a->want & HEAD_TOP) || (x->top == y->top && !x->log_sum == !y->log_sum)) &&
           (!(a->want & HEAD_DRAW) || draws_alike(x->draws, y->draws));
}

static void answer(Lane *lane, bool ok, const Error *why) {
    lane->ok = ok;
    lane->waiting = false;
    if (!ok) lane->error = *why;
}

void batch_calls(const Session *s, RunCall *calls, int count) {
    enum { MANY_ROWS = 32 };
    int rows = 0, end = calls->run.b;
    for (int i = 0; i < count; i++) rows += calls[i].run.last - calls[i].run.first;
    bool cut = s->progress.say && s->backend->cuts && rows >= MANY_ROWS, ok = true;
    for (int a = calls->run.a; a < end; a = calls->run.b) {
        for (int i = 0; i < count; i++) {
            calls[i].run.a = a;
            calls[i].run.b = cut ? a + 1 : end;
        }
        if (!progress_say(&s->progress, NULL, 0, &calls->error)) ok = calls->ok = false;
        for (int i = 1; !ok && i < count; i++) calls[i] = calls[0];
        if (!ok) return;
        s->backend->run_together(calls, count);
        for (int i = 0; i < count; i++) ok = ok && calls[i].ok;
        if (!ok) return; // the others would go on without the failed one: the batch ends
    }
}

// Answers a lane's call and all that go with it.
static void answer_alike(Batch *b, Lane *first) {
    Lane **lanes = b->called;
    const Session *s = first->session;
    int n = 0;
    bool last = ends_step(first);
    for (Lane *lane = first; lane < b->lanes + b->count; lane++)
        if (lane->waiting && goes_with(first, lane)) lanes[n++] = lane;
    for (int i = 0; i < n; i++) {
        b->runs[i] = lanes[i]->run;
        b->heads[i] = lanes[i]->head;
    }
    read_clock(b);
    b->calls = n;
    if (first->heads) s->backend->head_together(b->heads, n, first->want);
    else batch_calls(s, b->runs, n);
    read_clock(b);
    b->calls = 0;
    for (int i = 0; i < n; i++) {
        if (last) lanes[i]->shared = (SharedRun){b->runs_made, n};
        if (first->heads) answer(lanes[i], b->heads[i].ok, &b->heads[i].error);
        else answer(lanes[i], b->runs[i].ok, &b->runs[i].error);
    }
    b->runs_made += last;
}

// Every lane waits. The runs that end a step are answered only if there are no other calls.
static void answer_calls(Batch *b) {
    bool early = false;
    for (Lane *l = b->lanes; l < b->lanes + b->count; l++) early = early || (l->waiting && !ends_step(l));
    for (Lane *l = b->lanes; l < b->lanes + b->count; l++) {
        if (!l->waiting || (early && ends_step(l))) continue;
        if (b->failed) answer(l, false, &b->why);
        else answer_alike(b, l);
    }
}

// --- turns

// The next lane after this one that can go on, or -1.
static int next_lane(const Batch *b, int after) {
    for (int i = 1; i <= b->count; i++) {
        const Lane *lane = &b->lanes[(after + i) % b->count];
        if (lane->alive && !lane->waiting) return lane->number;
    }
    return -1;
}

static void pass_turn(Batch *b, int from) {
    int next = next_lane(b, from);
    read_clock(b);
    if (next < 0) {
        answer_calls(b);
        next = next_lane(b, b->count - 1);
    }
    b->turn = next;
    if (next >= 0 && next != from) pthread_cond_signal(&b->lanes[next].woken);
}

static void wait_for_turn(Lane *lane) {
    while (lane->batch->turn != lane->number) pthread_cond_wait(&lane->woken, &lane->batch->lock);
}

static bool wait_for_answer(Lane *lane, Error *e) {
    Batch *b = lane->batch;
    if (b->failed) {
        if (e) *e = b->why;
        return false;
    }
    lane->waiting = true;
    pass_turn(b, lane->number);
    wait_for_turn(lane);
    assert(!lane->waiting);
    if (!lane->ok && e) *e = lane->error;
    return lane->ok;
}

bool lane_run(Session *s, const StepRun *run, Error *e) {
    Lane *lane = s->lane;
    if (!lane->in) return s->backend->run(s->self, run, e);
    lane->session = s;
    lane->heads = false;
    lane->run = (RunCall){.self = s->self, .run = *run};
    return wait_for_answer(lane, e);
}

bool lane_head(Session *s, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    Lane *lane = s->lane;
    if (!lane->in) return s->backend->head(s->self, nodes, count, want, out, e);
    lane->session = s;
    lane->heads = true;
    lane->head = (HeadCall){.self = s->self, .nodes = nodes, .count = count, .out = out};
    lane->want = want;
    return wait_for_answer(lane, e);
}

// --- lanes

// The lock is held while the lane works: only waiting gives it up.
static void *live(void *argument) {
    Lane *lane = argument;
    Batch *b = lane->batch;
    Error why = {0};
    pthread_mutex_lock(&b->lock);
    wait_for_turn(lane);
    bool ok = b->failed || b->work(b->state, lane, &why);
    assert(!lane->in);
    if (!ok && !b->failed) {
        b->failed = true;
        b->why = why;
    }
    lane->alive = false;
    pass_turn(b, lane->number);
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

bool batch_run(int lanes, Clock clock, BatchWork *work, void *state, Error *e) {
    Batch b = {.count = lanes, .work = work, .state = state, .clock = clock, .last = clock_now(clock)};
    int started = 0;
    assert(lanes >= 1 && lanes <= SEQUENCES_MAX);
    b.lanes = mem_new((size_t)lanes, sizeof *b.lanes);
    pthread_mutex_init(&b.lock, NULL);
    pthread_mutex_lock(&b.lock);
    for (int i = 0; i < lanes; i++) {
        b.lanes[i] = (Lane){.batch = &b, .number = i, .alive = true};
        pthread_cond_init(&b.lanes[i].woken, NULL);
    }
    while (started < lanes && pthread_create(&b.lanes[started].thread, NULL, live, &b.lanes[started]) == 0)
        started++;
    for (int i = started; i < lanes; i++) b.lanes[i].alive = false;
    if (started < lanes)
        b.failed = !error_system(&b.why, "cannot start a thread for each of %d sequences", lanes);
    pthread_mutex_unlock(&b.lock);
    for (int i = 0; i < started; i++) pthread_join(b.lanes[i].thread, NULL);
    for (int i = 0; i < lanes; i++) pthread_cond_destroy(&b.lanes[i].woken);
    pthread_mutex_destroy(&b.lock);
    mem_free(b.lanes);
    if (b.failed && e) *e = b.why;
    return !b.failed;
}
