// The optimiser over a whole network: the schedule, clipping, decaying weights, and that threads don't
// matter. (Its effect on one number: kernels_test.c.)
#include "tests/support/check.h"

#include "engine/train/optimizer.h"
#include "tests/support/learner.h"

#include <math.h>
#include <string.h>

static void schedule(void **state) {
    (void)state;
    OptimizerOptions o = {.steps = 110, .warmup = 10, .rate = 2, .last_rate = 1},
                     none = {.steps = 4, .rate = 3};
    assert_true(optimizer_rate(&o, 1) == 0.2);
    assert_true(optimizer_rate(&o, 10) == 2);
    assert_true(fabs(optimizer_rate(&o, 60) - 1.5) < 1e-12);
    assert_true(fabs(optimizer_rate(&o, 110) - 1) < 1e-12);
    for (int step = 10; step < 110; step++)
        assert_true(optimizer_rate(&o, step) > optimizer_rate(&o, step + 1));
    assert_true(optimizer_rate(&none, 1) < 3 && optimizer_rate(&none, 4) < 1e-12);
    OptimizerOptions again = o;
    again.begun = 50;
    assert_true(fabs(optimizer_rate(&again, 55) - optimizer_rate(&o, 55) / 2) < 1e-12);
    for (int step = 60; step <= 110; step++)
        assert_true(optimizer_rate(&again, step) == optimizer_rate(&o, step));
    o.schedule = SCHEDULE_STABLE;
    o.cooldown = 0.5;
    for (int step = 10; step <= 55; step++) assert_true(optimizer_rate(&o, step) == 2);
    assert_true(fabs(optimizer_rate(&o, 66) - 1.8) < 1e-12);
    assert_true(optimizer_rate(&o, 110) == 1);
    o.cooldown = 0;
    assert_true(optimizer_rate(&o, 110) == 2);
}

typedef struct Pair {
    Network n;
    Optimizer o;
} Pair;

static Pair open_pair(const OptimizerOptions *options, int threads) {
    TrainConfig c = learner_config(100);
    NetworkOptions n = {.rows = 8, .longest = 8, .threads = threads};
    Pair p;
    assert_true(network_open(&p.n, &c.shape, &n, NULL));
    assert_true(optimizer_open(&p.o, options, &p.n, NULL));
    parameters_start(&p.n.parameters, &c.shape, 1, p.n.weights);
    return p;
}

static void close_pair(Pair *p) {
    optimizer_close(&p->o);
    network_close(&p->n);
}

// Without a gradient matrices shrink by rate * decay, and norms stay.
static void only_matrices_decay(void **state) {
    (void)state;
    OptimizerOptions o = {.steps = 100,
                          .warmup = 1,
                          .rate = 0.5,
                          .last_rate = 0.5,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .epsilon = 1e-8,
                          .weight_decay = 0.5,
                          .clip = 1};
    Pair p = open_pair(&o, 3), was = open_pair(&o, 1);
    assert_true(optimizer_step(&p.o, &p.n, 1) == 0);
    for (int i = 0; i < p.n.parameters.count; i++) {
        const Parameter *x = &p.n.parameters.list[i];
        for (size_t k = x->at; k < x->at + parameter_size(x); k++)
            assert_float_equal(p.n.weights[k], was.n.weights[k] * (x->vector ? 1.0f : 0.75f), 1e-7);
    }
    close_pair(&p);
    close_pair(&was);
}

// The embedding has a rate of its own, and may be spared the decay.
static void embeddings(void **state) {
    (void)state;
    OptimizerOptions o = {.steps = 100,
                          .decays = DECAY_LAYERS,
                          .embedding_rate = 0.25,
                          .rate = 0.5,
                          .last_rate = 0.5,
                          .beta1 = 0.9,
                          .beta2 = 0.95,
                          .epsilon = 1e-8,
                          .weight_decay = 0.5};
    Pair p = open_pair(&o, 2), was = open_pair(&o, 1);
    size_t at = p.n.parameters.at[W_EMBEDDING], q = p.n.parameters.layers[0].at[W_Q];
    p.n.gradients[at] = 1;
    p.n.gradients[q] = 1;
    optimizer_step(&p.o, &p.n, 1); // the first step of AdamW is as long as its rate
    assert_float_equal(p.n.weights[at], was.n.weights[at] - 0.25f, 1e-5);
    assert_true(p.n.weights[at + 1] == was.n.weights[at + 1]);
    assert_float_equal(p.n.weights[q], was.n.weights[q] * 0.75f - 0.5f, 1e-5);
    close_pair(&p);
    close_pair(&was);
}

// A long gradient moves the moments as one of length `clip` in the same direction; a short one as it is. The
// gradient is gone afterwards.
static void clipping(void **state) {
    (void)state;
    Random r = test_random(1);
    OptimizerOptions o = {
        .steps = 100, .rate = 0.01, .beta1 = 0.5, .beta2 = 0.95, .epsilon = 1e-8, .clip = 3};
    for (int round = 0; round < 4; round++) {
        Pair p = open_pair(&o, 2);
        size_t total = p.n.parameters.total;
        double spread = round < 2 ? 1 : 1e-3, sum = 0, moved = 0;
        for (size_t i = 0; i < total; i++) {
            p.n.gradients[i] = (float)(spread * (random_uniform(&r) - 0.5));
            sum += (double)p.n.gradients[i] * (double)p.n.gradients[i];
        }
        float first = p.n.gradients[0], last = p.n.gradients[total - 1];
        double length = optimizer_step(&p.o, &p.n, 1), want = sqrt(sum) > 3 ? 3 : sqrt(sum);
        assert_true(fabs(length - sqrt(sum)) < 1e-6 * length);
        for (size_t i = 0; i < total; i++) {
            moved += 4 * (double)p.o.mean[i] * (double)p.o.mean[i]; // 1 - beta1 is a half
            assert_true(p.n.gradients[i] == 0);
        }
        assert_true(fabs(sqrt(moved) - want) < 1e-4 * want);
        assert_float_equal(p.o.mean[0] * last, p.o.mean[total - 1] * first, 1e-6);
        close_pair(&p);
    }
}

static void check_threads(OptimizerKind kind) {
    Random r = test_random(2);
    TrainConfig c = learner_config(100);
    c.optimizer.kind = kind;
    Pair one = open_pair(&c.optimizer, 1), three = open_pair(&c.optimizer, 3);
    size_t total = one.n.parameters.total, bytes = total * sizeof(float);
    for (int step = 1; step < 5; step++) {
        for (size_t i = 0; i < total; i++)
            one.n.gradients[i] = three.n.gradients[i] = (float)(random_uniform(&r) - 0.5);
        assert_true(optimizer_step(&one.o, &one.n, step) == optimizer_step(&three.o, &three.n, step));
        assert_memory_equal(one.n.weights, three.n.weights, bytes);
        assert_memory_equal(one.o.square, three.o.square, bytes);
    }
    close_pair(&one);
    close_pair(&three);
}

static void threads_do_not_matter(void **state) {
    (void)state;
    check_threads(OPTIMIZER_ADAMW);
    check_threads(OPTIMIZER_MUON);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(schedule), cmocka_unit_test(only_matrices_decay),
                                       cmocka_unit_test(embeddings), cmocka_unit_test(clipping),
                                       cmocka_unit_test(threads_do_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
