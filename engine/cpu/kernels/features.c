// Bits of CPUID, and of XCR0 for the registers that the system saves. The processor's model number is never
// looked at: virtual machines hide it.
#include "engine/cpu/kernels/features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SAVES_AVX = 0x06, SAVES_AVX512 = 0xe6, SAVES_TILES = 0x60000 };
enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 }; // arch_prctl's ARCH_REQ_XCOMP_PERM, and which state

static bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

CpuFeatures cpu_features_of(const CpuWords *w) {
    CpuFeatures f = {0};
    f.avx2 = has(w->saved, SAVES_AVX) && has(w->leaf1_ecx, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) &&
             has(w->leaf7_ebx, bit_AVX2);
    f.avx512 = f.avx2 && has(w->saved, SAVES_AVX512) &&
               has(w->leaf7_ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
    f.avx512_bf16 = f.avx512 && has(w->leaf7_1_eax, bit_AVX512BF16);
    if (f.avx512_bf16 && has(w->leaf7_edx, AMX_BF16 | AMX_TILE))
        f.tiles = has(w->saved, SAVES_TILES) ? TILES_GRANTED : TILES_UNSAVED;
    return f;
}

static unsigned saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static CpuWords read_words(void) {
    CpuWords w = {0};
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) w.leaf1_ecx = c;
    if (has(w.leaf1_ecx, bit_OSXSAVE)) w.saved = saved_state();
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) w.leaf7_ebx = b, w.leaf7_edx = d;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) w.leaf7_1_eax = a;
    return w;
}

CpuFeatures cpu_features(void) {
    CpuWords w = read_words();
    CpuFeatures f = cpu_features_of(&w);
    if (f.tiles == TILES_GRANTED && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) != 0)
        f.tiles = TILES_DENIED;
    return f;
}
#else
CpuFeatures cpu_features_of(const CpuWords *w) {
    (void)w;
    return (CpuFeatures){0};
}
#endif

#if defined(__aarch64__)
#include <sys/auxv.h>

enum { CAPABLE_BF16 = 1 << 14 }; // Linux's HWCAP2_BF16

CpuFeatures cpu_features(void) {
    return (CpuFeatures){.neon_bf16 = (getauxval(AT_HWCAP2) & CAPABLE_BF16) != 0};
}
#elif !defined(__x86_64__)
CpuFeatures cpu_features(void) { return (CpuFeatures){0}; }
#endif
