// Speculative decoding (Leviathan et al.; Chen et al.): a small model of the same vocabulary drafts a chain
// of gamma tokens, one forward each; the target verifies them all in one.
//
//      draft:   .. x | d1 d2 d3       one forward per token; the last token is not run
//      target:  x d1 d2 d3            one forward; accepts a prefix and adds the token after it
//
// parallel (PARD): a draft that was trained for it guesses in one forward. Rows of its mask token stand for
// the tokens to come, and each predicts the token behind its own place; their keys and values are dropped.
//
//      draft:   .. x m m              one forward: d1 after x, d2 and d3 after the masks
//
// tree=chain. Else the guesses are a tree of a fixed shape (SpecInfer, Sequoia): its levels take one forward
// each, and siblings are the draft's best tokens, or drawn from it without replacement.
//
// A chain's length may adapt (pace.h). In a step without guesses the draft isn't run: the next one that
// guesses reads all tokens that it lacks.
//
// Invariant between steps: the follower has the whole sequence.
#include "engine/decode/methods/methods.h"

#include "engine/decode/draft.h"
#include "engine/decode/pace.h"

#include <assert.h>
#include <string.h>

enum { LONGEST = TREE_MAX_NODES - 2 };

typedef struct SpeculativeParams {
    int gamma;
    char tree[ARG_TEXT_SIZE];
    int parallel;
    PaceParams pace;
    DraftSampling sampling;
} SpeculativeParams;

const char *const parallel_kinds[] = {"auto", "on", "off", NULL};

#define AT(name) offsetof(SpeculativeParams, name)
static const Arg PARAMS[] = {
    {"gamma", ARG_INT, AT(gamma), 1, LONGEST, "5",
     .help = "tokens drafted; adaptive=heuristic starts here, learned takes no more"},
    PACE_PARAMS(AT(pace), "0.4", false),
    DRAFT_SAMPLING_PARAMS(AT(sampling)),
    {"tree", ARG_TEXT, AT(tree), .fallback = "chain", .added = true,
     .help = "chain: gamma tokens; else " RANK_TREE_HELP},
    {"parallel", ARG_CHOICE, AT(parallel), .fallback = "auto", .choices = parallel_kinds, .added = true,
     .help =
         "one forward for all guesses (PARD); auto: if the draft's config has pard_token, and tree=chain"},
};

static const char *const SOURCES[] = {"draft", NULL};

typedef struct Speculative {
    SpeculativeParams p;
    const Session *target;
    Follower follower;
    Drafter drafter;
    bool branches; // tree isn't chain
    bool parallel;
    DraftTree tree;
    Pace pace;
    int length; // of this step, at most
    Sources sources;
} Speculative;

static void speculative_close(void *self) {
    Speculative *s = self;
    follower_release(&s->follower);
    drafter_release(&s->drafter);
    draft_tree_release(&s->tree);
}

static bool open_tree(Speculative *s, Error *e) {
    RankTree shape;
    int mask = s->follower.session->shape.mask_token;
    s->branches = strcmp(s->p.tree, "chain") != 0;
    s->parallel = s->p.parallel != PARALLEL_OFF && !s->branches && mask;
    if (s->p.parallel == PARALLEL_ON && s->branches) return error_input(e, "parallel=on needs tree=chain");
    if (s->p.parallel == PARALLEL_ON && !mask)
        return error_input(e, "parallel=on needs a draft whose config.json has a 'pard_token'");
    if (!s->branches) return true;
    if (!pace_fixed(&s->p.pace, "tree=chain", e)) return false;
    rank_tree_init(&shape);
    if (rank_tree_read(&shape, RANK_TREE_DEPTH, s->p.tree, e)) {
        draft_tree_init(&s->tree, &shape, &s->drafter);
        return true;
    }
    rank_tree_release(&shape);
    return false;
}

static bool speculative_open(void *self, const MethodEnv *env, Error *e) {
    Speculative *s = self;
    const SpeculativeParams *p = &s->p;
    s->target = env->target;
    follower_init(&s->follower, env->draft, env->target->context);
    drafter_init(&s->drafter, env->draft, env->target->shape.vocab, &p->sampling, &env->sampling,
                 pace_asks_confidence(&p->pace));
    pace_init(&s->pace, &p->pace, p->gamma, 0, p->pace.adaptive == PACE_HEURISTIC ? LONGEST : p->gamma);
    return open_tree(s, e) && pace_read(&s->pace, e);
}

static bool speculative_begin(void *self, const Prompt *prompt, Error *e) {
    Speculative *s = self;
    pace_begin(&s->pace);
    drafter_begin(&s->drafter, prompt->seed);
    return follower_begin(&s->follower, prompt->tokens, prompt->count, NULL, e);
}

// Returns the last proposal. One more than surely fit are drafted: it may be merged with another's.
static bool propose_greedy(Speculative *s, int node, Tree *tree, int *parent, Error *e) {
    int ids[LONGEST], made;
    while (node != TREE_NONE) {
        int fit = tree->limit - 1 - tree_position(tree, *parent), room = tree_room(tree);
        int most = 1 + (fit < room ? fit : room), left = s->length - s->pace.drafted;
        if (!session_chain(s->follower.session, node, NULL, left < most ? left : most, ids, &made, e))
            return false;
        for (int i = 0; i < made; i++) {
            int next = tree_propose(tree, *parent, ids[i]);
            if (next == TREE_NONE) return true;
            *parent = next;
            if (pace_ends(&s->pace, next, 1)) return true;
        }
        node = follower_guess(&s->follower, s->follower.session->tree.count - 1, ids[made - 1]);
    }
    return true;
}

static bool propose_chain(Speculative *s, int node, Tree *tree, Error *e) {
    Session *draft = s->follower.session;
    int parent = tree_row(tree), mask = draft->shape.mask_token;
    bool greedy = s->drafter.greedy && !pace_asks_confidence(&s->p.pace) && !s->parallel;
    for (int i = 1, at = node; s->parallel && at != TREE_NONE && i < s->length; i++)
        at = follower_guess(&s->follower, at, mask);
    if (greedy && !propose_greedy(s, node, tree, &parent, e)) return false;
    while (!greedy && node != TREE_NONE) {
        Draft d;
        if (!session_run(draft, draft->shape.layers, e) ||
            !drafter_propose(&s->drafter, node, tree, parent, &d, e))
            return false;
        if (d.node == TREE_NONE) break;
        parent = d.node;
        bool last = pace_ends(&s->pace, d.node, d.confidence);
        // In parallel the mask is there already, and has been run with all others.
        node = last ? TREE_NONE : follower_guess(&s->follower, node, s->parallel ? mask : d.token);
    }
    s->sources.count = 0;
    if (s->pace.drafted) sources_record(&s->sources, 0, parent);
    return true;
}

static bool speculative_propose(void *self, Tree *tree, Error *e) {
    Speculative *s = self;
    s->length = pace_step(&s->pace, s->target);
    bool guesses = s->branches || s->length > 0;
    if (guesses && !follower_approach(&s->follower, e)) return false;
    int node = guesses ? follower_catch_up(&s->follower) : TREE_NONE;
    if (!s->branches) return propose_chain(s, node, tree, e);
    // With LAYOUT_BATCH the whole tree goes below the first row, since its branches share nodes.
    if (!draft_tree_grow(&s->tree, &s->drafter, &s->follower, node, tree, e)) return false;
    s->sources.count = 0;
    rank_tree_record(&s->tree.shape, &s->sources);
    return true;
}

static bool speculative_observe(void *self, const Observation *seen, Error *e) {
    Speculative *s = self;
    pace_observe(&s->pace, seen);
    if (!follower_settle(&s->follower, seen->emitted, seen->emitted_count, e)) return false;
    assert(s->follower.length == seen->length);
    return true;
}

static bool speculative_chain(const void *self) {
    const Speculative *s = self;
    return !s->drafter.greedy && !s->branches;
}

static const RankTree *speculative_rank_tree(const void *self) {
    const Speculative *s = self;
    return s->branches ? &s->tree.shape : NULL;
}

static void speculative_work(const void *self, StepWork *out) {
    const Speculative *s = self;
    const Shape *draft = &s->follower.session->shape;
    int levels = s->branches ? rank_tree_levels(&s->tree.shape) : s->p.gamma,
        guesses = s->branches ? s->tree.shape.count : s->p.gamma;
    *out = (StepWork){.longest = levels + 1, .rows = guesses + 1, .draft_count = 1};
    out->drafts[0] = (DraftWork){draft, draft->layers, true, levels, guesses};
    // As many tokens as a step emits at most, and masks.
    if (s->parallel) out->drafts[0] = (DraftWork){draft, draft->layers, true, 1, 2 * guesses};
}

const MethodInfo method_speculative = {METHOD_ROW(speculative, Speculative),
                                       .name = "speculative",
                                       .summary = "a second, smaller model drafts (--draft DIR)",
                                       .needs = NEEDS_DRAFT,
                                       .may_rest = true,
                                       .chain = speculative_chain,
                                       .rank_tree = speculative_rank_tree};
