// What stands in the weights of an inflated model: real numbers where a small one's stand (placement.h), and
// around them what makes every weight cost its read and its multiplication and the sum come out the same.
//
//                        real columns   padded columns
//      real rows            small           random       the padded activations that it meets are zero
//      padded rows            0             random       so what the row gives is zero, too
//
// So zeros live in the activations. Where what a padded row gives meets a zero anyway (`up` beside a zero
// gate; head rows that are masked), its real columns are random as well. The embedding of a real token is
// zero in padded columns: with that all padded dimensions of the residual stream are zero, and stay it.
//
// An added layer's values and gate are padded rows, so that its attention gives zero and its MLP zero; the
// rest of it is random.
//
// Norms are f32: the mean of squares is over more dimensions, W in place of w, so that each number comes out
// sqrt(W / w) times too large, which the weight takes back (and epsilon, in config.json, is w / W of what it
// was).
#pragma once
#include "engine/model/adapter.h"
#include "engine/model/placement.h"

#include <stdint.h>

// A weight's role: a field of LayerWeights, ADAPTER_FINAL_NORM, ADAPTER_HEAD, or this.
enum { ROLE_EMBEDDING = ADAPTER_WEIGHTS, ROLES };

// Rows [first_row, first_row + rows) of a stored tensor: all of it, or a part of a fused one.
typedef struct Part {
    int first_row, rows, columns;
    int role;
    const Tensor *small; // NULL: of an added layer; without data: a bias that the small model lacks
} Part;

typedef struct Inflation {
    const Placement *places;
    double width_ratio; // W / w
    uint64_t seed;
} Inflation;

// Elements [from, from + count) of a stored tensor of `part_count` parts, in `dtype`. The tensor's number
// picks its random numbers.
typedef struct Elements {
    const Part *parts;
    int part_count;
    int tensor;
    Dtype dtype;
    size_t from, count;
} Elements;

void inflated_fill(const Inflation *x, const Elements *which, unsigned char *out);
