// The trace of a pass over a batch: activations that the backward pass reads, and gradients.
#pragma once

// Activations of a layer, kept from its forward pass for its backward pass; each (rows, ...).
typedef struct LayerTrace {
    float *in;             // (width) the residual stream below the layer
    float *normed;         // (width); in EAGLE-3 (2 width), the normed embedding before it
    float *inverse;        // 1 / root mean square of `in`
    float *heads;          // (q_width + kv_width) q and k before their norms, if any; then their inverses
    float *qkv;            // (q_width + 2 kv_width), rotated by their positions
    float *mixed;          // (q_width) the output of attention
    float *middle;         // (width) the residual stream between attention and MLP
    float *middle_normed;  // (width)
    float *middle_inverse; // of `middle`
    float *gate_up;        // (2 mlp_width); an MLP without up has ones in its place
    float *active;         // (mlp_width): silu(gate) * up
    float *qkv_slope;      // the gradient of qkv: an EAGLE head's layers have their own, others share one
} LayerTrace;

// The gradients of a layer's activations; each (rows, ...).
typedef struct Slopes {
    float *stream;  // (width) of the residual stream above the layer, then below
    float *middle;  // (width) between attention and MLP
    float *mixed;   // (q_width)
    float *gate_up; // (2 mlp_width)
    float *active;  // (mlp_width)
    float *join;    // (2 width): of an EAGLE head's inputs
    float *mask;    // (width) alone: of fc [mask's states], summed over all rows and forwards of masks
    // of norm weights, (blocks of NORM_BLOCK rows, width), of heads' q's, k's, context's k's, (blocks, 3
    // head_dim)
    float *attention_norm, *mlp_norm, *token_norm, *state_norm, *head_norms;
} Slopes;

// One forward of a pass, besides the traces: activations and gradients (rows, ...).
typedef struct Forward {
    float *out;               // (width) above the last layer
    float *out_inverse;       // of `out`
    float *join;              // (2 width): EAGLE-1's embedding and state; MTP's, normed, the state first
    float *embedding_inverse; // of EAGLE-3's and MTP's embedding
    float *read;              // (width): the state that MTP reads
    float *read_inverse;      // of `read`
    float *normed_slope;      // like a trace's normed; first that of the normed output
} Forward;

// A draft of blocks has these, too; each (rows, ...), those of the last line (HEAD_ROWS, ...).
typedef struct BlockTrace {
    float *fused, *inverse, *normed, *slope; // fc's (width), its norm, the context (width), its slope
    LayerTrace *layers;                  // (shape.layers) of the context: heads and qkv, where q is unused
    float *qkv_slope;                    // of the context, too
    float *front, *front_slope, *doubts; // (rank) E of the token in front; the slope of the confidence
} BlockTrace;
