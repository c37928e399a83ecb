// Blocks of GGUF files that several threads unpack: row by row those of block_row, and of several bad scales the
// first one is named.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/binding.h"

#include <string.h>

enum { ROWS = 2500, COLUMNS = 1024 };

typedef struct {
    const char *format;
    int scale; // of a block's bytes the first of an f16 scale
    int group; // the first group of a row's second block
} Case;

static const Case CASES[] = {{"Q8_0", 0, 1},   {"Q4_1", 2, 1},   {"Q5_0", 0, 1},    {"Q5_1", 0, 1},
                             {"Q4_K", 2, 8},   {"Q5_K", 0, 8},   {"Q6_K", 208, 16}, {"Q3_K", 108, 16},
                             {"IQ4_NL", 0, 1}, {"IQ4_XS", 0, 16}};

// The same weight as f32: values as the format defines them, which round to those of the codes.
static void check_exact(const Case *c, const Binding *b, const WeightSpec *s, const Found *f, size_t row) {
    const BlockFormat *format = block_format(c->format);
    unsigned char codes[COLUMNS], scales[COLUMNS];
    Tensor rounded = b->m->embedding,
           one = {.data = codes, .rows = 1, .columns = COLUMNS, .codes = format->codes};
    Error e = {0};
    one.codes.scales = scales;
    b->w->exact = true;
    if (!blocks_bind(b, s, format, f, &e)) fail_msg("%s: %s", c->format, e.text);
    b->w->exact = false;
    assert_int_equal(b->m->embedding.dtype, DTYPE_F32);
    for (int i = 0; i < ROWS; i += 7) {
        block_row(format, found_data(f) + (size_t)i * row, COLUMNS, codes, scales);
        for (int k = i % 11; k < COLUMNS; k += 11) {
            ScalePair pair = tensor_scale(&one, 0, (size_t)(k / format->codes.group));
            int code = tensor_code(&one, 0, (size_t)k);
            double low = codes_lowered(format->codes.bits) ? (double)pair.low : 0;
            float want = (float)((double)code * (double)pair.scale + low);
            float got = tensor_value(&b->m->embedding, (size_t)i, (size_t)k);
            if (got != want || bf16_round(got) != tensor_value(&rounded, (size_t)i, (size_t)k))
                fail_msg("%s, row %d, column %d: wanted %.9g, got %.9g", c->format, i, k, (double)want,
                         (double)got);
        }
    }
}

static void check(const Case *c) {
    const BlockFormat *format = block_format(c->format);
    size_t bytes = (size_t)format->bytes, row = COLUMNS / (size_t)format->numbers * bytes, size = ROWS * row;
    unsigned char *blocks = mem_new(size, 1);
    Random r = test_random(3);
    for (size_t i = 0; i < size; i++)
        blocks[i] = (unsigned char)test_between(&r, 0, 0x77); // no f16 is infinite
    Model m = {.shape.layers = 0};
    ModelWeights w = {.dir = NULL};
    StoredTensor stored = {.name = "x", .end = size};
    Shard shard = {.data = blocks, .name = "file"};
    Binding b = {.m = &m, .w = &w, .shards = &shard, .count = 1, .dir = "dir"};
    WeightSpec s = {.name = "x", .which = W_EMBEDDING, .layer = -1, .rows = ROWS, .columns = COLUMNS};
    Error e = {0};
    if (!blocks_bind(&b, &s, format, &(Found){&stored, &shard}, &e)) fail_msg("%s: %s", c->format, e.text);
    // Memory beyond the file's size: 4 bytes a nest; codes of 3 bits are kept in 6, names of levels in 8.
    const char *f = c->format;
    size_t more = format->codes.kind == SCALES_NESTED ? 4 : f[0] == 'I' ? (size_t)format->numbers / 2 : 0;
    if (strcmp(f, "Q3_K") == 0) more = 100;
    if (strcmp(f, "IQ4_XS") == 0) more = 128 + 10;
    assert_int_equal(tensor_bytes(&m.embedding), size + size / bytes * more);
    unsigned char codes[COLUMNS], scales[COLUMNS];
    for (int i = 0; i < ROWS; i++) {
        Tensor want = {
            .data = codes, .dtype = DTYPE_BF16, .rows = 1, .columns = COLUMNS, .codes = format->codes};
        Tensor got = tensor_rows(&m.embedding, i, 1);
        uint16_t values[COLUMNS];
        want.codes.scales = scales;
        block_row(format, blocks + (size_t)i * row, COLUMNS, codes, scales);
        tensor_decode_row(&want, 0, values);
        for (int k = 0; k < COLUMNS; k += 37)
            if (tensor_value(&got, 0, (size_t)k) != bf16_to_f32(values[k]))
                fail_msg("%s, row %d, column %d: wanted %g, got %g", c->format, i, k,
                         (double)bf16_to_f32(values[k]), (double)tensor_value(&got, 0, (size_t)k));
    }
    check_exact(c, &b, &s, &(Found){&stored, &shard}, row);
    for (int i = ROWS - 1; i > 1200; i -= 600)
        memcpy(blocks + (size_t)i * row + bytes + c->scale, "\0\x7c", 2);
    assert_false(blocks_bind(&b, &s, format, &(Found){&stored, &shard}, &e));
    Text want = {0};
    text_printf(&want,
                "tensor 'x' in 'dir/file' has a scale that isn't finite, at row 1299, group %d:", c->group);
    if (!strstr(e.text, text_get(&want)))
        fail_msg("%s: wanted '%s', got '%s'", c->format, text_get(&want), e.text);
    text_release(&want);
    mem_free_all(&w.rearranged);
    mem_free(blocks);
}

static void rows_of_threads(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) check(&CASES[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_of_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
