// Arithmetic of PTX: a function an opcode, over the lanes that are on. The language of the manual (PTX ISA,
// section 9.7) in C; what the manual leaves to the card (ex2.approx, rcp.approx) is the nearest float here.
#include "tests/ptx/machine.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EACH for (int l = 0; l < LANES; l++)
// Registers are the same or apart.
#define IVDEP _Pragma("GCC ivdep")

// The whole warp, the usual case, is a loop that the compiler makes vectors of: those of this machine
// (-march=native in cuda.mk). The bits are the same, since nothing is contracted.
#define BODY(expression)            \
    if (lanes == ALL) IVDEP EACH {  \
            expression;             \
        }                           \
    else EACH if (lanes >> l & 1) { \
            expression;             \
        }

#define UNARY(name, D, A, value)                                      \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) { \
        D *d = operand_at(w, &o->d[0]);                               \
        const A *pa = operand_at(w, &o->s[0]);                        \
        BODY(A a = pa[l]; d[l] = (D)(value))                          \
    }
#define BINARY(name, D, A, B, value)                                  \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) { \
        D *d = operand_at(w, &o->d[0]);                               \
        const A *pa = operand_at(w, &o->s[0]);                        \
        const B *pb = operand_at(w, &o->s[1]);                        \
        BODY(A a = pa[l]; B b = pb[l]; d[l] = (D)(value))             \
    }
#define TERNARY(name, D, A, C, value)                                         \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) {         \
        D *d = operand_at(w, &o->d[0]);                                       \
        const A *pa = operand_at(w, &o->s[0]), *pb = operand_at(w, &o->s[1]); \
        const C *pc = operand_at(w, &o->s[2]);                                \
        BODY(A a = pa[l]; A b = pb[l]; C c = pc[l]; d[l] = (D)(value))        \
    }
#define COMPARE(name, A, value)                                               \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) {         \
        uint32_t *d = operand_at(w, &o->d[0]), bits = 0;                      \
        const A *pa = operand_at(w, &o->s[0]), *pb = operand_at(w, &o->s[1]); \
        EACH {                                                                \
            A a = pa[l], b = pb[l];                                           \
            bits |= (uint32_t)(value) << l;                                   \
        }                                                                     \
        *d = (*d & ~lanes) | (bits & lanes);                                  \
    }
#define PREDICATE(name, value)                                                  \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) {           \
        uint32_t *d = operand_at(w, &o->d[0]);                                  \
        uint32_t a = *(uint32_t *)operand_at(w, &o->s[0]);                      \
        uint32_t b = o->sources > 1 ? *(uint32_t *)operand_at(w, &o->s[1]) : 0; \
        (void)b;                                                                \
        *d = (*d & ~lanes) | ((value)&lanes);                                   \
    }

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

UNARY(copy32, u32, u32, a)
UNARY(copy64, u64, u64, a)
PREDICATE(copy_p, a)
PREDICATE(and_p, a &b)
PREDICATE(or_p, a | b)
PREDICATE(xor_p, a ^ b)
PREDICATE(not_p, ~a)

#define BOTH(name, value)                  \
    BINARY(name##32, u32, u32, u32, value) \
    BINARY(name##64, u64, u64, u64, value)
BOTH(add, a + b)
BOTH(sub, a - b)
BOTH(mul, a *b)
BOTH(and, a &b)
BOTH(or, a | b)
BOTH(xor, a ^ b)
BINARY(and16, u32, u32, u32, (a & b) & 0xffff)
BINARY(or16, u32, u32, u32, (a | b) & 0xffff)
BINARY(xor16, u32, u32, u32, (a ^ b) & 0xffff)
BINARY(add16, u32, u32, u32, (a + b) & 0xffff)
BINARY(mul16, u32, u32, u32, (a * b) & 0xffff)
BINARY(sub16, u32, u32, u32, (a - b) & 0xffff)
UNARY(not32, u32, u32, ~a)
UNARY(not64, u64, u64, ~a)
UNARY(negate32, u32, u32, 0 - a)
UNARY(negate64, u64, u64, 0 - a)
UNARY(abs_s32, u32, i32, a < 0 ? 0u - (u32)a : (u32)a)
BINARY(wide_s32, u64, i32, i32, (i64)a *b)
BINARY(wide_u16, u32, u32, u32, (a & 0xffff) * (b & 0xffff))
BINARY(wide_u32, u64, u32, u32, (u64)a *b)
BINARY(high_s32, u32, i32, i32, (u64)((i64)a *b) >> 32)
BINARY(high_u32, u32, u32, u32, (u64)a *b >> 32)
TERNARY(mad32, u32, u32, u32, a *b + c)
TERNARY(mad64, u64, u64, u64, a *b + c)
TERNARY(mad_wide_s32, u64, i32, i64, (u64)((i64)a *b) + (u64)c)
TERNARY(mad_wide_u32, u64, u32, u64, (u64)a *b + c)
BINARY(min_s32, u32, i32, i32, a < b ? a : b)
BINARY(max_s32, u32, i32, i32, a > b ? a : b)
BINARY(min_u32, u32, u32, u32, a < b ? a : b)
BINARY(max_u32, u32, u32, u32, a > b ? a : b)
BINARY(min_u64, u64, u64, u64, a < b ? a : b)
BINARY(max_u64, u64, u64, u64, a > b ? a : b)
BINARY(min_s64, u64, i64, i64, a < b ? a : b)
BINARY(max_s64, u64, i64, i64, a > b ? a : b)
BINARY(shl32, u32, u32, u32, b > 31 ? 0 : a << b)
BINARY(shl64, u64, u64, u32, b > 63 ? 0 : a << b)
BINARY(shr_u32, u32, u32, u32, b > 31 ? 0 : a >> b)
BINARY(shr_u64, u64, u64, u32, b > 63 ? 0 : a >> b)
BINARY(shl16, u32, u32, u32, b > 15 ? 0 : (a << b) & 0xffff)
BINARY(shr_u16, u32, u32, u32, b > 15 ? 0 : (a & 0xffff) >> b)
BINARY(shr_s32, u32, i32, u32, a >> (b > 31 ? 31 : b))
BINARY(shr_s64, u64, i64, u32, a >> (b > 63 ? 63 : b))
// The manual leaves division by zero open.
BINARY(div_s32, u32, i32, i32, b == 0 ? -1 : b == -1 ? (i32)(0 - (u32)a) : a / b)
BINARY(rem_s32, u32, i32, i32, b == 0 ? a : b == -1 ? 0 : a % b)
BINARY(div_u32, u32, u32, u32, b == 0 ? ~0u : a / b)
BINARY(rem_u32, u32, u32, u32, b == 0 ? a : a % b)
BINARY(div_s64, u64, i64, i64, b == 0 ? -1 : b == -1 ? (i64)(0 - (u64)a) : a / b)
BINARY(rem_s64, u64, i64, i64, b == 0 ? a : b == -1 ? 0 : a % b)
BINARY(div_u64, u64, u64, u64, b == 0 ? ~(u64)0 : a / b)
BINARY(rem_u64, u64, u64, u64, b == 0 ? a : a % b)
UNARY(clz32, u32, u32, a ? __builtin_clz(a) : 32)
UNARY(clz64, u32, u64, a ? __builtin_clzll(a) : 64)
UNARY(popc32, u32, u32, __builtin_popcount(a))
UNARY(popc64, u32, u64, __builtin_popcountll(a))

static u32 byte_of(u32 a, u32 b, u32 selector) {
    u64 both = (u64)b << 32 | a;
    u32 byte = (u32)(both >> (selector & 7) * 8) & 255;
    return selector & 8 ? (byte & 128 ? 255 : 0) : byte;
}
static u32 permute(u32 a, u32 b, u32 c) {
    u32 d = 0;
    for (u32 i = 0; i < 4; i++) d |= byte_of(a, b, c >> 4 * i & 15) << 8 * i;
    return d;
}
TERNARY(prmt, u32, u32, u32, permute(a, b, c))

static u32 logic3(u32 a, u32 b, u32 c, u32 table) {
    u32 d = 0;
    for (u32 i = 0; i < 8; i++)
        if (table >> i & 1) d |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return d;
}
static void lop3(Warp *w, const Instruction *o, uint32_t lanes) {
    u32 *d = operand_at(w, &o->d[0]);
    const u32 *p[4];
    for (int i = 0; i < 4; i++) p[i] = operand_at(w, &o->s[i]);
    BODY(d[l] = logic3(p[0][l], p[1][l], p[2][l], p[3][l]))
}

static u64 insert(u64 a, u64 b, u32 at, u32 count, u32 width) {
    at &= 255, count &= 255;
    if (at >= width || count == 0) return b;
    u64 mask = (count >= 64 ? ~(u64)0 : ((u64)1 << count) - 1) << at;
    return (b & ~mask) | (a << at & mask);
}
static void bfi32(Warp *w, const Instruction *o, uint32_t lanes) {
    u32 *d = operand_at(w, &o->d[0]);
    const u32 *p[4];
    for (int i = 0; i < 4; i++) p[i] = operand_at(w, &o->s[i]);
    BODY(d[l] = (u32)insert(p[0][l], p[1][l], p[2][l], p[3][l], 32))
}
static void bfi64(Warp *w, const Instruction *o, uint32_t lanes) {
    u64 *d = operand_at(w, &o->d[0]);
    const u64 *a = operand_at(w, &o->s[0]), *b = operand_at(w, &o->s[1]);
    const u32 *at = operand_at(w, &o->s[2]), *count = operand_at(w, &o->s[3]);
    BODY(d[l] = insert(a[l], b[l], at[l], count[l], 64))
}

// --- sums over several words: the carry is a bit a lane

#define CARRIED(name, sum, takes, gives)                                             \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) {                \
        u32 *d = operand_at(w, &o->d[0]);                                            \
        const u32 *pa = operand_at(w, &o->s[0]), *pb = operand_at(w, &o->s[1]);      \
        const u32 *pc = o->sources > 2 ? operand_at(w, &o->s[2]) : pb;               \
        EACH if (lanes >> l & 1) {                                                   \
            u64 a = pa[l], b = pb[l], c = pc[l], in = takes ? w->carry >> l & 1 : 0; \
            (void)c, (void)in;                                                       \
            u64 s = (sum);                                                           \
            d[l] = (u32)s;                                                           \
            if (gives) w->carry = (w->carry & ~(1u << l)) | (u32)(s >> 32 & 1) << l; \
        }                                                                            \
    }
CARRIED(add_cc, a + b, false, true)
CARRIED(addc_cc, a + b + in, true, true)
CARRIED(addc, a + b + in, true, false)
CARRIED(sub_cc, a - b, false, true)
CARRIED(subc_cc, a - b - in, true, true)
CARRIED(subc, a - b - in, true, false)
CARRIED(mad_lo_cc, (u32)(a *b) + c, false, true)
CARRIED(madc_lo_cc, (u32)(a *b) + c + in, true, true)
CARRIED(madc_hi_cc, (a * b >> 32) + c + in, true, true)
CARRIED(madc_hi, (a * b >> 32) + c + in, true, false)

// --- floats

// Of a zero of each sign the positive one is the larger; a NaN loses.
static float larger(float a, float b) {
    if (isnan(a)) return isnan(b) ? NAN : b;
    if (isnan(b)) return a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}
static float smaller(float a, float b) {
    if (isnan(a)) return isnan(b) ? NAN : b;
    if (isnan(b)) return a;
    return a < b || (a == b && signbit(a)) ? a : b;
}
static float saturated(float a) { return a > 0 ? (a < 1 ? a : 1) : 0; } // a NaN is 0
static float flushed(float a) { return fabsf(a) < 0x1p-126f ? copysignf(0, a) : a; }
static float exp2_nearest(float a) { return (float)exp2((double)a); }

BINARY(add_f32, float, float, float, a + b)
BINARY(sub_f32, float, float, float, a - b)
BINARY(mul_f32, float, float, float, a *b)
BINARY(div_f32, float, float, float, a / b)
BINARY(max_f32, float, float, float, larger(a, b))
BINARY(min_f32, float, float, float, smaller(a, b))
BINARY(copysign_f32, float, float, float, copysignf(b, a))
TERNARY(fma_f32, float, float, float, fmaf(a, b, c))
UNARY(neg_f32, u32, u32, a ^ 0x80000000u)
UNARY(abs_f32, u32, u32, a & 0x7fffffffu)
UNARY(sqrt_f32, float, float, sqrtf(a))
UNARY(rcp_f32, float, float, 1.0f / a)
UNARY(rcp_ftz, float, float, flushed(1.0f / flushed(a)))
UNARY(ex2, float, float, exp2_nearest(a))
UNARY(ex2_ftz, float, float, flushed(exp2_nearest(flushed(a))))
BINARY(add_f64, double, double, double, a + b)
BINARY(sub_f64, double, double, double, a - b)
BINARY(mul_f64, double, double, double, a *b)
BINARY(div_f64, double, double, double, a / b)
TERNARY(fma_f64, double, double, double, fma(a, b, c))
UNARY(neg_f64, u64, u64, a ^ (u64)1 << 63)
UNARY(abs_f64, u64, u64, a & ~((u64)1 << 63))
UNARY(sqrt_f64, double, double, sqrt(a))
UNARY(rcp_f64, double, double, 1 / a)

// Rounds down: what expf adds so that the integer part is in the low bits.
static void fma_down_f32(Warp *w, const Instruction *o, uint32_t lanes) {
    float *d = operand_at(w, &o->d[0]);
    const float *a = operand_at(w, &o->s[0]), *b = operand_at(w, &o->s[1]), *c = operand_at(w, &o->s[2]);
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    EACH if (lanes >> l & 1) {
        volatile float x = a[l], y = b[l], z = c[l]; // not moved out of the rounding mode
        d[l] = fmaf(x, y, z);
    }
    fesetround(mode);
}

// --- conversions

static float half_to_float(u32 h) {
    u32 sign = h >> 15 & 1, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    u32 bits = sign << 31 | (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
// Nearest, ties to even; 65520 and more are infinite.
static u32 float_to_half(float f) {
    u32 sign = signbit(f) ? 0x8000 : 0;
    double a = fabs((double)f);
    if (isnan(f)) return 0x7fff;
    if (a >= 65520) return sign | 0x7c00;
    if (a < 0x1p-14) return sign | (u32)nearbyint(a * 0x1p24);
    int e = ilogb(a);
    u32 fraction = (u32)nearbyint(ldexp(a, 10 - e)); // 1024 to 2048
    return sign | (((u32)(e + 14) << 10) + fraction);
}
static u32 float_to_bf16(float f) {
    u32 u;
    memcpy(&u, &f, 4);
    if (isnan(f)) return 0x7fff;
    return (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
// Products are exact. Where a float doesn't hold the sum, it gets a last bit of 1, on the sum's side of the
// nearest one: then the second rounding is as if it were the only one.
static u32 bf16_fma(u32 a, u32 b, u32 c) {
    u32 bits[3] = {a << 16, b << 16, c << 16}, last;
    float x[3];
    memcpy(x, bits, sizeof x);
    double product = (double)x[0] * (double)x[1], add = (double)x[2], sum = product + add;
    double lost = fabs(product) > fabs(add) ? add - (sum - product) : product - (sum - add);
    float near = (float)sum;
    double rest = (double)near == sum ? lost : sum - (double)near;
    memcpy(&last, &near, sizeof last);
    if (rest != 0 && !(last & 1)) near = nextafterf(near, rest > 0 ? INFINITY : -INFINITY);
    return float_to_bf16(near);
}
// A NaN gives 0, what is out of range the nearest there is.
static i32 to_s32(double a) {
    return isnan(a) ? 0 : a >= 0x1p31 ? INT32_MAX : a <= -0x1p31 ? INT32_MIN : (i32)a;
}
static u32 to_u32(double a) { return !(a > 0) ? 0 : a >= 0x1p32 ? UINT32_MAX : (u32)a; }
static u64 to_u64(double a) { return !(a > 0) ? 0 : a >= 0x1p64 ? UINT64_MAX : (u64)a; }
static i64 to_s64(double a) {
    return isnan(a) ? 0 : a >= 0x1p63 ? INT64_MAX : a <= -0x1p63 ? INT64_MIN : (i64)a;
}

UNARY(s64_s32, u64, i32, (i64)a)
UNARY(u64_u32, u64, u32, a)
UNARY(u32_u64, u32, u64, a)
UNARY(u16_u32, u32, u32, a & 0xffff)
UNARY(u16_u64, u32, u64, a & 0xffff)
UNARY(s32_s16, u32, u32, (i32)(int16_t)a)
UNARY(s64_s16, u64, u32, (i64)(int16_t)a)
UNARY(u8_u32, u32, u32, a & 0xff)
UNARY(f64_f32, double, float, a)
UNARY(f32_f64, float, double, a)
UNARY(f32_f16, float, u32, half_to_float(a))
UNARY(f16_f32, u32, float, float_to_half(a))
UNARY(bf16_f32, u32, float, float_to_bf16(a))
BINARY(f16x2_f32, u32, float, float, float_to_half(a) << 16 | float_to_half(b))
BINARY(bf16x2_f32, u32, float, float, float_to_bf16(a) << 16 | float_to_bf16(b))
TERNARY(fma_bf16x2, u32, u32, u32, bf16_fma(a >> 16, b >> 16, c >> 16) << 16 | bf16_fma(a, b, c))
UNARY(f32_s32, float, i32, a)
UNARY(f32_u32, float, u32, a)
UNARY(f64_s32, double, i32, a)
UNARY(f64_u32, double, u32, a)
UNARY(f64_u64, double, u64, a)
UNARY(f64_s64, double, i64, a)
UNARY(rzi_s32_f32, u32, float, to_s32(trunc((double)a)))
UNARY(rni_s32_f32, u32, float, to_s32(nearbyint((double)a)))
UNARY(rzi_u32_f32, u32, float, to_u32(trunc((double)a)))
UNARY(rzi_s32_f64, u32, double, to_s32(trunc(a)))
UNARY(rni_s32_f64, u32, double, to_s32(nearbyint(a)))
UNARY(rzi_u64_f64, u64, double, to_u64(trunc(a)))
UNARY(rzi_s64_f64, u64, double, to_s64(trunc(a)))
UNARY(rpi_f64, double, double, ceil(a))
UNARY(rmi_f32, float, float, floorf(a))
UNARY(rni_f32, float, float, nearbyintf(a))
UNARY(sat_f32, float, float, saturated(a))

void narrow_to_word(Warp *w, const Instruction *o, uint32_t lanes) { u32_u64(w, o, lanes); }

// --- comparisons and choices

#define COMPARES(A, suffix)         \
    COMPARE(eq_##suffix, A, a == b) \
    COMPARE(ne_##suffix, A, a != b) \
    COMPARE(lt_##suffix, A, a < b)  \
    COMPARE(le_##suffix, A, a <= b) \
    COMPARE(gt_##suffix, A, a > b)  \
    COMPARE(ge_##suffix, A, a >= b)
COMPARES(i32, s32)
COMPARES(u32, u32)
COMPARES(i64, s64)
COMPARES(u64, u64)
COMPARE(eq_16, u32, (a & 0xffff) == (b & 0xffff))
COMPARE(ne_16, u32, (a & 0xffff) != (b & 0xffff))
COMPARE(lt_s16, u32, (int16_t)a < (int16_t)b)
COMPARE(gt_s16, u32, (int16_t)a > (int16_t)b)
COMPARE(lt_u16, u32, (uint16_t)a < (uint16_t)b)
COMPARE(gt_u16, u32, (uint16_t)a > (uint16_t)b)
// Ordered comparisons are false of a NaN, the ..u forms true.
#define FLOAT_COMPARES(A, suffix)                         \
    COMPARE(eq_##suffix, A, a == b)                       \
    COMPARE(ne_##suffix, A, !isunordered(a, b) && a != b) \
    COMPARE(lt_##suffix, A, isless(a, b))                 \
    COMPARE(le_##suffix, A, islessequal(a, b))            \
    COMPARE(gt_##suffix, A, isgreater(a, b))              \
    COMPARE(ge_##suffix, A, isgreaterequal(a, b))         \
    COMPARE(equ_##suffix, A, isunordered(a, b) || a == b) \
    COMPARE(neu_##suffix, A, isunordered(a, b) || a != b) \
    COMPARE(ltu_##suffix, A, !isgreaterequal(a, b))       \
    COMPARE(leu_##suffix, A, !isgreater(a, b))            \
    COMPARE(gtu_##suffix, A, !islessequal(a, b))          \
    COMPARE(geu_##suffix, A, !isless(a, b))               \
    COMPARE(nan_##suffix, A, isunordered(a, b))           \
    COMPARE(num_##suffix, A, !isunordered(a, b))
FLOAT_COMPARES(float, f32)
FLOAT_COMPARES(double, f64)

#define SELECT(name, T)                                                     \
    static void name(Warp *w, const Instruction *o, uint32_t lanes) {       \
        T *d = operand_at(w, &o->d[0]);                                     \
        const T *a = operand_at(w, &o->s[0]), *b = operand_at(w, &o->s[1]); \
        u32 p = *(u32 *)operand_at(w, &o->s[2]);                            \
        BODY(d[l] = p >> l & 1 ? a[l] : b[l])                               \
    }
SELECT(select32, u32)
SELECT(select64, u64)

// --- vectors of registers

void pack_words(Warp *w, const Instruction *o, uint32_t lanes) {
    u64 *d = operand_at(w, &o->d[0]);
    const u32 *a = operand_at(w, &o->s[0]), *b = operand_at(w, &o->s[1]);
    BODY(d[l] = (u64)b[l] << 32 | a[l])
}
void unpack_words(Warp *w, const Instruction *o, uint32_t lanes) {
    u32 *a = operand_at(w, &o->d[0]), *b = operand_at(w, &o->d[1]);
    const u64 *s = operand_at(w, &o->s[0]);
    BODY(u64 x = s[l]; a[l] = (u32)x; b[l] = (u32)(x >> 32))
}
void pack_halves(Warp *w, const Instruction *o, uint32_t lanes) {
    u32 *d = operand_at(w, &o->d[0]);
    const u32 *a = operand_at(w, &o->s[0]), *b = operand_at(w, &o->s[1]);
    BODY(d[l] = b[l] << 16 | (a[l] & 0xffff))
}
void unpack_halves(Warp *w, const Instruction *o, uint32_t lanes) {
    u32 *a = operand_at(w, &o->d[0]), *b = operand_at(w, &o->d[1]);
    const u32 *s = operand_at(w, &o->s[0]);
    BODY(u32 x = s[l]; a[l] = x & 0xffff; b[l] = x >> 16)
}

// --- the table

enum { QUICK = QUICK_CYCLES, SLOW = SLOW_CYCLES, WIDE = WIDE_CYCLES, DIVISION = DIVISION_CYCLES };

#define COMPARE_FORMS(type, suffix, operands)                             \
    {"setp.eq." type, eq_##suffix, operands, COUNT_COMPARE, QUICK},       \
        {"setp.ne." type, ne_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.lt." type, lt_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.le." type, le_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.gt." type, gt_##suffix, operands, COUNT_COMPARE, QUICK}, { \
        "setp.ge." type, ge_##suffix, operands, COUNT_COMPARE, QUICK      \
    }
#define UNORDERED_FORMS(type, suffix, operands)                             \
    {"setp.equ." type, equ_##suffix, operands, COUNT_COMPARE, QUICK},       \
        {"setp.neu." type, neu_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.ltu." type, ltu_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.leu." type, leu_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.gtu." type, gtu_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.geu." type, geu_##suffix, operands, COUNT_COMPARE, QUICK},   \
        {"setp.nan." type, nan_##suffix, operands, COUNT_COMPARE, QUICK}, { \
        "setp.num." type, num_##suffix, operands, COUNT_COMPARE, QUICK      \
    }

static const Arithmetic FORMS[] = {
    {"mov.u32", copy32, "ww", COUNT_MOVE, QUICK},
    {"mov.s32", copy32, "ww", COUNT_MOVE, QUICK},
    {"mov.b32", copy32, "ww", COUNT_MOVE, QUICK},
    {"mov.f32", copy32, "ww", COUNT_MOVE, QUICK},
    {"mov.u16", copy32, "hh", COUNT_MOVE, QUICK},
    {"mov.b16", copy32, "hh", COUNT_MOVE, QUICK},
    {"mov.u64", copy64, "dd", COUNT_MOVE, QUICK},
    {"mov.b64", copy64, "dd", COUNT_MOVE, QUICK},
    {"mov.f64", copy64, "dd", COUNT_MOVE, QUICK},
    {"mov.pred", copy_p, "pp", COUNT_MOVE, QUICK},
    {"cvta.to.global.u64", copy64, "dd", COUNT_MOVE, QUICK},
    {"cvta.global.u64", copy64, "dd", COUNT_MOVE, QUICK},
    {"cvta.local.u64", copy64, "dd", COUNT_MOVE, QUICK}, // and back, for no generic access
    {"cvta.to.local.u64", copy64, "dd", COUNT_MOVE, QUICK},
    {"add.s32", add32, "www", COUNT_INTEGER, QUICK},
    {"add.u32", add32, "www", COUNT_INTEGER, QUICK},
    {"add.s64", add64, "ddd", COUNT_INTEGER, QUICK},
    {"add.u64", add64, "ddd", COUNT_INTEGER, QUICK},
    {"add.s16", add16, "hhh", COUNT_INTEGER, QUICK},
    {"sub.s16", sub16, "hhh", COUNT_INTEGER, QUICK},
    {"mul.lo.s16", mul16, "hhh", COUNT_INTEGER, QUICK},
    {"add.u16", add16, "hhh", COUNT_INTEGER, QUICK},
    {"sub.s32", sub32, "www", COUNT_INTEGER, QUICK},
    {"sub.u32", sub32, "www", COUNT_INTEGER, QUICK},
    {"sub.s64", sub64, "ddd", COUNT_INTEGER, QUICK},
    {"sub.u64", sub64, "ddd", COUNT_INTEGER, QUICK},
    {"mul.lo.s32", mul32, "www", COUNT_INTEGER, QUICK},
    {"mul.lo.u32", mul32, "www", COUNT_INTEGER, QUICK},
    {"mul.lo.s64", mul64, "ddd", COUNT_INTEGER, WIDE},
    {"mul.lo.u64", mul64, "ddd", COUNT_INTEGER, WIDE},
    {"mul.hi.s32", high_s32, "www", COUNT_INTEGER, WIDE},
    {"mul.hi.u32", high_u32, "www", COUNT_INTEGER, WIDE},
    {"mul.wide.s32", wide_s32, "dww", COUNT_INTEGER, QUICK},
    {"mul.wide.u16", wide_u16, "whh", COUNT_INTEGER, QUICK},
    {"mul.wide.u32", wide_u32, "dww", COUNT_INTEGER, QUICK},
    {"mad.lo.s32", mad32, "wwww", COUNT_INTEGER, QUICK},
    {"mad.lo.u32", mad32, "wwww", COUNT_INTEGER, QUICK},
    {"mad.lo.s64", mad64, "dddd", COUNT_INTEGER, WIDE},
    {"mad.lo.u64", mad64, "dddd", COUNT_INTEGER, WIDE},
    {"mad.wide.s32", mad_wide_s32, "dwwd", COUNT_INTEGER, QUICK},
    {"mad.wide.u32", mad_wide_u32, "dwwd", COUNT_INTEGER, QUICK},
    {"neg.s32", negate32, "ww", COUNT_INTEGER, QUICK},
    {"neg.s64", negate64, "dd", COUNT_INTEGER, QUICK},
    {"abs.s32", abs_s32, "ww", COUNT_INTEGER, QUICK},
    {"min.s32", min_s32, "www", COUNT_INTEGER, QUICK},
    {"max.s32", max_s32, "www", COUNT_INTEGER, QUICK},
    {"min.u32", min_u32, "www", COUNT_INTEGER, QUICK},
    {"max.u32", max_u32, "www", COUNT_INTEGER, QUICK},
    {"min.s64", min_s64, "ddd", COUNT_INTEGER, WIDE},
    {"max.s64", max_s64, "ddd", COUNT_INTEGER, WIDE},
    {"min.u64", min_u64, "ddd", COUNT_INTEGER, WIDE},
    {"max.u64", max_u64, "ddd", COUNT_INTEGER, WIDE},
    {"div.s32", div_s32, "www", COUNT_SPECIAL, DIVISION},
    {"div.u32", div_u32, "www", COUNT_SPECIAL, DIVISION},
    {"div.s64", div_s64, "ddd", COUNT_SPECIAL, DIVISION},
    {"div.u64", div_u64, "ddd", COUNT_SPECIAL, DIVISION},
    {"rem.s32", rem_s32, "www", COUNT_SPECIAL, DIVISION},
    {"rem.u32", rem_u32, "www", COUNT_SPECIAL, DIVISION},
    {"rem.s64", rem_s64, "ddd", COUNT_SPECIAL, DIVISION},
    {"rem.u64", rem_u64, "ddd", COUNT_SPECIAL, DIVISION},
    {"and.b16", and16, "hhh", COUNT_INTEGER, QUICK},
    {"and.b32", and32, "www", COUNT_INTEGER, QUICK},
    {"and.b64", and64, "ddd", COUNT_INTEGER, QUICK},
    {"or.b16", or16, "hhh", COUNT_INTEGER, QUICK},
    {"or.b32", or32, "www", COUNT_INTEGER, QUICK},
    {"or.b64", or64, "ddd", COUNT_INTEGER, QUICK},
    {"xor.b16", xor16, "hhh", COUNT_INTEGER, QUICK},
    {"xor.b32", xor32, "www", COUNT_INTEGER, QUICK},
    {"xor.b64", xor64, "ddd", COUNT_INTEGER, QUICK},
    {"not.b32", not32, "ww", COUNT_INTEGER, QUICK},
    {"not.b64", not64, "dd", COUNT_INTEGER, QUICK},
    {"and.pred", and_p, "ppp", COUNT_COMPARE, QUICK},
    {"or.pred", or_p, "ppp", COUNT_COMPARE, QUICK},
    {"xor.pred", xor_p, "ppp", COUNT_COMPARE, QUICK},
    {"not.pred", not_p, "pp", COUNT_COMPARE, QUICK},
    {"shl.b32", shl32, "www", COUNT_INTEGER, QUICK},
    {"shl.b64", shl64, "ddw", COUNT_INTEGER, QUICK},
    {"shl.b16", shl16, "hhw", COUNT_INTEGER, QUICK},
    {"shr.u16", shr_u16, "hhw", COUNT_INTEGER, QUICK},
    {"shr.u32", shr_u32, "www", COUNT_INTEGER, QUICK},
    {"shr.s32", shr_s32, "www", COUNT_INTEGER, QUICK},
    {"shr.b32", shr_u32, "www", COUNT_INTEGER, QUICK},
    {"shr.u64", shr_u64, "ddw", COUNT_INTEGER, QUICK},
    {"shr.s64", shr_s64, "ddw", COUNT_INTEGER, QUICK},
    {"shr.b64", shr_u64, "ddw", COUNT_INTEGER, QUICK},
    {"bfi.b32", bfi32, "wwwww", COUNT_INTEGER, QUICK},
    {"bfi.b64", bfi64, "dddww", COUNT_INTEGER, WIDE},
    {"prmt.b32", prmt, "wwww", COUNT_INTEGER, QUICK},
    {"lop3.b32", lop3, "wwwww", COUNT_INTEGER, QUICK},
    {"clz.b32", clz32, "ww", COUNT_SPECIAL, SLOW},
    {"clz.b64", clz64, "wd", COUNT_SPECIAL, SLOW},
    {"popc.b32", popc32, "ww", COUNT_SPECIAL, SLOW},
    {"popc.b64", popc64, "wd", COUNT_SPECIAL, SLOW},
    {"add.cc.u32", add_cc, "www", COUNT_INTEGER, QUICK},
    {"addc.cc.u32", addc_cc, "www", COUNT_INTEGER, QUICK},
    {"addc.u32", addc, "www", COUNT_INTEGER, QUICK},
    {"sub.cc.u32", sub_cc, "www", COUNT_INTEGER, QUICK},
    {"subc.cc.u32", subc_cc, "www", COUNT_INTEGER, QUICK},
    {"subc.u32", subc, "www", COUNT_INTEGER, QUICK},
    {"mad.lo.cc.u32", mad_lo_cc, "wwww", COUNT_INTEGER, QUICK},
    {"madc.lo.cc.u32", madc_lo_cc, "wwww", COUNT_INTEGER, QUICK},
    {"madc.hi.cc.u32", madc_hi_cc, "wwww", COUNT_INTEGER, WIDE},
    {"madc.hi.u32", madc_hi, "wwww", COUNT_INTEGER, WIDE},
    {"add.rn.f32", add_f32, "www", COUNT_FLOAT, QUICK},
    {"add.f32", add_f32, "www", COUNT_FLOAT, QUICK},
    {"sub.rn.f32", sub_f32, "www", COUNT_FLOAT, QUICK},
    {"sub.f32", sub_f32, "www", COUNT_FLOAT, QUICK},
    {"mul.rn.f32", mul_f32, "www", COUNT_FLOAT, QUICK},
    {"mul.f32", mul_f32, "www", COUNT_FLOAT, QUICK},
    {"fma.rn.f32", fma_f32, "wwww", COUNT_FLOAT, QUICK},
    {"fma.rn.bf16x2", fma_bf16x2, "wwww", COUNT_FLOAT, QUICK},
    {"fma.rm.f32", fma_down_f32, "wwww", COUNT_FLOAT, QUICK},
    {"max.f32", max_f32, "www", COUNT_FLOAT, QUICK},
    {"min.f32", min_f32, "www", COUNT_FLOAT, QUICK},
    {"neg.f32", neg_f32, "ww", COUNT_FLOAT, QUICK},
    {"abs.f32", abs_f32, "ww", COUNT_FLOAT, QUICK},
    {"copysign.f32", copysign_f32, "www", COUNT_FLOAT, QUICK},
    {"div.rn.f32", div_f32, "www", COUNT_SPECIAL, DIVISION},
    {"sqrt.rn.f32", sqrt_f32, "ww", COUNT_SPECIAL, DIVISION},
    {"rcp.rn.f32", rcp_f32, "ww", COUNT_SPECIAL, DIVISION},
    {"rcp.approx.ftz.f32", rcp_ftz, "ww", COUNT_SPECIAL, SLOW},
    {"ex2.approx.f32", ex2, "ww", COUNT_SPECIAL, SLOW},
    {"ex2.approx.ftz.f32", ex2_ftz, "ww", COUNT_SPECIAL, SLOW},
    {"add.rn.f64", add_f64, "ddd", COUNT_DOUBLE, WIDE},
    {"sub.rn.f64", sub_f64, "ddd", COUNT_DOUBLE, WIDE},
    {"mul.rn.f64", mul_f64, "ddd", COUNT_DOUBLE, WIDE},
    {"fma.rn.f64", fma_f64, "dddd", COUNT_DOUBLE, WIDE},
    {"div.rn.f64", div_f64, "ddd", COUNT_SPECIAL, DIVISION},
    {"sqrt.rn.f64", sqrt_f64, "dd", COUNT_SPECIAL, DIVISION},
    {"rcp.rn.f64", rcp_f64, "dd", COUNT_SPECIAL, DIVISION},
    {"neg.f64", neg_f64, "dd", COUNT_DOUBLE, WIDE},
    {"abs.f64", abs_f64, "dd", COUNT_DOUBLE, WIDE},
    {"cvt.s64.s32", s64_s32, "dw", COUNT_INTEGER, QUICK},
    {"cvt.u64.u32", u64_u32, "dw", COUNT_INTEGER, QUICK},
    {"cvt.u32.u64", u32_u64, "wd", COUNT_INTEGER, QUICK},
    {"cvt.s32.s64", u32_u64, "wd", COUNT_INTEGER, QUICK},
    {"cvt.u16.u32", u16_u32, "hw", COUNT_INTEGER, QUICK},
    {"cvt.u16.u64", u16_u64, "hd", COUNT_INTEGER, QUICK},
    {"cvt.u32.u16", u16_u32, "wh", COUNT_INTEGER, QUICK},
    {"cvt.s32.s16", s32_s16, "wh", COUNT_INTEGER, QUICK},
    {"cvt.s64.s16", s64_s16, "dh", COUNT_INTEGER, QUICK},
    {"cvt.u64.u16", u64_u32, "dh", COUNT_INTEGER, QUICK},
    {"cvt.u32.u8", u8_u32, "wh", COUNT_INTEGER, QUICK},
    {"cvt.u16.u8", u8_u32, "hh", COUNT_INTEGER, QUICK},
    {"cvt.f64.f32", f64_f32, "dw", COUNT_DOUBLE, WIDE},
    {"cvt.rn.f32.f64", f32_f64, "wd", COUNT_DOUBLE, WIDE},
    {"cvt.f32.f16", f32_f16, "wh", COUNT_FLOAT, QUICK},
    {"cvt.rn.f16.f32", f16_f32, "hw", COUNT_FLOAT, QUICK},
    {"cvt.rn.bf16.f32", bf16_f32, "hw", COUNT_FLOAT, QUICK},
    {"cvt.rn.f16x2.f32", f16x2_f32, "www", COUNT_FLOAT, QUICK},
    {"cvt.rn.bf16x2.f32", bf16x2_f32, "www", COUNT_FLOAT, QUICK},
    {"cvt.rn.f32.s32", f32_s32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rn.f32.u32", f32_u32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rn.f64.s32", f64_s32, "dw", COUNT_DOUBLE, SLOW},
    {"cvt.rn.f64.u32", f64_u32, "dw", COUNT_DOUBLE, SLOW},
    {"cvt.rn.f64.u64", f64_u64, "dd", COUNT_DOUBLE, SLOW},
    {"cvt.rn.f64.s64", f64_s64, "dd", COUNT_DOUBLE, SLOW},
    {"cvt.rzi.s32.f32", rzi_s32_f32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rni.s32.f32", rni_s32_f32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rzi.u32.f32", rzi_u32_f32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rzi.s32.f64", rzi_s32_f64, "wd", COUNT_DOUBLE, SLOW},
    {"cvt.rni.s32.f64", rni_s32_f64, "wd", COUNT_DOUBLE, SLOW},
    {"cvt.rzi.u64.f64", rzi_u64_f64, "dd", COUNT_DOUBLE, SLOW},
    {"cvt.rzi.s64.f64", rzi_s64_f64, "dd", COUNT_DOUBLE, SLOW},
    {"cvt.rpi.f64.f64", rpi_f64, "dd", COUNT_DOUBLE, SLOW},
    {"cvt.rmi.f32.f32", rmi_f32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.rni.f32.f32", rni_f32, "ww", COUNT_FLOAT, SLOW},
    {"cvt.sat.f32.f32", sat_f32, "ww", COUNT_FLOAT, QUICK},
    COMPARE_FORMS("s32", s32, "pww"),
    COMPARE_FORMS("u32", u32, "pww"),
    COMPARE_FORMS("s64", s64, "pdd"),
    COMPARE_FORMS("u64", u64, "pdd"),
    COMPARE_FORMS("f32", f32, "pww"),
    COMPARE_FORMS("f64", f64, "pdd"),
    UNORDERED_FORMS("f32", f32, "pww"),
    UNORDERED_FORMS("f64", f64, "pdd"),
    {"setp.eq.b32", eq_u32, "pww", COUNT_COMPARE, QUICK},
    {"setp.ne.b32", ne_u32, "pww", COUNT_COMPARE, QUICK},
    {"setp.eq.b64", eq_u64, "pdd", COUNT_COMPARE, QUICK},
    {"setp.ne.b64", ne_u64, "pdd", COUNT_COMPARE, QUICK},
    {"setp.eq.s16", eq_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.eq.u16", eq_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.eq.b16", eq_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.ne.s16", ne_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.ne.u16", ne_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.ne.b16", ne_16, "phh", COUNT_COMPARE, QUICK},
    {"setp.lt.s16", lt_s16, "phh", COUNT_COMPARE, QUICK},
    {"setp.gt.s16", gt_s16, "phh", COUNT_COMPARE, QUICK},
    {"setp.lt.u16", lt_u16, "phh", COUNT_COMPARE, QUICK},
    {"setp.gt.u16", gt_u16, "phh", COUNT_COMPARE, QUICK},
    {"selp.b16", select32, "hhhp", COUNT_INTEGER, QUICK},
    {"selp.u16", select32, "hhhp", COUNT_INTEGER, QUICK},
    {"selp.b32", select32, "wwwp", COUNT_INTEGER, QUICK},
    {"selp.u32", select32, "wwwp", COUNT_INTEGER, QUICK},
    {"selp.s32", select32, "wwwp", COUNT_INTEGER, QUICK},
    {"selp.f32", select32, "wwwp", COUNT_INTEGER, QUICK},
    {"selp.b64", select64, "dddp", COUNT_INTEGER, QUICK},
    {"selp.u64", select64, "dddp", COUNT_INTEGER, QUICK},
    {"selp.s64", select64, "dddp", COUNT_INTEGER, QUICK},
    {"selp.f64", select64, "dddp", COUNT_INTEGER, QUICK},
};

const Arithmetic *form_find(const char *opcode) {
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
        if (strcmp(FORMS[i].opcode, opcode) == 0) return &FORMS[i];
    return NULL;
}
