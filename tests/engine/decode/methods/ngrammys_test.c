// The rows of every step, against lists made the plain way: every place of the text looked at, every bigram
// asked of the model.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"
#include "tests/support/watched.h"

#include "engine/cpu/cpu.h"

#include <stdio.h>
#include <string.h>

enum { CONTEXT = 110, MOST_VOCAB = 7, MOST_K = 12, MOST_W = 6, TOKENS = 20, BEFORE_TEXT = 1 };

typedef enum { MIXED, IN_CONTEXT, BIGRAM, EXTENDED, STRATEGIES } Strategy;
static const char *const NAMES[] = {"mixed", "context", "bigram", "extended"};

typedef struct {
    int k, w, q;
    Strategy strategy;
    bool by_model, bos, sorted, keep_short, whole;
} Setting;

typedef struct {
    int count, tokens[MOST_W], times, end;
    bool of_context;
} Row;

typedef struct {
    Watched text;
    Setting x;
    const Session *session;
    int vocab, masked;
    int bigram[MOST_VOCAB][MOST_VOCAB];                  // the tokens after each, best first
    int carried[MOST_VOCAB][MOST_VOCAB][MOST_W];         // and the model's tokens after it
    int rows, accepted, from_context, from_bigram, ties; // seen, so that nothing is tested in vain
} Watch;

// --- the slow model

static void ask_model(Watch *w) {
    NullSetup setup = {.vocab = w->vocab, .context = CONTEXT, .masked = w->masked};
    Session s;
    null_session_open(&s, &setup);
    for (int x = 0; x < w->vocab; x++) {
        float logits[MOST_VOCAB];
        int start[] = {BEFORE_TEXT, x}, said = w->vocab - w->masked;
        slow_next(&s, start + !w->x.bos, 1 + w->x.bos, logits);
        for (int i = 0; i < said; i++) {
            int best = 0;
            for (int v = 1; v < w->vocab; v++)
                if (logits[v] > logits[best]) best = v;
            logits[best] = -1;
            w->bigram[x][i] = best;
            int text[MOST_W + 2] = {BEFORE_TEXT, x, best}, *from = text + !w->x.bos;
            w->carried[x][i][0] = best;
            for (int n = 1; n < MOST_W; n++)
                w->carried[x][i][n] = text[n + 2] = slow_next(&s, from, 1 + w->x.bos + n, NULL);
        }
    }
    session_release(&s);
}

static bool equal(const Row *a, const Row *b) {
    return a->count == b->count && memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof(int)) == 0;
}

static bool smaller(const Row *a, const Row *b) {
    for (int i = 0; i < a->count && i < b->count; i++)
        if (a->tokens[i] != b->tokens[i]) return a->tokens[i] < b->tokens[i];
    return a->count < b->count;
}

static bool better(const Watch *w, const Row *a, const Row *b) {
    if (a->times != b->times) return a->times > b->times;
    return w->x.sorted ? smaller(a, b) : a->end > b->end;
}

// All places, equal ones together; gives their number.
static int slow_places(const Watch *w, Row *out) {
    int n = 0, q = w->x.q;
    for (int end = w->text.before - 1; end >= q; end--) {
        Row row = {.times = 1, .end = end, .of_context = true};
        if (memcmp(w->text.sequence + end - q, w->text.sequence + w->text.before - q,
                   (size_t)q * sizeof(int)) != 0)
            continue;
        for (int i = end; i < w->text.before && row.count < w->x.w; i++)
            row.tokens[row.count++] = w->text.sequence[i];
        if (row.count < w->x.w && !w->x.keep_short) continue;
        int at = 0;
        while (at < n && !equal(&out[at], &row)) at++;
        if (at < n) out[at].times++;
        else out[n++] = row;
    }
    return n;
}

static int slow_context(Watch *w, Row *out) {
    Row places[CONTEXT];
    int count = w->text.before > w->x.q ? slow_places(w, places) : 0, n = 0;
    for (; n < w->x.k && n < count; n++) {
        int best = n;
        for (int i = n + 1; i < count; i++) {
            w->ties += places[i].times == places[best].times;
            if (better(w, &places[i], &places[best])) best = i;
        }
        out[n] = places[best];
        places[best] = places[n];
    }
    return n;
}

static Row slow_bigram(const Watch *w, int rank) {
    int last = w->text.sequence[w->text.before - 1];
    Row row = {.count = w->x.strategy == BIGRAM ? 1 : w->x.w, .tokens = {w->bigram[last][rank]}};
    for (int i = 1; i < row.count; i++)
        row.tokens[i] = w->x.by_model ? w->carried[last][rank][i] : w->bigram[row.tokens[i - 1]][0];
    return row;
}

static int slow_rows(Watch *w, Row *out) {
    int n = 0, room = CONTEXT - w->text.before, kept = 0;
    if (w->x.strategy == MIXED || w->x.strategy == IN_CONTEXT) n = slow_context(w, out);
    for (int i = 0; w->x.strategy != IN_CONTEXT && n < w->x.k && i < w->vocab - w->masked; i++)
        out[n++] = slow_bigram(w, i);
    for (int i = 0; i < n; i++) {
        if (out[i].count > room) out[i].count = room;
        if (out[i].count) out[kept++] = out[i];
    }
    return kept;
}

// --- watching

static void describe(const Watch *w, char *out, size_t n) {
    const Setting *x = &w->x;
    snprintf(out, n, "ngrammys:k=%d,w=%d,q=%d,strategy=%s,extend=%s,bos=%s,ties=%s,short=%s,table=%s", x->k,
             x->w, x->q, NAMES[x->strategy], x->by_model ? "model" : "repeat", x->bos ? "on" : "off",
             x->sorted ? "sorted" : "recent", x->keep_short ? "on" : "off", x->whole ? "whole" : "demand");
}

// The preset decides ties and short matches, whatever the other parameters are.
static void describe_preset(const Watch *w, char *out, size_t n) {
    const Setting *x = &w->x;
    snprintf(out, n,
             "ngrammys:k=%d,w=%d,q=%d,strategy=%s,extend=%s,bos=%s,ties=recent,short=on,preset=appendix",
             x->k, x->w, x->q, NAMES[x->strategy], x->by_model ? "model" : "repeat", x->bos ? "on" : "off");
}

// The tree holds every row, and nothing else.
static void check_tree(const Watch *w, const Row *rows, int count) {
    const Tree *t = &w->session->tree;
    bool seen[TREE_MAX_NODES] = {false};
    int paths = 0, nodes = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0, node = 0; k < rows[i].count; k++) {
            node = tree_child(t, node, rows[i].tokens[k]);
            if (node == TREE_NONE) {
                char text[200];
                describe(w, text, sizeof text);
                fail_msg("%s: token %d of row %d of %d (%d) is not in the tree behind %d tokens", text, k, i,
                         count, rows[i].tokens[k], w->text.before);
            }
            paths += !seen[node];
            seen[node] = true;
        }
    for (int n = 1; n < t->count; n++) nodes += t->canonical[n] == n;
    assert_int_equal(nodes, paths);
}

// In a batch the rows come one after the other, each after its own root.
static void check_batch(const Watch *w, const Row *rows, int count) {
    const Tree *t = &w->session->tree;
    int node = 0;
    for (int i = 0; i < count; i++) {
        assert_int_equal(t->parent[node++], TREE_NONE);
        for (int k = 0; k < rows[i].count; k++) {
            char text[200];
            describe(w, text, sizeof text);
            if (t->token[node] != rows[i].tokens[k])
                fail_msg("%s: token %d of row %d is %d, want %d", text, k, i, t->token[node],
                         rows[i].tokens[k]);
            node++;
        }
    }
    assert_true(node == t->count || count == 0);
}

static void check_sources(Watch *w, const Row *rows, int count, const StepReport *r) {
    int offered[2] = {0}, match[2] = {0}, rank[2] = {0};
    for (int i = 0; i < count; i++) {
        int source = !rows[i].of_context, n = 0;
        offered[source]++;
        while (n < rows[i].count && n < r->accepted &&
               rows[i].tokens[n] == w->text.sequence[w->text.before + n])
            n++;
        if (n > match[source]) rank[source] = offered[source];
        if (n > match[source]) match[source] = n;
    }
    assert_int_equal(r->source_count, 3);
    assert_string_equal(r->sources[0].name, "context");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(r->sources[i].rows, offered[i]);
        if (r->emitted <= r->accepted) continue; // not all that was accepted was shown
        assert_int_equal(r->sources[i].match, match[i]);
        assert_int_equal(r->sources[i].rank, rank[i]);
    }
    w->from_context += match[0];
    w->from_bigram += match[1];
}

static void on_step(void *state, const StepReport *r) {
    Watch *w = state;
    Row rows[CONTEXT + MOST_K];
    int count = slow_rows(w, rows);
    check_tree(w, rows, count);
    if (w->session->tree.layout == LAYOUT_BATCH) check_batch(w, rows, count);
    check_sources(w, rows, count, r);
    w->rows += count;
    w->accepted += r->accepted;
}

static void watch_decode(Session *s, Method *m, Watch *w, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    watched_prompt(&w->text, test_between(r, 0, 4) ? test_between(r, 1, CONTEXT) : 1, w->vocab, r);
    w->session = s;
    DecodeResult out = watched_decode(&w->text, on_step, s, m, &o);
    decode_result_release(&out);
}

static Setting random_setting(Random *r) {
    return (Setting){.k = test_between(r, 1, MOST_K),
                     .w = test_between(r, 1, MOST_W),
                     .q = test_between(r, 0, 1) ? 1 : test_between(r, 1, 4),
                     .strategy = (Strategy)test_between(r, 0, STRATEGIES - 1),
                     .by_model = test_between(r, 0, 1),
                     .bos = test_between(r, 0, 1),
                     .sorted = test_between(r, 0, 1),
                     .keep_short = test_between(r, 0, 1),
                     .whole = test_between(r, 0, 1)};
}

static void every_setting(void **state) {
    (void)state;
    static const int prefix[] = {BEFORE_TEXT};
    Random r = test_random(120);
    Watch w = {.rows = 0};
    for (int round = 0; round < 400; round++) {
        Session s;
        Method m;
        Error e = {0};
        char text[200];
        w.vocab = test_between(&r, 2, MOST_VOCAB);
        w.masked = test_between(&r, 0, w.vocab / 3);
        w.x = random_setting(&r);
        NullSetup setup = {.vocab = w.vocab, .context = CONTEXT, .masked = w.masked};
        null_session_open(&s, &setup);
        MethodEnv env = {.target = &s, .facts = {.prefix = prefix, .prefix_count = 1}};
        describe(&w, text, sizeof text);
        if (w.x.sorted && !w.x.keep_short) describe_preset(&w, text, sizeof text);
        if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
        ask_model(&w);
        for (int prompt = 0; prompt < 2; prompt++) watch_decode(&s, &m, &w, &r);
        method_close(&m);
        session_release(&s);
    }
    assert_true(w.rows > 20000 && w.accepted > 1000 && w.from_context > 500 && w.from_bigram > 500);
    assert_true(w.ties > 1000);
}

// --- output

typedef struct {
    Session session;
    int prompt[CONTEXT], count, want, truth[TOKENS];
} Story;

static void random_text(Story *x, Random *r) {
    int room;
    x->count = test_between(r, 0, 3) ? test_between(r, 1, CONTEXT) : test_between(r, 0, 1) ? 1 : CONTEXT - 1;
    for (int i = 0; i < x->count; i++) {
        bool again = i > 4 && test_between(r, 0, 2);
        x->prompt[i] =
            again ? x->prompt[i - test_between(r, 1, 4)] : test_between(r, 0, x->session.shape.vocab - 1);
    }
    room = x->session.context - x->count;
    x->want = room < TOKENS ? room : TOKENS;
    slow_greedy(&x->session, x->prompt, x->count, x->want, x->truth);
}

// Ends at an EOS where the truth has it, after it nothing.
static void check_greedy(Story *x, Method *m, const char *name, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    DecodeResult out;
    Error e = {0};
    int want = x->want, eos = test_between(r, 0, x->session.shape.vocab - 1);
    bool ends = test_between(r, 0, 1);
    o.sampling.temperature = 0;
    o.eos = &eos;
    o.eos_count = ends;
    for (int i = x->want - 1; i >= 0 && ends; i--)
        if (x->truth[i] == eos) want = i + 1;
    if (!decode(&x->session, m, x->prompt, x->count, &o, &out, &e)) fail_msg("%s: %s", name, e.text);
    if (out.tokens != want || memcmp(out.ids, x->truth, (size_t)want * sizeof(int)) != 0)
        fail_msg("%s: %d tokens behind %d, want the model's own %d (layout %d, merge %d)", name, out.tokens,
                 x->count, want, (int)o.layout, o.merge);
    decode_result_release(&out);
}

// The same proposals in the same order: the same draws decide them.
static void check_layouts(Story *x, Method *m, const char *name, Random *r) {
    DecodeOptions o = watched_options(TOKENS, 1, 2, r);
    DecodeResult tree, batch;
    o.layout = LAYOUT_TREE;
    assert_true(decode(&x->session, m, x->prompt, x->count, &o, &tree, NULL));
    o.layout = LAYOUT_BATCH;
    assert_true(decode(&x->session, m, x->prompt, x->count, &o, &batch, NULL));
    if (tree.tokens != batch.tokens || tree.steps != batch.steps ||
        memcmp(tree.ids, batch.ids, (size_t)tree.tokens * sizeof(int)) != 0)
        fail_msg("%s: a batch gives %d tokens in %d steps, a tree %d in %d", name, batch.tokens, batch.steps,
                 tree.tokens, tree.steps);
    decode_result_release(&tree);
    decode_result_release(&batch);
}

static void check_output(Story *x, Random *r) {
    Method m;
    Error e = {0};
    Watch w = {.x = random_setting(r)};
    MethodEnv env = {.target = &x->session, .facts = {.prefix = x->prompt, .prefix_count = 1}};
    char text[200];
    describe(&w, text, sizeof text);
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    for (int i = 0; i < 3; i++) {
        random_text(x, r);
        check_greedy(x, &m, text, r);
        if (x->session.tree.capacity > 200) check_layouts(x, &m, text, r);
    }
    method_close(&m);
}

static void output_is_the_models(void **state) {
    (void)state;
    Random r = test_random(121);
    for (int round = 0; round < 300; round++) {
        Story x = {.count = 0}; // the prefix of every text is the first prompt's first token: 0
        NullSetup setup = {.vocab = test_between(&r, 2, MOST_VOCAB),
                           .context = CONTEXT,
                           .window = test_between(&r, 0, 1) ? test_between(&r, 4, 30) : 0,
                           .max_nodes = test_between(&r, 0, 1) ? test_between(&r, MOST_W, 40) : 0};
        null_session_open(&x.session, &setup);
        check_output(&x, &r);
        session_release(&x.session);
    }
}

// A random model in f32 or bf16, with much or little room in a step, by the round.
static void open_random(Story *x, RandomModel *m, const Shape *shape, int round, Random *r) {
    BackendOptions o = {.compute = round % 2 ? COMPUTE_BF16 : COMPUTE_F32,
                        .context = CONTEXT,
                        .max_nodes = round % 3 ? 256 : 30,
                        .slack = 16,
                        .threads = 1};
    void *self;
    random_model_init(m, shape, round % 2 ? DTYPE_BF16 : DTYPE_F32, false, r);
    assert_true(cpu_open(&m->model, &o, &self, NULL));
    session_init(&x->session, &cpu_backend, self, shape, &o);
}

static void output_is_the_models_on_the_cpu(void **state) {
    (void)state;
    Random r = test_random(122);
    for (int round = 0; round < 12; round++) {
        Story x = {.count = 0};
        RandomModel m;
        Shape shape = random_shape(&r);
        open_random(&x, &m, &shape, round, &r);
        check_output(&x, &r);
        session_release(&x.session);
        random_model_release(&m);
    }
}

// --- on demand

enum { MOST_LOGGED = 20000 };

// Every node and every number of the report that isn't a time, of all steps.
typedef struct {
    const Session *session;
    int count, numbers[MOST_LOGGED];
    int passes; // of the target, most of any step
} StepLog;

static void log_step(void *state, const StepReport *r) {
    StepLog *log = state;
    const Tree *t = &log->session->tree;
    const int report[] = {r->number,          r->context,        r->rows,    r->asked,
                          r->tried,           r->accepted,       r->emitted, r->sources[0].rows,
                          r->sources[1].rows, r->sources[1].rank};
    assert_true(log->count + 10 + 3 * t->count <= MOST_LOGGED);
    for (int i = 0; i < 10; i++) log->numbers[log->count++] = report[i];
    for (int i = 0; i < t->count; i++) {
        log->numbers[log->count++] = t->token[i];
        log->numbers[log->count++] = t->parent[i];
        log->numbers[log->count++] = session_argmax(log->session, i);
    }
    int passes = 0;
    for (int i = 0; i < r->pass_count; i++)
        passes += r->passes[i].a < r->passes[i].b ? r->passes[i].count : 0;
    if (passes > log->passes) log->passes = passes;
}

// Three prompts, the last of them the first one again.
static void log_story(Story *x, const char *text, const DecodeOptions *o, StepLog *log) {
    Method m;
    DecodeResult out;
    Error e = {0};
    MethodEnv env = {.target = &x->session, .facts = {.prefix = x->prompt, .prefix_count = 1}};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    log->session = &x->session;
    log->count = log->passes = 0;
    for (int i = 0; i < 3; i++) {
        DecodeOptions own = *o;
        own.step = log_step;
        own.state = log;
        if (!decode(&x->session, &m, x->prompt, i == 1 ? x->count / 2 + 1 : x->count, &own, &out, &e))
            fail_msg("'%s': %s", text, e.text);
        decode_result_release(&out);
    }
    method_close(&m);
}

// The same steps as with the whole table, number by number, whatever else is in the tree.
static void demand_makes_the_same_steps(void **state) {
    (void)state;
    static const char *const WHERE[] = {"ngrammys:%stable=%s",
                                        "mix:prompt-lookup+ngrammys(%stable=%s)+jacobi(m=2)"};
    static StepLog whole, demand;
    Random r = test_random(123);
    int more = 0;
    for (int round = 0; round < 24; round++) {
        Story x = {.count = 0};
        RandomModel m;
        Shape shape = random_shape(&r);
        char params[120], text[200];
        Setting set = random_setting(&r);
        if (shape.vocab > 120) shape.vocab = shape.real_vocab = 120;
        open_random(&x, &m, &shape, round, &r);
        random_text(&x, &r);
        DecodeOptions options = watched_options(TOKENS, 1, 2, &r);
        if (test_between(&r, 0, 2) == 0) options.layout = LAYOUT_COPIED;
        snprintf(params, sizeof params, "k=%d,w=%d,strategy=%s,extend=%s,bos=%s,", set.k, set.w,
                 NAMES[round % STRATEGIES], set.by_model ? "model" : "repeat", set.bos ? "on" : "off");
        for (int on_demand = 0; on_demand < 2; on_demand++) {
            snprintf(text, sizeof text, WHERE[round / 4 % 2], params, on_demand ? "demand" : "whole");
            log_story(&x, text, &options, on_demand ? &demand : &whole);
        }
        if (whole.count != demand.count ||
            memcmp(whole.numbers, demand.numbers, (size_t)whole.count * sizeof(int)))
            fail_msg("'%s': the steps differ from those with the whole table", text);
        more += demand.passes - whole.passes;
        session_release(&x.session);
        random_model_release(&m);
    }
    assert_true(more > 20); // rows were made in steps, and the passes show it
}

// --- unigrams and the preset

// A token's row is its number: the mean is far from 0, and the order known.
static void number(const void *self, EmbeddingKind kind, int token, float *row) {
    (void)self;
    for (int i = 0; i < NULL_WIDTH; i++) row[i] = i ? 0 : kind == EMBEDDING_INPUT ? 1 : (float)token;
}

typedef struct {
    const Session *session;
    const int *want;
} Firsts;

static void check_firsts(void *state, const StepReport *r) {
    const Firsts *f = state;
    const Tree *t = &f->session->tree;
    assert_int_equal(r->sources[2].rows, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(t->token[i + 1], f->want[i]);
    assert_int_equal(t->count, 4);
}

static void check_unigrams(const char *text, const int *want) {
    NullSetup setup = {.vocab = 7, .context = CONTEXT};
    Session s;
    Method m;
    DecodeResult out;
    Error e = {0};
    null_session_open(&s, &setup);
    Firsts firsts = {&s, want};
    MethodEnv env = {.target = &s, .facts.embedding = number};
    DecodeOptions o = {
        .max_tokens = 20, .clock = still_clock(), .merge = true, .step = check_firsts, .state = &firsts};
    if (!method_open(&m, text, &env, &e)) fail_msg("'%s': %s", text, e.text);
    assert_true(decode(&s, &m, (int[]){1, 2}, 2, &o, &out, NULL));
    decode_result_release(&out);
    method_close(&m);
    session_release(&s);
}

static void unigrams_are_offered(void **state) {
    (void)state;
    check_unigrams("ngrammys:strategy=unigram,k=3", (int[]){3, 2, 4}); // about the mean of 3
    check_unigrams("ngrammys:strategy=unigram,k=3,order=inner", (int[]){0, 1, 2});
    check_unigrams("ngrammys:strategy=unigram,k=3,preset=appendix", (int[]){0, 1, 2});
}

static void refuses(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"ngrammys:bos=on", "the model names no token that begins a text"},
        {"ngrammys:strategy=unigram", "has no weights"},
        {"ngrammys:k=65", "must be a whole number from 1 to 64"},
    };
    NullSetup setup = {.vocab = 4, .context = CONTEXT};
    Session s;
    null_session_open(&s, &setup);
    MethodEnv env = {.target = &s};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Method m;
        Error e = {0};
        assert_false(method_open(&m, bad[i][0], &env, &e));
        if (!strstr(e.text, bad[i][1])) fail_msg("%s says '%s', want '%s'", bad[i][0], e.text, bad[i][1]);
    }
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_setting),
                                       cmocka_unit_test(output_is_the_models),
                                       cmocka_unit_test(output_is_the_models_on_the_cpu),
                                       cmocka_unit_test(demand_makes_the_same_steps),
                                       cmocka_unit_test(unigrams_are_offered),
                                       cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
