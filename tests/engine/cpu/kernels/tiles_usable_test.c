// Tiles that cannot be used are refused with the mend, in one line; those that are not there without a word.
#include "tests/support/check.h"

#include "engine/base/error.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/kernels/tiles_usable.h"

#include <string.h>

static void words(void **state) {
    (void)state;
    static const struct {
        TilesState state;
        Trial tried;
        const char *word; // NULL: nothing is said
    } rows[] = {
        {TILES_NONE, TRIAL_NOT_RUN, NULL},
        {TILES_UNSAVED, TRIAL_NOT_RUN, "5.16"},
        {TILES_DENIED, TRIAL_NOT_RUN, "arch_prctl"},
        {TILES_GRANTED, TRIAL_PASSED, NULL},
        {TILES_GRANTED, TRIAL_FAILED, "wrongly"},
        {TILES_GRANTED, TRIAL_KILLED, "kill"},
        {TILES_GRANTED, TRIAL_NOT_RUN, "not be tried"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *said = tiles_refusal(rows[i].state, rows[i].tried);
        if (!said != !rows[i].word) fail_msg("row %zu says '%s'", i, said ? said : "nothing");
        if (!said) continue;
        assert_non_null(strstr(said, rows[i].word));
        assert_null(strchr(said, '\n'));
    }
}

// What is said of this machine, what is taken and what --isa amx is told agree.
static void here(void **state) {
    (void)state;
    Error e = {0};
    const char *said = tiles_refused();
    const CpuOps *best = cpu_ops_find(NULL, NULL), *amx = cpu_ops_find("amx", &e);
    assert_int_equal(amx != NULL, tiles_usable());
    assert_int_equal(amx != NULL, strcmp(best->name, "amx") == 0);
    if (amx) assert_null(said);
    else assert_non_null(strstr(e.text, said ? said : "kernel set 'amx'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
