// DFlash (Chen et al.) and DSpark (DeepSeek): a draft of some layers reads the target's states and guesses a
// whole block in one forward (engine/core/block.h draws its rows).
//
//      the draft's cache    c0 c1 .. c(p-1)     keys and values of the target's states: the context
//      a step of it         root m m m          at places p, p+1, ..: seen by each other, dropped afterwards
//
// A step begins with the context of the tokens that the target ran in its last one: the root and the guesses
// that were right. Then the block runs, unless the pace leaves it out: so the context is never behind.
//
// DFlash's guesses don't depend on each other. DSpark's do: its Markov head adds a bias to each row's logits,
// by the token in front, so tokens are chosen one by one from rows that have run. Its confidence head gives
// the chance that the pace asks for; without one, it's that of the row's best token.
//
// tree=best: in place of a chain, the guesses whose paths have the largest products of chances (DDTree). A
// guess's children are the `top` best tokens of the next row, by a Markov head as they follow this guess.
// Guesses of a tree are one-hots, also when sampling.
//
// Invariant between steps (dflash_check): the draft's cache and the pending rows together are one row for
// each token of the sequence except the last, or the draft rests until the next prompt.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/core/hidden.h"
#include "engine/decode/draft.h"
#include "engine/decode/pace.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MOST_TOP = 16, ROOT = -1 };
typedef enum { TREE_CHAIN, TREE_BEST } TreeKind;

typedef struct DflashParams {
    int gamma, tree, total, top;
    PaceParams pace;
    DraftSampling sampling;
} DflashParams;

static const char *const TREES[] = {"chain", "best", NULL};

#define AT(name) offsetof(DflashParams, name)
static const Arg PARAMS[] = {
    {"gamma", ARG_INT, AT(gamma), 0, BLOCK_MOST, "0",
     .help = "tokens drafted at most; 0: as many as the block has"},
    PACE_PARAMS(AT(pace), "0.4", false),
    DRAFT_SAMPLING_PARAMS(AT(sampling)),
    {"tree", ARG_CHOICE, AT(tree), .fallback = "chain", .choices = TREES,
     .help = "chain: a guess per place; best: the likeliest paths"},
    {"total", ARG_INT, AT(total), 2, TREE_MAX_NODES, "32",
     .help = "tree=best: most rows per step, root included"},
    {"top", ARG_INT, AT(top), 1, MOST_TOP, "8", .help = "tree=best: guesses made below each"},
};

static const char *const SOURCES[] = {"draft", NULL};

typedef struct Guess { // of a tree
    int parent;        // an earlier guess, or ROOT
    int token;         // the target's id
    int row;           // of the block
    double score;      // ln of the product of chances
    int placed;        // in the target's tree, once it's chosen, or TREE_NONE
    bool taken, inner; // chosen; has children that were placed
} Guess;

typedef struct Dflash {
    DflashParams p;
    Session *target, *draft;
    Captures captures;
    BlockDraft block;
    int guesses, first; // the most of a step; the row of the first
    Drafter drafter;
    Pace pace;
    float *logits, *states; // (vocab); (guesses of a pool or 1, rank)
    Guess *pool;            // (pool_most), of a tree
    int *ids;               // (rows, top)
    float *log_p;
    int pool_count, pool_most, top;
    HiddenRows rows; // that the draft lacks
    int tokens[TREE_MAX_NODES + 1], pending, capacity;
    int length; // of the sequence
    Sources sources;
} Dflash;

// --- open and close

static void dflash_close(void *self) {
    Dflash *g = self;
    hidden_close(&g->rows);
    drafter_release(&g->drafter);
    MEM_FREE(g->logits, g->states, g->pool, g->ids, g->log_p);
}

static bool check(const Dflash *g, Error *e) {
    const Shape *s = &g->draft->shape;
    bool follows = s->block.markov || s->block.confidence;
    if (follows && !g->draft->backend->follow)
        return error_input(e,
                           "device %s cannot run the Markov and confidence heads of DSpark; --device cpu can",
                           g->draft->backend->name);
    return g->p.tree == TREE_CHAIN || pace_fixed(&g->p.pace, "tree=chain", e);
}

static void take_memory(Dflash *g) {
    size_t vocab = (size_t)g->draft->shape.vocab, rows = (size_t)g->block.rows, rank = (size_t)g->block.rank;
    bool tree = g->p.tree == TREE_BEST;
    g->top = g->p.top < g->draft->shape.real_vocab ? g->p.top : g->draft->shape.real_vocab;
    g->pool_most = tree ? g->p.total * g->top : 0;
    g->logits = mem_new(vocab, sizeof *g->logits);
    g->states = mem_new(((size_t)g->pool_most + 1) * (rank ? rank : 1), sizeof *g->states);
    g->pool = mem_new((size_t)g->pool_most + 1, sizeof *g->pool);
    g->ids = mem_new(rows * (size_t)g->top, sizeof *g->ids);
    g->log_p = mem_new(rows * (size_t)g->top, sizeof *g->log_p);
}

static bool dflash_open(void *self, const MethodEnv *env, Error *e) {
    Dflash *g = self;
    g->target = env->target;
    g->draft = env->adapter->sessions;
    g->captures = *env->adapter->captures;
    g->block = g->draft->shape.block;
    g->first = !g->block.from_root;
    g->guesses = block_guesses(&g->block);
    if (g->p.gamma && g->p.gamma < g->guesses) g->guesses = g->p.gamma;
    if (!check(g, e)) return false;
    bool asks = pace_asks_confidence(&g->p.pace) && !g->block.confidence;
    drafter_init(&g->drafter, g->draft, env->target->shape.vocab, &g->p.sampling, &env->sampling, asks);
    g->drafter.ids = env->adapter->draft_ids;
    pace_init(&g->pace, &g->p.pace, g->guesses, 0, g->guesses);
    g->capacity = env->mixed ? TREE_MAX_NODES : g->guesses + 1; // of a mix, another's guesses may be longer
    hidden_open(&g->rows, g->target, g->draft, g->capacity);
    take_memory(g);
    return pace_read(&g->pace, e);
}

static const Captures *dflash_captures(const void *self) { return &((const Dflash *)self)->captures; }

// --- the context

static void dflash_check(UNUSED const Dflash *g) {
    assert(g->pending >= 0 && g->pending <= g->capacity);
    assert(g->draft->cache.length + g->pending <= g->length - 1);
}

static bool dflash_begin(void *self, const Prompt *prompt, Error *e) {
    Dflash *g = self;
    g->pending = 0;
    g->length = prompt->count;
    pace_begin(&g->pace);
    drafter_begin(&g->drafter, prompt->seed);
    session_reset(g->draft);
    dflash_check(g);
    return prompt->count == 1 || prompt->count - 1 > g->draft->context ||
           session_prefill_hidden(g->draft, prompt->tokens, prompt->count - 1, prompt->hidden, e);
}

static bool add_rows(Dflash *g, int first, int count, Error *e) {
    Session *s = g->draft;
    session_begin_step(s, false, LAYOUT_TREE);
    int end = tree_root(&s->tree, g->tokens[first]);
    for (int i = 1; i < count; i++) end = tree_probe(&s->tree, end, g->tokens[first + i], false);
    assert(end == count - 1);
    for (int i = 0; i < count; i++)
        if (!hidden_give(&g->rows, first + i, s, i, e)) return false;
    return session_run(s, s->shape.layers, e) && session_commit(s, end, count, e);
}

// Brings the draft's cache up to the root; *follows: it's there.
static bool catch_up(Dflash *g, bool *follows, Error *e) {
    const Session *s = g->draft;
    *follows = s->cache.length + g->pending == g->length - 1 && g->length <= s->context;
    for (int done = 0, n; *follows && done < g->pending; done += n) {
        n = g->pending - done < s->tree.capacity ? g->pending - done : s->tree.capacity;
        if (!add_rows(g, done, n, e)) return false;
    }
    g->pending = 0;
    return true;
}

// --- a chain

static float *state_of(const Dflash *g, int guess) {
    return g->states + (ptrdiff_t)(guess + 1) * g->block.rank;
}

// The logits of a row's guess after this token, in g->logits; *confidence: the head's.
static bool follow(Dflash *g, int row, int token, float *state, double *confidence, Error *e) {
    Follow f = {.token = token, .state = state, .logits = g->block.markov ? g->logits : NULL};
    memcpy(g->logits, session_logits(g->draft, row), (size_t)g->draft->shape.vocab * sizeof *g->logits);
    if (!session_follow(g->draft, row, &f, e)) return false;
    *confidence = f.confidence;
    return true;
}

static bool propose_next(Dflash *g, int row, int token, Tree *tree, int parent, Draft *out, Error *e) {
    double confidence = 1;
    if (!g->block.markov && !g->block.confidence)
        return drafter_propose(&g->drafter, row, tree, parent, out, e);
    if (!session_read(g->draft, HEAD_ARGMAX | HEAD_LOGITS, e) ||
        !follow(g, row, token, state_of(g, ROOT), &confidence, e))
        return false;
    drafter_propose_from(&g->drafter, g->logits, tree, parent, out);
    if (g->block.confidence) out->confidence = confidence;
    return true;
}

static bool propose_chain(Dflash *g, Tree *tree, int root, Error *e) {
    int parent = root, token = tree->token[root];
    memset(state_of(g, ROOT), 0, (size_t)g->block.rank * sizeof *g->states);
    for (int i = 0; i < g->guesses; i++) {
        Draft d;
        if (!propose_next(g, g->first + i, token, tree, parent, &d, e)) return false;
        if (d.node == TREE_NONE) break;
        parent = d.node;
        token = d.token;
        if (pace_ends(&g->pace, d.node, d.confidence)) break;
    }
    if (parent != root) sources_record(&g->sources, 0, parent);
    return true;
}

// --- a tree of the likeliest paths

// The best tokens and ln of their chances, by the logits in g->logits.
static void rank_logits(const Dflash *g, int *ids, float *log_p) {
    int real = g->draft->shape.real_vocab, count = 0;
    for (int v = 0; v < real; v++) {
        int at = count < g->top ? count++ : g->top;
        for (; at > 0 && g->logits[v] > g->logits[ids[at - 1]]; at--)
            if (at < g->top) ids[at] = ids[at - 1];
        if (at < g->top) ids[at] = v;
    }
    float highest = g->logits[ids[0]], sum = (float)-log(top_chance(g->logits, real, highest));
    for (int i = 0; i < g->top; i++) log_p[i] = g->logits[ids[i]] - highest - sum;
}

// Adds the children of a guess, of the next row.
static bool branch(Dflash *g, int guess, int token, Error *e) {
    int row = guess == ROOT ? g->first : g->pool[guess].row + 1, *ids = g->ids + row * g->top;
    float *log_p = g->log_p + row * g->top, *state = state_of(g, guess);
    double confidence, score = guess == ROOT ? 0 : g->pool[guess].score;
    if (row - g->first == g->guesses) return true;
    if (g->block.markov) {
        if (!follow(g, row, token, state, &confidence, e)) return false;
        rank_logits(g, ids, log_p);
    }
    for (int i = 0; i < g->top; i++) {
        int child = g->pool_count++, id = g->drafter.ids ? g->drafter.ids[ids[i]] : ids[i];
        assert(child < g->pool_most);
        g->pool[child] = (Guess){.parent = guess, .token = id, .row = row, .score = score + (double)log_p[i]};
        memcpy(state_of(g, child), state, (size_t)g->block.rank * sizeof *state);
    }
    return true;
}

// The likeliest guess that isn't taken, of equals the first; ROOT: none.
static int likeliest(const Dflash *g) {
    int best = ROOT;
    for (int i = 0; i < g->pool_count; i++)
        if (!g->pool[i].taken && (best == ROOT || g->pool[i].score > g->pool[best].score)) best = i;
    return best;
}

// Without a Markov head a row's tokens don't depend on the guess in front: all are read at once.
static bool read_rows(Dflash *g, Error *e) {
    int nodes[BLOCK_MOST], at = g->first * g->top;
    if (g->block.markov) return session_read(g->draft, HEAD_ARGMAX | HEAD_LOGITS, e);
    for (int i = 0; i < g->guesses; i++) nodes[i] = g->first + i;
    return session_likeliest(g->draft, nodes, g->guesses, g->top, g->ids + at, g->log_p + at, e);
}

static bool propose_tree(Dflash *g, Tree *tree, int root, Error *e) {
    g->pool_count = 0;
    memset(state_of(g, ROOT), 0, (size_t)g->block.rank * sizeof *g->states);
    if (!read_rows(g, e) || !branch(g, ROOT, tree->token[root], e)) return false;
    for (int rows = 1, best; rows < g->p.total && (best = likeliest(g)) != ROOT; rows++) {
        Guess *x = &g->pool[best];
        int parent = x->parent == ROOT ? root : g->pool[x->parent].placed;
        x->taken = true;
        x->placed = tree_propose(tree, parent, x->token);
        if (x->placed == TREE_NONE) continue;
        if (x->parent != ROOT) g->pool[x->parent].inner = true;
        if (rows + 1 < g->p.total && !branch(g, best, x->token, e)) return false;
    }
    for (int i = 0; i < g->pool_count; i++)
        if (g->pool[i].taken && g->pool[i].placed != TREE_NONE && !g->pool[i].inner)
            sources_record(&g->sources, 0, g->pool[i].placed);
    return true;
}

// --- a step

// With LAYOUT_BATCH the guesses go below the first row.
static bool dflash_propose(void *self, Tree *tree, Error *e) {
    Dflash *g = self;
    int root = tree_row(tree);
    Session *s = g->draft;
    bool follows, tries = pace_step(&g->pace, g->target) > 0;
    g->sources.count = 0;
    if (!catch_up(g, &follows, e)) return false;
    bool room = s->cache.length + g->block.rows <= s->context && g->block.rows <= s->tree.capacity;
    if (!follows || !tries || !room) return true;
    session_begin_block(s, g->block.rows, tree->token[root]);
    return session_run(s, s->shape.layers, e) &&
           (g->p.tree == TREE_BEST ? propose_tree(g, tree, root, e) : propose_chain(g, tree, root, e));
}

// The states of the root and of the accepted guesses.
static bool dflash_observe(void *self, const Observation *seen, Error *e) {
    Dflash *g = self;
    int path[TREE_MAX_NODES];
    tree_path(&g->target->tree, seen->verdict->node, path);
    pace_observe(&g->pace, seen);
    g->length = seen->length;
    g->pending = seen->emitted_count <= g->capacity ? seen->emitted_count : 0;
    for (int i = 0; i < g->pending; i++) {
        g->tokens[i] = g->target->tree.token[path[i]];
        if (!hidden_keep(&g->rows, i, g->target, path[i], HIDDEN_CAPTURED, e)) return false;
    }
    dflash_check(g);
    return true;
}

static bool dflash_chain(const void *self) {
    const Dflash *g = self;
    return !g->drafter.greedy && g->p.tree == TREE_CHAIN;
}

static void dflash_work(const void *self, StepWork *out) {
    const Dflash *g = self;
    const Shape *draft = &g->draft->shape;
    *out = (StepWork){.longest = g->guesses + 1, .rows = g->guesses + 1, .draft_count = 1};
    if (g->p.tree == TREE_BEST) out->rows = g->p.total;
    out->drafts[0] = (DraftWork){draft, draft->layers, true, 1, g->block.rows};
}

const MethodInfo method_dflash = {
    METHOD_ROW(dflash, Dflash),
    .name = "dflash",
    .summary =
        "a draft over the target's states guesses a block in one forward (--dflash DIR; DFlash, DSpark)",
    .needs = NEEDS_DFLASH,
    .captures = dflash_captures,
    .chain = dflash_chain};
