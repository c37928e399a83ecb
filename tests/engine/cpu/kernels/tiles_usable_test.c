// Tiles that can't be used are refused in one line, with the fix; a processor without tiles gives no message.
#include "tests/support/check.h"

#include "engine/base/error.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/kernels/features.h"

#include <string.h>

static void words(void **state) {
    (void)state;
    static const struct {
        TilesState state;
        Trial tried;
        const char *word; // NULL: no message
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
        const char *message = tiles_refusal(rows[i].state, rows[i].tried);
        if (!message != !rows[i].word) fail_msg("row %zu gives '%s'", i, message ? message : "nothing");
        if (!message) continue;
        assert_non_null(strstr(message, rows[i].word));
        assert_null(strchr(message, '\n'));
    }
}

// The message for this machine, the set chosen and the result of --isa amx agree.
static void here(void **state) {
    (void)state;
    Error e = {0};
    const char *message = tiles_refused();
    const CpuOps *best = cpu_ops_find(NULL, NULL), *amx = cpu_ops_find("amx", &e);
    assert_int_equal(amx != NULL, tiles_usable());
    assert_int_equal(amx != NULL, strcmp(best->name, "amx") == 0);
    if (amx) assert_null(message);
    else assert_non_null(strstr(e.text, message ? message : "kernel set 'amx'"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
