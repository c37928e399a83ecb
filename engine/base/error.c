#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

static bool is_control(utf8proc_int32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }

// `cut`: the buffer ended before the message did, perhaps within its last character.
static void make_one_line(char *s, bool cut) {
    while (*s) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s, -1, &c);
        if (n < 1 && cut && (unsigned char)*s >= 0xc0 && strlen(s) < 4) *s = 0;
        if (*s == 0) return;
        if (n < 1 || is_control(c)) memset(s, '?', n < 1 ? 1 : (size_t)n);
        s += n < 1 ? 1 : n;
    }
}

static void print_line(char *s, size_t capacity, const char *format, va_list args) {
    int n = vsnprintf(s, capacity, format, args);
    make_one_line(s, n >= (int)capacity);
}

static bool set(Error *e, ErrorKind kind, const char *format, va_list args) {
    if (!e) return false;
    e->kind = kind;
    print_line(e->text, sizeof e->text, format, args);
    return false;
}

bool error_input(Error *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(e, ERROR_INPUT, format, args);
    va_end(args);
    return false;
}

bool error_system(Error *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(e, ERROR_SYSTEM, format, args);
    va_end(args);
    return false;
}

bool error_within(Error *e, const char *format, ...) {
    if (!e || e->kind == ERROR_INTERRUPTED) return false;
    char prefix[512], rest[sizeof e->text];
    va_list args;
    va_start(args, format);
    print_line(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(rest, e->text, sizeof rest);
    int n = snprintf(e->text, sizeof e->text, "%s: %s", prefix, rest);
    make_one_line(e->text, n >= (int)sizeof e->text);
    return false;
}

bool error_interrupted(Error *e, const char *what) {
    if (!e) return false;
    e->kind = ERROR_INTERRUPTED;
    int n = snprintf(e->text, sizeof e->text, "interrupted%s%s", what ? " while " : "", what ? what : "");
    make_one_line(e->text, n >= (int)sizeof e->text);
    return false;
}

int error_exit_code(const Error *e) {
    static const int codes[] = {
        [ERROR_NONE] = 0, [ERROR_INPUT] = 2, [ERROR_SYSTEM] = 1, [ERROR_INTERRUPTED] = 130};
    return codes[e->kind];
}
