// The shape of Medusa's tree: which ranks of which head are tried below which.
//
// A node is the path of ranks that leads to it: 03 is the fourth choice of the second head below the first
// choice of the first. As text a tree is its paths, one digit per rank, with anything but digits between
// them; a path stands after the path that it continues.
#pragma once
#include "engine/base/error.h"

enum { MEDUSA_DEPTH = 8, MEDUSA_RANKS = 10 };

typedef struct MedusaNode {
    int parent; // an earlier node, or -1: the root
    int depth;  // 0: below the root
    int rank;
} MedusaNode;

// The `count` likeliest nodes, if a head's choices are as good as medusa_chance says. `out` has `count`
// places; gives how many there are.
int medusa_tree_grow(MedusaNode *out, int count, int depth, int ranks);

// What is assumed of the heads: a share of right best choices that falls from head to head, and in a head
// with the rank. Only the order of the products matters, and it is mild in both.
double medusa_chance(int depth, int rank);

// Reads at most `most` paths of at most `depth` ranks; `place` names the text for the message. -1 with e
// filled where it is wrong.
int medusa_tree_parse(MedusaNode *out, int most, int depth, const char *text, const char *place, Error *e);
