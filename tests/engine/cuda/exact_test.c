// The CUDA backend through the suite of exactness, its kernels on the CPU (tests/simt). Threads and blocks
// come in another order each time; memory that nothing was written to holds NaNs.
#include "tests/support/check.h"
#include "tests/support/exact_suite.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"

static bool open_first(const Model *model, const BackendOptions *o, void **self, Error *e) {
    return cuda_open(model, 0, o, self, e);
}

static void every_order(void **state) {
    (void)state;
    ExactBackend b = {&cuda_backend, open_first, NULL, NULL, 20};
    for (int order = 0; order < SIMT_ORDERS; order++) {
        simt_settings.order = (SimtOrder)order;
        exact_suite(&b, order ? COMPUTE_BF16 : COMPUTE_F32, order ? 2 : 3, 12); // f32 in one order
        assert_int_equal(simt_live_bytes(), 0);
    }
    assert_true(simt_blocks() > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
