// The whole network against a plain one in double: losses, and gradients against finite differences of that.
// Neither the number of threads nor the rest of the batch matters.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "tests/support/plain_network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = PLAIN_ROWS };

static Shape random_shape(Random *r) {
    int kv = test_between(r, 1, 2), size = 2 * test_between(r, 1, 5), vocab = test_between(r, 5, 60);
    return (Shape){.layers = test_between(r, 1, 3),
                   .width = test_between(r, 3, 40),
                   .heads = kv * test_between(r, 1, 3),
                   .kv_heads = kv,
                   .head_dim = size,
                   .mlp_width = test_between(r, 1, 50),
                   .vocab = vocab,
                   .real_vocab = vocab,
                   .context = MOST_ROWS,
                   .tied_head = true,
                   .norm_epsilon = 1e-5f,
                   .rope = {.theta = 10000, .pairs = size / 2, .attention_factor = 1}};
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
    b->batch = (Batch){.tokens = b->tokens, .targets = b->targets, .start = b->start, .rows = rows};
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

// --- against it ------------------------------------------------------------------------------------------

static void check_set(const TrainKernels *k, int rounds, Random *r) {
    Strip *strip = mem_new(1, sizeof *strip);
    for (int round = 0; round < rounds; round++) {
        Shape s = random_shape(r);
        int rows = test_between(r, 1, 70);
        Network n = open_network(&s, rows, 40, 2, k->name);
        random_weights(&n, r);
        random_strip(strip, rows, s.vocab, 40, r);
        plain_compare(&n, &strip->batch, r);
        network_close(&n);
    }
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

// A model that learns a teacher's distributions, of another width.
static void a_teacher(void **state) {
    (void)state;
    enum { MOST_WIDTH = 48 };
    static float head[PLAIN_WIDTH * MOST_WIDTH], wanted[70 * MOST_WIDTH];
    Random r = test_random(6);
    Strip *strip = mem_new(1, sizeof *strip);
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) head[i] = random_normal(&r);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) wanted[i] = random_normal(&r);
    for (int round = 0; round < 12; round++) {
        Shape s = random_shape(&r);
        NetworkOptions o = {.rows = test_between(&r, 1, 70),
                            .longest = 40,
                            .threads = 2,
                            .isa = "portable",
                            .wanted_head = head,
                            .wanted_width = test_between(&r, 1, MOST_WIDTH)};
        Network n;
        Error e = {0};
        if (!network_open(&n, &s, &o, &e)) fail_msg("%s", e.text);
        random_weights(&n, &r);
        random_strip(strip, o.rows, s.vocab, 40, &r);
        strip->batch.wanted = wanted;
        plain_compare(&n, &strip->batch, &r);
        network_close(&n);
    }
    mem_free(strip);
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
        Batch one = {
            .tokens = strip.tokens + from, .targets = strip.targets + from, .start = zero, .rows = to - from};
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_network),           cmocka_unit_test(a_teacher),
        cmocka_unit_test(rounding_is_small),       cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(documents_do_not_matter), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
