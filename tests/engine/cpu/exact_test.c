// A node's logits and hidden states are the same bits whatever shares the step with it. Each round takes a
// random model, a random sequence and a random tree, runs every path of the tree alone, one token a step, and
// compares all other ways of running the same nodes with that, bit for bit.
#include "tests/check.h"
#include "tests/random_model.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/instance.h"

#include <math.h>
#include <string.h>

enum { MAX_NODES = 200, MAX_CONTEXT = 330, PICKED = 8 };

typedef struct {
    int context, count;
    int sequence[MAX_CONTEXT];
    int token[MAX_NODES], parent[MAX_NODES];
    int picked[PICKED]; // nodes that are compared
} Case;

static void make_case(Case *c, const Shape *s, Random *r, int most_nodes) {
    c->context = test_between(r, 0, 150);
    c->count = test_between(r, 1, most_nodes);
    for (int i = 0; i < c->context; i++) c->sequence[i] = test_between(r, 0, s->vocab - 1);
    for (int i = 0; i < PICKED; i++) c->picked[i] = test_between(r, 0, c->count - 1);
    c->picked[0] = c->count - 1;
    bool chain = test_between(r, 0, 3) == 0;
    for (int i = 0; i < c->count; i++) {
        c->token[i] = test_between(r, 0, s->vocab - 1);
        c->parent[i] = i == 0 ? TREE_NONE : chain ? i - 1 : test_between(r, i > 30 ? i - 30 : 0, i - 1);
    }
}

// Everything that no run has written is NaN.
static void poison(Session *s) {
    Cpu *c = s->self;
    size_t kv = (size_t)c->model->shape.layers;
    memset(c->cache.k, 0xff, kv * c->cache.k_bytes);
    memset(c->cache.v, 0xff, kv * c->cache.v_bytes);
    memset(c->step.k, 0xff, kv * c->step.k_bytes);
    memset(c->step.v, 0xff, kv * c->step.v_bytes);
    memset(c->hidden, 0xff, (size_t)c->max_nodes * (size_t)c->model->shape.width * sizeof(float));
}

static void open_session(Session *s, const RandomModel *m, Compute compute, int threads, const char *isa) {
    BackendOptions o = {
        .compute = compute, .max_nodes = MAX_NODES + 24, .threads = threads, .isa = isa, .slack = 16};
    void *self;
    Error e = {0};
    if (!cpu_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    assert_true(session_init(s, &cpu_backend, self, &m->model.shape, &o, &e));
    poison(s);
}

static void prefill(Session *s, const Case *c, int chunk) {
    session_reset(s);
    poison(s);
    assert_true(session_prefill(s, c->sequence, c->context, chunk, 0, NULL, NULL));
}

// What each picked node says and holds, (PICKED, vocab) and (PICKED, width).
typedef struct {
    float *logits, *hidden;
} Said;

static Said new_said(const Shape *s) {
    Said x = {mem_alloc(PICKED * (size_t)s->vocab, sizeof(float)),
              mem_alloc(PICKED * (size_t)s->width, sizeof(float))};
    assert_true(x.logits && x.hidden);
    return x;
}

static void free_said(Said *x) {
    mem_free(x->logits);
    mem_free(x->hidden);
}

static void keep(Session *s, int node, const Said *out, int i) {
    size_t vocab = (size_t)s->shape.vocab, width = (size_t)s->shape.width;
    assert_true(session_get_hidden(s, &node, 1, HIDDEN_NORMED, out->hidden + (size_t)i * width, NULL));
    memcpy(out->logits + (size_t)i * vocab, session_logits(s, node), vocab * sizeof(float));
}

// The plain truth: a path by itself, one token a step, everything before it committed.
static void run_alone(Session *s, const Case *c, const Said *out) {
    for (int i = 0; i < PICKED; i++) {
        int path[MAX_NODES], n = 0;
        for (int k = c->picked[i]; k != TREE_NONE; k = c->parent[k]) path[n++] = k;
        prefill(s, c, 1);
        while (n--) {
            session_begin_step(s, true, LAYOUT_TREE);
            int node = tree_root(&s->tree, c->token[path[n]]);
            assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
            if (n == 0) keep(s, node, out, i);
            assert_true(session_commit(s, node, 1, NULL));
        }
    }
}

// All nodes in one tree; `growing` adds and runs them a few at a time, through layers split at random.
static void run_tree(Session *s, const Case *c, const Said *out, bool growing, Random *r) {
    int node[MAX_NODES];
    session_begin_step(s, false, LAYOUT_TREE); // no merging: equal nodes are held against each other too
    for (int i = 0; i < c->count; i++) {
        node[i] = i ? tree_probe(&s->tree, node[c->parent[i]], c->token[i], true)
                    : tree_root(&s->tree, c->token[0]);
        assert_int_not_equal(node[i], TREE_NONE);
        if (growing && test_between(r, 0, 4) == 0)
            assert_true(session_run(s, test_between(r, 0, s->shape.layers), NULL));
    }
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
    for (int i = 0; i < PICKED; i++) keep(s, node[c->picked[i]], out, i);
}

// A path is one or more rows of a batch, each with the root repeated; the last row is looked at.
static void run_batch(Session *s, const Case *c, const Said *out) {
    for (int i = 0; i < PICKED; i++) {
        int path[MAX_NODES], n = 0;
        for (int k = c->picked[i]; k != TREE_NONE; k = c->parent[k]) path[n++] = k;
        session_begin_step(s, true, LAYOUT_BATCH);
        tree_root(&s->tree, c->token[0]);
        int rows = 3 * n < MAX_NODES ? 1 + i % 3 : 1, node = 0;
        for (int row = 0; row < rows; row++) {
            node = tree_row(&s->tree);
            for (int k = n - 2; k >= 0; k--) node = tree_propose(&s->tree, node, c->token[path[k]]);
        }
        assert_int_not_equal(node, TREE_NONE);
        assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
        keep(s, node, out, i); // hidden states of the last row, logits of its canonical node
    }
}

static void compare(const Case *c, const Shape *s, const Said *got, const Said *want, const char *what) {
    for (int i = 0; i < PICKED; i++) {
        size_t v = (size_t)s->vocab * sizeof(float), w = (size_t)s->width * sizeof(float);
        bool same = !memcmp((char *)got->logits + (size_t)i * v, (char *)want->logits + (size_t)i * v, v) &&
                    !memcmp((char *)got->hidden + (size_t)i * w, (char *)want->hidden + (size_t)i * w, w);
        if (!same)
            fail_msg(
                "%s: node %d of %d differs (context %d, window %d, width %d, heads %d/%d of %d, seed %llu)",
                what, i, c->count, c->context, s->window, s->width, s->heads, s->kv_heads, s->head_dim,
                (unsigned long long)test_seed());
        for (int k = 0; k < s->real_vocab; k++)
            assert_true(got->logits[(size_t)i * (size_t)s->vocab + (size_t)k] > -INFINITY);
    }
}

static void check_set(const char *isa, int rounds, int most_nodes) {
    Random r = test_random(10);
    for (int round = 0; round < rounds; round++) {
        Shape shape = random_shape(&r);
        RandomModel m;
        Case c;
        Session s;
        Compute compute = round % 2 ? COMPUTE_BF16 : COMPUTE_F32;
        random_model_init(&m, &shape, DTYPE_BF16, round % 3 == 0, &r);
        make_case(&c, &shape, &r, most_nodes);
        Said want = new_said(&shape), got = new_said(&shape);
        open_session(&s, &m, compute, 1, isa);
        run_alone(&s, &c, &want);
        session_release(&s);
        open_session(&s, &m, compute, test_between(&r, 1, 3), isa);
        prefill(&s, &c, test_between(&r, 1, 130));
        run_tree(&s, &c, &got, false, &r);
        compare(&c, &shape, &got, &want, "tree");
        run_tree(&s, &c, &got, true, &r);
        compare(&c, &shape, &got, &want, "growing tree");
        run_batch(&s, &c, &got);
        compare(&c, &shape, &got, &want, "batch");
        session_release(&s);
        free_said(&want);
        free_said(&got);
        random_model_release(&m);
    }
}

static void every_set(void **state) {
    (void)state;
    for (size_t i = 0; i < cpu_ops_count(); i++) {
        bool available;
        const char *name = cpu_ops_at(i, &available)->name;
        bool slow = strcmp(name, "reference") == 0;
        if (available) check_set(name, slow ? 10 : 30, slow ? 25 : MAX_NODES);
        print_message("%s: %s\n", name, available ? "exact" : "not on this processor");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
