// Every beta tokens of prompt and answer are a phrase as soon as they stand there; the K newest that begin
// with the last token are tried, as Ouroboros tries them after a draft (section 2.4).
#include "harness/replay/replay_pool.h"

#include "engine/base/memory.h"
#include "engine/decode/ngram_pool.h"

#include <string.h>

static const char NAME[] = "ouroboros-pool";

typedef struct PoolParams {
    int K, beta, W;
    bool warm;
} PoolParams;

#define AT(name) offsetof(PoolParams, name)
static const Arg PARAMS[] = {
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

static void pool_close(void *self) {
    PoolReplay *r = self;
    if (!r) return;
    ngram_pool_release(&r->pool);
    mem_free(r);
}

static void *pool_open(const MethodEnv *env, const void *values, Error *e) {
    PoolReplay *r = mem_alloc(1, sizeof *r);
    if (!r) {
        error_system(e, "out of memory");
        return NULL;
    }
    r->p = *(const PoolParams *)values;
    if (ngram_pool_init(&r->pool, env->target->shape.vocab, r->p.beta - 1, r->p.W, POOL_LRU, e)) return r;
    pool_close(r);
    return NULL;
}

// Phrases that end after `from` tokens of the sequence, and by its end.
static void learn(PoolReplay *r, const int *sequence, int from, int length) {
    int beta = r->p.beta;
    for (int end = from > beta - 1 ? from + 1 : beta; end <= length; end++)
        ngram_pool_insert(&r->pool, sequence[end - beta], sequence + end - beta + 1);
    r->last = sequence[length - 1];
}

static bool pool_begin(void *self, const Prompt *prompt, Error *e) {
    PoolReplay *r = self;
    (void)e;
    if (!r->p.warm) ngram_pool_clear(&r->pool);
    learn(r, prompt->tokens, 0, prompt->count);
    return true;
}

static bool pool_propose(void *self, Tree *tree, Error *e) {
    PoolReplay *r = self;
    int count = ngram_pool_count(&r->pool, r->last), root = tree_row(tree);
    (void)e;
    for (int i = 0; i < count && i < r->p.K; i++)
        tree_chain(tree, root, ngram_pool_tuple(&r->pool, r->last, i), r->pool.width, NULL);
    return true;
}

static bool pool_observe(void *self, const Observation *seen, Error *e) {
    (void)e;
    learn(self, seen->sequence, seen->length - seen->emitted_count, seen->length);
    return true;
}

static const MethodInfo INFO = {.name = NAME,
                                .summary = "Ouroboros' phrases without its draft model",
                                .params = PARAMS,
                                .param_count = sizeof PARAMS / sizeof *PARAMS,
                                .param_size = sizeof(PoolParams),
                                .open = pool_open,
                                .begin = pool_begin,
                                .propose = pool_propose,
                                .observe = pool_observe,
                                .close = pool_close};

bool replay_pool_is_meant(const char *text) {
    size_t n = strcspn(text, ":");
    return n == sizeof NAME - 1 && strncmp(text, NAME, n) == 0;
}

bool replay_pool_open(Method *m, const char *text, const MethodEnv *env, Error *e) {
    size_t n = strcspn(text, ":");
    *m = (Method){.info = &INFO, .values = mem_alloc(1, INFO.param_size)};
    if (!m->values) return error_system(e, "out of memory for method '%s'", NAME);
    args_defaults(PARAMS, INFO.param_count, m->values);
    if (args_parse(PARAMS, INFO.param_count, m->values, text[n] ? text + n + 1 : "", e) &&
        (m->self = pool_open(env, m->values, e)))
        return true;
    error_within(e, "method '%s'", NAME);
    method_close(m);
    return false;
}
