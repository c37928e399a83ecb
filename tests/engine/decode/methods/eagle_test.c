// The tree of every step against one that is grown from the text alone: each guess's chances are those of its
// path, run by itself in a second draft over states that a second target computes again. The drafts' logits
// are coarse in some rounds, so that many guesses are equally likely. Drafts that guess in parallel have masks in
// place of the path. The lengths of some chains follow a pace of the test's own, which sees the same steps.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/rank_tree_text.h"
#include "tests/support/watched.h"

#include "engine/base/memory.h"
#include "engine/decode/pace.h"
#include "engine/null/null.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 60, TOKENS = 30, MOST_VOCAB = 14, MOST_POOL = 4 + 4 * 16, NONE = -1 };

// --- a draft with few different logits

static float coarse_row(float *logits, int vocab, int *best) {
    double sum = 0;
    *best = 0;
    for (int v = 0; v < vocab; v++) {
        logits[v] = floorf(logits[v] / 3);
        if (logits[v] > logits[*best]) *best = v;
    }
    for (int v = 0; v < vocab; v++) sum += exp((double)logits[v] - (double)logits[*best]);
    return (float)log(sum);
}

// The k best of a row, lowest id first among equals.
static void best_of(const float *logits, int vocab, int k, int *ids, float *best) {
    for (int id = 0; id < vocab; id++) {
        int better = 0;
        for (int other = 0; other < vocab; other++)
            better += logits[other] > logits[id] || (logits[other] == logits[id] && other < id);
        if (better < k) ids[better] = id, best[better] = logits[id];
    }
}

static int coarse_vocab; // all drafts of a round have one

static bool coarse_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    for (int i = 0; i < count; i++) {
        float row[MOST_VOCAB];
        int best;
        HeadOut one = {.logits = row};
        if (!null_backend.head(self, nodes + i, 1, HEAD_LOGITS, &one, e)) return false;
        float sum = coarse_row(row, coarse_vocab, &best);
        if (want & HEAD_ARGMAX) out->argmax[i] = best;
        if (want & HEAD_LOGITS)
            memcpy(out->logits + i * coarse_vocab, row, (size_t)coarse_vocab * sizeof *row);
        if (!(want & HEAD_TOP)) continue;
        best_of(row, coarse_vocab, out->top, out->top_id + i * out->top, out->top_logit + i * out->top);
        if (out->log_sum) out->log_sum[i] = sum;
    }
    return true;
}

// --- the slow model

typedef struct {
    int parent, token, depth;
    float score;
    bool chosen;
} Guess;

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Session target, draft, slow_target, slow_draft;
    Captures captures; // none: the final normed states
    bool third, mtp, recycles;
    int vocab, own_vocab, map[MOST_VOCAB]; // of target and draft; draft id to the target's
    bool mapped, dynamic;
    int mask; // of a parallel draft; else 0
    float mask_states[NULL_WIDTH * SHAPE_MAX_STATES];
    int total, depth, k;
    Pace pace; // adaptive or PACE_OFF
    RankTree fixed;
    Guess pool[RANK_TREE_MOST];
    int count;
    int accepted, tried, ties, most_depth, rested; // rested: steps of length 0
} Watch;

static int width_of(const Watch *w) { return (w->captures.count ? w->captures.count : 1) * NULL_WIDTH; }

// The states of tokens [0, n) of the text, a layer at a time.
static void slow_states(Watch *w, int n, float *rows) {
    Session *s = &w->slow_target;
    for (int i = 0; i < (w->captures.count ? w->captures.count : 1); i++) {
        float own[CONTEXT * NULL_WIDTH];
        session_reset(s);
        Captures one = {1, {w->captures.layers[i]}};
        bool kept = w->captures.count;
        assert_true(
            session_capture(s, kept ? &one : NULL, NULL) &&
            session_prefill(s, w->text.sequence, n, 0, kept ? LAYERS_CAPTURED : NULL_LAYERS, own, NULL));
        for (int t = 0; t < n; t++)
            memcpy(rows + t * width_of(w) + i * NULL_WIDTH, own + t * NULL_WIDTH, NULL_WIDTH * sizeof *own);
    }
}

// The draft has read the text before the step's root; the root's row is still to come.
static void begin_slow_draft(Watch *w, float *rows) {
    int n = w->text.before - 1; // rows
    slow_states(w, n, rows);
    session_reset(&w->slow_draft);
    assert_true(session_prefill_hidden(&w->slow_draft, w->text.sequence + 1, n - 1, rows, NULL));
}

// ln p below a guess (NONE: the root) and the ids in order of their chances.
static void slow_chances_below(Watch *w, int guess, const float *rows, int *ids, float *log_p) {
    Session *s = &w->slow_draft;
    int path[CONTEXT], n = 0, last = w->text.before - 2;
    for (int i = guess; i != NONE; i = w->pool[i].parent) path[n++] = i;
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, w->text.sequence[w->text.before - 1]);
    assert_true(session_set_hidden(s, 0, 1, rows + last * width_of(w), NULL) &&
                session_run(s, s->shape.layers, NULL));
    while (n--) {
        float normed[NULL_WIDTH];
        assert_true(!w->recycles || session_get_hidden(s, &node, 1, HIDDEN_NORMED, normed, NULL));
        node = tree_probe(&s->tree, node, w->mask ? w->mask : w->pool[path[n]].token, true);
        assert_int_not_equal(node, TREE_NONE);
        assert_true(!w->recycles || session_set_hidden(s, node, 1, normed, NULL));
        assert_true(!w->mask || session_set_hidden(s, node, 1, w->mask_states, NULL));
        assert_true(session_run(s, s->shape.layers, NULL));
    }
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    float logits[MOST_VOCAB];
    memcpy(logits, session_logits(s, node), (size_t)w->own_vocab * sizeof *logits);
    best_of(logits, w->own_vocab, w->own_vocab, ids, log_p);
    double sum = 0;
    for (int i = 0; i < w->own_vocab; i++) sum += exp((double)logits[i] - (double)logits[ids[0]]);
    for (int i = w->own_vocab; i-- > 0;) log_p[i] = log_p[i] - log_p[0] - (float)log(sum);
    assert_true(session_truncate(s, s->cache.length, NULL));
}

static int id_of(const Watch *w, int id) { return w->mapped ? w->map[id] : id; }

static bool better(const Watch *w, int a, int b) {
    return w->pool[a].score > w->pool[b].score || (w->pool[a].score == w->pool[b].score && a < b);
}

// The best `most` of guesses [first, count), best first.
static int best_guesses(Watch *w, int first, int most, int *out) {
    int n = 0;
    for (int i = first; i < w->count; i++) {
        int place = 0;
        for (int k = first; k < w->count; k++) place += better(w, k, i);
        if (place < most) out[place] = i, n++;
    }
    return n;
}

// Returns ln of the likeliest one's chance.
static float guess_below(Watch *w, int parent, const float *rows, int most) {
    int ids[MOST_VOCAB];
    float log_p[MOST_VOCAB];
    slow_chances_below(w, parent, rows, ids, log_p);
    for (int i = 0; i < most && i < w->own_vocab; i++) {
        float score = parent == NONE ? log_p[i] : w->pool[parent].score + log_p[i];
        int depth = parent == NONE ? 0 : w->pool[parent].depth + 1;
        for (int k = 0; k < w->count; k++) w->ties += w->pool[k].score == score;
        w->pool[w->count++] = (Guess){parent, id_of(w, ids[i]), depth, score, false};
    }
    return log_p[0];
}

// Guesses of this depth are run: they need rows, and a position: the one after their own in the text. In
// parallel a mask was run for each depth up to this one.
static bool fits(const Watch *w, int depth, int count, int rows) {
    if (w->mask) count = depth + 1;
    return w->text.before - 1 + depth < CONTEXT && rows + count <= w->draft.tree.capacity;
}

static void slow_dynamic(Watch *w, const float *states, int rows) {
    int frontier[MOST_POOL], n = 1, first = 0;
    bool paced = w->pace.p.adaptive != PACE_OFF;
    if (paced && w->pace.length == 0) return;
    frontier[0] = NONE;
    for (int level = 0; level <= w->depth; level++) {
        first = w->count;
        float best = 0;
        for (int i = 0; i < n; i++) best = guess_below(w, frontier[i], states, w->k);
        if (paced && pace_ends(&w->pace, level, exp((double)best))) break;
        n = best_guesses(w, first, w->k < w->own_vocab ? w->k : w->own_vocab, frontier);
        if (!fits(w, level, n, rows)) break;
        rows += w->mask ? 0 : n;
    }
    n = best_guesses(w, 0, w->total - 1, frontier);
    for (int i = 0; i < n; i++) w->pool[frontier[i]].chosen = true;
}

static void slow_fixed(Watch *w, const float *states, int rows) {
    bool stopped = false;
    w->count = w->fixed.count;
    for (int i = 0; i < w->count; i++) w->pool[i] = (Guess){w->fixed.nodes[i].parent, NONE, 0, 0, false};
    for (int depth = 0; depth < RANK_TREE_DEPTH && !stopped; depth++) {
        int level = 0;
        bool inner[RANK_TREE_MOST] = {false};
        for (int i = 0; i < w->count; i++) {
            const RankNode *node = &w->fixed.nodes[i];
            bool there = node->parent == NONE || w->pool[node->parent].chosen;
            if (node->depth == depth && there && node->parent != NONE) inner[node->parent] = true;
        }
        for (int i = 0; i < w->count; i++) level += inner[i];
        if (depth > 0 && (level == 0 || !fits(w, depth - 1, level, rows))) break;
        rows += w->mask ? 0 : level;
        for (int i = 0; i < w->count; i++) {
            const RankNode *node = &w->fixed.nodes[i];
            int ids[MOST_VOCAB];
            float log_p[MOST_VOCAB];
            if (node->depth != depth || node->rank >= w->own_vocab) continue;
            if (node->parent != NONE && !w->pool[node->parent].chosen) continue;
            slow_chances_below(w, node->parent, states, ids, log_p);
            w->pool[i].token = id_of(w, ids[node->rank]);
            w->pool[i].chosen = true;
        }
    }
}

// The rows that the draft lacked in this step: the tokens of the last one.
static void slow_guesses(Watch *w, int rows) {
    float states[CONTEXT * NULL_WIDTH * SHAPE_MAX_STATES];
    w->count = 0;
    if (w->text.before == 1) return;
    begin_slow_draft(w, states);
    if (w->dynamic) slow_dynamic(w, states, rows);
    else slow_fixed(w, states, rows);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    int placed[RANK_TREE_MOST], want = 0;
    slow_guesses(w, w->tried);
    for (int i = 0; i < w->count; i++) {
        const Guess *x = &w->pool[i];
        int parent = x->parent == NONE ? 0 : placed[x->parent];
        int position = parent < 0 ? 0 : tree_position(t, parent) + 1;
        placed[i] = x->chosen && parent >= 0 && position < CONTEXT && want + 1 < t->capacity ? ++want : NONE;
        if (placed[i] == NONE) continue;
        if (want >= t->count || t->parent[want] != parent || t->token[want] != x->token)
            fail_msg("step %d: guess %d is (%d below %d), want (%d below %d) (seed %llu)", r->number, want,
                     want < t->count ? t->token[want] : NONE, want < t->count ? t->parent[want] : NONE,
                     x->token, parent, (unsigned long long)test_seed());
    }
    assert_int_equal(t->count - 1, want);
    assert_int_equal(w->draft.cache.length, w->text.before - 1);
    w->rested += w->pace.p.adaptive != PACE_OFF && w->pace.length == 0;
    w->pace.drafted = w->pace.p.adaptive != PACE_OFF ? want : 0;
    pace_learn(&w->pace, r->accepted);
    w->accepted += r->accepted;
    w->most_depth = r->depth > w->most_depth ? r->depth : w->most_depth;
    w->tried = r->emitted;
}

// --- random settings

static void open_sessions(Watch *w, Random *r) {
    NullSetup setup = {.vocab = w->vocab, .context = CONTEXT, .max_nodes = test_between(r, 20, 120)};
    if (test_between(r, 0, 2) == 0) setup.window = test_between(r, 2, 12);
    null_session_open(&w->target, &setup);
    null_session_open(&w->slow_target,
                      &(NullSetup){.vocab = w->vocab, .context = CONTEXT, .window = setup.window});
    NullSetup draft = {.vocab = w->own_vocab, .context = CONTEXT, .max_nodes = test_between(r, 40, 120)};
    draft.tokens = w->vocab;
    draft.input = w->third ? INPUT_PAIRED : w->mtp ? INPUT_MTP : INPUT_FUSED;
    draft.mask = w->mask;
    null_session_open(&w->draft, &draft);
    draft.max_nodes = 0;
    null_session_open(&w->slow_draft, &draft);
}

// Distinct target ids for the draft's, in any order.
static void draw_map(Watch *w, Random *r) {
    bool taken[MOST_VOCAB] = {false};
    for (int i = 0; i < w->own_vocab; i++) {
        do w->map[i] = test_between(r, 0, w->vocab - 1);
        while (taken[w->map[i]]);
        taken[w->map[i]] = true;
    }
}

static void draw_pace(Watch *w, Random *r, char *text, size_t size) {
    int kind = w->k == 1 ? test_between(r, PACE_OFF, PACE_LEARNED) : PACE_OFF, most = w->depth + 1;
    PaceParams p = {.adaptive = kind,
                    .confidence = (double)test_between(r, 1, 100) / 100,
                    .cost = (double)test_between(r, 0, 9) / 10};
    if (most > w->total - 1) most = w->total - 1;
    pace_init(&w->pace, &p, most, 0, most);
    size_t n = strlen(text);
    if (kind != PACE_OFF)
        snprintf(text + n, size - n, ",adaptive=%s,confidence=%.2f,cost=%g", pace_kinds[kind], p.confidence,
                 p.cost);
}

static void draw_setting(Watch *w, Random *r, char *text, size_t size) {
    char tree[RANK_TREE_MOST * 12];
    const char *name = w->third ? "eagle3"
                       : w->mtp ? "mtp"
                                : "eagle",
               *parallel = w->mask ? ",parallel=on" : "";
    char states[40] = "";
    // The draft's own are raw and raw.
    if (w->mtp && (!w->captures.count || test_between(r, 0, 1)))
        snprintf(states, sizeof states, ",state=%s", w->captures.count ? "raw" : "normed");
    if (w->recycles) strcat(states, ",recycle=normed");
    if (w->mtp) parallel = states;
    if (w->mask && test_between(r, 0, 1)) parallel = ""; // as auto does
    if (w->mask && test_between(r, 0, 4) == 0) parallel = ",parallel=off";
    w->dynamic = test_between(r, 0, 2) > 0;
    w->total = test_between(r, 2, 40), w->depth = test_between(r, 0, 4),
    w->k = test_between(r, 0, 1) ? 1 : test_between(r, 1, 4);
    if (w->dynamic) {
        const char *length = w->mtp ? "gamma" : "depth";
        snprintf(text, size, "%s:total=%d,%s=%d,top=%d%s", name, w->total, length, w->depth + w->mtp, w->k,
                 parallel);
        if (strstr(text, "off")) w->mask = 0;
        draw_pace(w, r, text, size);
        return;
    }
    bool authors = test_between(r, 0, 1);
    if (authors)
        assert_true(rank_tree_parse(&w->fixed, RANK_TREE_DEPTH,
                                    "0 1 2 3 00 01 02 10 11 20 21 30 000 001 002 010 011 020 021 100 "
                                    "0000 0001 0002 00000 00001",
                                    "the facts", NULL));
    else rank_tree_grow(&w->fixed, test_between(r, 1, 30), test_between(r, 1, 4), test_between(r, 1, 5));
    rank_tree_text(&w->fixed, tree);
    for (char *p = tree; *p; p++)
        if (*p == '\n' || *p == ' ') *p = ';';
    snprintf(text, size, "%s:tree=%s%s", name, authors ? "static" : tree, parallel);
    if (strstr(text, "off")) w->mask = 0;
}

static void watch_method(Watch *w, Random *r) {
    char text[RANK_TREE_MOST * 12 + 64];
    Method m;
    Error e = {0};
    Backend coarse = null_backend;
    w->third = test_between(r, 0, 1);
    w->mtp = !w->third && test_between(r, 0, 1);
    w->recycles = w->mtp && test_between(r, 0, 1);
    w->vocab = test_between(r, 3, MOST_VOCAB);
    w->mask = w->third && test_between(r, 0, 1) ? test_between(r, 1, w->vocab - 1) : 0;
    for (int i = 0; i < NULL_WIDTH * SHAPE_MAX_STATES; i++)
        w->mask_states[i] = (float)test_between(r, 0, 1 << 20) * 0x1p-20f;
    w->mapped = w->third && test_between(r, 0, 1);
    w->own_vocab = w->mapped ? test_between(r, 2, w->vocab) : w->vocab;
    if (w->third) w->captures = (Captures){NULL_STATES, {test_between(r, 1, 2), test_between(r, 1, 2)}};
    if (w->mtp && test_between(r, 0, 1)) w->captures = (Captures){1, {NULL_LAYERS}};
    const Captures last = {1, {NULL_LAYERS}}, *own = w->mtp ? &last : &w->captures;
    draw_map(w, r);
    open_sessions(w, r);
    coarse.head = coarse_head;
    coarse_vocab = w->own_vocab;
    if (test_between(r, 0, 1)) w->draft.backend = w->slow_draft.backend = &coarse;
    rank_tree_init(&w->fixed);
    draw_setting(w, r, text, sizeof text);
    MethodEnv env = {
        .target = &w->target,
        .adapters = {{&w->draft, 1, NULL_LAYERS, own, w->mapped ? w->map : NULL, w->mask_states, false}},
        .sampling = {.top_p = 1}};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    for (int prompt = 0; prompt < 2; prompt++) {
        DecodeOptions o = watched_options(TOKENS, 1, 2, r);
        o.prefill_chunk = test_between(r, 0, 5);
        w->tried = 1; // the root's row
        pace_begin(&w->pace);
        watched_prompt(&w->text, test_between(r, 1, test_between(r, 0, 4) ? 8 : CONTEXT), w->vocab, r);
        DecodeResult out = watched_decode(&w->text, on_step, &w->target, &m, &o);
        decode_result_release(&out);
    }
    method_close(&m);
    rank_tree_release(&w->fixed);
    session_release(&w->target);
    session_release(&w->draft);
    session_release(&w->slow_target);
    session_release(&w->slow_draft);
}

static void every_setting(void **state) {
    (void)state;
    Random r = test_random(1105);
    int accepted = 0, ties = 0, most = 0, parallel = 0, rested = 0;
    for (int round = 0; round < 200; round++) {
        Watch w = {.accepted = 0};
        watch_method(&w, &r);
        parallel += w.mask > 0;
        accepted += w.accepted;
        ties += w.ties;
        rested += w.rested;
        most = w.most_depth > most ? w.most_depth : most;
    }
    print_message("%d guesses accepted, %d ties, down to depth %d; %d steps without a guess\n", accepted,
                  ties, most, rested);
    assert_true(accepted > 1000 && ties > 1000 && most >= 5 && parallel >= 20 && rested >= 50);
}

// --- refusals

static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *method, *error;
    } rows[ADAPTER_SETS] = {
        {"kangaroo", "method 'kangaroo': an adapter on one of the target's lower layers is needed: give one "
                     "with --adapter DIR, in a config adapter: DIR"},
        {"medusa", "method 'medusa': Medusa heads are needed: give them with --heads DIR, in a config heads: "
                   "DIR"},
        {"eagle", "method 'eagle': a draft of EAGLE-1 or 2 is needed: give one with --eagle DIR, in a config "
                  "eagle: DIR"},
        {"eagle3", "method 'eagle3': a draft of EAGLE-3 is needed: give one with --eagle3 DIR, in a config "
                   "eagle3: DIR"},
        {"mtp",
         "method 'mtp': an MTP layer is needed, which this model's files don't have: give one with --mtp "
         "DIR, in a config mtp: DIR"},
        {"dflash", "method 'dflash': a draft of DFlash or DSpark is needed: give one with --dflash DIR, in a "
                   "config dflash: DIR"},
    };
    NullAdapters adapters;
    Session target;
    NullSetup setup = {.vocab = 8, .context = CONTEXT};
    MethodEnv env = {.target = &target, .sampling = {.top_p = 1}};
    Method m;
    Error e = {0};
    null_session_open(&target, &setup);
    null_adapters_open(&adapters, &setup);
    for (size_t i = 0; i < ADAPTER_SETS; i++) {
        null_adapters_give(&adapters, &env);
        env.adapters[i].count = 0;
        assert_false(method_open(&m, rows[i].method, &env, &e));
        assert_string_equal(e.text, rows[i].error);
    }
    null_adapters_give(&adapters, &env);
    assert_false(method_open(&m, "eagle:tree=0;000", &env, &e));
    assert_non_null(strstr(e.text, "the path '000' in 'tree' needs '00' before it"));
    assert_false(method_open(&m, "eagle3:parallel=on", &env, &e));
    assert_non_null(strstr(e.text, "parallel=on needs a draft with a mask"));
    assert_false(method_open(&m, "eagle:adaptive=learned", &env, &e));
    assert_non_null(strstr(e.text, "adaptive=learned needs a chain: tree=dynamic and top=1"));
    assert_false(method_open(&m, "mtp:tree=0;00,adaptive=heuristic", &env, &e));
    assert_non_null(strstr(e.text, "adaptive=heuristic needs a chain"));
    assert_false(method_open(&m, "eagle:tree=/no/such/tree", &env, &e));
    assert_non_null(strstr(e.text, "/no/such/tree"));
    assert_false(method_open(&m, "mix:eagle+eagle", &env, &e));
    assert_non_null(strstr(e.text, "cannot share the adapter"));
    null_adapters_close(&adapters);
    session_release(&target);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
