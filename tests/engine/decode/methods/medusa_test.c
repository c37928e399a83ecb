// The tree's tokens against heads that are run again, on random streams of the null backend.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/rank_tree_text.h"
#include "tests/support/watched.h"

#include "engine/decode/rank_tree.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 60, TOKENS = 40, MOST_HEADS = 4 };

// --- proposals

typedef struct {
    Watched text;
    Session target, heads[MOST_HEADS], slow_target, slow_head;
    RankTree tree;
    int depth, vocab;
    int accepted;
} Watch;

// The final normed state of the last token but one.
static void slow_state(Watch *w, float *row) {
    Session *s = &w->slow_target;
    int n = w->text.before - 1, last = n - 1;
    session_reset(s);
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, w->text.sequence[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, w->text.sequence[i], false);
    assert_true(session_run(s, s->shape.layers, NULL));
    assert_true(session_get_hidden(s, &last, 1, HIDDEN_NORMED, row, NULL));
}

// The rank-th best token of a head, by looking through its logits.
static int slow_choice(Watch *w, const float *row, int rank) {
    Session *s = &w->slow_head;
    session_begin_step(s, true, LAYOUT_TREE);
    int root = tree_root(&s->tree, 0), better = 0;
    assert_true(session_set_hidden(s, root, 1, row, NULL) && session_run(s, s->shape.layers, NULL));
    assert_true(session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    const float *x = session_logits(s, root);
    for (int id = 0; id < w->vocab; id++, better = 0) {
        for (int other = 0; other < w->vocab; other++)
            better += x[other] > x[id] || (x[other] == x[id] && other < id);
        if (better == rank) return id;
    }
    return -1; // there are not so many
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    int placed[100], want = 0;
    float row[NULL_WIDTH];
    if (w->text.before > 1) slow_state(w, row);
    for (int i = 0; i < w->tree.count; i++) {
        const RankNode *n = &w->tree.nodes[i];
        int parent = n->parent < 0 ? 0 : placed[n->parent];
        int id = w->text.before > 1 ? slow_choice(w, row, n->rank) : -1;
        bool room = w->text.before + n->depth < CONTEXT && want + 1 < t->capacity;
        placed[i] = parent >= 0 && id >= 0 && room ? ++want : -1;
        if (placed[i] < 0) continue;
        assert_true(want < t->count);
        assert_int_equal(t->parent[want], parent);
        if (t->token[want] != id)
            fail_msg("step %d: guess %d (depth %d, rank %d) is %d, want %d", r->number, i, n->depth, n->rank,
                     t->token[want], id);
    }
    assert_int_equal(t->count - 1, want);
    w->accepted += r->accepted;
}

static void open_watch(Watch *w, Random *r) {
    NullSetup setup = {
        .vocab = test_between(r, 3, 12), .context = CONTEXT, .max_nodes = test_between(r, 20, 80)};
    NullSetup head = {.vocab = setup.vocab, .context = 1, .max_nodes = 1, .input = INPUT_HIDDEN};
    w->vocab = setup.vocab;
    rank_tree_init(&w->tree);
    null_session_open(&w->target, &setup);
    for (int i = 0; i < MOST_HEADS; i++) null_session_open(&w->heads[i], &head);
    setup.max_nodes = 0;
    null_session_open(&w->slow_target, &setup);
    null_session_open(&w->slow_head, &head);
}

static void close_watch(Watch *w) {
    rank_tree_release(&w->tree);
    session_release(&w->target);
    for (int i = 0; i < MOST_HEADS; i++) session_release(&w->heads[i]);
    session_release(&w->slow_target);
    session_release(&w->slow_head);
}

static void open_method(Watch *w, Method *m, const char *folder, Random *r) {
    int heads = test_between(r, 1, MOST_HEADS), depth = test_between(r, 1, 5), top = test_between(r, 1, 10);
    char text[300], tree[1200];
    Error e = {0};
    MethodEnv env = {.target = &w->target,
                     .adapters = {{.sessions = w->heads, .count = heads, .layer = NULL_LAYERS}},
                     .sampling = {.top_p = 1}};
    w->depth = depth < heads ? depth : heads;
    rank_tree_grow(&w->tree, test_between(r, 1, 99), w->depth, top);
    rank_tree_text(&w->tree, tree);
    FILE *f = fopen(folder_path(folder, "tree.txt"), "w");
    assert_true(f && fputs(tree, f) >= 0 && fclose(f) == 0);
    if (test_between(r, 0, 1))
        snprintf(text, sizeof text, "medusa:nodes=%d,top=%d,depth=%d", w->tree.count, top, depth);
    else snprintf(text, sizeof text, "medusa:depth=%d,tree=%s", depth, folder_path(folder, "tree.txt"));
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void watch_decode(Watch *w, Method *m, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    o.prefill_chunk = test_between(r, 0, 5);
    watched_prompt(&w->text, test_between(r, 1, test_between(r, 0, 4) ? 8 : CONTEXT), w->vocab, r);
    DecodeResult out = watched_decode(&w->text, on_step, &w->target, m, &o);
    decode_result_release(&out);
}

static void every_setting(void **state) {
    const char *folder = *state;
    Random r = test_random(84);
    int accepted = 0;
    for (int round = 0; round < 60; round++) {
        Watch w = {.accepted = 0};
        Method m;
        open_watch(&w, &r);
        open_method(&w, &m, folder, &r);
        for (int prompt = 0; prompt < 2; prompt++) watch_decode(&w, &m, &r);
        accepted += w.accepted;
        method_close(&m);
        close_watch(&w);
    }
    print_message("%d guesses accepted\n", accepted);
    assert_true(accepted > 500);
}

static void inline_trees_and_missing_files(void **state) {
    (void)state;
    Watch w = {.accepted = 0};
    Random r = test_random(85);
    Method m;
    Error e = {0};
    open_watch(&w, &r);
    MethodEnv env = {.target = &w.target,
                     .adapters = {{.sessions = w.heads, .count = 2, .layer = NULL_LAYERS}}};
    assert_true(method_open(&m, "medusa:tree=0;1;00;01", &env, &e));
    method_close(&m);
    assert_false(method_open(&m, "medusa:tree=0;000", &env, &e));
    assert_string_equal(e.text, "method 'medusa': the path '000' in 'tree' is longer than 2 ranks");
    assert_false(method_open(&m, "medusa:tree=/no/such/tree", &env, &e));
    assert_non_null(strstr(e.text, "/no/such/tree"));
    env.adapters[0].layer = 1;
    assert_false(method_open(&m, "medusa", &env, &e));
    assert_string_equal(
        e.text,
        "method 'medusa': Medusa heads are needed: give them with --heads DIR, in a config heads: DIR");
    close_watch(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_setting, folder_setup, folder_teardown),
        cmocka_unit_test(inline_trees_and_missing_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
