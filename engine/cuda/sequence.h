// Sequences on an instance's cards, and what they run there: rows of several that go through layers, or
// through the head, together. A node is a number in the step area, where cuda_node has a sequence's own.
#pragma once
#include "engine/cuda/instance.h"

// A session's instance: one of the sequences on these cards.
typedef struct Sequence {
    Cuda *cards;  // the first
    int number;   // that of its cache
    Cuda *lender; // the card whose stream receives hidden states on their way to another instance
    bool copied;  // its last run read copies of its cache
    bool captures;
} Sequence;

static inline int cuda_node(const Sequence *s, int node) { return s->number * s->cards->max_nodes + node; }

// Nodes of a sequence in a run of several; all go through the same layers.
typedef struct SequenceRun {
    Sequence *sequence;
    const StepRun *run;
    const int *token; // of its only node, as in StepNode; NULL: the tree's
    const Grow *grow; // this level of a dynamic tree, 0: the rows in front of it; or NULL
} SequenceRun;

// copies.c. Fills the copies of the runs' caches, and takes memory if there are too few. Memory for captured
// states, from the next step on; bytes of a sequence's cache_k, as of its cache_v.
bool cuda_take_copies(Cuda *c, const SequenceRun *runs, int count, Error *e);
bool cuda_take_kept(Cuda *c, const Captures *captures, Error *e);
size_t cuda_cache_size(const Cuda *c);

// turns.c. Writes a step of at most `most` rows and returns its bytes.
size_t cuda_write_step(const Cuda *c, const SequenceRun *runs, int count, int most, RowList *to);

// step.c. The card's layers of [a, b).
bool cuda_step(Cuda *c, const SequenceRun *runs, int count, int a, int b, Error *e);
// Records what `put` puts into the card's stream. Returns whether *graph has it, now or from an earlier call.
bool cuda_record(Cuda *c, void **graph, void (*put)(Cuda *c, const void *what), const void *what);

// head.c. A node of the step area, and its results: row `at` of `out`.
typedef struct HeadRow {
    int node;
    HeadOut *out;
    int at;
} HeadRow;
bool cuda_head(Cuda *c, const HeadRow *rows, int count, unsigned want, Error *e); // PANEL_ROWS at most
// Puts the head for the rows that the last step foresaw into the stream. *row: the last of them, or -1 if
// there are none; after a wait its likeliest id is cuda_chained(c, at).
bool cuda_head_ahead(Cuda *c, int at, int *row, Error *e);
int cuda_chained(const Cuda *c, int at); // or HEAD_BAD
// The same for a level of a dynamic tree, rows [at, ..) of n: their best, and ln of their sums, which the
// next level reads. After the last one cuda_tops waits, and gets those of all rows.
bool cuda_head_level(Cuda *c, int at, int n, Grow *g, Error *e);
bool cuda_tops(Cuda *c, int n, HeadOut *out, Error *e);
bool cuda_distribution(Cuda *c, int node, const Sampling *sampling, int vocab, float *p, Error *e);
bool cuda_follow(Cuda *c, int node, Follow *f, Error *e); // as Backend.follow
bool cuda_normed(Cuda *c, const int *nodes, int count, float *rows, Error *e);
bool cuda_norm_to(Cuda *c, const int *nodes, int count, float *rows, Error *e); // rows: on the device
