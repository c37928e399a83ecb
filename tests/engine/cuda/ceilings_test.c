// A card's measured ceilings: every rate is there, nothing is left behind, a failed allocation is reported;
// and the rates are in the card's own columns of the store, not in the processor's.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/engine.h"
#include "harness/machine/machine.h"

#include <string.h>

static void every_rate(void **state) {
    (void)state;
    Ceilings c;
    BackendOptions o = {.threads = 1};
    double copies = 0;
    Error e = {0};
    if (!engine_ceilings("cuda", &o, &c, &e) || !engine_copy_rate("cuda:0", &copies, &e))
        fail_msg("%s", e.text);
    assert_true(c.bytes_per_s > 0 && copies > 0);
    assert_true(c.operations_per_s[COMPUTE_BF16] > 0 && c.operations_per_s[COMPUTE_F32] > 0);
    assert_string_equal(c.isa, "wgmma bf16, fma f32"); // which the simulated card has
    assert_int_equal(simt_live_bytes(), 0);
    assert_false(engine_copy_rate("cpu", &copies, &e) || e.kind != ERROR_NONE);
    assert_false(engine_copy_rate("cuda:1", &copies, &e));
    assert_non_null(strstr(e.text, "cuda:1: this machine has 1 NVIDIA GPU"));
}

static void no_memory(void **state) {
    (void)state;
    double copies = 0;
    for (int taken = 0; taken < 2; taken++) {
        Error e = {0};
        simt_settings.fail_after = taken;
        assert_false(engine_copy_rate("cuda", &copies, &e));
        simt_settings.fail_after = -1;
        assert_string_equal(e.text, "cuda:0: cannot be measured: out of memory");
        assert_int_equal(simt_live_bytes(), 0);
    }
}

static bool is(double got, double want) { return !(got < want) && !(got > want); }

static void columns(void **state) {
    (void)state;
    const Ceilings c = {.bytes_per_s = 3e12, .isa = "those measured", .threads = 7};
    StoreEnvironment gpu = {.isa = "avx2"}, cpu = {.isa = "avx2"};
    gauges_ceilings("cuda", &c, 8e14, "sm_90, cuBLASLt 13.1.0", &gpu);
    assert_true(is(gpu.gpu_bandwidth, 3e12) && is(gpu.gpu_peak, 8e14));
    assert_true(is(gpu.bandwidth, 0) && is(gpu.peak, 0) && gpu.threads == 0);
    assert_string_equal(gpu.isa, "avx2");
    assert_string_equal(gpu.cublas, "13.1.0");
    gauges_ceilings("auto", &c, 8e14, "sm_90", &gpu);
    assert_null(gpu.cublas);
    gauges_ceilings("cpu", &c, 8e14, "avx512", &cpu);
    assert_true(is(cpu.bandwidth, 3e12) && is(cpu.peak, 8e14) && cpu.threads == 7);
    assert_true(is(cpu.gpu_bandwidth, 0) && is(cpu.gpu_peak, 0));
    assert_string_equal(cpu.isa, "those measured");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rate), cmocka_unit_test(no_memory),
                                       cmocka_unit_test(columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
