// N-Grammys: k rows of w tokens after the last one, guessed without a draft model.
//
//      context    what followed the last q tokens wherever they stood before, the most frequent first
//      bigram     what the model says after the last token alone: w = 1
//      extended   the same, each pick carried on to w tokens: by the bigram's own best token over and over
//                 (extend=repeat), or by the model (extend=model)
//      unigram    the tokens that are likeliest whatever stands before, by the embeddings: w = 1
//      mixed      (section 4.3) context first, and what is left of the k rows by extended bigrams
//
// The paper repeats the context in each of the k rows (--layout batch); with --layout tree the rows share it,
// and equal prefixes. Paper and appendix disagree on the unigram's order, on ties and on short matches.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/context_ngrams.h"
#include "engine/decode/model_tables.h"

typedef enum { MIXED, CONTEXT, BIGRAM, EXTENDED, UNIGRAM } Strategy;
typedef enum { EXTEND_REPEAT, EXTEND_MODEL } Extend;
typedef enum { PRESET_NONE, PRESET_APPENDIX } Preset;
typedef enum { FROM_CONTEXT, FROM_BIGRAM, FROM_UNIGRAM, SOURCE_COUNT } Source;

typedef struct NgrammysParams {
    int k, w, q;
    int strategy, extend;
    bool bos;
    int ties;
    bool keep_short;
    int order;
    int preset;
} NgrammysParams;

static const char *const STRATEGIES[] = {"mixed", "context", "bigram", "extended", "unigram", NULL};
static const char *const EXTENDS[] = {"repeat", "model", NULL};
static const char *const TIES[] = {"recent", "sorted", NULL};
static const char *const ORDERS[] = {"distance", "inner", NULL};
static const char *const PRESETS[] = {"none", "appendix", NULL};
static const char *const SOURCES[SOURCE_COUNT] = {"context", "bigram", "unigram"};

#define AT(name) offsetof(NgrammysParams, name)
static const Arg PARAMS[] = {
    {"k", ARG_INT, AT(k), 1, TOKEN_TABLE_MAX_K, "10", .help = "rows"},
    {"w", ARG_INT, AT(w), 1, TOKEN_TABLE_MAX_W, "10", .help = "tokens of a row"},
    {"q", ARG_INT, AT(q), 1, SUFFIX_LONGEST, "1", .help = "last tokens that are sought in the context"},
    {"strategy", ARG_CHOICE, AT(strategy), .fallback = "mixed", .choices = STRATEGIES,
     .help = "where rows come from; mixed: context, then extended"},
    {"extend", ARG_CHOICE, AT(extend), .fallback = "repeat", .choices = EXTENDS,
     .help = "a bigram's next tokens: bigrams again, or the model"},
    {"bos", ARG_FLAG, AT(bos), .fallback = "off", .help = "bigrams after what begins a text (BOS)"},
    {"ties", ARG_CHOICE, AT(ties), .fallback = "recent", .choices = TIES,
     .help = "of equally frequent matches"},
    {"short", ARG_FLAG, AT(keep_short), .fallback = "on",
     .help = "take a match that fewer than w tokens follow"},
    {"order", ARG_CHOICE, AT(order), .fallback = "distance", .choices = ORDERS,
     .help = "unigrams: nearest the mean, or least along it"},
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "appendix: ties, short and order as in the paper's code"},
};
#undef AT

typedef struct Ngrammys {
    NgrammysParams p;
    ContextNgrams context;
    TokenTable bigrams, unigrams; // empty where the strategy does not use them
    int last;                     // the sequence's last token
    ContextNgram found[TOKEN_TABLE_MAX_K];
    Offers offers;
} Ngrammys;

static void ngrammys_close(void *self) {
    Ngrammys *n = self;
    if (!n) return;
    context_ngrams_release(&n->context);
    token_table_release(&n->bigrams);
    token_table_release(&n->unigrams);
    mem_free(n);
}

static bool open_context(Ngrammys *n, const MethodEnv *env, Error *e) {
    ContextSetup setup = {.q = n->p.q,
                          .w = n->p.w,
                          .ties = (Ties)n->p.ties,
                          .keep_short = n->p.keep_short,
                          .context = env->target->context};
    return context_ngrams_init(&n->context, &setup, e);
}

static bool open_tables(Ngrammys *n, const MethodEnv *env, Error *e) {
    const NgrammysParams *p = &n->p;
    bool extended = p->strategy == MIXED || p->strategy == EXTENDED;
    int w = extended && p->extend == EXTEND_MODEL ? p->w : 1;
    if (p->strategy == UNIGRAM) return unigram_table(env, (UnigramOrder)p->order, p->k, &n->unigrams, e);
    return (!extended && p->strategy != BIGRAM) || bigram_table(env, p->bos, p->k, w, &n->bigrams, e);
}

static void ngrammys_resolve(void *values) {
    NgrammysParams *p = values;
    if (p->preset == PRESET_APPENDIX) {
        p->ties = TIES_SORTED;
        p->keep_short = false;
        p->order = UNIGRAM_INNER;
    }
    p->preset = PRESET_NONE;
}

static void *ngrammys_open(const MethodEnv *env, const void *values, Error *e) {
    Ngrammys *n = mem_alloc(1, sizeof *n);
    if (!n) {
        error_system(e, "out of memory");
        return NULL;
    }
    n->p = *(const NgrammysParams *)values;
    n->offers = (Offers){.names = SOURCES, .source_count = SOURCE_COUNT};
    ngrammys_resolve(&n->p);
    if (open_context(n, env, e) && open_tables(n, env, e)) return n;
    ngrammys_close(n);
    return NULL;
}

static bool ngrammys_begin(void *self, const Prompt *prompt, Error *e) {
    Ngrammys *n = self;
    context_ngrams_clear(&n->context);
    n->last = prompt->tokens[prompt->count - 1];
    return context_ngrams_push(&n->context, prompt->tokens, prompt->count, e);
}

static int offer_context(Ngrammys *n, Tree *tree) {
    int count = context_ngrams_find(&n->context, n->p.k, n->found);
    for (int i = 0; i < count; i++)
        offer_row(&n->offers, tree, FROM_CONTEXT, context_ngrams_tokens(&n->context, &n->found[i]),
                  n->found[i].length);
    return count;
}

// The rank-th bigram of the last token, carried on to w tokens or as far as the table goes.
static int extended_row(const Ngrammys *n, int rank, int w, int *row) {
    const int *pick = token_table_row(&n->bigrams, n->last, rank);
    bool repeat = n->p.extend == EXTEND_REPEAT;
    int count = 0;
    for (int token = *pick; count < w && token != TABLE_NO_TOKEN; count++) {
        row[count] = token;
        if (count + 1 < w) token = repeat ? *token_table_row(&n->bigrams, token, 0) : pick[count + 1];
    }
    return count;
}

static void offer_bigrams(Ngrammys *n, Tree *tree, int rows, int w) {
    int row[TOKEN_TABLE_MAX_W];
    for (int rank = 0; rank < rows && rank < n->bigrams.k; rank++)
        offer_row(&n->offers, tree, FROM_BIGRAM, row, extended_row(n, rank, w, row));
}

static void offer_unigrams(Ngrammys *n, Tree *tree, int rows) {
    for (int rank = 0; rank < rows && rank < n->unigrams.k; rank++)
        offer_row(&n->offers, tree, FROM_UNIGRAM, token_table_row(&n->unigrams, 0, rank), 1);
}

static bool ngrammys_propose(void *self, Tree *tree, Error *e) {
    (void)e;
    Ngrammys *n = self;
    int k = n->p.k, w = n->p.w;
    n->offers.count = 0;
    switch ((Strategy)n->p.strategy) {
    case MIXED: offer_bigrams(n, tree, k - offer_context(n, tree), w); break;
    case CONTEXT: offer_context(n, tree); break;
    case BIGRAM: offer_bigrams(n, tree, k, 1); break;
    case EXTENDED: offer_bigrams(n, tree, k, w); break;
    case UNIGRAM: offer_unigrams(n, tree, k); break;
    }
    return true;
}

static bool ngrammys_observe(void *self, const Observation *seen, Error *e) {
    Ngrammys *n = self;
    n->last = seen->sequence[seen->length - 1];
    return context_ngrams_push(&n->context, seen->emitted, seen->emitted_count, e);
}

static const Offers *ngrammys_offers(const void *self) { return &((const Ngrammys *)self)->offers; }

const MethodInfo method_ngrammys = {
    .name = "ngrammys",
    .summary = "k rows of w tokens: n-grams of the context, and of the model's own tables",
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(NgrammysParams),
    .resolve = ngrammys_resolve,
    .open = ngrammys_open,
    .begin = ngrammys_begin,
    .propose = ngrammys_propose,
    .observe = ngrammys_observe,
    .close = ngrammys_close,
    .offers = ngrammys_offers};
