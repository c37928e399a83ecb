// GGUF headers that disagree with themselves or with their file. The attacks are those of public advisories
// against llama.cpp's loader: numbers of values and tensors that overflow a product (CVE-2024-23496, -21836),
// lengths of texts and lists beyond the file (CVE-2024-23605, -21802), ranks beyond four (CVE-2024-21825),
// unknown types, and sums and products of sizes that wrap (CVE-2025-53630, CVE-2026-27940, CVE-2026-33298).
#include "tests/support/check.h"

#include "engine/base/gguf.h"
#include "engine/base/text.h"

#include <stdio.h>
#include <string.h>

static void put(Text *t, uint64_t n, int bytes) {
    for (int i = 0; i < bytes; i++) text_add(t, &(char){(char)(n >> 8 * i)}, 1);
}

static void put_text(Text *t, const char *s) {
    put(t, strlen(s), 8);
    text_puts(t, s);
}

typedef struct {
    uint64_t version, tensors, values;
} Head;

static void begin(Text *t, Head h) {
    t->length = 0;
    text_puts(t, "GGUF");
    put(t, h.version, 4);
    put(t, h.tensors, 8);
    put(t, h.values, 8);
}

static void put_number(Text *t, const char *key, uint64_t n) {
    put_text(t, key);
    put(t, GGUF_U32, 4);
    put(t, n, 4);
}

static void put_tensor(Text *t, const char *name, int rank, const uint64_t *dims, int format,
                       uint64_t offset) {
    put_text(t, name);
    put(t, (uint64_t)rank, 4);
    for (int i = 0; i < rank; i++) put(t, dims[i], 8);
    put(t, (uint64_t)format, 4);
    put(t, offset, 8);
}

static void end(Text *t, size_t data) {
    while (t->length % 32) put(t, 0, 1);
    for (size_t i = 0; i < data; i++) put(t, 0, 1);
}

static void refused(const Text *t, const char *words) {
    Gguf g;
    Error e = {0};
    if (gguf_parse((const unsigned char *)t->data, t->length, "file.gguf", &g, &e))
        fail_msg("taken, wanted '%s'", words);
    if (!strstr(e.text, words) || !strstr(e.text, "file.gguf")) fail_msg("'%s', wanted '%s'", e.text, words);
}

static void taken(const Text *t, Gguf *g) {
    Error e = {0};
    if (!gguf_parse((const unsigned char *)t->data, t->length, "file.gguf", g, &e)) fail_msg("%s", e.text);
}

// A file of one value of each kind and two tensors, and all of its beginnings.
static void whole(void **state) {
    (void)state;
    Text t = {0};
    Gguf g;
    Error e = {0};
    begin(&t, (Head){3, 2, 3});
    put_number(&t, "n", 7);
    put_text(&t, "texts");
    put(&t, GGUF_LIST, 4);
    put(&t, GGUF_TEXT, 4);
    put(&t, 2, 8);
    put_text(&t, "one");
    put_text(&t, "");
    put_text(&t, "minus");
    put(&t, GGUF_I8, 4);
    put(&t, 0xff, 1);
    put_tensor(&t, "b", 2, (uint64_t[]){32, 3}, 8, 64);
    put_tensor(&t, "a", 1, (uint64_t[]){9}, 0, 0);
    end(&t, 64 + 3 * 34);
    taken(&t, &g);
    assert_int_equal(g.value_count, 3);
    assert_true(gguf_number(gguf_find(&g, "n"), 0) == 7 && gguf_number(gguf_find(&g, "minus"), 0) == -1);
    GgufTexts texts = gguf_texts(gguf_find(&g, "texts"));
    const char *text;
    size_t n;
    assert_true(gguf_next(&texts, &text, &n) && n == 3 && memcmp(text, "one", 3) == 0);
    assert_true(gguf_next(&texts, &text, &n) && n == 0 && !gguf_next(&texts, &text, &n));
    assert_int_equal(gguf_tensor(&g, "a")->begin, g.header);
    assert_int_equal(gguf_tensor(&g, "b")->end, t.length);
    assert_null(gguf_find(&g, "m"));
    gguf_release(&g);
    for (size_t i = 0; i < t.length; i++)
        assert_false(gguf_parse((const unsigned char *)t.data, i, "file.gguf", &g, &e));
    text_release(&t);
}

static void heads(void **state) {
    (void)state;
    static const struct {
        Head head;
        const char *words;
    } rows[] = {{{1, 0, 0}, "version 1"},
                {{4, 0, 0}, "version 4"},
                {{0x03000000, 0, 0}, "big-endian"},
                {{3, UINT64_MAX, 0}, "claims 18446744073709551615 tensors"},
                {{3, UINT64_MAX / 24 + 1, 0}, "tensors in"},
                {{3, 0, UINT64_MAX / 13 + 1}, "values in"},
                {{3, 0, 1}, "claims 1 values"},
                {{3, 1, 0}, "claims 1 tensors"}};
    Text t = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin(&t, rows[i].head);
        refused(&t, rows[i].words);
    }
    t.data[0] = 'g';
    refused(&t, "does not begin");
    begin(&t, (Head){1, 0, 0}); // whose counts are of 4 bytes
    t.length = 16;
    refused(&t, "version 1");
    text_release(&t);
}

// One value: its key's length, its type, the type of elements and their number.
static void bad_value(Text *t, uint64_t length, uint64_t type, uint64_t of, uint64_t count,
                      const char *words) {
    begin(t, (Head){3, 0, 1});
    put(t, length, 8);
    text_puts(t, "k");
    put(t, type, 4);
    put(t, of, 4);
    put(t, count, 8);
    end(t, 32);
    refused(t, words);
}

static void values(void **state) {
    (void)state;
    Text t = {0};
    bad_value(&t, UINT64_MAX, GGUF_U8, 0, 0, "claims a text of 18446744073709551615 bytes");
    bad_value(&t, 0, GGUF_U8, 0, 0, "a key that isn't");
    bad_value(&t, 1, GGUF_TYPES, 0, 0, "unknown type 13");
    bad_value(&t, 1, 0x80000000u, 0, 0, "unknown type 2147483648");
    bad_value(&t, 1, GGUF_LIST, GGUF_TYPES, 0, "unknown type 13");
    bad_value(&t, 1, GGUF_LIST, GGUF_LIST, 1, "list of lists");
    bad_value(&t, 1, GGUF_LIST, GGUF_U64, UINT64_MAX / 8 + 2, "cut short"); // eight bytes, if it wraps
    bad_value(&t, 1, GGUF_LIST, GGUF_U8, UINT64_MAX, "cut short");
    bad_value(&t, 1, GGUF_LIST, GGUF_TEXT, UINT64_MAX, "cut short");
    bad_value(&t, 1, GGUF_TEXT, UINT32_MAX, UINT64_MAX, "claims a text of");
    begin(&t, (Head){3, 0, 2});
    put_number(&t, "same", 1);
    put_number(&t, "same", 2);
    refused(&t, "two values for the key 'same'");
    text_release(&t);
}

static void bad_tensor(Text *t, int rank, const uint64_t *dims, int format, uint64_t offset,
                       const char *words) {
    begin(t, (Head){3, 1, 0});
    put_tensor(t, "x", rank, dims, format, offset);
    end(t, 256);
    refused(t, words);
    assert_non_null(strstr(words, "'x'"));
}

static void tensors(void **state) {
    (void)state;
    const uint64_t most = INT32_MAX;
    Text t = {0};
    bad_tensor(&t, 0, NULL, 0, 0, "tensor 'x' in 'file.gguf' has 0 dimensions");
    bad_tensor(&t, 5, (uint64_t[]){1, 1, 1, 1, 1}, 0, 0, "tensor 'x' in 'file.gguf' has 5 dimensions");
    bad_tensor(&t, 2, (uint64_t[]){0, 1}, 0, 0, "tensor 'x' in 'file.gguf' has a dimension of 0");
    bad_tensor(&t, 2, (uint64_t[]){64, 0x40000000001u}, 0, 0,
               "tensor 'x' in 'file.gguf' has a dimension of 4398046511105");
    bad_tensor(&t, 3, (uint64_t[]){most, most, most}, 0, 0,
               "tensor 'x' in 'file.gguf' has dimensions whose product overflows");
    bad_tensor(&t, 1, (uint64_t[]){32}, 16, 0, "tensor 'x' in 'file.gguf' is of the type IQ2_XXS (16)");
    bad_tensor(&t, 1, (uint64_t[]){32}, -1, 0,
               "tensor 'x' in 'file.gguf' is of the type unknown to us (4294967295)");
    bad_tensor(&t, 1, (uint64_t[]){33}, 8, 0, "tensor 'x' in 'file.gguf' has rows of 33 numbers");
    bad_tensor(&t, 1, (uint64_t[]){32}, 0, UINT64_MAX - 16, "tensor 'x' in 'file.gguf' begins at byte");
    bad_tensor(&t, 1, (uint64_t[]){32}, 0, 160, "tensor 'x' in 'file.gguf' ends at byte 288");
    bad_tensor(&t, 1, (uint64_t[]){32}, 0, 32,
               "tensor 'x' in 'file.gguf' begins at byte 32 of the data, must");
    text_release(&t);
}

static void tiling(void **state) {
    (void)state;
    Text t = {0};
    begin(&t, (Head){3, 2, 0});
    put_tensor(&t, "x", 1, (uint64_t[]){16}, 0, 0);
    put_tensor(&t, "y", 1, (uint64_t[]){16}, 0, 32);
    end(&t, 128);
    refused(&t, "overlaps");
    begin(&t, (Head){3, 2, 0});
    put_tensor(&t, "x", 1, (uint64_t[]){16}, 0, 0);
    put_tensor(&t, "x", 1, (uint64_t[]){16}, 0, 64);
    end(&t, 128);
    refused(&t, "two tensors 'x'");
    begin(&t, (Head){3, 1, 0});
    put_tensor(&t, "x", 1, (uint64_t[]){16}, 0, 0);
    end(&t, 65);
    refused(&t, "1 bytes after its last tensor");
    text_release(&t);
}

// A part of a split model isn't read, whatever its own tensors are; the only part of one is whole.
static void parts(void **state) {
    (void)state;
    Text t = {0};
    Gguf g;
    for (uint64_t count = 1; count <= 3; count += 2) {
        begin(&t, (Head){3, 0, 1});
        put_number(&t, "split.count", count);
        end(&t, count == 1 ? 0 : 25);
        if (count > 1) {
            refused(&t, "is one of 3 parts: join them");
            continue;
        }
        taken(&t, &g);
        gguf_release(&g);
    }
    text_release(&t);
}

static void alignments(void **state) {
    (void)state;
    static const uint64_t bad[] = {0, 3, 48, (1 << 20) + 1, 1u << 21, 1u << 31, UINT32_MAX};
    Text t = {0};
    Gguf g;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(&t, (Head){3, 0, 1});
        put_number(&t, "general.alignment", bad[i]);
        refused(&t, "must be a power of 2");
    }
    begin(&t, (Head){3, 1, 1});
    put_number(&t, "general.alignment", 128);
    put_tensor(&t, "x", 1, (uint64_t[]){16}, 0, 0);
    while (t.length % 128) put(&t, 0, 1);
    for (int i = 0; i < 64; i++) put(&t, 0, 1);
    taken(&t, &g);
    assert_int_equal(g.tensors[0].begin % 128, 0);
    gguf_release(&g);
    text_release(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),   cmocka_unit_test(heads),  cmocka_unit_test(values),
        cmocka_unit_test(tensors), cmocka_unit_test(tiling), cmocka_unit_test(alignments),
        cmocka_unit_test(parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
