// Small random models in memory, of any shape: no files, so a test makes hundreds.
#pragma once
#include "engine/base/random.h"
#include "engine/model/model.h"

typedef struct RandomModel {
    Model model;      // views into `weights`
    ModelWeights own; // its layers
    unsigned char *weights;
    size_t used, size;
} RandomModel;

// A random shape within an engine's limits: grouped heads (5 to one among them), odd head sizes,
// windows, tied or untied heads, biases, a masked end of the vocabulary.
Shape random_shape(Random *r);
Shape random_dense_shape(Random *r); // without experts
// One whose layers compute what Llama's do, as drafts' do; maybe with biases and norms of heads.
Shape random_plain_shape(Random *r);

// Weights for the shape, each tensor of dtype, or of a random one for every tensor where mixed. The scale
// gives outputs that differ from token to token.
void random_model_init(RandomModel *m, const Shape *shape, Dtype dtype, bool mixed, Random *r);
void random_model_release(RandomModel *m);

// Widens a shape's matrices, so that groups divide the columns of most.
void random_coded_shape(Shape *s);

// Makes random codes of the matrices whose columns groups divide, with values of the size that they had: of
// `all`, or, if it's NULL, of all kinds and of most of them. Not for models whose weights are changed
// afterwards (random_model_calm).
void random_model_code(RandomModel *m, const Codes *all, Random *r);

// Layers from `first` on change the residual stream a little only: what leaves an earlier one is nearly
// final, so that a draft of the lower layers is right now and then.
void random_model_calm(RandomModel *m, int first);

// An adapter that hardly changes its input, in front of the target's own norm and head.
void random_adapter_init(RandomModel *m, const Model *target, Random *r);

// A draft that reads the target's tokens and `states` of its hidden states (EAGLE's).
void random_draft_init(RandomModel *m, const Model *target, InputKind input, int states, Random *r);
