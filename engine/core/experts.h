// Mixtures of experts: a layer has `count` MLPs of one width, and each row goes through the few that its
// router chooses. A router is a matrix with a row of weights for each expert.
#pragma once
#include <stdbool.h>

enum { EXPERTS_MAX = 1024, CHOSEN_MAX = 64 };

typedef struct Experts {
    int count;         // 0: no layer has experts
    int chosen;        // experts of a row
    int width;         // of an expert's MLP, which always has an `up` and never a bias
    bool renormalised; // the weights of a row's experts sum to 1
    int shared_width;  // of one more MLP, which all rows go through; 0: none
    bool shared_gate;  // the sigmoid of a further product with the row is that MLP's weight; else it's 1
} Experts;

// A row's experts, in ascending order: so their outputs are summed.
typedef struct Route {
    int expert[CHOSEN_MAX]; // (chosen)
    float weight[CHOSEN_MAX];
} Route;

// Chooses the experts with the largest of `count` logits, the lowest number among equals, and weighs them by
// the softmax of all logits. NaN counts as +INFINITY, and makes the weights NaN: such a row's logits are
// refused (backend.h).
void experts_choose(const Experts *e, const float *logits, Route *out);

// The weight of the MLP that all rows go through, from its product.
float experts_shared_weight(float x);
