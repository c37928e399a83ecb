#include "datasets/pattern.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_NAME = 128 };

bool row_error(const Row *row, const char *field, const char *what, Error *e) {
    error_input(e, "'%s', %s %zu: field '%s' %s", row->file, row->unit, row->number, field, what);
    return false;
}

bool row_missing(const Row *row, const char *field, Error *e) {
    char what[256];
    snprintf(what, sizeof what, "is missing; a row of the format %s has %s", row->format, row->keys);
    return row_error(row, field, what, e);
}

// A longer key is none's.
static const json_t *member(const json_t *row, const char *key, size_t n) {
    char name[256];
    if (n >= sizeof name) return NULL;
    memcpy(name, key, n);
    name[n] = 0;
    return json_object_get(row, name);
}

const json_t *row_find(const json_t *row, const char *path, size_t n) {
    for (size_t at = 0; row && at < n;) {
        const char *slash = memchr(path + at, '/', n - at);
        size_t length = slash ? (size_t)(slash - path) - at : n - at;
        row = member(row, path + at, length);
        at += length + 1;
    }
    return json_is_null(row) ? NULL : row;
}

static bool list_text(const Row *row, const char *name, const json_t *list, Text *out, Error *e) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_string(item)) return row_error(row, name, "must be a string, or a list of strings", e);
        if (i) text_puts(out, "\n");
        text_add(out, json_string_value(item), json_string_length(item));
    }
    return true;
}

bool row_text(const Row *row, const char *name, const json_t *value, Text *out, Error *e) {
    if (json_is_array(value)) return list_text(row, name, value, out, e);
    if (json_is_integer(value)) text_printf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_string(value)) text_add(out, json_string_value(value), json_string_length(value));
    else return row_error(row, name, "must be a string, or a list of strings", e);
    return true;
}

// The part of the n bytes at s that is asked for.
static void take_part(const char *part, const char **s, size_t *n) {
    const char *line = memchr(*s, '\n', *n);
    size_t first = line ? (size_t)(line - *s) : *n;
    size_t from = 0;
    if (strcmp(part, "first") == 0) *n = first;
    if (strcmp(part, "rest") == 0) from = line ? first + 1 : *n;
    if (strcmp(part, "marked") == 0)
        for (size_t i = 0; i + 4 <= *n; i++)
            if (memcmp(*s + i, "####", 4) == 0) from = i + 4;
    *s += from;
    *n -= from;
}

// name: "field" or "field@part".
static bool expand_field(const char *name, size_t n, const Row *row, Text *out, Error *e) {
    char key[FIELD_NAME] = "";
    const char *at = memchr(name, '@', n), *part = "";
    size_t key_length = at ? (size_t)(at - name) : n;
    if (n >= sizeof key) return error_input(e, "a pattern's field has more than %d bytes", FIELD_NAME - 1);
    memcpy(key, name, n);
    if (at) part = key + key_length + 1;
    key[key_length] = 0;
    Text whole = {0};
    const json_t *value = row_find(row->json, key, key_length);
    bool ok = !value ? row_missing(row, key, e)
              : json_is_integer(value)
                  ? row_error(row, key, "is a number, must be a string: put it in quotes", e)
                  : row_text(row, key, value, &whole, e);
    const char *s = text_get(&whole);
    size_t length = whole.length;
    take_part(part, &s, &length);
    if (ok) text_add(out, s, length);
    if (whole.failed) out->failed = true;
    text_release(&whole);
    return ok;
}

bool pattern_expand(const char *pattern, const Row *row, Text *out, Error *e) {
    for (const char *p = pattern; *p;) {
        size_t plain = strcspn(p, "{");
        text_add(out, p, plain);
        p += plain;
        if (!*p) break;
        size_t n = strcspn(++p, "}");
        if (!expand_field(p, n, row, out, e)) return false;
        p += n + (p[n] == '}');
    }
    return !out->failed || error_system(e, "out of memory for a row of '%s'", row->file);
}
