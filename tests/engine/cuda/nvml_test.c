// A card's state from a simulated NVML (tests/simt/nvml.c): every value, unsupported ones, reasons for lower
// clocks, an unknown card, and no library at all.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/cuda/cuda.h"
#include "engine/cuda/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Its file lies in the build's folder simt/, three above this program's.
static int find_library(void **state) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    (void)state;
    if (n <= 0) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && path[--n] != '/') {}
    snprintf(path + n, 64, "/simt/libnvidia-ml.so");
    return setenv("OUTPACE_NVML", path, 1);
}

static bool is(double got, double want) { return !(got < want) && !(got > want); }

static void every_value(void **state) {
    (void)state;
    Gauge g;
    Error e = {0};
    setenv("OUTPACE_FAKE_NVML", "0x1", 1); // idle
    if (!cuda_gauge(0, &g, &e)) fail_msg("%s", e.text);
    assert_string_equal(g.name, "SIMT shim");
    assert_string_equal(g.uuid, "GPU-00000000-0000-0000-0000-000000000001");
    assert_string_equal(g.runtime, "13.0");
    assert_string_equal(g.driver, "580.159.04");
    assert_true(g.memory == (size_t)1 << 30);
    assert_true(is(g.clock_mhz, 1755) && is(g.memory_clock_mhz, 3201) && is(g.most_clock_mhz, 1980));
    assert_true(is(g.power_w, 412.5) && is(g.temperature_c, 61));
    assert_true(isnan(g.power_limit_w)); // not supported
    assert_string_equal(g.throttle, "none");
}

static void reasons(void **state) {
    (void)state;
    Gauge g;
    setenv("OUTPACE_FAKE_NVML", "0x65", 1);
    assert_true(cuda_gauge(0, &g, NULL));
    assert_string_equal(g.throttle, "power cap, heat (software), heat (hardware)");
    setenv("OUTPACE_FAKE_NVML", "0x1ff", 1);
    assert_true(cuda_gauge(0, &g, NULL));
    assert_string_equal(g.throttle,
                        "power cap, hardware slowdown, heat (software), heat (hardware), external power "
                        "brake, display clock setting");
}

static void what_is_not_known(void **state) {
    (void)state;
    Gauge g = {.driver = ""};
    Error e = {0};
    nvml_read("GPU-other", &g);
    assert_string_equal(g.driver, "580.159.04");
    assert_true(isnan(g.clock_mhz) && isnan(g.power_w) && g.throttle[0] == 0);
    setenv("OUTPACE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    assert_true(cuda_gauge(0, &g, &e));
    assert_true(isnan(g.clock_mhz) && isnan(g.temperature_c) && g.throttle[0] == 0 && g.driver[0] == 0);
    simt_settings.driver = 0;
    assert_false(cuda_gauge(0, &g, &e));
    simt_settings.driver = 13000;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value),
        cmocka_unit_test(reasons),
        cmocka_unit_test(what_is_not_known),
    };
    return cmocka_run_group_tests(tests, find_library, NULL);
}
