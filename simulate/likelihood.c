// Maximum likelihood of accepted lengths: a profile over alpha, the best phi for each.
#include "simulate/fit.h"

#include <math.h>

static const double LEAST_PHI = 1e-6, LEAST_ALPHA = 1e-6, HOPELESS_CONDITION = 1e6;

// In place of a probability of 0, whose logarithm would not be finite: a search must be able to compare.
static const double IMPOSSIBLE = 1e-300;

enum { CELLS = 128, MOST_ITERATIONS = 100 };

// A good step's P(A >= i).
static double good_tail(const SamplePoint *p, double alpha, int i) {
    Law law = p->law;
    law.alpha = alpha;
    return law_tail(&law, i);
}

// The derivative of the log-likelihood by phi, which falls as phi grows, and its own derivative.
static double slope_by_phi(const Sample *s, double alpha, double phi, double *bend) {
    double slope = *bend = 0;
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        if (!p->fitted) continue;
        double first = good_tail(p, alpha, 1), odds = first / fmax(1 - phi * first, IMPOSSIBLE);
        slope += p->hits / phi - p->accepted[0] * odds;
        *bend -= p->hits / phi / phi + p->accepted[0] * odds * odds;
    }
    return slope;
}

// Newton's method, within the bracket that the signs of the slope give.
static double best_phi(const Sample *s, double alpha) {
    double low = LEAST_PHI, high = 1, phi = 0.5, bend;
    if (slope_by_phi(s, alpha, 1, &bend) >= 0) return 1;
    for (int i = 0; i < MOST_ITERATIONS && high - low > 1e-12; i++) {
        double slope = slope_by_phi(s, alpha, phi, &bend), next = phi - slope / bend;
        if (slope > 0) low = phi;
        else high = phi;
        if (fabs(next - phi) < 1e-12) return phi;
        phi = next > low && next < high ? next : (low + high) / 2;
    }
    return phi;
}

static double log_likelihood(const Sample *s, double alpha, double phi) {
    double sum = 0, steps = 0;
    for (int i = 0; i < s->count; i++) {
        const SamplePoint *p = &s->points[i];
        double here = 1;
        for (int a = 0; p->fitted && a <= p->law.gamma; a++) {
            double next = phi * good_tail(p, alpha, a + 1);
            if (p->accepted[a] > 0) sum += p->accepted[a] * log(fmax(here - next, IMPOSSIBLE));
            steps += p->accepted[a];
            here = next;
        }
    }
    return sum / steps;
}

static double misfit(double alpha, void *context) {
    const Sample *s = context;
    return -log_likelihood(s, alpha, best_phi(s, alpha));
}

// --- the condition --------------------------------------------------------------------------------------

typedef struct {
    double aa, ff, af; // by ln alpha and ln f
} Information;

static double slope_of_tail(const SamplePoint *p, double alpha, int i) {
    double low = good_tail(p, alpha * (1 - 1e-5), i), high = good_tail(p, fmin(alpha * (1 + 1e-5), 1), i);
    return (high - low) / (log(fmin(alpha * (1 + 1e-5), 1)) - log(alpha * (1 - 1e-5)));
}

// Expected information of the point's steps: over lengths, the products of derivatives of P over P.
static void add_information(const SamplePoint *p, double alpha, double phi, Information *sum) {
    double here = 1, here_by_alpha = 0, here_by_f = 0, steps = p->accepted[0] + p->hits;
    for (int a = 0; a <= p->law.gamma; a++) {
        double next = phi * good_tail(p, alpha, a + 1), by_f = -next;
        double by_alpha = a < p->law.gamma ? phi * slope_of_tail(p, alpha, a + 1) : 0;
        double share = here - next, da = here_by_alpha - by_alpha, df = here_by_f - by_f;
        if (share > IMPOSSIBLE) {
            sum->aa += steps * da * da / share;
            sum->ff += steps * df * df / share;
            sum->af += steps * da * df / share;
        }
        here = next, here_by_alpha = by_alpha, here_by_f = by_f;
    }
}

static void set_condition(const Sample *s, Likelihood *out) {
    Information sum = {0};
    for (int i = 0; i < s->count; i++)
        if (s->points[i].fitted) add_information(&s->points[i], out->alpha, out->phi, &sum);
    double half = (sum.aa + sum.ff) / 2, determinant = sum.aa * sum.ff - sum.af * sum.af;
    double root = sqrt((sum.aa - sum.ff) * (sum.aa - sum.ff) / 4 + sum.af * sum.af);
    out->condition = determinant > 0 ? (half + root) / sqrt(determinant) : HUGE_VAL;
    out->correlation = sum.aa * sum.ff > 0 ? -sum.af / sqrt(sum.aa * sum.ff) : 0;
}

static bool check_lengths(const Sample *s, Error *e) {
    double hits = 0;
    for (int i = 0; i < s->count; i++) {
        if (!s->points[i].accepted)
            return error_input(e, "fit: there is no column 'accepted' to take a likelihood from");
        if (s->points[i].fitted) hits += s->points[i].hits;
    }
    return hits > 0 ||
           error_input(e, "fit: no step of a fitted point accepted a token: alpha cannot be estimated");
}

void likelihood_near(const Sample *s, double alpha, Likelihood *out) {
    out->alpha = search_minimum_near(misfit, (void *)s, LEAST_ALPHA, 1, CELLS, 1e-6, alpha, 0.05);
    out->phi = best_phi(s, out->alpha);
}

bool likelihood(const Sample *s, Likelihood *out, Error *e) {
    if (!check_lengths(s, e)) return false;
    out->alpha = search_minimum(misfit, (void *)s, LEAST_ALPHA, 1, CELLS, 1e-9);
    out->phi = best_phi(s, out->alpha);
    out->log_likelihood = log_likelihood(s, out->alpha, out->phi);
    set_condition(s, out);
    return out->condition < HOPELESS_CONDITION ||
           error_input(e,
                       "fit: the accepted lengths cannot tell alpha from f: they need a length above 1, or "
                       "two numbers of guesses");
}
