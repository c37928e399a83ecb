// Greedy identity of every method (tests/support/greedy_cells.h) on a few models; `make test-long` has many.
#include "tests/support/check.h"
#include "tests/support/greedy_cells.h"

static void every_cell(void **state) {
    (void)state;
    greedy_cells(8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
