// Lookahead's bookkeeping against a slow one. At every step: the tree's paths and their flags, the order of
// the guesses, the rows of every rank.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/watched.h"
#include "tests/support/slow_lookahead.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 70, VOCAB = 7, TOKENS = 24, NODES = 600 };

typedef struct {
    int W, N, G, cap, ranks;
    bool verify_filling, slides_far, drops, fifo, keeps_pool, prompt_pool, reads_last, keeps_eos;
} Setting;

typedef struct {
    Watched text; // first: the loop's callbacks get it
    Setting a;
    const Session *session;
    Session slow;
    SlowWindow window;
    SlowPool pool;
    int prompt_count;
    int read[CONTEXT], read_count; // the text as prompt_pool reads it
    bool merge;
    int guesses, filled, kept, dropped; // counts of what happened, so that a test of nothing fails
} Watch;

static bool is_filling(const Watch *w) { return slow_window_is_filling(&w->window); }
static int columns(const Watch *w) { return slow_window_columns(&w->window); }
static bool has_room(const Watch *w, int depth) { return w->text.before - 1 + depth < CONTEXT; }
static const int *guess(const Watch *w, int i) {
    return slow_pool_get(&w->pool, w->text.sequence[w->text.before - 1], i);
}

static void read_token(Watch *w, int token) {
    w->read[w->read_count++] = token;
    if (w->read_count >= w->a.N) slow_pool_insert(&w->pool, w->read + w->read_count - w->a.N);
}

static void start(Watch *w, uint64_t seed) {
    w->window.random = (Random){.seed = seed, .stream = STREAM_METHOD}; // restarts with each prompt
    slow_window_start(&w->window, w->text.sequence, w->prompt_count);
    if (!w->a.keeps_pool) w->pool.count = 0;
    w->read_count = 0;
    for (int i = 0; i < w->text.length && w->a.prompt_pool; i++) read_token(w, w->text.sequence[i]);
}

// --- the tree of a step

static int guess_count(const Watch *w) {
    int n = 0;
    if (is_filling(w) && !w->a.verify_filling) return 0;
    while (n < w->a.G && guess(w, n)) n++;
    return n;
}

// The node at the end of a path, which must exist unless the tree has no room.
static int find(const Watch *w, const int *path, int n, const char *what) {
    const Tree *t = &w->session->tree;
    int node = 0;
    for (int i = 0; i < n && node != TREE_NONE; i++) node = tree_child(t, node, path[i]);
    if ((node != TREE_NONE) != has_room(w, n))
        fail_msg("%s of %d tokens from %d on: node %d, but room is %d (W %d, N %d, G %d, ranks %d)", what, n,
                 w->text.before, node, has_room(w, n), w->a.W, w->a.N, w->a.G, w->a.ranks);
    return node;
}

// Marks the expected nodes with their flags; returns how many were asked for, up to the context's end.
static int mark(const Watch *w, const int *path, int from, int n, unsigned flag, unsigned char *want) {
    int asked = 0;
    for (int i = from; i <= n; i++) {
        int node = find(w, path, i, flag == NODE_PROBE ? "a column" : "a guess");
        if (node == TREE_NONE) break;
        if (node > 0) want[node] |= (unsigned char)flag;
        asked += node > 0;
    }
    return asked;
}

static int mark_rank(const Watch *w, int rank, unsigned char *want) {
    int share = (columns(w) + w->a.ranks - 1) / w->a.ranks, few = (w->a.G + w->a.ranks - 1) / w->a.ranks;
    int asked = 1, path[SLOW_REACH] = {0};
    for (int g = rank * few; g < (rank + 1) * few && g < guess_count(w); g++)
        asked += mark(w, guess(w, g) + 1, 1, w->a.N - 1, NODE_CANDIDATE, want);
    int last = (rank + 1) * share < columns(w) ? (rank + 1) * share : columns(w);
    if (last > rank * share) { // row 0 as far as the last column needs it
        slow_window_path(&w->window, last - 1, path);
        asked += mark(w, path, 1, last - 1, NODE_PROBE, want);
    }
    for (int i = rank * share; i < last; i++)
        asked += mark(w, path, i + 1, slow_window_path(&w->window, i, path), NODE_PROBE, want);
    return asked;
}

static void check_order(const Watch *w) {
    const Tree *t = &w->session->tree;
    int seen[VOCAB] = {0}, at = t->first_proposal[0];
    for (int g = 0; g < guess_count(w) && has_room(w, 1); g++) {
        int token = guess(w, g)[1];
        if (seen[token]++) continue;
        assert_true(at != TREE_NONE);
        assert_int_equal(t->token[t->proposals[at].child], token);
        at = t->proposals[at].next;
    }
    assert_int_equal(at, TREE_NONE);
}

static void check_step(Watch *w, const StepReport *r) {
    const Tree *t = &w->session->tree;
    unsigned char want[NODES] = {0};
    int asked = 0;
    assert_int_equal(r->parts, w->a.ranks);
    for (int rank = 0; rank < w->a.ranks; rank++) {
        int rows = mark_rank(w, rank, want);
        if (!w->merge && r->part_rows[rank] != rows)
            fail_msg("rank %d of %d runs %d rows, want %d (W %d, N %d, G %d)", rank, w->a.ranks,
                     r->part_rows[rank], rows, w->a.W, w->a.N, w->a.G);
        asked += rows;
    }
    if (w->session->tree.layout == LAYOUT_TREE) assert_int_equal(r->asked, asked);
    for (int n = 1; n < t->count; n++)
        if (t->canonical[n] == n && n) assert_int_equal(t->flags[n] & (NODE_CANDIDATE | NODE_PROBE), want[n]);
    if (w->a.ranks == 1 && r->context + w->a.W + w->a.N < CONTEXT && !is_filling(w) &&
        guess_count(w) == w->a.G && t->layout == LAYOUT_TREE)
        assert_int_equal(r->asked, (w->a.W + w->a.G) * (w->a.N - 1)); // section 5.5
    check_order(w);
    assert_int_equal(r->note.kind, is_filling(w) ? STEP_FILLING : STEP_STEADY);
    assert_int_equal(r->note.pool, w->pool.count);
    assert_int_equal(r->note.pool_hits, guess_count(w));
    w->guesses += guess_count(w);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    check_step(w, r);
    slow_window_step(&w->window, w->text.sequence, w->text.before, w->text.length, &w->pool);
    for (int i = w->text.before; i < w->text.length && w->a.prompt_pool; i++)
        read_token(w, w->text.sequence[w->a.reads_last ? w->text.length - 1 : i]);
    w->kept += w->pool.count > 0;
    w->filled += is_filling(w);
    if (r->accepted == w->a.N - 1) { // the output's end may cut either short
        assert_in_range(w->text.length - w->text.before, 1, w->a.drops ? w->a.N - 1 : w->a.N);
        w->dropped += w->a.drops;
    }
    slow_window_slide(&w->window, w->a.slides_far ? w->text.length - w->text.before : 1, w->text.sequence,
                      w->text.length);
}

static int decode_watched(Session *s, Method *m, Watch *w, uint64_t seed, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 2, 3, r);
    int eos = test_between(r, 0, VOCAB - 1),
        count = test_between(r, 0, 3) ? test_between(r, 1, 40) : test_between(r, 1, CONTEXT);
    watched_prompt(&w->text, count, VOCAB, r);
    o.eos = &eos;
    o.eos_count = test_between(r, 0, 3) == 0;
    w->prompt_count = count;
    // A batch repeats the root for every guess, which the slow model does not count.
    w->merge = o.merge || o.layout == LAYOUT_BATCH;
    start(w, seed);
    DecodeResult out = watched_decode(&w->text, on_step, s, m, &o);
    if (sampling_is_greedy(&o.sampling)) slow_check_greedy(&w->slow, w->text.sequence, count, &o, &out);
    int gained = out.tokens - out.steps;
    decode_result_release(&out);
    return gained;
}

static Setting random_setting(Random *r) {
    Setting a = {.W = test_between(r, 1, 7),
                 .N = test_between(r, 2, SLOW_N),
                 .G = test_between(r, 0, 5),
                 .ranks = test_between(r, 0, 2) ? 1 : test_between(r, 2, 6),
                 .verify_filling = test_between(r, 0, 1),
                 .slides_far = test_between(r, 0, 1),
                 .drops = test_between(r, 0, 1),
                 .fifo = test_between(r, 0, 1),
                 .keeps_pool = test_between(r, 0, 1),
                 .prompt_pool = test_between(r, 0, 1),
                 .reads_last = test_between(r, 0, 1),
                 .keeps_eos = test_between(r, 0, 1)};
    a.cap = test_between(r, 0, 1) ? test_between(r, 1, 6) : a.G > 0 ? a.G : 1;
    return a;
}

static void open_setting(Method *m, const Setting *a, const MethodEnv *env) {
    char text[300];
    Error e = {0};
    snprintf(text, sizeof text,
             "lookahead:W=%d,N=%d,G=%d,ranks=%d,verify_while_filling=%s,slide=%s,bonus=%s,eviction=%s,"
             "pool_scope=%s,prompt_pool=%s,replace_eos=%s,pool_cap=%d",
             a->W, a->N, a->G, a->ranks, a->verify_filling ? "on" : "off", a->slides_far ? "accepted" : "one",
             a->drops ? "drop" : "keep", a->fifo ? "fifo" : "lru", a->keeps_pool ? "conversation" : "turn",
             !a->prompt_pool ? "off"
             : a->reads_last ? "last"
                             : "on",
             a->keeps_eos ? "sampled" : "always", a->cap);
    if (!method_open(m, text, env, &e)) fail_msg("'%s': %s", text, e.text);
}

static void every_setting(void **state) {
    (void)state;
    static Watch w;
    Random r = test_random(80);
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = NODES};
    NullSetup one = {.vocab = VOCAB, .context = CONTEXT, .max_nodes = 1};
    int gained = 0, guesses = 0, filled = 0, kept = 0, dropped = 0;
    for (int round = 0; round < 600; round++) {
        Session s;
        Method m;
        uint64_t seed = random_bits(&r);
        w = (Watch){.a = random_setting(&r), .session = &s};
        w.window = (SlowWindow){.W = w.a.W, .N = w.a.N, .model = &w.slow, .context = CONTEXT};
        int eos = test_between(&r, -1, VOCAB - 1);
        Sampling sampling = {.temperature = (float)test_between(&r, 0, 1), .top_p = 1};
        w.window.eos = w.a.keeps_eos && sampling_is_greedy(&sampling) ? -1 : eos;
        w.pool = (SlowPool){.N = w.a.N, .cap = w.a.cap, .fifo = w.a.fifo};
        null_session_open(&s, &setup);
        null_session_open(&w.slow, &one);
        MethodEnv env = {
            .target = &s, .seed = seed, .sampling = sampling, .eos = &eos, .eos_count = eos >= 0};
        open_setting(&m, &w.a, &env);
        for (int prompt = 0; prompt < 2; prompt++) gained += decode_watched(&s, &m, &w, seed, &r);
        guesses += w.guesses;
        filled += w.filled;
        kept += w.kept;
        dropped += w.dropped;
        method_close(&m);
        session_release(&s);
        session_release(&w.slow);
    }
    print_message("gained %d, guesses %d, filling steps %d, steps with a pool %d, dropped %d\n", gained,
                  guesses, filled, kept, dropped);
    assert_true(gained > 2000 && guesses > 10000 && filled > 1000 && kept > 5000 && dropped > 100);
}

// A step may hold less than the method asks for.
static void small_steps(void **state) {
    (void)state;
    Random r = test_random(84);
    int gained = 0;
    for (int round = 0; round < 200; round++) {
        Session s, slow;
        Method m;
        DecodeOptions o = {.max_tokens = 30,
                           .sampling.top_p = 1,
                           .merge = test_between(&r, 0, 1),
                           .layout = test_between(&r, 0, 1) ? LAYOUT_TREE : LAYOUT_BATCH,
                           .clock = still_clock()};
        DecodeResult out;
        Setting a = random_setting(&r);
        int prompt[] = {1, 0, 2, 1, 0};
        NullSetup setup = {.vocab = 3, .context = CONTEXT, .max_nodes = test_between(&r, 1, 40)};
        null_session_open(&s, &setup);
        null_session_open(&slow, &setup);
        MethodEnv env = {.target = &s, .seed = random_bits(&r)};
        open_setting(&m, &a, &env);
        assert_true(decode(&s, &m, prompt, 5, &o, &out, NULL));
        slow_check_greedy(&slow, prompt, 5, &o, &out);
        gained += out.tokens - out.steps;
        decode_result_release(&out);
        method_close(&m);
        session_release(&s);
        session_release(&slow);
    }
    assert_true(gained > 200);
}

// --- ranks and modes

typedef struct {
    int accepted[CONTEXT], count;
} Steps;

static void note_step(void *state, const StepReport *r) {
    Steps *s = state;
    s->accepted[s->count++] = r->accepted;
}

static DecodeResult run_text(Session *s, const char *text, const Sampling *sampling, Steps *steps) {
    DecodeOptions o = {
        .max_tokens = 40, .sampling = *sampling, .seed = 5, .merge = true, .clock = still_clock()};
    MethodEnv env = {.target = s, .seed = 9, .sampling = *sampling};
    Method m;
    DecodeResult out;
    int prompt[] = {1, 4, 2, 0, 5, 1, 4};
    o.step = note_step;
    o.state = steps;
    *steps = (Steps){0};
    assert_true(method_open(&m, text, &env, NULL));
    assert_true(decode(s, &m, prompt, 7, &o, &out, NULL));
    method_close(&m);
    return out;
}

// Not only the output: each step accepts the same number, greedy and sampled.
static void ranks_change_nothing(void **state) {
    (void)state;
    static const Sampling samplings[] = {{.temperature = 0, .top_p = 1}, {.temperature = 2, .top_p = 1}};
    Session s;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&s, &setup);
    for (int i = 0; i < 2; i++) {
        Steps one, many;
        DecodeResult want = run_text(&s, "lookahead:W=6,N=4,G=5", &samplings[i], &one);
        assert_true(want.S > 1.1);
        for (int ranks = 2; ranks <= TREE_MAX_PARTS; ranks++) {
            char text[80];
            snprintf(text, sizeof text, "lookahead:W=6,N=4,G=5,ranks=%d", ranks);
            double passes = s.passes;
            DecodeResult got = run_text(&s, text, &samplings[i], &many);
            assert_true(s.passes - passes == 1 + many.count * ranks); // one after another, after the prefill
            assert_int_equal(got.tokens, want.tokens);
            assert_memory_equal(got.ids, want.ids, (size_t)want.tokens * sizeof *got.ids);
            assert_int_equal(many.count, one.count);
            assert_memory_equal(many.accepted, one.accepted, sizeof(int) * (size_t)one.count);
            double rows = 0;
            for (int rank = 0; rank < got.parts; rank++) rows += got.part_rows[rank];
            assert_true(got.parts == ranks && rows == got.rows && got.rows > want.rows);
            decode_result_release(&got);
        }
        decode_result_release(&want);
    }
    session_release(&s);
}

static void presets_are_their_parts(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"lookahead:preset=paper-7b", "lookahead:W=15,N=5,G=15"},
        {"lookahead:preset=paper-13b,W=3", "lookahead:W=10,N=5,G=10"},
        {"lookahead:preset=paper-34b", "lookahead:W=7,N=5,G=7,pool_cap=7"},
        {"lookahead:preset=readme-7b", "lookahead:W=7,N=5,G=7"},
        {"lookahead:mode=reference,prompt_pool=on",
         "lookahead:verify_while_filling=off,bonus=drop,slide=one,prompt_pool=last,replace_eos=sampled"},
    };
    Sampling greedy = {.top_p = 1};
    Session s;
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    null_session_open(&s, &setup);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        Steps a, b;
        DecodeResult x = run_text(&s, pairs[i][0], &greedy, &a), y = run_text(&s, pairs[i][1], &greedy, &b);
        assert_true(x.rows == y.rows && x.steps == y.steps);
        assert_memory_equal(a.accepted, b.accepted, sizeof(int) * (size_t)a.count);
        decode_result_release(&x);
        decode_result_release(&y);
    }
    session_release(&s);
}

// --- level 2

enum { BLOCK = 5 };

typedef struct {
    const Session *s;
    int next[BLOCK];
    bool known;
    int checked;
} Blocks;

// Jacobi's iteration: every token of the block becomes the model's after it, a place further on.
static void check_block(void *state, const StepReport *r) {
    Blocks *b = state;
    const Tree *t = &b->s->tree;
    assert_int_equal(t->count, 1 + BLOCK);
    for (int i = 0; i < BLOCK; i++) {
        assert_int_equal(t->parent[1 + i], i);
        if (b->known) assert_int_equal(t->token[1 + i], b->next[i]);
        b->next[i] = session_argmax(b->s, 1 + i);
    }
    b->checked += b->known;
    b->known = r->accepted == 0; // else Jacobi's block has moved further
}

// With N = 2 the window is one row, the last token and a block that Jacobi decoding's rule renews.
static void level_two_is_jacobi(void **state) {
    (void)state;
    static const char *const TEXTS[] = {"lookahead:N=2,W=6,G=0", "jacobi:m=5"};
    for (int i = 0; i < 2; i++) {
        Session s;
        Method m;
        DecodeResult out;
        NullSetup setup = {.vocab = 50, .context = CONTEXT};
        int prompt[] = {1, 4, 2, 0, 5, 1, 4};
        null_session_open(&s, &setup);
        MethodEnv env = {.target = &s, .seed = 9, .sampling.top_p = 1};
        Blocks b = {.s = &s};
        DecodeOptions o = {.max_tokens = 40,
                           .sampling.top_p = 1,
                           .seed = 5,
                           .clock = still_clock(),
                           .step = check_block,
                           .state = &b};
        assert_true(method_open(&m, TEXTS[i], &env, NULL));
        assert_true(decode(&s, &m, prompt, 7, &o, &out, NULL));
        assert_true(b.checked > 15);
        decode_result_release(&out);
        method_close(&m);
        session_release(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),        cmocka_unit_test(small_steps),
        cmocka_unit_test(ranks_change_nothing), cmocka_unit_test(presets_are_their_parts),
        cmocka_unit_test(level_two_is_jacobi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
