// Parameters on a struct that has one of every type.
#include "tests/support/check.h"

#include "engine/base/args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    int count;
    double share;
    bool on;
    int colour;
    char path[ARG_TEXT_SIZE];
} Values;

static const char *const COLOURS[] = {"red", "green", "blue", NULL};
static const Arg PARAMS[] = {
    {"count", ARG_INT, offsetof(Values, count), -5, 500, "7", .help = "how many"},
    {"share", ARG_REAL, offsetof(Values, share), 0, 1, "0.25", .help = "how much"},
    {"on", ARG_FLAG, offsetof(Values, on), .fallback = "on", .help = "whether"},
    {"colour", ARG_CHOICE, offsetof(Values, colour), .fallback = "green", .choices = COLOURS,
     .help = "which one"},
    {"path", ARG_TEXT, offsetof(Values, path), .fallback = "", .help = "from where"},
};
enum { COUNT = sizeof PARAMS / sizeof *PARAMS };

static void defaults(void **state) {
    (void)state;
    Values v = {.path = "old"};
    args_defaults(PARAMS, COUNT, &v);
    assert_int_equal(v.count, 7);
    assert_true(v.share == 0.25 && v.on);
    assert_int_equal(v.colour, 1);
    assert_string_equal(v.path, "");
    assert_true(args_parse(PARAMS, COUNT, &v, "", NULL)); // sets none
    assert_int_equal(v.count, 7);
}

// Any character that a user may write: not the comma, which ends a value, and parentheses in pairs.
static void random_text(Random *r, char *out) {
    int n = test_between(r, 0, ARG_TEXT_SIZE - 1);
    for (int i = 0; i < n; i++) {
        out[i] = (char)test_between(r, ' ', '~');
        if (out[i] == ',' || out[i] == '(') out[i] = '=';
    }
    for (int i = 0; i + 5 < n; i++)
        if (out[i] == '~') memcpy(out + i, "(,)=", 4);
    out[n] = 0;
}

static Values random_values(Random *r) {
    Values v = {.count = test_between(r, -5, 500),
                .share = random_uniform(r),
                .on = test_between(r, 0, 1),
                .colour = test_between(r, 0, 2)};
    random_text(r, v.path);
    return v;
}

static void written_values_parse_back(void **state) {
    (void)state;
    Random r = test_random(23);
    for (int round = 0; round < 2000; round++) {
        Values v = random_values(&r), back;
        Text text = {0};
        Error e = {0};
        args_defaults(PARAMS, COUNT, &back);
        args_write(PARAMS, COUNT, &v, &text);
        if (!args_parse(PARAMS, COUNT, &back, text_get(&text), &e))
            fail_msg("'%s': %s", text_get(&text), e.text);
        assert_int_equal(back.count, v.count);
        assert_true(back.share == v.share); // to the last bit
        assert_int_equal(back.on, v.on);
        assert_int_equal(back.colour, v.colour);
        assert_string_equal(back.path, v.path);
        text_release(&text);
    }
}

static void reals_are_short(void **state) {
    (void)state;
    static const char *const rows[] = {"0.8", "0.2", "1", "0.6", "0.1", "1e-05"};
    for (int i = 0; i < 6; i++) {
        Values v;
        Text text = {0};
        char wanted[32];
        args_defaults(PARAMS, COUNT, &v);
        assert_true(args_set(PARAMS, COUNT, &v, "share", rows[i], NULL));
        args_write(PARAMS, COUNT, &v, &text);
        snprintf(wanted, sizeof wanted, "share=%s,", rows[i]);
        if (!strstr(text_get(&text), wanted)) fail_msg("wanted %s in %s", wanted, text_get(&text));
        text_release(&text);
    }
}

static void spellings(void **state) {
    (void)state;
    Values v;
    args_defaults(PARAMS, COUNT, &v);
    assert_true(args_parse(PARAMS, COUNT, &v, "on=0,count=-5,share=1,colour=blue,path=a=b c", NULL));
    assert_true(!v.on && v.count == -5 && v.share == 1 && v.colour == 2);
    assert_string_equal(v.path, "a=b c");
    const char *yes[] = {"on", "true", "1"}, *no[] = {"off", "false", "0"};
    for (int i = 0; i < 3; i++) {
        assert_true(args_set(PARAMS, COUNT, &v, "on", yes[i], NULL) && v.on);
        assert_true(args_set(PARAMS, COUNT, &v, "on", no[i], NULL) && !v.on);
    }
}

static void mistakes(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"count=501", "'count' is '501', must be a whole number from -5 to 500"},
        {"count=-6", "from -5 to 500"},
        {"count=1.5", "a whole number"},
        {"count=", "'count' is ''"},
        {"count=3x", "'3x'"},
        {"count=nan", "'nan'"},
        {"count=99999999999", "'99999999999'"},
        {"share=1.0001", "must be a number from 0 to 1"},
        {"share=nan", "'nan'"},
        {"share=inf", "'inf'"},
        {"share=1e999", "'1e999'"},
        {"on=maybe", "'on' is 'maybe', must be on or off"},
        {"colour=pink", "must be one of red, green, blue"},
        {"color=red", "no parameter 'color'; did you mean 'colour'?"},
        {"xyzzy=1", "no parameter 'xyzzy'"},
        {"count", "must be written as key=value"},
        {"count=1,,on=1", "must be written as key=value"},
        {"count=1,", "end in a comma"},
        {",", "must be written as key=value"},
        {"count=1,count=1", "'count' is given twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Values v;
        Error e = {0};
        args_defaults(PARAMS, COUNT, &v);
        if (args_parse(PARAMS, COUNT, &v, rows[i][0], &e)) fail_msg("'%s' was taken", rows[i][0]);
        assert_int_equal(e.kind, ERROR_INPUT);
        if (!strstr(e.text, rows[i][1]))
            fail_msg("'%s' says '%s', want '%s'", rows[i][0], e.text, rows[i][1]);
    }
}

static void large_bounds_have_all_digits(void **state) {
    (void)state;
    static const Arg large = {"n", ARG_INT, 0, 0, 1 << 24, "0", .help = "how many"};
    int n = 0;
    Error e = {0};
    assert_false(args_set(&large, 1, &n, "n", "-1", &e));
    assert_string_equal(e.text, "'n' is '-1', must be a whole number from 0 to 16777216");
}

static void texts_keep_within_bounds(void **state) {
    (void)state;
    char text[2 * ARG_TEXT_SIZE], pair[3 * ARG_TEXT_SIZE];
    for (size_t n = 0; n < sizeof text; n++) {
        Values v;
        memset(text, 'a', n);
        text[n] = 0;
        snprintf(pair, sizeof pair, "path=%s", text);
        assert_int_equal(args_parse(PARAMS, COUNT, &v, pair, NULL), n < ARG_TEXT_SIZE);
        if (n < ARG_TEXT_SIZE) assert_string_equal(v.path, text);
    }
    Values v;
    Error e = {0};
    assert_false(args_set(PARAMS, COUNT, &v, "path", "a,b", &e)); // it could not be read back
    assert_non_null(strstr(e.text, "comma"));
}

// Methods with parameters of their own: parentheses hold their commas, and the key may be left out.
static void methods_in_parentheses(void **state) {
    (void)state;
    typedef struct {
        char of[ARG_TEXT_SIZE];
        int rows;
    } Mixed;
    static const Arg rows[] = {
        {"of", ARG_METHODS, offsetof(Mixed, of), .fallback = "a", .help = "what"},
        {"rows", ARG_INT, offsetof(Mixed, rows), 0, 9, "0", .help = "how many"},
    };
    static const char *const texts[][2] = {
        {"a(x=1,y=2)+b,rows=3", "a(x=1,y=2)+b"},
        {"rows=3,of=a(x=1,y=2)+b", "a(x=1,y=2)+b"},
        {"a(b(c,d),e)+(f,g),rows=3", "a(b(c,d),e)+(f,g)"},
        {"of=a),rows=3", "a)"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Mixed v;
        Text text = {0};
        args_defaults(rows, 2, &v);
        assert_true(args_parse(rows, 2, &v, texts[i][0], NULL));
        assert_string_equal(v.of, texts[i][1]);
        assert_int_equal(v.rows, 3);
        args_write(rows, 2, &v, &text);
        args_defaults(rows, 2, &v);
        assert_true(args_parse(rows, 2, &v, text_get(&text), NULL));
        assert_string_equal(v.of, texts[i][1]);
        text_release(&text);
    }
    Mixed v;
    assert_false(args_parse(rows, 2, &v, "a(x=1,rows=3", NULL));
    assert_false(args_set(rows, 2, &v, "of", "a,b", NULL));
    assert_int_equal(args_span("a(+)+b", '+'), 4);
    assert_int_equal(args_span("a(+", '+'), 3);
}

static void descriptions(void **state) {
    (void)state;
    Text text = {0};
    args_describe(PARAMS, COUNT, &text);
    const char *want[] = {"-5..500", "0..1", "on|off", "red|green|blue", "how many", "from where"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) assert_non_null(strstr(text_get(&text), want[i]));
    text_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(written_values_parse_back),
        cmocka_unit_test(reals_are_short),
        cmocka_unit_test(spellings),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(large_bounds_have_all_digits),
        cmocka_unit_test(texts_keep_within_bounds),
        cmocka_unit_test(methods_in_parentheses),
        cmocka_unit_test(descriptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
