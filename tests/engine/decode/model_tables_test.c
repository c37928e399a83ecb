// When a table is made, and when a kept one is loaded; the kept table equals the one that was made.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"

#include "engine/base/file.h"
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
    TokenTable kept, fresh;
    MethodEnv alone = w->env;
    int before = w->made;
    Error e = {0};
    if (!bigram_table(&w->env, bos, k, length, &kept, &e)) fail_msg("%s", e.text);
    bool made = w->made > before;
    alone.cache = NULL;
    before = w->made;
    assert_true(bigram_table(&alone, bos, k, length, &fresh, NULL) && w->made > before);
    assert_true(kept.k >= (k < VOCAB - 3 ? k : VOCAB - 3) && kept.w >= length);
    check_same(&kept, &fresh, k < VOCAB - 3 ? k : VOCAB - 3, length);
    token_table_release(&kept);
    token_table_release(&fresh);
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
    TokenTable t;
    Error e = {0};
    open_world(&w, folder_path(*state, "file/below"));
    assert_true(file_write(folder_path(*state, "file"), "x", 1, NULL));
    assert_false(bigram_table(&w.env, false, 5, 1, &t, &e));
    assert_int_equal(w.made, 0); // before the work, not after
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_non_null(strstr(e.text, "cannot make the directory"));
    session_release(&w.session);
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(made_once),
        IN_FOLDER(a_larger_one_takes_the_place),
        IN_FOLDER(unigrams_too),
        IN_FOLDER(without_identity_nothing_is_kept),
        IN_FOLDER(a_cache_that_is_none_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
