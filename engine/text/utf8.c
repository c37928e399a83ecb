// UTF-8 by the table of well-formed sequences in the Unicode standard, and GPT-2's alphabet of bytes.
#include "engine/text/utf8.h"

#include <assert.h>
#include <stdbool.h>

// Length of the character that a first byte begins, and the range of its second byte, which rules out
// overlong forms, surrogates and codes past U+10FFFF. Length 0: not a first byte.
typedef struct {
    int length;
    unsigned char low, high;
} Form;

static Form form_of(unsigned char c) {
    if (c < 0x80) return (Form){1, 0, 0};
    if (c < 0xC2) return (Form){0, 0, 0};
    if (c < 0xE0) return (Form){2, 0x80, 0xBF};
    if (c < 0xF0) return (Form){3, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF};
    if (c < 0xF5) return (Form){4, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF};
    return (Form){0, 0, 0};
}

// How many of the n bytes at s start a character of the form, the first byte included.
static int matching(const char *s, size_t n, Form f) {
    int count = 1;
    for (; count < f.length && (size_t)count < n; count++) {
        unsigned char c = (unsigned char)s[count];
        if (c < (count == 1 ? f.low : 0x80) || c > (count == 1 ? f.high : 0xBF)) break;
    }
    return count;
}

int utf8_length(const char *s, size_t n) {
    if (n == 0) return 0;
    Form f = form_of((unsigned char)*s);
    if (f.length <= 1) return f.length;
    return matching(s, n, f) == f.length ? f.length : 0;
}

int utf8_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        int length = utf8_length(s + i, n - i);
        if (length == 0) return 0;
        i += (size_t)length;
    }
    return 1;
}

int utf8_bad_length(const char *s, size_t n) {
    Form f = form_of((unsigned char)*s);
    return f.length ? matching(s, n, f) : 1;
}

int utf8_is_cut(const char *s, size_t n) {
    Form f = form_of((unsigned char)*s);
    return n < (size_t)f.length && (size_t)matching(s, n, f) == n;
}

uint32_t utf8_code(const char *s, int length) {
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    assert(length >= 1 && length <= 4);
    uint32_t code = (unsigned char)s[0] & first_bits[length];
    for (int i = 1; i < length; i++) code = code << 6 | ((unsigned char)s[i] & 0x3F);
    return code;
}

int utf8_put(uint32_t code, char out[4]) {
    static const unsigned char marks[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    assert(code < 0x110000);
    for (int i = length - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3F));
    out[0] = (char)(marks[length] | code);
    return length;
}

static bool is_space(uint32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

size_t utf8_last(const char *s, size_t n) {
    assert(n > 0);
    size_t i = n - 1;
    while (i > 0 && ((unsigned char)s[i] & 0xC0) == 0x80) i--;
    return i;
}

size_t utf8_space_at_start(const char *s, size_t n) {
    size_t i = 0;
    for (int length; i < n && (length = utf8_length(s + i, n - i)) && is_space(utf8_code(s + i, length));)
        i += (size_t)length;
    return i;
}

size_t utf8_space_at_end(const char *s, size_t n) {
    size_t end = n;
    while (end > 0) {
        size_t last = utf8_last(s, end);
        if (!is_space(utf8_code(s + last, (int)(end - last)))) break;
        end = last;
    }
    return n - end;
}

// --- the byte-level alphabet

void byte_letters_init(ByteLetters *b) {
    int next = 0x100;
    for (int code = 0; code < 324; code++) b->codes[code] = -1;
    for (int byte = 0; byte < 256; byte++) {
        bool own = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        int code = own ? byte : next++;
        char letter[4];
        b->lengths[byte] = (unsigned char)utf8_put((uint32_t)code, letter);
        b->bytes[byte][0] = letter[0];
        b->bytes[byte][1] = letter[1];
        b->codes[code] = (short)byte;
    }
}

void byte_letters_write(const ByteLetters *b, const char *bytes, size_t n, Text *out) {
    char block[512];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        block[used] = b->bytes[byte][0];
        block[used + 1] = b->bytes[byte][1];
        used += b->lengths[byte];
        if (used > sizeof block - 2) {
            text_add(out, block, used);
            used = 0;
        }
    }
    text_add(out, block, used);
}

bool byte_letters_read(const ByteLetters *b, const char *letters, size_t n, Text *out) {
    size_t before = out->length;
    for (size_t i = 0; i < n;) {
        int length = utf8_length(letters + i, n - i);
        uint32_t code = length ? utf8_code(letters + i, length) : 0;
        if (code >= 324 || b->codes[code] < 0) {
            out->length = before;
            return false;
        }
        char byte = (char)b->codes[code];
        text_add(out, &byte, 1);
        i += (size_t)length;
    }
    return true;
}
