// Bounds and rotary frequencies. After shape_check, no product of two dimensions overflows.
#include "engine/core/shape.h"

#include <assert.h>
#include <math.h>

static const double PI = 3.14159265358979323846;

typedef struct {
    const char *name;
    int64_t value, low, high;
} Limit;

// The bounds keep every product of two of these numbers far below 63 bits.
bool shape_check(const Shape *s, const char *place, Error *e) {
    const Limit limits[] = {
        {"layers", s->layers, 1, 1000},
        {"hidden size", s->width, 1, 1 << 17},
        {"attention heads", s->heads, 1, 1 << 10},
        {"key-value heads", s->kv_heads, 1, s->heads},
        {"head size", s->head_dim, 2, 2 * ROPE_MAX_PAIRS},
        {"intermediate size", s->mlp_width, 0, 1 << 19},
        {"vocabulary", s->vocab, 1, 1 << 21},
        {"real vocabulary", s->real_vocab, 1, s->vocab},
        {"context", s->context, 1, 1 << 24},
        {"sliding window", s->window, 0, 1 << 24},
        {"tokens", s->tokens, 0, 1 << 21},
        {"hidden states of a row", s->states, s->input == INPUT_PAIRED, SHAPE_MAX_STATES},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < limits[i].low || limits[i].value > limits[i].high)
            return error_input(e, "%s of '%s' is %lld, must be from %lld to %lld", limits[i].name, place,
                               (long long)limits[i].value, (long long)limits[i].low,
                               (long long)limits[i].high);
    if (s->heads % s->kv_heads)
        return error_input(e, "'%s' has %d attention heads, which %d key-value heads do not divide", place,
                           s->heads, s->kv_heads);
    if (s->head_dim % 2) return error_input(e, "'%s' has heads of odd size %d", place, s->head_dim);
    if (!(s->norm_epsilon > 0 && s->norm_epsilon < 1))
        return error_input(e, "'%s' has a norm epsilon of %g, must be between 0 and 1", place,
                           (double)s->norm_epsilon);
    return true;
}

// Llama 3 stretches wavelengths beyond the trained context, leaves short ones as they are, and interpolates
// between the two.
static double llama3_frequency(const Rope *r, double frequency) {
    double turns = r->original_context * frequency / (2 * PI); // in the original context
    if (turns < r->low_frequency_factor) return frequency / r->factor;
    if (turns > r->high_frequency_factor) return frequency;
    double smooth = (turns - r->low_frequency_factor) / (r->high_frequency_factor - r->low_frequency_factor);
    return (1 - smooth) * frequency / r->factor + smooth * frequency;
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
        case ROPE_LONGROPE: out[i] = frequency / (double)r->stretch[r->beyond][i]; break;
        }
    }
}
