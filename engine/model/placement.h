// Where the parts of a small model stand in a larger shape: for each row and column of the large one's
// weights, the row or column of the small one that it takes over.
//
// Residual stream, MLP and vocabulary: the real ones first, in order. Heads in order too, each group of query
// heads at its own key head, which is given again where the large shape has smaller groups:
//
//      small, 4 to 1   k0: q0 q1 q2 q3            k1: q4 q5 q6 q7
//      large, 2 to 1   k0: q0 q1    k0: q2 q3     k1: q4 q5    k1: q6 q7
//      large, 7 to 1   k0: q0 q1 q2 q3 - - -      k1: q4 q5 q6 q7 - - -
//
// A query head at `-` attends with the values of a real key head, so what it gives is no zero: its columns of
// o are dead, they must be zero in every row.
//
// Within a query or key head of m times the size, m = 1, 4 or 16, real dimension i stands where RoPE turns it
// by its old angle: pair i of n has frequency theta^(-i/n), which is that of pair m i of m n. The order of
// dimensions stays. RoPE does not touch values: theirs stand first.
//
//      small, 2 pairs  a0 a1 | b0 b1
//      q, k, m = 4     a0 - - - a1 - - - | b0 - - - b1 - - -
//      v, o            a0 a1 b0 b1 - - - - - - - - - - - -
//
// Layers are spread evenly: layer i of l is layer i L / l (rounded down) of L. So what small layer i reads is
// what that one reads, and an exit layer keeps its share of the depth.
#pragma once
#include "engine/core/shape.h"
#include "engine/model/adapter.h"

#include <stdint.h>

enum { PLACE_PADDED = -1, PLACE_DEAD = -2 };

typedef enum { AXIS_RESIDUAL, AXIS_MLP, AXIS_VOCABULARY, AXIS_Q, AXIS_K, AXIS_V, AXIS_O, AXES } AxisName;

typedef struct Axis {
    int *from; // (size): the small one's index, or PLACE_PADDED, PLACE_DEAD
    int size;
    int end; // from here on all are padded
} Axis;

typedef struct Placement {
    Axis axis[AXES];
    int head_ratio; // m
} Placement;

// False with e filled, and an empty placement, where the small one does not fit into the large one, which
// `place` names.
bool placement_init(Placement *p, const Shape *small, const Shape *large, const char *place, Error *e);
void placement_release(Placement *p); // takes an empty one

// The layer of the large model that takes over a small one's, and back: PLACE_PADDED for an added layer.
int placement_layer(int small_layer, int small_layers, int large_layers);
int placement_layer_from(int large_layer, int small_layers, int large_layers);

// --- rows of an inflated model

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
