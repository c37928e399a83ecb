// The line of a run: the time that is left, once it can be known.
#include "harness/run/run.h"
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Writes a line now, as if the last one were long ago.
static void write_now(Reporter *r, int method) {
    r->line = (Line){.on = true};
    reporter_place(r, &(ReporterPlace){.model = "m",
                                       .dataset = "d",
                                       .first_point = 1,
                                       .last_point = 4,
                                       .method = method,
                                       .methods = 4,
                                       .prompts = 9,
                                       .S = NAN,
                                       .speedup = NAN});
}

// In the middle of the first round, nobody knows how fast the other methods are.
static void time_is_left_after_a_round(void **state) {
    static const char *const WANT[] = {"5%, points 1-4 of 4, m, d 1/9", "15%, 19 min left, points 1-4 of 4"};
    FILE *text = fopen(folder_path(*state, "stderr"), "w+");
    int own = dup(STDERR_FILENO);
    Reporter r;
    assert_true(text && own >= 0 && dup2(fileno(text), STDERR_FILENO) >= 0);
    reporter_begin(&r, false, 4, 100, NULL);
    for (int round = 0; round < 2; round++) {
        reporter_round(&r, 10);
        r.round_began -= 100; // seconds
        write_now(&r, 2);
        reporter_round_end(&r);
    }
    assert_true(dup2(own, STDERR_FILENO) >= 0);
    close(own);
    rewind(text);
    for (int i = 0; i < 2; i++) {
        char line[200] = "";
        assert_non_null(fgets(line, sizeof line, text));
        if (strncmp(line, WANT[i], strlen(WANT[i])) != 0) fail_msg("wanted '%s..', got '%s'", WANT[i], line);
    }
    fclose(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(time_is_left_after_a_round, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
