#include "tests/support/exact_suite.h"

#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/model/weights.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NODES = EXACT_MAX_NODES, MAX_CONTEXT = EXACT_MAX_CONTEXT, PICKED = 8 };

typedef struct {
    int context, count;
    int sequence[MAX_CONTEXT];
    int token[MAX_NODES], parent[MAX_NODES];
    int picked[PICKED]; // nodes that are compared
} Case;

static void make_case(Case *c, const Shape *s, Random *r, int most_nodes, int most_context) {
    c->context = test_between(r, 0, most_context);
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

static void prefill(const ExactBackend *b, Session *s, const Case *c, int chunk) {
    session_reset(s);
    if (b->poison) b->poison(s);
    assert_true(session_prefill(s, c->sequence, c->context, chunk, 0, NULL, NULL));
}

// Logits and states of each picked node, (PICKED, vocab) and (PICKED, width).
typedef struct {
    float *logits, *hidden;
} Said;

static Said new_said(const Shape *s) {
    Said x = {mem_new(PICKED * (size_t)s->vocab, sizeof(float)),
              mem_new(PICKED * (size_t)s->width, sizeof(float))};
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
static void run_alone(const ExactBackend *b, Session *s, const Case *c, const Said *out) {
    for (int i = 0; i < PICKED; i++) {
        int path[MAX_NODES], n = 0;
        for (int k = c->picked[i]; k != TREE_NONE; k = c->parent[k]) path[n++] = k;
        prefill(b, s, c, 1);
        while (n--) {
            session_begin_step(s, true, LAYOUT_TREE);
            int node = tree_root(&s->tree, c->token[path[n]]);
            assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
            if (n == 0) keep(s, node, out, i);
            assert_true(session_commit(s, node, 1, NULL));
        }
    }
}

// All nodes in one tree; `growing`, 0: at once, runs them about so many at a time, through layers split at
// random.
static void run_tree(Session *s, const Case *c, const Said *out, int growing, Random *r) {
    int node[MAX_NODES];
    session_begin_step(s, false, LAYOUT_TREE); // no merging: equal nodes are held against each other too
    for (int i = 0; i < c->count; i++) {
        node[i] = i ? tree_probe(&s->tree, node[c->parent[i]], c->token[i], true)
                    : tree_root(&s->tree, c->token[0]);
        assert_int_not_equal(node[i], TREE_NONE);
        if (growing && test_between(r, 1, growing) == 1)
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

static void open_session(const ExactBackend *b, Session *s, const RandomModel *m, Compute compute,
                         int threads) {
    BackendOptions o = {
        .compute = compute, .max_nodes = MAX_NODES + 24, .threads = threads, .isa = b->isa, .slack = 16};
    void *self;
    Error e = {0};
    if (!b->open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, b->backend, self, &m->model.shape, &o);
    if (b->poison) b->poison(s);
}

// Makes a weight of the head's row for `id` a NaN, or the scale of some; with that, the id's logit after any
// node.
static void spoil(RandomModel *m, int id) {
    static const float nan32 = NAN;
    static const uint16_t nan16 = 0x7fff; // of both halves
    const Tensor *t = &m->model.head;
    if (t->codes.bits) {
        static const uint16_t quiet = 0x7e00; // which kernels round to one
        Tensor row = tensor_rows(t, id, 1);
        bool is_half = t->codes.kind != SCALES_F32 && t->codes.kind != SCALES_PAIRS;
        unsigned char *scale = m->weights + ((const unsigned char *)row.codes.scales - m->weights);
        memcpy(scale, is_half ? (const void *)&quiet : &nan32, is_half ? sizeof quiet : sizeof nan32);
        return;
    }
    size_t size = dtype_size(t->dtype), at = (size_t)id * (size_t)t->columns * size;
    unsigned char *row = m->weights + ((const unsigned char *)t->data - m->weights) + at;
    memcpy(row, size == sizeof nan32 ? (const void *)&nan32 : &nan16, size);
}

static void expect_refused(bool ok, const Error *e) {
    if (ok || !strstr(e->text, "'spoilt': the logits after position 0 are not finite"))
        fail_msg("wanted a refusal, got '%s'", ok ? "none" : e->text);
}

// A NaN among the logits ends every way of reading them, however many nodes are read; one that is masked is
// nothing.
static void refuse_bad(const ExactBackend *b, RandomModel *m, Compute compute, Random *r) {
    enum { TOP = 3 };
    Session s;
    Error e = {0};
    const Shape *shape = &m->model.shape;
    int ids[TOP], first[2] = {0}, drawn, count = test_between(r, 1, 40);
    float logits[TOP];
    double u = 0.5;
    HeadDraws draws = {{1, 0, 1}, shape->real_vocab, &u, first, &drawn, NULL, NULL, NULL, &drawn};
    if (shape->vocab > shape->real_vocab) spoil(m, shape->vocab - 1);
    for (int bad = shape->vocab == shape->real_vocab; bad < 2; bad++) {
        if (bad) spoil(m, test_between(r, 0, shape->real_vocab - 1));
        open_session(b, &s, m, compute, 2);
        snprintf(s.name, sizeof s.name, "spoilt");
        session_begin_step(&s, true, LAYOUT_TREE);
        int node = tree_root(&s.tree, 0);
        for (int i = 1; i < count; i++) tree_probe(&s.tree, node, i % shape->real_vocab, true);
        assert_true(session_run(&s, shape->layers, NULL));
        if (!bad) assert_true(session_top(&s, &node, 1, TOP, ids, logits, NULL));
        if (!bad) assert_true(session_read(&s, HEAD_LOGITS, NULL));
        if (bad) {
            expect_refused(session_top(&s, &node, 1, TOP, ids, logits, &e), &e);
            expect_refused(session_read(&s, HEAD_ARGMAX, &e), &e);
            expect_refused(session_read(&s, HEAD_LOGITS, &e), &e);
            if (b->backend->distribution) expect_refused(session_draw(&s, &node, 1, &draws, &e), &e);
        }
        session_release(&s);
    }
}

// A norm of weights that f16 just has, whose product with some of a row it has not: compute f16 says where,
// each time; bf16 has it.
static void refuse_overflow(const ExactBackend *b, RandomModel *m, Random *r) {
    int layer = test_between(r, 0, m->model.shape.layers - 1);
    const Tensor *t = &m->model.layers[layer].w[W_MLP_NORM];
    unsigned char *at = m->weights + ((const unsigned char *)t->data - m->weights), *kept;
    size_t bytes = tensor_bytes(t);
    char want[80];
    snprintf(want, sizeof want, "layer %d: the MLP's input has a number beyond 65504", layer);
    assert_non_null(kept = mem_new(bytes, 1));
    memcpy(kept, at, bytes);
    for (int i = 0; i < t->columns; i++) {
        float x = 65504;
        uint16_t h = t->dtype == DTYPE_F16 ? f32_to_f16(x) : f32_to_bf16(x);
        memcpy(at + (size_t)i * dtype_size(t->dtype), t->dtype == DTYPE_F32 ? (void *)&x : &h,
               dtype_size(t->dtype));
    }
    for (int try = 0; try < 3; try++) {
        Session s;
        Error e = {0};
        bool f16 = try < 2;
        if (try != 1) open_session(b, &s, m, f16 ? COMPUTE_F16 : COMPUTE_BF16, 1);
        session_begin_step(&s, true, LAYOUT_TREE);
        tree_root(&s.tree, try);
        bool ok = session_run(&s, s.shape.layers, &e) && session_read(&s, HEAD_ARGMAX, &e);
        if (ok == f16 || (f16 && !strstr(e.text, want)))
            fail_msg("wanted %s, got '%s'", f16 ? want : "no refusal", ok ? "none" : e.text);
        if (try) session_release(&s);
    }
    memcpy(at, kept, bytes);
    mem_free(kept);
}

// A node that is read after `exit` layers has the logits of a model that ends there; and in the end it has
// its own, as if nobody had looked.
static void read_early(const ExactBackend *b, const RandomModel *m, Compute compute, Random *r) {
    enum { NODES = 4 };
    RandomModel shorter = *m;
    Session s, ends;
    int layers = m->model.shape.layers, exit = test_between(r, 1, layers), token[NODES], node = TREE_NONE;
    size_t vocab = (size_t)m->model.shape.vocab;
    float *last = mem_new(vocab, sizeof *last);
    shorter.model.shape.layers = exit;
    for (int i = 0; i < NODES; i++) token[i] = test_between(r, 0, m->model.shape.vocab - 1);
    open_session(b, &s, m, compute, 1);
    open_session(b, &ends, &shorter, compute, 1);
    session_begin_step(&s, true, LAYOUT_TREE);
    for (int i = 0; i < NODES; i++) {
        node = i ? tree_probe(&s.tree, node, token[i], true) : tree_root(&s.tree, token[i]);
        slow_next(&ends, token, i + 1, last);
        assert_true(session_run(&s, exit, NULL));
        session_peek(&s, node);
        assert_true(session_read(&s, HEAD_LOGITS, NULL));
        assert_memory_equal(session_logits(&s, node), last, vocab * sizeof *last);
    }
    assert_true(session_run(&s, layers, NULL) && session_read(&s, HEAD_LOGITS, NULL));
    session_release(&ends);
    open_session(b, &ends, m, compute, 1);
    for (int i = 0; i < NODES; i++) {
        slow_next(&ends, token, i + 1, last);
        assert_memory_equal(session_logits(&s, i), last, vocab * sizeof *last);
    }
    session_release(&s);
    session_release(&ends);
    mem_free(last);
}

static void check_round(const ExactBackend *b, int round, int most_nodes, Random *r) {
    Shape shape = random_shape(r);
    RandomModel m;
    Case c;
    Session s;
    Compute compute = (Compute)(round % COMPUTE_KINDS);
    bool coded = random_below(r, 3) == 0 || compute == COMPUTE_INT8;
    if (coded) random_coded_shape(&shape);
    random_model_init(&m, &shape, compute == COMPUTE_F16 ? DTYPE_F16 : DTYPE_BF16, round % 4 == 0, r);
    if (coded) random_model_code(&m, NULL, r);
    make_case(&c, &shape, r, most_nodes, b->most_context);
    Said want = new_said(&shape), got = new_said(&shape);
    open_session(b, &s, &m, compute, 1);
    run_alone(b, &s, &c, &want);
    session_release(&s);
    // Threads that share a core spin for each other, hundreds of times a pass: they come in every tenth
    // round, with fewer passes.
    int threads = round % 10 ? 1 : 2 + round / 10 % 2;
    open_session(b, &s, &m, compute, threads);
    prefill(b, &s, &c, test_between(r, threads > 1 ? 50 : 1, 130));
    run_tree(&s, &c, &got, 0, r);
    compare(&c, &shape, &got, &want, "tree");
    run_tree(&s, &c, &got, threads > 1 ? 30 : 5, r);
    compare(&c, &shape, &got, &want, "growing tree");
    run_batch(&s, &c, &got);
    compare(&c, &shape, &got, &want, "batch");
    session_release(&s);
    free_said(&want);
    free_said(&got);
    read_early(b, &m, compute, r);
    if (compute == COMPUTE_F16 && weight_present(&shape, 0, W_MLP_NORM)) refuse_overflow(b, &m, r);
    refuse_bad(b, &m, compute, r);
    random_model_release(&m);
}

void exact_suite(const ExactBackend *b, int first, int rounds, int most_nodes) {
    Random r = test_random(10);
    for (int round = first; round < first + rounds; round++) check_round(b, round, most_nodes, &r);
}
