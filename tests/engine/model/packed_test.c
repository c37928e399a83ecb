// Models that AWQ, GPTQ and compressed-tensors pack (by tests/oracle/packed.py; their logits are checked by
// golden_test.c): every value is that of its code, zero point and scale, by the formats' own rules.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/model/model.h"
#include "engine/model/weights.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"
#include "tests/support/spoil.h"

#include <stdio.h>
#include <string.h>

typedef struct Case {
    const char *name;
    bool awq, tensors; // else GPTQ
    int bits, group;   // of the file; group 0: a row's
    ScaleKind kind;
    int codes; // bits in memory; 0: values
    const char *quantised, *dtype;
} Case;

static const Case CASES[] = {
    {"packed-awq", .awq = true, .bits = 4, .group = 64, .kind = SCALES_PAIRS, .codes = 4,
     .quantised = "4 bits, groups of 64 (AWQ), of tiny-llama", .dtype = "Q4"},
    {"packed-gptq", .bits = 4, .group = 32, .kind = SCALES_F16, .codes = 4,
     .quantised = "4 bits, groups of 32 (GPTQ), of tiny-llama", .dtype = "Q4"},
    {"packed-gptq-fused", .bits = 4, .group = 64, .kind = SCALES_PAIRS, .codes = 4,
     .quantised = "4 bits, groups of 64 (GPTQ), of tiny-phi3", .dtype = "Q4"},
    {"packed-gptq-ordered", .bits = 4, .group = 32, .codes = 0,
     .quantised = "4 bits, groups of 32 (GPTQ), of tiny-qwen2", .dtype = "BF16"},
    {"packed-gptq-8-rows", .bits = 8, .group = 0, .kind = SCALES_F16, .codes = 8,
     .quantised = "8 bits, a group a row (GPTQ), of tiny-gptneox", .dtype = "Q8"},
    {"packed-tensors", .tensors = true, .bits = 4, .group = 32, .kind = SCALES_F32, .codes = 4,
     .quantised = "4 bits, groups of 32 (compressed-tensors), of tiny-llama", .dtype = "Q4"},
    {"packed-tensors-8", .tensors = true, .bits = 8, .group = 32, .codes = 0,
     .quantised = "8 bits, groups of 32 (compressed-tensors), of tiny-llama", .dtype = "BF16"},
};

static const char *dir_of(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "build/golden/%s", name);
    return path;
}

typedef struct File {
    char *bytes;
    Safetensors s;
} File;

static File open_file(const char *dir) {
    File f;
    size_t size;
    Error e = {0};
    f.bytes = scratch_read(dir, "model.safetensors", &size);
    if (!safetensors_parse((unsigned char *)f.bytes, size, dir, &f.s, &e)) fail_msg("%s", e.text);
    return f;
}

// The bytes of a weight's part; NULL without it.
static const StoredTensor *part(const File *f, const char *weight, const char *name) {
    char whole[TENSOR_NAME];
    snprintf(whole, sizeof whole, "%.*s%s", (int)(strlen(weight) - strlen("weight")), weight, name);
    return safetensors_find(&f->s, whole);
}

static unsigned bits_of(const File *f, const StoredTensor *t, size_t word, int shift, int bits) {
    uint32_t x;
    memcpy(&x, f->bytes + t->begin + 4 * word, 4);
    return x >> shift & ((1u << bits) - 1);
}

// One value of the stored matrix of n rows, or n columns in the file of AWQ and GPTQ.
static float value(const File *f, const Case *c, const WeightSpec *s, size_t row, size_t k) {
    static const int turns[] = {0, 4, 1, 5, 2, 6, 3, 7};
    size_t n = (size_t)s->stored_rows, columns = (size_t)s->columns, each = 32 / (size_t)c->bits;
    size_t group = k / (c->group ? (size_t)c->group : columns),
           groups = c->group ? columns / (size_t)c->group : 1;
    const StoredTensor *order = part(f, s->name, "g_idx");
    if (order) group = bits_of(f, order, k, 0, 30);
    const StoredTensor *codes = part(f, s->name, c->tensors ? "weight_packed" : "qweight");
    const StoredTensor *zeros = part(f, s->name, c->tensors ? "weight_zero_point" : "qzeros");
    const StoredTensor *scales = part(f, s->name, c->tensors ? "weight_scale" : "scales");
    Dtype dtype;
    assert_true(codes && scales && safetensors_dtype(scales, &dtype));
    int code, zero = 1 << (c->bits - 1);
    if (c->awq) {
        code = (int)bits_of(f, codes, k * n / 8 + row / 8, 4 * turns[row % 8], 4);
        zero = (int)bits_of(f, zeros, group * n / 8 + row / 8, 4 * turns[row % 8], 4);
    } else if (c->tensors) {
        code = (int)bits_of(f, codes, (row * columns + k) / each, c->bits * (int)(k % each), c->bits);
        if (zeros)
            zero = (int)bits_of(f, zeros, row / each * groups + group, c->bits * (int)(row % each), c->bits);
    } else {
        code = (int)bits_of(f, codes, k / each * n + row, c->bits * (int)(k % each), c->bits);
        zero = (int)bits_of(f, zeros, (group * n + row) / each, c->bits * (int)(row % each), c->bits) + 1;
    }
    float scale =
        dtype_load(dtype, f->bytes + scales->begin, c->tensors ? row * groups + group : group * n + row);
    return bf16_round((float)(code - zero) * scale);
}

// GPT-NeoX's rows take turns: a head of q, of k, of v.
static size_t stored_row(const Model *m, const WeightSpec *s, size_t r) {
    size_t head = (size_t)m->shape.head_dim;
    if (s->form != STORED_HEAD_BY_HEAD) return (size_t)s->first_row + r;
    return (r / head * 3 + (size_t)(s->which - W_Q)) * head + r % head;
}

static int check_weight(const Model *m, const File *f, const Case *c, const WeightSpec *s) {
    const Tensor *t = weight_tensor(m, s->layer, s->expert, s->which);
    if (s->vector || !part(f, s->name, c->tensors ? "weight_packed" : "qweight")) return 0;
    assert_int_equal(t->codes.bits, c->codes);
    if (c->codes) {
        assert_int_equal(t->codes.group, c->group ? c->group : t->columns);
        assert_int_equal(t->codes.kind, c->kind);
    }
    for (size_t r = 0; r < (size_t)t->rows; r++)
        for (size_t k = 0; k < (size_t)t->columns; k++) {
            float got = tensor_value(t, r, k), want = value(f, c, s, stored_row(m, s, r), k);
            if (got != want)
                fail_msg("%s: '%s' row %zu, column %zu: %.9g, wanted %.9g", c->name, s->name, r, k,
                         (double)got, (double)want);
        }
    return 1;
}

static void values(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const Case *c = &CASES[i];
        Model m;
        ModelWeights weights;
        Error e = {0};
        int count = 0;
        if (!model_open(&m, &weights, dir_of(c->name), &e)) fail_msg("%s", e.text);
        File f = open_file(dir_of(c->name));
        for (int w = 0; w < weights_count(&m); w++) {
            WeightSpec s = weights_at(&m, w);
            if (s.name[0]) count += check_weight(&m, &f, c, &s);
        }
        assert_true(count >= 12);
        assert_int_equal(m.valued, c->codes ? 0 : count);
        assert_string_equal(m.quantised, c->quantised);
        assert_string_equal(m.stand_in, "");
        assert_string_equal(model_dtype_name(&m), c->dtype);
        assert_true(model_check_finite(&m, &weights, &e));
        safetensors_release(&f.s);
        mem_free(f.bytes);
        model_close(&weights);
    }
}

// A zero bias that the architecture lacks is left out; another is refused.
static void biases(void **state) {
    Model m;
    ModelWeights weights;
    Error e = {0};
    scratch_copy(dir_of("packed-gptq"), folder_path(*state, "m"));
    assert_true(model_open(&m, &weights, folder_path(*state, "m"), &e));
    model_close(&weights);
    spoil_bytes(folder_path(*state, "m"), "model.layers.1.mlp.up_proj.bias", "4:01");
    assert_false(model_open(&m, &weights, folder_path(*state, "m"), &e));
    if (!strstr(e.text, "'model.layers.1.mlp.up_proj.bias'")) fail_msg("%s", e.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test_setup_teardown(biases, folder_setup, folder_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
