// jansson, and getters that check. Invariant: a getter that fails leaves *out alone.
#include "engine/base/json.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// When an allocation fails, jansson (2.14) drops bytes of strings, reports a syntax error or crashes; so its
// allocations never fail.
static void *memory_of_jansson(size_t bytes) {
    void *p = malloc(bytes);
    if (!p && bytes) mem_exhausted(bytes);
    return p;
}

__attribute__((constructor)) static void give_jansson_memory(void) {
    json_set_alloc_funcs(memory_of_jansson, free);
}

const char *json_why(const json_error_t *why) {
    enum json_error_code code = json_error_code(why);
    return code == json_error_null_character || code == json_error_null_byte_in_key
               ? "the character \\u0000 is not read: take it out of the text"
               : why->text;
}

// --- NaN and Infinity

static bool goes_on(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '+' || c == '-' || c == '.';
}

static size_t skip_string(const char *s, size_t n, size_t i) {
    for (i++; i < n && s[i] != '"'; i++)
        if (s[i] == '\\') i++;
    return i < n ? i + 1 : n;
}

// The length of NaN, Infinity or -Infinity at the start of n bytes if it is a whole value there, else 0.
static size_t not_finite(const char *s, size_t n) {
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]), end = length;
        if (n < length || memcmp(s, words[i], length) != 0) continue;
        while (end < n && memchr(" \t\r\n", s[end], 4)) end++;
        return end < n && memchr(",]}", s[end], 3) ? length : 0;
    }
    return 0;
}

// Copies a text, with quotation marks round those values, until the copy has `limit` bytes. Returns how many
// marks are on its last line.
static int quote_not_finite(const char *s, size_t n, size_t limit, Text *out) {
    int marks = 0;
    for (size_t i = 0, end; i < n && out->length < limit; i = end) {
        size_t word = i && goes_on(s[i - 1]) ? 0 : not_finite(s + i, n - i);
        end = s[i] == '"' ? skip_string(s, n, i) : i + (word ? word : 1);
        if (word) text_printf(out, "\"%.*s\"", (int)word, s + i);
        else text_add(out, s + i, end - i);
        marks = s[i] == '\n' ? 0 : marks + (word ? 2 : 0);
    }
    return marks;
}

// --- parsing

static json_t *parse(const char *bytes, size_t n, json_error_t *why) {
    return json_loadb(bytes, n, JSON_REJECT_DUPLICATES, why);
}

json_t *json_from_bytes(const char *bytes, size_t n, const char *place, Error *e) {
    json_error_t why;
    json_t *root = parse(bytes, n, &why);
    if (!root && json_error_code(&why) == json_error_invalid_syntax) {
        LOCAL_TEXT quoted = {0}, before = {0};
        quote_not_finite(bytes, n, SIZE_MAX, &quoted);
        root = parse(text_get(&quoted), quoted.length, &why);
        if (!root) why.column -= quote_not_finite(bytes, n, (size_t)why.position, &before);
    }
    if (root) return root;
    error_input(e, "cannot parse '%s': line %d, column %d: %s", place, why.line, why.column, json_why(&why));
    return NULL;
}

json_t *json_from_file(const char *path, size_t max_size, Error *e) {
    LOCAL_MEMORY char *bytes = NULL;
    size_t n;
    if (!file_read(path, max_size, &bytes, &n, e)) return NULL;
    return json_from_bytes(bytes, n, path, e);
}

char *json_text(const json_t *value, size_t flags) {
    char *own = value ? json_dumps(value, flags) : NULL, *text = own ? mem_text(own, strlen(own)) : NULL;
    free(own); // jansson's own
    return text;
}

bool json_print(json_t *value, size_t flags, FILE *out) {
    LOCAL_MEMORY char *text = json_text(value, flags);
    if (text) fprintf(out, "%s\n", text);
    json_decref(value);
    return text != NULL;
}

bool json_append(json_t *value, size_t flags, Text *out) {
    LOCAL_MEMORY char *text = json_text(value, flags);
    if (text) text_puts(out, text);
    json_decref(value);
    return text != NULL;
}

json_t *json_from_text(const char *text) {
    json_t *j = json_string(text);
    if (j) return j;
    LOCAL_TEXT clean = {0};
    for (; *text; text++) text_add(&clean, (unsigned char)*text < 0x80 ? text : "?", 1);
    return json_string(text_get(&clean));
}

json_t *json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

bool field_present(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return v && !json_is_null(v);
}

static bool missing(const char *key, const char *place, Error *e) {
    return error_input(e, "'%s' is missing in '%s'", key, place);
}

static bool wrong_type(const char *key, const json_t *v, const char *want, const char *place, Error *e) {
    const char *text = json_string_value(v);
    if (text) return error_input(e, "'%s' in '%s' is '%.40s', must be %s", key, place, text, want);
    return error_input(e, "'%s' in '%s' must be %s", key, place, want);
}

bool field_int_optional(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
                        const char *place, Error *e) {
    if (!field_present(object, key)) return true;
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v)) return wrong_type(key, v, "an integer", place, e);
    int64_t n = json_integer_value(v);
    if (n < low || n > high)
        return error_input(e, "'%s' in '%s' is %lld, must be from %lld to %lld", key, place, (long long)n,
                           (long long)low, (long long)high);
    *out = n;
    return true;
}

bool field_int(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
               const char *place, Error *e) {
    if (!field_present(object, key)) return missing(key, place, e);
    return field_int_optional(object, key, low, high, out, place, e);
}

bool field_real_optional(const json_t *object, const char *key, double low, double high, double *out,
                         const char *place, Error *e) {
    if (!field_present(object, key)) return true;
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v)) return wrong_type(key, v, "a number", place, e);
    double x = json_number_value(v);
    if (!(x >= low && x <= high))
        return error_input(e, "'%s' in '%s' is %g, must be from %g to %g", key, place, x, low, high);
    *out = x;
    return true;
}

bool field_real(const json_t *object, const char *key, double low, double high, double *out,
                const char *place, Error *e) {
    if (!field_present(object, key)) return missing(key, place, e);
    return field_real_optional(object, key, low, high, out, place, e);
}

bool field_bool_optional(const json_t *object, const char *key, bool *out, const char *place, Error *e) {
    if (!field_present(object, key)) return true;
    const json_t *v = json_object_get(object, key);
    if (!json_is_boolean(v)) return error_input(e, "'%s' in '%s' must be true or false", key, place);
    *out = json_is_true(v);
    return true;
}

const char *field_text(const json_t *object, const char *key, const char *place, Error *e) {
    const json_t *v = json_object_get(object, key);
    if (json_is_string(v)) return json_string_value(v);
    if (field_present(object, key)) error_input(e, "'%s' in '%s' must be a string", key, place);
    else missing(key, place, e);
    return NULL;
}
