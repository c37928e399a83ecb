#include "tests/support/transpose_avx512.h"

#include "engine/cpu/kernels/transpose.h"

void transpose_on_avx512(const uint32_t from[16][16], uint32_t *to, size_t to_step, int rows, int columns) {
    transpose_square(from, to, to_step, rows, columns);
}
