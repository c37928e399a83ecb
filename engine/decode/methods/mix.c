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
// With a `switch` (switch.h) only some of the methods draft in a step: the first alone, whose draft is ready,
// or the others. Those left out keep their models at rest and cost nothing, if they can (may_rest); any other
// method proposes into a tree without room.
//
// Every method sees every step (observe), whichever tokens are accepted. The bonus is dropped if a method
// that drops it proposed the whole accepted path. A draft model, a set of adapters, the target's lower layers
// and the prompt's hidden states serve one method only.
//
// Invariant: source numbers of the mix are the methods' own, shifted by the sources of the methods before.
#include "engine/decode/methods/methods.h"

#include "engine/base/memory.h"
#include "engine/decode/switch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_METHODS = SOURCES_MAX / 3, NAME_SIZE = 80 }; // no method has more than three sources

typedef struct MixParams {
    char of[ARG_TEXT_SIZE];
    int rows, rule;
    double threshold, cost;
    bool both, warm;
} MixParams;

static const char *const SWITCHES[] = {"off", "match", "score", "learned", NULL}; // as SwitchRule

#define AT(name) offsetof(MixParams, name)
static const Arg PARAMS[] = {
    {"of", ARG_METHODS, AT(of), .fallback = "ngrammys+lookahead",
     .help = "NAME(k=v,...)+NAME(...); 'of=' may be left out"},
    {"rows", ARG_INT, AT(rows), 0, TREE_MAX_NODES, "0",
     .help = "most rows per step, root included; 0: no limit"},
    {"switch", ARG_CHOICE, AT(rule), .fallback = "off", .choices = SWITCHES,
     .help = "rule by which the first method drafts alone; off: all draft"},
    {"threshold", ARG_REAL, AT(threshold), 0, 1000, "5",
     .help = "match, score: alone from so many tokens on, else the others alone"},
    {"cost", ARG_REAL, AT(cost), 0, 100, "0.25", .help = "learned: of the others' drafting, in steps"},
    {"both", ARG_FLAG, AT(both), .fallback = "on", .help = "learned: all may draft together"},
    {"warm", ARG_FLAG, AT(warm), .fallback = "off", .help = "learned: keep what was learned between prompts"},
};

typedef struct Mix {
    MixParams p;
    Method methods[MOST_METHODS]; // (count)
    bool drafts[MOST_METHODS];    // of the open step: propose was called
    int count;
    Switch switcher;
    bool begun;       // a prompt before
    bool rest_drafts; // in the open step
    int rest_rows;    // that the other methods added when they last drafted
    Session *target;
    int hidden_layer;
    float *hidden; // (nodes, width): the open step's states at hidden_layer; NULL: not below the last layer
    char names[SOURCES_MAX][NAME_SIZE];
    const char *source_names[SOURCES_MAX];
    Sources sources; // of all methods, in order
} Mix;

static void mix_close(void *self) {
    Mix *m = self;
    for (int i = 0; i < m->count; i++) method_close(&m->methods[i]);
    mem_free(m->hidden);
}

// --- open

// No two methods of a mix draw the same numbers.
static uint64_t seed_of(uint64_t seed, int method) {
    return method == 0 ? seed : random_at(seed, STREAM_METHOD + ((uint64_t)method << 8), 0);
}

static int layer_of(const Method *method) {
    return method->info->hidden_layer ? method->info->hidden_layer(method->self) : HIDDEN_NONE;
}

static const Captures *captures_of(const Method *method) {
    return method->info->captures ? method->info->captures(method->self) : NULL;
}

static bool reads_prompt(const Method *method) {
    return layer_of(method) != HIDDEN_NONE || captures_of(method);
}

// A draft model, or a set of adapters, cannot follow two methods.
static bool check_shared(const Mix *m, const Method *method, Error *e) {
    const unsigned lower = NEEDS_ADAPTER | NEEDS_LAYERS;
    for (int i = 0; i < m->count; i++) {
        const MethodInfo *info = method->info, *other = m->methods[i].info;
        unsigned same = info->needs & other->needs;
        const char *what = same & NEEDS_DRAFT                                     ? "draft model"
                           : same & NEEDS_ADAPTERS                                ? "adapter"
                           : info->needs & lower && other->needs & lower          ? "target's lower layers"
                           : reads_prompt(method) && reads_prompt(&m->methods[i]) ? "prompt's hidden states"
                                                                                  : NULL;
        if (what) return error_input(e, "%s and %s cannot share the %s", other->name, info->name, what);
    }
    return true;
}

static bool open_one(Mix *m, const char *part, size_t n, const MethodEnv *env, Error *e) {
    char text[ARG_TEXT_SIZE];
    MethodEnv own = *env;
    if (m->count == MOST_METHODS) return error_input(e, "a mix has %d methods at most", MOST_METHODS);
    if (!method_plain_text(part, n, text, e)) return false;
    own.mixed = true;
    own.seed = seed_of(env->seed, m->count);
    Method *method = &m->methods[m->count];
    if (!method_open(method, text, &own, e)) return false;
    bool ok = check_shared(m, method, e);
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

static bool check_switch(const Mix *m, Error *e) {
    const MethodInfo *first = m->methods[0].info;
    if (m->p.rule == SWITCH_OFF) return true;
    if (m->count < 2)
        return error_input(e, "'switch' is %s, but there is no second method", SWITCHES[m->p.rule]);
    return first->look ||
           error_input(e,
                       "'switch' is %s, but the first method, %s, doesn't know its draft beforehand: "
                       "put suffix, prompt-lookup or ngram-mod first",
                       SWITCHES[m->p.rule], first->name);
}

// "method/source"; the second of a method is "method-2/source".
static void name_sources(Mix *m) {
    Sources *all = &m->sources;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        const Sources *own = method_sources(method);
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

static void mix_check(const Mix *m) {
    assert(m->count >= 1 && m->count <= MOST_METHODS && m->sources.source_count <= SOURCES_MAX);
    assert(!m->hidden || (m->hidden_layer > 0 && m->hidden_layer < m->target->shape.layers));
}

static bool mix_open(void *self, const MethodEnv *env, Error *e) {
    Mix *m = self;
    if (env->mixed) return error_input(e, "a mix cannot be part of a mix");
    m->target = env->target;
    if (!open_all(m, env, e) || !check_switch(m, e)) return false;
    m->hidden_layer = HIDDEN_NONE; // at most one method reads the prompt's states (check_shared)
    for (int i = 0; i < m->count; i++)
        if (layer_of(&m->methods[i]) != HIDDEN_NONE) m->hidden_layer = layer_of(&m->methods[i]);
    const Session *s = m->target;
    if (m->hidden_layer > 0 && m->hidden_layer != s->shape.layers)
        m->hidden = mem_new((size_t)s->tree.capacity, (size_t)s->shape.width * sizeof *m->hidden);
    name_sources(m);
    mix_check(m);
    return true;
}

// --- a step

static bool mix_prefilled(void *self, const int *tokens, int first, int count, Error *e) {
    Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        if (method->info->prefilled && !method->info->prefilled(method->self, tokens, first, count, e))
            return false;
    }
    return true;
}

static bool mix_begin(void *self, const Prompt *prompt, Error *e) {
    Mix *m = self;
    SwitchParams rule = {(SwitchRule)m->p.rule, m->p.threshold, m->p.cost, m->p.both};
    if (m->p.warm && m->begun) switch_begin(&m->switcher);
    else switch_init(&m->switcher, &rule);
    m->begun = true;
    m->rest_rows = 0;
    for (int i = 0; i < m->count; i++) {
        Prompt own = *prompt;
        own.seed = seed_of(prompt->seed, i);
        if (!m->methods[i].info->begin(m->methods[i].self, &own, e)) return false;
    }
    return true;
}

static bool mix_prepare(void *self, Error *e) {
    Mix *m = self;
    for (Method *method = m->methods; method < m->methods + m->count; method++)
        if (method->info->prepare && !method->info->prepare(method->self, e)) return false;
    return true;
}

// `share`: of the rows that are left, one in so many.
static bool propose_one(Mix *m, int i, Tree *tree, int end, int share, Error *e) {
    const Method *method = &m->methods[i];
    int left = share && end > tree->count ? (end - tree->count) / share : 0;
    m->drafts[i] = share || !method->info->may_rest;
    tree_limit_rows(tree, tree->count + left);
    return !m->drafts[i] || method->info->propose(method->self, tree, e);
}

static bool propose_all(Mix *m, Tree *tree, Error *e) {
    int end = tree->count + tree_room(tree);
    if (m->p.rows && m->p.rows < end) end = m->p.rows;
    int who = DRAFT_FIRST | DRAFT_REST, first = tree->count;
    if (m->p.rule != SWITCH_OFF) {
        Outlook outlook = {0};
        m->methods[0].info->look(m->methods[0].self, &outlook);
        who = switch_choose(&m->switcher, &outlook, outlook.count + m->rest_rows <= end - tree->count);
    }
    for (int i = 0; i < m->count; i++) {
        bool drafts = who & (i ? DRAFT_REST : DRAFT_FIRST);
        if (i == 1) first = tree->count;
        int others = i == 0 && !(who & DRAFT_REST) ? 1 : m->count - i;
        if (!propose_one(m, i, tree, end, drafts ? others : 0, e)) return false;
    }
    if (who & DRAFT_REST) m->rest_rows = tree->count - first;
    m->rest_drafts = who & DRAFT_REST;
    tree_limit_rows(tree, end);
    return true;
}

static void gather_sources(Mix *m) {
    int first = 0; // the method's sources among all
    m->sources.count = 0;
    for (int i = 0; i < m->count; i++) {
        const Sources *own = method_sources(&m->methods[i]);
        for (int k = 0; own && k < (m->drafts[i] ? own->count : 0); k++)
            sources_record(&m->sources, first + own->rows[k].source, own->rows[k].node);
        if (own) first += own->source_count;
    }
    assert(first == m->sources.source_count);
}

static bool mix_propose(void *self, Tree *tree, Error *e) {
    Mix *m = self;
    if (!propose_all(m, tree, e)) return false;
    gather_sources(m);
    mix_check(m);
    if (!m->hidden) return true;
    // Keeps the states of all nodes at the layer that a method needs: it will need them whichever method's
    // tokens are accepted.
    int nodes[TREE_MAX_NODES];
    for (int i = 0; i < tree->count; i++) nodes[i] = i;
    return session_run(m->target, m->hidden_layer, e) &&
           session_get_hidden(m->target, nodes, tree->count, HIDDEN_RAW, m->hidden, e);
}

// The most tokens that one of the others' rows had right.
static int rest_right(const Mix *m, const Observation *seen) {
    const Sources *first = method_sources(&m->methods[0]);
    int right = 0, own = first ? first->source_count : 0;
    for (int i = 0; i < m->sources.count; i++) {
        int match = sources_match(&m->target->tree, m->sources.rows[i].node, seen->verdict->node);
        if (m->sources.rows[i].source >= own && match > right) right = match;
    }
    return right;
}

static bool mix_observe(void *self, const Observation *seen, Error *e) {
    Mix *m = self;
    Observation own = *seen;
    own.hidden = m->hidden;
    switch_observe(&m->switcher, seen->emitted, seen->emitted_count,
                   m->rest_drafts ? rest_right(m, seen) : -1);
    for (int i = 0; i < m->count; i++)
        if (!m->methods[i].info->observe(m->methods[i].self, &own, e)) return false;
    return true;
}

// --- the mix as a method

static int mix_hidden_layer(const void *self) { return ((const Mix *)self)->hidden_layer; }

static const Captures *mix_captures(const void *self) {
    const Mix *m = self;
    const Captures *captures = NULL;
    for (int i = 0; i < m->count && !captures; i++) captures = captures_of(&m->methods[i]);
    return captures;
}

// Whether one of the method's rows is the whole accepted path.
static bool proposed_whole(const Mix *m, const Method *method, const Verdict *v) {
    const Sources *own = method_sources(method);
    for (int i = 0; own && i < own->count; i++)
        if (m->target->tree.canonical[own->rows[i].node] == v->node) return true;
    return false;
}

static bool mix_drops_bonus(const void *self, const Verdict *v) {
    const Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        if (m->drafts[i] && method->info->drops_bonus && method->info->drops_bonus(method->self, v) &&
            proposed_whole(m, method, v))
            return true;
    }
    return false;
}

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

static void mix_state(const void *self, Text *out) {
    const Mix *m = self;
    const char *between = "";
    for (int i = 0; i < m->count; i++) {
        const Method *method = &m->methods[i];
        if (!method->info->state) continue;
        text_printf(out, "%s%s: ", between, method->info->name);
        method->info->state(method->self, out);
        between = "; ";
    }
}

static void mix_work(const void *self, StepWork *out) {
    const Mix *m = self;
    for (int i = 0; i < m->count; i++) {
        StepWork own = method_work(&m->methods[i]);
        if (own.longest > out->longest) out->longest = own.longest;
        out->rows += own.rows - 1;
        for (int k = 0; k < own.draft_count && out->draft_count < DRAFTS_MOST; k++)
            out->drafts[out->draft_count++] = own.drafts[k];
    }
    if (m->p.rows) out->rows = fmin(out->rows, m->p.rows);
}

static bool mix_unchanged(const void *self, Error *e) {
    const Mix *m = self;
    bool ok = true;
    for (int i = 0; ok && i < m->count; i++) ok = method_is_unchanged(&m->methods[i], e);
    return ok;
}

const MethodInfo method_mix = {
    METHOD_ROW_OF(mix, Mix, PARAMS),
    .name = "mix",
    .summary = "several methods in one tree: 'mix:NAME(k=v,...)+NAME(...),rows=N', quoted for the shell",
    .from_text = true,
    .prefilled = mix_prefilled,
    .prepare = mix_prepare,
    .hidden_layer = mix_hidden_layer,
    .captures = mix_captures,
    .drops_bonus = mix_drops_bonus,
    .note = mix_note,
    .state = mix_state,
    .unchanged = mix_unchanged};
