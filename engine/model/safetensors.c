// Parses headers, and writes files. Invariant of a parsed header: tensors are sorted by name without repeats,
// and each one's range of bytes is as long as its dtype and shape need.
#include "engine/model/safetensors.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/output.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The format allows headers of 100 MB; parsed, one would take gigabytes. A thousand tensors take 0.13 MB.
enum { PREFIX = 8, CACHE_LINE = 64, MAX_HEADER = 1 << 20 };

typedef struct {
    const char *name;
    size_t bytes;
} StoredDtype;

static const StoredDtype DTYPES[] = {{"BF16", 2}, {"F16", 2}, {"F32", 4}, {"F64", 8}, {"I8", 1},
                                     {"U8", 1},   {"I16", 2}, {"U16", 2}, {"I32", 4}, {"U32", 4},
                                     {"I64", 8},  {"U64", 8}, {"BOOL", 1}};

static size_t dtype_bytes(const char *name) {
    for (size_t i = 0; i < sizeof DTYPES / sizeof *DTYPES; i++)
        if (strcmp(DTYPES[i].name, name) == 0) return DTYPES[i].bytes;
    return 0;
}

static void safetensors_check(const Safetensors *s, UNUSED size_t size) {
    for (size_t i = 0; i < s->count; i++) {
        const StoredTensor *t = &s->tensors[i];
        UNUSED size_t bytes = dtype_bytes(t->dtype);
        for (int k = 0; k < t->rank; k++) bytes *= (size_t)t->dims[k];
        assert(t->rank >= 0 && t->rank <= TENSOR_MAX_RANK);
        assert(t->begin <= t->end && t->end <= size && t->end - t->begin == bytes);
        assert(i == 0 || strcmp(t[-1].name, t->name) < 0);
    }
}

bool safetensors_dtype(const StoredTensor *t, Dtype *out) {
    for (Dtype d = DTYPE_F32; d <= DTYPE_BF16; d++)
        if (strcmp(t->dtype, dtype_name(d)) == 0) {
            *out = d;
            return true;
        }
    return false;
}

static bool read_names(StoredTensor *t, const char *name, const json_t *v, const char *place, Error *e) {
    if (strlen(name) >= sizeof t->name)
        return error_input(e, "'%s' names a tensor with more than %d characters: '%.40s...'", place,
                           TENSOR_NAME - 1, name);
    snprintf(t->name, sizeof t->name, "%s", name);
    const json_t *dtype = json_object_get(v, "dtype");
    if (!json_is_string(dtype))
        return error_input(e, "tensor '%s' in '%s' must have a dtype, such as \"BF16\"", name, place);
    if (!dtype_bytes(json_string_value(dtype)))
        return error_input(e,
                           "tensor '%s' in '%s' has the unknown dtype '%.20s'; save it as BF16, F16 or F32",
                           name, place, json_string_value(dtype));
    snprintf(t->dtype, sizeof t->dtype, "%s", json_string_value(dtype));
    return true;
}

static bool read_dims(StoredTensor *t, const json_t *v, size_t *bytes, const char *place, Error *e) {
    const json_t *shape = json_object_get(v, "shape");
    if (!json_is_array(shape) || json_array_size(shape) > TENSOR_MAX_RANK)
        return error_input(e, "tensor '%s' in '%s' must have a shape of at most %d numbers", t->name, place,
                           TENSOR_MAX_RANK);
    t->rank = (int)json_array_size(shape);
    *bytes = dtype_bytes(t->dtype);
    for (int i = 0; i < t->rank; i++) {
        const json_t *d = json_array_get(shape, (size_t)i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return error_input(e, "tensor '%s' in '%s' has a shape with an entry that isn't a count", t->name,
                               place);
        t->dims[i] = json_integer_value(d);
        if (!size_mul(*bytes, (size_t)t->dims[i], bytes))
            return error_input(e, "tensor '%s' in '%s' has a shape whose product overflows", t->name, place);
    }
    return true;
}

static bool read_offsets(StoredTensor *t, const json_t *v, size_t bytes, size_t start, size_t size,
                         const char *place, Error *e) {
    const json_t *offsets = json_object_get(v, "data_offsets");
    const json_t *a = json_array_get(offsets, 0), *b = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(a) || !json_is_integer(b) ||
        json_integer_value(a) < 0 || json_integer_value(b) < json_integer_value(a))
        return error_input(e, "tensor '%s' in '%s' must have data_offsets [begin, end], begin not after end",
                           t->name, place);
    size_t begin = (size_t)json_integer_value(a), end = (size_t)json_integer_value(b);
    if (end > size - start)
        return error_input(
            e,
            "tensor '%s' in '%s' ends at byte %zu of the data, which has %zu: the file is cut short; "
            "fetch it again",
            t->name, place, end, size - start);
    if (end - begin != bytes)
        return error_input(e, "tensor '%s' in '%s' has %zu bytes, its dtype and shape need %zu", t->name,
                           place, end - begin, bytes);
    t->begin = start + begin;
    t->end = start + end;
    return true;
}

static bool read_header(const json_t *root, size_t start, size_t size, const char *place, Safetensors *out,
                        Error *e) {
    out->tensors = mem_new(json_object_size(root), sizeof *out->tensors);
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(size_t)root, name, v) {
        if (strcmp(name, "__metadata__") == 0) continue;
        StoredTensor *t = &out->tensors[out->count];
        size_t bytes;
        if (!json_is_object(v))
            return error_input(e, "tensor '%.80s' in '%s' must be an object", name, place);
        if (!read_names(t, name, v, place, e) || !read_dims(t, v, &bytes, place, e) ||
            !read_offsets(t, v, bytes, start, size, place, e))
            return false;
        out->count++;
    }
    return true;
}

static int by_begin(const void *a, const void *b) {
    const StoredTensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const StoredTensor *)a)->name, ((const StoredTensor *)b)->name);
}

// The tensors must tile [start, size).
static bool check_tiling(Safetensors *s, size_t start, size_t size, const char *place, Error *e) {
    size_t at = start;
    qsort(s->tensors, s->count, sizeof *s->tensors, by_begin);
    for (size_t i = 0; i < s->count; i++) {
        const StoredTensor *t = &s->tensors[i];
        if (t->begin != at)
            return error_input(e, "tensor '%s' in '%s' starts at byte %zu, the one before it ends at %zu: %s",
                               t->name, place, t->begin, at,
                               t->begin < at ? "they overlap" : "there is a hole");
        at = t->end;
    }
    if (at != size)
        return error_input(e, "'%s' has %zu bytes after its last tensor; fetch it again", place, size - at);
    qsort(s->tensors, s->count, sizeof *s->tensors, by_name);
    return true;
}

static uint64_t claimed_length(const unsigned char *data) {
    uint64_t length = 0;
    for (int i = PREFIX - 1; i >= 0; i--) length = length << 8 | data[i];
    return length;
}

size_t safetensors_data(const unsigned char *data) { return PREFIX + (size_t)claimed_length(data); }

static bool header_length(const unsigned char *data, size_t size, const char *place, size_t *n, Error *e) {
    uint64_t length;
    if (size < PREFIX) return error_input(e, "'%s' has only %zu bytes: not a safetensors file", place, size);
    length = claimed_length(data);
    if (length > MAX_HEADER)
        return error_input(
            e, "'%s' claims a header of %llu bytes, at most %d are allowed: not a safetensors file?", place,
            (unsigned long long)length, MAX_HEADER);
    if (length > size - PREFIX)
        return error_input(e, "'%s' claims a header of %llu bytes but has only %zu more; fetch it again",
                           place, (unsigned long long)length, size - PREFIX);
    *n = (size_t)length;
    return true;
}

bool safetensors_parse(const unsigned char *data, size_t size, const char *place, Safetensors *out,
                       Error *e) {
    size_t n = 0;
    *out = (Safetensors){0};
    if (!header_length(data, size, place, &n, e)) return false;
    json_auto_t *root = json_from_bytes((const char *)data + PREFIX, n, place, e);
    if (!root) return false;
    bool ok = json_is_object(root) || error_input(e, "the header of '%s' must be a JSON object", place);
    ok = ok && read_header(root, PREFIX + n, size, place, out, e) &&
         check_tiling(out, PREFIX + n, size, place, e);
    if (ok) safetensors_check(out, size);
    else safetensors_release(out);
    return ok;
}

void safetensors_release(Safetensors *s) {
    mem_free(s->tensors);
    *s = (Safetensors){0};
}

const StoredTensor *safetensors_find(const Safetensors *s, const char *name) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, s->tensors[middle].name);
        if (order == 0) return &s->tensors[middle];
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

// --- writing

void safetensors_begin(Text *t) {
    assert(t->length == 0);
    text_add(t, (const char[PREFIX]){0}, PREFIX);
    text_puts(t, "{\"__metadata__\":{\"format\":\"pt\"}");
}

void safetensors_entry(Text *t, const char *name, const char *dtype, size_t planes, size_t rows,
                       size_t columns, size_t at, size_t bytes) {
    text_printf(t, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name, dtype);
    if (planes) text_printf(t, "%zu,", planes);
    if (rows) text_printf(t, "%zu,", rows);
    text_printf(t, "%zu],\"data_offsets\":[%zu,%zu]}", columns, at, at + bytes);
}

void safetensors_end(Text *t) {
    text_puts(t, "}");
    while (t->length % CACHE_LINE) text_puts(t, " ");
    for (int i = 0; i < PREFIX; i++) t->data[i] = (char)((uint64_t)(t->length - PREFIX) >> 8 * i);
}

bool safetensors_add(struct Output *out, const char *path, const TensorOut *tensors, size_t count, Error *e) {
    LOCAL_TEXT header = {0};
    size_t at = 0;
    safetensors_begin(&header);
    for (size_t i = 0; i < count; at += tensors[i++].bytes)
        safetensors_entry(&header, tensors[i].name, tensors[i].dtype, 0, tensors[i].rows, tensors[i].columns,
                          at, tensors[i].bytes);
    safetensors_end(&header);
    size_t bytes = header.length + at;
    LOCAL_MEMORY unsigned char *file = mem_try(bytes, 1);
    if (file) {
        memcpy(file, header.data, header.length);
        at = header.length;
        for (size_t i = 0; i < count; at += tensors[i++].bytes)
            memcpy(file + at, tensors[i].data, tensors[i].bytes);
    }
    return file ? output_add(out, path, &(OutputKind){0}, file, bytes, e)
                : error_system(e, "out of memory writing '%s'", path);
}

bool safetensors_write(const char *path, const TensorOut *tensors, size_t count, Error *e) {
    LOCAL(output_release) Output out = {0};
    return safetensors_add(&out, path, tensors, count, e) && output_finish(&out, e);
}
