// A card whose wgmma hasn't mma.sync's bits: opening a model finds it, the report tells it, and products of
// any number of rows give the bits of a card where the two agree.
#include "tests/ptx/machine.h"
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"

#include <string.h>

enum { ROWS = 40, MOST = 300 };

// Logits of a step's last row; the report; wgmma of the step.
static uint64_t last_logits(const RandomModel *m, Compute compute, float *logits, BackendReport *report) {
    BackendOptions o = {.compute = compute, .max_nodes = 64, .context = 80};
    const Shape *shape = &m->model.shape;
    Session s;
    void *self;
    Error e = {0};
    if (!cuda_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(&s, &cuda_backend, self, shape, &o);
    ptx_counters_clear();
    session_begin_step(&s, true, LAYOUT_TREE);
    int node = tree_root(&s.tree, 1);
    for (int i = 1; i < ROWS; i++) node = tree_probe(&s.tree, node, i % shape->real_vocab, i == ROWS - 1);
    if (!session_run(&s, shape->layers, &e) || !session_read(&s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
    memcpy(logits, session_logits(&s, node), (size_t)shape->vocab * sizeof *logits);
    cuda_backend.report(self, report);
    uint64_t wide = 0;
    if (ptx_counters("_Z7product")) wide = ptx_counters("_Z7product")->warp[COUNT_WGMMA];
    assert_non_null(strstr(report->isa, report->note ? "sm_90, no wgmma: it differs" : "sm_90"));
    session_release(&s);
    return wide;
}

static void a_card_that_differs(void **state) {
    (void)state;
    Random r = test_random(401);
    for (int i = 0; i < 2; i++) {
        Shape shape = random_dense_shape(&r);
        RandomModel m;
        BackendReport report;
        float want[MOST], got[MOST];
        shape.layers = 2;
        shape.window = 0;
        shape.experts = (Experts){.count = 4, .chosen = 2, .width = 64, .renormalised = true};
        layer_add(&shape.sparse, 1);
        assert_true(shape.vocab <= MOST);
        random_model_init(&m, &shape, DTYPE_BF16, false, &r);
        Compute compute = i ? COMPUTE_F16 : COMPUTE_BF16;
        assert_true(last_logits(&m, compute, want, &report) > 0);
        assert_null(report.note);
        ptx_settings.wgmma_differs = true;
        assert_int_equal(last_logits(&m, compute, got, &report), 0);
        ptx_settings.wgmma_differs = false;
        assert_non_null(report.note);
        assert_memory_equal(got, want, (size_t)shape.vocab * sizeof *got);
        random_model_release(&m);
    }
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_card_that_differs)};
    ptx_settings.counted = true;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
