// Which weights a setup's device rounds as it loads them.
#include "tests/support/check.h"

#include "harness/run/plan.h"

#include <stdio.h>
#include <string.h>

static void rounding(void **state) {
    static const struct {
        const char *device;
        Dtype weights;
        ComputeChoice compute;
        const char *want;
    } rows[] = {
        {"cuda", DTYPE_F16, CHOOSE_BF16, "f16 to bf16"}, {"cuda:1", DTYPE_BF16, CHOOSE_F16, "bf16 to f16"},
        {"cuda", DTYPE_F16, CHOOSE_WEIGHTS, NULL},       {"cuda", DTYPE_F16, CHOOSE_F32, NULL},
        {"cuda", DTYPE_F32, CHOOSE_BF16, NULL},          {"cpu", DTYPE_F16, CHOOSE_BF16, NULL},
        {"null", DTYPE_F16, CHOOSE_BF16, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Inputs in = {.experiment = NULL};
        Settings s = {.engine.compute = rows[i].compute};
        in.models[0].model.dtype = rows[i].weights;
        snprintf(s.engine.device, sizeof s.engine.device, "%s", rows[i].device);
        const char *got = inputs_rounding(&in, 0, &s), *want = rows[i].want;
        if (!got != !want || (got && strcmp(got, want)))
            fail_msg("row %zu: got %s, wanted %s", i, got ? got : "nothing", want ? want : "nothing");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
