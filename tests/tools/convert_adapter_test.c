// tools/convert-adapter: files written like torch's from the reference's own adapter and heads convert back
// to them, byte for byte, and run; broken or foreign files are refused in one line.
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <stdio.h>
#include <string.h>

// A shell's words in a folder of the test, with the tree's root as $0.
static void shell(Child *c, const char *folder, const char *command) {
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL);
    assert_non_null(here);
    const char *argv[] = {"sh", "-c", command, here, NULL};
    child_run(c, folder, NULL, argv);
    free(here); // realpath's own
}

static bool without_python(void) {
    Child c;
    shell(&c, NULL, "command -v python3");
    bool without = c.code != 0;
    child_release(&c);
    return without;
}

static void expect_done(const char *folder, const char *command) {
    Child c;
    shell(&c, folder, command);
    if (c.code) fail_msg("%s: code %d\n%s%s", command, c.code, text_get(&c.out), text_get(&c.err));
    child_release(&c);
}

// One line, with these words in it.
static void expect_refused(const char *folder, const char *command, const char *words) {
    Child c;
    shell(&c, folder, command);
    const char *said = text_get(&c.err), *end = strchr(said, '\n');
    if (!c.code || !strstr(said, words) || !end || end[1])
        fail_msg("%s: wanted one line with '%s', got (code %d)\n%s", command, words, c.code, said);
    child_release(&c);
}

#define CONVERT    "$0/tools/convert-adapter "
#define TORCH_FILE "python3 $0/tests/oracle/torch_file.py $0/models/"

// The adapter runs on the reference.
static void expect_runs(const char *folder, const char *method) {
    Child c = {0};
    expect_done(folder, "ln -s $0/models models");
    CHILD_OUTPACE(&c, folder, 0, "generate", "models/reference", "def add(a, b):", "--max-tokens", "8",
                  "--method", method, "--adapter", "made");
    child_release(&c);
}

static void heads(void **state) {
    if (without_python()) skip();
    expect_done(*state, TORCH_FILE "reference-medusa/model.safetensors medusa_lm_head.pt");
    expect_done(*state, CONVERT ". $0/models/reference made");
    expect_done(*state, "cmp made/model.safetensors $0/models/reference-medusa/model.safetensors");
    expect_runs(*state, "medusa");
}

static void adapter(void **state) {
    if (without_python()) skip();
    expect_done(*state, TORCH_FILE "reference-kangaroo-2/model.safetensors pytorch_model.bin layers.0.");
    expect_refused(*state, CONVERT "pytorch_model.bin $0/models/reference made", "--exit-layer");
    expect_done(*state, CONVERT "pytorch_model.bin $0/models/reference made --exit-layer 2");
    expect_done(*state, "cmp made/model.safetensors $0/models/reference-kangaroo-2/model.safetensors");
    expect_runs(*state, "kangaroo");
}

// A directory of the authors' form, whose weights are of three types of numbers.
static void eagle(void **state) {
    if (without_python()) skip();
    expect_done(*state, "mkdir in; cp $0/tests/fixtures/eagle/eagle3/config.json in; python3 "
                        "$0/tests/oracle/torch_file.py $0/tests/fixtures/eagle/eagle3/model.safetensors "
                        "in/pytorch_model.bin");
    expect_done(*state, CONVERT "in $0/build/golden/llama made");
    expect_done(*state, "cmp made/model.safetensors $0/tests/fixtures/eagle/eagle3/model.safetensors");
    Child c = {0};
    expect_done(*state, "ln -s $0/build/golden/llama model");
    CHILD_OUTPACE(&c, *state, 0, "generate", "model", "--ids", "5,6", "-n", "4", "-m", "eagle3", "--adapter",
                  "made");
    child_release(&c);
    expect_refused(*state, "rm in/config.json; " CONVERT "in model made",
                   "config.json next to EAGLE's weights");
}

static void refusals(void **state) {
    if (without_python()) skip();
    expect_refused(*state, CONVERT "none.bin $0/models/reference made", "there is no 'none.bin'");
    expect_refused(*state, "echo text >old.bin; " CONVERT "old.bin $0/models/reference made", "zip");
    expect_refused(*state, CONVERT ". nowhere made", "config.json");
    expect_refused(*state, CONVERT "$0/models/reference $0/models/reference made --exit-layer 2",
                   "neither Kangaroo's adapter nor Medusa's heads");
    expect_refused(
        *state,
        "printf 'cposix\\nsystem\\n(S\"touch ran\"\\ntR.' >data.pkl; python3 -m zipfile -c evil.pt "
        "data.pkl; " CONVERT "evil.pt $0/models/reference made",
        "posix.system");
    expect_done(*state, "test ! -e ran && test ! -e made");
    expect_done(*state, TORCH_FILE "reference-medusa/model.safetensors whole.pt");
    expect_refused(*state, "head -c 100000 whole.pt >half.pt; " CONVERT "half.pt $0/models/reference made",
                   "zip");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heads, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(adapter, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(eagle, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(refusals, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
