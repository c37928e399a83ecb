// The cache of a second model follows any sequence, whatever was guessed: chains that the sequence confirms
// in part, in full, or not at all; several missing tokens; with a window; with hidden states as input.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/draft.h"

#include <string.h>

enum { VOCAB = 4, CONTEXT = 90, MOST_NODES = 12 };

// A row of the token at a position: the null backend reads its first number.
static void row_of(int token, int position, float *row) {
    for (int i = 0; i < NULL_WIDTH; i++) row[i] = (float)(token * 100 + position) * 0x1p-20f;
}

static void set_rows(Session *s, const int *tokens, int first, int count) {
    for (int i = 0; i < count; i++) {
        float row[NULL_WIDTH];
        row_of(tokens[i], s->tree.context + first + i, row);
        assert_true(session_set_hidden(s, first + i, 1, row, NULL));
    }
}

// A new session's argmax after the sequence, one token per step.
static int slow_says(Session *s, const int *sequence, int length) {
    if (s->shape.input == INPUT_TOKENS) return slow_next(s, sequence, length, NULL);
    int says = -1;
    session_reset(s);
    for (int i = 0; i < length; i++) {
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, sequence[i]);
        set_rows(s, sequence + i, 0, 1);
        assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX, NULL));
        says = session_argmax(s, node);
        assert_true(session_commit(s, node, 1, NULL));
    }
    return says;
}

typedef struct {
    Session session, slow;
    Follower follower;
    int sequence[CONTEXT], length;
    int partly, wholly, late;
} World;

// One step: catches up, guesses a chain, and settles with the tokens emitted.
static void step(World *w, Random *r) {
    Session *s = &w->session;
    int missing = follower_missing(&w->follower), node = follower_catch_up(&w->follower), guesses[MOST_NODES];
    int count = test_between(r, 0, 5), n = 0, emitted = test_between(r, 1, 6);
    w->late += missing > 1;
    if (node != TREE_NONE) {
        if (s->shape.input == INPUT_HIDDEN) set_rows(s, w->sequence + w->length - missing, 0, s->tree.count);
        for (;; n++) {
            assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX, NULL));
            int whole[CONTEXT + MOST_NODES];
            memcpy(whole, w->sequence, (size_t)w->length * sizeof *whole);
            memcpy(whole + w->length, guesses, (size_t)n * sizeof *whole);
            int want = slow_says(&w->slow, whole, w->length + n), got = session_argmax(s, node);
            if (got != want) fail_msg("after %d tokens and %d guesses: %d, want %d", w->length, n, got, want);
            if (n == count) break;
            guesses[n] = test_between(r, 0, VOCAB - 1);
            int next = follower_guess(&w->follower, node, guesses[n]);
            if (next == TREE_NONE) break;
            if (s->shape.input == INPUT_HIDDEN) set_rows(s, guesses + n, next, 1);
            node = next;
        }
    }
    if (w->length + emitted > CONTEXT) emitted = CONTEXT - w->length;
    int right = test_between(r, 0, n), *to = w->sequence + w->length;
    for (int i = 0; i < emitted; i++) to[i] = i < right ? guesses[i] : test_between(r, 0, VOCAB - 1);
    assert_true(follower_settle(&w->follower, to, emitted, NULL));
    w->partly += right < n && emitted > right;
    w->wholly += n > 0 && right == n && emitted > n;
    w->length += emitted;
    assert_int_equal(w->follower.length, w->length);
    assert_in_range(s->cache.length, 0, w->length - 1);
    if (node != TREE_NONE) assert_true(s->cache.length >= w->length - emitted); // never short of what it ran
}

static void follow(World *w, Random *r) {
    float rows[CONTEXT * NULL_WIDTH];
    bool hidden = w->session.shape.input == INPUT_HIDDEN;
    w->length = test_between(r, 1, 30);
    for (int i = 0; i < w->length; i++) {
        w->sequence[i] = test_between(r, 0, VOCAB - 1);
        row_of(w->sequence[i], i, rows + (size_t)i * NULL_WIDTH);
    }
    assert_true(follower_begin(&w->follower, w->sequence, w->length, hidden ? rows : NULL, NULL));
    while (w->length < CONTEXT) step(w, r);
}

static void follows_anything(void **state) {
    (void)state;
    Random r = test_random(81);
    World w = {.length = 0};
    for (int round = 0; round < 60; round++) {
        NullSetup setup = {.vocab = VOCAB,
                           .context =
                               test_between(&r, 0, 3) ? CONTEXT + MOST_NODES : test_between(&r, 1, CONTEXT),
                           .window = test_between(&r, 0, 9),
                           .max_nodes = test_between(&r, 2, MOST_NODES),
                           .input = test_between(&r, 0, 1) ? INPUT_TOKENS : INPUT_HIDDEN};
        null_session_open(&w.session, &setup);
        setup.context = CONTEXT + MOST_NODES;
        null_session_open(&w.slow, &setup);
        follower_init(&w.follower, &w.session, CONTEXT);
        for (int prompt = 0; prompt < 2; prompt++) follow(&w, &r);
        follower_release(&w.follower);
        session_release(&w.session);
        session_release(&w.slow);
    }
    print_message("%d chains borne in part, %d wholly, %d late\n", w.partly, w.wholly, w.late);
    assert_true(w.partly > 300 && w.wholly > 100 && w.late > 300);
}

// A draft after the sequence, committed token by token and taken back to any length: the model's output is
// then that of the remaining text, even if a ring has dropped it and it was read again.
static void takes_back(void **state) {
    (void)state;
    Random r = test_random(83);
    int again = 0;
    for (int round = 0; round < 300; round++) {
        World w = {.length = test_between(&r, 1, 20)};
        NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .window = test_between(&r, 0, 5)};
        null_session_open(&w.session, &setup);
        null_session_open(&w.slow, &setup);
        follower_init(&w.follower, &w.session, CONTEXT);
        for (int i = 0; i < CONTEXT; i++) w.sequence[i] = test_between(&r, 0, VOCAB - 1);
        assert_true(follower_begin(&w.follower, w.sequence, w.length, NULL, NULL));
        int end = test_between(&r, w.length, CONTEXT - 1), keep = test_between(&r, 0, end);
        while (w.follower.length < end) {
            int node = follower_catch_up(&w.follower);
            assert_true(session_run(&w.session, NULL_LAYERS, NULL));
            follower_append(&w.follower, w.sequence + w.follower.length, 1);
            assert_true(session_commit(&w.session, node, follower_missing(&w.follower) - 1, NULL));
        }
        int held = w.session.cache.length;
        double passes = w.session.passes;
        assert_true(follower_take_back(&w.follower, keep, NULL));
        assert_int_equal(w.session.cache.length, keep < held ? keep : held);
        again += w.session.passes > passes;
        w.follower.length = w.session.cache.length + 1;
        int node = follower_catch_up(&w.follower);
        assert_true(session_run(&w.session, NULL_LAYERS, NULL) &&
                    session_read(&w.session, HEAD_ARGMAX, NULL));
        assert_int_equal(session_argmax(&w.session, node), slow_says(&w.slow, w.sequence, w.follower.length));
        follower_release(&w.follower);
        session_release(&w.session);
        session_release(&w.slow);
    }
    assert_true(again > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(follows_anything), cmocka_unit_test(takes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
