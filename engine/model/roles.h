// The roles that a model's tensors have in its arithmetic, and the groups that are read together.
#pragma once

// The weights of a layer, in the order of a model's files; of an expert; then those of the whole model.
// WEIGHT_ROWS (weights.h) describes each of them: its size, its name, and who has it.
typedef enum {
    W_ATTENTION_NORM,
    W_ATTENTION_NORM_BIAS,
    W_Q,
    W_K,
    W_V,
    W_Q_BIAS,
    W_K_BIAS,
    W_V_BIAS,
    W_Q_NORM,
    W_K_NORM,
    W_O,
    W_O_BIAS,
    W_ATTENTION_POST, // norm of attention's output
    W_MLP_NORM,
    W_MLP_NORM_BIAS,
    W_GATE,
    W_UP,
    W_DOWN,
    W_GATE_BIAS,
    W_UP_BIAS,
    W_DOWN_BIAS,
    W_MLP_POST, // norm of the MLP's output
    W_ROUTER,   // of layers with experts (engine/core/experts.h)
    W_SHARED_ROUTER,
    W_SHARED_GATE, // of the MLP that all rows go through
    W_SHARED_UP,
    W_SHARED_DOWN,
    LAYER_WEIGHTS,
    W_EXPERT_GATE = LAYER_WEIGHTS, // of each expert
    W_EXPERT_UP,
    W_EXPERT_DOWN,
    MODEL_WEIGHTS,
    W_FINAL_NORM = MODEL_WEIGHTS,
    W_HEAD,
    W_FC,
    W_FC_BIAS,
    W_TOKEN_NORM,
    W_FC_NORM,
    W_STATE_NORM,
    W_MARKOV_FROM,
    W_MARKOV_TO,
    W_MARKOV_GATE,
    W_MARKOV_GATE_BIAS,
    W_CONFIDENCE,
    W_CONFIDENCE_BIAS,
    W_FINAL_NORM_BIAS,
    W_HEAD_BIAS,
    W_POSITIONS,
    W_EMBEDDING,
    WEIGHTS
} Weight;

enum { EXPERT_WEIGHTS = MODEL_WEIGHTS - LAYER_WEIGHTS };

// Weights that are read together, in the order above: an architecture may store a group as one
// tensor, and a GPU reads it as one matrix or vector.
typedef enum {
    GROUP_QKV,
    GROUP_O,
    GROUP_IN, // gate and up
    GROUP_DOWN,
    GROUP_ROUTER, // and the shared MLP's
    GROUP_SHARED_IN,
    GROUP_SHARED_DOWN,
    GROUP_EXPERT_IN,
    GROUP_EXPERT_DOWN,
    MATRIX_GROUPS,
    GROUP_ATTENTION_NORM = MATRIX_GROUPS,
    GROUP_ATTENTION_NORM_BIAS,
    GROUP_QKV_BIAS,
    GROUP_QK_NORM,
    GROUP_O_BIAS,
    GROUP_ATTENTION_POST,
    GROUP_MLP_NORM,
    GROUP_MLP_NORM_BIAS,
    GROUP_IN_BIAS,
    GROUP_DOWN_BIAS,
    GROUP_MLP_POST,
    GROUPS
} WeightGroup;
