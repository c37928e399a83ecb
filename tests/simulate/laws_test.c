#include "tests/support/check.h"

#include "simulate/laws.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double between(Random *r, double low, double high) { return low + (high - low) * random_uniform(r); }

// A law with each of the terms on or off, its parameters anywhere in their domain, the edges often.
static Law draw_law(Random *r, double *share) {
    Law law = {.terms = (unsigned)test_between(r, 0, 7), .f = 1 + between(r, 0, 9)};
    law.alpha = test_between(r, 0, 4) ? random_uniform(r) : test_between(r, 0, 1);
    law.gamma = test_between(r, 0, 3) ? test_between(r, 0, 20) : test_between(r, 0, 200);
    law.b = test_between(r, 0, 2) ? test_between(r, 0, 30) : between(r, 0, 1000);
    law.filling = test_between(r, 0, 5);
    law.output = law.filling + between(r, 0.5, 300);
    double sum = 0;
    law.share_count = test_between(r, 1, 12);
    for (int i = 0; i < law.share_count; i++) sum += share[i] = random_uniform(r) + 1e-3;
    for (int i = 0; i < law.share_count; i++) share[i] /= sum;
    law.share = share;
    return law;
}

static void print_law(const Law *l) {
    print_message("input: alpha %.17g, f %g, gamma %d, b %g, terms %u, filling %d of %g\n", l->alpha, l->f,
                  l->gamma, l->b, l->terms, l->filling, l->output);
}

static void assert_near(const Law *l, const char *what, double got, double wanted, double relative) {
    if (fabs(got - wanted) <= relative * fmax(1, fabs(wanted))) return;
    print_law(l);
    fail_msg("%s: wanted %.17g, got %.17g", what, wanted, got);
}

// Not less, but for rounding.
static void assert_not_less(const Law *l, const char *what, double more, double less) {
    if (more >= less - 1e-12 * fabs(less)) return;
    print_law(l);
    fail_msg("%s: wanted %.17g or more, got %.17g", what, less, more);
}

// Eq. 4 as it is printed, and the law of one guess with every term off agree.
static void one_guess(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int i = 0; i < 2000; i++) {
        double alpha = between(&r, 0, 0.99);
        int gamma = test_between(&r, 0, 40);
        Law law = {.alpha = alpha, .f = 1, .gamma = gamma, .b = 1};
        double printed = (1 - pow(alpha, gamma + 1)) / (1 - alpha);
        assert_near(&law, "Eq. 7 at f = 1", law_compression(&law), printed, 1e-12);
    }
}

// Eq. 5 and 7 as they are printed.
static void paper_law(void **state) {
    (void)state;
    Random r = test_random(2);
    for (int i = 0; i < 2000; i++) {
        Law law = {.alpha = random_uniform(&r), .f = 1 + between(&r, 0, 5)};
        law.gamma = test_between(&r, 0, 30);
        law.b = test_between(&r, 0, 60);
        double printed = law.gamma + 1;
        for (int j = 1; j <= law.gamma; j++) printed -= pow(1 - pow(law.alpha, j), law.b);
        assert_near(&law, "Eq. 7", law_compression(&law), (law.f - 1 + printed) / law.f, 1e-12);
    }
}

// Tails fall from 1, P(A = i) sum to one, and a step's tokens are their mean; all is finite.
static void probabilities(void **state) {
    (void)state;
    Random r = test_random(3);
    double share[16];
    for (int n = 0; n < 3000; n++) {
        Law law = draw_law(&r, share);
        assert_true(law_is_valid(&law));
        double sum = 0, mean = 0;
        for (int i = 0; i <= law.gamma; i++) {
            double here = law_tail(&law, i) - law_tail(&law, i + 1);
            bool dropped = law.terms & LAW_BONUS_DROPPED && i == law.gamma && i > 0;
            assert_not_less(&law, "P(A = i)", here, 0);
            sum += here;
            mean += here * (dropped ? i : i + 1);
        }
        assert_true(law_tail(&law, 0) == 1 && law_tail(&law, law.gamma + 1) == 0);
        assert_near(&law, "sum of P(A = i)", sum, 1, 1e-12);
        assert_near(&law, "mean of the tokens", law_tokens(&law), mean, 1e-9);
        assert_true(isfinite(law_compression(&law)) && law_compression(&law) >= 1 - 1e-12);
        assert_true(law_compression(&law) <= law.gamma + 1 + 1e-9);
    }
}

typedef void (*Change)(Law *law, Random *r);
static void more_alpha(Law *law, Random *r) { law->alpha = between(r, law->alpha, 1); }
static void more_gamma(Law *law, Random *r) { law->gamma += test_between(r, 0, 10); }
static void more_guesses(Law *law, Random *r) { law->b += between(r, 0, 10); }
static void better_guesses(Law *law, Random *r) { law->f = between(r, 1, law->f); }
static void longer_output(Law *law, Random *r) { law->output += between(r, 0, 100); }

static void monotone(void **state) {
    (void)state;
    static const struct {
        const char *name;
        Change change;
    } ROWS[] = {
        {"S of a larger alpha", more_alpha},     {"S of a larger gamma", more_gamma},
        {"S of a larger b", more_guesses},       {"S of a smaller f", better_guesses},
        {"S of a longer output", longer_output},
    };
    Random r = test_random(4);
    double share[16];
    for (int n = 0; n < 5000; n++) {
        Law law = draw_law(&r, share), more = law;
        size_t which = (size_t)test_between(&r, 0, 4);
        // The bonus of a step without guesses is all there is: dropping counts from gamma = 1.
        if (ROWS[which].change == more_gamma && law.gamma == 0) continue;
        ROWS[which].change(&more, &r);
        assert_not_less(&law, ROWS[which].name, law_compression(&more), law_compression(&law));
    }
}

// Each term can only lower S.
static void terms_have_a_sign(void **state) {
    (void)state;
    Random r = test_random(5);
    double share[16];
    for (int n = 0; n < 3000; n++) {
        Law law = draw_law(&r, share);
        Law with = law;
        law.terms &= ~(unsigned)LAW_BONUS_DROPPED, with.terms |= LAW_BONUS_DROPPED;
        assert_not_less(&law, "S without the bonus", law_compression(&law), law_compression(&with));
        with = law;
        law.terms &= ~(unsigned)LAW_FILLING, with.terms |= LAW_FILLING;
        assert_not_less(&law, "S with filling", law_compression(&law), law_compression(&with));
    }
}

static void limits(void **state) {
    (void)state;
    Random r = test_random(6);
    double share[16];
    for (int n = 0; n < 1000; n++) {
        Law law = draw_law(&r, share);
        law.terms &= LAW_BONUS_DROPPED;
        law.alpha = DBL_MIN;
        assert_near(&law, "alpha to 0", law_compression(&law), 1, 1e-9);
        law.alpha = 1 - DBL_EPSILON / 2;
        double all = law.gamma + 1 - (law.terms && law.gamma > 0);
        if (law.b >= 1) assert_near(&law, "alpha to 1", law_good_tokens(&law), all, 1e-9);
        law.alpha = 1;
        if (law.b > 0) assert_near(&law, "alpha = 1", law_good_tokens(&law), all, 1e-12);
    }
}

// One count in all steps is that count; a filling of no step changes nothing; filling and back is the
// identity.
static void terms_fall_back(void **state) {
    (void)state;
    Random r = test_random(7);
    for (int n = 0; n < 1000; n++) {
        double share[16] = {0};
        Law law = draw_law(&r, share), own = law;
        law.terms = LAW_PAPER, law.b = test_between(&r, 0, 15);
        memset(share, 0, sizeof share);
        share[(int)law.b] = 1;
        own.terms = LAW_CANDIDATES, own.share_count = 16;
        assert_near(&law, "one count of candidates", law_compression(&own), law_compression(&law), 1e-12);
        own = law, own.terms = LAW_FILLING, own.filling = 0;
        assert_near(&law, "no filling", law_compression(&own), law_compression(&law), 1e-12);
        own.filling = test_between(&r, 0, 5), own.output = own.filling + between(&r, 1, 100);
        double back = law_without_filling(law_compression(&own), own.filling, own.output);
        assert_near(&own, "filling and back", back, law_tokens(&own), 1e-9);
    }
    assert_true(isinf(law_without_filling(50, 4, 100)) && law_without_filling(1, 4, 4) == 1);
}

static void slope(void **state) {
    (void)state;
    Random r = test_random(8);
    double share[16];
    for (int n = 0; n < 3000; n++) {
        Law law = draw_law(&r, share), low = law, high = law;
        law.alpha = between(&r, 0.02, 0.95);
        if (law.gamma > 40) continue;
        low.alpha = law.alpha - 1e-6, high.alpha = law.alpha + 1e-6;
        double wanted = (law_good_tokens(&high) - law_good_tokens(&low)) / 2e-6;
        assert_near(&law, "slope by alpha", law_good_slope(&law), wanted, 1e-4);
    }
}

static void domains(void **state) {
    (void)state;
    static const double HALVES[] = {0.5, 0.4};
    const Law good = {.alpha = 0.4, .f = 2, .gamma = 3, .b = 4, .output = 10, .filling = 2};
    for (int i = 0; i < 14; i++) {
        Law law = good;
        switch (i) {
        case 0: law.alpha = -0.01; break;
        case 1: law.alpha = NAN; break;
        case 2: law.f = 0.99; break;
        case 3: law.f = NAN; break;
        case 4: law.f = INFINITY; break;
        case 5: law.gamma = -1; break;
        case 6: law.gamma = LAW_MOST_GAMMA + 1; break;
        case 7: law.b = -1; break;
        case 8: law.b = NAN; break;
        case 9: law.b = INFINITY; break;
        case 10: law.terms = LAW_CANDIDATES, law.share = HALVES, law.share_count = 2; break;
        case 11: law.terms = LAW_FILLING, law.filling = -1; break;
        case 12: law.terms = LAW_FILLING, law.output = 1; break;
        case 13: law.terms = LAW_FILLING, law.output = NAN; break;
        }
        if (law_is_valid(&law)) fail_msg("row %d is valid", i);
    }
    assert_true(law_is_valid(&good));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_guess),       cmocka_unit_test(paper_law), cmocka_unit_test(probabilities),
        cmocka_unit_test(monotone),        cmocka_unit_test(limits),    cmocka_unit_test(terms_have_a_sign),
        cmocka_unit_test(terms_fall_back), cmocka_unit_test(slope),     cmocka_unit_test(domains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
