// tools/card, which rarely sees a GPU: a rehearsal of both calls on the simulated card, at tiny sizes; and on
// fake programs, that a stage which fails or doesn't end is told, and the next begins; that launches which
// begin early are left out where they're the cause. Without a GPU: one line.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The simulated card's programs are in the build's folder simt/, three above this one's.
static char simt[4096];

// Stands in for outpace: with $NO_GPU there is none, with $NO_EARLY nothing works but by OUTPACE_EARLY=no.
static const char OUTPACE[] =
    "#!/bin/bash\n"
    "[ -z \"${NO_GPU:-}\" ] || { echo 'there is no GPU' >&2; exit 1; }\n"
    "[ -z \"${NO_EARLY:-}\" ] || [ \"${OUTPACE_EARLY:-}\" = no ] || { echo 'a kernel failed' >&2; exit 1; }\n"
    "echo '{\"points\": []}'\n";

// For `card`: a suite fails, the probe hangs, and the lab works.
static const char CARD[] = "#!/bin/bash\n"
                           "case $1 in\n"
                           "join) exec \"$REAL\" \"$@\" ;;\n"
                           "test) [ \"$2\" != codes ] || { echo 'sum 3 differs'; exit 1; } ;;\n"
                           "probe) trap : TERM; echo $$ >\"${0%/*}/pid\"; while :; do sleep 1; done ;;\n"
                           "lab) touch \"${@: -1}\"; echo '{\"products\": [1]}' ;;\n"
                           "esac\n";

static void write_program(const char *folder, const char *name, const char *text) {
    const char *path = folder_path(folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f) | chmod(path, 0700), 0);
}

static int set_up(void **state) {
    ssize_t n = readlink("/proc/self/exe", simt, sizeof simt - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 3 && n > 0; up++)
        while (n > 0 && simt[--n] != '/') {}
    snprintf(simt + n, 64, "/simt");
    write_program(*state, "outpace", OUTPACE);
    write_program(*state, "card", CARD);
    return 0;
}

// Runs a command in the folder; $0 in it is the repository, $SIMT the folder of the simulated card's
// programs.
static int run_in(const char *folder, Child *c, const char *command) {
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL), *programs = realpath(simt, NULL);
    assert_true(here && programs);
    setenv("SIMT", programs, 1);
    const char *argv[] = {"bash", "-c", command, here, NULL};
    child_run(c, folder, NULL, argv);
    free(here);
    free(programs);
    return c->code;
}

static void expect(const Child *c, const char *words) {
    if (!strstr(text_get(&c->out), words)) fail_msg("wanted '%s' in: %s", words, text_get(&c->out));
}

static json_t *results(const char *folder, const char *name) {
    json_error_t where;
    json_t *root = json_load_file(folder_path(folder, name), 0, &where);
    if (!root) fail_msg("%s is not JSON: line %d: %s", name, where.line, where.text);
    return root;
}

static void rehearse(const char *folder, int call, const char *const *parts, int count) {
    Child c;
    char command[256], name[64];
    snprintf(command, sizeof command, "SMALL=1 CARD_PROGRAMS=$SIMT $0/tools/card %d $PWD/out", call);
    if (run_in(folder, &c, command))
        fail_msg("call %d: exit %d: %s%s", call, c.code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    snprintf(name, sizeof name, "out/card-%d.json", call);
    json_t *root = results(folder, name);
    for (int i = 0; i < count; i += 2) {
        const json_t *stage = json_object_get(root, parts[i]),
                     *code = json_object_get(json_object_get(stage, "stage"), "exit");
        if (!json_is_integer(code) || json_integer_value(code) || !json_object_get(stage, parts[i + 1]))
            fail_msg("call %d: no result '%s' of stage %s", call, parts[i + 1], parts[i]);
    }
    json_decref(root);
}

static void a_rehearsal(void **state) {
    static const char *const first[] = {"gate",  "stage",  "anchors", "stage",       "probe",
                                        "probe", "lab",    "lab",     "bench",       "tiny.exact",
                                        "bench", "tiny.4", "bench",   "tiny.batches"};
    static const char *const second[] = {"heat",  "tiny",     "methods", "run",        "host",
                                         "stage", "counters", "stage",   "sanitizers", "stage"};
    Child c;
    rehearse(*state, 1, first, sizeof first / sizeof *first);
    rehearse(*state, 2, second, sizeof second / sizeof *second);
    json_t *root = results(*state, "out/card-1.json"),
           *bench = json_object_get(json_object_get(root, "bench"), "tiny.exact");
    assert_int_equal(json_array_size(json_object_get(bench, "points")), 2);
    json_decref(root);
    assert_int_equal(run_in(*state, &c, "ls out | wc -l"), 0); // as many as come back from a borrowed card
    if (atoi(text_get(&c.out)) > 8) fail_msg("%s files, wanted 8 at most", text_get(&c.out));
    child_release(&c);
}

static void goes_on(void **state) {
    Child c;
    int code =
        run_in(*state, &c, "REAL=$SIMT/card BUDGET=2 CARD_PROGRAMS=$PWD SHAPES=one $0/tools/card 1 $PWD/out");
    expect(&c, "FAILED  codes");
    expect(&c, "sum 3 differs");
    expect(&c, "--- gate: failed (exit 1)");
    expect(&c, "--- probe: not ended in 2 s");
    expect(&c, "--- lab: ok");
    expect(&c, "--- bench: ok");
    expect(&c, "2 stages failed");
    assert_int_equal(code, 2);
    child_release(&c);
    // one that ended may not have been waited for yet: it has no command line
    if (run_in(*state, &c, "tr -d '\\0' </proc/$(cat pid)/cmdline 2>&1 | grep probe") != 1)
        fail_msg("what hung was left running: %s", text_get(&c.out));
    child_release(&c);
    json_t *root = results(*state, "out/card-1.json");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json_object_get(root, "gate"), "stage"), "exit")),
        1);
    assert_non_null(json_object_get(json_object_get(json_object_get(root, "lab"), "lab"), "products"));
    assert_non_null(json_object_get(json_object_get(root, "bench"), "one.4"));
    json_decref(root);
}

static void without_early_launches(void **state) {
    Child c;
    assert_int_equal(
        run_in(*state, &c, "NO_EARLY=1 REAL=$SIMT/card CARD_PROGRAMS=$PWD $0/tools/card lab $PWD/out"), 0);
    expect(&c, "the first step: a kernel failed\nall that follows is with OUTPACE_EARLY=no\n");
    child_release(&c);
}

static void no_gpu(void **state) {
    Child c;
    assert_int_equal(run_in(*state, &c, "NO_GPU=1 CARD_PROGRAMS=$PWD $0/tools/card 1 $PWD/out"), 1);
    assert_string_equal(text_get(&c.out), "the first step: there is no GPU\n");
    child_release(&c);
}

// Stands in for ncu: of the kernels that bench launches, those whose names it was asked for.
static void counters_of_a_step(void **state) {
    static const char NCU[] =
        "#!/bin/bash\n"
        "while [ \"$1\" != --kernel-name ] && shift; do :; done\n"
        "printf '%s\\n' pack probe_read probe_wgmma probe_fma norm_rows product_narrow attention put_rows |\n"
        "    grep -xE \"${2#regex:}\"\n";
    Child c;
    write_program(*state, "ncu", NCU);
    if (run_in(*state, &c,
               "PATH=$PWD:$PATH REAL=$SIMT/card CARD_PROGRAMS=$PWD $0/tools/card counters $PWD/out"))
        fail_msg("exit %d: %s%s", c.code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
    json_t *root = results(*state, "out/card-counters.json");
    const char *kernels =
                   json_string_value(json_object_get(json_object_get(root, "counters"), "rows-16-100")),
               *wanted = "norm_rows\nproduct_narrow\nattention\nput_rows\n";
    if (!kernels || strcmp(kernels, wanted)) fail_msg("wanted %sgot %s", wanted, kernels ? kernels : "none");
    json_decref(root);
}

// Its budgets are within what a call may take.
static void a_plan(void **state) {
    Child c;
    assert_int_equal(run_in(*state, &c, "$0/tools/card plan"), 0);
    expect(&c, "of 375 s\ncall 2 takes at most 285 of 290 s\n");
    child_release(&c);
    assert_int_equal(run_in(*state, &c, "$0/tools/card nosuch"), 2);
    child_release(&c);
}

// A toolkit that is too old for 9.0 is no error for people who only want the CPU.
static void an_old_toolkit_is_passed_over(void **state) {
    Child c;
    write_program(*state, "nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n");
    assert_int_equal(
        run_in(*state, &c, "unset MAKEFLAGS; PATH=$PWD:$PATH make -s -C $0 BUILD=$PWD/build cuda-note"), 0);
    expect(&c, "/nvcc is 11.8 and 12.0 is the oldest that will do; building for the CPU\n");
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_plan, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(a_rehearsal, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(goes_on, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(counters_of_a_step, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(without_early_launches, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(an_old_toolkit_is_passed_over, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(no_gpu, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
