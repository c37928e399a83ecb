// Products with codes of 8 and 4 bits (engine/model/tensor.h) in lanes; part of each kernel set.
//
// For one group of rows, codes become bf16 values in registers, a step of LANE_PAIRS columns at a time, and
// are summed as product_block sums such values. For more rows, values of a few outputs are written to scratch
// memory that the second-level cache holds, and product_of reads them there: they are decoded once for all
// rows. Both ways are the sums of the product with bf16 weights, in the same order.
//
// Four bits: the sixteen values of a group are a table, and the codes look them up. Floor: bytes / memory
// bandwidth; a step takes about 8 instructions for each output, which is less than its bytes take.
#pragma once
#include "engine/cpu/kernels/product.h"

enum { SCALES = 16 }; // groups whose scales are read at a time

typedef struct GroupScales {
    float scale[SCALES], low[SCALES];
} GroupScales;

// Groups [first, first + count) of a row, count <= SCALES.
INLINE void read_scales(const Tensor *w, const unsigned char *of_row, int first, int count,
                        GroupScales *out) {
    if (w->codes.kind == SCALES_F16) {
        uint16_t half[SCALES] = {0};
        memcpy(half, of_row + (size_t)first * sizeof *half, (size_t)count * sizeof *half);
        Lanes scale = lanes_f16(half);
        lanes_store(out->scale, scale);
        lanes_store(out->low,
                    w->codes.bits == 4 ? lanes_fma(scale, lanes_set(-8), lanes_set(0)) : lanes_set(0));
        return;
    }
    Tensor row = *w;
    row.codes.scales = of_row;
    for (int i = 0; i < count; i++) {
        ScalePair pair = tensor_scale(&row, 0, (size_t)(first + i));
        out->scale[i] = pair.scale;
        out->low[i] = pair.low;
    }
}

// --- a step of codes as values; scale and low of its first and its second half of columns

typedef struct StepScale {
    float scale[2], low[2];
} StepScale;

#if defined(__AVX512F__)
static inline Lanes lanes_halves(float a, float b) {
    return _mm512_insertf32x8(_mm512_set1_ps(a), _mm256_set1_ps(b), 1);
}
static inline Lanes lanes_bf16_round(Lanes x) {
    __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
    __m512i up =
        _mm512_add_epi32(_mm512_and_si512(_mm512_srli_epi32(bits, 16), one), _mm512_set1_epi32(0x7fff));
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_add_epi32(bits, up), _mm512_set1_epi32(-65536)));
}
static inline __m512 table_of_16(float scale, float low) {
    const __m512 codes = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_fmadd_ps(codes, _mm512_set1_ps(scale), _mm512_set1_ps(low));
}

// The values of even and odd columns.
INLINE void decode_step(int bits, const unsigned char *codes, const StepScale *s, Lanes out[2]) {
    if (bits == 4) {
        __m512 table = lanes_bf16_round(table_of_16(s->scale[0], s->low[0]));
        __m512i i = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
        out[0] = _mm512_permutexvar_ps(i, table);
        out[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(i, 4), table);
        return;
    }
    __m512i pair = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)codes));
    __m512i even = _mm512_srai_epi32(_mm512_slli_epi32(pair, 24), 24), odd = _mm512_srai_epi32(pair, 8);
    Lanes scale = lanes_halves(s->scale[0], s->scale[1]), low = lanes_halves(s->low[0], s->low[1]);
    out[0] = lanes_bf16_round(_mm512_fmadd_ps(_mm512_cvtepi32_ps(even), scale, low));
    out[1] = lanes_bf16_round(_mm512_fmadd_ps(_mm512_cvtepi32_ps(odd), scale, low));
}
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    return _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(even), 16), _mm512_castps_si512(odd)));
}

#if defined(__AVX512BF16__)
// The values as 32 neighbours in bf16. Indexes into the table have five bits: the fifth is the next code's.
#define DECODES_PAIRS
INLINE Lanes decode_pairs(int bits, const unsigned char *codes, const StepScale *s) {
    if (bits == 4) {
        __m256i half = (__m256i)_mm512_cvtneps_pbh(table_of_16(s->scale[0], s->low[0]));
        __m512i table = _mm512_inserti64x4(_mm512_castsi256_si512(half), half, 1);
        __m512i i = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)codes));
        i = _mm512_or_si512(i, _mm512_slli_epi32(i, 12));
        return _mm512_castsi512_ps(_mm512_permutexvar_epi16(i, table));
    }
    const __m128i *at = (const __m128i *)(const void *)codes;
    __m512 a = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
    __m512 b = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at + 1)));
    a = _mm512_fmadd_ps(a, _mm512_set1_ps(s->scale[0]), _mm512_set1_ps(s->low[0]));
    b = _mm512_fmadd_ps(b, _mm512_set1_ps(s->scale[1]), _mm512_set1_ps(s->low[1]));
    return _mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(b, a));
}
#endif

#elif defined(__AVX2__)
static inline __m256 round_8(__m256 x) {
    __m256i bits = _mm256_castps_si256(x), one = _mm256_set1_epi32(1);
    __m256i up =
        _mm256_add_epi32(_mm256_and_si256(_mm256_srli_epi32(bits, 16), one), _mm256_set1_epi32(0x7fff));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_add_epi32(bits, up), _mm256_set1_epi32(-65536)));
}
static inline __m256 value_8(__m256i code, float scale, float low) {
    return round_8(_mm256_fmadd_ps(_mm256_cvtepi32_ps(code), _mm256_set1_ps(scale), _mm256_set1_ps(low)));
}
// Codes 0 to 7 are in `a`, the others in `b`.
static inline __m256 look_up(__m256 a, __m256 b, __m256i i) {
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(a, i), _mm256_permutevar8x32_ps(b, i),
                            _mm256_castsi256_ps(_mm256_slli_epi32(i, 28)));
}
INLINE void decode_step(int bits, const unsigned char *codes, const StepScale *s, Lanes out[2]) {
    if (bits == 4) {
        const __m256i first = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        __m256 a = value_8(first, s->scale[0], s->low[0]);
        __m256 b = value_8(_mm256_add_epi32(first, _mm256_set1_epi32(8)), s->scale[0], s->low[0]);
        __m256i i = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)codes));
        __m256i j = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(codes + 8)));
        out[0] = (Lanes){look_up(a, b, i), look_up(a, b, j)};
        out[1] = (Lanes){look_up(a, b, _mm256_srli_epi32(i, 4)), look_up(a, b, _mm256_srli_epi32(j, 4))};
        return;
    }
    const __m128i *at = (const __m128i *)(const void *)codes;
    __m256i i = _mm256_cvtepi16_epi32(_mm_loadu_si128(at)),
            j = _mm256_cvtepi16_epi32(_mm_loadu_si128(at + 1));
    out[0] = (Lanes){value_8(_mm256_srai_epi32(_mm256_slli_epi32(i, 24), 24), s->scale[0], s->low[0]),
                     value_8(_mm256_srai_epi32(_mm256_slli_epi32(j, 24), 24), s->scale[1], s->low[1])};
    out[1] = (Lanes){value_8(_mm256_srai_epi32(i, 8), s->scale[0], s->low[0]),
                     value_8(_mm256_srai_epi32(j, 8), s->scale[1], s->low[1])};
}
static inline __m256 join_8(__m256 even, __m256 odd) {
    return _mm256_castsi256_ps(
        _mm256_or_si256(_mm256_srli_epi32(_mm256_castps_si256(even), 16), _mm256_castps_si256(odd)));
}
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    return (Lanes){join_8(even.a, odd.a), join_8(even.b, odd.b)};
}

#else
// In C that compilers lower to vectors. Values are finite, so rounding needs no case for NaN.
INLINE void decode_step(int bits, const unsigned char *codes, const StepScale *s, Lanes out[2]) {
    float even[LANES], odd[LANES];
    for (int h = 0; h < 2; h++) {
        float scale = s->scale[h], low = s->low[h];
        for (int i = h * LANES / 2; i < (h + 1) * LANES / 2; i++) {
            int a = bits == 4 ? codes[i] & 15 : (int8_t)codes[2 * i];
            int b = bits == 4 ? codes[i] >> 4 : (int8_t)codes[2 * i + 1];
            even[i] = (float)a * scale + low;
            odd[i] = (float)b * scale + low;
        }
    }
    for (int h = 0; h < 2; h++) {
        uint32_t word[LANES];
        memcpy(word, h ? odd : even, sizeof word);
        for (int i = 0; i < LANES; i++) word[i] = (word[i] + 0x7fffu + (word[i] >> 16 & 1u)) & 0xffff0000u;
        memcpy(&out[h], word, sizeof word);
    }
}
static inline Lanes lanes_join(Lanes even, Lanes odd) {
    uint32_t a[LANES], b[LANES];
    memcpy(a, &even, sizeof a);
    memcpy(b, &odd, sizeof b);
    for (int i = 0; i < LANES; i++) a[i] = a[i] >> 16 | b[i];
    memcpy(&even, a, sizeof a);
    return even;
}
#endif

#if !defined(DECODES_PAIRS)
INLINE Lanes decode_pairs(int bits, const unsigned char *codes, const StepScale *s) {
    Lanes value[2];
    decode_step(bits, codes, s, value);
    return lanes_join(value[0], value[1]);
}
#endif

INLINE StepScale step_scale(const GroupScales *s, int column, int group) {
    int a = column / group, b = (column + LANE_PAIRS / 2) / group;
    return (StepScale){{s->scale[a], s->scale[b]}, {s->low[a], s->low[b]}};
}

// --- values in scratch memory

// Rows [first, first + count) as bf16, one after another.
INLINE void decode_rows_of(int bits, const Tensor *w, int first, int count, uint16_t *out) {
    int group = w->codes.group, span = SCALES * group;
    for (int r = first; r < first + count; r++) {
        Tensor row = tensor_rows(w, r, 1);
        const unsigned char *codes = row.data;
        for (int k = 0; k < w->columns; k += span) {
            GroupScales scales;
            int end = w->columns - k < span ? w->columns - k : span;
            read_scales(w, row.codes.scales, k / group, end / group, &scales);
            for (int i = 0; i < end; i += LANE_PAIRS, out += LANE_PAIRS, codes += LANE_PAIRS * bits / 8) {
                StepScale s = step_scale(&scales, i, group);
                lanes_store((float *)(void *)out, decode_pairs(bits, codes, &s));
            }
        }
    }
}
static __attribute__((noinline)) void decode_rows(const Tensor *w, int first, int count, uint16_t *out) {
    if (w->codes.bits == 8) decode_rows_of(8, w, first, count, out);
    else decode_rows_of(4, w, first, count, out);
}

// --- values in registers

// Adds half a step of values to all sums of a block; pairs are added as one half.
INLINE void add_values(Form form, int outputs, int rows, Lanes (*weight)[2], const unsigned char *x, int half,
                       Lanes (*sum)[BLOCK_ROWS]) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        Lanes in = lanes_load((const float *)(const void *)(x + (size_t)r * step_bytes(form)) + half * LANES);
#pragma GCC unroll 8
        for (int o = 0; o < outputs; o++)
            sum[o][r] = form == FORM_PAIRS ? lanes_pairs(weight[o][half], in, sum[o][r])
                                           : lanes_fma(weight[o][half], in, sum[o][r]);
    }
}

// Adds a step of codes.
INLINE void add_codes(Form form, int bits, int outputs, int rows, const unsigned char *const *codes,
                      const StepScale *s, const unsigned char *x, Lanes (*sum)[BLOCK_ROWS]) {
    Lanes weight[BLOCK_OUTPUTS][2];
#pragma GCC unroll 8
    for (int o = 0; o < outputs; o++)
        if (form == FORM_PAIRS) weight[o][0] = decode_pairs(bits, codes[o], &s[o]);
        else decode_step(bits, codes[o], &s[o], weight[o]);
    add_values(form, outputs, rows, weight, x, 0, sum);
    if (form != FORM_PAIRS) add_values(form, outputs, rows, weight, x, 1, sum);
}

// `outputs` outputs of all rows; b->w, apart are of codes, scales of the first output's.
INLINE void code_block(Form form, int bits, int outputs, int rows, const Tensor *w, const Block *b,
                       const unsigned char *of_row, size_t scales_apart) {
    const unsigned char *codes[BLOCK_OUTPUTS], *x = b->x;
    int group = w->codes.group, span = SCALES * group;
    Lanes sum[BLOCK_OUTPUTS][BLOCK_ROWS];
    for (int o = 0; o < outputs; o++) {
        codes[o] = b->w + (size_t)o * b->apart;
        for (int r = 0; r < rows; r++) sum[o][r] = lanes_set(0);
    }
    for (int k = 0; k < b->columns; k += span) {
        GroupScales scales[BLOCK_OUTPUTS];
        int end = b->columns - k < span ? b->columns - k : span;
        for (int o = 0; o < outputs; o++) {
            fetch(codes[o] + FETCH_AHEAD_FEW, (size_t)(end * bits / 8));
            read_scales(w, of_row + (size_t)o * scales_apart, k / group, end / group, &scales[o]);
        }
        for (int i = 0; i < end; i += LANE_PAIRS, x += (size_t)rows * step_bytes(form)) {
            StepScale s[BLOCK_OUTPUTS];
            for (int o = 0; o < outputs; o++) s[o] = step_scale(&scales[o], i, group);
            add_codes(form, bits, outputs, rows, codes, s, x, sum);
            for (int o = 0; o < outputs; o++) codes[o] += LANE_PAIRS * bits / 8;
        }
    }
    product_put(outputs, rows, sum, b);
}

INLINE void code_rows(Form form, int bits, int outputs, const Tensor *w, int rows, const Block *b,
                      const unsigned char *scales, size_t apart) {
#define ROWS(count) (count < BLOCK_ROWS ? count : BLOCK_ROWS)
    switch (rows) {
    case 1: code_block(form, bits, outputs, ROWS(1), w, b, scales, apart); break;
    case 2: code_block(form, bits, outputs, ROWS(2), w, b, scales, apart); break;
    case 3: code_block(form, bits, outputs, ROWS(3), w, b, scales, apart); break;
    case 4: code_block(form, bits, outputs, ROWS(4), w, b, scales, apart); break;
    case 5: code_block(form, bits, outputs, ROWS(5), w, b, scales, apart); break;
    case 6: code_block(form, bits, outputs, ROWS(6), w, b, scales, apart); break;
    }
#undef ROWS
}

// The outputs of a block are as far apart as in product_chunk, for the same reason.
INLINE void code_product(Form form, int bits, const Tensor *w, const Packed *p, float *y, size_t stride,
                         int from, int to) {
    int part = (to - from) / BLOCK_OUTPUTS, whole = part * BLOCK_OUTPUTS;
    size_t row = tensor_row_bytes(w), scale = tensor_row_scale_bytes(w);
    Block b = {.columns = w->columns, .stride = stride, .x = p->data};
    for (int i = 0; i < part; i++) {
        Tensor at = tensor_rows(w, from + i, 1);
        b.w = at.data;
        b.y = y + i;
        b.apart = row * (size_t)part;
        b.y_apart = (size_t)part;
        code_rows(form, bits, BLOCK_OUTPUTS, w, p->rows, &b, at.codes.scales, scale * (size_t)part);
    }
    for (int i = from + whole; i < to; i++) {
        Tensor at = tensor_rows(w, i, 1);
        b.w = at.data;
        b.y = y + (i - from);
        code_rows(form, bits, 1, w, p->rows, &b, at.codes.scales, 0);
    }
}

#define PRODUCT(name, form, bits)                                                                         \
    static __attribute__((noinline)) void name(const Tensor *w, const Packed *p, float *y, size_t stride, \
                                               int from, int to) {                                        \
        code_product(form, bits, w, p, y, stride, from, to);                                              \
    }
PRODUCT(codes_8, FORM_BF16, 8)
PRODUCT(codes_4, FORM_BF16, 4)
PRODUCT(pair_codes_8, FORM_PAIRS, 8)
PRODUCT(pair_codes_4, FORM_PAIRS, 4)
#undef PRODUCT

typedef void Multiply(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to);

// Decodes at most `unit` outputs at a time and multiplies them as `multiply` does.
static inline void multiply_decoded(Multiply *multiply, int unit, const Tensor *w, const Packed *p, float *y,
                                    size_t stride, int from, int to) {
    for (int n = from; n < to; n += unit) {
        int count = to - n < unit ? to - n : unit;
        Tensor values = {.data = p->decoded, .dtype = DTYPE_BF16, .rows = count, .columns = w->columns};
        decode_rows(w, n, count, p->decoded);
        multiply(&values, p, y + (n - from), stride, 0, count);
    }
}

// Of any weights: as they are, or coded.
static inline void matmul(const Tensor *w, const Packed *p, float *y, size_t stride, int from, int to) {
    bool pairs = packed_form(p) == FORM_PAIRS;
    if (!w->codes.bits) {
        multiply_values(w, p, y, stride, from, to);
        return;
    }
    if (p->rows <= BLOCK_ROWS) {
        Multiply *fused[2][2] = {{codes_4, codes_8}, {pair_codes_4, pair_codes_8}};
        fused[pairs][w->codes.bits == 8](w, p, y, stride, from, to);
        return;
    }
    int unit =
        at_least(CHUNK_BYTES / 2 / ((size_t)padded_columns(w->columns) * sizeof(uint16_t)), BLOCK_OUTPUTS);
    multiply_decoded(multiply_values, unit < MATMUL_UNIT ? unit : MATMUL_UNIT, w, p, y, stride, from, to);
}
