// Memory: blocks that are always there, and blocks that may be refused.
//
// mem_new, mem_grow and mem_text never return NULL: where the system has no more memory they end the program
// with one line and exit code 1 (mem_exhausted), so that nobody needs to check. A block whose size comes from
// a file or from the user (weights, a cache, a step's area, whatever a header claims) is asked for with
// mem_try instead, and its absence is an Error that names the file or the option. Products of such sizes go
// through size_mul and size_add.
//
// Every allocation of the product goes through here; tests link with --wrap to fail the n-th one.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// *out = a * b or a + b; false if that does not fit, *out then untouched.
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

// count zeroed elements, aligned to 64 bytes (a cache line, a vector register, a tile row). count * size may
// be 0. Freed by mem_free.
void *mem_new(size_t count, size_t size);

// The same, or NULL if there is no memory or the product overflows.
void *mem_try(size_t count, size_t size);

void mem_free(void *p);

// Grows an array from mem_new (or NULL) so that it has room for at least `need` elements; `array` is the
// address of its pointer. The capacity at least doubles, new elements are zero.
void mem_grow(void *array, size_t *capacity, size_t need, size_t size);

// A copy of the n bytes at s with a NUL behind it; a formatted text.
char *mem_text(const char *s, size_t n);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints "outpace: out of memory: 1.2 GB wanted" and exits with code 1, from any thread, without unwinding:
// like a kill, which every file that we write survives. Weak, so that a test can put its own in its place.
_Noreturn void mem_exhausted(size_t bytes);
