// Conditions: random ones against a tree of them that is evaluated directly; refusals.
#include "tests/support/check.h"

#include "engine/base/text.h"
#include "harness/config/sweep.h"

#include <stdio.h>
#include <string.h>

static const char *const MODES[] = {"paper", "reference", NULL};

enum { NUMBERS = 3 };

// W, N, G are numbers, mode a choice, prompt_pool a switch, dataset any word.
static void fill(Variable v[6], const int numbers[NUMBERS], int mode, bool on, const char *dataset) {
    static const char *const names[] = {"W", "N", "G"};
    for (int i = 0; i < NUMBERS; i++) v[i] = (Variable){.name = names[i], .number = numbers[i]};
    v[3] = (Variable){.name = "mode", .text = MODES[mode], .choices = MODES};
    v[4] = (Variable){.name = "prompt_pool", .text = on ? "on" : "off", .choices = condition_on_off};
    v[5] = (Variable){.name = "dataset", .text = dataset};
}

// --- random conditions: written and evaluated at once ------------------------------------------------------

typedef struct Maker {
    Random *random;
    const int *numbers;
    int mode;
    bool on;
    Text out;
} Maker;

static bool compared(int a, int sign, int b) {
    const bool outcomes[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    return outcomes[sign];
}

static void space(Maker *m) {
    static const char *const spaces[] = {"", " ", "  "};
    text_puts(&m->out, spaces[test_between(m->random, 0, 2)]);
}

// A parameter or a number.
static int make_number(Maker *m, bool named) {
    int i = test_between(m->random, 0, NUMBERS - 1), n = test_between(m->random, -3, 3);
    if (named) text_puts(&m->out, &"W\0N\0G"[2 * i]);
    else text_printf(&m->out, "%d", n);
    return named ? m->numbers[i] : n;
}

static bool make_comparison(Maker *m) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    int sign = test_between(m->random, 0, 5), left = test_between(m->random, 0, 1);
    int a = make_number(m, left == 1);
    space(m);
    text_puts(&m->out, signs[sign]);
    space(m);
    return compared(a, sign, make_number(m, left == 0 || test_between(m->random, 0, 1)));
}

static bool make_words(Maker *m) {
    bool equal = test_between(m->random, 0, 1), which = test_between(m->random, 0, 1);
    int pick = test_between(m->random, 0, 1);
    static const char *const switches[2][2] = {{"off", "false"}, {"on", "true"}};
    const char *word = which ? MODES[pick] : switches[pick][test_between(m->random, 0, 1)];
    const char *name = which ? "mode" : "prompt_pool", *sign = equal ? "==" : "!=";
    if (test_between(m->random, 0, 1)) text_printf(&m->out, "%s %s '%s'", name, sign, word);
    else text_printf(&m->out, "%s %s %s", word, sign, name);
    return ((which ? m->mode : (int)m->on) == pick) == equal;
}

static bool make_any(Maker *m, int depth);

static bool make_not(Maker *m, int depth) {
    int kind = depth >= 4 ? test_between(m->random, 2, 5) : test_between(m->random, 0, 5);
    if (kind == 0) {
        text_puts(&m->out, "not ");
        return !make_not(m, depth + 1);
    }
    if (kind != 1) return kind == 2 ? make_words(m) : make_comparison(m);
    text_puts(&m->out, "(");
    space(m);
    bool holds = make_any(m, depth + 1);
    text_puts(&m->out, ")");
    return holds;
}

static bool make_all(Maker *m, int depth) {
    bool holds = make_not(m, depth);
    for (int n = test_between(m->random, 0, 2); n > 0; n--) {
        text_puts(&m->out, " and ");
        holds = make_not(m, depth) && holds; // made in any case, so that it is written
    }
    return holds;
}

static bool make_any(Maker *m, int depth) {
    bool holds = make_all(m, depth);
    for (int n = test_between(m->random, 0, 1); n > 0; n--) {
        text_puts(&m->out, " or ");
        holds = make_all(m, depth) || holds;
    }
    return holds;
}

static void random_conditions(void **state) {
    (void)state;
    Random r = test_random(1);
    int outcomes[2] = {0, 0};
    for (int round = 0; round < 20000; round++) {
        int numbers[NUMBERS];
        Variable v[6];
        Error e = {0};
        for (int i = 0; i < NUMBERS; i++) numbers[i] = test_between(&r, -3, 3);
        Maker m = {&r, numbers, test_between(&r, 0, 1), test_between(&r, 0, 1), {0}};
        fill(v, numbers, m.mode, m.on, "d");
        bool want = make_any(&m, 0), got = false;
        if (m.out.length <= CONDITION_BYTES) {
            if (!condition_holds(text_get(&m.out), &(Scope){v, 6}, &got, &e))
                fail_msg("'%s': %s", text_get(&m.out), e.text);
            if (got != want)
                fail_msg("W=%d, N=%d, G=%d, mode=%s, prompt_pool=%s: '%s' %s, wanted otherwise", numbers[0],
                         numbers[1], numbers[2], MODES[m.mode], m.on ? "on" : "off", text_get(&m.out),
                         got ? "holds" : "does not hold");
            outcomes[want]++;
        }
        text_release(&m.out);
    }
    assert_true(outcomes[0] > 5000 && outcomes[1] > 5000);
}

// --- refusals --------------------------------------------------------------------------------------------

static void check(const char *text, const char *want) {
    static const int numbers[NUMBERS] = {15, 5, 15};
    Variable v[6];
    Error e = {0};
    bool holds;
    fill(v, numbers, 0, true, "gsm8k");
    bool ok = condition_holds(text, &(Scope){v, 6}, &holds, &e);
    const char *got = ok ? holds ? "holds" : "does not" : e.text;
    if (strcmp(got, want) != 0) fail_msg("'%s': wanted '%s', got '%s'", text, want, got);
    if (!ok) assert_int_equal(e.kind, ERROR_INPUT);
}

static void examples(void **state) {
    (void)state;
    check("W > 14.5 and N == 5", "holds");
    check("W>15 or N==5 and not G<15", "holds");
    check("not W == 15 or G == 15", "holds"); // not binds closest
    check("not (W == 15 or G == 15)", "does not");
    check("dataset == gsm8k", "holds");
    check("dataset != 'mt bench'", "holds");
    check("dataset == mode", "does not");
    check("W == G", "holds");
    check("prompt_pool == true", "holds");
    check("-1 < W", "holds");
}

static void refusals(void **state) {
    (void)state;
    check("", "a parameter or a value is missing before ''");
    check("W", "'W' must be followed by ==, !=, <, <=, > or >=");
    check("not prompt_pool", "'prompt_pool' must be followed by ==, !=, <, <=, > or >=");
    check("W >", "a parameter or a value is missing before ''");
    check("W = 3", "'= 3' is no part of a condition: write ==, !=, <, <=, > or >=");
    check("W + G > 3", "'+ G > 3' is no part of a condition: write ==, !=, <, <=, > or >=");
    check("Wx > 3", "there is no parameter 'Wx'; did you mean 'W'?");
    check("datset == gsm8k", "there is no parameter 'datset'; did you mean 'dataset'?");
    check("elephants > 3", "there is no parameter 'elephants'");
    check("3 > 2", "'3' is compared with no parameter");
    check("mode == referense", "'mode' is never 'referense'");
    check("prompt_pool == 'yes'", "'prompt_pool' is never 'yes'");
    check("mode < paper", "'mode' and 'paper' are words, which have no order: write == or !=");
    check("mode == 3", "'mode' and '3' cannot be compared: one is a number, one a word");
    check("W == mode", "'W' and 'mode' cannot be compared: one is a number, one a word");
    check("(W == 3", "a ')' is missing before ''");
    check("W == 3)", "a condition may only be followed by 'and' or 'or', there is ')'");
    check("W == 3 G == 4", "a condition may only be followed by 'and' or 'or', there is 'G'");
    check("mode == 'paper", "the quote before 'paper' has no end");
    check("W == 15 or mode == x", "'mode' is never 'x'"); // though the outcome is known
    check("N != 5 and mode == x", "'mode' is never 'x'");
}

static void limits(void **state) {
    (void)state;
    char text[CONDITION_BYTES + 100];
    memset(text, '(', sizeof text);
    snprintf(text + 40, sizeof text - 40, "W == 3");
    check(text, "the condition is nested more than 32 deep");
    memset(text, ' ', sizeof text);
    snprintf(text + CONDITION_BYTES - 7, 100, "W == 15");
    check(text, "holds");
    snprintf(text + CONDITION_BYTES - 7, 100, "W == 15 ");
    check(text, "the condition has more than 1000 characters");
    memset(text, 'x', 300);
    snprintf(text + 300, 100, " == 3");
    check(text, "a word has more than 255 characters");
}

static void noise(void **state) {
    (void)state;
    static const char *const parts[] = {
        "(",    ")",     " and ", " or ", "not ", "W", "==", "<", " ",    "3",
        "mode", "paper", "'",     "\"",   "=",    "!", ".",  "-", "\xff", "x"};
    static const int numbers[NUMBERS] = {1, 2, 3};
    Random r = test_random(2);
    Variable v[6];
    fill(v, numbers, 0, true, "x");
    for (int round = 0; round < 50000; round++) {
        Text t = {0};
        Error e = {0};
        bool holds;
        for (int n = test_between(&r, 0, 12); n > 0; n--)
            text_puts(&t, parts[test_between(&r, 0, sizeof parts / sizeof *parts - 1)]);
        if (!condition_holds(text_get(&t), &(Scope){v, 6}, &holds, &e)) assert_true(e.text[0]);
        text_release(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_conditions),
        cmocka_unit_test(examples),
        cmocka_unit_test(refusals),
        cmocka_unit_test(limits),
        cmocka_unit_test(noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
