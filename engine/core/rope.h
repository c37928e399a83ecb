// Rotary embeddings: the angles by which a position turns pairs of a head's dimensions.
#pragma once
#include <stdbool.h>

// How rotary frequencies are stretched beyond the trained context.
typedef enum { ROPE_PLAIN, ROPE_LINEAR, ROPE_LLAMA3, ROPE_LONGROPE, ROPE_YARN } RopeKind;

enum { ROPE_MAX_PAIRS = 256 };

typedef struct Rope {
    RopeKind kind;
    double theta;
    double factor;                                      // linear, llama3, yarn: positions are divided by it
    double low_frequency_factor, high_frequency_factor; // llama3
    int original_context;                               // llama3, longrope
    int pairs;                                          // rotated pairs per head: at most head_dim / 2
    bool neighbours;                                    // pair i is (2i, 2i + 1), else (i, i + pairs)
    double attention_factor;                            // cos and sin are multiplied by it
    double ramp_from, ramp_to;                          // yarn: pairs between which it interpolates
    // longrope: divisors of the frequencies, within the original context and beyond it; and which to use
    float stretch[2][ROPE_MAX_PAIRS];
    bool beyond;
} Rope;

// Prepares for a session of `context` positions. longrope has one list of divisors for contexts up to the
// original one and another for longer ones. It's chosen here, once, so that logits don't jump as a text
// grows.
void rope_fit(Rope *r, int context);

// Fills out (pairs): one position turns pair i by the angle out[i].
void rope_frequencies(const Rope *r, double *out);
