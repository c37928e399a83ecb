// The program with batches on a simulated card (tests/simt): outputs of shared steps are those of runs of one
// sequence, greedy ones by verify and sampled ones by their distribution; bench times shared steps.
#include "tests/support/check.h"

#include "engine/model/make/synth.h"
#include "tests/support/child.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char program[4096];

// The program is in the build's folder simt/, three above this one's.
static int set_up(void **state) {
    Error e = {0};
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && program[--n] != '/') {}
    snprintf(program + n, 64, "/simt/outpace");
    FILE *f = fopen(folder_path(*state, "own.txt"), "w");
    if (!f || fputs("text one\ntext two of it\nthree\nfour\n", f) < 0 || fclose(f)) return -1;
    return model_synth(folder_path(*state, "m"), &(SynthOptions){.shape = "tiny"}, &e) ? 0 : -1;
}

static void run(Child *c, const char *folder, const char *const *words) {
    child_run(c, folder, NULL, words);
    if (c->code) fail_msg("%s: exit code %d\n%s%s", words[1], c->code, text_get(&c->out), text_get(&c->err));
}

static void texts_are_the_same(void **state) {
    const char *const words[] = {
        program,        "verify", "m",  "-f",         "own.txt",    "--device",  "cuda", "--batch", "3",
        "--max-tokens", "4",      "-m", "jacobi:m=3", "--sampling", "--context", "64",   NULL};
    Child c;
    run(&c, *state, words);
    if (!strstr(text_get(&c.out), "jacobi")) fail_msg("%s", text_get(&c.out));
    child_release(&c);
}

static void steps_are_timed(void **state) {
    const char *const words[] = {program, "bench",     "m",   "--device",  "cuda", "--tokens",
                                 "2",     "--batch",   "1,3", "--context", "9",    "--samples",
                                 "1",     "--seconds", "0",   "--json",    NULL};
    static const int batches[] = {1, 3};
    Child c;
    json_error_t where;
    run(&c, *state, words);
    json_t *root = json_loads(text_get(&c.out), 0, &where), *points = json_object_get(root, "points");
    assert_int_equal(json_array_size(points), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *point = json_array_get(points, i);
        assert_int_equal(json_integer_value(json_object_get(point, "batch")), batches[i]);
        assert_int_equal(json_integer_value(json_object_get(point, "tokens")), 2);
        assert_true(json_number_value(json_object_get(point, "layers_s")) >= 0);
    }
    json_decref(root);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_are_the_same, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(steps_are_timed, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
