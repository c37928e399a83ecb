// Every shape in configs/shapes has the numbers that its authors published, and none is without a row here.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/model/config.h"
#include "engine/model/model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const char *name, *architecture;
    size_t parameters; // of the published checkpoint, all tensors counted
    int layers, width, heads, kv_heads, vocab, context, window;
    double theta, epsilon;
    RopeKind rope;
} Published;

static const Published PUBLISHED[] = {
    {"llama2-7b", "llama", 6738415616, 32, 4096, 32, 32, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"llama2-13b", "llama", 13015864320, 40, 5120, 40, 40, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"llama2-70b", "llama", 68976648192, 80, 8192, 64, 8, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"codellama-7b", "llama", 6738546688, 32, 4096, 32, 32, 32016, 16384, 0, 1e6, 1e-5, ROPE_PLAIN},
    {"codellama-13b", "llama", 13016028160, 40, 5120, 40, 40, 32016, 16384, 0, 1e6, 1e-5, ROPE_PLAIN},
    {"codellama-34b", "llama", 33743970304, 48, 8192, 64, 8, 32000, 16384, 0, 1e6, 1e-5, ROPE_PLAIN},
    {"vicuna-7b", "llama", 6738415616, 32, 4096, 32, 32, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"vicuna-13b", "llama", 13015864320, 40, 5120, 40, 40, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"mistral-7b", "mistral", 7241732096, 32, 4096, 32, 8, 32000, 32768, 4096, 1e4, 1e-5, ROPE_PLAIN},
    {"phi3-mini", "phi3", 3821079552, 32, 3072, 32, 32, 32064, 4096, 2047, 1e4, 1e-5, ROPE_PLAIN},
    {"qwen3-8b", "qwen3", 8190735360, 36, 4096, 32, 8, 151936, 40960, 0, 1e6, 1e-6, ROPE_PLAIN},
    {"llama3-8b", "llama", 8030261248, 32, 4096, 32, 8, 128256, 131072, 0, 5e5, 1e-5, ROPE_LLAMA3},
    {"llama3.2-3b", "llama", 3212749824, 28, 3072, 24, 8, 128256, 131072, 0, 5e5, 1e-5, ROPE_LLAMA3},
    {"yi-6b", "llama", 6061035520, 32, 4096, 32, 4, 64000, 4096, 0, 5e6, 1e-5, ROPE_PLAIN},
    {"yi-34b", "llama", 34388917248, 60, 7168, 56, 8, 64000, 4096, 0, 5e6, 1e-5, ROPE_PLAIN},
    {"deepseek-coder-6.7b", "llama", 6740512768, 32, 4096, 32, 32, 32256, 16384, 0, 1e5, 1e-6, ROPE_LINEAR},
    {"deepseek-coder-33b", "llama", 33342991360, 62, 7168, 56, 8, 32256, 16384, 0, 1e5, 1e-6, ROPE_LINEAR},
    {"1b", "llama", 1100048384, 22, 2048, 32, 4, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"500m", "llama", 504689664, 30, 1024, 8, 4, 32000, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"160m", "llama", 159417344, 16, 1024, 32, 8, 2048, 2048, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"68m", "llama", 67650560, 8, 1024, 32, 8, 2048, 2048, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"50m", "llama", 52835328, 6, 1024, 8, 4, 2048, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"16m", "llama", 16652800, 6, 512, 16, 4, 2048, 2048, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"160m-moe", "mixtral", 499680256, 16, 1024, 32, 8, 2048, 2048, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"mixtral-8x7b", "mixtral", 46702792704, 32, 4096, 32, 8, 32000, 32768, 0, 1e6, 1e-5, ROPE_PLAIN},
    {"qwen3-30b-a3b", "qwen3_moe", 30532122624, 48, 2048, 32, 4, 151936, 40960, 0, 1e6, 1e-6, ROPE_PLAIN},
    {"olmoe-1b-7b", "olmoe", 6919161856, 16, 2048, 16, 16, 50304, 4096, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"7m", "llama", 7082240, 8, 256, 8, 2, 2048, 2048, 0, 1e4, 1e-5, ROPE_PLAIN},
    {"tiny", "llama", 195008, 3, 64, 4, 2, 512, 512, 0, 1e4, 1e-5, ROPE_PLAIN},
};
enum { PUBLISHED_COUNT = sizeof PUBLISHED / sizeof *PUBLISHED };

static void open_shape(const char *name, Model *m) {
    Error e = {0};
    char *bytes = NULL, *path = shape_file(name, &e);
    size_t n;
    *m = (Model){.bos = 0};
    if (!path || !file_read(path, 1 << 20, &bytes, &n, &e) || !config_parse(m, bytes, n, path, &e))
        fail_msg("%s: %s", name, e.text);
    mem_free(bytes);
    mem_free(path);
}

static void shapes_are_as_published(void **state) {
    (void)state;
    for (int i = 0; i < PUBLISHED_COUNT; i++) {
        const Published *p = &PUBLISHED[i];
        Model m;
        open_shape(p->name, &m);
        const Shape *s = &m.shape;
        if (shape_parameters(s) != p->parameters)
            fail_msg("%s has %zu parameters, published are %zu", p->name, shape_parameters(s), p->parameters);
        assert_string_equal(m.architecture, p->architecture);
        const int got[] = {s->layers, s->width, s->heads, s->kv_heads, s->vocab, s->context, s->window};
        const int wanted[] = {p->layers, p->width, p->heads, p->kv_heads, p->vocab, p->context, p->window};
        for (int k = 0; k < 7; k++)
            if (got[k] != wanted[k]) fail_msg("%s, number %d: %d, wanted %d", p->name, k, got[k], wanted[k]);
        assert_int_equal(s->rope.kind, p->rope);
        assert_true(s->rope.theta == p->theta && s->norm_epsilon == (float)p->epsilon);
        double llama3 = strcmp(p->name, "llama3.2-3b") == 0 ? 32 : 8;
        assert_true(s->rope.factor == (p->rope == ROPE_LINEAR ? 4 : p->rope == ROPE_LLAMA3 ? llama3 : 1));
        assert_int_equal(s->head_dim, s->qk_norm == QK_NORM_HEADS ? 128 : s->width / s->heads);
        assert_int_equal(s->rope.pairs, s->head_dim / 2);
        assert_true(m.eos_count == (p->rope == ROPE_LLAMA3 ? 3 : 1) &&
                    (m.bos >= 1 || p->vocab == 50304)); // OLMoE has no bos
    }
}

// A token goes through as many parameters as in the dense model of 160 million, and the routers.
static void active_parameters(void **state) {
    (void)state;
    Model mixed, dense;
    open_shape("160m-moe", &mixed);
    open_shape("160m", &dense);
    assert_int_equal(shape_active_parameters(&dense.shape), shape_parameters(&dense.shape));
    assert_int_equal(shape_active_parameters(&mixed.shape), shape_parameters(&dense.shape) + 16 * 32 * 1024);
    open_shape("mixtral-8x7b", &mixed);
    assert_int_equal(shape_active_parameters(&mixed.shape), 12879925248);
    open_shape("qwen3-30b-a3b", &mixed);
    assert_int_equal(shape_active_parameters(&mixed.shape), 3353032704);
}

static void every_shape_has_a_row(void **state) {
    (void)state;
    Error e = {0};
    Text names = {0};
    int count = 0;
    if (!shape_names(&names, &e)) fail_msg("%s", e.text);
    for (char *name = strtok(names.data, "\n"); name; name = strtok(NULL, "\n"), count++) {
        bool found = false;
        for (int i = 0; i < PUBLISHED_COUNT; i++) found |= strcmp(PUBLISHED[i].name, name) == 0;
        if (!found) fail_msg("configs/shapes/%s.json has no row of published numbers", name);
    }
    assert_int_equal(count, PUBLISHED_COUNT);
    text_release(&names);
}

static void unknown_is_answered_with_the_known(void **state) {
    (void)state;
    Error e = {0};
    assert_null(shape_file("llama-9t", &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "'llama-9t'"));
    for (int i = 0; i < PUBLISHED_COUNT; i++) assert_non_null(strstr(e.text, PUBLISHED[i].name));
    assert_null(shape_file("no/such/config.json", &e));
    assert_non_null(strstr(e.text, "no/such/config.json"));
    char *path = shape_file("configs/shapes/tiny.json", &e); // a path is a shape too
    assert_string_equal(path, "configs/shapes/tiny.json");
    mem_free(path);
}

static void describes(const Model *m, const char *const words[]) {
    Text text = {0};
    model_describe(m, &(ModelWeights){.dir = NULL}, &text);
    for (int i = 0; words[i]; i++)
        if (!strstr(text_get(&text), words[i])) fail_msg("no '%s' in:\n%s", words[i], text_get(&text));
    assert_null(strstr(text_get(&text), "weights")); // none were opened
    text_release(&text);
}

static void described_in_words(void **state) {
    (void)state;
    Model m;
    open_shape("mistral-7b", &m);
    describes(&m,
              (const char *const[]){"mistral", "7241.7 million", "32 of size 128, 8 for keys (4 to one)\n",
                                    "sliding window 4096", "plain, theta 10000", "bos 1, eos 2",
                                    "131072 bytes a position", NULL});
    open_shape("deepseek-coder-6.7b", &m);
    describes(&m, (const char *const[]){"no sliding window", "linear, theta 100000, factor 4",
                                        "vocabulary      32256", NULL});
    open_shape("qwen3-8b", &m);
    describes(&m, (const char *const[]){"8190.7 million", "(4 to one), q and k normed\n", NULL});
    open_shape("qwen3-30b-a3b", &m);
    describes(&m, (const char *const[]){"30532.1 million, 3353.0 million of them for a token\n",
                                        "48 of width 2048\n", "128 of width 768 in 48 layers, 8 of them for",
                                        NULL});
    open_shape("build/golden/phi3-partial-longrope/config.json", &m);
    describes(&m, (const char *const[]){"longrope, theta 10000, stretched beyond 40, of 12 in 16 dimensions",
                                        "head tied to the embedding", NULL});
}

// From anywhere: the folder is named by OUTPACE_CONFIGS.
static int go_to_root(void **state) {
    (void)state;
    const char *root = getenv("OUTPACE_ROOT");
    unsetenv("OUTPACE_CONFIGS");
    if (root && chdir(root)) return -1;
    return setenv("OUTPACE_CONFIGS", "configs", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_as_published), cmocka_unit_test(active_parameters),
        cmocka_unit_test(every_shape_has_a_row),   cmocka_unit_test(unknown_is_answered_with_the_known),
        cmocka_unit_test(described_in_words),
    };
    return cmocka_run_group_tests(tests, go_to_root, NULL);
}
