// A growing text: built piece by piece, always NUL-terminated, failing once and for all.
//
// If memory runs out, `failed` is set, later calls do nothing, and the owner checks it once at the end.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct Text {
    char *data; // NULL until the first byte; use text_get to read
    size_t length, capacity;
    bool failed;
} Text;

void text_add(Text *t, const char *bytes, size_t n);
void text_puts(Text *t, const char *s);
void text_printf(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_clear(Text *t);   // empties it, keeps the memory
void text_release(Text *t); // frees it; t is then as new
const char *text_get(const Text *t);
