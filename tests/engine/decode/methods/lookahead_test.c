// Lookahead's bookkeeping against a slow one: tokens lie on a grid of age and place, as in the paper's Figure
// 2, and the model is asked about one path at a time. At every step: the tree's paths and their flags, the
// order of the guesses, the rows of every rank.
#include "tests/check.h"
#include "tests/null_session.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 70, VOCAB = 7, TOKENS = 24, MOST = 5000, MOST_N = 6, REACH = 24, NOTHING = -1, NODES = 600 };

typedef struct {
    int W, N, G, cap, ranks;
    bool verify_filling, slides_far, drops, fifo, keeps_pool, prompt_pool;
} Setting;

typedef struct {
    Setting a;
    const Session *session;
    Session slow;
    Random random;
    int eos;
    int sequence[CONTEXT + 1], length, before, prompt_count;
    int grid[MOST_N + 1][REACH];           // [row][place relative to the last token]
    int rows;                              // of guesses
    int missing[REACH];                    // columns whose end had no room, by place of the new token
    int ngrams[MOST][MOST_N], ngram_count; // oldest first
    bool merge;
    int guesses, filled, kept, dropped; // what was seen, so that a test that sees nothing fails
} Watch;

// --- the slow pool: one list for all keys

static bool same_ngram(const Watch *w, const int *a, const int *b) {
    return memcmp(a, b, (size_t)w->a.N * sizeof *a) == 0;
}

static void forget(Watch *w, int i) {
    memmove(w->ngrams[i], w->ngrams[i + 1], (size_t)(w->ngram_count - i - 1) * sizeof w->ngrams[0]);
    w->ngram_count--;
}

static void insert(Watch *w, const int *ngram) {
    int of_key = 0, oldest = NOTHING;
    for (int i = 0; i < w->ngram_count; i++) {
        if (!same_ngram(w, w->ngrams[i], ngram)) continue;
        if (w->a.fifo) return;
        forget(w, i);
        break;
    }
    for (int i = w->ngram_count - 1; i >= 0; i--)
        if (w->ngrams[i][0] == ngram[0]) {
            of_key++;
            oldest = i;
        }
    if (of_key == w->a.cap) forget(w, oldest);
    assert_true(w->ngram_count < MOST);
    memcpy(w->ngrams[w->ngram_count++], ngram, (size_t)w->a.N * sizeof *ngram);
}

// The i-th newest n-gram of the key, or NULL.
static const int *ngram_of(const Watch *w, int key, int i) {
    for (int k = w->ngram_count - 1; k >= 0; k--)
        if (w->ngrams[k][0] == key && i-- == 0) return w->ngrams[k];
    return NULL;
}

// --- the slow window

static int draw(Watch *w, int count) { return w->sequence[random_below(&w->random, (uint32_t)count)]; }

static bool is_filling(const Watch *w) { return w->rows < w->a.N - 1; }
static int columns(const Watch *w) { return is_filling(w) ? w->a.W + w->a.N - 1 - w->rows : w->a.W; }

// The places of row l: row 0's begin at 1, row l's at l.
static int first_place(int l) { return l == 0 ? 1 : l; }
static int last_place(const Watch *w, int l) { return l + columns(w) - 1; }

static void clear_grid(Watch *w) {
    for (int l = 0; l <= MOST_N; l++)
        for (int q = 0; q < REACH; q++) w->grid[l][q] = NOTHING;
}

// The path from behind the last token to column i's end: row 0 up to place i, then the column. Gives its
// length.
static int column_path(const Watch *w, int i, int *path) {
    int n = 0;
    for (int q = 1; q <= i; q++) path[n++] = w->grid[0][q];
    for (int l = 1; l < w->rows; l++) path[n++] = w->grid[l][l + i];
    return n;
}

static bool has_room(const Watch *w, int depth) { return w->before - 1 + depth < CONTEXT; }

static int says(Watch *w, const int *path, int n) {
    int whole[CONTEXT + 1];
    assert_true(w->before + n <= CONTEXT);
    memcpy(whole, w->sequence, (size_t)w->before * sizeof *whole);
    memcpy(whole + w->before, path, (size_t)n * sizeof *whole);
    return slow_next(&w->slow, whole, w->before + n, NULL);
}

static void new_row(Watch *w) {
    int path[REACH];
    for (int i = 0; i < columns(w); i++) {
        int n = column_path(w, i, path), place = w->rows + i;
        w->missing[place] = !has_room(w, n);
        w->grid[w->rows][place] = w->missing[place] ? draw(w, w->length) : says(w, path, n);
    }
}

// Down every column: its token of row 0 stands one place before that of row 1.
static void collect(Watch *w) {
    for (int i = 0; i < columns(w) && !is_filling(w); i++) {
        int ngram[MOST_N];
        ngram[0] = i == 0 ? w->sequence[w->before - 1] : w->grid[0][i];
        for (int l = 1; l < w->a.N; l++) ngram[l] = w->grid[l][l + i];
        if (!w->missing[w->rows + i]) insert(w, ngram);
    }
    w->kept += w->ngram_count > 0;
}

// Places count from the last token, so they shrink as it moves on; rows move down once all are full.
static void slide(Watch *w, int by) {
    int old[MOST_N + 1][REACH], down = is_filling(w) ? 0 : 1;
    for (int i = 0; i < columns(w); i++)
        if (w->grid[w->rows][w->rows + i] == w->eos) w->grid[w->rows][w->rows + i] = draw(w, w->length);
    memcpy(old, w->grid, sizeof old);
    clear_grid(w);
    if (!down) w->rows++;
    for (int l = 0; l < w->rows; l++)
        for (int q = first_place(l); q <= last_place(w, l); q++) {
            int was = q + by < REACH ? old[l + down][q + by] : NOTHING;
            w->grid[l][q] = was != NOTHING ? was : draw(w, w->length);
        }
}

static void start(Watch *w, uint64_t seed) {
    w->random = (Random){.seed = seed, .stream = STREAM_METHOD};
    w->rows = 1;
    clear_grid(w);
    for (int q = 1; q <= w->a.W + w->a.N - 3; q++) w->grid[0][q] = draw(w, w->prompt_count);
    if (!w->a.keeps_pool) w->ngram_count = 0;
    for (int end = w->a.N; end <= w->length && w->a.prompt_pool; end++) insert(w, w->sequence + end - w->a.N);
}

// --- the tree of a step

static int guess_count(const Watch *w) {
    int n = 0;
    if (is_filling(w) && !w->a.verify_filling) return 0;
    while (n < w->a.G && ngram_of(w, w->sequence[w->before - 1], n)) n++;
    return n;
}

// The node at the end of a path, or fails; where there is no room, there is none.
static int find(const Watch *w, const int *path, int n, const char *what) {
    const Tree *t = &w->session->tree;
    int node = 0;
    for (int i = 0; i < n && node != TREE_NONE; i++) node = tree_child(t, node, path[i]);
    if ((node != TREE_NONE) != has_room(w, n))
        fail_msg("%s of %d tokens from %d on: node %d, but room is %d (W %d, N %d, G %d, ranks %d)", what, n,
                 w->before, node, has_room(w, n), w->a.W, w->a.N, w->a.G, w->a.ranks);
    return node;
}

// Marks what should be there with its flags; gives how many nodes were asked for, up to the context's end.
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
    int asked = 1, path[REACH] = {0};
    for (int g = rank * few; g < (rank + 1) * few && g < guess_count(w); g++)
        asked += mark(w, ngram_of(w, w->sequence[w->before - 1], g) + 1, 1, w->a.N - 1, NODE_CANDIDATE, want);
    int last = (rank + 1) * share < columns(w) ? (rank + 1) * share : columns(w);
    if (last > rank * share) { // row 0 as far as the last column hangs off it
        column_path(w, last - 1, path);
        asked += mark(w, path, 1, last - 1, NODE_PROBE, want);
    }
    for (int i = rank * share; i < last; i++)
        asked += mark(w, path, i + 1, column_path(w, i, path), NODE_PROBE, want);
    return asked;
}

static void check_order(const Watch *w) {
    const Tree *t = &w->session->tree;
    int seen[VOCAB] = {0}, at = t->first_proposal[0];
    for (int g = 0; g < guess_count(w) && has_room(w, 1); g++) {
        int token = ngram_of(w, w->sequence[w->before - 1], g)[1];
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
    w->guesses += guess_count(w);
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    check_step(w, r);
    new_row(w);
    collect(w);
    for (int end = w->before + 1; end <= w->length && w->a.prompt_pool; end++)
        if (end >= w->a.N) insert(w, w->sequence + end - w->a.N);
    w->filled += is_filling(w);
    if (r->accepted == w->a.N - 1) { // the output's end may cut either short
        assert_in_range(w->length - w->before, 1, w->a.drops ? w->a.N - 1 : w->a.N);
        w->dropped += w->a.drops;
    }
    slide(w, w->a.slides_far ? w->length - w->before : 1);
    w->before = w->length;
}

static bool on_emit(void *state, int token) {
    Watch *w = state;
    w->sequence[w->length++] = token;
    return true;
}

static double no_time(void *state) {
    (void)state;
    return 0;
}

static int decode_watched(Session *s, Method *m, Watch *w, uint64_t seed, Random *r) {
    DecodeOptions o = {
        .max_tokens = TOKENS,
        .sampling = {.temperature = test_between(r, 0, 2) ? 0 : 3, .top_p = 1},
        .seed = random_bits(r),
        .merge = test_between(r, 0, 1),
        .layout = test_between(r, 0, 2) ? LAYOUT_TREE : LAYOUT_BATCH,
        .clock = {no_time,                   NULL                   },
        .emit = on_emit,
        .step = on_step,
        .state = w
    };
    DecodeResult out;
    Error e = {0};
    int count = test_between(r, 0, 3) ? test_between(r, 1, 40) : test_between(r, 1, CONTEXT);
    for (int i = 0; i < count; i++) w->sequence[i] = test_between(r, 0, VOCAB - 1);
    w->length = w->before = w->prompt_count = count;
    // A batch repeats the root for every guess, which the slow model does not count.
    w->merge = o.merge || o.layout == LAYOUT_BATCH;
    start(w, seed);
    if (!decode(s, m, w->sequence, count, &o, &out, &e)) fail_msg("%s", e.text);
    int gained = out.tokens - out.steps;
    decode_result_release(&out);
    return gained;
}

static Setting random_setting(Random *r) {
    Setting a = {.W = test_between(r, 1, 7),
                 .N = test_between(r, 2, MOST_N),
                 .G = test_between(r, 0, 5),
                 .ranks = test_between(r, 0, 2) ? 1 : test_between(r, 2, 6),
                 .verify_filling = test_between(r, 0, 1),
                 .slides_far = test_between(r, 0, 1),
                 .drops = test_between(r, 0, 1),
                 .fifo = test_between(r, 0, 1),
                 .keeps_pool = test_between(r, 0, 1),
                 .prompt_pool = test_between(r, 0, 1)};
    a.cap = test_between(r, 0, 1) ? test_between(r, 1, 6) : a.G > 0 ? a.G : 1;
    return a;
}

static void open_setting(Method *m, const Setting *a, const MethodEnv *env) {
    char text[300];
    Error e = {0};
    snprintf(text, sizeof text,
             "lookahead:W=%d,N=%d,G=%d,ranks=%d,verify_while_filling=%s,slide=%s,bonus=%s,eviction=%s,"
             "pool_scope=%s,prompt_pool=%s,pool_cap=%d",
             a->W, a->N, a->G, a->ranks, a->verify_filling ? "on" : "off", a->slides_far ? "accepted" : "one",
             a->drops ? "drop" : "keep", a->fifo ? "fifo" : "lru", a->keeps_pool ? "conversation" : "turn",
             a->prompt_pool ? "on" : "off", a->cap);
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
        w = (Watch){.a = random_setting(&r), .session = &s, .eos = test_between(&r, -1, VOCAB - 1)};
        null_session_open(&s, &setup);
        null_session_open(&w.slow, &one);
        MethodEnv env = {.target = &s, .seed = seed, .eos = &w.eos, .eos_count = w.eos >= 0};
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
        .max_tokens = 40, .sampling = *sampling, .seed = 5, .merge = true, .clock = {no_time, NULL}
    };
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

// Not the output alone: step by step the same number is accepted, greedy and sampled.
static void ranks_change_nothing(void **state) {
    (void)state;
    static const Sampling samplings[] = {
        {.temperature = 0, .top_p = 1},
        {.temperature = 2, .top_p = 1}
    };
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
            assert_true(s.passes - passes == 1 + many.count * ranks); // one after another, behind the prefill
            assert_int_equal(got.tokens, want.tokens);
            assert_memory_equal(got.ids, want.ids, (size_t)want.tokens * sizeof *got.ids);
            assert_int_equal(many.count, one.count);
            assert_memory_equal(many.accepted, one.accepted, sizeof(int) * (size_t)one.count);
            assert_true(got.rows > want.rows);
            decode_result_release(&got);
        }
        decode_result_release(&want);
    }
    session_release(&s);
}

static void presets_are_their_parts(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"lookahead:preset=paper-7b",               "lookahead:W=15,N=5,G=15"         },
        {"lookahead:preset=paper-13b,W=3",          "lookahead:W=10,N=5,G=10"         },
        {"lookahead:preset=paper-34b",              "lookahead:W=7,N=5,G=7,pool_cap=7"},
        {"lookahead:preset=readme-7b",              "lookahead:W=7,N=5,G=7"           },
        {"lookahead:mode=reference,prompt_pool=on",
         "lookahead:verify_while_filling=off,bonus=drop,slide=one,prompt_pool=on"     },
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting),
        cmocka_unit_test(ranks_change_nothing),
        cmocka_unit_test(presets_are_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
