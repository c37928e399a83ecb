// EAGLE's drafts and MTP layers on disk: all forms, the layers that they read, their maps between
// vocabularies, and refused directories, each with one line that names the file and the tensor or key.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch.h"
#include "tests/support/spoiled_drafts.h"

#include "engine/base/memory.h"
#include "engine/model/make/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG  "config.json"
#define WEIGHTS "model.safetensors"

typedef struct Target {
    Model model;
    ModelWeights weights;
} Target;

static int open_target(void **state) {
    char path[512];
    Target *t = test_calloc(1, sizeof *t);
    Error e = {0};
    if (!model_open(&t->model, &t->weights, fixture_path("build/golden/llama", path), &e))
        fail_msg("%s", e.text);
    *state = &t->model; // its first member
    return 0;
}

static int close_target(void **state) {
    Target *t = *state;
    model_close(&t->weights);
    test_free(t);
    return 0;
}

// --- opened

static void open_fixture(Adapter *a, const Model *target, const char *name) {
    char path[512];
    Error e = {0};
    if (!adapter_open(a, target, fixture_path(name, path), &e)) fail_msg("%s: %s", name, e.text);
}

static void forms(void **state) {
    const Model *target = *state;
    Adapter a;
    open_fixture(&a, target, "tests/fixtures/eagle/eagle");
    const Shape *s = &a.models[0].shape;
    assert_true(a.kind.variant == ADAPTER_EAGLE && a.kind.heads == 1 && a.kind.exit_layer == 2);
    assert_true(s->input == INPUT_FUSED && s->fc_bias && a.models[0].fc_bias.data && !a.captures.count);
    assert_true(a.models[0].head.data == target->head.data && !a.models[0].final_norm.data);
    assert_true(a.models[0].embedding.data != target->embedding.data);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle-no-bias");
    assert_true(!a.models[0].shape.fc_bias && a.models[0].embedding.data == target->embedding.data);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle3");
    s = &a.models[0].shape;
    assert_true(a.kind.variant == ADAPTER_EAGLE3 && s->input == INPUT_PAIRED && !s->normed_residual);
    assert_true(s->vocab == 61 && s->tokens == 259 && s->states == 3 && s->head_dim == 12);
    assert_true(a.captures.count == 3 && a.draft_ids && a.models[0].head.rows == 61);
    for (int i = 1; i < 61; i++) assert_true(a.draft_ids[i] > a.draft_ids[i - 1]);
    adapter_close(&a);
    open_fixture(&a, target,
                 "tests/fixtures/eagle/eagle3-whole"); // no draft_vocab_size: its architecture names it
    assert_true(a.kind.variant == ADAPTER_EAGLE3 && !a.draft_ids && a.models[0].shape.vocab == 259);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle3-speculators");
    s = &a.models[0].shape;
    assert_true(s->normed_residual && s->fc_norm == FC_NORM_NONE && !s->normed_output &&
                a.captures.count == 2);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle3-normed");
    s = &a.models[0].shape;
    assert_true(!s->normed_residual && s->fc_norm == FC_NORM_ROW && s->normed_output);
    assert_true(a.models[0].fc_norm.columns == 3 * target->shape.width);
    assert_true(s->qk_norm == QK_NORM_NONE);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle3-deepspec"); // layers from 0, heads that are normed
    s = &a.models[0].shape;
    assert_true(s->qk_norm == QK_NORM_HEADS && a.models[0].layers->w[W_Q_NORM].columns == 16);
    assert_true(s->states == 5 && s->vocab == 259 && !a.draft_ids && a.models[0].head.rows == 259);
    for (int i = 0; i < 5; i++) assert_int_equal(a.captures.layers[i], 1);
    adapter_close(&a);
    open_fixture(&a, target, "tests/fixtures/eagle/eagle3-fc-norm");
    s = &a.models[0].shape;
    assert_true(s->fc_norm == FC_NORM_EACH && s->qk_norm == QK_NORM_HEADS && s->normed_output);
    assert_true(a.models[0].fc_norm.columns == 2 * target->shape.width);
    adapter_close(&a);
    open_fixture(&a, target,
                 "tests/fixtures/eagle/peagle"); // plain layers above the first, and a mask's states
    s = &a.models[0].shape;
    assert_true(s->layers == 3 && s->mask_token == 7 && a.mask_states && adapter_parts(&a.kind) == 3);
    assert_int_equal(a.models[0].layers[0].w[W_Q].columns, 2 * s->width);
    assert_int_equal(a.models[0].layers[2].w[W_Q].columns, s->width);
    adapter_close(&a);
    open_fixture(&a, target,
                 "tests/fixtures/eagle/mtp"); // without the target, whose tensors may be there, too
    s = &a.models[0].shape;
    assert_true(a.kind.variant == ADAPTER_MTP && s->input == INPUT_MTP && s->layers == 1 && s->qkv_bias);
    assert_true(a.captures.count == 1 && a.captures.layers[0] == 2 && !a.kind.recycles_normed && !s->fc_bias);
    assert_true(a.models[0].final_norm.data && a.models[0].state_norm.data && a.models[0].token_norm.data);
    assert_true(a.models[0].head.data == target->head.data);
    adapter_close(&a);
}

// The layer's norms show EAGLE-3 where the config is a bare Llama's.
static void told_by_tensors(void **state) {
    char path[512], dir[FOLDER_PATH_SIZE];
    Adapter a;
    Error e = {0};
    folder_make(dir);
    const char *copy = folder_path(dir, "a");
    scratch_copy(fixture_path("tests/fixtures/eagle/eagle3-whole", path), copy);
    spoil_json(copy, CONFIG "/architectures", "");
    if (!adapter_open(&a, *state, copy, &e)) fail_msg("%s", e.text);
    assert_true(a.kind.variant == ADAPTER_EAGLE3);
    adapter_close(&a);
    folder_remove(dir);
}

// Without names the authors' layers, which collide in a target of up to six.
static void layers(void **state) {
    (void)state;
    static const struct {
        int layers, want[3]; // 0: refused
    } ROWS[] = {{1, {0}}, {4, {0}}, {5, {0}}, {6, {0}}, {7, {2, 3, 4}}, {8, {2, 4, 5}}, {32, {2, 16, 29}}};
    char dir[FOLDER_PATH_SIZE], path[512];
    folder_make(dir);
    const char *copy = folder_path(dir, "a");
    scratch_copy(fixture_path("tests/fixtures/eagle/eagle3", path), copy);
    spoil_json(copy, CONFIG "/eagle_aux_hidden_state_layer_ids", "");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Model target = {.shape = {.layers = ROWS[i].layers, .width = 32, .vocab = 259, .context = 9}};
        target.shape.real_vocab = 259;
        Adapter a;
        Error e = {0};
        bool ok = adapter_open_config(&a, &target, copy, &e);
        assert_int_equal(ok, ROWS[i].want[0] > 0);
        if (ok) assert_memory_equal(a.captures.layers, ROWS[i].want, sizeof ROWS[i].want);
        else if (!strstr(e.text, "collide in a target of") || !strstr(e.text, "eagle_aux_hidden_state_layer"))
            fail_msg("%s", e.text);
        adapter_close(&a);
    }
    folder_remove(dir);
}

// What training writes: layers inside eagle_config, and the tokens learnt from.
static void as_trained(void **state) {
    char dir[FOLDER_PATH_SIZE], path[512];
    Adapter a;
    Error e = {0};
    folder_make(dir);
    const char *copy = folder_path(dir, "a");
    scratch_copy(fixture_path("tests/fixtures/eagle/eagle3", path), copy);
    spoil_json(copy, CONFIG "/eagle_aux_hidden_state_layer_ids", "");
    spoil_json(copy, CONFIG "/eagle_config", "{\"eagle_aux_hidden_state_layer_ids\": [1, 1, 1]}");
    spoil_json(copy, CONFIG "/outpace", "{\"trained_tokens\": 12345}");
    if (!adapter_open(&a, *state, copy, &e)) fail_msg("%s", e.text);
    assert_int_equal(a.trained, 12345);
    assert_int_equal(a.captures.layers[2], 1);
    adapter_close(&a);
    folder_remove(dir);
}

// Random drafts for a random target open again, with as many parameters as their file has.
static void synthetic(void **state) {
    (void)state;
    Random r = test_random(1106);
    for (int round = 0; round < 12; round++) {
        char dir[FOLDER_PATH_SIZE];
        RandomModel target;
        Shape shape = random_shape(&r);
        AdapterKind kind = {.variant = round % 2       ? ADAPTER_EAGLE3
                                       : round % 4 < 2 ? ADAPTER_EAGLE
                                                       : ADAPTER_MTP,
                            .heads = 1,
                            .normed_heads = round % 4 == 3};
        Adapter a;
        Error e = {0};
        shape.layers = test_between(&r, 1 + round % 2, 9);
        shape.activation = ACTIVATION_SILU;
        kind.exit_layer = shape.layers;
        random_model_init(&target, &shape, DTYPE_F32, false, &r);
        folder_make(dir);
        const char *made = folder_path(dir, "a");
        if (!adapter_synth(made, &target.model, &kind, 7, false, &e)) fail_msg("%s", e.text);
        if (!adapter_open(&a, &target.model, made, &e)) fail_msg("%s", e.text);
        assert_int_equal(a.kind.variant, kind.variant);
        assert_int_equal(a.models[0].shape.kv_heads, shape.kv_heads);
        assert_int_equal(a.models[0].shape.qk_norm, round % 4 == 3 ? QK_NORM_HEADS : QK_NORM_NONE);
        uint64_t header;
        memcpy(&header, a.weights.files->view.data, sizeof header);
        assert_int_equal(adapter_parameters(&a) * sizeof(float),
                         a.weights.files->view.size - sizeof header - (size_t)header);
        adapter_close(&a);
        folder_remove(dir);
        random_model_release(&target);
    }
}

// --- refused

// Element b of the tensor a, of eight bytes or one, becomes another number: "d2t:3", "70".
static void spoil_number(const char *dir, const char *a, const char *b) {
    char name[16];
    int element = 0, bytes = 0;
    size_t size;
    Safetensors s;
    assert_int_equal(sscanf(a, "%15[^:]:%d:%d", name, &element, &bytes), 3);
    char *data = scratch_read(dir, WEIGHTS, &size);
    assert_true(safetensors_parse((const unsigned char *)data, size, WEIGHTS, &s, NULL));
    int64_t value = strtoll(b, NULL, 10);
    memcpy(data + safetensors_find(&s, name)->begin + element * bytes, &value, (size_t)bytes);
    scratch_write(dir, WEIGHTS, data, size);
    safetensors_release(&s);
    mem_free(data);
}

static const SpoiledDraft CASES[] = {
    {"another width", "eagle", spoil_json, CONFIG "/hidden_size", "64", CONFIG, "'hidden_size' in "},
    {"another vocabulary", "eagle", spoil_json, CONFIG "/vocab_size", "260", CONFIG, "the target's is 259"},
    {"two layers", "eagle", spoil_json, CONFIG "/num_hidden_layers", "2", CONFIG, "has one layer"},
    {"fc narrower", "eagle", spoil_header, "[32,64]", "[64,32]", WEIGHTS, "'fc.weight'"},
    {"no fc", "eagle", spoil_header, "\"fc.weight\"", "\"gc.weight\"", "", "no tensor 'fc.weight'"},
    {"no q", "eagle", spoil_header, "layers.0.self_attn.q_proj", "layers.0.self_attn.r_proj", "",
     "no tensor 'layers.0.self_attn.q_proj.weight'"},
    {"a tensor too many", "eagle3", spoil_header, "\"t2d\"", "\"t3d\"", WEIGHTS, "tensor 't3d'"},
    {"a bias too many", "eagle", spoil_json, CONFIG "/bias", "false", WEIGHTS, "tensor 'fc.bias'"},
    {"a bias too few", "eagle-no-bias", spoil_json, CONFIG "/bias", "true", "", "no tensor 'fc.bias'"},
    {"no hidden norm", "eagle3", spoil_header, "midlayer.hidden_norm", "midlayer.hidden_form", "",
     "no tensor 'midlayer.hidden_norm.weight'"},
    {"another head", "eagle3", spoil_json, CONFIG "/draft_vocab_size", "62", WEIGHTS, "'lm_head.weight'"},
    {"no maps", "eagle3-whole", spoil_json, CONFIG "/draft_vocab_size", "61", WEIGHTS, "'lm_head.weight'"},
    {"no d2t", "eagle3", spoil_header, "\"d2t\"", "\"e2t\"", WEIGHTS, "'e2t'"},
    {"d2t of another size", "eagle3", spoil_header, "[61]", "[62]", WEIGHTS, "its dtype and shape need"},
    {"d2t of another type", "eagle3", spoil_header, "\"I64\"", "\"U64\"", WEIGHTS, "'d2t' in"},
    {"d2t below 0", "eagle3", spoil_number, "d2t:3:8", "-4", WEIGHTS, "'d2t' in"},
    {"d2t beyond the end", "eagle3", spoil_number, "d2t:3:8", "256", WEIGHTS,
     "outside the target's vocabulary"},
    {"d2t huge", "eagle3", spoil_number, "d2t:60:8", "9223372036854775807", WEIGHTS, "outside the target's"},
    {"d2t twice", "eagle3", spoil_number, "d2t:1:8", "1", WEIGHTS, "which has one already"},
    {"t2d with a token too many", "eagle3", spoil_number, "t2d:0:1", "7", WEIGHTS, "'t2d' in"},
    {"layers none", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids", "[]", CONFIG, "1 to 8"},
    {"layers too many", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids",
     "[1,1,1,1,1,1,1,1,1]", CONFIG, "1 to 8 layers"},
    {"a layer too deep", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids", "[1, 1, 2]",
     CONFIG, "numbers from 1 to 1, below the target's 2"},
    {"a layer in words", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids", "[1, \"1\", 1]",
     CONFIG, "numbers from 1 to 1"},
    {"a layer too few", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids", "[1, 1]", WEIGHTS,
     "'fc.weight'"},
    {"layers that collide", "eagle3", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids", "", CONFIG,
     "collide in a target of 2"},
    {"a norm before fc without weights", "eagle3", spoil_json, CONFIG "/norm_before_fc", "true", CONFIG,
     "'input_norm.weight'"},
    {"weights of a norm that isn't there", "eagle3-normed", spoil_json, CONFIG "/norm_before_fc", "false",
     WEIGHTS, "'input_norm.weight'"},
    {"a switch that isn't one", "eagle3-normed", spoil_json, CONFIG "/norm_output", "1", CONFIG,
     "'norm_output' in"},
    {"norms of fc without weights", "eagle3-speculators", spoil_json, CONFIG "/fc_norm", "true", "",
     "no tensor 'fc_norm.0.weight'"},
    {"weights of norms that aren't there", "eagle3-fc-norm", spoil_json, CONFIG "/fc_norm", "false", WEIGHTS,
     "'fc_norm.0.weight'"},
    {"a norm of another number", "eagle3-fc-norm", spoil_header, "fc_norm.1.weight", "fc_norm.2.weight", "",
     "no tensor 'fc_norm.1.weight'"},
    {"a norm too many", "eagle3-speculators", spoil_header, "embed_tokens.weight", "fc_norm.200.weight_",
     WEIGHTS, "'fc_norm.200.weight_'"},
    {"a norm of another size", "eagle3-fc-norm", spoil_json, CONFIG "/eagle_aux_hidden_state_layer_ids",
     "[1]", WEIGHTS, "'fc.weight'"},
    {"both norms of fc", "eagle3-fc-norm", spoil_json, CONFIG "/norm_before_fc", "true", CONFIG,
     "are both true"},
    {"layers from 0 too deep", "eagle3-deepspec", spoil_json, CONFIG "/target_layer_ids", "[0, 0, 0, 0, 1]",
     CONFIG, "'target_layer_ids' in"},
    {"layers from 0 below 0", "eagle3-deepspec", spoil_json, CONFIG "/target_layer_ids", "[-1, 0, 0, 0, 0]",
     CONFIG, "numbers from 0 to 0, below the target's 2"},
    {"a layer that is true", "eagle3-deepspec", spoil_json, CONFIG "/target_layer_ids", "[true, 0, 0, 0, 0]",
     CONFIG, "numbers from 0 to 0"},
    {"layers from 0 too few", "eagle3-deepspec", spoil_json, CONFIG "/target_layer_ids", "[0, 0, 0, 0]",
     WEIGHTS, "'fc.weight'"},
    {"of a deeper target", "eagle3-deepspec", spoil_json, CONFIG "/num_target_layers", "36", CONFIG,
     "'num_target_layers' in"},
    {"a norm of q alone", "eagle3-deepspec", spoil_header, "self_attn.k_norm", "self_attn.j_norm", "",
     "no tensor 'layers.0.self_attn.k_norm.weight'"},
    {"a norm of k alone", "eagle3-deepspec", spoil_header, "self_attn.q_norm", "self_attn.j_norm", WEIGHTS,
     "doesn't belong to such a draft"},
    {"norms of other heads", "eagle3-deepspec", spoil_json, CONFIG "/head_dim", "32", WEIGHTS, "has shape"},
    {"of other speculators", "eagle3-speculators", spoil_json, CONFIG "/speculators_model_type", "\"mlp\"",
     CONFIG, "must be \"eagle3\""},
    {"of another width's target", "eagle3-speculators", spoil_json, CONFIG "/target_hidden_size", "64",
     CONFIG, "'target_hidden_size' in"},
    {"no mask", "peagle", spoil_json, CONFIG "/mask_token_id", "", CONFIG, "'ptd_token_id'"},
    {"a mask beyond the vocabulary", "peagle", spoil_json, CONFIG "/mask_token_id", "259", CONFIG,
     "'mask_token_id'"},
    {"a mask's states without a mask", "peagle", spoil_json, CONFIG "/speculators_model_type", "\"eagle3\"",
     CONFIG, "has one layer"},
    {"layers too few", "peagle", spoil_json, CONFIG "/transformer_layer_config/num_hidden_layers", "2",
     WEIGHTS, "layers.2."},
    {"layers too many", "peagle", spoil_json, CONFIG "/transformer_layer_config/num_hidden_layers", "4", "",
     "layers.3."},
    {"no states of a mask", "eagle3-speculators", spoil_json, CONFIG "/speculators_model_type", "\"peagle\"",
     CONFIG, "'ptd_token_id'"},
    {"no layer", "mtp", spoil_json, CONFIG "/num_nextn_predict_layers", "0", CONFIG,
     "'num_nextn_predict_layers'"},
    {"two MTP layers", "mtp", spoil_json, CONFIG "/num_nextn_predict_layers", "2", CONFIG,
     "more than one layer"},
    {"a third state", "mtp", spoil_json, CONFIG "/mtp_state", "\"cooked\"", CONFIG,
     "must be \"raw\" or \"normed\""},
    {"a state that is true", "mtp", spoil_json, CONFIG "/mtp_recycle", "true", CONFIG, "'mtp_recycle' in"},
    {"of a deeper model", "mtp", spoil_json, CONFIG "/num_hidden_layers", "3", CONFIG,
     "'num_hidden_layers' in"},
    {"no norm of the state", "mtp", spoil_header, "hidden_layernorm", "harden_layernorm", "",
     "no tensor 'model.mtp_layers.0.hidden_layernorm.weight'"},
    {"fc of another width", "mtp", spoil_header, "[32,64]", "[64,32]", WEIGHTS, "input_proj.weight'"},
    {"biases too many", "mtp", spoil_json, CONFIG "/attention_bias", "false", WEIGHTS, "_proj.bias'"},
    {"a tensor of a second layer", "mtp", spoil_header, "mtp_layers.0.self_attn.q_proj.bias",
     "mtp_layers.1.self_attn.q_proj.bias", "", "no tensor 'model.mtp_layers.0.self_attn.q_proj.bias'"},
    {"no inner config", "eagle3-speculators", spoil_json, CONFIG "/transformer_layer_config", "", CONFIG,
     "'model_type' is missing"},
    {"an inner list", "eagle3-speculators", spoil_json, CONFIG "/transformer_layer_config", "[]", CONFIG,
     "must hold a JSON object"},
    {"another model", "eagle", spoil_json, CONFIG "/model_type", "\"opt\"", CONFIG, "it isn't an adapter"},
    {"weights cut", "eagle", spoil_cut, WEIGHTS, "-1", WEIGHTS, "cut short"},
    {"no weights", "eagle", spoil_remove, WEIGHTS, "", WEIGHTS, "model.safetensors"},
};

static void refused(void **state) {
    spoiled_drafts_are_refused(*state, "tests/fixtures/eagle", CASES, sizeof CASES / sizeof *CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms),     cmocka_unit_test(told_by_tensors),
                                       cmocka_unit_test(layers),    cmocka_unit_test(as_trained),
                                       cmocka_unit_test(synthetic), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, open_target, close_target);
}
