// A training run as a whole: it learns, it resumes to the same bits, and it writes a model that opens.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/train/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/learner.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static Trainer open_trainer(const TrainConfig *c, const Corpus *corpus) {
    Trainer t;
    Error e = {0};
    if (!trainer_open(&t, c, corpus, &e)) fail_msg("%s", e.text);
    return t;
}

static void expect_same(const Trainer *a, const Trainer *b) {
    size_t bytes = a->networks[0].parameters.total * sizeof(float);
    assert_int_equal(a->step, b->step);
    assert_true(a->loss == b->loss);
    assert_memory_equal(a->networks[0].weights, b->networks[0].weights, bytes);
    assert_memory_equal(a->optimizers[0].mean, b->optimizers[0].mean, bytes);
    assert_memory_equal(a->optimizers[0].square, b->optimizers[0].square, bytes);
}

// What follows from the token before is learned to nothing, also for documents that were never seen; what
// cannot be known is the first token, which is no target.
static void learn(OptimizerKind kind) {
    Corpus corpus;
    learner_corpus(&corpus, 60, 80, 1);
    TrainConfig c = learner_config(400);
    c.optimizer.kind = kind;
    Trainer t = open_trainer(&c, &corpus);
    double first = trainer_step(&t).loss, last = first, start = trainer_held_out(&t);
    assert_true(fabs(first - log(LEARNER_VOCAB)) < 0.3); // at first, any token is as likely as any other
    assert_true(fabs(start - log(LEARNER_VOCAB)) < 0.6);
    while (t.step < 400) last = trainer_step(&t).loss;
    if (!(last < 0.02 && trainer_held_out(&t) < 0.03))
        fail_msg("after 400 steps: loss %g, held out %g, wanted less than 0.02 and 0.03", last,
                 trainer_held_out(&t));
    trainer_close(&t);
    corpus_release(&corpus);
}

static void it_learns(void **state) {
    (void)state;
    learn(OPTIMIZER_ADAMW);
    learn(OPTIMIZER_MUON);
}

static TrainConfig parallel_config(int steps) {
    TrainConfig c = learner_config(steps);
    c.shape.real_vocab = c.shape.vocab = LEARNER_VOCAB + 1;
    c.shape.mask_token = LEARNER_VOCAB;
    c.masks = 3;
    return c;
}

// What a parallel draft reads of a pass: text from a beginning on, then up to three masks, then text from a
// new beginning. Each row still learns what comes next in the text.
static void masked_rows(void **state) {
    (void)state;
    Corpus corpus;
    learner_corpus(&corpus, 60, 80, 1);
    TrainConfig c = parallel_config(20);
    Trainer t = open_trainer(&c, &corpus);
    int masks = 0;
    while (t.step < 20) {
        trainer_step(&t);
        for (int i = 0, run = 0; i < c.pass; i++) {
            bool first = t.masked_start[i] == i, mask = t.masked[i] == LEARNER_VOCAB;
            run = mask ? run + 1 : 0;
            masks += mask;
            assert_true(mask || t.masked[i] == t.tokens[i]);
            assert_true(!(first && mask) && run <= c.masks);
            assert_true(first || t.masked_start[i] == t.masked_start[i - 1]);
            assert_true(t.masked_start[i] >= t.start[i] && (first || t.start[i] != i));
            if (!first && !mask) assert_true(t.masked[i - 1] != LEARNER_VOCAB);
            if (first && i > 0 && t.start[i] != i) assert_int_equal(t.masked[i - 1], LEARNER_VOCAB);
            assert_int_equal(t.targets[i], (t.tokens[i] * 7 + 3) % LEARNER_VOCAB);
        }
    }
    assert_true(masks > 20 * c.pass / 20);
    trainer_close(&t);
    corpus_release(&corpus);
}

// All of them can be known from the last token before the masks.
static void it_learns_in_parallel(void **state) {
    (void)state;
    Corpus corpus;
    learner_corpus(&corpus, 60, 80, 1);
    TrainConfig c = parallel_config(800);
    Trainer t = open_trainer(&c, &corpus);
    while (t.step < 800) trainer_step(&t);
    double held_out = trainer_held_out(&t);
    print_message("held out %g\n", held_out);
    assert_true(held_out < 0.1);
    trainer_close(&t);
    corpus_release(&corpus);
}

// A model that was written is what another training starts from; one of another shape is refused, and so is
// a checkpoint with another start.
static void started_from_a_model(void **state) {
    const char *dir = folder_path(*state, "first"), *path = folder_path(*state, "start.safetensors");
    char from[300], to[300];
    snprintf(from, sizeof from, "%s", dir);
    snprintf(to, sizeof to, "%s", path);
    Corpus corpus;
    Error e = {0};
    TrainConfig c = learner_config(3);
    learner_corpus(&corpus, 20, 90, 4);
    Trainer first = open_trainer(&c, &corpus);
    while (first.step < 3) trainer_step(&first);
    Output out = {0};
    if (!export_model(&first, &(ExportNotes){.bos = -1, .eos = -1, .held_out_loss = NAN}, from, &out, &e))
        fail_msg("%s", e.text);
    output_release(&out);
    Model m;
    ModelWeights weights;
    if (!model_open(&m, &weights, from, &e)) fail_msg("%s", e.text);
    c.start = &m;
    c.start_name = "a";
    Trainer second = open_trainer(&c, &corpus);
    const float *was = first.networks[0].weights, *is = second.networks[0].weights;
    for (size_t i = 0; i < first.networks[0].parameters.total; i++) assert_true(bf16_round(was[i]) == is[i]);
    assert_true(checkpoint_write(&second, to, &e));
    c.start_name = "b";
    Trainer third = open_trainer(&c, &corpus);
    assert_false(checkpoint_read(&third, to, &e));
    c.shape.mlp_width *= 2;
    Trainer other;
    assert_false(trainer_open(&other, &c, &corpus, &(Error){0}));
    trainer_close(&third);
    trainer_close(&second);
    trainer_close(&first);
    model_close(&weights);
    corpus_release(&corpus);
}

// 30 steps at once, and 30 steps in pieces of random length, each by a new trainer with other threads; a
// held-out loss in between changes nothing.
static void resume_often(const char *path, OptimizerKind kind) {
    Random r = test_random(1);
    Corpus corpus;
    TrainConfig c = learner_config(30);
    c.optimizer.kind = kind;
    learner_corpus(&corpus, 20, 90, 2);
    Trainer whole = open_trainer(&c, &corpus);
    while (whole.step < 30) trainer_step(&whole);
    for (int step = 0; step < 30;) {
        c.threads = test_between(&r, 1, 3);
        Trainer piece = open_trainer(&c, &corpus);
        Error e = {0};
        if (step && !checkpoint_read(&piece, path, &e)) fail_msg("%s", e.text);
        assert_int_equal(piece.step, step);
        for (int n = test_between(&r, 1, 9); n > 0 && piece.step < 30; n--) trainer_step(&piece);
        trainer_held_out(&piece);
        step = piece.step;
        assert_true(checkpoint_write(&piece, path, &e));
        Trainer read = open_trainer(&c, &corpus);
        assert_true(checkpoint_read(&read, path, &e));
        expect_same(&piece, &read);
        if (step == 30) expect_same(&whole, &read);
        trainer_close(&read);
        trainer_close(&piece);
    }
    trainer_close(&whole);
    corpus_release(&corpus);
}

static void resumed_is_uninterrupted(void **state) {
    const char *path = folder_path(*state, "checkpoint.safetensors");
    resume_often(path, OPTIMIZER_ADAMW);
    resume_often(path, OPTIMIZER_MUON);
}

static void expect_refused(const TrainConfig *c, const Corpus *corpus, const char *path, const char *what) {
    Trainer t = open_trainer(c, corpus), fresh = open_trainer(c, corpus);
    Error e = {0};
    if (checkpoint_read(&t, path, &e)) fail_msg("a checkpoint of another run was taken (%s)", what);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, path));
    expect_same(&t, &fresh);
    trainer_close(&t);
    trainer_close(&fresh);
}

static void another_run_is_refused(void **state) {
    const char *path = folder_path(*state, "checkpoint.safetensors");
    Corpus corpus, other;
    TrainConfig c = learner_config(30), changed;
    learner_corpus(&corpus, 20, 90, 2);
    learner_corpus(&other, 20, 90, 3);
    Trainer t = open_trainer(&c, &corpus);
    trainer_step(&t);
    assert_true(checkpoint_write(&t, path, NULL));
    trainer_close(&t);
    expect_refused(&c, &other, path, "text");
    changed = c, changed.seed++;
    expect_refused(&changed, &corpus, path, "seed");
    changed = c, changed.optimizer.rate *= 1.0001;
    expect_refused(&changed, &corpus, path, "rate");
    changed = c, changed.pass = 32;
    expect_refused(&changed, &corpus, path, "pass");
    changed = c, changed.shape.mlp_width++;
    expect_refused(&changed, &corpus, path, "shape");
    changed = c, changed.isa = "portable";
    expect_refused(&changed, &corpus, path, "kernels");
    corpus_release(&corpus);
    corpus_release(&other);
}

static void train_to(const TrainConfig *c, const Corpus *corpus, const char *path, int step) {
    Trainer t = open_trainer(c, corpus);
    while (t.step < step) trainer_step(&t);
    assert_true(checkpoint_write(&t, path, NULL));
    trainer_close(&t);
}

// Until the rate of a stable schedule begins to fall, its end can be moved: the result is that of a training
// with this end from the start.
static void an_end_that_moves(void **state) {
    const char *path = folder_path(*state, "checkpoint.safetensors");
    Corpus corpus;
    TrainConfig c = learner_config(30), longer;
    Error e = {0};
    learner_corpus(&corpus, 20, 90, 2);
    c.optimizer.schedule = SCHEDULE_STABLE, c.optimizer.cooldown = 0.5;
    longer = c, longer.optimizer.steps = 60, longer.optimizer.cooldown = 0.1;
    train_to(&longer, &corpus, path, 15);
    Trainer whole = open_trainer(&c, &corpus), moved = open_trainer(&c, &corpus);
    if (!checkpoint_read(&moved, path, &e)) fail_msg("%s", e.text);
    while (moved.step < 30) trainer_step(&moved);
    while (whole.step < 30) trainer_step(&whole);
    expect_same(&whole, &moved);
    trainer_close(&moved);
    trainer_close(&whole);
    train_to(&longer, &corpus, path, 16);
    expect_refused(&c, &corpus, path, "its rate would have begun to fall");
    train_to(&c, &corpus, path, 16);
    expect_refused(&longer, &corpus, path, "its rate has begun to fall");
    corpus_release(&corpus);
}

// Any byte of the header changed, or the file cut anywhere: refused or as good as before, never a crash.
static void broken_checkpoints(void **state) {
    const char *path = folder_path(*state, "checkpoint.safetensors");
    Random r = test_random(2);
    Corpus corpus;
    TrainConfig c = learner_config(30);
    size_t size;
    learner_corpus(&corpus, 20, 90, 2);
    Trainer t = open_trainer(&c, &corpus);
    trainer_step(&t);
    assert_true(checkpoint_write(&t, path, NULL));
    char *good = scratch_read(*state, "checkpoint.safetensors", &size);
    for (int round = 0; round < 200; round++) {
        Error e = {0};
        size_t at = random_below(&r, 6000), left = round % 2 ? size : random_below(&r, (uint32_t)size);
        char was = good[at];
        if (round % 2) good[at] = (char)random_below(&r, 256);
        scratch_write(*state, "broken", good, left);
        if (!checkpoint_read(&t, folder_path(*state, "broken"), &e)) assert_int_equal(e.kind, ERROR_INPUT);
        else if (round % 2 == 0) fail_msg("a checkpoint cut at byte %zu of %zu was taken", left, size);
        good[at] = was;
    }
    trainer_step(&t);
    mem_free(good);
    trainer_close(&t);
    corpus_release(&corpus);
}

static void expect_tensor(const Trainer *t, size_t at, const Tensor *x) {
    const uint16_t *numbers = x->data;
    assert_int_equal(x->dtype, DTYPE_BF16);
    for (size_t i = 0; i < (size_t)x->rows * (size_t)x->columns; i++)
        assert_int_equal(numbers[i], f32_to_bf16(t->networks[0].weights[at + i]));
}

static void exported_model_opens(void **state) {
    const char *dir = folder_path(*state, "model");
    Corpus corpus;
    TrainConfig c = parallel_config(5);
    Error e = {0};
    Model m;
    ModelWeights weights;
    learner_corpus(&corpus, 20, 90, 2);
    Trainer t = open_trainer(&c, &corpus);
    trainer_step(&t);
    Output out = {0};
    if (!export_model(&t, &(ExportNotes){.bos = 1, .eos = 2, .held_out_loss = 3.5}, dir, &out, &e))
        fail_msg("%s", e.text);
    output_release(&out);
    if (!model_open(&m, &weights, dir, &e)) fail_msg("%s", e.text);
    const LayerPlan *plan = &t.networks[0].parameters.layers[1];
    size_t q_size = (size_t)(shape_q_width(&c.shape) * c.shape.width);
    assert_int_equal(m.shape.layers, 2);
    assert_int_equal(m.shape.kv_heads, 1);
    assert_int_equal(m.shape.head_dim, 8);
    assert_int_equal(m.shape.context, 32);
    assert_int_equal(m.shape.mask_token, LEARNER_VOCAB);
    assert_true(m.shape.tied_head);
    assert_int_equal(m.bos, 1);
    assert_int_equal(m.eos[0], 2);
    expect_tensor(&t, t.networks[0].parameters.at[W_EMBEDDING], &m.embedding);
    expect_tensor(&t, t.networks[0].parameters.at[W_FINAL_NORM], &m.final_norm);
    expect_tensor(&t, plan->at[W_Q], &m.layers[1].w[W_Q]);
    expect_tensor(&t, plan->at[W_Q] + q_size, &m.layers[1].w[W_K]);
    expect_tensor(&t, plan->at[W_GATE], &m.layers[1].w[W_GATE]);
    expect_tensor(&t, plan->at[W_DOWN], &m.layers[1].w[W_DOWN]);
    model_close(&weights);
    trainer_close(&t);
    corpus_release(&corpus);
}

static void expect_error(const TrainConfig *c, const Corpus *corpus, const char *want) {
    Trainer t;
    Error e = {0};
    assert_false(trainer_open(&t, c, corpus, &e));
    if (!strstr(e.text, want)) fail_msg("wanted '...%s...', got '%s'", want, e.text);
    trainer_close(&t);
}

static void bad_configurations(void **state) {
    (void)state;
    Corpus corpus, none = {0};
    TrainConfig c = learner_config(5), bad;
    learner_corpus(&corpus, 20, 90, 2);
    bad = c, bad.batch = 100;
    expect_error(&bad, &corpus, "multiple of the 64 rows");
    bad = c, bad.pass = bad.batch = 48;
    expect_error(&bad, &corpus, "multiple of the context, 32");
    bad = c, bad.shape.vocab = bad.shape.real_vocab = 10;
    expect_error(&bad, &corpus, "vocabulary ends at 9");
    bad = c, bad.masks = 2, bad.shape.mask_token = corpus.ids[0];
    expect_error(&bad, &corpus, "which is the mask");
    bad = c, bad.held_out = 1;
    expect_error(&bad, &corpus, "left to learn from");
    bad = c, bad.shape.heads = 3, bad.shape.kv_heads = 2;
    expect_error(&bad, &corpus, "do not divide");
    expect_error(&c, &none, "no document");
    corpus_release(&corpus);
}

// A run that another one began reads the rows that the whole run would read next.
static void begun_elsewhere(void **state) {
    (void)state;
    Corpus corpus;
    TrainConfig c = learner_config(30);
    learner_corpus(&corpus, 20, 90, 2);
    Trainer whole = open_trainer(&c, &corpus);
    while (whole.step < 7) trainer_step(&whole);
    c.optimizer.begun = 7;
    Trainer other = open_trainer(&c, &corpus);
    assert_int_equal(other.step, 7);
    assert_int_equal(other.feed.epoch, whole.feed.epoch);
    assert_int_equal(other.feed.document, whole.feed.document);
    assert_int_equal(other.feed.offset, whole.feed.offset);
    assert_true(isfinite(trainer_step(&other).loss));
    trainer_close(&other);
    trainer_close(&whole);
    c.optimizer.begun = 31;
    assert_false(trainer_open(&other, &c, &corpus, &(Error){0}));
    corpus_release(&corpus);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_learns),
        cmocka_unit_test(masked_rows),
        cmocka_unit_test(it_learns_in_parallel),
        cmocka_unit_test_setup_teardown(resumed_is_uninterrupted, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(another_run_is_refused, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(an_end_that_moves, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(broken_checkpoints, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(started_from_a_model, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(exported_model_opens, folder_setup, folder_teardown),
        cmocka_unit_test(begun_elsewhere),
        cmocka_unit_test(bad_configurations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
