// The tree of every step against a matrix that is kept by hand: each node's choices are read from the logits
// of its path, run alone by a second session.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/rank_tree_text.h"
#include "tests/support/watched.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 60, TOKENS = 30, MOST_VOCAB = 12, MOST_WANTED = 4096, NONE = -1 };
enum { WANTED, ZERO, NOTHING, REFERENCE, FILLS }; // the last one is mode=reference

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Session target, slow;
    RankTree tree;
    int k, vocab, fill;
    bool warm, rejected, prompt;
    int matrix[MOST_VOCAB][RANK_TREE_RANKS], before[MOST_VOCAB][RANK_TREE_RANKS]; // before: the last step
    int wanted[MOST_WANTED], wanted_count;
    int filled;         // guesses below a token without a row
    int accepted, most; // guesses in all; rows of the largest step
    int twice;          // rows of the matrix that a later node of the same step wrote again
} Watch;

static void forget(Watch *w) {
    for (int i = 0; i < MOST_VOCAB; i++) w->matrix[i][0] = NONE;
    w->wanted_count = 0;
}

static void want_token(Watch *w, int token) {
    assert_true(w->wanted_count < MOST_WANTED);
    if (w->matrix[token][0] == NONE) w->wanted[w->wanted_count++] = token;
}

static void want_rows(Watch *w, const int *tokens, int count) {
    for (int rank = w->k - 1; rank >= 0; rank--)
        for (int i = count - 1; i >= 0; i--)
            if (w->matrix[tokens[i]][0] != NONE) want_token(w, w->matrix[tokens[i]][rank]);
}

// The last wanted token without a row that isn't among the step's first `count` nodes.
static int last_wanted(Watch *w, int count) {
    const Tree *t = &w->target.tree;
    while (w->wanted_count) {
        int token = w->wanted[--w->wanted_count];
        bool new = w->matrix[token][0] == NONE;
        for (int i = 0; i < count; i++) new = new && t->token[i] != token;
        if (new) return token;
    }
    return NONE;
}

// The k best tokens after the text's first n, and after the path to a node of the step, the root left out.
static void slow_choices(Watch *w, int n, const int *path, int depth, int *out) {
    Session *s = &w->slow;
    session_reset(s);
    session_begin_step(s, true, LAYOUT_TREE);
    int last = tree_root(&s->tree, w->text.sequence[0]);
    for (int i = 1; i < n; i++) last = tree_propose(&s->tree, last, w->text.sequence[i]);
    for (int i = 1; i < depth; i++) last = tree_propose(&s->tree, last, w->target.tree.token[path[i]]);
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    const float *x = session_logits(s, last);
    for (int id = 0; id < w->vocab; id++) {
        int better = 0;
        for (int other = 0; other < w->vocab; other++)
            better += x[other] > x[id] || (x[other] == x[id] && other < id);
        if (better < w->k) out[better] = id;
    }
}

// The nodes of accepted tokens, from the root down, as far as they were emitted.
static void mark_path(const Watch *w, const StepReport *r, bool *marked) {
    int node = 0;
    for (int i = 0; i < r->accepted && i < r->emitted; i++) {
        marked[node] = true;
        node = tree_child(&w->target.tree, node, w->text.sequence[w->text.before + i]);
        assert_int_not_equal(node, TREE_NONE);
    }
    marked[node] = true;
}

// placed: for each place in the tree's shape, its canonical node or NONE. A node with several places comes at
// its last.
static void learn(Watch *w, const StepReport *r, const int *placed) {
    const Tree *t = &w->target.tree;
    bool written[MOST_VOCAB] = {false}, on_path[TREE_MAX_NODES] = {false};
    int order[TREE_MAX_NODES], tokens[TREE_MAX_NODES], count = 0, places = w->rejected ? w->tree.count : 0;
    mark_path(w, r, on_path);
    for (int i = 0; i < t->count; i++) {
        bool later = false;
        for (int p = 0; p < places; p++) later = later || placed[p] == i;
        if (t->canonical[i] == i && (w->rejected || on_path[i]) && !later) order[count++] = i;
    }
    for (int p = 0; p < places; p++) {
        bool again = placed[p] == NONE;
        for (int q = p + 1; q < places; q++) again = again || placed[q] == placed[p];
        if (!again) order[count++] = placed[p];
    }
    memcpy(w->before, w->matrix, sizeof w->before);
    for (int i = 0; i < count; i++) {
        int token = t->token[order[i]], path[CONTEXT], depth = tree_path(t, order[i], path);
        w->twice += written[token];
        written[token] = true;
        tokens[i] = token;
        slow_choices(w, w->text.before, path, depth, w->matrix[token]);
    }
    if (w->fill == WANTED) want_rows(w, tokens, count);
}

// The token to try at a place when the step has `count` nodes.
static int token_of(Watch *w, int parent, int rank, int count) {
    const int *row = w->matrix[w->target.tree.token[parent]];
    if (rank >= w->k) return NONE;
    if (row[0] != NONE) return row[rank];
    return w->fill == WANTED ? last_wanted(w, count) : w->fill == NOTHING ? NONE : 0;
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    int placed[100], count = 1;
    for (int i = 0; i < w->tree.count; i++) {
        const RankNode *n = &w->tree.nodes[i];
        int parent = n->parent < 0 ? 0 : placed[n->parent];
        int token = parent == NONE ? NONE : token_of(w, parent, n->rank, count), same = 1;
        placed[i] = NONE;
        if (token == NONE) continue;
        while (same < count && !(t->merge && t->parent[same] == parent && t->token[same] == token)) same++;
        bool room = w->text.before + n->depth < CONTEXT && count < t->capacity;
        if (same == count && !room) continue;
        placed[i] = same;
        if (same < count) continue;
        count++;
        w->filled += w->matrix[t->token[parent]][0] == NONE;
        assert_true(same < t->count);
        assert_int_equal(t->parent[same], parent);
        if (t->token[same] != token)
            fail_msg("step %d: node %d (depth %d, rank %d) is %d, want %d", r->number, i, n->depth, n->rank,
                     t->token[same], token);
    }
    assert_int_equal(t->count, count);
    int heads = 0; // what verified the step told its choices, too
    for (int i = 0; i < r->pass_count; i++)
        heads += r->passes[i].a == r->passes[i].b ? r->passes[i].count : 0;
    if (heads != 1) fail_msg("step %d ran the head %d times, want 1", r->number, heads);
    w->accepted += r->accepted;
    for (int i = 0; i < w->tree.count; i++)
        if (placed[i] != NONE) placed[i] = t->canonical[placed[i]];
    learn(w, r, placed);
}

// The last step is learnt when the next text begins.
static void check_rows(const Watch *w, const Method *m) {
    int known = 0;
    char want[80];
    Text got = {0};
    for (int i = 0; i < w->vocab; i++) known += w->before[i][0] != NONE;
    snprintf(want, sizeof want, "rows of %d of %d tokens, ", known, w->vocab);
    m->info->state(m->self, &got);
    if (strncmp(text_get(&got), want, strlen(want)) != 0) fail_msg("'%s', want '%s'", text_get(&got), want);
    text_release(&got);
}

static const char *const FILLED[FILLS] = {"fill=wanted", "fill=zero", "fill=nothing", "mode=reference"};

// Learns what the method does from a prompt: all but its last token, which is the root.
static void begin(Watch *w) {
    if (w->fill == REFERENCE) memcpy(w->matrix, w->before, sizeof w->matrix);
    if (!w->warm) forget(w);
    for (int i = 1; i < w->text.length && w->prompt; i++)
        slow_choices(w, i, NULL, 0, w->matrix[w->text.sequence[i - 1]]);
    memcpy(w->before, w->matrix, sizeof w->before);
    if (w->fill != WANTED) return;
    want_rows(w, w->text.sequence, w->text.length);
    for (int i = 0; i < w->text.length; i++) want_token(w, w->text.sequence[i]);
}

static void watch_method(Watch *w, Random *r) {
    NullSetup setup = {
        .vocab = test_between(r, 2, MOST_VOCAB), .context = CONTEXT, .max_nodes = test_between(r, 5, 80)};
    char paths[100 * 12], text[256];
    Method m;
    Error e = {0};
    int k = test_between(r, 1, RANK_TREE_RANKS);
    w->vocab = setup.vocab;
    w->k = k < w->vocab ? k : w->vocab;
    w->rejected = test_between(r, 0, 1);
    w->prompt = test_between(r, 0, 1);
    w->fill = test_between(r, 0, FILLS - 1);
    w->warm = w->rejected && test_between(r, 0, 1); // what the limit cuts off an accepted path isn't seen
    null_session_open(&w->target, &setup);
    setup.max_nodes = 0;
    null_session_open(&w->slow, &setup);
    rank_tree_init(&w->tree);
    rank_tree_grow(&w->tree, test_between(r, 1, 30), test_between(r, 1, 5), test_between(r, 1, 10));
    rank_tree_text(&w->tree, paths);
    for (char *c = paths; *c; c++)
        if (*c == '\n' || *c == ' ') *c = ';';
    snprintf(text, sizeof text, "recycling:k=%d,%s,warm=%s,rejected=%s,prompt=%s,tree=%.160s", k,
             FILLED[w->fill], w->warm ? "on" : "off", w->rejected ? "on" : "off", w->prompt ? "on" : "off",
             paths);
    MethodEnv env = {.target = &w->target, .sampling = {.top_p = 1}};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    forget(w);
    memcpy(w->before, w->matrix, sizeof w->before);
    for (int prompt = 0; prompt < 2; prompt++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        o.prefill_chunk = test_between(r, 0, 5);
        watched_prompt(&w->text, test_between(r, 1, CONTEXT / 2), w->vocab, r);
        begin(w);
        DecodeResult out = watched_decode(&w->text, on_step, &w->target, &m, &o);
        decode_result_release(&out);
    }
    check_rows(w, &m);
    method_close(&m);
    session_release(&w->target);
    session_release(&w->slow);
    rank_tree_release(&w->tree);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(86);
    Watch w = {.accepted = 0};
    for (int round = 0; round < 100; round++) watch_method(&w, &r);
    print_message("%d guesses accepted, %d rows written twice in a step, %d guesses below no row\n",
                  w.accepted, w.twice, w.filled);
    assert_true(w.accepted > 1000 && w.twice > 100 && w.filled > 100);
}

static void on_counted_step(void *state, const StepReport *r) {
    Watch *w = state;
    w->most = r->rows > w->most ? r->rows : w->most;
}

static void published_trees(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int rows;
    } TREES[] = {{"recycling", 81}, {"recycling:tree=samd", 61}, {"recycling:tree=0;1;00", 4}};
    for (size_t i = 0; i < sizeof TREES / sizeof *TREES; i++) {
        Watch w = {.accepted = 0};
        Method m;
        Error e = {0};
        NullSetup setup = {.vocab = 12, .context = CONTEXT};
        MethodEnv env = {.target = &w.target};
        Random r = test_random(87);
        null_session_open(&w.target, &setup);
        if (!method_open(&m, TREES[i].text, &env, &e)) fail_msg("%s", e.text);
        DecodeOptions o = {.max_tokens = TOKENS, .sampling = {.temperature = 3, .top_p = 1}, .merge = true};
        o.clock = still_clock();
        watched_prompt(&w.text, 5, 12, &r);
        DecodeResult out = watched_decode(&w.text, on_counted_step, &w.target, &m, &o);
        assert_int_equal(w.most, TREES[i].rows);
        decode_result_release(&out);
        method_close(&m);
        session_release(&w.target);
    }
}

// In a mix whose switch leaves it out, it learns from the others' steps, the last one later.
static void on_others_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    (void)r;
    for (int token = 0; token < w->vocab; token++)
        if (w->matrix[token][0] != NONE) w->before[token][0] = 0;
    for (int i = 0; i < t->count; i++) w->matrix[t->token[i]][0] = 0;
}

static void learns_at_rest(void **state) {
    (void)state;
    Watch w = {.vocab = MOST_VOCAB};
    Method m;
    Error e = {0};
    NullSetup setup = {.vocab = MOST_VOCAB, .context = CONTEXT};
    MethodEnv env = {.target = &w.target, .sampling = {.top_p = 1}};
    Random r = test_random(88);
    char want[80];
    Text got = {0};
    null_session_open(&w.target, &setup);
    if (!method_open(&m, "mix:suffix+recycling(fill=nothing),switch=match,threshold=0", &env, &e))
        fail_msg("%s", e.text);
    DecodeOptions o = {.max_tokens = TOKENS, .sampling = {.temperature = 3, .top_p = 1}, .merge = true};
    o.clock = still_clock();
    watched_prompt(&w.text, 5, MOST_VOCAB, &r);
    forget(&w);
    memcpy(w.before, w.matrix, sizeof w.before);
    DecodeResult out = watched_decode(&w.text, on_others_step, &w.target, &m, &o);
    int known = 0;
    for (int i = 0; i < w.vocab; i++) known += w.before[i][0] != NONE;
    assert_true(known > 2);
    snprintf(want, sizeof want, "recycling: rows of %d of %d tokens, ", known, MOST_VOCAB);
    m.info->state(m.self, &got);
    if (!strstr(text_get(&got), want)) fail_msg("'%s', want '%s'", text_get(&got), want);
    text_release(&got);
    decode_result_release(&out);
    method_close(&m);
    session_release(&w.target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(published_trees),
        cmocka_unit_test(learns_at_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
