// Weights by role, against names and places written out again: every stored element encodes its tensor and
// row, so a wrong slice shows at once.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/base/text.h"
#include "engine/model/config.h"
#include "engine/model/weights.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 2, WIDTH = 6, HEADS = 4, KV_HEADS = 2, HEAD = 2, MLP = 5, VOCAB = 11, MOST = 64 };
enum { Q = HEADS * HEAD, KV = KV_HEADS * HEAD };

typedef struct {
    char name[96];
    int rows, columns;
    bool vector;
} Stored;

// A model's file in memory, spread over one or two shards.
typedef struct {
    Stored list[MOST];
    int count;
    const char *dtype;
    unsigned char *bytes[2];
    Shard shards[2];
    LayerWeights layers[LAYERS];
    Model model;
    ModelWeights weights;
} Fake;

static void store(Fake *f, int layer, const char *part, int rows, int columns, bool vector) {
    Stored *s = &f->list[f->count++];
    *s = (Stored){"", rows, columns, vector};
    if (layer < 0) snprintf(s->name, sizeof s->name, "%s", part);
    else snprintf(s->name, sizeof s->name, "model.layers.%d.%s", layer, part);
}

static void store_layer(Fake *f, int i, bool fused, bool bias, bool norm) {
    store(f, i, "input_layernorm.weight", 1, WIDTH, true);
    store(f, i, "post_attention_layernorm.weight", 1, WIDTH, true);
    store(f, i, "self_attn.o_proj.weight", WIDTH, Q, false);
    store(f, i, "mlp.down_proj.weight", WIDTH, MLP, false);
    if (fused) {
        store(f, i, "self_attn.qkv_proj.weight", Q + 2 * KV, WIDTH, false);
        store(f, i, "mlp.gate_up_proj.weight", 2 * MLP, WIDTH, false);
        return;
    }
    store(f, i, "self_attn.q_proj.weight", Q, WIDTH, false);
    store(f, i, "self_attn.k_proj.weight", KV, WIDTH, false);
    store(f, i, "self_attn.v_proj.weight", KV, WIDTH, false);
    store(f, i, "mlp.gate_proj.weight", MLP, WIDTH, false);
    store(f, i, "mlp.up_proj.weight", MLP, WIDTH, false);
    if (norm) {
        store(f, i, "self_attn.q_norm.weight", 1, HEAD, true);
        store(f, i, "self_attn.k_norm.weight", 1, HEAD, true);
    }
    if (!bias) return;
    store(f, i, "self_attn.q_proj.bias", 1, Q, true);
    store(f, i, "self_attn.k_proj.bias", 1, KV, true);
    store(f, i, "self_attn.v_proj.bias", 1, KV, true);
}

static void fake_init(Fake *f, const char *type, bool tied) {
    const Architecture *a = architecture_find(type);
    *f = (Fake){.dtype = "F32"};
    store(f, -1, "model.embed_tokens.weight", VOCAB, WIDTH, false);
    for (int i = 0; i < LAYERS; i++)
        store_layer(f, i, strcmp(type, "phi3") == 0, strcmp(type, "qwen2") == 0, strcmp(type, "qwen3") == 0);
    store(f, -1, "model.norm.weight", 1, WIDTH, true);
    if (!tied) store(f, -1, "lm_head.weight", VOCAB, WIDTH, false);
    f->model.shape = (Shape){.layers = LAYERS,
                             .width = WIDTH,
                             .heads = HEADS,
                             .kv_heads = KV_HEADS,
                             .head_dim = HEAD,
                             .mlp_width = MLP,
                             .vocab = VOCAB,
                             .qkv_bias = a->shape.qkv_bias,
                             .qk_norm = a->shape.qk_norm,
                             .tied_head = tied};
    f->model.layers = f->layers;
    snprintf(f->model.architecture, sizeof f->model.architecture, "%s", type);
}

// Tensor number t's row r holds 1000 t + r in every column. Tensors [from, to) go into the shard.
static void make_shard(Fake *f, int shard, int from, int to, size_t shift) {
    Text header = {0};
    size_t at = 0, bytes = !strcmp(f->dtype, "F32") ? 4 : 8;
    text_puts(&header, "{");
    for (int i = from; i < to; i++) {
        const Stored *s = &f->list[i];
        size_t size = (size_t)(s->rows * s->columns) * bytes;
        text_printf(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i > from ? "," : "", s->name,
                    f->dtype);
        if (!s->vector) text_printf(&header, "%d,", s->rows);
        text_printf(&header, "%d],\"data_offsets\":[%zu,%zu]}", s->columns, at, at + size);
        at += size;
    }
    text_puts(&header, "}");
    while (header.length % 8 != shift) text_puts(&header, " ");
    unsigned char *b = f->bytes[shard] = mem_new(8 + header.length + at, 1);
    for (int i = 0; i < 8; i++) b[i] = (unsigned char)(header.length >> 8 * i);
    memcpy(b + 8, header.data, header.length);
    size_t size = 8 + header.length + at;
    unsigned char *data = b + 8 + header.length;
    for (int i = from; i < to && bytes == 4; i++)
        for (int k = 0; k < f->list[i].rows * f->list[i].columns; k++, data += 4) {
            float x = (float)(1000 * i + k / f->list[i].columns);
            memcpy(data, &x, 4);
        }
    Error e = {0};
    f->shards[shard] = (Shard){.data = b, .name = shard ? "two" : "one"};
    if (!safetensors_parse(b, size, "x", &f->shards[shard].header, &e)) fail_msg("%s", e.text);
    text_release(&header);
}

static bool bind_in(Fake *f, int shards, Error *e) {
    *e = (Error){0};
    int cut = shards == 2 ? f->count / 3 : f->count;
    make_shard(f, 0, 0, cut, 0);
    if (shards == 2) make_shard(f, 1, cut, f->count, 0);
    return weights_bind(&f->model, &f->weights, f->shards, shards, "dir", e);
}

static void fake_release(Fake *f) {
    for (int i = 0; i < 2; i++) {
        safetensors_release(&f->shards[i].header);
        mem_free(f->bytes[i]);
    }
    model_close(&f->weights);
}

static void check(const Fake *f, const char *name, const Tensor *t, int first, int rows, int columns) {
    int i = 0;
    while (i < f->count && strcmp(f->list[i].name, name) != 0) i++;
    if (t->rows != rows || t->columns != columns || !t->data)
        fail_msg("%s: (%d, %d), wanted (%d, %d)", name, t->rows, t->columns, rows, columns);
    assert_int_equal(t->dtype, DTYPE_F32);
    for (int r = 0; r < rows * columns; r++) {
        float got = dtype_load(t->dtype, t->data, (size_t)r),
              wanted = (float)(1000 * i + first + r / columns);
        if (got != wanted) fail_msg("%s, element %d: %g, wanted %g", name, r, (double)got, (double)wanted);
    }
}

static void check_part(const Fake *f, int layer, const char *part, const Tensor *t, int first, int rows,
                       int columns) {
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.%s", layer, part);
    check(f, name, t, first, rows, columns);
}

static void check_all(const Fake *f, bool fused, bool bias, bool norm, bool tied) {
    const Model *m = &f->model;
    for (int i = 0; i < LAYERS; i++) {
        const Tensor *w = f->layers[i].w;
        check_part(f, i, "input_layernorm.weight", &w[W_ATTENTION_NORM], 0, 1, WIDTH);
        check_part(f, i, "post_attention_layernorm.weight", &w[W_MLP_NORM], 0, 1, WIDTH);
        check_part(f, i, "self_attn.o_proj.weight", &w[W_O], 0, WIDTH, Q);
        check_part(f, i, "mlp.down_proj.weight", &w[W_DOWN], 0, WIDTH, MLP);
        check_part(f, i, fused ? "self_attn.qkv_proj.weight" : "self_attn.q_proj.weight", &w[W_Q], 0, Q,
                   WIDTH);
        check_part(f, i, fused ? "self_attn.qkv_proj.weight" : "self_attn.k_proj.weight", &w[W_K],
                   fused ? Q : 0, KV, WIDTH);
        check_part(f, i, fused ? "self_attn.qkv_proj.weight" : "self_attn.v_proj.weight", &w[W_V],
                   fused ? Q + KV : 0, KV, WIDTH);
        check_part(f, i, fused ? "mlp.gate_up_proj.weight" : "mlp.gate_proj.weight", &w[W_GATE], 0, MLP,
                   WIDTH);
        check_part(f, i, fused ? "mlp.gate_up_proj.weight" : "mlp.up_proj.weight", &w[W_UP], fused ? MLP : 0,
                   MLP, WIDTH);
        assert_int_equal(w[W_Q_NORM].data != NULL, norm);
        if (norm) {
            check_part(f, i, "self_attn.q_norm.weight", &w[W_Q_NORM], 0, 1, HEAD);
            check_part(f, i, "self_attn.k_norm.weight", &w[W_K_NORM], 0, 1, HEAD);
        }
        assert_int_equal(w[W_Q_BIAS].data != NULL, bias);
        if (!bias) continue;
        check_part(f, i, "self_attn.q_proj.bias", &w[W_Q_BIAS], 0, 1, Q);
        check_part(f, i, "self_attn.k_proj.bias", &w[W_K_BIAS], 0, 1, KV);
        check_part(f, i, "self_attn.v_proj.bias", &w[W_V_BIAS], 0, 1, KV);
    }
    check(f, "model.embed_tokens.weight", &m->embedding, 0, VOCAB, WIDTH);
    check(f, "model.norm.weight", &m->final_norm, 0, 1, WIDTH);
    check(f, tied ? "model.embed_tokens.weight" : "lm_head.weight", &m->head, 0, VOCAB, WIDTH);
    assert_int_equal(m->dtype, DTYPE_F32);
    assert_int_equal(model_bytes(m), shape_parameters(&m->shape) * 4);
}

static const char *const TYPES[] = {"llama", "mistral", "phi3", "qwen2", "qwen3"};
enum { TYPE_COUNT = sizeof TYPES / sizeof *TYPES };

static void roles(void **state) {
    (void)state;
    for (int i = 0; i < 4 * TYPE_COUNT; i++) {
        Fake f;
        Error e;
        const char *type = TYPES[i / 4];
        bool tied = i & 1;
        fake_init(&f, type, tied);
        if (!bind_in(&f, 1 + (i >> 1 & 1), &e)) fail_msg("%s: %s", type, e.text);
        check_all(&f, strcmp(type, "phi3") == 0, strcmp(type, "qwen2") == 0, strcmp(type, "qwen3") == 0,
                  tied);
        fake_release(&f);
    }
}

// Each tensor in turn: taken away, of another shape, with another number of dimensions.
static void each_is_needed_as_it_should_be(void **state) {
    (void)state;
    for (int type = 0; type < TYPE_COUNT; type++) {
        Fake f;
        fake_init(&f, TYPES[type], false);
        int count = f.count;
        for (int i = 0; i < 4 * count; i++) {
            Error e;
            fake_init(&f, TYPES[type], false);
            Stored *s = &f.list[i / 4];
            char name[96];
            snprintf(name, sizeof name, "'%s'", s->name);
            if (i % 4 == 0) *s = f.list[--f.count];
            else if (i % 4 == 1) s->rows += !s->vector, s->columns += s->vector;
            else if (i % 4 == 2) s->vector = !s->vector, s->columns *= s->rows, s->rows = 1;
            else s->columns--;
            if (bind_in(&f, 1, &e)) fail_msg("%s, change %d: taken", name, i % 4);
            if (!strstr(e.text, name) || !strstr(e.text, "'dir") || e.kind != ERROR_INPUT)
                fail_msg("%s, change %d: '%s'", name, i % 4, e.text);
            fake_release(&f);
        }
    }
}

static void dtypes_and_alignment(void **state) {
    (void)state;
    Fake f;
    Error e;
    fake_init(&f, "llama", false);
    f.dtype = "F64";
    assert_false(bind_in(&f, 1, &e));
    assert_non_null(strstr(e.text, "has dtype F64; BF16, F16 and F32"));
    fake_release(&f);
    for (size_t shift = 1; shift < 8; shift++) {
        fake_init(&f, "llama", false);
        make_shard(&f, 0, 0, f.count, shift);
        bool ok = weights_bind(&f.model, &f.weights, f.shards, 1, "dir", &e);
        assert_int_equal(ok, shift == 4); // F32 stands at multiples of 4
        if (!ok) assert_non_null(strstr(e.text, "not a multiple of its element's 4"));
        fake_release(&f);
    }
}

static void twice_is_once_too_often(void **state) {
    (void)state;
    Fake f;
    Error e = {0};
    fake_init(&f, "llama", false);
    make_shard(&f, 0, 0, f.count, 0);
    make_shard(&f, 1, 7, 8, 0);
    assert_false(weights_bind(&f.model, &f.weights, f.shards, 2, "dir", &e));
    if (!strstr(e.text, "'dir/one' and in 'two' too") || !strstr(e.text, f.list[7].name))
        fail_msg("%s", e.text);
    fake_release(&f);
}

// A weight that nothing asks for would be left out of the arithmetic.
static void none_is_left_out(void **state) {
    (void)state;
    static const struct {
        const char *type;
        int layer;
        const char *part;
        bool taken;
    } cases[] = {
        {"llama", 1, "self_attn.q_proj.bias", false},
        {"llama", 0, "self_attn.q_norm.weight", false},
        {"qwen2", 1, "self_attn.o_proj.bias", false},
        {"qwen3", 1, "self_attn.v_proj.bias", false},
        {"phi3", 0, "self_attn.q_proj.weight", false},
        {"llama", 1, "pre_feedforward_layernorm.weight", false},
        {"llama", 1, "self_attn.rotary_emb.inv_freq", true}, // what config.json says, once more
        {"llama", LAYERS, "self_attn.q_proj.bias", true},    // of a layer that config.json leaves out
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Fake f;
        Error e;
        fake_init(&f, cases[i].type, false);
        store(&f, cases[i].layer, cases[i].part, 1, Q, true);
        bool taken = bind_in(&f, 1 + (int)(i % 2), &e);
        if (taken != cases[i].taken ||
            (!taken && (!strstr(e.text, cases[i].part) || !strstr(e.text, "dir/"))))
            fail_msg("%s of %s: %s", cases[i].part, cases[i].type, taken ? "taken" : e.text);
        assert_int_equal(f.model.unused_layers, cases[i].layer == LAYERS);
        fake_release(&f);
    }
}

// Written out, tensor by tensor.
static size_t count_slowly(const Shape *s) {
    size_t n = 0, w = (size_t)s->width, d = (size_t)s->head_dim;
    for (int layer = 0; layer < s->layers; layer++) {
        n += w;                                                   // norm
        for (int h = 0; h < s->heads; h++) n += 2 * d * w;        // rows of q, columns of o
        for (int h = 0; h < s->kv_heads; h++) n += 2 * d * w;     // rows of k and v
        for (int h = 0; s->qkv_bias && h < s->heads; h++) n += d; // their biases
        for (int h = 0; s->qkv_bias && h < s->kv_heads; h++) n += 2 * d;
        if (s->qk_norm) n += 2 * d;                              // one a dimension, for all heads
        if (s->mlp_width) n += w + 3 * w * (size_t)s->mlp_width; // norm, gate, up, down
    }
    n += w; // last norm
    if (s->input == INPUT_TOKENS) n += (size_t)s->vocab * w;
    return n + (s->tied_head ? 0 : (size_t)s->vocab * w);
}

static void parameters_count_tensors(void **state) {
    (void)state;
    Random r = test_random(20);
    for (int round = 0; round < 500; round++) {
        Shape s = {.norm_epsilon = 1e-5f};
        s.layers = test_between(&r, 1, 9), s.width = test_between(&r, 1, 300);
        s.kv_heads = test_between(&r, 1, 5), s.heads = s.kv_heads * test_between(&r, 1, 4);
        s.head_dim = 2 * test_between(&r, 1, 40), s.vocab = test_between(&r, 1, 999);
        s.mlp_width = test_between(&r, 0, 2) ? test_between(&r, 1, 400) : 0;
        s.input = test_between(&r, 0, 3) ? INPUT_TOKENS : INPUT_HIDDEN;
        s.qkv_bias = test_between(&r, 0, 1), s.qk_norm = test_between(&r, 0, 1);
        s.tied_head = test_between(&r, 0, 1);
        assert_int_equal(shape_parameters(&s), count_slowly(&s));
    }
}

// A head that is stored apart with the embedding's values counts once.
static void a_repeated_head_counts_once(void **state) {
    (void)state;
    Fake f;
    Error e;
    fake_init(&f, "llama", false);
    if (!bind_in(&f, 1, &e)) fail_msg("%s", e.text);
    float values[VOCAB * WIDTH];
    Tensor head = f.model.head;
    assert_int_equal(model_repeated_parameters(&f.model), 0);
    memcpy(values, f.model.embedding.data, sizeof values);
    f.model.head.data = values;
    assert_int_equal(model_repeated_parameters(&f.model), VOCAB * WIDTH);
    values[VOCAB * WIDTH - 1]++;
    assert_int_equal(model_repeated_parameters(&f.model), 0);
    f.model.head = head;
    fake_release(&f);
}

// A model is called after most of its layers' numbers, whatever its first weight or its embedding is.
static void named_after_most(void **state) {
    (void)state;
    Fake f;
    Error e;
    fake_init(&f, "llama", false);
    if (!bind_in(&f, 1, &e)) fail_msg("%s", e.text);
    assert_string_equal(model_dtype_name(&f.model), "F32");
    f.model.bits = f.layers[0].w[W_Q].codes.bits = 4;
    f.model.embedding.codes.bits = f.model.head.codes.bits = 4;
    assert_string_equal(model_dtype_name(&f.model), "F32");
    for (int i = 0; i < LAYERS; i++)
        for (int k = 0; k < 5; k++) f.layers[i].w[(int[]){W_K, W_V, W_GATE, W_UP, W_DOWN}[k]].codes.bits = 8;
    assert_string_equal(model_dtype_name(&f.model), "Q8");
    fake_release(&f);
}

// So does one in codes of another format, whose values are near; another matrix isn't near.
static void a_repeated_head_in_codes(void **state) {
    (void)state;
    enum { ROWS = 300, COLUMNS = 32 };
    float values[ROWS * COLUMNS], scales[ROWS];
    int8_t codes[ROWS * COLUMNS];
    Random r = test_random(21);
    for (int i = 0; i < ROWS; i++) scales[i] = 1.0F / 16;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        values[i] = (float)test_between(&r, -127, 127) / 127;
        codes[i] = (int8_t)lrintf(values[i] * 16);
    }
    Model m = {.embedding = {values, DTYPE_F32, ROWS, COLUMNS, {0}},
               .head = {codes, DTYPE_BF16, ROWS, COLUMNS, {8, COLUMNS, SCALES_F32, scales}}};
    assert_int_equal(model_repeated_parameters(&m), ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++) codes[i] = (int8_t)test_between(&r, -16, 16);
    assert_int_equal(model_repeated_parameters(&m), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles),
        cmocka_unit_test(each_is_needed_as_it_should_be),
        cmocka_unit_test(dtypes_and_alignment),
        cmocka_unit_test(twice_is_once_too_often),
        cmocka_unit_test(none_is_left_out),
        cmocka_unit_test(parameters_count_tensors),
        cmocka_unit_test(a_repeated_head_counts_once),
        cmocka_unit_test(a_repeated_head_in_codes),
        cmocka_unit_test(named_after_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
