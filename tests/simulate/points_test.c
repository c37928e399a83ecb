#include "tests/support/check.h"

#include "simulate/points.h"

#include <stdio.h>
#include <string.h>

static bool parse(const char *text, Points *p, Error *e) {
    return points_parse(text, strlen(text), "f.tsv", p, e);
}

static void reads_all_columns(void **state) {
    (void)state;
    Points p;
    Error e = {0};
    const char *text = "# measured\r\n"
                       "S\tG\tW\tN\tprompt\tsteps\taccepted\tcandidates\n"
                       "1.5\t3\t4\t5\ta\t10\t0:6,4:4\t0:2,3:8\n"
                       "\n"
                       "1.25\t3\t4\t5\tb b\t20\t0:19,1:1\t3:20\n"
                       "2\t3\t3\t2\tb b\t1\t1:1\t1:1\n"
                       "1\t3\t3\t2\ta\t7\t0:7\t0:7";
    if (!parse(text, &p, &e)) fail_msg("%s", e.text);
    assert_true(p.count == 2 && p.prompts == 2);
    assert_true(p.points[0].N == 5 && p.points[0].W == 4 && p.points[0].G == 3 && p.points[1].N == 2);
    assert_string_equal(p.names[1], "b b");
    assert_true(p.rows[0].S == 1.5 && p.rows[1].S == 1.25 && p.rows[2].S == 1 && p.rows[3].S == 2);
    assert_true(p.rows[2].steps == 7 && p.rows[2].line == 7 && p.rows[3].line == 6);
    assert_true(p.rows[0].accepted.count[4] == 4 && p.rows[1].candidates.count[3] == 20);
    assert_true(p.columns == (POINTS_PROMPT | POINTS_STEPS | POINTS_ACCEPTED | POINTS_CANDIDATES));
    points_release(&p);
}

static void reads_the_least(void **state) {
    (void)state;
    Points p;
    assert_true(parse("N\tW\tG\tS\tse\n5\t7\t7\t1.5\t1e-2\n5\t15\t15\t1.7\t0.01\n", &p, NULL));
    assert_true(p.count == 2 && p.prompts == 1 && p.columns == POINTS_SE && p.rows[1].se == 0.01);
    points_release(&p);
}

// Each file has one thing wrong; the message gives the line and says what.
static void refuses(void **state) {
    (void)state;
    static const struct {
        const char *text, *said;
    } ROWS[] = {
        {"", "f.tsv: no points"},
        {"# nothing\n", "no points"},
        {"N\tW\tG\tS\n", "no points"},
        {"N\tW\tG\n5\t1\t1\n", "f.tsv:1: there is no column 'S'"},
        {"N\tW\tG\tS\tN\n", "f.tsv:1: column 'N' is there twice"},
        {"N\tW\tG\tS\tstep\n", "did you mean 'steps'"},
        {"N\tW\tG\tS\tbanana\n", "f.tsv:1: there is no column 'banana'"},
        {"N W G S\n", "f.tsv:1: there is no column 'N W G S'"},
        {"N\tW\tG\tS\tprompt\n", "there must be one 'steps'"},
        {"N\tW\tG\tS\n5\t7\t7\n", "f.tsv:2: column 'S' is empty"},
        {"N\tW\tG\tS\n\n#\n5\t7\t\t1.5\n", "f.tsv:4: column 'G' is empty"},
        {"N\tW\tG\tS\n5\t7\t7\t1.5\t3\n", "f.tsv:2: more than the 4 fields"},
        {"N\tW\tG\tS\n5\t7\t7\t1,5\n", "f.tsv:2: S is '1,5', must be a number from 1 to 129"},
        {"N\tW\tG\tS\n5\t7\t7\tnan\n", "S is 'nan'"},
        {"N\tW\tG\tS\n5\t7\t7\tinf\n", "S is 'inf'"},
        {"N\tW\tG\tS\n5\t7\t7\t 1.5\n", "S is ' 1.5'"},
        {"N\tW\tG\tS\n5\t7\t7\t0.9\n", "S is '0.9'"},
        {"N\tW\tG\tS\n5\t7\t7\t5.1\n", "a step of N = 5 emits 5 tokens at most"},
        {"N\tW\tG\tS\n5.5\t7\t7\t1.5\n", "N is '5.5', must be a whole number"},
        {"N\tW\tG\tS\n1\t7\t7\t1\n", "N is '1', must be a number from 2"},
        {"N\tW\tG\tS\n5\t0\t7\t1\n", "W is '0'"},
        {"N\tW\tG\tS\tse\n5\t7\t7\t1.5\t0\n", "se is '0'"},
        {"N\tW\tG\tS\n5\t7\t7\t1.5\n5\t7\t7\t1.6\n", "f.tsv:3: N 5, W 7, G 7 is in line 2 already"},
        {"N\tW\tG\tS\taccepted\n3\t7\t7\t1.5\t0:3,3:1\n", "f.tsv:2: a step accepted 3 tokens, with N = 3"},
        {"N\tW\tG\tS\taccepted\n3\t7\t7\t1.5\t0:3,0:1\n", "accepted has 0 twice"},
        {"N\tW\tG\tS\taccepted\n3\t7\t7\t1.5\t0:3,1\n", "accepted has '1', must be length:count"},
        {"N\tW\tG\tS\taccepted\n3\t7\t7\t1.5\t0:0\n", "accepted counts no step"},
        {"N\tW\tG\tS\tcandidates\n3\t7\t7\t1.5\t9999:1\n", "candidates is '9999'"},
        {"N\tW\tG\tS\tprompt\tsteps\n5\t7\t7\t1.5\ta\t1\n5\t9\t9\t1.5\tb\t1\n",
         "prompt 'b' has no row at N 5, W 7"},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Points p;
        Error e = {0};
        bool ok = parse(ROWS[i].text, &p, &e);
        points_release(&p);
        if (ok || !strstr(e.text, ROWS[i].said))
            fail_msg("'%s': wanted '%s', got '%s'", ROWS[i].text, ROWS[i].said, ok ? "no error" : e.text);
    }
    Points p;
    Error e = {0};
    assert_false(points_parse("N\tW\0", 4, "f.tsv", &p, &e));
    assert_false(points_open("/no/such.tsv", &p, &e));
}

// A good file with bytes changed, cut or doubled is read or refused in one line, never worse (sanitizers
// see).
static void survives_damage(void **state) {
    (void)state;
    static const char GOOD[] = "N\tW\tG\tS\tprompt\tsteps\taccepted\tcandidates\n"
                               "5\t4\t4\t1.5\ta\t10\t0:6,4:4\t0:2,3:8\n5\t4\t4\t1.5\tb\t10\t0:6\t3:8\n";
    Random r = test_random(1);
    int read = 0;
    for (int n = 0; n < 3000; n++) {
        char text[sizeof GOOD];
        size_t size = sizeof GOOD - 1;
        memcpy(text, GOOD, sizeof GOOD);
        for (int k = test_between(&r, 0, 3); k > 0; k--)
            text[random_below(&r, (uint32_t)size)] = "\t\n:,.-9aN\r#\xff"[test_between(&r, 0, 11)];
        if (test_between(&r, 0, 3) == 0) size = random_below(&r, (uint32_t)size);
        Points p;
        Error e = {0};
        if (points_parse(text, size, "f.tsv", &p, &e)) read++;
        else assert_true(e.kind == ERROR_INPUT && strncmp(e.text, "f.tsv", 5) == 0);
        points_release(&p);
    }
    assert_true(read > 300 && read < 2700);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_all_columns), cmocka_unit_test(reads_the_least),
                                       cmocka_unit_test(refuses), cmocka_unit_test(survives_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
