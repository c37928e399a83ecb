// The output of commands on fixed inputs, compared with the recorded output (tests/transcript), so that every
// change shows. OUTPACE_GOLDEN=write records the new text; look at the difference before you commit it.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *line_end(const char *s) { return s + strcspn(s, "\n"); }

// The first line that differs, below the command that printed it.
static void fail_where(const char *got, const char *wanted) {
    const char *command = got;
    while (*got && *wanted) {
        size_t n = (size_t)(line_end(got) - got), m = (size_t)(line_end(wanted) - wanted);
        if (strncmp(got, "$ ", 2) == 0) command = got;
        if (n != m || memcmp(got, wanted, n) != 0) break;
        got += n + (got[n] != 0);
        wanted += m + (wanted[m] != 0);
    }
    fail_msg("%.*s\ngot:    %.*s\nwanted: %.*s", (int)(line_end(command) - command), command,
             (int)(line_end(got) - got), got, (int)(line_end(wanted) - wanted), wanted);
}

static void commands_print_what_they_did(void **state) {
    (void)state;
    Child c;
    char folder[512], script[600];
    const char *root = getenv("OUTPACE_ROOT"), *program = getenv("OUTPACE"),
               *golden = getenv("OUTPACE_GOLDEN");
    snprintf(folder, sizeof folder, "%s/tests/transcript", root ? root : ".");
    snprintf(script, sizeof script, "%s/run", folder);
    child_run(
        &c, NULL, NULL,
        (const char *const[]){"bash", script, program ? program : "./outpace", root ? root : ".", NULL});
    if (c.code) fail_msg("%s", text_get(&c.err));
    size_t size;
    if (golden && strcmp(golden, "write") == 0)
        scratch_write(folder, "golden.txt", text_get(&c.out), c.out.length);
    char *wanted = scratch_read(folder, "golden.txt", &size);
    if (strcmp(text_get(&c.out), wanted) != 0) fail_where(text_get(&c.out), wanted);
    mem_free(wanted);
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(commands_print_what_they_did)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
