// The CUDA backend through the suite of exactness, its kernels on the CPU (tests/simt). Threads and blocks
// come in another order each time; memory that nothing was written to holds NaNs.
#include "tests/support/check.h"
#include "tests/support/copies_suite.h"
#include "tests/support/exact_suite.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"

static void every_order(void **state) {
    (void)state;
    ExactBackend b = {&cuda_backend, cuda_open, NULL, NULL, 20};
    for (int order = 0; order < SIMT_ORDERS; order += test_some(SIMT_ORDERS - 1, 1)) {
        simt_settings.order = (SimtOrder)order;
        exact_suite(&b, order ? COMPUTE_BF16 : COMPUTE_F32, order ? 2 : 3, 12); // f32 in one order
        assert_int_equal(simt_live_bytes(), 0);
    }
    assert_true(simt_blocks() > 0);
}

static bool open_plain(const Model *model, const BackendOptions *o, void **self, Error *e) {
    BackendOptions plain = *o;
    plain.plain = true;
    return cuda_open(model, &plain, self, e);
}

static void plain_attention(void **state) {
    (void)state;
    ExactBackend b = {&cuda_backend, open_plain, NULL, NULL, 20};
    for (int compute = test_some(COMPUTE_BF16, COMPUTE_F32); compute <= COMPUTE_BF16; compute++)
        exact_suite(&b, (Compute)compute, 1, 12);
    assert_int_equal(simt_live_bytes(), 0);
}

static void copied_caches(void **state) {
    (void)state;
    copies_suite(&(ExactBackend){&cuda_backend, cuda_open, NULL, NULL, 20}, 2, false);
    copies_suite(&(ExactBackend){&cuda_backend, open_plain, NULL, NULL, 20}, 1, false);
    copies_suite(&(ExactBackend){&cuda_backend, cuda_open, NULL, NULL, 20}, 3, true);
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_order), cmocka_unit_test(plain_attention),
                                       cmocka_unit_test(copied_caches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
