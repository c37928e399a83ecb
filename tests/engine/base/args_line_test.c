// Every type of option, every way of writing it, and every way of getting it wrong; then random command lines
// against the values that they were built from.
#include "tests/support/check.h"

#include "engine/base/args.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    bool loud;
    int count;
    double heat;
    uint64_t seed;
    const char *name;
    Words stops;
} Values;

#define AT(field) offsetof(Values, field)
static const Arg OPTIONS[] = {
    {"loud", ARG_FLAG, AT(loud), .help = "a flag", .letter = 'l'},
    {"count", ARG_INT, AT(count), -3, 1 << 24, "7", .help = "a number", .value = "N", .letter = 'n'},
    {"heat", ARG_REAL, AT(heat), 0, 1.5, .help = "a real", .value = "T"},
    {"seed", ARG_SEED, AT(seed), .help = "a seed", .value = "N"},
    {"name", ARG_WORD, AT(name), .help = "a text", .value = "NAME", .fallback = "none", .letter = 'f'},
    {"stop", ARG_WORDS, AT(stops), .help = "a list", .value = "TEXT"},
};
#undef AT
static const ArgSet SET = {OPTIONS, sizeof OPTIONS / sizeof *OPTIONS, 0, NULL};
enum { WORDS = 80 };

// Splits line at single spaces; "_" stands for an empty word.
static int words(char *line, char **argv) {
    int argc = 0;
    argv[argc++] = "command";
    for (char *save, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = strcmp(w, "_") == 0 ? "" : w;
    return argc;
}

typedef struct {
    bool ok, help;
    Values values;
    Words rest;
    Error error;
    char line[256];
} Parsed;

static void parse(Parsed *p, const char *line) {
    char *argv[WORDS];
    *p = (Parsed){0};
    args_start(&SET, 1, &p->values);
    snprintf(p->line, sizeof p->line, "%s", line);
    int argc = words(p->line, argv);
    p->ok = args_parse_line(&SET, 1, argc, argv, &p->values, &p->rest, &p->help, &p->error);
}

// Everything that was parsed, in one text.
static void summary(const Parsed *p, char *out, size_t size) {
    const Values *v = &p->values;
    int n = snprintf(out, size, "loud %d count %d heat %g seed %llu name %s stops", v->loud, v->count,
                     v->heat, (unsigned long long)v->seed, v->name ? v->name : "-");
    for (int i = 0; i < v->stops.count; i++)
        n += snprintf(out + n, size - (size_t)n, " [%s]", v->stops.items[i]);
    n += snprintf(out + n, size - (size_t)n, " rest");
    for (int i = 0; i < p->rest.count; i++)
        n += snprintf(out + n, size - (size_t)n, " [%s]", p->rest.items[i]);
}

static void right(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"", "loud 0 count 7 heat 0 seed 0 name - stops rest"},
        {"a b", "loud 0 count 7 heat 0 seed 0 name - stops rest [a] [b]"},
        {"--loud a", "loud 1 count 7 heat 0 seed 0 name - stops rest [a]"},
        {"a -l", "loud 1 count 7 heat 0 seed 0 name - stops rest [a]"},
        {"-n 5 x --heat 0.5", "loud 0 count 5 heat 0.5 seed 0 name - stops rest [x]"},
        {"--count=-3 --heat=1.5", "loud 0 count -3 heat 1.5 seed 0 name - stops rest"},
        {"--count 16777216", "loud 0 count 16777216 heat 0 seed 0 name - stops rest"},
        {"--count 1 --count 2", "loud 0 count 2 heat 0 seed 0 name - stops rest"},
        {"--seed 9223372036854775807", "loud 0 count 7 heat 0 seed 9223372036854775807 name - stops rest"},
        {"--seed 0x10", "loud 0 count 7 heat 0 seed 16 name - stops rest"},
        {"--name=a=b", "loud 0 count 7 heat 0 seed 0 name a=b stops rest"},
        {"--name= x", "loud 0 count 7 heat 0 seed 0 name  stops rest [x]"},
        {"--name --loud", "loud 0 count 7 heat 0 seed 0 name --loud stops rest"},
        {"-f --", "loud 0 count 7 heat 0 seed 0 name -- stops rest"},
        {"--stop a --stop=b --stop --help",
         "loud 0 count 7 heat 0 seed 0 name - stops [a] [b] [--help] rest"},
        {"- -5 -.5 _", "loud 0 count 7 heat 0 seed 0 name - stops rest [-] [-5] [-.5] []"},
        {"-- --loud -- --help", "loud 0 count 7 heat 0 seed 0 name - stops rest [--loud] [--] [--help]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Parsed p;
        char got[512];
        parse(&p, rows[i][0]);
        summary(&p, got, sizeof got);
        if (!p.ok || strcmp(got, rows[i][1]))
            fail_msg("'%s': wanted '%s', got '%s' %s", rows[i][0], rows[i][1], got, p.error.text);
        assert_false(p.help);
    }
}

static void wrong(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"--lound", "there is no option --lound; did you mean --loud?"},
        {"--cuont=5", "there is no option --cuont; did you mean --count?"},
        {"--stp x", "there is no option --stp; did you mean --stop?"},
        {"--zebra", "there is no option --zebra; --help lists them"},
        {"-x", "there is no option -x; --help lists them"},
        {"-ln", "there is no option -ln; --help lists them"},
        {"--loud=yes", "--loud takes no value"},
        {"a --name", "--name needs a value: --name NAME"},
        {"-n", "--count needs a value: --count N"},
        {"--count -4", "--count is '-4', must be a whole number from -3 to 16777216"},
        {"--count 16777217", "--count is '16777217', must be a whole number from -3 to 16777216"},
        {"--count 1.5", "--count is '1.5', must be a whole number from -3 to 16777216"},
        {"--count 5x", "--count is '5x', must be a whole number from -3 to 16777216"},
        {"--count nan", "--count is 'nan', must be a whole number from -3 to 16777216"},
        {"--count _", "--count is '', must be a whole number from -3 to 16777216"},
        {"--heat 1.6", "--heat is '1.6', must be a number from 0 to 1.5"},
        {"--heat inf", "--heat is 'inf', must be a number from 0 to 1.5"},
        {"--heat 1e999", "--heat is '1e999', must be a number from 0 to 1.5"},
        {"--seed -5", "--seed is '-5', must be a whole number from 0 to 2^63 - 1"},
        {"--seed= -5", "--seed is '', must be a whole number from 0 to 2^63 - 1"},
        {"--seed 9223372036854775808",
         "--seed is '9223372036854775808', must be a whole number from 0 to 2^63 - 1"},
        {"--seed 1e3", "--seed is '1e3', must be a whole number from 0 to 2^63 - 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Parsed p;
        parse(&p, rows[i][0]);
        if (p.ok || p.error.kind != ERROR_INPUT || strcmp(p.error.text, rows[i][1]))
            fail_msg("'%s': wanted '%s', got '%s'", rows[i][0], rows[i][1], p.error.text);
    }
}

static void help_ends_it(void **state) {
    (void)state;
    static const char *const rows[] = {"--help", "-h", "a --loud -h --zebra"};
    for (size_t i = 0; i < 3; i++) {
        Parsed p;
        parse(&p, rows[i]);
        if (!p.ok || !p.help) fail_msg("'%s': wanted help, got '%s'", rows[i], p.error.text);
    }
}

// One more than a list or the positionals hold is refused; as many as they hold are kept.
static void full_lists(void **state) {
    (void)state;
    char *argv[2 * WORDS_MAX + 4] = {"command"};
    Values v = {0};
    Words rest;
    bool help;
    Error e = {0};
    for (int i = 0; i <= WORDS_MAX; i++) argv[1 + i] = "--stop=x";
    assert_true(args_parse_line(&SET, 1, 1 + WORDS_MAX, argv, &v, &rest, &help, &e));
    assert_int_equal(v.stops.count, WORDS_MAX);
    v = (Values){0};
    assert_false(args_parse_line(&SET, 1, 2 + WORDS_MAX, argv, &v, &rest, &help, &e));
    assert_string_equal(e.text, "--stop may be given 64 times at most");
    for (int i = 0; i <= WORDS_MAX; i++) argv[1 + i] = "x";
    assert_true(args_parse_line(&SET, 1, 1 + WORDS_MAX, argv, &v, &rest, &help, &e));
    assert_int_equal(rest.count, WORDS_MAX);
    assert_false(args_parse_line(&SET, 1, 2 + WORDS_MAX, argv, &v, &rest, &help, &e));
    assert_string_equal(e.text, "there are more than 64 arguments");
}

// Random lines of right options and positionals in any order and form; the model is what they were made of.
static void any_order(void **state) {
    (void)state;
    static const char *const texts[] = {"a", "-", "x=y", "--loud", "-9"};
    Random r = test_random(70);
    for (int round = 0; round < 2000; round++) {
        char line[256] = "", wanted[512], got[512];
        Parsed want = {.values = {.count = 7}}, p;
        for (int i = test_between(&r, 0, 8), n = 0; i > 0; i--) {
            const char separator = test_between(&r, 0, 1) ? '=' : ' ', *text = texts[test_between(&r, 0, 4)];
            int number = test_between(&r, -3, 1000);
            size_t at = (size_t)n;
            switch (test_between(&r, 0, 4)) {
            case 0:
                n += snprintf(line + at, sizeof line - at, "--loud ");
                want.values.loud = true;
                break;
            case 1:
                n += snprintf(line + at, sizeof line - at, "--count%c%d ", separator, number);
                want.values.count = number;
                break;
            case 2:
                n += snprintf(line + at, sizeof line - at, "--name%c%s ", separator, text);
                want.values.name = text;
                break;
            case 3:
                n += snprintf(line + at, sizeof line - at, "--stop%c%s ", separator, text);
                want.values.stops.items[want.values.stops.count++] = text;
                break;
            case 4:
                n += snprintf(line + at, sizeof line - at, "%d ", number);
                want.rest.items[want.rest.count++] = ""; // filled below: only the number of them is told
                break;
            }
        }
        parse(&p, line);
        for (int i = 0; i < p.rest.count; i++) p.rest.items[i] = "";
        summary(&want, wanted, sizeof wanted);
        summary(&p, got, sizeof got);
        if (!p.ok || strcmp(wanted, got))
            fail_msg("'%s': wanted '%s', got '%s' %s", line, wanted, got, p.error.text);
    }
}

static void set_by_name(void **state) {
    (void)state;
    Values v = {0};
    Error e = {0};
    assert_true(args_set_option(&SET, 1, &v, "count", "12", &e));
    assert_int_equal(v.count, 12);
    assert_false(args_set_option(&SET, 1, &v, "count", "many", &e));
    assert_string_equal(e.text, "--count is 'many', must be a whole number from -3 to 16777216");
}

// A fallback is the default if it's a value, and a word's only where it is literal.
static void defaults(void **state) {
    (void)state;
    static const char *const SIDES[] = {"left", "right", NULL};
    typedef struct {
        int before, count, side, tasks;
        const char *name, *place;
    } Own;
    const Arg rows[] = {
        {"count", ARG_INT, offsetof(Own, count), 0, 9, "7", .help = ""},
        {"side", ARG_CHOICE, offsetof(Own, side), .choices = SIDES, .fallback = "right", .help = ""},
        {"tasks", ARG_INT, offsetof(Own, tasks), 0, 9, "as many as fit", .help = ""},
        {"name", ARG_WORD, offsetof(Own, name), .fallback = "me", .literal = true, .help = ""},
        {"place", ARG_WORD, offsetof(Own, place), .fallback = "the usual one", .help = ""},
    };
    Own own = {.before = 5};
    args_start(&(ArgSet){rows, sizeof rows / sizeof *rows, 0, NULL}, 1, &own);
    char got[80];
    snprintf(got, sizeof got, "%d %d %d %d %s %s", own.before, own.count, own.side, own.tasks, own.name,
             own.place ? own.place : "-");
    assert_string_equal(got, "5 7 1 0 me -");
}

static void described(void **state) {
    (void)state;
    Text text = {0};
    args_help(&SET, 1, &text);
    assert_string_equal(text_get(&text), "  -l, --loud                 a flag\n"
                                         "  -n, --count N              a number (7)\n"
                                         "  --heat T                   a real\n"
                                         "  --seed N                   a seed\n"
                                         "  -f, --name NAME            a text (none)\n"
                                         "  --stop TEXT                a list\n");
    text_release(&text);
}

// At 110 columns it comes after the help, at 111 below it.
static void long_defaults(void **state) {
    enum { ROOM = 110 - 29 - 6 - 3 };
    char fits[ROOM + 1], longer[ROOM + 2], want[400];
    Text text = {0};
    (void)state;
    memset(fits, 'x', sizeof fits), memset(longer, 'y', sizeof longer);
    fits[ROOM] = longer[ROOM + 1] = 0;
    const Arg rows[] = {{.name = "a", .type = ARG_WORD, .value = "N", .help = "number", .fallback = fits},
                        {.name = "b", .type = ARG_WORD, .value = "N", .help = "number", .fallback = longer}};
    args_help(&(ArgSet){.rows = rows, .count = 2}, 1, &text);
    snprintf(want, sizeof want,
             "  --a N                      number (%s)\n  --b N                      number\n%29s(%s)\n",
             fits, "", longer);
    assert_string_equal(text_get(&text), want);
    text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right),      cmocka_unit_test(wrong),     cmocka_unit_test(help_ends_it),
        cmocka_unit_test(full_lists), cmocka_unit_test(any_order), cmocka_unit_test(set_by_name),
        cmocka_unit_test(defaults),   cmocka_unit_test(described), cmocka_unit_test(long_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
