// Two passes: the best tokens after every x; then, where w > 1, chains below them that grow by one token a
// run. A chain's last token is never run: the argmax before it says it.
#include "engine/decode/bigram.h"

#include "engine/base/memory.h"

typedef struct Maker {
    Session *s;
    TokenTable *table;
    Progress progress;
    int *nodes; // (capacity): roots, then the ends of chains
    int *ids;   // (capacity, k)
    float *logits;
} Maker;

// --- the best tokens

// As many tokens from `first` on as a step holds; gives their number, 0 where there is no room for one.
static int root_each(Maker *m, int first) {
    int n = 0;
    session_begin_step(m->s, true, LAYOUT_TREE);
    while (first + n < m->table->tokens && (m->nodes[n] = tree_root(&m->s->tree, first + n)) != TREE_NONE)
        n++;
    return n;
}

static bool best_tokens(Maker *m, Error *e) {
    TokenTable *t = m->table;
    for (int first = 0, n; first < t->tokens; first += n) {
        if (!progress_say(&m->progress, "making bigrams", (double)first / t->tokens, e)) return false;
        n = root_each(m, first);
        if (n == 0) return error_input(e, "a context of %d has no room for a bigram", m->s->context);
        if (!session_run(m->s, m->s->shape.layers, e)) return false;
        if (!session_top(m->s, m->nodes, n, t->k, m->ids, m->logits, e)) return false;
        for (int i = 0; i < n * t->k; i++) token_table_row(t, first, 0)[i * t->w] = m->ids[i];
    }
    return true;
}

// --- what the model says after them

// Chains are numbered token * k + rank. Starts those from `first` on that fit into a step with all their
// length; gives their number.
static int start_chains(Maker *m, int first) {
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

// Reads token `at` of each chain, and lets the chain grow by it.
static bool lengthen(Maker *m, int first, int n, int at, Error *e) {
    if (!session_run(m->s, m->s->shape.layers, e) || !session_read(m->s, HEAD_ARGMAX, e)) return false;
    for (int i = 0; i < n; i++) {
        if (m->nodes[i] == TREE_NONE) continue; // the context's end
        int token = session_argmax(m->s, m->nodes[i]);
        token_table_row(m->table, 0, 0)[(size_t)(first + i) * (size_t)m->table->w + (size_t)at] = token;
        if (at + 1 < m->table->w) m->nodes[i] = tree_probe(&m->s->tree, m->nodes[i], token, true);
    }
    return true;
}

static bool decode_on(Maker *m, Error *e) {
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

static bool allocate(Maker *m, Error *e) {
    size_t capacity = (size_t)m->s->tree.capacity, k = (size_t)m->table->k;
    m->nodes = mem_alloc(capacity, sizeof *m->nodes);
    m->ids = mem_alloc(capacity * k, sizeof *m->ids);
    m->logits = mem_alloc(capacity * k, sizeof *m->logits);
    return (m->nodes && m->ids && m->logits) || error_system(e, "out of memory for a table of bigrams");
}

bool bigram_make(Session *s, const BigramSetup *setup, Progress progress, TokenTable *out, Error *e) {
    int k = setup->k < s->shape.real_vocab ? setup->k : s->shape.real_vocab;
    Maker m = {.s = s, .table = out, .progress = progress};
    if (!token_table_init(out, s->shape.vocab, k, setup->w, e)) return false;
    session_reset(s);
    bool ok = setup->prefix_count < s->context ||
              error_input(e, "a context of %d has no room for a bigram", s->context);
    ok = ok && allocate(&m, e) &&
         session_prefill(s, setup->prefix, setup->prefix_count, 0, HIDDEN_NONE, NULL, e);
    ok = ok && best_tokens(&m, e) && decode_on(&m, e);
    session_reset(s);
    mem_free(m.nodes);
    mem_free(m.ids);
    mem_free(m.logits);
    if (!ok) token_table_release(out);
    return ok;
}
