// The block of every step, against one that asks the model about each guess by itself.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 90, MOST_M = 12, TOKENS = 25, VOCAB = 5, PAD = 2 };

typedef enum { RANDOM, REPEAT, START_OF_PAD } Start;
static const char *const STARTS[] = {"random", "repeat", "pad"};

typedef struct {
    Watched text; // first: the loop's callbacks get it
    int m;
    Start start;
    bool fresh; // refill
    const Session *session;
    Session slow;
    Random random;
    int prompt_count;
    int block[MOST_M]; // the step's expected proposal
    int accepted, refilled;
} Watch;

static int fresh_guess(Watch *w) {
    switch (w->start) {
    case RANDOM: return w->text.sequence[random_below(&w->random, (uint32_t)w->prompt_count)];
    case REPEAT: return w->text.sequence[w->text.length - 1];
    case START_OF_PAD: return PAD;
    }
    return -1;
}

// The model's argmax after the sequence before the step and the first n guesses.
static int says(Watch *w, int n) {
    int whole[CONTEXT + MOST_M];
    memcpy(whole, w->text.sequence, (size_t)w->text.before * sizeof *whole);
    memcpy(whole + w->text.before, w->block, (size_t)n * sizeof *whole);
    return slow_next(&w->slow, whole, w->text.before + n, NULL);
}

// Guess number accepted + 1 is the model's word after the first wrong guess, and so on.
static void next_block(Watch *w, int accepted, int proposed) {
    int next[MOST_M], kept = 0;
    for (int i = accepted + 1; i <= proposed && !w->fresh; i++) next[kept++] = says(w, i);
    w->refilled += kept;
    while (kept < w->m) next[kept++] = fresh_guess(w);
    memcpy(w->block, next, sizeof next);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->session->tree;
    int room = CONTEXT - w->text.before, want = w->m < room ? w->m : room;
    assert_int_equal(t->count - 1, want);
    for (int i = 0; i < want; i++) {
        assert_int_equal(t->parent[i + 1], i);
        if (t->token[i + 1] != w->block[i])
            fail_msg("step %d, guess %d of %d is %d, want %d (start %s, refill %s)", r->number, i, w->m,
                     t->token[i + 1], w->block[i], STARTS[w->start], w->fresh ? "fresh" : "predictions");
    }
    w->accepted += r->accepted;
    next_block(w, r->accepted, want);
}

static void watch_decode(Session *s, Method *m, Watch *w, uint64_t seed, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    watched_prompt(&w->text, test_between(r, 1, CONTEXT), VOCAB, r);
    w->prompt_count = w->text.length;
    w->random = (Random){.seed = seed, .stream = STREAM_METHOD}; // restarts with each prompt
    for (int i = 0; i < w->m; i++) w->block[i] = fresh_guess(w);
    DecodeResult out = watched_decode(&w->text, on_step, s, m, &o);
    decode_result_release(&out);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(62);
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 32};
    int accepted = 0, refilled = 0;
    for (int round = 0; round < 300; round++) {
        Session s;
        Method m;
        Error e = {0};
        char text[100];
        Watch w = {.m = test_between(&r, 1, MOST_M),
                   .start = (Start)test_between(&r, 0, 2),
                   .fresh = test_between(&r, 0, 2) == 0};
        uint64_t seed = random_bits(&r);
        null_session_open(&s, &setup);
        null_session_open(&w.slow, &setup);
        w.session = &s;
        MethodEnv env = {.target = &s, .seed = seed};
        snprintf(text, sizeof text, "jacobi:m=%d,start=%s,pad=%d,refill=%s", w.m, STARTS[w.start], PAD,
                 w.fresh ? "fresh" : "predictions");
        if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
        for (int prompt = 0; prompt < 2; prompt++) watch_decode(&s, &m, &w, seed, &r);
        accepted += w.accepted;
        refilled += w.refilled;
        method_close(&m);
        session_release(&s);
        session_release(&w.slow);
    }
    assert_true(accepted > 1000 && refilled > 8000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
