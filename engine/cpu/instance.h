// The internals of an open CPU instance, shared by cpu.c (its life), forward.c (layers), attention.c (who
// sees whom) and head.c (logits). Buffers are allocated at open for the largest step.
//
//      cache   keys, values of each layer, by slot            written by commit only
//      copies  of the cache, one for each row                 LAYOUT_COPIED only
//      step    keys, values of each layer, by node            the open step
//      hidden  (max_nodes, width)                             the residual stream of each node
//      given   (max_nodes, given width)                       hidden states, of models that read tokens, too
//      kept    (max_nodes, captures * width)                  once layers are captured
//      panel   scratch for PANEL rows on their way through a layer
#pragma once
#include "engine/base/memory.h"
#include "engine/cpu/kernels/keys.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/pool.h"

#include <stdatomic.h>

enum {
    PANEL = 256, // rows that go through a layer together: with more, reading weights no longer matters
    HEAD_SCRATCH = 1 << 14, // logits that a thread has at a time: 64 outputs for PANEL rows, more for fewer
    HEAD_TOP_MAX = 64,
    BLOCK_QUERIES_MIN = 16, // queries of neighbouring nodes that attend together, if there are enough
};

// Keys and values of all layers one after another.
typedef struct KeyValues {
    void *k, *v;
    size_t k_bytes, v_bytes; // of one layer
} KeyValues;

typedef struct Panel {
    float *normed;    // (PANEL, widest of: width, attention's input, fc's input)
    float *q;         // (PANEL, q_width)
    float *k, *v;     // (PANEL, kv_width), before they are stored
    float *mixed;     // (PANEL, q_width): attention's output
    float *delta;     // (PANEL, width): output of o or down, to be added
    float *gate, *up; // (PANEL, mlp_width), or of experts; up: ones if the model has no up projection
    float *before;    // (PANEL, width): the rows before attention, if the MLP reads them; else NULL
    void *packed;     // activations as the products read them
} Panel;

// Neighbouring nodes of the step area.
typedef struct NodeRun {
    int first, count;
} NodeRun;

// For each node, the runs that make up its path from the root to itself: its parent's, and one node more.
// Computed once per step, used in every layer.
typedef struct Paths {
    NodeRun *runs;    // (max_nodes * (max_nodes + 1) / 2): room for the worst tree
    int *from, *size; // (max_nodes): a node's runs are runs[from] .. runs[from + size - 1]
    int *row;         // (max_nodes): the root of the path, counted from 0
    int used, rows;
} Paths;

// The scratch memory of one thread.
typedef struct ThreadScratch {
    float *row;   // (widest input of a product), see forward.c
    void *packed; // the same, packed for products
    void
        *decoded; // (MATMUL_UNIT, widest input): values of coded weights and of f16; NULL: the model has none
    float *scores;                                              // (block queries, context rounded up)
    float *sums;                                                // (block queries, head_dim rounded up)
    KeySpan *spans;                                             // (block nodes * max_nodes + 2)
    int *before_spans, *after_spans, *before, *visible, *first; // (block nodes), see Attend
    float *logits;                                              // (HEAD_SCRATCH)
    int *top_id;
    float *top_logit; // (PANEL, HEAD_TOP_MAX)
} ThreadScratch;

// Of MATMUL_UNIT logits: the largest, and the sum of e^(logit - largest).
typedef struct UnitSum {
    float highest, sum;
} UnitSum;

typedef struct Cpu {
    const Model *model;
    const CpuOps *ops;
    Pool *pool;
    bool shares_pool;  // the pool is another instance's
    struct Cpu *first; // has the panel, the angles and the threads' scratch; itself, or the first sequence's
    Compute compute;
    atomic_uint overflow; // the first place that overflowed, or OVERFLOW_NONE
    KeyLayout layout;
    int context, max_nodes, slots;
    KeyValues cache, step;
    KeyValues *copies;          // (copy_rows) of the cache: for LAYOUT_COPIED
    int *copied;                // (copy_rows, layers): how many positions of it a copy has
    int copy_rows, run_context; // run_context: the last step's
    float *hidden, *given, *kept;
    size_t kept_capacity; // floats
    Captures captures;
    float *cosine, *sine; // (ropes, context, pairs)
    int rope_filled;      // positions whose angles are computed
    Panel panel;
    float *scores; // (kv_heads, panel_rows, group, context rounded up) for plain attention, else NULL
    int panel_rows;
    Paths paths;
    ThreadScratch *threads; // (pool_threads)
    MemBlocks blocks;       // all but kept, copies and copied
    size_t cache_bytes, experts_read;
    struct Mixture *mixture; // of layers with experts (experts.c); NULL: there are none
    UnitSum *unit_sums;      // (PANEL, units of the vocabulary) if the model's head sums, else NULL
    float *following;        // (cpu_following): scratch of a block's draft
    PhaseSeconds seconds;
} Cpu;

// How many neighbouring nodes attend together.
static inline int cpu_block_nodes(const Shape *s) {
    int group = s->heads / s->kv_heads;
    return group < BLOCK_QUERIES_MIN ? BLOCK_QUERIES_MIN / group : 1;
}
static inline size_t cpu_score_row(const Cpu *c) { return (size_t)c->context / 16 * 16 + 16 + SCORE_PAD; }

static inline size_t cpu_units(const Shape *s) { return ((size_t)s->vocab + MATMUL_UNIT - 1) / MATMUL_UNIT; }
