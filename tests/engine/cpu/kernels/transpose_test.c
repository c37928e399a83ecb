// Transposed squares: the plain version by its definition, the AVX-512 version against it. Nothing else is
// written.
#include "tests/support/check.h"

#include "engine/cpu/kernels/features.h"
#include "engine/cpu/kernels/transpose.h"
#include "tests/support/transpose_avx512.h"

enum { STEP = 21, UNTOUCHED = 0x7fffffff };

typedef void Turn(const uint32_t from[SQUARE][SQUARE], uint32_t *to, size_t to_step, int rows, int columns);

static void check_turn(Turn *turn) {
    Random r = test_random(35);
    for (int round = 0; round < 300; round++) {
        uint32_t from[SQUARE][SQUARE], to[SQUARE][STEP];
        int rows = test_between(&r, 1, SQUARE), columns = test_between(&r, 1, SQUARE);
        for (int i = 0; i < SQUARE; i++)
            for (int j = 0; j < SQUARE; j++) from[i][j] = random_below(&r, UNTOUCHED);
        for (int i = 0; i < SQUARE; i++)
            for (int j = 0; j < STEP; j++) to[i][j] = UNTOUCHED;
        turn((const uint32_t(*)[SQUARE])from, to[0], STEP, rows, columns);
        for (int i = 0; i < SQUARE; i++)
            for (int j = 0; j < STEP; j++) {
                uint32_t want = i < columns && j < rows ? from[j][i] : UNTOUCHED;
                if (to[i][j] != want)
                    fail_msg("%d x %d: [%d][%d] is %u, wanted %u", rows, columns, i, j, to[i][j], want);
            }
    }
}

static void plain(void **state) {
    (void)state;
    check_turn(transpose_square);
}

static void avx512(void **state) {
    (void)state;
    if (!cpu_features().avx512) skip();
    check_turn(transpose_on_avx512);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain), cmocka_unit_test(avx512)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
