// The best fixed trees by dynamic programming: see tuning.h. Tables over levels l, nodes m and children b:
//
//      tokens[l][m][b] = max over y of  tokens[l][y][b - 1] + chance[b - 1] * best[l - 1][m - y]
//      best[l][m]      = max over b of  tokens[l][m][b]
//
// Invariant: a positive entry is the tokens of a tree that exists; the root is 1 of them.
#include "simulate/tuning.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stddef.h>

struct BestTrees {
    double *chance; // (ranks)
    int ranks, nodes, levels;
    double *tokens; // (levels + 1, nodes + 1, ranks + 1)
    int *split;     // the same: y
    int *children;  // (levels + 1, nodes + 1): b of the best
};

static size_t row_of(const BestTrees *t, int level, int nodes) {
    assert(level >= 0 && level <= t->levels && nodes >= 0 && nodes <= t->nodes);
    return (size_t)level * (size_t)(t->nodes + 1) + (size_t)nodes;
}

static size_t cell_of(const BestTrees *t, int level, int nodes, int children) {
    assert(children >= 0 && children <= t->ranks);
    return row_of(t, level, nodes) * (size_t)(t->ranks + 1) + (size_t)children;
}

double best_trees_tokens(const BestTrees *t, int nodes, int levels) {
    return t->tokens[cell_of(t, levels, nodes, t->children[row_of(t, levels, nodes)])];
}

static void fill_cell(BestTrees *t, int level, int nodes, int children) {
    size_t cell = cell_of(t, level, nodes, children);
    for (int y = 1; y < nodes; y++) {
        double left = t->tokens[cell_of(t, level, y, children - 1)];
        double below = best_trees_tokens(t, nodes - y, level - 1);
        double tokens = left + t->chance[children - 1] * below;
        if (!(left > 0) || !(below > 0) || tokens <= t->tokens[cell]) continue;
        t->tokens[cell] = tokens;
        t->split[cell] = y;
    }
}

static void fill_level(BestTrees *t, int level) {
    t->tokens[cell_of(t, level, 1, 0)] = 1;
    for (int b = 1; b <= t->ranks && level > 1; b++)
        for (int m = 2; m <= t->nodes; m++) fill_cell(t, level, m, b);
    for (int m = 1; m <= t->nodes; m++) {
        int best = 0;
        for (int b = 1; b <= t->ranks; b++)
            if (t->tokens[cell_of(t, level, m, b)] > t->tokens[cell_of(t, level, m, best)]) best = b;
        t->children[row_of(t, level, m)] = best;
    }
}

BestTrees *best_trees_make(const double *chance, int ranks, int nodes, int levels) {
    assert(ranks >= 1 && nodes >= 1 && levels >= 1);
    BestTrees *t = mem_new(1, sizeof *t);
    *t = (BestTrees){.ranks = ranks, .nodes = nodes, .levels = levels};
    size_t rows = (size_t)(levels + 1) * (size_t)(nodes + 1), cells = rows * (size_t)(ranks + 1);
    t->chance = mem_new((size_t)ranks, sizeof *t->chance);
    t->tokens = mem_new(cells, sizeof *t->tokens);
    t->split = mem_new(cells, sizeof *t->split);
    t->children = mem_new(rows, sizeof *t->children);
    for (int b = 0; b < ranks; b++) t->chance[b] = chance[b];
    for (int level = 1; level <= levels; level++) fill_level(t, level);
    return t;
}

void best_trees_free(BestTrees *t) {
    if (!t) return;
    MEM_FREE(t->chance, t->tokens, t->split, t->children, t);
}

// Writes all below `parent`, the root of the best tree of this size, from guess `next` on; returns the next
// free one.
static int read_below(const BestTrees *t, int nodes, int levels, int parent, int next, int *parents,
                      int *ranks) {
    int count = t->children[row_of(t, levels, nodes)], first = next;
    for (int b = count, left = nodes; b > 0; b--) {
        int y = t->split[cell_of(t, levels, left, b)];
        parents[first + b - 1] = parent;
        ranks[first + b - 1] = left - y; // for now, the size of its subtree
        left = y;
    }
    next += count;
    for (int b = 0; b < count; b++) {
        int size = ranks[first + b];
        ranks[first + b] = b;
        next = read_below(t, size, levels - 1, first + b, next, parents, ranks);
    }
    return next;
}

void best_trees_read(const BestTrees *t, int nodes, int levels, int *parents, int *ranks) {
    assert(best_trees_tokens(t, nodes, levels) > 0);
    int end = read_below(t, nodes, levels, -1, 0, parents, ranks);
    assert(end == nodes - 1);
    (void)end; // without asserts
}
