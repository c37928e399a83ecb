// Models of tokens and hidden states on the CUDA backend, its kernels on the CPU (tests/simt): against the
// formulas, each path by itself, and states read one layer at a time; with a target's layers on two and three
// cards, too.
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/drafts_suite.h"

#include "engine/cuda/cuda.h"

#include <stdlib.h>

// As many cards as the model has layers, at most three.
static bool open_several(const Model *model, const BackendOptions *o, void **self, Error *e) {
    BackendOptions own = *o;
    own.cards = (Cards){model->shape.layers < 3 ? model->shape.layers : 3, {2, 0, 1}};
    return cuda_open(model, &own, self, e);
}

static const ExactBackend FIRST = {.backend = &cuda_backend, .open = cuda_open},
                          SEVERAL = {.backend = &cuda_backend, .open = open_several};

static void near_the_formulas(void **state) {
    (void)state;
    drafts_near_formulas(&FIRST, 4);
}

static void a_tree_is_its_paths(void **state) {
    (void)state;
    simt_settings.locked = simt_settings.early = false; // quicker
    for (int order = 0; order < SIMT_ORDERS; order++) {
        simt_settings.order = (SimtOrder)order;
        drafts_exact(&FIRST, order ? 2 : 6);
    }
    simt_settings.order = SIMT_NATURAL;
    simt_settings.locked = simt_settings.early = true;
}

static void chances(void **state) {
    (void)state;
    drafts_chances(&FIRST, 2);
}

static void chains(void **state) {
    (void)state;
    drafts_chains(&FIRST, test_some(4, 8));
    if (simt_emulated) drafts_chains(&SEVERAL, 2);
}

static void grown_trees(void **state) {
    (void)state;
    simt_settings.order = SIMT_RANDOM;
    drafts_grown(&FIRST, test_some(4, 24), true);
    if (simt_emulated) drafts_grown(&SEVERAL, 2, false);
    simt_settings.order = SIMT_NATURAL;
}

static void captured_layers(void **state) {
    (void)state;
    drafts_captured(&FIRST, 2);
    if (simt_emulated) drafts_captured(&SEVERAL, 3); // a machine may have one card
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_formulas), cmocka_unit_test(a_tree_is_its_paths),
        cmocka_unit_test(chances),           cmocka_unit_test(chains),
        cmocka_unit_test(grown_trees),       cmocka_unit_test(captured_layers)};
    simt_settings.locked = simt_settings.early = true; // what is touched too soon ends the program
    setenv("OUTPACE_FAKE_GPUS", "90,90,90", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
