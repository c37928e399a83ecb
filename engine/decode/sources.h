// Whose proposal won? A method with several sources (the context, a table, a datastore) records where each
// proposed row came from; after the verdict, each source's rows are compared with the accepted path.
//
//      row 0  context    a b c        accepted: a b
//      row 1  context    a x          context: 2 rows, match 2, rank 1
//      row 2  bigram     d            bigram:  2 rows, match 1, rank 2
//      row 3  bigram     a
#pragma once
#include "engine/core/tree.h"
#include "engine/decode/verify.h"

enum { SOURCES_MAX = 24 };

typedef struct SourceRow {
    int source; // number of a name
    int node;   // the row's last node
} SourceRow;

// The rows that a method proposed in the open step, in its order; part of the method's own state.
typedef struct Sources {
    const char *const *names; // (source_count)
    int source_count;         // at most SOURCES_MAX
    int count;
    SourceRow rows[TREE_MAX_NODES]; // (count)
} Sources;

// Records a row by its last node; ignores TREE_NONE.
void sources_record(Sources *s, int source, int node);

// Adds a row of one-hot candidates to the tree and records it. Tokens that don't fit into the tree are cut
// off; a row without any token left isn't recorded.
void sources_propose(Sources *s, Tree *tree, int source, const int *tokens, int count);

// Returns how many tokens of the row that ends in `node` are on the path that ends in `accepted`.
int sources_match(const Tree *tree, int node, int accepted);

// One source in one step.
typedef struct SourceReport {
    const char *name;
    int rows;  // proposed
    int match; // accepted tokens of the best row
    int rank;  // of that row among the source's rows, from 1, the first of equals; 0: nothing matched
} SourceReport;

// Fills one report per source, (source_count).
void sources_judge(const Sources *s, const Tree *tree, const Verdict *v, SourceReport *out);

// One source over the steps of an output. A step is won by the source with the longest match, the first of
// equals.
typedef struct SourceTotals {
    const char *name;
    double rows;
    int won;       // steps
    double tokens; // accepted in the steps it won
} SourceTotals;

void sources_add(SourceTotals *totals, const SourceReport *reports, int count);

// --- the step

typedef enum {
    STEP_STEADY,
    STEP_FILLING, // Lookahead's window doesn't have all its rows yet
    STEP_PREFILL, // not a step: the prompt's run
} StepKind;

// A method's own facts about its step; zero by default.
typedef struct StepNote {
    StepKind kind;
    int pool, pool_hits; // n-grams in its pool, and those that it tried
} StepNote;
