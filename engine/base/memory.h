// Memory: allocations that never fail, and allocations that may.
//
// mem_new, mem_grow and mem_text never return NULL: if memory runs out they end the program with one line and
// exit code 1 (mem_exhausted), so callers don't check. A block whose size comes from a file or from the user
// (weights, a cache, a step area, a length in a header) is allocated with mem_try instead, and a NULL becomes
// an Error that names the file or the option. Products of such sizes go through size_mul and size_add.
//
// Every allocation of the product goes through here; tests link with --wrap to fail the n-th one.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// *out = a * b or a + b. On overflow they return false and leave *out alone.
bool size_mul(size_t a, size_t b, size_t *out);
bool size_add(size_t a, size_t b, size_t *out);

// count zeroed elements, aligned to 64 bytes (a cache line, a vector register, a tile row). count * size may
// be 0. Freed by mem_free.
void *mem_new(size_t count, size_t size);

// The same, but NULL if memory runs out or the product overflows.
void *mem_try(size_t count, size_t size);

void mem_free(void *p);

// Frees several, const or not: MEM_FREE(t->keys, t->values).
#define MEM_FREE(...) mem_free_list(MEM_LIST(__VA_ARGS__), sizeof MEM_LIST(__VA_ARGS__) / sizeof(void *))
#define MEM_LIST(...) ((const void *const[]){__VA_ARGS__})
void mem_free_list(const void *const *list, size_t count);

// For what a block owns: it is released when the block ends, however that is left. An allocation, and a value
// that has a function to release it by its address:
//
//      LOCAL_MEMORY char *path = file_path(folder, name);
//      LOCAL(output_release) Output out = {.force = force};
#define LOCAL(release) __attribute__((cleanup(release)))
#define LOCAL_MEMORY   LOCAL(mem_free_local)
void mem_free_local(void *address); // of the pointer

// Blocks that are freed together; {0} is none.
typedef struct MemBlocks {
    void **list;                   // (count)
    size_t count, capacity, bytes; // bytes: as asked for
} MemBlocks;

// Like mem_try, and stores the address, which may be NULL, in *out.
bool mem_take(MemBlocks *b, void *out, size_t count, size_t size);
void mem_free_all(MemBlocks *b);

// Bytes of all blocks that are not freed.
size_t mem_in_use(void);

// Grows an array from mem_new (or NULL) to at least `need` elements; `array` is the address of its pointer.
// The capacity at least doubles, and new elements are zero.
void mem_grow(void *array, size_t *capacity, size_t need, size_t size);

// A copy of the n bytes at s with a NUL at its end; a formatted text.
char *mem_text(const char *s, size_t n);
char *mem_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints "outpace: out of memory: 1200 MB wanted" and exits with code 1, from any thread, without unwinding.
// That's like a kill, which every file we write survives. Weak, so that a test can define its own.
_Noreturn void mem_exhausted(size_t bytes);

// A list that grows: a pointer from mem_new or NULL, how many elements it has, and how many fit. The address
// of one more element: *LIST_ADD(l->items, l->count, l->capacity) = x.
#define LIST_ADD(items, count, capacity) \
    (mem_grow(&(items), &(capacity), (size_t)(count) + 1, sizeof *(items)), &(items)[(count)++])
