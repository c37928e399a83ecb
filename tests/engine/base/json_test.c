#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/text.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <string.h>

static json_t *parse(const char *bytes) { return json_from_bytes(bytes, strlen(bytes), "place", NULL); }

static void check_error(const Error *e, const char *want) {
    assert_int_equal(e->kind, ERROR_INPUT);
    assert_string_equal(e->text, want);
}

// Every one is refused in a line that starts with the place.
static void refused(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *why;
    } rows[] = {
        {"", "line 1, column 0: "},
        {"{\"a\": 1, \"b\": 2, \"a\": 1}", "line 1, column 20: duplicate object key"},
        {"{\"a\": {\"b\": 0, \"b\": 0}}", "duplicate object key"},
        {"{\"a\": 1", "line 1, column 7: "},
        {"{\"a\": 1}\n x", "line 2, column 2: end of file expected"},
        {"{\"a\": \"\\u0000\"}", "the character \\u0000 is not read"},
        {"{\"\\u0000\": 1}", "the character \\u0000 is not read"},
        {"[\"\xff\"]", "unable to decode byte"},
        {"[\"\xc0\xaf\"]", "unable to decode byte"},
        {"[\"\xed\xa0\x80\"]", "unable to decode byte"},
        {"[\"\\ud800\"]", "invalid Unicode"},
        {"[99999999999999999999]", "too big integer"},
        {"[-99999999999999999999]", "too big negative integer"},
        {"[1e999]", "real number overflow"},
        {"NaN", "'[' or '{' expected"},
        {"[nan]", "line 1, column 4: invalid token"},
        {"[-NaN]", "invalid token"},
        {"[NaN1]", "invalid token"},
        {"[1NaN]", ""},
        {"[-Infinity0]", "invalid token"},
        {"{NaN: 1}", ""},
        {"[NaN, -Infinity,\nNaN, x]", "line 2, column 6: invalid token"}, // counted in the file as it is
        {"[NaN, \"\303\251\", x]", "line 1, column 12: invalid token"},
        {"[NaN", ""},
        {"[NaN, \"\\", ""},
        {"[01]", ""},
        {"['a']", "invalid token"},
        {"[1,]", ""},
        {"[\"a\nb\"]", "unexpected newline"},
        {"[\"a\tb\"]", "control character"},
        {"// no comments\n[]", ""},
        {"5", "'[' or '{' expected"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const char START[] = "cannot parse 'some file': line ";
        Error e = {0};
        json_t *root = json_from_bytes(rows[i].bytes, strlen(rows[i].bytes), "some file", &e);
        if (root || e.kind != ERROR_INPUT || strncmp(e.text, START, sizeof START - 1) ||
            !strstr(e.text, rows[i].why))
            fail_msg("%s: want '%s... %s', got '%s'", rows[i].bytes, START, rows[i].why,
                     root ? "success" : e.text);
    }
}

// As Python writes them: text of that name, and only as values.
static void not_finite(void **state) {
    (void)state;
    double x = 1;
    int64_t n = 1;
    Error e = {0};
    json_t *root =
        parse("{\"a\": NaN, \"b\":[Infinity,-Infinity\n], \"NaN\": \"[NaN, \\\"Infinity]\", \"c\": 2.5}");
    assert_non_null(root);
    assert_string_equal(field_text(root, "a", "place", &e), "NaN");
    const json_t *list = json_object_get(root, "b");
    assert_string_equal(json_string_value(json_array_get(list, 0)), "Infinity");
    assert_string_equal(json_string_value(json_array_get(list, 1)), "-Infinity");
    assert_string_equal(field_text(root, "NaN", "place", &e), "[NaN, \"Infinity]");
    assert_true(field_real(root, "c", 0, 9, &x, "place", &e) && x == 2.5);
    assert_false(field_real(root, "a", 0, 9, &x, "place", &e));
    check_error(&e, "'a' in 'place' is 'NaN', must be a number");
    assert_false(field_int_optional(root, "a", 0, 9, &n, "place", &e));
    check_error(&e, "'a' in 'place' is 'NaN', must be an integer");
    assert_true(x == 2.5 && n == 1);
    json_decref(root);
}

static void exactly_the_bytes(void **state) {
    (void)state;
    Error e = {0};
    json_t *root = json_from_bytes("[1]]]", 3, "place", &e); // what lies after is not looked at
    assert_int_equal(json_array_size(root), 1);
    json_decref(root);
    assert_null(json_from_bytes("[1]\0", 4, "place", &e)); // a NUL after the value is not JSON
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_null(json_from_bytes(NULL, 0, "place", &e));
    assert_int_equal(e.kind, ERROR_INPUT);
}

static bool parses_at_depth(int depth, char open, char close, Error *e) {
    Text t = {0};
    for (int i = 0; i < depth; i++) {
        text_add(&t, &open, 1);
        if (open == '{') text_puts(&t, "\"a\":");
    }
    if (open == '{') text_puts(&t, "1");
    for (int i = 0; i < depth; i++) text_add(&t, &close, 1);
    json_t *root = json_from_bytes(t.data, t.length, "place", e);
    json_decref(root);
    text_release(&t);
    return root != NULL;
}

// The library's cap is a promise of ours: hostile files must not reach the end of the stack.
static void depth(void **state) {
    (void)state;
    Error e = {0};
    assert_true(parses_at_depth(2048, '[', ']', &e));
    assert_true(parses_at_depth(2047, '{', '}', &e)); // and a number within
    static const int deeper[] = {2049, 100000, 1000000};
    for (size_t i = 0; i < sizeof deeper / sizeof deeper[0]; i++)
        for (int kind = 0; kind < 2; kind++) {
            e = (Error){0};
            assert_false(parses_at_depth(deeper[i], "[{"[kind], "]}"[kind], &e));
            assert_int_equal(e.kind, ERROR_INPUT);
            assert_non_null(strstr(e.text, "depth"));
        }
}

static void files(void **state) {
    Error e = {0};
    scratch_write(*state, "file", "{\"a\": 1}\n", 9);
    const char *path = folder_path(*state, "file");
    json_t *root = json_from_file(path, 9, &e);
    assert_int_equal(json_object_size(root), 1);
    json_decref(root);
    assert_null(json_from_file(path, 8, &e));
    assert_non_null(strstr(e.text, path));
    assert_null(json_from_file(folder_path(*state, "none"), 9, &e));
    assert_non_null(strstr(e.text, "No such file"));
    scratch_write(*state, "file", "{\n1}", 4);
    assert_null(json_from_file(path, 9, &e));
    assert_non_null(strstr(e.text, path));
    assert_non_null(strstr(e.text, "line 2"));
}

static const char FIELDS[] =
    "{\"int\": 7, \"low\": -9223372036854775808, \"high\": 9223372036854775807, \"real\": 2.5, \"whole\":"
    " 2.0, \"text\": \"abc\", \"empty\": \"\", \"yes\": true, \"no\": false, \"null\": null, \"list\": []}";

static void ints(void **state) {
    (void)state;
    json_t *o = parse(FIELDS);
    Error e = {0};
    int64_t n = 42;
    assert_true(field_int(o, "int", 7, 7, &n, "f", &e) && n == 7);
    assert_true(field_int(o, "low", INT64_MIN, INT64_MAX, &n, "f", &e) && n == INT64_MIN);
    assert_true(field_int(o, "high", INT64_MIN, INT64_MAX, &n, "f", &e) && n == INT64_MAX);
    n = 42;
    assert_true(field_int_optional(o, "absent", 0, 9, &n, "f", &e) && n == 42);
    assert_true(field_int_optional(o, "null", 0, 9, &n, "f", &e) && n == 42);
    assert_int_equal(e.kind, ERROR_NONE);
    assert_false(field_int(o, "absent", 0, 9, &n, "f", &e));
    check_error(&e, "'absent' is missing in 'f'");
    assert_false(field_int(o, "null", 0, 9, &n, "f", &e));
    check_error(&e, "'null' is missing in 'f'");
    static const char *const others[] = {"real", "whole", "text", "yes", "list"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(field_int_optional(o, others[i], 0, 9, &n, "f", &e));
        assert_non_null(strstr(e.text, "must be an integer"));
        assert_memory_equal(e.text + 1, others[i], strlen(others[i]));
    }
    assert_false(field_int_optional(o, "int", 8, 9, &n, "f", &e));
    check_error(&e, "'int' in 'f' is 7, must be from 8 to 9");
    assert_false(field_int(o, "int", 0, 6, &n, "f", &e));
    check_error(&e, "'int' in 'f' is 7, must be from 0 to 6");
    assert_int_equal(n, 42); // no failure touched it
    json_decref(o);
}

static void reals(void **state) {
    (void)state;
    json_t *o = parse(FIELDS);
    Error e = {0};
    double x = 42;
    assert_true(field_real(o, "real", 2.5, 2.5, &x, "f", &e) && x == 2.5);
    assert_true(field_real(o, "int", 0, 9, &x, "f", &e) && x == 7);
    x = 42;
    assert_true(field_real_optional(o, "absent", 0, 9, &x, "f", &e) && x == 42);
    assert_true(field_real_optional(o, "null", 0, 9, &x, "f", &e) && x == 42);
    assert_int_equal(e.kind, ERROR_NONE);
    assert_false(field_real(o, "absent", 0, 9, &x, "f", &e));
    check_error(&e, "'absent' is missing in 'f'");
    assert_false(field_real(o, "text", 0, 9, &x, "f", &e));
    check_error(&e, "'text' in 'f' is 'abc', must be a number");
    assert_false(field_real(o, "real", 2.75, 9, &x, "f", &e));
    check_error(&e, "'real' in 'f' is 2.5, must be from 2.75 to 9");
    assert_false(field_real_optional(o, "real", 0, 2.25, &x, "f", &e));
    check_error(&e, "'real' in 'f' is 2.5, must be from 0 to 2.25");
    assert_true(x == 42);
    json_decref(o);
}

static void bools_and_texts(void **state) {
    (void)state;
    json_t *o = parse(FIELDS), *list = parse("[]");
    Error e = {0};
    bool b = false;
    assert_true(field_bool_optional(o, "yes", &b, "f", &e) && b);
    assert_true(field_bool_optional(o, "absent", &b, "f", &e) && b);
    assert_true(field_bool_optional(o, "null", &b, "f", &e) && b);
    assert_true(field_bool_optional(o, "no", &b, "f", &e) && !b);
    assert_false(field_bool_optional(o, "int", &b, "f", &e));
    check_error(&e, "'int' in 'f' must be true or false");
    assert_string_equal(field_text(o, "text", "f", &e), "abc");
    assert_string_equal(field_text(o, "empty", "f", &e), "");
    assert_null(field_text(o, "int", "f", &e));
    check_error(&e, "'int' in 'f' must be a string");
    assert_null(field_text(o, "absent", "f", &e));
    check_error(&e, "'absent' is missing in 'f'");
    assert_null(field_text(o, "null", "f", &e));
    check_error(&e, "'null' is missing in 'f'");
    assert_null(field_text(list, "text", "f", &e)); // where an object was expected
    check_error(&e, "'text' is missing in 'f'");
    assert_true(field_present(o, "no") && field_present(o, "empty"));
    assert_false(field_present(o, "null") || field_present(o, "absent") || field_present(list, "x") ||
                 field_present(NULL, "x"));
    json_decref(o);
    json_decref(list);
}

static void written(void **state) {
    (void)state;
    Text out = {0};
    char line[16] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    text_puts(&out, "a ");
    assert_true(json_append(parse("[1, \"b\"]"), JSON_COMPACT, &out));
    assert_string_equal(text_get(&out), "a [1,\"b\"]");
    assert_true(json_print(parse("{\"k\": 2}"), 0, file));
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "{\"k\": 2}\n");
    assert_null(json_text(NULL, 0));
    assert_false(json_append(NULL, 0, &out) || json_print(NULL, 0, file));
    assert_string_equal(text_get(&out), "a [1,\"b\"]");
    assert_null(fgets(line, sizeof line, file));
    text_release(&out);
    fclose(file);
}

static void numbers(void **state) {
    json_t *half = json_number(0.5), *none = json_number(NAN), *much = json_number(-HUGE_VAL);
    (void)state;
    assert_true(json_real_value(half) == 0.5);
    assert_true(json_is_null(none) && json_is_null(much));
    json_decref(half), json_decref(none), json_decref(much);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(not_finite),
        cmocka_unit_test(exactly_the_bytes),
        cmocka_unit_test(depth),
        cmocka_unit_test_setup_teardown(files, folder_setup, folder_teardown),
        cmocka_unit_test(ints),
        cmocka_unit_test(reals),
        cmocka_unit_test(bools_and_texts),
        cmocka_unit_test(written),
        cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
