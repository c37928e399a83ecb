// The cheapest memory of earlier texts: a table of tokens, in which the hash of n tokens names the place of
// the one that last followed them. A draft looks up the text's last n tokens, then the last n of text and
// draft, until a place is empty. Nothing is compared: two n-grams with one place draft each other's tokens,
// which the verifier rejects.
//
// Invariant between steps: each n-gram of the sequence that has a successor in it was written, in order.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

enum { NONE = -1, N_MOST = 64 };

typedef struct NgramModParams {
    int n, draft, bits;
    bool warm;
} NgramModParams;

#define AT(name) offsetof(NgramModParams, name)
static const Arg PARAMS[] = {
    {"n", ARG_INT, AT(n), 1, N_MOST, "4", .help = "tokens that a place is found by"},
    {"draft", ARG_INT, AT(draft), 1, TREE_MAX_NODES - 1, "16", .help = "most tokens proposed"},
    {"bits", ARG_INT, AT(bits), 4, 30, "20", .help = "the table has 2^bits places of 4 bytes"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "on", .help = "keep the table between prompts"},
};

static const char *const SOURCES[] = {"table", NULL};

typedef struct NgramMod {
    NgramModParams p;
    int *table;             // (2^bits): tokens, or NONE
    int last[N_MOST];       // (have): the text's last tokens
    int have;               // at most n
    Sources sources;        // of the open step
    size_t filled, changed; // places with a token; writes that changed one, which may be another n-gram's
    int draft[TREE_MAX_NODES];
} NgramMod;

static int *place_of(const NgramMod *m, const int *last) {
    uint64_t h = 0;
    for (int i = 0; i < m->p.n; i++) h = (h ^ (uint64_t)(uint32_t)last[i]) * 0x9E3779B97F4A7C15u + 1;
    return &m->table[h >> (64 - m->p.bits)];
}

static void forget(NgramMod *m) {
    memset(m->table, 0xff, ((size_t)1 << m->p.bits) * sizeof *m->table);
    assert(m->table[0] == NONE);
    m->filled = m->changed = 0;
}

// Moves on by a token: `last` has at most n of them.
static int shift(const NgramMod *m, int *last, int have, int token) {
    if (have == m->p.n) memmove(last, last + 1, (size_t)--have * sizeof *last);
    last[have] = token;
    return have + 1;
}

static void write(NgramMod *m, int token) {
    if (m->have == m->p.n) {
        int *place = place_of(m, m->last);
        m->filled += *place == NONE;
        m->changed += *place != NONE && *place != token;
        *place = token;
    }
    m->have = shift(m, m->last, m->have, token);
    assert(m->have >= 0 && m->have <= m->p.n);
}

static void ngram_mod_close(void *self) { mem_free(((NgramMod *)self)->table); }

static bool ngram_mod_open(void *self, UNUSED const MethodEnv *env, Error *e) {
    NgramMod *m = self;
    m->table = mem_try((size_t)1 << m->p.bits, sizeof *m->table);
    if (!m->table)
        return error_input(e, "a table of 2^%d places doesn't fit into memory: use fewer 'bits'", m->p.bits);
    forget(m);
    return true;
}

static bool ngram_mod_begin(void *self, const Prompt *prompt, UNUSED Error *e) {
    NgramMod *m = self;
    if (!m->p.warm) forget(m);
    m->have = 0;
    for (int i = 0; i < prompt->count; i++) write(m, prompt->tokens[i]);
    return true;
}

static void ngram_mod_look(void *self, Outlook *out) {
    NgramMod *m = self;
    int last[N_MOST], count = 0, have = m->have;
    memcpy(last, m->last, sizeof last);
    while (have == m->p.n && count < m->p.draft) {
        int token = *place_of(m, last);
        if (token == NONE) break;
        m->draft[count++] = token;
        have = shift(m, last, have, token);
    }
    *out = (Outlook){.match = count ? m->p.n : 0, .count = count, .score = count, .token = m->draft};
}

static bool ngram_mod_propose(void *self, Tree *tree, UNUSED Error *e) {
    NgramMod *m = self;
    Outlook draft;
    ngram_mod_look(m, &draft);
    m->sources.count = 0;
    sources_propose(&m->sources, tree, 0, draft.token, draft.count);
    return true;
}

static bool ngram_mod_observe(void *self, const Observation *seen, UNUSED Error *e) {
    NgramMod *m = self;
    for (int i = 0; i < seen->emitted_count; i++) write(m, seen->emitted[i]);
    return true;
}

static void ngram_mod_state(const void *self, Text *out) {
    const NgramMod *m = self;
    size_t places = (size_t)1 << m->p.bits;
    text_printf(out, "%zu of %zu places filled, %.1f MB; evicted %zu tokens", m->filled, places,
                1e-6 * (double)(places * sizeof *m->table), m->changed);
}

static void ngram_mod_work(const void *self, StepWork *out) {
    int draft = ((const NgramMod *)self)->p.draft;
    *out = (StepWork){.longest = draft + 1, .rows = draft + 1};
}

const MethodInfo method_ngram_mod = {
    METHOD_ROW(ngram_mod, NgramMod),
    .name = "ngram-mod",
    .summary = "the token that last followed the text's last n, by their hash alone",
    .from_text = true,
    .look = ngram_mod_look,
    .may_rest = true,
    .state = ngram_mod_state};
