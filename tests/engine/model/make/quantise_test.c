// A quantised model's values are near the original's, its file is small, and the program opens no damaged
// one.
#include "tests/support/check.h"

#include "engine/model/make/quantise.h"
#include "engine/model/make/synth.h"
#include "tests/support/folder.h"
#include "tests/support/spoil.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void check_ok(bool ok, const Error *e) {
    if (!ok) fail_msg("%s", e->text);
}

typedef struct {
    char root[FOLDER_PATH_SIZE], from[FOLDER_PATH_SIZE + 16], to[FOLDER_PATH_SIZE + 16];
} Dirs;

// No number is further from the value of its code than that is rounded, or cut by the best scale.
static void groups(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 400; round++) {
        int bits = round % 2 ? 8 : 4, n = 32 << round / 2 % 3;
        float x[GROUP_MOST], largest = 0;
        unsigned char codes[GROUP_MOST];
        for (int i = 0; i < n; i++) {
            x[i] = round % 5 ? 0.02f * random_normal(&r) : 0;
            largest = fmaxf(largest, fabsf(x[i]));
        }
        uint16_t scale = quantise_group(x, n, bits, codes);
        Tensor t = {.data = codes, .dtype = DTYPE_BF16, .rows = 1, .columns = n};
        t.codes = (Codes){.bits = bits, .group = n, .kind = SCALES_F16, .scales = &scale};
        assert_true(scale & 0x7fff && (scale & 0x7c00) != 0x7c00);
        for (int i = 0; i < n; i++) {
            float got = tensor_value(&t, 0, (size_t)i), most = largest / (bits == 8 ? 150 : 4);
            if (fabsf(got - x[i]) > most)
                fail_msg("round %d: %g became %g, further than %g", round, (double)x[i], (double)got,
                         (double)most);
        }
    }
}

static void open_refused(const char *dir, const char *words) {
    Model m;
    ModelWeights weights;
    Error e = {0};
    assert_false(model_open(&m, &weights, dir, &e));
    if (!strstr(e.text, words)) fail_msg("wanted '%s' in '%s'", words, e.text);
}

static void models(void **state) {
    Dirs *d = *state;
    for (int bits = 4; bits <= 8; bits += 4) {
        Model a, b;
        ModelWeights a_weights, b_weights;
        Error e = {0};
        QuantiseOptions o = {.from = d->from, .bits = bits, .group = 32, .force = true};
        check_ok(model_quantise(d->to, &o, &e), &e);
        check_ok(model_open(&a, &a_weights, d->from, &e) && model_open(&b, &b_weights, d->to, &e), &e);
        const Tensor *x = &a.layers[1].w[W_DOWN], *y = &b.layers[1].w[W_DOWN];
        assert_int_equal(y->codes.bits, bits);
        assert_int_equal(b.embedding.codes.bits, 8);
        char want[64];
        snprintf(want, sizeof want, "%d bits, groups of 32, of ", bits);
        assert_true(!b.final_norm.codes.bits);
        if (strncmp(b.quantised, want, strlen(want)) != 0 || strcmp(b.stand_in, a.stand_in) != 0)
            fail_msg("got '%s' and '%s', wanted '%s..' and '%s'", b.quantised, b.stand_in, want, a.stand_in);
        assert_true(model_check_finite(&b, &b_weights, &e) && model_bytes(&b) < model_bytes(&a) * 5 / 8);
        for (size_t i = 0; i < (size_t)x->columns; i++)
            assert_true(fabsf(tensor_value(x, 3, i) - tensor_value(y, 3, i)) < (bits == 8 ? 0.01f : 0.1f));
        model_close(&a_weights), model_close(&b_weights);
    }
    Error e = {0};
    QuantiseOptions again = {.from = d->to, .bits = 8, .group = 32, .force = true};
    assert_false(model_quantise(d->from, &again, &e));
    assert_non_null(strstr(e.text, "codes of 8 bits already"));
    QuantiseOptions wide = {.from = d->from, .bits = 8, .group = 128, .force = true};
    assert_false(model_quantise(d->to, &wide, &e));
    assert_non_null(strstr(e.text, "groups of 128 don't divide"));
}

static void damaged(void **state) {
    Dirs *d = *state;
    Error e = {0};
    QuantiseOptions o = {.from = d->from, .bits = 8, .group = 32, .force = true};
    check_ok(model_quantise(d->to, &o, &e), &e);
    spoil_json(d->to, "config.json/quantization_config/group_size", "64");
    open_refused(d->to, "must hold");
    spoil_json(d->to, "config.json/quantization_config/group_size", "33");
    open_refused(d->to, "'group_size' 32, 64 or 128");
    spoil_json(d->to, "config.json/quantization_config/group_size", "32");
    spoil_weight(d->to, "model.layers.1.mlp.down_proj.weight.scales", "5");
    open_refused(d->to, "which is not a scale");
    check_ok(model_quantise(d->to, &o, &e), &e);
    spoil_header(d->to, "1.mlp.down_proj.weight.scales", "1.mlp.down_proj.weight.scalez");
    open_refused(d->to, "model.layers.1.mlp.down_proj.weight.scale");
}

static int open_dirs(void **state) {
    static Dirs d;
    Error e = {0};
    folder_make(d.root);
    snprintf(d.from, sizeof d.from, "%s/from", d.root);
    snprintf(d.to, sizeof d.to, "%s/to", d.root);
    *state = &d;
    return model_synth(d.from, &(SynthOptions){.shape = "tiny"}, &e) ? 0 : -1;
}

static int close_dirs(void **state) {
    folder_remove(((Dirs *)*state)->root);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups), cmocka_unit_test(models),
                                       cmocka_unit_test(damaged)};
    return cmocka_run_group_tests(tests, open_dirs, close_dirs);
}
