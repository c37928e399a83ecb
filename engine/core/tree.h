// The token tree: the nodes that one step runs. Every method fills one; the verifier walks it; backends run
// it.
//
// A node is a token below a parent, at the position one past its parent's. It attends to the committed cache,
// to its own ancestors and to itself, and to nothing else. A root follows the committed sequence.
//
//      cache ... x  |  root --- a --- b            root: the last token, not yet in the cache
//                   |        \- c --- d            a, c: two candidates for what follows it
//
// Nodes are candidates (may be accepted), probes (only evaluated) or both. Equal prefixes are one to the
// verifier, however many nodes have them: each node has a `canonical` node, the first with the same path.
// With `merge` on, an equal prefix is that node itself; with it off (or in a batch, below) it's a separate
// node that costs its own row, and the emitted tokens are the same.
//
// LAYOUT_TREE has one root. LAYOUT_BATCH is k rows that each repeat the root and the context, as N-Grammys
// runs them: tree_row starts the next row. A method calls tree_row and needn't know the layout.
// LAYOUT_COPIED is such a batch in which each row reads its own copy of the committed cache, as the paper's
// program does.
//
// A mutual tree, the block of a draft that has been trained for it, is the exception: its nodes, a chain of
// at most BLOCK_MOST that run together, all see each other. It's never a target's step, nor committed.
//
// A tree may be built in parts, each with its own root, that would run on separate machines (Lookahead,
// section 3.4): tree_part starts the next one. Only nodes of the same part share prefixes.
//
// Invariants (tree_assert checks them)
//  1. a parent's number is less than its child's;
//  2. depth[child] = depth[parent] + 1, depth[root] = 0; position = context + depth < limit;
//  3. canonical[i] <= i, and canonical[canonical[i]] = canonical[i];
//  4. only canonical nodes have proposals and children.
#pragma once
#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { TREE_NONE = -1, TREE_MAX_NODES = 1024, TREE_MAX_PARTS = 16, ONE_HOT = -1 };

typedef enum { LAYOUT_TREE, LAYOUT_BATCH, LAYOUT_COPIED } Layout;

typedef enum {
    NODE_CANDIDATE = 1, // may be accepted
    NODE_PROBE = 2,     // evaluated, never accepted
    NODE_READ = 4,      // the head runs on it; candidates and roots always have it
} NodeFlag;

// A proposal: try child's token after `child`'s parent. One-hot (q = ONE_HOT) or drawn from distribution q.
typedef struct Proposal {
    int child;                // canonical node
    int q;                    // number of a distribution (tree_distribution), or ONE_HOT
    bool without_replacement; // drawn from q without the tokens of earlier siblings from the same q
    int next;                 // the parent's next proposal in order, or TREE_NONE
} Proposal;

typedef struct Tree {
    // set by tree_clear
    int context; // committed tokens: the position of a root
    int limit;   // the first position beyond the context; nodes from there on are refused
    int most;    // nodes, at most capacity (tree_limit_rows)
    bool merge;
    bool mutual; // see above; set while the tree is empty
    Layout layout;
    // nodes, each array (capacity)
    int count, capacity;
    int *token, *parent, *depth, *canonical;
    unsigned char *flags;
    int *first_child, *next_sibling; // canonical nodes below a canonical node, in order of creation
    int *first_proposal, *last_proposal;
    // proposals (proposal_count), distributions (distribution_count x vocab)
    Proposal *proposals;
    size_t proposal_count, proposal_capacity;
    float *distributions;
    size_t distribution_count, distribution_capacity;
    int vocab;
    int rows;                      // rows that tree_row has started in this part
    int parts;                     // at least 1
    int part_root[TREE_MAX_PARTS]; // (parts): a part is the nodes from its root to the next one's
    int asked; // nodes requested and not refused since tree_clear: merging saved asked - count of them
} Tree;

// capacity: at most TREE_MAX_NODES. vocab: the length of a distribution.
void tree_init(Tree *t, int capacity, int vocab);
void tree_release(Tree *t);

// An empty tree on top of `context` committed tokens.
void tree_clear(Tree *t, int context, int limit, bool merge, Layout layout);

// Limits the tree, including the nodes that it already has, to `rows` nodes (at most its capacity).
void tree_limit_rows(Tree *t, int rows);
static inline int tree_room(const Tree *t) { return t->count < t->most ? t->most - t->count : 0; }

// Every call that adds a node returns its number, or TREE_NONE if there isn't room (rows, or the context's
// end). A parent or a q of TREE_NONE gives TREE_NONE again, so a chain needs no check at every link. A token
// outside the vocabulary, or a parent outside the open part, is a bug in the method: it ends in an assert,
// before a backend reads out of bounds.
int tree_root(Tree *t, int token); // n-gram tables have several roots; LAYOUT_BATCH has one per row
int tree_row(Tree *t);  // where a method's next chain starts: the part's root, or in LAYOUT_BATCH a new row
int tree_part(Tree *t); // starts the next part, for all later nodes; returns its root
int tree_propose(Tree *t, int parent, int token); // a one-hot candidate
int tree_propose_sampled(Tree *t, int parent, int token, int q, bool without_replacement);
// One-hots below one another; writes their nodes to `nodes` (count) unless that is NULL. Returns the last one
// that found room, or TREE_NONE.
int tree_chain(Tree *t, int parent, const int *tokens, int count, int *nodes);
int tree_probe(Tree *t, int parent, int token, bool read);

// Takes the newest nodes away, down to `count`; they have no proposals.
void tree_cut(Tree *t, int count);

// Adds a distribution of `vocab` floats: returns its number, and in *where the place to write it, which is
// valid until the next call.
int tree_distribution(Tree *t, float **where);
static inline const float *tree_q(const Tree *t, int q) {
    return t->distributions + (size_t)q * (size_t)t->vocab;
}

// The canonical child of node (any node) with this token, or TREE_NONE.
int tree_child(const Tree *t, int node, int token);

static inline int tree_position(const Tree *t, int node) { return t->context + t->depth[node]; }

// Writes the path root .. node, (depth + 1) numbers, and returns its length.
int tree_path(const Tree *t, int node, int *out);

void tree_assert(const Tree *t);
