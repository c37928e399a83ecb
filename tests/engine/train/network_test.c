// The whole network against a plain one in double: losses, and gradients against finite differences of that.
// And what must not matter: the number of threads, and what else stands in the batch.
#include "tests/check.h"

#include "engine/base/memory.h"
#include "engine/train/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 200, MOST_WIDTH = 128 };

static Shape random_shape(Random *r) {
    int kv = test_between(r, 1, 2), size = 2 * test_between(r, 1, 5);
    return (Shape){
        .layers = test_between(r, 1, 3),
        .width = test_between(r, 3, 40),
        .heads = kv * test_between(r, 1, 3),
        .kv_heads = kv,
        .head_dim = size,
        .mlp_width = test_between(r, 1, 50),
        .vocab = test_between(r, 5, 60),
        .real_vocab = 5,
        .context = MOST_ROWS,
        .tied_head = true,
        .norm_epsilon = 1e-5f,
        .rope = {.theta = 10000, .pairs = size / 2}
    };
}

// A strip of documents; some rows have nothing to learn.
typedef struct Strip {
    int tokens[MOST_ROWS], targets[MOST_ROWS], start[MOST_ROWS];
    Batch batch;
} Strip;

static void random_strip(Strip *b, int rows, int vocab, int longest, Random *r) {
    int start = 0;
    for (int i = 0; i < rows; i++) {
        if (i - start >= longest || random_below(r, 12) == 0) start = i;
        b->start[i] = start;
        b->tokens[i] = test_between(r, 0, vocab - 1);
        b->targets[i] = random_below(r, 6) ? test_between(r, 0, vocab - 1) : -1;
    }
    b->batch = (Batch){b->tokens, b->targets, b->start, rows};
}

static Network open_network(const Shape *s, int rows, int longest, int threads, const char *isa) {
    Network n;
    Error e = {0};
    NetworkOptions o = {.rows = rows, .longest = longest, .threads = threads, .isa = isa};
    if (!network_open(&n, s, &o, &e)) fail_msg("%s", e.text);
    return n;
}

// Larger numbers than training starts from, so that every part of the network matters.
static void random_weights(const Network *n, Random *r) {
    for (size_t i = 0; i < n->parameters.total; i++) n->weights[i] = (float)(random_uniform(r) - 0.5);
}

// --- the plain network -----------------------------------------------------------------------------------

typedef struct Plain {
    const Shape *s;
    const Parameters *p;
    const double *w;
    double x[MOST_ROWS][MOST_WIDTH], qkv[MOST_ROWS][MOST_WIDTH];
} Plain;

static void plain_linear(const double *x, const double *w, int inputs, int outputs, double *y) {
    for (int o = 0; o < outputs; o++) {
        y[o] = 0;
        for (int i = 0; i < inputs; i++) y[o] += x[i] * w[o * inputs + i];
    }
}

static void plain_norm(const Plain *p, const double *x, const double *w, double *y) {
    double sum = 0;
    for (int i = 0; i < p->s->width; i++) sum += x[i] * x[i];
    for (int i = 0; i < p->s->width; i++)
        y[i] = x[i] / sqrt(sum / p->s->width + (double)p->s->norm_epsilon) * w[i];
}

static void plain_turn(const Shape *s, double *head, int position) {
    int pairs = s->head_dim / 2;
    for (int i = 0; i < pairs; i++) {
        double angle = position * pow(s->rope.theta, -(double)i / pairs), a = head[i], b = head[i + pairs];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + pairs] = b * cos(angle) + a * sin(angle);
    }
}

static void plain_attend(const Plain *p, const Batch *b, int row, int head, double *out) {
    const Shape *s = p->s;
    int q = shape_q_width(s), kv = head / (s->heads / s->kv_heads) * s->head_dim;
    double weight[MOST_ROWS], sum = 0;
    memset(out, 0, (size_t)s->head_dim * sizeof *out);
    for (int j = b->start[row]; j <= row; j++) {
        double score = 0;
        for (int i = 0; i < s->head_dim; i++)
            score += p->qkv[row][head * s->head_dim + i] * p->qkv[j][q + kv + i];
        sum += weight[j] = exp(score / sqrt(s->head_dim));
    }
    for (int j = b->start[row]; j <= row; j++)
        for (int i = 0; i < s->head_dim; i++)
            out[i] += weight[j] / sum * p->qkv[j][q + shape_kv_width(s) + kv + i];
}

static void plain_layer(Plain *p, const Batch *b, const LayerPlan *plan) {
    const Shape *s = p->s;
    double normed[MOST_WIDTH], mixed[MOST_WIDTH], delta[MOST_WIDTH], gate_up[MOST_WIDTH];
    for (int r = 0; r < b->rows; r++) {
        plain_norm(p, p->x[r], p->w + plan->attention_norm, normed);
        plain_linear(normed, p->w + plan->qkv, s->width, shape_q_width(s) + 2 * shape_kv_width(s), p->qkv[r]);
        for (int h = 0; h < s->heads + s->kv_heads; h++)
            plain_turn(s, p->qkv[r] + h * s->head_dim, r - b->start[r]);
    }
    for (int r = 0; r < b->rows; r++) {
        for (int h = 0; h < s->heads; h++) plain_attend(p, b, r, h, mixed + h * s->head_dim);
        plain_linear(mixed, p->w + plan->o, shape_q_width(s), s->width, delta);
        for (int i = 0; i < s->width; i++) p->x[r][i] += delta[i];
        plain_norm(p, p->x[r], p->w + plan->mlp_norm, normed);
        plain_linear(normed, p->w + plan->gate_up, s->width, 2 * s->mlp_width, gate_up);
        for (int i = 0; i < s->mlp_width; i++)
            gate_up[i] *= gate_up[s->mlp_width + i] / (1 + exp(-gate_up[i]));
        plain_linear(gate_up, p->w + plan->down, s->mlp_width, s->width, delta);
        for (int i = 0; i < s->width; i++) p->x[r][i] += delta[i];
    }
}

static double plain_loss(Plain *p, const Batch *b) {
    const Shape *s = p->s;
    double normed[MOST_WIDTH], logits[MOST_WIDTH], loss = 0;
    for (int r = 0; r < b->rows; r++)
        memcpy(p->x[r], p->w + p->p->embedding + (size_t)(b->tokens[r] * s->width),
               (size_t)s->width * sizeof(double));
    for (int layer = 0; layer < s->layers; layer++) plain_layer(p, b, &p->p->layers[layer]);
    for (int r = 0; r < b->rows; r++) {
        double sum = 0;
        if (b->targets[r] < 0) continue;
        plain_norm(p, p->x[r], p->w + p->p->final_norm, normed);
        plain_linear(normed, p->w + p->p->embedding, s->width, s->vocab, logits);
        for (int i = 0; i < s->vocab; i++) sum += exp(logits[i]);
        loss += log(sum) - logits[b->targets[r]];
    }
    return loss;
}

// --- against it ------------------------------------------------------------------------------------------

static void expect_near(const char *what, const Network *n, double want, double got, double size) {
    double unit =
        n->kernels->rounds_to_bf16 ? 5e-3 : 1e-5; // up to 1.7e-3 has been seen; see rounding_is_small
    if (!(fabs(got - want) <= unit * size + 2e-4 * fabs(want)))
        fail_msg("%s (%s, layers %d, width %d, heads %d/%d of %d): wanted %.8g, got %.8g (seed %llu)", what,
                 n->kernels->name, n->shape.layers, n->shape.width, n->shape.heads, n->shape.kv_heads,
                 n->shape.head_dim, want, got, (unsigned long long)test_seed());
}

// A few numbers of every tensor.
static void compare_gradients(const Network *n, Plain *p, double *w, const Batch *b, double scale,
                              Random *r) {
    const double step = 1e-5;
    for (int i = 0; i < n->parameters.count; i++)
        for (int k = 0; k < 4; k++) {
            const Parameter *x = &n->parameters.list[i];
            size_t at = x->at + random_below(r, (uint32_t)parameter_size(x));
            double there = w[at];
            w[at] = there + step;
            double high = plain_loss(p, b);
            w[at] = there - step;
            double low = plain_loss(p, b);
            w[at] = there;
            expect_near(x->name, n, scale * (high - low) / (2 * step), (double)n->gradients[at],
                        scale * b->rows);
        }
}

static void check_set(const TrainKernels *k, int rounds, Random *r) {
    Plain *p = mem_alloc(1, sizeof *p);
    Strip *strip = mem_alloc(1, sizeof *strip);
    for (int round = 0; round < rounds; round++) {
        Shape s = random_shape(r);
        int rows = test_between(r, 1, 70);
        Network n = open_network(&s, rows, 40, 2, k->name);
        double *w = mem_alloc(n.parameters.total, sizeof *w);
        random_weights(&n, r);
        random_strip(strip, rows, s.vocab, 40, r);
        for (size_t i = 0; i < n.parameters.total; i++) w[i] = (double)n.weights[i];
        p->s = &s;
        p->p = &n.parameters;
        p->w = w;
        double want = plain_loss(p, &strip->batch);
        expect_near("loss", &n, want, network_loss(&n, &strip->batch), rows);
        expect_near("loss while learning", &n, want, network_learn(&n, &strip->batch, 0.25f), rows);
        compare_gradients(&n, p, w, &strip->batch, 0.25, r);
        mem_free(w);
        network_close(&n);
    }
    mem_free(p);
    mem_free(strip);
}

static void plain_network(void **state) {
    (void)state;
    Random r = test_random(1);
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        if (available) check_set(k, 8, &r);
    }
}

// How far a tensor's gradients are from those of the f32 sets, as a share of their length.
static double distance(const Network *n, const Network *exact, const Parameter *x) {
    double apart = 0, length = 0;
    for (size_t i = x->at; i < x->at + parameter_size(x); i++) {
        double want = (double)exact->gradients[i], got = (double)n->gradients[i];
        apart += (got - want) * (got - want);
        length += want * want;
    }
    return length > 0 ? sqrt(apart / length) : 0;
}

static void compare_tensors(const TrainKernels *k, Random *r) {
    Shape s = random_shape(r);
    Strip strip;
    Network n = open_network(&s, MOST_ROWS, 60, 2, k->name),
            exact = open_network(&s, MOST_ROWS, 60, 2, "portable");
    random_weights(&n, r);
    memcpy(exact.weights, n.weights, n.parameters.total * sizeof(float));
    random_strip(&strip, MOST_ROWS, s.vocab, 60, r);
    network_learn(&n, &strip.batch, 1);
    network_learn(&exact, &strip.batch, 1);
    for (int i = 0; i < n.parameters.count; i++) {
        const Parameter *x = &n.parameters.list[i];
        double apart = distance(&n, &exact, x), most = k->rounds_to_bf16 ? 0.06 : 1e-5;
        if (!(apart < most))
            fail_msg("%s: the gradient of %s is off by %.2g of its length, wanted at most %.2g (seed %llu)",
                     k->name, x->name, apart, most, (unsigned long long)test_seed());
    }
    network_close(&n);
    network_close(&exact);
}

// Finite differences are of a network that does not round: rounding moves each number little, but small ones
// by much of what they are. Taken as a whole, a tensor's gradient keeps its direction.
static void rounding_is_small(void **state) {
    (void)state;
    Random r = test_random(5);
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        for (int round = 0; available && round < 8; round++) compare_tensors(k, &r);
    }
}

// Documents long enough for several blocks of queries, rows for several of norms: one thread or three, not a
// bit may differ; and the gradient is added to what is there.
static void compare_threads(const TrainKernels *k, Random *r) {
    Shape s = random_shape(r);
    Strip strip;
    s.heads = 6;
    s.kv_heads = 2;
    Network one = open_network(&s, MOST_ROWS, 150, 1, k->name),
            three = open_network(&s, MOST_ROWS, 150, 3, k->name);
    random_weights(&one, r);
    memcpy(three.weights, one.weights, one.parameters.total * sizeof(float));
    random_strip(&strip, MOST_ROWS, s.vocab, 150, r);
    for (int i = 0; i < 150; i++) strip.start[i] = 0;
    for (int i = 150; i < MOST_ROWS; i++) strip.start[i] = 150;
    double a = network_learn(&one, &strip.batch, 1), b = network_learn(&three, &strip.batch, 1);
    assert_true(a == b);
    assert_memory_equal(one.gradients, three.gradients, one.parameters.total * sizeof(float));
    for (size_t i = 0; i < one.parameters.total; i++) three.gradients[i] = 0;
    network_learn(&three, &strip.batch, 1);
    assert_memory_equal(one.gradients, three.gradients, one.parameters.total * sizeof(float));
    network_learn(&three, &strip.batch, 1);
    for (size_t i = 0; i < one.parameters.total; i++)
        assert_float_equal(three.gradients[i], 2 * one.gradients[i], 1e-3f + 1e-3f * fabsf(one.gradients[i]));
    network_close(&one);
    network_close(&three);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    Random r = test_random(2);
    for (size_t i = 0; i < train_kernels_count(); i++) {
        bool available;
        const TrainKernels *k = train_kernels_at(i, &available);
        if (available) compare_threads(k, &r);
    }
}

// A document's loss is the same alone and packed between others.
static void documents_do_not_matter(void **state) {
    (void)state;
    Random r = test_random(3);
    Shape s = random_shape(&r);
    Strip strip;
    Network n = open_network(&s, MOST_ROWS, MOST_ROWS, 2, NULL);
    random_weights(&n, &r);
    random_strip(&strip, MOST_ROWS, s.vocab, 60, &r);
    double packed = network_loss(&n, &strip.batch), alone = 0;
    for (int from = 0, to; from < MOST_ROWS; from = to) {
        int zero[MOST_ROWS] = {0};
        for (to = from + 1; to < MOST_ROWS && strip.start[to] == from; to++) {}
        Batch one = {strip.tokens + from, strip.targets + from, zero, to - from};
        alone += network_loss(&n, &one);
    }
    assert_true(fabs(packed - alone) < 1e-9 * MOST_ROWS); // the same numbers, summed in two ways
    network_close(&n);
}

static void refusals(void **state) {
    (void)state;
    Random r = test_random(4);
    Shape s = random_shape(&r), untied = s;
    NetworkOptions o = {.rows = 10, .longest = MOST_ROWS + 1},
                   fine = {.rows = 10, .longest = 10, .isa = "sse9"};
    Network n;
    Error e = {0};
    assert_false(network_open(&n, &s, &o, &e));
    assert_false(network_open(&n, &s, &fine, &e));
    assert_non_null(strstr(e.text, "'sse9'"));
    fine.isa = NULL;
    untied.tied_head = false;
    assert_false(network_open(&n, &untied, &fine, &e));
    assert_non_null(strstr(e.text, "tied"));
    network_close(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain_network), cmocka_unit_test(rounding_is_small),
                                       cmocka_unit_test(threads_do_not_matter),
                                       cmocka_unit_test(documents_do_not_matter), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
