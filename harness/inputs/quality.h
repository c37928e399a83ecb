// How well a model predicts texts, and how much it differs from the model that it was quantised from.
//
// A text is a prompt and what follows it. Every token but the first is predicted from those before it, in
// pieces of at most the sessions' context. The same words are counted in every run: no random numbers.
#pragma once
#include "engine/engine.h"

// Sums over texts; quality_mean and the like make means of them.
typedef struct Quality {
    size_t texts, tokens;       // tokens: predicted ones
    double loss, of_original;   // -ln p of the text's own token
    double divergence;          // of the original's distribution from the model's (Kullback-Leibler), in nats
    size_t same;                // tokens at which both models' likeliest one is the same
    size_t greedy, greedy_same; // tokens that the original writes after the prompts; the model's choice, too
    size_t unbroken;            // of these, tokens before an output's first other choice
} Quality;

// Measures a text of n >= 2 tokens. original: NULL, and the model is measured alone.
bool quality_text(Engine *model, Engine *original, const int *ids, int n, Quality *sum, Error *e);

// The original writes at most `most` tokens after a prompt; the model chooses one at each place of this
// output.
bool quality_greedy(Engine *model, Engine *original, const int *prompt, int n, int most, Quality *sum,
                    Error *e);

// Whether both models give ids the same meaning.
bool quality_comparable(const Engine *model, const Engine *original, Error *e);

void quality_add(Quality *sum, const Quality *part);
