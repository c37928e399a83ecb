// Each step's chain against a slow model that runs the draft from the first token on; on random streams of
// the null backend, where a draft with a shorter window agrees now and then.
#include "tests/support/draft_watch.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/scratch.h"

#include "engine/decode/rank_tree.h"

#include <stdio.h>
#include <string.h>

static int draft_says(DraftWatch *w, const int *tokens, int n, float *logits) {
    return slow_next(&w->slow, tokens, n, logits);
}

static void open_sessions(DraftWatch *w, Random *r) {
    NullSetup target = {.vocab = WATCH_VOCAB + 1, .masked = 1, .context = WATCH_CONTEXT, .max_nodes = 32};
    NullSetup draft = {.vocab = WATCH_VOCAB, .context = WATCH_CONTEXT, .max_nodes = 16};
    if (test_between(r, 0, 1))
        draft = (NullSetup){.vocab = WATCH_VOCAB + 2, .masked = 2, .context = WATCH_CONTEXT};
    draft.window = test_between(r, 0, 3); // 0 or 3: agrees with the target
    if (test_between(r, 0, 2) == 0) w->mask = draft.mask = test_between(r, 1, WATCH_VOCAB - 1);
    if (w->mask) draft.max_nodes = 0; // it runs all tokens of the last step again, and masks
    if (test_between(r, 0, 3) == 0) draft.context = test_between(r, 1, WATCH_CONTEXT);
    null_session_open(&w->target, &target);
    null_session_open(&w->second, &draft);
    draft.context = WATCH_CONTEXT + WATCH_GAMMA;
    draft.max_nodes = 0;
    null_session_open(&w->slow, &draft);
}

static void open_method(DraftWatch *w, Method *m, Random *r) {
    char text[200];
    Error e = {0};
    open_sessions(w, r);
    MethodEnv env = {.target = &w->target, .draft = &w->second, .sampling = {.top_p = 1}};
    int adaptive = test_between(r, PACE_OFF, PACE_LEARNED);
    double confidence = (double)test_between(r, 1, 100) / 100, cost = (double)test_between(r, 0, 9) / 10;
    w->says = draft_says;
    draft_watch_draw(w, r);
    w->heuristic = adaptive == PACE_HEURISTIC;
    w->confidence = adaptive == PACE_CONFIDENCE ? confidence : 0;
    w->learned = adaptive == PACE_LEARNED;
    pace_init(&w->pace, &(PaceParams){.adaptive = adaptive, .confidence = confidence, .cost = cost}, w->gamma,
              0, w->gamma);
    if (test_between(r, 0, 1)) w->sampling.top_p = 0.8;
    snprintf(
        text, sizeof text,
        "speculative:gamma=%d,adaptive=%s,confidence=%.2f,cost=%g,draft_temperature=%g,draft_top_k=%d,draft_top_p=%g"
        "%s",
        w->gamma, pace_kinds[adaptive], confidence, cost, w->sampling.temperature, w->sampling.top_k,
        w->sampling.top_p,
        test_between(r, 0, 2) ? ""
        : w->mask             ? ",parallel=on"
                              : ",parallel=off");
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    draft_watch_rounds(test_random(80), open_method, 5000);
}

// A draft that agrees with the target makes each step gamma + 1 tokens long, whatever the window.
static void perfect_draft(void **state) {
    (void)state;
    for (int window = 0; window < 20; window += 7) {
        NullSetup setup = {.vocab = 20, .context = 200, .window = window, .max_nodes = 32};
        Session target, draft;
        Method m;
        Error e = {0};
        int prompt[] = {1, 2, 3};
        null_session_open(&target, &setup);
        null_session_open(&draft, &setup);
        MethodEnv env = {.target = &target, .draft = &draft, .sampling = {.top_p = 1}};
        DecodeOptions o = {.max_tokens = 180, .merge = true, .clock = still_clock()};
        DecodeResult out;
        assert_true(method_open(&m, "speculative:gamma=5", &env, &e));
        assert_true(decode(&target, &m, prompt, 3, &o, &out, &e));
        assert_int_equal(out.steps, 30);
        decode_result_release(&out);
        method_close(&m);
        session_release(&target);
        session_release(&draft);
    }
}

// By a schedule that stops drafting in the middle of a text: a perfect draft is right again in the first step
// that asks it, so it has read what was written meanwhile.
typedef struct Scheduled {
    Session target, draft;
    int steps[3]; // at each of the contexts
} Scheduled;

static void see_scheduled(void *state, const StepReport *r) {
    Scheduled *x = state;
    int part = r->context < 40 ? 0 : r->context < 80 ? 1 : 2, want = (const int[]){5, 0, 3}[part];
    if (r->candidates != want || r->accepted != want)
        fail_msg("context %d: %d guesses, %d right, want %d", r->context, r->candidates, r->accepted, want);
    x->steps[part]++;
}

static void by_schedule(void **state) {
    static const char FILE[] =
        "{\"num_speculative_tokens_per_batch_size\": [[1, 1, 5], [2, 8, 1]], \"by_context\": ["
        "{\"context\": 40, \"num_speculative_tokens_per_batch_size\": [[1, 8, 0]]}, "
        "{\"context\": 80, \"num_speculative_tokens_per_batch_size\": [[1, 8, 3]]}]}";
    static const char *const WAYS[] = {"", ",adaptive=heuristic", ",adaptive=learned,cost=0",
                                       ",parallel=off"};
    char text[600], file[400];
    int prompt[] = {1, 2, 3};
    scratch_write(*state, "k.json", FILE, sizeof FILE - 1);
    snprintf(file, sizeof file, "%s", folder_path(*state, "k.json"));
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        NullSetup setup = {.vocab = 20, .context = 200, .max_nodes = 32};
        Scheduled x = {.steps = {0}};
        Method m;
        Error e = {0};
        null_session_open(&x.target, &setup);
        null_session_open(&x.draft, &setup);
        MethodEnv env = {.target = &x.target, .draft = &x.draft, .sampling = {.top_p = 1}};
        DecodeOptions o = {
            .max_tokens = 118, .merge = true, .clock = still_clock(), .step = see_scheduled, .state = &x};
        DecodeResult out;
        snprintf(text, sizeof text, "speculative:gamma=9,schedule=%s%s", file, WAYS[i]);
        if (!method_open(&m, text, &env, &e)) fail_msg("%s", e.text);
        assert_true(decode(&x.target, &m, prompt, 3, &o, &out, &e));
        assert_true(x.steps[0] == 7 && x.steps[1] == 36 && x.steps[2] == 10);
        decode_result_release(&out);
        method_close(&m);
        assert_false(method_open(&m, "speculative:schedule=/no/such.json", &env, &e));
        assert_non_null(strstr(e.text, "/no/such.json"));
        snprintf(text, sizeof text, "speculative:tree=2x2,schedule=%s", file);
        assert_false(method_open(&m, text, &env, &e));
        assert_non_null(strstr(e.text, "a schedule needs tree=chain"));
        session_release(&x.target);
        session_release(&x.draft);
    }
}

// A draft with a mask token may still guess one by one; one without can't guess in parallel.
static void parallel(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int mask;
        const char *words; // NULL: it opens, with so many forwards of the draft
        double forwards;
    } ROWS[] = {{"speculative", 3, NULL, 1},
                {"speculative", 0, NULL, 5},
                {"speculative:parallel=on,gamma=7", 3, NULL, 1},
                {"speculative:parallel=off", 3, NULL, 5},
                {"speculative:tree=2x2", 3, NULL, 2},
                {"speculative:parallel=on", 0, "'pard_token'", 0},
                {"speculative:parallel=on,tree=2x2", 3, "needs tree=chain", 0}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        NullSetup setup = {.vocab = 20, .context = 200, .max_nodes = 32}, own = setup;
        Session target, draft;
        Method m;
        StepWork work;
        Error e = {0};
        own.mask = ROWS[i].mask;
        null_session_open(&target, &setup);
        null_session_open(&draft, &own);
        MethodEnv env = {.target = &target, .draft = &draft, .sampling = {.top_p = 1}};
        bool ok = method_open(&m, ROWS[i].text, &env, &e);
        if (ok != !ROWS[i].words || (!ok && !strstr(e.text, ROWS[i].words)))
            fail_msg("'%s': %s", ROWS[i].text, ok ? "opens" : e.text);
        if (ok) {
            m.info->work(m.self, &work);
            assert_true(work.drafts[0].forwards == ROWS[i].forwards);
            method_close(&m);
        }
        session_release(&target);
        session_release(&draft);
    }
}

// --- trees

enum { TREE_NODES = 40, MOST_CHILDREN = 10 };

typedef struct TreeWatch {
    Watched text;
    Session target, second, slow;
    RankTree shape;
    Sampling sampling;    // of the draft; temperature 0: greedy
    int node[TREE_NODES]; // of the shape's nodes in the target's tree, or TREE_NONE
    int proposed, accepted, whole, short_of, exhausted;
} TreeWatch;

static int path_of(const TreeWatch *w, int node, int *out) {
    const Tree *t = &w->target.tree;
    int path[TREE_NODES + 1], n = tree_path(t, node, path);
    memcpy(out, w->text.sequence, (size_t)w->text.before * sizeof *out);
    for (int i = 1; i < n; i++) out[w->text.before + i - 1] = t->token[path[i]];
    return w->text.before + n - 1;
}

// The slow model's r-th best token: of equal logits the lower id.
static int ranked(const float *logits, int vocab, int rank) {
    for (int v = 0; v < vocab; v++) {
        int before = 0;
        for (int u = 0; u < vocab; u++) before += logits[u] > logits[v] || (logits[u] == logits[v] && u < v);
        if (before == rank) return v;
    }
    return TREE_NONE;
}

static void check_greedy(TreeWatch *w, int parent, int at, const float *logits) {
    const Tree *t = &w->target.tree;
    for (int i = 0; i < w->shape.count; i++) {
        if (w->shape.nodes[i].parent != parent) continue;
        int want = ranked(logits, w->second.shape.real_vocab, w->shape.nodes[i].rank);
        w->node[i] = want == TREE_NONE ? TREE_NONE : tree_child(t, at, want);
    }
}

// The proposals of a node are its children in order, drawn from the draft's own distribution, each once.
static void check_drawn(TreeWatch *w, int parent, int at, const float *logits) {
    const Tree *t = &w->target.tree;
    float p[16];
    int vocab = w->second.shape.vocab < t->vocab ? w->second.shape.vocab : t->vocab, support = 0, count = 0;
    Sampler sampler;
    sampler_init(&sampler, &w->sampling, vocab);
    sampler_distribution(&sampler, logits, p);
    sampler_release(&sampler);
    for (int v = 0; v < vocab; v++) support += p[v] > 0;
    int next = t->first_proposal[at];
    for (int i = 0; i < w->shape.count; i++) {
        if (w->shape.nodes[i].parent != parent) continue;
        count++;
        if (next == TREE_NONE) continue;
        const Proposal *proposal = &t->proposals[next];
        assert_true(proposal->without_replacement && proposal->q != ONE_HOT);
        for (int v = 0; v < t->vocab; v++)
            assert_true(tree_q(t, proposal->q)[v] == (v < vocab ? p[v] : 0.0f));
        assert_true(tree_q(t, proposal->q)[t->token[proposal->child]] > 0);
        for (int k = t->first_proposal[at]; k != next; k = t->proposals[k].next)
            assert_true(t->proposals[k].q == proposal->q && t->proposals[k].child != proposal->child);
        w->node[i] = proposal->child;
        next = proposal->next;
    }
    w->exhausted += count > support;
    assert_int_equal(next, TREE_NONE);
}

// Whether the draft's cache holds all of the accepted path that it has run: the guesses that have children.
static void check_cache(const TreeWatch *w, int accepted) {
    int run = 0, at = -1;
    for (bool on = true; on && run < accepted;) {
        on = false;
        for (int i = 0; i < w->shape.count && !on; i++)
            if (w->shape.nodes[i].parent == at && w->node[i] != TREE_NONE &&
                w->target.tree.token[w->node[i]] == w->text.sequence[w->text.before + run])
                at = i, on = true;
        bool inner = false;
        for (int i = 0; i < w->shape.count; i++) inner = inner || w->shape.nodes[i].parent == at;
        if (!on || !inner) break;
        run++;
    }
    int want = w->text.before + run < w->text.length - 1 ? w->text.before + run : w->text.length - 1;
    assert_int_equal(w->second.cache.length, want);
}

static void on_tree_step(void *state, const StepReport *r) {
    TreeWatch *w = state;
    const Tree *t = &w->target.tree;
    int sequence[WATCH_CONTEXT + TREE_NODES], there = 0, passes = 0;
    float logits[16];
    for (int i = 0; i < w->shape.count; i++) w->node[i] = TREE_NONE;
    for (int parent = -1; parent < w->shape.count; parent++) {
        int at = parent < 0 ? 0 : w->node[parent];
        if (at == TREE_NONE || t->first_proposal[at] == TREE_NONE) continue;
        int n = path_of(w, at, sequence);
        slow_next(&w->slow, sequence, n, logits);
        (w->sampling.temperature == 0 ? check_greedy : check_drawn)(w, parent, at, logits);
    }
    for (int i = 0; i < w->shape.count; i++) there += w->node[i] != TREE_NONE;
    assert_int_equal(there, t->count - 1);
    for (int i = 0; i < r->pass_count; i++)
        if (r->passes[i].model == PASS_DRAFT && r->passes[i].a == 0) passes += r->passes[i].count;
    assert_in_range(passes, 0, rank_tree_levels(&w->shape));
    bool room = w->text.before + rank_tree_levels(&w->shape) < WATCH_CONTEXT &&
                w->second.context >= WATCH_CONTEXT && w->exhausted == 0 &&
                rank_tree_width(&w->shape) <= WATCH_VOCAB;
    if (room) assert_int_equal(there, w->shape.count);
    if (w->second.context >= WATCH_CONTEXT) check_cache(w, r->accepted);
    w->whole += there == w->shape.count;
    w->short_of += there < w->shape.count;
    w->proposed += there;
    w->accepted += r->accepted;
}

// Paths of a random shape: any parent before, the next rank below it or one beyond.
static void random_tree(Random *r, RankTree *t, char *text) {
    int count = test_between(r, 1, 24);
    *text = 0;
    for (int i = 0; i < count; i++) {
        int parent = test_between(r, -1, i - 1), rank = test_between(r, 0, 3), at = i;
        char path[RANK_TREE_DEPTH + 2] = "";
        t->nodes[i] = (RankNode){parent, parent < 0 ? 0 : t->nodes[parent].depth + 1, rank};
        t->count = i + 1;
        for (int k = 0; k < i; k++)
            if (t->nodes[k].parent == parent && t->nodes[k].rank == rank) at = -1;
        if (at < 0 || t->nodes[i].depth >= 6) {
            t->count = i;
            break;
        }
        for (int n = t->nodes[i].depth; n >= 0; n--, at = t->nodes[at].parent)
            path[n] = (char)('0' + t->nodes[at].rank);
        snprintf(text + strlen(text), RANK_TREE_DEPTH + 4, "%s%s", i ? ";" : "", path);
    }
}

static void open_tree_world(TreeWatch *w, Method *m, Random *r) {
    static const double temperatures[] = {0, 0, 0.7, 3};
    NullSetup target = {.vocab = WATCH_VOCAB + 1, .masked = 1, .context = WATCH_CONTEXT, .max_nodes = 64};
    NullSetup draft = {.vocab = WATCH_VOCAB, .context = WATCH_CONTEXT + 8, .max_nodes = 40};
    char paths[400], text[600];
    Error e = {0};
    if (test_between(r, 0, 1)) draft.vocab += 2, draft.masked = 2;
    draft.window = test_between(r, 0, 3);
    if (test_between(r, 0, 3) == 0) draft.context = test_between(r, 1, WATCH_CONTEXT - 1);
    null_session_open(&w->target, &target);
    null_session_open(&w->second, &draft);
    draft.context = WATCH_CONTEXT + 2 * TREE_NODES;
    draft.max_nodes = 0;
    null_session_open(&w->slow, &draft);
    rank_tree_init(&w->shape);
    random_tree(r, &w->shape, paths);
    w->sampling = (Sampling){temperatures[test_between(r, 0, 3)], test_between(r, 0, 3), 1};
    snprintf(text, sizeof text, "speculative:tree=%s,draft_temperature=%g,draft_top_k=%d,draft_top_p=1",
             paths, w->sampling.temperature, w->sampling.top_k);
    MethodEnv env = {.target = &w->target, .draft = &w->second, .sampling = {.top_p = 1}};
    if (!method_open(m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_tree(void **state) {
    (void)state;
    Random r = test_random(84);
    int accepted = 0, proposed = 0, whole = 0, short_of = 0, exhausted = 0;
    for (int round = 0; round < 150; round++) {
        TreeWatch w = {.accepted = 0};
        Method m;
        open_tree_world(&w, &m, &r);
        for (int prompt = 0; prompt < 2; prompt++) {
            DecodeOptions o = watched_options(WATCH_TOKENS, 1, 2, &r);
            watched_prompt(&w.text, test_between(&r, 1, 20), WATCH_VOCAB, &r);
            DecodeResult out = watched_decode(&w.text, on_tree_step, &w.target, &m, &o);
            decode_result_release(&out);
        }
        accepted += w.accepted, proposed += w.proposed;
        whole += w.whole, short_of += w.short_of, exhausted += w.exhausted;
        method_close(&m);
        rank_tree_release(&w.shape);
        session_release(&w.target);
        session_release(&w.second);
        session_release(&w.slow);
    }
    print_message("%d of %d guesses accepted; %d trees whole, %d not, %d distributions exhausted\n", accepted,
                  proposed, whole, short_of, exhausted);
    assert_true(accepted > 2000 && whole > 2000 && short_of > 500 && exhausted > 100);
}

// A tree without branches is the chain: the same tokens in the same steps, greedy or drawn.
static void thin_tree_is_a_chain(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"speculative:gamma=4", "speculative:tree=1x1x1x1"};
    NullSetup setup = {.vocab = 6, .context = 200, .max_nodes = 32};
    int prompt[] = {1, 2, 3};
    Session target, draft;
    null_session_open(&target, &setup);
    setup.window = 3;
    null_session_open(&draft, &setup);
    for (int seed = 0; seed < 20; seed++) {
        DecodeResult out[2];
        for (int i = 0; i < 2; i++) {
            Method m;
            Sampling sampling = {seed % 2, 0, 1};
            MethodEnv env = {.target = &target, .draft = &draft, .sampling = sampling};
            DecodeOptions o = {.max_tokens = 180, .merge = true, .clock = still_clock()};
            o.sampling = sampling;
            o.seed = (uint64_t)seed;
            assert_true(method_open(&m, TEXTS[i], &env, NULL));
            assert_true(decode(&target, &m, prompt, 3, &o, &out[i], NULL));
            method_close(&m);
        }
        assert_int_equal(out[0].steps, out[1].steps);
        assert_memory_equal(out[0].ids, out[1].ids, 180 * sizeof(int));
        for (int i = 0; i < 2; i++) decode_result_release(&out[i]);
    }
    session_release(&target);
    session_release(&draft);
}

static void refuses(void **state) {
    (void)state;
    Session target, draft;
    Method m;
    Error e = {0};
    null_session_open(&target, &(NullSetup){.vocab = 20, .context = 50, .masked = 3});
    null_session_open(&draft, &(NullSetup){.vocab = 20, .context = 50});
    MethodEnv env = {.target = &target};
    assert_false(method_open(&m, "speculative", &env, &e));
    assert_string_equal(
        e.text,
        "method 'speculative': a draft model is needed: give one with --draft DIR, in a config draft: DIR");
    env.draft = &draft;
    assert_false(method_open(&m, "speculative", &env, &e));
    assert_string_equal(e.text,
                        "method 'speculative': the draft model proposes ids up to 19, the target has 17");
    session_release(&draft);
    null_session_open(&draft, &(NullSetup){.vocab = 17, .context = 50});
    assert_false(method_open(&m, "speculative:tree=2x2,adaptive=heuristic", &env, &e));
    assert_string_equal(e.text, "method 'speculative': adaptive=heuristic needs tree=chain");
    assert_false(method_open(&m, "speculative:tree=2x20", &env, &e));
    assert_string_equal(e.text,
                        "method 'speculative': the tree '2x20' has 20 choices at level 2, must be 1 to 10");
    session_release(&target);
    session_release(&draft);
}

// Prompts and outputs hold ids that the draft lacks, and the draft has rows that the target lacks: the output
// is the target's own.
static void other_vocabularies(void **state) {
    (void)state;
    static const struct {
        int vocab, masked; // the target's vocabulary is 24, 2 of it masked
    } drafts[] = {{20, 0}, {5, 1}, {22, 0}, {40, 18}, {40, 30}};
    static const char *const methods[] = {"speculative", "speculative:tree=3x2,draft_temperature=0",
                                          "ouroboros:gamma=6,beta=3"};
    int prompt[] = {1, 21, 23, 4, 19};
    for (int i = 0; i < 15; i++) {
        Session target, draft;
        Method m;
        Error e = {0};
        DecodeResult out;
        null_session_open(&target, &(NullSetup){.vocab = 24, .context = 50, .masked = 2});
        null_session_open(
            &draft,
            &(NullSetup){.vocab = drafts[i / 3].vocab, .context = 50, .masked = drafts[i / 3].masked});
        MethodEnv env = {.target = &target, .draft = &draft, .sampling = {.top_p = 1}};
        DecodeOptions o = {.max_tokens = 40, .merge = true, .sampling = {.top_p = 1}, .clock = still_clock()};
        if (!method_open(&m, methods[i % 3], &env, &e) || !decode(&target, &m, prompt, 5, &o, &out, &e))
            fail_msg("%s", e.text);
        slow_check_greedy(&target, prompt, 5, &o, &out);
        decode_result_release(&out);
        method_close(&m);
        session_release(&target);
        session_release(&draft);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(perfect_draft),
        cmocka_unit_test(parallel),
        cmocka_unit_test_setup_teardown(by_schedule, folder_setup, folder_teardown),
        cmocka_unit_test(every_tree),
        cmocka_unit_test(thin_tree_is_a_chain),
        cmocka_unit_test(refuses),
        cmocka_unit_test(other_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
