// Random models on disk: a function of only the seed, whole, loadable; foreign files are untouched.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/engine.h"
#include "engine/model/model.h"
#include "engine/model/make/synth.h"
#include "engine/model/weights.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct {
    char root[FOLDER_PATH_SIZE], dir[FOLDER_PATH_SIZE + 64];
} Place;

static const char *under(Place *p, const char *name) {
    snprintf(p->dir, sizeof p->dir, "%s/%s", p->root, name);
    return p->dir;
}

static void make(const char *dir, const SynthOptions *o) {
    Error e = {0};
    if (!model_synth(dir, o, &e)) fail_msg("%s", e.text);
}

static void open_model(Model *m, ModelWeights *w, const char *dir) {
    Error e = {0};
    if (!model_open(m, w, dir, &e)) fail_msg("%s", e.text);
}

static bool same_tensor(const Tensor *a, const Tensor *b) {
    if (!a->data || !b->data) return a->data == b->data;
    return a->dtype == b->dtype && a->rows == b->rows && a->columns == b->columns &&
           memcmp(a->data, b->data, tensor_bytes(a)) == 0;
}

// How many of the weights differ; all of them are compared.
static int differences(Model *a, Model *b) {
    int n = !same_tensor(&a->embedding, &b->embedding) + !same_tensor(&a->head, &b->head) +
            !same_tensor(&a->final_norm, &b->final_norm);
    for (int layer = 0; layer < a->shape.layers; layer++)
        for (int i = 0; i < LAYER_WEIGHTS; i++)
            n += !same_tensor(&a->layers[layer].w[i], &b->layers[layer].w[i]);
    return n;
}

// Weights are read in vectors of a cache line.
static void check_alignment(const ModelWeights *w) {
    for (int i = 0; i < w->file_count; i++) {
        uint64_t header;
        memcpy(&header, w->files[i].view.data, sizeof header); // both are little-endian
        if ((8 + header) % 64) fail_msg("data of shard %d begin at byte %zu", i, (size_t)header + 8);
    }
}

// The share grows from one call to the next.
static bool see_share(void *state, const char *what, double share) {
    double *last = state;
    assert_true(*what && share >= *last);
    *last = share;
    return true;
}

static bool refuse(void *state, const char *what, double share) {
    (void)state, (void)what, (void)share;
    return false;
}

// Written by one or by several, it leaves nothing where it is told to end.
static void ends_early(void **state) {
    Place *p = *state;
    for (int threads = 1; threads < 4; threads += 2) {
        SynthOptions o = {
            .shape = "tiny", .shard_bytes = 100000, .threads = threads, .progress = {refuse, NULL}};
        Error e = {0};
        assert_false(model_synth(under(p, "early"), &o, &e));
        assert_int_equal(e.kind, ERROR_INTERRUPTED);
        assert_string_equal(e.text, "interrupted while writing weights");
        assert_int_equal(access(p->dir, F_OK), -1);
    }
}

static void seed_alone(void **state) {
    Place *p = *state;
    Model a, b, c, d, threaded;
    ModelWeights a_weights, b_weights, c_weights, d_weights, threaded_weights;
    double share = 0;
    make(under(p, "a"), &(SynthOptions){.shape = "tiny", .seed = 7});
    open_model(&a, &a_weights, p->dir);
    make(under(p, "b"), &(SynthOptions){.shape = "tiny", .seed = 7});
    open_model(&b, &b_weights, p->dir);
    make(under(p, "c"), &(SynthOptions){.shape = "tiny", .seed = 8});
    open_model(&c, &c_weights, p->dir);
    make(under(p, "d"), &(SynthOptions){.shape = "tiny", .seed = 7, .shard_bytes = 100000});
    open_model(&d, &d_weights, p->dir);
    make(under(p, "e"), &(SynthOptions){.shape = "tiny",
                                        .seed = 7,
                                        .shard_bytes = 100000,
                                        .threads = 3,
                                        .progress = {see_share, &share}});
    open_model(&threaded, &threaded_weights, p->dir);
    assert_int_equal(differences(&a, &b), 0);
    assert_int_equal(differences(&a, &c), 3 + 3 * 9); // every one
    assert_int_equal(differences(&a, &d), 0);         // where it is cut makes no difference
    assert_int_equal(differences(&a, &threaded), 0);  // nor how many write
    assert_int_equal(threaded_weights.file_count, d_weights.file_count);
    assert_true(share > 0.5 && share <= 1);
    model_close(&threaded_weights);
    assert_int_equal(a_weights.file_count, 1);
    check_alignment(&a_weights);
    check_alignment(&d_weights);
    assert_true(d_weights.file_count > 3 && access(under(p, "d/model.safetensors"), F_OK) != 0);
    for (int i = 0; i < d_weights.file_count; i++) assert_true(d_weights.files[i].view.size < 100000 + 4096);
    model_close(&a_weights);
    model_close(&b_weights);
    model_close(&c_weights);
    model_close(&d_weights);
}

// 100 TB and more.
static void no_room_is_told_at_once(void **state) {
    static const char *const sets[] = {"num_hidden_layers=1000", "hidden_size=131072",
                                       "intermediate_size=524288", "num_attention_heads=1024"};
    Place *p = *state;
    Error e = {0};
    SynthOptions o = {.shape = "tiny", .sets = sets, .set_count = 4};
    assert_false(model_synth(under(p, "large"), &o, &e));
    if (!strstr(e.text, "the weights take ") || !strstr(e.text, "large' has room for "))
        fail_msg("wanted what it takes and what there is in: %s", e.text);
    assert_true(access(p->dir, F_OK) != 0);
}

// Shards that may not become as large as they are: that is told, and the smaller ones do not make a model.
static void threads_that_fail(void **state) {
    Place *p = *state;
    Error e = {0};
    struct rlimit before, small;
    SynthOptions o = {.shape = "tiny", .shard_bytes = 100000, .threads = 4};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 80000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool made = model_synth(under(p, "torn"), &o, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_false(made);
    if (!strstr(e.text, "torn/model-0000") || !strstr(e.text, "cannot write weights"))
        fail_msg("wanted a shard's name and why in: %s", e.text);
    assert_true(access(p->dir, F_OK) != 0);
}

// Uniform around 0, or 1 for norms; activations keep their size, so the spread follows the columns.
static void values_are_spread(void **state) {
    Place *p = *state;
    Model m;
    ModelWeights weights;
    make(under(p, "spread"), &(SynthOptions){.shape = "tiny"});
    open_model(&m, &weights, p->dir);
    const Tensor *down = &m.layers[1].w[W_DOWN], *norm = &m.layers[1].w[W_MLP_NORM];
    double sum = 0, squares = 0;
    int n = down->rows * down->columns;
    for (int i = 0; i < n; i++) {
        double x = (double)dtype_load(down->dtype, down->data, (size_t)i);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / n) < 0.003 && fabs(squares / n * down->columns - 1) < 0.03);
    for (int i = 0; i < norm->columns; i++) {
        float x = dtype_load(norm->dtype, norm->data, (size_t)i);
        assert_true(x > 0.79f && x < 1.21f);
    }
    model_close(&weights);
}

static void sets_change_the_config(void **state) {
    Place *p = *state;
    static const char *const sets[] = {"num_hidden_layers=1", "torch_dtype=float32",
                                       "vocab_size=100",      "model_type=phi3",
                                       "sliding_window=9",    "tie_word_embeddings=true"};
    Model m;
    ModelWeights weights;
    make(under(p, "sets"), &(SynthOptions){.shape = "tiny", .sets = sets, .set_count = 6});
    open_model(&m, &weights, p->dir);
    assert_true(m.shape.layers == 1 && m.shape.vocab == 100 && m.shape.window == 9 && m.shape.tied_head);
    assert_true(m.dtype == DTYPE_F32 && strcmp(m.architecture, "phi3") == 0);
    assert_true(m.head.data == m.embedding.data);
    assert_true(access(under(p, "sets/tokenizer.json"), F_OK) != 0); // too small a vocabulary for one
    model_close(&weights);
}

typedef struct {
    const char *shape, *set, *words;
} Refused;

static void refused_before_anything_is_written(void **state) {
    Place *p = *state;
    static const Refused cases[] = {
        {"tiny", "novalue", "key=value"},
        {"tiny", "=3", "key=value"},
        {"tiny", "num_hidden_layers=0", "'num_hidden_layers'"},
        {"tiny", "num_hidden_layers=many", "'num_hidden_layers'"},
        {"tiny", "num_key_value_heads=3", "do not divide"},
        {"tiny", "torch_dtype=int8", "'torch_dtype'"},
        {"tiny", "model_type=bert", "'bert'"},
        {"tiny", "quantization_config={\"a\":1}", "quantised"},
        {"tiny", "x=\xff", "UTF-8"},
        {"no-such-shape", NULL, "no-such-shape"},
        {"none/of/it.json", NULL, "none/of/it.json"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error e = {0};
        SynthOptions o = {.shape = cases[i].shape, .sets = &cases[i].set, .set_count = cases[i].set != NULL};
        bool ok = model_synth(under(p, "refused"), &o, &e);
        if (ok || !strstr(e.text, cases[i].words) || e.kind != ERROR_INPUT)
            fail_msg("%s, %s: %s, wanted '%s'", cases[i].shape, cases[i].set, ok ? "taken" : e.text,
                     cases[i].words);
        assert_true(access(p->dir, F_OK) != 0);
    }
}

static void only_its_own_is_replaced(void **state) {
    Place *p = *state;
    static const char *const small[] = {"vocab_size=100"};
    const SynthOptions o = {.shape = "tiny"};
    Error e = {0};
    Model m;
    ModelWeights weights;
    const char *dir = under(p, "own");
    make(dir, &(SynthOptions){.shape = "tiny", .shard_bytes = 100000});
    make(dir, &o);
    make(dir, &(SynthOptions){.shape = "tiny", .sets = small, .set_count = 1});
    open_model(&m, &weights, dir);
    assert_true(weights.file_count == 1 && m.shape.vocab == 100);
    model_close(&weights);
    assert_true(access(under(p, "own/tokenizer.json"), F_OK) != 0); // nothing of an earlier one stays
    assert_true(access(under(p, "own/model-00001-of-00006.safetensors"), F_OK) != 0);

    make(dir = under(p, "foreign"), &o); // someone else's: our mark is not in it
    json_t *config = scratch_json(dir, "config.json");
    json_object_del(config, "outpace_synth");
    scratch_write_json(dir, "config.json", config);
    json_decref(config);
    assert_false(model_synth(dir, &o, &e));
    assert_non_null(strstr(e.text, "did not write"));
    open_model(&m, &weights, dir); // and whole
    model_close(&weights);
    unlink(under(p, "foreign/config.json"));
    assert_false(model_synth(under(p, "foreign"), &o, &e));
    assert_non_null(strstr(e.text, ", without a config.json"));
    assert_true(access(under(p, "foreign/model.safetensors"), F_OK) == 0);
    json_t *ours = json_pack("{s:{}}", "outpace_synth"); // as one that was interrupted leaves it
    scratch_write_json(under(p, "foreign"), "outpace-unfinished.json", ours);
    json_decref(ours);
    make(p->dir, &o);
    assert_true(access(under(p, "foreign/outpace-unfinished.json"), F_OK) != 0);
    scratch_write(p->root, "file", "x", 1);
    assert_false(model_synth(under(p, "file"), &o, &e)); // a file where the directory should be
    assert_non_null(strstr(e.text, "/file'"));
}

static void runs_on_a_device(const char *dir, const char *device) {
    Engine engine;
    Error e = {0};
    EngineMemory memory;
    EngineOptions o = {.threads = 1};
    snprintf(o.device, sizeof o.device, "%s", device);
    if (!engine_open(&engine, dir, &o, &memory, &e)) fail_msg("%s: %s", device, e.text);
    assert_int_equal(engine.model.shape.vocab, 512);
    assert_non_null(engine.tokenizer);
    assert_int_equal(tokenizer_size(engine.tokenizer), 512);
    if (strcmp(device, "cpu") == 0) assert_int_equal(memory.weights, 2 * 195008);
    engine_close(&engine);
}

static void opens_as_an_engine(void **state) {
    Place *p = *state;
    Engine engine;
    Error e = {0};
    make(under(p, "engine"), &(SynthOptions){.shape = "tiny"});
    runs_on_a_device(p->dir, "cpu");
    runs_on_a_device(p->dir, "null");
    assert_false(engine_open(&engine, p->dir, &(EngineOptions){.device = "abacus"}, NULL, &e));
    assert_non_null(strstr(e.text, "abacus"));
    assert_false(engine_open(&engine, under(p, "nothing"), &(EngineOptions){.device = "cpu"}, NULL, &e));
    assert_non_null(strstr(e.text, "there is no directory"));
}

// One weight at a time made not finite, in each format; a NaN and infinities, first and last elements.
static void finite_is_checked(void **state) {
    Place *p = *state;
    static const char *const sets[] = {"torch_dtype=bfloat16", "torch_dtype=float16", "torch_dtype=float32"};
    Random r = test_random(31);
    for (int i = 0; i < 3; i++) {
        char set[64];
        const char *all[] = {set, "model_type=phi3"};
        snprintf(set, sizeof set, "%s", sets[i]);
        make(under(p, "finite"), &(SynthOptions){.shape = "tiny", .sets = all, .set_count = 2});
        Model m;
        ModelWeights weights;
        Error e = {0};
        open_model(&m, &weights, p->dir);
        if (!model_check_finite(&m, &weights, &e)) fail_msg("%s: %s", sets[i], e.text);
        Tensor *up = &m.layers[2].w[W_UP]; // the second half of a fused tensor
        int row = test_between(&r, 0, up->rows - 1), column = test_between(&r, 0, up->columns - 1);
        size_t element = (size_t)(row * up->columns + column), bytes = tensor_bytes(up);
        unsigned char *copy = mem_new(bytes, 1);
        memcpy(copy, up->data, bytes);
        static const uint32_t bad[3][2] = {{0x7fc0, 0xff80}, {0x7e00, 0xfc00}, {0x7fc00000, 0xff800000}};
        size_t size = dtype_size(up->dtype);
        memcpy(copy + element * size, &bad[i][0], size);
        Tensor saved = *up;
        up->data = copy;
        assert_false(model_check_finite(&m, &weights, &e));
        char wanted[128];
        snprintf(wanted, sizeof wanted, "holds a NaN at row %d, column %d, the first of 1 ", 160 + row,
                 column);
        if (!strstr(e.text, wanted) || !strstr(e.text, "'model.layers.2.mlp.gate_up_proj.weight'"))
            fail_msg("%s: '%s', wanted '%s'", sets[i], e.text, wanted);
        memcpy(copy + element * size, &bad[i][1], size);
        memcpy(copy + bytes - size, &bad[i][1], size);
        memcpy(copy, &bad[i][1], size);
        assert_false(model_check_finite(&m, &weights, &e));
        assert_non_null(strstr(e.text, "holds an infinity at row 160, column 0, the first of "));
        *up = saved;
        model_close(&weights);
        mem_free(copy);
    }
}

static int enter(void **state) {
    Place *p = mem_new(1, sizeof *p);
    if (!p) return -1;
    folder_make(p->root);
    *state = p;
    return 0;
}

static int leave(void **state) {
    Place *p = *state;
    folder_remove(p->root);
    mem_free(p);
    return 0;
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_alone),
        cmocka_unit_test(ends_early),
        cmocka_unit_test(no_room_is_told_at_once),
        cmocka_unit_test(threads_that_fail),
        cmocka_unit_test(values_are_spread),
        cmocka_unit_test(sets_change_the_config),
        cmocka_unit_test(refused_before_anything_is_written),
        cmocka_unit_test(only_its_own_is_replaced),
        cmocka_unit_test(opens_as_an_engine),
        cmocka_unit_test(finite_is_checked),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
