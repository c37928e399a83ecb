// A pass over rows of one or several sequences, which share a panel, its threads, and one read of the
// weights: forward.c runs it, attention.c and head.c are parts of it.
#pragma once
#include "engine/cpu/instance.h"

// Neighbouring nodes of one sequence, in rows [at, at + rows) of a panel.
typedef struct Member {
    Cpu *c;
    const StepRun *run;
    int layer;
    int first, rows, at; // first: its first node in the panel
    AttendPart part;     // current part of cpu_attend
} Member;

// One panel's work in one layer, for all threads.
typedef struct Work {
    Cpu *c;          // whose panel and threads do it
    const Tensor *w; // (LAYER_WEIGHTS)
    int layer;
    int rows;              // of the panel
    bool context;          // they are a block's context (block.h)
    const Member *members; // (count)
    int count;
} Work;

// The sequence of a panel's row, and the row's node in it.
static inline const Member *cpu_member(const Work *k, int row) {
    const Member *m = k->members;
    while (row >= m->at + m->rows) m++;
    return m;
}
static inline int cpu_node(const Member *m, int row) { return m->first + row - m->at; }
static inline float *cpu_hidden_row(const Work *k, int row) {
    const Member *m = cpu_member(k, row);
    return m->c->hidden + (size_t)cpu_node(m, row) * (size_t)m->c->model->shape.width;
}

// A row of the head: a node, and the place of its results.
typedef struct HeadRow {
    Cpu *c;
    int node;
    HeadOut *out;
    int at; // in the arrays of `out`
} HeadRow;

// Layers [a, b), the same in all runs, for nodes [first, last) of each instance; forward.c. The instances
// have the same `first`.
void cpu_forward(Cpu *const *c, const StepRun *const *runs, int count);

// Computes paths and angles of nodes [first, last), before they enter layer 0; and a panel's attention, q to
// mixed; attention.c.
void cpu_plan(Cpu *c, const StepRun *run);
void cpu_attend(const Work *k);

// LAYOUT_COPIED, attention.c: allocates copies for this many rows; brings a layer's copies up to date, before
// the layer attends; marks positions from `position` on as outdated.
bool cpu_take_copies(Cpu *c, int rows, Error *e);
void cpu_copy_cache(const Member *m);
void cpu_forget_copies(Cpu *c, int position);

// The head for a panel's rows, of one or several sequences, which want the same; head.c.
void cpu_head(Cpu *c, const HeadRow *row, int rows, unsigned want);

void cpu_normed(const Cpu *c, int node, float *row); // the node's final normed state, (width)

size_t cpu_following(const Shape *s);         // floats of scratch
void cpu_follow(Cpu *c, int node, Follow *f); // follow.c
