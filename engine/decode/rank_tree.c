// Trees of ranks: grown, read from text, and recorded once a method has placed them in a step.
#include "engine/decode/rank_tree.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 1 << 16, MISSING = -2 };

// A parent comes before its children; depths and ranks are in range.
static void rank_tree_check(const RankTree *t) {
    assert(t->count <= RANK_TREE_MOST);
    for (int i = 0; i < t->count; i++) {
        UNUSED const RankNode *n = &t->nodes[i];
        assert(n->parent >= -1 && n->parent < i && n->rank >= 0 && n->rank < RANK_TREE_RANKS);
        assert(n->depth == (n->parent < 0 ? 0 : t->nodes[n->parent].depth + 1) && n->depth < RANK_TREE_DEPTH);
    }
}

void rank_tree_init(RankTree *t) {
    *t = (RankTree){.nodes = mem_new(RANK_TREE_MOST, sizeof *t->nodes),
                    .placed = mem_new(RANK_TREE_MOST, sizeof *t->placed)};
}

void rank_tree_release(RankTree *t) {
    MEM_FREE(t->nodes, t->placed);
    *t = (RankTree){0};
}

// --- grown

// Heads get worse with depth, and within a head with the rank. Only the order of the products matters, and it
// varies slowly in both.
double rank_tree_chance(int depth, int rank) { return 0.6 * pow(0.85, depth) * pow(rank + 1, -1.5); }

static double path_chance(const RankTree *t, int node) {
    double chance = 1;
    for (; node >= 0; node = t->nodes[node].parent)
        chance *= rank_tree_chance(t->nodes[node].depth, t->nodes[node].rank);
    return chance;
}

// Adds the likeliest node: always the next choice below the root or an existing node; the earliest of equals.
static bool grow_one(RankTree *t, int depth, int ranks) {
    double best = 0;
    for (int parent = -1; parent < t->count; parent++) {
        RankNode next = {parent, parent < 0 ? 0 : t->nodes[parent].depth + 1, 0};
        for (int i = 0; i < t->count; i++) next.rank += t->nodes[i].parent == parent;
        if (next.depth == depth || next.rank == ranks) continue;
        double chance = path_chance(t, parent) * rank_tree_chance(next.depth, next.rank);
        if (chance <= best) continue;
        best = chance;
        t->nodes[t->count] = next;
    }
    t->count += best > 0;
    return best > 0;
}

void rank_tree_grow(RankTree *t, int count, int depth, int ranks) {
    t->count = 0;
    while (t->count < count && grow_one(t, depth, ranks)) {}
    rank_tree_check(t);
}

// --- read

static int find_node(const RankTree *t, int parent, int rank) {
    for (int i = 0; i < t->count; i++)
        if (t->nodes[i].parent == parent && t->nodes[i].rank == rank) return i;
    return MISSING;
}

static bool add_path(RankTree *t, int depth, const char *path, size_t n, const char *place, Error *e) {
    if (n > (size_t)depth)
        return error_input(e, "the path '%.*s' in %s is longer than %d ranks", (int)(n < 40 ? n : 40), path,
                           place, depth);
    if (t->count == RANK_TREE_MOST) return error_input(e, "%s has more than %d paths", place, RANK_TREE_MOST);
    int parent = -1, rank = path[n - 1] - '0'; // -1: the root
    for (size_t i = 0; i + 1 < n && parent != MISSING; i++) parent = find_node(t, parent, path[i] - '0');
    if (parent == MISSING)
        return error_input(e, "the path '%.*s' in %s needs '%.*s' before it", (int)n, path, place, (int)n - 1,
                           path);
    if (find_node(t, parent, rank) != MISSING)
        return error_input(e, "the path '%.*s' is in %s twice", (int)n, path, place);
    t->nodes[t->count++] = (RankNode){parent, (int)n - 1, rank};
    return true;
}

bool rank_tree_parse(RankTree *t, int depth, const char *text, const char *place, Error *e) {
    static const char DIGITS[] = "0123456789";
    assert(depth <= RANK_TREE_DEPTH);
    t->count = 0;
    for (text += strcspn(text, DIGITS); *text; text += strcspn(text, DIGITS)) {
        size_t n = strspn(text, DIGITS);
        if (!add_path(t, depth, text, n, place, e)) return false;
        text += n;
    }
    rank_tree_check(t);
    return t->count || error_input(e, "%s holds no path, such as 0 or 01", place);
}

// The published trees, level by level.
static const struct {
    const char *name, *paths;
} TREES[] = {
    {"2.2.2", // Token Recycling's: 80 nodes
     "0;1;2;3;4;5;6;7"
     ";00;01;02;03;04;05;06;07;10;11;12;13;20;21;22;30;31;40;50;60;70"
     ";000;001;002;003;004;005;006;007;010;011;012;020;021;030;040;050;060;070;100;101;110;200;300;400;500"
     ";0000;0001;0002;0003;0004;0010;0011;0020;0030;0040;0100;0200;1000;2000;3000"
     ";00000;00001;00002;00010;00020;00100;01000;10000"
     ";000000;000001;000100"},
    {"samd", // SAM-Decoding's for Token Recycling: 60 nodes
     "0;1;2;3;4;5;6"
     ";00;01;02;03;04;05;10;11;12;13;14;20;21;22;30;31;40;41;50;60"
     ";000;001;002;010;011;020;021;030;040;100;101;102;110;111;120;130;200;210;300;400;500"
     ";0000;0001;0010;0100;1000;1001;1100;2000"
     ";00000;00001;00100;10000"},
    {"eagle", // EAGLE-1's: 25 nodes
     "0;1;2;3;00;01;02;10;11;20;21;30;000;001;002;010;011;020;021;100;0000;0001;0002;00000;00001"},
};
enum { TREE_COUNT = sizeof TREES / sizeof *TREES };

static bool is_levels(const char *text) {
    bool any = false;
    for (size_t n; (n = strspn(text, "0123456789")) > 0; text += n + 1) {
        if (text[n] == 0) return any;
        if (text[n] != 'x') return false;
        any = true;
    }
    return false;
}

// Adds `ranks` children below each of the nodes [first, end); -1 is the root.
static bool add_level(RankTree *t, int first, int end, int ranks) {
    for (int parent = first; parent < end; parent++)
        for (int rank = 0; rank < ranks; rank++) {
            if (t->count == RANK_TREE_MOST) return false;
            t->nodes[t->count++] = (RankNode){parent, parent < 0 ? 0 : t->nodes[parent].depth + 1, rank};
        }
    return true;
}

static bool parse_levels(RankTree *t, int depth, const char *text, Error *e) {
    const char *at = text;
    t->count = 0;
    for (int first = -1, end = 0, level = 1; *at; first = end, end = t->count, level++) {
        char *next;
        long ranks = strtol(at, &next, 10);
        if (ranks < 1 || ranks > RANK_TREE_RANKS)
            return error_input(e, "the tree '%s' has %ld choices at level %d, must be 1 to %d", text, ranks,
                               level, RANK_TREE_RANKS);
        if (level > depth) return error_input(e, "the tree '%s' has more than %d levels", text, depth);
        if (!add_level(t, first, end, (int)ranks))
            return error_input(e, "the tree '%s' has more than %d nodes", text, RANK_TREE_MOST);
        at = next + (*next == 'x');
    }
    rank_tree_check(t);
    return true;
}

bool rank_tree_read(RankTree *t, int depth, const char *text, Error *e) {
    for (int i = 0; i < TREE_COUNT; i++)
        if (strcmp(text, TREES[i].name) == 0) return rank_tree_parse(t, depth, TREES[i].paths, text, e);
    if (is_levels(text)) return parse_levels(t, depth, text, e);
    if (text[strspn(text, "0123456789;")] == 0) return rank_tree_parse(t, depth, text, "'tree'", e);
    LOCAL_MEMORY char *content = NULL;
    size_t size;
    if (!file_read(text, MOST_TEXT, &content, &size, e)) return false;
    return rank_tree_parse(t, depth, content, text, e);
}

// --- used

int rank_tree_width(const RankTree *t) {
    int width = 0;
    for (int i = 0; i < t->count; i++) width = t->nodes[i].rank < width ? width : t->nodes[i].rank + 1;
    return width;
}

int rank_tree_levels(const RankTree *t) {
    int levels = 0;
    for (int i = 0; i < t->count; i++) levels = t->nodes[i].depth < levels ? levels : t->nodes[i].depth + 1;
    return levels;
}

void rank_tree_record(const RankTree *t, Sources *sources) {
    bool inner[RANK_TREE_MOST] = {false};
    for (int i = 0; i < t->count; i++)
        if (t->placed[i] != TREE_NONE && t->nodes[i].parent >= 0) inner[t->nodes[i].parent] = true;
    for (int i = 0; i < t->count; i++)
        if (!inner[i]) sources_record(sources, 0, t->placed[i]);
}

// The child of `parent` that is the canonical node `next`, or TREE_NONE; its siblings are noted in *tried.
static int find_taken(const RankTree *t, const Tree *tree, int parent, int next, uint16_t *tried) {
    int taken = TREE_NONE;
    for (int i = 0; i < t->count; i++) {
        if (t->nodes[i].parent != parent) continue;
        *tried |= (uint16_t)(1u << t->nodes[i].rank);
        if (t->placed[i] != TREE_NONE && tree->canonical[t->placed[i]] == next) taken = i;
    }
    return taken;
}

void rank_tree_follow(const RankTree *t, const Tree *tree, const Verdict *v, RankPath *out) {
    int path[TREE_MAX_NODES], length = tree_path(tree, v->node, path), at = -1;
    *out = (RankPath){0};
    do {
        int depth = out->count++, next = depth + 1 < length ? tree->canonical[path[depth + 1]] : TREE_NONE;
        at = find_taken(t, tree, at, next, &out->tried[depth]);
        out->taken[depth] = (signed char)(at == TREE_NONE ? -1 : t->nodes[at].rank);
    } while (at != TREE_NONE);
    assert(out->count <= RANK_TREE_DEPTH + 1);
}
