// Bounds. After shape_check, no product of two dimensions overflows.
#include "engine/core/shape.h"

#include "engine/core/experts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *name;
    int64_t value, low, high;
} Limit;

// The bounds keep every product of two of these numbers far below 63 bits.
bool shape_check(const Shape *s, const char *place, Error *e) {
    int chosen = s->experts.count < CHOSEN_MAX ? s->experts.count : CHOSEN_MAX;
    const Limit limits[] = {
        {"layers", s->layers, 1, SHAPE_MAX_LAYERS},
        {"hidden size", s->width, 1, 1 << 17},
        {"attention heads", s->heads, 1, 1 << 10},
        {"key-value heads", s->kv_heads, 1, s->heads},
        {"head size", s->head_dim, 2, 2 * ROPE_MAX_PAIRS},
        {"intermediate size", s->mlp_width, 0, 1 << 19},
        {"vocabulary", s->vocab, 1, 1 << 21},
        {"real vocabulary", s->real_vocab, 1, s->vocab},
        {"context", s->context, 1, 1 << 24},
        {"sliding window", s->window, 0, 1 << 24},
        {"sliding window of some layers", s->local_window, 0, 1 << 24},
        {"tokens", s->tokens, 0, 1 << 21},
        {"experts", s->experts.count, 0, EXPERTS_MAX},
        {"experts of a token", s->experts.chosen, s->experts.count > 0, chosen},
        {"intermediate size of experts", s->experts.width, s->experts.count > 0, 1 << 19},
        {"intermediate size of the shared expert", s->experts.shared_width, 0, 1 << 19},
        {"hidden states of a row", s->states, s->input >= INPUT_PAIRED, SHAPE_MAX_STATES},
        {"rows of a block", s->block.rows, s->input == INPUT_BLOCK ? 2 : 0, BLOCK_MOST},
        {"rank of the Markov head", s->block.rank, s->block.markov != MARKOV_NONE, 1 << 12},
        {"mask token", s->mask_token, 0, shape_tokens(s) - 1},
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

int layers_in(const LayerSet *set, int layers) {
    int count = 0;
    for (int i = 0; i < layers; i++) count += layer_in(set, i);
    return count;
}

int shape_fc_norms(const Shape *s) {
    return s->fc_norm == FC_NORM_EACH ? s->states : s->fc_norm == FC_NORM_ROW;
}

float shape_score_scale(const Shape *s) {
    return s->score_scale != 0 ? s->score_scale : 1.0f / sqrtf((float)s->head_dim);
}

bool shape_is_plain(const Shape *s) {
    static const LayerSet none;
    return !s->o_bias && !s->mlp_bias && !s->norm_bias && !s->head_bias && s->qk_norm <= QK_NORM_HEADS &&
           !s->ungated && !s->positions && s->norm_kind == NORM_RMS && s->norm_place == NORMS_BEFORE &&
           s->mlp_input == MLP_AFTER && s->embedding_scale == 0 && s->residual_scale == 0 &&
           s->score_scale == 0 && s->logit_scale == 0 && s->score_cap == 0 && s->logit_cap == 0 &&
           !s->rope.neighbours && s->experts.count == 0 && !memcmp(&s->local, &none, sizeof none) &&
           !memcmp(&s->unrotated, &none, sizeof none);
}

Rope shape_rope(const Shape *s, int which) {
    if (which == 0) return s->rope;
    return (Rope){.kind = ROPE_PLAIN,
                  .theta = s->local_theta,
                  .factor = 1,
                  .pairs = s->rope.pairs,
                  .neighbours = s->rope.neighbours,
                  .attention_factor = 1};
}

// --- ropes ----------------------------------------------------------------------------------------------

// The frequencies of each kind of rope.

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

// --- experts --------------------------------------------------------------------------------------------

// The choice of experts: sums in double, in ascending order of experts.

static float rank_of(float logit) { return isnan(logit) ? INFINITY : logit; }

void experts_choose(const Experts *e, const float *logits, Route *out) {
    bool chosen[EXPERTS_MAX] = {false};
    float highest = logits[0];
    double sum = 0, weight[CHOSEN_MAX] = {0};
    assert(e->chosen >= 1 && e->chosen <= CHOSEN_MAX && e->chosen <= e->count && e->count <= EXPERTS_MAX);
    for (int i = 0; i < e->chosen; i++) { // the best, one at a time; of equals, the first
        int best = -1;
        for (int k = 0; k < e->count; k++)
            if (!chosen[k] && (best < 0 || rank_of(logits[k]) > rank_of(logits[best]))) best = k;
        assert(best >= 0);
        chosen[best] = true;
    }
    for (int k = 1; k < e->count; k++)
        if (rank_of(logits[k]) > rank_of(highest)) highest = logits[k];
    for (int k = 0, at = 0; k < e->count; k++) {
        if (!chosen[k] && e->renormalised) continue;
        double x = exp((double)logits[k] - (double)highest);
        sum += x;
        if (!chosen[k]) continue;
        out->expert[at] = k;
        weight[at++] = x;
    }
    for (int i = 0; i < e->chosen; i++) out->weight[i] = (float)(weight[i] / sum);
}

float experts_shared_weight(float x) { return (float)(1 / (1 + exp(-(double)x))); }
