// Models of GGUF files (by tests/oracle/gguf_files.py). A file of an unquantised model gives the logits of
// the safetensors it was made from, bit for bit; one of blocks gives those of its values in bf16.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/golden.h"
#include "tests/support/packed.h"
#include "tests/support/scratch.h"

#include "engine/base/gguf.h"
#include "engine/base/memory.h"
#include "engine/engine.h"
#include "engine/model/safetensors.h"
#include "engine/model/weights.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char FOLDER[] = "tests/fixtures/gguf";
static const double F32_TOLERANCE = 2e-5;

static void open_engine(Engine *engine, const char *path, ComputeChoice compute) {
    Error e = {0};
    EngineOptions o = {
        .device = "cpu", .compute = compute, .context = 128, .threads = 1, .isa = getenv("OUTPACE_ISA")};
    if (!engine_open(engine, path, &o, NULL, &e)) fail_msg("%s", e.text);
}

static void run(Session *s, const int *ids, int n) {
    Error e = {0};
    session_reset(s);
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, ids[0]);
    for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, ids[i], true);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
}

// All logits of two models over the same ids.
static void compare(const char *path, const char *other, const int *ids, int n, ComputeChoice compute) {
    Engine a, b;
    open_engine(&a, path, compute);
    open_engine(&b, other, compute);
    assert_int_equal(a.session.shape.vocab, b.session.shape.vocab);
    run(&a.session, ids, n);
    run(&b.session, ids, n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < a.session.shape.vocab; k++) {
            float x = session_logits(&a.session, i)[k], y = session_logits(&b.session, i)[k];
            if (memcmp(&x, &y, sizeof x) != 0)
                fail_msg("%s: logit %d at %d is %.9g, of %s %.9g", path, k, i, (double)x, other, (double)y);
        }
    engine_close(&a);
    engine_close(&b);
}

// The factors of Llama 3's rope are rounded to f32 in the file, and Phi-3's factor of attention.
static bool is_rounded(const char *name) {
    return strcmp(name, "llama3-rope") == 0 || strcmp(name, "phi3-partial-longrope") == 0;
}

// NAME.gguf in `folder` from NAME.gguf.zst, whose prefix is the model's safetensors: the package's own bytes.
static char *unpack(const char *folder, const char *name, const char *dir) {
    char *file = mem_printf("%s.gguf.zst", name), *path = mem_printf("%s/%s.gguf", folder, name);
    Text prefix = {0};
    size_t size;
    packed_add_tensors(&prefix, dir);
    char *bytes = packed_read(FOLDER, file, &prefix, &size);
    scratch_write(folder, path + strlen(folder) + 1, bytes, size);
    text_release(&prefix);
    mem_free(bytes);
    mem_free(file);
    return path;
}

static void check_model(const char *folder, const char *name) {
    Golden g;
    golden_open(&g, name);
    char *path = unpack(folder, name, g.dir);
    Engine engine;
    open_engine(&engine, path, CHOOSE_F32);
    double error = golden_error(&engine.session, &g, 64);
    print_message("%s: f32 error %.2e\n", name, error);
    if (!(error <= F32_TOLERANCE)) fail_msg("%s: f32 error %.3g, wanted %.3g", path, error, F32_TOLERANCE);
    engine_close(&engine);
    if (!is_rounded(name)) compare(path, g.dir, g.ids, g.prompt_count + g.greedy_count, CHOOSE_WEIGHTS);
    golden_release(&g);
    mem_free(path);
}

static void golden_models(void **state) {
    int count = 0;
    DIR *d = opendir(FOLDER);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));) {
        char name[256];
        if (!text_ends(f->d_name, ".gguf.zst")) continue;
        snprintf(name, sizeof name, "%.*s", (int)(strlen(f->d_name) - strlen(".gguf.zst")), f->d_name);
        check_model(*state, name);
        count++;
    }
    closedir(d);
    assert_true(count >= 20);
}

// --- blocks

// Every tensor of random blocks, as codes and scales, has the values that the gguf package gives.
static void check_blocks(const Gguf *g, const unsigned char *data, const GgufTensor *t) {
    char name[GGUF_NAME];
    snprintf(name, sizeof name, "%.40s.values", t->name);
    const GgufTensor *values = gguf_tensor(g, name);
    const BlockFormat *f = block_format(t->format->name);
    assert_non_null(values);
    assert_non_null(f);
    int rows = (int)t->dims[1], columns = (int)t->dims[0];
    Tensor one = {.dtype = DTYPE_BF16, .rows = 1, .columns = columns, .codes = f->codes};
    unsigned char *codes = mem_new(tensor_row_bytes(&one), 1);
    unsigned char *scales = mem_new(tensor_row_scale_bytes(&one), 1);
    uint16_t *got = mem_new((size_t)columns, sizeof *got);
    one.data = codes;
    one.codes.scales = scales;
    for (int r = 0; r < rows; r++) {
        block_row(f, data + t->begin + (t->end - t->begin) / (size_t)rows * (size_t)r, columns, codes,
                  scales);
        tensor_decode_row(&one, 0, got);
        for (int k = 0; k < columns; k++) {
            size_t at = (size_t)r * (size_t)columns + (size_t)k;
            float want = dtype_load(DTYPE_BF16, data + values->begin, at), is = bf16_to_f32(got[k]);
            if (is != want) // zeros of either sign are equal
                fail_msg("%s: value %d of row %d is %.9g, wanted %.9g", t->name, k, r, (double)is,
                         (double)want);
        }
    }
    mem_free(codes);
    mem_free(scales);
    mem_free(got);
}

static void values_of_blocks(void **state) {
    (void)state;
    FileView view = {0};
    Gguf g;
    Error e = {0};
    int count = 0;
    if (!file_map("tests/fixtures/gguf/blocks.gguf", &view, &e) ||
        !gguf_parse(view.data, view.size, "blocks.gguf", &g, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < g.tensor_count; i++) {
        if (strstr(g.tensors[i].name, ".values")) continue;
        check_blocks(&g, view.data, &g.tensors[i]);
        count++;
    }
    assert_int_equal(count, 11);
    gguf_release(&g);
    file_unmap(&view);
}

static TensorOut plain_tensor(const Model *m, const Model *named, int i) {
    WeightSpec s = weights_at(named, i);
    const Tensor *t = weight_tensor(m, s.layer, s.expert, s.which);
    size_t rows = (size_t)s.rows, columns = (size_t)s.columns,
           bytes = t->codes.bits ? 2 : dtype_size(t->dtype);
    TensorOut out = {mem_printf("%s", s.name), dtype_name(t->dtype), s.vector ? 0 : rows, columns, NULL,
                     rows * columns * bytes};
    unsigned char *data = mem_new(out.bytes, 1);
    for (size_t r = 0; r < rows; r++)
        if (t->codes.bits) tensor_decode_row(t, r, (uint16_t *)(void *)(data + r * columns * bytes));
        else memcpy(data + r * columns * bytes, (const char *)t->data + r * columns * bytes, columns * bytes);
    out.data = data;
    return out;
}

// The model as safetensors, with the values that its codes stand for.
static void write_plain(const Model *m, const char *dir) {
    static const char config[] =
        "{\"model_type\":\"llama\",\"hidden_size\":256,\"num_hidden_layers\":1,\"num_attention_heads\":3,"
        "\"num_key_value_heads\":1,\"head_dim\":32,\"intermediate_size\":64,\"vocab_size\":64,"
        "\"max_position_embeddings\":128,\"rms_norm_eps\":1e-5}";
    Model named = {.shape = m->shape, .architecture = "llama"};
    TensorOut tensors[64];
    size_t count = 0;
    Error e = {0};
    for (int i = 0; i < weights_count(m); i++)
        if (weights_at(&named, i).name[0]) tensors[count++] = plain_tensor(m, &named, i);
    scratch_write(dir, "config.json", config, sizeof config - 1);
    if (!safetensors_write(folder_path(dir, "model.safetensors"), tensors, count, &e)) fail_msg("%s", e.text);
    for (size_t i = 0; i < count; i++) {
        mem_free((void *)(uintptr_t)tensors[i].name);
        mem_free((void *)(uintptr_t)tensors[i].data);
    }
}

static void logits_of_blocks(void **state) {
    static const char path[] = "tests/fixtures/gguf/mixed.gguf";
    const char *dir = *state;
    int ids[40];
    Model m;
    ModelWeights weights;
    Error e = {0};
    if (!model_open(&m, &weights, path, &e)) fail_msg("%s", e.text);
    assert_non_null(model_coded(&m));
    assert_string_equal(m.quantised, "Q8_0 (GGUF), of llama");
    assert_string_equal(m.stand_in, "");
    assert_string_equal(model_dtype_name(&m), "Q4"); // most of the layers' numbers
    assert_int_equal(m.valued, 0);
    write_plain(&m, dir);
    model_close(&weights);
    for (int i = 0; i < 40; i++) ids[i] = i * 7 % 64;
    for (int n = 1; n <= 40; n += 13) {
        compare(path, dir, ids, n, CHOOSE_WEIGHTS);
        compare(path, dir, ids, n, CHOOSE_F32);
    }
}

// Writes a fixture with general.file_type, and as much of another key as keeps the tensors aligned.
static void write_typed(const char *dir, const char *from, const char *fixture, char type) {
    static const char keys[] = "\21\0\0\0\0\0\0\0general.file_type\4\0\0\0T\0\0\0"
                               "\1\0\0\0\0\0\0\0x\10\0\0\0\12\0\0\0\0\0\0\0ten letter";
    enum { HEAD = 24, KEY_COUNT = 16, ADDED = sizeof keys - 1, TYPE = 29 };
    size_t size;
    char *bytes = scratch_read(from, fixture, &size), *typed = mem_new(size + ADDED, 1);
    assert_int_equal(ADDED, 64);
    memcpy(typed, bytes, HEAD);
    memcpy(typed + HEAD, keys, ADDED);
    memcpy(typed + HEAD + ADDED, bytes + HEAD, size - HEAD);
    typed[KEY_COUNT] = (char)(typed[KEY_COUNT] + 2);
    typed[HEAD + TYPE] = type;
    scratch_write(dir, "typed.gguf", typed, size + ADDED);
    mem_free(typed);
    mem_free(bytes);
}

// A file is named after its own type, one of an unknown type after the format of most weights; a file without
// codes isn't quantised, whatever it claims.
static void file_types(void **state) {
    static const struct {
        const char *fixture;
        char type;
        const char *want;
    } rows[] = {{"mixed.gguf", 3, "Q4_1 (GGUF), of llama"},
                {"mixed.gguf", 15, "Q4_K_M (GGUF), of llama"},
                {"mixed.gguf", 99, "Q8_0 (GGUF), of llama"},
                {"llama.gguf", 3, ""}};
    mem_free(unpack(*state, "llama", "build/golden/llama"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Model m;
        ModelWeights weights;
        Error e = {0};
        const char *from = rows[i].want[0] ? FOLDER : *state;
        write_typed(*state, from, rows[i].fixture, rows[i].type);
        if (!model_open(&m, &weights, folder_path(*state, "typed.gguf"), &e)) fail_msg("%s", e.text);
        if (strcmp(m.quantised, rows[i].want) != 0 || m.stand_in[0])
            fail_msg("%s of type %d: got '%s' and '%s', wanted '%s'", rows[i].fixture, rows[i].type,
                     m.quantised, m.stand_in, rows[i].want);
        model_close(&weights);
    }
}

// Exact values are f32, and so is the arithmetic; packed files have none.
static void exact_values(void **state) {
    (void)state;
    const EngineOptions o = {.weights = WEIGHTS_EXACT, .threads = 1};
    Engine engine;
    Error e = {0};
    if (!engine_open(&engine, "tests/fixtures/gguf/mixed.gguf", &o, NULL, &e)) fail_msg("%s", e.text);
    assert_string_equal(model_dtype_name(&engine.model), "F32");
    assert_int_equal(engine.session.compute, COMPUTE_F32);
    assert_null(model_coded(&engine.model));
    engine_close(&engine);
    assert_false(engine_open(&engine, "build/golden/packed-awq", &o, NULL, &e));
    assert_string_equal(e.text,
                        "the weights of 'build/golden/packed-awq' are packed: exact values are those of GGUF "
                        "files only");
}

// The two scales of a block that isn't finite are refused by the tensor's name.
static void scales_that_are_not_finite(void **state) {
    static const char name[] = "tests/fixtures/gguf/mixed.gguf";
    size_t size, at;
    char *bytes = scratch_read("tests/fixtures/gguf", "mixed.gguf", &size);
    Gguf g;
    Model m;
    ModelWeights weights;
    Error e = {0};
    if (!gguf_parse((unsigned char *)bytes, size, name, &g, &e)) fail_msg("%s", e.text);
    at = gguf_tensor(&g, "blk.0.ffn_gate.weight")->begin + 18;
    gguf_release(&g);
    memcpy(bytes + at, "\x00\x7c", 2);
    scratch_write(*state, "bad.gguf", bytes, size);
    assert_false(model_open(&m, &weights, folder_path(*state, "bad.gguf"), &e));
    if (!strstr(e.text, "'blk.0.ffn_gate.weight'") || !strstr(e.text, "row 0, group 1"))
        fail_msg("%s", e.text);
    mem_free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(golden_models, folder_setup, folder_teardown),
        cmocka_unit_test(values_of_blocks),
        cmocka_unit_test_setup_teardown(logits_of_blocks, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(file_types, folder_setup, folder_teardown),
        cmocka_unit_test(exact_values),
        cmocka_unit_test_setup_teardown(scales_that_are_not_finite, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
