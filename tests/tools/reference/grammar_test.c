// The grammar's language on small grammars, and the reference family's own grammars: their text is correct.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "tools/reference/grammar.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static Grammar *parse(const char *text) {
    Error e = {0};
    Grammar *g = grammar_parse(text, strlen(text), "test", &e);
    if (!g) fail_msg("%s", e.text);
    return g;
}

// The document that alternatives without a choice give.
static void expect(const char *alternatives, const char *wanted) {
    char text[600];
    snprintf(text, sizeof text, "document:\n%s\nfruit:\n    apple~apples\n", alternatives);
    Grammar *g = parse(text);
    Random r = test_random(1);
    Document d = {0};
    Error e = {0};
    if (!grammar_write(g, "document", &r, &d, &e)) fail_msg("%s: %s", alternatives, e.text);
    if (strcmp(text_get(&d.text), wanted) != 0)
        fail_msg("%s: wanted '%s', got '%s'", alternatives, wanted, text_get(&d.text));
    document_release(&d);
    grammar_close(g);
}

static void language(void **state) {
    (void)state;
    expect("    <a = 3 + 4 * (5 - 3)>{a} {a-1} {a*2} {a words}", "11 10 22 eleven");
    expect("    <a = 12 / 4><b = 17 % 5>{a}{b}", "32");
    expect("    <f : [fruit]><one = 1><n = 2>{f} {f.1} {^f.a} {f#one} {f#n}",
           "apple apples An apple apple apples");
    expect("    <p : Ida~f>{^p.they} {p.them} {p.their} {p.theirs} {p.themself}", "She her her hers herself");
    expect("    <p : Tom~m>{p.they} {p.them}", "he him");
    expect("    <c = 1250>{$c} {$c*2} {$c-1245}", "$12.50 $25 $0.05");
    expect("    <a : x><a : {a}y><b : {a}{a}>{b}", "xyxy");
    expect("    <k : fruit>[^{k}]", "Apple~apples");
    expect("    \\[a\\] \\{b\\} \\<c\\> a\\\\nb\\nc", "[a] {b} <c> a\\nb\nc");
    expect("    one \\\n      two", "one two");
    expect("    <l : \\[3, 1, 2\\]><s @ sort l>{s}", "[1, 2, 3]");
    expect("    <a : x><b ! [x|y]><c ! [x|y|z]>{b}{c}", "yz");
}

// An alternative whose condition does not hold is never chosen; one that fails on its way begins the document
// again.
static void conditions(void **state) {
    (void)state;
    expect("    <n = 3>[pick]\npick:\n    <? n over 3>no\n    <? n under 3>no\n    <? n == 3 & n != 4>yes",
           "yes");
    expect("    <n = 1..9><? n over 8>{n}", "9");
    expect("    <n = 3..4><m = n / 3>{m}", "1");
    expect("    <a : x><b : >[pick]\npick:\n    <? a == y>no\n    <? b !=>no\n    <? b == & a == x>yes",
           "yes");
}

static void weights(void **state) {
    (void)state;
    Grammar *g = parse("document:\n    *9 often\n    seldom\n");
    Random r = test_random(2);
    Document d = {0};
    int often = 0;
    for (int i = 0; i < 1000; i++) {
        assert_true(grammar_write(g, "document", &r, &d, NULL));
        often += strcmp(text_get(&d.text), "often") == 0;
    }
    if (often < 850 || often > 950) fail_msg("wanted about 900 of 1000, got %d", often);
    document_release(&d);
    grammar_close(g);
}

// Whole words only, capitals kept, and the prompt's end where it was.
static void alike(void **state) {
    (void)state;
    Grammar *g = parse("document:\n    Big bigger. <cut>He is big\nalike:\n    big|large\n");
    Random r = test_random(3);
    Document d = {0};
    bool changed = false, kept = false;
    for (int i = 0; i < 40; i++) {
        assert_true(grammar_write(g, "document", &r, &d, NULL));
        const char *s = text_get(&d.text);
        assert_true(strncmp(s, "Big bigger. ", 12) == 0 || strncmp(s, "Large bigger. ", 14) == 0);
        assert_int_equal(strncmp(s + d.cut, "He is ", 6), 0);
        changed = changed || strstr(s, "is large");
        kept = kept || strstr(s, "is big");
    }
    assert_true(changed && kept);
    document_release(&d);
    grammar_close(g);
}

static void mistakes(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"    text\n", "'test' line 1: an alternative before any rule"},
        {"document\n", "'test' line 1: a rule's name ends in a colon"},
        {"document:\n    [none]\n", "no such rule: 'none' in the grammar"},
        {"document:\n    {none}\n", "no such variable: 'none}' in the grammar"},
        {"document:\n    {none\n", "nothing closes '{none' in the grammar"},
        {"document:\n    <? 1 == 2>never\n", "no document of 'document' satisfies its conditions"},
        {"other:\n    text\n", "no such rule: 'document' in the grammar"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error e = {0};
        Document d = {0};
        Random r = test_random(4);
        Grammar *g = grammar_parse(rows[i][0], strlen(rows[i][0]), "test", &e);
        if (g) assert_false(grammar_write(g, "document", &r, &d, &e));
        if (strcmp(e.text, rows[i][1]) != 0) fail_msg("wanted '%s', got '%s'", rows[i][1], e.text);
        document_release(&d);
        grammar_close(g);
    }
}

// --- the family's own ---

static Grammar *open_own(const char *name) {
    const char *root = getenv("OUTPACE_ROOT"), *const files[] = {"names", name};
    Text all = {0};
    for (int i = 0; i < 2; i++) {
        char path[300], *bytes;
        size_t size;
        snprintf(path, sizeof path, "%s/tools/reference/%s.txt", root ? root : ".", files[i]);
        assert_true(file_read(path, 1 << 20, &bytes, &size, NULL));
        text_add(&all, bytes, size);
        mem_free(bytes);
    }
    Grammar *g = parse(text_get(&all));
    text_release(&all);
    return g;
}

static void each_own(const char *name, void (*check)(const Document *d)) {
    Grammar *g = open_own(name);
    Random r = test_random(5);
    Document d = {0};
    Error e = {0};
    for (int i = 0; i < 4000; i++) {
        if (!grammar_write(g, "document", &r, &d, &e)) fail_msg("%s: %s", name, e.text);
        const char *s = text_get(&d.text);
        for (size_t k = 0; s[k]; k++)
            if (s[k] != '\n' && (s[k] < ' ' || s[k] > '~' || s[k] == '~'))
                fail_msg("%s: character %d in\n%s", name, s[k], s);
        if (d.cut == 0 || d.cut >= d.text.length)
            fail_msg("%s: the prompt ends at byte %zu of\n%s", name, d.cut, s);
        check(&d);
    }
    document_release(&d);
    grammar_close(g);
}

// Arithmetic as it is printed: $ and spaces do not count.
static long factor(const char **s);
static long number(const char **s) {
    char *end;
    const long n = strtol(*s, &end, 10);
    *s = end;
    return n;
}
static long product(const char **s) {
    long a = factor(s);
    while (**s == '*' || **s == '/') {
        const char op = *(*s)++;
        const long b = factor(s);
        a = op == '*' ? a * b : a / b;
    }
    return a;
}
static long sum(const char **s) {
    long a = product(s);
    while (**s == '+' || **s == '-') {
        const char op = *(*s)++;
        const long b = product(s);
        a = op == '+' ? a + b : a - b;
    }
    return a;
}
static long factor(const char **s) {
    if (**s != '(') return number(s);
    ++*s;
    const long a = sum(s);
    *s += **s == ')';
    return a;
}

// Every equation holds, and the last line is the result of the last one.
static void check_problem(const Document *d) {
    const char *text = text_get(&d->text);
    assert_int_equal(strncmp(text, "Question: ", 10), 0);
    assert_non_null(strstr(text, "\n#### "));
    for (const char *at = strstr(text, " = "); at; at = strstr(at + 1, " = ")) {
        char left[100];
        size_t n = 0;
        const char *begin = at;
        while (begin > text && (isdigit((unsigned char)begin[-1]) || strchr(" $+-*/()", begin[-1]))) begin--;
        for (const char *c = begin; c < at; c++)
            if (*c != ' ' && *c != '$') left[n++] = *c;
        left[n] = 0;
        const char *s = left;
        const long wanted = sum(&s), got = strtol(at + 3 + (at[3] == '$'), NULL, 10);
        if (*s || wanted != got) fail_msg("'%s' is %ld, not %ld, in\n%s", left, wanted, got, text);
    }
}

static void check_function(const Document *d) {
    const char *text = text_get(&d->text);
    assert_true(strncmp(text, "def ", 4) == 0 || strncmp(text, "class ", 6) == 0);
    assert_non_null(strstr(text, "\n    \"\"\""));
    assert_int_equal(text[d->cut - 1], '\n');
}

// No two spaces, none before a mark, and sentences begin with a capital.
static void check_story(const Document *d) {
    static const char *const wrong[] = {"  ", " .", " ,", "\n ", ". a", "..", " a owl", " a apple"};
    const char *text = text_get(&d->text);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (strstr(text, wrong[i])) fail_msg("'%s' in\n%s", wrong[i], text);
    assert_true(isupper((unsigned char)text[*text == '"']));
}

static void mathematics(void **state) {
    (void)state;
    each_own("mathematics", check_problem);
}

static void code(void **state) {
    (void)state;
    each_own("code", check_function);
}

static void stories(void **state) {
    (void)state;
    each_own("stories", check_story);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(language), cmocka_unit_test(conditions),
                                       cmocka_unit_test(weights),  cmocka_unit_test(alike),
                                       cmocka_unit_test(mistakes), cmocka_unit_test(mathematics),
                                       cmocka_unit_test(code),     cmocka_unit_test(stories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
