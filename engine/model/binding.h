// How a weight finds its tensor in a model's files: weights.c, shared with the files that bind weights of
// codes.
#pragma once
#include "engine/model/weights.h"

typedef struct Binding {
    Model *m;        // to fill
    ModelWeights *w; // has the memory of m
    const Shard *shards;
    int count;
    const char *dir; // of the files, for messages
} Binding;

typedef struct Found {
    const StoredTensor *t;
    const Shard *shard;
} Found;

static inline const unsigned char *found_data(const Found *f) { return f->shard->data + f->t->begin; }

bool binding_has(const Binding *b, const char *name);

// False with e filled unless exactly one shard has the tensor.
bool binding_find(const Binding *b, const char *name, Found *out, Error *e);

// False with e filled unless the tensor has these dimensions.
bool binding_check_dims(const Binding *b, const Found *f, const int64_t *dims, int rank, Error *e);

// Memory of the model for a weight that isn't used as it is stored; NULL with e filled.
void *binding_take(const Binding *b, const WeightSpec *s, size_t count, size_t size, Error *e);

// The row of the stored matrix that a weight's row is.
size_t binding_row(const Binding *b, const WeightSpec *s, size_t row);

Tensor *binding_place(const Binding *b, const WeightSpec *s);

// --- weights of codes (codes.c)

// The codes `f` of quantise.h, and their scales.
bool codes_bind(const Binding *b, const WeightSpec *s, const Found *f, Error *e);

// Makes codes of the blocks of a GGUF file or, exact, values.
bool blocks_bind(const Binding *b, const WeightSpec *s, const BlockFormat *format, const Found *f, Error *e);

// --- packed ones (packed.c)

// Whether the files have the weight as packed codes.
bool packed_has(const Binding *b, const WeightSpec *s);
bool packed_bind(const Binding *b, const WeightSpec *s, Error *e);

// Whether a tensor is a part of the packed weight. A bias that no architecture asks for is one if it's zero:
// packers write it for every matrix.
bool packed_owns(const Binding *b, const WeightSpec *s, const Found *f);
