// The file of measured cuttings: lines that no lab writes are refused by number, and a line reaches the
// matrices of its shape for launches of its size alone. That the numbers are the same is product_test's.
#include "tests/support/check.h"

#include "engine/cuda/kernels/product.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_and_applied(void **state) {
    static const struct {
        const char *line, *why;
    } bad[] = {{"22016 4096 16 64", "line 2"},
               {"22016 4096 16 63 5", "line 2"},
               {"22016 4096 16 64 99", "line 2"},
               {"22016 4096 16 128 1", "line 2"}};
    const char *path = folder_path(*state, "file");
    Choices c;
    Matrix m = {.rows = 22016, .columns = 4096, .form = FORM_PACKED},
           other = {.rows = 4096, .columns = 4096, .form = FORM_PACKED};
    setenv("OUTPACE_PRODUCTS", path, 1);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        bool good = i == sizeof bad / sizeof *bad;
        Error e = {0};
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fprintf(f, "# a card\n%s\n", good ? "22016 4096 16 64 5 # deep" : bad[i].line);
        fclose(f);
        bool ok = choices_read(&c, &e);
        if (ok != good || (!good && !strstr(e.text, bad[i].why)))
            fail_msg("line %zu: read: %d, '%s'", i, ok, e.text);
    }
    unsetenv("OUTPACE_PRODUCTS");
    choices_apply(&c, &m);
    choices_apply(&c, &other);
    assert_int_equal(m.cut[cut_size(33)], CUT_64_DEEP);
    assert_int_equal(m.cut[cut_size(65)], CUT_BY_ROWS);
    assert_int_equal(other.cut[cut_size(33)], CUT_BY_ROWS);
}

static void none(void **state) {
    (void)state;
    Choices c = {.count = 7};
    Error e = {0};
    assert_true(choices_read(&c, &e));
    assert_int_equal(c.count, 0);
    setenv("OUTPACE_PRODUCTS", "/nosuch", 1);
    assert_false(choices_read(&c, &e));
    assert_string_equal(e.text,
                        "cannot read '/nosuch', which OUTPACE_PRODUCTS names: No such file or directory");
    unsetenv("OUTPACE_PRODUCTS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(read_and_applied, folder_setup, folder_teardown),
        cmocka_unit_test(none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
