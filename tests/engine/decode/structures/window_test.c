// The window as the paper draws it: section 3.1 and Figure 2 (b), W = 5, N = 4.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/structures/window.h"

#include <string.h>

enum { W = 5, N = 4, VOCAB = 1000, CONTEXT = 60, LAST = 7 };

typedef struct {
    Session session, slow;
    Window window;
    NgramPool pool;
    Random random;
    int sequence[CONTEXT], length;
} World;

static WindowSource source(World *w) { return (WindowSource){&w->random, w->sequence, w->length}; }

static int open_world(void **state) {
    World *w = test_calloc(1, sizeof *w);
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&w->session, &setup);
    null_session_open(&w->slow, &setup);
    window_init(&w->window, W, N);
    assert_true(ngram_pool_init(&w->pool, VOCAB, N - 1, W, POOL_LRU, NULL));
    w->random = test_random(90);
    for (; w->length < 9; w->length++) w->sequence[w->length] = test_between(&w->random, 0, VOCAB - 1);
    w->sequence[w->length - 1] = LAST;
    *state = w;
    return 0;
}

static int close_world(void **state) {
    World *w = *state;
    session_release(&w->session);
    session_release(&w->slow);
    window_release(&w->window);
    ngram_pool_release(&w->pool);
    window_release(&w->window); // takes an empty one
    test_free(w);
    return 0;
}

// Runs the window below the sequence's last token; every step has the same output there, as if nothing was
// accepted.
static void run_step(World *w) {
    session_begin_step(&w->session, false, LAYOUT_TREE);
    int root = tree_root(&w->session.tree, w->sequence[w->length - 1]);
    window_probe(&w->window, &w->session.tree, root, 0, window_columns(&w->window));
    assert_true(session_run(&w->session, w->session.shape.layers, NULL));
    assert_true(session_read(&w->session, HEAD_ARGMAX, NULL));
    WindowSource from = source(w);
    window_read(&w->window, &w->session, &from);
}

static void slide(World *w) {
    WindowSource from = source(w);
    window_slide(&w->window, 1, NULL, 0, &from);
}

static void start(World *w) {
    WindowSource from = source(w);
    session_reset(&w->session);
    assert_true(session_prefill(&w->session, w->sequence, w->length - 1, 0, -1, NULL, NULL));
    ngram_pool_clear(&w->pool);
    window_start(&w->window, &from);
    for (int i = 0; i < N - 2; i++) {
        run_step(w);
        window_collect(&w->window, LAST, &w->pool);
        assert_int_equal(w->pool.size, 0); // no column is an n-gram yet
        slide(w);
    }
}

static int token_of(const World *w, int row, int i) { return w->window.tokens[row * w->window.stride + i]; }

// The node of row l's token i: its column's end, or above it.
static int node_of(const World *w, int row, int i) {
    const Tree *t = &w->session.tree;
    int node = w->window.ends[row == 0 ? i + 1 : i];
    for (int l = N - 2; l > row; l--) node = t->parent[node];
    return node;
}

// "row 0 at positions 1 to 4, row 1 at 1 to 5, row 2 at 2 to 6"
static void stands_where_the_paper_says(void **state) {
    World *w = *state;
    static const int first[] = {1, 1, 2}, count[] = {4, 5, 5};
    start(w);
    run_step(w);
    const Tree *t = &w->session.tree;
    assert_int_equal(t->count, 1 + (W - 1) + (N - 2) * W);
    for (int row = 0; row < N - 1; row++)
        for (int i = 0; i < count[row]; i++) {
            int node = node_of(w, row, i);
            assert_int_equal(tree_position(t, node), w->length - 1 + first[row] + i);
            assert_int_equal(t->token[node], token_of(w, row, i));
            assert_int_equal(t->flags[node] & (NODE_PROBE | NODE_CANDIDATE), NODE_PROBE);
        }
}

// "only the green token at position 5 and all orange tokens are visible to the red token 6", and 0.
static void red_6_sees_what_the_paper_says(void **state) {
    World *w = *state;
    int path[N + W];
    start(w);
    run_step(w);
    int red_6 = node_of(w, 2, 4), n = tree_path(&w->session.tree, red_6, path);
    int want[] = {
        0, node_of(w, 0, 0), node_of(w, 0, 1), node_of(w, 0, 2), node_of(w, 0, 3), node_of(w, 1, 4), red_6};
    assert_int_equal(n, sizeof want / sizeof *want);
    assert_memory_equal(path, want, sizeof want);
}

// "a 4-gram consists of the orange token at position 1, the green token at position 2, the red token at
// position 3, and a newly generated token"; the blue 0 heads the first column's.
static void the_4_gram_is_the_papers(void **state) {
    World *w = *state;
    start(w);
    run_step(w);
    int orange_1 = token_of(w, 0, 0), green_2 = token_of(w, 1, 1), red_3 = token_of(w, 2, 1);
    int whole[CONTEXT], n = w->length;
    memcpy(whole, w->sequence, (size_t)n * sizeof *whole);
    whole[n++] = orange_1;
    whole[n++] = green_2;
    whole[n++] = red_3;
    int want[] = {green_2, red_3, slow_next(&w->slow, whole, n, NULL)};
    window_collect(&w->window, LAST, &w->pool);
    assert_int_equal(w->pool.size, W);
    assert_int_equal(ngram_pool_count(&w->pool, orange_1), 1);
    assert_memory_equal(ngram_pool_tuple(&w->pool, orange_1, 0), want, sizeof want);
    int blue[] = {token_of(w, 1, 0), token_of(w, 2, 0), session_argmax(&w->session, node_of(w, 2, 0))};
    assert_memory_equal(ngram_pool_tuple(&w->pool, LAST, 0), blue, sizeof blue);
}

// "we will remove all orange and green tokens with position 1 ... We then form a new lookahead branch with
// green tokens with indices 2,3,4,5, all red tokens, and all newly generated tokens".
static void slides_as_the_paper_says(void **state) {
    World *w = *state;
    int green[W], red[W], new[W];
    start(w);
    run_step(w);
    for (int i = 0; i < W; i++) {
        green[i] = token_of(w, 1, i);
        red[i] = token_of(w, 2, i);
        new[i] = session_argmax(&w->session, node_of(w, 2, i));
    }
    slide(w);
    for (int i = 0; i < W - 1; i++) assert_int_equal(token_of(w, 0, i), green[i + 1]);
    for (int i = 0; i < W; i++) {
        assert_int_equal(token_of(w, 1, i), red[i]);
        assert_int_equal(token_of(w, 2, i), new[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stands_where_the_paper_says),
        cmocka_unit_test(red_6_sees_what_the_paper_says),
        cmocka_unit_test(the_4_gram_is_the_papers),
        cmocka_unit_test(slides_as_the_paper_says),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
