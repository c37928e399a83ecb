// Loss, divergence and equal choices against a slow model: every token is predicted by a pass of its own.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/make/quantise.h"
#include "engine/model/make/synth.h"
#include "harness/inputs/inputs.h"
#include "tests/support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONTEXT = 48, N = 110, PROMPT = 5, MOST = 12 };

typedef struct {
    char root[FOLDER_PATH_SIZE], from[FOLDER_PATH_SIZE + 16], to[FOLDER_PATH_SIZE + 16];
    Engine model, original;
    int ids[N];
} Bench;

static void check_ok(bool ok, const Error *e) {
    if (!ok) fail_msg("%s", e->text);
}

// ln p of all tokens after ids[0..n), by a pass of its own; returns the likeliest.
static int predict(Session *s, const int *ids, int n, double *log_p) {
    Error e = {0};
    session_reset(s);
    if (n > 1) check_ok(session_prefill(s, ids, n - 1, 0, 0, NULL, &e), &e);
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, ids[n - 1]), vocab = s->shape.real_vocab, best = 0;
    check_ok(session_run(s, s->shape.layers, &e) && session_read(s, HEAD_LOGITS, &e), &e);
    const float *logits = session_logits(s, node);
    long double sum = 0;
    for (int i = 0; i < vocab; i++) sum += expl((long double)logits[i]);
    for (int i = 0; i < vocab; i++) {
        log_p[i] = (double)((long double)logits[i] - logl(sum));
        if (logits[i] > logits[best]) best = i;
    }
    return best;
}

static void near(const char *what, double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want))))
        fail_msg("%s is %.15g, wanted %.15g", what, got, want);
}

// Pieces begin at every multiple of the context; the first token of each isn't predicted.
static void texts(void **state) {
    Bench *b = *state;
    int vocab = b->model.session.shape.real_vocab;
    double *p = mem_new((size_t)vocab, sizeof *p), *q = mem_new((size_t)vocab, sizeof *q);
    Quality got = {0}, want = {0};
    Error e = {0};
    check_ok(quality_text(&b->model, &b->original, b->ids, N, &got, &e), &e);
    for (int at = 0; at < N; at += CONTEXT)
        for (int n = 1; n < CONTEXT && at + n < N; n++) {
            int next = b->ids[at + n];
            int theirs = predict(&b->original.session, b->ids + at, n, p);
            int ours = predict(&b->model.session, b->ids + at, n, q);
            want.tokens++;
            want.loss -= q[next];
            want.of_original -= p[next];
            want.same += ours == theirs;
            for (int i = 0; i < vocab; i++) want.divergence += exp(p[i]) * (p[i] - q[i]);
        }
    assert_int_equal(got.tokens, want.tokens);
    assert_int_equal(got.tokens, N - 3);
    assert_int_equal(got.same, want.same);
    assert_true(want.same > 0 && want.same < want.tokens && want.divergence > 1e-6);
    near("loss", got.loss, want.loss);
    near("the original's loss", got.of_original, want.of_original);
    near("divergence", got.divergence, want.divergence);
    mem_free(p);
    mem_free(q);
}

static void greedy_outputs(void **state) {
    Bench *b = *state;
    int vocab = b->model.session.shape.real_vocab, ids[PROMPT + MOST];
    double *p = mem_new((size_t)vocab, sizeof *p);
    Error e = {0};
    for (int first = 0; first < 4; first++) {
        Quality got = {0};
        size_t same = 0, unbroken = 0;
        memcpy(ids, b->ids + first * PROMPT, PROMPT * sizeof *ids);
        b->original.model.eos_count = 0;
        check_ok(quality_greedy(&b->model, &b->original, ids, PROMPT, MOST, &got, &e), &e);
        for (int n = PROMPT; n < PROMPT + MOST; n++) {
            ids[n] = predict(&b->original.session, ids, n, p);
            bool equal = predict(&b->model.session, ids, n, p) == ids[n];
            if (equal && unbroken == same && unbroken == (size_t)(n - PROMPT)) unbroken++;
            same += equal;
        }
        assert_int_equal(got.greedy, MOST);
        assert_int_equal(got.greedy_same, same);
        assert_int_equal(got.unbroken, unbroken);
    }
    mem_free(p);
}

// A model against itself, and a prompt that fills the context.
static void itself(void **state) {
    Bench *b = *state;
    Quality got = {0};
    Engine twin;
    Error e = {0};
    EngineOptions o = {
        .threads = 1, .context = CONTEXT, .beside = &b->original, .isa = getenv("OUTPACE_ISA")};
    check_ok(engine_open(&twin, b->from, &o, NULL, &e), &e);
    check_ok(quality_text(&twin, &b->original, b->ids, N, &got, &e), &e);
    check_ok(quality_greedy(&twin, &b->original, b->ids, PROMPT, MOST, &got, &e), &e);
    check_ok(quality_greedy(&twin, &b->original, b->ids, CONTEXT, MOST, &got, &e), &e);
    assert_true(got.loss == got.of_original && fabs(got.divergence) < 1e-9);
    assert_true(got.same == got.tokens && got.greedy > 0 && got.greedy <= MOST);
    assert_true(got.greedy_same == got.greedy && got.unbroken == got.greedy);
    engine_close(&twin);
}

static int open_bench(void **state) {
    static Bench b;
    Error e = {0};
    Random r = test_random(1);
    folder_make(b.root);
    snprintf(b.from, sizeof b.from, "%s/from", b.root);
    snprintf(b.to, sizeof b.to, "%s/to", b.root);
    *state = &b;
    EngineOptions o = {.threads = 1, .context = CONTEXT, .isa = getenv("OUTPACE_ISA")};
    check_ok(model_synth(b.from, &(SynthOptions){.shape = "tiny"}, &e) &&
                 model_quantise(b.to, &(QuantiseOptions){.from = b.from, .bits = 4, .group = 32}, &e) &&
                 engine_open(&b.original, b.from, &o, NULL, &e),
             &e);
    o.beside = &b.original;
    check_ok(engine_open(&b.model, b.to, &o, NULL, &e) && quality_comparable(&b.model, &b.original, &e), &e);
    for (int i = 0; i < N; i++) b.ids[i] = (int)random_below(&r, (uint32_t)b.model.session.shape.real_vocab);
    return 0;
}

static int close_bench(void **state) {
    Bench *b = *state;
    engine_close(&b->model);
    engine_close(&b->original);
    folder_remove(b->root);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(greedy_outputs),
                                       cmocka_unit_test(itself)};
    return cmocka_run_group_tests(tests, open_bench, close_bench);
}
