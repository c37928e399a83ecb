// A model that follows the target and drafts for it. follower_check() asserts the invariant of draft.h: the
// cache holds a proper prefix of the sequence.
#include "engine/decode/draft.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

// --- following

static void follower_check(const Follower *f) {
    assert(f->length >= 1 && f->length <= f->capacity);
    assert(f->session->cache.length < f->length);
}

void follower_init(Follower *f, Session *session, int limit) {
    assert(limit >= 1);
    *f = (Follower){.session = session, .capacity = limit};
    f->sequence = mem_new((size_t)limit, sizeof *f->sequence);
}

void follower_release(Follower *f) {
    mem_free(f->sequence);
    *f = (Follower){0};
}

void follower_known(const Follower *f, const int *tokens, int count, int *out) {
    int known = shape_tokens(&f->session->shape);
    for (int i = 0; i < count; i++) out[i] = tokens[i] < known ? tokens[i] : 0;
}

bool follower_begin(Follower *f, const int *prompt, int count, const float *hidden, Error *e) {
    assert(count >= 1 && count <= f->capacity);
    follower_known(f, prompt, count, f->sequence);
    f->length = count;
    session_reset(f->session);
    follower_check(f);
    if (count - 1 > f->session->context) return true;
    return hidden ? session_prefill_hidden(f->session, f->sequence, count - 1, hidden, e)
                  : session_prefill(f->session, f->sequence, count - 1, 0, 0, NULL, e);
}

bool follower_approach(Follower *f, Error *e) {
    Session *s = f->session;
    int missing = follower_missing(f);
    if (missing <= s->tree.capacity || missing > s->context - s->cache.length) return true;
    return session_prefill(s, f->sequence + s->cache.length, missing - 1, 0, 0, NULL, e);
}

int follower_catch_up(Follower *f) {
    Session *s = f->session;
    int first = s->cache.length, room = s->context - first, missing = follower_missing(f);
    follower_check(f);
    if (missing > room || missing > s->tree.capacity) return TREE_NONE;
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, f->sequence[first]);
    for (int i = first + 1; i < f->length; i++)
        node = tree_probe(&s->tree, node, f->sequence[i], i == f->length - 1);
    return node;
}

int follower_guess(Follower *f, int node, int token) {
    return tree_probe(&f->session->tree, node, token, true);
}

void follower_append(Follower *f, const int *tokens, int count) {
    assert(count >= 0 && f->length + count <= f->capacity);
    follower_known(f, tokens, count, f->sequence + f->length);
    f->length += count;
}

bool follower_take_back(Follower *f, int length, Error *e) {
    Session *s = f->session;
    assert(length >= 0 && length <= f->length);
    if (s->cache.length <= length || session_truncate(s, length, NULL)) return true;
    session_reset(s);
    bool ok = session_prefill(s, f->sequence, length, 0, 0, NULL, e);
    assert(s->cache.length <= length);
    return ok;
}

bool follower_settle(Follower *f, const int *emitted, int count, Error *e) {
    Session *s = f->session;
    int first = s->cache.length, n = 0, last = TREE_NONE;
    follower_append(f, emitted, count);
    follower_check(f);
    if (!s->open) return true;
    const Tree *t = &s->tree;
    for (int next; first + n < f->length - 1; last = next, n++) {
        int token = f->sequence[first + n];
        if (last != TREE_NONE) next = tree_child(t, last, token);
        else next = t->count && t->token[0] == token ? 0 : TREE_NONE;
        if (next == TREE_NONE) break;
    }
    bool ok = n == 0 ? session_truncate(s, first, e) : session_commit(s, last, n, e);
    follower_check(f);
    return ok;
}

// --- drafting

static void check_drafter(const Drafter *d) {
    assert(d->vocab >= 1 && d->vocab <= d->session->shape.vocab);
    assert((d->draws.p != NULL) == (!d->greedy || d->confidence));
}

void drafter_init(Drafter *d, Session *session, int target_vocab, const DraftSampling *own,
                  const Sampling *run, bool confidence) {
    Sampling sampling = *run;
    if (own->temperature >= 0) sampling.temperature = own->temperature;
    if (own->top_k >= 0) sampling.top_k = own->top_k;
    if (own->top_p >= 0) sampling.top_p = own->top_p;
    int vocab = session->shape.vocab < target_vocab ? session->shape.vocab : target_vocab;
    *d = (Drafter){.session = session, .vocab = vocab, .confidence = confidence};
    d->greedy = sampling_is_greedy(&sampling);
    if (d->greedy) sampling = (Sampling){.temperature = 1, .top_p = 1}; // only for the confidence
    if (!d->greedy || confidence) {
        draws_init(&d->draws, &sampling, vocab);
        d->draws.confident = confidence;
    }
    check_drafter(d);
}

void drafter_release(Drafter *d) {
    draws_release(&d->draws);
    *d = (Drafter){0};
}

void drafter_begin(Drafter *d, uint64_t seed) { d->random = (Random){.seed = seed, .stream = STREAM_DRAFT}; }

// The tree's q has the target's length; ids that only one of the models has are padding, which is never
// output. If p is zero everywhere, a draw is id 0.
static int add_distribution(const Drafter *d, Tree *tree, float **p) {
    int q = tree_distribution(tree, p);
    assert(d->vocab <= tree->vocab);
    memset(*p + d->vocab, 0, (size_t)(tree->vocab - d->vocab) * sizeof **p);
    return q;
}

// Moves p from the draft's ids to the target's, by the draws' scratch.
static void spread(Drafter *d, float *p, int vocab) {
    if (!d->ids) return;
    d->draws.at = TREE_NONE;
    memcpy(d->draws.p, p, (size_t)d->vocab * sizeof *p);
    memset(p, 0, (size_t)vocab * sizeof *p);
    for (int i = 0; i < d->vocab; i++) p[d->ids[i]] = d->draws.p[i];
}

// Adds the distribution that draws at `node` come from, which was read, to the target's tree, as *q.
static bool drafter_distribution(Drafter *d, int node, Tree *tree, int *q, Error *e) {
    float *p;
    *q = add_distribution(d, tree, &p);
    if (!draws_distribution(&d->draws, d->session, node, p, e)) return false;
    spread(d, p, tree->vocab);
    return true;
}

static void draw(Drafter *d, Tree *tree, int q, int parent, Draft *out) {
    const float *p = tree_q(tree, q);
    out->token = sampler_draw(p, tree->vocab, random_uniform(&d->random));
    if (!(p[out->token] > 0)) out->token = 0;
    out->node = tree_propose_sampled(tree, parent, out->token, q, false);
}

static bool propose_draw(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    int q;
    if (!drafter_distribution(d, node, tree, &q, e)) return false;
    draw(d, tree, q, parent, out);
    return true;
}

static void propose_best(const Drafter *d, int best, Tree *tree, int parent, Draft *out) {
    out->token = d->ids ? d->ids[best] : best;
    out->node = tree_propose(tree, parent, out->token);
}

void drafter_propose_from(Drafter *d, const float *logits, Tree *tree, int parent, Draft *out) {
    int real = d->session->shape.real_vocab, best = 0;
    float *p;
    for (int i = 1; i < real; i++)
        if (logits[i] > logits[best]) best = i;
    *out = (Draft){.confidence = d->confidence ? top_chance(logits, real, logits[best]) : 1};
    if (d->greedy) {
        propose_best(d, best, tree, parent, out);
        return;
    }
    int q = add_distribution(d, tree, &p);
    sampler_distribution(&d->draws.sampler, logits, p);
    spread(d, p, tree->vocab);
    draw(d, tree, q, parent, out);
}

bool drafter_propose(Drafter *d, int node, Tree *tree, int parent, Draft *out, Error *e) {
    Session *s = d->session;
    check_drafter(d);
    bool ok = d->greedy && !d->confidence ? session_read(s, HEAD_ARGMAX, e)
                                          : draws_read(&d->draws, s, &d->random, e);
    if (!ok) return false;
    int best = session_argmax(s, node);
    *out = (Draft){.confidence = 1};
    if (d->confidence) out->confidence = draws_confidence(&d->draws, s, node);
    if (!d->greedy) return propose_draw(d, node, tree, parent, out, e);
    propose_best(d, best, tree, parent, out);
    return true;
}

// --- trees of guesses -----------------------------------------------------------------------------------

// A draft's tree of guesses (draft.h). A level's nodes are all run in one forward before any of them has
// children, so siblings are proposed one after the other, as the verifier tries them.
//
// Invariant (draft_tree_check): a guess that is run is in the target's tree and has children in the shape.

enum { ROOT = -1 };

static int *own_of(const DraftTree *t, int guess) { return &t->own[guess + 1]; }

// The next child of `parent` after guess `after`, or the number of guesses.
static int next_child(const DraftTree *t, int parent, int after) {
    int i = after + 1;
    while (i < t->shape.count && t->shape.nodes[i].parent != parent) i++;
    return i;
}

void draft_tree_init(DraftTree *t, const RankTree *shape, const Drafter *d) {
    *t = (DraftTree){.shape = *shape, .width = rank_tree_width(shape)};
    size_t nodes = (size_t)shape->count + 1;
    if (t->width > d->session->shape.real_vocab) t->width = d->session->shape.real_vocab;
    t->own = mem_new(nodes, sizeof *t->own);
    t->best = mem_new(nodes * (size_t)t->width, sizeof *t->best);
    t->logits = mem_new(nodes * (size_t)t->width, sizeof *t->logits);
    if (!d->greedy) t->rest = mem_new((size_t)d->vocab, sizeof *t->rest);
}

void draft_tree_release(DraftTree *t) {
    rank_tree_release(&t->shape);
    MEM_FREE(t->own, t->best, t->logits, t->rest);
    *t = (DraftTree){0};
}

// The node is run if it has children to guess.
static void place(DraftTree *t, Follower *f, int guess, int node, int token) {
    int parent = *own_of(t, t->shape.nodes[guess].parent);
    t->shape.placed[guess] = node;
    if (node != TREE_NONE && next_child(t, guess, guess) < t->shape.count)
        *own_of(t, guess) = follower_guess(f, parent, token);
}

// The guesses at this depth that are run, ROOT below depth 0, in `out` (1 + shape.count).
static int list_run(const DraftTree *t, int depth, int *out) {
    int count = 0;
    for (int i = ROOT; i < t->shape.count; i++)
        if ((i == ROOT ? 0 : t->shape.nodes[i].depth + 1) == depth && *own_of(t, i) != TREE_NONE)
            out[count++] = i;
    return count;
}

typedef struct Growth {
    DraftTree *t;
    Drafter *d;
    Follower *f;
    Tree *tree;
    int row; // of the target's tree
} Growth;

static int placed_of(const Growth *g, int guess) {
    return guess == ROOT ? g->row : g->t->shape.placed[guess];
}

static bool grow_best(Growth *g, const int *parents, int count, Error *e) {
    DraftTree *t = g->t;
    int nodes[RANK_TREE_MOST + 1];
    for (int i = 0; i < count; i++) nodes[i] = *own_of(t, parents[i]);
    if (!session_top(g->d->session, nodes, count, t->width, t->best, t->logits, e)) return false;
    for (int i = 0; i < count; i++)
        for (int c = parents[i]; (c = next_child(t, parents[i], c)) < t->shape.count;) {
            int rank = t->shape.nodes[c].rank;
            if (rank >= t->width) continue; // a vocabulary that is smaller than the tree is wide
            int token = t->best[i * t->width + rank];
            place(t, g->f, c, tree_propose(g->tree, placed_of(g, parents[i]), token), token);
        }
    return true;
}

static bool grow_draws(Growth *g, int parent, Error *e) {
    DraftTree *t = g->t;
    Drafter *d = g->d;
    int q;
    if (!drafter_distribution(d, *own_of(t, parent), g->tree, &q, e)) return false;
    memcpy(t->rest, tree_q(g->tree, q), (size_t)d->vocab * sizeof *t->rest);
    for (int c = parent; (c = next_child(t, parent, c)) < t->shape.count;) {
        int token = sampler_draw(t->rest, d->vocab, random_uniform(&d->random));
        if (!(t->rest[token] > 0)) break;
        t->rest[token] = 0;
        place(t, g->f, c, tree_propose_sampled(g->tree, placed_of(g, parent), token, q, true), token);
    }
    return true;
}

static bool grow_level(Growth *g, const int *parents, int count, Error *e) {
    Session *s = g->d->session;
    if (!session_run(s, s->shape.layers, e)) return false;
    if (g->d->greedy) return grow_best(g, parents, count, e);
    if (!draws_read(&g->d->draws, s, &g->d->random, e)) return false;
    for (int i = 0; i < count; i++)
        if (!grow_draws(g, parents[i], e)) return false;
    return true;
}

bool draft_tree_grow(DraftTree *t, Drafter *d, Follower *f, int node, Tree *tree, Error *e) {
    int parents[RANK_TREE_MOST + 1];
    Growth g = {t, d, f, tree, tree_row(tree)};
    for (int i = 0; i < t->shape.count; i++) t->shape.placed[i] = *own_of(t, i) = TREE_NONE;
    *own_of(t, ROOT) = node;
    for (int depth = 0, count; (count = list_run(t, depth, parents)) > 0; depth++)
        if (!grow_level(&g, parents, count, e)) return false;
    for (int i = 0; i < t->shape.count; i++)
        assert(*own_of(t, i) == TREE_NONE ||
               (t->shape.placed[i] != TREE_NONE && next_child(t, i, i) < t->shape.count));
    return true;
}
