// The tree of counted substrings: appends, drops, drafts.
#include "engine/decode/structures/suffix_tree.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { NONE = -1, ROOT = 0 };

struct SuffixNode {
    int64_t start; // of its tokens, at their newest occurrence
    int length;    // that it may grow to: length_of() is the present one
    int count;
    int parent;
    int first, last; // children
    int next, previous;
    int run; // of siblings, of which it is one
};

// Siblings next to one another that have equal counts.
typedef struct SuffixRun {
    int first, last;
} SuffixRun;

typedef struct Point {
    int node, used; // `used` of its tokens are passed
} Point;

// --- small things

static int token_at(const SuffixTree *t, int64_t at) {
    assert(at >= t->base && (size_t)(at - t->base) < t->text_count);
    return t->text[at - t->base];
}

static int64_t text_end(const SuffixTree *t) { return t->base + (int64_t)t->text_count; }

// A leaf at the running text's end stores the length that it may grow to, so an append to the text grows all
// of these leaves.
static int length_of(const SuffixTree *t, int node) {
    const SuffixNode *n = &t->nodes[node];
    int64_t there = text_end(t) - n->start;
    return n->length < there ? n->length : (int)there;
}

static int first_token(const SuffixTree *t, int node) { return token_at(t, t->nodes[node].start); }

// Children in the table, by parent and first token. An only child isn't in it: its parent leads to it.
struct SuffixEntry {
    int node, token; // NONE: free
};

static size_t slot_of(const SuffixTree *t, int parent, int token) {
    uint64_t h = ((uint64_t)(uint32_t)parent << 32 | (uint32_t)token) * 0x9E3779B97F4A7C15u;
    return (size_t)(h ^ h >> 29) & (t->slots - 1);
}

// The slot of this child, or the free one where it belongs.
static size_t find_slot(const SuffixTree *t, int parent, int token) {
    size_t at = slot_of(t, parent, token);
    for (;; at = (at + 1) & (t->slots - 1)) {
        const SuffixEntry *x = &t->table[at];
        if (x->node == NONE || (x->token == token && t->nodes[x->node].parent == parent)) return at;
    }
}

static int find_child(const SuffixTree *t, int parent, int token) {
    const SuffixNode *p = &t->nodes[parent];
    if (p->first != p->last) return t->table[find_slot(t, parent, token)].node;
    return p->first != NONE && first_token(t, p->first) == token ? p->first : NONE;
}

// --- the table of children

static void resize(SuffixTree *t, size_t slots) {
    SuffixEntry *old = t->table;
    size_t count = t->slots;
    t->table = mem_new(slots, sizeof *t->table);
    t->slots = slots;
    memset(t->table, 0xff, slots * sizeof *t->table);
    for (size_t i = 0; i < count; i++)
        if (old[i].node != NONE) t->table[find_slot(t, t->nodes[old[i].node].parent, old[i].token)] = old[i];
    mem_free(old);
}

static void enter(SuffixTree *t, int node) {
    int token = first_token(t, node);
    if (2 * (t->entries + 1) > t->slots) resize(t, 2 * t->slots);
    t->table[find_slot(t, t->nodes[node].parent, token)] = (SuffixEntry){node, token};
    t->entries++;
}

// Takes an entry out; those that had to step aside for it move up.
static void leave(SuffixTree *t, int node) {
    size_t mask = t->slots - 1, hole = find_slot(t, t->nodes[node].parent, first_token(t, node));
    assert(t->table[hole].node == node);
    for (size_t at = (hole + 1) & mask; t->table[at].node != NONE; at = (at + 1) & mask) {
        const SuffixEntry *x = &t->table[at];
        size_t home = slot_of(t, t->nodes[x->node].parent, x->token);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        t->table[hole] = *x;
        hole = at;
    }
    t->table[hole] = (SuffixEntry){NONE, NONE};
    t->entries--;
}

// Before a child is linked to its parent.
static void enter_child(SuffixTree *t, int node) {
    const SuffixNode *p = &t->nodes[t->nodes[node].parent];
    if (p->first == NONE) return;
    if (p->first == p->last) enter(t, p->first);
    enter(t, node);
}

// Before a child is unlinked.
static void leave_child(SuffixTree *t, int node) {
    const SuffixNode *p = &t->nodes[t->nodes[node].parent];
    if (p->first == p->last) return;
    leave(t, node);
    if (t->nodes[p->first].next == p->last) leave(t, node == p->first ? p->last : p->first);
}

// --- siblings in order

static int new_run(SuffixTree *t, int node) {
    int run = t->unused_run;
    if (run == NONE) {
        mem_grow(&t->runs, &t->run_capacity, t->run_count + 1, sizeof *t->runs);
        run = (int)t->run_count++;
    } else t->unused_run = t->runs[run].first;
    t->runs[run] = (SuffixRun){node, node};
    return run;
}

static void free_run(SuffixTree *t, int run) {
    t->runs[run].first = t->unused_run;
    t->unused_run = run;
}

// Takes a node out of its run, not out of the list.
static void leave_run(SuffixTree *t, int node) {
    const SuffixNode *n = &t->nodes[node];
    SuffixRun *r = &t->runs[n->run];
    if (r->first == r->last) free_run(t, n->run);
    else if (r->first == node) r->first = n->next;
    else if (r->last == node) r->last = n->previous;
}

// Puts a node before a sibling; NONE: last.
static void link_before(SuffixTree *t, int node, int sibling) {
    SuffixNode *n = &t->nodes[node], *p = &t->nodes[n->parent];
    n->next = sibling;
    n->previous = sibling == NONE ? p->last : t->nodes[sibling].previous;
    *(n->previous == NONE ? &p->first : &t->nodes[n->previous].next) = node;
    *(sibling == NONE ? &p->last : &t->nodes[sibling].previous) = node;
}

static void unlink(SuffixTree *t, int node) {
    const SuffixNode *n = &t->nodes[node];
    SuffixNode *p = &t->nodes[n->parent];
    *(n->previous == NONE ? &p->first : &t->nodes[n->previous].next) = n->next;
    *(n->next == NONE ? &p->last : &t->nodes[n->next].previous) = n->previous;
}

static int count_of(const SuffixTree *t, int node) { return node == NONE ? 0 : t->nodes[node].count; }

// One more occurrence.
static void raise(SuffixTree *t, int node) {
    SuffixNode *n = &t->nodes[node];
    int count = ++n->count;
    if (node == ROOT) return;
    int first = t->runs[n->run].first, above = t->nodes[first].previous;
    bool meets = count_of(t, above) == count;
    leave_run(t, node);
    if (first != node) { // behind those of its new count
        unlink(t, node);
        link_before(t, node, first);
    } else if (meets) { // before them
        unlink(t, node);
        link_before(t, node, t->runs[t->nodes[above].run].first);
    }
    n->run = meets ? t->nodes[above].run : new_run(t, node);
    if (meets) *(first != node ? &t->runs[n->run].last : &t->runs[n->run].first) = node;
}

// One occurrence fewer, of several: goes to the front of its new count.
static void lower(SuffixTree *t, int node) {
    SuffixNode *n = &t->nodes[node];
    int count = --n->count;
    assert(count > 0);
    if (node == ROOT) return;
    int last = t->runs[n->run].last, below = t->nodes[last].next;
    bool meets = count_of(t, below) == count;
    leave_run(t, node);
    if (last != node) {
        unlink(t, node);
        link_before(t, node, below);
    }
    n->run = meets ? t->nodes[below].run : new_run(t, node);
    if (meets) t->runs[n->run].first = node;
}

// A node takes another one's place among its siblings, in the table and in its run; both have the same count.
static void replace(SuffixTree *t, int old, int node) {
    SuffixNode *n = &t->nodes[node];
    const SuffixNode *o = &t->nodes[old];
    SuffixNode *p = &t->nodes[o->parent];
    SuffixRun *r = &t->runs[o->run];
    assert(n->count == o->count);
    if (p->first != p->last) {
        SuffixEntry *x = &t->table[find_slot(t, o->parent, first_token(t, old))];
        assert(x->node == old);
        x->node = node;
    }
    n->parent = o->parent;
    n->next = o->next;
    n->previous = o->previous;
    n->run = o->run;
    *(n->previous == NONE ? &p->first : &t->nodes[n->previous].next) = node;
    *(n->next == NONE ? &p->last : &t->nodes[n->next].previous) = node;
    if (r->first == old) r->first = node;
    if (r->last == old) r->last = node;
}

// --- nodes

static int new_node(SuffixTree *t, int64_t start, int length, int count) {
    int node = t->unused;
    if (node == NONE) {
        mem_grow(&t->nodes, &t->node_capacity, t->node_count + 1, sizeof *t->nodes);
        node = (int)t->node_count++;
    } else t->unused = t->nodes[node].next;
    t->nodes[node] = (SuffixNode){.start = start,
                                  .length = length,
                                  .count = count,
                                  .parent = NONE,
                                  .first = NONE,
                                  .last = NONE,
                                  .next = NONE,
                                  .previous = NONE,
                                  .run = NONE};
    return node;
}

static void free_node(SuffixTree *t, int node) {
    t->nodes[node].next = t->unused;
    t->unused = node;
}

// The newest child of a node whose path has so many tokens, seen once. It grows with the text.
static int add_leaf(SuffixTree *t, int parent, int path, int64_t at) {
    int node = new_node(t, at, t->depth - path, 1), last = t->nodes[parent].last;
    t->nodes[node].parent = parent;
    enter_child(t, node);
    link_before(t, node, NONE);
    if (count_of(t, last) == 1) {
        t->nodes[node].run = t->nodes[last].run;
        t->runs[t->nodes[node].run].last = node;
    } else t->nodes[node].run = new_run(t, node);
    return node;
}

// The first token of a node becomes a node of its own above it.
static int split(SuffixTree *t, int node, int64_t at) {
    int upper = new_node(t, at, 1, t->nodes[node].count);
    replace(t, node, upper);
    t->nodes[node].start++;
    t->nodes[node].length--;
    t->nodes[node].parent = upper; // its only child
    link_before(t, node, NONE);
    t->nodes[node].run = new_run(t, node);
    return upper;
}

// A node whose every occurrence goes on with its only child becomes one with it.
static void merge(SuffixTree *t, int node) {
    int child = t->nodes[node].first;
    if (node == ROOT || child == NONE || child != t->nodes[node].last ||
        t->nodes[child].count != t->nodes[node].count)
        return;
    int length = length_of(t, node);
    free_run(t, t->nodes[child].run);
    replace(t, node, child);
    t->nodes[child].start -= length;
    t->nodes[child].length += length;
    free_node(t, node);
}

// --- the whole

void suffix_tree_clear(SuffixTree *t) {
    t->node_count = t->run_count = 0;
    t->unused = t->unused_run = NONE;
    t->text_count = t->entries = 0;
    t->first_start = t->start_count = 0;
    t->base = 0;
    t->end_count = t->known_ends = 0;
    memset(t->table, 0xff, t->slots * sizeof *t->table);
    new_node(t, 0, 0, 0);
}

void suffix_tree_init(SuffixTree *t, int depth) {
    assert(depth >= 2 && depth <= SUFFIX_TREE_DEEPEST);
    *t = (SuffixTree){.depth = depth};
    resize(t, 1024);
    suffix_tree_clear(t);
}

void suffix_tree_release(SuffixTree *t) {
    MEM_FREE(t->nodes, t->runs, t->table, t->text, t->starts);
    *t = (SuffixTree){0};
}

size_t suffix_tree_texts(const SuffixTree *t) { return t->start_count - t->first_start; }

size_t suffix_tree_tokens(const SuffixTree *t) {
    if (suffix_tree_texts(t) == 0) return 0;
    return t->text_count - (size_t)(t->starts[t->first_start] - t->base);
}

size_t suffix_tree_bytes(const SuffixTree *t) {
    return t->node_capacity * sizeof *t->nodes + t->run_capacity * sizeof *t->runs +
           t->slots * sizeof *t->table + t->text_capacity * sizeof *t->text +
           t->start_capacity * sizeof *t->starts;
}

// --- appending

void suffix_tree_begin(SuffixTree *t) {
    for (int length = t->known_ends + 1; length <= t->end_count; length++)
        t->nodes[t->ends[length]].length = length_of(t, t->ends[length]); // grows no more
    *LIST_ADD(t->starts, t->start_count, t->start_capacity) = text_end(t);
    t->end_count = t->known_ends = 0;
}

// Where the running text's suffix of `length` tokens, which ends at `node` and occurs elsewhere, ends with
// one more token, the one at position `at`.
static int extend(SuffixTree *t, int node, int length, int64_t at) {
    int child = find_child(t, node, token_at(t, at));
    SuffixNode *n = &t->nodes[node];
    assert(node == ROOT || n->count > 1);
    if (child == NONE) return add_leaf(t, node, length, at);
    SuffixNode *c = &t->nodes[child];
    if (length_of(t, child) == 1) {
        c->start = at;
        c->length = 1;
        raise(t, child);
        merge(t, node);
        return child;
    }
    if (node != ROOT && n->first == n->last && n->count == c->count + 1) { // nothing else is behind it
        n->length++;
        c->start++;
        c->length--;
        return node;
    }
    int upper = split(t, child, at);
    raise(t, upper);
    return upper;
}

// A suffix of the running text ends at a node of its length; the children there are in order, and fewer than
// their parent; runs are right. Each append checks one of the nodes that it touched.
static void suffix_tree_check(const SuffixTree *t) {
#ifndef NDEBUG
    int touched = t->known_ends < t->end_count ? t->known_ends + 1 : t->end_count, total = 0, sum = 0;
    int length = 1 + (int)(text_end(t) % touched), node = t->ends[length];
    assert((t->nodes[node].count > 1) == (length <= t->known_ends));
    for (int up = node; up != ROOT; up = t->nodes[up].parent) total += length_of(t, up);
    assert(total == length && t->nodes[node].count > 0);
    int child = t->nodes[node].first;
    for (int i = 0; child != NONE && i < 4; child = t->nodes[child].next, i++) {
        const SuffixNode *c = &t->nodes[child];
        assert(c->parent == node && (c->next == NONE || t->nodes[c->next].count <= c->count));
        assert((c->next != NONE && t->nodes[c->next].run == c->run) == (t->runs[c->run].last != child));
        sum += c->count;
    }
    assert(sum < t->nodes[node].count);
#endif
    (void)t;
}

// Suffixes that occur only here end at leaves, which have grown by text_count; those that occur elsewhere
// move on.
void suffix_tree_append(SuffixTree *t, int token) {
    assert(suffix_tree_texts(t) && token >= 0);
    *LIST_ADD(t->text, t->text_count, t->text_capacity) = token;
    int64_t at = text_end(t) - 1;
    int most = t->depth - 1, moved = t->known_ends < most ? t->known_ends : most - 1;
    if (t->end_count < most) t->end_count++;
    t->nodes[ROOT].count++;
    int *ends = t->ends;
    if (t->known_ends == most) extend(t, ends[most], most, at);
    memmove(ends + moved + 2, ends + moved + 1, (size_t)(t->end_count - moved - 1) * sizeof *ends);
    for (int length = moved; length >= 0; length--)
        ends[length + 1] = extend(t, length ? ends[length] : ROOT, length, at);
    t->known_ends = moved + 1;
    while (t->known_ends && t->nodes[ends[t->known_ends]].count == 1) t->known_ends--;
    suffix_tree_check(t);
}

// --- dropping

// Forgets that the tokens at `at` occur there.
static void forget(SuffixTree *t, int64_t at, int length) {
    int path[SUFFIX_TREE_DEEPEST], steps = 0, node = ROOT;
    for (int used = 0; used < length; used += length_of(t, node)) {
        node = find_child(t, node, token_at(t, at + used));
        assert(node != NONE);
        path[steps++] = node;
    }
    for (int i = 0; i < steps; i++)
        if (t->nodes[path[i]].count > 1) lower(t, path[i]);
        else {
            assert(i == steps - 1 && t->nodes[path[i]].first == NONE);
            leave_child(t, path[i]);
            leave_run(t, path[i]);
            unlink(t, path[i]);
            free_node(t, path[i]);
            steps--;
        }
    t->nodes[ROOT].count--;
    while (steps) merge(t, path[--steps]);
}

void suffix_tree_drop(SuffixTree *t) {
    assert(suffix_tree_texts(t) > 1);
    int64_t from = t->starts[t->first_start], to = t->starts[t->first_start + 1];
    for (int64_t at = from; at < to; at++) forget(t, at, to - at < t->depth ? (int)(to - at) : t->depth);
    for (; t->known_ends && t->nodes[t->ends[t->known_ends]].count == 1; t->known_ends--) {
        SuffixNode *n = &t->nodes[t->ends[t->known_ends]]; // its last other occurrence is gone: it grows
        n->length += t->depth - t->known_ends;
    }
    t->first_start++;
    if (2 * t->first_start > t->start_count) {
        t->start_count -= t->first_start;
        memmove(t->starts, t->starts + t->first_start, t->start_count * sizeof *t->starts);
        t->first_start = 0;
    }
    size_t gone = (size_t)(to - t->base);
    if (2 * gone < t->text_count) return;
    t->text_count -= gone;
    t->base = to;
    memmove(t->text, t->text + gone, t->text_count * sizeof *t->text);
}

// --- drafting

static int point_count(const SuffixTree *t, Point p) { return t->nodes[p.node].count; }

// Where the tokens lead, from the root; node NONE: nowhere.
static Point find_point(const SuffixTree *t, const int *tokens, int count) {
    Point p = {ROOT, 0};
    for (int i = 0; i < count; i++) {
        const SuffixNode *n = &t->nodes[p.node];
        if (p.used == length_of(t, p.node)) p = (Point){find_child(t, p.node, tokens[i]), 1};
        else p = token_at(t, n->start + p.used) == tokens[i] ? (Point){p.node, p.used + 1} : (Point){NONE, 0};
        if (p.node == NONE) break;
    }
    return p;
}

int suffix_tree_count(const SuffixTree *t, const int *tokens, int count) {
    Point p = find_point(t, tokens, count);
    return p.node == NONE ? 0 : point_count(t, p);
}

// A token that may be next: the last one before the point.
typedef struct Choice {
    Point at;
    int parent;         // in the draft
    float share, above; // its own, and that of the place where it is a child
    int number;         // in order of entry; a sibling has that of the one before it
} Choice;

// A heap of them: the largest share first, the earliest of equals.
typedef struct Choices {
    Choice heap[2 * SUFFIX_DRAFT_MOST + 1];
    int count, entered;
} Choices;

static bool is_before(const Choice *a, const Choice *b) {
    return a->share > b->share || (!(a->share < b->share) && a->number < b->number);
}

static void swap(Choice *a, Choice *b) {
    Choice x = *a;
    *a = *b;
    *b = x;
}

static void push(Choices *c, Choice choice) {
    int i = c->count++;
    assert(c->count <= (int)(sizeof c->heap / sizeof *c->heap));
    c->heap[i] = choice;
    for (; i && is_before(&c->heap[i], &c->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&c->heap[i], &c->heap[(i - 1) / 2]);
}

static Choice pop(Choices *c) {
    Choice best = c->heap[0];
    c->heap[0] = c->heap[--c->count];
    for (int i = 0, below; (below = 2 * i + 1) < c->count; i = below) {
        if (below + 1 < c->count && is_before(&c->heap[below + 1], &c->heap[below])) below++;
        if (is_before(&c->heap[i], &c->heap[below])) break;
        swap(&c->heap[i], &c->heap[below]);
    }
    return best;
}

// Enters a child if its share is large enough; its later siblings have no larger one. `as`: a choice with
// all that they have in common. Floats, divided first in a chain and last in a tree: rounded as in the
// authors' program, since a rounding decides between drafts of equal scores.
static void push_child(const SuffixTree *t, Choices *c, int child, Choice as, const SuffixRule *rule) {
    if (child == NONE) return;
    const SuffixNode *n = &t->nodes[child];
    float count = (float)n->count, all = (float)t->nodes[n->parent].count;
    as.at = (Point){child, 1};
    as.share = rule->tree ? as.above * count / all : as.above * (count / all);
    if (as.share >= (float)rule->least) push(c, as);
}

// Enters the likeliest token behind a point.
static void push_next(const SuffixTree *t, Choices *c, Point p, int parent, float share,
                      const SuffixRule *rule) {
    Choice next = {.at = {p.node, p.used + 1}, .parent = parent, .share = share, .above = share};
    next.number = c->entered++;
    if (p.used == length_of(t, p.node)) push_child(t, c, t->nodes[p.node].first, next, rule);
    else push(c, next);
}

// A sibling enters when the one before it is taken, and in its place: among equals, the tokens behind a point
// come before those behind a later one.
static void draft_from(const SuffixTree *t, Point p, int most, const SuffixRule *rule, SuffixDraft *out) {
    Choices c;
    c.count = c.entered = 0;
    float score = 0;
    out->count = 0;
    push_next(t, &c, p, NONE, 1, rule);
    while (c.count && out->count < most) {
        Choice best = pop(&c);
        const SuffixNode *n = &t->nodes[best.at.node];
        int i = out->count++;
        out->token[i] = token_at(t, n->start + best.at.used - 1);
        out->parent[i] = best.parent;
        score += best.share;
        push_next(t, &c, best.at, i, best.share, rule);
        if (rule->tree && best.at.used == 1) push_child(t, &c, n->next, best, rule);
    }
    out->score = score;
}

// From the longest match to the shortest, until none can be better: a draft's score is its tokens at most. If
// the last n + 1 tokens occur as often as the last n, and what follows is not cut off by `depth`, only the
// longer match is drafted from: the same follows it, and it may draft as many tokens or more. Nothing follows
// an end of the running text that occurs only there.
void suffix_tree_draft(const SuffixTree *t, const int *context, int count, const SuffixRule *rule,
                       SuffixDraft *out) {
    Point at[SUFFIX_TREE_DEEPEST];
    int longest = (count < t->depth ? count : t->depth) - 1, found = 0;
    assert(rule->most <= SUFFIX_DRAFT_MOST && rule->factor >= 0);
    if (t->known_ends < t->end_count && t->known_ends < longest) longest = t->known_ends;
    for (int n = 1; n <= longest; found = n++) { // the node or point of the context's last n tokens
        if (n > t->end_count) at[n] = find_point(t, context + count - n, n);
        else at[n] = (Point){t->ends[n], length_of(t, t->ends[n])};
        if (at[n].node == NONE) break;
    }
    out->count = out->match = 0;
    out->score = 0;
    for (int n = found; n >= 1; n--) {
        double wanted = floor(n * rule->factor + rule->offset + 1e-6);
        int most = wanted < 0 ? 0 : wanted < rule->most ? (int)wanted : rule->most;
        bool same = n < found && point_count(t, at[n + 1]) == point_count(t, at[n]);
        if (same && most < t->depth - n) continue;
        if (out->count && (rule->longest || most <= out->score)) break;
        SuffixDraft draft;
        draft_from(t, at[n], most, rule, &draft);

        if (!draft.count || !(draft.score > out->score)) continue;
        size_t bytes = (size_t)draft.count * sizeof *draft.token;
        out->count = draft.count;
        out->match = n;
        out->score = draft.score;
        memcpy(out->token, draft.token, bytes);
        memcpy(out->parent, draft.parent, bytes);
    }
}
