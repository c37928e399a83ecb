// Errors and suggestions. Invariant: an Error's text is always one line of valid UTF-8 without control
// characters, whatever bytes went into it.
#include "engine/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

// `cut`: the buffer ended before the message did, perhaps within its last character.
static void make_one_line(char *s, bool cut) {
    while (*s) {
        utf8proc_int32_t c;
        utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)s, -1, &c);
        if (n < 1 && cut && (unsigned char)*s >= 0xc0 && strlen(s) < 4) *s = 0;
        if (*s == 0) return;
        if (n < 1 || c < 0x20 || (c >= 0x7f && c < 0xa0)) memset(s, '?', n < 1 ? 1 : (size_t)n);
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

// --- did you mean

enum { LONGEST = 64 };

// The classic table of edit distances, row by row; three rows are enough for swaps of neighbours.
int suggest_distance(const char *a, const char *b) {
    size_t n = strlen(a), m = strlen(b);
    if (n >= LONGEST || m >= LONGEST) return strcmp(a, b) ? LONGEST : 0;
    int rows[3][LONGEST];
    for (size_t j = 0; j <= m; j++) rows[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < now[j]) now[j] = last[j] + 1;
            if (now[j - 1] + 1 < now[j]) now[j] = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    return rows[n % 3][m];
}

// People type beginnings: letters in common there count half an edit each, and a word that begins a name is
// that name.
const char *suggest(const char *word, const void *table, size_t count, size_t size) {
    int best = 2 * LONGEST, length = (int)strlen(word);
    int allowed = length / 3 + 1 < LONGEST ? length / 3 + 1 : LONGEST - 1;
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        const void *row = size ? (const char *)table + i * size : ((const void *const *)table)[i];
        const char *name = *(const char *const *)row;
        int common = 0, d = suggest_distance(word, name);
        while (word[common] && word[common] == name[common]) common++;
        if (length > 2 && common == length) d = 0;
        if (d <= allowed && 2 * d - common < best) {
            best = 2 * d - common;
            found = name;
        }
    }
    return found;
}
