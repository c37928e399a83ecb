// Memory with checked sizes. Every allocation of the product goes through these functions, so that a test
// can fail the n-th one (it links with --wrap for the C library's allocators).
//
// Products of sizes that come from files go through size_mul and size_add.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// *out = a * b or a + b; false if that does not fit, *out then untouched.
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

// count zeroed elements, aligned to 64 bytes (a cache line, a vector register, a tile row). NULL if there is
// no memory or the product overflows. count * size of 0 gives a valid pointer. Free with mem_free.
void *mem_alloc(size_t count, size_t size);
void mem_free(void *p);

// Grows *p (from mem_alloc, or NULL) of *capacity elements so that it holds at least `need`; capacity at
// least doubles, new elements are zero. False and nothing changed if there is no memory.
bool mem_grow(void **p, size_t *capacity, size_t need, size_t size);

// A copy of the n bytes at s with a NUL after it; NULL if there is no memory.
char *mem_text(const char *s, size_t n);
