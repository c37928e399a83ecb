// A tree of ranks: the shape of a token tree, before it has tokens. A node of rank r bears the r-th best
// choice below its parent, counted from 0; the method knows the choices (Medusa's heads, Token Recycling's
// matrix).
//
//      root --- 0 --- 00        As text, a tree is the paths of its nodes, one digit per rank, separated by
//       |       \---- 01        anything except digits: 0;1;00;01. A path comes after the path it extends.
//       \------ 1               Or the number of choices per level: 2x2 also has 10 and 11.
//
// Invariant: a parent's number is less than its child's.
#pragma once
#include "engine/decode/sources.h"

#include <stdint.h>

enum { RANK_TREE_DEPTH = 16, RANK_TREE_RANKS = 10, RANK_TREE_MOST = TREE_MAX_NODES - 1 };

typedef struct RankNode {
    int parent; // an earlier node, or -1: the root
    int depth;  // 0: below the root
    int rank;
} RankNode;

typedef struct RankTree {
    RankNode *nodes; // (count), with room for RANK_TREE_MOST
    int *placed;     // (count): the step's node, or TREE_NONE
    int count;
} RankTree;

void rank_tree_init(RankTree *t); // no nodes
void rank_tree_release(RankTree *t);

// Makes the `count` likeliest nodes of at most `depth` levels and `ranks` choices below each, by
// rank_tree_chance; fewer if there aren't so many.
void rank_tree_grow(RankTree *t, int count, int depth, int ranks);

// The assumed chance that the choice of this rank is right if its parent is.
double rank_tree_chance(int depth, int rank);

// Reads paths of at most `depth` ranks. `place` names the text in errors.
bool rank_tree_parse(RankTree *t, int depth, const char *text, const char *place, Error *e);

// Reads a method's parameter, as RANK_TREE_HELP describes it: a published tree's name, choices per level,
// paths, or else the name of a file of paths.
#define RANK_TREE_HELP \
    "2.2.2, samd, eagle (published trees), choices per level (3x2x2), paths (0;1;00), or a file of them"
bool rank_tree_read(RankTree *t, int depth, const char *text, Error *e);

int rank_tree_width(const RankTree *t);  // the highest rank, plus one
int rank_tree_levels(const RankTree *t); // of nodes, the root's not counted

// Records the paths to the placed leaves, as rows of source 0.
void rank_tree_record(const RankTree *t, Sources *sources);

// The accepted path of a step by ranks: for the root and each accepted node, the children that the shape has,
// placed or not, and the accepted one of them.
typedef struct RankPath {
    int count;                              // nodes; 0: the method has no tree of ranks
    uint16_t tried[RANK_TREE_DEPTH + 1];    // bit r: a child of rank r
    signed char taken[RANK_TREE_DEPTH + 1]; // the accepted child's rank, -1: none
} RankPath;

void rank_tree_follow(const RankTree *t, const Tree *tree, const Verdict *v, RankPath *out);
