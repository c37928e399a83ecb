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

json_t *json_from_bytes(const char *bytes, size_t n, const char *place, Error *e) {
    json_error_t why;
    json_t *root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &why);
    if (root) return root;
    error_input(e, "cannot parse '%s': line %d, column %d: %s", place, why.line, why.column, json_why(&why));
    return NULL;
}

json_t *json_from_file(const char *path, size_t max_size, Error *e) {
    char *bytes;
    size_t n;
    if (!file_read(path, max_size, &bytes, &n, e)) return NULL;
    json_t *root = json_from_bytes(bytes, n, path, e);
    mem_free(bytes);
    return root;
}

char *json_text(const json_t *value, size_t flags) {
    char *own = value ? json_dumps(value, flags) : NULL, *text = own ? mem_text(own, strlen(own)) : NULL;
    free(own); // jansson's own
    return text;
}

bool json_print(json_t *value, size_t flags, FILE *out) {
    char *text = json_text(value, flags);
    if (text) fprintf(out, "%s\n", text);
    mem_free(text);
    json_decref(value);
    return text != NULL;
}

bool json_append(json_t *value, size_t flags, Text *out) {
    char *text = json_text(value, flags);
    if (text) text_puts(out, text);
    mem_free(text);
    json_decref(value);
    return text != NULL;
}

json_t *json_from_text(const char *text) {
    json_t *j = json_string(text);
    if (j) return j;
    Text clean = {0};
    for (; *text; text++) text_add(&clean, (unsigned char)*text < 0x80 ? text : "?", 1);
    j = json_string(text_get(&clean));
    text_release(&clean);
    return j;
}

json_t *json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

bool field_present(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return v && !json_is_null(v);
}

static bool missing(const char *key, const char *place, Error *e) {
    return error_input(e, "'%s' is missing in '%s'", key, place);
}

bool field_int_optional(const json_t *object, const char *key, int64_t low, int64_t high, int64_t *out,
                        const char *place, Error *e) {
    if (!field_present(object, key)) return true;
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v)) return error_input(e, "'%s' in '%s' must be an integer", key, place);
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
    if (!json_is_number(v)) return error_input(e, "'%s' in '%s' must be a number", key, place);
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
