#include "engine/base/text.h"

#include "engine/base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool reserve(Text *t, size_t more) {
    void *data = t->data;
    size_t need;
    if (!t->failed && more < t->capacity - t->length) return true;
    if (t->failed || !size_add(t->length + 1, more, &need) || !mem_grow(&data, &t->capacity, need, 1)) {
        t->failed = true;
        return false;
    }
    t->data = data;
    return true;
}

void text_add(Text *t, const char *bytes, size_t n) {
    if (!reserve(t, n)) return;
    if (n) memcpy(t->data + t->length, bytes, n);
    t->length += n;
    t->data[t->length] = 0;
}

void text_puts(Text *t, const char *s) { text_add(t, s, strlen(s)); }

void text_printf(Text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) t->failed = true;
    else if (reserve(t, (size_t)n)) {
        vsnprintf(t->data + t->length, (size_t)n + 1, format, again);
        t->length += (size_t)n;
    }
    va_end(again);
}

void text_clear(Text *t) {
    t->length = 0;
    if (t->data) t->data[0] = 0;
}

void text_release(Text *t) {
    mem_free(t->data);
    *t = (Text){0};
}

const char *text_get(const Text *t) { return t->data ? t->data : ""; }
