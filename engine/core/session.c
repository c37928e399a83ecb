// All integer work of a step, once for all backends. A node's progress through the layers is one number;
// running every node to layer b sweeps the levels from the lowest, so that each layer's weights are read once
// for all nodes that need them:
//
//      done:   2 2 2 0        session_run(s, L):   node 3 through [0, 2)
//      node:   0 1 2 3                             nodes 0 to 3 through [2, L)
#include "engine/core/session.h"

#include "engine/base/memory.h"
#include "engine/core/batch.h"
#include "engine/core/ranks.h"
#include "engine/core/shared.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Resets nodes [0, count) to not run. No step reads entries beyond its nodes, so the others needn't be reset.
static void forget_nodes(Session *s, int count) {
    for (int i = 0; i < count; i++) {
        s->done[i] = 0;
        s->argmax[i] = s->logit_row[i] = -1;
        s->drawn[i] = UNDRAWN;
    }
}

void session_init(Session *s, const Backend *backend, void *self, const Shape *shape,
                  const BackendOptions *o) {
    *s = (Session){
        .backend = backend, .self = self, .shape = *shape, .compute = o->compute, .peek = TREE_NONE};
    s->progress = o->progress;
    s->context = o->context > 0 && o->context < shape->context ? o->context : shape->context;
    int capacity = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    size_t n = (size_t)capacity;
    s->sequence = mem_new((size_t)s->context, sizeof(int));
    cache_init(&s->cache, s->context, shape->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    tree_init(&s->tree, capacity, shape_tokens(shape));
    s->done = mem_new(n, sizeof(int));
    s->argmax = mem_new(n, sizeof(int));
    s->logit_row = mem_new(n, sizeof(int));
    s->drawn = mem_new(n, sizeof(int));
    s->scratch = mem_new(2 * n, sizeof(int));
    forget_nodes(s, capacity);
    assert(s->context >= 1 && s->context <= shape->context && s->cache.limit == s->context);
}

void session_release(Session *s) {
    if (s->backend) s->backend->close(s->self);
    ranks_release(s->ranks);
    tree_release(&s->tree);
    MEM_FREE(s->sequence, s->done, s->argmax, s->logit_row, s->drawn, s->best.top_id, s->best.top_logit,
             s->logits, s->grown.out.top_id, s->grown.out.top_logit, s->grown.out.log_sum, s->scratch);
    *s = (Session){0};
}

// The cheap half of session_assert: numbers, not nodes, so that every operation can afford it.
static void session_check(const Session *s) {
    assert(s->cache.length <= s->context && s->tree.count <= s->tree.capacity);
    assert((!s->open || s->logit_rows <= s->tree.count) && s->rows >= 0 && s->passes >= 0);
    assert(!s->open || s->tree.context == s->cache.length);
    assert(s->given >= 0 && (!s->open || s->given <= s->tree.count));
    assert(s->logit_rows >= 0 && (size_t)s->logit_rows * (size_t)s->shape.vocab <= s->logits_capacity);
}

static void drop_step(Session *s) {
    forget_nodes(s, s->tree.count);
    s->peek = TREE_NONE;
    s->open = false;
    s->tree.count = 0;
}

void session_reset(Session *s) {
    drop_step(s);
    cache_reset(&s->cache);
    s->backend->reset(s->self);
    session_check(s);
}

void session_begin_step(Session *s, bool merge, Layout layout) {
    forget_nodes(s, s->tree.count);
    tree_clear(&s->tree, s->cache.length, s->context, merge, layout);
    s->logit_rows = s->given = s->grown.end = 0;
    s->peek = TREE_NONE;
    s->open = true;
    session_check(s);
}

void session_begin_block(Session *s, int rows, int root) {
    assert(s->shape.input == INPUT_BLOCK && rows >= 1 && rows <= BLOCK_MOST && rows <= s->tree.capacity);
    session_begin_step(s, true, LAYOUT_TREE);
    s->tree.mutual = true;
    int node = tree_root(&s->tree, root);
    for (int i = 1; i < rows; i++) node = tree_probe(&s->tree, node, s->shape.mask_token, true);
    assert(node == rows - 1);
}

bool session_follow(Session *s, int node, Follow *f, Error *e) {
    assert(s->tree.mutual && s->done[node] == s->shape.layers && s->backend->follow);
    return s->backend->follow(s->self, node, f, e);
}

bool session_worked(const Session *s, PhaseSeconds *out) {
    BackendReport report;
    s->backend->report(s->self, &report);
    *out = report.seconds;
    return report.own_clock && !s->lane;
}

// The lowest level of any node above `after`, at most b.
static int next_level(const Session *s, int after, int b) {
    int level = b;
    for (int i = 0; i < s->tree.count; i++)
        if (s->done[i] > after && s->done[i] < level) level = s->done[i];
    return level;
}

static bool is_part_root(const Tree *t, int node) {
    for (int i = 1; i < t->parts; i++)
        if (t->part_root[i] == node) return true;
    return false;
}

// The end of the run of neighbours at layer a that starts at `first`. Parts of the tree run one after
// another, as they would on machines of their own.
static int run_end(const Session *s, int first, int a) {
    int last = first;
    while (last < s->tree.count && s->done[last] == a && (last == first || !is_part_root(&s->tree, last)))
        last++;
    return last;
}

// A method may still ask for outputs when the step is committed: its context stays the step's.
static void note_pass(Session *s, int a, int b, int rows) {
    if (s->log) pass_log_add(s->log, &(Pass){s->log_as, a, b, rows, s->tree.context, 1});
}

// All nodes of a read have been through equally many layers.
static void note_head(Session *s, const int *nodes, int count) {
    if (count > 0) note_pass(s, s->done[nodes[0]], s->done[nodes[0]], count);
}

// A pass of many rows over a large model takes many seconds. If the backend loses nothing by it, such a pass
// is run layer by layer, so that it can be interrupted between two layers.
static bool run_nodes(Session *s, StepRun run, Error *e) {
    enum { MANY_ROWS = 32 };
    bool cut = s->progress.say && s->backend->cuts && run.last - run.first >= MANY_ROWS;
    const char *what = s->prefilling > 0 ? "running the prompt" : NULL;
    if (s->lane && !what) return lane_run(s, &run, e);
    for (int end = run.b; run.a < end; run.a = run.b) {
        double share = s->prefilled + s->prefilling * run.a / s->shape.layers;
        run.b = cut ? run.a + 1 : end;
        if (!progress_say(&s->progress, what, share, e) || !s->backend->run(s->self, &run, e)) return false;
    }
    return true;
}

// Whether all nodes of the run that start from their parents' outputs find them. A block's start from none,
// and run together.
static bool parents_are_done(const Session *s, int first, int last) {
    bool done = true;
    if (s->shape.input == INPUT_BLOCK) return s->given == (s->tree.mutual ? 0 : last);
    for (int i = first > s->given ? first : s->given; i < last && shape_reads_both(&s->shape); i++) {
        int parent = s->tree.parent[i];
        done = done && parent != TREE_NONE && s->done[parent] == s->shape.layers;
    }
    return done;
}

// Nodes [first, last) have been from layer a to layer b.
static void note_run(Session *s, int first, int last, int a, int b) {
    for (int i = first; i < last; i++) s->done[i] = b;
    if (a == 0 && s->shape.input >= INPUT_PAIRED && s->given > first)
        note_pass(s, 0, 0, (s->given < last ? s->given : last) - first);
    if (s->shape.input == INPUT_BLOCK && s->given > first) return; // context: next to nothing but fc
    s->passes++;
    note_pass(s, a, b, last - first);
    if (a == 0) s->rows += last - first;
}

// Runs every node at layer a to layer b, in runs of neighbours.
static bool run_level(Session *s, int a, int b, Error *e) {
    for (int first = 0, last; first < s->tree.count; first = last) {
        last = run_end(s, first, a);
        if (first == last) {
            last++;
            continue;
        }
        assert(a > 0 || parents_are_done(s, first, last));
        StepRun run = {&s->tree, &s->cache, first, last, a, b, s->given};
        if (last > s->grown.end && !run_nodes(s, run, e)) return false;
        note_run(s, first, last, a, b);
    }
    return true;
}

// The node's logits, if any, are the last ones: nothing else was read.
static void end_peek(Session *s) {
    int node = s->peek;
    if (node == TREE_NONE) return;
    assert(s->logit_row[node] < 0 || s->logit_row[node] == s->logit_rows - 1);
    if (s->logit_row[node] >= 0) s->logit_rows--;
    s->argmax[node] = s->logit_row[node] = -1;
    s->drawn[node] = UNDRAWN;
    s->peek = TREE_NONE;
}

void session_peek(Session *s, int node) {
    end_peek(s);
    assert(s->open && node >= 0 && node < s->tree.count && s->tree.canonical[node] == node);
    assert(s->tree.flags[node] & NODE_READ && s->argmax[node] < 0);
    s->peek = node;
}

bool session_run(Session *s, int b, Error *e) {
    assert(s->open && b >= 0 && b <= s->shape.layers);
    end_peek(s);
    for (int a = next_level(s, -1, b), next; a < b; a = next) {
        next = next_level(s, a, b);
        if (!run_level(s, a, next, e)) return false;
    }
    assert(next_level(s, -1, b) == b);
    session_check(s);
    return true;
}

bool session_set_hidden(Session *s, int first, int count, const float *rows, Error *e) {
    assert(s->open && s->shape.input != INPUT_TOKENS && first >= 0 && first + count <= s->tree.count);
    session_note_given(s, first, count);
    return s->backend->set_hidden(s->self, first, count, rows, e);
}

void session_note_given(Session *s, int first, int count) {
    if (!shape_reads_both(&s->shape)) return;
    assert(first <= s->given);
    if (first + count > s->given) s->given = first + count;
}

bool session_capture(Session *s, const Captures *captures, Error *e) {
    static const Captures none = {0};
    const Captures *c = captures ? captures : &none;
    for (int i = 0; i < c->count; i++) assert(c->layers[i] >= 1 && c->layers[i] <= s->shape.layers);
    assert(c->count >= 0 && c->count <= SHAPE_MAX_STATES);
    if (c->count && !s->backend->capture)
        return error_input(e,
                           "device %s cannot hand out the states of several layers, which EAGLE-3 and DFlash "
                           "read; --device cpu can",
                           s->backend->name);
    s->captures = *c;
    return !s->backend->capture || s->backend->capture(s->self, c, e);
}

bool session_get_hidden(Session *s, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    for (int i = 0; i < count; i++) assert(kind == HIDDEN_RAW || s->done[nodes[i]] == s->shape.layers);
    assert(kind != HIDDEN_CAPTURED || s->captures.count);
    return s->backend->get_hidden(s->self, nodes, count, kind, rows, e);
}

int session_unread(const Session *s, unsigned want, int *nodes) {
    int count = 0;
    for (int i = 0; i < s->tree.count; i++) {
        if (!(s->tree.flags[i] & NODE_READ) || s->tree.canonical[i] != i) continue;
        if (s->peek != TREE_NONE && s->peek != i) continue;
        bool unread = s->argmax[i] < 0 || (want & HEAD_LOGITS && s->logit_row[i] < 0) ||
                      (want & HEAD_DRAW && s->drawn[i] == UNDRAWN);
        assert(!unread || s->done[i] == s->shape.layers || s->peek == i);
        if (unread) nodes[count++] = i;
    }
    return count;
}

static bool refuse_bad(const Session *s, int node, Error *e) {
    int position = tree_position(&s->tree, node);
    if (s->shape.input != INPUT_TOKENS)
        return error_input(e, "adapter '%s': the logits after position %d are not finite (NaN or infinite)",
                           s->name, position);
    return error_input(e,
                       "model '%s': the logits after position %d are not finite (NaN or infinite); 'outpace "
                       "model info %s --check' looks for weights that are not",
                       s->name, position, s->name);
}

static bool run_head(Session *s, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    return s->lane ? lane_head(s, nodes, count, want, out, e)
                   : s->backend->head(s->self, nodes, count, want, out, e);
}

void session_keep_top(Session *s, int k) {
    size_t rows = 2 * (size_t)s->tree.capacity, n = rows * (size_t)k;
    assert(k >= 0);
    if (k > 0) {
        MEM_FREE(s->best.top_id, s->best.top_logit);
        s->best.top_id = mem_new(n, sizeof *s->best.top_id);
        s->best.top_logit = mem_new(n, sizeof *s->best.top_logit);
    }
    s->best.top = k;
}

// Points `out` at what every read gets from the head; returns it as HeadWant.
static unsigned always(const Session *s, HeadOut *out) {
    size_t half = (size_t)s->tree.capacity * (size_t)s->best.top;
    out->argmax = s->scratch + s->tree.capacity;
    if (!s->best.top) return HEAD_ARGMAX;
    out->top = s->best.top;
    out->top_id = s->best.top_id + half;
    out->top_logit = s->best.top_logit + half;
    return HEAD_ARGMAX | HEAD_TOP;
}

// The head's best tokens of each node.
static bool note_best(Session *s, const int *nodes, int count, const HeadOut *out, Error *e) {
    size_t k = (size_t)s->best.top;
    note_head(s, nodes, count);
    for (int i = 0; i < count; i++) {
        if (out->argmax[i] == HEAD_BAD) return refuse_bad(s, nodes[i], e);
        s->argmax[nodes[i]] = out->argmax[i];
        if (!k) continue;
        memcpy(s->best.top_id + (size_t)nodes[i] * k, out->top_id + (size_t)i * k,
               k * sizeof *s->best.top_id);
        memcpy(s->best.top_logit + (size_t)nodes[i] * k, out->top_logit + (size_t)i * k,
               k * sizeof *s->best.top_logit);
    }
    return true;
}

bool session_read(Session *s, unsigned want, Error *e) {
    int *nodes = s->scratch, count = session_unread(s, want, nodes);
    if (count == 0) return true;
    HeadOut out = {0};
    want |= always(s, &out);
    if (want & HEAD_LOGITS) {
        mem_grow(&s->logits, &s->logits_capacity, (size_t)(s->logit_rows + count) * (size_t)s->shape.vocab,
                 sizeof *s->logits);
        out.logits = s->logits + (size_t)s->logit_rows * (size_t)s->shape.vocab;
    }
    if (!run_head(s, nodes, count, want, &out, e) || !note_best(s, nodes, count, &out, e)) return false;
    for (int i = 0; i < count && want & HEAD_LOGITS; i++) s->logit_row[nodes[i]] = s->logit_rows++;
    session_check(s);
    return true;
}

// --- a greedy chain

bool session_chains(const Session *s) {
    return s->backend->chain && !s->lane && !s->best.top && s->shape.input != INPUT_HIDDEN;
}

// The first of the nodes that haven't run, if a backend can take them as one run that ends with `node`.
static int first_ahead(const Session *s, int node) {
    int first = 0;
    while (first < node && s->done[first]) first++;
    return session_chains(s) && !s->done[node] && run_end(s, first, 0) == s->tree.count ? first : TREE_NONE;
}

// Nodes get their tokens when the ids are there.
static bool chain_ahead(Session *s, int node, int first, const int *names, int count, int *ids, int *made,
                        Error *e) {
    Tree *t = &s->tree;
    StepRun run = {t, &s->cache, first, node + 1, 0, s->shape.layers, s->given};
    int last = node, n = 1;
    while (n < count && (last = tree_probe(t, last, 0, true)) != TREE_NONE) n++;
    assert(t->count == node + n);
    if (!progress_say(&s->progress, NULL, 0, e) || !s->backend->chain(s->self, &run, names, n, ids, e))
        return false;
    for (int i = 0; i < n; i++, first = ++node) {
        note_run(s, first, node + 1, 0, s->shape.layers);
        int rows = 0;
        for (int k = first; k <= node; k++) rows += t->flags[k] & NODE_READ && t->canonical[k] == k;
        note_head(s, &node, rows);
        if (ids[i] == HEAD_BAD) return refuse_bad(s, node, e);
        s->argmax[node] = ids[i];
        if (names) ids[i] = names[ids[i]];
        if (i + 1 < n) t->token[node + 1] = ids[i];
    }
    *made = n;
    return true;
}

bool session_chain(Session *s, int node, const int *names, int count, int *ids, int *made, Error *e) {
    assert(s->open && count >= 1 && node == s->tree.count - 1 && s->tree.canonical[node] == node);
    for (*made = 0; node != TREE_NONE; node = tree_probe(&s->tree, node, ids[*made - 1], true)) {
        int first = first_ahead(s, node), left = count - *made, n = 1;
        bool ok = first == TREE_NONE ? session_run(s, s->shape.layers, e) && session_read(s, HEAD_ARGMAX, e)
                                     : chain_ahead(s, node, first, names,
                                                   left < CHAIN_MOST ? left : CHAIN_MOST, ids + *made, &n, e);
        if (!ok) return false;
        int id = session_argmax(s, node);
        if (first == TREE_NONE) ids[*made] = names ? names[id] : id;
        *made += n;
        node = s->tree.count - 1;
        if (*made == count) break;
    }
    session_check(s);
    return true;
}

// --- a dynamic tree

// Adds levels of placeholders, k chains below `node`, while there's room; returns how many.
static int add_levels(Tree *t, int node, int k, int levels) {
    int made = 0;
    for (; made < levels && tree_room(t) >= k; made++)
        for (int i = 0; i < k; i++)
            if (tree_probe(t, made ? t->count - k : node, 0, false) == TREE_NONE) return made;
    return made;
}

static void take_rows(Grown *g, int k, int rows) {
    size_t n = (size_t)rows * (size_t)k;
    g->out.top = k;
    if (n <= g->room) return;
    MEM_FREE(g->out.top_id, g->out.top_logit, g->out.log_sum);
    g->out.top_id = mem_new(n, sizeof *g->out.top_id);
    g->out.top_logit = mem_new(n, sizeof *g->out.top_logit);
    g->out.log_sum = mem_new(n, sizeof *g->out.log_sum);
    g->room = n;
}

bool session_grow(Session *s, int node, int k, int levels, const int *names, Error *e) {
    Tree *t = &s->tree;
    int first = 0, count = node + 1;
    bool done = false;
    assert(s->open && count == t->count && !t->merge && t->layout == LAYOUT_TREE);
    while (first < node && s->done[first]) first++;
    bool can = s->backend->grow && !s->lane && k > 1 && run_end(s, first, 0) == count;
    levels = can ? add_levels(t, node, k, levels) : 0;
    if (levels) take_rows(&s->grown, k, 1 + levels * k);
    StepRun run = {t, &s->cache, first, count, 0, s->shape.layers, s->given};
    bool ok = !levels || (progress_say(&s->progress, NULL, 0, e) &&
                          s->backend->grow(s->self, &run, names, levels, &s->grown.out, &done, e));
    tree_cut(t, count);
    s->grown.from = node;
    s->grown.end = done ? count + levels * k : 0;
    return ok;
}

// A device's answers to nodes that it has read ahead.
static bool top_grown(const Grown *g, const int *nodes, int count, HeadOut *out) {
    size_t k = (size_t)out->top;
    if (k != (size_t)g->out.top || !out->log_sum) return false;
    for (int i = 0; i < count; i++)
        if (nodes[i] < g->from || nodes[i] >= g->end) return false;
    for (int i = 0; i < count; i++) {
        size_t row = (size_t)(nodes[i] - g->from);
        memcpy(out->top_id + (size_t)i * k, g->out.top_id + row * k, k * sizeof *out->top_id);
        memcpy(out->top_logit + (size_t)i * k, g->out.top_logit + row * k, k * sizeof *out->top_logit);
        out->log_sum[i] = g->out.log_sum[row];
    }
    return true;
}

// --- a step that sequences share

static bool run_together(Session *const *all, int count, Error *e) {
    RunCall calls[SEQUENCES_MAX];
    for (int i = 0; i < count; i++) {
        Session *s = all[i];
        assert(s->open && s->tree.count && run_end(s, 0, 0) == s->tree.count);
        calls[i] = (RunCall){.self = s->self,
                             .run = {&s->tree, &s->cache, 0, s->tree.count, 0, s->shape.layers, s->given}};
    }
    batch_calls(all[0], calls, count);
    for (int i = 0; i < count; i++) {
        if (!calls[i].ok && e) *e = calls[i].error;
        if (!calls[i].ok) return false;
        note_run(all[i], 0, all[i]->tree.count, 0, all[i]->shape.layers);
    }
    return true;
}

static bool read_together(Session *const *all, int count, Error *e) {
    HeadCall calls[SEQUENCES_MAX];
    HeadOut best[SEQUENCES_MAX];
    unsigned want = 0;
    for (int i = 0; i < count; i++) {
        Session *s = all[i];
        assert(s->best.top == all[0]->best.top);
        best[i] = (HeadOut){0};
        want = always(s, &best[i]);
        calls[i] = (HeadCall){.self = s->self,
                              .nodes = s->scratch,
                              .count = session_unread(s, HEAD_ARGMAX, s->scratch),
                              .out = &best[i]};
    }
    all[0]->backend->head_together(calls, count, want);
    for (int i = 0; i < count; i++) {
        if (!calls[i].ok && e) *e = calls[i].error;
        if (!calls[i].ok || !note_best(all[i], calls[i].nodes, calls[i].count, &best[i], e)) return false;
        session_check(all[i]);
    }
    return true;
}

bool session_step_together(Session *const *all, int count, Error *e) {
    assert(count >= 1 && count <= SEQUENCES_MAX && all[0]->backend->run_together);
    return run_together(all, count, e) && read_together(all, count, e);
}

bool session_draw(Session *s, const int *nodes, int count, HeadDraws *draws, Error *e) {
    assert(s->backend->distribution && count <= s->tree.capacity);
    HeadOut out = {.draws = draws};
    unsigned want = HEAD_DRAW | always(s, &out);
    if (!run_head(s, nodes, count, want, &out, e) || !note_best(s, nodes, count, &out, e)) return false;
    for (int i = 0; i < count; i++) s->drawn[nodes[i]] = draws->drawn[i];
    session_check(s);
    return true;
}

int session_argmax(const Session *s, int node) {
    int argmax = s->argmax[s->tree.canonical[node]];
    assert(argmax >= 0);
    return argmax;
}

const float *session_logits(const Session *s, int node) {
    int row = s->logit_row[s->tree.canonical[node]];
    assert(row >= 0);
    return s->logits + (size_t)row * (size_t)s->shape.vocab;
}

static bool read_top(Session *s, const int *nodes, int count, HeadOut *out, Error *e) {
    assert(out->top >= 1);
    note_head(s, nodes, count);
    if (!top_grown(&s->grown, nodes, count, out) && !run_head(s, nodes, count, HEAD_TOP, out, e))
        return false;
    for (int i = 0; i < count; i++)
        if (isinf(out->top_logit[i * out->top])) return refuse_bad(s, nodes[i], e);
    return true;
}

static bool top_is_kept(const Session *s, const int *nodes, int count, int k) {
    bool kept = k <= s->best.top;
    for (int i = 0; kept && i < count; i++) kept = s->argmax[nodes[i]] >= 0;
    return kept;
}

bool session_top(Session *s, const int *nodes, int count, int k, int *ids, float *logits, Error *e) {
    bool kept = top_is_kept(s, nodes, count, k);
    for (int i = 0; kept && i < count; i++) {
        size_t from = (size_t)nodes[i] * (size_t)s->best.top, to = (size_t)i * (size_t)k;
        memcpy(ids + to, s->best.top_id + from, (size_t)k * sizeof *ids);
        memcpy(logits + to, s->best.top_logit + from, (size_t)k * sizeof *logits);
    }
    return kept || read_top(s, nodes, count, &(HeadOut){.top = k, .top_id = ids, .top_logit = logits}, e);
}

bool session_likeliest(Session *s, const int *nodes, int count, int k, int *ids, float *log_p, Error *e) {
    float sums[TREE_MAX_NODES] = {0};
    HeadOut out = {.top = k, .top_id = ids, .top_logit = log_p, .log_sum = sums};
    assert(shape_reads_both(&s->shape) && count <= TREE_MAX_NODES);
    if (!read_top(s, nodes, count, &out, e)) return false;
    for (int i = 0; i < count; i++)
        for (int j = k; j-- > 0;) log_p[i * k + j] = log_chance(log_p[i * k + j], log_p[i * k], sums[i]);
    return true;
}

// If a ring is shorter than the path, only the end of the path is copied: two nodes never share a slot.
bool session_commit(Session *s, int node, int count, Error *e) {
    assert(s->open && node >= 0 && node < s->tree.count && !s->tree.mutual);
    int *path = s->scratch, *slots = s->scratch + s->tree.capacity;
    UNUSED int length = tree_path(&s->tree, node, path);
    int skip = count > s->cache.capacity ? count - s->cache.capacity : 0;
    assert(count >= 0 && count <= length);
    for (int i = skip; i < count; i++) {
        assert(s->done[path[i]] == s->shape.layers);
        slots[i] = cache_slot(&s->cache, s->cache.length + i);
    }
    for (int i = 0; i < count; i++) s->sequence[s->cache.length + i] = s->tree.token[path[i]];
    if (count && !s->backend->commit(s->self, path + skip, slots + skip, count - skip, e)) return false;
    cache_advance(&s->cache, count);
    s->open = false;
    session_check(s);
    return true;
}

bool session_truncate(Session *s, int length, Error *e) {
    drop_step(s);
    bool ok = cache_truncate(&s->cache, length, e);
    session_check(s);
    return ok;
}

bool session_rewind(Session *s, const int *tokens, int count) {
    return count <= s->cache.length && memcmp(s->sequence, tokens, (size_t)count * sizeof *tokens) == 0 &&
           session_truncate(s, count, NULL);
}

// No step writes the cache before it is committed.
int session_set_aside(Session *s) {
    int length = s->cache.length;
    drop_step(s);
    s->cache.length = 0;
    return length;
}

void session_resume(Session *s, int length) {
    drop_step(s);
    assert(s->cache.length == 0 && length <= s->cache.highest);
    s->cache.length = length;
    session_check(s);
}

// Runs the open step through all layers and reads the hidden states of its first n nodes at hidden_layer on
// the way.
static bool run_chunk(Session *s, int n, int hidden_layer, float *hidden, Error *e) {
    int *nodes = s->scratch, layers = s->shape.layers;
    bool captured = hidden_layer == LAYERS_CAPTURED;
    HiddenKind kind = captured ? HIDDEN_CAPTURED : hidden_layer == layers ? HIDDEN_NORMED : HIDDEN_RAW;
    if (!session_run(s, hidden && !captured ? hidden_layer : layers, e)) return false;
    for (int i = 0; i < n; i++) nodes[i] = i;
    if (hidden && !session_get_hidden(s, nodes, n, kind, hidden, e)) return false;
    return session_run(s, layers, e);
}

// Opens a step that is a chain of n tokens; returns its last node.
static int begin_chain(Session *s, const int *tokens, int n) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, tokens[i], false);
    return node;
}

bool session_prefill_parts(Session *s, const Prefill *p, Error *e) {
    assert(s->cache.length + p->count <= s->context);
    int chunk = p->chunk > 0 && p->chunk < s->tree.capacity ? p->chunk : s->tree.capacity;
    size_t width = (size_t)s->shape.width;
    if (p->hidden_layer == LAYERS_CAPTURED) width *= (size_t)s->captures.count;
    for (int done = 0, n; done < p->count; done += n) {
        n = p->count - done < chunk ? p->count - done : chunk;
        int node = begin_chain(s, p->tokens + done, n);
        float *rows = p->hidden ? p->hidden + (size_t)done * width : NULL;
        s->prefilled = (double)done / p->count;
        s->prefilling = (double)n / p->count;
        bool ok = run_chunk(s, n, p->hidden_layer, rows, e) && session_commit(s, node, n, e);
        s->prefilling = 0;
        if (!ok || (p->ran && !p->ran(p->state, done, n, e))) return false;
    }
    return true;
}

bool session_prefill(Session *s, const int *tokens, int count, int chunk, int hidden_layer, float *hidden,
                     Error *e) {
    Prefill p = {tokens, count, chunk, .hidden_layer = hidden_layer, .hidden = hidden};
    return session_prefill_parts(s, &p, e);
}

bool session_prefill_hidden(Session *s, const int *tokens, int count, const float *rows, Error *e) {
    assert(s->cache.length + count <= s->context);
    size_t width = (size_t)shape_given_width(&s->shape);
    for (int done = 0, n; done < count; done += n) {
        n = count - done < s->tree.capacity ? count - done : s->tree.capacity;
        int node = begin_chain(s, tokens + done, n);
        if (!session_set_hidden(s, 0, n, rows + (size_t)done * width, e) ||
            !session_run(s, s->shape.layers, e) || !session_commit(s, node, n, e))
            return false;
    }
    return true;
}

void session_assert(const Session *s) {
    const Tree *t = &s->tree;
    tree_assert(t);
    assert(!s->open || t->context == s->cache.length);
    for (int i = 0; i < t->count; i++) {
        assert(s->done[i] >= 0 && s->done[i] <= s->shape.layers);
        assert(t->parent[i] == TREE_NONE || s->done[t->parent[i]] >= s->done[i]);
        assert(s->argmax[i] < 0 || s->done[i] == s->shape.layers || s->peek == i);
    }
}
