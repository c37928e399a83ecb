// The AVX-512 way of turning a square over, from a file compiled with its flags; only for processors that
// have it.
#pragma once
#include <stddef.h>
#include <stdint.h>

void transpose_on_avx512(const uint32_t from[16][16], uint32_t *to, size_t to_step, int rows, int columns);
