// Who sees what: the keys of each node as spans of the cache and of the step area.
//
// A node's keys, in ascending order of position: cached ones from the first visible one, in the one or two
// runs in which the slots stand; then its ancestors in the step area; then itself. Ancestors that were added
// one after the other (a chain, a chunk of a prompt) form one span.
//
// Neighbouring nodes attend together. Most of what they see is the same: the cache, the root, the chain so
// far. That part is told once, and read once; what a window leaves to some of them stands before it, what the
// tree gives each after it (see Attend).
//
//      chain, block of nodes 4 5 6:    shared | cache | 0 .. 4 |    after | - | 5 | 5 6 |
//
// Plain attention (BackendOptions) is the same sums with the whole panel's scores in memory: all threads
// write scores, then all turn them into weights, then all sum values. So it changes no bit of a kernel set
// whose scores are taken alike in both; on matrix tiles they are not (kernels/attend_tiles.c).
#include "engine/cpu/instance.h"

#include <math.h>

// Angles are taken in double, so that the last position is as exact as the first; and only when a position is
// reached, since contexts are often much longer than texts.
static void fill_rope(Cpu *c, int positions) {
    const Rope *r = &c->model->shape.rope;
    double frequency[ROPE_MAX_PAIRS];
    if (positions <= c->rope_filled) return;
    rope_frequencies(r, frequency);
    for (int p = c->rope_filled; p < positions; p++)
        for (int i = 0; i < r->pairs; i++) {
            size_t at = (size_t)p * (size_t)r->pairs + (size_t)i;
            c->cosine[at] = (float)(cos(p * frequency[i]) * r->attention_factor);
            c->sine[at] = (float)(sin(p * frequency[i]) * r->attention_factor);
        }
    c->rope_filled = positions;
}

void cpu_plan(Cpu *c, const StepRun *run) {
    Paths *p = &c->paths;
    if (run->first == 0) p->used = p->rows = 0;
    for (int node = run->first; node < run->last; node++) {
        int parent = run->tree->parent[node], n = 0;
        NodeRun *to = p->runs + p->used;
        if (parent != TREE_NONE)
            for (; n < p->size[parent]; n++) to[n] = p->runs[p->from[parent] + n];
        if (n && to[n - 1].first + to[n - 1].count == node) to[n - 1].count++;
        else to[n++] = (NodeRun){node, 1};
        p->row[node] = parent == TREE_NONE ? p->rows++ : p->row[parent];
        p->from[node] = p->used;
        p->size[node] = n;
        p->used += n;
        fill_rope(c, tree_position(run->tree, node) + 1);
    }
}

static const void *at_bytes(const void *base, size_t bytes) { return (const unsigned char *)base + bytes; }

static KeySpan span_of(const Work *k, const KeyValues *area, int head, int first, int count) {
    const KeyLayout *l = &k->c->layout;
    size_t size = dtype_size(l->dtype), at = (size_t)k->layer;
    return (KeySpan){at_bytes(area->k, at * area->k_bytes + key_head(l, head) * size),
                     at_bytes(area->v, at * area->v_bytes + value_head(l, head) * size), first, count};
}

static bool is_copied(const Work *k) { return k->run->tree->layout == LAYOUT_COPIED; }

static int first_visible(const Work *k, int node) {
    return cache_first_visible(k->run->cache, tree_position(k->run->tree, node));
}

static int cached_spans(const Work *k, int head, int node, int from, int to, KeySpan *out) {
    const KeyValues *area = is_copied(k) ? &k->c->copies[k->c->paths.row[node]].cache : &k->c->cache;
    SlotRun runs[2];
    int n = cache_runs(k->run->cache, from, to, runs);
    for (int i = 0; i < n; i++) out[i] = span_of(k, area, head, runs[i].slot, runs[i].count);
    return n;
}

// Nodes [from, to) of a node's path.
static int path_spans(const Work *k, int head, int node, int from, int to, KeySpan *out) {
    const Paths *p = &k->c->paths;
    const NodeRun *runs = p->runs + p->from[node];
    int n = 0;
    for (int i = 0, at = 0; i < p->size[node] && at < to; at += runs[i++].count) {
        int a = from > at ? from - at : 0, b = to - at < runs[i].count ? to - at : runs[i].count;
        if (a < b) out[n++] = span_of(k, &k->c->step, head, runs[i].first + a, b - a);
    }
    return n;
}

// Nodes at the start of their paths that a and b have in common.
static int common_path(const Paths *p, int a, int b) {
    const NodeRun *x = p->runs + p->from[a], *y = p->runs + p->from[b];
    int common = 0;
    for (int i = 0; i < p->size[a] && i < p->size[b] && x[i].first == y[i].first; i++) {
        common += x[i].count < y[i].count ? x[i].count : y[i].count;
        if (x[i].count != y[i].count) break;
    }
    return common;
}

// Positions [from, to) of a node's sequence: cached ones, then those of its path.
static int spans_of(const Work *k, int head, int node, int from, int to, KeySpan *out) {
    int context = k->run->tree->context;
    int n = cached_spans(k, head, node, from, to < context ? to : context, out);
    return n + path_spans(k, head, node, from > context ? from - context : 0, to - context, out + n);
}

// The positions that all nodes of a block see, and see the same: from the latest first one on, as long as
// their paths agree. Empty where a window has moved past that, and where they read copies of the cache of
// their own.
static void shared_positions(const Work *k, int node, int nodes, int *from, int *to) {
    const int *row = k->c->paths.row;
    int common = k->run->tree->depth[node] + 1;
    bool apart = false;
    *from = first_visible(k, node);
    for (int i = 1; i < nodes; i++) {
        int first = first_visible(k, node + i), with_first = common_path(&k->c->paths, node, node + i);
        if (with_first < common) common = with_first;
        if (first > *from) *from = first;
        apart = apart || (is_copied(k) && row[node + i] != row[node]);
    }
    *to = apart ? *from : k->run->tree->context + common;
    if (*to < *from) *to = *from;
}

static void find_spans(const Work *k, int head, int node, ThreadScratch *t, Attend *a) {
    int from, to, n = 0;
    shared_positions(k, node, a->nodes, &from, &to);
    a->shared = to - from;
    a->shared_spans = n = spans_of(k, head, node, from, to, t->spans);
    for (int i = 0; i < a->nodes; i++) {
        int first = first_visible(k, node + i), end = tree_position(k->run->tree, node + i) + 1;
        int before = from < end ? from : end, after = to < end ? to : end; // a shallow node may end before
        t->first[i] = first;
        t->before[i] = before - first;
        t->visible[i] = end - first;
        n += t->before_spans[i] = spans_of(k, head, node + i, first, before, t->spans + n);
        n += t->after_spans[i] = spans_of(k, head, node + i, after, end, t->spans + n);
    }
}

static void attend_block(const Work *k, int row, int nodes, int head, ThreadScratch *t) {
    const Cpu *c = k->c;
    const Shape *s = &c->model->shape;
    int group = s->heads / s->kv_heads;
    size_t width = (size_t)shape_q_width(s);
    size_t at = (size_t)row * width + (size_t)(head * group * s->head_dim);
    size_t score_row = cpu_score_row(c);
    float *scores = t->scores;
    if (c->scores)
        scores = c->scores + ((size_t)head * c->plain_rows + (size_t)row) * (size_t)group * score_row;
    Attend a = {.part = k->part,
                .nodes = nodes,
                .group = group,
                .head_dim = s->head_dim,
                .layout = &c->layout,
                .scale = 1.0f / sqrtf((float)s->head_dim),
                .q = c->panel.q + at,
                .out = c->panel.mixed + at,
                .row = width,
                .span = t->spans,
                .before_spans = t->before_spans,
                .after_spans = t->after_spans,
                .before = t->before,
                .visible = t->visible,
                .first = t->first,
                .scores = scores,
                .score_row = score_row,
                .sums = t->sums};
    find_spans(k, head, k->first + row, t, &a);
    c->ops->attend(&a);
}

// Threads take turns, so that nobody has all of the later, longer rows.
static void attend_share(void *argument, int thread, int threads) {
    const Work *k = argument;
    const Shape *s = &k->c->model->shape;
    int nodes = cpu_block_nodes(s), turn = 0;
    for (int row = 0; row < k->rows; row += nodes)
        for (int head = 0; head < s->kv_heads; head++)
            if (turn++ % threads == thread)
                attend_block(k, row, k->rows - row < nodes ? k->rows - row : nodes, head,
                             &k->c->threads[thread]);
}

void cpu_attend(const Work *k) {
    Work task = *k;
    int last = k->c->scores ? ATTEND_VALUES : ATTEND_WHOLE;
    for (int part = k->c->scores ? ATTEND_SCORES : ATTEND_WHOLE; part <= last; part++) {
        task.part = (AttendPart)part;
        pool_run(k->c->pool, attend_share, &task);
    }
}
