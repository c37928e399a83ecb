// Two ranks on two cards of a simulated machine (tests/simt): the text is one card's, and each rank takes the
// card of its own number. Skipped where there is no mpirun.
#include "tests/support/check.h"

#include "engine/model/make/synth.h"
#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char program[4096];

// The program is in the build's folder simt/, three above this one's.
static int set_up(void **state) {
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && program[--n] != '/') {}
    snprintf(program + n, 64, "/simt/outpace");
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1); // tests may run as root, on a single core
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 1);
    return 0;
}

static bool has_mpi(void) {
    Child c;
    child_run(&c, NULL, NULL, (const char *const[]){"sh", "-c", "command -v mpirun", NULL});
    bool has = c.code == 0;
    child_release(&c);
    if (!has) print_message("no mpirun: ./setup mpi installs it\n");
    return has;
}

static void generate(Child *c, const char *folder, bool ranks, const char *temperature) {
    const char *const words[] = {"mpirun",    "-n",        "2",
                                 program,     "generate",  folder_path(folder, "m"),
                                 "1 2 1 2 1", "--method",  "lookahead:W=3,N=3,G=3,ranks=2",
                                 "-n",        "8",         "--device",
                                 "cuda",      "--context", "64",
                                 "-t",        temperature, ranks ? "--ranks" : NULL,
                                 "mpi",       NULL};
    child_run(c, folder, NULL, words + (ranks ? 0 : 3));
}

static void each_rank_has_a_card(void **state) {
    Child one, two;
    Error e = {0};
    if (!has_mpi()) skip();
    if (!model_synth(folder_path(*state, "m"), &(SynthOptions){.shape = "tiny"}, &e)) fail_msg("%s", e.text);
    setenv("OUTPACE_FAKE_GPUS", "90,90", 1);
    for (int sampled = 0; sampled < 2; sampled++) {
        generate(&one, *state, false, sampled ? "0.8" : "0");
        generate(&two, *state, true, sampled ? "0.8" : "0");
        if (one.code || two.code) fail_msg("%s%s", text_get(&one.err), text_get(&two.err));
        assert_string_equal(text_get(&two.out), text_get(&one.out));
        child_release(&one);
        child_release(&two);
    }
    setenv("OUTPACE_FAKE_GPUS", "90,75", 1); // the second one is of no use
    generate(&two, *state, true, "0");
    assert_int_not_equal(two.code, 0);
    if (!strstr(text_get(&two.err), "rank 1 of 2: cuda:1: 'SIMT shim' is of compute capability 7.5"))
        fail_msg("%s", text_get(&two.err));
    child_release(&two);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_rank_has_a_card, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
