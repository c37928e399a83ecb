#include "tests/support/check.h"

#include <math.h>
#include <string.h>

// The authors' published answers for ten rounds: counter words 0 to 3, key words 0 and 1, the first two words
// out.
static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], want[2];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t *c = rows[i].counter, *k = rows[i].key, *w = rows[i].want;
        uint64_t got =
            random_at(k[0] | (uint64_t)k[1] << 32, c[2] | (uint64_t)c[3] << 32, c[0] | (uint64_t)c[1] << 32);
        assert_int_equal(got, w[0] | (uint64_t)w[1] << 32);
    }
}

// Any point of a stream can be had without those before it.
static void replay(void **state) {
    (void)state;
    Random a = {.seed = 5, .stream = 6}, b;
    for (int i = 0; i < 100; i++) random_bits(&a);
    b = (Random){.seed = 5, .stream = 6, .counter = 100};
    for (int i = 0; i < 100; i++) {
        assert_int_equal(random_bits(&b), random_at(5, 6, 100 + (uint64_t)i));
        a.counter = (uint64_t)i;
        random_uniform(&a), random_below(&a, 3), random_normal(&a);
        assert_int_equal(a.counter, i + 3); // one value each
    }
}

// Of k - 1 degrees of freedom; beyond the mean by six deviations is no accident, and the seed is fixed.
static void check_flat(const int *counts, int k, int draws, const char *what) {
    double expected = (double)draws / k, chi = 0, freedom = k - 1;
    for (int i = 0; i < k; i++) chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    double off = (chi - freedom) / sqrt(2 * freedom);
    if (fabs(off) > 6) fail_msg("%s: chi-square %.1f of %d bins is %.1f deviations off", what, chi, k, off);
}

static void uniformity(void **state) {
    (void)state;
    enum { DRAWS = 400000, MOST = 1000 };
    static const uint32_t bounds[] = {2, 3, 7, 64, 100, MOST};
    Random r = test_random(1);
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        int below[MOST] = {0}, uniform[MOST] = {0}, pairs[MOST] = {0}, k = (int)bounds[b];
        for (int i = 0; i < DRAWS; i++) {
            uint32_t n = random_below(&r, bounds[b]);
            double u = random_uniform(&r);
            assert_true(n < bounds[b] && u >= 0 && u < 1);
            below[n]++;
            uniform[(int)(u * k)]++;
            pairs[(n + (uint32_t)(u * k)) % bounds[b]]++; // neighbours do not lean on each other
        }
        check_flat(below, k, DRAWS, "random_below");
        check_flat(uniform, k, DRAWS, "random_uniform");
        check_flat(pairs, k, DRAWS, "sums of neighbours");
    }
    assert_int_equal(random_below(&r, 1), 0);
}

// Every one of the 64 raw bits, the 53 of a uniform and the 31 below a power of two is set half of the time.
static void every_bit(void **state) {
    (void)state;
    enum { DRAWS = 200000 };
    Random r = test_random(2);
    int bits[64] = {0}, fraction[53] = {0}, below[31] = {0};
    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = random_bits(&r), u = (uint64_t)(random_uniform(&r) * 0x1p53);
        uint32_t n = random_below(&r, 1u << 31);
        for (int b = 0; b < 31; b++) below[b] += (int)(n >> b & 1);
        for (int b = 0; b < 64; b++) bits[b] += (int)(x >> b & 1);
        for (int b = 0; b < 53; b++) fraction[b] += (int)(u >> b & 1);
    }
    for (int b = 0; b < 31; b++) assert_true(fabs(below[b] - DRAWS / 2.0) < 6 * sqrt(DRAWS / 4.0));
    for (int b = 0; b < 64; b++) assert_true(fabs(bits[b] - DRAWS / 2.0) < 6 * sqrt(DRAWS / 4.0));
    for (int b = 0; b < 53; b++) assert_true(fabs(fraction[b] - DRAWS / 2.0) < 6 * sqrt(DRAWS / 4.0));
}

// The moments of the normal distribution are 0, 1, 0, 3; each mean has the deviation beside it, times
// 1/sqrt(n).
static void normal_moments(void **state) {
    (void)state;
    enum { DRAWS = 4000000 };
    static const double want[] = {0, 1, 0, 3, 0, 15}, deviation[] = {1, 1.42, 3.88, 9.8, 30.8, 101};
    Random r = test_random(3);
    double sum[6] = {0};
    int beyond_two = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = (double)random_normal(&r), power = 1;
        assert_true(isfinite(x));
        beyond_two += fabs(x) > 2;
        for (int m = 0; m < 6; m++) sum[m] += power *= x;
    }
    for (int m = 0; m < 6; m++)
        if (fabs(sum[m] / DRAWS - want[m]) > 6 * deviation[m] / sqrt(DRAWS))
            fail_msg("moment %d: want %g, got %g", m + 1, want[m], sum[m] / DRAWS);
    assert_true(fabs(beyond_two / (double)DRAWS - 0.04550) < 6 * sqrt(0.0455 / DRAWS));
}

static int order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// A stream's words do not turn up in another stream or seed, and streams are not correlated.
static void streams_apart(void **state) {
    (void)state;
    enum { WAYS = 40, EACH = 5000 };
    uint64_t *all = calloc(WAYS * EACH, sizeof *all);
    assert_non_null(all);
    for (uint64_t w = 0; w < WAYS; w++)
        for (uint64_t i = 0; i < EACH; i++) // neighbours in each of the coordinates, and far ones
            all[w * EACH + i] = random_at(w & 1, w >> 1 & 3 ? w >> 1 : w << 40, i);
    long equal_bits = 0;
    for (size_t i = 0; i < EACH; i++) equal_bits += __builtin_popcountll(~(all[i] ^ all[3 * EACH + i]));
    assert_true(fabs((double)equal_bits - EACH * 32.0) < 6 * sqrt(EACH * 64 / 4.0));
    qsort(all, WAYS * EACH, sizeof *all, order);
    for (size_t i = 1; i < WAYS * EACH; i++) assert_true(all[i - 1] != all[i]);
    free(all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers), cmocka_unit_test(replay),         cmocka_unit_test(uniformity),
        cmocka_unit_test(every_bit),     cmocka_unit_test(normal_moments), cmocka_unit_test(streams_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
