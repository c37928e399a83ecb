// A growing text: built piece by piece, always NUL-terminated.
#pragma once
#include "engine/base/memory.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct Text {
    char *data; // NULL until the first byte; use text_get to read
    size_t length, capacity;
} Text;

void text_add(Text *t, const char *bytes, size_t n);
void text_puts(Text *t, const char *s);
void text_printf(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(Text *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void text_csv(Text *t, const char *field); // quoted if it has to be
void text_clear(Text *t);                  // empties it, keeps the memory
void text_release(Text *t);                // frees it; t is empty again
const char *text_get(const Text *t);

// A text of a block, which is released when the block ends: LOCAL_TEXT line = {0};
#define LOCAL_TEXT LOCAL(text_release) Text

bool text_ends(const char *text, const char *end);                     // whether text ends with `end`
int text_among(const char *text, const char *const *words, int count); // its place there; -1: it has none

// A measured number rounded to the digits that its 95% interval supports: a unit of the last digit is at most
// 28% of the interval's half width, so 1.9523 [1.913, 1.998] becomes 1.95, and 1605.4 [1210, 1980] becomes
// 1600. Without an interval (NAN) it gets three digits, and a whole number keeps its digits. "-" if the value
// is NAN.
enum { MEASURED_SIZE = 32 };
const char *measured_text(char out[MEASURED_SIZE], double value, double low, double high);

// Its interval, "[1.91, 2.00]", with the same digits; nothing if one of the three is NAN.
void text_reach(Text *t, double value, double low, double high);

// "1.95 [1.91, 2.00]", all with the same digits; "1.95" without an interval, nothing without a value.
void text_measured(Text *t, double value, double low, double high);
