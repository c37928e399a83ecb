// The cost of a draw, counted on one row of 32,000 logits: doubles bound it on cards that have few units for
// them (results/gpu/log.md). A block takes a row, so rows up to the card's processors take as
// long.
#include "tests/ptx/machine.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/runtime.h"

enum { VOCAB = 32000 };

static void *take(size_t bytes, const void *from, void *stream) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    if (from) gpu_copy(block, from, bytes, stream);
    return block;
}

// Normal logits, with a deviation of 2.5 temperatures.
static Counters count(int top_k, double top_p) {
    static const RowList LIST = {.count = 1};
    float *logits = test_calloc(VOCAB, sizeof *logits);
    DrawAsks *asks = test_calloc(1, sizeof *asks);
    Random r = test_random(7);
    void *stream;
    *asks = (DrawAsks){.inverse = 1, .top_p = top_p, .top_k = top_k, .vocab = VOCAB, .real = VOCAB};
    asks->u[0] = 0.5;
    for (int i = 0; i < VOCAB; i++) logits[i] = 2.5f * random_normal(&r);
    assert_int_equal(gpu_stream_open(&stream), 0);
    void *blocks[] = {take(sizeof LIST, &LIST, stream), take(sizeof *asks, asks, stream),
                      take(VOCAB * sizeof *logits, logits, stream), take(sizeof(double), NULL, stream),
                      take(sizeof(int), NULL, stream)};
    Draw d = {.rows = blocks[0],
              .asks = blocks[1],
              .logits = blocks[2],
              .stride = VOCAB,
              .chance = blocks[3],
              .drawn = blocks[4]};
    ptx_counters_clear();
    gpu_draw(&d, 1, stream);
    gpu_stream_wait(stream);
    Counters c = *ptx_counters("draw");
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gpu_give(blocks[i]);
    gpu_stream_close(stream);
    test_free(logits);
    test_free(asks);
    print_message("top_k %d, top_p %g: %lu instructions of doubles, longest warp %lu, path %lu\n", top_k,
                  top_p, c.warp[COUNT_DOUBLE], c.longest, c.path);
    return c;
}

static void doubles(void **state) {
    (void)state;
    ptx_settings.checked = false;
    ptx_settings.counted = true;
    Counters plain = count(0, 1), nucleus = count(0, 0.9), most = count(50, 1);
    assert_in_range(plain.warp[COUNT_DOUBLE], 1, 30000);
    assert_in_range(plain.path, 1, 32000);
    assert_in_range(nucleus.warp[COUNT_DOUBLE], 1, 110000);
    assert_in_range(nucleus.path, 1, 125000);
    assert_in_range(most.warp[COUNT_DOUBLE], 1, 110000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(doubles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
