// Whose proposal won? A method that draws on several sources (the context, a table, a datastore) says of each
// row that it offers where it came from; after the verdict, this says how far each source's rows were right.
//
//      row 0  context    a b c        accepted: a b
//      row 1  context    a x          context: 2 rows, match 2, rank 1
//      row 2  bigram     d            bigram:  2 rows, match 1, rank 2
//      row 3  bigram     a
#pragma once
#include "engine/core/tree.h"
#include "engine/decode/verify.h"

enum { SOURCES_MAX = 24 };

typedef struct Offer {
    int source; // number of a name
    int node;   // the row's last
} Offer;

// What a method offered in the open step, in its order; part of the method's own state.
typedef struct Offers {
    const char *const *names; // (source_count)
    int source_count;         // at most SOURCES_MAX
    int count;
    Offer rows[TREE_MAX_NODES]; // (count)
} Offers;

// Enters a row by its last node; TREE_NONE is no offer.
void offer(Offers *o, int source, int node);

// Adds a row of one-hot candidates and enters it. What finds no room in the tree is cut off; a row of which
// nothing is left is no offer.
void offer_row(Offers *o, Tree *tree, int source, const int *tokens, int count);

// How many tokens of the row that ends in `node` stand on the path that ends in `accepted`.
int sources_match(const Tree *tree, int node, int accepted);

// One source in one step.
typedef struct SourceReport {
    const char *name;
    int rows;  // offered
    int match; // accepted tokens of the row that had most
    int rank;  // of that row among the source's, from 1, the first of equals; 0: nothing matched
} SourceReport;

// Fills one report per source, (source_count).
void sources_judge(const Offers *o, const Tree *tree, const Verdict *v, SourceReport *out);

// One source over the steps of a text. A step is won by the source with the longest match, the first of
// equals.
typedef struct SourceTotals {
    const char *name;
    double rows;
    int won;       // steps
    double tokens; // accepted in them
} SourceTotals;

void sources_add(SourceTotals *totals, const SourceReport *reports, int count);
