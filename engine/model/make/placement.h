// Where the parts of a small model go in a larger shape: for each row and column of the large model's
// weights, the row or column of the small one that it takes over.
//
// Residual stream, MLP and vocabulary: the small model's first, in order. Heads in order too, each group of
// query heads at its own key head, which is repeated if the large shape has smaller groups:
//
//      small, 4 to 1   k0: q0 q1 q2 q3            k1: q4 q5 q6 q7
//      large, 2 to 1   k0: q0 q1    k0: q2 q3     k1: q4 q5    k1: q6 q7
//      large, 7 to 1   k0: q0 q1 q2 q3 - - -      k1: q4 q5 q6 q7 - - -
//
// A query head at `-` attends to the values of a real key head, so its output isn't zero: its columns of o
// are dead, zero in every row.
//
// Within a query or key head of m times the size, m = 1, 4 or 16, real dimension i goes where RoPE turns it
// by its old angle: pair i of n has the frequency theta^(-i/n) of pair m i of m n. The dimensions keep their
// order. RoPE does not touch values, whose dimensions come first.
//
//      small, 2 pairs  a0 a1 | b0 b1
//      q, k, m = 4     a0 - - - a1 - - - | b0 - - - b1 - - -
//      v, o            a0 a1 b0 b1 - - - - - - - - - - - -
//
// Layers are spread evenly: layer i of l becomes layer i L / l (rounded down) of L, and an exit layer keeps
// its share of the depth. But the first ones may stay the first (`first` of them, the others being spread
// over the rest): an exit after 2 of 8 layers is then one after 2 of 32, as in Kangaroo's paper.
#pragma once
#include "engine/core/shape.h"
#include "engine/model/weights.h"

#include <stdint.h>

enum { PLACE_PADDED = -1, PLACE_DEAD = -2 };

typedef struct Axis {
    int *from; // (size): the small one's index, or PLACE_PADDED, PLACE_DEAD
    int size;
    int end; // from here on all are padded
} Axis;

typedef struct Placement {
    Axis axis[AXES];
    int head_ratio; // m
} Placement;

// False with e filled, and an empty placement, if the small one does not fit into the large one, which
// `place` names.
bool placement_init(Placement *p, const Shape *small, const Shape *large, const char *place, Error *e);
void placement_release(Placement *p); // takes an empty one

// The layer of the large model that takes over a small one's, and back: PLACE_PADDED for an added layer.
typedef struct Layers {
    int small, large, first;
} Layers;
int placement_layer(const Layers *l, int small_layer);
int placement_layer_from(const Layers *l, int large_layer);

// --- rows of an inflated model

// Rows [first_row, first_row + rows) of a stored tensor: all of it, or a part of a fused one.
typedef struct Part {
    int first_row, rows, columns;
    Weight which;
    const Tensor *small; // NULL: in an added layer; without data: a bias that the small model lacks
} Part;

typedef struct Inflation {
    const Placement *places;
    double width_ratio; // W / w
    uint64_t seed;
} Inflation;

// Elements [from, from + count) of a stored tensor of `part_count` parts, in `dtype`. The tensor's number
// selects its random numbers.
typedef struct Elements {
    const Part *parts;
    int part_count;
    int tensor;
    Dtype dtype;
    size_t from, count;
} Elements;

void inflated_fill(const Inflation *x, const Elements *which, unsigned char *out);
