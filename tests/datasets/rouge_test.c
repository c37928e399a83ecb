// ROUGE and its stemmer against Python's rouge-score and NLTK (tests/oracle/rouge.py), and against slow
// obvious counts.
#include "tests/support/check.h"

#include "datasets/rouge.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char *fixture(const char *name, size_t *n) {
    char path[128], *bytes;
    Error e = {0};
    snprintf(path, sizeof path, "tests/fixtures/rouge/%s", name);
    if (!file_read(path, 1 << 24, &bytes, n, &e)) fail_msg("%s", e.text);
    return bytes;
}

static void stems(void **state) {
    (void)state;
    size_t n;
    int count = 0;
    char *bytes = fixture("stems.txt", &n), *rest = bytes;
    for (char *word; (word = strsep(&rest, "\n")) && *word; count++) {
        char got[64], *want = strchr(word, ' ');
        *want++ = 0;
        size_t length = strlen(word);
        memcpy(got, word, length);
        length = porter_stem(got, length);
        if (length != strlen(want) || memcmp(got, want, length) != 0)
            fail_msg("%s: wanted '%s', got '%.*s'", word, want, (int)length, got);
    }
    assert_true(count > 2000);
    mem_free(bytes);
}

static void expect_scores(const json_t *row, const Rouge *r) {
    const RougeScore *const kinds[] = {&r->one, &r->two, &r->longest};
    const json_t *want = json_object_get(row, "scores");
    for (size_t i = 0; i < 9; i++) {
        const RougeScore *s = kinds[i / 3];
        double got = i % 3 == 0 ? s->precision : i % 3 == 1 ? s->recall : s->f;
        if (fabs(got - json_number_value(json_array_get(want, i))) > 1e-6)
            fail_msg("'%s' beside '%s': number %zu: wanted %g, got %g",
                     json_string_value(json_object_get(row, "reference")),
                     json_string_value(json_object_get(row, "candidate")), i,
                     json_number_value(json_array_get(want, i)), got);
    }
}

static void pairs(void **state) {
    (void)state;
    size_t n;
    int count = 0;
    char *bytes = fixture("pairs.jsonl", &n), *rest = bytes;
    for (char *line; (line = strsep(&rest, "\n")) && *line; count++) {
        json_t *row = json_from_bytes(line, strlen(line), "pairs.jsonl", NULL);
        Rouge r = rouge_score(json_string_value(json_object_get(row, "reference")),
                              json_string_value(json_object_get(row, "candidate")));
        expect_scores(row, &r);
        json_decref(row);
    }
    assert_int_equal(count, 200);
    mem_free(bytes);
}

static void expect_near(double got, double want) {
    if (fabs(got - want) > 1e-12) fail_msg("wanted %.15g, got %.15g", want, got);
}

enum { LONGEST = 40 };

// The longest common subsequence, by all ways to go on.
static int slow_longest(const char *a, const char *b, int memo[LONGEST + 1][LONGEST + 1], int i, int k) {
    if (!a[i] || !b[k]) return 0;
    if (memo[i][k] >= 0) return memo[i][k];
    int best = a[i] == b[k] ? 1 + slow_longest(a, b, memo, i + 1, k + 1) : 0;
    int skip_a = slow_longest(a, b, memo, i + 1, k), skip_b = slow_longest(a, b, memo, i, k + 1);
    if (skip_a > best) best = skip_a;
    if (skip_b > best) best = skip_b;
    return memo[i][k] = best;
}

// Pairs that both texts have, each used once.
static int slow_common(const char *a, const char *b, size_t width) {
    bool used[LONGEST] = {0};
    int common = 0;
    for (size_t i = 0; i + width <= strlen(a); i++)
        for (size_t k = 0; k + width <= strlen(b); k++)
            if (!used[k] && memcmp(a + i, b + k, width) == 0) {
                used[k] = true;
                common++;
                break;
            }
    return common;
}

// Words of one letter, a space after each.
static void random_text(Random *r, char *letters, char *text) {
    int n = test_between(r, 1, LONGEST - 1);
    for (int i = 0; i < n; i++) {
        letters[i] = (char)('a' + test_between(r, 0, 3));
        text[2 * i] = letters[i];
        text[2 * i + 1] = ' ';
    }
    letters[n] = text[2 * n] = 0;
}

static void slow_models(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 2000; round++) {
        char a[LONGEST], b[LONGEST], x[2 * LONGEST], y[2 * LONGEST];
        int memo[LONGEST + 1][LONGEST + 1];
        random_text(&r, a, x);
        random_text(&r, b, y);
        memset(memo, -1, sizeof memo);
        Rouge got = rouge_score(x, y);
        double of = (double)strlen(a);
        expect_near(got.longest.recall, slow_longest(a, b, memo, 0, 0) / of);
        expect_near(got.one.recall, slow_common(a, b, 1) / of);
        if (of > 1) expect_near(got.two.recall, slow_common(a, b, 2) / (of - 1));
    }
}

// The best of several for each score by itself.
static void several_references(void **state) {
    (void)state;
    static const char *const references[] = {"b a d c", "a b", "x"};
    Rouge best = rouge_best(references, 3, "a b c d");
    Rouge first = rouge_score(references[0], "a b c d"), second = rouge_score(references[1], "a b c d");
    expect_near(best.one.f, first.one.f);
    expect_near(best.two.f, second.two.f);
    assert_true(first.one.f > second.one.f && second.two.f > first.two.f);
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(stems), cmocka_unit_test(pairs),
                                       cmocka_unit_test(slow_models), cmocka_unit_test(several_references)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
