// Limits one by one around a good shape; frequencies against the formulas written out once more.
#include "tests/support/check.h"

#include "engine/core/shape.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static Shape good(void) {
    Shape s = {.layers = 3,
               .width = 64,
               .heads = 6,
               .kv_heads = 2,
               .head_dim = 16,
               .mlp_width = 100,
               .vocab = 300,
               .real_vocab = 290,
               .context = 512,
               .window = 20,
               .norm_epsilon = 1e-5f};
    s.rope = (Rope){.theta = 10000, .factor = 1, .pairs = 8, .attention_factor = 1};
    return s;
}

typedef struct {
    const char *words; // of the refusal
    size_t offset;     // of the field in Shape
    int low, high;     // the widest that the good shape's other fields allow
} Field;

static bool check_with(const Field *f, int value, Error *e) {
    Shape s = good();
    memcpy((char *)&s + f->offset, &value, sizeof value);
    *e = (Error){0};
    return shape_check(&s, "x.json", e);
}

static void limits_hold(void **state) {
    (void)state;
    static const Field fields[] = {
        {"layers", offsetof(Shape, layers), 1, 1000},
        {"hidden size", offsetof(Shape, width), 1, 1 << 17},
        {"intermediate size", offsetof(Shape, mlp_width), 0, 1 << 19},
        {"vocabulary", offsetof(Shape, vocab), 290, 1 << 21},
        {"real vocabulary", offsetof(Shape, real_vocab), 1, 300},
        {"context", offsetof(Shape, context), 1, 1 << 24},
        {"sliding window", offsetof(Shape, window), 0, 1 << 24},
    };
    Error e;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const Field *f = &fields[i];
        const int outside[] = {f->low - 1, f->high + 1, INT_MIN, INT_MAX};
        if (!check_with(f, f->low, &e)) fail_msg("%s of %d refused: %s", f->words, f->low, e.text);
        if (!check_with(f, f->high, &e)) fail_msg("%s of %d refused: %s", f->words, f->high, e.text);
        for (int k = 0; k < 4; k++) {
            if (check_with(f, outside[k], &e)) fail_msg("%s of %d taken", f->words, outside[k]);
            if (!strstr(e.text, "x.json") || !strstr(e.text, f->words))
                fail_msg("%s of %d: message '%s'", f->words, outside[k], e.text);
            assert_int_equal(e.kind, ERROR_INPUT);
        }
    }
}

typedef struct {
    int heads, kv_heads, head_dim;
    float epsilon;
    const char *words; // NULL: taken
} HeadCase;

static void heads_fit(void **state) {
    (void)state;
    static const HeadCase cases[] = {
        {6, 2, 16, 1e-5f, NULL},
        {6, 6, 16, 1e-5f, NULL},
        {1024, 1, 512, 1e-5f, NULL},
        {1, 1, 2, 1e-5f, NULL},
        {6, 4, 16, 1e-5f, "do not divide"},
        {6, 7, 16, 1e-5f, "key-value heads"},
        {6, 0, 16, 1e-5f, "key-value heads"},
        {6, -2, 16, 1e-5f, "key-value heads"},
        {0, 0, 16, 1e-5f, "attention heads"},
        {1025, 1, 16, 1e-5f, "attention heads"},
        {6, 2, 15, 1e-5f, "odd size 15"},
        {6, 2, 0, 1e-5f, "head size"},
        {6, 2, 514, 1e-5f, "head size"},
        {6, 2, 16, 0, "epsilon"},
        {6, 2, 16, -1, "epsilon"},
        {6, 2, 16, 1, "epsilon"},
        {6, 2, 16, NAN, "epsilon"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const HeadCase *c = &cases[i];
        Error e = {0};
        Shape s = good();
        s.heads = c->heads, s.kv_heads = c->kv_heads, s.head_dim = c->head_dim;
        s.norm_epsilon = c->epsilon;
        bool ok = shape_check(&s, "x.json", &e);
        if (ok != !c->words || (c->words && !strstr(e.text, c->words)))
            fail_msg("heads %d/%d of %d, epsilon %g: %s, wanted '%s'", c->heads, c->kv_heads, c->head_dim,
                     (double)c->epsilon, ok ? "taken" : e.text, c->words ? c->words : "taken");
    }
}

static void same(double got, double wanted, const char *what, int i) {
    if (fabs(got - wanted) > 1e-12 * fabs(wanted))
        fail_msg("%s, pair %d: %.17g, wanted %.17g", what, i, got, wanted);
}

static void plain_and_linear(void **state) {
    (void)state;
    double out[ROPE_MAX_PAIRS];
    Rope r = {.kind = ROPE_PLAIN, .theta = 10000, .pairs = 64};
    rope_frequencies(&r, out);
    same(out[0], 1, "plain", 0);
    same(out[16], 0.1, "plain", 16); // 10000^(-1/4)
    same(out[32], 0.01, "plain", 32);
    same(out[63], exp(-log(10000) * 126 / 128), "plain", 63);
    r.kind = ROPE_LINEAR, r.factor = 4;
    rope_frequencies(&r, out);
    same(out[32], 0.0025, "linear", 32);
}

// The bands of Llama 3.1: wavelengths below 8192/4 stay, above 8192/1 are stretched by 8.
static void llama3_bands(void **state) {
    (void)state;
    double out[ROPE_MAX_PAIRS], pi = acos(-1);
    Rope r = {.kind = ROPE_LLAMA3,
              .theta = 500000,
              .factor = 8,
              .low_frequency_factor = 1,
              .high_frequency_factor = 4,
              .original_context = 8192,
              .pairs = 64};
    int kept = 0, stretched = 0, between = 0;
    rope_frequencies(&r, out);
    for (int i = 0; i < r.pairs; i++) {
        double plain = pow(500000, -2.0 * i / 128), wavelength = 2 * pi / plain;
        double share = (8192 / wavelength - 1) / (4 - 1);
        if (wavelength < 2048) kept++, same(out[i], plain, "llama3 short", i);
        else if (wavelength > 8192) stretched++, same(out[i], plain / 8, "llama3 long", i);
        else between++, same(out[i], (1 - share) * plain / 8 + share * plain, "llama3 between", i);
    }
    assert_true(kept > 20 && stretched > 20 && between > 3);
}

static void longrope_divides_each(void **state) {
    (void)state;
    double out[ROPE_MAX_PAIRS];
    Rope r = {.kind = ROPE_LONGROPE,
              .theta = 10000,
              .pairs = 4,
              .original_context = 100,
              .stretch = {{1, 1, 3, 5}, {1, 2, 4, 64}}};
    rope_fit(&r, 100);
    rope_frequencies(&r, out);
    same(out[1], 0.1, "longrope, the original context", 1);
    same(out[2], 0.01 / 3, "longrope, the original context", 2);
    rope_fit(&r, 101);
    rope_frequencies(&r, out);
    static const double wanted[] = {1, 0.05, 0.0025, 0.001 / 64};
    for (int i = 0; i < 4; i++) same(out[i], wanted[i], "longrope", i);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_hold),           cmocka_unit_test(heads_fit),
        cmocka_unit_test(plain_and_linear),      cmocka_unit_test(llama3_bands),
        cmocka_unit_test(longrope_divides_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
