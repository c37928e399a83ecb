// The scripts that cut the reference family's text into documents, each on a few lines of its kind.
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

// A decorator and a comment go with what they stand above; a string may hold what looks like code.
static void functions(void **state) {
    (void)state;
    expect(
        "python", "-v shortest=8 -v longest=400",
        "\"\"\"A module.\n\ndef not_code(): its text\n\"\"\"\nimport os\n\n# Adds.\n@cache\ndef add(a, b):\n"
        "    return a + b\n\n\nTABLE = [\n    1,\n]\nclass Small:\n    def f(self): pass\n",
        "\"\"\"A module.\n\ndef not_code(): its text\n\"\"\"\nimport os\n<|end|>\n"
        "# Adds.\n@cache\ndef add(a, b):\n    return a + b\n<|end|>\n"
        "TABLE = [\n    1,\n]\n<|end|>\nclass Small:\n    def f(self): pass\n<|end|>\n");
}

// A class of more than half the longest document is its head and its methods.
static void methods(void **state) {
    (void)state;
    expect("python", "-v shortest=8 -v longest=60",
           "class Long(Base):\n    '''Is\n    def no_method\n    '''\n\n    # First.\n    @property\n    def "
           "a(self):\n"
           "        return 1\n\n    def b(self):\n        if x:\n            return 2\n",
           "class Long(Base):\n    '''Is\n    def no_method\n    '''\n<|end|>\n"
           "# First.\n@property\ndef a(self):\n    return 1\n<|end|>\n"
           "def b(self):\n    if x:\n        return 2\n<|end|>\n");
}

static void passages(void **state) {
    (void)state;
    expect(
        "documentation", "-v enough=400 -v longest=900",
        ".. _ref:\n\nHeaps\n=====\n\n.. module:: heapq\n   :synopsis: Not this.\n\nA *heap* is "
        "a\n:class:`list "
        "<x.list>` with ``a[0]``::\n\n   x = [1]\n     y\n\n+---+\n| a |\n+---+\n\n"
        ".. function:: heappush(heap, item)\n\n   Push :ref:`it`, see :pep:`8`.\n\n   .. versionadded:: 3.1\n"
        "      Not this.\n\nAfter it.\n",
        "Heaps\n\nA heap is a list with a[0]:\n\n    x = [1]\n      y\n<|end|>\n"
        "heappush(heap, item)\n\nPush it, see PEP 8.\n<|end|>\nHeaps\n\nAfter it.\n<|end|>\n");
}

static void questions(void **state) {
    (void)state;
    expect("questions", "",
           "{\"question\": \"He \\\"has\\\" 2\\u00d73?\", \"answer\": \"2*3=<<2*3=6>>6\\n#### 6\"}\n"
           "{\"question\": \"\\u4e00\", \"answer\": \"none\"}\n",
           "Question: He \"has\" 2*3?\nAnswer: 2*3=6\n#### 6\n<|end|>\n");
}

// Two lines may begin alike, a third may not; a long document is left out whatever it says.
static void brief(void **state) {
    (void)state;
    expect("brief", "-v longest=60 -v alike=2",
           "    self.assert_(1)\nself.assert_(2)\n}\n}\n}\n<|end|>\n"
           "self.assert_(1)\nself.assert_(2)\n    self.assert_(3)\n<|end|>\n"
           "a line that says nothing new but is too long to end soon enough\n<|end|>\nlast\n<|end|>\n",
           "    self.assert_(1)\nself.assert_(2)\n}\n}\n}\n<|end|>\nlast\n<|end|>\n");
}

#define TEN "one two three four five six seven eight nine ten "

// Too short, a repeat but for its number, thirteen words of a prompt, other bytes than ASCII.
static void cleaning(void **state) {
    static const char PROMPT[] = "{\"q\": \"Zero " TEN "eleven\\ntwelve thirteen\"}\n";
    scratch_write(*state, "prompts", PROMPT, sizeof PROMPT - 1);
    char more[400];
    snprintf(more, sizeof more,
             "-v name=x -v shortest=20 -v longest=200 -v letters=0.4 -v digits=0.2 %s prompts=0",
             folder_path(*state, "prompts"));
    expect("clean", more,
           "short\n<|end|>\n" TEN "eleven, twelve. Thirteen\n<|end|>\n" TEN "eleven, twelve.\n<|end|>\n"
           "The text that stays 1.\n<|end|>\nThe text, that stays 2.\n<|end|>\ncaf\xc3\xa9 is not printable "
           "here\n"
           "<|end|>\n12, 34, 56, 78, 90, ab, 12, 34\n<|end|>\n",
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
        cmocka_unit_test(functions),
        cmocka_unit_test(methods),
        cmocka_unit_test(passages),
        cmocka_unit_test(questions),
        cmocka_unit_test(brief),
        cmocka_unit_test(variety),
        cmocka_unit_test_setup_teardown(cleaning, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
