// Blocks from calloc, aligned. Invariants: the Header before a block holds the address that calloc returned,
// at most ALIGN bytes below the block, and the size that was asked for; in_use is the sum over all blocks.
#include "engine/base/memory.h"

#include <assert.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 64 };

typedef struct Header {
    void *raw;
    size_t bytes;
} Header;

// calloc's blocks are aligned for any type, so that an aligned block has at least this much before it.
static_assert(sizeof(Header) <= alignof(max_align_t), "no space for the header");

static atomic_size_t in_use;

size_t mem_in_use(void) { return atomic_load(&in_use); }

bool size_mul(size_t a, size_t b, size_t *out) {
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool size_add(size_t a, size_t b, size_t *out) {
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

__attribute__((weak)) _Noreturn void mem_exhausted(size_t bytes) {
    char line[100];
    bool huge = bytes == SIZE_MAX; // the product did not even fit
    int n =
        huge ? snprintf(line, sizeof line, "outpace: out of memory\n")
             : snprintf(line, sizeof line, "outpace: out of memory: %.3g MB wanted\n", (double)bytes / 1e6);
    if (write(STDERR_FILENO, line, (size_t)n) < 0) {} // nothing more can be done
    _exit(1);
}

void *mem_try(size_t count, size_t size) {
    size_t bytes, padded;
    if (!size_mul(count, size, &bytes) || !size_add(bytes, 2 * ALIGN, &padded)) return NULL;
    padded = padded / ALIGN * ALIGN; // space for the header below p, and at least a byte above the elements
    // Large blocks come from the system as zero pages; clearing them by hand would touch (and so commit) step
    // areas that a short run never uses. calloc knows that, aligned_alloc doesn't, hence the header.
    unsigned char *raw = calloc(1, padded);
    if (!raw) return NULL;
    unsigned char *p = raw + ALIGN - ((size_t)raw & (ALIGN - 1));
    memcpy(p - sizeof(Header), &(Header){raw, padded}, sizeof(Header));
    atomic_fetch_add(&in_use, padded);
    return p;
}

void *mem_new(size_t count, size_t size) {
    void *p = mem_try(count, size);
    if (p) return p;
    size_t bytes;
    mem_exhausted(size_mul(count, size, &bytes) ? bytes : SIZE_MAX);
}

void mem_free(void *p) {
    if (!p) return;
    Header h;
    memcpy(&h, (unsigned char *)p - sizeof h, sizeof h);
    assert((size_t)p % ALIGN == 0 &&
           (size_t)p - (size_t)h.raw <= ALIGN); // else it isn't ours, or was overrun
    assert(h.bytes <= mem_in_use());
    atomic_fetch_sub(&in_use, h.bytes);
    free(h.raw);
}

void mem_free_local(void *address) {
    void *p;
    memcpy(&p, address, sizeof p);
    mem_free(p);
}

void mem_grow(void *array, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return;
    size_t want = *capacity < 8 ? 8 : *capacity;
    while (want < need)
        if (!size_mul(want, 2, &want)) mem_exhausted(SIZE_MAX);
    void *old, *bigger = mem_new(want, size);
    memcpy(&old, array, sizeof old); // array points to a pointer of any type
    if (old) memcpy(bigger, old, *capacity * size);
    mem_free(old);
    memcpy(array, &bigger, sizeof bigger);
    *capacity = want;
    assert(*capacity >= need);
}

bool mem_take(MemBlocks *b, void *out, size_t count, size_t size) {
    void *block = mem_try(count, size);
    memcpy(out, &block, sizeof block);
    if (!block) return false;
    mem_grow(&b->list, &b->capacity, b->count + 1, sizeof *b->list);
    b->list[b->count++] = block;
    b->bytes += count * size;
    return true;
}

void mem_free_list(const void *const *list, size_t count) {
    for (size_t i = 0; i < count; i++) mem_free((void *)(uintptr_t)list[i]);
}

void mem_free_all(MemBlocks *b) {
    for (size_t i = 0; i < b->count; i++) mem_free(b->list[i]);
    mem_free(b->list);
    *b = (MemBlocks){0};
}

char *mem_text(const char *s, size_t n) {
    size_t bytes;
    if (!size_add(n, 1, &bytes)) mem_exhausted(SIZE_MAX);
    char *copy = mem_new(bytes, 1);
    if (n) memcpy(copy, s, n);
    return copy;
}

char *mem_printf(const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    assert(n >= 0); // our formats have no wide characters
    char *text = mem_new((size_t)n + 1, 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}
