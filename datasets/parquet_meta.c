// Thrift's compact protocol into structs, by tables: a table lists the fields of a Thrift struct that are
// wanted, and where each goes; all others are skipped.
//
// Invariants: nothing is read at or after `end`; each list element takes a byte of the file at least, so a
// count that the bytes can't hold ends the reading; no more than MOST_ELEMENTS are kept, so memory stays
// within a hundred megabytes or so for any file.
#include "datasets/parquet.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>

enum { MOST_FOOTER = 16 << 20, MOST_ELEMENTS = 1 << 18, MOST_DEPTH = 16 };

typedef enum { THRIFT_TRUE = 1, THRIFT_FALSE, THRIFT_BYTE, THRIFT_I16, THRIFT_I32, THRIFT_I64 } ThriftNumber;
enum { THRIFT_DOUBLE = 7, THRIFT_BINARY, THRIFT_LIST, THRIFT_SET, THRIFT_MAP, THRIFT_STRUCT };

typedef struct Thrift {
    const uint8_t *at, *end;
    size_t elements; // kept so far
} Thrift;

typedef enum { FIELD_NUMBER, FIELD_BYTES, FIELD_INNER, FIELD_LIST } FieldKind;

typedef struct Field {
    int id; // 0 ends a table
    FieldKind kind;
    size_t offset;             // in the struct; of an INNER one 0: its fields go into the same struct
    const struct Field *inner; // of INNER and of LIST, whose items are structs
    size_t size;               // of a LIST's item
} Field;

#define NUMBER(id, type, name) \
    { id, FIELD_NUMBER, offsetof(type, name), NULL, 0 }
#define BYTES(id, type, name) \
    { id, FIELD_BYTES, offsetof(type, name), NULL, 0 }

static const Field ELEMENT[] = {NUMBER(1, ParquetElement, type),      NUMBER(3, ParquetElement, repetition),
                                BYTES(4, ParquetElement, name),       NUMBER(5, ParquetElement, children),
                                NUMBER(6, ParquetElement, converted), {0}};
static const Field COLUMN[] = {NUMBER(4, ParquetChunk, codec),       NUMBER(5, ParquetChunk, values),
                               NUMBER(7, ParquetChunk, size),        NUMBER(9, ParquetChunk, data),
                               NUMBER(11, ParquetChunk, dictionary), {0}};
static const Field CHUNK[] = {BYTES(1, ParquetChunk, elsewhere), {3, FIELD_INNER, 0, COLUMN, 0}, {0}};
static const Field GROUP[] = {{1, FIELD_LIST, offsetof(ParquetGroup, chunks), CHUNK, sizeof(ParquetChunk)},
                              NUMBER(3, ParquetGroup, rows),
                              {0}};
static const Field FOOTER[] = {
    {2, FIELD_LIST, offsetof(ParquetFooter, elements), ELEMENT, sizeof(ParquetElement)},
    {4, FIELD_LIST, offsetof(ParquetFooter, groups), GROUP, sizeof(ParquetGroup)},
    {0}};
static const Field DATA[] = {NUMBER(1, ParquetPage, values),
                             NUMBER(2, ParquetPage, encoding),
                             NUMBER(3, ParquetPage, level_encoding[0]),
                             NUMBER(4, ParquetPage, level_encoding[1]),
                             {0}};
static const Field DICTIONARY[] = {NUMBER(1, ParquetPage, values), NUMBER(2, ParquetPage, encoding), {0}};
static const Field DATA_2[] = {NUMBER(1, ParquetPage, values),         NUMBER(4, ParquetPage, encoding),
                               NUMBER(5, ParquetPage, level_bytes[0]), NUMBER(6, ParquetPage, level_bytes[1]),
                               NUMBER(7, ParquetPage, is_packed),      {0}};
static const Field PAGE[] = {NUMBER(1, ParquetPage, kind),   NUMBER(2, ParquetPage, unpacked),
                             NUMBER(3, ParquetPage, packed), NUMBER(4, ParquetPage, crc),
                             {5, FIELD_INNER, 0, DATA, 0},   {7, FIELD_INNER, 0, DICTIONARY, 0},
                             {8, FIELD_INNER, 0, DATA_2, 0}, {0}};

static size_t left(const Thrift *t) { return (size_t)(t->end - t->at); }

static bool read_byte(Thrift *t, uint8_t *out) {
    if (t->at == t->end) return false;
    *out = *t->at++;
    return true;
}

static bool read_varint(Thrift *t, uint64_t *out) {
    uint8_t b = 0x80;
    *out = 0;
    for (int shift = 0; b & 0x80; shift += 7) {
        if (shift > 63 || !read_byte(t, &b)) return false;
        *out |= (uint64_t)(b & 0x7F) << shift;
    }
    return true;
}

static bool read_zigzag(Thrift *t, int64_t *out) {
    uint64_t u;
    if (!read_varint(t, &u)) return false;
    *out = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
    return true;
}

static bool read_number(Thrift *t, int type, int64_t *out) {
    uint8_t b;
    if (type == THRIFT_TRUE || type == THRIFT_FALSE) return *out = type == THRIFT_TRUE, true;
    if (type != THRIFT_BYTE) return type <= THRIFT_I64 && read_zigzag(t, out);
    if (!read_byte(t, &b)) return false;
    *out = (int8_t)b;
    return true;
}

static bool read_bytes(Thrift *t, ParquetBytes *out) {
    uint64_t n;
    if (!read_varint(t, &n) || n > left(t)) return false;
    *out = (ParquetBytes){t->at, (size_t)n};
    t->at += n;
    return true;
}

static bool read_list(Thrift *t, uint64_t *count, int *type) {
    uint8_t b;
    if (!read_byte(t, &b)) return false;
    *type = b & 15;
    *count = b >> 4;
    return *count < 15 || read_varint(t, count);
}

// *type 0: the struct ends here.
static bool read_head(Thrift *t, int *type, int64_t *id) {
    uint8_t b;
    if (!read_byte(t, &b)) return false;
    *type = b & 15;
    if (b == 0) return true;
    if (b >> 4) return *id += b >> 4, *id < 1 << 15;
    return read_zigzag(t, id) && *id > 0 && *id < 1 << 15;
}

static bool skip(Thrift *t, int type, int depth);

static bool skip_items(Thrift *t, uint64_t count, int type, int depth) {
    uint8_t b;
    for (uint64_t i = 0; i < count; i++) // in a list a truth value takes a byte
        if (type <= THRIFT_BYTE ? !read_byte(t, &b) : !skip(t, type, depth)) return false;
    return true;
}

static bool skip_map(Thrift *t, int depth) {
    uint64_t count;
    uint8_t types;
    if (!read_varint(t, &count) || (count && !read_byte(t, &types))) return false;
    for (uint64_t i = 0; i < count; i++)
        if (!skip_items(t, 1, types >> 4, depth) || !skip_items(t, 1, types & 15, depth)) return false;
    return true;
}

static bool skip_struct(Thrift *t, int depth) {
    int type;
    for (int64_t id = 0; read_head(t, &type, &id);) {
        if (!type) return true;
        if (!skip(t, type, depth)) return false;
    }
    return false;
}

static bool skip(Thrift *t, int type, int depth) {
    ParquetBytes bytes;
    int64_t number;
    uint64_t count;
    if (depth == MOST_DEPTH || type == 0) return false;
    if (type <= THRIFT_I64) return read_number(t, type, &number);
    if (type == THRIFT_BINARY) return read_bytes(t, &bytes);
    if (type == THRIFT_LIST || type == THRIFT_SET)
        return read_list(t, &count, &type) && skip_items(t, count, type, depth + 1);
    if (type == THRIFT_MAP) return skip_map(t, depth + 1);
    if (type == THRIFT_STRUCT) return skip_struct(t, depth + 1);
    if (type != THRIFT_DOUBLE || left(t) < 8) return false;
    t->at += 8;
    return true;
}

static void set_absent(const Field *f, char *base) {
    static const int64_t ABSENT = -1;
    for (; f->id; f++) {
        if (f->kind == FIELD_NUMBER) memcpy(base + f->offset, &ABSENT, sizeof ABSENT);
        if (f->kind == FIELD_INNER) set_absent(f->inner, base);
    }
}

static bool read_struct(Thrift *t, const Field *fields, char *base);

static bool read_items(Thrift *t, const Field *f, ParquetList *out) {
    uint64_t count;
    int type;
    if (!read_list(t, &count, &type) || type != THRIFT_STRUCT) return false;
    for (uint64_t i = 0; i < count; i++) {
        if (left(t) == 0 || ++t->elements > MOST_ELEMENTS) return false;
        mem_grow(&out->items, &out->capacity, out->count + 1, f->size);
        char *item = (char *)out->items + out->count++ * f->size;
        set_absent(f->inner, item);
        if (!read_struct(t, f->inner, item)) return false;
    }
    return true;
}

static bool read_field(Thrift *t, const Field *f, int type, char *base) {
    void *out = base + f->offset;
    if (f->kind == FIELD_NUMBER) return read_number(t, type, out);
    if (f->kind == FIELD_BYTES) return type == THRIFT_BINARY && read_bytes(t, out);
    if (f->kind == FIELD_INNER) return type == THRIFT_STRUCT && read_struct(t, f->inner, base);
    return type == THRIFT_LIST && read_items(t, f, out);
}

static bool read_struct(Thrift *t, const Field *fields, char *base) {
    int type;
    for (int64_t id = 0; read_head(t, &type, &id);) {
        if (!type) return true;
        const Field *f = fields;
        while (f->id && f->id != id) f++;
        if (!(f->id ? read_field(t, f, type, base) : skip(t, type, 0))) return false;
        assert(t->at <= t->end);
    }
    return false;
}

bool parquet_page(ParquetPage *out, ParquetBytes *at) {
    Thrift t = {.at = at->at, .end = at->at + at->n};
    set_absent(PAGE, (char *)out);
    if (!read_struct(&t, PAGE, (char *)out)) return false;
    *at = (ParquetBytes){t.at, left(&t)};
    return true;
}

bool parquet_footer(ParquetFooter *out, const uint8_t *bytes, size_t n, const char *file, Error *e) {
    static const char MAGIC[] = "PAR1";
    *out = (ParquetFooter){0};
    if (n < 12 || memcmp(bytes + n - 4, MAGIC, 4) != 0)
        return error_input(e, "'%s' is a Parquet file without an end: it is cut short; fetch it again", file);
    const uint8_t *end = bytes + n - 8;
    size_t size = end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
    if (size > n - 12 || size > MOST_FOOTER)
        return error_input(e,
                           "'%s' is a Parquet file with a footer of %zu bytes, %zu are the most: it is "
                           "damaged; fetch it again",
                           file, size, n - 12 < MOST_FOOTER ? n - 12 : (size_t)MOST_FOOTER);
    Thrift t = {.at = end - size, .end = end};
    return read_struct(&t, FOOTER, (char *)out) ||
           error_input(e, "'%s', byte %zu: the footer of the Parquet file is damaged: fetch it again", file,
                       (size_t)(t.at - bytes));
}

void parquet_footer_release(ParquetFooter *f) {
    ParquetGroup *groups = f->groups.items;
    for (size_t i = 0; i < f->groups.count; i++) mem_free(groups[i].chunks.items);
    MEM_FREE(groups, f->elements.items);
    *f = (ParquetFooter){0};
}
