// The best k of rows of logits, and the likeliest by itself, against a plain search: several slices, many
// ties, a row with NaNs, which count as +INFINITY, and rows of fewer finite numbers than are asked for.
#include "tests/support/check.h"
#include "tests/simt/settings.h"

#include "engine/cuda/kernels/outputs.h"
#include "engine/cuda/kernels/runtime.h"

#include <math.h>
#include <string.h>

enum { ROWS = 4, STRIDE = 5003, REAL = 4999 };

static void *take(size_t bytes, const void *from, void *stream) {
    void *block;
    assert_int_equal(gpu_take(&block, bytes), 0);
    if (from) gpu_copy(block, from, bytes, stream);
    else gpu_fill(block, 0, bytes, stream);
    return block;
}

static void make_logits(float logits[ROWS][STRIDE], Random *r) {
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < STRIDE; k++) {
            logits[i][k] = k >= REAL ? 1000 : (float)test_between(r, -3000, 20); // few values: ties
            if (i == 1 && k % 300 == 0) logits[i][k] = NAN;
            if (i == 2 && k != 4998 && k != 17) logits[i][k] = -INFINITY;
            if (i == 3 && k == 4997) logits[i][k] = NAN;
        }
}

static float ranked(float logit) { return isnan(logit) ? INFINITY : logit; }

// The number that comes next after (logit, id), or id -1.
static int next_best(const float *logits, float logit, int id) {
    int best = -1;
    for (int k = 0; k < REAL; k++) {
        float x = ranked(logits[k]);
        bool behind = id < 0 || x < logit || (x == logit && k > id);
        if (behind && (best < 0 || x > ranked(logits[best]))) best = k;
    }
    return best;
}

static void compare(float logits[ROWS][STRIDE], int k, const int *id, const float *logit) {
    for (int r = 0; r < ROWS; r++)
        for (int i = 0, last = -1; i < k; i++) {
            int want =
                i && last < 0 ? -1 : next_best(logits[r], last < 0 ? 0 : ranked(logits[r][last]), last);
            float value = want < 0 ? -INFINITY : ranked(logits[r][want]);
            if (id[r * k + i] != (want < 0 ? 0 : want) || memcmp(&logit[r * k + i], &value, sizeof value))
                fail_msg("row %d, number %d of %d: id %d with %g, wanted %d with %g", r, i, k, id[r * k + i],
                         (double)logit[r * k + i], want, (double)value);
            last = want;
        }
}

static void check(int k, SimtOrder order) {
    static float logits[ROWS][STRIDE];
    int id[ROWS * TOP_MAX];
    float logit[ROWS * TOP_MAX];
    RowList rows = {.count = ROWS, .first = 0};
    Random r = test_random(93);
    void *stream;
    simt_settings.order = order;
    make_logits(logits, &r);
    assert_int_equal(gpu_stream_open(&stream), 0);
    size_t bytes = ROWS * TOP_MAX * sizeof(int);
    Top t = {.rows = take(sizeof rows, &rows, stream),
             .logits = take(sizeof logits, logits, stream),
             .stride = STRIDE,
             .real = REAL,
             .k = k,
             .id = take(bytes, NULL, stream),
             .slice_id = take(bytes * TOP_SLICES, NULL, stream),
             .logit = take(bytes, NULL, stream),
             .slice_logit = take(bytes * TOP_SLICES, NULL, stream),
             .done = take(ROWS * sizeof(unsigned), NULL, stream)};
    for (int again = 0; again < 2; again++) { // the counters are zero again after each launch
        gpu_top(&t, ROWS + 3, stream);
        gpu_copy(id, t.id, (size_t)(ROWS * k) * sizeof *id, stream);
        gpu_copy(logit, t.logit, (size_t)(ROWS * k) * sizeof *logit, stream);
        gpu_stream_wait(stream);
        compare(logits, k, id, logit);
    }
    const void *const all[] = {t.rows, t.logits, t.id, t.slice_id, t.logit, t.slice_logit, t.done};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *block;
        memcpy(&block, &all[i], sizeof block);
        gpu_give(block);
    }
    gpu_stream_close(stream);
    assert_int_equal(simt_live_bytes(), 0);
}

static void every_number(void **state) {
    (void)state;
    static const int numbers[] = {1, 2, 7, TOP_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check(numbers[i], (SimtOrder)(i % SIMT_ORDERS));
}

static void find_likeliest(float logits[ROWS][STRIDE], int real) {
    uint64_t keys[ROWS * BEST_SLICES];
    RowList rows = {.count = ROWS, .first = 0};
    void *stream;
    assert_int_equal(gpu_stream_open(&stream), 0);
    Likeliest l = {.rows = take(sizeof rows, &rows, stream),
                   .logits = take(ROWS * STRIDE * sizeof(float), logits, stream),
                   .stride = STRIDE,
                   .real = real,
                   .keys = take(sizeof keys, NULL, stream)};
    gpu_likeliest(&l, ROWS + 3, stream);
    gpu_copy(keys, l.keys, sizeof keys, stream);
    gpu_stream_wait(stream);
    for (int r = 0; r < ROWS; r++) {
        uint64_t key = largest_key(keys + r * BEST_SLICES);
        int id = likeliest_id(key), want = 0;
        for (int k = 1; k < real; k++)
            if (ranked(logits[r][k]) > ranked(logits[r][want])) want = k;
        float logit = likeliest_logit(key), wanted = ranked(logits[r][want]);
        if (id != want || !(logit >= wanted && logit <= wanted))
            fail_msg("row %d of %d: id %d with %g, wanted %d with %g", r, real, id, (double)logit, want,
                     (double)wanted);
    }
    const void *const all[] = {l.rows, l.logits, l.keys};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *block;
        memcpy(&block, &all[i], sizeof block);
        gpu_give(block);
    }
    gpu_stream_close(stream);
}

// Vocabularies of a thread's loads and of more; of fewer ids than slices; zeros of both signs are equal.
static void the_likeliest(void **state) {
    static float logits[ROWS][STRIDE];
    static const int sizes[] = {REAL, 1, 5, 16, 33};
    Random r = test_random(94);
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        simt_settings.order = (SimtOrder)(i % SIMT_ORDERS);
        make_logits(logits, &r);
        for (int k = 0; k < STRIDE && i % 2; k++) logits[0][k] = k % 3 ? -INFINITY : k % 2 ? 0.0f : -0.0f;
        for (int k = 0; k < STRIDE && i == 2; k++) logits[3][k] = -INFINITY;
        find_likeliest(logits, sizes[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number), cmocka_unit_test(the_likeliest)};
    simt_settings.locked = simt_settings.early = true; // what is touched too soon ends the program
    return cmocka_run_group_tests(tests, NULL, NULL);
}
