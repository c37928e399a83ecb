#include "tests/support/check.h"

#include "engine/base/text.h"

#include <math.h>
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
        text_release(&t);
        assert_true(t.data == NULL && t.length == 0 && t.capacity == 0);
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
    text_release(&t);
}

typedef struct Measured {
    double value, low, high;
    const char *wanted;
} Measured;

// The digits follow the interval; without one there are three.
static void measured(void **state) {
    (void)state;
    static const Measured CASES[] = {
        {1.9523, 1.913, 1.998, "1.95 [1.91, 2.00]"},
        {4.0712, 1.06, 6.76, "4.1 [1.1, 6.8]"},
        {1605.457, 1210, 1980, "1600 [1200, 2000]"},
        {1605.457, 1600, 1611, "1605 [1600, 1611]"},
        {0.3, 0.3, 0.3, "0.300 [0.300, 0.300]"},
        {1, 1, 1, "1.000 [1.000, 1.000]"},
        {-0.0213, -0.0301, -0.0116, "-0.021 [-0.030, -0.012]"},
        {1e-5, 0.9e-5, 1.2e-5, "0.0000100 [0.0000090, 0.0000120]"},
        {1605.457, NAN, NAN, "1605"},
        {1.9523, NAN, NAN, "1.95"},
        {12.3456, 12, NAN, "12.3"},
        {0.012345, NAN, NAN, "0.0123"},
        {0, NAN, NAN, "0"},
        {1e300, NAN, NAN, "1e+300"},
        {1e-300, -1e300, 1e300, "0.000000000 [-1e+300, 1e+300]"},
        {0.339, 0.19, 36, "0.3 [0.2, 36.0]"},
        {NAN, 1, 2, ""},
        {INFINITY, 1, 2, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const Measured *c = &CASES[i];
        char own[MEASURED_SIZE];
        Text t = {0};
        text_measured(&t, c->value, c->low, c->high);
        assert_string_equal(text_get(&t), c->wanted);
        measured_text(own, c->value, c->low, c->high);
        size_t n = strcspn(c->wanted, " ");
        if (!n) assert_string_equal(own, "-");
        else if (strlen(own) != n || memcmp(own, c->wanted, n) != 0)
            fail_msg("%g [%g, %g]: wanted %.*s, got %s", c->value, c->low, c->high, (int)n, c->wanted, own);
        text_release(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured),
        cmocka_unit_test(pieces),
        cmocka_unit_test(empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
