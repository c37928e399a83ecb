// What a whole warp does together: shuffles, votes, ldmatrix, mma.
#include "tests/ptx/memory.h"

#include <string.h>

// The fragments of ldmatrix and mma: the picture is in engine/cuda/kernels/instructions.cuh. An element of a
// product is summed in double over ascending k and rounded once, as tests/simt does; a card's own rounding is not
// documented.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
void
multiply_add(double d[16][8], const double a[16][16], const double b[16][8]) {
    for (int k = 0; k < 16; k++)
        for (int r = 0; r < 16; r++)
            for (int n = 0; n < 8; n++) d[r][n] += a[r][k] * b[k][n];
}

double half_value(uint32_t bits, bool f16) {
    float f;
    if (!f16) {
        bits <<= 16;
        memcpy(&f, &bits, 4);
        return (double)f;
    }
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent ? (double)(1024 + fraction) : (double)fraction, scale = 0x1p-24;
    for (uint32_t e = 1; e < exponent; e++) scale *= 2;
    if (exponent == 31) value = fraction ? __builtin_nan("") : __builtin_inf();
    return bits >> 15 & 1 ? -value * scale : value * scale;
}

void run_mma(Warp *w, const Instruction *o, uint32_t lanes) {
    const uint32_t *s[10];
    double a[16][16], b[16][8], d[16][8];
    (void)lanes;
    w->mmas++;
    for (int i = 0; i < 10; i++) s[i] = operand_at(w, &o->s[i]);
    for (int t = 0; t < LANES; t++) {
        int g = t / 4, q = t % 4 * 2;
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < 4; i++)
                a[g + i % 2 * 8][q + i / 2 * 8 + h] = half_value(s[i][t] >> 16 * h & 0xffff, o->more);
            for (int i = 0; i < 2; i++)
                b[q + i * 8 + h][g] = half_value(s[4 + i][t] >> 16 * h & 0xffff, o->more);
        }
        for (int i = 0; i < 4; i++) {
            float f;
            memcpy(&f, &s[6 + i][t], 4);
            d[g + i / 2 * 8][q + i % 2] = (double)f;
        }
    }
    multiply_add(d, (const double(*)[16])a, (const double(*)[8])b);
    for (int t = 0; t < LANES; t++)
        for (int i = 0; i < 4; i++)
            ((float *)operand_at(w, &o->d[i]))[t] = (float)d[t / 4 + i / 2 * 8][t % 4 * 2 + i % 2];
}

void run_matrices(Warp *w, const Instruction *o, uint32_t lanes) {
    uint16_t rows[LANES][8];
    Touch rows_at = {.w = w, .bytes = 16, .unwritten = true};
    bool written[LANES], all = true;
    for (int l = 0; l < LANES; l++)
        rows_at.address[l] = shared_place(w, l, operand_lane(w, &o->s[0], l) + (uint64_t)o->offset, false);
    memory_touch_shared(&rows_at, ALL);
    for (int l = 0; l < LANES; l++) {
        memcpy(rows[l], rows_at.at[l], 16);
        written[l] = shared_is_written(rows_at.address[l]);
        all &= written[l];
    }
    for (int i = 0; i < 4; i++) {
        uint32_t *d = operand_at(w, &o->d[i]);
        for (int t = 0; t < LANES; t++) {
            int g = t / 4, q = t % 4 * 2;
            d[t] = o->more ? rows[8 * i + q][g] | (uint32_t)rows[8 * i + q + 1][g] << 16
                           : rows[8 * i + g][q] | (uint32_t)rows[8 * i + g][q + 1] << 16;
            bool known = all || (o->more ? written[8 * i + q] && written[8 * i + q + 1] : written[8 * i + g]);
            if (!known) w->unknown[o->d[i].id] |= 1u << t; // the bit was clear
        }
    }
    count_waves(rows_at.address, lanes, 16);
}

// The lane that each lane takes its value from: of its segment, else itself (PTX ISA, shfl.sync).
static void shuffle_sources(const Warp *w, const Instruction *o, int from[LANES]) {
    const uint32_t *by = operand_at(w, &o->s[1]), *control = operand_at(w, &o->s[2]);
    for (int l = 0; l < LANES; l++) {
        int b = (int)by[l] & 31, segment = (int)control[l] >> 8 & 31, clamp = (int)control[l] & 31,
            first = l & segment, last = first | (clamp & ~segment),
            to = o->more == 0   ? l ^ b
                 : o->more == 1 ? first | (b & ~segment)
                 : o->more == 2 ? l + b
                                : l - b;
        bool inside = o->more == 3 ? to >= last : to <= last;
        from[l] = inside ? to : l;
    }
}

void run_shuffle(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t value[LANES], *d = operand_at(w, &o->d[0]), before = w->unknown[o->s[0].id], unknown = 0;
    int from[LANES];
    memcpy(value, operand_at(w, &o->s[0]), sizeof value);
    shuffle_sources(w, o, from);
    if (lanes == ALL && !before) {
        for (int l = 0; l < LANES; l++) d[l] = value[from[l]];
    } else
        for (int l = 0; l < LANES; l++) {
            if (!(lanes >> l & 1)) continue;
            if (!(lanes >> from[l] & 1)) fault(w, l, "shuffles from lane %d, which takes no part", from[l]);
            d[l] = value[from[l]];
            unknown |= (before >> from[l] & 1) << l;
        }
    w->unknown[o->d[0].id] = (w->unknown[o->d[0].id] & ~lanes) | unknown;
}

void run_ballot(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t *d = operand_at(w, &o->d[0]), p = *(uint32_t *)operand_at(w, &o->s[0]);
    if (o->more) p = ~p;
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) d[l] = p & lanes;
}

void run_elect(Warp *w, const Instruction *o, uint32_t lanes) {
    uint32_t *leader = operand_at(w, &o->d[0]), *p = operand_at(w, &o->d[1]);
    for (int l = 0; l < LANES; l++)
        if (lanes >> l & 1) leader[l] = (uint32_t)__builtin_ctz(lanes);
    *p = (*p & ~lanes) | (lanes & -lanes);
}
