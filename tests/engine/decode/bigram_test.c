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

static void check_token(Session *s, const BigramSetup *x, const TokenTable *t, int token) {
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

static void check_table(Session *s, Random *r, int every) {
    int prefix[MOST_PREFIX];
    BigramSetup x = {.prefix = prefix, .prefix_count = test_between(r, 0, MOST_PREFIX)};
    TokenTable t;
    Error e = {0};
    x.k = test_between(r, 1, 12);
    x.w = test_between(r, 0, 1) ? 1 : test_between(r, 2, MOST_W);
    for (int i = 0; i < MOST_PREFIX; i++) prefix[i] = test_between(r, 0, s->shape.vocab - 1);
    if (!bigram_make(s, &x, (Progress){0}, &t, &e)) fail_msg("%s", e.text);
    assert_int_equal(t.tokens, s->shape.vocab);
    assert_int_equal(t.k, x.k < s->shape.real_vocab ? x.k : s->shape.real_vocab);
    assert_int_equal(t.w, x.w);
    assert_int_equal(s->cache.length, 0);
    for (int token = 0; token < t.tokens; token += every) check_token(s, &x, &t, token);
    token_table_release(&t);
}

static void null_tables(void **state) {
    (void)state;
    Random r = test_random(140);
    for (int round = 0; round < 150; round++) {
        Session s;
        NullSetup setup = {.vocab = test_between(&r, 1, 40),
                           .context = test_between(&r, 0, 2) ? CONTEXT : test_between(&r, MOST_PREFIX + 1, 6),
                           .window = test_between(&r, 0, 3) ? 0 : 4,
                           .max_nodes = test_between(&r, MOST_W, 60)};
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
                            .max_nodes = test_between(&r, MOST_W, 200),
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
    NullSetup setup = {.vocab = 5, .context = 2, .max_nodes = 3};
    int prefix[] = {1, 2};
    TokenTable t;
    null_session_open(&s, &setup);
    assert_false(bigram_make(&s, &(BigramSetup){prefix, 2, 3, 1}, (Progress){0}, &t, NULL));
    assert_false(bigram_make(&s, &(BigramSetup){prefix, 1, 3, 4}, (Progress){0}, &t, NULL));
    assert_true(bigram_make(&s, &(BigramSetup){prefix, 1, 3, 3}, (Progress){0}, &t, NULL));
    token_table_release(&t);
    session_release(&s);
}

static bool count_down(void *state, const char *what, double share) {
    (void)what, (void)share;
    return --*(int *)state >= 0;
}

// Wherever it is interrupted, no table is left.
static void ends_early(void **state) {
    (void)state;
    bool ok = false;
    for (int n = 0; !ok; n++) {
        Session s;
        NullSetup setup = {.vocab = 30, .context = CONTEXT, .max_nodes = 8};
        TokenTable t;
        Error e = {0};
        int left = n;
        null_session_open(&s, &setup);
        ok = bigram_make(&s, &(BigramSetup){.k = 3, .w = 2}, (Progress){count_down, &left}, &t, &e);
        assert_int_equal(e.kind, ok ? ERROR_NONE : ERROR_INTERRUPTED);
        if (!ok) assert_null(t.ids);
        assert_true(ok ? n >= 30 / 8 + 30 * 3 / 8
                       : n < 100); // a step of the model at most between two questions
        if (ok) token_table_release(&t);
        session_release(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(null_tables), cmocka_unit_test(cpu_tables),
                                       cmocka_unit_test(refuses_what_has_no_room),
                                       cmocka_unit_test(ends_early)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
