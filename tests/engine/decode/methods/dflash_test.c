// The guesses of every step against those of a second draft, made from the text alone: its context is the
// states that a second target computes again, in one go. So a row of context too many or too few, a block
// that stays in the cache, a map or a bias applied twice would show. Of draws, q is compared; of a tree of
// the best paths, that every guess left out is less likely than those tried.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"

#include "engine/base/memory.h"
#include "engine/null/null.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 60, TOKENS = 30, MOST_VOCAB = 14, MOST_RANK = 3, NONE = -1 };

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Session target, draft, slow_target, slow_draft;
    Captures captures;
    BlockDraft block;
    Sampling sampling; // of the draft
    int vocab, own_vocab, map[MOST_VOCAB];
    bool mapped, best;
    int gamma, total, top;
    int accepted, proposed, full, paced;
} Watch;

// --- the slow draft

static int width_of(const Watch *w) { return w->captures.count * NULL_WIDTH; }

static void slow_context(Watch *w, int n) {
    static float rows[CONTEXT * NULL_WIDTH * NULL_STATES];
    Session *s = &w->slow_target;
    for (int i = 0; i < w->captures.count && n; i++) {
        float own[CONTEXT * NULL_WIDTH];
        session_reset(s);
        assert_true(session_prefill(s, w->text.sequence, n, 0, w->captures.layers[i], own, NULL));
        for (int t = 0; t < n; t++)
            memcpy(rows + t * width_of(w) + i * NULL_WIDTH, own + t * NULL_WIDTH, NULL_WIDTH * sizeof *own);
    }
    session_reset(&w->slow_draft);
    if (n) assert_true(session_prefill_hidden(&w->slow_draft, w->text.sequence, n, rows, NULL));
}

// Runs the block behind the text before the step; false if there's no room.
static bool slow_block(Watch *w) {
    Session *s = &w->slow_draft;
    int n = w->text.before - 1;
    if (n + w->block.rows > CONTEXT || w->block.rows > w->draft.tree.capacity) return false;
    slow_context(w, n);
    session_begin_block(s, w->block.rows, w->text.sequence[n]);
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    return true;
}

// The logits after these guesses.
static void slow_logits(Watch *w, const int *guesses, int count, float *logits) {
    Session *s = &w->slow_draft;
    float state[MOST_RANK] = {0};
    for (int i = 0; i <= count; i++) {
        int row = i + !w->block.from_root;
        Follow f = {.token = i ? guesses[i - 1] : w->text.sequence[w->text.before - 1],
                    .state = state,
                    .logits = logits};
        memcpy(logits, session_logits(s, row), (size_t)w->own_vocab * sizeof *logits);
        assert_true(session_follow(s, row, &f, NULL));
    }
}

static int id_of(const Watch *w, int id) { return w->mapped ? w->map[id] : id; }

// --- steps

static int chain_of(const Tree *t, int node, int *guesses) {
    int path[CONTEXT], n = tree_path(t, node, path);
    for (int i = 1; i < n; i++) guesses[i - 1] = t->token[path[i]];
    return n - 1;
}

static void check_chain(Watch *w, const Tree *t) {
    int guesses[CONTEXT], room = t->limit - 1 - (w->text.before - 1), most = w->gamma;
    if (most > room) most = room;
    if (most > t->capacity - 1) most = t->capacity - 1;
    assert_int_equal(t->count - 1, most);
    for (int node = 1; node < t->count; node++) {
        float logits[MOST_VOCAB], p[MOST_VOCAB], spread[MOST_VOCAB] = {0};
        int n = chain_of(t, node, guesses), best = 0, q = t->proposals[t->first_proposal[t->parent[node]]].q;
        assert_int_equal(t->parent[node], node - 1);
        slow_logits(w, guesses, n - 1, logits);
        for (int v = 1; v < w->own_vocab; v++)
            if (logits[v] > logits[best]) best = v;
        if (sampling_is_greedy(&w->sampling)) {
            assert_true(q == ONE_HOT);
            assert_int_equal(t->token[node], id_of(w, best));
            continue;
        }
        Sampler sampler;
        sampler_init(&sampler, &w->sampling, w->own_vocab);
        sampler_distribution(&sampler, logits, p);
        sampler_release(&sampler);
        for (int v = 0; v < w->own_vocab; v++) spread[id_of(w, v)] = p[v];
        assert_memory_equal(tree_q(t, q), spread, (size_t)w->vocab * sizeof *p);
        assert_true(spread[t->token[node]] > 0);
    }
}

// Scores of the guesses below a node; those beyond the `top` best count as none.
static void children(Watch *w, const Tree *t, int node, double *score) {
    int guesses[CONTEXT], n = chain_of(t, node, guesses);
    float logits[MOST_VOCAB];
    double sum = 0, above = 0;
    for (int v = 0; v < w->vocab; v++) score[v] = -INFINITY;
    if (n == w->gamma) return;
    for (int i = 0, at = 0; i < n; i++) { // of the path
        double own[MOST_VOCAB];
        children(w, t, at, own);
        above = own[guesses[i]];
        at = tree_child(t, at, guesses[i]);
    }
    slow_logits(w, guesses, n, logits);
    for (int v = 0; v < w->own_vocab; v++) sum += exp((double)logits[v]);
    for (int v = 0; v < w->own_vocab; v++) {
        int better = 0;
        for (int u = 0; u < w->own_vocab; u++)
            better += logits[u] > logits[v] || (!(logits[u] < logits[v]) && u < v);
        if (better < w->top) score[id_of(w, v)] = above + (double)logits[v] - log(sum);
    }
}

static void check_tree(Watch *w, const Tree *t) {
    double least = 0, most = -INFINITY;
    bool edge = w->text.before - 1 + w->gamma >= t->limit || t->count == t->capacity;
    for (int node = 0; node < t->count; node++) {
        double score[MOST_VOCAB];
        children(w, t, node, score);
        for (int v = 0; v < w->vocab; v++) {
            bool there = tree_child(t, node, v) != TREE_NONE;
            if (there) assert_true(isfinite(score[v]));
            if (there && score[v] < least) least = score[v];
            if (!there && score[v] > most) most = score[v];
        }
    }
    if (edge) return; // guesses without room are left out
    assert_true(t->count == w->total || (t->count < w->total && isinf(most)));
    if (most > least + 1e-4) fail_msg("a guess of %g is left out, one of %g isn't", most, least);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    assert_int_equal(w->draft.cache.length, w->text.before - 1); // neither more nor less
    w->accepted += r->accepted;
    w->full += r->accepted == w->gamma;
    w->proposed += t->count - 1;
    if (!slow_block(w)) assert_int_equal(t->count, 1);
    else if (w->best) check_tree(w, t);
    else check_chain(w, t);
}

// --- random settings

static void open_draft(Session *s, const Watch *w, int max_nodes) {
    Model model = {.shape = {.input = INPUT_BLOCK,
                             .layers = NULL_LAYERS,
                             .width = NULL_WIDTH,
                             .vocab = w->own_vocab,
                             .real_vocab = w->own_vocab,
                             .tokens = w->vocab,
                             .context = CONTEXT,
                             .mask_token = w->vocab - 1,
                             .states = NULL_STATES,
                             .block = w->block}};
    BackendOptions o = {.max_nodes = max_nodes};
    void *self;
    assert_true(null_open(&model, &o, &self, NULL));
    session_init(s, &null_backend, self, &model.shape, &o);
}

static void draw_map(Watch *w, Random *r) {
    bool taken[MOST_VOCAB] = {false};
    for (int i = 0; i < w->own_vocab; i++) {
        do w->map[i] = test_between(r, 0, w->vocab - 1);
        while (taken[w->map[i]]);
        taken[w->map[i]] = true;
    }
}

static void draw_setting(Watch *w, Random *r, char *text, size_t size) {
    bool greedy = w->best || test_between(r, 0, 1);
    int asked = test_between(r, 0, 6), guesses = block_guesses(&w->block);
    w->gamma = asked && asked < guesses ? asked : guesses;
    w->total = test_between(r, 2, 12), w->top = test_between(r, 1, 4);
    w->sampling = (Sampling){greedy ? 0 : 0.7, greedy ? 0 : test_between(r, 0, 4), 1};
    int n = snprintf(text, size, "dflash:gamma=%d,draft_temperature=%g,draft_top_k=%d,draft_top_p=1", asked,
                     w->sampling.temperature, w->sampling.top_k);
    if (w->best) snprintf(text + n, size - (size_t)n, ",tree=best,total=%d,top=%d", w->total, w->top);
}

static void watch_method(Watch *w, Random *r) {
    char text[200];
    Method m;
    Error e = {0};
    w->vocab = test_between(r, 3, MOST_VOCAB);
    w->mapped = test_between(r, 0, 1);
    w->own_vocab = w->mapped ? test_between(r, 2, w->vocab) : w->vocab;
    w->captures = (Captures){NULL_STATES, {test_between(r, 1, 2), test_between(r, 1, 2)}};
    w->block = (BlockDraft){.rows = test_between(r, 2, 8),
                            .from_root = test_between(r, 0, 1),
                            .markov = (Markov)test_between(r, 0, 3)};
    if (w->block.markov) w->block.rank = MOST_RANK;
    if (test_between(r, 0, 1)) w->block.confidence = CONFIDENCE_ROW;
    draw_map(w, r);
    null_session_open(
        &w->target, &(NullSetup){.vocab = w->vocab, .context = CONTEXT, .max_nodes = test_between(r, 5, 60)});
    null_session_open(&w->slow_target, &(NullSetup){.vocab = w->vocab, .context = CONTEXT});
    open_draft(&w->draft, w, test_between(r, 0, 4) ? 8 : test_between(r, 1, 8)); // a few lack the room
    open_draft(&w->slow_draft, w, 0);
    w->best = test_between(r, 0, 2) == 0;
    draw_setting(w, r, text, sizeof text);
    MethodEnv env = {.target = &w->target,
                     .adapters = {{&w->draft, 1, NULL_LAYERS, &w->captures, w->mapped ? w->map : NULL}},
                     .sampling = {.top_p = 1}};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    for (int prompt = 0; prompt < 2; prompt++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        o.prefill_chunk = test_between(r, 0, 5);
        watched_prompt(&w->text, test_between(r, 1, test_between(r, 0, 4) ? 8 : CONTEXT), w->vocab, r);
        DecodeResult out = watched_decode(&w->text, on_step, &w->target, &m, &o);
        decode_result_release(&out);
    }
    method_close(&m);
    session_release(&w->target);
    session_release(&w->draft);
    session_release(&w->slow_target);
    session_release(&w->slow_draft);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(1153);
    int accepted = 0, proposed = 0, full = 0;
    for (int round = 0; round < 200; round++) {
        Watch w = {.accepted = 0};
        watch_method(&w, &r);
        accepted += w.accepted;
        proposed += w.proposed;
        full += w.full;
    }
    print_message("%d of %d guesses accepted, %d steps in full\n", accepted, proposed, full);
    assert_true(accepted > 1000 && full > 100);
}

// --- the pace

// The head's confidence ends a chain, and the context is complete also where no guess was made.
static void see_pace(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    (void)r;
    assert_int_equal(w->draft.cache.length, w->text.before - 1);
    w->paced += t->count == 1;
    w->proposed += t->count - 1;
    if (!slow_block(w) || w->best || t->count == 1) return;
    for (int i = 1; i < t->count; i++) {
        Follow f = {.token = t->token[i - 1]};
        assert_true(session_follow(&w->slow_draft, i - 1, &f, NULL));
        bool last = i + 1 == t->count || t->limit - 1 == tree_position(t, i);
        if (i < w->gamma) assert_int_equal(f.confidence <= 0.5, last);
    }
}

static void pace(void **state) {
    (void)state;
    Random r = test_random(1154);
    Method m;
    for (int learned = 0; learned < 2; learned++) {
        Watch w = {
            .vocab = 9, .own_vocab = 9, .captures = {NULL_STATES, {1, 2}}, .gamma = 7, .best = learned};
        w.block = (BlockDraft){.rows = 7, .from_root = true, .confidence = CONFIDENCE_ROW};
        null_session_open(&w.target, &(NullSetup){.vocab = 9, .context = CONTEXT});
        null_session_open(&w.slow_target, &(NullSetup){.vocab = 9, .context = CONTEXT});
        open_draft(&w.draft, &w, 8);
        open_draft(&w.slow_draft, &w, 0);
        MethodEnv env = {.target = &w.target,
                         .adapters = {{&w.draft, 1, NULL_LAYERS, &w.captures, NULL}},
                         .sampling = {.top_p = 1}};
        const char *text =
            learned ? "dflash:adaptive=learned,cost=5" : "dflash:adaptive=confidence,confidence=0.5";
        assert_true(method_open(&m, text, &env, NULL));
        for (int prompt = 0; prompt < 10; prompt++) {
            DecodeOptions o = watched_options(TOKENS, 1, 2, &r);
            watched_prompt(&w.text, test_between(&r, 1, 20), 9, &r);
            DecodeResult out = watched_decode(&w.text, see_pace, &w.target, &m, &o);
            decode_result_release(&out);
        }
        print_message("%s: %d guesses, %d steps without\n", text, w.proposed, w.paced);
        assert_true(w.proposed > 0 && (!learned || w.paced > 20));
        method_close(&m);
        session_release(&w.target);
        session_release(&w.draft);
        session_release(&w.slow_target);
        session_release(&w.slow_draft);
    }
}

// --- refusals

static void refuses(void **state) {
    (void)state;
    Watch w = {.vocab = 9, .own_vocab = 9, .captures = {NULL_STATES, {1, 2}}};
    Backend without = null_backend;
    Method m;
    Error e = {0};
    w.block = (BlockDraft){.rows = 4, .from_root = true, .markov = MARKOV_VANILLA, .rank = 2};
    null_session_open(&w.target, &(NullSetup){.vocab = 9, .context = CONTEXT});
    open_draft(&w.draft, &w, 8);
    MethodEnv env = {.target = &w.target, .sampling = {.top_p = 1}};
    assert_false(method_open(&m, "dflash", &env, &e));
    assert_string_equal(
        e.text, "method 'dflash': a draft of DFlash or DSpark is needed: give one with --dflash DIR, in "
                "a config dflash: DIR");
    env.adapters[0] = (AdapterSet){&w.draft, 1, NULL_LAYERS, &w.captures, NULL, NULL, false};
    assert_false(method_open(&m, "dflash:tree=best,adaptive=learned", &env, &e));
    assert_non_null(strstr(e.text, "needs tree=chain"));
    without.follow = NULL;
    w.draft.backend = &without;
    assert_false(method_open(&m, "dflash", &env, &e));
    assert_non_null(strstr(e.text, "cannot run the Markov and confidence heads of DSpark"));
    w.draft.backend = &null_backend;
    session_release(&w.target);
    session_release(&w.draft);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting), cmocka_unit_test(pace),
                                       cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
