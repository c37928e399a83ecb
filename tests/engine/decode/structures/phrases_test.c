// Ouroboros' Figure 1, letter by letter.
#include "tests/support/check.h"

#include "engine/decode/methods/ouroboros.c" // for its static functions

#include <string.h>

enum { LETTERS = 26, BETA = 4 };

static const int *spell(const char *word) {
    static int tokens[4][40];
    static int next;
    int *out = tokens[next++ % 4];
    for (int i = 0; word[i]; i++) out[i] = word[i] - 'A';
    return out;
}

// The key's phrases, newest first.
static void check_phrases(const NgramPool *p, char key, const char *const *want, int count) {
    assert_int_equal(ngram_pool_count(p, key - 'A'), count);
    for (int i = 0; i < count; i++)
        assert_memory_equal(ngram_pool_tuple(p, key - 'A', i), spell(want[i]), (BETA - 1) * sizeof(int));
}

// "we can generate high-quality candidates KLMN and LMNO": after EFGHI, W should be J.
static void inspiration(void **state) {
    (void)state;
    NgramPool p;
    assert_true(ngram_pool_init(&p, LETTERS, BETA - 1, 3, POOL_LRU, NULL));
    phrases_inspire(&p, spell("EFGHIWKLMN"), spell("EFGHIJKLMNO"), 10, 5, false);
    check_phrases(&p, 'K', (const char *const[]){"LMN"}, 1);
    check_phrases(&p, 'L', (const char *const[]){"MNO"}, 1);
    assert_int_equal(p.size, 2);
    ngram_pool_release(&p);
}

// The wrong token W is a key too: KLM is the target's output after it. The last token need not agree.
static void loose_inspiration(void **state) {
    (void)state;
    NgramPool p;
    assert_true(ngram_pool_init(&p, LETTERS, BETA - 1, 3, POOL_LRU, NULL));
    phrases_inspire(&p, spell("EFGHIWKLMN"), spell("EFGHIJKLMNO"), 10, 5, true);
    check_phrases(&p, 'W', (const char *const[]){"KLM"}, 1);
    check_phrases(&p, 'K', (const char *const[]){"LMN"}, 1);
    check_phrases(&p, 'L', (const char *const[]){"MNO"}, 1);
    assert_int_equal(p.size, 3);
    phrases_inspire(&p, spell("XABY"), spell("EABCD"), 4, 0, true); // ABC: C is the target's own
    check_phrases(&p, 'X', (const char *const[]){"ABC"}, 1);
    phrases_inspire(&p, spell("XABY"), spell("EAZCD"), 4, 0, true);
    phrases_inspire(&p, spell("EFGH"), spell("EFGHI"), 4, 4, true); // nothing is wrong
    assert_int_equal(p.size, 4);
    ngram_pool_release(&p);
}

static void inspiration_needs_a_rejection(void **state) {
    (void)state;
    NgramPool p;
    assert_true(ngram_pool_init(&p, LETTERS, BETA - 1, 3, POOL_LRU, NULL));
    phrases_inspire(&p, spell("EFGHIJKLMN"), spell("EFGHIJKLMNO"), 10, 10, false);
    phrases_inspire(&p, spell("EFG"), spell("XFGH"), 3, 0, false); // too short after it
    phrases_inspire(&p, spell(""), spell("E"), 0, 0, false);
    assert_int_equal(p.size, 0);
    ngram_pool_release(&p);
}

// "Low-quality candidate suffixes NOXQ and NRSY are fixed by the target model, changing to NOPQ and NOPT"
static void refinement(void **state) {
    (void)state;
    NgramPool p;
    assert_true(ngram_pool_init(&p, LETTERS, BETA - 1, 3, POOL_LRU, NULL));
    ngram_pool_insert(&p, 'N' - 'A', spell("RSY"));
    ngram_pool_insert(&p, 'N' - 'A', spell("OXQ"));
    phrases_refine(&p, 'N' - 'A', spell("RSY"), spell("OPT"));
    phrases_refine(&p, 'N' - 'A', spell("OXQ"), spell("OPQ"));
    check_phrases(&p, 'N', (const char *const[]){"OPQ", "OPT"}, 2);
    phrases_refine(&p, 'N' - 'A', spell("OPT"), spell("OPQ")); // two become one
    check_phrases(&p, 'N', (const char *const[]){"OPQ"}, 1);
    ngram_pool_release(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspiration),
        cmocka_unit_test(loose_inspiration),
        cmocka_unit_test(inspiration_needs_a_rejection),
        cmocka_unit_test(refinement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
