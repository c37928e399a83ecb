// Compressed bytes to bytes: whole files by gzip, whose size isn't known before, and blocks of a known size
// inside files (Parquet's pages) by gzip, snappy or zstd. Nothing is written after the size that the caller
// allows.
#include "datasets/format.h"

#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 1 << 16, WINDOW_GZIP = 15 + 16 }; // zlib: 15 bits of window, and 16 for a gzip header
static const size_t MOST_INPUT = 1u << 30;       // zlib counts in 32 bits

bool gzip_is(const char *bytes, size_t n) { return n >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0; }

static void *take_memory(UNUSED void *state, unsigned count, unsigned size) { return mem_new(count, size); }

static void give_memory(UNUSED void *state, void *p) { mem_free(p); }

typedef struct Expansion {
    z_stream stream;
    char *out;
    size_t size, capacity;
} Expansion;

static bool expand_chunk(Expansion *x, const char *file, size_t most, int *status, Error *e) {
    if (x->size > most)
        return error_input(e, "'%s' unpacks to more than %zu bytes: unpack it yourself if you trust it", file,
                           most);
    mem_grow(&x->out, &x->capacity, x->size + CHUNK + 1, 1); // at most about twice `most`
    x->stream.next_out = (Bytef *)x->out + x->size;
    x->stream.avail_out = CHUNK;
    *status = inflate(&x->stream, Z_NO_FLUSH);
    x->size += CHUNK - x->stream.avail_out;
    assert(x->size < x->capacity && x->stream.avail_out <= CHUNK); // one byte is left for a NUL
    assert(*status != Z_MEM_ERROR);                                // take_memory never fails
    if (*status == Z_BUF_ERROR) return error_input(e, "'%s' is cut short: fetch it again", file);
    if (*status == Z_OK && x->stream.avail_in == 0 && x->stream.avail_out > 0)
        return error_input(e, "'%s' is cut short: fetch it again", file);
    return *status == Z_OK || *status == Z_STREAM_END ||
           error_input(e, "'%s' is damaged: zlib reports '%s'; fetch it again", file,
                       x->stream.msg ? x->stream.msg : "data error");
}

static bool expand_members(Expansion *x, const char *file, size_t most, Error *e) {
    for (;;) {
        int status;
        if (!expand_chunk(x, file, most, &status, e)) return false;
        if (status != Z_STREAM_END) continue;
        if (x->stream.avail_in == 0) break;
        inflateReset(&x->stream); // on to the next member
    }
    return x->size <= most ||
           error_input(e, "'%s' unpacks to more than %zu bytes: unpack it yourself if you trust it", file,
                       most);
}

// A stream that reads the n bytes.
static z_stream begin(const void *bytes, size_t n) {
    z_stream s = {.zalloc = take_memory, .zfree = give_memory, .avail_in = (uInt)n};
    union {
        const void *given;
        Bytef *taken; // zlib only reads it
    } in = {bytes};
    s.next_in = in.taken;
    return s;
}

bool gzip_expand(const char *bytes, size_t n, const char *file, size_t most, char **out, size_t *size,
                 Error *e) {
    if (n > MOST_INPUT) return error_input(e, "'%s' has more than %zu bytes compressed", file, MOST_INPUT);
    Expansion x = {.stream = begin(bytes, n)};
    UNUSED int status = inflateInit2(&x.stream, WINDOW_GZIP);
    assert(status == Z_OK); // it fails only without memory, and then take_memory ends the program
    bool ok = expand_members(&x, file, most, e);
    inflateEnd(&x.stream);
    if (ok) {
        x.out[x.size] = 0; // expand_chunk grows by one more
        *out = x.out;
        *size = x.size;
    } else mem_free(x.out);
    return ok;
}

bool gzip_block(const uint8_t *in, size_t n, uint8_t *out, size_t size) {
    if (n > MOST_INPUT || size > MOST_INPUT) return false;
    z_stream s = begin(in, n);
    int status = inflateInit2(&s, WINDOW_GZIP);
    assert(status == Z_OK);
    s.next_out = out;
    s.avail_out = (uInt)size;
    status = inflate(&s, Z_FINISH);
    inflateEnd(&s);
    return status == Z_STREAM_END && s.avail_out == 0;
}

bool zstd_block(const uint8_t *in, size_t n, uint8_t *out, size_t size) {
    size_t got = ZSTD_decompress(out, size, in, n);
    return !ZSTD_isError(got) && got == size;
}

// --- snappy ----------------------------------------------------------------------------------------------
//
// The size of the result as a varint, then elements. An element's first byte has its kind in the two lowest
// bits: 0 is a literal (its length, then the bytes), the others copy `length` bytes from `offset` before the
// end of the result, perhaps overlapping it: then the bytes repeat.
//
//     kind   length                                           offset
//     0      upper 6 bits + 1, from 60 on the next 1..4 bytes
//     1      bits 2..4 + 4                                     bits 5..7 and a byte
//     2, 3   upper 6 bits + 1                                  2 or 4 bytes

typedef struct Snappy {
    const uint8_t *at, *end;
    uint8_t *out;
    size_t done, size; // done <= size
} Snappy;

// The next `bytes` bytes as a number, the lowest first.
static bool take_number(Snappy *s, size_t bytes, size_t *out) {
    *out = 0;
    if ((size_t)(s->end - s->at) < bytes) return false;
    for (size_t i = 0; i < bytes; i++) *out |= (size_t)*s->at++ << 8 * i;
    return true;
}

static bool add_literal(Snappy *s, size_t length) {
    if (length > 60 && (!take_number(s, length - 60, &length) || ++length == 0)) return false;
    if (length > (size_t)(s->end - s->at) || length > s->size - s->done) return false;
    memcpy(s->out + s->done, s->at, length);
    s->at += length;
    s->done += length;
    return true;
}

static bool add_copy(Snappy *s, size_t length, size_t offset) {
    if (offset == 0 || offset > s->done || length > s->size - s->done) return false;
    for (; length; length--, s->done++) s->out[s->done] = s->out[s->done - offset];
    return true;
}

static bool add_element(Snappy *s) {
    size_t tag = *s->at++, offset;
    if ((tag & 3) == 0) return add_literal(s, (tag >> 2) + 1);
    if (!take_number(s, (size_t)1 << ((tag & 3) - 1), &offset)) return false;
    if ((tag & 3) > 1) return add_copy(s, (tag >> 2) + 1, offset);
    return add_copy(s, (tag >> 2 & 7) + 4, (tag >> 5) << 8 | offset);
}

bool snappy_block(const uint8_t *in, size_t n, uint8_t *out, size_t size) {
    Snappy s = {.at = in, .end = in + n, .out = out, .size = size};
    size_t stated = 0, b = 0x80;
    for (int shift = 0; b & 0x80; shift += 7) {
        if (shift > 28 || !take_number(&s, 1, &b)) return false;
        stated |= (b & 0x7F) << shift;
    }
    if (stated != size) return false;
    while (s.at < s.end)
        if (!add_element(&s)) return false;
    return s.done == size;
}
