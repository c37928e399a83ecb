// Memory and disk: opening a trainer and writing a checkpoint with the n-th allocation or call failing, for
// every n, gives an error and loses nothing; and a step allocates nothing.
#include "tests/support/check.h"

#include "engine/train/trainer.h"
#include "tests/support/fault.h"
#include "tests/support/folder.h"
#include "tests/support/learner.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

typedef struct Case {
    Corpus corpus;
    Trainer trainer;
    char path[FOLDER_PATH_SIZE + 32], dir[FOLDER_PATH_SIZE + 32];
} Case;

static void open_case(Case *c, const char *folder) {
    TrainConfig config = learner_config(10);
    learner_corpus(&c->corpus, 30, 50, 4);
    assert_true(trainer_open(&c->trainer, &config, &c->corpus, NULL));
    snprintf(c->path, sizeof c->path, "%s/checkpoint", folder);
    snprintf(c->dir, sizeof c->dir, "%s/model", folder);
}

static void close_case(Case *c) {
    trainer_close(&c->trainer);
    corpus_release(&c->corpus);
}

static bool open_and_close(void *state, Error *e) {
    Case *c = state;
    TrainConfig config = learner_config(10);
    Trainer t;
    bool ok = trainer_open(&t, &config, &c->corpus, e);
    trainer_close(&t);
    return ok;
}

static bool write_checkpoint(void *state, Error *e) {
    Case *c = state;
    return checkpoint_write(&c->trainer, c->path, e);
}

static bool write_model(void *state, Error *e) {
    Case *c = state;
    Output out = {0};
    bool ok =
        export_model(&c->trainer, &(ExportNotes){.bos = 1, .eos = 2, .held_out_loss = NAN}, c->dir, &out, e);
    output_release(&out);
    return ok;
}

// Whatever failed, the checkpoint there is a whole one.
static void whole_checkpoint(void *state, bool ok) {
    Case *c = state;
    Error e = {0};
    (void)ok;
    if (!checkpoint_read(&c->trainer, c->path, &e)) fail_msg("%s", e.text);
}

// Whatever failed, the new directory has a whole model or nothing.
static void no_part_of_a_model(void *state, bool ok) {
    static const char *const NAMES[] = {"outpace-unfinished.json", "model.safetensors",
                                        "generation_config.json", "config.json"};
    Case *c = state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[sizeof c->dir + 64];
        snprintf(path, sizeof path, "%s/%s", c->dir, NAMES[i]);
        bool there = access(path, F_OK) == 0, wanted = ok && i > 0;
        if (there != wanted)
            fail_msg("'%s' is %s after %s", path, there ? "there" : "missing", ok ? "success" : "a failure");
    }
}

static void failures(void **state) {
    Case c;
    open_case(&c, *state);
    assert_true(fault_each(FAULT_ALLOCATION, open_and_close, NULL, &c) > 30);
    assert_true(checkpoint_write(&c.trainer, c.path, NULL));
    assert_true(fault_each(FAULT_ALLOCATION, write_checkpoint, whole_checkpoint, &c) > 3);
    assert_true(fault_each(FAULT_CALL, write_checkpoint, whole_checkpoint, &c) > 3);
    assert_true(fault_each(FAULT_CALL, write_model, no_part_of_a_model, &c) > 9);
    close_case(&c);
}

static void a_step_allocates_nothing(void **state) {
    Case c;
    open_case(&c, *state);
    fault_after(1);
    for (int i = 0; i < 5; i++) trainer_step(&c.trainer);
    trainer_held_out(&c.trainer);
    assert_false(fault_seen());
    fault_after(0);
    close_case(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(failures, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(a_step_allocates_nothing, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
