#include "tests/support/check.h"

#include "engine/base/text.h"

#include <stdio.h>
#include <string.h>

// Random pieces of every way to add one, beside a plain array that is large enough.
static void pieces(void **state) {
    (void)state;
    enum { ROOM = 60000 };
    static char model[ROOM];
    Random r = test_random(1);
    for (int round = 0; round < 200; round++) {
        Text t = {0};
        size_t n = 0;
        while (n + 500 < (size_t)ROOM >> round % 12) {
            char piece[300];
            size_t length = random_below(&r, 300);
            for (size_t i = 0; i < length; i++) piece[i] = (char)test_between(&r, 1, 255);
            piece[length == 300 ? 299 : length] = 0;
            switch (test_between(&r, 0, 9)) {
            case 0:
                piece[length / 2] = 0; // bytes may be NUL
                                       // fall through
            case 1:
            case 2:
            case 3:
            case 4:
                text_add(&t, piece, length);
                memcpy(model + n, piece, length);
                n += length;
                break;
            case 5:
            case 6:
                text_puts(&t, piece);
                memcpy(model + n, piece, length);
                n += length;
                break;
            case 7:
            case 8:
                text_printf(&t, "%s|%d%%", piece, (int)length);
                n += (size_t)snprintf(model + n, ROOM - n, "%s|%d%%", piece, (int)length);
                break;
            default:
                if (test_between(&r, 0, 30)) break;
                size_t capacity = t.capacity;
                text_clear(&t);
                n = 0;
                assert_int_equal(t.capacity, capacity);
            }
            assert_int_equal(t.length, n);
            assert_memory_equal(text_get(&t), model, n);
            assert_int_equal(text_get(&t)[n], 0);
        }
        assert_false(t.failed);
        text_release(&t);
        assert_true(t.data == NULL && t.length == 0 && t.capacity == 0 && !t.failed);
    }
}

static void empty(void **state) {
    (void)state;
    Text t = {0};
    assert_string_equal(text_get(&t), "");
    text_clear(&t);
    text_release(&t);
    text_add(&t, NULL, 0);
    text_printf(&t, "%s", "");
    assert_string_equal(text_get(&t), "");
    assert_false(t.failed);
    text_release(&t);
}

// Sizes that cannot be are failures like any other, and a failure is for good.
static void impossible(void **state) {
    (void)state;
    for (size_t below = 0; below < 3; below++) {
        Text t = {0};
        text_puts(&t, "abc");
        text_add(&t, "x", SIZE_MAX - below);
        assert_true(t.failed);
        text_puts(&t, "def");
        text_printf(&t, "%d", 1);
        assert_string_equal(text_get(&t), "abc");
        text_clear(&t);
        text_puts(&t, "def");
        assert_true(t.failed);
        assert_string_equal(text_get(&t), "");
        text_release(&t);
        assert_false(t.failed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces),
        cmocka_unit_test(empty),
        cmocka_unit_test(impossible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
