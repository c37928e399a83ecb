// The loop in cases with a known answer: a method that knows the truth, ends inside an accepted prefix, the
// context's edge, equal prefixes, a dropped bonus, hidden states of the prompt, refused prompts, failures.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/test_methods.h"

#include "engine/base/memory.h"
#include "engine/decode/decode.h"

#include <string.h>

enum { VOCAB = 9, CONTEXT = 200, PROMPT = 10, TRUTH = CONTEXT - PROMPT };

typedef struct {
    Session session;
    int prompt[PROMPT], truth[TRUTH];
    DecodeOptions o;
    StepReport steps[CONTEXT];
    int count;
} World;

static void keep_step(void *state, const StepReport *r) {
    World *w = state;
    w->steps[w->count++] = *r;
}

static int open_world(void **state) {
    World *w = test_calloc(1, sizeof *w);
    Random r = test_random(50);
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&w->session, &setup);
    for (int i = 0; i < PROMPT; i++) w->prompt[i] = test_between(&r, 0, VOCAB - 1);
    slow_greedy(&w->session, w->prompt, PROMPT, TRUTH, w->truth);
    *state = w;
    return 0;
}

static int close_world(void **state) {
    World *w = *state;
    session_release(&w->session);
    test_free(w);
    return 0;
}

static DecodeOptions plain(World *w, int max_tokens) {
    return (DecodeOptions){.max_tokens = max_tokens,
                           .sampling = {.top_p = 1},
                           .merge = true,
                           .clock = still_clock(),
                           .step = keep_step,
                           .state = w};
}

static DecodeResult run(World *w, Method m, const DecodeOptions *o) {
    DecodeResult out;
    Error e = {0};
    w->count = 0;
    if (!decode(&w->session, &m, w->prompt, PROMPT, o, &out, &e)) fail_msg("%s", e.text);
    assert_int_equal(out.steps, w->count);
    assert_memory_equal(out.ids, w->truth, (size_t)out.tokens * sizeof *out.ids);
    return out;
}

// Every chain is accepted whole, so each step gives m + 1 tokens.
static void an_oracle_is_believed(void **state) {
    World *w = *state;
    for (int m = 1; m < 40; m++)
        for (int layout = 0; layout < 2; layout++) {
            int steps = 1 + m % 4, tokens = steps * (m + 1);
            Oracle oracle = {w->truth, TRUTH, m, 0};
            DecodeOptions o = plain(w, tokens);
            o.layout = layout ? LAYOUT_BATCH : LAYOUT_TREE;
            DecodeResult out = run(w, oracle_method(&oracle), &o);
            assert_int_equal(out.tokens, tokens);
            assert_int_equal(out.steps, steps);
            assert_true(out.S == m + 1);
            for (int i = 0; i < steps; i++) {
                const StepReport *r = &w->steps[i];
                assert_true(r->accepted == m && r->tried == m && r->depth == m && r->candidates == m);
                assert_true(r->rows == m + 1 && r->asked == m + 1 && r->emitted == m + 1 && r->probes == 0);
            }
            decode_result_release(&out);
        }
}

// max_tokens at every place of an accepted prefix.
static void limits_inside_a_prefix(void **state) {
    World *w = *state;
    for (int most = 0; most <= TRUTH + 1; most++) {
        Oracle oracle = {w->truth, TRUTH, 6, 0};
        DecodeOptions o = plain(w, most);
        DecodeResult out = run(w, oracle_method(&oracle), &o);
        int want = most < TRUTH ? most : TRUTH;
        assert_int_equal(out.tokens, want);
        assert_int_equal(out.steps, (want + 6) / 7);
        assert_true(out.S == (want ? (double)want / out.steps : 0));
        assert_false(out.ended_by_eos);
        if (want) assert_int_equal(w->steps[out.steps - 1].emitted, (want - 1) % 7 + 1);
        decode_result_release(&out);
    }
    DecodeOptions none = plain(w, -3); // less than nothing is nothing
    Oracle oracle = {w->truth, TRUTH, 6, 0};
    DecodeResult out = run(w, oracle_method(&oracle), &none);
    assert_int_equal(out.tokens, 0);
    decode_result_release(&out);
}

static int first_place(const int *tokens, int token) {
    for (int i = 0; i < TRUTH; i++)
        if (tokens[i] == token) return i;
    return -1;
}

// Each id of the vocabulary as EOS, wherever in the chain it occurs.
static void eos_inside_a_prefix(void **state) {
    World *w = *state;
    int inside = 0;
    for (int eos = 0; eos < VOCAB; eos++)
        for (int m = 1; m < 12; m++) {
            int place = first_place(w->truth, eos);
            Oracle oracle = {w->truth, TRUTH, m, 0};
            DecodeOptions o = plain(w, TRUTH);
            o.eos = &eos;
            o.eos_count = 1;
            DecodeResult out = run(w, oracle_method(&oracle), &o);
            assert_int_equal(out.tokens, place < 0 ? TRUTH : place + 1);
            assert_int_equal(out.ended_by_eos, place >= 0);
            assert_int_equal(out.steps, (out.tokens + m) / (m + 1));
            inside += w->steps[out.steps - 1].emitted <= w->steps[out.steps - 1].accepted;
            decode_result_release(&out);
            o.ignore_eos = true;
            out = run(w, oracle_method(&oracle), &o);
            assert_int_equal(out.tokens, TRUTH);
            assert_false(out.ended_by_eos);
            decode_result_release(&out);
        }
    assert_true(inside > 20);
}

// Merging and layout only change rows: neither the steps nor their output, greedy or sampled.
static void check_same_steps(const World *w, const StepReport *first, int count, const DecodeResult *out,
                             const DecodeResult *want) {
    assert_int_equal(out->tokens, want->tokens);
    assert_int_equal(out->steps, want->steps);
    assert_true(out->S == want->S);
    assert_memory_equal(out->ids, want->ids, (size_t)want->tokens * sizeof *want->ids);
    for (int i = 0; i < count; i++) {
        const StepReport *a = &w->steps[i], *b = &first[i];
        assert_true(a->emitted == b->emitted && a->accepted == b->accepted && a->tried == b->tried &&
                    a->depth == b->depth && a->context == b->context);
    }
}

static void merging_changes_rows_only(void **state) {
    World *w = *state;
    Random r = test_random(51);
    double saved = 0;
    for (int round = 0; round < 200; round++) {
        StepReport first[CONTEXT];
        DecodeResult want, out;
        Scatter scatter = {.truth = w->truth, .truth_count = TRUTH, .seed = random_bits(&r), .vocab = VOCAB};
        Method m = scatter_method(&scatter);
        DecodeOptions o = plain(w, TRUTH);
        o.seed = random_bits(&r);
        if (round % 2) o.sampling.temperature = 1.5;
        for (int way = 0; way < 3; way++) {
            o.merge = way == 0;
            o.layout = way == 2 ? LAYOUT_BATCH : LAYOUT_TREE;
            w->count = 0;
            assert_true(decode(&w->session, &m, w->prompt, PROMPT, &o, &out, NULL));
            if (way == 0) {
                want = out;
                memcpy(first, w->steps, sizeof first);
                continue;
            }
            check_same_steps(w, first, w->count, &out, &want);
            for (int i = 0; i < w->count && way == 1; i++) {
                assert_int_equal(w->steps[i].rows, first[i].asked); // without merging all that was asked
                saved += w->steps[i].rows - first[i].rows;
            }
            decode_result_release(&out);
        }
        decode_result_release(&want);
    }
    assert_true(saved > 10000);
}

static bool always_drops(const void *self, const Verdict *verdict) {
    (void)self;
    assert_true(verdict->accepted > 0);
    return true;
}

// A bonus is dropped after a full match only, and comes back as the next step's first token.
static void a_dropped_bonus(void **state) {
    World *w = *state;
    for (int m = 1; m < 9; m++) {
        Oracle oracle = {w->truth, TRUTH, m, 0};
        MethodInfo dropping = *oracle_method(&oracle).info;
        Method method = {.info = &dropping, .self = &oracle};
        dropping.drops_bonus = always_drops;
        DecodeOptions o = plain(w, 5 * m);
        DecodeResult out = run(w, method, &o);
        assert_int_equal(out.tokens, 5 * m);
        assert_int_equal(out.steps, 5);
        for (int i = 0; i < 5; i++) assert_true(w->steps[i].emitted == m && w->steps[i].accepted == m);
        decode_result_release(&out);
    }
}

// --- hidden states of the prompt

typedef struct {
    int layer, seen;
    float want[PROMPT][NULL_WIDTH];
} Listener;

static int listener_layer(const void *self) { return ((const Listener *)self)->layer; }

static bool listener_begin(void *self, const Prompt *prompt, Error *e) {
    (void)e;
    Listener *l = self;
    assert_non_null(prompt->hidden);
    assert_memory_equal(prompt->hidden, l->want, (size_t)(prompt->count - 1) * sizeof *l->want);
    l->seen++;
    return true;
}

static void hidden_states_reach_begin(void **state) {
    World *w = *state;
    for (int layer = 1; layer <= NULL_LAYERS; layer++)
        for (int count = 1; count <= PROMPT; count++) {
            Listener listener = {.layer = layer};
            MethodInfo info = *method_find("autoregressive", NULL);
            Method m = {.info = &info, .self = &listener};
            DecodeResult out;
            info.hidden_layer = listener_layer;
            info.begin = listener_begin;
            session_reset(&w->session);
            assert_true(session_prefill(&w->session, w->prompt, count - 1, 1, layer, listener.want[0], NULL));
            DecodeOptions o = plain(w, 2);
            o.prefill_chunk = 4;
            o.share_prompt = true; // it reads the states
            assert_true(decode(&w->session, &m, w->prompt, count, &o, &out, NULL));
            assert_int_equal(listener.seen, 1);
            assert_int_equal(out.steps, 2);
            decode_result_release(&out);
        }
}

// --- refused prompts

static void run_shared(World *w, Method m, int from, int count, bool shared, bool held) {
    DecodeOptions o = plain(w, 12);
    DecodeResult out;
    double rows = w->session.rows;
    o.share_prompt = shared;
    w->count = 0;
    assert_true(decode(&w->session, &m, w->prompt + from, count, &o, &out, NULL));
    if (from == 0 && count == PROMPT) assert_memory_equal(out.ids, w->truth, 12 * sizeof(int));
    assert_int_equal(out.prompt_held, held);
    assert_int_equal((int)(w->session.rows - rows - out.rows), held ? 0 : count - 1);
    decode_result_release(&out);
}

// Only where the caller allows it and the target has the whole prompt.
static void a_prompt_is_shared(void **state) {
    World *w = *state;
    Oracle oracle = {w->truth, TRUTH, 3, 0};
    Method m = oracle_method(&oracle);
    session_reset(&w->session);
    run_shared(w, m, 0, PROMPT, true, false);
    run_shared(w, m, 0, PROMPT, true, true);
    run_shared(w, m, 0, PROMPT, false, false);
    run_shared(w, m, 0, PROMPT - 2, true, true); // the longer one begins with it
    run_shared(w, m, 1, PROMPT - 1, true, false);
    run_shared(w, m, 0, PROMPT, true, false);
    assert_true(session_truncate(&w->session, PROMPT - 3, NULL));
    run_shared(w, m, 0, PROMPT, true, false);
    w->session.sequence[2] ^= 1; // as if another token had been read
    run_shared(w, m, 0, PROMPT, true, false);
    session_reset(&w->session);
    run_shared(w, m, 0, PROMPT, true, false);
}

static void check_refused(World *w, const int *prompt, int count, const char *want) {
    Oracle oracle = {w->truth, TRUTH, 3, 0};
    Method m = oracle_method(&oracle);
    DecodeOptions o = plain(w, 5);
    DecodeResult out;
    Error e = {0};
    if (decode(&w->session, &m, prompt, count, &o, &out, &e)) fail_msg("taken, want '%s'", want);
    if (!strstr(e.text, want)) fail_msg("says '%s', want '%s'", e.text, want);
    assert_null(out.ids);
    decode_result_release(&out); // harmless
}

static void bad_prompts(void **state) {
    World *w = *state;
    int prompt[CONTEXT + 1] = {0}, negative[] = {0, -1}, large[] = {0, 1, VOCAB};
    check_refused(w, prompt, 0, "the prompt is empty");
    check_refused(w, prompt, CONTEXT + 1, "the prompt has 201 tokens, the context holds 200");
    check_refused(w, negative, 2, "token 1 of the prompt is -1, outside the vocabulary of 9");
    check_refused(w, large, 3, "token 2 of the prompt is 9");
}

// --- failures on the way

typedef struct {
    int calls, fails_at;
} Failing;

static bool count_call(void *self, Error *e) {
    Failing *f = self;
    return ++f->calls != f->fails_at || error_system(e, "as asked");
}

static bool failing_begin(void *self, const Prompt *prompt, Error *e) {
    (void)prompt;
    return count_call(self, e);
}

static bool failing_propose(void *self, Tree *tree, Error *e) {
    (void)tree;
    return count_call(self, e);
}

static bool failing_observe(void *self, const Observation *seen, Error *e) {
    (void)seen;
    return count_call(self, e);
}

// Whichever call of a method fails ends the run with its message, and nothing is leaked.
static void methods_that_fail(void **state) {
    World *w = *state;
    enum { CALLS = 1 + 2 * 3 }; // begin, then propose and observe in each of three steps
    static const MethodInfo info = {
        .name = "failing", .begin = failing_begin, .propose = failing_propose, .observe = failing_observe};
    for (int call = 1; call <= CALLS + 1; call++) {
        Failing failing = {.fails_at = call};
        Method m = {.info = &info, .self = &failing};
        DecodeOptions o = plain(w, 3);
        DecodeResult out;
        Error e = {0};
        bool ok = decode(&w->session, &m, w->prompt, PROMPT, &o, &out, &e);
        assert_int_equal(ok, call > CALLS);
        assert_string_equal(e.text, ok ? "" : "as asked");
        assert_true(ok == (out.ids != NULL));
        decode_result_release(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_oracle_is_believed), cmocka_unit_test(limits_inside_a_prefix),
        cmocka_unit_test(eos_inside_a_prefix),   cmocka_unit_test(merging_changes_rows_only),
        cmocka_unit_test(a_dropped_bonus),       cmocka_unit_test(hidden_states_reach_begin),
        cmocka_unit_test(a_prompt_is_shared),    cmocka_unit_test(bad_prompts),
        cmocka_unit_test(methods_that_fail),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
