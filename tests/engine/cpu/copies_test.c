// A batch whose rows read copies of the cache says, bit for bit, what one says whose rows look at the cache.
#include "tests/support/check.h"

#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "tests/support/random_model.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 15, MOST_ROWS = 7, MOST_WIDTH = 5, PROMPT = 70, CONTEXT = 160 };

static void open_session(Session *s, const Model *m, int copies, int threads) {
    BackendOptions o = {.compute = m->dtype == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F32,
                        .context = CONTEXT,
                        .threads = threads,
                        .copies = copies};
    void *self;
    Error e = {0};
    if (!cpu_open(m, &o, &self, &e) || !session_init(s, &cpu_backend, self, &m->shape, &o, &e))
        fail_msg("%s", e.text);
}

static int token(const Session *s, Random *r) { return (int)random_below(r, (uint32_t)s->shape.real_vocab); }

// `rows` rows of w tokens after the root, row by row or, `mixed`, token by token.
static void build(Session *s, Layout layout, int rows, int w, bool mixed, Random *r) {
    int last[MOST_ROWS];
    session_begin_step(s, false, layout);
    tree_root(&s->tree, token(s, r));
    for (int i = 0; i < rows; i++) last[i] = mixed ? tree_row(&s->tree) : TREE_NONE;
    for (int i = 0; i < rows * w; i++) {
        int row = mixed ? i % rows : i / w;
        if (!mixed && i % w == 0) last[row] = tree_row(&s->tree);
        last[row] = tree_propose(&s->tree, last[row], token(s, r));
    }
}

// The hidden rows of all nodes, (count, width); then a part of the first row is committed.
static int run(Session *s, Layout layout, int rows, int w, bool mixed, Random r, float *hidden) {
    Error e = {0};
    int all[MOST_ROWS * (MOST_WIDTH + 1)];
    build(s, layout, rows, w, mixed, &r);
    int count = s->tree.count;
    for (int i = 0; i < count; i++) all[i] = i;
    if (!session_run(s, s->shape.layers, &e) ||
        !session_get_hidden(s, all, count, HIDDEN_NORMED, hidden, &e) || !session_commit(s, 0, 1, &e))
        fail_msg("%s", e.text);
    return count;
}

static void prefill(Session *s, int count, Random r) {
    int tokens[PROMPT];
    Error e = {0};
    for (int i = 0; i < count; i++) tokens[i] = token(s, &r);
    if (count && !session_prefill(s, tokens, count, 0, 0, NULL, &e)) fail_msg("%s", e.text);
}

static void one_round(Random *r) {
    Shape shape = random_shape(r);
    RandomModel m;
    Session copied, viewed;
    random_model_init(&m, &shape, test_between(r, 0, 1) ? DTYPE_BF16 : DTYPE_F32, false, r);
    int rows = test_between(r, 1, MOST_ROWS), w = test_between(r, 1, MOST_WIDTH),
        prompt = test_between(r, 0, PROMPT);
    if (prompt + 3 * (w + 1) > shape.context) prompt = 0;
    size_t room = (size_t)(MOST_ROWS * (MOST_WIDTH + 1)) * (size_t)shape.width;
    float *want = test_calloc(room, sizeof *want), *got = test_calloc(room, sizeof *got);
    open_session(&copied, &m.model, rows, test_between(r, 1, 2));
    open_session(&viewed, &m.model, 0, 1);
    Random same = *r;
    prefill(&copied, prompt, same);
    prefill(&viewed, prompt, same);
    for (int step = 0; step < 3; step++) {
        bool mixed = test_between(r, 0, 1);
        int n = run(&copied, LAYOUT_COPIED, rows, w, mixed, *r, got);
        assert_int_equal(run(&viewed, LAYOUT_BATCH, rows, w, mixed, *r, want), n);
        if (memcmp(want, got, (size_t)n * (size_t)shape.width * sizeof *want) != 0)
            fail_msg("%d rows of %d at %d, window %d, step %d: other bits", rows, w, prompt, shape.window,
                     step);
    }
    session_release(&copied);
    session_release(&viewed);
    random_model_release(&m);
    test_free(want);
    test_free(got);
}

static void same_bits(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int i = 0; i < ROUNDS; i++) one_round(&r);
}

static void more_rows_than_room(void **state) {
    (void)state;
    Random r = test_random(2);
    Shape shape = random_shape(&r);
    RandomModel m;
    Session s;
    Error e = {0};
    random_model_init(&m, &shape, DTYPE_F32, false, &r);
    open_session(&s, &m.model, 2, 1);
    build(&s, LAYOUT_COPIED, 3, 1, false, &r);
    assert_false(session_run(&s, s.shape.layers, &e));
    assert_string_equal(e.text, "a step of 3 rows with copies of the cache; there is room for 2");
    build(&s, LAYOUT_COPIED, 2, 1, false, &r);
    assert_true(session_run(&s, s.shape.layers, &e));
    session_release(&s);
    random_model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(more_rows_than_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
