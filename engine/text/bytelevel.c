#include "engine/text/bytelevel.h"

#include "engine/text/utf8.h"

static bool stands_for_itself(int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

void byte_letters_init(ByteLetters *b) {
    int next = 0x100;
    for (int code = 0; code < 324; code++) b->codes[code] = -1;
    for (int byte = 0; byte < 256; byte++) {
        int code = stands_for_itself(byte) ? byte : next++;
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
            if (!out->failed) out->length = before;
            return false;
        }
        char byte = (char)b->codes[code];
        text_add(out, &byte, 1);
        i += (size_t)length;
    }
    return true;
}
