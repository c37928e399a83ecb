// wgmma of any width and operand: what the engine doesn't use yet (instructions.cuh has the rest, and the
// meaning).
//
// A matrix of shared memory is told to the tensor cores by a descriptor: its address, two strides, and in the
// highest bits how pieces of 16 bytes are swizzled. Without swizzling as shared_matrices; with 128 bytes of
// it a row has 64 columns, and 8 rows are 1,024 bytes; 16 columns further on are 32 bytes further on.
#pragma once
#include "tests/gpu/probe.cuh"

#if HOPPER
__device__ __forceinline__ uint64_t swizzled_matrices(const void *at) {
    return (uint64_t)(shared_address(at) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}
#define TEN(t)   "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define EIGHT(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7"
#define LIST_8   "%0, %1, %2, %3"
#define LIST_16  EIGHT("")
#define LIST_32  TEN("") "%10, %11, %12, %13, %14, %15"
#define LIST_48  TEN("") TEN("1") "%20, %21, %22, %23"
#define LIST_64  TEN("") TEN("1") TEN("2") "%30, %31"
#define LIST_96  TEN("") TEN("1") TEN("2") TEN("3") EIGHT("4")
#define LIST_128 TEN("") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") "%60, %61, %62, %63"
#define LIST_160 \
    TEN("")      \
    TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define LIST_192 \
    TEN("")      \
    TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") "%90, %91, %92, %93, %94, %95"
#define LIST_224 \
    TEN("")      \
    TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10") "%110, %111"
#define LIST_256 \
    TEN("")      \
    TEN("1")     \
    TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8") TEN("9") TEN("10") TEN("11") EIGHT("12")
#define D4(i)   "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define D16(i)  D4(i), D4(i + 1), D4(i + 2), D4(i + 3)
#define D64(i)  D16(i), D16(i + 4), D16(i + 8), D16(i + 12)
#define OUT_8   D4(0)
#define OUT_16  D4(0), D4(1)
#define OUT_32  D16(0)
#define OUT_48  D16(0), D4(4), D4(5)
#define OUT_64  D16(0), D16(4)
#define OUT_96  D16(0), D16(4), D16(8)
#define OUT_128 D64(0)
#define OUT_160 D64(0), D16(16)
#define OUT_192 D64(0), D16(16), D16(20)
#define OUT_224 D64(0), D16(16), D16(20), D16(24)
#define OUT_256 D64(0), D64(16)

template <int N> struct Wgmma;
#define WGMMA_OF(n, s0, s1, r0, r1, r2, r3, r4)                                                            \
    template <> struct Wgmma<n> {                                                                          \
        static __device__ __forceinline__ void shared(float (*d)[4], uint64_t a, uint64_t b) {             \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" LIST_##n             \
                         "}, %" #s0 ", %" #s1 ", 1, 1, 1, 0, 0;"                                           \
                         : OUT_##n                                                                         \
                         : "l"(a), "l"(b));                                                                \
        }                                                                                                  \
        static __device__ __forceinline__ void registers(float (*d)[4], const uint32_t a[4], uint64_t b) { \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" LIST_##n             \
                         "}, {%" #r0 ", %" #r1 ", %" #r2 ", %" #r3 "}, %" #r4 ", 1, 1, 1, 0;"              \
                         : OUT_##n                                                                         \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                            \
        }                                                                                                  \
    };
WGMMA_OF(8, 4, 5, 4, 5, 6, 7, 8)
WGMMA_OF(16, 8, 9, 8, 9, 10, 11, 12)
WGMMA_OF(32, 16, 17, 16, 17, 18, 19, 20)
WGMMA_OF(48, 24, 25, 24, 25, 26, 27, 28)
WGMMA_OF(64, 32, 33, 32, 33, 34, 35, 36)
WGMMA_OF(96, 48, 49, 48, 49, 50, 51, 52)
WGMMA_OF(128, 64, 65, 64, 65, 66, 67, 68)
WGMMA_OF(160, 80, 81, 80, 81, 82, 83, 84)
WGMMA_OF(192, 96, 97, 96, 97, 98, 99, 100)
WGMMA_OF(224, 112, 113, 112, 113, 114, 115, 116)
WGMMA_OF(256, 128, 129, 128, 129, 130, 131, 132)
#undef WGMMA_OF
__device__ __forceinline__ void wgmma_commit() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
#endif
