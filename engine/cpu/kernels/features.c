// Bits of CPUID, and of XCR0 for the registers that the system saves. The processor's model number is never
// looked at: virtual machines hide it.
#include "engine/cpu/kernels/features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { XSAVE_AVX = 0x06, XSAVE_AVX512 = 0xe6, XSAVE_TILES = 0x60000 };
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; // arch_prctl's ARCH_REQ_XCOMP_PERM, and which state

static unsigned saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

CpuFeatures cpu_features(void) {
    CpuFeatures f = {0};
    unsigned a, b, c, d, b7, c7, d7;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7))
        return f;
    unsigned state = saved_state(), tiles = 1u << 22 | 1u << 24; // AMX-BF16, AMX-TILE
    f.avx2 = has(state, XSAVE_AVX) && has(c, bit_AVX | bit_FMA | bit_F16C) && has(b7, bit_AVX2);
    f.avx512 = f.avx2 && has(state, XSAVE_AVX512) &&
               has(b7, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    f.avx512_bf16 = f.avx512 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, bit_AVX512BF16);
    f.amx = f.avx512_bf16 && has(state, XSAVE_TILES) && has(d7, tiles) &&
            syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
    return f;
}
#else
CpuFeatures cpu_features(void) { return (CpuFeatures){0}; }
#endif
