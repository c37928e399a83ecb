// Bytes to rows: gzip, JSON Lines, one JSON array, lines of text. Every size in the file is bounded before
// memory is allocated for it.
#include "datasets/format.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

// Parsed JSON takes many times its size: "[]," is three bytes and a hundred in memory. Lines are parsed one
// at a time.
static const size_t MOST_ARRAY = 64u << 20, MOST_LINE = 16u << 20;

static bool take_json(const Row *at, const json_t *json, TakeRow *take, void *state, Error *e) {
    Row row = *at;
    row.json = json;
    if (!json_is_object(json))
        return error_input(e, "'%s', %s %zu: must be a JSON object, {\"prompt\": \"...\"}%s", at->file,
                           at->unit, at->number,
                           *at->unit == 'l' ? "; lines of plain text are of the format text" : "");
    return take(state, &row, e);
}

static bool take_line(const Row *at, const char *line, size_t n, TakeRow *take, void *state, Error *e) {
    json_error_t why;
    json_t *json = json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!json)
        return error_input(
            e, "'%s', line %zu, column %d: is not JSON: %s; lines of plain text are of the format text",
            at->file, at->number, why.column, json_why(&why));
    bool ok = take_json(at, json, take, state, e);
    json_decref(json);
    return ok;
}

static bool take_text(const Row *at, const char *line, size_t n, TakeRow *take, void *state, Error *e) {
    json_t *json = memchr(line, 0, n) ? NULL : json_pack("{s:s%}", "prompt", line, n); // NULL: not UTF-8
    if (!json)
        return error_input(e, "'%s', line %zu: is not text in UTF-8: convert it, as with iconv", at->file,
                           at->number);
    bool ok = take_json(at, json, take, state, e);
    json_decref(json);
    return ok;
}

static bool is_blank(const char *line, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strchr(" \t\r", line[i]) || !line[i]) return false;
    return true;
}

static bool each_line(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take,
                      void *state, Error *e) {
    Row at = {.file = file, .unit = "line"};
    for (size_t from = 0, length; from < n; from += length + 1) {
        const char *line = bytes + from, *end = memchr(line, '\n', n - from);
        length = end ? (size_t)(end - line) : n - from;
        at.number++;
        if (is_blank(line, length)) continue;
        if (length > MOST_LINE)
            return error_input(e, "'%s', line %zu: has %zu bytes, %zu are the most: is it JSON Lines?", file,
                               at.number, length, MOST_LINE);
        size_t shown = length - (line[length - 1] == '\r');
        if (!(kind == ROWS_TEXT ? take_text : take_line)(&at, line, shown, take, state, e)) return false;
    }
    return true;
}

static bool each_item(const char *bytes, size_t n, const char *file, TakeRow *take, void *state, Error *e) {
    Row at = {.file = file, .unit = "row"};
    if (n > MOST_ARRAY)
        return error_input(e, "'%s' is one JSON array of %zu bytes, %zu are the most: make it JSON Lines",
                           file, n, MOST_ARRAY);
    json_t *list = json_from_bytes(bytes, n, file, e);
    bool ok = list;
    for (size_t i = 0; ok && i < json_array_size(list); i++) {
        at.number = i + 1;
        ok = take_json(&at, json_array_get(list, i), take, state, e);
    }
    json_decref(list);
    return ok;
}

bool rows_each(const char *bytes, size_t n, const char *file, RowsKind kind, TakeRow *take, void *state,
               Error *e) {
    static const char MARK[] = "\xEF\xBB\xBF"; // the byte order mark that some editors put before UTF-8
    size_t from = n >= 3 && memcmp(bytes, MARK, 3) == 0 ? 3 : 0;
    bytes += from;
    n -= from;
    size_t i = 0;
    while (i < n && strchr(" \t\r\n", bytes[i]) && bytes[i]) i++;
    if (kind == ROWS_JSON && i < n && bytes[i] == '[') return each_item(bytes, n, file, take, state, e);
    return each_line(bytes, n, file, kind, take, state, e);
}

// --- gzip ------------------------------------------------------------------------------------------------

enum { CHUNK = 1 << 16, WINDOW_GZIP = 15 + 16 }; // zlib: 15 bits of window, and 16 for a gzip header
static const size_t MOST_INPUT = 1u << 30;       // zlib counts in 32 bits

bool gzip_is(const char *bytes, size_t n) { return n >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0; }

static void *take_memory(void *state, unsigned count, unsigned size) {
    (void)state;
    return mem_new(count, size);
}

static void give_memory(void *state, void *p) {
    (void)state;
    mem_free(p);
}

typedef struct Expansion {
    z_stream stream;
    char *out;
    size_t size, capacity;
} Expansion;

static void check(const Expansion *x) {
    assert(x->size < x->capacity && x->stream.avail_out <= CHUNK); // one byte is left for a NUL
}

static bool expand_chunk(Expansion *x, const char *file, size_t most, int *status, Error *e) {
    if (x->size > most)
        return error_input(e, "'%s' unpacks to more than %zu bytes: unpack it yourself if you trust it", file,
                           most);
    mem_grow(&x->out, &x->capacity, x->size + CHUNK + 1, 1); // at most about twice `most`
    x->stream.next_out = (Bytef *)x->out + x->size;
    x->stream.avail_out = CHUNK;
    *status = inflate(&x->stream, Z_NO_FLUSH);
    x->size += CHUNK - x->stream.avail_out;
    check(x);
    assert(*status != Z_MEM_ERROR); // take_memory never fails
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

bool gzip_expand(const char *bytes, size_t n, const char *file, size_t most, char **out, size_t *size,
                 Error *e) {
    if (n > MOST_INPUT) return error_input(e, "'%s' has more than %zu bytes compressed", file, MOST_INPUT);
    Expansion x = {.stream = {.zalloc = take_memory, .zfree = give_memory, .avail_in = (uInt)n}};
    union {
        const char *given;
        Bytef *taken; // zlib only reads it
    } in = {bytes};
    x.stream.next_in = in.taken;
    int status = inflateInit2(&x.stream, WINDOW_GZIP);
    assert(status == Z_OK); // it fails only without memory, and then take_memory ends the program
    (void)status;
    bool ok = expand_members(&x, file, most, e);
    inflateEnd(&x.stream);
    if (ok) {
        x.out[x.size] = 0; // expand_chunk grows by one more
        *out = x.out;
        *size = x.size;
    } else mem_free(x.out);
    return ok;
}
