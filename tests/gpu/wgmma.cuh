// wgmma of the widths and operands that the engine doesn't use (warpgroups.cuh has the rest, and the meaning).
//
// A matrix of shared memory is told to the tensor cores by a descriptor: its address, two strides, and in the
// highest bits how pieces of 16 bytes are swizzled. Without swizzling as operand(); with 128 bytes of
// it a row has 64 columns, and 8 rows are 1,024 bytes; 16 columns further on are 32 bytes further on.
#pragma once
#include "tests/gpu/probe.cuh"

#if HOPPER
__device__ __forceinline__ uint64_t swizzled_matrices(const void *at) {
    return (uint64_t)(shared_address(at) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}
#define LIST_8   "%0, %1, %2, %3"
#define LIST_16  EIGHT("")
#define LIST_48  TEN("") TEN("1") "%20, %21, %22, %23"
#define LIST_224 SIXTY TEN("6") TEN("7") TEN("8") TEN("9") TEN("10") "%110, %111"
#define OUT_8    D4(0)
#define OUT_16   D4(0), D4(1)
#define OUT_48   D16(0), D4(4), D4(5)
#define OUT_224  D64(0), D16(16), D16(20), D16(24)
WGMMA_OF(8, 4, 5, 4, 5, 6, 7, 8)
WGMMA_OF(16, 8, 9, 8, 9, 10, 11, 12)
WGMMA_OF(48, 24, 25, 24, 25, 26, 27, 28)
WGMMA_OF(224, 112, 113, 112, 113, 114, 115, 116)
#endif
