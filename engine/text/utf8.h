// UTF-8, one character at a time.
#pragma once
#include "engine/base/text.h"

#include <stddef.h>
#include <stdint.h>

// Bytes of the valid character at the start of n bytes, 1 to 4; 0 for a stray, overlong, surrogate or cut-off
// sequence.
int utf8_length(const char *s, size_t n);

// True if all n bytes are whole valid characters.
int utf8_valid(const char *s, size_t n);

// Where no valid character starts: how many bytes one replacement character replaces, counted as in Unicode
// and Rust: the longest beginning of a character, or 1. It is n if more bytes may still complete all n.
int utf8_bad_length(const char *s, size_t n);

// True if the n bytes, 1 to 3, start a character and end before it does.
int utf8_is_cut(const char *s, size_t n);

// The code of the valid character of `length` bytes at s, and back: the bytes of a code below 0x110000.
uint32_t utf8_code(const char *s, int length);
int utf8_put(uint32_t code, char out[4]);

// Bytes of white space (Unicode's White_Space) at the start, at the end of n valid bytes.
size_t utf8_space_at_start(const char *s, size_t n);
size_t utf8_space_at_end(const char *s, size_t n);

// Where the last character of n > 0 valid bytes starts.
size_t utf8_last(const char *s, size_t n);

// Replaces a byte that isn't text: U+FFFD.
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

// --- the byte-level alphabet

typedef struct ByteLetters {
    char bytes[256][2]; // the letter of each byte, in UTF-8
    unsigned char lengths[256];
    short codes[324]; // the byte of each letter by its code, or -1
} ByteLetters;

void byte_letters_init(ByteLetters *b);

void byte_letters_write(const ByteLetters *b, const char *bytes, size_t n, Text *out);

// Appends the bytes of n bytes of letters; false, with nothing appended, if one of them isn't a letter.
bool byte_letters_read(const ByteLetters *b, const char *letters, size_t n, Text *out);
