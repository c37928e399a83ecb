// Token Recycling (Luo et al.): remembers for each token of the vocabulary the k tokens that the model last
// held likeliest after it, and fills a fixed tree with them: the child of rank r bears the r-th choice that
// is remembered after its parent's token.
//
//      matrix row of "the":  cat dog end ...      root: the --- cat --- (row of "cat")
//                                                         \---- dog --- ...
//
// After a step, each of its nodes, rejected ones included, replaces the row of its token; if a token is at
// several nodes, the last one in the tree's order wins. With `prompt` on, the tokens of the prompt write
// their rows in the same way, in the text's order (as in SAM-Decoding's program; the authors' begins with the
// first step). A token that was never at a node has no row, and nothing is tried after it (the authors'
// program tries token 0, from a matrix of zeros).
//
// Invariant (recycling_check): a row is all NO_TOKEN, or k different tokens.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/rank_tree.h"

#include <assert.h>
#include <string.h>

enum { NO_TOKEN = -1 };

typedef struct RecyclingParams {
    int k;
    char tree[ARG_TEXT_SIZE];
    bool warm, rejected, prompt;
} RecyclingParams;

#define AT(name) offsetof(RecyclingParams, name)
static const Arg PARAMS[] = {
    {"k", ARG_INT, AT(k), 1, RANK_TREE_RANKS, "8", .help = "tokens remembered after each token"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "2.2.2", .help = RANK_TREE_HELP},
    {"warm", ARG_FLAG, AT(warm), .fallback = "on", .help = "keep the matrix between prompts"},
    {"rejected", ARG_FLAG, AT(rejected), .fallback = "on", .help = "learn from rejected nodes, too"},
    {"prompt", ARG_FLAG, AT(prompt), .fallback = "off", .help = "learn from the prompt, too"},
};

static const char *const SOURCES[] = {"matrix"};

typedef struct Recycling {
    RecyclingParams p;
    Session *target;
    int k, vocab;
    RankTree tree;
    int *matrix;               // (vocab, k)
    int nodes[TREE_MAX_NODES]; // of the last step, whose choices are asked for
    int *choices;              // (TREE_MAX_NODES, k)
    float *logits;             // of the choices
    Sources sources;           // of the open step
} Recycling;

static int *row_of(const Recycling *r, int token) {
    assert(token >= 0 && token < r->vocab);
    return r->matrix + (size_t)token * (size_t)r->k;
}

static void recycling_check(const Recycling *r, int token) {
    const int *row = row_of(r, token);
    for (int i = 0; i < r->k; i++) {
        assert((row[i] == NO_TOKEN) == (row[0] == NO_TOKEN) && row[i] < r->vocab);
        for (int other = 0; other < i; other++) assert(row[i] == NO_TOKEN || row[i] != row[other]);
    }
    (void)row; // without asserts
}

static void forget(Recycling *r) {
    for (size_t i = 0; i < (size_t)r->vocab * (size_t)r->k; i++) r->matrix[i] = NO_TOKEN;
}

static void recycling_close(void *self) {
    Recycling *r = self;
    rank_tree_release(&r->tree);
    mem_free(r->matrix);
    mem_free(r->choices);
    mem_free(r->logits);
    mem_free(r);
}

static void *recycling_open(const MethodEnv *env, const void *values, Error *e) {
    Recycling *r = mem_new(1, sizeof *r);
    *r = (Recycling){.p = *(const RecyclingParams *)values, .target = env->target};
    r->sources = (Sources){.names = SOURCES, .source_count = 1};
    r->vocab = env->target->shape.real_vocab;
    r->k = r->p.k < r->vocab ? r->p.k : r->vocab;
    rank_tree_init(&r->tree);
    if (!rank_tree_read(&r->tree, RANK_TREE_DEPTH, r->p.tree, e)) {
        recycling_close(r);
        return NULL;
    }
    r->matrix = mem_new((size_t)r->vocab * (size_t)r->k, sizeof *r->matrix);
    r->choices = mem_new((size_t)TREE_MAX_NODES * (size_t)r->k, sizeof *r->choices);
    r->logits = mem_new((size_t)TREE_MAX_NODES * (size_t)r->k, sizeof *r->logits);
    forget(r);
    return r;
}

// The rows of nodes, in their order; if a token is at several, the last one's.
static bool learn(Recycling *r, const int *nodes, int count, Error *e) {
    if (count == 0) return true;
    if (!session_top(r->target, nodes, count, r->k, r->choices, r->logits, e)) return false;
    for (int i = 0; i < count; i++) {
        int token = r->target->tree.token[nodes[i]];
        if (token >= r->vocab) continue; // padding of the vocabulary, in a prompt
        memcpy(row_of(r, token), r->choices + (size_t)i * (size_t)r->k, (size_t)r->k * sizeof *r->choices);
        recycling_check(r, token);
    }
    return true;
}

static bool recycling_prefilled(void *self, const int *tokens, int first, int count, Error *e) {
    (void)tokens;
    Recycling *r = self;
    if (!r->p.prompt) return true;
    if (first == 0 && !r->p.warm) forget(r);
    for (int i = 0; i < count; i++) r->nodes[i] = i;
    return learn(r, r->nodes, count, e);
}

// A prompt of one token had no run.
static bool recycling_begin(void *self, const Prompt *prompt, Error *e) {
    (void)e;
    Recycling *r = self;
    bool learnt = r->p.prompt && prompt->count > 1;
    if (r->k > r->target->best.top) session_keep_top(r->target, r->k);
    if (!r->p.warm && !learnt) forget(r);
    return true;
}

// With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
static bool recycling_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Recycling *r = self;
    int root = tree_row(tree);
    for (int i = 0; i < r->tree.count; i++) {
        const RankNode *n = &r->tree.nodes[i];
        int parent = n->parent < 0 ? root : r->tree.placed[n->parent];
        bool there = parent != TREE_NONE && n->rank < r->k && tree->token[parent] < r->vocab;
        int token = there ? row_of(r, tree->token[parent])[n->rank] : NO_TOKEN;
        r->tree.placed[i] = token == NO_TOKEN ? TREE_NONE : tree_propose(tree, parent, token);
    }
    r->sources.count = 0;
    rank_tree_record(&r->tree, &r->sources);
    return true;
}

// The nodes to learn from, in the tree's order: all that went through every layer, or the accepted path.
static int choose_nodes(Recycling *r, const Verdict *verdict) {
    const Session *s = r->target;
    const Tree *t = &s->tree;
    if (!r->p.rejected) return tree_path(t, verdict->node, r->nodes);
    int count = 0;
    for (int i = 0; i < t->count; i++)
        if (t->canonical[i] == i && s->done[i] == s->shape.layers) r->nodes[count++] = i;
    return count;
}

static bool recycling_observe(void *self, const Observation *seen, Error *e) {
    Recycling *r = self;
    return learn(r, r->nodes, choose_nodes(r, seen->verdict), e);
}

static const RankTree *recycling_rank_tree(const void *self) { return &((const Recycling *)self)->tree; }

static void recycling_state(const void *self, Text *out) {
    const Recycling *r = self;
    int known = 0;
    for (int token = 0; token < r->vocab; token++) known += row_of(r, token)[0] != NO_TOKEN;
    text_printf(out, "rows of %d of %d tokens, %.1f MB; nothing is evicted", known, r->vocab,
                1e-6 * (double)r->vocab * r->k * (double)sizeof *r->matrix);
}

static void recycling_work(const void *self, StepWork *out) {
    const RankTree *t = &((const Recycling *)self)->tree;
    *out = (StepWork){.longest = rank_tree_levels(t) + 1, .rows = t->count + 1};
}

const MethodInfo method_recycling = {
    METHOD_ROW(recycling, Recycling),
    .name = "recycling",
    .summary = "a tree of the tokens that the model last held likeliest after each token",
    .prefilled = recycling_prefilled,
    .may_rest = true,
    .rank_tree = recycling_rank_tree,
    .state = recycling_state};
