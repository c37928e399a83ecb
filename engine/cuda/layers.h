// A layer on the device: its weights, and the activations that its products read.
#pragma once
#include "engine/cuda/kernels/cutting.h"
#include "engine/cuda/kernels/experts.h"
#include "engine/model/model.h"

// The weights of a layer. Absent: data NULL, or NULL.
typedef struct GpuLayer {
    Matrix qkv, o;   // rows of q, k, v one after another, q's and k's in rotary pairs
    Matrix in, down; // in: gate and up in turns, or gate alone
    bool gated;      // in has up
    Matrix router, shared_in, shared_down, expert_in, expert_down; // of a layer with experts
    float *vector[GROUPS]; // of norms and biases; those of qk_norm: q's, then k's
} GpuLayer;

// Activations by their role, in the form that the product reading them wants. ROLE_PAIRED: attention's input
// of INPUT_PAIRED, the others' is normed; ROLE_JOINED: fc's.
typedef enum {
    ROLE_NORMED,
    ROLE_MIXED,
    ROLE_GATED,
    ROLE_PAIRED,
    ROLE_JOINED,
    ROLE_FOLLOWED, // of F, in a block's draft
    ROLE_SHARED,   // of the shared expert
    ROLE_SLOTS,    // rows of experts, by slot
    ROLE_SLOTS_GATED,
    ROLES
} Role;
static inline Role attention_role(const Shape *s, int layer) {
    return s->input == INPUT_PAIRED && layer == 0 ? ROLE_PAIRED : ROLE_NORMED;
}
