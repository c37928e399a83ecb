// N-Grammys: k rows of w tokens after the last one, guessed without a draft model.
//
//      context    continuations of the last q tokens earlier in the sequence, the most frequent first
//      bigram     the model's best tokens after the last token only: w = 1
//      extended   the same, each pick extended to w tokens: by the bigrams' best token over and over
//                 (extend=repeat), or by the model (extend=model)
//      unigram    the likeliest tokens whatever comes before, from the embeddings: w = 1
//      mixed      (section 4.3) context first; extended bigrams fill the rest of the k rows
//
// The paper repeats the context in each of the k rows (--layout batch); with --layout tree the rows share it,
// and equal prefixes. Paper and appendix disagree on the unigrams' order, on ties and on short matches.
//
// Invariant between steps: the context index holds the whole sequence; `last` is its last token.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/model_tables.h"
#include "engine/decode/structures/suffix.h"

#include <assert.h>
#include <string.h>

typedef enum { MIXED, CONTEXT, BIGRAM, EXTENDED, UNIGRAM } Strategy;
typedef enum { EXTEND_REPEAT, EXTEND_MODEL } Extend;
typedef enum { TIES_RECENT, TIES_SORTED } Ties;
typedef enum { PRESET_NONE, PRESET_APPENDIX } Preset;
typedef enum { TABLE_DEMAND, TABLE_WHOLE } BigramTable;
typedef enum { FROM_CONTEXT, FROM_BIGRAM, FROM_UNIGRAM } Source;

typedef struct NgrammysParams {
    int k, w, q;
    int strategy, extend;
    bool bos;
    int ties;
    bool keep_short;
    int order;
    int preset;
    int table;
} NgrammysParams;

static const char *const STRATEGIES[] = {"mixed", "context", "bigram", "extended", "unigram", NULL};
static const char *const EXTENDS[] = {"repeat", "model", NULL};
static const char *const TIES[] = {"recent", "sorted", NULL};
static const char *const ORDERS[] = {"distance", "inner", NULL};
static const char *const PRESETS[] = {"none", "appendix", NULL};
static const char *const TABLES[] = {"demand", "whole", NULL};
static const char *const SOURCES[] = {"context", "bigram", "unigram", NULL};

#define AT(name) offsetof(NgrammysParams, name)
static const Arg PARAMS[] = {
    {"k", ARG_INT, AT(k), 1, TOKEN_TABLE_MAX_K, "10", .help = "rows"},
    {"w", ARG_INT, AT(w), 1, TOKEN_TABLE_MAX_W, "10", .help = "tokens per row"},
    {"q", ARG_INT, AT(q), 1, SUFFIX_LONGEST, "1", .help = "last tokens to look up in the context"},
    {"strategy", ARG_CHOICE, AT(strategy), .fallback = "mixed", .choices = STRATEGIES,
     .help = "source of the rows; mixed: context, then extended"},
    {"extend", ARG_CHOICE, AT(extend), .fallback = "repeat", .choices = EXTENDS,
     .help = "a bigram's next tokens: from bigrams again, or the model"},
    {"bos", ARG_FLAG, AT(bos), .fallback = "off", .help = "make bigrams after the model's BOS"},
    {"ties", ARG_CHOICE, AT(ties), .fallback = "recent", .choices = TIES,
     .help = "order of equally frequent matches"},
    {"short", ARG_FLAG, AT(keep_short), .fallback = "on",
     .help = "accept a match with fewer than w tokens after it"},
    {"order", ARG_CHOICE, AT(order), .fallback = "distance", .choices = ORDERS,
     .help = "unigrams: nearest to the mean, or least along it"},
    {"preset", ARG_CHOICE, AT(preset), .fallback = "none", .choices = PRESETS,
     .help = "appendix: ties, short and order as in the paper's code"},
    {"table", ARG_CHOICE, AT(table), .fallback = "demand", .choices = TABLES, .added = true,
     .help = "make a token's bigrams when it first occurs, or all at the start"},
};
#undef AT

// A group of equal places.
typedef struct ContextNgram {
    int end;    // of the newest: the continuation starts at index.tokens + end
    int length; // of the continuation, at most w
    int count;  // places
    uint64_t hash;
} ContextNgram;

typedef struct ContextNgrams {
    int q, w;
    bool sorted, keep_short; // order of ties; use places with fewer than w tokens after them
    int context;             // the longest sequence to come
    SuffixIndex index;       // of the whole sequence
    ContextNgram *groups;    // (group_count), at most `context`
    int group_count;
    int *table;     // (table_size): group number + 1; 0: free. All free between lookups
    int *used;      // (group_count): the table places in use
    int table_size; // a power of two, at least twice the context
} ContextNgrams;

typedef struct Ngrammys {
    NgrammysParams p;
    ContextNgrams context;
    Bigrams bigrams; // this and the next: empty if the strategy does not use them
    TokenTable unigrams;
    int last;                              // the sequence's last token
    ContextNgram found[TOKEN_TABLE_MAX_K]; // (found_count): the context's continuations of the sequence
    int found_count;                       // -1: not looked for since its last token
    Sources sources;
} Ngrammys;

// --- the context n-gram (section 4.2)
//
//      ... a b c d ... a b c e ... a b c d ... a        q = 1, w = 3: "b c d" twice, then "b c e" once
//
// Two places are equal if the w tokens after them are; if the sequence ends earlier, both must be equally
// short. Ties go to the more recent place (the paper's text), or to the smaller tokens (the order in which
// the appendix's code lists them).

static void context_init(ContextNgrams *f, const NgrammysParams *p, int context) {
    assert(p->w >= 1 && context >= 1);
    *f = (ContextNgrams){.q = p->q,
                         .w = p->w,
                         .sorted = p->ties == TIES_SORTED,
                         .keep_short = p->keep_short,
                         .context = context,
                         .table_size = 2};
    while (f->table_size < 2 * context) f->table_size *= 2;
    f->groups = mem_new((size_t)context, sizeof *f->groups);
    f->used = mem_new((size_t)context, sizeof *f->used);
    f->table = mem_new((size_t)f->table_size, sizeof *f->table);
    suffix_init(&f->index, p->q);
}

static void context_push(ContextNgrams *f, const int *tokens, int count) {
    for (int i = 0; i < count; i++) suffix_push(&f->index, tokens[i]);
    assert(f->index.length <= (size_t)f->context); // every place has a slot in `groups`
}

static const int *continuation(const ContextNgrams *f, const ContextNgram *x) {
    return f->index.tokens + x->end;
}

static uint64_t hash_tokens(const int *tokens, int count) {
    uint64_t h = (uint64_t)count;
    for (int i = 0; i < count; i++) {
        h = (h ^ (uint64_t)(unsigned)tokens[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

// Counts a place in its group.
static void enter_place(ContextNgrams *f, int end, int length) {
    ContextNgram place = {.end = end, .length = length, .count = 1};
    place.hash = hash_tokens(continuation(f, &place), length);
    int at = (int)(place.hash & (uint64_t)(f->table_size - 1));
    for (; f->table[at]; at = (at + 1) & (f->table_size - 1)) {
        ContextNgram *group = &f->groups[f->table[at] - 1];
        if (group->hash != place.hash || group->length != length ||
            memcmp(continuation(f, group), continuation(f, &place), (size_t)length * sizeof(int)) != 0)
            continue;
        group->count++;
        return;
    }
    assert(f->group_count < f->context);
    f->used[f->group_count] = at;
    f->groups[f->group_count++] = place;
    f->table[at] = f->group_count;
}

// Order of two continuations as lists of tokens; a prefix comes first.
static bool sorts_before(const ContextNgrams *f, const ContextNgram *a, const ContextNgram *b) {
    const int *x = continuation(f, a), *y = continuation(f, b);
    int n = a->length < b->length ? a->length : b->length, i = 0;
    while (i < n && x[i] == y[i]) i++;
    return i < n ? x[i] < y[i] : a->length < b->length;
}

// b was found after a, so of equals a is the more recent one.
static bool is_worse(const ContextNgrams *f, const ContextNgram *a, const ContextNgram *b) {
    if (a->count != b->count) return a->count < b->count;
    return f->sorted && sorts_before(f, b, a);
}

// Returns the best `most` continuations of the sequence's end, best first. Allocates nothing.
static int context_find(ContextNgrams *f, int most, ContextNgram *out) {
    int n = 0, length = (int)f->index.length, w = f->w, q = f->q;
    f->group_count = 0;
    // Newest place first, so that a group's number is its rank by recency.
    for (int end = suffix_newest(&f->index, q); end != SUFFIX_NONE; end = suffix_before(&f->index, q, end)) {
        int behind = length - end < w ? length - end : w;
        if (behind == w || f->keep_short) enter_place(f, end, behind);
    }
    for (int i = 0; i < f->group_count; i++) {
        const ContextNgram *x = &f->groups[i];
        f->table[f->used[i]] = 0;
        if (most == 0 || (n == most && !is_worse(f, &out[n - 1], x))) continue;
        int at = n < most ? n++ : n - 1;
        for (; at > 0 && is_worse(f, &out[at - 1], x); at--) out[at] = out[at - 1];
        out[at] = *x;
    }
    return n;
}

// --- the method

static void ngrammys_close(void *self) {
    Ngrammys *n = self;
    suffix_release(&n->context.index);
    MEM_FREE(n->context.groups, n->context.used, n->context.table);
    bigrams_close(&n->bigrams);
    token_table_release(&n->unigrams);
}

static bool open_tables(Ngrammys *n, const MethodEnv *env, bool on_demand, Error *e) {
    const NgrammysParams *p = &n->p;
    bool extended = p->strategy == MIXED || p->strategy == EXTENDED;
    int w = extended && p->extend == EXTEND_MODEL ? p->w : 1;
    if (p->strategy == UNIGRAM) return unigram_table(env, (UnigramOrder)p->order, p->k, &n->unigrams, e);
    return (!extended && p->strategy != BIGRAM) ||
           bigrams_open(env, p->bos, p->k, w, on_demand, &n->bigrams, e);
}

static void ngrammys_resolve(void *values) {
    NgrammysParams *p = values;
    if (p->preset == PRESET_APPENDIX) {
        p->ties = TIES_SORTED;
        p->keep_short = false;
        p->order = UNIGRAM_INNER;
    }
    p->preset = PRESET_NONE;
    p->table = TABLE_DEMAND; // the rows are the same
}

static bool ngrammys_open(void *self, const MethodEnv *env, Error *e) {
    Ngrammys *n = self;
    bool on_demand = n->p.table == TABLE_DEMAND;
    ngrammys_resolve(&n->p);
    context_init(&n->context, &n->p, env->target->context);
    return open_tables(n, env, on_demand, e);
}

static bool ngrammys_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    Ngrammys *n = self;
    suffix_clear(&n->context.index);
    n->last = prompt->tokens[prompt->count - 1];
    n->found_count = -1;
    context_push(&n->context, prompt->tokens, prompt->count);
    return true;
}

// Looks once a step, in prepare or propose.
static int find_in_context(Ngrammys *n) {
    if (n->found_count < 0) n->found_count = context_find(&n->context, n->p.k, n->found);
    return n->found_count;
}

// Makes the bigrams that the step's rows read: all rows grow by a token at a time.
static bool ngrammys_prepare(void *self, Error *e) {
    Ngrammys *n = self;
    const NgrammysParams *p = &n->p;
    int ends[TOKEN_TABLE_MAX_K], rows = p->k;
    int w = p->strategy == BIGRAM || p->extend == EXTEND_MODEL ? 1 : p->w;
    if (n->bigrams.made == n->bigrams.table.tokens) return true; // also of a strategy without bigrams
    if (p->strategy == MIXED) rows -= find_in_context(n);
    if (rows > n->bigrams.table.k) rows = n->bigrams.table.k;
    if (rows > 0 && !bigrams_need(&n->bigrams, &n->last, 1, e)) return false;
    for (int i = 0; i < rows; i++) ends[i] = *token_table_row(&n->bigrams.table, n->last, i);
    for (int at = 1; at < w; at++) {
        if (!bigrams_need(&n->bigrams, ends, rows, e)) return false;
        for (int i = 0; i < rows; i++) ends[i] = *token_table_row(&n->bigrams.table, ends[i], 0);
    }
    return true;
}

static int propose_context(Ngrammys *n, Tree *tree) {
    int count = find_in_context(n);
    for (int i = 0; i < count; i++)
        sources_propose(&n->sources, tree, FROM_CONTEXT, continuation(&n->context, &n->found[i]),
                        n->found[i].length);
    return count;
}

// The rank-th bigram of the last token, extended to w tokens or as far as the table goes.
static int extended_row(const Ngrammys *n, int rank, int w, int *row) {
    const int *pick = token_table_row(&n->bigrams.table, n->last, rank);
    bool repeat = n->p.extend == EXTEND_REPEAT;
    int count = 0;
    for (int token = *pick; count < w && token != TABLE_NO_TOKEN; count++) {
        row[count] = token;
        if (count + 1 < w) token = repeat ? *token_table_row(&n->bigrams.table, token, 0) : pick[count + 1];
    }
    return count;
}

static void propose_bigrams(Ngrammys *n, Tree *tree, int rows, int w) {
    int row[TOKEN_TABLE_MAX_W];
    for (int rank = 0; rank < rows && rank < n->bigrams.table.k; rank++)
        sources_propose(&n->sources, tree, FROM_BIGRAM, row, extended_row(n, rank, w, row));
}

static void propose_unigrams(Ngrammys *n, Tree *tree, int rows) {
    for (int rank = 0; rank < rows && rank < n->unigrams.k; rank++)
        sources_propose(&n->sources, tree, FROM_UNIGRAM, token_table_row(&n->unigrams, 0, rank), 1);
}

static bool ngrammys_propose(void *self, Tree *tree, UNUSED Error *e) {
    Ngrammys *n = self;
    int k = n->p.k, w = n->p.w;
    n->sources.count = 0;
    switch ((Strategy)n->p.strategy) {
    case MIXED: propose_bigrams(n, tree, k - propose_context(n, tree), w); break;
    case CONTEXT: propose_context(n, tree); break;
    case BIGRAM: propose_bigrams(n, tree, k, 1); break;
    case EXTENDED: propose_bigrams(n, tree, k, w); break;
    case UNIGRAM: propose_unigrams(n, tree, k); break;
    }
    return true;
}

static bool ngrammys_observe(void *self, const Observation *seen, UNUSED Error *e) {
    Ngrammys *n = self;
    n->last = seen->sequence[seen->length - 1];
    n->found_count = -1;
    context_push(&n->context, seen->emitted, seen->emitted_count);
    assert(n->context.index.length == (size_t)seen->length);
    return true;
}

static void ngrammys_work(const void *self, StepWork *out) {
    const NgrammysParams *p = &((const Ngrammys *)self)->p;
    *out = (StepWork){.longest = p->w + 1, .rows = 1 + p->k * p->w};
}

const MethodInfo method_ngrammys = {
    METHOD_ROW(ngrammys, Ngrammys),
    .name = "ngrammys",
    .summary = "k rows of w tokens: n-grams from the context and from the model's own tables",
    .from_text = true,
    .resolve = ngrammys_resolve,
    .prepare = ngrammys_prepare};
