// Parses GGUF files. Invariant of a parsed file: values and tensors are sorted without repeats, a value's
// elements and a tensor's bytes are inside the file, and a tensor's bytes are as many as its dimensions need.
#include "engine/base/gguf.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16, LEAST_VALUE = 13, LEAST_TENSOR = 24, ALIGNMENT = 32, MOST_ALIGNMENT = 1 << 20 };

static const GgufFormat FORMATS[] = {
    {0, "F32", 1, 4},       {1, "F16", 1, 2},         {30, "BF16", 1, 2},     {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},    {8, "Q8_0", 32, 34},
    {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210}, {11, "Q3_K", 256, 110},
    {20, "IQ4_NL", 32, 18}, {23, "IQ4_XS", 256, 136}, {9, "Q8_1", 0, 0},      {10, "Q2_K", 0, 0},
    {15, "Q8_K", 0, 0},     {16, "IQ2_XXS", 0, 0},    {17, "IQ2_XS", 0, 0},   {18, "IQ3_XXS", 0, 0},
    {19, "IQ1_S", 0, 0},    {21, "IQ3_S", 0, 0},      {22, "IQ2_S", 0, 0},    {24, "I8", 0, 0},
    {25, "I16", 0, 0},      {26, "I32", 0, 0},        {27, "I64", 0, 0},      {28, "F64", 0, 0},
    {29, "IQ1_M", 0, 0},    {34, "TQ1_0", 0, 0},      {35, "TQ2_0", 0, 0},    {39, "MXFP4", 0, 0},
};

static const size_t ELEMENT_BYTES[GGUF_TYPES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8};

bool gguf_named(const char *path) { return text_ends(path, ".gguf"); }

// --- bytes

typedef struct {
    const unsigned char *at, *end;
    const char *place;
    Error *e;
} GgufReader;

static size_t left(const GgufReader *r) { return (size_t)(r->end - r->at); }

static bool cut_short(const GgufReader *r) {
    return error_input(r->e, "'%s' ends within its header: the file is cut short; fetch it again", r->place);
}

static uint64_t little_endian(const unsigned char *at, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++) x |= (uint64_t)at[i] << 8 * i;
    return x;
}

static bool read_number(GgufReader *r, size_t bytes, uint64_t *out) {
    if (left(r) < bytes) return cut_short(r);
    *out = little_endian(r->at, bytes);
    r->at += bytes;
    return true;
}

static bool read_text(GgufReader *r, const unsigned char **text, size_t *n) {
    uint64_t length = 0;
    if (!read_number(r, 8, &length)) return false;
    if (length > left(r))
        return error_input(r->e, "'%s' claims a text of %llu bytes in its header but has only %zu more",
                           r->place, (unsigned long long)length, left(r));
    *text = r->at;
    *n = (size_t)length;
    r->at += length;
    return true;
}

// Copies a key or a tensor's name: printable ASCII.
static bool read_name(GgufReader *r, char *out, size_t room, const char *kind) {
    const unsigned char *text = NULL;
    size_t n = 0;
    if (!read_text(r, &text, &n)) return false;
    bool plain = n > 0 && n < room;
    for (size_t i = 0; plain && i < n; i++) plain = text[i] > ' ' && text[i] < 0x7f;
    if (!plain)
        return error_input(r->e, "'%s' has %s that isn't 1 to %zu printable characters", r->place, kind,
                           room - 1);
    memcpy(out, text, n);
    out[n] = 0;
    return true;
}

// --- values

static bool read_elements(GgufReader *r, GgufValue *v) {
    size_t bytes = ELEMENT_BYTES[v->type], all = 0;
    v->at = r->at;
    if (v->type == GGUF_TEXT) {
        if (v->count > left(r) / 8) return cut_short(r);
        const unsigned char *text = NULL;
        size_t n = 0;
        for (size_t i = 0; i < v->count; i++)
            if (!read_text(r, &text, &n)) return false;
    } else if (!size_mul(v->count, bytes, &all) || all > left(r)) return cut_short(r);
    r->at += all;
    v->end = r->at;
    return true;
}

static bool read_type(GgufReader *r, const char *key, GgufType *out) {
    uint64_t type = 0;
    if (!read_number(r, 4, &type)) return false;
    if (type >= GGUF_TYPES)
        return error_input(r->e, "the value of '%s' in '%s' is of the unknown type %llu", key, r->place,
                           (unsigned long long)type);
    *out = (GgufType)type;
    return true;
}

static bool read_value(GgufReader *r, GgufValue *v) {
    uint64_t count = 1;
    if (!read_name(r, v->key, sizeof v->key, "a key") || !read_type(r, v->key, &v->type)) return false;
    v->list = v->type == GGUF_LIST;
    if (v->list && (!read_type(r, v->key, &v->type) || !read_number(r, 8, &count))) return false;
    if (v->type == GGUF_LIST)
        return error_input(r->e, "the value of '%s' in '%s' is a list of lists, which is not supported",
                           v->key, r->place);
    v->count = (size_t)count;
    return read_elements(r, v);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const GgufValue *)a)->key, ((const GgufValue *)b)->key);
}

static bool read_values(GgufReader *r, Gguf *g, size_t count) {
    g->values = mem_new(count, sizeof *g->values);
    for (; g->value_count < count; g->value_count++)
        if (!read_value(r, &g->values[g->value_count])) return false;
    qsort(g->values, count, sizeof *g->values, by_key);
    for (size_t i = 1; i < count; i++)
        if (by_key(&g->values[i - 1], &g->values[i]) == 0)
            return error_input(r->e, "'%s' has two values for the key '%s'", r->place, g->values[i].key);
    return true;
}

// --- tensors

static bool read_format(const GgufReader *r, GgufTensor *t, uint64_t id) {
    for (size_t i = 0; i < sizeof FORMATS / sizeof *FORMATS; i++)
        if ((uint64_t)FORMATS[i].id == id) t->format = &FORMATS[i];
    if (t->format && t->format->numbers) return true;
    return error_input(
        r->e,
        "tensor '%s' in '%s' is of the type %s (%llu), which is not supported: F32, F16, BF16, "
        "Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K are",
        t->name, r->place, t->format ? t->format->name : "unknown to us", (unsigned long long)id);
}

static bool read_dims(GgufReader *r, GgufTensor *t) {
    uint64_t rank = 0;
    if (!read_number(r, 4, &rank)) return false;
    if (rank < 1 || rank > GGUF_MAX_RANK)
        return error_input(r->e, "tensor '%s' in '%s' has %llu dimensions, must have 1 to %d", t->name,
                           r->place, (unsigned long long)rank, GGUF_MAX_RANK);
    t->rank = (int)rank;
    for (int i = 0; i < t->rank; i++) {
        uint64_t n = 0;
        if (!read_number(r, 8, &n)) return false;
        if (n < 1 || n > INT32_MAX)
            return error_input(r->e,
                               "tensor '%s' in '%s' has a dimension of %llu, must be from 1 to 2^31 - 1",
                               t->name, r->place, (unsigned long long)n);
        t->dims[i] = (int64_t)n;
    }
    return true;
}

// The bytes of all blocks: each row is whole blocks.
static bool count_bytes(const GgufReader *r, const GgufTensor *t, size_t *out) {
    size_t blocks = (size_t)t->dims[0] / (size_t)t->format->numbers;
    if (t->dims[0] % t->format->numbers)
        return error_input(r->e, "tensor '%s' in '%s' has rows of %lld numbers, not a multiple of %s's %d",
                           t->name, r->place, (long long)t->dims[0], t->format->name, t->format->numbers);
    bool fits = true;
    for (int i = 1; i < t->rank; i++) fits = fits && size_mul(blocks, (size_t)t->dims[i], &blocks);
    return (fits && size_mul(blocks, (size_t)t->format->bytes, out)) ||
           error_input(r->e, "tensor '%s' in '%s' has dimensions whose product overflows", t->name, r->place);
}

// Until the data's start is known, begin and end are counted from there.
static bool read_tensor(GgufReader *r, GgufTensor *t) {
    uint64_t id = 0, offset = 0;
    size_t bytes = 0;
    if (!read_name(r, t->name, sizeof t->name, "a tensor's name") || !read_dims(r, t) ||
        !read_number(r, 4, &id) || !read_number(r, 8, &offset) || !read_format(r, t, id) ||
        !count_bytes(r, t, &bytes))
        return false;
    if (offset > SIZE_MAX || !size_add((size_t)offset, bytes, &t->end))
        return error_input(r->e, "tensor '%s' in '%s' begins at byte %llu of the data, beyond its end",
                           t->name, r->place, (unsigned long long)offset);
    t->begin = (size_t)offset;
    return true;
}

static int by_begin(const void *a, const void *b) {
    const GgufTensor *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const GgufTensor *)a)->name, ((const GgufTensor *)b)->name);
}

static bool read_alignment(const GgufReader *r, const Gguf *g, size_t *out) {
    const GgufValue *v = gguf_find(g, "general.alignment");
    *out = ALIGNMENT;
    if (!v) return true;
    double x = v->list ? 0 : gguf_number(v, 0);
    size_t n = x >= 1 && x <= MOST_ALIGNMENT ? (size_t)x : 0;
    *out = n;
    return (n && !(n & (n - 1))) ||
           error_input(r->e, "'general.alignment' in '%s' must be a power of 2, up to %d", r->place,
                       MOST_ALIGNMENT);
}

static size_t padded(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

// Places the tensors one after another, each at a multiple of the alignment, from `start` to the file's end.
static bool check_tiling(const GgufReader *r, Gguf *g, size_t start, size_t size, size_t alignment) {
    size_t at = 0, room = start < size ? size - start : 0;
    qsort(g->tensors, g->tensor_count, sizeof *g->tensors, by_begin);
    for (size_t i = 0; i < g->tensor_count; i++) {
        GgufTensor *t = &g->tensors[i];
        if (t->end > room)
            return error_input(r->e,
                               "tensor '%s' in '%s' ends at byte %zu of the data, which has %zu: the file is "
                               "cut short; fetch it again",
                               t->name, r->place, t->end, room);
        if (t->begin != at)
            return error_input(
                r->e, "tensor '%s' in '%s' begins at byte %zu of the data, must begin at %zu: %s", t->name,
                r->place, t->begin, at, t->begin < at ? "it overlaps another" : "there is a hole");
        at = padded(t->end, alignment);
        t->begin += start;
        t->end += start;
    }
    if (room > at)
        return error_input(r->e, "'%s' has %zu bytes after its last tensor; fetch it again", r->place,
                           room - at);
    return true;
}

static bool read_tensors(GgufReader *r, Gguf *g, const unsigned char *data, size_t count) {
    size_t alignment = 0, size = (size_t)(r->end - data);
    g->tensors = mem_new(count, sizeof *g->tensors);
    for (; g->tensor_count < count; g->tensor_count++)
        if (!read_tensor(r, &g->tensors[g->tensor_count])) return false;
    if (!read_alignment(r, g, &alignment)) return false;
    g->header = padded((size_t)(r->at - data), alignment);
    if (!check_tiling(r, g, g->header, size, alignment)) return false;
    if (g->header > size) g->header = size;
    qsort(g->tensors, count, sizeof *g->tensors, by_name);
    for (size_t i = 1; i < count; i++)
        if (by_name(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return error_input(r->e, "'%s' has two tensors '%s'", r->place, g->tensors[i].name);
    return true;
}

// --- the file

static bool check_count(const GgufReader *r, uint64_t n, size_t least, const char *what) {
    if (n <= MOST && n <= left(r) / least) return true;
    return error_input(r->e, "'%s' claims %llu %s in %zu bytes; at most %d are allowed", r->place,
                       (unsigned long long)n, what, left(r), MOST);
}

static bool read_prefix(GgufReader *r, uint64_t *tensors, uint64_t *values) {
    uint64_t version = 0;
    if (left(r) < 8 || memcmp(r->at, "GGUF", 4) != 0)
        return error_input(r->e, "'%s' does not begin as a GGUF file does", r->place);
    r->at += 4;
    if (!read_number(r, 4, &version)) return false;
    if (version && !(version & 0xffff))
        return error_input(r->e, "'%s' is a GGUF file for big-endian processors, which is not supported",
                           r->place);
    if (version < 2 || version > 3)
        return error_input(r->e, "'%s' is a GGUF file of version %llu, supported are 2 and 3", r->place,
                           (unsigned long long)version);
    return read_number(r, 8, tensors) && read_number(r, 8, values) &&
           check_count(r, *values, LEAST_VALUE, "values") &&
           check_count(r, *tensors, LEAST_TENSOR, "tensors");
}

static bool check_whole(const GgufReader *r, const Gguf *g) {
    const GgufValue *parts = gguf_find(g, "split.count");
    double count = parts && parts->count == 1 ? gguf_number(parts, 0) : 1;
    return count <= 1 || error_input(r->e, "'%s' is one of %g parts: join them with llama-gguf-split --merge",
                                     r->place, count);
}

static void gguf_check(const Gguf *g, UNUSED const unsigned char *data, UNUSED size_t size) {
    for (size_t i = 0; i < g->value_count; i++) {
        assert(g->values[i].at >= data && g->values[i].at <= g->values[i].end);
        assert(g->values[i].end <= data + size);
    }
    for (size_t i = 0; i < g->tensor_count; i++) {
        UNUSED const GgufTensor *t = &g->tensors[i];
        assert(t->begin >= g->header && t->begin < t->end && t->end <= size);
    }
}

bool gguf_parse(const unsigned char *data, size_t size, const char *place, Gguf *out, Error *e) {
    GgufReader r = {data, data + size, place, e};
    uint64_t tensors = 0, values = 0;
    *out = (Gguf){.place = place};
    bool ok = size ? read_prefix(&r, &tensors, &values) : error_input(e, "'%s' is empty", place);
    ok = ok && read_values(&r, out, (size_t)values) && check_whole(&r, out) &&
         read_tensors(&r, out, data, (size_t)tensors);
    if (ok) gguf_check(out, data, size);
    else gguf_release(out);
    return ok;
}

void gguf_release(Gguf *g) {
    MEM_FREE(g->values, g->tensors);
    *g = (Gguf){0};
}

// --- access

const GgufValue *gguf_find(const Gguf *g, const char *key) {
    for (size_t low = 0, high = g->value_count; low < high;) {
        size_t middle = (low + high) / 2;
        int order = strcmp(key, g->values[middle].key);
        if (order == 0) return &g->values[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

const GgufTensor *gguf_tensor(const Gguf *g, const char *name) {
    for (size_t i = 0; i < g->tensor_count; i++)
        if (strcmp(g->tensors[i].name, name) == 0) return &g->tensors[i];
    return NULL;
}

static double real_of(GgufType type, uint64_t bits) {
    uint32_t low = (uint32_t)bits;
    float f;
    double d;
    memcpy(&f, &low, sizeof f);
    memcpy(&d, &bits, sizeof d);
    return type == GGUF_F32 ? (double)f : d;
}

// Of a type of integers, sign extended.
static int64_t integer_of(GgufType type, uint64_t bits) {
    switch (type) {
    case GGUF_I8: return (int8_t)bits;
    case GGUF_I16: return (int16_t)bits;
    case GGUF_I32: return (int32_t)bits;
    case GGUF_BOOL: return bits != 0;
    default: return bits > INT64_MAX && type == GGUF_U64 ? INT64_MAX : (int64_t)bits;
    }
}

static bool is_real(GgufType type) { return type == GGUF_F32 || type == GGUF_F64; }

double gguf_number(const GgufValue *v, size_t i) {
    size_t bytes = ELEMENT_BYTES[v->type];
    assert(i < v->count);
    if (!bytes) return 0;
    uint64_t bits = little_endian(v->at + i * bytes, bytes);
    return is_real(v->type) ? real_of(v->type, bits) : (double)integer_of(v->type, bits);
}

json_t *gguf_json(const GgufValue *v) {
    size_t bytes = ELEMENT_BYTES[v->type];
    if (v->type == GGUF_TEXT) {
        GgufTexts one = {v->at, 1};
        const char *text;
        size_t n;
        bool is_one = !v->list && gguf_next(&one, &text, &n) && !memchr(text, 0, n);
        return is_one ? json_stringn(text, n) : NULL;
    }
    for (size_t i = 1; i < v->count; i++)
        if (memcmp(v->at, v->at + i * bytes, bytes) != 0) return NULL;
    if (!v->count) return NULL;
    uint64_t bits = little_endian(v->at, bytes);
    if (v->type == GGUF_BOOL) return json_boolean(bits != 0);
    return is_real(v->type) ? json_real(real_of(v->type, bits)) : json_integer(integer_of(v->type, bits));
}

GgufTexts gguf_texts(const GgufValue *v) {
    bool holds = v && v->list && v->type == GGUF_TEXT;
    return (GgufTexts){holds ? v->at : NULL, holds ? v->count : 0};
}

bool gguf_next(GgufTexts *texts, const char **text, size_t *n) {
    if (texts->left == 0) return false;
    texts->left--;
    *n = (size_t)little_endian(texts->at, 8);
    *text = (const char *)texts->at + 8;
    texts->at += 8 + *n;
    return true;
}
