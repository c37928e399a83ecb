// The pages of Parquet files:
//
//     chunk -> pages -> [unpack] -> repetition levels, definition levels, values -> column
//
// Levels and dictionary indices are runs of one number and groups of packed ones; values are plain, or
// indices of a dictionary, which is the chunk's first page.
//
// Invariants: nothing is read beyond a page, and no page ends beyond the file. The size of all that is
// unpacked, decoded or repeated comes off `left` before memory is taken, so a small file can't fill the
// memory.
#include "datasets/parquet.h"

#include "datasets/format.h"
#include "engine/base/memory.h"

#include <string.h>
#include <zlib.h>

enum { ENTRY_COST = 32 }; // bytes that an entry takes at most, as levels, value and JSON
#define REWRITE                                                                                     \
    "is not read: rewrite the file, as by: python3 -c \"import pandas; pandas.read_parquet('FILE')" \
    ".to_parquet('NEW')\""

static bool damaged(const ParquetSource *s, const char *what, Error *e) {
    return error_input(e, "'%s', column '%.*s', page at byte %zu: %s: " PARQUET_DAMAGED, s->file,
                       PARQUET_NAME(s->at->type->name), s->page, what);
}

static bool take(ParquetSource *s, size_t count, size_t size, Error *e) {
    size_t bytes;
    if (!size_mul(count, size, &bytes) || bytes > s->left)
        return error_input(e, "'%s' unpacks to more than %zu bytes: split it, if you trust it", s->file,
                           s->most);
    s->left -= bytes;
    return true;
}

// A buffer that lives until parquet_forget.
static void *keep(ParquetSource *s, size_t count, size_t size) {
    return *LIST_ADD(s->kept, s->kept_count, s->kept_capacity) = mem_new(count, size);
}

// --- values ----------------------------------------------------------------------------------------------

static uint64_t little_endian(const uint8_t *at, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = 0; i < bytes; i++) x |= (uint64_t)at[i] << 8 * i;
    return x;
}

static bool cut(ParquetBytes *from, size_t n, ParquetBytes *out) {
    if (n > from->n) return false;
    *out = (ParquetBytes){from->at, n};
    *from = (ParquetBytes){from->at + n, from->n - n};
    return true;
}

// Cuts off a block that its size precedes, in four bytes.
static bool cut_sized(ParquetBytes *from, ParquetBytes *out) {
    ParquetBytes size;
    return cut(from, 4, &size) && cut(from, little_endian(size.at, 4), out);
}

// Runs of one number, and groups of eight numbers of `width` bits each, the lowest bit first.
typedef struct Runs {
    ParquetBytes in;
    int width; // 0 to 32
    size_t left;
    bool packed;
    uint32_t number;     // of a run
    ParquetBytes groups; // of a packed run
    size_t bit;
} Runs;

static bool next_run(Runs *r) {
    ParquetBytes b;
    uint64_t head = 0;
    uint8_t last = 0x80;
    for (int shift = 0; last & 0x80; shift += 7) {
        if (shift > 28 || !cut(&r->in, 1, &b)) return false;
        last = *b.at;
        head |= (uint64_t)(last & 0x7F) << shift;
    }
    r->packed = head & 1;
    r->bit = 0;
    size_t count = head >> 1, bytes = (size_t)(r->width + 7) / 8;
    r->left = r->packed ? count * 8 : count;
    if (r->packed) {
        size_t size = count * (size_t)r->width;
        return cut(&r->in, size < r->in.n ? size : r->in.n, &r->groups); // the last group may be cut
    }
    if (!cut(&r->in, bytes, &b)) return false;
    r->number = (uint32_t)little_endian(b.at, bytes);
    return true;
}

static bool next_number(Runs *r, uint32_t *out) {
    while (r->left == 0)
        if (!next_run(r)) return false;
    r->left--;
    if (!r->packed) {
        *out = r->number;
        return true;
    }
    size_t first = r->bit / 8, bits = r->bit % 8 + (size_t)r->width, bytes = (bits + 7) / 8;
    if (first + bytes > r->groups.n) return false;
    uint64_t mask = ((uint64_t)1 << r->width) - 1;
    *out = (uint32_t)(little_endian(r->groups.at + first, bytes) >> r->bit % 8 & mask);
    r->bit += (size_t)r->width;
    return true;
}

static bool plain_value(int64_t type, ParquetBytes *in, ParquetValue *out) {
    ParquetBytes b;
    if (type == PARQUET_BYTES) return cut_sized(in, &out->text);
    size_t size = type == PARQUET_INT32 || type == PARQUET_FLOAT ? 4 : 8;
    if (!cut(in, size, &b)) return false;
    uint64_t bits = little_endian(b.at, size);
    uint32_t low = (uint32_t)bits;
    float single;
    memcpy(&single, &low, sizeof single);
    if (type == PARQUET_INT32) out->number = (int32_t)low;
    if (type == PARQUET_INT64) memcpy(&out->number, &bits, sizeof bits);
    if (type == PARQUET_FLOAT) out->real = (double)single;
    if (type == PARQUET_DOUBLE) memcpy(&out->real, &bits, sizeof bits);
    return true;
}

bool parquet_is_read(const ParquetColumn *c) {
    return c->type->type <= PARQUET_BYTES && c->type->type != PARQUET_INT96;
}

static bool plain_values(const ParquetColumn *c, ParquetBytes in, size_t count, ParquetValue *out) {
    if (c->type->type != PARQUET_BOOLEAN) {
        for (size_t i = 0; i < count; i++)
            if (!plain_value(c->type->type, &in, &out[i])) return false;
        return true;
    }
    if (count > in.n * 8) return false;
    for (size_t i = 0; i < count; i++) out[i].number = in.at[i / 8] >> i % 8 & 1;
    return true;
}

static bool boolean_runs(ParquetBytes in, size_t count, ParquetValue *out) {
    Runs r = {.width = 1};
    uint32_t number;
    if (!cut_sized(&in, &r.in)) return false;
    for (size_t i = 0; i < count; i++) {
        if (!next_number(&r, &number)) return false;
        out[i].number = number & 1;
    }
    return true;
}

static bool dictionary_values(ParquetSource *s, const ParquetColumn *c, ParquetBytes in, size_t count,
                              ParquetValue *out, Error *e) {
    ParquetBytes width;
    uint32_t index;
    if (!cut(&in, 1, &width) || *width.at > 32) return damaged(s, "a dictionary index has too many bits", e);
    Runs r = {.in = in, .width = *width.at};
    for (size_t i = 0; i < count; i++) {
        if (!next_number(&r, &index) || index >= c->dictionary_count)
            return damaged(s, "an index is missing or beyond the dictionary", e);
        out[i] = c->dictionary[index];
        if (c->type->type == PARQUET_BYTES && !take(s, out[i].text.n, 1, e)) return false;
    }
    return true;
}

static bool read_values(ParquetSource *s, ParquetColumn *c, const ParquetPage *page, ParquetBytes in,
                        size_t count, Error *e) {
    if (count == 0) return true;
    mem_grow(&c->values, &c->value_capacity, c->value_count + count, sizeof *c->values);
    ParquetValue *out = c->values + c->value_count;
    c->value_count += count;
    if (!parquet_is_read(c)) return true;
    if (page->encoding == PARQUET_DICTIONARY || page->encoding == PARQUET_PLAIN_DICTIONARY)
        return dictionary_values(s, c, in, count, out, e);
    if (page->encoding == PARQUET_PLAIN)
        return plain_values(c, in, count, out) || damaged(s, "a value is cut short", e);
    if (page->encoding == PARQUET_RLE && c->type->type == PARQUET_BOOLEAN)
        return boolean_runs(in, count, out) || damaged(s, "a value is cut short", e);
    return error_input(e, "'%s', column '%.*s', page at byte %zu: its encoding (%lld) " REWRITE, s->file,
                       PARQUET_NAME(c->type->name), s->page, (long long)page->encoding);
}

// --- pages -----------------------------------------------------------------------------------------------

typedef struct Codec {
    const char *name;
    bool (*expand)(const uint8_t *in, size_t n, uint8_t *out, size_t size); // NULL: not read
} Codec;

static bool unpack(ParquetSource *s, int64_t codec, ParquetBytes in, size_t size, ParquetBytes *out,
                   Error *e) {
    static const Codec CODECS[] = {
        {"none", NULL}, {"snappy", snappy_block}, {"gzip", gzip_block}, {"LZO", NULL}, {"Brotli", NULL},
        {"LZ4", NULL},  {"zstd", zstd_block},     {"LZ4", NULL}};
    *out = in;
    if (codec == 0) return in.n == size || damaged(s, "a page that isn't compressed has two sizes", e);
    if (codec < 0 || codec >= (int64_t)(sizeof CODECS / sizeof *CODECS))
        return damaged(s, "a compression that doesn't exist", e);
    const Codec *c = &CODECS[codec];
    if (!c->expand)
        return error_input(e, "'%s', column '%.*s': its compression (%s) " REWRITE, s->file,
                           PARQUET_NAME(s->at->type->name), c->name);
    if (!take(s, size, 1, e)) return false;
    uint8_t *bytes = keep(s, size, 1);
    *out = (ParquetBytes){bytes, size};
    return c->expand(in.at, in.n, bytes, size) || damaged(s, "its bytes don't unpack to the stated size", e);
}

static bool read_dictionary(ParquetSource *s, ParquetColumn *c, const ParquetPage *page, ParquetBytes in,
                            Error *e) {
    size_t count = (size_t)page->values;
    if (!parquet_is_read(c)) return true;
    if (!take(s, count, sizeof *c->dictionary, e)) return false;
    c->dictionary = keep(s, count, sizeof *c->dictionary);
    c->dictionary_count = count;
    return plain_values(c, in, count, c->dictionary) ||
           damaged(s, "a value of its dictionary is cut short", e);
}

static bool read_levels(ParquetBytes in, int most, size_t count, uint8_t *out) {
    Runs r = {.in = in};
    uint32_t level = 0;
    while (most >> r.width) r.width++;
    for (size_t i = 0; i < count; i++) {
        if (most && (!next_number(&r, &level) || level > (uint32_t)most)) return false;
        out[i] = (uint8_t)level;
    }
    return true;
}

// The entries of a page: its levels, then a value for each entry that has one.
static bool read_entries(ParquetSource *s, ParquetColumn *c, const ParquetPage *page,
                         const ParquetBytes levels[2], ParquetBytes values, Error *e) {
    size_t count = (size_t)page->values, before = c->entries, present = 0;
    if (count == 0) return true;
    if (!take(s, count, ENTRY_COST, e)) return false;
    mem_grow(&c->definitions, &c->definition_capacity, before + count, 1);
    mem_grow(&c->repetitions, &c->repetition_capacity, before + count, 1);
    if (!read_levels(levels[0], c->definition, count, c->definitions + before) ||
        !read_levels(levels[1], c->repetition, count, c->repetitions + before))
        return damaged(s, "its levels are cut short or too high", e);
    c->entries += count;
    for (size_t i = before; i < c->entries; i++) present += c->definitions[i] == c->definition;
    return read_values(s, c, page, values, present, e);
}

static bool read_data(ParquetSource *s, ParquetColumn *c, const ParquetPage *page, ParquetBytes in,
                      Error *e) {
    ParquetBytes levels[2] = {{in.at, 0}, {in.at, 0}};
    const int most[2] = {c->definition, c->repetition};
    for (int i = 1; i >= 0; i--) { // repetition comes first
        if (!most[i]) continue;
        if (page->level_encoding[i] != PARQUET_RLE)
            return damaged(s, "its levels are of a kind out of use", e);
        if (!cut_sized(&in, &levels[i])) return damaged(s, "its levels are cut short", e);
    }
    return read_entries(s, c, page, levels, in, e);
}

static bool read_data_2(ParquetSource *s, ParquetColumn *c, const ParquetPage *page, int64_t codec,
                        ParquetBytes in, Error *e) {
    ParquetBytes levels[2];
    for (int i = 1; i >= 0; i--)
        if (page->level_bytes[i] < 0 || !cut(&in, (size_t)page->level_bytes[i], &levels[i]))
            return damaged(s, "its levels are cut short", e);
    size_t size = (size_t)page->unpacked, before = levels[0].n + levels[1].n;
    if (size < before) return damaged(s, "its size is less than that of its levels", e);
    return unpack(s, page->is_packed && size > before ? codec : 0, in, size - before, &in, e) &&
           read_entries(s, c, page, levels, in, e);
}

static bool read_page(ParquetSource *s, ParquetColumn *c, const ParquetPage *page, int64_t codec,
                      ParquetBytes in, Error *e) {
    bool is_data = page->kind == PARQUET_PAGE_DATA, is_dictionary = page->kind == PARQUET_PAGE_DICTIONARY;
    if (page->kind != PARQUET_PAGE_DATA_2 && !is_data && !is_dictionary) return true; // an index
    if (page->values < 0 || page->values > INT32_MAX || page->unpacked < 0 || page->unpacked > INT32_MAX)
        return damaged(s, "its header lacks a size", e);
    if (page->crc != -1 && (uint32_t)page->crc != crc32(0, in.at, (uInt)in.n))
        return damaged(s, "its check sum is wrong", e);
    if (page->kind == PARQUET_PAGE_DATA_2) return read_data_2(s, c, page, codec, in, e);
    if (!unpack(s, codec, in, (size_t)page->unpacked, &in, e)) return false;
    return is_data ? read_data(s, c, page, in, e) : read_dictionary(s, c, page, in, e);
}

bool parquet_chunk(ParquetSource *s, ParquetColumn *c, const ParquetChunk *chunk, Error *e) {
    ParquetBytes in, page_bytes;
    ParquetPage page;
    s->at = c;
    s->page = 0;
    if (chunk->elsewhere.n)
        return error_input(e, "'%s', column '%.*s': is in another file, which " REWRITE, s->file,
                           PARQUET_NAME(c->type->name));
    if (chunk->values == 0) return true;
    // The chunk's pages follow each other, the dictionary first.
    int64_t from = chunk->dictionary > 0 && chunk->dictionary < chunk->data ? chunk->dictionary : chunk->data;
    if (from < 4 || chunk->size < 0 || chunk->values < 0 || (uint64_t)from > s->size ||
        (size_t)chunk->size > s->size - (size_t)from)
        return damaged(s, "the column ends beyond the file", e);
    in = (ParquetBytes){s->bytes + from, (size_t)chunk->size};
    while (c->entries < (size_t)chunk->values) {
        s->page = (size_t)(in.at - s->bytes);
        if (!parquet_page(&page, &in) || page.packed < 0 || !cut(&in, (size_t)page.packed, &page_bytes))
            return damaged(s, "its header is damaged, or the page is cut short", e);
        if (!read_page(s, c, &page, chunk->codec, page_bytes, e)) return false;
    }
    return true;
}

void parquet_forget(ParquetSource *s) {
    while (s->kept_count) mem_free(s->kept[--s->kept_count]);
}
