// The file of a table: there and back, every broken byte and length refused; and when one that is kept
// serves.
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/decode/model_tables.h"

#include <string.h>

enum { VOCAB = 50 };

static void fill(TokenTable *t, int tokens, int k, int w, Random *r) {
    assert_true(token_table_init(t, tokens, k, w, NULL));
    for (int i = 0; i < tokens * k * w; i++)
        if (test_between(r, 0, 9)) t->ids[i] = test_between(r, 0, VOCAB - 1);
}

static void check_same(const TokenTable *a, const TokenTable *b) {
    assert_true(a->tokens == b->tokens && a->k == b->k && a->w == b->w);
    assert_memory_equal(a->ids, b->ids, (size_t)(a->tokens * a->k * a->w) * sizeof(int));
}

static void there_and_back(void **state) {
    Random r = test_random(130);
    assert_true(file_make_directory(folder_path(*state, "a/b/c"), NULL));
    for (int round = 0; round < 30; round++) {
        TokenTable t, back;
        TableFile file;
        int tokens = test_between(&r, 1, VOCAB);
        fill(&t, tokens, test_between(&r, 1, 6), test_between(&r, 1, 5), &r);
        assert_true(table_file_init(&file, folder_path(*state, "a/b/c"), "some", "made of this", NULL));
        assert_true(table_file_save(&file, &t, NULL));
        assert_true(table_file_load(&file, tokens, VOCAB, &back));
        check_same(&t, &back);
        token_table_release(&back);
        assert_false(table_file_load(&file, tokens + 1, VOCAB + 1, &back)); // of another vocabulary
        assert_null(back.ids);
        table_file_release(&file);
        token_table_release(&t);
    }
}

// Two keys whose names are cut to the same would share a file: the whole key is in it.
static void another_key_is_no_table(void **state) {
    Random r = test_random(131);
    TokenTable t, back;
    TableFile file;
    fill(&t, 7, 2, 3, &r);
    assert_true(table_file_init(&file, *state, "some", "these weights", NULL));
    assert_true(table_file_save(&file, &t, NULL));
    assert_true(table_file_load(&file, 7, VOCAB, &back));
    token_table_release(&back);
    file.key[SHA256_TEXT - 2] ^= 1;
    assert_false(table_file_load(&file, 7, VOCAB, &back));
    table_file_release(&file);
    assert_true(table_file_init(&file, *state, "some", "other weights", NULL));
    assert_false(table_file_load(&file, 7, VOCAB, &back));
    table_file_release(&file);
    token_table_release(&t);
}

static bool parses(const char *bytes, size_t n, Error *e) {
    TokenTable t;
    char key[SHA256_TEXT], *exact = mem_new(n, 1); // nothing after it: sanitizers see a read past the end
    memcpy(exact, bytes, n);
    *e = (Error){0};
    bool ok = token_table_parse(exact, n, "table", VOCAB, &t, key, e);
    assert_true(ok == (t.ids != NULL));
    token_table_release(&t);
    mem_free(exact);
    return ok;
}

static void broken_bytes_are_refused(void **state) {
    enum { KEY_AT = 24, KEY_END = KEY_AT + 64 };
    Random r = test_random(132);
    TokenTable t;
    TableFile file;
    Error e;
    size_t n;
    fill(&t, 6, 3, 2, &r);
    assert_true(table_file_init(&file, *state, "some", "x", NULL));
    assert_true(table_file_save(&file, &t, NULL));
    char *bytes = NULL;
    assert_true(file_read(file.path, 1 << 20, &bytes, &n, NULL));
    assert_true(parses(bytes, n, &e));
    for (size_t i = 0; i < n; i++) {
        assert_false(parses(bytes, i, &e)); // cut
        assert_int_equal(e.kind, ERROR_INPUT);
        if (i >= KEY_AT && i < KEY_END) continue; // compared by who loads it
        if (i >= 20 && i < KEY_AT) continue;      // means nothing yet
        char flipped = (char)(1 << test_between(&r, 0, 7));
        bytes[i] ^= flipped;
        if (parses(bytes, n, &e)) fail_msg("byte %zu may be anything", i);
        assert_non_null(strstr(e.text, "'table'"));
        bytes[i] ^= flipped;
    }
    bytes[n - 1] ^= 1;
    assert_true(file_write(file.path, bytes, n, NULL));
    TokenTable none;
    assert_false(table_file_load(&file, 6, VOCAB, &none));
    assert_null(none.ids);
    mem_free(bytes);
    table_file_release(&file);
    token_table_release(&t);
}

// Whose checksum is right, but whose ids are not.
static void foreign_ids_are_refused(void **state) {
    Random r = test_random(133);
    for (int id = -3; id < VOCAB + 3; id += VOCAB + 4) {
        TokenTable t, back;
        TableFile file;
        fill(&t, 4, 2, 2, &r);
        t.ids[7] = id < 0 ? -2 : VOCAB;
        assert_true(table_file_init(&file, *state, "some", "x", NULL));
        assert_true(table_file_save(&file, &t, NULL));
        assert_false(table_file_load(&file, 4, VOCAB, &back));
        t.ids[7] = VOCAB - 1;
        assert_true(table_file_save(&file, &t, NULL));
        assert_true(table_file_load(&file, 4, VOCAB, &back));
        token_table_release(&back);
        table_file_release(&file);
        token_table_release(&t);
    }
}

int main(void) {
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, folder_setup, folder_teardown)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(there_and_back),
        IN_FOLDER(another_key_is_no_table),
        IN_FOLDER(broken_bytes_are_refused),
        IN_FOLDER(foreign_ids_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
