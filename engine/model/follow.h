// DSpark's heads of one row (engine/core/block.h), for every backend: all but the products with F and G.
#pragma once
#include "engine/core/backend.h"
#include "engine/model/model.h"

// Scratch on the host, one after another: y (width), e (rank), the inputs of G or W, G's outputs, a row of G.
typedef struct Following {
    float *y, *e, *x, *gate, *row;
} Following;
size_t following_floats(const Shape *s);
Following following_at(const Shape *s, float *scratch);

// y is filled. Fills e, and f->confidence.
void follow_begin(const Model *m, Follow *f, const Following *to);
// Fills x with G's inputs; from G's outputs makes of e the input of F, and moves the state on.
void follow_inputs(const Model *m, const float *state, const Following *f);
void follow_gate(const Model *m, float *state, const Following *f);
