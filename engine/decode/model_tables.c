// N-Grammys' tables: unigrams from the embeddings, bigrams from forward passes, and the files that keep both.
//
// Unigrams sum in double. V'V is built from BLOCK rows at a time, so that a row of it passes through the
// processor once per block. Bigrams take two rounds: the best tokens after each x, then, if w > 1, chains
// below them that grow by one token a run; a chain's last token is never run, its parent's argmax is enough.
//
// Invariants: only the upper triangle of V'V is valid; a table that is returned serves the k and w asked for;
// between calls, a row of bigrams is whole or empty.
#include "engine/decode/model_tables.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"

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
    double *left;   // (BLOCK, width): of the block's rows z, the sums over i < j of z_i G_ij
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

// z'Gz for each row z of the block; G is symmetric and only its upper triangle is known. A row of G is added
// to independent sums, which the compiler vectorises; a sum along it would wait for every addition.
static void score_block(Unigrams *m, int first, int count) {
    size_t width = (size_t)m->width;
    memset(m->left, 0, BLOCK * width * sizeof *m->left);
    for (int b = 0; b < count; b++) m->scored[first + b] = (Scored){0, first + b};
    for (size_t i = 0; i < width; i++)
        for (int b = 0; b < count; b++) {
            const double *z = m->block + (size_t)b * width, *row = m->gram + i * width;
            double *left = m->left + (size_t)b * width;
            m->scored[first + b].score += z[i] * (row[i] * z[i] + 2 * left[i]);
            for (size_t j = i + 1; j < width; j++) left[j] += z[i] * row[j];
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
                  .left = mem_new(BLOCK * n, sizeof *m.left),
                  .scored = mem_new((size_t)vocab, sizeof *m.scored)};
    bool ok = average(&m, e) && (distance ? score_distance : score_inner)(&m, e) && sort_scores(&m, e);
    for (int i = 0; ok && i < count; i++) out[i] = m.scored[i].token;
    MEM_FREE(m.row, m.mean, m.pull, m.gram, m.block, m.left, m.scored);
    return ok;
}

// --- bigrams

// Opens a step with the prefix; returns its last node.
static int begin_step(const Bigrams *b) {
    Tree *tree = &b->target->tree;
    int node = TREE_NONE;
    session_begin_step(b->target, true, LAYOUT_TREE);
    for (int i = 0; i < b->prefix_count; i++)
        node = i ? tree_probe(tree, node, b->prefix[i], false) : tree_root(tree, b->prefix[i]);
    return node;
}

static int add_token(const Bigrams *b, int prefix, int token) {
    Tree *tree = &b->target->tree;
    return b->prefix_count ? tree_probe(tree, prefix, token, true) : tree_root(tree, token);
}

static bool best_tokens(Bigrams *b, int count, Error *e) {
    Session *s = b->target;
    int k = b->table.k;
    for (int first = 0, n; first < count; first += n) {
        int prefix = begin_step(b);
        n = 0; // a tree for each token from `first` on, as many as a step holds
        while (first + n < count && (b->nodes[n] = add_token(b, prefix, b->tokens[first + n])) != TREE_NONE)
            n++;
        if (n == 0) return error_input(e, "a context of %d has no room for a bigram", s->context);
        if (!session_run(s, s->shape.layers, e) || !session_top(s, b->nodes, n, k, b->ids, b->logits, e))
            return false;
        for (int i = 0; i < n * k; i++)
            *token_table_row(&b->table, b->tokens[first + i / k], i % k) = b->ids[i];
    }
    return true;
}

// Chains are numbered by token, then rank.
static int *chain_row(const Bigrams *b, int chain) {
    return token_table_row(&b->table, b->tokens[chain / b->table.k], chain % b->table.k);
}

// Starts chains from `first` on that fit into a step at full length. Returns how many.
static int start_chains(Bigrams *b, int first, int end) {
    Tree *tree = &b->target->tree;
    int prefix = begin_step(b), n = 0, root = TREE_NONE, left = tree->capacity - b->prefix_count;
    for (; first + n < end; n++) {
        bool new_root = n == 0 || (first + n) % b->table.k == 0;
        left -= new_root + b->table.w - 1;
        if (left < 0) break;
        if (new_root) root = add_token(b, prefix, b->tokens[(first + n) / b->table.k]);
        b->nodes[n] = tree_probe(tree, root, *chain_row(b, first + n), true);
    }
    return n;
}

// Reads token `at` of each chain and appends it to the chain.
static bool lengthen(Bigrams *b, int first, int n, int at, Error *e) {
    Session *s = b->target;
    if (!session_run(s, s->shape.layers, e) || !session_read(s, HEAD_ARGMAX, e)) return false;
    for (int i = 0; i < n; i++) {
        if (b->nodes[i] == TREE_NONE) continue; // the context ends here
        int token = session_argmax(s, b->nodes[i]);
        chain_row(b, first + i)[at] = token;
        if (at + 1 < b->table.w) b->nodes[i] = tree_probe(&s->tree, b->nodes[i], token, true);
    }
    return true;
}

static bool lengthen_all(Bigrams *b, int count, Error *e) {
    int end = count * b->table.k;
    for (int first = 0, n; first < end && b->table.w > 1; first += n) {
        n = start_chains(b, first, end);
        if (n == 0)
            return error_input(e, "a step of %d nodes has no room for a chain of %d",
                               b->target->tree.capacity, b->table.w);
        for (int at = 1; at < b->table.w; at++)
            if (!lengthen(b, first, n, at, e)) return false;
    }
    return true;
}

bool bigrams_need(Bigrams *b, const int *tokens, int count, Error *e) {
    TokenTable *t = &b->table;
    int lacking = 0;
    assert(count <= TREE_MAX_NODES);
    for (int i = 0; i < count; i++) {
        if (token_table_has(t, tokens[i])) continue;
        *token_table_row(t, tokens[i], 0) = 0; // it's listed
        b->tokens[lacking++] = tokens[i];
    }
    if (lacking == 0) return true;
    int length = session_set_aside(b->target);
    bool ok = best_tokens(b, lacking, e) && lengthen_all(b, lacking, e);
    session_resume(b->target, length);
    for (int i = 0; !ok && i < lacking; i++)
        for (int j = 0; j < t->k * t->w; j++) token_table_row(t, b->tokens[i], 0)[j] = TABLE_NO_TOKEN;
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
    bool on_demand;          // its rows are made later
    Bigrams *bigrams;        // whose table it is, or NULL
    bool prefix;             // of bigrams
    UnigramOrder order;      // of unigrams
    double rows, operations; // the cost of making it: see Rehearsal
    bool (*make)(const struct Wanted *wanted, TokenTable *out, Error *e); // the rows that it lacks
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
    LOCAL_TEXT made_of = {0};
    if (!env->cache || !env->facts.identify) return true;
    if (!env->facts.identify(env->facts.self, identity, e)) return false;
    text_printf(&made_of, "%s of %s", text_get(&x->made_how), identity);
    return table_file_init(file, env->cache, x->name, text_get(&made_of), e);
}

// Another process may have kept rows in the meantime, which stay; or larger ones, which serve.
static bool keep(const TableFile *file, const Session *target, TokenTable *t, Error *e) {
    LOCAL(token_table_release) TokenTable kept = {0};
    size_t ids = (size_t)t->k * (size_t)t->w;
    bool loaded = table_file_load(file, t->tokens, target->shape.vocab, &kept);
    bool same = loaded && kept.k == t->k && kept.w == t->w,
         larger_one = loaded && !same && kept.k >= t->k && kept.w >= t->w;
    for (int x = 0; same && x < t->tokens; x++)
        if (!token_table_has(t, x))
            memcpy(token_table_row(t, x, 0), token_table_row(&kept, x, 0), ids * sizeof *t->ids);
    return larger_one || table_file_save(file, t, e);
}

// If not keeping the table is an error, it is reported before the table is made. Of an interrupted one the
// rows so far are kept.
static bool make_and_keep(const Wanted *x, const TableFile *file, TokenTable *out, Error *e) {
    const MethodEnv *env = x->env;
    Error why = {0};
    bool ok = !file->path || file_make_directory(env->cache, &why);
    if ((ok || env->unkept) && !x->on_demand && !x->make(x, out, e)) {
        if (ok && token_table_count(out)) keep(file, env->target, out, NULL);
        return false;
    }
    ok = ok && (x->on_demand || keep(file, env->target, out, &why));
    if (env->unkept && !(ok && file->path)) {
        env->unkept(env->unkept_state, &why);
        return true;
    }
    if (!ok && e) *e = why;
    return ok || error_within(e, "a table of n-grams cannot be kept (give another --cache)");
}

static bool is_added(const Wanted *x, const Rehearsal *r) {
    for (int i = 0; i < r->table_count; i++)
        if (strcmp(r->tables[i].name, x->name) == 0 && r->tables[i].prefix == x->prefix &&
            r->tables[i].k >= x->k && r->tables[i].w >= x->w)
            return true;
    return false;
}

// Counts the cost of the rows that are missing.
static void rehearse(const Wanted *x, double missing) {
    Rehearsal *r = x->env->rehearsal;
    if (x->on_demand || is_added(x, r)) return;
    r->rows += x->rows * missing;
    r->operations += x->operations * missing;
    if (r->table_count < (int)(sizeof r->tables / sizeof *r->tables)) {
        PlannedTable added = {x->name, x->prefix, x->k, x->w};
        r->tables[r->table_count++] = added;
    }
    assert(r->table_count <= (int)(sizeof r->tables / sizeof *r->tables) && r->rows >= 0);
}

// A kept table that is too small is made again, large enough for both uses.
static bool obtain(const Wanted *x, TableFile *file, TokenTable *out, Error *e) {
    int k = x->k, w = x->w;
    *out = (TokenTable){0};
    model_tables_check(x);
    if (!name_file(x, file, e)) return false;
    if (table_file_load(file, x->tokens, x->env->target->shape.vocab, out) && !serves(x, out)) {
        k = larger(k, out->k);
        w = larger(w, out->w);
        token_table_release(out);
    }
    int missing = x->tokens - (out->ids ? token_table_count(out) : 0);
    if (missing == 0) return true;
    if (x->env->rehearsal) rehearse(x, (double)missing / x->tokens);
    bool ok = out->ids || token_table_init(out, x->env->rehearsal ? 1 : x->tokens, k, w, e);
    ok = ok && (x->env->rehearsal || make_and_keep(x, file, out, e));
    if (!ok) token_table_release(out);
    assert(!ok || serves(x, out));
    return ok;
}

// --- a table of bigrams

static bool make_bigrams(const Wanted *x, TokenTable *t, Error *e) {
    int rows = t->w > 1 ? 1 + t->k * (t->w - 1) : 1, capacity = x->env->target->tree.capacity;
    int most = larger(1, capacity / rows); // about a step of each kind at a time
    int tokens[TREE_MAX_NODES];
    for (int first = 0, n; first < t->tokens; first += n) {
        if (!progress_say(&x->env->progress, "making bigrams", (double)first / t->tokens, e)) return false;
        n = smaller(most, t->tokens - first);
        for (int i = 0; i < n; i++) tokens[i] = first + i;
        if (!bigrams_need(x->bigrams, tokens, n, e)) return false;
    }
    return true;
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

bool bigrams_open(const MethodEnv *env, bool prefix, int k, int w, bool on_demand, Bigrams *b, Error *e) {
    const Shape *shape = &env->target->shape;
    int most = smaller(TOKEN_TABLE_MAX_K, shape->real_vocab), room = env->target->context;
    size_t capacity = (size_t)env->target->tree.capacity;
    Wanted x = {.env = env,
                .name = w > 1 ? "extended-bigram" : "bigram",
                .tokens = shape->vocab,
                .k = smaller(w > 1 ? k : larger(k, USUAL_K), most),
                .w = w,
                .on_demand = on_demand,
                .bigrams = b,
                .prefix = prefix,
                .make = make_bigrams};
    x.rows = (double)shape->vocab * (w > 1 ? 1 + x.k * (w - 1) + 1 : 1);
    *b = (Bigrams){.target = env->target,
                   .prefix = env->facts.prefix,
                   .prefix_count = prefix ? env->facts.prefix_count : 0};
    if (prefix && env->facts.prefix_count == 0)
        return error_input(e, "'bos' is on, but the model names no token that begins a text");
    if (env->only_text) return error_input(e, "it asks a model for its distribution; %s", env->only_text);
    b->ids = mem_new(capacity * TOKEN_TABLE_MAX_K, sizeof *b->ids);
    b->logits = mem_new(capacity * TOKEN_TABLE_MAX_K, sizeof *b->logits);
    // A longer context changes nothing: continuations end before it does.
    write_origin(env, prefix, smaller(room, TOKEN_TABLE_MAX_W + env->facts.prefix_count), &x.made_how);
    bool ok = obtain(&x, &b->file, &b->table, e);
    text_release(&x.made_how);
    if (ok) b->made = token_table_count(&b->table);
    return ok;
}

void bigrams_close(Bigrams *b) {
    if (b->file.path && b->table.ids && token_table_count(&b->table) > b->made)
        keep(&b->file, b->target, &b->table, NULL); // if it fails, its rows are made again next time
    table_file_release(&b->file);
    token_table_release(&b->table);
    MEM_FREE(b->ids, b->logits);
    *b = (Bigrams){0};
}

// --- unigrams

static bool make_unigrams(const Wanted *x, TokenTable *out, Error *e) {
    const Shape *shape = &x->env->target->shape;
    return unigram_order(&x->env->facts, shape->real_vocab, shape->width, x->order, out->k, x->env->progress,
                         out->ids, e) ||
           error_within(e, "model '%s'", x->env->target->name);
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
    LOCAL(table_file_release) TableFile file = {0};
    bool ok = obtain(&x, &file, out, e);
    text_release(&x.made_how);
    return ok;
}
