// The null backend keeps the contract of the real ones: a node's output doesn't depend on how it was run,
// only on the tokens that it sees.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/null/null.h"

#include <math.h>
#include <string.h>

enum { VOCAB = 11, CONTEXT = 150, NODES = 40, SEEN = 3 }; // tokens in the hash

static NullSetup random_setup(Random *r) {
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = NODES};
    if (test_between(r, 0, 1)) setup.window = test_between(r, 1, 20);
    if (test_between(r, 0, 1)) setup.masked = test_between(r, 1, VOCAB - 1);
    return setup;
}

static void random_tokens(Random *r, int *out, int count) {
    for (int i = 0; i < count; i++) out[i] = test_between(r, 0, VOCAB - 1);
}

static void grow(Session *s, Random *r) {
    for (int i = test_between(r, 0, 30); i > 0; i--) {
        int parent = test_between(r, 0, s->tree.count - 1), token = test_between(r, 0, VOCAB - 1);
        if (test_between(r, 0, 5) == 0) parent = tree_row(&s->tree);
        tree_propose(&s->tree, parent, token);
        if (test_between(r, 0, 5) == 0) assert_true(session_run(s, test_between(r, 0, NULL_LAYERS), NULL));
    }
    assert_true(session_run(s, NULL_LAYERS, NULL) && session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
}

// Every node of the open step has the output of its path run separately, one token per step.
static void check_nodes(Session *s, Session *slow, const int *sequence, int length) {
    for (int node = 0; node < s->tree.count; node++) {
        float want[VOCAB];
        int whole[CONTEXT + NODES], path[NODES], n = tree_path(&s->tree, node, path);
        memcpy(whole, sequence, (size_t)length * sizeof *whole);
        for (int i = 0; i < n; i++) whole[length + i] = s->tree.token[path[i]];
        assert_int_equal(session_argmax(s, node), slow_next(slow, whole, length + n, want));
        assert_memory_equal(session_logits(s, node), want, sizeof want);
    }
}

static void trees_say_what_paths_say(void **state) {
    (void)state;
    Random r = test_random(30);
    for (int round = 0; round < 150; round++) {
        NullSetup setup = random_setup(&r);
        Session s, slow;
        int sequence[CONTEXT], length = test_between(&r, 0, CONTEXT - NODES);
        null_session_open(&s, &setup);
        null_session_open(&slow, &setup);
        random_tokens(&r, sequence, length);
        assert_true(session_prefill(&s, sequence, length, test_between(&r, 0, NODES), 0, NULL, NULL));
        if (length > 10) { // take some back and run them again
            int back = test_between(&r, 1, 10);
            assert_true(session_truncate(&s, length - back, NULL));
            assert_true(session_prefill(&s, sequence + length - back, back, 0, 0, NULL, NULL));
        }
        session_begin_step(&s, test_between(&r, 0, 1), test_between(&r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH);
        tree_root(&s.tree, test_between(&r, 0, VOCAB - 1));
        grow(&s, &r);
        check_nodes(&s, &slow, sequence, length);
        session_release(&s);
        session_release(&slow);
    }
}

static void check_head(const float *logits, int argmax, const int *ids, const float *best, int real) {
    for (int i = 0; i < VOCAB; i++) {
        assert_true(i < real ? isfinite(logits[i]) != 0 : logits[i] == -INFINITY);
        if (i != argmax) assert_true(logits[i] < logits[argmax]);
    }
    assert_int_equal(ids[0], argmax);
    for (int i = 0; i < VOCAB; i++) {
        assert_true(best[i] == logits[ids[i]]);
        if (i) assert_true(best[i] < best[i - 1] || (best[i] == best[i - 1] && ids[i] > ids[i - 1]));
    }
}

static void the_head_agrees_with_itself(void **state) {
    (void)state;
    Random r = test_random(31);
    for (int round = 0; round < 300; round++) {
        NullSetup setup = random_setup(&r);
        Session s;
        int sequence[9], ids[VOCAB], node = 0, length = test_between(&r, 1, 9);
        float best[VOCAB], logits[VOCAB];
        null_session_open(&s, &setup);
        random_tokens(&r, sequence, length);
        int argmax = slow_next(&s, sequence, length, logits);
        assert_true(session_top(&s, &node, 1, VOCAB, ids, best, NULL)); // of the step just closed
        check_head(logits, argmax, ids, best, VOCAB - setup.masked);
        session_release(&s);
    }
}

// Changing one token changes the output if and only if it's among the last SEEN that the window shows.
static void says_by_the_last_tokens(void **state) {
    (void)state;
    Random r = test_random(32);
    for (int round = 0; round < 1000; round++) {
        NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .window = test_between(&r, 0, 6)};
        Session s;
        int sequence[20], length = test_between(&r, 1, 20), at = test_between(&r, 0, length - 1);
        float before[VOCAB], after[VOCAB];
        null_session_open(&s, &setup);
        random_tokens(&r, sequence, length);
        slow_next(&s, sequence, length, before);
        sequence[at] = (sequence[at] + 1) % VOCAB;
        slow_next(&s, sequence, length, after);
        int seen = setup.window && setup.window < SEEN ? setup.window : SEEN;
        bool changed = memcmp(before, after, sizeof before) != 0;
        if (changed != (length - at <= seen))
            fail_msg("token %d of %d, window %d: changed %d", at, length, setup.window, changed);
        session_release(&s);
    }
}

static void hidden_states_tell_rows_apart(void **state) {
    (void)state;
    Session s;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&s, &setup);
    session_begin_step(&s, true, LAYOUT_TREE);
    int root = tree_root(&s.tree, 1),
        nodes[] = {root, tree_propose(&s.tree, root, 2), tree_propose(&s.tree, root, 3)};
    float early[3][NULL_WIDTH], late[3][NULL_WIDTH], normed[3][NULL_WIDTH];
    assert_true(session_run(&s, 1, NULL));
    assert_true(session_get_hidden(&s, nodes, 3, HIDDEN_RAW, early[0], NULL));
    assert_true(session_run(&s, NULL_LAYERS, NULL));
    assert_true(session_get_hidden(&s, nodes, 3, HIDDEN_RAW, late[0], NULL));
    assert_true(session_get_hidden(&s, nodes, 3, HIDDEN_NORMED, normed[0], NULL));
    for (int i = 0; i < 3; i++) {
        assert_memory_not_equal(early[i], late[i], sizeof *early);
        assert_memory_not_equal(late[i], normed[i], sizeof *early);
        assert_memory_not_equal(late[i], late[(i + 1) % 3], sizeof *early);
    }
    session_release(&s);
}

// The output of a model of hidden states follows from its rows, committed or in the open step.
static void takes_hidden_states(void **state) {
    (void)state;
    Session s;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .input = INPUT_HIDDEN};
    float rows[][NULL_WIDTH] = {{0.5f}, {0.25f}, {0.75f}}, first[VOCAB], second[VOCAB];
    null_session_open(&s, &setup);
    session_begin_step(&s, false, LAYOUT_TREE);
    int root = tree_root(&s.tree, 0), a = tree_propose(&s.tree, root, 0), b = tree_propose(&s.tree, root, 1);
    assert_true(session_set_hidden(&s, root, 3, rows[0], NULL));
    assert_true(session_run(&s, NULL_LAYERS, NULL) && session_read(&s, HEAD_LOGITS, NULL));
    memcpy(first, session_logits(&s, a), sizeof first);
    memcpy(second, session_logits(&s, b), sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
    assert_true(session_commit(&s, root, 1, NULL));
    session_begin_step(&s, true, LAYOUT_TREE);
    root = tree_root(&s.tree, 5);
    assert_true(session_set_hidden(&s, root, 1, rows[2], NULL));
    assert_true(session_run(&s, NULL_LAYERS, NULL) && session_read(&s, HEAD_LOGITS, NULL));
    assert_memory_equal(session_logits(&s, root), second, sizeof second);
    session_release(&s);
}

static void reports_itself(void **state) {
    (void)state;
    Session s;
    BackendReport report;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&s, &setup);
    s.backend->report(s.self, &report);
    assert_string_equal(report.name, "null");
    assert_ptr_equal(s.backend, &null_backend);
    session_release(&s);
    null_backend.close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_say_what_paths_say), cmocka_unit_test(the_head_agrees_with_itself),
        cmocka_unit_test(says_by_the_last_tokens),  cmocka_unit_test(hidden_states_tell_rows_apart),
        cmocka_unit_test(takes_hidden_states),      cmocka_unit_test(reports_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
