// The insides of an open CPU instance, shared by cpu.c (its life), forward.c (layers), attention.c (who sees
// what) and head.c (what comes out).
//
// Buffers are allocated at open for the largest step; pages that a run never needs are never touched.
//
//      cache   keys, values of each layer, by slot            written by commit only
//      copies  of one layer of it, for each row               of LAYOUT_COPIED (copies.c)
//      step    keys, values of each layer, by node            the open step
//      hidden  (max_nodes, width)                             the residual stream of each node
//      panel   scratch for PANEL rows on their way through a layer
//      scores  of the panel in one layer, every head          plain attention
#pragma once
#include "engine/cpu/kernels/ops.h"
#include "engine/cpu/pool.h"

#include <stdatomic.h>

enum {
    PANEL = 256, // rows that go through a layer together: beyond this the weights' stream no longer counts
    HEAD_SCRATCH =
        1 << 14, // logits that a thread holds at a time: of 64 outputs for PANEL rows, of more for less
    HEAD_TOP_MAX = 64,
    BLOCK_QUERIES_MIN = 16, // queries of neighbouring nodes that attend together, if there are that many
};

// Keys and values of all layers one after another.
typedef struct KeyValues {
    void *k, *v;
    size_t k_bytes, v_bytes; // of one layer
} KeyValues;

typedef struct Panel {
    float *normed; // (PANEL, width)
    float *q;      // (PANEL, q_width)
    float *k, *v;  // (PANEL, kv_width), before they are stored
    float *mixed;  // (PANEL, q_width): attention's output
    float *delta;  // (PANEL, width): what o or down adds
    float *gate;   // (PANEL, mlp_width)
    float *up;     // (PANEL, mlp_width): ones where the model has no such weights
    void *packed;  // activations as the products read them
} Panel;

// Neighbouring nodes of the step area.
typedef struct NodeRun {
    int first, count;
} NodeRun;

// For each node the runs that its path from the root, itself included, consists of: the parent's, and one
// node more. Made once a step, used in every layer.
typedef struct Paths {
    NodeRun *runs;    // (max_nodes * (max_nodes + 1) / 2): room for the worst tree
    int *from, *size; // (max_nodes): where a node's runs stand
    int *row;         // (max_nodes): the root that the path begins at, counted from 0
    int used, rows;
} Paths;

// What a thread has for itself.
typedef struct ThreadScratch {
    float *row;                                         // (widest input of a product): see forward.c
    void *packed;                                       // the same, as products read it
    float *scores;                                      // (block queries, context rounded up)
    float *sums;                                        // (block queries, head_dim rounded up)
    KeySpan *spans;                                     // (block nodes * max_nodes + 2)
    int *before_spans, *after_spans, *before, *visible; // (block nodes), see Attend
    int *first;                                         // likewise
    float *logits;                                      // (HEAD_SCRATCH)
    int *top_id;                                        // (PANEL, HEAD_TOP_MAX)
    float *top_logit;                                   // (PANEL, HEAD_TOP_MAX)
} ThreadScratch;

// A row's own copy of the cache, and in each layer how many positions of it are there.
typedef struct CacheCopy {
    KeyValues cache;
    int *length; // (layers)
} CacheCopy;

typedef struct Cpu {
    const Model *model;
    const CpuOps *ops;
    Pool *pool;
    bool shares_pool; // it is another instance's
    Compute compute;
    atomic_uint overflow; // the first place that was told, or OVERFLOW_NONE
    KeyLayout layout;
    int context, max_nodes, slots;
    KeyValues cache, step;
    CacheCopy *copies;          // (copy_rows): of LAYOUT_COPIED, copies.c
    int copy_rows, run_context; // run_context: of the last step
    float *hidden;
    float *cosine, *sine; // (context, pairs)
    int rope_filled;      // positions whose angles are there
    Panel panel;
    float *scores;     // (kv_heads, plain_rows, group, context rounded up): of plain attention; NULL: not it
    size_t plain_rows; // a panel's
    Paths paths;
    ThreadScratch *threads; // (pool_threads)
    size_t cache_bytes, step_bytes;
    PhaseSeconds seconds;
} Cpu;

// A part of the work of one panel in one layer, for all threads.
typedef struct Work {
    Cpu *c;
    const StepRun *run;
    const LayerWeights *w;
    int layer;
    int first, rows; // nodes of the panel
    AttendPart part; // that cpu_attend is at
} Work;

// Neighbouring nodes that attend together.
static inline int cpu_block_nodes(const Shape *s) {
    int group = s->heads / s->kv_heads;
    return group < BLOCK_QUERIES_MIN ? BLOCK_QUERIES_MIN / group : 1;
}
static inline size_t cpu_score_row(const Cpu *c) { return (size_t)c->context / 16 * 16 + 16 + SCORE_PAD; }

// Tells `place` where one of n numbers becomes infinite as compute f16 rounds it.
void cpu_watch(Cpu *c, const float *x, size_t n, unsigned place);

// Layers [a, b) for nodes [first, last); forward.c.
void cpu_forward(Cpu *c, const StepRun *run);

// Paths and angles of nodes [first, last), before they enter layer 0; and attention of a panel, q to mixed;
// attention.c.
void cpu_plan(Cpu *c, const StepRun *run);
void cpu_attend(const Work *k);

// LAYOUT_COPIED, copies.c: room for as many rows; what was committed since goes into the layer's copies,
// before the layer attends; positions from here on will be others.
bool cpu_take_copies(Cpu *c, int rows, Error *e);
void cpu_copy_cache(const Work *k);
void cpu_forget_copies(Cpu *c, int position);
void cpu_release_copies(Cpu *c);

// The head for up to PANEL nodes at a time; head.c.
void cpu_head(Cpu *c, const int *nodes, int count, unsigned want, HeadOut *out);

// Rows of the final normed state, (count, width).
void cpu_normed(Cpu *c, const int *nodes, int count, float *rows);
