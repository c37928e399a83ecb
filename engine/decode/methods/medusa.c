// Medusa (Cai et al.): head i reads the target's final normed state at a token and says the token i + 2
// places after it; the target itself has said the next one, which is the step's root. The heads' best
// choices form a sparse tree, tried whole:
//
//      state at t |  t+1 (root)  --- head 0: rank 0 --- head 1: rank 0 ...
//                 |               |               \---- head 1: rank 1
//                 |               \- head 0: rank 1 --- ..
//
// A guess depends on no other guess, so equal ranks of a head are the same token under every parent. Only the
// lossless verifier is used: the paper's typical acceptance changes the distribution.
#include "engine/decode/methods/methods.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/core/hidden.h"
#include "engine/decode/methods/medusa_tree.h"

#include <string.h>

enum { MOST_NODES = TREE_MAX_NODES - 1, MOST_TEXT = 1 << 16 };

typedef struct MedusaParams {
    int nodes, top, depth;
    char tree[ARG_TEXT_SIZE];
} MedusaParams;

#define AT(name) offsetof(MedusaParams, name)
static const Arg PARAMS[] = {
    {"nodes", ARG_INT, AT(nodes), 1, MOST_NODES, "63", .help = "guesses a step"},
    {"top", ARG_INT, AT(top), 1, MEDUSA_RANKS, "10", .help = "choices of a head that may be tried"},
    {"depth", ARG_INT, AT(depth), 1, MEDUSA_DEPTH, "4", .help = "heads that are asked, if there are so many"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "auto",
     .help = "paths of ranks (0;1;00;01;000), or a file of them"},
};
#undef AT

static const char *const SOURCES[] = {"heads"};

typedef struct Medusa {
    Session *target, *heads;
    int depth, top;   // heads asked; choices wanted of each
    MedusaNode *tree; // (count)
    int count;
    int *placed;      // (count): the step's node, or TREE_NONE
    HiddenRows state; // one: where the heads begin
    bool ready;       // it is there
    Offers offers;    // of the open step: the paths to the tree's leaves, in its order
    int ids[MEDUSA_DEPTH][MEDUSA_RANKS];
} Medusa;

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
    m->offers = (Offers){.names = SOURCES, .source_count = 1};
    m->target = env->target;
    m->heads = env->adapters;
    m->depth = p->depth < env->adapter_count ? p->depth : env->adapter_count;
    m->tree = mem_alloc(MOST_NODES, sizeof *m->tree);
    m->placed = mem_alloc(MOST_NODES, sizeof *m->placed);
    if (!m->tree || !m->placed) return error_system(e, "out of memory for a tree of guesses");
    hidden_open(&m->state, env->target, env->adapters, 1);
    if (!make_tree(m, p, e)) return false;
    m->top = ranks_used(m);
    return true;
}

static void *medusa_open(const MethodEnv *env, const void *values, Error *e) {
    Medusa *m = mem_alloc(1, sizeof *m);
    if (!m) error_system(e, "out of memory");
    if (m && medusa_init(m, env, values, e)) return m;
    medusa_close(m);
    return NULL;
}

static bool keep_state(Medusa *m, int node, Error *e) {
    m->ready = true;
    return hidden_keep(&m->state, 0, m->target, node, HIDDEN_NORMED, e);
}

// The prompt's last run ended with the token before the root. A prompt of one token had none, and no state:
// the first step then runs that token alone.
static bool medusa_begin(void *self, const Prompt *prompt, Error *e) {
    Medusa *m = self;
    m->ready = false;
    return prompt->count == 1 || keep_state(m, m->target->tree.count - 1, e);
}

// The best ids of one head.
static bool ask(Medusa *m, int head, Error *e) {
    Session *s = &m->heads[head];
    float logits[MEDUSA_RANKS];
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 0);
    return hidden_give(&m->state, 0, s, node, e) && session_run(s, s->shape.layers, e) &&
           session_top(s, &node, 1, m->top, m->ids[head], logits, e);
}

// A path ends where nothing found room below.
static void offer_leaves(Medusa *m) {
    bool inner[MOST_NODES] = {false};
    m->offers.count = 0;
    for (int i = 0; m->ready && i < m->count; i++)
        if (m->placed[i] != TREE_NONE && m->tree[i].parent >= 0) inner[m->tree[i].parent] = true;
    for (int i = 0; m->ready && i < m->count; i++)
        if (!inner[i]) offer(&m->offers, 0, m->placed[i]);
}

// In rows of a batch the whole tree hangs off the first row: it is a tree because its branches share nodes.
static bool medusa_propose(void *self, Tree *tree, Error *e) {
    Medusa *m = self;
    int root = tree_row(tree);
    for (int head = 0; m->ready && head < m->depth; head++)
        if (!ask(m, head, e)) return false;
    for (int i = 0; m->ready && i < m->count; i++) {
        const MedusaNode *n = &m->tree[i];
        int parent = n->parent < 0 ? root : m->placed[n->parent];
        bool there = n->rank < m->top; // a vocabulary may be smaller than the tree is wide
        m->placed[i] = there ? tree_propose(tree, parent, m->ids[n->depth][n->rank]) : TREE_NONE;
    }
    offer_leaves(m);
    return true;
}

// The next root is the last token emitted; the heads begin at the state before it.
static bool medusa_observe(void *self, const Observation *seen, Error *e) {
    Medusa *m = self;
    const Tree *t = &m->target->tree;
    int node = seen->verdict->node;
    while (t->depth[node] >= seen->emitted_count) node = t->parent[node];
    return keep_state(m, node, e);
}

static const Offers *medusa_offers(const void *self) { return &((const Medusa *)self)->offers; }

const MethodInfo method_medusa = {
    .name = "medusa",
    .summary = "heads that each say one further token, tried as a tree (--adapter DIR)",
    .needs = NEEDS_HEADS,
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(MedusaParams),
    .open = medusa_open,
    .begin = medusa_begin,
    .propose = medusa_propose,
    .observe = medusa_observe,
    .close = medusa_close,
    .offers = medusa_offers};
