// Which keys a node sees, as spans of the cache and of the step area; and the copies of the cache that
// LAYOUT_COPIED reads in its place.
//
// A node's keys, in ascending order of position: cached ones from the first visible one, in one or two runs
// of slots; then its ancestors in the step area; then the node itself. Ancestors that were added one after
// another (a chain, a chunk of a prompt) form one span.
//
// Neighbouring nodes attend together. Most of the positions they see are the same: the cache, the root, the
// chain so far. That part is listed once and read once; positions that a window hides from some of the nodes
// come before it, those that the tree gives each node come after it (see Attend).
//
//      chain, block of nodes 4 5 6:    shared | cache | 0 .. 4 |    after | - | 5 | 5 6 |
//
// Plain attention (BackendOptions) does the same sums with the whole panel's scores in memory: all threads
// write scores, then all turn them into weights, then all sum values. It changes no bit of a kernel set that
// computes scores alike in both; on matrix tiles they differ (kernels/attend_tiles.c).
#include "engine/cpu/work.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Angles are computed in double, so that the last position is as exact as the first; and only when a position
// is reached, since contexts are often much longer than texts.
static void fill_rope(Cpu *c, int positions) {
    const Shape *s = &c->model->shape;
    double frequency[ROPE_MAX_PAIRS];
    if (positions <= c->rope_filled) return;
    assert(positions <= c->context);
    for (int which = 0; which < shape_ropes(s); which++) {
        const Rope r = shape_rope(s, which);
        size_t table = (size_t)which * (size_t)c->context * (size_t)r.pairs;
        rope_frequencies(&r, frequency);
        for (int p = c->rope_filled; p < positions; p++)
            for (int i = 0; i < r.pairs; i++) {
                size_t at = table + (size_t)p * (size_t)r.pairs + (size_t)i;
                c->cosine[at] = (float)(cos(p * frequency[i]) * r.attention_factor);
                c->sine[at] = (float)(sin(p * frequency[i]) * r.attention_factor);
            }
    }
    c->rope_filled = positions;
}

// The end of the positions that a node sees.
static int seen_end(const Member *k, int node) {
    const Tree *t = k->run->tree;
    return t->mutual ? t->context + t->count : tree_position(t, node) + 1;
}

// A mutual tree's nodes have the path of the last of them.
static void plan_mutual(Cpu *c, const StepRun *run) {
    Paths *p = &c->paths;
    assert(run->first == 0 && run->last == run->tree->count);
    p->used = p->rows = 1;
    p->runs[0] = (NodeRun){0, run->last};
    for (int node = 0; node < run->last; node++) {
        p->from[node] = p->row[node] = 0;
        p->size[node] = 1;
    }
    fill_rope(c->first, tree_position(run->tree, run->last - 1) + 1);
}

void cpu_plan(Cpu *c, const StepRun *run) {
    Paths *p = &c->paths;
    if (run->tree->mutual) {
        plan_mutual(c, run);
        return;
    }
    if (run->first == 0) p->used = p->rows = 0;
    for (int node = run->first; node < run->last; node++) {
        int parent = run->tree->parent[node], n = 0;
        NodeRun *to = p->runs + p->used;
        if (parent != TREE_NONE)
            for (; n < p->size[parent]; n++) to[n] = p->runs[p->from[parent] + n];
        assert(parent < node);
        if (n && to[n - 1].first + to[n - 1].count == node) to[n - 1].count++;
        else to[n++] = (NodeRun){node, 1};
        p->row[node] = parent == TREE_NONE ? p->rows++ : p->row[parent];
        p->from[node] = p->used;
        p->size[node] = n;
        p->used += n;
        assert(to[n - 1].first + to[n - 1].count == node + 1 && p->row[node] < p->rows);
        fill_rope(c->first, tree_position(run->tree, node) + 1);
    }
}

static const void *at_bytes(const void *base, size_t bytes) { return (const unsigned char *)base + bytes; }

static KeySpan span_of(const Member *k, const KeyValues *area, int head, int first, int count) {
    const KeyLayout *l = &k->c->layout;
    size_t size = dtype_size(l->dtype), at = (size_t)k->layer;
    return (KeySpan){at_bytes(area->k, at * area->k_bytes + key_head(l, head) * size),
                     at_bytes(area->v, at * area->v_bytes + value_head(l, head) * size), first, count};
}

static bool is_copied(const Member *k) { return k->run->tree->layout == LAYOUT_COPIED; }

static int first_visible(const Member *k, int node) {
    int position = tree_position(k->run->tree, node), first = cache_first_visible(k->run->cache, position);
    int window = layer_in(&k->c->model->shape.local, k->layer) ? k->c->model->shape.local_window : 0;
    return window && position - window + 1 > first ? position - window + 1 : first;
}

// Nodes [from, to) of a node's path.
static int path_spans(const Member *k, int head, int node, int from, int to, KeySpan *out) {
    const Paths *p = &k->c->paths;
    const NodeRun *runs = p->runs + p->from[node];
    int n = 0;
    for (int i = 0, at = 0; i < p->size[node] && at < to; at += runs[i++].count) {
        int a = from > at ? from - at : 0, b = to - at < runs[i].count ? to - at : runs[i].count;
        if (a < b) out[n++] = span_of(k, &k->c->step, head, runs[i].first + a, b - a);
    }
    return n;
}

// How many nodes the paths of a and b have in common at their start.
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
static int spans_of(const Member *k, int head, int node, int from, int to, KeySpan *out) {
    int context = k->run->tree->context;
    const KeyValues *area = is_copied(k) ? &k->c->copies[k->c->paths.row[node]] : &k->c->cache;
    SlotRun runs[2];
    int n = cache_runs(k->run->cache, from, to < context ? to : context, runs);
    for (int i = 0; i < n; i++) out[i] = span_of(k, area, head, runs[i].slot, runs[i].count);
    return n + path_spans(k, head, node, from > context ? from - context : 0, to - context, out + n);
}

// The positions at which all nodes of a block see the same keys: from the latest first visible one, for as
// long as their paths agree. Empty if a window has moved past that, or if the nodes read different copies of
// the cache.
static void shared_positions(const Member *k, int node, int nodes, int *from, int *to) {
    const int *row = k->c->paths.row;
    int common = seen_end(k, node) - k->run->tree->context;
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
    assert(*from >= 0);
}

// Fills the spans and counts of Attend: the shared spans, then each node's own before and after them.
static void find_spans(const Member *k, int head, int node, ThreadScratch *t, Attend *a) {
    int from, to, n = 0;
    shared_positions(k, node, a->nodes, &from, &to);
    a->shared = to - from;
    a->shared_spans = n = spans_of(k, head, node, from, to, t->spans);
    for (int i = 0; i < a->nodes; i++) {
        int first = first_visible(k, node + i), end = seen_end(k, node + i);
        int before = from < end ? from : end, after = to < end ? to : end; // a shallow node may end before
        t->first[i] = first;
        t->before[i] = before - first;
        t->visible[i] = end - first;
        n += t->before_spans[i] = spans_of(k, head, node + i, first, before, t->spans + n);
        n += t->after_spans[i] = spans_of(k, head, node + i, after, end, t->spans + n);
    }
    assert(n <= (cpu_block_nodes(&k->c->model->shape) + 1) * (k->c->max_nodes + 4)); // see take_thread
}

// One key head of a block of neighbouring nodes.
static void attend_block(const Member *k, int row, int nodes, int head, ThreadScratch *t) {
    const Cpu *c = k->c->first;
    const Shape *s = &c->model->shape;
    int group = s->heads / s->kv_heads;
    size_t width = (size_t)shape_q_width(s);
    size_t at = (size_t)(k->at + row) * width + (size_t)(head * group * s->head_dim);
    size_t score_row = cpu_score_row(c);
    float *scores = t->scores;
    if (c->scores)
        scores = c->scores +
                 ((size_t)head * (size_t)c->panel_rows + (size_t)(k->at + row)) * (size_t)group * score_row;
    Attend a = {.part = k->part,
                .nodes = nodes,
                .group = group,
                .head_dim = s->head_dim,
                .layout = &c->layout,
                .scale = shape_score_scale(s),
                .cap = s->score_cap,
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

typedef struct AttendTask {
    const Work *work;
    AttendPart part;
    int heads; // key heads of all blocks
} AttendTask;

static int blocks_of(const Member *m, int nodes) { return (m->rows + nodes - 1) / nodes; }

// Heads [first, last) of all blocks, counted through all members.
static void attend_heads(const AttendTask *t, int first, int last, ThreadScratch *scratch) {
    const Work *k = t->work;
    const Shape *s = &k->c->model->shape;
    int nodes = cpu_block_nodes(s), end = 0;
    for (int i = 0, at = 0; i < k->count && at < last; i++, at = end) {
        Member m = k->members[i];
        m.part = t->part;
        end = at + blocks_of(&m, nodes) * s->kv_heads;
        for (int h = first > at ? first : at; h < last && h < end; h++) {
            int row = (h - at) / s->kv_heads * nodes, left = m.rows - row;
            attend_block(&m, row, left < nodes ? left : nodes, (h - at) % s->kv_heads, scratch);
        }
    }
}

static void attend_parts(void *argument, int thread, UNUSED int threads) {
    const AttendTask *t = argument;
    Cpu *c = t->work->c;
    int first, last;
    while (pool_take(c->pool, t->heads, 1, thread, &first, &last))
        attend_heads(t, first, last, &c->threads[thread]);
}

void cpu_attend(const Work *k) {
    const Shape *s = &k->c->model->shape;
    AttendTask t = {.work = k};
    for (int i = 0; i < k->count; i++) t.heads += blocks_of(&k->members[i], cpu_block_nodes(s)) * s->kv_heads;
    int last = k->c->scores ? ATTEND_VALUES : ATTEND_WHOLE;
    for (int part = k->c->scores ? ATTEND_SCORES : ATTEND_WHOLE; part <= last; part++) {
        t.part = (AttendPart)part;
        pool_run(k->c->pool, attend_parts, &t);
    }
}

// --- LAYOUT_COPIED: each row of a batch attends over its own copy of the cached keys and values, as in a
// framework that expands a cache to a batch. It changes no bit.
//
// A row's copy has all layers, in the slots of the cache. It's made when a step first has that row; from then
// on, a layer copies the tokens committed since its last copy, before it attends. It copies all that a ring
// still has, not only what its window shows: when tokens are taken back, older ones are seen again.

bool cpu_take_copies(Cpu *c, int rows, Error *e) {
    size_t layers = (size_t)c->model->shape.layers, most = (size_t)c->max_nodes;
    if (!c->copies) c->copies = mem_new(most, sizeof *c->copies);
    if (!c->copied) c->copied = mem_new(most * layers, sizeof *c->copied);
    assert(rows <= c->max_nodes);
    for (; c->copy_rows < rows; c->copy_rows++) {
        KeyValues *copy = &c->copies[c->copy_rows];
        copy->k_bytes = c->cache.k_bytes;
        copy->v_bytes = c->cache.v_bytes;
        if (!mem_take(&c->blocks, &copy->k, layers, copy->k_bytes) ||
            !mem_take(&c->blocks, &copy->v, layers, copy->v_bytes))
            return error_system(e, "out of memory for %d copies of a cache of %zu MB", rows,
                                layers * (c->cache.k_bytes + c->cache.v_bytes) >> 20);
        c->cache_bytes += layers * (copy->k_bytes + copy->v_bytes);
    }
    return true;
}

void cpu_forget_copies(Cpu *c, int position) {
    assert(position >= 0);
    for (int i = 0; i < c->copy_rows * c->model->shape.layers; i++)
        if (c->copied[i] > position) c->copied[i] = position;
}

// Copies whole blocks of keys, and the values of the same slots.
static void copy_blocks(const Member *k, const KeyValues *to, int first, int last) {
    const Cpu *c = k->c;
    const KeyLayout *l = &c->layout;
    size_t size = dtype_size(l->dtype), block = l->block_elements * size, value = l->row_elements * size;
    int end = last * KEY_BLOCK < c->slots ? last * KEY_BLOCK : c->slots;
    size_t at_k = (size_t)k->layer * c->cache.k_bytes + (size_t)first * block;
    size_t at_v = (size_t)k->layer * c->cache.v_bytes + (size_t)first * KEY_BLOCK * value;
    memcpy((unsigned char *)to->k + at_k, (const unsigned char *)c->cache.k + at_k,
           (size_t)(last - first) * block);
    memcpy((unsigned char *)to->v + at_v, (const unsigned char *)c->cache.v + at_v,
           (size_t)(end - first * KEY_BLOCK) * value);
}

static void copy_share(void *argument, int thread, int threads) {
    const Member *k = argument;
    const Tree *t = k->run->tree;
    int intact = cache_first_intact(k->run->cache);
    for (int row = 0; row < k->c->paths.rows; row++) {
        int copied = k->c->copied[row * k->c->model->shape.layers + k->layer];
        int length = copied > intact ? copied : intact;
        SlotRun runs[2];
        int n = length < t->context ? cache_runs(k->run->cache, length, t->context, runs) : 0;
        for (int i = 0; i < n; i++) {
            int first = runs[i].slot / KEY_BLOCK, last = (runs[i].slot + runs[i].count - 1) / KEY_BLOCK + 1;
            int from, to;
            pool_share(last - first, 1, thread, threads, &from, &to);
            if (from < to) copy_blocks(k, &k->c->copies[row], first + from, first + to);
        }
    }
}

void cpu_copy_cache(const Member *m) {
    Member task = *m;
    const Tree *t = m->run->tree;
    if (t->context > 0) pool_run(m->c->pool, copy_share, &task);
    for (int row = 0; row < m->c->paths.rows; row++)
        m->c->copied[row * m->c->model->shape.layers + m->layer] = t->context;
}
