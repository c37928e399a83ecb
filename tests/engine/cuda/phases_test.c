// The device's time by phase, on a clock that ticks at every kernel and copy (tests/simt).
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/sequence.h"
#include "engine/decode/decode.h"

enum { LAYERS = 3, CONTEXT = 64, PROMPT = 9, TOKENS = 5, NODES = 4 };
static const double TICK = 1.0 / 1024;

typedef struct World {
    RandomModel model;
    Session s;
} World;

static int open_world(void **state) {
    static World w;
    Random r = test_random(331);
    Shape shape = random_dense_shape(&r);
    BackendOptions o = {.compute = COMPUTE_BF16, .context = CONTEXT, .max_nodes = 16};
    void *self;
    Error e = {0};
    shape.layers = LAYERS;
    random_model_init(&w.model, &shape, DTYPE_BF16, false, &r);
    if (!cuda_open(&w.model.model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&w.s, &cuda_backend, self, &shape, &o);
    simt_settings.tick = TICK;
    *state = &w;
    return 0;
}

static int close_world(void **state) {
    World *w = *state;
    simt_settings.tick = 0;
    session_release(&w->s);
    random_model_release(&w->model);
    return 0;
}

static Cuda *card_of(const Session *s) { return ((const Sequence *)s->self)->cards; }

// Ticks that the device has worked since *before, which becomes now.
static void expect(Session *s, PhaseSeconds *before, double run, double head, double commit) {
    PhaseSeconds now;
    assert_true(session_worked(s, &now));
    run -= (now.run - before->run) / TICK;
    head -= (now.head - before->head) / TICK;
    commit -= (now.commit - before->commit) / TICK;
    if (run != 0 || head != 0 || commit != 0)
        fail_msg("ticks that are missing: run %g, head %g, commit %g", run, head, commit);
    *before = now;
}

static void nothing(void *data) { (void)data; }

static void work(Cuda *c, int ticks) {
    for (int i = 0; i < ticks; i++) simt_call(c->stream, nothing, &i, sizeof i);
}

static void begin(Cuda *c, Phase phase, int ticks) {
    assert_true(cuda_begin(c, phase, NULL));
    work(c, ticks);
}

// Each phase has its own, idle time is nobody's, and nothing is told before it has been waited for.
static void phases_are_apart(void **state) {
    Session *s = &((World *)*state)->s;
    Cuda *c = card_of(s);
    PhaseSeconds seen;
    session_worked(s, &seen);
    begin(c, PHASE_RUN, 3);
    begin(c, PHASE_HEAD, 2);
    begin(c, PHASE_HEAD, 5);
    expect(s, &seen, 0, 0, 0);
    assert_true(cuda_wait(c, NULL) && cuda_wait(c, NULL));
    expect(s, &seen, 3, 7, 0);
    begin(c, PHASE_COMMIT, 1);
    begin(c, PHASE_IDLE, 30);
    begin(c, PHASE_RUN, 4);
    assert_true(cuda_wait(c, NULL));
    expect(s, &seen, 4, 0, 1);
    begin(c, PHASE_COMMIT, 2);
    begin(c, PHASE_IDLE, 0);
    assert_true(cuda_wait(c, NULL));
    expect(s, &seen, 0, 0, 2);
}

// Of more phases than there are events, none is lost.
static void as_many_phases_as_come(void **state) {
    Session *s = &((World *)*state)->s;
    Cuda *c = card_of(s);
    PhaseSeconds seen;
    session_worked(s, &seen);
    for (int i = 0; i < 5 * MARKS; i++) begin(c, i % 2 ? PHASE_COMMIT : PHASE_HEAD, 1 + i % 2);
    assert_true(cuda_wait(c, NULL));
    expect(s, &seen, 0, 5 * MARKS / 2, 5 * MARKS);
}

// Ticks of a step that goes up to layer `stop` first, then through the others, and is read or not.
static PhaseSeconds step(Session *s, int stop, bool read) {
    PhaseSeconds before, after;
    Error e = {0};
    int node;
    session_worked(s, &before);
    session_begin_step(s, false, LAYOUT_TREE);
    node = tree_root(&s->tree, 1);
    for (int i = 1; i < NODES; i++) node = tree_propose(&s->tree, node, i);
    if (!session_run(s, stop, &e) || !session_run(s, LAYERS, &e)) fail_msg("%s", e.text);
    if (read && !session_read(s, HEAD_ARGMAX, &e)) fail_msg("%s", e.text);
    if (!session_commit(s, node, 0, &e)) fail_msg("%s", e.text);
    assert_true(cuda_wait(card_of(s), NULL));
    session_worked(s, &after);
    return (PhaseSeconds){(after.run - before.run) / TICK, (after.head - before.head) / TICK,
                          (after.commit - before.commit) / TICK};
}

// A run is a copy and its layers, and the tokens' rows below the first. So one that is halted somewhere takes
// a copy more, wherever that is, and the head never sees it.
static void a_step_in_parts(void **state) {
    Session *s = &((World *)*state)->s;
    PhaseSeconds whole = step(s, LAYERS, true), unread = step(s, LAYERS, false);
    assert_true(whole.run > LAYERS && whole.head > 2 && unread.head <= 0);
    assert_true(whole.run <= unread.run && whole.run >= unread.run);
    for (int stop = 1; stop < LAYERS; stop++) {
        PhaseSeconds parts = step(s, stop, true);
        if (parts.run != whole.run + 1 || parts.head != whole.head)
            fail_msg("%d layers, then the others: run %g, head %g; at once %g and %g", stop, parts.run,
                     parts.head, whole.run, whole.head);
    }
}

// A copy of what goes where, and a kernel. The reader of the next step waits for it.
static void commit_is_told_later(void **state) {
    Session *s = &((World *)*state)->s;
    PhaseSeconds seen, rest;
    Error e = {0};
    int tokens[] = {3, 1, 2};
    session_reset(s);
    session_worked(s, &seen);
    assert_true(session_prefill(s, tokens, 3, 0, 0, NULL, &e)); // nothing reads it: it is waited for
    session_worked(s, &rest);
    expect(s, &seen, (rest.run - seen.run) / TICK, 0, 2);
    session_begin_step(s, false, LAYOUT_TREE);
    tree_root(&s->tree, 5);
    assert_true(session_run(s, LAYERS, &e) && session_read(s, HEAD_ARGMAX, &e));
    session_worked(s, &seen);
    assert_true(session_commit(s, 0, 1, &e));
    expect(s, &seen, 0, 0, 0);
    work(card_of(s), 30); // while the host proposes
    assert_true(cuda_wait(card_of(s), NULL));
    expect(s, &seen, 0, 0, 2);
}

typedef struct Steps {
    PhaseSeconds sum;
    int count;
} Steps;

static void take_step(void *state, const StepReport *r) {
    Steps *steps = state;
    double commit = steps->count++ ? 2 * TICK : 0;
    if (r->device.run <= 0 || r->device.head <= 0 || r->device.commit < commit || r->device.commit > commit)
        fail_msg("step %d: run %g, head %g, commit %g", r->number, r->device.run, r->device.head,
                 r->device.commit);
    steps->sum.run += r->device.run;
    steps->sum.head += r->device.head;
}

// Of the steps alone: neither prefill nor an earlier output's last commit is in them.
static void decoding_tells(void **state) {
    Session *s = &((World *)*state)->s;
    MethodEnv env = {.target = s, .sampling.top_p = 1};
    Method m;
    int prompt[PROMPT] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    for (int again = 0; again < 2; again++) {
        Steps steps = {.count = 0};
        DecodeResult out;
        Error e = {0};
        DecodeOptions o = {.max_tokens = TOKENS,
                           .ignore_eos = true,
                           .sampling = {.top_p = 1},
                           .clock = still_clock(),
                           .step = take_step,
                           .state = &steps};
        if (!method_open(&m, "autoregressive", &env, &e) || !decode(s, &m, prompt, PROMPT, &o, &out, &e))
            fail_msg("%s", e.text);
        assert_int_equal(out.steps, TOKENS);
        assert_memory_equal(&out.device.run, &steps.sum.run, sizeof(double));
        assert_memory_equal(&out.device.head, &steps.sum.head, sizeof(double));
        assert_true(out.device.commit == 2 * TICK * (TOKENS - 1));
        decode_result_release(&out);
        method_close(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_are_apart), cmocka_unit_test(as_many_phases_as_come),
        cmocka_unit_test(a_step_in_parts),  cmocka_unit_test(commit_is_told_later),
        cmocka_unit_test(decoding_tells),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
