// The program that writes the reference family's text: the same bytes for a seed, and nothing held out in
// them.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void run(Child *c, int code, const char *words) {
    const char *root = getenv("OUTPACE_ROOT");
    char command[900], here[300]; // BUILD/tests/tools/reference/write_test
    const ssize_t n = readlink("/proc/self/exe", here, sizeof here - 1);
    assert_true(n > 0);
    here[n] = 0;
    snprintf(command, sizeof command, "cd %s && $(dirname %s)/../../../tools/reference/write %s",
             root ? root : ".", here, words);
    const char *argv[] = {"sh", "-c", command, NULL};
    child_run(c, NULL, NULL, argv);
    if (c->code != code) fail_msg("write %s: code %d\n%s", words, c->code, text_get(&c->err));
}

#define STORIES "tools/reference/names.txt tools/reference/stories.txt"

static void seeds(void **state) {
    (void)state;
    Child a, b, other;
    run(&a, 0, "text 50 7 " STORIES);
    run(&b, 0, "text 50 7 " STORIES);
    run(&other, 0, "text 50 8 " STORIES);
    assert_string_equal(text_get(&a.out), text_get(&b.out));
    assert_string_not_equal(text_get(&a.out), text_get(&other.out));
    int documents = 0;
    for (const char *s = text_get(&a.out); (s = strstr(s, "\n<|end|>\n")); s++) documents++;
    assert_int_equal(documents, 50);
    child_release(&a);
    child_release(&b);
    child_release(&other);
}

// The sets in datasets/small are what the grammars write.
static void sets(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"mathematics", "101"}, {"code", "102"}, {"stories", "103"}};
    for (int i = 0; i < 3; i++) {
        char words[300], file[100];
        const char *root = getenv("OUTPACE_ROOT");
        Child c;
        size_t size;
        snprintf(words, sizeof words,
                 "held-out 60 %s reference-%s %s tools/reference/names.txt tools/reference/%s.txt",
                 rows[i][1], rows[i][0], rows[i][0], rows[i][0]);
        run(&c, 0, words);
        snprintf(file, sizeof file, "datasets/small/reference-%s.jsonl", rows[i][0]);
        char *kept = scratch_read(root ? root : ".", file, &size);
        assert_string_equal(text_get(&c.out), kept);
        mem_free(kept);
        child_release(&c);
    }
}

// Where there is one structure only, one side of the split has no document, whichever that is.
static void split(void **state) {
    static const char GRAMMAR[] = "document:\n    [Pick] [a|b]\nPick:\n    the<cut> same\n";
    char text[400], held_out[400];
    Child c;
    scratch_write(*state, "g", GRAMMAR, sizeof GRAMMAR - 1);
    snprintf(text, sizeof text, "text 30 1 %s", folder_path(*state, "g"));
    snprintf(held_out, sizeof held_out, "held-out 30 1 name task %s", folder_path(*state, "g"));
    run(&c, 0, text);
    child_release(&c);
    run(&c, 2, held_out);
    assert_non_null(strstr(text_get(&c.err), "all structures are on the other side of the split"));
    child_release(&c);
}

static void mistakes(void **state) {
    (void)state;
    Child c;
    run(&c, 2, "");
    assert_non_null(strstr(text_get(&c.err), "usage: write"));
    child_release(&c);
    run(&c, 2, "text 1 1 none.txt");
    assert_non_null(strstr(text_get(&c.err), "none.txt"));
    child_release(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seeds), cmocka_unit_test(sets),
                                       cmocka_unit_test_setup_teardown(split, folder_setup, folder_teardown),
                                       cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
