// Features from processors' words: each bit that a kernel set needs is cleared in turn.
#include "tests/support/check.h"

#include "engine/cpu/kernels/features.h"

#if defined(__x86_64__)
enum { X86 = 1 };
#else
enum { X86 = 0 };
#endif

// The words of a Sapphire Rapids whose system saves all registers; only the bits that matter here.
static const CpuWords WHOLE = {.leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29,
                               .leaf7_ebx = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
                               .leaf7_ecx = 1u << 11,
                               .leaf7_edx = 1u << 22 | 1u << 24,
                               .leaf7_1_eax = 1u << 4 | 1u << 5,
                               .saved = 0x600e7};

static void check(CpuWords w, CpuFeatures want, const char *what, int bit) {
    CpuFeatures got = cpu_features_of(&w);
    if (got.avx2 != want.avx2 || got.avx512 != want.avx512 || got.avx512_bf16 != want.avx512_bf16 ||
        got.avx512_vnni != want.avx512_vnni || got.avx_vnni != want.avx_vnni || got.tiles != want.tiles)
        fail_msg("%s without bit %d: avx2 %d, avx512 %d, vnni %d, bf16 %d, tiles %d; want %d, %d, %d, %d, %d",
                 what, bit, got.avx2, got.avx512, got.avx512_vnni, got.avx512_bf16, got.tiles, want.avx2,
                 want.avx512, want.avx512_vnni, want.avx512_bf16, want.tiles);
}

enum { NOTHING, AVX2, AVX512, BF16, ALL };

// The features of a level, with this state of tiles.
static CpuFeatures upto(int level, TilesState tiles) {
    return (CpuFeatures){.avx2 = level >= AVX2,
                         .avx_vnni = level >= AVX2,
                         .avx512 = level >= AVX512,
                         .avx512_vnni = level >= AVX512,
                         .avx512_bf16 = level >= BF16,
                         .tiles = tiles};
}

static void each_bit(void **state) {
    (void)state;
    if (!X86) skip();
    static const int ecx[] = {12, 27, 28, 29}, wide[] = {16, 17, 30, 31}, saved_wide[] = {5, 6, 7};
    check(WHOLE, upto(ALL, TILES_GRANTED), "whole", -1);
    for (int i = 0; i < 4; i++) {
        CpuWords w = WHOLE, v = WHOLE;
        w.leaf1_ecx &= ~(1u << ecx[i]);
        check(w, upto(NOTHING, TILES_NONE), "leaf 1 ecx", ecx[i]);
        v.leaf7_ebx &= ~(1u << wide[i]);
        check(v, upto(AVX2, TILES_NONE), "leaf 7 ebx", wide[i]);
    }
    for (int bit = 1; bit < 3; bit++) {
        CpuWords w = WHOLE;
        w.saved &= ~(1u << bit);
        check(w, upto(NOTHING, TILES_NONE), "saved", bit);
    }
    for (int i = 0; i < 3; i++) {
        CpuWords w = WHOLE;
        w.saved &= ~(1u << saved_wide[i]);
        check(w, upto(AVX2, TILES_NONE), "saved", saved_wide[i]);
    }
}

static void tiles(void **state) {
    (void)state;
    if (!X86) skip();
    for (int bit = 17; bit < 19; bit++) {
        CpuWords w = WHOLE;
        w.saved &= ~(1u << bit);
        check(w, upto(BF16, TILES_UNSAVED), "saved", bit);
    }
    for (int bit = 22; bit < 25; bit += 2) {
        CpuWords w = WHOLE;
        w.leaf7_edx &= ~(1u << bit);
        check(w, upto(BF16, TILES_NONE), "leaf 7 edx", bit);
    }
    CpuWords w = WHOLE;
    w.leaf7_1_eax &= ~(1u << 5);
    check(w, upto(AVX512, TILES_NONE), "leaf 7.1 eax", 5);
    w = WHOLE;
    w.leaf7_1_eax &= ~(1u << 4);
    CpuFeatures without = upto(ALL, TILES_GRANTED);
    without.avx_vnni = false;
    check(w, without, "leaf 7.1 eax", 4);
    w = WHOLE;
    w.leaf7_ecx = 0;
    without = upto(BF16, TILES_NONE);
    without.avx512_vnni = false;
    check(w, without, "leaf 7 ecx", 11);
    w = WHOLE;
    w.leaf7_ebx &= ~(1u << 5);
    check(w, upto(NOTHING, TILES_NONE), "leaf 7 ebx", 5);
}

// This machine, whatever it is: two calls return the same.
static void here(void **state) {
    (void)state;
    CpuFeatures a = cpu_features(), b = cpu_features();
    assert_int_equal(a.avx512, b.avx512);
    assert_int_equal(a.tiles, b.tiles);
    assert_true(a.avx2 || !a.avx512);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_bit), cmocka_unit_test(tiles),
                                       cmocka_unit_test(here)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
