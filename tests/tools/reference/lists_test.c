// Functions of lists against Python's output.
#include "tests/support/check.h"

#include "tools/reference/lists.h"

#include <string.h>

typedef struct Row {
    const char *words[5], *wanted; // NULL: no value
} Row;

static void values(void **state) {
    (void)state;
    static const Row rows[] = {
        {{"keep", "even", "[3, -2, 8, 0]"}, "[-2, 8, 0]"},
        {{"drop", "even", "[3, -2, 8, 0]"}, "[3]"},
        {{"keep", "multiple", "[3, 8, 9]", "3"}, "[3, 9]"},
        {{"keep", "prime", "[1, 2, 9, 13]"}, "[2, 13]"},
        {{"keep", "square", "[1, 2, 9, 13]"}, "[1, 9]"},
        {{"keep", "longer", "['ab', 'abcd']", "3"}, "['abcd']"},
        {{"keep", "starts", "['ab', 'ba']", "'b'"}, "['ba']"},
        {{"keep", "palindrome", "['noon', 'ba', '']"}, "['noon', '']"},
        {{"keep", "vowel", "'a Bee'"}, "['a', 'e', 'e']"},
        {{"mask", "digit", "'a1b2'", "0", "'*'"}, "'a*b*'"},
        {{"map", "times", "[1, -2]", "3"}, "[3, -6]"},
        {{"map", "over", "[-7, 7]", "2"}, "[-4, 3]"},
        {{"map", "rest", "[-7, 7]", "2"}, "[1, 1]"},
        {{"map", "rest", "[-7, 7]", "3"}, "[2, 1]"},
        {{"map", "backwards", "['ab', 'c']"}, "['ba', 'c']"},
        {{"map", "capital", "['aB', 'c']"}, "['Ab', 'C']"},
        {{"map", "part", "['abc', 'c']", "2"}, "['ab', 'c']"},
        {{"item", "factorial", "5"}, "120"},
        {{"item", "fibonacci", "10"}, "55"},
        {{"item", "collatz", "6"}, "8"},
        {{"item", "divisors", "12"}, "6"},
        {{"item", "parts", "6"}, "6"},
        {{"item", "gcd", "84", "36"}, "12"},
        {{"item", "lcm", "4", "6"}, "12"},
        {{"item", "root", "17"}, "4"},
        {{"item", "power", "2", "5"}, "32"},
        {{"item", "power", "99", "11"}, NULL},
        {{"item", "digits", "907"}, "16"},
        {{"item", "without", "'banana'", "'a'"}, "'bnn'"},
        {{"test", "above", "3", "2"}, "True"},
        {{"test", "ends", "'kitten'", "'en'"}, "True"},
        {{"test", "upper", "'a'"}, "False"},
        {{"sum", "[3, 1]"}, "4"},
        {{"sum", "[]"}, "0"},
        {{"product", "[]"}, "1"},
        {{"max", "[3, 10, 9]"}, "10"},
        {{"max", "[]"}, NULL},
        {{"range", "[3, 10, 9]"}, "7"},
        {{"sort", "['b', 'B', 'a']"}, "['B', 'a', 'b']"},
        {{"fall", "[3, 10, 9]"}, "[10, 9, 3]"},
        {{"unique", "[2, 1, 2]"}, "[2, 1]"},
        {{"tally", "['b', 'a', 'b']"}, "{'b': 2, 'a': 1}"},
        {{"running", "[1, 2, 3]"}, "[1, 3, 6]"},
        {{"steps", "[1, 4, 2]"}, "[3, -2]"},
        {{"join", "['a', 'b']", "', '"}, "'a, b'"},
        {{"len", "'four'"}, "4"},
        {{"pairs", "minus", "[5, 1]", "[2, 2]"}, "[3, -1]"},
        {{"pairs", "minus", "[5, 1]", "[2]"}, NULL},
        {{"count", "2", "4"}, "[2, 3, 4]"},
        {{"none", "[1]"}, NULL},
        {{"sum", "[1, x]"}, NULL},
        {{"keep", "even"}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const Row *row = &rows[i];
        Text out = {0};
        Random r = test_random(1);
        int n = 0;
        while (n < 5 && row->words[n]) n++;
        const bool ok = lists_apply(row->words, n, &r, &out);
        if (ok != (row->wanted != NULL) || (ok && strcmp(text_get(&out), row->wanted) != 0))
            fail_msg("%s %s: wanted %s, got %s", row->words[0], row->words[1],
                     row->wanted ? row->wanted : "nothing", ok ? text_get(&out) : "nothing");
        text_release(&out);
    }
}

static void drawn(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int i = 0; i < 100; i++) {
        static const char *const words[] = {"numbers", "3", "5", "7"};
        Text out = {0};
        assert_true(lists_apply(words, 4, &r, &out));
        const char *s = text_get(&out);
        assert_int_equal(strlen(s), 9);
        for (size_t k = 1; k < 9; k += 3) assert_true(s[k] >= '5' && s[k] <= '7');
        text_release(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
