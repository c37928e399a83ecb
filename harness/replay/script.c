#include "harness/replay/script.h"

#include "engine/base/memory.h"

#include <string.h>

struct Script {
    const int *tokens;
    int count;
    int next[TREE_MAX_NODES]; // what node i is followed by; OFF: its path is not the text's
};

enum { OFF = -1 };

static bool on_path(const Script *s, const Tree *t, int node) {
    int position = tree_position(t, node), parent = t->parent[node];
    return position < s->count && t->token[node] == s->tokens[position] &&
           (parent == TREE_NONE || s->next[parent] != OFF);
}

static bool script_run(void *self, const StepRun *run, Error *e) {
    Script *s = self;
    (void)e;
    for (int i = run->first; i < run->last; i++) {
        int after = tree_position(run->tree, i) + 1;
        s->next[i] = !on_path(s, run->tree, i) ? OFF : after < s->count ? s->tokens[after] : 0;
    }
    return true;
}

static bool refuse(const char *what, Error *e) {
    return error_input(e, "the method asks a model for %s; replay has only text", what);
}

static bool script_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    const Script *s = self;
    if (want & ~(unsigned)HEAD_ARGMAX) return refuse("its distribution", e);
    for (int i = 0; i < count; i++) out->argmax[i] = s->next[nodes[i]] == OFF ? 0 : s->next[nodes[i]];
    return true;
}

static bool script_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows,
                              Error *e) {
    (void)self, (void)nodes, (void)count, (void)kind, (void)rows;
    return refuse("hidden states", e);
}

static bool script_set_hidden(void *self, int first, int count, const float *rows, Error *e) {
    (void)self, (void)first, (void)count, (void)rows;
    return refuse("hidden states", e);
}

static bool script_commit(void *self, const int *nodes, const int *slots, int count, Error *e) {
    (void)self, (void)nodes, (void)slots, (void)count, (void)e;
    return true;
}

static void script_reset(void *self) { (void)self; }

static void script_report(const void *self, BackendReport *out) {
    (void)self;
    *out = (BackendReport){.name = "script", .device = "none", .isa = "none"};
}

static void script_close(void *self) { mem_free(self); }

static const Backend SCRIPT = {.name = "script",
                               .run = script_run,
                               .head = script_head,
                               .get_hidden = script_get_hidden,
                               .set_hidden = script_set_hidden,
                               .commit = script_commit,
                               .reset = script_reset,
                               .report = script_report,
                               .close = script_close};

bool script_open(Session *session, Script **script, int vocab, int context, Error *e) {
    Shape shape = {.input = INPUT_TOKENS, .layers = 1, .width = 1};
    shape.vocab = shape.real_vocab = vocab;
    shape.context = context;
    BackendOptions o = {.max_nodes = TREE_MAX_NODES};
    if (!(*script = mem_alloc(1, sizeof **script))) return error_system(e, "out of memory");
    session_init(session, &SCRIPT, *script, &shape, &o);
    return true;
}

void script_set(Script *script, const int *tokens, int count) {
    script->tokens = tokens;
    script->count = count;
}
