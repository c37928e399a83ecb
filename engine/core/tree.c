// Nodes are in arrays in order of creation, so that a parent always precedes its child and a backend can run
// any prefix. Children and proposals are linked lists at the canonical node of a path: a method may build the
// same path twice (merging off, rows of a batch), and the verifier still sees it once.
#include "engine/core/tree.h"

#include "engine/base/memory.h"

#include <assert.h>

// Invariants of one node, and of the counts: cheap enough for every operation (tree_assert checks all nodes).
static void check_node(const Tree *t, int n) {
    int parent = t->parent[n], same = t->canonical[n];
    assert(parent < n);
    assert(t->depth[n] == (parent == TREE_NONE ? 0 : t->depth[parent] + 1));
    assert(tree_position(t, n) < t->limit);
    assert(same <= n && t->canonical[same] == same && t->token[same] == t->token[n]);
    assert(t->depth[same] == t->depth[n]);
    assert(same == n || (t->first_child[n] == TREE_NONE && t->first_proposal[n] == TREE_NONE));
}

static void tree_check(const Tree *t) {
    assert(t->count >= 0 && t->count <= t->capacity && t->rows >= 0);
    assert(t->parts >= 1 && t->parts <= TREE_MAX_PARTS);
    assert(t->count == 0 || t->part_root[t->parts - 1] < t->count);
    assert(t->count <= t->asked);
}

void tree_init(Tree *t, int capacity, int vocab) {
    assert(capacity >= 1 && capacity <= TREE_MAX_NODES && vocab >= 1);
    *t = (Tree){.capacity = capacity, .vocab = vocab};
    int **arrays[] = {&t->token,       &t->parent,       &t->depth,          &t->canonical,
                      &t->first_child, &t->next_sibling, &t->first_proposal, &t->last_proposal};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = mem_new((size_t)capacity, sizeof(int));
    t->flags = mem_new((size_t)capacity, 1);
}

void tree_release(Tree *t) {
    MEM_FREE(t->token, t->parent, t->depth, t->canonical, t->first_child, t->next_sibling, t->first_proposal,
             t->last_proposal, t->flags, t->proposals, t->distributions);
    *t = (Tree){0};
}

void tree_clear(Tree *t, int context, int limit, bool merge, Layout layout) {
    t->context = context;
    t->limit = limit;
    t->most = t->capacity;
    t->merge = merge && layout == LAYOUT_TREE; // rows of a batch never share nodes
    t->layout = layout;
    t->mutual = false;
    t->count = t->rows = t->asked = 0;
    t->parts = 1;
    t->part_root[0] = 0;
    t->proposal_count = t->distribution_count = 0;
    tree_check(t);
}

void tree_limit_rows(Tree *t, int rows) { t->most = rows < t->capacity ? rows : t->capacity; }

static bool has_room(const Tree *t, int depth) { return tree_room(t) && t->context + depth < t->limit; }

static bool is_token(const Tree *t, int token) { return token >= 0 && token < t->vocab; }

// canonical: TREE_NONE makes the node canonical.
static int add_node(Tree *t, int parent, int token, int canonical) {
    assert(t->count < t->capacity && canonical < t->count);
    int n = t->count++;
    t->token[n] = token;
    t->parent[n] = parent;
    t->depth[n] = parent == TREE_NONE ? 0 : t->depth[parent] + 1;
    t->canonical[n] = canonical == TREE_NONE ? n : canonical;
    t->flags[n] = 0;
    t->first_child[n] = t->next_sibling[n] = t->first_proposal[n] = t->last_proposal[n] = TREE_NONE;
    check_node(t, n);
    return n;
}

int tree_root(Tree *t, int token) {
    assert(is_token(t, token));
    if (!has_room(t, 0)) return TREE_NONE;
    t->asked++;
    int n = add_node(t, TREE_NONE, token, TREE_NONE);
    t->flags[n] = NODE_READ;
    t->rows = 0;
    tree_check(t);
    return n;
}

static int repeat_root(Tree *t) {
    if (!has_room(t, 0)) return TREE_NONE;
    t->asked++;
    return add_node(t, TREE_NONE, t->token[0], 0);
}

int tree_row(Tree *t) {
    assert(t->count > 0);
    if (t->layout == LAYOUT_TREE || t->rows++ == 0) return t->part_root[t->parts - 1];
    return repeat_root(t);
}

int tree_part(Tree *t) {
    assert(t->count > 0 && t->parts < TREE_MAX_PARTS);
    int root = repeat_root(t);
    if (root != TREE_NONE) t->part_root[t->parts++] = root;
    t->rows = 0;
    tree_check(t);
    return root;
}

// The child of `parent` itself whose canonical node is `same`, which may be in an earlier part.
static int child_in_part(const Tree *t, int parent, int same) {
    if (same == TREE_NONE || same >= t->part_root[t->parts - 1]) return same;
    for (int n = parent + 1; n < t->count; n++)
        if (t->parent[n] == parent && t->canonical[n] == same) return n;
    return TREE_NONE;
}

static int add_child(Tree *t, int parent, int token, int flags) {
    if (parent == TREE_NONE) return TREE_NONE;
    assert(parent >= t->part_root[t->parts - 1] && parent < t->count);
    assert(is_token(t, token));
    int same = tree_child(t, parent, token), n = t->merge ? child_in_part(t, parent, same) : TREE_NONE;
    if (n == TREE_NONE) {
        if (!has_room(t, t->depth[parent] + 1)) return TREE_NONE;
        n = add_node(t, parent, token, same);
        if (same == TREE_NONE) {
            int *end = &t->first_child[t->canonical[parent]];
            while (*end != TREE_NONE) end = &t->next_sibling[*end];
            *end = n;
        }
    }
    t->asked++;
    t->flags[n] |= (unsigned char)(flags & ~NODE_READ); // only the canonical node is read
    t->flags[t->canonical[n]] |= (unsigned char)flags;
    tree_check(t);
    return n;
}

static bool is_listed(const Tree *t, int parent, int child) {
    for (int i = t->first_proposal[parent]; i != TREE_NONE; i = t->proposals[i].next)
        if (t->proposals[i].child == child && t->proposals[i].q == ONE_HOT) return true;
    return false;
}

static void list_proposal(Tree *t, int parent, Proposal p) {
    assert(t->canonical[parent] == parent && t->canonical[p.child] == p.child);
    assert(t->canonical[t->parent[p.child]] == parent && p.q < (int)t->distribution_count);
    mem_grow(&t->proposals, &t->proposal_capacity, t->proposal_count + 1, sizeof *t->proposals);
    int n = (int)t->proposal_count++;
    t->proposals[n] = p;
    if (t->first_proposal[parent] == TREE_NONE) t->first_proposal[parent] = n;
    else t->proposals[t->last_proposal[parent]].next = n;
    t->last_proposal[parent] = n;
}

static int propose(Tree *t, int parent, int token, int q, bool without_replacement) {
    int n = add_child(t, parent, token, NODE_CANDIDATE | NODE_READ);
    if (n == TREE_NONE) return TREE_NONE;
    int at = t->canonical[parent], child = t->canonical[n];
    if (q == ONE_HOT && is_listed(t, at, child)) return n; // an equal one-hot is tried only once
    Proposal p = {.child = child, .q = q, .without_replacement = without_replacement, .next = TREE_NONE};
    list_proposal(t, at, p);
    return n;
}

int tree_propose(Tree *t, int parent, int token) { return propose(t, parent, token, ONE_HOT, false); }

int tree_chain(Tree *t, int parent, const int *tokens, int count, int *nodes) {
    int last = TREE_NONE;
    for (int i = 0; i < count; i++) {
        parent = tree_propose(t, parent, tokens[i]);
        if (parent != TREE_NONE) last = parent;
        if (nodes) nodes[i] = parent;
    }
    return last;
}

// Whether a sampled proposal is kept must not depend on its token, or the output's distribution would change:
// so a full tree refuses it even if it would have merged.
int tree_propose_sampled(Tree *t, int parent, int token, int q, bool without_replacement) {
    if (parent == TREE_NONE || q == TREE_NONE || !has_room(t, t->depth[parent] + 1)) return TREE_NONE;
    return propose(t, parent, token, q, without_replacement);
}

int tree_probe(Tree *t, int parent, int token, bool read) {
    return add_child(t, parent, token, NODE_PROBE | (read ? NODE_READ : 0));
}

void tree_cut(Tree *t, int count) {
    t->asked -= t->count - count;
    t->count = count;
    for (int i = 0; i < count; i++) {
        if (t->first_child[i] >= count) t->first_child[i] = TREE_NONE;
        if (t->next_sibling[i] >= count) t->next_sibling[i] = TREE_NONE;
    }
    tree_check(t);
}

int tree_distribution(Tree *t, float **where) {
    size_t need = (t->distribution_count + 1) * (size_t)t->vocab;
    mem_grow(&t->distributions, &t->distribution_capacity, need, sizeof *t->distributions);
    *where = t->distributions + t->distribution_count * (size_t)t->vocab;
    return (int)t->distribution_count++;
}

int tree_child(const Tree *t, int node, int token) {
    int child = t->first_child[t->canonical[node]];
    while (child != TREE_NONE && t->token[child] != token) child = t->next_sibling[child];
    return child;
}

int tree_path(const Tree *t, int node, int *out) {
    assert(node >= 0 && node < t->count);
    int length = t->depth[node] + 1;
    for (int i = length - 1; i >= 0; i--, node = t->parent[node]) out[i] = node;
    return length;
}

void tree_assert(const Tree *t) {
    tree_check(t);
    for (int n = 0; n < t->count; n++) check_node(t, n);
}
