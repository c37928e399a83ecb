// `outpace fit` as people run it: a file in, text or JSON out, mistakes in one line.
#include "tests/check.h"

#include "tests/child.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void run(const char *folder, const char *const *argv, int code, Child *child) {
    *child = (Child){0};
    child_run(child, folder, NULL, argv);
    if (child->code != code)
        fail_msg("%s %s: wanted exit code %d, got %d; it said '%s'", argv[1], argv[2] ? argv[2] : "", code,
                 child->code, text_get(&child->err));
}

static const char *program(char *out, size_t size) {
    const char *s = getenv("OUTPACE") ? getenv("OUTPACE") : "./outpace";
    char *whole = realpath(s, NULL);
    snprintf(out, size, "%s", whole ? whole : s);
    free(whole);
    return out;
}

static void write_points(const char *folder) {
    FILE *f = fopen(folder_path(folder, "points.tsv"), "w");
    fputs("# (0.425, 3.106), to nine digits\nN\tW\tG\tS\n"
          "3\t5\t5\t1.50477011\n5\t5\t5\t1.65997802\n5\t15\t15\t1.97861493\n6\t20\t20\t2.12927122\n"
          "5\t15\t4\t1.6\n",
          f);
    fclose(f);
}

static double field(const json_t *root, const char *name, const char *part) {
    const json_t *x = json_object_get(json_object_get(root, name), part);
    if (!json_is_number(x)) fail_msg("JSON has no %s.%s", name, part);
    return json_number_value(x);
}

static void fits(void **state) {
    char path[4096];
    Child c;
    const char *text[] = {program(path, sizeof path), "fit", "--points", "points.tsv", NULL};
    const char *json[] = {path, "fit", "--points=points.tsv", "--json", NULL};
    write_points(*state);
    run(*state, text, 0, &c);
    assert_non_null(strstr(text_get(&c.out), "alpha 0.425 "));
    assert_non_null(strstr(text_get(&c.out), "not fitted"));
    child_release(&c);
    run(*state, json, 0, &c);
    json_t *root = json_loads(text_get(&c.out), 0, NULL);
    static const char *const PARTS[] = {"se", "low", "high"};
    assert_true(fabs(field(root, "alpha", "value") - 0.425) < 1e-6);
    assert_true(fabs(field(root, "f", "value") - 3.106) < 1e-5);
    for (int i = 0; i < 3; i++)
        assert_true(field(root, "alpha", PARTS[i]) >= 0 && field(root, "f", PARTS[i]) >= 0);
    assert_int_equal(json_integer_value(json_object_get(root, "fitted")), 4);
    json_decref(root);
    child_release(&c);
}

static void says_what_is_wrong(void **state) {
    static const struct {
        const char *option, *value, *said;
    } ROWS[] = {
        {"--points",    "none.tsv", "none.tsv"                                  },
        {"--law",       "eq5",      "--law is 'eq5', must be paper or corrected"},
        {"--bonus",     "no",       "--bonus is 'no', must be kept or dropped"  },
        {"--filling",   "some",     "--filling is 'some', must be none or"      },
        {"--filling",   "nan",      "--filling is 'nan'"                        },
        {"7",           "8",        "stored runs cannot be read yet"            },
        {"--resamples", "1",        "resamples"                                 },
    };
    char path[4096];
    program(path, sizeof path);
    write_points(*state);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Child c;
        const char *argv[] = {path, "fit", "--points", "points.tsv", ROWS[i].option, ROWS[i].value, NULL};
        run(*state, argv, 2, &c);
        if (!strstr(text_get(&c.err), ROWS[i].said))
            fail_msg("%s %s: wanted '%s', got '%s'", ROWS[i].option, ROWS[i].value, ROWS[i].said,
                     text_get(&c.err));
        child_release(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fits, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(says_what_is_wrong, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
