// All integer work of a step, once for all backends. A node's progress through the layers is one number;
// bringing every node to layer b sweeps the levels from the lowest, so that each layer's weights are
// read once for all nodes that need them:
//
//      done:   2 2 2 0        session_run(s, L):   node 3 through [0, 2)
//      node:   0 1 2 3                             nodes 0 to 3 through [2, L)
#include "engine/core/session.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <math.h>

// As if nodes [0, count) had never run: no step reads what is after its nodes, so most of them stay as they
// are.
static void forget_nodes(Session *s, int count) {
    for (int i = 0; i < count; i++) {
        s->done[i] = 0;
        s->argmax[i] = s->logit_row[i] = -1;
        s->drawn[i] = UNDRAWN;
    }
}

static bool allocate(Session *s, int capacity, Error *e) {
    size_t n = (size_t)capacity;
    s->done = mem_alloc(n, sizeof(int));
    s->argmax = mem_alloc(n, sizeof(int));
    s->logit_row = mem_alloc(n, sizeof(int));
    s->drawn = mem_alloc(n, sizeof(int));
    s->scratch = mem_alloc(2 * n, sizeof(int));
    if (s->done && s->argmax && s->logit_row && s->drawn && s->scratch) {
        forget_nodes(s, capacity);
        return true;
    }
    return error_system(e, "out of memory for a step of %d nodes", capacity);
}

bool session_init(Session *s, const Backend *backend, void *self, const Shape *shape, const BackendOptions *o,
                  Error *e) {
    *s = (Session){
        .backend = backend, .self = self, .shape = *shape, .compute = o->compute, .progress = o->progress};
    s->context = o->context > 0 && o->context < shape->context ? o->context : shape->context;
    int capacity = o->max_nodes > 0 && o->max_nodes < TREE_MAX_NODES ? o->max_nodes : TREE_MAX_NODES;
    cache_init(&s->cache, s->context, shape->window, o->slack > 0 ? o->slack : CACHE_SLACK);
    if (tree_init(&s->tree, capacity, shape->vocab, e) && allocate(s, capacity, e)) return true;
    session_release(s);
    return false;
}

void session_release(Session *s) {
    if (s->backend) s->backend->close(s->self);
    tree_release(&s->tree);
    mem_free(s->done);
    mem_free(s->argmax);
    mem_free(s->logit_row);
    mem_free(s->drawn);
    mem_free(s->logits);
    mem_free(s->scratch);
    *s = (Session){0};
}

static void drop_step(Session *s) {
    forget_nodes(s, s->tree.count);
    s->open = false;
    s->tree.count = 0;
}

void session_reset(Session *s) {
    drop_step(s);
    cache_reset(&s->cache);
    s->backend->reset(s->self);
}

void session_begin_step(Session *s, bool merge, Layout layout) {
    forget_nodes(s, s->tree.count);
    tree_clear(&s->tree, s->cache.length, s->context, merge, layout);
    s->logit_rows = 0;
    s->open = true;
}

bool session_worked(const Session *s, PhaseSeconds *out) {
    BackendReport report;
    s->backend->report(s->self, &report);
    *out = report.seconds;
    return report.own_clock;
}

// The smallest progress above `after`, at most b.
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

// The end of the run of neighbours at layer a that starts at `first`. Parts run one after another, as the
// machines that they stand for would.
static int run_end(const Session *s, int first, int a) {
    int last = first;
    while (last < s->tree.count && s->done[last] == a && (last == first || !is_part_root(&s->tree, last)))
        last++;
    return last;
}

static void note_pass(Session *s, int a, int b, int rows) {
    if (s->log) pass_log_add(s->log, &(Pass){s->log_as, a, b, rows, s->cache.length, 1});
}

// A pass of many rows over a large model takes many seconds: it is then run layer by layer, where that costs
// nothing, so that it can end between two.
static bool run_nodes(Session *s, StepRun run, Error *e) {
    enum { MANY_ROWS = 32 };
    bool cut = s->progress.say && s->backend->cuts && run.last - run.first >= MANY_ROWS;
    const char *what = s->prefilling > 0 ? "running the prompt" : NULL;
    for (int end = run.b; run.a < end; run.a = run.b) {
        double share = s->prefilled + s->prefilling * run.a / s->shape.layers;
        run.b = cut ? run.a + 1 : end;
        if (!progress_say(&s->progress, what, share, e) || !s->backend->run(s->self, &run, e)) return false;
    }
    return true;
}

// Runs every node that stands at layer a to layer b, in runs of neighbours.
static bool run_level(Session *s, int a, int b, Error *e) {
    for (int first = 0, last; first < s->tree.count; first = last) {
        last = run_end(s, first, a);
        if (first == last) {
            last++;
            continue;
        }
        if (!run_nodes(s, (StepRun){&s->tree, &s->cache, first, last, a, b}, e)) return false;
        for (int i = first; i < last; i++) s->done[i] = b;
        s->passes++;
        note_pass(s, a, b, last - first);
        if (a == 0) s->rows += last - first;
    }
    return true;
}

bool session_run(Session *s, int b, Error *e) {
    assert(s->open && b >= 0 && b <= s->shape.layers);
    for (int a = next_level(s, -1, b), next; a < b; a = next) {
        next = next_level(s, a, b);
        if (!run_level(s, a, next, e)) return false;
    }
    return true;
}

bool session_set_hidden(Session *s, int first, int count, const float *rows, Error *e) {
    assert(s->open && s->shape.input == INPUT_HIDDEN && first >= 0 && first + count <= s->tree.count);
    return s->backend->set_hidden(s->self, first, count, rows, e);
}

bool session_get_hidden(Session *s, const int *nodes, int count, HiddenKind kind, float *rows, Error *e) {
    for (int i = 0; i < count; i++) assert(kind == HIDDEN_RAW || s->done[nodes[i]] == s->shape.layers);
    return s->backend->get_hidden(s->self, nodes, count, kind, rows, e);
}

static bool is_wanted(const Session *s, int node, unsigned want) {
    if (!(s->tree.flags[node] & NODE_READ) || s->tree.canonical[node] != node) return false;
    return s->argmax[node] < 0 || (want & HEAD_LOGITS && s->logit_row[node] < 0) ||
           (want & HEAD_DRAW && s->drawn[node] == UNDRAWN);
}

int session_unread(const Session *s, unsigned want, int *nodes) {
    int count = 0;
    for (int i = 0; i < s->tree.count; i++)
        if (is_wanted(s, i, want)) {
            assert(s->done[i] == s->shape.layers);
            nodes[count++] = i;
        }
    return count;
}

static bool reserve_logits(Session *s, int rows, Error *e) {
    void *logits = s->logits;
    size_t need;
    if (size_mul((size_t)rows, (size_t)s->shape.vocab, &need) &&
        mem_grow(&logits, &s->logits_capacity, need, sizeof(float))) {
        s->logits = logits;
        return true;
    }
    return error_system(e, "out of memory for %d rows of %d logits", rows, s->shape.vocab);
}

static bool refuse_bad(const Session *s, int node, Error *e) {
    int position = tree_position(&s->tree, node);
    if (s->shape.input == INPUT_HIDDEN)
        return error_input(e, "adapter '%s': the logits after position %d are not finite (NaN or infinite)",
                           s->name, position);
    return error_input(e,
                       "model '%s': the logits after position %d are not finite (NaN or infinite); 'outpace "
                       "model info %s --check' looks for weights that are not",
                       s->name, position, s->name);
}

bool session_read(Session *s, unsigned want, Error *e) {
    int *nodes = s->scratch, *best = s->scratch + s->tree.capacity, count = session_unread(s, want, nodes);
    if (count == 0) return true;
    HeadOut out = {.argmax = best};
    if (want & HEAD_LOGITS) {
        if (!reserve_logits(s, s->logit_rows + count, e)) return false;
        out.logits = s->logits + (size_t)s->logit_rows * (size_t)s->shape.vocab;
    }
    if (!s->backend->head(s->self, nodes, count, want | HEAD_ARGMAX, &out, e)) return false;
    note_pass(s, s->shape.layers, s->shape.layers, count);
    for (int i = 0; i < count; i++) {
        if (best[i] == HEAD_BAD) return refuse_bad(s, nodes[i], e);
        s->argmax[nodes[i]] = best[i];
        if (want & HEAD_LOGITS) s->logit_row[nodes[i]] = s->logit_rows++;
    }
    return true;
}

bool session_draw(Session *s, const int *nodes, int count, HeadDraws *draws, Error *e) {
    HeadOut out = {.argmax = s->scratch, .draws = draws};
    if (!s->backend->head(s->self, nodes, count, HEAD_ARGMAX | HEAD_DRAW, &out, e)) return false;
    note_pass(s, s->shape.layers, s->shape.layers, count);
    for (int i = 0; i < count; i++) {
        if (out.argmax[i] == HEAD_BAD) return refuse_bad(s, nodes[i], e);
        s->argmax[nodes[i]] = out.argmax[i];
        s->drawn[nodes[i]] = draws->drawn[i];
    }
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

bool session_top(Session *s, const int *nodes, int count, int k, int *ids, float *logits, Error *e) {
    HeadOut out = {.top = k, .top_id = ids, .top_logit = logits};
    note_pass(s, s->shape.layers, s->shape.layers, count);
    if (!s->backend->head(s->self, nodes, count, HEAD_TOP, &out, e)) return false;
    for (int i = 0; i < count; i++)
        if (isinf(logits[i * k])) return refuse_bad(s, nodes[i], e);
    return true;
}

// Where a ring is shorter than the path, only the last of it is copied: two nodes never share a slot.
bool session_commit(Session *s, int node, int count, Error *e) {
    assert(s->open && node >= 0 && node < s->tree.count);
    int *path = s->scratch, *slots = s->scratch + s->tree.capacity;
    int length = tree_path(&s->tree, node, path);
    int skip = count > s->cache.capacity ? count - s->cache.capacity : 0;
    assert(count >= 0 && count <= length);
    for (int i = skip; i < count; i++) {
        assert(s->done[path[i]] == s->shape.layers);
        slots[i] = cache_slot(&s->cache, s->cache.length + i);
    }
    (void)length;
    if (count && !s->backend->commit(s->self, path + skip, slots + skip, count - skip, e)) return false;
    cache_advance(&s->cache, count);
    s->open = false;
    return true;
}

bool session_truncate(Session *s, int length, Error *e) {
    drop_step(s);
    return cache_truncate(&s->cache, length, e);
}

// Reads the hidden states of the open step's first n nodes at the layer asked for, on the way up.
static bool run_chunk(Session *s, int n, int hidden_layer, float *hidden, Error *e) {
    int *nodes = s->scratch, layers = s->shape.layers;
    bool normed = hidden_layer == layers;
    if (hidden && !session_run(s, hidden_layer, e)) return false;
    if (!hidden && !session_run(s, layers, e)) return false;
    for (int i = 0; i < n; i++) nodes[i] = i;
    if (hidden && !session_get_hidden(s, nodes, n, normed ? HIDDEN_NORMED : HIDDEN_RAW, hidden, e))
        return false;
    return session_run(s, layers, e);
}

// Opens a step that is a chain of n tokens; gives its last node.
static int begin_chain(Session *s, const int *tokens, int n) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, tokens[i], false);
    return node;
}

bool session_prefill(Session *s, const int *tokens, int count, int chunk, int hidden_layer, float *hidden,
                     Error *e) {
    assert(s->cache.length + count <= s->context);
    if (chunk <= 0 || chunk > s->tree.capacity) chunk = s->tree.capacity;
    for (int done = 0; done < count;) {
        int n = count - done < chunk ? count - done : chunk, node = begin_chain(s, tokens + done, n);
        float *rows = hidden ? hidden + (size_t)done * (size_t)s->shape.width : NULL;
        s->prefilled = (double)done / count;
        s->prefilling = (double)n / count;
        bool ok = run_chunk(s, n, hidden_layer, rows, e) && session_commit(s, node, n, e);
        s->prefilling = 0;
        if (!ok) return false;
        done += n;
    }
    return true;
}

bool session_prefill_hidden(Session *s, const int *tokens, int count, const float *rows, Error *e) {
    assert(s->cache.length + count <= s->context);
    for (int done = 0, n; done < count; done += n) {
        n = count - done < s->tree.capacity ? count - done : s->tree.capacity;
        int node = begin_chain(s, tokens + done, n);
        if (!session_set_hidden(s, 0, n, rows + (size_t)done * (size_t)s->shape.width, e) ||
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
        assert(s->argmax[i] < 0 || s->done[i] == s->shape.layers);
    }
}
