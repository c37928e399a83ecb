#include "tests/support/copies_suite.h"

#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 7, MOST_WIDTH = 5, PROMPT = 70, CONTEXT = 160 };

static void open_session(Session *s, const ExactBackend *b, const Model *m, int slack, int threads) {
    BackendOptions o = {.compute = m->dtype == DTYPE_BF16 ? COMPUTE_BF16 : COMPUTE_F32,
                        .context = CONTEXT,
                        .slack = slack,
                        .threads = threads};
    void *self;
    Error e = {0};
    if (!b->open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, b->backend, self, &m->shape, &o);
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

// Some tokens are taken back, if a ring still has what they saw, and replaced by others, sometimes more:
// their copies are then stale.
static void take_back(Session *copied, Session *viewed, int most, Random r) {
    int length = copied->cache.length, back = test_between(&r, 0, length < most ? length : most),
        more = test_between(&r, 0, back + 5);
    bool taken = session_truncate(copied, length - back, NULL);
    assert_int_equal(session_truncate(viewed, length - back, NULL), taken);
    if (!taken) more = test_between(&r, 0, 5);
    prefill(copied, more, r);
    prefill(viewed, more, r);
}

static void one_round(const ExactBackend *b, bool rings, Random *r) {
    Shape shape = random_shape(r);
    int slack = rings ? test_between(r, 1, 24) : 0; // 0: the default
    if (rings) shape.window = test_between(r, 1, 24);
    RandomModel m;
    Session copied, viewed;
    random_model_init(&m, &shape, test_between(r, 0, 1) ? DTYPE_BF16 : DTYPE_F32, false, r);
    int w = test_between(r, 1, MOST_WIDTH), prompt = test_between(r, rings ? PROMPT / 2 : 0, PROMPT);
    if (prompt + 6 * (w + 9) > shape.context) prompt = 0;
    size_t room = (size_t)(MOST_ROWS * (MOST_WIDTH + 1)) * (size_t)shape.width;
    float *want = test_calloc(room, sizeof *want), *got = test_calloc(room, sizeof *got);
    open_session(&copied, b, &m.model, slack, test_between(r, 1, 2));
    open_session(&viewed, b, &m.model, slack, 1);
    Random same = *r;
    prefill(&copied, prompt, same);
    prefill(&viewed, prompt, same);
    for (int step = 0; step < 6; step++) {
        bool mixed = test_between(r, 0, 1);
        int rows = test_between(r, 1, MOST_ROWS), back = test_between(r, 0, 3);
        if (rings ? back : back == 3) take_back(&copied, &viewed, rings ? 24 : 3, *r);
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

void copies_suite(const ExactBackend *b, int rounds, bool rings) {
    Random r = test_random(1);
    for (int i = 0; i < rounds; i++) one_round(b, rings, &r);
}
