#include "harness/program/options.h"

#include "engine/base/error.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *field(const Option *o, void *values) { return (char *)values + o->offset; }

static const char *name_at(const void *table, size_t i) { return ((const Option *)table)[i].name; }

static bool set_number(const Option *o, void *values, const char *text, Error *e) {
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    bool whole = o->type == OPTION_REAL || x == floor(x);
    if (end == text || *end || errno || !whole || !(x >= o->low && x <= o->high))
        return error_input(e, "--%s is '%s', must be %s from %.10g to %.10g", o->name, text,
                           o->type == OPTION_INT ? "a whole number" : "a number", o->low, o->high);
    if (o->type == OPTION_INT) *(int *)field(o, values) = (int)x;
    else *(double *)field(o, values) = x;
    return true;
}

// A seed fits a signed number, so that JSON and SQLite give it back as it was. strtoull alone would take
// "-5".
static bool set_seed(const Option *o, void *values, const char *text, Error *e) {
    char *end;
    errno = 0;
    uint64_t n = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)text[0]) || *end || errno || n > INT64_MAX)
        return error_input(e, "--%s is '%s', must be a whole number from 0 to 2^63 - 1", o->name, text);
    *(uint64_t *)field(o, values) = n;
    return true;
}

static bool set_value(const Option *o, void *values, const char *text, Error *e) {
    switch (o->type) {
    case OPTION_FLAG: *(bool *)field(o, values) = true; return true;
    case OPTION_INT:
    case OPTION_REAL: return set_number(o, values, text, e);
    case OPTION_SEED: return set_seed(o, values, text, e);
    case OPTION_TEXT: *(const char **)field(o, values) = text; return true;
    case OPTION_LIST: break;
    }
    OptionList *list = field(o, values);
    if (list->count == OPTION_LIST_MAX)
        return error_input(e, "--%s may be given %d times at most", o->name, OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return true;
}

// The option that the first n bytes of word name.
static const Option *find(const Option *options, size_t count, const char *word, size_t n, Error *e) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
    for (size_t i = 0; i < count; i++)
        if (strcmp(options[i].name, name) == 0) return &options[i];
    const char *nearest = suggest(name, options, count, name_at);
    if (nearest) error_input(e, "there is no option --%s; did you mean --%s?", name, nearest);
    else error_input(e, "there is no option --%s; --help lists them", name);
    return NULL;
}

static const Option *find_letter(const Option *options, size_t count, const char *word, Error *e) {
    for (size_t i = 0; i < count; i++)
        if (options[i].letter && options[i].letter == word[1] && word[2] == 0) return &options[i];
    error_input(e, "there is no option %s; --help lists them", word);
    return NULL;
}

bool options_set(const Option *options, size_t count, const char *name, const char *text, void *values,
                 Error *e) {
    const Option *o = find(options, count, name, strlen(name), e);
    return o && set_value(o, values, text, e);
}

// One option at argv[*i]; *i moves on over a value that stands in the next word.
static bool parse_option(const Option *options, size_t count, int argc, char **argv, int *i, void *values,
                         Error *e) {
    const char *word = argv[*i];
    bool is_long = word[1] == '-';
    size_t n = is_long ? strcspn(word + 2, "=") : 0;
    const char *equals = is_long && word[2 + n] == '=' ? word + 3 + n : NULL;
    const Option *o = is_long ? find(options, count, word + 2, n, e) : find_letter(options, count, word, e);
    if (!o) return false;
    if (o->type == OPTION_FLAG && equals) return error_input(e, "--%s takes no value", o->name);
    if (o->type == OPTION_FLAG || equals) return set_value(o, values, equals, e);
    if (*i + 1 >= argc) return error_input(e, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    return set_value(o, values, argv[++*i], e);
}

// "-5" and "-.5" are numbers, "-" is standard input.
static bool is_option(const char *word) {
    return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

bool options_parse(const Option *options, size_t count, int argc, char **argv, void *values,
                   Positionals *rest, bool *help, Error *e) {
    bool only_positionals = false;
    *rest = (Positionals){.count = 0};
    *help = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (!only_positionals && strcmp(word, "--") == 0) only_positionals = true;
        else if (!only_positionals && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)) {
            *help = true;
            return true;
        } else if (!only_positionals && is_option(word)) {
            if (!parse_option(options, count, argc, argv, &i, values, e)) return false;
        } else if (rest->count == POSITIONALS_MAX)
            return error_input(e, "there are more than %d arguments", POSITIONALS_MAX);
        else rest->items[rest->count++] = word;
    }
    return true;
}

// A default that has no room behind the help stands below it.
static void describe_fallback(const Option *o, size_t column, Text *out) {
    enum { INDENT = 29, COLUMNS = 110 };
    if (!o->fallback) return;
    if (column + strlen(o->fallback) + 3 > COLUMNS) text_printf(out, "\n%*s(%s)", INDENT, "", o->fallback);
    else text_printf(out, " (%s)", o->fallback);
}

void options_describe(const Option *options, size_t count, Text *out) {
    for (size_t i = 0; i < count; i++) {
        const Option *o = &options[i];
        char letter[8] = "", left[64];
        size_t from = out->length;
        if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        text_printf(out, "  %-26s %s", left, o->help);
        describe_fallback(o, out->length - from, out);
        text_puts(out, "\n");
    }
}
