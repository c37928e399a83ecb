// The losses of a run as a table that is read again, and as a curve of letters.
#include "tests/support/check.h"

#include "harness/train/curve.h"

#include <math.h>
#include <string.h>

static void add(Curve *c, int step, double loss, double held_out) { curve_add(c, step, loss, held_out); }

static void a_table(void **state) {
    (void)state;
    Curve c = {0}, read = {0};
    Text text = {0};
    add(&c, 1, 3.5, NAN);
    add(&c, 2, 1.0 / 3, NAN);
    add(&c, 2, NAN, 2.5);
    add(&c, 4, NAN, 0.25);
    curve_write(&c, &text);
    assert_string_equal(text_get(&text),
                        "step\tloss\theld_out\n1\t3.5\t\n2\t0.33333333333333331\t2.5\n4\t\t0.25\n");
    curve_read(&read, text.data, text.length, 3);
    assert_int_equal(read.count, 2);
    assert_true(read.points[0].loss == 3.5 && isnan(read.points[0].held_out));
    assert_true(read.points[1].loss == 1.0 / 3 && read.points[1].held_out == 2.5);
    curve_release(&read);
    curve_read(&read, text.data, text.length, 9);
    assert_int_equal(read.count, 3);
    assert_true(isnan(read.points[2].loss) && read.points[2].held_out == 0.25);
    text_release(&text);
    curve_release(&read);
    curve_release(&c);
}

// Any bytes: points in order, or none.
static void random_bytes(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 2000; round++) {
        Curve c = {0};
        char text[80];
        int n = test_between(&r, 0, 79);
        for (int i = 0; i < n; i++) text[i] = "0123456789\t\t\t\n\n\n.e-x"[random_below(&r, 20)];
        curve_read(&c, text, (size_t)n, 1000);
        for (size_t i = 0; i < c.count; i++) {
            assert_true(c.points[i].step > 0 && c.points[i].step <= 1000);
            if (i) assert_true(c.points[i].step > c.points[i - 1].step);
        }
        curve_release(&c);
    }
}

static void letters(void **state) {
    (void)state;
    Curve c = {0};
    Text text = {0};
    add(&c, 1, 4, NAN);
    curve_draw(&c, &text);
    assert_int_equal(text.length, 0);
    for (int step = 2; step <= 100; step++) add(&c, step, 1 + 3.0 / step, step % 50 ? NAN : 2);
    curve_draw(&c, &text);
    const char *t = text_get(&text);
    assert_non_null(strstr(t, "|*\n"));
    assert_true(strstr(t, "*****") && strchr(t, 'o') < strstr(t, "*****"));
    assert_non_null(strstr(t, "+1 "));
    assert_non_null(strstr(t, " 100\n"));
    text_release(&text);
    curve_release(&c);
    for (int step = 1; step < 4; step++) add(&c, step, step == 1 ? INFINITY : NAN, NAN);
    curve_draw(&c, &text); // no number at all
    assert_int_equal(text.length, 0);
    curve_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_table), cmocka_unit_test(random_bytes),
                                       cmocka_unit_test(letters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
