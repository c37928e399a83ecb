// Tables of bigrams, against the model asked about one token at a time.
#include "tests/support/check.h"
#include "tests/support/null_session.h"
#include "tests/support/random_model.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/model_tables.h"

#include <math.h>
#include <string.h>

enum { CONTEXT = 60, MOST_W = 6, MOST_PREFIX = 3 };

// The k best after the sequence, the lower of equals first.
static void slow_best(Session *s, const int *sequence, int length, int k, int *out) {
    float *logits = mem_new((size_t)s->shape.vocab, sizeof *logits);
    slow_next(s, sequence, length, logits);
    for (int i = 0; i < k; i++) {
        out[i] = -1;
        for (int v = 0; v < s->shape.vocab; v++)
            if (logits[v] > -INFINITY && (out[i] < 0 || logits[v] > logits[out[i]])) out[i] = v;
        logits[out[i]] = -INFINITY;
    }
    mem_free(logits);
}

static void check_token(Session *s, const Bigrams *x, int token) {
    const TokenTable *t = &x->table;
    int text[MOST_PREFIX + 1 + MOST_W], best[TOKEN_TABLE_MAX_K], n = x->prefix_count;
    memcpy(text, x->prefix, (size_t)n * sizeof(int));
    text[n++] = token;
    slow_best(s, text, n, t->k, best);
    for (int rank = 0; rank < t->k; rank++) {
        int said = best[rank];
        for (int i = 0; i < t->w; i++) {
            int want = n + i > s->context ? TABLE_NO_TOKEN : said, got = token_table_row(t, token, rank)[i];
            if (got != want)
                fail_msg("behind token %d (prefix %d), continuation %d, token %d of %d is %d, want %d", token,
                         x->prefix_count, rank, i, t->w, got, want);
            text[n + i] = said;
            if (n + i < s->context && i + 1 < t->w) said = slow_next(s, text, n + i + 1, NULL);
        }
    }
}

// Every token's rows, those of some tokens twice. After a failure there are none of the last tokens.
static bool make_all(Session *s, const int *prefix, int prefix_count, int k, int w, Bigrams *b, Error *e) {
    int tokens[TREE_MAX_NODES], most = s->tree.capacity / 2;
    bool ok = true;
    MethodEnv env = {.target = s, .facts = {.prefix = prefix, .prefix_count = prefix_count}};
    if (!bigrams_open(&env, prefix_count > 0, k, w, true, b, e)) fail_msg("%s", e->text);
    for (int first = 0, n; ok && first < b->table.tokens; first += n) {
        n = b->table.tokens - first < most ? b->table.tokens - first : most;
        for (int i = 0; i < n + n / 3; i++) tokens[i] = i < n ? first + i : first + (i - n) * 2;
        ok = bigrams_need(b, tokens, n + n / 3, e);
        assert_int_equal(token_table_count(&b->table), ok ? first + n : first);
    }
    if (!ok) bigrams_close(b);
    return ok;
}

// A sequence that is there before goes on as if nothing had happened.
static void check_table(Session *s, Random *r, int every) {
    int prefix[MOST_PREFIX], text[CONTEXT], length = test_between(r, 0, s->context - 1);
    Bigrams b;
    Error e = {0};
    int k = test_between(r, 1, 12), w = test_between(r, 0, 1) ? 1 : test_between(r, 2, MOST_W);
    for (int i = 0; i < MOST_PREFIX; i++) prefix[i] = test_between(r, 0, s->shape.vocab - 1);
    for (int i = 0; i <= length; i++) text[i] = test_between(r, 0, s->shape.vocab - 1);
    int want = slow_next(s, text, length + 1, NULL);
    session_reset(s);
    assert_true(session_prefill(s, text, length, 0, 0, NULL, NULL));
    if (!make_all(s, prefix, test_between(r, 0, MOST_PREFIX), k, w, &b, &e)) fail_msg("%s", e.text);
    assert_int_equal(b.table.tokens, s->shape.vocab);
    assert_true(b.table.k >= (k < s->shape.real_vocab ? k : s->shape.real_vocab));
    assert_int_equal(b.table.w, w);
    assert_int_equal(s->cache.length, length);
    session_begin_step(s, true, LAYOUT_TREE);
    tree_root(&s->tree, text[length]);
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_ARGMAX, NULL));
    if (session_argmax(s, 0) != want)
        fail_msg("after %d tokens: want %d, got %d", length + 1, want, session_argmax(s, 0));
    for (int token = 0; token < b.table.tokens; token += every) check_token(s, &b, token);
    bigrams_close(&b);
}

static void null_tables(void **state) {
    (void)state;
    Random r = test_random(140);
    for (int round = 0; round < 150; round++) {
        Session s;
        NullSetup setup = {.vocab = test_between(&r, 1, 40),
                           .context = test_between(&r, 0, 2) ? CONTEXT : test_between(&r, MOST_PREFIX + 1, 6),
                           .window = test_between(&r, 0, 3) ? 0 : 4,
                           .max_nodes = test_between(&r, MOST_PREFIX + MOST_W, 60)};
        setup.masked = test_between(&r, 0, setup.vocab / 2);
        if (setup.masked == setup.vocab) setup.masked = 0;
        null_session_open(&s, &setup);
        check_table(&s, &r, 1);
        session_release(&s);
    }
}

static void cpu_tables(void **state) {
    (void)state;
    Random r = test_random(141);
    for (int round = 0; round < 10; round++) {
        Session s;
        RandomModel m;
        Shape shape = random_shape(&r);
        BackendOptions o = {.compute = round % 2 ? COMPUTE_BF16 : COMPUTE_F32,
                            .context = CONTEXT,
                            .max_nodes = test_between(&r, MOST_PREFIX + MOST_W, 200),
                            .slack = 16,
                            .threads = 1};
        void *self;
        random_model_init(&m, &shape, round % 2 ? DTYPE_BF16 : DTYPE_F32, false, &r);
        assert_true(cpu_open(&m.model, &o, &self, NULL));
        session_init(&s, &cpu_backend, self, &shape, &o);
        check_table(&s, &r, 7);
        session_release(&s);
        random_model_release(&m);
    }
}

static void refuses_what_has_no_room(void **state) {
    (void)state;
    Session s;
    NullSetup setup = {.vocab = 5, .context = 2, .max_nodes = 4};
    int prefix[] = {1, 2};
    Bigrams b;
    Error e = {0};
    null_session_open(&s, &setup);
    assert_false(make_all(&s, prefix, 2, 3, 1, &b, &e));
    assert_false(make_all(&s, prefix, 1, 3, 4, &b, &e));
    assert_true(make_all(&s, prefix, 1, 3, 3, &b, &e));
    bigrams_close(&b);
    session_release(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(null_tables), cmocka_unit_test(cpu_tables),
                                       cmocka_unit_test(refuses_what_has_no_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
