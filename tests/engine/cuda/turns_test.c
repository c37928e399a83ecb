// Tiles and turns of random trees: each node is in one tile, each block of its path that is not committed in
// one turn, with the path's own nodes as keys; and no span has more turns than a block of the grid takes.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/cuda/sequence.h"

#include <string.h>

static void grow(Tree *t, Random *r, int nodes, int chain) {
    int last = tree_root(t, 0);
    while (t->count < nodes) {
        bool on = test_between(r, 0, 99) < chain;
        last = tree_probe(t, on ? last : test_between(r, 0, t->count - 1), test_between(r, 0, 9), false);
    }
}

static int ancestor_at(const Tree *t, int node, int position) {
    while (tree_position(t, node) > position) node = t->parent[node];
    return node;
}

static void check_block(const StepRun *run, const Tile *tile, const Turn *turns, int member, int base) {
    const Tree *t = run->tree;
    int node = run->first + tile->row[member], found = 0, end = tree_position(t, node);
    for (const Turn *x = turns + tile->turn[0]; x < turns + tile->turn[STEP_SPANS]; x++) {
        if (x->base != base || !(x->nodes >> member & 1)) continue;
        found++;
        for (int p = base; p < base + BLOCK && p <= end; p++)
            assert_int_equal(x->key[p - base], p < t->context ? NO_KEY : ancestor_at(t, node, p));
    }
    if (found != 1) fail_msg("node %d has %d turns at %d", node, found, base);
}

static void check_tile(const StepRun *run, const Tile *tile, const Turn *turns, bool *seen) {
    const Tree *t = run->tree;
    int lowest = tile->position[0], highest = 0;
    for (int i = 0; i < tile->nodes; i++) {
        int node = run->first + tile->row[i], p = tree_position(t, node),
            first = cache_first_visible(run->cache, p);
        assert_true(node < run->last && !seen[node]);
        seen[node] = true;
        assert_int_equal(tile->position[i], p);
        if (first < lowest) lowest = first;
        if (p > highest) highest = p;
        for (int base = block_of(first > t->context ? first : t->context); base <= p; base += BLOCK)
            check_block(run, tile, turns, i, base);
    }
    assert_int_equal(tile->lowest, lowest);
    assert_int_equal(tile->highest, highest);
    for (int span = 0; span < STEP_SPANS; span++) {
        int begin = (t->context / SPAN + span) * SPAN, blocks = 0;
        for (int base = begin; base + BLOCK <= t->context; base += BLOCK) blocks += base + BLOCK > lowest;
        assert_in_range(blocks + tile->turn[span + 1] - tile->turn[span], 0, SPAN_TURNS);
        for (int i = tile->turn[span]; i < tile->turn[span + 1]; i++) {
            assert_in_range(turns[i].base, begin, begin + SPAN - 1);
            assert_true(i == tile->turn[span] || turns[i - 1].base <= turns[i].base);
        }
    }
}

// Gives how many tiles and turns there are.
static Step check(const Tree *t, int first, int window, int heads, int rows) {
    Cuda c = {.sequences = 1,
              .max_nodes = t->capacity,
              .heads = {.heads = heads, .kv_heads = 1, .dtype = DTYPE_BF16}};
    Cache cache = {.window = window};
    StepRun run = {.tree = t, .cache = &cache, .first = first, .last = t->count};
    bool seen[TREE_MAX_NODES] = {false};
    Sequence alone = {.cards = &c};
    RowList *block = mem_new(1, cuda_step_size(&c));
    size_t bytes = cuda_write_step(&c, &(SequenceRun){&alone, &run, NULL, NULL}, 1, rows, block);
    const Step *step = cuda_step_in(&c, block);
    assert_in_range(bytes, 1, cuda_step_size(&c));
    const Tile *tiles = (const Tile *)(const void *)(step + 1);
    const Turn *turns = (const Turn *)(const void *)(tiles + step->tiles);
    const StepNode *nodes = (const StepNode *)(const void *)(turns + step->turns);
    for (int i = 0; i < step->tiles; i++)
        if (tiles[i].nodes) check_tile(&run, &tiles[i], turns, seen);
    assert_true(block->count == t->count - first && block->first == first);
    for (int i = 0; i < t->count; i++) {
        assert_int_equal(seen[i], i >= first);
        if (i >= first) assert_int_equal(nodes[i - first].position, tree_position(t, i));
    }
    Step got = *step;
    mem_free(block);
    return got;
}

static void random_trees(void **state) {
    (void)state;
    Random r = test_random(71);
    Tree t;
    tree_init(&t, TREE_MAX_NODES, 10);
    for (int round = 0; round < 150; round++) {
        int nodes = test_between(&r, 1, round % 10 ? 150 : TREE_MAX_NODES);
        tree_clear(&t, test_between(&r, 0, 300), 1 << 20, false, LAYOUT_TREE);
        grow(&t, &r, nodes, test_between(&r, 0, 100));
        check(&t, round % 3 ? 0 : test_between(&r, 0, nodes - 1), round % 2 ? 0 : test_between(&r, 1, 200),
              test_between(&r, 1, 20), nodes);
    }
    tree_release(&t);
}

// A chain has a turn for each of its blocks; tiles whose paths part have more, but few.
static void paths_share(void **state) {
    (void)state;
    Random r = test_random(72);
    Tree t;
    tree_init(&t, 400, 10);
    tree_clear(&t, 96, 1 << 20, true, LAYOUT_TREE);
    grow(&t, &r, 128, 100);
    Step chain = check(&t, 0, 0, 1, 128);
    assert_int_equal(chain.tiles, 8);
    assert_int_equal(chain.turns, 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8);
    tree_clear(&t, 100, 1 << 20, false, LAYOUT_TREE);
    for (int i = 0, root = tree_root(&t, 0); i < 25; i++)
        for (int k = 0, node = root; k < 14; k++) node = tree_probe(&t, node, i % 10, true);
    Step branches = check(&t, 0, 0, 1, 351);
    assert_int_equal(branches.tiles, 22);
    assert_in_range(branches.turns, 50, 25 * 2 + 22 * 2);
    tree_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_trees), cmocka_unit_test(paths_share)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
