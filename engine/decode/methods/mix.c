// Several methods propose into one tree (ours): tokens that any of them gets right are accepted, and a token
// that two of them propose costs one row.
//
//      mix:ngrammys(k=5)+lookahead(W=7,N=5,G=7),rows=64
//
// Methods get their rows in turn: each may use an equal share of the rows that are left, the last one all of
// them. So of 63 rows besides the root, the first of two may use 31; if it uses 10, the second may use 53.
// Put a method that fills its share at the end, and one with the surest guesses at the front: of the
// proposals at a node, the first is tried first.
//
// Every method sees every step (observe), whichever tokens are accepted. The bonus is dropped if a method
// that drops it proposed the whole accepted path. A draft model, or a set of adapters, serves one method
// only.
//
// Invariant: source numbers of the mix are the methods' own, shifted by the sources of the methods before.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MOST_METHODS = SOURCES_MAX / 3, NAME_SIZE = 80 }; // no method has more than three sources

typedef struct MixParams {
    char of[ARG_TEXT_SIZE];
    int rows;
} MixParams;

#define AT(name) offsetof(MixParams, name)
static const Arg PARAMS[] = {
    {"of", ARG_METHODS, AT(of), .fallback = "ngrammys+lookahead",
     .help = "NAME(k=v,...)+NAME(...); 'of=' may be left out"},
    {"rows", ARG_INT, AT(rows), 0, TREE_MAX_NODES, "0",
     .help = "most rows per step, root included; 0: no limit"},
};
#undef AT

typedef struct Mix {
    MixParams p;
    Method methods[MOST_METHODS]; // (count)
    int count;
    Session *target;
    int hidden_layer;
    float *hidden; // (nodes, width): the open step's states at hidden_layer; NULL: not below the last layer
    char names[SOURCES_MAX][NAME_SIZE];
    const char *source_names[SOURCES_MAX];
    Sources sources; // of all methods, in order
} Mix;

static void mix_close(void *self) {
    Mix *m = self;
    if (!m) return;
    for (int i = 0; i < m->count; i++) method_close(&m->methods[i]);
    mem_free(m->hidden);
    mem_free(m);
}

// --- open

// Turns "name(k=v,...)" of n bytes into the form that method_open reads, "name:k=v,...".
static bool plain_text(const char *part, size_t n, char *out, Error *e) {
    snprintf(out, ARG_TEXT_SIZE, "%.*s", (int)n, part);
    char *open = strchr(out, '(');
    if (!open) return true;
    *open = ':';
    if (out[n - 1] != ')')
        return error_input(e, "'%.*s' must end with the parenthesis of its parameters", (int)n, part);
    out[n - 1] = 0;
    return true;
}

// No two methods of a mix draw the same numbers.
static uint64_t seed_of(uint64_t seed, int method) {
    return method == 0 ? seed : random_at(seed, STREAM_METHOD + ((uint64_t)method << 8), 0);
}

// A draft model, or a set of adapters, cannot follow two methods.
static bool check_shared(const Mix *m, const MethodInfo *info, Error *e) {
    for (int i = 0; i < m->count; i++) {
        const MethodInfo *other = m->methods[i].info;
        unsigned same = info->needs & other->needs;
        if (same & NEEDS_DRAFT)
            return error_input(e, "%s and %s cannot share the draft model", other->name, info->name);
        if (same & (NEEDS_ADAPTER | NEEDS_HEADS | NEEDS_EAGLE | NEEDS_EAGLE3))
            return error_input(e, "%s and %s cannot share the adapter", other->name, info->name);
    }
    return true;
}

static bool open_one(Mix *m, const char *part, size_t n, const MethodEnv *env, Error *e) {
    char text[ARG_TEXT_SIZE];
    MethodEnv own = *env;
    if (m->count == MOST_METHODS) return error_input(e, "a mix has %d methods at most", MOST_METHODS);
    if (!plain_text(part, n, text, e)) return false;
    own.mixed = true;
    own.seed = seed_of(env->seed, m->count);
    Method *method = &m->methods[m->count];
    if (!method_open(method, text, &own, e)) return false;
    bool ok = check_shared(m, method->info, e);
    m->count++; // from here on, closing the mix closes it
    return ok;
}

static bool open_all(Mix *m, const MethodEnv *env, Error *e) {
    for (const char *p = m->p.of;;) {
        size_t n = args_span(p, '+');
        if (!open_one(m, p, n, env, e)) return false;
        p += n;
        if (!*p++) return true;
    }
}

// "method/source"; the second of a method is "method-2/source".
static void name_sources(Mix *m) {
    Sources *all = &m->sources;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        const Sources *own = method->info->sources ? method->info->sources(method->self) : NULL;
        char which[16] = "";
        int same = 1;
        for (int k = 0; k < i; k++) same += m->methods[k].info == method->info;
        if (same > 1) snprintf(which, sizeof which, "-%d", same);
        for (int k = 0; own && k < own->source_count; k++, all->source_count++) {
            assert(all->source_count < SOURCES_MAX);
            char *name = m->names[all->source_count];
            snprintf(name, NAME_SIZE, "%s%s/%s", method->info->name, which, own->names[k]);
            m->source_names[all->source_count] = name;
        }
    }
    all->names = m->source_names;
}

static int layer_of(const Method *method) {
    return method->info->hidden_layer ? method->info->hidden_layer(method->self) : HIDDEN_NONE;
}

// At most one method of a mix has adapters, so at most one has a hidden_layer.
static void find_layer(Mix *m) {
    const Session *s = m->target;
    m->hidden_layer = HIDDEN_NONE;
    for (int i = 0; i < m->count; i++)
        if (layer_of(&m->methods[i]) != HIDDEN_NONE) m->hidden_layer = layer_of(&m->methods[i]);
    if (m->hidden_layer <= 0 || m->hidden_layer == s->shape.layers) return;
    m->hidden = mem_new((size_t)s->tree.capacity, (size_t)s->shape.width * sizeof *m->hidden);
}

static void check(const Mix *m) {
    assert(m->count >= 1 && m->count <= MOST_METHODS && m->sources.source_count <= SOURCES_MAX);
    assert(!m->hidden || (m->hidden_layer > 0 && m->hidden_layer < m->target->shape.layers));
}

static void *mix_open(const MethodEnv *env, const void *values, Error *e) {
    if (env->mixed) {
        error_input(e, "a mix cannot be part of a mix");
        return NULL;
    }
    Mix *m = mem_new(1, sizeof *m);
    m->p = *(const MixParams *)values;
    m->target = env->target;
    if (!open_all(m, env, e)) {
        mix_close(m);
        return NULL;
    }
    find_layer(m);
    name_sources(m);
    check(m);
    return m;
}

// --- a step

static bool mix_begin(void *self, const Prompt *prompt, Error *e) {
    Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        Prompt own = *prompt;
        own.seed = seed_of(prompt->seed, i);
        if (!m->methods[i].info->begin(m->methods[i].self, &own, e)) return false;
    }
    return true;
}

static bool propose_all(Mix *m, Tree *tree, Error *e) {
    int end = tree->count + tree_room(tree);
    if (m->p.rows && m->p.rows < end) end = m->p.rows;
    for (int i = 0; i < m->count; i++) {
        int left = end > tree->count ? end - tree->count : 0;
        tree_limit_rows(tree, tree->count + left / (m->count - i));
        if (!m->methods[i].info->propose(m->methods[i].self, tree, e)) return false;
    }
    tree_limit_rows(tree, end);
    return true;
}

static void gather_sources(Mix *m) {
    int first = 0; // the method's sources among all
    m->sources.count = 0;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        const Sources *own = method->info->sources ? method->info->sources(method->self) : NULL;
        for (int k = 0; own && k < own->count; k++)
            sources_record(&m->sources, first + own->rows[k].source, own->rows[k].node);
        if (own) first += own->source_count;
    }
    assert(first == m->sources.source_count);
}

// Keeps the states of all nodes at the layer that a method needs: it will need them whichever method's tokens
// are accepted.
static bool keep_hidden(Mix *m, const Tree *tree, Error *e) {
    int nodes[TREE_MAX_NODES];
    for (int i = 0; i < tree->count; i++) nodes[i] = i;
    return !m->hidden || (session_run(m->target, m->hidden_layer, e) &&
                          session_get_hidden(m->target, nodes, tree->count, HIDDEN_RAW, m->hidden, e));
}

static bool mix_propose(void *self, Tree *tree, Error *e) {
    Mix *m = self;
    if (!propose_all(m, tree, e)) return false;
    gather_sources(m);
    check(m);
    return keep_hidden(m, tree, e);
}

static bool mix_observe(void *self, const Observation *seen, Error *e) {
    Mix *m = self;
    Observation own = *seen;
    own.hidden = m->hidden;
    for (int i = 0; i < m->count; i++)
        if (!m->methods[i].info->observe(m->methods[i].self, &own, e)) return false;
    return true;
}

// --- the mix as a method

static int mix_hidden_layer(const void *self) { return ((const Mix *)self)->hidden_layer; }

static const Captures *mix_captures(const void *self) {
    const Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        if (method->info->captures) return method->info->captures(method->self);
    }
    return NULL;
}

// Whether one of the method's rows is the whole accepted path.
static bool proposed_whole(const Mix *m, const Method *method, const Verdict *v) {
    const Sources *own = method->info->sources ? method->info->sources(method->self) : NULL;
    for (int i = 0; own && i < own->count; i++)
        if (m->target->tree.canonical[own->rows[i].node] == v->node) return true;
    return false;
}

static bool mix_drops_bonus(const void *self, const Verdict *v) {
    const Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        if (method->info->drops_bonus && method->info->drops_bonus(method->self, v) &&
            proposed_whole(m, method, v))
            return true;
    }
    return false;
}

static const Sources *mix_sources(const void *self) { return &((const Mix *)self)->sources; }

static void mix_note(const void *self, StepNote *out) {
    const Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        StepNote own = {0};
        if (m->methods[i].info->note) m->methods[i].info->note(m->methods[i].self, &own);
        if (own.kind == STEP_FILLING) out->kind = STEP_FILLING;
        out->pool += own.pool;
        out->pool_hits += own.pool_hits;
    }
}

const MethodInfo method_mix = {
    .name = "mix",
    .summary = "several methods in one tree: 'mix:NAME(k=v,...)+NAME(...),rows=N', quoted for the shell",
    .from_text = true,
    .params = PARAMS,
    .param_count = sizeof PARAMS / sizeof *PARAMS,
    .param_size = sizeof(MixParams),
    .open = mix_open,
    .begin = mix_begin,
    .propose = mix_propose,
    .observe = mix_observe,
    .close = mix_close,
    .hidden_layer = mix_hidden_layer,
    .captures = mix_captures,
    .drops_bonus = mix_drops_bonus,
    .sources = mix_sources,
    .note = mix_note};
