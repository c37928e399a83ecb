#include "engine/decode/param.h"

#include "engine/base/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const Param *p, void *values) { return (char *)values + p->offset; }
static const void *const_field(const Param *p, const void *values) {
    return (const char *)values + p->offset;
}

static bool set_number(const Param *p, void *values, const char *text, Error *e) {
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    bool whole = p->type != PARAM_INT || x == floor(x);
    if (end == text || *end || errno || !whole || !(x >= p->low && x <= p->high))
        return error_input(e, "'%s' is '%s', must be %s from %.10g to %.10g", p->name, text,
                           p->type == PARAM_INT ? "a whole number" : "a number", p->low, p->high);
    if (p->type == PARAM_INT) *(int *)field(p, values) = (int)x;
    else *(double *)field(p, values) = x;
    return true;
}

static bool set_bool(const Param *p, void *values, const char *text, Error *e) {
    bool on = strcmp(text, "on") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool off = strcmp(text, "off") == 0 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    if (!on && !off) return error_input(e, "'%s' is '%s', must be on or off", p->name, text);
    *(bool *)field(p, values) = on;
    return true;
}

static bool set_choice(const Param *p, void *values, const char *text, Error *e) {
    Text list = {0};
    for (int i = 0; p->choices[i]; i++) {
        if (strcmp(p->choices[i], text) == 0) {
            *(int *)field(p, values) = i;
            text_release(&list);
            return true;
        }
        text_printf(&list, "%s%s", i ? ", " : "", p->choices[i]);
    }
    error_input(e, "'%s' is '%s', must be one of %s", p->name, text, text_get(&list));
    text_release(&list);
    return false;
}

// Bytes in front of the first `end` outside parentheses; *open: how many are not closed there.
static size_t span(const char *text, char end, int *open) {
    size_t n = 0;
    for (*open = 0; text[n] && (*open || text[n] != end); n++) {
        if (text[n] == '(') ++*open;
        if (text[n] == ')' && *open) --*open;
    }
    return n;
}

static bool set_text(const Param *p, void *values, const char *text, Error *e) {
    if (strlen(text) >= PARAM_TEXT_SIZE)
        return error_input(e, "'%s' has more than %d characters", p->name, PARAM_TEXT_SIZE - 1);
    int open;
    if (text[span(text, ',', &open)] || open) // a value that could not be read back from a row of them
        return error_input(e, "'%s' is '%s', must have no comma outside parentheses, and close those: %s",
                           p->name, text, p->help);
    snprintf(field(p, values), PARAM_TEXT_SIZE, "%s", text);
    return true;
}

static bool set_value(const Param *p, void *values, const char *text, Error *e) {
    switch (p->type) {
    case PARAM_INT:
    case PARAM_REAL: return set_number(p, values, text, e);
    case PARAM_BOOL: return set_bool(p, values, text, e);
    case PARAM_CHOICE: return set_choice(p, values, text, e);
    case PARAM_TEXT:
    case PARAM_METHODS: return set_text(p, values, text, e);
    }
    return false;
}

void param_defaults(const Param *params, size_t count, void *values) {
    for (size_t i = 0; i < count; i++) set_value(&params[i], values, params[i].fallback, NULL);
}

static const char *name_at(const void *table, size_t i) { return ((const Param *)table)[i].name; }

static const Param *find(const Param *params, size_t count, const char *key, Error *e) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(params[i].name, key) == 0) return &params[i];
    const char *nearest = suggest(key, params, count, name_at);
    if (nearest) error_input(e, "there is no parameter '%s'; did you mean '%s'?", key, nearest);
    else error_input(e, "there is no parameter '%s'%s", key, count ? "" : ": this method has none");
    return NULL;
}

bool param_set(const Param *params, size_t count, void *values, const char *key, const char *value,
               Error *e) {
    const Param *p = find(params, count, key, e);
    return p && set_value(p, values, value, e);
}

size_t param_span(const char *text, char end) {
    int open;
    return span(text, end, &open);
}

// The key in front of a pair's '=', or of a METHODS that is given without; NULL: there is none. Ends the key
// and gives the value.
static const char *split_pair(const Param *params, size_t count, char *pair, const char **value) {
    size_t n = param_span(pair, '=');
    *value = pair;
    if (pair[n]) {
        pair[n] = 0;
        *value = pair + n + 1;
        return pair;
    }
    for (size_t i = 0; i < count; i++)
        if (params[i].type == PARAM_METHODS) return params[i].name;
    return NULL;
}

// One "key=value" of n bytes.
static bool parse_pair(const Param *params, size_t count, void *values, const char *pair, size_t n,
                       unsigned char *seen, Error *e) {
    char copy[PARAM_TEXT_SIZE + 64];
    if (n >= sizeof copy) return error_input(e, "the parameter '%.40s...' is too long", pair);
    memcpy(copy, pair, n);
    copy[n] = 0;
    const char *value, *key = split_pair(params, count, copy, &value);
    if (!key) return error_input(e, "the parameter '%s' must be written as key=value", copy);
    const Param *p = find(params, count, key, e);
    if (!p) return false;
    if (seen[p - params]++) return error_input(e, "the parameter '%s' is given twice", key);
    return set_value(p, values, value, e);
}

bool param_parse(const Param *params, size_t count, void *values, const char *text, Error *e) {
    unsigned char seen[PARAM_MAX] = {0};
    for (const char *p = text; *p;) {
        size_t n = param_span(p, ',');
        if (!parse_pair(params, count, values, p, n, seen, e)) return false;
        p += n;
        if (*p == ',' && !*++p) return error_input(e, "the parameters '%s' end in a comma", text);
    }
    return true;
}

// The shortest text that reads back as the same number: 0.8, not 0.80000000000000004.
static void put_real(double value, Text *out) {
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    text_puts(out, text);
}

void param_write(const Param *params, size_t count, const void *values, Text *out) {
    for (size_t i = 0; i < count; i++) {
        const Param *p = &params[i];
        const void *v = const_field(p, values);
        text_printf(out, "%s%s=", i ? "," : "", p->name);
        switch (p->type) {
        case PARAM_INT: text_printf(out, "%d", *(const int *)v); break;
        case PARAM_REAL: put_real(*(const double *)v, out); break;
        case PARAM_BOOL: text_puts(out, *(const bool *)v ? "on" : "off"); break;
        case PARAM_CHOICE: text_puts(out, p->choices[*(const int *)v]); break;
        case PARAM_TEXT:
        case PARAM_METHODS: text_puts(out, v); break;
        }
    }
}

static void describe_range(const Param *p, Text *out) {
    switch (p->type) {
    case PARAM_INT:
    case PARAM_REAL: text_printf(out, "%.10g..%.10g", p->low, p->high); break;
    case PARAM_BOOL: text_puts(out, "on|off"); break;
    case PARAM_CHOICE:
        for (int i = 0; p->choices[i]; i++) text_printf(out, "%s%s", i ? "|" : "", p->choices[i]);
        break;
    case PARAM_TEXT: text_puts(out, "text"); break;
    case PARAM_METHODS: text_puts(out, "methods"); break;
    }
}

static size_t longer(size_t n, const char *s) { return strlen(s) > n ? strlen(s) : n; }

void param_describe(const Param *params, size_t count, Text *out) {
    size_t name = 0, range = 0, fallback = 0; // widths of the columns
    Text text = {0};
    for (size_t i = 0; i < count; i++) {
        text_clear(&text);
        describe_range(&params[i], &text);
        name = longer(name, params[i].name);
        range = longer(range, text_get(&text));
        fallback = longer(fallback, params[i].fallback);
    }
    for (size_t i = 0; i < count; i++) {
        text_clear(&text);
        describe_range(&params[i], &text);
        text_printf(out, "    %-*s  %-*s  default %-*s  %s\n", (int)name, params[i].name, (int)range,
                    text_get(&text), (int)fallback, params[i].fallback, params[i].help);
    }
    text_release(&text);
}
