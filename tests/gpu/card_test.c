// The probe and the lab on the simulated card (and the probe on nvcc's PTX), at tiny sizes: everything that
// it can execute is measured, all else is listed by name and nowhere else; every variant has the bits of
// today's kernel, and the engine takes the lab's choices.
#include "tests/support/check.h"

#include "engine/cuda/kernels/cutting.h"
#include "tests/support/child.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The programs are in the build's folders simt/ and, if there is an nvcc, ptx/, two above this one's.
static char program[4096];
static int find(void **state, const char *machine) {
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 3 && n > 0; up++)
        while (n > 0 && program[--n] != '/') {}
    snprintf(program + n, 64, "/%s/card", machine);
    return 0;
}
static int find_simt(void **state) { return find(state, "simt"); }
static int find_ptx(void **state) { return find(state, "ptx"); }

// From here, where the machine of build/ptx finds its files.
static json_t *run(const char *folder, const char *part) {
    Child c;
    json_error_t where;
    char out[4096], choice[4096];
    snprintf(out, sizeof out, "%s", folder_path(folder, "out.json"));
    snprintf(choice, sizeof choice, "%s", folder_path(folder, "choices"));
    const char *argv[] = {program, part, "--small", "-o", out, "--choice", choice, NULL};
    child_run(&c, ".", NULL, argv);
    if (c.code) fail_msg("card %s: exit %d: %s", part, c.code, text_get(&c.err));
    child_release(&c);
    json_t *root = json_load_file(out, 0, &where);
    if (!root) fail_msg("card %s: line %d: %s", part, where.line, where.text);
    return root;
}

static void probe(void **state) {
    static const char *const items[] = {"bits", "read",         "l2",      "prefetch", "wgmma",
                                        "gap",  "instructions", "latency", "decode",   "host"};
    static const char *const lacking[] = {"read: bulk copies", "l2: multicast",          "prefetch: into L2",
                                          "wgmma: registers",  "bits: wgmma, registers", "barrier: grid",
                                          "l2: near and far",  "latency: mbarrier"};
    json_t *root = run(*state, "probe"), *missing = json_object_get(root, "not_executed"), *row;
    size_t i;
    for (i = 0; i < sizeof items / sizeof *items; i++)
        if (!json_array_size(json_object_get(root, items[i])))
            fail_msg("wanted rows of '%s', got none", items[i]);
    for (i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        bool listed = false;
        for (size_t k = 0; k < json_array_size(missing); k++)
            listed |= strcmp(json_string_value(json_array_get(missing, k)), lacking[i]) == 0;
        if (!listed)
            fail_msg("wanted '%s' in not_executed, which has %zu names", lacking[i],
                     json_array_size(missing));
    }
    assert_int_equal(json_array_size(json_object_get(root, "barrier")), 0);
    json_array_foreach(json_object_get(root, "read"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "way")), "bulk copies") == 0)
        fail_msg("row %zu measures bulk copies", i);
    json_array_foreach(json_object_get(root, "wgmma"), i,
                       row) if (strcmp(json_string_value(json_object_get(row, "operand")), "shared") != 0 ||
                                !(json_real_value(json_object_get(row, "operations_per_s")) > 0))
        fail_msg("wgmma row %zu: %s, %g operations a second", i,
                 json_string_value(json_object_get(row, "operand")),
                 json_real_value(json_object_get(row, "operations_per_s")));
    json_array_foreach(json_object_get(root, "bits"), i,
                       row) if (json_integer_value(json_object_get(row, "differ_from_mma")))
        fail_msg("bits row %zu: %lld sums differ", i,
                 json_integer_value(json_object_get(row, "differ_from_mma")));
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "card"), "name")),
                        "SIMT shim");
    json_decref(root);
}

static void lab(void **state) {
    json_t *root = run(*state, "lab"), *row;
    size_t i, others[3] = {0}; // of weights of 4, 8 and 16 bits
    json_array_foreach(json_object_get(root, "products"), i, row) {
        const char *variant = json_string_value(json_object_get(row, "variant"));
        long long bits = json_integer_value(json_object_get(row, "bits"));
        others[bits / 8] += strcmp(variant, "today") != 0;
        if (!json_is_true(json_object_get(row, "same_bits")))
            fail_msg("%s of %s, %lld rows: other bits than today's", variant,
                     json_string_value(json_object_get(row, "shape")),
                     json_integer_value(json_object_get(row, "rows")));
    }
    for (i = 0; i < 3; i++)
        if (others[i] == 0)
            fail_msg("wanted variants of weights of 4, 8 and 16 bits, got %zu, %zu and %zu", others[0],
                     others[1], others[2]);
    json_decref(root);
    Choices c;
    Error e = {0};
    setenv("OUTPACE_PRODUCTS", folder_path(*state, "choices"), 1);
    if (!choices_read(&c, &e)) fail_msg("%s", e.text);
    unsetenv("OUTPACE_PRODUCTS");
}

// The same kernels as nvcc compiles them for other cards than 9.0a, which lack wgmma: nothing of it is
// measured.
static void on_ptx(void **state) {
    if (access(program, X_OK) != 0) skip(); // no nvcc
    json_t *root = run(*state, "probe");
    assert_true(json_array_size(json_object_get(root, "read")) > 0 &&
                json_array_size(json_object_get(root, "gap")) > 0);
    assert_int_equal(json_array_size(json_object_get(root, "wgmma")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "bits")), 0);
    json_decref(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(probe, find_simt, folder_teardown),
                                       cmocka_unit_test_setup_teardown(lab, find_simt, folder_teardown),
                                       cmocka_unit_test_setup_teardown(on_ptx, find_ptx, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
