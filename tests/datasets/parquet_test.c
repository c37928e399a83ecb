// Parquet files that pyarrow wrote (tests/oracle/parquet.py), held against the rows that it put in; the same
// files cut and changed; snappy against a writer of random elements.
#include "tests/support/check.h"

#include "datasets/format.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const size_t MOST = 1 << 24;

typedef struct File {
    char *bytes;
    size_t n;
} File;

static File read_fixture(const char *name, const char *end) {
    char path[256];
    File f;
    Error e = {0};
    snprintf(path, sizeof path, "tests/fixtures/parquet/%s%s", name, end);
    if (!file_read(path, MOST, &f.bytes, &f.n, &e)) fail_msg("%s", e.text);
    return f;
}

static bool add_row(void *state, Row *row, Error *e) {
    (void)e;
    assert_int_equal(row->number, json_array_size(state) + 1);
    json_array_append(state, (json_t *)(uintptr_t)row->json);
    return true;
}

static json_t *read_rows(const char *bytes, size_t n, Error *e) {
    json_t *rows = json_array();
    if (parquet_each(bytes, n, "f.parquet", MOST, add_row, rows, e)) return rows;
    json_decref(rows);
    return NULL;
}

static void same_rows(void **state) {
    (void)state;
    static const struct {
        const char *name, *rows;
        size_t count;
    } FILES[] = {
        {"plain", "rows", 20},
        {"dictionary", "rows", 60},
        {"snappy", "rows", 60},
        {"gzip", "rows", 60},
        {"zstd", "rows", 60},
        {"pages-2", "rows", 60},
        {"old-lists", "rows", 20},
        {"pages-2-plain", "rows", 20},
        {"required", "required", 60},
        {"empty", "rows", 0},
        {"other-types", "other-types", 2},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        Error e = {0};
        File f = read_fixture(FILES[i].name, ".parquet"), want = read_fixture(FILES[i].rows, ".jsonl");
        json_t *rows = read_rows(f.bytes, f.n, &e);
        if (!rows) fail_msg("%s: %s", FILES[i].name, e.text);
        assert_int_equal(json_array_size(rows), FILES[i].count);
        const char *line = want.bytes;
        for (size_t k = 0; k < FILES[i].count; k++, line = strchr(line, '\n') + 1) {
            json_t *row = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
            if (!json_equal(row, json_array_get(rows, k)))
                fail_msg("%s, row %zu: wanted %s, got %s", FILES[i].name, k + 1, json_text(row, 0),
                         json_text(json_array_get(rows, k), 0));
            json_decref(row);
        }
        json_decref(rows);
        mem_free(f.bytes);
        mem_free(want.bytes);
    }
}

static void refused(void **state) {
    (void)state;
    static const char *const FILES[][2] = {
        {"brotli", "column 'prompt': its compression (Brotli) is not read: rewrite the file, as by: python3"},
        {"lz4", "its compression (LZ4) is not read"},
        {"delta", "column 'prompt', page at byte 4: its encoding (7) is not read"},
        {"nul", "row 2, column 'prompt': is not text in UTF-8 without NUL"},
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        char name[64];
        Error e = {0};
        snprintf(name, sizeof name, "refused-%s", FILES[i][0]);
        File f = read_fixture(name, ".parquet");
        assert_null(read_rows(f.bytes, f.n, &e));
        if (!strstr(e.text, FILES[i][1])) fail_msg("%s: wanted '%s', got '%s'", name, FILES[i][1], e.text);
        mem_free(f.bytes);
    }
}

// A copy without a byte after it, so that sanitizers see a read past the end. False: one line about the file.
static bool read_exact(const char *bytes, size_t n) {
    Error e = {0};
    char *exact = malloc(n ? n : 1);
    memcpy(exact, bytes, n);
    json_t *rows = read_rows(exact, n, &e);
    free(exact);
    json_decref(rows);
    if (!rows && (e.kind != ERROR_INPUT || strncmp(e.text, "'f.parquet'", 11) != 0)) fail_msg("%s", e.text);
    return rows;
}

static void cut_anywhere(void **state) {
    (void)state;
    static const char *const NAMES[] = {"plain", "snappy", "pages-2", "other-types"};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        File f = read_fixture(NAMES[i], ".parquet");
        for (size_t n = 0; n < f.n; n += n < 200 || f.n - n < 200 ? 1 : 37)
            if (read_exact(f.bytes, n)) fail_msg("%s, cut to %zu bytes: was taken", NAMES[i], n);
        mem_free(f.bytes);
    }
}

// Random bytes in random places: the file is refused, or its rows are other ones; memory stays small.
static void changed_anywhere(void **state) {
    (void)state;
    static const char *const NAMES[] = {"dictionary", "snappy", "gzip", "zstd", "pages-2", "required"};
    Random r = test_random(71);
    for (int i = 0; i < 1500; i++) {
        File f = read_fixture(NAMES[i % 6], ".parquet");
        int from = test_between(&r, 0, 2) ? 0 : (int)f.n * 3 / 4; // the footer is near the end
        for (int k = test_between(&r, 1, 3); k > 0; k--)
            f.bytes[test_between(&r, from, (int)f.n - 1)] = (char)test_between(&r, 0, 255);
        read_exact(f.bytes, f.n);
        mem_free(f.bytes);
    }
}

// A page's check sum covers each of its bytes.
static void check_sums(void **state) {
    (void)state;
    File f = read_fixture("zstd", ".parquet");
    size_t refusals = 0;
    for (size_t i = 4; i < 500; i++) {
        f.bytes[i] ^= 1;
        Error e = {0};
        json_t *rows = read_rows(f.bytes, f.n, &e);
        refusals += strstr(e.text, "its check sum is wrong") != NULL;
        json_decref(rows);
        f.bytes[i] ^= 1;
    }
    assert_in_range(refusals, 300, 496); // the others are headers
    mem_free(f.bytes);
}

static void too_large(void **state) {
    (void)state;
    Error e = {0};
    File f = read_fixture("dictionary", ".parquet");
    json_t *rows = json_array();
    assert_false(parquet_each(f.bytes, f.n, "f.parquet", 10000, add_row, rows, &e));
    assert_string_equal(e.text, "'f.parquet' unpacks to more than 10000 bytes: split it, if you trust it");
    json_decref(rows);
    mem_free(f.bytes);
}

// --- snappy ----------------------------------------------------------------------------------------------

typedef struct Stream {
    uint8_t in[8192], out[8192]; // elements, and what they mean
    size_t n, size;
} Stream;

static void put(Stream *s, size_t number, int bytes) {
    for (int i = 0; i < bytes; i++) s->in[s->n++] = (uint8_t)(number >> 8 * i);
}

static void put_literal(Stream *s, Random *r) {
    size_t length = (size_t)test_between(r, 1, test_between(r, 0, 3) ? 70 : 400);
    int bytes = length > 256 ? test_between(r, 2, 4) : length > 60 ? test_between(r, 1, 4) : 0;
    put(s, (bytes ? 59 + (size_t)bytes : length - 1) << 2, 1);
    put(s, length - 1, bytes);
    for (size_t i = 0; i < length; i++) {
        s->out[s->size] = (uint8_t)test_between(r, 0, 255);
        put(s, s->out[s->size++], 1);
    }
}

static void put_copy(Stream *s, Random *r) {
    int kind = test_between(r, 1, 3);
    size_t length = (size_t)(kind == 1 ? test_between(r, 4, 11) : test_between(r, 1, 64));
    size_t most = kind == 1 && s->size > 2047 ? 2047 : s->size;
    size_t offset = (size_t)test_between(r, 1, test_between(r, 0, 1) ? (int)most : most < 8 ? (int)most : 8);
    if (kind == 1) put(s, 1 | (length - 4) << 2 | offset >> 8 << 5, 1), put(s, offset & 255, 1);
    else put(s, (size_t)kind | (length - 1) << 2, 1), put(s, offset, kind == 2 ? 2 : 4);
    for (size_t i = 0; i < length; i++, s->size++) s->out[s->size] = s->out[s->size - offset];
}

static void make_stream(Stream *s, Random *r) {
    uint8_t head[2];
    put_literal(s, r);
    for (int i = test_between(r, 0, 20); i > 0; i--) (test_between(r, 0, 2) ? put_copy : put_literal)(s, r);
    size_t heads = s->size < 128 ? 1 : 2;
    head[0] = (uint8_t)(heads == 1 ? s->size : (s->size & 127) | 128);
    head[1] = (uint8_t)(s->size >> 7);
    memmove(s->in + heads, s->in, s->n);
    memcpy(s->in, head, heads);
    s->n += heads;
}

static void snappy_elements(void **state) {
    (void)state;
    Random r = test_random(72);
    for (int i = 0; i < 3000; i++) {
        Stream s = {.n = 0};
        make_stream(&s, &r);
        uint8_t *out = malloc(s.size), *in = malloc(s.n); // without a border, for sanitizers
        memcpy(in, s.in, s.n);
        assert_true(snappy_block(in, s.n, out, s.size));
        assert_memory_equal(out, s.out, s.size);
        assert_false(snappy_block(in, s.n, out, s.size - 1));
        assert_false(snappy_block(in, s.n - 1, out, s.size));
        for (int k = 0; k < 3; k++) {
            in[test_between(&r, 0, (int)s.n - 1)] = (uint8_t)test_between(&r, 0, 255);
            snappy_block(in, s.n, out, s.size);
        }
        free(out);
        free(in);
    }
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_rows),        cmocka_unit_test(refused),    cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(changed_anywhere), cmocka_unit_test(check_sums), cmocka_unit_test(too_large),
        cmocka_unit_test(snappy_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
