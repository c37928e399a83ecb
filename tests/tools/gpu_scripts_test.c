// tools/gpu-check and tools/gpu-bench, which rarely see a GPU, on a fake program: a failing part is reported
// and counted, all others continue, measurements are in a complete file; launches that begin early are blamed
// where they're the cause. And without a GPU: one line.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Stands in for outpace: fast math crashes, batches end early, one model cannot be made; with $NO_GPU there
// is none, with $NO_EARLY nothing works but by OUTPACE_EARLY=no. $CARD has its kernels' name.
static const char PROGRAM[] =
    "#!/bin/bash\n"
    "point() { echo \"{\\\"tokens\\\": $1, \\\"context\\\": 100, \\\"median_s\\\": 2e-3, \\\"slowdown\\\": "
    "$2, "
    "\\\"gb_per_s\\\": 900.0, \\\"submit_s\\\": 1e-5, \\\"busy_s\\\": 1.9e-3}\"; }\n"
    "ended() { echo \"{\\\"version\\\": \\\"1\\\", \\\"points\\\": [$(point 1 1.0), $(point 8 1.5)], "
    "\\\"gpu\\\": "
    "{\\\"read_bytes_per_s\\\": 1000000000000.0}, \\\"kernels\\\": \\\"$CARD\\\"}\"; }\n"
    "case \"$*\" in\n"
    "'model synth tiny '*) mkdir -p \"$4\" && exit 0 ;;\n"
    "'model synth nosuch '*) echo 'no such shape' >&2; exit 2 ;;\n"
    "'model quantise '*' --bits 4') [ -e \"$3/config.json\" ] && cp -r \"$3\" \"$4\" && exit 0 ;;\n"
    "'model quantise '*) echo 'too many bits' >&2; exit 2 ;;\n"
    "'model synth '*) mkdir -p \"$4\" && echo '{\"num_hidden_layers\": 2}' >\"$4/config.json\"; exit 0 ;;\n"
    "bench*) [ -z \"$NO_GPU\" ] || { echo 'there is no GPU' >&2; exit 1; }\n"
    "    [ -z \"$NO_EARLY\" ] || [ \"$OUTPACE_EARLY\" = no ] || { echo 'a kernel failed' >&2; exit 1; }\n"
    "    ;;\n"
    "esac\n"
    "case \"$*\" in\n"
    "*fast*) echo 'fast is missing' >&2; exit 1 ;;\n"
    "*batch*--json) ended; echo 'a kernel failed' >&2; exit 1 ;;\n"
    "bench*--json) ended ;;\n"
    "verify*phi3*) echo 'token 3 differs'; exit 1 ;;\n"
    "esac\n"
    "exit 0\n";

// A profiler's line for each kernel that it's asked for, with the columns that rules have after the value. It
// is not asked for the kernels of a prompt.
static const char PROFILER[] =
    "#!/bin/bash\n"
    "[[ \"$*\" == *'--tokens 1 --context 0 '* ]] || exit 1\n"
    "[[ \"$*\" =~ 'launch-count '([0-9]+) ]] && for i in $(seq ${BASH_REMATCH[1]}); do echo "
    "'\"1\",\"product<8, 4, 4>(Product, "
    "int)\",\"x\",\"y\",\"z\",\"gpu__time_duration.sum\",\"ns\",\"1,000.00\",\"\",\"\"'; done\n";

static void write_program(const char *folder, const char *name, const char *text) {
    const char *path = folder_path(folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f) | chmod(path, 0700), 0);
}

static int set_up(void **state) {
    if (folder_setup(state)) return -1;
    write_program(*state, "program", PROGRAM);
    write_program(*state, "ncu", PROFILER);
    return 0;
}

// Runs a command in the folder; $0 in it is the repository.
static int run_in(const char *folder, Child *c, const char *command) {
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL);
    assert_non_null(here);
    const char *argv[] = {"bash", "-c", command, here, NULL};
    child_run(c, folder, NULL, argv);
    free(here);
    return c->code;
}

static void expect(const Child *c, const char *words) {
    if (!strstr(text_get(&c->out), words)) fail_msg("wanted '%s' in: %s", words, text_get(&c->out));
}

static void bench_goes_on(void **state) {
    Child c;
    json_error_t where;
    assert_int_equal(
        run_in(*state, &c,
               "export OUTPACE_SCRATCH=. PATH=.:$PATH; SHAPES='llama2-7b nosuch two' $0/tools/gpu-bench "
               "./program out"),
        6); // batch and fast of two models, sequences of one, and a model that cannot be made
    expect(&c, "llama2-7b, batch: a kernel failed (exit 1)");
    expect(&c, "llama2-7b, sequences: a kernel failed (exit 1)");
    expect(&c, "two, fast: fast is missing (exit 1)");
    expect(&c, "nosuch: no such shape");
    expect(&c,
           "exact     8 rows     2.000 ms  slowdown  1.500    900 GB/s,  90% of reading  host  10.0 us, idle "
           "100.0 us");
    expect(&c, "gaps   18 kernels alone 0.018 ms, in a step of 2.000 ms: 99.1% between them");
    expect(&c, "two           2.000 ms   90.0%");
    expect(&c, "6 failed or had no time");
    assert_string_equal(text_get(&c.err), "");
    child_release(&c);
    assert_int_equal(
        run_in(*state, &c, "ls out | wc -l; cp out/llama2-7b-*.json one.json; ls -d tmp.* 2>/dev/null"), 2);
    assert_string_equal(text_get(&c.out), "2\n");
    child_release(&c);
    json_t *root = json_load_file(folder_path(*state, "one.json"), 0, &where);
    if (!root) fail_msg("not JSON: line %d: %s", where.line, where.text);
    assert_int_equal(json_array_size(json_object_get(json_object_get(root, "batch"), "points")), 2);
    assert_non_null(json_object_get(root, "exact"));
    assert_non_null(json_object_get(root, "kernels_alone"));
    assert_non_null(json_object_get(root, "late"));
    assert_non_null(json_object_get(root, "sequences"));
    assert_null(json_object_get(root, "fast"));
    json_decref(root);
}

// Weights of 8 and 4 bits: exact math alone, one JSON each.
static void bench_of_codes(void **state) {
    Child c;
    assert_int_equal(
        run_in(*state, &c, "export OUTPACE_SCRATCH=.; SHAPES='one:4 one:8' $0/tools/gpu-bench ./program out"),
        1);
    expect(&c, "one:4, ");
    expect(&c, "exact     8 rows");
    expect(&c, "one:8: too many bits");
    expect(&c, "one:4         2.000 ms   90.0%");
    if (strstr(text_get(&c.out), "batch:")) fail_msg("a batch of coded weights: %s", text_get(&c.out));
    child_release(&c);
    assert_int_equal(run_in(*state, &c, "ls out/one-4-*.json | wc -l; ls -d tmp.* 2>/dev/null"), 2);
    assert_string_equal(text_get(&c.out), "1\n");
    child_release(&c);
}

static void bench_keeps_to_its_time(void **state) {
    Child c;
    assert_int_equal(
        run_in(*state, &c,
               "export OUTPACE_SCRATCH=.; LIMIT=15 SHAPES='one two' $0/tools/gpu-bench ./program late"),
        2);
    expect(&c, "one: no time left");
    child_release(&c);
}

static void check_counts(void **state) {
    Child c;
    assert_int_equal(run_in(*state, &c,
                            "mkdir -p tests golden/phi3 golden/llama; for t in exact top bad; do printf "
                            "'#!/bin/bash\\n[ ${0##*/} != bad_test ]\\n' >tests/${t}_test; chmod +x "
                            "tests/${t}_test; done; cp tests/top_test tests/product_test; cp tests/top_test "
                            "tests/attention_test; printf '#!/bin/bash\\n[ \"$OUTPACE_EARLY\" = no ]\\n' "
                            ">tests/soon_test; chmod +x tests/soon_test; "
                            "GOLDEN=golden $0/tools/gpu-check ./program tests log"),
                     4); // two tests, and phi3 in two arithmetics
    expect(&c, "kernels: exact\n");
    expect(&c, "kernels: bad (exit 1)\n");
    expect(&c, "kernels: soon (exit 1, ok with OUTPACE_EARLY=no)\n");
    expect(&c, "verify: phi3, bf16 (exit 1)\n       token 3 differs\n");
    expect(&c, "verify: llama, f32\n");
    expect(&c, "left out         fast: fast is missing\n");
    expect(&c, "4 failed or had no time");
    child_release(&c);
    assert_int_equal(run_in(*state, &c, "grep -A1 '^=== verify: phi3, bf16 (exit 1)$' log"), 0);
    expect(&c, "\ntoken 3 differs\n");
    child_release(&c);
}

static void without_early_launches(void **state) {
    Child c;
    assert_int_equal(run_in(*state, &c,
                            "export OUTPACE_SCRATCH=. NO_EARLY=1 PATH=.:$PATH; SHAPES=one $0/tools/gpu-bench "
                            "./program none"),
                     3); // early launches, batch and fast
    expect(&c, "a kernel failed\nthe first step: all that follows is with OUTPACE_EARLY=no\n");
    expect(&c, "exact     8 rows");
    child_release(&c);
    assert_int_equal(
        run_in(*state, &c, "mkdir empty; NO_EARLY=1 GOLDEN=empty $0/tools/gpu-check ./program empty"),
        5); // they, and tests that are not there
    expect(&c,
           "a kernel failed\nFAILED      0 s  the first step: all that follows is with OUTPACE_EARLY=no\n");
    child_release(&c);
}

// What does not end, not even when it is asked to, is told so.
static void what_hangs(void **state) {
    Child c;
    assert_int_equal(
        run_in(
            *state, &c,
            "mkdir none; for t in exact product attention; do printf '#!/bin/bash\\n' >none/${t}_test; done; "
            "printf 'trap : TERM\\nwhile :; do sleep 1; done\\n' >>none/product_test; chmod +x none/*; "
            "EACH=1 GOLDEN=none $0/tools/gpu-check ./program none"),
        1);
    expect(&c, "kernels: product (not ended in 1 seconds)\n");
    assert_string_equal(text_get(&c.err), "");
    child_release(&c);
}

// A sanitizer that does not know the card is left out, and no failure.
static void a_sanitizer_that_refuses(void **state) {
    Child c;
    write_program(*state, "compute-sanitizer",
                  "#!/bin/bash\necho '========= Error: Device not supported.'\nexit 1\n");
    assert_int_equal(run_in(*state, &c,
                            "mkdir none; for t in exact product attention; do printf '#!/bin/bash\\n' "
                            ">none/${t}_test; chmod +x none/${t}_test; done; "
                            "PATH=.:$PATH GOLDEN=none $0/tools/gpu-check ./program none"),
                     0);
    expect(&c, "left out         memcheck: ========= Error: Device not supported.\n");
    expect(&c, "left out         racecheck: ========= Error: Device not supported.\n");
    child_release(&c);
}

static void no_gpu(void **state) {
    static const char *const commands[] = {"NO_GPU=1 $0/tools/gpu-check ./program tests",
                                           "NO_GPU=1 OUTPACE_SCRATCH=. $0/tools/gpu-bench ./program none"};
    for (int i = 0; i < 2; i++) {
        Child c;
        assert_int_equal(run_in(*state, &c, commands[i]), 1);
        assert_string_equal(text_get(&c.out), "there is no GPU\n");
        child_release(&c);
    }
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
        cmocka_unit_test_setup_teardown(bench_goes_on, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(bench_of_codes, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(bench_keeps_to_its_time, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(check_counts, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(without_early_launches, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(a_sanitizer_that_refuses, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(what_hangs, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(an_old_toolkit_is_passed_over, set_up, folder_teardown),
        cmocka_unit_test_setup_teardown(no_gpu, set_up, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
