// A step's tiles and turns (kernels.h).
//
// Nodes are taken in preorder, so that the nodes of a tile share most of their paths. A tile is full when it
// has its number of nodes, or when one more would give it a span of more than SPAN_TURNS turns. With
// LAYOUT_COPIED a tile's nodes are of one row of the batch, which sees its own copy of the cache.
//
// Invariants: every node of the run is in exactly one tile; a tile's turns are in ascending order of their
// blocks, and a turn's nodes agree in its block up to the shorter path.
#include "engine/cuda/fast.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

// One node has at most NODE_TURNS blocks; while it's built, a tile also has the turns of one node more.
enum { NODE_TURNS = TREE_MAX_NODES / BLOCK + 2, MOST_TURNS = STEP_SPANS * SPAN_TURNS + NODE_TURNS };
_Static_assert((SPAN - 1 + TREE_MAX_NODES - 1) / SPAN + 1 <= STEP_SPANS, "a step's nodes are in these spans");
_Static_assert(SPAN_TURNS >= SPAN / BLOCK, "a node alone fits");
_Static_assert(sizeof(Step) % 8 == 0 && sizeof(Tile) % 8 == 0 && sizeof(Turn) % 8 == 0, "read 8 at a time");

typedef struct Builder {
    const StepRun *run;
    int nodes, lowest, turns, copy;
    int node[TILE_NODES];
    Turn turn[MOST_TURNS]; // (turns)
} Builder;

static void copy_builder(Builder *to, const Builder *from) {
    memcpy(to, from, offsetof(Builder, turn) + (size_t)from->turns * sizeof *from->turn);
}

static int find_member(const Builder *b, int node) {
    int i = b->nodes - 1;
    while (i >= 0 && b->node[i] != node) i--;
    return i;
}

// Shares a turn if one path continues where the other ends: then the two also agree before it.
static void join(Builder *b, const Turn *own) {
    for (Turn *t = b->turn; t < b->turn + b->turns; t++) {
        int end = t->last < own->last ? t->last : own->last;
        if (t->base != own->base || t->key[end] != own->key[end]) continue;
        uint16_t nodes = t->nodes | own->nodes;
        if (own->last > t->last) *t = *own;
        t->nodes = nodes;
        return;
    }
    b->turn[b->turns++] = *own;
}

// Goes up the node's path. From its first ancestor in the tile on, the node shares that ancestor's turns.
static void add(Builder *b, int node) {
    const Tree *t = b->run->tree;
    assert(b->nodes < TILE_NODES);
    int p = tree_position(t, node), first = cache_first_visible(b->run->cache, p), ancestor = -1, at = node;
    for (int base = block_of(p); base + BLOCK > t->context && base + BLOCK > first; base -= BLOCK) {
        Turn own = {.base = base, .nodes = (uint16_t)(1u << b->nodes), .last = (uint16_t)(p - base)};
        memset(own.key, 0xff, sizeof own.key);
        for (; p >= base && at != TREE_NONE; p--, at = t->parent[at]) {
            own.key[p - base] = (uint16_t)at;
            if (ancestor < 0) ancestor = find_member(b, at);
        }
        assert(b->turns < MOST_TURNS);
        join(b, &own);
        if (ancestor < 0) continue;
        for (int i = 0; i < b->turns; i++)
            if (b->turn[i].base < base && b->turn[i].nodes >> ancestor & 1) b->turn[i].nodes |= own.nodes;
        break;
    }
    if (b->nodes == 0 || first < b->lowest) b->lowest = first;
    b->node[b->nodes++] = node;
}

static int first_span(const Builder *b) { return b->run->tree->context / SPAN; }

static bool fits(const Builder *b) {
    int context = b->run->tree->context, begin = first_span(b) * SPAN, count[STEP_SPANS] = {0};
    int committed = block_of(context) - (b->lowest > begin ? block_of(b->lowest) : begin);
    if (committed > 0) count[0] = committed / BLOCK;
    for (int i = 0; i < b->turns; i++)
        if (++count[b->turn[i].base / SPAN - first_span(b)] > SPAN_TURNS) return false;
    return true;
}

// Writes the tile with its turns in ascending order of their blocks, and empties the builder.
static void finish(Builder *b, Tile *tile, Turn *turns, int *used) {
    const StepRun *run = b->run;
    assert(b->nodes > 0);
    *tile = (Tile){.nodes = b->nodes, .lowest = b->lowest, .copy = b->copy};
    for (int i = 0; i < b->nodes; i++) {
        int p = tree_position(run->tree, b->node[i]);
        tile->position[i] = p;
        tile->row[i] = (uint16_t)(b->node[i] - run->first);
        if (p > tile->highest) tile->highest = p;
    }
    for (int span = 0; span <= STEP_SPANS; span++) tile->turn[span] = *used;
    for (int i = 0; i < b->turns; i++) {
        int at = *used + i, span = b->turn[i].base / SPAN - first_span(b);
        for (; at > *used && turns[at - 1].base > b->turn[i].base; at--) turns[at] = turns[at - 1];
        turns[at] = b->turn[i];
        for (int after = span + 1; after <= STEP_SPANS; after++) tile->turn[after]++;
    }
    *used += b->turns;
    b->nodes = b->turns = 0;
}

static void put_in_order(const Tree *t, int count, int *order) {
    int size[TREE_MAX_NODES], next[TREE_MAX_NODES], roots = 0; // of subtrees; where a node's next child goes
    for (int i = 0; i < count; i++) size[i] = 1;
    for (int i = count - 1; i >= 0; i--)
        if (t->parent[i] != TREE_NONE) size[t->parent[i]] += size[i];
    for (int i = 0; i < count; i++) {
        int *at = t->parent[i] == TREE_NONE ? &roots : &next[t->parent[i]];
        order[*at] = i;
        next[i] = *at + 1;
        *at += size[i];
    }
}

// Returns the number of tiles.
static int make_tiles(const StepRun *run, int nodes_a_tile, Tile *tiles, Turn *turns, int *used) {
    int order[TREE_MAX_NODES], count = 0, copy = 0, roots = 0;
    bool copied = run->tree->layout == LAYOUT_COPIED;
    Builder b = {.run = run}, next;
    put_in_order(run->tree, run->last, order);
    for (int i = 0; i < run->last; i++) {
        if (run->tree->parent[order[i]] == TREE_NONE) copy = copied ? roots++ : 0;
        if (order[i] < run->first) continue;
        copy_builder(&next, &b);
        if (b.nodes < nodes_a_tile) add(&next, order[i]);
        if (b.nodes == nodes_a_tile || ((!fits(&next) || b.copy != copy) && b.nodes > 0)) {
            finish(&b, &tiles[count++], turns, used);
            copy_builder(&next, &b);
            add(&next, order[i]);
        }
        copy_builder(&b, &next);
        b.copy = copy;
    }
    finish(&b, &tiles[count++], turns, used);
    return count;
}

int cuda_spans(const Cuda *c, int from, int to) {
    int lowest = cache_first_visible(&c->cache, from), all = to / SPAN - lowest / SPAN + 1;
    int limit = c->context / SPAN + 1;
    return all < limit ? all : limit;
}

static int tile_nodes(const Cuda *c) {
    const Heads *h = &c->heads;
    int group = h->heads / h->kv_heads;
    return c->plain || h->dtype == DTYPE_F32 || group > TILE_NODES ? 1 : TILE_NODES / group;
}

int cuda_tiles_limit(const Cuda *c) {
    int rows = cuda_rows_limit(c);
    return 2 * (rows > c->max_nodes ? rows : c->max_nodes);
}

size_t cuda_step_size(const Cuda *c) {
    size_t n = (size_t)c->max_nodes, turns = n * n / (2 * BLOCK) + 2 * n; // each node alone, in one chain
    return sizeof(Step) + (size_t)cuda_tiles_limit(c) * sizeof(Tile) + turns * sizeof(Turn) +
           n * sizeof(StepNode);
}

// Writes the nodes up to the last one that runs. The number of tiles is padded to one of a few values (that
// of `most` rows in a chain, times a power of two), so that few graphs are captured.
size_t cuda_write_step(const Cuda *c, const StepRun *run, int most, Step *to) {
    const Tree *t = run->tree;
    int per = tile_nodes(c), tiles = (most + per - 1) / per, turns = 0;
    Tile *tile = (Tile *)(void *)(to + 1);
    Turn *turn = (Turn *)(void *)(tile + cuda_tiles_limit(c));
    int count = make_tiles(run, per, tile, turn, &turns);
    while (tiles < count) tiles *= 2;
    assert(tiles <= cuda_tiles_limit(c) && run->last - run->first <= most);
    memset(tile + count, 0, (size_t)(tiles - count) * sizeof *tile);
    memmove(tile + tiles, turn, (size_t)turns * sizeof *turn);
    StepNode *nodes = (StepNode *)(void *)((Turn *)(void *)(tile + tiles) + turns);
    int given = (run->given < run->last ? run->given : run->last) - run->first;
    *to = (Step){.count = run->last - run->first,
                 .first = run->first,
                 .context = t->context,
                 .tiles = tiles,
                 .turns = turns,
                 .given = run->given,
                 .given_count = given > 0 ? given : 0,
                 .given_first = run->first};
    for (int i = 0; i < run->last; i++) nodes[i] = (StepNode){t->token[i], tree_position(t, i), t->parent[i]};
    return (size_t)((char *)(nodes + run->last) - (char *)to);
}
