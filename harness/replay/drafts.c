// Methods that a replay has in addition to those of the table. Their steps cost as much as
// an engine's: the rows tried and, for a recorded draft model, its passes.
#include "harness/replay/replay.h"

#include "engine/decode/structures/ngram_pool.h"

#include <string.h>

// --- Ouroboros' pool of phrases without its draft model --------------------------------------------------

// A text can fill the pool only with itself; a replay measures how much of an answer is found there. Every
// beta tokens of prompt and answer become a phrase as soon as they are known; the K newest phrases that begin
// with the last token are tried, as Ouroboros tries them after a draft (section 2.4).

typedef struct PoolParams {
    int K, beta, W;
    bool warm;
} PoolParams;

#define AT(name) offsetof(PoolParams, name)
static const Arg POOL_PARAMS[] = {
    {"K", ARG_INT, AT(K), 1, 256, "20", .help = "phrases tried, at most"},
    {"beta", ARG_INT, AT(beta), 2, 32, "7", .help = "tokens of a phrase"},
    {"W", ARG_INT, AT(W), 1, 1024, "20", .help = "phrases kept under a token"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "keep the phrases from text to text"},
};
#undef AT

typedef struct PoolReplay {
    PoolParams p;
    NgramPool pool;
    int last; // the sequence's last token
} PoolReplay;

static void pool_close(void *self) { ngram_pool_release(&((PoolReplay *)self)->pool); }

static bool pool_open(void *self, const MethodEnv *env, Error *e) {
    PoolReplay *r = self;
    return ngram_pool_init(&r->pool, env->target->shape.vocab, r->p.beta - 1, r->p.W, POOL_LRU, e);
}

// Phrases that end after `from` tokens of the sequence, and by its end.
static void learn(PoolReplay *r, const int *sequence, int from, int length) {
    int beta = r->p.beta;
    for (int end = from > beta - 1 ? from + 1 : beta; end <= length; end++)
        ngram_pool_insert(&r->pool, sequence[end - beta], sequence + end - beta + 1);
    r->last = sequence[length - 1];
}

static bool pool_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    PoolReplay *r = self;
    if (!r->p.warm) ngram_pool_clear(&r->pool);
    learn(r, prompt->tokens, 0, prompt->count);
    return true;
}

static bool pool_propose(void *self, Tree *tree, UNUSED Error *e) {
    PoolReplay *r = self;
    int count = ngram_pool_count(&r->pool, r->last), root = tree_row(tree);
    for (int i = 0; i < count && i < r->p.K; i++)
        tree_chain(tree, root, ngram_pool_tuple(&r->pool, r->last, i), r->pool.width, NULL);
    return true;
}

static bool pool_observe(void *self, const Observation *seen, UNUSED Error *e) {
    learn(self, seen->sequence, seen->length - seen->emitted_count, seen->length);
    return true;
}

static const MethodInfo POOL = {.name = "ouroboros-pool",
                                .summary = "Ouroboros' phrases without its draft model",
                                .from_text = true,
                                .params = POOL_PARAMS,
                                .param_count = sizeof POOL_PARAMS / sizeof *POOL_PARAMS,
                                .param_size = sizeof(PoolParams),
                                .self_size = sizeof(PoolReplay),
                                .open = pool_open,
                                .begin = pool_begin,
                                .propose = pool_propose,
                                .observe = pool_observe,
                                .close = pool_close};

// --- a recorded draft ------------------------------------------------------------------------------------

// A file has how many of a draft's tokens the model accepted at every position. A step tries `draft` tokens,
// like an engine with a fixed draft length: first the accepted ones, then wrong ones. With `of`, a method of
// the text goes first, and the recorded draft runs only in steps for which that method has no guess.

typedef struct RecordedParams {
    char list[ARG_TEXT_SIZE], of[ARG_TEXT_SIZE];
    int draft;
    bool model;
} RecordedParams;

#define AT(name) offsetof(RecordedParams, name)
static const Arg RECORDED_PARAMS[] = {
    {"list", ARG_TEXT, AT(list), .fallback = "acc_eagle", .help = "the file's key of accepted tokens"},
    {"draft", ARG_INT, AT(draft), 1, TREE_MAX_NODES - 1, "7", .help = "tokens tried in every step"},
    {"model", ARG_FLAG, AT(model), .fallback = "on", .help = "a model drafts: its passes are priced"},
    {"of", ARG_METHODS, AT(of), .fallback = "", .help = "the method that goes first; empty: none"},
};
#undef AT

typedef struct Recorded {
    RecordedParams p;
    Session *target;
    const Script *script;
    Method first; // info NULL: none
    int list, position;
} Recorded;

static void recorded_close(void *self) {
    Recorded *r = self;
    if (r->first.info) method_close(&r->first);
}

static bool find_list(Recorded *r, Error *e) {
    const ReplayTexts *t = r->script->texts;
    for (r->list = 0; r->list < t->list_count; r->list++)
        if (strcmp(t->lists[r->list], r->p.list) == 0) return true;
    return error_input(e, "the texts have no list '%s': replay --tokens FILE --list %s", r->p.list,
                       r->p.list);
}

static bool recorded_open(void *self, const MethodEnv *env, Error *e) {
    Recorded *r = self;
    r->target = env->target;
    r->script = env->target->self;
    char first[ARG_TEXT_SIZE];
    return find_list(r, e) && (!r->p.of[0] || (method_plain_text(r->p.of, strlen(r->p.of), first, e) &&
                                               draft_open(&r->first, first, env, e)));
}

static bool recorded_begin(void *self, const Prompt *prompt, Error *e) {
    Recorded *r = self;
    r->position = prompt->count;
    return !r->first.info || r->first.info->begin(r->first.self, prompt, e);
}

// Logs the passes of a draft model: one row each, one for each token.
static void log_draft(const Recorded *r) {
    if (!r->p.model || !r->target->log) return;
    for (int i = 0; i < r->p.draft; i++) {
        Pass pass = {.model = PASS_DRAFT, .a = 0, .b = 1, .rows = 1, .context = r->position + i};
        pass_log_add(r->target->log, &pass);
        pass.a = 1;
        pass_log_add(r->target->log, &pass);
    }
}

static bool recorded_propose(void *self, Tree *tree, Error *e) {
    Recorded *r = self;
    const Script *s = r->script;
    int tokens[TREE_MAX_NODES], root = tree_row(tree);
    if (r->first.info && !r->first.info->propose(r->first.self, tree, e)) return false;
    if (tree->count > 1 || r->position >= s->count) return true;
    int good = s->lists[r->list][r->position - s->prompt] - 1;
    for (int i = 0; i < r->p.draft; i++) {
        int at = r->position + i, truth = at < s->count ? s->tokens[at] : 0;
        tokens[i] = i < good ? truth : (truth + 1) % r->target->shape.vocab;
    }
    log_draft(r);
    tree_chain(tree, root, tokens, r->p.draft, NULL);
    return true;
}

static bool recorded_observe(void *self, const Observation *seen, Error *e) {
    Recorded *r = self;
    r->position = seen->length;
    return !r->first.info || r->first.info->observe(r->first.self, seen, e);
}

static const MethodInfo RECORDED = {.name = "recorded",
                                    .summary = "a draft whose accepted tokens are recorded in a file",
                                    .from_text = true,
                                    .params = RECORDED_PARAMS,
                                    .param_count = sizeof RECORDED_PARAMS / sizeof *RECORDED_PARAMS,
                                    .param_size = sizeof(RecordedParams),
                                    .self_size = sizeof(Recorded),
                                    .open = recorded_open,
                                    .begin = recorded_begin,
                                    .propose = recorded_propose,
                                    .observe = recorded_observe,
                                    .close = recorded_close};

// --- all methods -----------------------------------------------------------------------------------------

bool draft_open(Method *m, const char *text, const MethodEnv *env, Error *e) {
    static const MethodInfo *const OWN[] = {&POOL, &RECORDED};
    size_t n = strcspn(text, ":");
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (n == strlen(OWN[i]->name) && strncmp(text, OWN[i]->name, n) == 0)
            return method_open_as(m, OWN[i], text[n] ? text + n + 1 : "", env, e);
    return method_open(m, text, env, e);
}
