// Speculative decoding (Leviathan et al.; Chen et al.): a small model of the same vocabulary drafts a chain
// of gamma tokens, one forward each; the target verifies them all in one.
//
//      draft:   .. x | d1 d2 d3       one forward per token; the last token is not run
//      target:  x d1 d2 d3            one forward; accepts a prefix and adds the token after it
//
// adaptive=heuristic (Hugging Face): gamma is the initial length; a full match makes it two longer, anything
// else one shorter. adaptive=confidence: the chain ends after the first token where the draft's best choice
// had at most that chance. That token is kept: whether it is proposed must not depend on which one it is.
//
// Invariant between steps: the follower has the whole sequence; 1 <= length <= LONGEST.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/draft.h"

#include <assert.h>

typedef enum { ADAPTIVE_OFF, ADAPTIVE_HEURISTIC, ADAPTIVE_CONFIDENCE } Adaptive;

enum { LONGEST = TREE_MAX_NODES - 2 };

typedef struct SpeculativeParams {
    int gamma;
    int adaptive;
    double confidence;
    DraftSampling sampling;
} SpeculativeParams;

static const char *const ADAPTIVES[] = {"off", "heuristic", "confidence", NULL};

#define AT(name) offsetof(SpeculativeParams, name)
static const Arg PARAMS[] = {
    {"gamma", ARG_INT, AT(gamma), 1, LONGEST, "5", .help = "tokens drafted; adaptive=heuristic starts here"},
    {"adaptive", ARG_CHOICE, AT(adaptive), .fallback = "off", .choices = ADAPTIVES,
     .help = "how the draft's length adapts to acceptance"},
    {"confidence", ARG_REAL, AT(confidence), 0, 1, "0.4",
     .help = "adaptive=confidence: end at this chance or below"},
    DRAFT_SAMPLING_PARAMS(AT(sampling)),
};
#undef AT

static const char *const SOURCES[] = {"draft"};

typedef struct Speculative {
    SpeculativeParams p;
    Follower follower;
    Drafter drafter;
    int length;  // tokens to draft
    int drafted; // tokens drafted in this step
    int last;    // the last one's node in the target's tree, or its root
    Sources sources;
} Speculative;

static void speculative_close(void *self) {
    Speculative *s = self;
    if (!s) return;
    follower_release(&s->follower);
    drafter_release(&s->drafter);
    mem_free(s);
}

static void *speculative_open(const MethodEnv *env, const void *values, Error *e) {
    (void)e;
    const SpeculativeParams *p = values;
    Speculative *s = mem_new(1, sizeof *s);
    *s = (Speculative){.p = *p, .sources = {.names = SOURCES, .source_count = 1}};
    follower_init(&s->follower, env->draft, env->target->context);
    drafter_init(&s->drafter, env->draft, env->target->shape.vocab, &p->sampling, &env->sampling,
                 p->adaptive == ADAPTIVE_CONFIDENCE);
    return s;
}

static bool speculative_begin(void *self, const Prompt *prompt, Error *e) {
    Speculative *s = self;
    if (!prompt_fits(prompt, s->follower.session, e)) return false;
    s->length = s->p.gamma;
    drafter_begin(&s->drafter, prompt->seed);
    return follower_begin(&s->follower, prompt->tokens, prompt->count, NULL, e);
}

static bool is_last(const Speculative *s, const Draft *d) {
    if (s->drafted + 1 == s->length) return true;
    return s->p.adaptive == ADAPTIVE_CONFIDENCE && d->confidence <= s->p.confidence;
}

static bool speculative_propose(void *self, Tree *tree, Error *e) {
    Speculative *s = self;
    Session *draft = s->follower.session;
    assert(s->length >= 1 && s->length <= LONGEST);
    int node = follower_catch_up(&s->follower), parent = tree_row(tree);
    for (s->drafted = 0; node != TREE_NONE; s->drafted++) {
        Draft d;
        if (!session_run(draft, draft->shape.layers, e) ||
            !drafter_propose(&s->drafter, node, tree, parent, &d, e))
            return false;
        if (d.node == TREE_NONE) break;
        parent = d.node;
        node = is_last(s, &d) ? TREE_NONE : follower_guess(&s->follower, node, d.token);
    }
    s->last = parent;
    s->sources.count = 0;
    if (s->drafted) sources_record(&s->sources, 0, parent);
    return true;
}

static bool speculative_observe(void *self, const Observation *seen, Error *e) {
    Speculative *s = self;
    if (s->p.adaptive == ADAPTIVE_HEURISTIC && s->drafted) {
        int accepted = sources_match(&seen->target->tree, s->last, seen->verdict->node);
        s->length += accepted >= s->drafted ? 2 : -1;
        if (s->length < 1) s->length = 1;
        if (s->length > LONGEST) s->length = LONGEST;
    }
    s->drafted = 0; // the next step may be without a draft
    if (!follower_settle(&s->follower, seen->emitted, seen->emitted_count, e)) return false;
    assert(s->follower.length == seen->length);
    return true;
}

static const Sources *speculative_sources(const void *self) { return &((const Speculative *)self)->sources; }

const MethodInfo method_speculative = {.name = "speculative",
                                       .summary = "a second, smaller model drafts (--draft DIR)",
                                       .needs = NEEDS_DRAFT,
                                       .params = PARAMS,
                                       .param_count = sizeof PARAMS / sizeof *PARAMS,
                                       .param_size = sizeof(SpeculativeParams),
                                       .open = speculative_open,
                                       .begin = speculative_begin,
                                       .propose = speculative_propose,
                                       .observe = speculative_observe,
                                       .may_rest = true,
                                       .close = speculative_close,
                                       .sources = speculative_sources};
