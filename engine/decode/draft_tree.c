// A draft's tree of guesses (draft.h). A level's nodes are all run in one forward before any of them has
// children, so siblings are proposed one after the other, as the verifier tries them.
//
// Invariant (draft_tree_check): a guess that is run is in the target's tree and has children in the shape.
#include "engine/decode/draft.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

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
    mem_free(t->own);
    mem_free(t->best);
    mem_free(t->logits);
    mem_free(t->rest);
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

static bool propose_best(Growth *g, const int *parents, int count, Error *e) {
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

static bool propose_draws(Growth *g, int parent, Error *e) {
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
    if (g->d->greedy) return propose_best(g, parents, count, e);
    if (!draws_read(&g->d->draws, s, &g->d->random, e)) return false;
    for (int i = 0; i < count; i++)
        if (!propose_draws(g, parents[i], e)) return false;
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
    (void)t; // without asserts
    return true;
}
