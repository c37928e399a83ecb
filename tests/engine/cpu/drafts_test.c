// Models of tokens and hidden states on the CPU, with every kernel set.
#include "tests/support/check.h"
#include "tests/support/drafts_suite.h"

#include "engine/cpu/cpu.h"
#include "engine/cpu/kernels/ops.h"

static const ExactBackend CPU = {.backend = &cpu_backend, .open = cpu_open};

static void near_the_formulas(void **state) {
    (void)state;
    drafts_near_formulas(&CPU, 60);
}

static void a_tree_is_its_paths(void **state) {
    (void)state;
    for (size_t i = 0; i < cpu_ops_count(); i++) {
        bool available;
        ExactBackend b = CPU;
        b.isa = cpu_ops_at(i, &available)->name;
        if (available) drafts_exact(&b, 12);
    }
}

static void chances(void **state) {
    (void)state;
    drafts_chances(&CPU, 40);
}

static void captured_layers(void **state) {
    (void)state;
    drafts_captured(&CPU, 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(near_the_formulas),
                                       cmocka_unit_test(a_tree_is_its_paths), cmocka_unit_test(chances),
                                       cmocka_unit_test(captured_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
