// A model without arithmetic. A node's output is a hash of the last ORDER tokens of its context: so texts
// repeat themselves and methods find tokens to accept, and every mistake in slots, paths or truncation
// changes the output.
//
// Committed tokens are stored by slot, in the slots that commit was given; a node's context is read through
// its parents and then the slots. An instance asserts the contract of backend.h: layers in order, ancestors
// at least as far as the node.
//
// Below the last layer the output is the same in half of the contexts, and another hash's in the others.
//
// Logits are pseudo-random in [0, LOGIT_RANGE); the token that the hash selects has LOGIT_RANGE on top.
#include "engine/null/null.h"

#include "engine/base/memory.h"
#include "engine/base/random.h"

#include <assert.h>
#include <math.h>

enum { ORDER = 3, LOGIT_RANGE = 4 };

typedef struct Null {
    Shape shape;
    int max_nodes, slot_count;
    int *slots;       // (slot_count): the token committed there
    int *tokens;      // (max_nodes); of a model of tokens and hidden states: a hash of both
    uint64_t *given;  // (max_nodes): a hash of the hidden row that the caller gave
    int *layers;      // (max_nodes): layers that the node has been through
    uint64_t *hashes; // (max_nodes): the hash of the node's context
    bool plain;
    Captures captures;
} Null;

static void null_close(void *self) {
    Null *b = self;
    if (!b) return;
    MEM_FREE(b->slots, b->tokens, b->given, b->layers, b->hashes, b);
}

bool null_open(const Model *model, const BackendOptions *o, void **self, Error *e) {
    const Shape *s = &model->shape;
    int context = o->context > 0 && o->context < s->context ? o->context : s->context;
    Cache cache;
    cache_init(&cache, context, s->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    Null *b = mem_new(1, sizeof *b);
    b->shape = *s;
    b->plain = o->plain;
    b->max_nodes = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    b->slot_count = cache.capacity;
    b->slots =
        mem_try((size_t)b->slot_count, sizeof *b->slots); // the model's file or the user chose the size
    b->tokens = mem_new((size_t)b->max_nodes, sizeof *b->tokens);
    b->given = mem_new((size_t)b->max_nodes, sizeof *b->given);
    b->layers = mem_new((size_t)b->max_nodes, sizeof *b->layers);
    b->hashes = mem_new((size_t)b->max_nodes, sizeof *b->hashes);
    *self = b;
    if (b->slots) return true;
    null_close(b);
    *self = NULL;
    return error_system(e, "out of memory for a context of %d tokens", context);
}

static uint64_t mix(uint64_t h, int token) {
    h = (h ^ (uint64_t)(unsigned)(token + 1)) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 31;
}

// Hashes the last ORDER tokens up to the node, through its parents and then the slots, as far as a window
// lets it see.
static uint64_t context_hash(const Null *b, const StepRun *run, int node) {
    const Tree *t = run->tree;
    int position = tree_position(t, node), first = cache_first_visible(run->cache, position);
    uint64_t h = 1;
    for (int i = 0; i < ORDER && position - i >= first; i++) {
        h = mix(h, node != TREE_NONE ? b->tokens[node] : b->slots[cache_slot(run->cache, position - i)]);
        if (node != TREE_NONE) node = t->parent[node];
    }
    return h;
}

// A node's input, as one number. A draft's own rows differ from the target's, as in real models; a block's
// context is its states alone.
static int input_of(const Null *b, const StepRun *run, int node) {
    int token = run->tree->token[node];
    if (b->shape.input == INPUT_HIDDEN) return b->tokens[node];
    bool given = node < run->given;
    if (b->shape.input == INPUT_TOKENS || (b->shape.input == INPUT_BLOCK && !given)) return token;
    if (b->shape.input == INPUT_BLOCK) return (int)(b->given[node] >> 33);
    uint64_t h = given ? b->given[node] : mix(b->hashes[run->tree->parent[node]], -2);
    return (int)(mix(h, token) >> 33);
}

static bool null_run(void *self, const StepRun *run, UNUSED Error *e) {
    Null *b = self;
    for (int i = run->first; i < run->last; i++) {
        int parent = run->tree->parent[i];
        assert(i < b->max_nodes && run->b <= b->shape.layers);
        assert(run->a == 0 || b->layers[i] == run->a);
        assert(parent == TREE_NONE || b->layers[parent] >= run->b);
        if (run->a == 0) b->tokens[i] = input_of(b, run, i);
        b->layers[i] = run->b;
        if (run->a == 0) b->hashes[i] = context_hash(b, run, i);
    }
    return true;
}

static void null_run_together(RunCall *calls, int count) {
    for (RunCall *c = calls; c < calls + count; c++) c->ok = null_run(c->self, &c->run, &c->error);
}

static int next_token(const Null *b, uint64_t hash) {
    return (int)(((random_at(hash, STREAM_TEST, 0) >> 32) * (uint64_t)b->shape.real_vocab) >> 32);
}

static float logit(const Null *b, uint64_t hash, int token, int next) {
    if (token >= b->shape.real_vocab) return -INFINITY;
    // Noise in [0, 1): the finalizer of SplitMix64 (Steele et al., OOPSLA 2014). Cheaper than random_at: a
    // table of bigrams needs the square of the vocabulary.
    uint64_t bits = hash + (uint64_t)(token + 1) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    float x = (float)((bits ^ bits >> 31) >> 40) * 0x1p-24f * LOGIT_RANGE;
    return token == next ? x + LOGIT_RANGE : x;
}

// The best `top` tokens, by insertion. Slow, but only n-gram tables need it.
static void top_tokens(const Null *b, uint64_t hash, int top, int *ids, float *logits) {
    int count = 0, next = next_token(b, hash);
    for (int v = 0; v < b->shape.vocab; v++) {
        float x = logit(b, hash, v, next);
        if (count == top && !(x > logits[top - 1])) continue;
        int at = count < top ? count++ : top - 1;
        for (; at > 0 && x > logits[at - 1]; at--) {
            ids[at] = ids[at - 1];
            logits[at] = logits[at - 1];
        }
        ids[at] = v;
        logits[at] = x;
    }
}

static float log_sum(const Null *b, uint64_t hash, int next) {
    double sum = 0, highest = (double)logit(b, hash, next, next);
    for (int v = 0; v < b->shape.real_vocab; v++) sum += exp((double)logit(b, hash, v, next) - highest);
    return sum > 0 ? (float)log(sum) : 0;
}

static bool null_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, UNUSED Error *e) {
    Null *b = self;
    for (int i = 0; i < count; i++) {
        int layers = b->layers[nodes[i]];
        uint64_t hash = b->hashes[nodes[i]];
        if (layers < b->shape.layers && hash >> 63) hash = mix(hash, layers);
        size_t vocab = (size_t)b->shape.vocab, top = (size_t)out->top;
        int next = next_token(b, hash);
        if (want & HEAD_ARGMAX) out->argmax[i] = next;
        for (int v = 0; want & HEAD_LOGITS && v < b->shape.vocab; v++)
            out->logits[(size_t)i * vocab + (size_t)v] = logit(b, hash, v, next);
        if (want & HEAD_TOP && out->log_sum) out->log_sum[i] = log_sum(b, hash, next);
        if (want & HEAD_TOP)
            top_tokens(b, hash, out->top, out->top_id + (size_t)i * top, out->top_logit + (size_t)i * top);
    }
    return true;
}

static void null_head_together(HeadCall *calls, int count, unsigned want) {
    for (HeadCall *c = calls; c < calls + count; c++)
        c->ok = null_head(c->self, c->nodes, c->count, want, c->out, &c->error);
}

// Numbers that depend on the node's context, layer and kind, so that a mixed-up row is noticed.
static float *write_hidden(const Null *b, int node, int layer, bool normed, float *row) {
    uint64_t stream = (uint64_t)layer * 2 + normed + 1;
    for (int j = 0; j < b->shape.width; j++)
        *row++ = (float)(random_at(b->hashes[node], stream << 8 | STREAM_TEST, (uint64_t)j) >> 40) * 0x1p-24f;
    return row;
}

static bool null_get_hidden(void *self, const int *nodes, int count, HiddenKind kind, float *rows,
                            UNUSED Error *e) {
    const Null *b = self;
    for (int i = 0; i < count; i++) {
        for (int k = 0; kind == HIDDEN_CAPTURED && k < b->captures.count; k++)
            rows = write_hidden(b, nodes[i], b->captures.layers[k], false, rows);
        if (kind != HIDDEN_CAPTURED)
            rows = write_hidden(b, nodes[i], b->layers[nodes[i]], kind == HIDDEN_NORMED, rows);
    }
    return true;
}

// The output of a model of hidden states depends on the first number of each of a row's states.
static bool null_set_hidden(void *self, int first, int count, const float *rows, UNUSED Error *e) {
    Null *b = self;
    const Shape *s = &b->shape;
    assert(s->input != INPUT_TOKENS && first + count <= b->max_nodes);
    for (int i = 0; i < count; i++, rows += shape_given_width(s)) {
        b->tokens[first + i] = (int)fabsf(rows[0] * 0x1p20f);
        b->given[first + i] = 1;
        for (int j = 0; j < shape_given_width(s); j += s->width)
            b->given[first + i] = mix(b->given[first + i], (int)(rows[j] * 0x1p24f));
    }
    return true;
}

// A bias that prefers a token by the row's context, the token in front of the guess and the state.
static bool null_follow(void *self, int node, Follow *f, UNUSED Error *e) {
    Null *b = self;
    const BlockDraft *d = &b->shape.block;
    uint64_t h = mix(b->hashes[node], f->token);
    f->confidence = d->confidence ? (double)(h >> 40) * 0x1p-24 : 1;
    if (!d->markov || !f->logits) return true;
    if (d->markov == MARKOV_RNN) {
        h = mix(h, (int)(f->state[0] * 0x1p20f));
        f->state[0] = (float)(h >> 40) * 0x1p-24f;
    }
    for (int v = 0, next = next_token(b, h); v < b->shape.vocab; v++) f->logits[v] += logit(b, h, v, next);
    return true;
}

static bool null_capture(void *self, const Captures *captures, UNUSED Error *e) {
    ((Null *)self)->captures = *captures;
    return true;
}

static bool null_commit(void *self, const int *nodes, const int *slots, int count, UNUSED Error *e) {
    Null *b = self;
    for (int i = 0; i < count; i++) {
        assert(slots[i] >= 0 && slots[i] < b->slot_count && b->layers[nodes[i]] == b->shape.layers);
        b->slots[slots[i]] = b->tokens[nodes[i]];
    }
    return true;
}

static void null_reset(void *self) {
    Null *b = self;
    for (int i = 0; i < b->slot_count; i++) b->slots[i] = -1;
}

static void null_report(const void *self, BackendReport *out) {
    const Null *b = self;
    *out = (BackendReport){.name = "null",
                           .device = "none",
                           .isa = "none",
                           .score_bytes = b->plain ? shape_score_bytes(&b->shape) : 0};
}

const Backend null_backend = {BACKEND_ROW(null), .head = null_head, .follow = null_follow};
