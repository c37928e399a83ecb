// Pieces and ids both ways, on random texts, against a plain list.
#include "tests/support/check.h"

#include "engine/text/vocab.h"

#include <string.h>

enum { SIZE = 500 };

static void like_a_list(void **state) {
    (void)state;
    Random r = test_random(6);
    char texts[SIZE][8];
    size_t lengths[SIZE];
    Vocab v;
    assert_true(vocab_init(&v, SIZE, NULL));
    for (int id = 0; id < SIZE; id++) {
        int same;
        do { // bytes of few values, NUL among them, so that one text often starts another
            lengths[id] = (size_t)test_between(&r, 1, 7);
            for (size_t k = 0; k < lengths[id]; k++) texts[id][k] = (char)test_between(&r, 0, 3);
            for (same = 0; same < id; same++)
                if (lengths[same] == lengths[id] && memcmp(texts[same], texts[id], lengths[id]) == 0) break;
        } while (same < id);
        assert_int_equal(vocab_find(&v, texts[id], lengths[id]), -1);
        assert_true(vocab_add(&v, texts[id], lengths[id], id, "test", NULL));
    }
    for (int id = 0; id < SIZE; id++) {
        assert_int_equal(vocab_find(&v, texts[id], lengths[id]), id);
        assert_int_equal(v.pieces[id].length, lengths[id]);
        assert_memory_equal(v.pieces[id].text, texts[id], lengths[id]);
    }
    vocab_release(&v);
}

static void what_is_there_stays(void **state) {
    (void)state;
    Vocab v;
    Error e = {0};
    assert_true(vocab_init(&v, 4, NULL));
    assert_true(vocab_add(&v, "a", 1, 1, "FILE", &e));
    assert_true(vocab_add(&v, "a", 1, 1, "FILE", &e));
    assert_false(vocab_add(&v, "a", 1, 2, "FILE", &e));
    assert_string_equal(e.text, "the piece 'a' has two ids in 'FILE': 1 and 2");
    assert_false(vocab_add(&v, "b", 1, 1, "FILE", &e));
    assert_string_equal(e.text, "the id 1 belongs to two pieces in 'FILE': 'a' and 'b'");
    assert_int_equal(vocab_find(&v, "b", 1), -1);
    assert_true(vocab_name(&v, "b", 1, 2, "FILE", &e));
    assert_int_equal(vocab_find(&v, "b", 1), -1); // a name is not found
    assert_string_equal(v.pieces[2].text, "b");
    assert_false(vocab_name(&v, "c", 1, 2, "FILE", &e));
    vocab_release(&v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(like_a_list), cmocka_unit_test(what_is_there_stays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
