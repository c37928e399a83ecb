// The product of tiles, bit for bit: the emulated one against the manual's text in scalars, this processor's
// own against the emulated one or, without tiles, their trapped instructions.
#include "tests/support/check.h"
#include "tests/support/tile_product.h"
#include "tests/support/tiles_trapped.h"

#include "engine/base/numbers.h"
#include "engine/cpu/kernels/features.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { ROUNDS = 200 };

// Kinds of operands: any finite bits, subnormals among them, or any bits at all.
typedef enum { NEAR_ONE, WIDE, FINITE, ANYTHING, KINDS } Kind;
static const char *const NAMES[KINDS] = {"near one", "wide", "finite", "anything"};

static uint16_t bits_of(Kind kind, Random *r) {
    uint16_t bits = (uint16_t)random_below(r, 1 << 16);
    if (kind == NEAR_ONE) return (uint16_t)((bits & 0x807f) | test_between(r, 126, 128) << 7);
    if (kind == WIDE) return (uint16_t)((bits & 0x807f) | test_between(r, 97, 157) << 7);
    if (kind == FINITE && (bits & 0x7f80) == 0x7f80) return 0; // infinite or NaN
    return bits;
}

static void fill(TileProduct *p, Kind kind, Random *r) {
    p->columns = test_between(r, 1, 16);
    for (int i = 0; i < 16 * 32; i++) p->a[i / 32][i % 32] = bits_of(kind, r);
    for (int i = 0; i < 16 * 16; i++) {
        p->b[i] = (uint32_t)bits_of(kind, r) | (uint32_t)bits_of(kind, r) << 16;
        p->c[i] = bf16_to_f32(bits_of(kind, r));
    }
}

// The manual's text: one fused multiply-add after the other, nothing subnormal in or out.
static float flush(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

static float half(uint32_t pair, int which) {
    return flush(bf16_to_f32((uint16_t)(which ? pair >> 16 : pair)));
}

static void multiply_plainly(TileProduct *p) {
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < p->columns; n++) {
            float part[2] = {0, 0}, *c = &p->c[m * p->columns + n];
            for (int k = 0; k < 32; k++)
                part[k % 2] = flush(fmaf(flush(bf16_to_f32(p->a[m][k])),
                                         half(p->b[k / 2 * p->columns + n], k % 2), part[k % 2]));
            *c = flush(flush(*c) + flush(part[0] + part[1]));
        }
}

static void compare(const TileProduct *in, const TileProduct *want, const TileProduct *got, Kind kind) {
    for (int i = 0; i < 16 * in->columns; i++)
        if (memcmp(&want->c[i], &got->c[i], sizeof *got->c) != 0 && !(isnan(want->c[i]) && isnan(got->c[i])))
            fail_msg("%s, %d columns: [%d][%d] is %a, want %a", NAMES[kind], in->columns, i / in->columns,
                     i % in->columns, (double)got->c[i], (double)want->c[i]);
}

static void check(void (*want)(TileProduct *), void (*got)(TileProduct *), uint64_t seed) {
    Random r = test_random(seed);
    for (int i = 0; i < ROUNDS * KINDS; i++) {
        TileProduct in, w, g;
        fill(&in, (Kind)(i % KINDS), &r);
        w = g = in;
        want(&w);
        got(&g);
        compare(&in, &w, &g, (Kind)(i % KINDS));
    }
}

static void emulated(void **state) {
    (void)state;
    check(multiply_plainly, tile_product_emulated, 71);
}

static void real(void **state) {
    (void)state;
    if (!tiles_usable()) skip();
    check(tile_product_emulated, tile_product_real, 72);
}

// The same instructions, trapped: see tests/support/tiles_trapped.h.
static void trapped(void **state) {
    (void)state;
    if (!tiles_trap()) skip();
    check(tile_product_emulated, tile_product_real, 72);
    assert_int_equal(tiles_trap_end(), ROUNDS * KINDS * 7); // two for the configuration, three loads, ..
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(emulated), cmocka_unit_test(real),
                                       cmocka_unit_test(trapped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
