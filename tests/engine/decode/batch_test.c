// Sequences that share steps: on random models, prompts, methods and ends, each output and each of its steps
// is the same as alone; the model runs once for all of them; times add up; one failure ends the batch.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"

#include "engine/core/batch.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 90, LANES = 5, PROMPTS = 9, TOKENS = 14 };

static const char *const METHODS[] = {"autoregressive",
                                      "jacobi:m=4",
                                      "prompt-lookup",
                                      "lookahead:W=4,N=3,G=4",
                                      "ngrammys:k=4,w=3,strategy=context",
                                      "speculative:gamma=3",
                                      "speculative:adaptive=heuristic,draft_temperature=1",
                                      "ouroboros:gamma=4,K=3,beta=3,window=4",
                                      "early-exit:gamma=4,eta=0.3",
                                      "eagle3:total=12,depth=3,top=3",
                                      "recycling:warm=off",
                                      "mix:prompt-lookup+early-exit(gamma=3)"};
enum { METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

typedef struct {
    Session target, draft, eagle;
    Method method;
} Sequence;

typedef struct {
    RandomModel model, eagle_model;
    Captures captures;
    Sequence sequences[LANES];
    const char *method;
    Sampling sampling;
    int lanes, next;
    int prompt[PROMPTS][CONTEXT], count[PROMPTS], limit[PROMPTS];
    uint64_t seed[PROMPTS];
    DecodeResult alone[PROMPTS], got[PROMPTS];
    double ticks, shared, prefill;
    int fails;       // this prompt's decoding fails; -1: none
    int interrupted; // at the n-th question; 0: never
    int asked, made;
} World;

static double tick(void *state) { return ((World *)state)->ticks++; }

static bool say(void *state, const char *what, double share) {
    (void)what, (void)share;
    World *w = state;
    return !w->interrupted || ++w->asked < w->interrupted;
}

static void open_one(World *w, Session *s, const Model *m, Compute compute, int threads, Session *first) {
    BackendOptions o = {.compute = compute, .context = CONTEXT, .max_nodes = 70, .slack = 16};
    void *self;
    Error e = {0};
    o.threads = threads;
    o.sequences = w->lanes;
    o.first = first == s ? NULL : first->self;
    o.progress = (Progress){say, w};
    if (!cpu_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->shape, &o);
}

static void open_world(World *w, Random *r) {
    Shape shape = random_shape(r);
    if (shape.layers == 1) shape.layers = 2;
    if (shape.vocab > 120) shape.vocab = shape.real_vocab = 120;
    Dtype dtype = test_between(r, 0, 1) ? DTYPE_BF16 : DTYPE_F32;
    Compute compute = dtype == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F32;
    int threads = test_between(r, 1, 2);
    random_model_init(&w->model, &shape, dtype, false, r);
    random_model_calm(&w->model, 1);
    random_draft_init(&w->eagle_model, &w->model.model, INPUT_PAIRED, 2, r);
    w->captures = (Captures){2, {1, shape.layers - 1}};
    for (int i = 0; i < w->lanes; i++) {
        Sequence *s = &w->sequences[i], *first = &w->sequences[0];
        open_one(w, &s->target, &w->model.model, compute, threads, &first->target);
        open_one(w, &s->draft, &w->model.model, COMPUTE_F32, threads, &first->draft);
        open_one(w, &s->eagle, &w->eagle_model.model, compute, threads, &first->eagle);
    }
}

static void close_world(World *w) {
    for (int i = w->lanes; i-- > 0;) {
        session_release(&w->sequences[i].eagle);
        session_release(&w->sequences[i].draft);
        session_release(&w->sequences[i].target);
    }
    random_model_release(&w->eagle_model);
    random_model_release(&w->model);
}

static void random_prompts(World *w, Random *r) {
    int vocab = w->sequences[0].target.shape.real_vocab;
    for (int i = 0; i < PROMPTS; i++) {
        w->count[i] = test_between(r, 0, 3) ? test_between(r, 1, 60) : CONTEXT - test_between(r, 0, 2);
        w->limit[i] = test_between(r, 1, TOKENS);
        w->seed[i] = random_bits(r);
        for (int k = 0; k < w->count[i]; k++) {
            bool again = k > 5 && test_between(r, 0, 2);
            w->prompt[i][k] = again ? w->prompt[i][k - test_between(r, 2, 5)] : test_between(r, 0, vocab - 1);
        }
    }
}

static bool open_method(World *w, int lane, Error *e) {
    Sequence *s = &w->sequences[lane];
    MethodEnv env = {.target = &s->target,
                     .draft = &s->draft,
                     .adapters = {{&s->eagle, 1, s->target.shape.layers, &w->captures, NULL}},
                     .sampling = w->sampling};
    return method_open(&s->method, w->method, &env, e);
}

static bool make(World *w, int lane, int i, Clock clock, DecodeResult *out, Error *e) {
    Sequence *s = &w->sequences[lane];
    DecodeOptions o = {.max_tokens = w->limit[i],
                       .sampling = w->sampling,
                       .seed = w->seed[i],
                       .merge = w->seed[i] % 2,
                       .layout = w->seed[i] % 3 ? LAYOUT_TREE : LAYOUT_COPIED,
                       .prefill_chunk = (int)(w->seed[i] % 37),
                       .clock = clock};
    if (i == w->fails) return error_input(e, "prompt %d fails", i);
    return decode(&s->target, &s->method, w->prompt[i], w->count[i], &o, out, e);
}

static bool work(void *state, Lane *lane, Error *e) {
    World *w = state;
    int number = lane_number(lane);
    Sequence *s = &w->sequences[number];
    bool ok = true;
    lane_take(lane, &s->target, ROLE_TARGET);
    lane_take(lane, &s->draft, 1);
    lane_take(lane, &s->eagle, 2);
    while (ok && w->next < PROMPTS) {
        int i = w->next++;
        ok = make(w, number, i, lane_clock(lane), &w->got[i], e);
        if (!ok) break;
        const DecodeResult *d = &w->got[i];
        double part = d->propose_s + d->forward_s + d->verify_s + d->observe_s;
        assert_true(d->latency_s >= part); // the others' work lies between
        w->shared += part;
        w->prefill += w->got[i].prefill_s;
        w->made++;
    }
    lane_drop(&s->target);
    lane_drop(&s->draft);
    lane_drop(&s->eagle);
    return ok;
}

static void make_alone(World *w) {
    Error e = {0};
    for (int i = 0; i < PROMPTS; i++)
        if (!make(w, 0, i, still_clock(), &w->alone[i], &e)) fail_msg("%s: %s", w->method, e.text);
}

static void compare(World *w) {
    for (int i = 0; i < PROMPTS; i++) {
        const DecodeResult *want = &w->alone[i], *got = &w->got[i];
        int same = 0;
        while (same < want->tokens && same < got->tokens && want->ids[same] == got->ids[same]) same++;
        if (want->tokens != got->tokens || same < want->tokens || want->steps != got->steps ||
            fabs(want->rows - got->rows) > 0)
            fail_msg(
                "%s, %d lanes, prompt %d: want %d tokens in %d steps of %g rows, got %d (%d the same) in "
                "%d of %g",
                w->method, w->lanes, i, want->tokens, want->steps, want->rows, got->tokens, same, got->steps,
                got->rows);
    }
}

static bool open_methods(World *w, Error *e) {
    for (int i = 0; i < w->lanes; i++)
        if (!open_method(w, i, e)) return false;
    return true;
}

static void release(World *w) {
    for (int i = 0; i < w->lanes; i++) method_close(&w->sequences[i].method);
    for (int i = 0; i < PROMPTS; i++) {
        decode_result_release(&w->alone[i]);
        decode_result_release(&w->got[i]);
    }
}

static void begin(World *w, int method, bool sampled) {
    Error e = {0};
    w->method = METHODS[method];
    w->sampling = (Sampling){.temperature = sampled ? 0.9 : 0, .top_p = 1};
    w->next = w->made = w->asked = w->interrupted = 0;
    w->fails = -1;
    w->ticks = w->shared = w->prefill = 0;
    if (!open_methods(w, &e)) fail_msg("%s: %s", w->method, e.text);
}

static void same_as_alone(void **state) {
    (void)state;
    Random r = test_random(21);
    World w = {.lanes = 1};
    for (int round = 0; round < 4; round++) {
        w.lanes = test_between(&r, 2, LANES);
        open_world(&w, &r);
        for (int m = 0; m < 2 * METHOD_COUNT; m++) {
            Error e = {0};
            begin(&w, m / 2, m % 2);
            random_prompts(&w, &r);
            make_alone(&w);
            if (!batch_run(w.lanes, (Clock){tick, &w}, work, &w, &e)) fail_msg("%s: %s", w.method, e.text);
            compare(&w);
            assert_true(w.shared > 0 && w.shared + w.prefill <= w.ticks); // no moment is counted twice
            release(&w);
        }
        close_world(&w);
    }
}

// --- passes

static int together, calls;

static void count_runs(RunCall *c, int count) {
    together += count;
    calls++;
    cpu_backend.run_together(c, count);
}

// Lanes of the same length run together in every step.
static void one_pass_for_all(void **state) {
    (void)state;
    Random r = test_random(22);
    Backend counted = cpu_backend;
    World w = {.lanes = 4};
    Error e = {0};
    counted.run_together = count_runs;
    open_world(&w, &r);
    begin(&w, 0, false);
    random_prompts(&w, &r);
    for (int i = 0; i < PROMPTS; i++) {
        w.limit[i] = 10;
        w.count[i] = 4 + i;
    }
    w.next = PROMPTS - w.lanes; // as many as there are lanes
    for (int i = 0; i < w.lanes; i++) w.sequences[i].target.backend = &counted;
    if (!batch_run(w.lanes, (Clock){tick, &w}, work, &w, &e)) fail_msg("%s", e.text);
    assert_int_equal(calls, 10);
    assert_int_equal(together, 40);
    release(&w);
    close_world(&w);
}

// --- failures

static void one_failure_ends_all(void **state) {
    (void)state;
    Random r = test_random(23);
    World w = {.lanes = 4};
    open_world(&w, &r);
    for (int i = 0; i < 24; i++) {
        Error e = {0};
        begin(&w, i % METHOD_COUNT, false);
        random_prompts(&w, &r);
        for (int k = 0; k < PROMPTS; k++)
            if (w.count[k] > 60) w.count[k] = 60;
        if (i % 2) w.fails = test_between(&r, 0, PROMPTS - 1);
        else w.interrupted = test_between(&r, 1, 60);
        bool ok = batch_run(w.lanes, (Clock){tick, &w}, work, &w, &e);
        if (i % 2) assert_int_equal(e.kind, ERROR_INPUT);
        else assert_int_equal(e.kind, ok ? ERROR_NONE : ERROR_INTERRUPTED);
        assert_true(ok ? w.made == PROMPTS : w.made < PROMPTS);
        for (int k = 0; k < w.lanes; k++) assert_null(w.sequences[k].target.lane);
        release(&w);
    }
    close_world(&w);
}

// A random tree below a random root, on a sequence that has one token of its own more than the last.
static void build(Session *s, int sequence, Random *r) {
    int prompt[LANES + 1], vocab = s->shape.real_vocab;
    for (int i = 0; i <= sequence; i++) prompt[i] = test_between(r, 0, vocab - 1);
    session_reset(s);
    assert_true(session_prefill(s, prompt, sequence + 1, 0, 0, NULL, NULL));
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, test_between(r, 0, vocab - 1));
    for (int n = test_between(r, 0, 12); n > 0; n--)
        node = tree_propose(&s->tree, test_between(r, 0, 1) ? node : 0, test_between(r, 0, vocab - 1));
}

// The same trees by session_step_together as one by one: logits' best, passes and rows.
static void without_lanes(void **state) {
    (void)state;
    for (int n = 0; n < 20; n++) {
        Random r = test_random(50 + (uint64_t)n);
        World w = {.lanes = LANES};
        Session *all[LANES];
        int best[LANES][70];
        double passes[LANES], rows[LANES];
        Error e = {0};
        open_world(&w, &r);
        for (int i = 0; i < LANES; i++) {
            Session *s = all[i] = &w.sequences[i].target;
            Random own = test_random(100 * (uint64_t)n + (uint64_t)i);
            build(s, i, &own);
            passes[i] = s->passes, rows[i] = s->rows;
            assert_true(session_run(s, s->shape.layers, &e) && session_read(s, HEAD_ARGMAX, &e));
            for (int k = 0; k < s->tree.count; k++) best[i][k] = session_argmax(s, k);
            passes[i] = s->passes - passes[i], rows[i] = s->rows - rows[i];
            own = test_random(100 * (uint64_t)n + (uint64_t)i);
            build(s, i, &own);
            passes[i] += s->passes, rows[i] += s->rows;
        }
        if (!session_step_together(all, LANES, &e)) fail_msg("%s", e.text);
        for (int i = 0; i < LANES; i++) {
            assert_true(all[i]->passes == passes[i] && all[i]->rows == rows[i]);
            for (int k = 0; k < all[i]->tree.count; k++)
                if (session_argmax(all[i], k) != best[i][k])
                    fail_msg("case %d, sequence %d, node %d: wanted %d, got %d", n, i, k, best[i][k],
                             session_argmax(all[i], k));
        }
        w.asked = 0, w.interrupted = 1;
        Random again = test_random(7);
        for (int i = 0; i < LANES; i++) w.interrupted = 0, build(all[i], i, &again), w.interrupted = 1;
        assert_false(session_step_together(all, LANES, &e));
        assert_int_equal(e.kind, ERROR_INTERRUPTED);
        w.interrupted = 0;
        close_world(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_alone), cmocka_unit_test(one_pass_for_all),
                                       cmocka_unit_test(one_failure_ends_all),
                                       cmocka_unit_test(without_lanes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
