#include "engine/text/utf8.h"

#include <utf8proc.h>

int utf8_length(const char *s, size_t n) {
    utf8proc_int32_t code;
    utf8proc_ssize_t length = utf8proc_iterate((const utf8proc_uint8_t *)s, (utf8proc_ssize_t)n, &code);
    return length > 0 ? (int)length : 0;
}

int utf8_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        int length = utf8_length(s + i, n - i);
        if (length == 0) return 0;
        i += (size_t)length;
    }
    return 1;
}
