// Bounds. After shape_check, no product of two dimensions overflows.
#include "engine/core/shape.h"

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

int layers_in(const LayerSet *set, int layers) {
    int count = 0;
    for (int i = 0; i < layers; i++) count += layer_in(set, i);
    return count;
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
