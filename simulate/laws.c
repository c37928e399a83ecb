// Everything is a sum of the tail P(A >= i) over i: a step's tokens are 1 + sum of P(A >= i), because the
// mean of a count is the sum of its tail. Powers go through log1p and expm1, so a tiny alpha^i isn't lost
// next to 1 when b is large.
#include "simulate/laws.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static bool within(double x, double low, double high) { return x >= low && x <= high; } // false for a NaN

bool law_is_valid(const Law *law) {
    double sum = law->terms & LAW_CANDIDATES ? 0 : 1;
    bool ok = within(law->alpha, 0, 1) && law->f >= 1 && isfinite(law->f) &&
              within(law->gamma, 0, LAW_MOST_GAMMA) && within(law->b, 0, LAW_MOST_GUESSES);
    for (int c = 0; law->terms & LAW_CANDIDATES && c < law->share_count; c++) {
        ok = ok && within(law->share[c], 0, 1);
        sum += law->share[c];
    }
    bool fills = !(law->terms & LAW_FILLING) || (law->filling >= 0 && isfinite(law->output) &&
                                                 law->output > 0 && law->output >= law->filling);
    return ok && fills && within(sum, 1 - 1e-9, 1 + 1e-9);
}

double law_some_match(double alpha, int i, double b) {
    if (b == 0) return 0;
    double hit = pow(alpha, i);
    return hit >= 1 ? 1 : -expm1(b * log1p(-hit));
}

// The derivative of law_some_match by alpha; infinite at alpha = 1, b < 1.
static double law_some_slope(double alpha, int i, double b) {
    if (b == 0 || i == 0) return 0;
    double hit = pow(alpha, i), slope = i * pow(alpha, i - 1);
    if (hit >= 1) return b == 1 ? slope : b < 1 ? HUGE_VAL : 0;
    return b * exp((b - 1) * log1p(-hit)) * slope;
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
    // A dropped bonus makes the last of gamma worth nothing.
    int last = law->terms & LAW_BONUS_DROPPED && law->gamma > 0 ? law->gamma - 1 : law->gamma;
    for (int i = 1; i <= last; i++) sum += averaged(law, term, i);
    return sum;
}

double law_tail(const Law *law, int i) {
    assert(law_is_valid(law) && i >= 0);
    if (i == 0) return 1;
    if (i > law->gamma) return 0;
    return averaged(law, law_some_match, i) / law->f;
}

double law_good_tokens(const Law *law) {
    assert(law_is_valid(law));
    return 1 + sum_terms(law, law_some_match);
}

double law_good_slope(const Law *law) {
    assert(law_is_valid(law));
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
