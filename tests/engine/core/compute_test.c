// The arithmetic chosen by a user and by weights, its rate, when weights are rounded to it, and the message
// where f16 overflows.
#include "tests/support/check.h"

#include "engine/core/compute.h"

static void chosen(void **state) {
    static const struct {
        ComputeChoice choice;
        Dtype weights;
        Compute compute;
    } rows[] = {
        {CHOOSE_WEIGHTS, DTYPE_F32, COMPUTE_F32}, {CHOOSE_WEIGHTS, DTYPE_BF16, COMPUTE_BF16},
        {CHOOSE_WEIGHTS, DTYPE_F16, COMPUTE_F16}, {CHOOSE_F32, DTYPE_F16, COMPUTE_F32},
        {CHOOSE_BF16, DTYPE_F16, COMPUTE_BF16},   {CHOOSE_F16, DTYPE_F32, COMPUTE_F16},
        {CHOOSE_INT8, DTYPE_BF16, COMPUTE_INT8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(compute_choose(rows[i].choice, rows[i].weights), rows[i].compute);
}

static void rates(void **state) {
    static const struct {
        Compute compute;
        Dtype weights;
        Compute rate;
        bool rounds;
    } rows[] = {
        {COMPUTE_F32, DTYPE_F16, COMPUTE_F32, false},    {COMPUTE_BF16, DTYPE_F32, COMPUTE_F32, false},
        {COMPUTE_BF16, DTYPE_BF16, COMPUTE_BF16, false}, {COMPUTE_BF16, DTYPE_F16, COMPUTE_F16, true},
        {COMPUTE_F16, DTYPE_F16, COMPUTE_F16, false},    {COMPUTE_F16, DTYPE_BF16, COMPUTE_F16, true},
        {COMPUTE_F16, DTYPE_F32, COMPUTE_F32, false},    {COMPUTE_INT8, DTYPE_BF16, COMPUTE_INT8, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(compute_rate(rows[i].compute, rows[i].weights), rows[i].rate);
        assert_int_equal(compute_rounds(rows[i].compute, rows[i].weights), rows[i].rounds);
    }
}

static void told(void **state) {
    enum { LAYERS = 2 };
    Error e = {0};
    (void)state;
    assert_false(overflow_refuse(overflow_place(0, ROUNDED_HEADS), LAYERS, &e));
    assert_string_equal(e.text,
                        "layer 0: q, k or v has a number beyond 65504, which compute f16 cannot hold; "
                        "--compute bf16 and f32 can");
    assert_false(overflow_refuse(overflow_place(1, ROUNDED_MLP_PRODUCT), LAYERS, &e));
    assert_string_equal(e.text, "layer 1: the MLP's gated product has a number beyond 65504, which compute "
                                "f16 cannot hold; --compute bf16 and f32 can");
    assert_false(overflow_refuse(overflow_place(2, ROUNDED_ATTENTION_INPUT), LAYERS, &e));
    assert_string_equal(e.text, "the head's input has a number beyond 65504, which compute f16 cannot hold; "
                                "--compute bf16 and f32 can");
    assert_true(overflow_place(0, ROUNDED_MLP_PRODUCT) < overflow_place(1, ROUNDED_ATTENTION_INPUT));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen), cmocka_unit_test(rates),
                                       cmocka_unit_test(told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
