// Random files written and read back; then every kind of disagreement, each with the words of its refusal.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/safetensors.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    unsigned char *bytes;
    size_t size;
} File;

// The length, the header, `data` bytes of zeros.
static File file_of(const char *header, size_t data) {
    size_t n = strlen(header);
    File f = {mem_new(8 + n + data, 1), 8 + n + data};
    for (int i = 0; i < 8; i++) f.bytes[i] = (unsigned char)((uint64_t)n >> 8 * i);
    memcpy(f.bytes + 8, header, n);
    return f;
}

typedef struct {
    const char *dtype;
    size_t bytes;
} Dtypes;

static const Dtypes DTYPES[] = {{"BF16", 2}, {"F16", 2}, {"F32", 4}, {"F64", 8},
                                {"I8", 1},   {"I64", 8}, {"BOOL", 1}};

enum { MOST_TENSORS = 30 };

// Tensors in random order of names, sizes from 0 up.
static void round_trip(void **state) {
    (void)state;
    Random r = test_random(30);
    for (int round = 0; round < 300; round++) {
        StoredTensor wanted[MOST_TENSORS] = {0};
        int count = test_between(&r, 0, MOST_TENSORS);
        size_t at = 0;
        Text header = {0};
        text_puts(&header, "{\"__metadata__\":{\"format\":\"pt\"}");
        for (int i = 0; i < count; i++) {
            StoredTensor *t = &wanted[i];
            const Dtypes *d = &DTYPES[test_between(&r, 0, 6)];
            size_t bytes = d->bytes;
            snprintf(t->name, sizeof t->name, "%c%d.weight", 'a' + test_between(&r, 0, 25), i);
            snprintf(t->dtype, sizeof t->dtype, "%s", d->dtype);
            t->rank = test_between(&r, 0, TENSOR_MAX_RANK);
            text_printf(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, t->dtype);
            for (int k = 0; k < t->rank; k++) {
                t->dims[k] = test_between(&r, 0, 5);
                bytes *= (size_t)t->dims[k];
                text_printf(&header, "%s%lld", k ? "," : "", (long long)t->dims[k]);
            }
            text_printf(&header, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
            t->begin = at, t->end = at += bytes;
        }
        text_puts(&header, "}   ");
        File f = file_of(text_get(&header), at);
        Safetensors s;
        Error e = {0};
        if (!safetensors_parse(f.bytes, f.size, "x", &s, &e)) fail_msg("%s: %s", text_get(&header), e.text);
        assert_int_equal(s.count, count);
        for (int i = 0; i < count; i++) {
            const StoredTensor *t = safetensors_find(&s, wanted[i].name);
            assert_non_null(t);
            assert_string_equal(t->dtype, wanted[i].dtype);
            assert_int_equal(t->rank, wanted[i].rank);
            assert_memory_equal(t->dims, wanted[i].dims, sizeof t->dims);
            assert_int_equal(t->begin, wanted[i].begin + 8 + header.length);
            assert_int_equal(t->end, wanted[i].end + 8 + header.length);
        }
        assert_null(safetensors_find(&s, "nowhere"));
        safetensors_release(&s);
        // No shorter file is taken, nor one with a byte more.
        for (size_t less = 1; less <= f.size; less += 1 + less / 8) {
            unsigned char *cut =
                mem_new(f.size - less, 1); // of its own size, so that sanitizers see a read past it
            memcpy(cut, f.bytes, f.size - less);
            if (safetensors_parse(cut, f.size - less, "x", &s, &e))
                fail_msg("%s: cut by %zu bytes and taken", text_get(&header), less);
            mem_free(cut);
        }
        mem_free(f.bytes);
        f = file_of(text_get(&header), at + 1);
        assert_false(safetensors_parse(f.bytes, f.size, "x", &s, &e));
        assert_non_null(strstr(e.text, "1 bytes after"));
        mem_free(f.bytes);
        text_release(&header);
    }
}

typedef struct {
    const char *header;
    size_t data;
    const char *words;
} Refused;

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
static const Refused REFUSED[] = {
    {"", 0, "line 1"},
    {"{", 0, "line 1"},
    {"[]", 0, "JSON object"},
    {"\"a\"", 0, "line 1"},
    {"{" A "," A "}", 8, "duplicate"},
    {"{\"a\":7}", 0, "'a'"},
    {"{\"a\":{}}", 0, "must have a dtype"},
    {"{\"a\":{\"dtype\":16,\"shape\":[],\"data_offsets\":[0,0]}}", 0, "must have a dtype"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'F8_E4M3'"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,2],\"data_offsets\":[0,8]}}", 8, "at most 4"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "a count"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "a count"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}}", 8, "a count"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "overflows"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,8]}}", 8, "overflows"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775808],\"data_offsets\":[0,8]}}", 8, "line 1"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":{\"begin\":0}}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0.0,8.0]}}", 8, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "begin not after end"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}", 9,
     "9 bytes, its dtype and shape need 8"},
    {"{\"a\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "need 4"},
    {"{" A "}", 7, "cut short"},
    {"{" A "}", 9, "1 bytes after"},
    {"{}", 1, "1 bytes after"},
    {"{\"a\":{\"dtype\":\"I8\",\"shape\":[9223372036854775807],\"data_offsets\":[0,9223372036854775807]}}", 8,
     "cut short"},
    {"{" A ",\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[7,11]}}", 11, "overlap"},
    {"{" A ",\"b\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8, "overlap"},
    {"{" A ",\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[9,13]}}", 13, "a hole"},
    {"{\"b\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, "a hole"},
    {"{\"\xff\":{}}", 0, "line 1"},
    {"{\"a\\u0000b\":{}}", 0, "line 1"},
};

static void refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        const Refused *c = &REFUSED[i];
        File f = file_of(c->header, c->data);
        Safetensors s;
        Error e = {0};
        if (safetensors_parse(f.bytes, f.size, "d/m.safetensors", &s, &e)) fail_msg("%s taken", c->header);
        if (!strstr(e.text, c->words) || !strstr(e.text, "'d/m.safetensors'") || e.kind != ERROR_INPUT)
            fail_msg("%s: '%s', wanted '%s' and the file's name", c->header, e.text, c->words);
        assert_true(s.tensors == NULL && s.count == 0);
        mem_free(f.bytes);
    }
}

// Lengths that the file cannot have.
static void lengths(void **state) {
    (void)state;
    static const uint64_t lengths[] = {
        3, 1 << 20, (1 << 20) + 1, 100u << 20, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7};
    Error e;
    Safetensors s;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        File f = file_of("{}", 0);
        for (int k = 0; k < 8; k++) f.bytes[k] = (unsigned char)(lengths[i] >> 8 * k);
        e = (Error){0};
        if (safetensors_parse(f.bytes, f.size, "x", &s, &e))
            fail_msg("length %llu taken", (unsigned long long)lengths[i]);
        assert_non_null(strstr(e.text, "claims a header of"));
        mem_free(f.bytes);
    }
    for (size_t size = 0; size < 8; size++) {
        assert_false(safetensors_parse((const unsigned char *)"\2\0\0\0\0\0\0", size, "x", &s, &e));
        assert_non_null(strstr(e.text, "not a safetensors file"));
    }
    assert_false(safetensors_parse(NULL, 0, "x", &s, &e)); // how an empty file is mapped
}

static void names_have_a_limit(void **state) {
    (void)state;
    for (int n = TENSOR_NAME - 1; n <= TENSOR_NAME; n++) {
        Text header = {0};
        Safetensors s;
        Error e = {0};
        text_printf(&header, "{\"%0*d\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}}", n, 7);
        File f = file_of(text_get(&header), 0);
        bool ok = safetensors_parse(f.bytes, f.size, "x", &s, &e);
        assert_int_equal(ok, n < TENSOR_NAME);
        assert_true(ok ? strlen(s.tensors[0].name) == (size_t)n : strstr(e.text, "more than 159") != NULL);
        safetensors_release(&s);
        mem_free(f.bytes);
        text_release(&header);
    }
}

static void dtypes_that_are_read(void **state) {
    (void)state;
    Dtype d;
    assert_true(safetensors_dtype(&(StoredTensor){.dtype = "BF16"}, &d) && d == DTYPE_BF16);
    assert_true(safetensors_dtype(&(StoredTensor){.dtype = "F16"}, &d) && d == DTYPE_F16);
    assert_true(safetensors_dtype(&(StoredTensor){.dtype = "F32"}, &d) && d == DTYPE_F32);
    assert_false(safetensors_dtype(&(StoredTensor){.dtype = "F64"}, &d));
    assert_false(safetensors_dtype(&(StoredTensor){.dtype = "I8"}, &d));
}

static void writes_what_it_reads(void **state) {
    (void)state;
    char dir[FOLDER_PATH_SIZE];
    folder_make(dir);
    static const float weights[6] = {1, 2, 3, 4, 5, 6}, bias[3] = {7, 8, 9};
    for (int longer = 0; longer < 70; longer++) { // headers of all lengths
        char name[100], path[FOLDER_PATH_SIZE + 16];
        snprintf(name, sizeof name, "w%0*d", longer + 1, 0);
        snprintf(path, sizeof path, "%s/t", dir);
        const TensorOut tensors[] = {{name, "F32", 2, 3, weights, sizeof weights},
                                     {"b", "F32", 0, 3, bias, sizeof bias}};
        Error e = {0};
        Safetensors s;
        size_t size;
        if (!safetensors_write(path, tensors, 2, &e)) fail_msg("%s", e.text);
        char *bytes = scratch_read(dir, "t", &size);
        if (!safetensors_parse((unsigned char *)bytes, size, path, &s, &e)) fail_msg("%s", e.text);
        const StoredTensor *w = safetensors_find(&s, name), *b = safetensors_find(&s, "b");
        assert_true(w && b && w->rank == 2 && w->dims[0] == 2 && w->dims[1] == 3 && b->rank == 1);
        assert_memory_equal(bytes + w->begin, weights, sizeof weights);
        assert_memory_equal(bytes + b->begin, bias, sizeof bias);
        if (w->begin % 64) fail_msg("name of %d characters: data begin at byte %zu", longer + 2, w->begin);
        safetensors_release(&s);
        mem_free(bytes);
    }
    folder_remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(refusals),
        cmocka_unit_test(lengths),
        cmocka_unit_test(names_have_a_limit),
        cmocka_unit_test(dtypes_that_are_read),
        cmocka_unit_test(writes_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
