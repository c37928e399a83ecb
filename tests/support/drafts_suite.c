#include "tests/support/drafts_suite.h"

#include "tests/support/check.h"

#include "engine/base/memory.h"

#include <math.h>
#include <string.h>

enum { MOST = 2048, ROWS = 24, TREE = 40, GIVEN = 9, LAYERS = 3 }; // of any vector, path, tree, given rows

// --- the formulas

typedef struct {
    const Model *m;
    double key[LAYERS][ROWS][MOST], value[LAYERS][ROWS][MOST];
} Plain;

static double at(const Tensor *t, int row, int column) {
    return (double)dtype_load(t->dtype, t->data, (size_t)row * (size_t)t->columns + (size_t)column);
}

// y may be x.
static void multiply(const Tensor *w, const double *x, double *y) {
    double out[MOST];
    for (int i = 0; i < w->rows; i++) {
        out[i] = 0;
        for (int j = 0; j < w->columns; j++) out[i] += at(w, i, j) * x[j];
    }
    memcpy(y, out, (size_t)w->rows * sizeof *y);
}

static void add(const Tensor *bias, double *x) {
    for (int i = 0; bias->data && i < bias->columns; i++) x[i] += at(bias, 0, i);
}

// A head, or a row; y may be x.
static void normalise(const Tensor *w, float epsilon, const double *x, double *y) {
    double squares = 0;
    for (int i = 0; i < w->columns; i++) squares += x[i] * x[i];
    for (int i = 0; i < w->columns; i++)
        y[i] = x[i] / sqrt(squares / w->columns + (double)epsilon) * at(w, 0, i);
}

// Norms of the given states on their way to fc.
static void normalise_given(const Model *m, double *states) {
    int norms = shape_fc_norms(&m->shape), each = norms ? m->fc_norm.columns / norms : 0;
    for (int i = 0; i < norms; i++) {
        double squares = 0;
        for (int k = i * each; k < (i + 1) * each; k++) squares += states[k] * states[k];
        double length = sqrt(squares / each + (double)m->shape.norm_epsilon);
        for (int k = i * each; k < (i + 1) * each; k++) states[k] *= at(&m->fc_norm, 0, k) / length;
    }
}

static void turn(const Shape *s, const Tensor *norm, double *head, int position) {
    double angles[ROPE_MAX_PAIRS];
    if (norm->data) normalise(norm, s->norm_epsilon, head, head);
    rope_frequencies(&s->rope, angles);
    for (int i = 0; i < s->rope.pairs; i++) {
        double a = head[i], b = head[i + s->rope.pairs], angle = position * angles[i];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + s->rope.pairs] = b * cos(angle) + a * sin(angle);
    }
}

static void attend_head(const Plain *p, int layer, const double *q, int row, int head, double *out) {
    const Shape *s = &p->m->shape;
    int kv = head / (s->heads / s->kv_heads) * s->head_dim, first = 0;
    double weight[ROWS], sum = 0, most = -INFINITY;
    if (s->window && row >= s->window) first = row - s->window + 1;
    for (int j = first; j <= row; j++) {
        double score = 0;
        for (int i = 0; i < s->head_dim; i++) score += q[i] * p->key[layer][j][kv + i];
        weight[j] = score / sqrt(s->head_dim);
        most = fmax(most, weight[j]);
    }
    for (int j = first; j <= row; j++) sum += weight[j] = exp(weight[j] - most);
    memset(out, 0, (size_t)s->head_dim * sizeof *out);
    for (int j = first; j <= row; j++)
        for (int i = 0; i < s->head_dim; i++) out[i] += weight[j] / sum * p->value[layer][j][kv + i];
}

// x: attention's input.
static void attention(Plain *p, int layer, int row, const double *x, double *out) {
    const Shape *s = &p->m->shape;
    const Tensor *w = p->m->layers[layer].w;
    double q[MOST], *key = p->key[layer][row], *value = p->value[layer][row];
    multiply(&w[W_Q], x, q), add(&w[W_Q_BIAS], q);
    multiply(&w[W_K], x, key), add(&w[W_K_BIAS], key);
    multiply(&w[W_V], x, value), add(&w[W_V_BIAS], value);
    for (int h = 0; h < s->heads; h++) turn(s, &w[W_Q_NORM], q + h * s->head_dim, row);
    for (int h = 0; h < s->kv_heads; h++) turn(s, &w[W_K_NORM], key + h * s->head_dim, row);
    double mixed[MOST];
    for (int h = 0; h < s->heads; h++)
        attend_head(p, layer, q + h * s->head_dim, row, h, mixed + h * s->head_dim);
    multiply(&w[W_O], mixed, out);
}

static double activate(double x, Activation a) {
    if (a == ACTIVATION_SILU) return x / (1 + exp(-x));
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void mlp(const Plain *p, int layer, double *x) {
    const Tensor *w = p->m->layers[layer].w;
    double normed[MOST], gate[MOST], up[MOST], out[MOST];
    normalise(&w[W_MLP_NORM], p->m->shape.norm_epsilon, x, normed);
    multiply(&w[W_GATE], normed, gate);
    multiply(&w[W_UP], normed, up);
    for (int i = 0; i < p->m->shape.mlp_width; i++)
        gate[i] = activate(gate[i], p->m->shape.activation) * up[i];
    multiply(&w[W_DOWN], gate, out);
    for (int i = 0; i < p->m->shape.width; i++) x[i] += out[i];
}

// Row `row` of a path: h is the given row, or, if there is none, the width floats of the last row's output.
static void plain_row(Plain *p, int row, int token, const double *h, bool given, double *out) {
    const Model *m = p->m;
    const Shape *s = &m->shape;
    int d = s->width;
    double in[MOST], x[MOST], delta[MOST], states[MOST];
    for (int i = 0; i < d; i++) in[i] = at(&m->embedding, token, i);
    if (s->input == INPUT_MTP) {
        normalise(&m->token_norm, s->norm_epsilon, in, in + d);
        normalise(&m->state_norm, s->norm_epsilon, h, in);
        multiply(&m->fc, in, x);
        normalise(&m->layers->w[W_ATTENTION_NORM], s->norm_epsilon, x, in);
        attention(p, 0, row, in, delta);
    } else if (s->input == INPUT_FUSED) {
        memcpy(in + d, h, (size_t)d * sizeof *h);
        multiply(&m->fc, in, x), add(&m->fc_bias, x);
        attention(p, 0, row, x, delta);
    } else {
        memcpy(states, h, (size_t)(given ? shape_given_width(s) : d) * sizeof *h);
        if (given) normalise_given(m, states);
        if (given) multiply(&m->fc, states, x);
        else memcpy(x, states, (size_t)d * sizeof *h);
        normalise(&m->token_norm, s->norm_epsilon, in, in);
        normalise(&m->layers->w[W_ATTENTION_NORM], s->norm_epsilon, x, in + d);
        if (s->normed_residual) memcpy(x, in + d, (size_t)d * sizeof *x);
        attention(p, 0, row, in, delta);
    }
    for (int i = 0; i < d; i++) out[i] = x[i] + delta[i];
    mlp(p, 0, out);
    for (int layer = 1; layer < s->layers; layer++) { // of P-EAGLE's: as in any model
        normalise(&m->layers[layer].w[W_ATTENTION_NORM], s->norm_epsilon, out, in);
        attention(p, layer, row, in, delta);
        for (int i = 0; i < d; i++) out[i] += delta[i];
        mlp(p, layer, out);
    }
    if (s->normed_output) normalise(&m->final_norm, s->norm_epsilon, out, out);
}

static void plain_logits(const Plain *p, const double *out, double *logits) {
    double normed[MOST];
    memcpy(normed, out, (size_t)p->m->shape.width * sizeof *out);
    if (p->m->final_norm.data && !p->m->shape.normed_output)
        normalise(&p->m->final_norm, p->m->shape.norm_epsilon, normed, normed);
    multiply(&p->m->head, normed, logits);
}

// --- random drafts

static InputKind input_of(int round) {
    return (const InputKind[]){INPUT_PAIRED, INPUT_FUSED, INPUT_MTP}[round % 3];
}

static Shape draft_shape(InputKind input, Random *r) {
    Shape s = random_plain_shape(r);
    s.input = input;
    s.layers = input == INPUT_PAIRED ? test_between(r, 1, LAYERS) : 1;
    s.tied_head = false;
    s.tokens = test_between(r, 0, 1) ? 0 : s.vocab + test_between(r, 1, 50);
    s.states = input == INPUT_PAIRED ? test_between(r, 1, 4) : 0;
    s.fc_bias = test_between(r, 0, 1);
    s.normed_residual = test_between(r, 0, 1);
    s.fc_norm = input == INPUT_PAIRED ? (FcNorm)test_between(r, FC_NORM_NONE, FC_NORM_EACH) : FC_NORM_NONE;
    s.normed_output = input != INPUT_FUSED && test_between(r, 0, 1);
    if (input == INPUT_MTP) s.qkv_bias = test_between(r, 0, 1);
    return s;
}

static void open_long(Session *s, const ExactBackend *b, const RandomModel *m, Compute compute, int threads,
                      int context) {
    BackendOptions o = {.compute = compute, .context = context, .threads = threads, .isa = b->isa};
    o.max_nodes = GIVEN + TREE;
    void *self;
    Error e = {0};
    if (!b->open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, b->backend, self, &m->model.shape, &o);
}

static void open_session(Session *s, const ExactBackend *b, const RandomModel *m, Compute compute,
                         int threads) {
    open_long(s, b, m, compute, threads, 60);
}

// A chain of given rows, some of them committed, and a tree below its end; a node's parent is -1: that end.
typedef struct {
    int given, committed, count;
    int token[GIVEN + TREE], parent[TREE];
    float *rows; // (given, given width)
} Case;

static void make_case(Case *c, const Shape *s, Random *r) {
    size_t n = (size_t)GIVEN * (size_t)shape_given_width(s);
    c->given = test_between(r, 1, GIVEN);
    c->committed = test_between(r, 0, c->given - 1);
    c->count = test_between(r, 1, TREE);
    for (int i = 0; i < GIVEN + TREE; i++) c->token[i] = test_between(r, 0, shape_tokens(s) - 1);
    for (int i = 0, depth[TREE]; i < c->count; i++) { // at most so deep that a path fits into ROWS
        do c->parent[i] = test_between(r, -1, i - 1);
        while (c->parent[i] >= 0 && depth[c->parent[i]] > 10);
        depth[i] = c->parent[i] < 0 ? 1 : depth[c->parent[i]] + 1;
    }
    c->rows = mem_new(n, sizeof *c->rows);
    for (size_t i = 0; i < n; i++) c->rows[i] = random_normal(r);
}

// The given rows: the first ones committed, the last one's node returned.
static int begin(Session *s, const Case *c) {
    size_t width = (size_t)shape_given_width(&s->shape);
    session_reset(s);
    assert_true(session_prefill_hidden(s, c->token, c->committed, c->rows, NULL));
    session_begin_step(s, false, LAYOUT_TREE);
    int node = tree_root(&s->tree, c->token[c->committed]);
    for (int i = c->committed + 1; i < c->given; i++) node = tree_probe(&s->tree, node, c->token[i], true);
    assert_true(
        session_set_hidden(s, 0, c->given - c->committed, c->rows + width * (size_t)c->committed, NULL));
    assert_true(session_run(s, s->shape.layers, NULL));
    return node;
}

// Grows all nodes by levels; writes their numbers.
static void grow(Session *s, const Case *c, int *node) {
    int end = begin(s, c), depth[TREE];
    for (int level = 1, left = c->count; left; level++) {
        for (int i = 0; i < c->count; i++) {
            depth[i] = c->parent[i] < 0 ? 1 : depth[c->parent[i]] + 1;
            if (depth[i] != level) continue;
            node[i] =
                tree_probe(&s->tree, c->parent[i] < 0 ? end : node[c->parent[i]], c->token[GIVEN + i], true);
            left--;
        }
        assert_true(session_run(s, s->shape.layers, NULL));
    }
    session_assert(s);
}

static int path_of(const Case *c, int i, int *path) {
    int n = 0;
    for (int k = i; k >= 0; k = c->parent[k]) path[n++] = k;
    return n;
}

// --- compared

static void check_numbers(const RandomModel *m, const Case *c, Session *s, const int *node, int i) {
    const Shape *shape = &m->model.shape;
    int path[TREE], n = path_of(c, i, path), row = 0, width = shape_given_width(shape);
    Plain *p = mem_new(1, sizeof *p);
    double h[MOST], logits[MOST];
    p->m = &m->model;
    for (; row < c->given; row++) {
        for (int k = 0; k < width; k++) h[k] = (double)c->rows[row * width + k];
        plain_row(p, row, c->token[row], h, true, h);
    }
    for (; n--; row++) plain_row(p, row, c->token[GIVEN + path[n]], h, false, h);
    plain_logits(p, h, logits);
    double most = 0;
    for (int k = 0; k < shape->real_vocab; k++) most = fmax(most, fabs(logits[k]));
    for (int k = 0; k < shape->real_vocab; k++) {
        double got = (double)session_logits(s, node[i])[k];
        if (!(fabs(got - logits[k]) < 1e-4 * (1 + most)))
            fail_msg("input %d, node %d: logit %d is %g, want %g", shape->input, i, k, got, logits[k]);
    }
    mem_free(p);
}

void drafts_near_formulas(const ExactBackend *b, int rounds) {
    Random r = test_random(1101);
    for (int round = 0; round < rounds; round++) {
        RandomModel m;
        Session s;
        Case c;
        int node[TREE];
        Shape shape = draft_shape(input_of(round), &r);
        random_model_init(&m, &shape, DTYPE_F32, false, &r);
        make_case(&c, &shape, &r);
        open_session(&s, b, &m, COMPUTE_F32, 1);
        grow(&s, &c, node);
        assert_true(session_read(&s, HEAD_LOGITS, NULL));
        for (int i = 0; i < 3; i++) check_numbers(&m, &c, &s, node, test_between(&r, 0, c.count - 1));
        session_release(&s);
        random_model_release(&m);
        mem_free(c.rows);
    }
}

// The same node at the end of a path by itself.
static void compare_alone(Session *s, const Case *c, int i, const float *want) {
    int path[TREE], n = path_of(c, i, path), node = begin(s, c);
    while (n--) {
        node = tree_probe(&s->tree, node, c->token[GIVEN + path[n]], true);
        assert_true(session_run(s, s->shape.layers, NULL));
    }
    assert_true(session_read(s, HEAD_LOGITS, NULL));
    if (memcmp(session_logits(s, node), want, (size_t)s->shape.vocab * sizeof *want) != 0)
        fail_msg("%s, input %d: node %d of %d differs from its path by itself", s->backend->name,
                 s->shape.input, i, c->count);
}

static void check_exact(const ExactBackend *b, InputKind input, Compute compute, Random *r) {
    RandomModel m;
    Session s, alone;
    Case c;
    int node[TREE];
    Shape shape = draft_shape(input, r);
    random_model_init(&m, &shape, compute == COMPUTE_F16 ? DTYPE_F16 : DTYPE_BF16, test_between(r, 0, 1), r);
    make_case(&c, &shape, r);
    open_session(&s, b, &m, compute, 2);
    open_session(&alone, b, &m, compute, 1);
    grow(&s, &c, node);
    assert_true(session_read(&s, HEAD_LOGITS, NULL));
    for (int k = 0; k < 3; k++) {
        int i = test_between(r, 0, c.count - 1);
        compare_alone(&alone, &c, i, session_logits(&s, node[i]));
    }
    session_release(&s);
    session_release(&alone);
    random_model_release(&m);
    mem_free(c.rows);
}

void drafts_exact(const ExactBackend *b, int rounds) {
    Random r = test_random(1102);
    for (int round = 0; round < rounds; round++)
        check_exact(b, input_of(round), (Compute)(round / 3 % COMPUTE_KINDS), &r);
}

// A chain below given rows, by a backend that goes on by itself and by one that waits for each id.
void drafts_chains(const ExactBackend *b, int rounds) {
    Random r = test_random(1105);
    Backend waits = *b->backend;
    const ExactBackend own = {.backend = &waits, .open = b->open, .isa = b->isa};
    waits.chain = NULL;
    assert_non_null(b->backend->chain);
    for (int round = 0; round < rounds; round++) {
        RandomModel m;
        Session s[2];
        Case c;
        PassLog log[2];
        int names[MOST], ids[2][TREE], made[2], nodes[2], count = test_between(&r, 1, 12);
        float states[2][MOST];
        Shape shape = draft_shape(input_of(round), &r);
        bool named = round < 2 || test_between(&r, 0, 1);
        if (named && !shape.tokens) shape.tokens = shape.vocab + 7;
        for (int i = 0; i < shape.vocab; i++) names[i] = test_between(&r, 0, shape_tokens(&shape) - 1);
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        make_case(&c, &shape, &r);
        size_t width = (size_t)shape_given_width(&shape);
        int rows = c.given - c.committed;
        for (int i = 0; i < 2; i++) {
            open_session(&s[i], i ? b : &own, &m, round % 3 ? COMPUTE_BF16 : COMPUTE_F32, 1);
            assert_true(session_chains(&s[i]) == (i == 1));
            assert_true(session_prefill_hidden(&s[i], c.token, c.committed, c.rows, NULL));
            for (int step = 0; step < 2; step++) { // the second is recorded already
                pass_log_clear(&log[i]);
                s[i].log = &log[i];
                session_begin_step(&s[i], false, LAYOUT_TREE);
                int node = tree_root(&s[i].tree, c.token[c.committed]);
                for (int k = c.committed + 1; k < c.given; k++)
                    node = tree_probe(&s[i].tree, node, c.token[k], k == c.given - 1);
                assert_true(session_set_hidden(&s[i], 0, rows, c.rows + width * (size_t)c.committed, NULL));
                assert_true(session_chain(&s[i], node, named ? names : NULL, count, ids[i], &made[i], NULL));
            }
            nodes[i] = s[i].tree.count - 1;
            assert_true(session_get_hidden(&s[i], &nodes[i], 1, HIDDEN_RAW, states[i], NULL));
            session_assert(&s[i]);
        }
        assert_int_equal(made[0], count);
        assert_int_equal(made[1], count);
        assert_int_equal(nodes[0], nodes[1]);
        assert_memory_equal(ids[0], ids[1], (size_t)count * sizeof(int));
        assert_memory_equal(s[0].tree.token, s[1].tree.token, (size_t)s[0].tree.count * sizeof(int));
        assert_memory_equal(states[0], states[1], (size_t)shape.width * sizeof(float));
        assert_int_equal(log[0].count, log[1].count);
        for (int i = 0; i < log[0].count; i++)
            assert_memory_equal(&log[0].passes[i], &log[1].passes[i], sizeof(Pass));
        for (int i = 0; i < 2; i++) session_release(&s[i]);
        random_model_release(&m);
        mem_free(c.rows);
    }
}

// --- dynamic trees

enum { WIDEST = 5, PREFIX = 140 };
typedef struct {
    int k, levels, committed, given, token[PREFIX + GIVEN];
    float *rows; // (committed + given, given width)
    const int *names;
    int ids[TREE * WIDEST], read, ties, waits; // of the rows that were read; heads that the host waited for
    float log_p[TREE * WIDEST], states[TREE][MOST];
    PassLog log;
} Growth;

// Equal rows of the head make equally likely siblings; with equal rows of the embedding, cousins as well.
static void make_twins(const Tensor *t, int row) {
    size_t bytes = (size_t)t->columns * dtype_size(t->dtype);
    unsigned char *data = (unsigned char *)(uintptr_t)t->data;
    memcpy(data + (size_t)(row + 1) * bytes, data + (size_t)row * bytes, bytes);
}

static const Backend *counted;
static int heads;
static bool count_head(void *self, const int *nodes, int count, unsigned want, HeadOut *out, Error *e) {
    heads++;
    return counted->head(self, nodes, count, want, out, e);
}

static void grow_dynamic(Session *s, Growth *g) {
    size_t width = (size_t)shape_given_width(&s->shape);
    int frontier[TREE], count = 1, node;
    float score[TREE * WIDEST] = {0}, next[TREE * WIDEST];
    pass_log_clear(&g->log);
    s->log = &g->log;
    session_begin_step(s, false, LAYOUT_TREE);
    node = tree_root(&s->tree, g->token[g->committed]);
    for (int i = 1; i < g->given; i++)
        node = tree_probe(&s->tree, node, g->token[g->committed + i], i == g->given - 1);
    assert_true(session_set_hidden(s, 0, g->given, g->rows + width * (size_t)g->committed, NULL));
    assert_true(session_grow(s, node, g->k, g->levels, g->names, NULL));
    assert_true(session_run(s, s->shape.layers, NULL));
    frontier[0] = node;
    g->read = g->ties = 0;
    for (int level = 0;; level++) {
        int *ids = g->ids + g->read * g->k, all = count * g->k;
        float *log_p = g->log_p + g->read * g->k;
        assert_true(session_likeliest(s, frontier, count, g->k, ids, log_p, NULL));
        g->read += count;
        if (level == g->levels || tree_room(&s->tree) < g->k) return;
        for (int i = 0; i < all; i++) next[i] = score[i / g->k] + log_p[i];
        int best[WIDEST], parents[WIDEST];
        for (int i = 0; i < all; i++) {
            int place = 0;
            for (int j = 0; j < all; j++) {
                place += next[j] > next[i] || (!(next[j] < next[i]) && j < i);
                g->ties += j < i && !(next[j] < next[i]) && !(next[j] > next[i]);
            }
            if (place < g->k) best[place] = i;
        }
        for (int i = 0; i < g->k; i++) {
            int id = ids[best[i]];
            parents[i] = frontier[best[i] / g->k];
            score[i] = next[best[i]];
            node = tree_probe(&s->tree, parents[i], g->names ? g->names[id] : id, false);
            if (node == TREE_NONE) return;
            best[i] = node;
        }
        memcpy(frontier, best, (size_t)g->k * sizeof *best);
        count = g->k;
        assert_true(session_run(s, s->shape.layers, NULL));
    }
}

static void compare_grown(Session *s, const Growth *g) {
    const Tree *a = &s[0].tree, *b = &s[1].tree;
    size_t n = (size_t)(g->read * g->k), nodes = (size_t)a->count;
    assert_int_equal(g[0].read, g[1].read);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->asked, b->asked);
    assert_memory_equal(g[0].ids, g[1].ids, n * sizeof(int));
    assert_memory_equal(g[0].log_p, g[1].log_p, n * sizeof(float));
    assert_memory_equal(a->token, b->token, nodes * sizeof(int));
    assert_memory_equal(a->parent, b->parent, nodes * sizeof(int));
    assert_memory_equal(a->first_child, b->first_child, nodes * sizeof(int));
    assert_int_equal(g[0].log.count, g[1].log.count);
    for (int i = 0; i < g->log.count; i++)
        assert_memory_equal(&g[0].log.passes[i], &g[1].log.passes[i], sizeof(Pass));
    for (int i = 0; i < a->count; i++) {
        float states[2][MOST];
        for (int k = 0; k < 2; k++)
            assert_true(session_get_hidden(&s[k], &i, 1, HIDDEN_RAW, states[k], NULL));
        assert_memory_equal(states[0], states[1], (size_t)s->shape.width * sizeof(float));
    }
    session_assert(&s[0]), session_assert(&s[1]);
}

// Returns how many guesses were as likely as an earlier one of their level.
static int check_grown(const ExactBackend *own, const ExactBackend *waits, int round, bool grows, Random *r) {
    static Growth g[2];
    RandomModel m;
    Session s[2];
    int names[MOST];
    Shape shape = draft_shape(round % 2 ? INPUT_FUSED : INPUT_PAIRED, r);
    bool named = round < 2 || test_between(r, 0, 1);
    if (named) shape.tokens = shape.vocab + 7;
    for (int i = 0; i < shape.vocab; i++) names[i] = i + 7;
    random_model_init(&m, &shape, DTYPE_BF16, false, r);
    for (int i = 0; round % 4 && i + 1 < shape.vocab; i += 2) {
        make_twins(&m.model.head, i);
        if (round % 4 == 3) make_twins(&m.model.embedding, named ? names[i] : i);
    }
    g->k = test_between(r, 2, shape.real_vocab < WIDEST ? shape.real_vocab : WIDEST);
    g->levels = test_between(r, 1, 9);
    g->committed = round % 3 == 2 ? test_between(r, 100, PREFIX) : test_between(r, 0, 14);
    g->given = test_between(r, 1, 4);
    g->names = named ? names : NULL;
    size_t width = (size_t)shape_given_width(&shape), n = (size_t)(PREFIX + GIVEN) * width;
    for (int i = 0; i < PREFIX + GIVEN; i++) g->token[i] = test_between(r, 0, shape_tokens(&shape) - 1);
    g->rows = mem_new(n, sizeof *g->rows);
    for (size_t i = 0; i < n; i++) g->rows[i] = random_normal(r);
    g[1] = g[0];
    int context = test_between(r, 0, 2) ? PREFIX + GIVEN + TREE : g->committed + g->given + 2;
    if (context > shape.context) context = shape.context;
    for (int i = 0; i < 2; i++) {
        open_long(&s[i], i ? own : waits, &m, (Compute)(round % COMPUTE_KINDS), 1, context);
        if (g->committed + g->given > s[i].context) g[i].committed = s[i].context - g->given;
        assert_true(session_prefill_hidden(&s[i], g->token, g[i].committed, g->rows, NULL));
        for (int step = 0; step < 2; step++) { // the second is recorded already
            heads = 0;
            grow_dynamic(&s[i], &g[i]);
            g[i].waits = heads;
        }
    }
    int levels = 1 + (g->read - 1) / g->k;
    assert_int_equal(g[0].waits, levels);
    if (grows || g[1].waits == 0) assert_int_equal(g[1].waits, levels > 1 ? 0 : levels);
    else assert_int_equal(g[1].waits, levels);
    compare_grown(s, g);
    for (int i = 0; i < 2; i++) session_release(&s[i]);
    random_model_release(&m);
    mem_free(g->rows);
    return g->ties;
}

void drafts_grown(const ExactBackend *b, int rounds, bool grows) {
    Random r = test_random(1106);
    Backend ahead = *b->backend, waits;
    const ExactBackend own = {.backend = &ahead, .open = b->open, .isa = b->isa},
                       other = {.backend = &waits, .open = b->open, .isa = b->isa};
    int ties = 0;
    counted = b->backend;
    ahead.head = count_head;
    waits = ahead;
    waits.grow = NULL;
    for (int round = 0; round < rounds; round++) ties += check_grown(&own, &other, round, grows, &r);
    assert_true(ties > 0);
}

// ln p of the likeliest ids, by adding up all logits; with more threads the same bits.
void drafts_chances(const ExactBackend *b, int rounds) {
    enum { K = 7 };
    Random r = test_random(1103);
    for (int round = 0; round < rounds; round++) {
        RandomModel m;
        Session s[2];
        Case c;
        int node[TREE], ids[2][TREE * K];
        float p[2][TREE * K];
        Shape shape = draft_shape(input_of(round), &r);
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        make_case(&c, &shape, &r);
        for (int k = 0; k < 2; k++) {
            open_session(&s[k], b, &m, COMPUTE_BF16, 1 + 2 * k);
            grow(&s[k], &c, node);
            assert_true(session_likeliest(&s[k], node, c.count, K, ids[k], p[k], NULL));
        }
        assert_true(session_read(&s[0], HEAD_LOGITS, NULL));
        assert_memory_equal(ids[0], ids[1], (size_t)(c.count * K) * sizeof(int));
        assert_memory_equal(p[0], p[1], (size_t)(c.count * K) * sizeof(float));
        for (int i = 0; i < c.count * K; i++) {
            const float *logits = session_logits(&s[0], node[i / K]);
            double sum = 0, best = (double)logits[session_argmax(&s[0], node[i / K])];
            for (int v = 0; v < shape.real_vocab; v++) sum += exp((double)logits[v] - best);
            double want = (double)logits[ids[0][i]] - best - log(sum);
            if (!(fabs((double)p[0][i] - want) < 1e-5 * (1 + fabs(want))) || p[0][i] > 0)
                fail_msg("ln p of id %d is %g, want %g", ids[0][i], (double)p[0][i], want);
        }
        for (int k = 0; k < 2; k++) session_release(&s[k]);
        random_model_release(&m);
        mem_free(c.rows);
    }
}

// Captured layers, in a prefill and in a step, against runs that stop at each layer.
void drafts_captured(const ExactBackend *b, int rounds) {
    enum { TOKENS = 30 };
    Random r = test_random(1104);
    for (int round = 0; round < rounds; round++) {
        RandomModel m;
        Session s;
        Shape shape = random_shape(&r);
        int tokens[TOKENS], n = test_between(&r, 1, TOKENS), chunk = test_between(&r, 0, 12);
        shape.layers = test_between(&r, 2, 6);
        Captures c = {.count = test_between(&r, 1, 4)};
        for (int i = 0; i < c.count; i++) c.layers[i] = test_between(&r, 1, shape.layers - 1);
        size_t width = (size_t)shape.width, row = width * (size_t)c.count;
        float *got = mem_new((size_t)n, row * sizeof *got), *want = mem_new((size_t)n, width * sizeof *want);
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        open_session(&s, b, &m, COMPUTE_BF16, 1);
        for (int i = 0; i < n; i++) tokens[i] = test_between(&r, 0, shape.vocab - 1);
        assert_true(session_capture(&s, &c, NULL));
        assert_true(session_prefill(&s, tokens, n, chunk, LAYERS_CAPTURED, got, NULL));
        int last = s.tree.count - 1;
        float *again = mem_new(row, sizeof *again);
        assert_true(session_get_hidden(&s, &last, 1, HIDDEN_CAPTURED, again, NULL));
        assert_memory_equal(again, got + (size_t)(n - 1) * row, row * sizeof *again);
        assert_true(session_capture(&s, NULL, NULL));
        for (int i = 0; i < c.count; i++) {
            session_reset(&s);
            assert_true(session_prefill(&s, tokens, n, 0, c.layers[i], want, NULL));
            for (int k = 0; k < n; k++)
                assert_memory_equal(want + (size_t)k * width, got + (size_t)k * row + (size_t)i * width,
                                    width * sizeof *want);
        }
        session_release(&s);
        random_model_release(&m);
        mem_free(got), mem_free(want), mem_free(again);
    }
}
