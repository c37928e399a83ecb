#include "engine/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

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

void *mem_alloc(size_t count, size_t size) {
    size_t bytes, padded;
    if (!size_mul(count, size, &bytes) || !size_add(bytes, 2 * ALIGN, &padded)) return NULL;
    padded = padded / ALIGN * ALIGN; // room for the header below p, and at least a byte above the elements
    // Large blocks come from the system as zero pages; clearing them by hand would touch (and so
    // commit) step areas that a short run never uses. calloc knows, aligned_alloc does not, hence the header.
    unsigned char *raw = calloc(1, padded);
    if (!raw) return NULL;
    unsigned char *p = raw + ALIGN - ((size_t)raw & (ALIGN - 1));
    memcpy(p - sizeof raw, &raw, sizeof raw);
    return p;
}

void mem_free(void *p) {
    if (!p) return;
    void *raw;
    memcpy(&raw, (unsigned char *)p - sizeof raw, sizeof raw);
    free(raw);
}

bool mem_grow(void **p, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return true;
    size_t want = *capacity < 8 ? 8 : *capacity;
    while (want < need)
        if (!size_mul(want, 2, &want)) return false;
    void *bigger = mem_alloc(want, size);
    if (!bigger) return false;
    if (*p) memcpy(bigger, *p, *capacity * size);
    mem_free(*p);
    *p = bigger;
    *capacity = want;
    return true;
}

char *mem_text(const char *s, size_t n) {
    size_t bytes;
    char *copy = size_add(n, 1, &bytes) ? mem_alloc(bytes, 1) : NULL;
    if (copy && n) memcpy(copy, s, n);
    return copy;
}
