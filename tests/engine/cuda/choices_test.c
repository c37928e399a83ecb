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

// The pieces that a product asks L2 for: beginnings of the next one's parts, never beyond it, at most so many
// bytes, of which nothing fits twice.
static void beginnings_of_the_next(void **state) {
    static const struct {
        int rows, pitch, splits, bits;
        size_t asked;
        int count, bytes; // wanted
    } rows[] = {{22016, 4096, 1, 0, 8 << 20, 1376, 2 * 2048}, {4096, 4096, 4, 0, 8 << 20, 1024, 4 * 2048},
                {4096, 11008, 4, 4, 4 << 20, 1024, 8 * 512},  {128256, 4096, 1, 0, 4 << 20, 2048, 2048},
                {400, 128, 1, 0, 8 << 20, 25, 2 * 2048},      {4096, 4096, 4, 8, 1 << 20, 1024, 1024},
                {300, 64 * 7, 2, 0, 1 << 20, 19, 7 * 2048},   {22016, 4096, 1, 0, 2048, 1, 2048}};
    static const struct {
        const char *wanted;
        size_t l2, bytes;
    } asked[] = {{NULL, 50 << 20, 0},
                 {"", 50 << 20, 0},
                 {"0", 50 << 20, 0},
                 {"8", 50 << 20, 8 << 20},
                 {"99999999999999999999", 50 << 20, 12 << 20},
                 {"x", 50 << 20, 0},
                 {"4", 3 << 20, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Matrix m = {.rows = 1}, next = {.data = (void *)4096,
                                        .rows = rows[i].rows,
                                        .columns = rows[i].pitch,
                                        .pitch = rows[i].pitch,
                                        .form = FORM_PACKED,
                                        .splits = rows[i].splits,
                                        .bits = rows[i].bits,
                                        .group = 32};
        prefetch_next(&m, &next, rows[i].asked);
        const Prefetch *p = &m.next;
        size_t tile = (size_t)next.pitch * 16 * (size_t)(next.bits ? next.bits : 16) / 8,
               all = tile * (size_t)(next.rows + 15) / 16;
        if (p->count != rows[i].count || p->bytes != rows[i].bytes)
            fail_msg("row %zu: %d pieces of %d", i, p->count, p->bytes);
        assert_ptr_equal(p->from, next.data);
        assert_true((size_t)p->bytes <= p->step &&
                    p->step * (size_t)(p->count - 1) + (size_t)p->bytes <= all);
        assert_true((size_t)p->count * (size_t)p->bytes <= rows[i].asked);
        assert_int_equal(tile % p->step, 0);
    }
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const GpuFacts card = {.l2_bytes = asked[i].l2};
        if (asked[i].wanted) setenv("OUTPACE_PREFETCH", asked[i].wanted, 1);
        if (prefetch_bytes(&card) != asked[i].bytes) fail_msg("row %zu: %zu", i, prefetch_bytes(&card));
        unsetenv("OUTPACE_PREFETCH");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(read_and_applied, folder_setup, folder_teardown),
        cmocka_unit_test(none), cmocka_unit_test(beginnings_of_the_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
