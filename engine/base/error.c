#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void make_one_line(char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f) *s = '?';
}

static bool set(Error *e, ErrorKind kind, const char *format, va_list args) {
    if (!e) return false;
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, format, args);
    make_one_line(e->text);
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
    if (!e) return false;
    char prefix[512], rest[sizeof e->text];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(rest, e->text, sizeof rest);
    size_t n = strlen(prefix);
    memcpy(e->text, prefix, n);
    snprintf(e->text + n, sizeof e->text - n, ": %.*s", (int)(sizeof e->text - n - 3), rest);
    make_one_line(e->text);
    return false;
}

int error_exit_code(const Error *e) { return e->kind == ERROR_NONE ? 0 : e->kind == ERROR_INPUT ? 2 : 1; }
