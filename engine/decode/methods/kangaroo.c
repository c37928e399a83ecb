// Kangaroo (Liu et al.): the target's own first l layers and a small adapter are the draft. A guess runs
// through layers [0, l) of the target as a node of its tree, the adapter reads the state f there, and the
// target's head gives the next guess:
//
//      target's tree   x ---- d1 ---- d2 ---- d3          [0, l) one by one, [l, L) all at once by the loop
//                      f0     f1      f2      f3
//      adapter's chain f0 --> f1 ---> f2                   f3 is not read: there is no fourth guess
//
// Drafting ends at gamma guesses, or after the first guess whose best token had a chance of at most eta
// (Eq. 4). That guess is kept and verified: whether a guess is proposed must not depend on its token.
//
// Invariant between steps: the first `pending` exits are the states of the tokens that the adapter's cache
// lacks, except the last token, which is the next step's root. After a full acceptance that is one token: f3
// here, and the next step feeds the adapter two rows.
#include "engine/decode/methods/methods.h"

#include "engine/core/hidden.h"
#include "engine/decode/draft.h"
#include "engine/decode/pace.h"

#include <assert.h>
#include <string.h>

enum { LONGEST = TREE_MAX_NODES - 3 };

typedef struct KangarooParams {
    int gamma;
    double eta;
    bool strict;
    int exit_layer;
    PaceParams pace;
    DraftSampling sampling;
} KangarooParams;

#define AT(name) offsetof(KangarooParams, name)
static const Arg PARAMS[] = {
    {"gamma", ARG_INT, AT(gamma), 1, LONGEST, "6", .help = "most tokens drafted"},
    {"eta", ARG_REAL, AT(eta), 0, 1, "0.6", .help = "end when the best token's chance is at most eta"},
    {"strict", ARG_FLAG, AT(strict), .fallback = "off",
     .help = "end only below eta, as in the authors' code"},
    {"exit_layer", ARG_INT, AT(exit_layer), 0, 1000, "0",
     .help = "the layer that the adapter must be for; 0: any"},
    DRAFT_SAMPLING_PARAMS(AT(sampling)),
    PACE_PARAMS(AT(pace), "0.6", true),
};

static const char *const SOURCES[] = {"adapter", NULL};

typedef struct Kangaroo {
    KangarooParams p;
    Session *target;
    Follower follower; // the adapter's
    Drafter drafter;
    Pace pace;           // at least one guess: a step without one would leave the adapter without states
    HiddenRows exits;    // states at layer l, from the first token that the adapter lacks
    int start, capacity; // exit i is in row (start + i) mod capacity
    int pending;         // exits left for the next step
    int run;             // exits of this step
    int guessed;         // the last guess of this step
    Sources sources;
} Kangaroo;

static void kangaroo_close(void *self) {
    Kangaroo *k = self;
    follower_release(&k->follower);
    drafter_release(&k->drafter);
    hidden_close(&k->exits);
}

static bool kangaroo_open(void *self, const MethodEnv *env, Error *e) {
    Kangaroo *k = self;
    KangarooParams *p = &k->p;
    if (p->exit_layer && p->exit_layer != env->adapter->layer)
        return error_input(
            e,
            "'exit_layer' is %d, the adapter was made for layer %d: each layer needs an adapter of its "
            "own (in a config a model entry for each adapter: see configs/README.md)",
            p->exit_layer, env->adapter->layer);
    p->exit_layer = env->adapter->layer;
    k->target = env->target;
    k->capacity = p->gamma + 2 + (env->mixed ? TREE_MAX_NODES : 0);
    // In a mix, some of the exits come from the host.
    hidden_open(&k->exits, env->target, env->mixed ? NULL : env->adapter->sessions, k->capacity);
    follower_init(&k->follower, env->adapter->sessions, env->target->context);
    drafter_init(&k->drafter, env->adapter->sessions, env->target->shape.vocab, &p->sampling, &env->sampling,
                 p->eta > 0 || pace_asks_confidence(&p->pace));
    pace_init(&k->pace, &p->pace, p->gamma, 1, p->gamma);
    return pace_read(&k->pace, e);
}

static int kangaroo_hidden_layer(const void *self) { return ((const Kangaroo *)self)->p.exit_layer; }

static void kangaroo_check(const Kangaroo *k) {
    assert(k->capacity >= k->p.gamma + 2 && k->start >= 0 && k->start < k->capacity);
    assert(k->pending >= 0 && k->pending <= k->capacity && k->run >= 0 && k->run <= k->capacity);
    assert(k->sources.count <= 1);
}

static bool kangaroo_begin(void *self, const Prompt *prompt, Error *e) {
    Kangaroo *k = self;
    k->pending = k->run = 0;
    pace_begin(&k->pace);
    drafter_begin(&k->drafter, prompt->seed);
    return follower_begin(&k->follower, prompt->tokens, prompt->count, prompt->hidden, e);
}

static int row_of(const Kangaroo *k, int exit) {
    assert(exit >= 0 && exit < k->capacity);
    return (k->start + exit) % k->capacity;
}

// Runs a node of the target's tree, with all before it, through the shallow layers and keeps its state.
static bool run_shallow(Kangaroo *k, int node, Error *e) {
    return session_run(k->target, k->p.exit_layer, e) &&
           hidden_keep(&k->exits, row_of(k, k->run++), k->target, node, HIDDEN_RAW, e);
}

// Runs the adapter's chain from node `first` on; its states are the last ones kept.
static bool run_adapter(Kangaroo *k, int first, Error *e) {
    Session *s = k->follower.session;
    int behind = k->run - s->tree.count; // offset of a node's exit
    for (int node = first; node < s->tree.count; node++)
        if (!hidden_give(&k->exits, row_of(k, node + behind), s, node, e)) return false;
    return session_run(s, s->shape.layers, e);
}

static bool kangaroo_propose(void *self, Tree *tree, Error *e) {
    Kangaroo *k = self;
    int parent = tree_row(tree), first = 0, node = TREE_NONE;
    if (follower_missing(&k->follower) == k->pending + 1) node = follower_catch_up(&k->follower);
    k->run = k->pending;
    pace_step(&k->pace, k->target);
    if (node != TREE_NONE && !run_shallow(k, parent, e)) return false;
    while (node != TREE_NONE) {
        Draft d;
        if (!run_adapter(k, first, e) || !drafter_propose(&k->drafter, node, tree, parent, &d, e))
            return false;
        if (d.node == TREE_NONE) break;
        if (!run_shallow(k, d.node, e)) return false;
        parent = d.node;
        k->guessed = d.token;
        bool unsure = k->p.strict ? d.confidence < k->p.eta : d.confidence <= k->p.eta;
        bool last = pace_ends(&k->pace, d.node, d.confidence) || unsure;
        first = node = last ? TREE_NONE : follower_guess(&k->follower, node, d.token);
    }
    k->sources.count = 0;
    if (tree->depth[parent] > 0) sources_record(&k->sources, 0, parent);
    kangaroo_check(k);
    return true;
}

// In a mix, the adapter may lack tokens that another method proposed: their states come from the step itself.
// If this method didn't draft, it also lacks those before the step, whose states are pending.
static void take_states(Kangaroo *k, const Observation *seen) {
    int path[TREE_MAX_NODES], before = seen->length - seen->emitted_count;
    int lacks = follower_missing(&k->follower) - 1, first = k->follower.session->cache.length - before + 1;
    tree_path(&k->target->tree, seen->verdict->node, path);
    int known = first < 0 && k->pending == -first ? k->pending : 0;
    k->pending = first + known >= 0 && lacks <= k->capacity ? lacks : 0;
    for (int i = known; i < k->pending; i++)
        memcpy(k->exits.rows + (size_t)row_of(k, i) * k->exits.width,
               seen->hidden + (size_t)path[first + i] * k->exits.width, k->exits.width * sizeof(float));
}

// The adapter may lack the last guess, whose state was kept. If it lacks any other token, for instance
// because its context is too short, it rests until the next prompt.
static bool kangaroo_observe(void *self, const Observation *seen, Error *e) {
    Kangaroo *k = self;
    Follower *f = &k->follower;
    int before = f->session->cache.length;
    pace_observe(&k->pace, seen);
    if (!follower_settle(f, seen->emitted, seen->emitted_count, e)) return false;
    int taken = f->session->cache.length - before;
    if (seen->hidden) {
        take_states(k, seen);
        return true;
    }
    k->pending = follower_missing(f) == 2 && k->run == taken + 1 && f->sequence[f->length - 2] == k->guessed;
    if (k->pending) k->start = row_of(k, taken);
    kangaroo_check(k);
    return true;
}

static bool kangaroo_chain(const void *self) { return !((const Kangaroo *)self)->drafter.greedy; }

static void kangaroo_work(const void *self, StepWork *out) {
    const Kangaroo *k = self;
    const Shape *adapter = &k->follower.session->shape;
    int gamma = k->p.gamma;
    *out = (StepWork){.longest = gamma + 1, .rows = gamma + 1, .draft_count = 2};
    out->drafts[0] = (DraftWork){adapter, adapter->layers, true, gamma, gamma};
    out->drafts[1] = (DraftWork){&k->target->shape, k->p.exit_layer, false, gamma, gamma};
}

const MethodInfo method_kangaroo = {METHOD_ROW(kangaroo, Kangaroo),
                                    .name = "kangaroo",
                                    .summary =
                                        "the target's first layers and an adapter draft (--adapter DIR)",
                                    .needs = NEEDS_ADAPTER,
                                    .may_rest = true,
                                    .hidden_layer = kangaroo_hidden_layer,
                                    .chain = kangaroo_chain};
