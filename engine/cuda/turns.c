// A step's tiles and turns (kernels.h).
//
// Nodes are taken in preorder, so that the nodes of a tile share most of their paths. A tile is full when it
// has its number of nodes, or when one more would give it a span of more than SPAN_TURNS turns. With
// LAYOUT_COPIED a tile's nodes are of one row of the batch, which sees its own copy of the cache.
//
// Invariants: every node of the run is in exactly one tile; a tile's turns are in ascending order of their
// blocks, and a turn's nodes agree in its block up to the shorter path.
//
// A sequence with several tiles has quads: in a chain the last tile's turns are the path of all nodes.
#include "engine/cuda/fast.h"
#include "engine/cuda/sequence.h"

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

// The last node of those that a node sees.
static int seen_end(const Tree *t, int node) { return t->mutual ? t->count - 1 : node; }

// Goes up the node's path, or up that of the last node that it sees. From its first ancestor in the tile on,
// the node shares that ancestor's turns.
static void add(Builder *b, int node) {
    const Tree *t = b->run->tree;
    int at = seen_end(t, node), p = tree_position(t, at), first = cache_first_visible(b->run->cache, p),
        ancestor = -1;
    assert(b->nodes < TILE_NODES);
    for (int base = block_of(p); base + BLOCK > t->context && base + BLOCK > first; base -= BLOCK) {
        Turn own = {.base = base, .nodes = (uint16_t)(1u << b->nodes), .last = (uint16_t)(p - base)};
        memset(own.key, 0xff, sizeof own.key);
        for (; p >= base && at != TREE_NONE; p--, at = t->parent[at]) {
            own.key[p - base] = (uint16_t)at;
            if (ancestor >= 0) continue;
            ancestor = b->nodes - 1; // -1: `at` isn't in the tile
            while (ancestor >= 0 && b->node[ancestor] != at) ancestor--;
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
    *tile = (Tile){.nodes = b->nodes, .lowest = b->lowest, .context = run->tree->context, .cache = b->copy};
    for (int i = 0; i < b->nodes; i++) {
        int p = tree_position(run->tree, seen_end(run->tree, b->node[i]));
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

// From the tile of a sequence by itself to where its rows, nodes and caches are.
static void place_tile(const Cuda *c, const Sequence *s, int rows_before, Tile *tile) {
    int copies = s->copied ? c->copies_room : 1;
    for (int i = 0; i < tile->nodes; i++) tile->row[i] = (uint16_t)(tile->row[i] + rows_before);
    tile->first = cuda_node(s, 0);
    tile->cache += s->number * copies;
}

// Whether each node's parent is the one before it, and the last one's turns begin where the context ends.
static bool is_chain(const StepRun *run) {
    const Tree *t = run->tree;
    for (int i = 0; i < run->last; i++)
        if (t->parent[i] != (i ? i - 1 : TREE_NONE)) return false;
    return cache_first_visible(run->cache, tree_position(t, run->last - 1)) <= t->context;
}

// Makes quads of a sequence's tiles [first, first + count), and counts the spans that remain.
static void make_quads(const Cuda *c, const StepRun *run, Tile *tiles, int first, int count, Step *step) {
    const bool can = count > 1 && run->tree->layout != LAYOUT_COPIED && !c->plain &&
                     gpu_attention_quads(&c->heads),
               chain = can && is_chain(run);
    for (int i = first; i < first + count; i++) {
        Tile *t = &tiles[i], *last = &tiles[first + count - 1];
        int at = (i - first) / QUAD_TILES * QUAD_TILES + first, end = at + QUAD_TILES - 1;
        if (&tiles[end] < last) last = &tiles[end];
        if (can) t->wide = chain ? last->highest / SPAN + 1 : t->context / SPAN;
        int from = t->lowest / SPAN > t->wide ? t->lowest / SPAN : t->wide,
            spans = t->highest / SPAN + 1 - from;
        if (spans > step->spans) step->spans = spans;
        if (t != last || t->wide == 0) continue;
        tiles[step->quads].quad = at;
        tiles[step->quads++].quad_tiles = i + 1 - at;
        if (chain) t->chain = t->turn[STEP_SPANS] - t->turn[0];
    }
}

int cuda_spans(const Cuda *c, int from, int to) {
    int lowest = cache_first_visible(&c->cache, from), all = to / SPAN - lowest / SPAN + 1;
    int limit = c->context / SPAN + 1;
    return all < limit ? all : limit;
}

// As many as one sequence may have: with more, sequences gain nothing by sharing a run.
int cuda_rows_limit(const Cuda *c) {
    int nodes = cuda_nodes(c) < TREE_MAX_NODES ? cuda_nodes(c) : TREE_MAX_NODES;
    int most = nodes > PANEL_ROWS ? nodes : PANEL_ROWS;
    return c->fast ? fast_rows(most) : round_up(most, 8);
}

int cuda_tiles_limit(const Cuda *c) { return 2 * cuda_rows_limit(c); }

// A list has its nodes only where they may be of several sequences. The size of both is a multiple of 8.
static size_t list_size(const Cuda *c) {
    return sizeof(RowList) + (c->sequences > 1 ? (size_t)cuda_rows_limit(c) : 0) * sizeof(int);
}

RowList *cuda_given_rows(const Cuda *c, RowList *block) {
    return (RowList *)(void *)((char *)block + list_size(c));
}

RowList *cuda_foreseen(const Cuda *c, RowList *block) {
    return (RowList *)(void *)((char *)block + 2 * list_size(c));
}

// The size of the three lists is a multiple of 8, too.
static size_t lists_size(const Cuda *c) {
    return 2 * list_size(c) + sizeof(RowList) + PANEL_ROWS * sizeof(int);
}

Step *cuda_step_in(const Cuda *c, RowList *block) { return (Step *)(void *)((char *)block + lists_size(c)); }

// Most turns: each node alone, of one chain or of the ends of several.
size_t cuda_step_size(const Cuda *c) {
    size_t n = (size_t)c->max_nodes, rows = (size_t)cuda_rows_limit(c),
           turns = c->sequences > 1 ? rows * (n / BLOCK + 2) : n * n / (2 * BLOCK) + 2 * n;
    return lists_size(c) + sizeof(Step) + (size_t)cuda_tiles_limit(c) * sizeof(Tile) + turns * sizeof(Turn) +
           rows * sizeof(StepNode);
}

static int rows_of(const StepRun *run) { return run->last - run->first; }
static int given_of(const StepRun *run) {
    int given = (run->given < run->last ? run->given : run->last) - run->first;
    return given > 0 ? given : 0;
}

static void add_to_list(RowList *list, int first, int count) {
    for (int i = 0; i < count; i++) list->node[list->count++] = first + i;
}

// Of one sequence, nodes are neighbours and aren't listed.
static void write_lists(const Cuda *c, const SequenceRun *runs, int count, RowList *rows) {
    RowList *given = cuda_given_rows(c, rows);
    int first = cuda_node(runs->sequence, runs->run->first);
    *rows = (RowList){rows_of(runs->run), first};
    *given = (RowList){given_of(runs->run), first};
    if (count == 1) return;
    *rows = *given = (RowList){0, -1};
    for (const SequenceRun *r = runs; r < runs + count; r++) {
        first = cuda_node(r->sequence, r->run->first);
        add_to_list(rows, first, rows_of(r->run));
        add_to_list(given, first, given_of(r->run));
    }
}

// The nodes that a session reads after these runs; none if they are more than a panel.
static void foresee(const SequenceRun *runs, int count, RowList *to) {
    *to = (RowList){0, -1};
    for (const SequenceRun *r = runs; r < runs + count; r++) {
        const Tree *t = r->run->tree;
        for (int i = r->grow && !r->grow->level ? r->run->last - 1 : r->run->first; i < r->run->last; i++) {
            if (!r->grow && (!(t->flags[i] & NODE_READ) || t->canonical[i] != i)) continue;
            if (to->count == PANEL_ROWS) {
                to->count = 0;
                return;
            }
            to->node[to->count++] = cuda_node(r->sequence, i);
        }
    }
}

static StepNode *write_nodes(const SequenceRun *r, StepNode *to) {
    const Tree *t = r->run->tree;
    for (int i = r->run->first; i < r->run->last; i++) {
        bool given = i < r->run->given || t->parent[i] == TREE_NONE;
        *to++ = (StepNode){r->token ? *r->token : t->token[i], tree_position(t, i),
                           given ? TREE_NONE : cuda_node(r->sequence, t->parent[i])};
    }
    return to;
}

// The number of tiles is padded to one of a few values (that of `most` rows in a chain, times a power of
// two), so that few graphs are captured.
size_t cuda_write_step(const Cuda *c, const SequenceRun *runs, int count, int most, RowList *to) {
    Step *step = cuda_step_in(c, to);
    int group = c->heads.heads / c->heads.kv_heads; // queries of a node
    int per = c->plain || c->heads.dtype == DTYPE_F32 || group > TILE_NODES ? 1 : TILE_NODES / group;
    int tiles = (most + per - 1) / per, used = 0, turns = 0, rows = 0;
    Tile *tile = (Tile *)(void *)(step + 1);
    Turn *turn = (Turn *)(void *)(tile + cuda_tiles_limit(c));
    *step = (Step){0};
    for (const SequenceRun *r = runs; r < runs + count; rows += rows_of(r->run), r++) {
        int more = make_tiles(r->run, per, tile + used, turn, &turns);
        for (int i = used; i < used + more; i++) place_tile(c, r->sequence, rows, &tile[i]);
        make_quads(c, r->run, tile, used, more, step);
        used += more;
    }
    while (tiles < used) tiles *= 2;
    assert(tiles <= cuda_tiles_limit(c) && rows <= most && rows <= cuda_rows_limit(c));
    memset(tile + used, 0, (size_t)(tiles - used) * sizeof *tile);
    memmove(tile + tiles, turn, (size_t)turns * sizeof *turn);
    StepNode *nodes = (StepNode *)(void *)((Turn *)(void *)(tile + tiles) + turns);
    step->tiles = tiles;
    step->turns = turns;
    write_lists(c, runs, count, to);
    foresee(runs, count, cuda_foreseen(c, to));
    for (const SequenceRun *r = runs; r < runs + count; r++) nodes = write_nodes(r, nodes);
    return (size_t)((char *)nodes - (char *)to);
}
