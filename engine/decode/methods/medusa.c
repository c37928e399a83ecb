// Medusa (Cai et al.): head i reads the target's final normed state at a token and predicts the token i + 2
// places after it; the target itself has output the next one, which is the step's root. The heads' best
// choices form a sparse tree, all of which is tried:
//
//      state at t |  t+1 (root)  --- head 0: rank 0 --- head 1: rank 0 ...
//                 |               |               \---- head 1: rank 1
//                 |               \- head 0: rank 1 --- ..
//
// A guess does not depend on other guesses, so equal ranks of a head are the same token under every parent.
// Only the lossless verifier is used: the paper's typical acceptance changes the distribution.
//
// A node of the tree is a path of ranks: 03 is the fourth choice of the second head below the first choice of
// the first. As text, a tree is its paths, one digit per rank, separated by anything except digits; a path
// comes after the path it extends. Invariant (check): a parent's number is less than its child's.
#include "engine/decode/methods/methods.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/core/hidden.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MEDUSA_DEPTH = 8, MEDUSA_RANKS = 10, MOST_NODES = TREE_MAX_NODES - 1, MOST_TEXT = 1 << 16 };

typedef struct MedusaParams {
    int nodes, top, depth;
    char tree[ARG_TEXT_SIZE];
} MedusaParams;

#define AT(name) offsetof(MedusaParams, name)
static const Arg PARAMS[] = {
    {"nodes", ARG_INT, AT(nodes), 1, MOST_NODES, "63", .help = "guesses per step"},
    {"top", ARG_INT, AT(top), 1, MEDUSA_RANKS, "10", .help = "most choices tried per head"},
    {"depth", ARG_INT, AT(depth), 1, MEDUSA_DEPTH, "4", .help = "most heads used"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "auto",
     .help = "paths of ranks (0;1;00;01;000), or a file of them"},
};
#undef AT

static const char *const SOURCES[] = {"heads"};

typedef struct MedusaNode {
    int parent; // an earlier node, or -1: the root
    int depth;  // 0: below the root
    int rank;
} MedusaNode;

typedef struct Medusa {
    Session *target, *heads;
    int depth, top;   // heads used; choices of each
    MedusaNode *tree; // (count)
    int count;
    int *placed;      // (count): the step's node, or TREE_NONE
    HiddenRows state; // one row: the heads' input
    bool ready;       // `state` is set
    Sources sources;  // of the open step: the paths to the tree's leaves, in its order
    int ids[MEDUSA_DEPTH][MEDUSA_RANKS];
} Medusa;

// --- the tree's shape

// An assumed accuracy of the heads: the share of right best choices falls from head to head, and within a
// head with the rank. Only the order of the products matters, and it varies slowly in both.
static double medusa_chance(int depth, int rank) { return 0.6 * pow(0.85, depth) * pow(rank + 1, -1.5); }

static double path_chance(const MedusaNode *nodes, int node) {
    double chance = 1;
    for (; node >= 0; node = nodes[node].parent) chance *= medusa_chance(nodes[node].depth, nodes[node].rank);
    return chance;
}

static int count_children(const MedusaNode *nodes, int count, int parent) {
    int n = 0;
    for (int i = 0; i < count; i++) n += nodes[i].parent == parent;
    return n;
}

// Adds the likeliest node: always the next choice below the root or an existing node; the earliest of equals.
static bool grow_one(MedusaNode *nodes, int count, int depth, int ranks) {
    double best = 0;
    for (int parent = -1; parent < count; parent++) {
        MedusaNode next = {parent, parent < 0 ? 0 : nodes[parent].depth + 1,
                           count_children(nodes, count, parent)};
        if (next.depth == depth || next.rank == ranks) continue;
        double chance = path_chance(nodes, parent) * medusa_chance(next.depth, next.rank);
        if (chance <= best) continue;
        best = chance;
        nodes[count] = next;
    }
    return best > 0;
}

// Makes the `count` likeliest nodes, by medusa_chance. `out` has `count` places. Returns how many there are.
static int medusa_tree_grow(MedusaNode *out, int count, int depth, int ranks) {
    int n = 0;
    while (n < count && grow_one(out, n, depth, ranks)) n++;
    return n;
}

static int find_node(const MedusaNode *nodes, int count, int parent, int rank) {
    for (int i = 0; i < count; i++)
        if (nodes[i].parent == parent && nodes[i].rank == rank) return i;
    return -1;
}

// The parent of a path of n digits: a node, -1 for the root, or -2 if it is missing.
static int find_parent(const MedusaNode *nodes, int count, const char *path, size_t n) {
    int parent = -1;
    for (size_t i = 0; i + 1 < n; i++) {
        parent = find_node(nodes, count, parent, path[i] - '0');
        if (parent < 0) return -2;
    }
    return parent;
}

static bool add_path(MedusaNode *out, int count, int depth, const char *path, size_t n, const char *place,
                     Error *e) {
    if (n > (size_t)depth)
        return error_input(e, "the path '%.*s' in %s is longer than the %d heads", (int)(n < 40 ? n : 40),
                           path, place, depth);
    int parent = find_parent(out, count, path, n), rank = path[n - 1] - '0';
    if (parent < -1)
        return error_input(e, "the path '%.*s' in %s needs '%.*s' before it", (int)n, path, place, (int)n - 1,
                           path);
    if (find_node(out, count, parent, rank) >= 0)
        return error_input(e, "the path '%.*s' is in %s twice", (int)n, path, place);
    out[count] = (MedusaNode){parent, (int)n - 1, rank};
    return true;
}

// Parses at most `most` paths of at most `depth` ranks; `place` names the text in errors. Returns how many,
// or -1 with e filled.
static int medusa_tree_parse(MedusaNode *out, int most, int depth, const char *text, const char *place,
                             Error *e) {
    static const char digits[] = "0123456789";
    int count = 0;
    for (text += strcspn(text, digits); *text; text += strcspn(text, digits)) {
        size_t n = strspn(text, digits);
        if (count == most) {
            error_input(e, "%s has more than %d paths", place, most);
            return -1;
        }
        if (!add_path(out, count, depth, text, n, place, e)) return -1;
        count++;
        text += n;
    }
    if (count == 0) error_input(e, "%s holds no path, such as 0 or 01", place);
    return count ? count : -1;
}

// A parent comes before its children; depths and ranks are in range.
static void check(const MedusaNode *tree, int count) {
    for (int i = 0; i < count; i++) {
        const MedusaNode *n = &tree[i];
        assert(n->parent >= -1 && n->parent < i && n->rank >= 0 && n->rank < MEDUSA_RANKS);
        assert(n->depth == (n->parent < 0 ? 0 : tree[n->parent].depth + 1) && n->depth < MEDUSA_DEPTH);
    }
    (void)tree; // without asserts
}

// --- open and close

static void medusa_close(void *self) {
    Medusa *m = self;
    if (!m) return;
    mem_free(m->tree);
    mem_free(m->placed);
    hidden_close(&m->state);
    mem_free(m);
}

static bool read_tree(Medusa *m, const char *text, Error *e) {
    char *content = NULL;
    size_t size;
    bool inlined = text[strspn(text, "0123456789;")] == 0;
    if (!inlined && !file_read(text, MOST_TEXT, &content, &size, e)) return false;
    m->count = medusa_tree_parse(m->tree, MOST_NODES, m->depth, inlined ? text : content,
                                 inlined ? "'tree'" : text, e);
    mem_free(content);
    return m->count > 0;
}

static bool make_tree(Medusa *m, const MedusaParams *p, Error *e) {
    if (strcmp(p->tree, "auto") != 0) return read_tree(m, p->tree, e);
    m->count = medusa_tree_grow(m->tree, p->nodes, m->depth, p->top);
    return true;
}

static int ranks_used(const Medusa *m) {
    int most = 0, vocab = m->target->shape.real_vocab;
    for (int i = 0; i < m->count; i++) most = m->tree[i].rank > most ? m->tree[i].rank : most;
    return most + 1 < vocab ? most + 1 : vocab;
}

static bool medusa_init(Medusa *m, const MethodEnv *env, const MedusaParams *p, Error *e) {
    m->sources = (Sources){.names = SOURCES, .source_count = 1};
    m->target = env->target;
    m->heads = env->adapters;
    m->depth = p->depth < env->adapter_count ? p->depth : env->adapter_count;
    m->tree = mem_new(MOST_NODES, sizeof *m->tree);
    m->placed = mem_new(MOST_NODES, sizeof *m->placed);
    hidden_open(&m->state, env->target, env->adapters, 1);
    if (!make_tree(m, p, e)) return false;
    check(m->tree, m->count);
    m->top = ranks_used(m);
    return true;
}

static void *medusa_open(const MethodEnv *env, const void *values, Error *e) {
    Medusa *m = mem_new(1, sizeof *m);
    if (medusa_init(m, env, values, e)) return m;
    medusa_close(m);
    return NULL;
}

// --- a step

static bool keep_state(Medusa *m, int node, Error *e) {
    m->ready = true;
    return hidden_keep(&m->state, 0, m->target, node, HIDDEN_NORMED, e);
}

// The prompt's last run ended with the token before the root. A prompt of one token had no run, so there is
// no state: the first step then runs only that token.
static bool medusa_begin(void *self, const Prompt *prompt, Error *e) {
    Medusa *m = self;
    m->ready = false;
    return prompt->count == 1 || keep_state(m, m->target->tree.count - 1, e);
}

// The best ids of one head.
static bool read_head(Medusa *m, int head, Error *e) {
    Session *s = &m->heads[head];
    assert(m->ready && m->top <= MEDUSA_RANKS);
    float logits[MEDUSA_RANKS];
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 0);
    return hidden_give(&m->state, 0, s, node, e) && session_run(s, s->shape.layers, e) &&
           session_top(s, &node, 1, m->top, m->ids[head], logits, e);
}

// Records the nodes that have no child in the tree.
static void record_leaves(Medusa *m) {
    bool inner[MOST_NODES] = {false};
    m->sources.count = 0;
    for (int i = 0; m->ready && i < m->count; i++)
        if (m->placed[i] != TREE_NONE && m->tree[i].parent >= 0) inner[m->tree[i].parent] = true;
    for (int i = 0; m->ready && i < m->count; i++)
        if (!inner[i]) sources_record(&m->sources, 0, m->placed[i]);
}

// With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
static bool medusa_propose(void *self, Tree *tree, Error *e) {
    Medusa *m = self;
    int root = tree_row(tree);
    for (int head = 0; m->ready && head < m->depth; head++)
        if (!read_head(m, head, e)) return false;
    for (int i = 0; m->ready && i < m->count; i++) {
        const MedusaNode *n = &m->tree[i];
        int parent = n->parent < 0 ? root : m->placed[n->parent];
        bool there = n->rank < m->top; // the vocabulary can be smaller than the tree is wide
        m->placed[i] = there ? tree_propose(tree, parent, m->ids[n->depth][n->rank]) : TREE_NONE;
    }
    record_leaves(m);
    return true;
}

// The next root is the last token emitted; the heads read the state before it.
static bool medusa_observe(void *self, const Observation *seen, Error *e) {
    Medusa *m = self;
    const Tree *t = &m->target->tree;
    int node = seen->verdict->node;
    while (t->depth[node] >= seen->emitted_count) node = t->parent[node];
    return keep_state(m, node, e);
}

static const Sources *medusa_sources(const void *self) { return &((const Medusa *)self)->sources; }

const MethodInfo method_medusa = {
    .name = "medusa",
    .summary = "heads that each predict one further token, tried as a tree (--adapter DIR)",
    .needs = NEEDS_HEADS,
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(MedusaParams),
    .open = medusa_open,
    .begin = medusa_begin,
    .propose = medusa_propose,
    .observe = medusa_observe,
    .close = medusa_close,
    .sources = medusa_sources};
