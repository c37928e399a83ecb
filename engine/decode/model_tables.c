// N-Grammys' tables: unigrams from the embeddings, bigrams from forward passes, and the files that keep both.
//
// Unigrams sum in double. V'V is built from BLOCK rows at a time, so that a row of it passes through the
// processor once per block. Bigrams take two rounds: the best tokens after every x, then, if w > 1, chains
// below them that grow by one token a run; a chain's last token is never run, its parent's argmax is enough.
//
// Invariants: only the upper triangle of V'V is valid; a table that is returned serves the k and w asked for.
#include "engine/decode/model_tables.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- unigrams

enum { BLOCK = 64 };

typedef struct Scored {
    double score;
    int token;
} Scored;

typedef struct Unigrams {
    const TargetFacts *facts;
    Progress progress;
    int vocab, width;
    float *row;     // (width)
    double *mean;   // (width): of the output embedding
    double *pull;   // (width): V'V mean
    double *gram;   // (width, width): V'V; NULL for UNIGRAM_INNER
    double *block;  // (BLOCK, width)
    Scored *scored; // (vocab)
} Unigrams;

static bool report_unigrams(const Unigrams *m, double done, Error *e) {
    return progress_say(&m->progress, "making unigrams", done, e);
}

static const float *row_of(Unigrams *m, EmbeddingKind kind, int token) {
    m->facts->embedding(m->facts->self, kind, token, m->row);
    return m->row;
}

static bool average(Unigrams *m, Error *e) {
    for (int x = 0; x < m->vocab; x++) {
        if (x % BLOCK == 0 && !report_unigrams(m, 0, e)) return false;
        const float *u = row_of(m, EMBEDDING_OUTPUT, x);
        for (int i = 0; i < m->width; i++) m->mean[i] += (double)u[i] / m->vocab;
    }
    return true;
}

static double dot(const double *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += a[i] * (double)b[i];
    return sum;
}

// UNIGRAM_INNER: the inner product with the mean.
static bool score_inner(Unigrams *m, Error *e) {
    for (int y = 0; y < m->vocab; y++) {
        if (y % BLOCK == 0 && !report_unigrams(m, 0.5 * y / m->vocab, e)) return false;
        const float *v = row_of(m, EMBEDDING_INPUT, y);
        double share = dot(m->mean, v, m->width);
        for (int i = 0; i < m->width; i++) m->pull[i] += share * (double)v[i];
    }
    for (int x = 0; x < m->vocab; x++)
        m->scored[x] = (Scored){dot(m->pull, row_of(m, EMBEDDING_OUTPUT, x), m->width), x};
    return true;
}

// UNIGRAM_DISTANCE: the distance from the mean.

// gram += B'B for the `count` rows B of the block.
static void add_block(Unigrams *m, int count) {
    size_t width = (size_t)m->width;
    for (size_t i = 0; i < width; i++)
        for (int b = 0; b < count; b++) {
            const double *v = m->block + (size_t)b * width;
            double *row = m->gram + i * width, scale = v[i];
            for (size_t j = i; j < width; j++) row[j] += scale * v[j];
        }
}

// Sets row b of the block to a token's row minus `centre` (NULL: zero).
static void load_row(Unigrams *m, EmbeddingKind kind, int token, const double *centre, int b) {
    const float *row = row_of(m, kind, token);
    double *to = m->block + (size_t)b * (size_t)m->width;
    for (int i = 0; i < m->width; i++) to[i] = (double)row[i] - (centre ? centre[i] : 0);
}

static bool build_gram(Unigrams *m, Error *e) {
    for (int first = 0; first < m->vocab; first += BLOCK) {
        int count = m->vocab - first < BLOCK ? m->vocab - first : BLOCK;
        for (int b = 0; b < count; b++) load_row(m, EMBEDDING_INPUT, first + b, NULL, b);
        add_block(m, count);
        if (!report_unigrams(m, 0.5 * first / m->vocab, e)) return false;
    }
    return true;
}

// z'Gz for each row z of the block; G is symmetric and only its upper triangle is known.
static void score_block(Unigrams *m, int first, int count) {
    size_t width = (size_t)m->width;
    for (int b = 0; b < count; b++) m->scored[first + b] = (Scored){0, first + b};
    for (size_t i = 0; i < width; i++)
        for (int b = 0; b < count; b++) {
            const double *z = m->block + (size_t)b * width, *row = m->gram + i * width;
            double right = 0;
            for (size_t j = i + 1; j < width; j++) right += row[j] * z[j];
            m->scored[first + b].score += z[i] * (row[i] * z[i] + 2 * right);
        }
}

static bool score_distance(Unigrams *m, Error *e) {
    if (!build_gram(m, e)) return false;
    for (int first = 0; first < m->vocab; first += BLOCK) {
        int count = m->vocab - first < BLOCK ? m->vocab - first : BLOCK;
        for (int b = 0; b < count; b++) load_row(m, EMBEDDING_OUTPUT, first + b, m->mean, b);
        score_block(m, first, count);
        if (!report_unigrams(m, 0.5 + 0.5 * first / m->vocab, e)) return false;
    }
    return true;
}

static int by_score(const void *a, const void *b) {
    const Scored *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

// A single weight that isn't finite spoils every score through the mean.
static bool sort_scores(Unigrams *m, Error *e) {
    for (int x = 0; x < m->vocab; x++)
        if (!isfinite(m->scored[x].score))
            return error_input(e, "the embeddings are not finite (NaN or infinite)");
    qsort(m->scored, (size_t)m->vocab, sizeof *m->scored, by_score);
    return true;
}

bool unigram_order(const TargetFacts *facts, int vocab, int width, UnigramOrder order, int count,
                   Progress progress, int *out, Error *e) {
    size_t n = (size_t)width;
    bool distance = order == UNIGRAM_DISTANCE;
    assert(count <= vocab && width >= 1 && facts->embedding);
    Unigrams m = {.facts = facts,
                  .progress = progress,
                  .vocab = vocab,
                  .width = width,
                  .row = mem_new(n, sizeof *m.row),
                  .mean = mem_new(n, sizeof *m.mean),
                  .pull = mem_new(n, sizeof *m.pull),
                  .gram = distance ? mem_new(n * n, sizeof *m.gram) : NULL,
                  .block = mem_new(BLOCK * n, sizeof *m.block),
                  .scored = mem_new((size_t)vocab, sizeof *m.scored)};
    bool ok = average(&m, e) && (distance ? score_distance : score_inner)(&m, e) && sort_scores(&m, e);
    for (int i = 0; ok && i < count; i++) out[i] = m.scored[i].token;
    void *arrays[] = {m.row, m.mean, m.pull, m.gram, m.block, m.scored};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) mem_free(arrays[i]);
    return ok;
}

// --- bigrams

typedef struct Bigrams {
    Session *s;
    TokenTable *table;
    Progress progress;
    int *nodes; // (capacity): roots, then the ends of chains
    int *ids;   // (capacity, k)
    float *logits;
} Bigrams;

static bool best_tokens(Bigrams *m, Error *e) {
    TokenTable *t = m->table;
    assert(t->k >= 1 && t->k <= m->s->shape.real_vocab);
    for (int first = 0, n; first < t->tokens; first += n) {
        if (!progress_say(&m->progress, "making bigrams", (double)first / t->tokens, e)) return false;
        session_begin_step(m->s, true, LAYOUT_TREE);
        n = 0; // a tree for each token from `first` on, as many as a step holds
        while (first + n < t->tokens && (m->nodes[n] = tree_root(&m->s->tree, first + n)) != TREE_NONE) n++;
        if (n == 0) return error_input(e, "a context of %d has no room for a bigram", m->s->context);
        if (!session_run(m->s, m->s->shape.layers, e)) return false;
        if (!session_top(m->s, m->nodes, n, t->k, m->ids, m->logits, e)) return false;
        for (int i = 0; i < n * t->k; i++) token_table_row(t, first, 0)[i * t->w] = m->ids[i];
    }
    return true;
}

// Chains are numbered token * k + rank. Starts those from `first` on that fit into a step at full length.
// Returns how many.
static int start_chains(Bigrams *m, int first) {
    const TokenTable *t = m->table;
    Tree *tree = &m->s->tree;
    int n = 0, root = TREE_NONE, count = t->tokens * t->k, left = tree->capacity;
    session_begin_step(m->s, true, LAYOUT_TREE);
    for (; first + n < count; n++) {
        int token = (first + n) / t->k, rank = (first + n) % t->k;
        bool new_root = n == 0 || rank == 0;
        left -= new_root + t->w - 1;
        if (left < 0) break;
        if (new_root) root = tree_root(tree, token);
        m->nodes[n] = tree_probe(tree, root, token_table_row(t, token, rank)[0], true);
    }
    return n;
}

// Reads token `at` of each chain and appends it to the chain.
static bool lengthen(Bigrams *m, int first, int n, int at, Error *e) {
    if (!session_run(m->s, m->s->shape.layers, e) || !session_read(m->s, HEAD_ARGMAX, e)) return false;
    for (int i = 0; i < n; i++) {
        if (m->nodes[i] == TREE_NONE) continue; // the context ends here
        int token = session_argmax(m->s, m->nodes[i]);
        token_table_row(m->table, 0, 0)[(size_t)(first + i) * (size_t)m->table->w + (size_t)at] = token;
        if (at + 1 < m->table->w) m->nodes[i] = tree_probe(&m->s->tree, m->nodes[i], token, true);
    }
    return true;
}

static bool lengthen_all(Bigrams *m, Error *e) {
    int count = m->table->tokens * m->table->k;
    for (int first = 0, n; first < count && m->table->w > 1; first += n) {
        if (!progress_say(&m->progress, "making extended bigrams", (double)first / count, e)) return false;
        n = start_chains(m, first);
        if (n == 0)
            return error_input(e, "a step of %d nodes has no room for a chain of %d", m->s->tree.capacity,
                               m->table->w);
        for (int at = 1; at < m->table->w; at++)
            if (!lengthen(m, first, n, at, e)) return false;
    }
    return true;
}

bool bigram_make(Session *s, const BigramSetup *setup, Progress progress, TokenTable *out, Error *e) {
    int k = setup->k < s->shape.real_vocab ? setup->k : s->shape.real_vocab;
    size_t capacity = (size_t)s->tree.capacity;
    *out = (TokenTable){0};
    if (setup->prefix_count >= s->context)
        return error_input(e, "a context of %d has no room for a bigram", s->context);
    if (!token_table_init(out, s->shape.vocab, k, setup->w, e)) return false;
    Bigrams m = {.s = s,
                 .table = out,
                 .progress = progress,
                 .nodes = mem_new(capacity, sizeof *m.nodes),
                 .ids = mem_new(capacity * (size_t)k, sizeof *m.ids),
                 .logits = mem_new(capacity * (size_t)k, sizeof *m.logits)};
    session_reset(s);
    bool ok = session_prefill(s, setup->prefix, setup->prefix_count, 0, HIDDEN_NONE, NULL, e) &&
              best_tokens(&m, e) && lengthen_all(&m, e);
    session_reset(s);
    mem_free(m.nodes);
    mem_free(m.ids);
    mem_free(m.logits);
    if (!ok) token_table_release(out);
    return ok;
}

// --- tables in files

// The least rows per token that are made: the largest k in the paper (Figure 1), so that one table serves a
// sweep over k.
enum { USUAL_K = 32 };

typedef struct Wanted {
    const MethodEnv *env;
    const char *name;
    Text made_how;
    int tokens, k, w;
    bool prefix;             // of bigrams
    UnigramOrder order;      // of unigrams
    double rows, operations; // the cost of making it: see Rehearsal
    bool (*make)(const struct Wanted *wanted, int k, int w, TokenTable *out, Error *e);
} Wanted;

static void model_tables_check(const Wanted *x) {
    assert(x->tokens >= 1 && x->k >= 1 && x->k <= TOKEN_TABLE_MAX_K && x->w >= 1 &&
           x->w <= TOKEN_TABLE_MAX_W);
    assert(x->make && x->made_how.length > 0); // else tables made in different ways would share a file
}

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

static bool serves(const Wanted *x, const TokenTable *t) { return t->k >= x->k && t->w >= x->w; }

// Leaves the file empty if the table isn't to be kept.
static bool name_file(const Wanted *x, TableFile *file, Error *e) {
    const MethodEnv *env = x->env;
    char identity[SHA256_TEXT];
    Text made_of = {0};
    if (!env->cache || !env->facts.identify) return true;
    if (!env->facts.identify(env->facts.self, identity, e)) return false;
    text_printf(&made_of, "%s of %s", text_get(&x->made_how), identity);
    bool ok = table_file_init(file, env->cache, x->name, text_get(&made_of), e);
    text_release(&made_of);
    return ok;
}

// If not keeping the table is an error, it is reported before the table is made.
static bool make_and_keep(const Wanted *x, const TableFile *file, int k, int w, TokenTable *out, Error *e) {
    const MethodEnv *env = x->env;
    Error why = {0};
    bool ok = !file->path || file_make_directory(env->cache, &why);
    if ((ok || env->unkept) && !x->make(x, k, w, out, e)) return false;
    ok = ok && table_file_save(file, out, &why);
    if (env->unkept && !(ok && file->path)) {
        env->unkept(env->unkept_state, &why);
        return true;
    }
    if (ok) return true;
    if (e) *e = why;
    token_table_release(out);
    return error_within(e, "a table of n-grams cannot be kept (give another --cache)");
}

static bool is_added(const Wanted *x, const Rehearsal *r) {
    for (int i = 0; i < r->table_count; i++)
        if (strcmp(r->tables[i].name, x->name) == 0 && r->tables[i].prefix == x->prefix &&
            r->tables[i].k >= x->k && r->tables[i].w >= x->w)
            return true;
    return false;
}

// Counts the cost and returns an empty table.
static bool rehearse(const Wanted *x, TokenTable *out, Error *e) {
    Rehearsal *r = x->env->rehearsal;
    if (!is_added(x, r)) {
        r->rows += x->rows;
        r->operations += x->operations;
        if (r->table_count < (int)(sizeof r->tables / sizeof *r->tables)) {
            PlannedTable added = {x->name, x->prefix, x->k, x->w};
            r->tables[r->table_count++] = added;
        }
    }
    assert(r->table_count <= (int)(sizeof r->tables / sizeof *r->tables) && r->rows >= 0);
    return token_table_init(out, 1, x->k, x->w, e);
}

// A kept table that is too small is made again, large enough for both uses.
static bool obtain(const Wanted *x, TokenTable *out, Error *e) {
    TableFile file = {0};
    *out = (TokenTable){0};
    model_tables_check(x);
    if (!name_file(x, &file, e)) return false;
    bool ok = table_file_load(&file, x->tokens, x->env->target->shape.vocab, out);
    if (x->env->rehearsal && !(ok && serves(x, out))) {
        token_table_release(out);
        ok = rehearse(x, out, e);
    } else if (!ok || !serves(x, out)) {
        int k = larger(x->k, out->k), w = larger(x->w, out->w);
        token_table_release(out);
        ok = make_and_keep(x, &file, k, w, out, e);
    }
    table_file_release(&file);
    assert(!ok || serves(x, out));
    return ok;
}

static bool make_bigrams(const Wanted *x, int k, int w, TokenTable *out, Error *e) {
    const TargetFacts *facts = &x->env->facts;
    BigramSetup setup = {facts->prefix, x->prefix ? facts->prefix_count : 0, k, w};
    return bigram_make(x->env->target, &setup, x->env->progress, out, e);
}

// Everything that decides the model's outputs, kernels included: they round differently.
static void write_origin(const MethodEnv *env, bool prefix, int room, Text *out) {
    BackendReport r;
    env->target->backend->report(env->target->self, &r);
    if (env->rehearsal) r.name = env->rehearsal->backend, r.isa = env->rehearsal->kernels;
    text_printf(out, "bigrams on %s, kernels %s, compute %d, room %d, behind", r.name, r.isa,
                (int)env->target->compute, room);
    for (int i = 0; prefix && i < env->facts.prefix_count; i++) text_printf(out, " %d", env->facts.prefix[i]);
}

bool bigram_table(const MethodEnv *env, bool prefix, int k, int w, TokenTable *out, Error *e) {
    const Shape *shape = &env->target->shape;
    int most = smaller(TOKEN_TABLE_MAX_K, shape->real_vocab), room = env->target->context;
    Wanted x = {.env = env,
                .name = w > 1 ? "extended-bigram" : "bigram",
                .tokens = shape->vocab,
                .k = smaller(w > 1 ? k : larger(k, USUAL_K), most),
                .w = w,
                .prefix = prefix,
                .make = make_bigrams};
    x.rows = (double)shape->vocab * (w > 1 ? 1 + x.k * (w - 1) + 1 : 1);
    if (prefix && env->facts.prefix_count == 0)
        return error_input(e, "'bos' is on, but this model's texts have no prefix");
    // A longer context changes nothing: continuations end before it does.
    write_origin(env, prefix, smaller(room, TOKEN_TABLE_MAX_W + env->facts.prefix_count), &x.made_how);
    bool ok = obtain(&x, out, e);
    text_release(&x.made_how);
    return ok;
}

static bool make_unigrams(const Wanted *x, int k, int w, TokenTable *out, Error *e) {
    const Shape *shape = &x->env->target->shape;
    if (!token_table_init(out, 1, k, w, e)) return false;
    if (unigram_order(&x->env->facts, shape->real_vocab, shape->width, x->order, k, x->env->progress,
                      out->ids, e))
        return true;
    token_table_release(out);
    return error_within(e, "model '%s'", x->env->target->name);
}

bool unigram_table(const MethodEnv *env, UnigramOrder order, int k, TokenTable *out, Error *e) {
    int most = smaller(TOKEN_TABLE_MAX_K, env->target->shape.real_vocab);
    Wanted x = {.env = env,
                .name = "unigram",
                .tokens = 1,
                .k = smaller(larger(k, USUAL_K), most),
                .w = 1,
                .order = order,
                .make = make_unigrams};
    x.operations = 2.0 * x.env->target->shape.real_vocab * env->target->shape.width *
                   (order == UNIGRAM_DISTANCE ? env->target->shape.width : 3);
    if (!env->facts.embedding)
        return error_input(e,
                           "unigrams are made from the model's embeddings, and this device has no weights");
    text_printf(&x.made_how, "unigrams, order %d", (int)order);
    bool ok = obtain(&x, out, e);
    text_release(&x.made_how);
    return ok;
}
