// Early exit (LayerSkip, Elhoushi et al.): the target's own first layers, its final norm and its head are the
// draft. A guess runs through layers [0, exit_layer) as a node of the target's tree, and the head reads it
// there. The lower layers' states, keys and values stay in the step, so verification runs only the rest:
//
//      root --- d1 --- d2 --- d3       [0, E) and the head one by one; d3, the last guess, isn't run
//      root --- d1 --- d2 --- d3       [E, L) of all, and [0, L) of d3, by the loop
//
// Unlike Kangaroo (kangaroo.c) there is no adapter, so there is nothing to follow: the target's cache has the
// keys and values of the lower layers, too. Drafting ends at gamma guesses, after a token that ends the text,
// or after a guess whose best token had a chance of at most eta.
#include "engine/decode/methods/methods.h"

#include "engine/decode/draft.h"
#include "engine/decode/pace.h"

#include <assert.h>

enum { LONGEST = TREE_MAX_NODES - 1, AUTHORS_SHARE = 4 }; // the authors leave 32 layers after 8

typedef struct EarlyExitParams {
    int exit_layer, gamma;
    double eta;
    PaceParams pace;
    DraftSampling sampling;
} EarlyExitParams;

#define AT(name) offsetof(EarlyExitParams, name)
static const Arg PARAMS[] = {
    {"exit_layer", ARG_INT, AT(exit_layer), 0, 1000, "0",
     .help = "layers that draft; 0: a quarter of the target's"},
    {"gamma", ARG_INT, AT(gamma), 1, LONGEST, "6", .help = "most tokens drafted"},
    {"eta", ARG_REAL, AT(eta), 0, 1, "0",
     .help = "end when the best token's chance is at most eta; 0: never"},
    DRAFT_SAMPLING_PARAMS(AT(sampling)),
    PACE_PARAMS(AT(pace), "0.4", true),
};

static const char *const SOURCES[] = {"exit", NULL};

typedef struct EarlyExit {
    EarlyExitParams p;
    Session *target;
    Drafter drafter;
    Pace pace;
    const int *eos; // (eos_count)
    int eos_count;
    Sources sources;
} EarlyExit;

static void early_exit_close(void *self) {
    EarlyExit *x = self;
    drafter_release(&x->drafter);
}

static bool early_exit_open(void *self, const MethodEnv *env, Error *e) {
    EarlyExit *x = self;
    EarlyExitParams *p = &x->p;
    int layers = env->target->shape.layers;
    if (p->exit_layer >= layers)
        return error_input(e, "'exit_layer' is %d, the target has %d layers: choose 1 to %d", p->exit_layer,
                           layers, layers - 1);
    if (!p->exit_layer) p->exit_layer = (layers + AUTHORS_SHARE - 1) / AUTHORS_SHARE;
    x->target = env->target;
    x->eos = env->eos;
    x->eos_count = env->eos_count;
    drafter_init(&x->drafter, env->target, env->target->shape.vocab, &p->sampling, &env->sampling,
                 p->eta > 0 || pace_asks_confidence(&p->pace));
    pace_init(&x->pace, &p->pace, p->gamma, 0, p->gamma);
    return pace_read(&x->pace, e);
}

static bool early_exit_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    EarlyExit *x = self;
    drafter_begin(&x->drafter, prompt->seed);
    pace_begin(&x->pace);
    return true;
}

static bool ends_text(const EarlyExit *x, int token) {
    for (int i = 0; i < x->eos_count; i++)
        if (x->eos[i] == token) return true;
    return false;
}

static bool early_exit_propose(void *self, Tree *tree, Error *e) {
    EarlyExit *x = self;
    int parent = tree_row(tree);
    for (bool more = pace_step(&x->pace, x->target) > 0; more && parent != TREE_NONE;) {
        if (tree_room(tree) <= 0 || tree_position(tree, parent) + 1 >= tree->limit) break;
        Draft d;
        // In a batch, or where another method has proposed the same path, the first node of the path is read.
        int node = tree->canonical[parent];
        if (!session_run(x->target, x->p.exit_layer, e)) return false;
        assert(x->target->done[node] == x->p.exit_layer);
        session_peek(x->target, node);
        if (!drafter_propose(&x->drafter, node, tree, parent, &d, e)) return false;
        if (d.node == TREE_NONE) break;
        parent = d.node;
        more =
            !pace_ends(&x->pace, d.node, d.confidence) && !ends_text(x, d.token) && d.confidence > x->p.eta;
    }
    x->sources.count = 0;
    if (parent != TREE_NONE && tree->depth[parent] > 0) sources_record(&x->sources, 0, parent);
    return true;
}

static bool early_exit_observe(void *self, const Observation *seen, UNUSED Error *e) {
    EarlyExit *x = self;
    pace_observe(&x->pace, seen);
    return true;
}

static bool early_exit_chain(const void *self) { return !((const EarlyExit *)self)->drafter.greedy; }

static void early_exit_work(const void *self, StepWork *out) {
    const EarlyExit *x = self;
    int gamma = x->p.gamma;
    *out = (StepWork){.longest = gamma + 1, .rows = gamma + 1, .draft_count = 1};
    out->drafts[0] = (DraftWork){&x->target->shape, x->p.exit_layer, true, gamma, gamma};
}

const MethodInfo method_early_exit = {METHOD_ROW(early_exit, EarlyExit),
                                      .name = "early-exit",
                                      .summary =
                                          "the target's first layers and its own head draft (LayerSkip)",
                                      .needs = NEEDS_LAYERS,
                                      .may_rest = true,
                                      .chain = early_exit_chain};
