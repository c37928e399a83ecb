// When a table is made, and when a kept one is loaded; the kept table equals the one that was made.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/decode/model_tables.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB = 40, CONTEXT = 90, WIDTH = NULL_WIDTH };

typedef struct {
    Session session;
    const char *weights;
    int made; // tables that were finished
    int prefix[1];
    MethodEnv env;
} World;

static bool identify(const void *self, char out[SHA256_TEXT], Error *e) {
    const World *w = self;
    return sha256_bytes(w->weights, strlen(w->weights), out, e);
}

static void embedding(const void *self, EmbeddingKind kind, int token, float *row) {
    (void)self;
    for (int i = 0; i < WIDTH; i++) row[i] = (float)((token * 7 + i * 5 + (int)kind * 3) % 11);
}

static bool say(void *state, const char *what, double share) {
    assert_true(*what && share >= 0 && share <= 1);
    ((World *)state)->made++;
    return true;
}

static void open_world(World *w, const char *cache) {
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT, .masked = 3};
    null_session_open(&w->session, &setup);
    w->weights = "weights";
    w->made = 0;
    w->prefix[0] = 1;
    w->env = (MethodEnv){.target = &w->session,
                         .facts = {w->prefix, 1, w, identify, embedding},
                         .cache = cache,
                         .progress = {say, w}};
}

static void check_same(const TokenTable *a, const TokenTable *b, int k, int w) {
    assert_int_equal(a->tokens, b->tokens);
    for (int x = 0; x < a->tokens; x++)
        for (int i = 0; i < k; i++)
            assert_memory_equal(token_table_row(a, x, i), token_table_row(b, x, i), (size_t)w * sizeof(int));
}

// Asks for a table, with the cache and without; gives whether one was made.
static bool ask(World *w, bool bos, int k, int length) {
    Bigrams kept, fresh;
    MethodEnv alone = w->env;
    int before = w->made;
    Error e = {0};
    if (!bigrams_open(&w->env, bos, k, length, false, &kept, &e)) fail_msg("%s", e.text);
    bool made = w->made > before;
    alone.cache = NULL;
    before = w->made;
    assert_true(bigrams_open(&alone, bos, k, length, false, &fresh, NULL) && w->made > before);
    assert_true(kept.table.k >= (k < VOCAB - 3 ? k : VOCAB - 3) && kept.table.w >= length);
    check_same(&kept.table, &fresh.table, k < VOCAB - 3 ? k : VOCAB - 3, length);
    bigrams_close(&kept);
    bigrams_close(&fresh);
    return made;
}

static void made_once(void **state) {
    World w;
    open_world(&w, *state);
    assert_true(ask(&w, false, 5, 1));
    assert_false(ask(&w, false, 5, 1));
    assert_false(ask(&w, false, 32, 1)); // so many are made at once
    assert_true(ask(&w, false, 35, 1));
    assert_true(ask(&w, true, 5, 1)); // after BOS it is another
    assert_false(ask(&w, true, 9, 1));
    w.weights = "other";
    assert_true(ask(&w, false, 5, 1));
    w.weights = "weights";
    assert_false(ask(&w, false, 5, 1));
    assert_int_equal(folder_count(*state), 3);
    session_release(&w.session);
}

static void a_larger_one_takes_the_place(void **state) {
    World w;
    open_world(&w, *state);
    assert_true(ask(&w, false, 6, 4));
    assert_false(ask(&w, false, 6, 3));
    assert_false(ask(&w, false, 2, 4));
    assert_true(ask(&w, false, 3, 7)); // now 6 x 7
    assert_false(ask(&w, false, 6, 7));
    assert_true(ask(&w, false, 8, 2)); // now 8 x 7
    assert_false(ask(&w, false, 8, 7));
    assert_int_equal(folder_count(*state), 1);
    session_release(&w.session);
}

static void unigrams_too(void **state) {
    World w;
    TokenTable first, again;
    open_world(&w, *state);
    for (int order = 0; order < 2; order++) {
        int direct[VOCAB], before = w.made;
        assert_true(unigram_table(&w.env, (UnigramOrder)order, 4, &first, NULL));
        int made = w.made;
        assert_true(unigram_table(&w.env, (UnigramOrder)order, 9, &again, NULL));
        assert_true(made > before && w.made == made);
        assert_true(unigram_order(&w.env.facts, VOCAB - 3, WIDTH, (UnigramOrder)order, 9, (Progress){0},
                                  direct, NULL));
        assert_memory_equal(again.ids, direct, 9 * sizeof(int));
        check_same(&first, &again, 4, 1);
        token_table_release(&first);
        token_table_release(&again);
    }
    session_release(&w.session);
}

static void without_identity_nothing_is_kept(void **state) {
    World w;
    open_world(&w, *state);
    w.env.facts.identify = NULL;
    assert_true(ask(&w, false, 5, 1));
    assert_true(ask(&w, false, 5, 1));
    assert_int_equal(folder_count(*state), 0);
    session_release(&w.session);
}

static void a_cache_that_is_none_is_said(void **state) {
    World w;
    Bigrams b;
    open_world(&w, folder_path(*state, "file/below"));
    assert_true(file_write(folder_path(*state, "file"), "x", 1, NULL));
    for (int on_demand = 0; on_demand < 2; on_demand++) {
        Error e = {0};
        assert_false(bigrams_open(&w.env, false, 5, 1, on_demand, &b, &e));
        assert_int_equal(w.made, 0); // before the work, not after
        assert_int_equal(e.kind, ERROR_SYSTEM);
        assert_non_null(strstr(e.text, "cannot make the directory"));
        bigrams_close(&b);
    }
    session_release(&w.session);
}

// --- rows on demand

static void open_bigrams(World *w, int k, int length, bool on_demand, Bigrams *out) {
    Error e = {0};
    if (!bigrams_open(&w->env, false, k, length, on_demand, out, &e)) fail_msg("%s", e.text);
}

static void need(Bigrams *b, int first, int count) {
    int tokens[VOCAB];
    for (int i = 0; i < count; i++) tokens[i] = first + i;
    assert_true(bigrams_need(b, tokens, count, NULL));
}

// Rows that are there are the whole table's; `want` of them are there.
static void check_rows(World *w, const Bigrams *b, int want) {
    MethodEnv alone = w->env;
    Bigrams whole;
    int ids = b->table.k * b->table.w;
    alone.cache = NULL;
    assert_true(bigrams_open(&alone, false, b->table.k, b->table.w, false, &whole, NULL));
    assert_int_equal(token_table_count(&whole.table), VOCAB);
    for (int x = 0; x < VOCAB; x++)
        for (int i = 0; i < ids; i++) {
            int got = token_table_row(&b->table, x, 0)[i], empty = TABLE_NO_TOKEN;
            int wanted = token_table_has(&b->table, x) ? token_table_row(&whole.table, x, 0)[i] : empty;
            if (got != wanted) fail_msg("token %d, id %d: want %d, got %d", x, i, wanted, got);
        }
    assert_int_equal(token_table_count(&b->table), want);
    bigrams_close(&whole);
}

// Two at once keep what either made; a third starts with it, and a whole table makes only the rest.
static void rows_of_all_are_kept(void **state) {
    for (int length = 1; length < 4; length += 2) {
        World w;
        Bigrams a, b, c;
        open_world(&w, folder_path(*state, length > 1 ? "long" : "short"));
        open_bigrams(&w, 5, length, true, &a);
        open_bigrams(&w, 5, length, true, &b);
        need(&a, 0, 7);
        need(&a, 4, 6);
        check_rows(&w, &a, 10);
        need(&b, 8, 5);
        check_rows(&w, &b, 5);
        bigrams_close(&a);
        bigrams_close(&b);
        open_bigrams(&w, 4, length, true, &c);
        check_rows(&w, &c, 13);
        double rows = w.session.rows;
        need(&c, 3, 9);
        assert_true(w.session.rows <= rows); // nothing is run for rows that are there
        bigrams_close(&c);
        open_bigrams(&w, 5, length, false, &a);
        check_rows(&w, &a, VOCAB);
        bigrams_close(&a);
        rows = w.session.rows;
        open_bigrams(&w, 5, length, true, &a); // the whole table serves
        assert_true(token_table_count(&a.table) == VOCAB && w.session.rows <= rows);
        bigrams_close(&a);
        session_release(&w.session);
    }
}

static void a_broken_file_is_made_again(void **state) {
    World w;
    Bigrams b;
    char *bytes;
    size_t n;
    open_world(&w, *state);
    open_bigrams(&w, 5, 1, true, &b);
    need(&b, 0, 9);
    const char *path = folder_path(*state, strrchr(b.file.path, '/') + 1);
    bigrams_close(&b);
    assert_true(file_read(path, 1 << 20, &bytes, &n, NULL));
    bytes[n - 1] ^= 1;
    assert_true(file_write(path, bytes, n, NULL));
    mem_free(bytes);
    open_bigrams(&w, 5, 1, true, &b);
    check_rows(&w, &b, 0);
    need(&b, 2, 3);
    bigrams_close(&b);
    open_bigrams(&w, 5, 1, true, &b);
    check_rows(&w, &b, 3);
    bigrams_close(&b);
    session_release(&w.session);
}

static bool count_down(void *state, const char *what, double share) {
    (void)what, (void)share;
    return --*(int *)state >= 0;
}

// A whole table that is interrupted resumes with the rows that it had, which are whole.
static void an_interrupted_table_resumes(void **state) {
    World w;
    Bigrams b;
    int had = 0, rounds = 0;
    bool done = false;
    open_world(&w, *state);
    session_release(&w.session);
    null_session_open(&w.session,
                      &(NullSetup){.vocab = VOCAB, .context = CONTEXT, .masked = 3, .max_nodes = 16});
    for (; !done; rounds++) {
        MethodEnv env = w.env;
        int left = 14;
        Error e = {0};
        env.progress = w.session.progress = (Progress){count_down, &left};
        done = bigrams_open(&env, false, 3, 2, false, &b, &e);
        assert_int_equal(e.kind, done ? ERROR_NONE : ERROR_INTERRUPTED);
        w.session.progress = (Progress){0};
        bigrams_close(&b);
        open_bigrams(&w, 3, 2, true, &b);
        assert_true(token_table_count(&b.table) > had);
        had = token_table_count(&b.table);
        check_rows(&w, &b, had);
        bigrams_close(&b);
    }
    assert_true(had == VOCAB && rounds > 2);
    session_release(&w.session);
}

static void a_plan_has_no_rows_on_demand(void **state) {
    for (int on_demand = 0; on_demand < 2; on_demand++) {
        World w;
        Bigrams b;
        Rehearsal r = {.backend = "null", .kernels = "none"};
        open_world(&w, *state);
        w.env.rehearsal = &r;
        open_bigrams(&w, 5, 1, on_demand, &b);
        assert_int_equal((int)r.rows, on_demand ? 0 : VOCAB);
        bigrams_close(&b);
        assert_int_equal(folder_count(*state), 0);
        session_release(&w.session);
    }
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(made_once),
        IN_FOLDER(a_larger_one_takes_the_place),
        IN_FOLDER(unigrams_too),
        IN_FOLDER(without_identity_nothing_is_kept),
        IN_FOLDER(a_cache_that_is_none_is_said),
        IN_FOLDER(rows_of_all_are_kept),
        IN_FOLDER(a_broken_file_is_made_again),
        IN_FOLDER(an_interrupted_table_resumes),
        IN_FOLDER(a_plan_has_no_rows_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
