// `outpace doctor` on machines with several GPUs, with a useless one, and with none; the program's lines
// about a GPU's memory (tests/simt).
#include "tests/support/check.h"

#include "engine/cuda/device.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The program lies in the build's folder simt/, three above this one's.
static int find_program(void **state) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0 || folder_setup(state)) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && path[--n] != '/') {}
    snprintf(path + n, 64, "/simt/outpace");
    return setenv("OUTPACE", path, 1);
}

static int count(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what)) n++;
    return n;
}

static void expect(const Child *c, int times, const char *what) {
    if (count(text_get(&c->out), what) != times)
        fail_msg("wanted %d of '%s' in:\n%s", times, what, text_get(&c->out));
}

// A block each; one that is of no use hides no other.
static void every_gpu_has_a_block(void **state) {
    Child c;
    setenv("OUTPACE_FAKE_GPUS", "75,90,80", 1);
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--threads", "1");
    expect(&c, 1, "GPU         cuda:0: 'SIMT shim' is of compute capability 7.5, at least 8.0 is needed");
    expect(&c, 1, "GPU         cuda:1: SIMT shim, 1.1 GB");
    expect(&c, 1, "GPU         cuda:2: SIMT shim, 1.1 GB");
    expect(&c, 2, "GPU kernels ");
    expect(&c, 2, "GPU now     ");
    expect(&c, 1, "GPU code    machine code for 9.0\n");
    expect(&c, 1, "GPU code    machine code for 8.0\n");
    child_release(&c);
}

static void code_is_the_drivers_choice(void **state) {
    static const char SHIPPED[] = "sm_80 sm_90a compute_90", PTX[] = "compute_80 compute_90a compute_90";
    static const struct {
        const char *codes;
        int major, minor;
        CardCode want;
    } rows[] = {
        {SHIPPED, 8, 0, {80, false}},
        {SHIPPED, 8, 6, {80, false}},
        {SHIPPED, 8, 9, {80, false}},
        {SHIPPED, 9, 0, {90, false}},
        {SHIPPED, 10, 0, {90, true}},
        {SHIPPED, 12, 0, {90, true}},
        {PTX, 8, 9, {80, true}},
        {PTX, 9, 0, {90, true}},
        {PTX, 10, 3, {90, true}},
        {"sm_80 sm_90a sm_100 sm_120 compute_90", 10, 3, {100, false}},
        {"sm_80 sm_90a sm_100 sm_120 compute_90", 11, 0, {90, true}},
        {"sm_80 sm_90a sm_100 sm_120 compute_90", 12, 1, {120, false}},
        {"sm_89 compute_80 compute_90a compute_90", 8, 6, {80, true}},
        {"sm_80 sm_86 compute_90", 8, 9, {86, false}},
        {"sm_90a", 8, 0, {0, true}},
        {"sm_90a", 10, 0, {0, true}},
        {"sm_90a compute_90a", 12, 0, {0, true}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CardCode got = device_code(rows[i].codes, rows[i].major, rows[i].minor);
        if (got.version != rows[i].want.version || got.compiles != rows[i].want.compiles)
            fail_msg("'%s' on %d.%d: %d, %d", rows[i].codes, rows[i].major, rows[i].minor, got.version,
                     got.compiles);
    }
}

// Half a minute without a sign looks like a hang: a line comes before it, and doctor has it, too.
static void compiling_is_told(void **state) {
    static const char *const cards[] = {"80", "90", "120"};
    Child c;
    Error e = {0};
    if (!model_synth(folder_path(*state, "small"), &(SynthOptions){.shape = "tiny"}, &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < 3; i++) {
        setenv("OUTPACE_FAKE_GPUS", cards[i], 1);
        CHILD_OUTPACE(&c, *state, 0, "generate", "small", "--ids", "1,2", "-n", "2", "--device", "cuda");
        int told =
            count(text_get(&c.err), "note: this build has no machine code for the SIMT shim: the driver "
                                    "compiles its PTX for 9.0 at the first use, about half a minute");
        if (told != (i == 2)) fail_msg("%s: %s", cards[i], text_get(&c.err));
        child_release(&c);
    }
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--threads", "1");
    expect(&c, 1, "GPU code    PTX for 9.0, which the driver compiles at its first use: about half a minute");
    child_release(&c);
    setenv("OUTPACE_FAKE_CODES", "sm_90a", 1);
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--threads", "1");
    unsetenv("OUTPACE_FAKE_CODES");
    expect(&c, 1, "GPU code    none for 12.0\n");
    child_release(&c);
}

static void none(void **state) {
    Child c;
    setenv("OUTPACE_FAKE_GPUS", "", 1);
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--threads", "1");
    expect(&c, 1, "GPU         none: cuda:0: this machine has no NVIDIA GPU, or no driver for it;");
    expect(&c, 1, "GPU  ");
    child_release(&c);
}

static void json_has_a_list(void **state) {
    Child c;
    setenv("OUTPACE_FAKE_GPUS", "90,75,90", 1);
    CHILD_OUTPACE(&c, *state, 0, "doctor", "--threads", "1", "--json");
    json_t *root = json_loads(text_get(&c.out), 0, NULL), *gpus = json_object_get(root, "gpus");
    assert_int_equal(json_array_size(gpus), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *gpu = json_array_get(gpus, i);
        const char *device = json_string_value(json_object_get(gpu, "device"));
        assert_true(device && device[5] - '0' == (int)i);
        assert_true((json_object_get(gpu, "error") != NULL) == (i == 1));
        if (i == 1) continue;
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        assert_true(uuid && uuid[strlen(uuid) - 1] - '1' == (int)i);
        assert_true(json_real_value(json_object_get(gpu, "read_bytes_per_s")) > 0);
        assert_true(json_real_value(json_object_get(gpu, "copy_bytes_per_s")) > 0);
    }
    json_decref(root);
    child_release(&c);
}

// Where the model's own context has no room, `generate` takes less and says so.
static void a_cut_context_is_told(void **state) {
    static const char *const sets[] = {"max_position_embeddings=16777216"};
    Child c;
    Error e = {0};
    unsetenv("OUTPACE_FAKE_GPUS");
    if (!model_synth(folder_path(*state, "long"),
                     &(SynthOptions){.shape = "tiny", .sets = sets, .set_count = 1}, &e))
        fail_msg("%s", e.text);
    CHILD_OUTPACE(&c, *state, 0, "generate", "long", "--ids", "1,2", "-n", "2", "--device", "cuda");
    if (!strstr(text_get(&c.err), "note: 'long' holds a context of ") ||
        !strstr(text_get(&c.err), ", not 16777216: its device has no room; --context "))
        fail_msg("%s", text_get(&c.err));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gpu_has_a_block), cmocka_unit_test(code_is_the_drivers_choice),
        cmocka_unit_test(compiling_is_told),     cmocka_unit_test(none),
        cmocka_unit_test(json_has_a_list),       cmocka_unit_test(a_cut_context_is_told),
    };
    return cmocka_run_group_tests(tests, find_program, folder_teardown);
}
