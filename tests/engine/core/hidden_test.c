// Rows of hidden states between two sessions that only have the host's memory, against get and set.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/core/hidden.h"

#include <string.h>

enum { NODES = 6, VOCAB = 50 };

static void open_step(Session *s, int layers) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 1);
    for (int i = 1; i < NODES; i++) node = tree_probe(&s->tree, node, i, true);
    assert_true(session_run(s, layers, NULL));
}

// The adapter's best token at its last node, whose input this was.
static int says(Session *s) {
    int last = NODES - 1;
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX, NULL));
    return session_argmax(s, last);
}

static void rows_are_the_nodes(void **state) {
    (void)state;
    Session from, to;
    HiddenRows rows;
    Error e = {0};
    null_session_open(&from, &(NullSetup){.vocab = VOCAB, .context = 30});
    null_session_open(&to, &(NullSetup){.vocab = VOCAB, .context = 30, .input = INPUT_HIDDEN});
    hidden_open(&rows, &from, &to, NODES);
    assert_null(rows.memory);
    for (int kind = HIDDEN_RAW; kind <= HIDDEN_NORMED; kind++) {
        float want[NODES][NULL_WIDTH];
        const int nodes[NODES] = {0, 1, 2, 3, 4, 5};
        open_step(&from, kind == HIDDEN_RAW ? 1 : NULL_LAYERS);
        assert_true(session_get_hidden(&from, nodes, NODES, (HiddenKind)kind, want[0], &e));
        for (int i = NODES - 1; i >= 0; i--)
            assert_true(hidden_keep(&rows, i, &from, i, (HiddenKind)kind, &e));
        assert_memory_equal(rows.rows, want, sizeof want);
        open_step(&to, 0);
        assert_true(session_set_hidden(&to, 0, NODES, want[0], &e));
        int wanted = says(&to);
        open_step(&to, 0);
        for (int i = NODES - 1; i >= 0; i--) assert_true(hidden_give(&rows, i, &to, i, &e));
        assert_int_equal(says(&to), wanted);
    }
    hidden_close(&rows);
    hidden_close(&rows);
    session_release(&to);
    session_release(&from);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_the_nodes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
