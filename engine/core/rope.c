// The frequencies of each kind of rope.
#include "engine/core/rope.h"

#include <assert.h>
#include <math.h>

static const double PI = 3.14159265358979323846;

// Llama 3 stretches wavelengths beyond the trained context, leaves short ones as they are, and interpolates
// between the two.
static double llama3_frequency(const Rope *r, double frequency) {
    double turns = r->original_context * frequency / (2 * PI); // in the original context
    if (turns < r->low_frequency_factor) return frequency / r->factor;
    if (turns > r->high_frequency_factor) return frequency;
    double smooth = (turns - r->low_frequency_factor) / (r->high_frequency_factor - r->low_frequency_factor);
    return (1 - smooth) * frequency / r->factor + smooth * frequency;
}

// Yarn divides the frequencies of late pairs, leaves early ones as they are, and interpolates between.
static double yarn_frequency(const Rope *r, int pair, double frequency) {
    double late = (pair - r->ramp_from) / (r->ramp_to - r->ramp_from);
    late = late < 0 ? 0 : late > 1 ? 1 : late;
    return late * frequency / r->factor + (1 - late) * frequency;
}

void rope_fit(Rope *r, int context) {
    assert(context >= 1);
    r->beyond = context > r->original_context;
}

void rope_frequencies(const Rope *r, double *out) {
    assert(r->pairs >= 0 && r->pairs <= ROPE_MAX_PAIRS);
    for (int i = 0; i < r->pairs; i++) {
        double frequency = pow(r->theta, -(double)i / r->pairs);
        switch (r->kind) {
        case ROPE_PLAIN: out[i] = frequency; break;
        case ROPE_LINEAR: out[i] = frequency / r->factor; break;
        case ROPE_LLAMA3: out[i] = llama3_frequency(r, frequency); break;
        case ROPE_YARN: out[i] = yarn_frequency(r, i, frequency); break;
        case ROPE_LONGROPE: out[i] = frequency / (double)r->stretch[r->beyond][i]; break;
        }
    }
}
