// The scripts for the reference family's text: its exclusions and its measures.
#include "tests/support/check.h"

#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>

// What a script makes of some text; `more` are words of awk before the input's.
static void expect(const char *script, const char *more, const char *text, const char *wanted) {
    const char *root = getenv("OUTPACE_ROOT");
    char *here = realpath(root ? root : ".", NULL), command[300];
    Child c;
    assert_non_null(here);
    snprintf(command, sizeof command, "LC_ALL=C awk -f $0/tools/reference/%s.awk %s -", script, more);
    const char *argv[] = {"sh", "-c", command, here, NULL};
    child_run(&c, NULL, text, argv);
    free(here); // realpath's own
    if (c.code || strcmp(text_get(&c.out), wanted) != 0)
        fail_msg("%s: wanted\n%s\ngot (code %d)\n%s%s", script, wanted, c.code, text_get(&c.out),
                 text_get(&c.err));
    child_release(&c);
}

#define TEN "one two three four five six seven eight nine ten "

// A repeat but for its numbers and marks, thirteen words of a prompt.
static void cleaning(void **state) {
    static const char PROMPT[] = "{\"q\": \"Zero " TEN "eleven\\ntwelve thirteen\"}\n";
    scratch_write(*state, "prompts", PROMPT, sizeof PROMPT - 1);
    char more[400];
    snprintf(more, sizeof more, "-v name=x %s prompts=0", folder_path(*state, "prompts"));
    expect("clean", more,
           TEN "eleven, twelve. Thirteen\n<|end|>\n" TEN "eleven, twelve.\n<|end|>\n"
               "The text that stays 1.\n<|end|>\nThe text, that stays 2.\n<|end|>\n",
           TEN "eleven, twelve.\n<|end|>\nThe text that stays 1.\n<|end|>\n");
}

// Every tenth document is held out. Of 18 others that are alike, what follows a known history has (18 + p) /
// 19 with p of the shorter one: 0.4912 without, 0.9732 of one word, 0.9986 of two.
static void variety(void **state) {
    (void)state;
    Text documents = {0};
    for (int i = 0; i < 20; i++) text_puts(&documents, "x\n<|end|>\n");
    expect("variety", "-v name=same -v most=1000", text_get(&documents),
           "| same | 20 | 0.00 | 0.027 | 0.001 | 0.000 | 0.000 | 0% |\n");
    text_release(&documents);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variety), cmocka_unit_test_setup_teardown(cleaning, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
