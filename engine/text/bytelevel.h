// Bytes written as letters, so that any bytes make a word of printable characters: the alphabet of GPT-2 and
// of all byte-level vocabularies. Printable Latin-1 stands for itself, the other 68 bytes for U+0100 and on.
#pragma once
#include "engine/base/text.h"

#include <stdint.h>

typedef struct ByteLetters {
    char bytes[256][2]; // the letter of each byte, in UTF-8
    unsigned char lengths[256];
    short codes[324]; // the byte of each letter by its code, -1: no letter
} ByteLetters;

void byte_letters_init(ByteLetters *b);

void byte_letters_write(const ByteLetters *b, const char *bytes, size_t n, Text *out);

// Appends the bytes that n bytes of letters stand for; false, and nothing appended, if one is no letter.
bool byte_letters_read(const ByteLetters *b, const char *letters, size_t n, Text *out);
