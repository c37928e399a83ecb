// Everything is a sum of the tail P(A >= i) over i: a step's tokens are 1 + sum of P(A >= i), because the
// mean of a count is the sum of its tail. Powers go through log1p and expm1, so a tiny alpha^i isn't lost
// next to 1 when b is large.
#include "simulate/laws.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

// An uncapped sum stops when another term can't change it: up to a factor, b alpha^i bounds the rest.
static const double NEGLIGIBLE = 1e-18;

// Above this alpha a step would hardly ever end.
static const double UNCAPPED_MOST = 0.999;

static bool within(double x, double low, double high) { return x >= low && x <= high; } // false for a NaN

static bool check_shares(const Law *law, Error *e) {
    double sum = 0;
    for (int c = 0; c < law->share_count; c++) {
        if (!within(law->share[c], 0, 1))
            return error_input(e, "law: the share of steps with %d candidates is %g, must be in [0, 1]", c,
                               law->share[c]);
        sum += law->share[c];
    }
    return within(sum, 1 - 1e-9, 1 + 1e-9) ||
           error_input(e, "law: the shares of candidate counts sum to %g, must be 1", sum);
}

bool law_check(const Law *law, Error *e) {
    if (!within(law->alpha, 0, 1)) return error_input(e, "law: alpha is %g, must be in [0, 1]", law->alpha);
    if (law->terms & LAW_UNCAPPED && law->alpha > UNCAPPED_MOST)
        return error_input(e, "law: alpha is %g where gamma does not bind, must be %g at most", law->alpha,
                           UNCAPPED_MOST);
    if (!(law->f >= 1) || !isfinite(law->f))
        return error_input(e, "law: f is %g, must be at least 1", law->f);
    if (!within(law->gamma, 0, LAW_MOST_GAMMA))
        return error_input(e, "law: gamma is %d, must be in [0, %d]", law->gamma, LAW_MOST_GAMMA);
    if (!within(law->b, 0, LAW_MOST_GUESSES))
        return error_input(e, "law: b is %g, must be in [0, %d]", law->b, LAW_MOST_GUESSES);
    if (law->terms & LAW_CANDIDATES && !check_shares(law, e)) return false;
    if (!(law->terms & LAW_FILLING)) return true;
    if (law->filling < 0) return error_input(e, "law: %d filling steps, must be 0 or more", law->filling);
    return (isfinite(law->output) && law->output > 0 && law->output >= law->filling) ||
           error_input(e, "law: an output of %g tokens, must be at least the %d filling steps", law->output,
                       law->filling);
}

double law_one_sequence(double alpha, int gamma) {
    // Where alpha is near 1 the closed form divides two small numbers; the sum does not.
    double sum = 1, power = 1;
    for (int i = 1; i <= gamma; i++) sum += power *= alpha;
    return sum;
}

double law_some_match(double alpha, int i, double b) {
    if (b == 0) return 0;
    double hit = pow(alpha, i);
    return hit >= 1 ? 1 : -expm1(b * log1p(-hit));
}

double law_some_slope(double alpha, int i, double b) {
    if (b == 0 || i == 0) return 0;
    double hit = pow(alpha, i), slope = i * pow(alpha, i - 1);
    if (hit >= 1) return b == 1 ? slope : b < 1 ? HUGE_VAL : 0;
    return b * exp((b - 1) * log1p(-hit)) * slope;
}

double law_sequences(double alpha, int gamma, double b) {
    double sum = 1;
    for (int i = 1; i <= gamma; i++) sum += law_some_match(alpha, i, b);
    return sum;
}

typedef double (*Term)(double alpha, int i, double b);

// The term at i, averaged over the numbers of guesses that steps bear.
static double averaged(const Law *law, Term term, int i) {
    if (!(law->terms & LAW_CANDIDATES)) return term(law->alpha, i, law->b);
    double sum = 0;
    for (int c = 1; c < law->share_count; c++)
        if (law->share[c] > 0) sum += law->share[c] * term(law->alpha, i, c);
    return sum;
}

static double sum_terms(const Law *law, Term term) {
    double sum = 0;
    if (law->terms & LAW_UNCAPPED) {
        double most_guesses = law->terms & LAW_CANDIDATES ? law->share_count : law->b;
        double left = most_guesses / (1 - law->alpha);
        for (int i = 1; i * left * pow(law->alpha, i - 1) > NEGLIGIBLE; i++) sum += averaged(law, term, i);
        return sum;
    }
    // A dropped bonus makes the last of gamma worth nothing.
    int last = law->terms & LAW_BONUS_DROPPED && law->gamma > 0 ? law->gamma - 1 : law->gamma;
    for (int i = 1; i <= last; i++) sum += averaged(law, term, i);
    return sum;
}

double law_tail(const Law *law, int i) {
    assert(law_check(law, NULL) && i >= 0);
    if (i == 0) return 1;
    if (i > law->gamma && !(law->terms & LAW_UNCAPPED)) return 0;
    return averaged(law, law_some_match, i) / law->f;
}

double law_good_tokens(const Law *law) {
    assert(law_check(law, NULL));
    return 1 + sum_terms(law, law_some_match);
}

double law_good_slope(const Law *law) {
    assert(law_check(law, NULL));
    return sum_terms(law, law_some_slope);
}

double law_tokens(const Law *law) { return 1 + (law_good_tokens(law) - 1) / law->f; }

double law_compression(const Law *law) {
    double tokens = law_tokens(law);
    return law->terms & LAW_FILLING ? law_with_filling(tokens, law->filling, law->output) : tokens;
}

double law_with_filling(double tokens, int filling, double output) {
    return output / (filling + (output - filling) / tokens);
}

double law_without_filling(double s, int filling, double output) {
    double steps = output / s - filling; // that are left for output - filling tokens
    return steps > 0 ? (output - filling) / steps : filling == output ? 1 : HUGE_VAL;
}
