// EAGLE (Li et al.): a draft of one layer that reads the target's own states, and below them its own outputs.
//
//      target's text    t0   t1   t2 (root)        draft's row i: token t(i+1), the target's state f(i)
//      draft's rows     t1   t2 | a --- c          below them each guess: its token, its parent's output
//                       f0   f1 |  \-- d
//
// A step of the draft begins with rows for the tokens that the target's last step emitted, which stay in its
// cache. Its guesses grow level by level below the last of them, the root's, and are dropped afterwards.
//
// tree=dynamic (EAGLE-2): a guess's score is the sum of ln p along its path. The `top` best of each level
// are run, `depth` times; of all guesses the total - 1 best are tried, in the order of their making. Equal
// scores go to the earlier guess, so a parent is never left out. Otherwise a fixed tree of ranks (EAGLE-1).
// Guesses are one-hots, also when sampling.
//
// parallel (P-EAGLE): a draft that was trained for it guesses all levels in one forward. Rows of its mask,
// whose token and states stand for those to come, follow the last given row, and the level of a guess reads
// the row as far behind it; so the guesses of a level have the same children.
//
//      draft's rows     t1   t2   m    m           level 1 reads t2's row, level 2 the first mask's, ..
//                       f0   f1   s    s
//
// adaptive: of a chain (tree=dynamic, top=1) the length follows pace.h. At a length of 0 the draft still
// reads the tokens of the target's last step, so its cache stays complete.
//
// mtp: a layer that models ship with (INPUT_MTP). Which of two states it reads isn't in its files: h_0 is the
// target's last residual stream or the final norm's output (`state`). Below a guess it's the layer's output,
// which children read by themselves, or its last norm's, which they are given (`recycle`).
//
// Invariants between steps (eagle_check): the draft's cache and the pending rows together are one row for
// each token of the sequence except the first, or the draft rests until the next prompt; a guess comes after
// its parent.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/core/hidden.h"
#include "engine/core/shared.h"
#include "engine/decode/pace.h"
#include "engine/decode/rank_tree.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NO_TOKEN = -1, MOST_DEPTH = 30, MOST_TOP = 32, ROOT = -1 };

typedef struct EagleParams {
    int total, depth, top;
    char tree[ARG_TEXT_SIZE];
    int parallel;
    PaceParams pace;           // of a chain
    int gamma, state, recycle; // mtp's; gamma 0: depth
} EagleParams;

typedef enum { STATE_AUTO, STATE_RAW, STATE_NORMED } State;
static const char *const STATES[] = {"auto", "raw", "normed", NULL};

#define AT(name) offsetof(EagleParams, name)
static const Arg PARAMS[] = {
    {"total", ARG_INT, AT(total), 2, TREE_MAX_NODES, "60",
     .help = "most rows per step, root included (dynamic)"},
    {"depth", ARG_INT, AT(depth), 0, MOST_DEPTH, "7", .help = "levels run below the first guesses (dynamic)"},
    {"top", ARG_INT, AT(top), 1, MOST_TOP, "10",
     .help = "guesses run per level, and made below each (dynamic)"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "dynamic",
     .help = "dynamic; else static (EAGLE-1's) or another of " RANK_TREE_HELP},
    {"parallel", ARG_CHOICE, AT(parallel), .fallback = "auto", .choices = parallel_kinds, .added = true,
     .help = "one forward for all levels (P-EAGLE); auto: if the draft's config has a mask"},
    PACE_PARAMS(AT(pace), "0.4", true),
};

static const Arg MTP_PARAMS[] = {
    {"gamma", ARG_INT, AT(gamma), 1, MOST_DEPTH + 1, "1", .help = "tokens guessed in a row"},
    {"top", ARG_INT, AT(top), 1, MOST_TOP, "1", .help = "above 1 a tree: eagle's top, gamma levels deep"},
    {"total", ARG_INT, AT(total), 2, TREE_MAX_NODES, "60", .help = "most rows of such a tree"},
    {"tree", ARG_TEXT, AT(tree), .fallback = "dynamic", .help = "as eagle's; a fixed one has no gamma"},
    {"state", ARG_CHOICE, AT(state), .fallback = "auto", .choices = STATES,
     .help = "the target's, before its final norm (raw) or after it; auto: by the draft's config"},
    {"recycle", ARG_CHOICE, AT(recycle), .fallback = "auto", .choices = STATES,
     .help = "the layer's own, below the first guess: before its last norm or after it"},
    PACE_PARAMS(AT(pace), "0.4", true),
};

static const char *const SOURCES[] = {"draft", NULL};

typedef struct Guess {
    int parent; // an earlier guess, or ROOT
    int token;  // of the target; NO_TOKEN: the draft has none of that rank
    float score;
    int node;    // in the draft's tree, once it is to be run
    int placed;  // in the target's tree, or TREE_NONE
    bool chosen; // to be tried
} Guess;

typedef struct Eagle {
    EagleParams p;
    Session *target, *draft;
    Captures captures;    // the target's layers that it reads; none: the final normed state
    const int *draft_ids; // (vocab of the draft): the target's ids; NULL: the same
    bool dynamic;
    int k;                          // guesses made below a node
    RankTree fixed;                 // unless dynamic
    Guess *pool;                    // (pool_count): the open step's guesses, in the order of their making
    Guess **order;                  // the same number
    int *frontier;                  // (most_frontier): guesses that run together
    int *nodes, *ids;               // of the frontier (most_frontier), (most_frontier, k)
    float *log_p;                   // (most_frontier, k)
    int masks;                      // of a step, if it's parallel; else 0
    float *mask_rows;               // (masks, given width)
    HiddenRows states;              // rows that the draft lacks
    HiddenRows recycled;            // a normed row on its way to a child; empty: children read their parents
    int tokens[TREE_MAX_NODES + 1]; // and their tokens
    int pending, capacity;          // of both
    int length;                     // of the sequence
    int pool_count, pool_capacity, most_frontier;
    Pace pace;
    bool paced;
    int levels; // of guesses in this step, at most
    Sources sources;
} Eagle;

// --- open and close

static void eagle_close(void *self) {
    Eagle *g = self;
    rank_tree_release(&g->fixed);
    hidden_close(&g->states);
    hidden_close(&g->recycled);
    MEM_FREE(g->pool, g->order, g->frontier, g->nodes, g->ids, g->log_p, g->mask_rows);
}

static bool choose_tree(Eagle *g, Error *e) {
    const char *tree = g->p.tree;
    g->dynamic = strcmp(tree, "dynamic") == 0;
    g->k = g->p.top;
    g->pool_capacity = g->k + g->p.depth * g->k * g->k;
    g->most_frontier = g->k;
    g->capacity = g->p.depth + 2;
    if (!g->dynamic) {
        if (strcmp(tree, "static") == 0) tree = "eagle";
        if (!rank_tree_read(&g->fixed, RANK_TREE_DEPTH, tree, e)) return false;
        g->k = rank_tree_width(&g->fixed);
        g->pool_capacity = g->most_frontier = g->fixed.count;
        g->capacity = RANK_TREE_DEPTH + 1;
    }
    int vocab = g->draft->shape.real_vocab;
    if (g->k > vocab) g->k = vocab;
    return true;
}

static bool choose_pace(Eagle *g, Error *e) {
    const PaceParams *p = &g->p.pace;
    int most = g->p.depth + 1 < g->p.total ? g->p.depth + 1 : g->p.total - 1;
    g->paced = pace_varies(p);
    pace_init(&g->pace, p, most, 0, most);
    return ((g->dynamic && g->p.top == 1) || pace_fixed(p, "a chain: tree=dynamic and top=1", e)) &&
           pace_read(&g->pace, e);
}

// A mask for each level but the first. A device without weights has no states of it: any will do.
static bool choose_masks(Eagle *g, const float *states, Error *e) {
    const Shape *s = &g->draft->shape;
    size_t width = (size_t)shape_given_width(s);
    if (g->p.parallel == PARALLEL_ON && !s->mask_token)
        return error_input(
            e, "parallel=on needs a draft with a mask: P-EAGLE's, whose config has a 'mask_token_id'");
    if (g->p.parallel == PARALLEL_OFF || !s->mask_token) return true;
    g->masks = g->dynamic ? g->p.depth : rank_tree_levels(&g->fixed) - 1;
    g->mask_rows = mem_new((size_t)g->masks * width + 1, sizeof *g->mask_rows);
    for (int i = 0; states && i < g->masks; i++)
        memcpy(g->mask_rows + (size_t)i * width, states, width * sizeof *states);
    return true;
}

static void take_memory(Eagle *g) {
    size_t pool = (size_t)g->pool_capacity, most = (size_t)g->most_frontier, k = (size_t)g->k;
    g->pool = mem_new(pool, sizeof *g->pool);
    g->order = mem_new(pool, sizeof *g->order);
    g->frontier = mem_new(most, sizeof *g->frontier);
    g->nodes = mem_new(most, sizeof *g->nodes);
    g->ids = mem_new(most * k, sizeof *g->ids);
    g->log_p = mem_new(most * k, sizeof *g->log_p);
}

static bool eagle_open(void *self, const MethodEnv *env, Error *e) {
    Eagle *g = self;
    if (g->p.gamma) g->p.depth = g->p.gamma - 1;
    g->target = env->target;
    g->draft = env->adapter->sessions;
    g->draft_ids = env->adapter->draft_ids;
    if (env->adapter->captures && g->p.state == STATE_AUTO) g->captures = *env->adapter->captures;
    if (g->p.state == STATE_RAW) g->captures = (Captures){1, {g->target->shape.layers}};
    rank_tree_init(&g->fixed);
    if (!choose_tree(g, e) || !choose_pace(g, e) || !choose_masks(g, env->adapter->mask_states, e))
        return false;
    if (env->mixed) g->capacity = TREE_MAX_NODES + 1; // another method may have longer guesses accepted
    hidden_open(&g->states, g->target, g->draft, g->capacity);
    if (g->p.recycle ? g->p.recycle == STATE_NORMED : env->adapter->recycles_normed)
        hidden_open(&g->recycled, g->draft, g->draft, 1);
    take_memory(g);
    return true;
}

static int eagle_hidden_layer(const void *self) {
    const Eagle *g = self;
    return g->captures.count ? HIDDEN_NONE : g->target->shape.layers;
}

static const Captures *eagle_captures(const void *self) {
    const Eagle *g = self;
    return g->captures.count ? &g->captures : NULL;
}

// --- the rows that the draft lacks

static void eagle_check(const Eagle *g) {
    assert(g->pending >= 0 && g->pending <= g->capacity && g->pool_count <= g->pool_capacity);
    assert(!g->draft->open && g->draft->cache.length + g->pending <= g->length - 1);
    for (int i = 0; i < g->pool_count; i++) assert(g->pool[i].parent < i);
}

static bool keep(Eagle *g, int row, int node, int token, Error *e) {
    g->tokens[row] = token;
    return hidden_keep(&g->states, row, g->target, node, g->captures.count ? HIDDEN_CAPTURED : HIDDEN_NORMED,
                       e);
}

// All rows of the prompt but the last go into the draft's cache; the last one is the first step's. Its state
// is that of the token before the root, with which the prompt's run ended.
static bool eagle_begin(void *self, const Prompt *prompt, Error *e) {
    Eagle *g = self;
    g->pending = g->pool_count = 0;
    g->length = prompt->count;
    pace_begin(&g->pace);
    session_reset(g->draft);
    if (prompt->count == 1 || prompt->count - 2 > g->draft->context) return true;
    if (!session_prefill_hidden(g->draft, prompt->tokens + 1, prompt->count - 2, prompt->hidden, e) ||
        !keep(g, 0, g->target->tree.count - 1, prompt->tokens[prompt->count - 1], e))
        return false;
    g->pending = 1;
    eagle_check(g);
    return true;
}

// Adds as many masks as there's room for behind the pending rows.
static bool add_masks(Eagle *g, int end, Error *e) {
    Session *s = g->draft;
    int first = end + 1, room = tree_room(&s->tree), count = g->masks < room ? g->masks : room;
    for (int i = 0; i < count; i++) {
        int node = tree_probe(&s->tree, end + i, s->shape.mask_token, false);
        if (node == TREE_NONE) count = i; // there are no positions left
        assert(node == TREE_NONE || node == first + i);
    }
    return !count || session_set_hidden(s, first, count, g->mask_rows, e);
}

// Whether a device makes the guesses, one below the other, without the host in between.
static bool grows_chain(const Eagle *g) {
    return (g->dynamic ? g->k : rank_tree_width(&g->fixed)) == 1 && !g->masks && !g->recycled.rows &&
           !pace_asks_confidence(&g->p.pace) && session_chains(g->draft);
}

// Runs the pending rows, or leaves them to the chain, in a new step of the draft, and masks behind them.
// *end: the last pending one's node, or TREE_NONE: it rests.
static bool catch_up(Eagle *g, int *end, Error *e) {
    Session *s = g->draft;
    *end = TREE_NONE;
    int room = s->context - s->cache.length;
    bool follows = g->pending && s->cache.length + g->pending == g->length - 1;
    if (!follows || g->pending > room || g->pending > s->tree.capacity) return true;
    session_begin_step(s, false, LAYOUT_TREE);
    *end = tree_root(&s->tree, g->tokens[0]);
    g->levels = g->paced ? pace_step(&g->pace, g->target) : g->dynamic ? g->p.depth + 1 : g->fixed.count;
    bool guesses = g->levels > 0, chain = guesses && grows_chain(g);
    for (int i = 1; i < g->pending; i++)
        *end = tree_probe(&s->tree, *end, g->tokens[i], chain && i == g->pending - 1);
    assert(*end == g->pending - 1);
    for (int i = 0; i < g->pending; i++)
        if (!hidden_give(&g->states, i, s, i, e)) return false;
    // A device may grow the whole tree at once.
    bool ahead = g->dynamic && !g->masks && !g->recycled.rows && !g->paced;
    return chain || ((!guesses || add_masks(g, *end, e)) &&
                     (!ahead || session_grow(s, *end, g->k, g->p.depth, g->draft_ids, e)) &&
                     session_run(s, s->shape.layers, e));
}

// --- guesses

static Guess *add_guess(Eagle *g, int parent, int token, float score) {
    assert(g->pool_count < g->pool_capacity);
    Guess *x = &g->pool[g->pool_count++];
    *x = (Guess){.parent = parent, .token = token, .score = score, .placed = TREE_NONE};
    return x;
}

static int target_id(const Eagle *g, int id) { return g->draft_ids ? g->draft_ids[id] : id; }

// Reads the likeliest ids below the frontier of a level; ROOT is alone, at the node `end`.
static bool read_frontier(Eagle *g, int level, int count, int end, Error *e) {
    size_t k = (size_t)g->k;
    if (g->masks) {
        int row = end + level;
        if (!session_likeliest(g->draft, &row, 1, g->k, g->ids, g->log_p, e)) return false;
        for (size_t i = 1; i < (size_t)count; i++) {
            memcpy(g->ids + i * k, g->ids, k * sizeof *g->ids);
            memcpy(g->log_p + i * k, g->log_p, k * sizeof *g->log_p);
        }
        return true;
    }
    for (int i = 0; i < count; i++) g->nodes[i] = g->frontier[i] == ROOT ? end : g->pool[g->frontier[i]].node;
    return session_likeliest(g->draft, g->nodes, count, g->k, g->ids, g->log_p, e);
}

// Runs a level of guesses, below nodes that were run; *ran is false if they don't all fit into the draft. In
// parallel the row of the next level has been run.
static bool run_frontier(Eagle *g, int level, int count, int end, bool *ran, Error *e) {
    Session *s = g->draft;
    *ran = count > 0 && (g->masks ? end + level < s->tree.count : tree_room(&s->tree) >= count);
    if (g->masks) return true;
    for (int i = 0; *ran && i < count; i++) {
        Guess *x = &g->pool[g->frontier[i]];
        int parent = x->parent == ROOT ? end : g->pool[x->parent].node;
        x->node = tree_probe(&s->tree, parent, x->token, false);
        *ran = x->node != TREE_NONE; // a level has one position: the first guess finds no room, or all do
        if (*ran && g->recycled.rows &&
            !(hidden_keep(&g->recycled, 0, s, parent, HIDDEN_NORMED, e) &&
              hidden_give(&g->recycled, 0, s, x->node, e)))
            return false;
    }
    return !*ran || session_run(s, s->shape.layers, e);
}

// --- the dynamic tree

static int by_score(const void *a, const void *b) {
    const Guess *x = *(Guess *const *)a, *y = *(Guess *const *)b;
    return guess_before(x->score, 0, y->score, (int)(y - x)) ? -1 : x != y;
}

// Sorts guesses from `first` on into `order`, the best first; returns how many of `most` there are.
static int sort_guesses(Eagle *g, int first, int most) {
    int count = g->pool_count - first;
    for (int i = 0; i < count; i++) g->order[i] = &g->pool[first + i];
    qsort(g->order, (size_t)count, sizeof *g->order, by_score);
    return count < most ? count : most;
}

static bool grow_dynamic(Eagle *g, int end, Error *e) {
    int count = 1;
    bool ran = true;
    g->frontier[0] = ROOT;
    for (int level = 0; ran; level++) {
        int first = g->pool_count;
        if (!read_frontier(g, level, count, end, e)) return false;
        for (int i = 0; i < count * g->k; i++) {
            int parent = g->frontier[i / g->k];
            float score = parent == ROOT ? 0 : g->pool[parent].score;
            add_guess(g, parent, target_id(g, g->ids[i]), score + g->log_p[i]);
        }
        bool ends = g->paced && pace_ends(&g->pace, ROOT, exp((double)g->log_p[0]));
        if (ends || level == g->p.depth) break;
        count = sort_guesses(g, first, g->k);
        for (int i = 0; i < count; i++) g->frontier[i] = (int)(g->order[i] - g->pool);
        if (!run_frontier(g, level + 1, count, end, &ran, e)) return false;
    }
    int chosen = sort_guesses(g, 0, g->p.total - 1);
    for (int i = 0; i < chosen; i++) g->order[i]->chosen = true;
    return true;
}

// --- a fixed tree: its nodes are the guesses

static bool has_child(const RankTree *t, int node) {
    for (int i = node + 1; i < t->count; i++)
        if (t->nodes[i].parent == node) return true;
    return false;
}

// Gives the frontier's children their tokens and makes those with children of their own the next frontier.
static int name_children(Eagle *g, int count) {
    int *next = g->nodes, n = 0; // no node is asked for now
    for (int f = 0; f < count; f++)
        for (int i = 0; i < g->fixed.count; i++) {
            const RankNode *node = &g->fixed.nodes[i];
            if (node->parent != g->frontier[f] || node->rank >= g->k) continue;
            g->pool[i].token = target_id(g, g->ids[f * g->k + node->rank]);
            g->pool[i].chosen = true;
            if (has_child(&g->fixed, i)) next[n++] = i;
        }
    memcpy(g->frontier, next, (size_t)n * sizeof *next);
    return n;
}

static bool grow_fixed(Eagle *g, int end, Error *e) {
    int count = 1;
    bool ran = true;
    for (int i = 0; i < g->fixed.count; i++) add_guess(g, g->fixed.nodes[i].parent, NO_TOKEN, 0);
    g->frontier[0] = ROOT;
    for (int level = 0; ran; level++) {
        if (!read_frontier(g, level, count, end, e)) return false;
        count = name_children(g, count);
        if (!run_frontier(g, level + 1, count, end, &ran, e)) return false;
    }
    return true;
}

// --- a chain of either kind: no score matters, since none is larger than its parent's

static bool grow_chain(Eagle *g, int end, Error *e) {
    int ids[MOST_DEPTH + 1], levels = g->levels, made;
    if (!session_chain(g->draft, end, g->draft_ids, levels, ids, &made, e)) return false;
    for (int i = 0; i < (g->dynamic ? made : levels); i++) {
        Guess *x = add_guess(g, i - 1, i < made ? ids[i] : NO_TOKEN, 0);
        x->chosen = i < made && (!g->dynamic || i < g->p.total - 1);
    }
    return true;
}

// --- a step

// With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
static void place(Eagle *g, Tree *tree, int root) {
    int made = 0;
    for (int i = 0; i < g->pool_count; i++) {
        Guess *x = &g->pool[i];
        assert(!x->chosen || x->parent == ROOT || g->pool[x->parent].chosen);
        if (x->chosen)
            x->placed = tree_propose(tree, x->parent == ROOT ? root : g->pool[x->parent].placed, x->token);
        if (!g->dynamic) g->fixed.placed[i] = x->placed;
        if (x->placed != TREE_NONE) g->pace.last = x->placed, made++;
    }
    if (g->paced) g->pace.drafted = made;
}

// Records the paths to the placed leaves, as rows of the only source.
static void record(Eagle *g) {
    for (int i = 0; i < g->pool_count; i++) g->pool[i].chosen = g->pool[i].placed != TREE_NONE;
    for (int i = 0; i < g->pool_count; i++)
        if (g->pool[i].placed != TREE_NONE && g->pool[i].parent != ROOT)
            g->pool[g->pool[i].parent].chosen = false;
    for (int i = 0; i < g->pool_count; i++)
        if (g->pool[i].chosen) sources_record(&g->sources, 0, g->pool[i].placed);
}

static bool eagle_propose(void *self, Tree *tree, Error *e) {
    Eagle *g = self;
    int root = tree_row(tree), end;
    g->sources.count = g->pool_count = 0;
    if (!catch_up(g, &end, e)) return false;
    if (end == TREE_NONE) return true;
    if (g->levels > 0 && !(grows_chain(g) ? grow_chain : g->dynamic ? grow_dynamic : grow_fixed)(g, end, e))
        return false;
    place(g, tree, root);
    record(g);
    int rows = g->pending;
    g->pending = 0;
    return session_commit(g->draft, end, rows, e);
}

// The states of the root and of the accepted guesses, each with the token that follows it.
static bool eagle_observe(void *self, const Observation *seen, Error *e) {
    Eagle *g = self;
    int path[TREE_MAX_NODES];
    tree_path(&g->target->tree, seen->verdict->node, path);
    pace_observe(&g->pace, seen);
    g->length = seen->length;
    g->pending = seen->emitted_count <= g->capacity ? seen->emitted_count : 0;
    for (int i = 0; i < g->pending; i++)
        if (!keep(g, i, path[i], seen->emitted[i], e)) return false;
    eagle_check(g);
    return true;
}

static const RankTree *eagle_rank_tree(const void *self) {
    const Eagle *g = self;
    return !g->dynamic && g->pool_count ? &g->fixed : NULL;
}

static void eagle_work(const void *self, StepWork *out) {
    const Eagle *g = self;
    const Shape *draft = &g->draft->shape;
    int levels = g->dynamic ? g->p.depth + 1 : rank_tree_levels(&g->fixed),
        rows = g->dynamic ? 1 + g->p.depth * g->p.top : g->fixed.count;
    *out = (StepWork){.longest = levels + 1, .draft_count = 1};
    out->rows = g->dynamic && g->p.total <= g->pool_capacity ? g->p.total : g->pool_capacity + 1;
    out->drafts[0] = (DraftWork){draft, draft->layers, true, levels, rows};
    // As many rows as a step emits at most, and masks.
    if (g->masks) out->drafts[0] = (DraftWork){draft, draft->layers, true, 1, levels + 1 + g->masks};
}

#define EAGLE_ROWS(params)                                                                            \
    METHOD_ROW_OF(eagle, Eagle, params), .source_names = SOURCES, .hidden_layer = eagle_hidden_layer, \
                                         .captures = eagle_captures, .rank_tree = eagle_rank_tree

const MethodInfo method_eagle = {
    .name = "eagle",
    .summary =
        "a layer that reads the target's last state drafts a tree (--eagle DIR; EAGLE-1, EAGLE-2, HASS)",
    .needs = NEEDS_EAGLE,
    EAGLE_ROWS(PARAMS)};

const MethodInfo method_eagle3 = {
    .name = "eagle3",
    .summary = "the same with states of several of the target's layers (--eagle3 DIR; EAGLE-3, P-EAGLE)",
    .needs = NEEDS_EAGLE3,
    EAGLE_ROWS(PARAMS)};

const MethodInfo method_mtp = {
    .name = "mtp",
    .summary = "drafts as eagle does, by the MTP layer in the model's own files, or another (--mtp DIR)",
    .needs = NEEDS_MTP,
    EAGLE_ROWS(MTP_PARAMS)};
