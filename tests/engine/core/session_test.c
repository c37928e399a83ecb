// The session against a backend that records its calls and checks the contract of backend.h.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"

#include <string.h>

enum { LAYERS = 4, VOCAB = 50, WIDTH = 2, NODES = 32, CONTEXT = 200 };

// A node's token goes up the layers; the cache has tokens by slot. The head's result is token + position.
typedef struct {
    int layer[NODES], token[NODES], position[NODES], slot[CONTEXT + CACHE_BLOCK];
    int runs, layer_passes; // calls, and layers read by them
    bool fails, exits;      // exits: nodes may be read below the last layer
} Recorder;

static bool recorder_run(void *self, const StepRun *run, Error *e) {
    Recorder *b = self;
    if (b->fails) return error_system(e, "as asked");
    for (int i = run->first; i < run->last; i++) {
        int parent = run->tree->parent[i];
        if (run->a == 0) b->layer[i] = 0;
        assert_int_equal(b->layer[i], run->a);
        b->layer[i] = run->b;
        if (parent != TREE_NONE) assert_true(b->layer[parent] >= run->b);
        b->token[i] = run->tree->token[i];
        b->position[i] = tree_position(run->tree, i);
    }
    b->runs++;
    b->layer_passes += run->b - run->a;
    return true;
}

static bool recorder_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    (void)e;
    Recorder *b = self;
    for (int i = 0; i < count; i++) {
        int below = LAYERS - b->layer[nodes[i]],
            best = (b->token[nodes[i]] + b->position[nodes[i]] + below) % VOCAB;
        assert_true(below == 0 || (b->exits && count == 1));
        if (want & HEAD_ARGMAX) out->argmax[i] = best;
        for (int v = 0; want & HEAD_LOGITS && v < VOCAB; v++)
            out->logits[i * VOCAB + v] = (float)-abs(v - best);
    }
    return true;
}

static bool recorder_get(void *self, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    (void)e;
    Recorder *b = self;
    for (int i = 0; i < count; i++) {
        rows[i * WIDTH] = (float)b->token[nodes[i]];
        rows[i * WIDTH + 1] = (float)(b->layer[nodes[i]] + (kind == HIDDEN_NORMED ? 100 : 0));
    }
    return true;
}

static bool recorder_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    (void)e;
    Recorder *b = self;
    for (int i = 0; i < count; i++) {
        assert_in_range(slots[i], 0, CONTEXT + CACHE_BLOCK - 1);
        for (int j = 0; j < i; j++) assert_int_not_equal(slots[i], slots[j]);
        b->slot[slots[i]] = b->token[nodes[i]];
    }
    return true;
}

static void recorder_reset(void *self) { (void)self; }
static void recorder_close(void *self) { mem_free(self); }

static const Backend recorder = {.name = "recorder",
                                 .run = recorder_run,
                                 .head = recorder_head,
                                 .get_hidden = recorder_get,
                                 .commit = recorder_commit,
                                 .reset = recorder_reset,
                                 .close = recorder_close};

static Recorder *open_session(Session *s, int window) {
    Shape shape = {.layers = LAYERS,
                   .vocab = VOCAB,
                   .real_vocab = VOCAB,
                   .width = WIDTH,
                   .context = CONTEXT,
                   .window = window};
    BackendOptions o = {.max_nodes = NODES, .slack = 16};
    Recorder *b = mem_new(1, sizeof *b);
    session_init(s, &recorder, b, &shape, &o);
    return b;
}

static void levels_are_swept_once(void **state) {
    (void)state;
    Session s;
    Recorder *b = open_session(&s, 0);
    session_begin_step(&s, true, LAYOUT_TREE);
    int node = tree_root(&s.tree, 7);
    for (int i = 0; i < 3; i++) { // Kangaroo's way: node by node through the first layers
        assert_true(session_run(&s, 2, NULL));
        node = tree_propose(&s.tree, node, i);
    }
    assert_int_equal(b->layer_passes, 3 * 2);
    assert_true(session_run(&s, LAYERS, NULL)); // the last node catches up, then all go on together
    session_assert(&s);
    assert_int_equal(b->layer_passes, 4 * 2 + (LAYERS - 2));
    assert_int_equal((int)s.rows, 4);
    assert_true(session_run(&s, LAYERS, NULL)); // nothing left
    assert_int_equal(b->runs, 5);
    session_release(&s);
}

// One node is read after two layers, by both kinds of read; nothing of it is left when the step goes on, and
// the log has the head's pass where it was.
static void a_peek_is_forgotten(void **state) {
    (void)state;
    Session s;
    PassLog log = {.count = 0};
    Recorder *b = open_session(&s, 0);
    b->exits = true;
    s.log = &log;
    session_begin_step(&s, true, LAYOUT_TREE);
    int node = tree_root(&s.tree, 7), other = tree_propose(&s.tree, node, 9);
    assert_true(session_run(&s, 2, NULL));
    session_peek(&s, node);
    assert_true(session_read(&s, HEAD_ARGMAX, NULL));
    assert_int_equal(session_argmax(&s, node), 7 + LAYERS - 2);
    assert_true(session_read(&s, HEAD_LOGITS, NULL)); // again, with logits
    session_peek(&s, other);
    assert_true(session_read(&s, HEAD_LOGITS, NULL));
    assert_int_equal(session_argmax(&s, other), 9 + 1 + LAYERS - 2);
    session_assert(&s);
    assert_int_equal(s.logit_rows, 1);
    assert_true(session_run(&s, LAYERS, NULL) && session_read(&s, HEAD_LOGITS, NULL));
    assert_int_equal(session_argmax(&s, node), 7);
    assert_int_equal(session_argmax(&s, other), 9 + 1);
    assert_int_equal(s.logit_rows, 2);
    session_assert(&s);
    assert_int_equal(log.count, 4);
    assert_int_equal(log.passes[1].a, 2);
    assert_int_equal(log.passes[1].b, 2);
    assert_int_equal(log.passes[1].count, 3);
    session_peek(&s, tree_propose(&s.tree, other, 3)); // never read
    session_begin_step(&s, true, LAYOUT_TREE);
    assert_int_equal(s.peek, TREE_NONE);
    session_release(&s);
}

// Returns true as often as `left` allows.
static bool count_down(void *state, const char *what, double share) {
    assert_true(!what || (share >= 0 && share <= 1));
    return --*(int *)state >= 0;
}

// A prefill of two chunks reports progress before every layer. If it's interrupted, no further layer runs,
// and the next sequence is unaffected. A prefill that runs layer by layer counts its passes like one that
// doesn't.
static void ends_between_layers(void **state) {
    (void)state;
    Backend cuts = recorder;
    int tokens[2 * NODES] = {0}, asked = 2 * LAYERS, plenty = 1000;
    cuts.cuts = true;
    for (int n = 0; n <= asked; n++) {
        Session s;
        Recorder *b = open_session(&s, 0);
        Error e = {0};
        int left = n;
        s.backend = &cuts;
        s.progress = (Progress){count_down, &left};
        assert_int_equal(session_prefill(&s, tokens, 2 * NODES, 0, 0, NULL, &e), n == asked);
        assert_int_equal(e.kind, n == asked ? ERROR_NONE : ERROR_INTERRUPTED);
        assert_int_equal(b->layer_passes, n);
        session_reset(&s);
        s.progress.state = &plenty;
        s.passes = 0;
        assert_true(session_prefill(&s, tokens, 2 * NODES, 0, 0, NULL, &e));
        assert_int_equal(s.cache.length, 2 * NODES);
        assert_int_equal((int)s.passes, 2);
        session_release(&s);
    }
}

static void prefill_in_chunks(void **state) {
    (void)state;
    Random r = test_random(4);
    for (int round = 0; round < 60; round++) {
        Session s;
        int window = test_between(&r, 0, 1) ? test_between(&r, 1, 20) : 0, tokens[CONTEXT];
        Recorder *b = open_session(&s, window);
        int n = test_between(&r, 0, CONTEXT), layer = test_between(&r, 1, LAYERS);
        for (int i = 0; i < n; i++) tokens[i] = test_between(&r, 0, VOCAB - 1);
        float hidden[CONTEXT][WIDTH];
        assert_true(session_prefill(&s, tokens, n, test_between(&r, 0, 40), layer, hidden[0], NULL));
        assert_int_equal(s.cache.length, n);
        for (int i = 0; i < n; i++) {
            assert_int_equal((int)hidden[i][0], tokens[i]);
            assert_int_equal((int)hidden[i][1], layer == LAYERS ? LAYERS + 100 : layer);
        }
        for (int i = cache_first_visible(&s.cache, n); i < n; i++)
            assert_int_equal(b->slot[cache_slot(&s.cache, i)], tokens[i]);
        session_release(&s);
    }
}

static void reads_what_is_wanted(void **state) {
    (void)state;
    Session s;
    open_session(&s, 0);
    session_begin_step(&s, false, LAYOUT_TREE);
    int root = tree_root(&s.tree, 3), a = tree_propose(&s.tree, root, 4),
        twin = tree_propose(&s.tree, root, 4);
    int probe = tree_probe(&s.tree, root, 9, false), last = tree_probe(&s.tree, probe, 9, true);
    assert_int_not_equal(a, twin);
    assert_true(session_run(&s, LAYERS, NULL));
    assert_true(session_read(&s, HEAD_ARGMAX, NULL));
    assert_int_equal(session_argmax(&s, root), 3);
    assert_int_equal(session_argmax(&s, twin), 5); // by its canonical node
    assert_int_equal(session_argmax(&s, last), 11);
    assert_int_equal(s.argmax[probe], -1);
    assert_true(session_read(&s, HEAD_LOGITS, NULL)); // the same nodes again, now with logits
    assert_int_equal(s.logit_rows, 3);
    assert_true(session_logits(&s, twin)[5] == 0);
    int child = tree_propose(&s.tree, a, 1); // a tree may grow after it was read
    assert_true(session_run(&s, LAYERS, NULL));
    assert_true(session_read(&s, HEAD_LOGITS, NULL));
    assert_int_equal(s.logit_rows, 4);
    assert_int_equal(session_argmax(&s, child), 3);
    session_release(&s);
}

static void commits_paths(void **state) {
    (void)state;
    Session s;
    Recorder *b = open_session(&s, 0);
    int prompt[] = {1, 2, 3};
    assert_true(session_prefill(&s, prompt, 3, 0, 0, NULL, NULL));
    session_begin_step(&s, true, LAYOUT_TREE);
    int root = tree_root(&s.tree, 4);
    tree_propose(&s.tree, root, 30);
    int x = tree_propose(&s.tree, root, 5), y = tree_propose(&s.tree, x, 6);
    assert_true(session_run(&s, LAYERS, NULL));
    assert_true(session_commit(&s, y, 2, NULL)); // one short
    assert_int_equal(s.cache.length, 5);
    assert_int_equal(s.tree.token[y], 6); // still to be read
    int want[] = {1, 2, 3, 4, 5};
    assert_memory_equal(b->slot, want, sizeof want);
    assert_true(session_truncate(&s, 1, NULL));
    session_begin_step(&s, true, LAYOUT_TREE);
    assert_int_equal(tree_position(&s.tree, tree_root(&s.tree, 0)), 1);
    b->fails = true;
    Error e = {0};
    assert_false(session_run(&s, LAYERS, &e));
    assert_string_equal(e.text, "as asked");
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_swept_once), cmocka_unit_test(a_peek_is_forgotten),
        cmocka_unit_test(prefill_in_chunks),     cmocka_unit_test(ends_between_layers),
        cmocka_unit_test(reads_what_is_wanted),  cmocka_unit_test(commits_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
