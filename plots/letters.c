// A text letter by letter: every byte of it is consumed once, and a bad one becomes "?".
#include "plots/letters.h"

#include <string.h>
#include <utf8proc.h>

bool letters_next(const char **at, char out[LETTER_SIZE]) {
    utf8proc_int32_t c;
    if (!**at) return false;
    utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)*at, -1, &c);
    bool shown = n >= 1 && c >= 0x20 && !(c >= 0x7f && c < 0xa0) && c != 0xfffe && c != 0xffff &&
                 c != 0x2028 && c != 0x2029;
    size_t size = n < 1 ? 1 : (size_t)n;
    memset(out, 0, LETTER_SIZE);
    memcpy(out, shown ? *at : "?", shown ? size : 1);
    *at += size;
    return true;
}

uint32_t letters_code(const char *letter) {
    utf8proc_int32_t c = 0;
    utf8proc_iterate((const utf8proc_uint8_t *)letter, -1, &c);
    return (uint32_t)c;
}

const char *letters_tex(char c) {
    switch (c) {
    case '\\': return "\\textbackslash{}";
    case '~': return "\\textasciitilde{}";
    case '^': return "\\textasciicircum{}";
    case '<': return "\\textless{}";
    case '>': return "\\textgreater{}";
    case '|': return "\\textbar{}";
    case '{': return "\\{";
    case '}': return "\\}";
    case '$': return "\\$";
    case '&': return "\\&";
    case '#': return "\\#";
    case '_': return "\\_";
    case '%': return "\\%";
    default: return NULL;
    }
}
