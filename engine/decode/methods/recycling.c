// Token Recycling (Luo et al.): remembers for each token of the vocabulary the k tokens that the model last
// held likeliest after it, and fills a fixed tree with them: the child of rank r bears the r-th choice that
// is remembered after its parent's token.
//
//      matrix row of "the":  cat dog end ...      root: the --- cat --- (row of "cat")
//                                                         \---- dog --- ...
//
// After a step, each of its nodes, rejected ones included, replaces the row of its token; if a token is at
// several nodes, the last one wins, and a node with several places in the shape counts at its last. With
// `prompt` on, the tokens of the prompt write their rows in the same way, in the text's order (as in
// SAM-Decoding's program; the authors' begins with the first step).
//
// Even a wrong guess leaves a row, so the tree is filled below tokens without one (`fill`): with the newest
// tokens that rows name, or the prompt has, and that have no row yet; or, as in the authors' program, with
// token 0.
//
// Invariant (recycling_check): a row is all NO_TOKEN, or k different tokens.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/rank_tree.h"

#include <assert.h>
#include <string.h>

enum { NO_TOKEN = -1, WANTED_MOST = 4096 };
enum { MODE_PAPER, MODE_REFERENCE };
enum { FILL_WANTED, FILL_ZERO, FILL_NOTHING };

typedef struct RecyclingParams {
    int mode, k, fill;
    char tree[ARG_TEXT_SIZE];
    bool warm, rejected, prompt;
} RecyclingParams;

static const char *const MODES[] = {"paper", "reference", NULL};
static const char *const FILLS[] = {"wanted", "zero", "nothing", NULL};

#define AT(name) offsetof(RecyclingParams, name)
static const Arg PARAMS[] = {
    {"mode", ARG_CHOICE, AT(mode), .fallback = "paper", .choices = MODES,
     .help = "reference: fill=zero, and nothing is learnt from a text's last step"},
    {"k", ARG_INT, AT(k), 1, RANK_TREE_RANKS, "8", .help = "tokens remembered after each token"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "2.2.2", .help = RANK_TREE_HELP},
    {"fill", ARG_CHOICE, AT(fill), .fallback = "wanted", .choices = FILLS,
     .help = "tried below a token without a row: tokens that rows or the prompt named last, or token 0"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "on", .help = "keep the matrix between prompts"},
    {"rejected", ARG_FLAG, AT(rejected), .fallback = "on", .help = "learn from rejected nodes, too"},
    {"prompt", ARG_FLAG, AT(prompt), .fallback = "off", .help = "learn from the prompt, too"},
};

static const char *const SOURCES[] = {"matrix", NULL};

typedef struct Recycling {
    RecyclingParams p;
    Session *target;
    int k, vocab;
    RankTree tree;
    int *matrix;                // (vocab, k)
    int nodes[TREE_MAX_NODES];  // of the last step, whose choices are asked for
    int tokens[TREE_MAX_NODES]; // theirs
    bool proposed;              // into the open step
    int learnt;                 // how many of them wait to become rows (end_step)
    int *choices;               // (TREE_MAX_NODES, k)
    float *logits;              // of the choices
    int *wanted; // (WANTED_MOST): tokens that had no row when they were put here; the last are taken first
    int wanted_count;
    Sources sources; // of the open step
} Recycling;

static int *row_of(const Recycling *r, int token) {
    assert(token >= 0 && token < r->vocab);
    return r->matrix + (size_t)token * (size_t)r->k;
}

static void recycling_check(const Recycling *r, int token) {
    UNUSED const int *row = row_of(r, token);
    for (int i = 0; i < r->k; i++) {
        assert((row[i] == NO_TOKEN) == (row[0] == NO_TOKEN) && row[i] < r->vocab);
        for (int other = 0; other < i; other++) assert(row[i] == NO_TOKEN || row[i] != row[other]);
    }
}

static bool has_row(const Recycling *r, int token) { return row_of(r, token)[0] != NO_TOKEN; }

static void forget(Recycling *r) {
    for (size_t i = 0; i < (size_t)r->vocab * (size_t)r->k; i++) r->matrix[i] = NO_TOKEN;
    r->wanted_count = 0;
}

static void recycling_close(void *self) {
    Recycling *r = self;
    rank_tree_release(&r->tree);
    MEM_FREE(r->matrix, r->choices, r->logits, r->wanted);
}

static bool recycling_open(void *self, const MethodEnv *env, Error *e) {
    Recycling *r = self;
    r->target = env->target;
    if (r->p.mode == MODE_REFERENCE) r->p.fill = FILL_ZERO;
    r->vocab = env->target->shape.real_vocab;
    r->k = r->p.k < r->vocab ? r->p.k : r->vocab;
    rank_tree_init(&r->tree);
    if (!rank_tree_read(&r->tree, RANK_TREE_DEPTH, r->p.tree, e)) return false;
    r->matrix = mem_new((size_t)r->vocab * (size_t)r->k, sizeof *r->matrix);
    r->choices = mem_new((size_t)TREE_MAX_NODES * (size_t)r->k, sizeof *r->choices);
    r->logits = mem_new((size_t)TREE_MAX_NODES * (size_t)r->k, sizeof *r->logits);
    r->wanted = mem_new(WANTED_MOST, sizeof *r->wanted);
    forget(r);
    return true;
}

// --- learning

static void want(Recycling *r, int token) {
    if (r->p.fill != FILL_WANTED || token >= r->vocab || has_row(r, token)) return;
    if (r->wanted_count == WANTED_MOST) { // the older half goes
        r->wanted_count /= 2;
        memmove(r->wanted, r->wanted + WANTED_MOST / 2, (size_t)r->wanted_count * sizeof *r->wanted);
    }
    r->wanted[r->wanted_count++] = token;
}

// Takes the newest wanted token that still has no row and isn't in the step's tree.
static int take_wanted(Recycling *r, const Tree *tree) {
    while (r->wanted_count) {
        int token = r->wanted[--r->wanted_count], i = 0;
        if (has_row(r, token)) continue;
        while (i < tree->count && tree->token[i] != token) i++;
        if (i == tree->count) return token;
    }
    return NO_TOKEN;
}

// Asks for the choices of nodes; recycling_learn turns them into rows.
static bool ask(Recycling *r, int count, Error *e) {
    r->learnt = 0;
    if (count == 0) return true;
    if (!session_top(r->target, r->nodes, count, r->k, r->choices, r->logits, e)) return false;
    for (int i = 0; i < count; i++) r->tokens[i] = r->target->tree.token[r->nodes[i]];
    r->learnt = count;
    return true;
}

// Wants the tokens that the rows of these name; the likeliest of each are taken first.
static void want_after(Recycling *r, const int *tokens, int count) {
    for (int rank = r->k; rank--;)
        for (int i = count; i--;)
            if (tokens[i] < r->vocab && has_row(r, tokens[i])) want(r, row_of(r, tokens[i])[rank]);
}

// Turns the choices into rows, in the nodes' order.
static void recycling_learn(Recycling *r) {
    for (int i = 0; i < r->learnt; i++) {
        if (r->tokens[i] >= r->vocab) continue; // padding of the vocabulary, in a prompt
        memcpy(row_of(r, r->tokens[i]), r->choices + (size_t)i * (size_t)r->k,
               (size_t)r->k * sizeof *r->choices);
        recycling_check(r, r->tokens[i]);
    }
}

// Learns from the step in front. If it was a text's last, the authors' program doesn't.
static void end_step(Recycling *r, bool last) {
    if (last && r->p.mode == MODE_REFERENCE) r->learnt = 0;
    recycling_learn(r);
    want_after(r, r->tokens, r->learnt);
    r->learnt = 0;
}

static bool recycling_prefilled(void *self, UNUSED const int *tokens, int first, int count, Error *e) {
    Recycling *r = self;
    if (!r->p.prompt) return true;
    if (first == 0) end_step(r, true);
    if (first == 0 && !r->p.warm) forget(r);
    for (int i = 0; i < count; i++) r->nodes[i] = i;
    if (!ask(r, count, e)) return false;
    recycling_learn(r);
    r->learnt = 0;
    return true;
}

// A prompt of one token had no run.
static bool recycling_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Recycling *r = self;
    bool told = r->p.prompt && prompt->count > 1;
    if (r->k > r->target->best.top) session_keep_top(r->target, r->k);
    end_step(r, true);
    if (!r->p.warm && !told) forget(r);
    want_after(r, prompt->tokens, prompt->count);
    for (int i = 0; i < prompt->count; i++) want(r, prompt->tokens[i]);
    return true;
}

// --- steps

// The token to try at a rank below a node, or NO_TOKEN.
static int token_at(Recycling *r, const Tree *tree, int parent, int rank) {
    if (parent == TREE_NONE || rank >= r->k || tree->token[parent] >= r->vocab) return NO_TOKEN;
    if (has_row(r, tree->token[parent])) return row_of(r, tree->token[parent])[rank];
    return r->p.fill == FILL_WANTED ? take_wanted(r, tree) : r->p.fill == FILL_ZERO ? 0 : NO_TOKEN;
}

// With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
static bool recycling_propose(void *self, Tree *tree, UNUSED Error *e) {
    Recycling *r = self;
    int root = tree_row(tree);
    r->proposed = true;
    end_step(r, false);
    for (int i = 0; i < r->tree.count; i++) {
        const RankNode *n = &r->tree.nodes[i];
        int parent = n->parent < 0 ? root : r->tree.placed[n->parent],
            token = token_at(r, tree, parent, n->rank);
        r->tree.placed[i] = token == NO_TOKEN ? TREE_NONE : tree_propose(tree, parent, token);
    }
    r->sources.count = 0;
    rank_tree_record(&r->tree, &r->sources);
    return true;
}

// The nodes to learn from: all that went through every layer, or the accepted path. In the tree's order,
// except that a node with several places comes at its last.
static int choose_nodes(Recycling *r, const Verdict *verdict) {
    const Session *s = r->target;
    const Tree *t = &s->tree;
    if (!r->p.rejected) return tree_path(t, verdict->node, r->nodes);
    int last[TREE_MAX_NODES], count = 0;
    for (int i = 0; i < t->count; i++) last[i] = NO_TOKEN;
    for (int i = 0; i < r->tree.count; i++)
        if (r->tree.placed[i] != TREE_NONE) last[t->canonical[r->tree.placed[i]]] = i;
    for (int i = 0; i < t->count; i++) // nodes without a place: the root, and in a mix others' guesses
        if (t->canonical[i] == i && last[i] == NO_TOKEN && s->done[i] == s->shape.layers)
            r->nodes[count++] = i;
    for (int i = 0; i < r->tree.count; i++) {
        int node = r->tree.placed[i] == TREE_NONE ? TREE_NONE : t->canonical[r->tree.placed[i]];
        if (node != TREE_NONE && last[node] == i && s->done[node] == s->shape.layers)
            r->nodes[count++] = node;
    }
    return count;
}

// In a mix that let it rest, the step has none of its nodes, and the step in front still waits.
static bool recycling_observe(void *self, const Observation *seen, Error *e) {
    Recycling *r = self;
    end_step(r, false);
    for (int i = 0; !r->proposed && i < r->tree.count; i++) r->tree.placed[i] = TREE_NONE;
    r->proposed = false;
    return ask(r, choose_nodes(r, seen->verdict), e);
}

static const RankTree *recycling_rank_tree(const void *self) { return &((const Recycling *)self)->tree; }

static void recycling_state(const void *self, Text *out) {
    const Recycling *r = self;
    int known = 0;
    for (int token = 0; token < r->vocab; token++) known += has_row(r, token);
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
