// The programme against every tree there is: all ordered trees of a few nodes, built node by node, each
// valued by the formula.
#include "tests/support/check.h"

#include "engine/base/random.h"
#include "simulate/tuning.h"

#include <math.h>
#include <string.h>

enum { RANKS = 4, NODES = 9, LEVELS = 6 };

typedef struct {
    int parents[NODES], depth[NODES], children[NODES]; // (count); node 0 is the root
    int count;
    const double *chance;
    int ranks;
    double best[NODES + 1][LEVELS + 1]; // by nodes, by most levels
    int seen;
} Search;

static void value(Search *s) {
    double reached[NODES] = {1}, tokens = 0;
    int rank[NODES] = {0}, given[NODES] = {0}, levels = 0;
    for (int i = 0; i < s->count; i++) {
        if (i > 0) {
            rank[i] = given[s->parents[i]]++;
            reached[i] = reached[s->parents[i]] * s->chance[rank[i]];
        }
        tokens += reached[i];
        levels = s->depth[i] + 1 > levels ? s->depth[i] + 1 : levels;
    }
    for (int l = levels; l <= LEVELS; l++) s->best[s->count][l] = fmax(s->best[s->count][l], tokens);
    s->seen++;
}

// Every tree, in order of its last path: the next node is a child of a node on the path to the last one.
static void all_trees(Search *s) {
    value(s);
    if (s->count == NODES) return;
    int last = s->count - 1, n = s->count++;
    for (int parent = last; parent >= 0; parent = parent ? s->parents[parent] : -1) {
        if (s->children[parent] == s->ranks || s->depth[parent] + 1 == LEVELS) continue;
        s->parents[n] = parent;
        s->depth[n] = s->depth[parent] + 1;
        s->children[n] = 0;
        s->children[parent]++;
        all_trees(s);
        s->children[parent]--;
    }
    s->count--;
}

// What the tree that is read back is worth; it must have that size, and no gaps among its ranks.
static double value_read(const BestTrees *t, const double *chance, int nodes, int levels) {
    int parents[NODES], ranks[NODES], given[NODES] = {0}, depth[NODES];
    double reached[NODES], tokens = 1;
    best_trees_read(t, nodes, levels, parents, ranks);
    for (int i = 0; i < nodes - 1; i++) {
        int parent = parents[i];
        assert_in_range(parent + 1, 0, i);
        assert_int_equal(ranks[i], given[parent + 1]++);
        depth[i] = parent < 0 ? 1 : depth[parent] + 1;
        assert_true(depth[i] < levels);
        reached[i] = (parent < 0 ? 1 : reached[parent]) * chance[ranks[i]];
        tokens += reached[i];
    }
    return tokens;
}

static void random_chances(Random *r, double *chance, int ranks) {
    double total = random_uniform(r);
    for (int b = 0; b < ranks; b++) total += chance[b] = test_between(r, 0, 5) ? random_uniform(r) : 0;
    for (int b = 0; b < ranks; b++) chance[b] /= total;
}

static void every_tree(void **state) {
    (void)state;
    Random r = test_random(85);
    for (int round = 0; round < 60; round++) {
        double chance[RANKS];
        Search s = {.count = 1, .chance = chance, .ranks = test_between(&r, 1, RANKS)};
        random_chances(&r, chance, s.ranks);
        all_trees(&s);
        BestTrees *t = best_trees_make(chance, s.ranks, NODES, LEVELS);
        for (int m = 1; m <= NODES; m++)
            for (int l = 1; l <= LEVELS; l++) {
                double got = best_trees_tokens(t, m, l), want = s.best[m][l];
                if (fabs(got - want) > 1e-12)
                    fail_msg("%d nodes in %d levels of %d ranks: %g, want %g", m, l, s.ranks, got, want);
                if (got > 0) assert_true(fabs(value_read(t, chance, m, l) - got) < 1e-12);
            }
        if (s.ranks == RANKS) assert_true(s.seen > 1000);
        best_trees_free(t);
    }
}

// A chain if only the first child is ever right; a row of children if there are two levels.
static void known_trees(void **state) {
    (void)state;
    static const double first[] = {0.8, 0}, even[] = {0.3, 0.2, 0.1};
    BestTrees *t = best_trees_make(first, 2, 5, 5);
    assert_true(fabs(best_trees_tokens(t, 5, 5) - (1 + .8 + .64 + .512 + .4096)) < 1e-12);
    best_trees_free(t);
    t = best_trees_make(even, 3, 5, 2);
    assert_true(fabs(best_trees_tokens(t, 4, 2) - 1.6) < 1e-12);
    assert_true(best_trees_tokens(t, 5, 2) == 0);
    best_trees_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_tree), cmocka_unit_test(known_trees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
