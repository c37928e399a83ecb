// Means and errors from sums and sums of squares. S is a ratio of sums, so its error is that of a ratio over
// outputs.
#include "tests/support/montecarlo.h"

#include <assert.h>
#include <math.h>

typedef struct {
    double n, sum, squares;
} Moments;

static void moments_add(Moments *m, double x) {
    m->n++;
    m->sum += x;
    m->squares += x * x;
}

static Estimate moments_estimate(const Moments *m) {
    double mean = m->sum / m->n, variance = (m->squares - m->n * mean * mean) / (m->n - 1);
    return (Estimate){mean, sqrt(fmax(variance, 0) / m->n)};
}

static int draw_guesses(const Law *law, gsl_rng *random) {
    if (!(law->terms & LAW_CANDIDATES)) return (int)law->b;
    double u = gsl_rng_uniform(random);
    int c = 0;
    while (c < law->share_count - 1 && u >= law->share[c]) u -= law->share[c++];
    return c;
}

// How many tokens of one guess are right.
static int draw_match(const Law *law, gsl_rng *random) {
    int i = 0;
    while (i < law->gamma && gsl_rng_uniform(random) < law->alpha) i++;
    return i;
}

int montecarlo_accepted(const Law *law, gsl_rng *random) {
    int longest = 0;
    if (gsl_rng_uniform(random) * law->f >= 1) return 0;
    for (int guesses = draw_guesses(law, random); guesses > 0; guesses--) {
        int match = draw_match(law, random);
        if (match > longest) longest = match;
    }
    return longest;
}

static int draw_tokens(const Law *law, gsl_rng *random) {
    int accepted = montecarlo_accepted(law, random);
    bool full = law->gamma > 0 && accepted == law->gamma;
    return full && law->terms & LAW_BONUS_DROPPED ? accepted : accepted + 1;
}

Estimate montecarlo_tokens(const Law *law, int steps, gsl_rng *random) {
    Moments m = {0};
    assert(law_is_valid(law) && steps >= 2);
    for (int i = 0; i < steps; i++) moments_add(&m, draw_tokens(law, random));
    return moments_estimate(&m);
}

Estimate montecarlo_tail(const Law *law, int i, int steps, gsl_rng *random) {
    Moments m = {0};
    assert(law_is_valid(law) && steps >= 2);
    for (int s = 0; s < steps; s++) moments_add(&m, montecarlo_accepted(law, random) >= i);
    return moments_estimate(&m);
}

// Tokens and steps of one output.
static void draw_output(const Law *law, int stop, gsl_rng *random, double *tokens, double *steps) {
    *tokens = *steps = law->terms & LAW_FILLING ? law->filling : 0;
    for (; *tokens < stop; ++*steps) *tokens += draw_tokens(law, random);
}

Estimate montecarlo_compression(const Law *law, int outputs, int stop, double *output, gsl_rng *random) {
    double tokens, steps, st = 0, ss = 0, tt = 0, sum_tokens = 0, sum_steps = 0;
    assert(outputs >= 2 && stop >= 1);
    for (int i = 0; i < outputs; i++) {
        draw_output(law, stop, random, &tokens, &steps);
        sum_tokens += tokens;
        sum_steps += steps;
        tt += tokens * tokens;
        st += tokens * steps;
        ss += steps * steps;
    }
    double ratio = sum_tokens / sum_steps, mean_steps = sum_steps / outputs;
    double residual = (tt - 2 * ratio * st + ratio * ratio * ss) / (outputs - 1);
    *output = sum_tokens / outputs;
    return (Estimate){ratio, sqrt(fmax(residual, 0) / outputs) / mean_steps};
}

static const ConfidenceBin *draw_bin(const Draft *draft, gsl_rng *random) {
    double u = gsl_rng_uniform(random);
    size_t i = 0;
    while (i < draft->count - 1 && u >= draft->bins[i].share) u -= draft->bins[i++].share;
    return &draft->bins[i];
}

DraftEstimate montecarlo_draft(const Draft *draft, int gamma, double eta, int steps, gsl_rng *random) {
    Moments tokens = {0}, drafted = {0};
    assert(draft_check(draft, NULL) && steps >= 2);
    for (int s = 0; s < steps; s++) {
        int made = 0, accepted = 0;
        bool sure = true;
        while (made < gamma && sure) {
            const ConfidenceBin *bin = draw_bin(draft, random);
            if (gsl_rng_uniform(random) < bin->right && accepted == made) accepted++;
            made++;
            sure = eta <= 0 || bin->level > eta;
        }
        moments_add(&tokens, accepted + 1);
        moments_add(&drafted, made);
    }
    return (DraftEstimate){moments_estimate(&tokens), moments_estimate(&drafted)};
}
