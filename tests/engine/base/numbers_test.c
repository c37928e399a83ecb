// Both sixteen-bit formats against a slow model: all halves in one direction, and in the other every place
// where the answer changes.
#include "tests/support/check.h"

#include "engine/base/numbers.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    int exponent_bits, fraction_bits;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
    Dtype dtype;
} Format;

static float widen_bf16(uint16_t h) { return bf16_to_f32(h); }
static uint16_t narrow_bf16(float f) { return f32_to_bf16(f); }

static const Format formats[] = {
    {"bf16", 8, 7, widen_bf16, narrow_bf16, DTYPE_BF16},
    {"f16", 5, 10, f16_to_f32, f32_to_f16, DTYPE_F16},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static uint16_t infinity_of(const Format *f) {
    return (uint16_t)(((1 << f->exponent_bits) - 1) << f->fraction_bits);
}

// The value of the positive half h by the definition of the format; of infinity's bits what would come after
// the largest number, which is where rounding to it starts from.
static double value_of(const Format *f, uint16_t h) {
    int bias = (1 << (f->exponent_bits - 1)) - 1, exponent = h >> f->fraction_bits;
    int fraction = h & ((1 << f->fraction_bits) - 1), one = 1 << f->fraction_bits;
    if (exponent == 0) return ldexp(fraction, 1 - bias - f->fraction_bits);
    return ldexp(one + fraction, exponent - bias - f->fraction_bits);
}

// The nearest of all halves, by bisection of the ordered positive ones; of two equally near the even one.
static uint16_t nearest(const Format *f, float x) {
    uint16_t sign = signbit(x) ? 0x8000 : 0, low = 0, high = infinity_of(f);
    double a = fabs((double)x);
    if (a >= value_of(f, high)) return sign | high;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if (value_of(f, middle) <= a) low = middle;
        else high = middle;
    }
    double down = a - value_of(f, low), up = value_of(f, high) - a;
    return sign | (down < up || (down == up && low % 2 == 0) ? low : high);
}

static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static void check_narrow(const Format *f, float x) {
    uint16_t want = nearest(f, x), got = f->narrow(x);
    if (want != got)
        fail_msg("%s of %a (0x%08x): want %04x, got %04x", f->name, (double)x, bits_of(x), want, got);
    if (bits_of(dtype_round(f->dtype, x)) != bits_of(f->widen(want)))
        fail_msg("%a (0x%08x) rounds to another %s than it is narrowed to", (double)x, bits_of(x), f->name);
}

static void all_halves(void **state) {
    (void)state;
    for (const Format *f = formats; f < formats + FORMATS; f++)
        for (uint32_t h = 0; h <= 0xffff; h++) {
            float x = f->widen((uint16_t)h);
            uint16_t magnitude = h & 0x7fff, infinite = infinity_of(f);
            assert_int_equal(signbit(x) != 0, h >> 15);
            if (magnitude > infinite) {
                assert_true(isnan(x));
                assert_true(isnan(f->widen(f->narrow(x))));
                continue;
            }
            if (magnitude == infinite) assert_true(isinf(x));
            else assert_true(fabs((double)x) == value_of(f, magnitude));
            assert_int_equal(f->narrow(x), h); // there and back
        }
}

// Narrowing is a staircase: right on both sides of the middle of every step, and in the middle, it is right
// everywhere in between (as it never falls, which random_floats looks at).
static void every_step(void **state) {
    (void)state;
    for (const Format *f = formats; f < formats + FORMATS; f++)
        for (uint16_t h = 0; h < infinity_of(f); h++) {
            double middle = (value_of(f, h) + value_of(f, (uint16_t)(h + 1))) / 2;
            float x = (float)middle;
            assert_true((double)x == middle);
            for (int sign = -1; sign <= 1; sign += 2) {
                check_narrow(f, (float)sign * x);
                check_narrow(f, (float)sign * nextafterf(x, 0));
                check_narrow(f, (float)sign * nextafterf(x, INFINITY));
            }
        }
}

static void random_floats(void **state) {
    (void)state;
    Random r = test_random(1);
    for (const Format *f = formats; f < formats + FORMATS; f++)
        for (int i = 0; i < 1000000; i++) {
            uint32_t u = (uint32_t)random_bits(&r);
            float x = float_of(u), y = float_of(u & 0x7fffffff), next = nextafterf(y, INFINITY);
            if (isnan(x)) continue;
            check_narrow(f, x);
            assert_true(f->narrow(y) <= f->narrow(next));
        }
}

static void not_numbers(void **state) {
    (void)state;
    Random r = test_random(2);
    for (const Format *f = formats; f < formats + FORMATS; f++) {
        for (int i = 0; i < 100000; i++) { // also those whose payload is in the bits that are cut
            uint32_t u = 0x7f800000 | (uint32_t)random_bits(&r) >> test_between(&r, 9, 31) | 1;
            u |= (uint32_t)test_between(&r, 0, 1) << 31;
            uint16_t h = f->narrow(float_of(u));
            assert_true((h & 0x7fff) > infinity_of(f)); // still none
            assert_int_equal(h >> 15, u >> 31);
            assert_true(h >> (f->fraction_bits - 1) & 1); // quiet
            assert_true(isnan(dtype_round(f->dtype, float_of(u))));
        }
        assert_int_equal(f->narrow(INFINITY), infinity_of(f));
        assert_int_equal(f->narrow(-INFINITY), infinity_of(f) | 0x8000);
        assert_int_equal(f->narrow(-0.0f), 0x8000);
        assert_int_equal(f->narrow(3.4028235e38f), infinity_of(f)); // the largest float rounds up to it
    }
}

static void loads(void **state) {
    (void)state;
    Random r = test_random(3);
    unsigned char bytes[64 + 4];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)test_between(&r, 0, 0x3f); // no NaN
    for (size_t at = 0; at < 4; at++) // a tensor of a file may start anywhere
        for (size_t i = 0; i < 16; i++) {
            float x;
            uint16_t h;
            memcpy(&x, bytes + at + 4 * i, 4);
            memcpy(&h, bytes + at + 2 * i, 2);
            assert_true(dtype_load(DTYPE_F32, bytes + at, i) == x);
            assert_true(dtype_load(DTYPE_F16, bytes + at, i) == f16_to_f32(h));
            assert_true(dtype_load(DTYPE_BF16, bytes + at, i) == bf16_to_f32(h));
        }
    assert_int_equal(dtype_size(DTYPE_F32), 4);
    assert_int_equal(dtype_size(DTYPE_F16), 2);
    assert_int_equal(dtype_size(DTYPE_BF16), 2);
    assert_string_equal(dtype_name(DTYPE_F32), "F32");
    assert_string_equal(dtype_name(DTYPE_F16), "F16");
    assert_string_equal(dtype_name(DTYPE_BF16), "BF16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves),  cmocka_unit_test(every_step), cmocka_unit_test(random_floats),
        cmocka_unit_test(not_numbers), cmocka_unit_test(loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
