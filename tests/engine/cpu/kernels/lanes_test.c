// The lanes in plain C, with which every other set must agree: conversions of all halves, sums in the stated
// order; and the exponential that softmax and gates use.
#include "tests/support/check.h"

#include "engine/cpu/kernels/codes.h"
#include "engine/cpu/kernels/rows.h"

static void halves_convert(void **state) {
    (void)state;
    for (int first = 0; first < 65536; first += LANES) {
        uint16_t h[LANES];
        float got[LANES];
        for (int i = 0; i < LANES; i++) h[i] = (uint16_t)(first + i);
        lanes_store(got, lanes_f16(h));
        for (int i = 0; i < LANES; i++) {
            float want = f16_to_f32(h[i]);
            if (isnan(want) ? !isnan(got[i]) : memcmp(&got[i], &want, sizeof want) != 0)
                fail_msg("f16 %04x is %g, wanted %g", h[i], (double)got[i], (double)want);
        }
    }
}

static void pairs_convert(void **state) {
    (void)state;
    for (int first = 0; first < 65536; first += LANE_PAIRS) {
        uint16_t h[LANE_PAIRS];
        float even[LANES], odd[LANES];
        for (int i = 0; i < LANE_PAIRS; i++) h[i] = (uint16_t)(first + i);
        lanes_store(even, lanes_bf16_even(h));
        lanes_store(odd, lanes_bf16_odd(h));
        for (int i = 0; i < LANES; i++) {
            float a = bf16_to_f32(h[2 * i]), b = bf16_to_f32(h[2 * i + 1]);
            assert_memory_equal(&even[i], &a, sizeof a);
            assert_memory_equal(&odd[i], &b, sizeof b);
        }
    }
}

static void sums_halve(void **state) {
    (void)state;
    Random r = test_random(30);
    for (int round = 0; round < 1000; round++) {
        float x[LANES], s[LANES];
        for (int i = 0; i < LANES; i++) s[i] = x[i] = random_normal(&r);
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int i = 0; i < half; i++) s[i] += s[i + half];
        float got = lanes_sum(lanes_load(x));
        assert_memory_equal(&got, &s[0], sizeof got);
    }
}

// Every mantissa, at the exponents that values of codes may have.
static void values_are_rounded(void **state) {
    (void)state;
    static const uint32_t exponents[] = {1, 2, 100, 127, 237};
    for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++)
        for (uint32_t i = 0; i < 1u << 23; i += LANES) {
            float x[LANES], got[LANES];
            for (uint32_t k = 0; k < LANES; k++) {
                uint32_t bits = (k % 2) << 31 | exponents[e] << 23 | (i + k);
                memcpy(&x[k], &bits, sizeof bits);
            }
            lanes_store(got, lanes_bf16_round(lanes_load(x)));
            for (int k = 0; k < LANES; k++)
                if (got[k] != bf16_round(x[k]))
                    fail_msg("%a becomes %a, wanted %a", (double)x[k], (double)got[k],
                             (double)bf16_round(x[k]));
        }
    assert_true(lanes_sum(lanes_bf16_round(lanes_set(0))) == 0);
}

static void exponential_is_close(void **state) {
    (void)state;
    double worst = 0;
    for (double x = -87.2; x < 88; x += 1.7e-4) {
        float in = (float)x;
        double want = exp((double)in), error = fabs((double)fast_exp(in) - want) / want;
        if (error > worst) worst = error;
    }
    print_message("e^x is off by %.2g at most, 2 units in the last place are %.2g\n", worst, 0x1p-22);
    assert_true(worst < 0x1p-22);
    assert_true(fast_exp(-88) == 0 && fast_exp(-1e30f) == 0 && fast_exp(-INFINITY) == 0);
    assert_true(fast_exp(0) == 1);
}

// Weights are shares: none negative, one in all, larger scores larger shares, far scores exactly nothing.
static void softmax_shares(void **state) {
    (void)state;
    Random r = test_random(31);
    for (int n = 1; n < 200; n++) {
        float x[200], before[200];
        double sum = 0;
        for (int i = 0; i < n; i++) before[i] = x[i] = 40 * random_normal(&r);
        if (n > 3) before[3] = x[3] = -1000;
        softmax(x, n, 0.5f);
        for (int i = 0; i < n; i++) {
            sum += (double)x[i];
            assert_true(x[i] >= 0);
            assert_true(i == 0 || (before[i] > before[i - 1]) <= (x[i] >= x[i - 1]));
        }
        assert_true(fabs(sum - 1) < 1e-6);
        assert_true(n <= 4 || x[3] == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_convert),       cmocka_unit_test(pairs_convert),
        cmocka_unit_test(sums_halve),           cmocka_unit_test(values_are_rounded),
        cmocka_unit_test(exponential_is_close), cmocka_unit_test(softmax_shares)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
