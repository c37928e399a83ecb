#include "datasets/gzip.h"

#include "engine/base/memory.h"

#include <string.h>
#include <zlib.h>

enum { CHUNK = 1 << 16, WINDOW_GZIP = 15 + 16 }; // zlib: 15 bits of window, and 16 for a gzip header
static const size_t MOST_INPUT = 1u << 30;       // zlib counts in 32 bits

bool gzip_is(const char *bytes, size_t n) { return n >= 3 && memcmp(bytes, "\x1f\x8b\x08", 3) == 0; }

static void *take(void *state, unsigned count, unsigned size) {
    (void)state;
    return mem_alloc(count, size);
}

static void give(void *state, void *p) {
    (void)state;
    mem_free(p);
}

typedef struct Expansion {
    z_stream stream;
    char *out;
    size_t size, capacity;
} Expansion;

static bool step(Expansion *x, const char *file, size_t most, int *status, Error *e) {
    void *out = x->out;
    if (x->size > most)
        return error_input(e, "'%s' unpacks to more than %zu bytes: unpack it yourself if you trust it", file,
                           most);
    if (!mem_grow(&out, &x->capacity, x->size + CHUNK + 1, 1))
        return error_system(e, "out of memory for '%s'", file);
    x->out = out;
    x->stream.next_out = (Bytef *)x->out + x->size;
    x->stream.avail_out = CHUNK;
    *status = inflate(&x->stream, Z_NO_FLUSH);
    x->size += CHUNK - x->stream.avail_out;
    if (*status == Z_MEM_ERROR) return error_system(e, "out of memory for '%s'", file);
    if (*status == Z_BUF_ERROR) return error_input(e, "'%s' is cut short: fetch it again", file);
    if (*status == Z_OK && x->stream.avail_in == 0 && x->stream.avail_out > 0)
        return error_input(e, "'%s' is cut short: fetch it again", file);
    return *status == Z_OK || *status == Z_STREAM_END ||
           error_input(e, "'%s' is damaged: gzip says '%s'; fetch it again", file,
                       x->stream.msg ? x->stream.msg : "data error");
}

static bool expand(Expansion *x, const char *file, size_t most, Error *e) {
    for (;;) {
        int status;
        if (!step(x, file, most, &status, e)) return false;
        if (status != Z_STREAM_END) continue;
        if (x->stream.avail_in == 0) break;
        inflateReset(&x->stream); // the next member
    }
    return x->size <= most ||
           error_input(e, "'%s' unpacks to more than %zu bytes: unpack it yourself if you trust it", file,
                       most);
}

bool gzip_expand(const char *bytes, size_t n, const char *file, size_t most, char **out, size_t *size,
                 Error *e) {
    if (n > MOST_INPUT) return error_input(e, "'%s' has more than %zu bytes compressed", file, MOST_INPUT);
    Expansion x = {.stream = {.zalloc = take, .zfree = give, .avail_in = (uInt)n}};
    union {
        const char *given;
        Bytef *taken; // zlib reads it only
    } in = {bytes};
    x.stream.next_in = in.taken;
    bool ok = inflateInit2(&x.stream, WINDOW_GZIP) == Z_OK || error_system(e, "out of memory for '%s'", file);
    if (!ok) return false;
    ok = expand(&x, file, most, e);
    inflateEnd(&x.stream);
    if (ok) {
        x.out[x.size] = 0; // there is always room: step() grows by one more
        *out = x.out;
        *size = x.size;
    } else mem_free(x.out);
    return ok;
}
