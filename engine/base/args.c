// Parsing by tables of rows. Invariant: a refused value leaves the struct as it was, and its message names
// the parameter, the text and the allowed values. Numbers print with ten digits, enough for bounds such as
// 16777216.
#include "engine/base/args.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- one value

static bool set_number(const Arg *a, const char *shown, void *value, const char *text, Error *e) {
    char *end;
    errno = 0;
    double x = strtod(text, &end);
    bool whole = a->type == ARG_REAL || x == floor(x);
    if (end == text || *end || errno || !whole || !(x >= a->low && x <= a->high))
        return error_input(e, "%s is '%s', must be %s from %.10g to %.10g", shown, text,
                           a->type == ARG_INT ? "a whole number" : "a number", a->low, a->high);
    if (a->type == ARG_INT) *(int *)value = (int)x;
    else *(double *)value = x;
    return true;
}

// strtoull alone would accept "-5", and read "010" as eight.
static bool set_seed(const char *shown, uint64_t *value, const char *text, Error *e) {
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    if (!isdigit((unsigned char)text[0]) || *end || errno || n > INT64_MAX)
        return error_input(e, "%s is '%s', must be a whole number from 0 to 2^63 - 1", shown, text);
    *value = n;
    return true;
}

// meaning: the value for "on".
static bool set_flag(const char *shown, bool *value, bool meaning, const char *text, Error *e) {
    bool on = strcmp(text, "on") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool off = strcmp(text, "off") == 0 || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
    if (!on && !off) return error_input(e, "%s is '%s', must be on or off", shown, text);
    *value = on == meaning;
    return true;
}

static bool set_choice(const Arg *a, const char *shown, int *value, const char *text, Error *e) {
    LOCAL_TEXT list = {0};
    for (int i = 0; a->choices[i]; i++) {
        if (strcmp(a->choices[i], text) == 0) {
            *value = i;
            return true;
        }
        text_printf(&list, "%s%s", i ? ", " : "", a->choices[i]);
    }
    return error_input(e, "%s is '%s', must be one of %s", shown, text, text_get(&list));
}

// Bytes before the first `end` outside parentheses; *open: how many parentheses are still open there.
static size_t span(const char *text, char end, int *open) {
    size_t n = 0;
    for (*open = 0; text[n] && (*open || text[n] != end); n++) {
        if (text[n] == '(') ++*open;
        if (text[n] == ')' && *open) --*open;
    }
    return n;
}

size_t args_span(const char *text, char end) {
    int open;
    return span(text, end, &open);
}

static bool set_text(const char *shown, char value[ARG_TEXT_SIZE], const char *text, Error *e) {
    if (strlen(text) >= ARG_TEXT_SIZE)
        return error_input(e, "%s has more than %d characters", shown, ARG_TEXT_SIZE - 1);
    snprintf(value, ARG_TEXT_SIZE, "%s", text);
    return true;
}

static bool add_word(Words *words, const char *shown, const char *text, Error *e) {
    if (words->count == WORDS_MAX)
        return error_input(e, "%s may be given %d times at most", shown, WORDS_MAX);
    words->items[words->count++] = text;
    return true;
}

bool arg_set(const Arg *a, const char *shown, void *value, const char *text, Error *e) {
    switch (a->type) {
    case ARG_FLAG: return set_flag(shown, value, true, text, e);
    case ARG_NOT: return set_flag(shown, value, false, text, e);
    case ARG_INT:
    case ARG_REAL: return set_number(a, shown, value, text, e);
    case ARG_SEED: return set_seed(shown, value, text, e);
    case ARG_CHOICE: return set_choice(a, shown, value, text, e);
    case ARG_TEXT:
    case ARG_METHODS: return set_text(shown, value, text, e);
    case ARG_WORD: *(const char **)value = text; return true;
    case ARG_WORDS: return add_word(value, shown, text, e);
    case ARG_NODE:
    case ARG_MAP:
    case ARG_EACH: break;
    }
    assert(!"a row that only configs have");
    return false;
}

// --- rows by name

const Arg *arg_find(const Arg *rows, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

// --- "key=value,key=value"

static bool set_pair(const Arg *a, void *values, const char *text, Error *e) {
    bool plain = a->type == ARG_TEXT || a->type == ARG_METHODS;
    char shown[80];
    int open;
    snprintf(shown, sizeof shown, "'%s'", a->name);
    if (plain && (text[span(text, ',', &open)] || open)) // could not be read back from a list of values
        return error_input(e, "%s is '%s', must have no comma outside parentheses, and close those: %s",
                           shown, text, a->help);
    return arg_set(a, shown, (char *)values + a->at, text, e);
}

void args_defaults(const Arg *rows, size_t count, void *values) {
    for (size_t i = 0; i < count; i++) {
        UNUSED bool valid = set_pair(&rows[i], values, rows[i].fallback, NULL);
        assert(valid);
    }
}

static const Arg *find_key(const Arg *rows, size_t count, const char *key, Error *e) {
    const Arg *a = arg_find(rows, count, key);
    if (a) return a;
    const char *nearest = suggest(key, rows, count, sizeof *rows);
    if (nearest) error_input(e, "there is no parameter '%s'; did you mean '%s'?", key, nearest);
    else error_input(e, "there is no parameter '%s'%s", key, count ? "" : ": this method has none");
    return NULL;
}

bool args_set(const Arg *rows, size_t count, void *values, const char *key, const char *text, Error *e) {
    const Arg *a = find_key(rows, count, key, e);
    return a && set_pair(a, values, text, e);
}

// Cuts a pair at its '=' and returns the key. A pair without '=' is the value of the METHODS row, whose
// key it returns; NULL if the table doesn't have one.
static const char *split_pair(const Arg *rows, size_t count, char *pair, const char **value) {
    size_t n = args_span(pair, '=');
    *value = pair;
    if (pair[n]) {
        pair[n] = 0;
        *value = pair + n + 1;
        return pair;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i].type == ARG_METHODS) return rows[i].name;
    return NULL;
}

static bool parse_pair(const Arg *rows, size_t count, void *values, const char *pair, size_t n,
                       bool seen[ARGS_MAX], Error *e) {
    char copy[ARG_TEXT_SIZE + 64];
    if (n >= sizeof copy) return error_input(e, "the parameter '%.40s...' is too long", pair);
    memcpy(copy, pair, n);
    copy[n] = 0;
    const char *value, *key = split_pair(rows, count, copy, &value);
    if (!key) return error_input(e, "the parameter '%s' must be written as key=value", copy);
    const Arg *a = find_key(rows, count, key, e);
    if (!a) return false;
    if (seen[a - rows]) return error_input(e, "the parameter '%s' is given twice", key);
    seen[a - rows] = true;
    return set_pair(a, values, value, e);
}

bool args_parse(const Arg *rows, size_t count, void *values, const char *text, Error *e) {
    bool seen[ARGS_MAX] = {false};
    assert(count <= ARGS_MAX);
    for (const char *p = text; *p;) {
        size_t n = args_span(p, ',');
        if (!parse_pair(rows, count, values, p, n, seen, e)) return false;
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

void arg_write(const Arg *a, const void *values, Text *out) {
    const void *v = (const char *)values + a->at;
    switch (a->type) {
    case ARG_INT: text_printf(out, "%d", *(const int *)v); break;
    case ARG_REAL: put_real(*(const double *)v, out); break;
    case ARG_FLAG: text_puts(out, *(const bool *)v ? "on" : "off"); break;
    case ARG_NOT: text_puts(out, *(const bool *)v ? "off" : "on"); break;
    case ARG_CHOICE: text_puts(out, a->choices[*(const int *)v]); break;
    case ARG_TEXT:
    case ARG_METHODS: text_puts(out, v); break;
    default: assert(!"a row that has no canonical text");
    }
}

static bool is_default(const Arg *a, const void *values) {
    LOCAL_TEXT text = {0};
    arg_write(a, values, &text);
    return strcmp(text_get(&text), a->fallback) == 0;
}

void args_write(const Arg *rows, size_t count, const void *values, Text *out) {
    const char *comma = "";
    for (size_t i = 0; i < count; i++) {
        if (rows[i].added && is_default(&rows[i], values)) continue;
        text_printf(out, "%s%s=", comma, rows[i].name);
        arg_write(&rows[i], values, out);
        comma = ",";
    }
}

static void describe_range(const Arg *a, Text *out) {
    switch (a->type) {
    case ARG_INT:
    case ARG_REAL: text_printf(out, "%.10g..%.10g", a->low, a->high); break;
    case ARG_FLAG:
    case ARG_NOT: text_puts(out, "on|off"); break;
    case ARG_CHOICE:
        for (int i = 0; a->choices[i]; i++) text_printf(out, "%s%s", i ? "|" : "", a->choices[i]);
        break;
    case ARG_METHODS: text_puts(out, "methods"); break;
    default: text_puts(out, "text"); break;
    }
}

static size_t longer(size_t n, const char *s) { return strlen(s) > n ? strlen(s) : n; }

void args_describe(const Arg *rows, size_t count, Text *out) {
    size_t name = 0, range = 0, fallback = 0; // widths of the columns
    LOCAL_TEXT text = {0};
    for (size_t i = 0; i < count; i++) {
        text_clear(&text);
        describe_range(&rows[i], &text);
        name = longer(name, rows[i].name);
        range = longer(range, text_get(&text));
        fallback = longer(fallback, rows[i].fallback);
    }
    for (size_t i = 0; i < count; i++) {
        const Arg *a = &rows[i];
        text_clear(&text);
        describe_range(a, &text);
        text_printf(out, "    %-*s  %-*s  default %-*s  %s\n", (int)name, a->name, (int)range,
                    text_get(&text), (int)fallback, a->fallback, a->help);
    }
}

// --- a command line

static void name_option(const Arg *a, char name[40]) {
    snprintf(name, 40, "%s", a->name);
    for (char *p = name; (p = strchr(p, '_'));) *p = '-';
}

// Whether a list of names has this one.
static bool lists(const char *list, const char *name) {
    size_t n = strlen(name);
    for (const char *p = list; p && (p = strstr(p, name)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

size_t args_options(const ArgSet *sets, int n, ArgOption out[ARGS_MAX]) {
    size_t count = 0;
    for (int i = 0; i < n; i++)
        for (size_t j = 0; j < sets[i].count; j++) {
            if (lists(sets[i].without, sets[i].rows[j].name)) continue;
            assert(count < ARGS_MAX);
            out[count] = (ArgOption){.set = &sets[i], .row = &sets[i].rows[j]};
            name_option(out[count].row, out[count].name);
            count++;
        }
    return count;
}

static bool find_option(const ArgSet *sets, int n, const char *word, size_t length, ArgOption *out,
                        Error *e) {
    const char *names[ARGS_MAX];
    ArgOption all[ARGS_MAX];
    char name[64];
    size_t count = args_options(sets, n, all);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), word);
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i].name;
        if (strcmp(all[i].name, name) == 0) {
            *out = all[i];
            return true;
        }
    }
    const char *nearest = suggest(name, names, count, sizeof *names);
    if (nearest) return error_input(e, "there is no option --%s; did you mean --%s?", name, nearest);
    return error_input(e, "there is no option --%s; --help lists them", name);
}

static bool find_letter(const ArgSet *sets, int n, const char *word, ArgOption *out, Error *e) {
    ArgOption all[ARGS_MAX];
    size_t count = args_options(sets, n, all);
    for (size_t i = 0; i < count; i++)
        if (all[i].row->letter && all[i].row->letter == word[1] && word[2] == 0) {
            *out = all[i];
            return true;
        }
    return error_input(e, "there is no option %s; --help lists them", word);
}

static bool set_option(const ArgOption *o, void *values, const char *text, Error *e) {
    char shown[80];
    snprintf(shown, sizeof shown, "--%s", o->name);
    return arg_set(o->row, shown, (char *)values + o->set->at + o->row->at, text, e);
}

bool args_set_option(const ArgSet *sets, int n, void *values, const char *name, const char *text, Error *e) {
    ArgOption found;
    return find_option(sets, n, name, strlen(name), &found, e) && set_option(&found, values, text, e);
}

void args_write_options(const Arg *rows, size_t count, const void *values, Text *out) {
    for (size_t i = 0; i < count; i++) {
        char name[40];
        if (is_default(&rows[i], values)) continue;
        name_option(&rows[i], name);
        text_printf(out, " --%s ", name);
        arg_write(&rows[i], values, out);
    }
}

void args_value(const Arg *a, Text *out) {
    if (a->value) text_puts(out, a->value);
    else if (a->type == ARG_CHOICE || a->type == ARG_NOT) describe_range(a, out);
}

// Reads the option `word`; if its value is the next word, line->at advances past that.
static bool read_option(ArgLine *line, const char *word, ArgOption *found, const char **value, Error *e) {
    bool is_long = word[1] == '-';
    size_t length = is_long ? strcspn(word + 2, "=") : 0;
    const char *equals = is_long && word[2 + length] == '=' ? word + 3 + length : NULL;
    if (!(is_long ? find_option(line->sets, line->n, word + 2, length, found, e)
                  : find_letter(line->sets, line->n, word, found, e)))
        return false;
    bool flag = found->row->type == ARG_FLAG;
    if (flag && equals) return error_input(e, "--%s takes no value", found->name);
    if (!flag && !equals && line->at >= line->argc) {
        LOCAL_TEXT wanted = {0};
        args_value(found->row, &wanted);
        return error_input(e, "--%s needs a value: --%s %s", found->name, found->name, text_get(&wanted));
    }
    *value = flag ? "on" : equals ? equals : line->argv[line->at++];
    return true;
}

// "-5" and "-.5" are numbers, "-" is standard input.
static bool is_option(const char *word) {
    return word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
}

bool args_next(ArgLine *line, ArgOption *option, const char **value, Error *e) {
    *option = (ArgOption){.row = NULL};
    if (line->at < line->argc && !line->options_ended && strcmp(line->argv[line->at], "--") == 0) {
        line->options_ended = true;
        line->at++;
    }
    if (line->at >= line->argc) return false;
    const char *word = line->argv[line->at++];
    line->help = !line->options_ended && (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0);
    if (line->help) return false;
    if (!line->options_ended && is_option(word)) return read_option(line, word, option, value, e);
    *value = word;
    return true;
}

void args_start(const ArgSet *sets, int n, void *values) {
    for (const ArgSet *s = sets; s < sets + n; s++)
        for (const Arg *a = s->rows; a < s->rows + s->count; a++)
            if (a->fallback && a->type != ARG_WORDS && (a->type != ARG_WORD || a->literal))
                (void)arg_set(a, a->name, (char *)values + s->at + a->at, a->fallback, NULL);
}

bool args_parse_line(const ArgSet *sets, int n, int argc, char **argv, void *values, Words *words, bool *help,
                     Error *e) {
    ArgLine line = {.sets = sets, .n = n, .argc = argc, .argv = argv, .at = 1};
    Error why = {0};
    ArgOption option;
    const char *value = NULL;
    *words = (Words){.count = 0};
    while (args_next(&line, &option, &value, &why)) {
        if (option.row) {
            if (!set_option(&option, values, value, e)) return false;
        } else if (words->count == WORDS_MAX)
            return error_input(e, "there are more than %d arguments", WORDS_MAX);
        else words->items[words->count++] = value;
    }
    *help = line.help;
    if (e && why.kind) *e = why;
    return !why.kind;
}

// A default that doesn't fit behind the help goes on a line of its own.
static void help_row(const ArgOption *o, Text *out) {
    enum { INDENT = 29, COLUMNS = 110 };
    const Arg *a = o->row;
    LOCAL_TEXT left = {0};
    size_t from = out->length;
    if (a->letter) text_printf(&left, "-%c, ", a->letter);
    text_printf(&left, "--%s ", o->name);
    args_value(a, &left);
    text_printf(out, "  %-26s %s", text_get(&left), a->help);
    if (a->fallback && out->length - from + strlen(a->fallback) + 3 > COLUMNS)
        text_printf(out, "\n%*s(%s)", INDENT, "", a->fallback);
    else if (a->fallback) text_printf(out, " (%s)", a->fallback);
    text_puts(out, "\n");
}

void args_help(const ArgSet *sets, int n, Text *out) {
    ArgOption all[ARGS_MAX];
    size_t count = args_options(sets, n, all);
    for (size_t i = 0; i < count; i++) help_row(&all[i], out);
}
