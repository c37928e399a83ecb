// Binds weights that AWQ, GPTQ and compressed-tensors pack into words of 32 bits. A value is
//
//      bf16((code - zero) * scale)      with the scale and the zero point of the column's group
//
//                  codes of                 a word's codes          zero points, by group     scales
//    AWQ           qweight (K, N / 8)       8 rows, taking turns    qzeros (G, N / 8)         scales (G, N)
//    GPTQ          qweight (K / 8, N)       8 columns               qzeros (G, N / 8)         scales (G, N)
//    compressed    weight_packed (N, K / 8) 8 columns               ..zero_point (N / 8, G)   ..scale (N, G)
//
// of a weight of N rows and K columns in G groups: 8 codes of 4 bits or 4 of 8. AWQ's word has rows 0, 2, 4,
// 6, 1, 3, 5, 7 from its low end. GPTQ's first version stores zero points less one. g_idx, if it's there, has
// each column's group.
//
// Codes of 4 bits stay codes: with a scale where all zero points are 8, else with a pair. So do codes of 8
// bits whose zero points are all 128. Others become values, and so do columns in another order than their
// groups, whose scales no kernel could read one after another.
#include "engine/base/memory.h"
#include "engine/model/binding.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WORD = 4, WORD_BITS = 32, TILE = 8 };

// A matrix of words: of codes, or of zero points.
typedef struct Words {
    Found from;
    const unsigned char *data; // NULL: the file has none
    size_t columns;            // words of a row
    int bits;
    bool down;  // the codes of a word are below each other; else side by side
    bool turns; // they take turns as AWQ's
} Words;

typedef struct Packed {
    const WeightSpec *s;
    size_t rows, columns, groups, group; // of the stored weight
    int bits;
    Words codes, zeros;
    bool turned;  // codes, zero points and scales have a column for each row of the weight
    int one_less; // 1: zero points are stored less one
    Found scales;
    Dtype scale_dtype;
    const unsigned char *order; // (columns): groups; NULL: one after another
} Packed;

// --- names

typedef struct PartNames {
    const char *codes, *zeros, *scales, *order, *shape;
} PartNames;

static const PartNames NAMES[] = {
    [PACKED_AWQ] = {"qweight", "qzeros", "scales", NULL, NULL},
    [PACKED_GPTQ] = {"qweight", "qzeros", "scales", "g_idx", NULL},
    [PACKED_TENSORS] = {"weight_packed", "weight_zero_point", "weight_scale", "weight_g_idx", "weight_shape"},
};

// The name of a weight's part, in place of its "weight"; false without such a part.
static bool part_name(const WeightSpec *s, const char *part, char out[TENSOR_NAME]) {
    size_t stem = strlen(s->name), ending = strlen("weight");
    if (!part || stem < ending) return false;
    int n = snprintf(out, TENSOR_NAME, "%.*s%s", (int)(stem - ending), s->name, part);
    return n > 0 && n < TENSOR_NAME;
}

static bool is_part(const WeightSpec *s, const char *part, const char *name) {
    char own[TENSOR_NAME];
    return part_name(s, part, own) && strcmp(own, name) == 0;
}

bool packed_has(const Binding *b, const WeightSpec *s) {
    char name[TENSOR_NAME];
    if (b->m->packing.form == PACKED_NOT || s->vector || s->planes) return false;
    return part_name(s, NAMES[b->m->packing.form].codes, name) && binding_has(b, name);
}

bool packed_owns(const Binding *b, const WeightSpec *s, const Found *f) {
    const PartNames *n = &NAMES[b->m->packing.form];
    const char *name = f->t->name;
    if (!packed_has(b, s)) return false;
    if (is_part(s, n->codes, name) || is_part(s, n->zeros, name) || is_part(s, n->scales, name) ||
        is_part(s, n->order, name) || is_part(s, n->shape, name))
        return true;
    if (!is_part(s, "bias", name)) return false;
    for (size_t i = f->t->begin; i < f->t->end; i++)
        if (f->shard->data[i]) return false;
    return true;
}

// --- parts

static uint32_t word_at(const unsigned char *data, size_t i) {
    uint32_t word;
    memcpy(&word, data + i * WORD, WORD);
    return word;
}

// The place of the i-th code in a word that takes turns.
static size_t turn_of(size_t i) { return i / 2 + i % 2 * 4; }

static int code_at(const Words *w, size_t row, size_t column) {
    size_t each = (size_t)(WORD_BITS / w->bits), i = (w->down ? row : column) % each;
    size_t at = w->down ? row / each * w->columns + column : row * w->columns + column / each;
    size_t place = w->turns ? turn_of(i) : i;
    return (int)(word_at(w->data, at) >> place * (size_t)w->bits & ((1u << w->bits) - 1));
}

static int zero_of(const Packed *p, size_t row, size_t group) {
    if (!p->zeros.data) return 1 << (p->bits - 1);
    return (p->turned ? code_at(&p->zeros, group, row) : code_at(&p->zeros, row, group)) + p->one_less;
}

static float scale_of(const Packed *p, size_t row, size_t group) {
    size_t at = p->turned ? group * p->rows + row : row * p->groups + group;
    return dtype_load(p->scale_dtype, found_data(&p->scales), at);
}

static size_t group_of(const Packed *p, size_t column) {
    return p->order ? word_at(p->order, column) : column / p->group;
}

static size_t words_for(size_t codes, int bits) {
    size_t each = (size_t)(WORD_BITS / bits);
    return (codes + each - 1) / each;
}

// The words of (rows, columns) codes.
static bool find_words(const Binding *b, const Packed *p, const char *part, size_t rows, size_t columns,
                       Words *w, Error *e) {
    char name[TENSOR_NAME];
    if (!part_name(p->s, part, name)) return error_input(e, "the name of '%s' is too long", p->s->name);
    if (!binding_find(b, name, &w->from, e)) return false;
    w->columns = w->down ? columns : words_for(columns, p->bits);
    int64_t dims[] = {(int64_t)(w->down ? words_for(rows, p->bits) : rows), (int64_t)w->columns};
    if (strcmp(w->from.t->dtype, "I32") != 0)
        return error_input(e, "tensor '%s' in '%s/%s' has dtype %s, must have I32: words of packed codes",
                           name, b->dir, w->from.shard->name, w->from.t->dtype);
    w->bits = p->bits;
    w->data = found_data(&w->from);
    return binding_check_dims(b, &w->from, dims, 2, e);
}

static bool find_codes(const Binding *b, Packed *p, Error *e) {
    const PartNames *n = &NAMES[b->m->packing.form];
    char zeros[TENSOR_NAME];
    bool awq = b->m->packing.form == PACKED_AWQ;
    p->codes = (Words){.down = b->m->packing.form == PACKED_GPTQ, .turns = awq};
    p->zeros = (Words){.down = !p->turned, .turns = awq};
    if (!find_words(b, p, n->codes, p->turned ? p->columns : p->rows, p->turned ? p->rows : p->columns,
                    &p->codes, e))
        return false;
    // Only compressed-tensors leaves zero points out where they are all the middle.
    bool none = !p->turned && part_name(p->s, n->zeros, zeros) && !binding_has(b, zeros);
    return none || find_words(b, p, n->zeros, p->turned ? p->groups : p->rows,
                              p->turned ? p->rows : p->groups, &p->zeros, e);
}

static bool find_scales(const Binding *b, Packed *p, Error *e) {
    char name[TENSOR_NAME];
    int64_t rows = (int64_t)p->rows, groups = (int64_t)p->groups;
    int64_t dims[] = {p->turned ? groups : rows, p->turned ? rows : groups};
    if (!part_name(p->s, NAMES[b->m->packing.form].scales, name) || !binding_find(b, name, &p->scales, e) ||
        !binding_check_dims(b, &p->scales, dims, 2, e))
        return false;
    const StoredTensor *t = p->scales.t;
    if (!safetensors_dtype(t, &p->scale_dtype))
        return error_input(e, "tensor '%s' in '%s/%s' has dtype %s; scales are F16, BF16 or F32", name,
                           b->dir, p->scales.shard->name, t->dtype);
    return t->begin % dtype_size(p->scale_dtype) == 0 ||
           error_input(e, "tensor '%s' in '%s/%s' begins at byte %zu, not a multiple of its element's %zu",
                       name, b->dir, p->scales.shard->name, t->begin, dtype_size(p->scale_dtype));
}

static bool find_order(const Binding *b, Packed *p, Error *e) {
    char name[TENSOR_NAME];
    Found f;
    int64_t dims[] = {(int64_t)p->columns};
    if (!part_name(p->s, NAMES[b->m->packing.form].order, name) || !binding_has(b, name)) return true;
    if (!binding_find(b, name, &f, e) || !binding_check_dims(b, &f, dims, 1, e)) return false;
    if (strcmp(f.t->dtype, "I32") != 0)
        return error_input(e, "tensor '%s' in '%s/%s' has dtype %s, must have I32: groups of columns", name,
                           b->dir, f.shard->name, f.t->dtype);
    p->order = found_data(&f);
    for (size_t k = 0; k < p->columns; k++)
        if (group_of(p, k) >= p->groups)
            return error_input(e, "tensor '%s' in '%s/%s' puts column %zu into group %d of %zu", name, b->dir,
                               f.shard->name, k, (int32_t)word_at(p->order, k), p->groups);
    return true;
}

static bool find_parts(const Binding *b, const WeightSpec *s, Packed *p, Error *e) {
    const Packing *packing = &b->m->packing;
    *p = (Packed){.s = s,
                  .rows = (size_t)s->stored_rows,
                  .columns = (size_t)s->columns,
                  .bits = packing->bits,
                  .turned = packing->form != PACKED_TENSORS,
                  .one_less = packing->one_less};
    size_t each = (size_t)(WORD_BITS / p->bits);
    p->group = packing->group ? (size_t)packing->group : p->columns;
    if (p->columns % p->group || p->columns % each || (p->turned && p->rows % each))
        return error_input(e,
                           "weight '%s' of '%s' has %zu rows and %zu columns, which groups of %zu and words "
                           "of %zu don't divide",
                           s->name, b->dir, p->rows, p->columns, p->group, each);
    p->groups = p->columns / p->group;
    return find_codes(b, p, e) && find_scales(b, p, e) && find_order(b, p, e);
}

// --- checks

// Scales are such that no value is infinite or has fewer bits than bf16.
static bool check_scales(const Binding *b, const Packed *p, Error *e) {
    const StoredTensor *t = p->scales.t;
    for (size_t n = 0; n < p->rows; n++)
        for (size_t g = 0; g < p->groups; g++) {
            float x = scale_of(p, n, g);
            if (fabsf(x) >= 0x1p-126f && fabsf(x) < 0x1p100f) continue;
            return error_input(
                e,
                "tensor '%s' in '%s/%s' holds %g for row %zu, group %zu, which is not a scale: "
                "fetch the model again",
                t->name, b->dir, p->scales.shard->name, (double)x, n, g);
        }
    return true;
}

// Zero points must be codes. One that is stored as the largest, less one, is 2^bits to some programs and 0 to
// others. Fills in whether all are the middle.
static bool check_zeros(const Binding *b, const Packed *p, bool *middle, Error *e) {
    int most = (1 << p->bits) - 1;
    *middle = true;
    for (size_t n = 0; n < p->rows; n++)
        for (size_t g = 0; g < p->groups; g++) {
            int zero = zero_of(p, n, g);
            if (zero != 1 << (p->bits - 1)) *middle = false;
            if (zero > most)
                return error_input(
                    e,
                    "tensor '%s' in '%s/%s' has the zero point %d for row %zu, group %zu, must "
                    "be at most %d: quantise the model again",
                    p->zeros.from.t->name, b->dir, p->zeros.from.shard->name, zero, n, g, most);
        }
    return true;
}

// --- codes out of words

// The codes of a word, a byte each, from its low end.
static void spread(uint32_t word, int bits, uint8_t out[TILE]) {
    uint64_t x = word;
    if (bits == 4) {
        x = (x | x << 16) & 0x0000ffff0000ffffu;
        x = (x | x << 8) & 0x00ff00ff00ff00ffu;
        x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    }
    memcpy(out, &x, sizeof x);
}

// The codes of TILE rows from a multiple of TILE on: (TILE, columns). Rows past the last stay as they are.
// Neighbouring rows are neighbours in the file, or share its words: one at a time, each would fetch all lines
// of the file again.
static void read_tile(const Packed *p, size_t first, uint8_t *out) {
    const Words *w = &p->codes;
    size_t count = p->rows - first < TILE ? p->rows - first : TILE;
    size_t each = (size_t)(WORD_BITS / p->bits);
    uint8_t codes[TILE];
    if (w->turns) {
        for (size_t k = 0; k < p->columns; k++) {
            spread(word_at(w->data, k * w->columns + first / TILE), p->bits, codes);
            for (size_t i = 0; i < TILE; i++) out[i * p->columns + k] = codes[turn_of(i)];
        }
        return;
    }
    for (size_t at = 0; at < p->columns / each; at++)
        for (size_t i = 0; i < count; i++) {
            size_t row = first + i;
            spread(word_at(w->data, w->down ? at * w->columns + row : row * w->columns + at), p->bits, codes);
            memcpy(out + i * p->columns + at * each, codes, each);
        }
}

static bool in_order(const Packed *p) {
    for (size_t k = 0; k < p->columns; k++)
        if (group_of(p, k) != k / p->group) return false;
    return true;
}

// bits 0: the weight becomes values.
static Codes codes_for(const Packed *p, bool middle) {
    int group = GROUP_MOST; // the kernels' groups: the largest that are parts of the stored ones
    while (group >= GROUP_LEAST && p->group % (size_t)group) group /= 2;
    Codes c = {.bits = p->bits, .group = group < GROUP_LEAST ? 0 : group, .kind = SCALES_PAIRS};
    if (middle) c.kind = p->scale_dtype == DTYPE_F16 ? SCALES_F16 : SCALES_F32;
    if (!c.group || p->scale_dtype == DTYPE_F32 || (p->bits == 8 && !middle) || !in_order(p)) c.bits = 0;
    return c;
}

static void put_codes(const Packed *p, const uint8_t *row, unsigned char *out) {
    for (size_t k = 0; k < p->columns; k += 2)
        if (p->bits == 4) out[k / 2] = (unsigned char)(row[k] | row[k + 1] << 4);
        else out[k] = row[k] ^ 0x80, out[k + 1] = row[k + 1] ^ 0x80; // less 128
}

static void put_scales(const Packed *p, const Codes *c, size_t row, unsigned char *out) {
    for (size_t i = 0; i < p->columns / (size_t)c->group; i++) {
        size_t group = i * (size_t)c->group / p->group;
        float scale = scale_of(p, row, group);
        uint16_t half = f32_to_f16(scale);
        ScalePair pair = {scale, -(float)zero_of(p, row, group) * scale};
        if (c->kind == SCALES_F16) memcpy(out + i * sizeof half, &half, sizeof half);
        else if (c->kind == SCALES_F32) memcpy(out + i * sizeof scale, &scale, sizeof scale);
        else memcpy(out + i * sizeof pair, &pair, sizeof pair);
    }
}

// pairs: scratch, (groups).
static void put_values(const Packed *p, size_t row, const uint8_t *codes, ScalePair *pairs,
                       unsigned char *out) {
    for (size_t g = 0; g < p->groups; g++) {
        float scale = scale_of(p, row, g);
        pairs[g] = (ScalePair){scale, (float)zero_of(p, row, g)};
    }
    for (size_t k = 0; k < p->columns; k++) {
        const ScalePair *g = &pairs[group_of(p, k)];
        uint16_t value = f32_to_bf16(((float)codes[k] - g->low) * g->scale);
        memcpy(out + k * sizeof value, &value, sizeof value);
    }
}

// Fills a tensor that has room.
static void unpack(const Binding *b, const Packed *p, const Tensor *t, unsigned char *data,
                   unsigned char *scales) {
    size_t bytes = tensor_row_bytes(t), scale_bytes = tensor_row_scale_bytes(t), have = SIZE_MAX;
    LOCAL_MEMORY uint8_t *tile = mem_new(TILE * p->columns, 1);
    LOCAL_MEMORY ScalePair *pairs = mem_new(p->groups, sizeof *pairs);
    for (size_t r = 0; r < (size_t)t->rows; r++) {
        size_t row = binding_row(b, p->s, r), first = row / TILE * TILE;
        if (first != have) read_tile(p, first, tile);
        have = first;
        const uint8_t *codes = tile + (row - first) * p->columns;
        if (!t->codes.bits) put_values(p, row, codes, pairs, data + r * bytes);
        else {
            put_codes(p, codes, data + r * bytes);
            put_scales(p, &t->codes, row, scales + r * scale_bytes);
        }
    }
}

bool packed_bind(const Binding *b, const WeightSpec *s, Error *e) {
    Packed p;
    bool middle;
    if (!find_parts(b, s, &p, e) || !check_scales(b, &p, e) || !check_zeros(b, &p, &middle, e)) return false;
    Tensor t = {.dtype = DTYPE_BF16, .rows = s->rows, .columns = s->columns, .codes = codes_for(&p, middle)};
    size_t rows = (size_t)s->rows;
    unsigned char *data = binding_take(b, s, rows, tensor_row_bytes(&t), e), *scales = NULL;
    if (data && t.codes.bits) scales = binding_take(b, s, rows, tensor_row_scale_bytes(&t), e);
    if (!data || (t.codes.bits && !scales)) return false;
    unpack(b, &p, &t, data, scales);
    b->m->valued += !t.codes.bits;
    t.data = data;
    t.codes.scales = scales;
    *binding_place(b, s) = t;
    return true;
}
