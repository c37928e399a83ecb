// tools/gpu-steps: results/gpu/steps.md is what it prints of the files beside it, and h100-measured is still
// the fit to their steps. It reads what tools/card writes, too. tools/gpu-reckon: no step of reckoned.md is
// more than a tenth from its measurement.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A shell's words in a folder of the test, with the tree's root as $0 and the program as $OUTPACE.
static void shell(Child *c, const char *folder, const char *command) {
    const char *root = getenv("OUTPACE_ROOT"), *own = getenv("OUTPACE");
    char *here = realpath(root ? root : ".", NULL), *program = realpath(own ? own : "./outpace", NULL);
    assert_true(here && program);
    setenv("OUTPACE", program, 1);
    const char *argv[] = {"sh", "-c", command, here, NULL};
    child_run(c, folder, NULL, argv);
    free(here);
    free(program);
}

static bool without_python(void) {
    Child c;
    shell(&c, NULL, "command -v python3");
    bool without = c.code != 0;
    child_release(&c);
    return without;
}

static void expect(const char *folder, const char *command) {
    Child c;
    shell(&c, folder, command);
    if (c.code) fail_msg("%s: code %d\n%s%s", command, c.code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
}

static void the_page(void **state) {
    if (without_python()) skip();
    expect(*state, "$0/tools/gpu-steps >steps.md && diff $0/results/gpu/steps.md steps.md");
    expect(*state,
           "$0/tools/gpu-steps --errors >errors.md && sed -n '/^| machine | shape/,/^$/p' $0/docs/fit.md | "
           "diff - errors.md");
}

static void the_reckoned_page(void **state) {
    if (without_python()) skip();
    expect(*state, "$0/tools/gpu-reckon >reckoned.md && diff $0/results/gpu/reckoned.md reckoned.md");
}

// All numbers, to six digits; name and sources are others.
static void the_machine(void **state) {
    if (without_python()) skip();
    expect(*state, "$0/tools/gpu-steps --csv llama2-7b >steps.csv");
    expect(
        *state,
        "$OUTPACE fit --surface steps.csv --shape llama2-7b --on h100-measured --save fitted.json >/dev/null");
    expect(
        *state,
        "for f in fitted.json $0/configs/hardware/h100-measured.json; do sed -n 's/.*\"value\": \\([0-9.e-]*\\).*/\\1/p' $f | "
        "xargs printf '%.6g\\n' >${f##*/}.numbers; done; diff h100-measured.json.numbers fitted.json.numbers");
}

// Two rows of a shape that a card of another name ran: no machine prices them.
static void a_cards_file(void **state) {
    static const char FILE_OF_CARD[] =
        "{\"bench\": {\"stage\": {\"exit\": 0}, \"tiny.8\": {}, \"tiny.4\": {\"points\": ["
        "{\"layout\": \"chain\", \"batch\": 2, \"context\": 100, \"tokens\": 1, \"median_s\": 1e-3, \"floor_bandwidth_s\": 4e-4, \"disturbed\": false},"
        "{\"layout\": \"chain\", \"batch\": 2, \"context\": 100, \"tokens\": 16, \"median_s\": 2e-3, \"floor_bandwidth_s\": 4e-4, \"disturbed\": false}"
        "]}, \"tiny.exact\": {\"version\": \"1\", \"weights\": \"BF16\", \"prefill\": {\"tokens\": 64, \"seconds\": 0.25, \"tflop_per_s\": 3},"
        " \"machine\": {\"cores\": 2, \"cpu\": \"processor\", \"virtual_machine\": false}, \"gpu\": {\"read_bytes_per_s\": 1e12,"
        " \"operations_per_s_bf16\": 1e14, \"before\": {\"name\": \"Card\", \"driver\": \"1\", \"cuda\": \"13.0\"}}, \"points\": ["
        "{\"layout\": \"chain\", \"context\": 100, \"k\": 0, \"w\": 0, \"tokens\": 1, \"median_s\": 2e-3, \"floor_bandwidth_s\": 1e-3, \"disturbed\": true},"
        "{\"layout\": \"chain\", \"context\": 100, \"k\": 0, \"w\": 0, \"tokens\": 512, \"median_s\": 3e-3, \"floor_bandwidth_s\": 1e-3, \"disturbed\": false}"
        "]}}}";
    if (without_python()) skip();
    const char *path = folder_path(*state, "card-1.json");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(FILE_OF_CARD, f);
    assert_int_equal(fclose(f), 0);
    expect(*state, "$0/tools/gpu-steps card-1.json >page && grep -q '^## Card, card-1$' page && "
                   "grep -q '^| tiny | 100 | 2.00 | 50% | 1.50 |$' page && ! grep -q cuBLASLt page && "
                   "grep -q '^| tiny | 4 bits | 2 | 100 | 1.00 | 40% | 2.00 |$' page && "
                   "grep -q 'tiny 64 tokens in 250 ms' page");
    // The date of a name, and the newest steps of a shape.
    expect(
        *state,
        "sed 's/2e-3/1e-3/g' card-1.json >card-2026-01-02.json && cp card-1.json card-2026-01-01.json && "
        "$0/tools/gpu-steps card-2026-*.json >page && grep -c '^## Card, 2026-01-0[12]$' page | grep -qx 2 && "
        "$0/tools/gpu-steps --csv tiny card-2026-*.json | grep -qx '1,100,0,0,chain,0.001'");
    expect(
        *state,
        "! $0/tools/gpu-steps --csv nosuch 2>said && grep -q \"no file of results/gpu has steps of 'nosuch'\" said");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_page, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(the_reckoned_page, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(the_machine, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_cards_file, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
