// A tree of ranks as text, which the product only reads.
#pragma once
#include "engine/decode/rank_tree.h"

#include <stdio.h>

// text: room for RANK_TREE_DEPTH + 3 characters a node.
static inline void rank_tree_text(const RankTree *t, char *text) {
    for (int i = 0; i < t->count; i++) {
        char path[RANK_TREE_DEPTH + 1] = "";
        int at = i;
        for (int n = t->nodes[i].depth; n >= 0; n--, at = t->nodes[at].parent)
            path[n] = (char)('0' + t->nodes[at].rank);
        text += sprintf(text, "%s%s", i % 3 ? ";" : "\n ", path);
    }
}
