// Every method samples the model's own distribution from a warm state (tests/support/sampling_cells.h): few
// draws a cell here, 200,000 in `make test-long`.
#include "tests/support/check.h"
#include "tests/support/sampling_cells.h"

static void every_cell(void **state) {
    (void)state;
    sampling_cells(500);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
