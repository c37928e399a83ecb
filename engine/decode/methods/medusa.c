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
#include "engine/decode/methods/methods.h"

#include "engine/core/hidden.h"
#include "engine/decode/rank_tree.h"

#include <assert.h>
#include <string.h>

typedef struct MedusaParams {
    int nodes, top, depth;
    char tree[ARG_TEXT_SIZE];
} MedusaParams;

#define AT(name) offsetof(MedusaParams, name)
static const Arg PARAMS[] = {
    {"nodes", ARG_INT, AT(nodes), 1, RANK_TREE_MOST, "63", .help = "tree=auto: guesses per step"},
    {"top", ARG_INT, AT(top), 1, RANK_TREE_RANKS, "10", .help = "tree=auto: most choices tried per head"},
    {"depth", ARG_INT, AT(depth), 1, RANK_TREE_DEPTH, "4", .help = "tree=auto: most heads used"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "auto",
     .help = "auto: the likeliest by a rule; else " RANK_TREE_HELP},
};

static const char *const SOURCES[] = {"heads", NULL};

typedef struct Medusa {
    MedusaParams p;
    Session *target, *heads;
    int depth, top; // heads used; choices of each
    RankTree tree;
    HiddenRows state; // one row: the heads' input
    bool ready;       // `state` is set
    Sources sources;  // of the open step: the paths to the tree's leaves, in its order
    int ids[RANK_TREE_DEPTH][RANK_TREE_RANKS];
} Medusa;

// --- open and close

static void medusa_close(void *self) {
    Medusa *m = self;
    rank_tree_release(&m->tree);
    hidden_close(&m->state);
}

// Heads that the tree doesn't reach are not used.
static bool make_tree(Medusa *m, int heads, Error *e) {
    const MedusaParams *p = &m->p;
    bool ok = true;
    rank_tree_init(&m->tree);
    if (heads > RANK_TREE_DEPTH) heads = RANK_TREE_DEPTH;
    if (strcmp(p->tree, "auto") != 0) ok = rank_tree_read(&m->tree, heads, p->tree, e);
    else rank_tree_grow(&m->tree, p->nodes, p->depth < heads ? p->depth : heads, p->top);
    m->depth = rank_tree_levels(&m->tree);
    return ok;
}

static bool medusa_open(void *self, const MethodEnv *env, Error *e) {
    Medusa *m = self;
    m->target = env->target;
    m->heads = env->adapter->sessions;
    hidden_open(&m->state, env->target, m->heads, 1);
    if (!make_tree(m, env->adapter->count, e)) return false;
    m->top = rank_tree_width(&m->tree);
    if (m->top > m->target->shape.real_vocab) m->top = m->target->shape.real_vocab;
    return true;
}

// --- a step

static bool keep_state(Medusa *m, int node, Error *e) {
    m->ready = true;
    return hidden_keep(&m->state, 0, m->target, node, HIDDEN_NORMED, e);
}

// The prompt's last part ends with the token before the root.
static bool medusa_prefilled(void *self, UNUSED const int *tokens, UNUSED int first, int count, Error *e) {
    return keep_state(self, count - 1, e);
}

// A prompt of one token isn't run before the first step, so that step has no state and proposes nothing.
static bool medusa_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Medusa *m = self;
    m->ready = prompt->count > 1;
    return true;
}

// The best ids of one head.
static bool read_head(Medusa *m, int head, Error *e) {
    Session *s = &m->heads[head];
    assert(m->ready && m->top <= RANK_TREE_RANKS);
    float logits[RANK_TREE_RANKS];
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 0);
    return hidden_give(&m->state, 0, s, node, e) && session_run(s, s->shape.layers, e) &&
           session_top(s, &node, 1, m->top, m->ids[head], logits, e);
}

// With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
static bool medusa_propose(void *self, Tree *tree, Error *e) {
    Medusa *m = self;
    int root = tree_row(tree);
    for (int head = 0; m->ready && head < m->depth; head++)
        if (!read_head(m, head, e)) return false;
    for (int i = 0; i < m->tree.count; i++) {
        const RankNode *n = &m->tree.nodes[i];
        int parent = n->parent < 0 ? root : m->tree.placed[n->parent];
        bool there = m->ready && n->rank < m->top; // the vocabulary can be smaller than the tree is wide
        m->tree.placed[i] = there ? tree_propose(tree, parent, m->ids[n->depth][n->rank]) : TREE_NONE;
    }
    m->sources.count = 0;
    rank_tree_record(&m->tree, &m->sources);
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

static const RankTree *medusa_rank_tree(const void *self) { return &((const Medusa *)self)->tree; }

static void medusa_work(const void *self, StepWork *out) {
    const Medusa *m = self;
    const Shape *head = &m->heads->shape;
    *out = (StepWork){.longest = m->depth + 1, .rows = m->tree.count + 1, .draft_count = 1};
    out->drafts[0] = (DraftWork){head, head->layers, true, m->depth, m->depth};
}

const MethodInfo method_medusa = {
    METHOD_ROW(medusa, Medusa),
    .name = "medusa",
    .summary = "heads that each predict one further token, tried as a tree (--heads DIR)",
    .needs = NEEDS_HEADS,
    .prefilled = medusa_prefilled,
    .may_rest = true,
    .rank_tree = medusa_rank_tree};
