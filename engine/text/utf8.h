// UTF-8, one character at a time.
#pragma once
#include <stddef.h>

// Bytes of the valid character at s (n bytes are there), 1 to 4; 0 if there is none: a stray, overlong,
// surrogate or cut-off sequence.
int utf8_length(const char *s, size_t n);

// True if all n bytes are whole valid characters.
int utf8_valid(const char *s, size_t n);

// What stands for a byte that is no text: U+FFFD.
#define UTF8_REPLACEMENT "\xef\xbf\xbd"
