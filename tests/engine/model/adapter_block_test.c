// Drafts of blocks on disk: every form, which row guesses which token, the target's layers, what is shared
// with the target, and refused directories, each with one line that names the file and the tensor or key.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch.h"
#include "tests/support/spoiled_drafts.h"

#include "engine/base/memory.h"
#include "engine/model/make/synth.h"

#include <stdio.h>
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

static const Shape *open_fixture(Adapter *a, const Model *target, const char *name) {
    char path[512], at[100];
    Error e = {0};
    snprintf(at, sizeof at, "tests/fixtures/blocks/%s", name);
    if (!adapter_open(a, target, fixture_path(at, path), &e)) fail_msg("%s: %s", name, e.text);
    const Shape *s = &a->models[0].shape;
    assert_true(a->kind.variant == ADAPTER_DFLASH && s->input == INPUT_BLOCK && a->kind.heads == 1);
    assert_true(s->layers == 2 && s->states == a->captures.count && a->captures.layers[0] == 1);
    assert_int_equal(a->kind.exit_layer, target->shape.layers);
    return s;
}

static void forms(void **state) {
    const Model *target = *state;
    Adapter a;
    const Shape *s = open_fixture(&a, target, "zlab");
    assert_true(!s->block.from_root && s->block.rows == 4 && block_guesses(&s->block) == 3);
    assert_true(s->mask_token == 258 && a.captures.count == 3 && !s->block.markov && !s->block.confidence);
    assert_true(a.models[0].head.data == target->head.data &&
                a.models[0].embedding.data == target->embedding.data);
    assert_true(a.models[0].state_norm.columns == 32 && a.models[0].layers[1].w[W_Q_NORM].data);
    adapter_close(&a);
    s = open_fixture(&a, target, "zlab-inner"); // names with a first word, block_size in dflash_config
    assert_true(!s->block.from_root && s->block.rows == 5 && s->mask_token == 7 && a.captures.count == 2);
    assert_true(s->qkv_bias && s->o_bias && a.models[0].layers[1].w[W_O_BIAS].data);
    adapter_close(&a);
    s = open_fixture(&a, target, "deepspec"); // DFlash, but its rows guess the token behind them
    assert_true(s->block.from_root && block_guesses(&s->block) == 4 && !s->block.markov);
    assert_true(a.models[0].head.data == target->head.data && // equal copies are read once
                a.models[0].embedding.data == target->embedding.data);
    adapter_close(&a);
    s = open_fixture(&a, target, "dspark");
    assert_true(s->block.markov == MARKOV_VANILLA && s->block.rank == 6 && s->block.from_root);
    assert_true(s->block.confidence == CONFIDENCE_TOKEN && a.models[0].confidence.columns == 38);
    adapter_close(&a);
    s = open_fixture(&a, target, "dspark-gated");
    assert_true(s->block.markov == MARKOV_GATED && s->block.confidence == CONFIDENCE_ROW);
    assert_true(a.models[0].markov_gate.rows == 5 && a.models[0].markov_gate.columns == 37);
    adapter_close(&a);
    s = open_fixture(&a, target, "dspark-rnn");
    assert_true(s->block.markov == MARKOV_RNN && a.models[0].markov_gate.rows == 18);
    assert_true(a.models[0].markov_gate.columns == 44 && a.models[0].markov_gate_bias.columns == 18);
    adapter_close(&a);
    s = open_fixture(&a, target, "speculators");
    assert_true(!s->block.from_root && s->vocab == 50 && s->tokens == 259 && a.draft_ids);
    for (int i = 1; i < 50; i++) assert_true(a.draft_ids[i] > a.draft_ids[i - 1]);
    adapter_close(&a);
}

// Not sizes but architecture or the key decide which row guesses which token.
static void conventions(void **state) {
    static const struct {
        const char *fixture, *key, *value;
        bool from_root;
    } ROWS[] = {{"zlab", CONFIG "/sample_from_anchor", "true", true},
                {"deepspec", CONFIG "/sample_from_anchor", "false", false},
                {"zlab", CONFIG "/architectures", "[\"Qwen3DSparkModel\"]", true},
                {"speculators", CONFIG "/sample_from_anchor", "", false},
                {"speculators", CONFIG "/speculators_model_type", "\"dspark\"", false}, // the key is there
                {"zlab", CONFIG "/speculators_model_type", "\"dspark\"", true}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char dir[FOLDER_PATH_SIZE], path[512], name[64];
        Adapter a;
        Error e = {0};
        folder_make(dir);
        const char *copy = folder_path(dir, "a");
        snprintf(name, sizeof name, "tests/fixtures/blocks/%s", ROWS[i].fixture);
        scratch_copy(fixture_path(name, path), copy);
        spoil_json(copy, ROWS[i].key, ROWS[i].value);
        if (!adapter_open(&a, *state, copy, &e)) fail_msg("%s", e.text);
        assert_int_equal(a.models[0].shape.block.from_root, ROWS[i].from_root);
        adapter_close(&a);
        folder_remove(dir);
    }
}

// Where a file names none: evenly from the second layer, number 1, to the last but two.
static void layers(void **state) {
    (void)state;
    static const struct {
        int layers, draft, want[5];
    } ROWS[] = {{36, 5, {2, 10, 18, 26, 34}}, {36, 1, {19}}, {28, 5, {2, 8, 14, 20, 26}}, {8, 2, {2, 6}}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        Shape target = {.layers = ROWS[i].layers};
        AdapterKind kind = {.variant = ADAPTER_DFLASH, .layers = ROWS[i].draft};
        Captures c = adapter_captures(&kind, &target);
        assert_int_equal(c.count, ROWS[i].draft);
        assert_memory_equal(c.layers, ROWS[i].want, (size_t)c.count * sizeof *c.layers);
    }
}

// Random drafts of every kind open again, with as many parameters as their file has.
static void synthetic(void **state) {
    (void)state;
    Random r = test_random(1152);
    for (int round = 0; round < 12; round++) {
        char dir[FOLDER_PATH_SIZE];
        RandomModel target;
        Shape shape = random_shape(&r);
        AdapterKind kind = {.variant = ADAPTER_DFLASH, .heads = 1, .layers = test_between(&r, 1, 3)};
        Adapter a;
        Error e = {0};
        shape.layers = test_between(&r, 2, 9);
        shape.activation = ACTIVATION_SILU;
        kind.exit_layer = shape.layers;
        kind.normed_heads = random_below(&r, 2);
        kind.mask = test_between(&r, 1, shape.vocab - 1);
        kind.block = (BlockDraft){.rows = test_between(&r, 2, 9),
                                  .from_root = random_below(&r, 2),
                                  .markov = (Markov)(round % 4),
                                  .rank = round % 4 ? test_between(&r, 1, 7) : 0};
        if (random_below(&r, 2)) kind.block.confidence = round % 4 ? CONFIDENCE_TOKEN : CONFIDENCE_ROW;
        random_model_init(&target, &shape, DTYPE_F32, false, &r);
        folder_make(dir);
        const char *made = folder_path(dir, "a");
        if (!adapter_synth(made, &target.model, &kind, 7, false, &e)) fail_msg("%s", e.text);
        if (!adapter_open(&a, &target.model, made, &e)) fail_msg("%s", e.text);
        assert_memory_equal(&a.kind.block, &kind.block, sizeof kind.block);
        assert_true(a.kind.layers == kind.layers && a.kind.mask == kind.mask);
        assert_int_equal(a.models[0].shape.qk_norm, kind.normed_heads ? QK_NORM_HEADS : QK_NORM_NONE);
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

static const SpoiledDraft CASES[] = {
    {"another width", "zlab", spoil_json, CONFIG "/hidden_size", "64", CONFIG, "'hidden_size' in "},
    {"another vocabulary", "zlab", spoil_json, CONFIG "/vocab_size", "300", CONFIG, "the target's is 259"},
    {"of a deeper target", "zlab", spoil_json, CONFIG "/num_target_layers", "36", CONFIG, "is 36"},
    {"DFlash 2", "zlab", spoil_json, CONFIG "/architectures", "[\"DFlash2DraftModel\"]", CONFIG, "DFlash 2"},
    {"a layer with a window", "zlab", spoil_json, CONFIG "/layer_types",
     "[\"full_attention\", \"sliding_attention\"]", CONFIG, "layers with a window"},
    {"a window by its switch", "zlab", spoil_json, CONFIG "/dflash_config/use_swa", "true", CONFIG,
     "'use_swa'"},
    {"a causal block", "zlab", spoil_json, CONFIG "/is_causal", "true", CONFIG, "'is_causal' in"},
    {"a causal block inside", "zlab", spoil_json, CONFIG "/dflash_config/causal", "true", CONFIG, "'causal'"},
    {"another rope", "zlab", spoil_json, CONFIG "/is_neox_style", "false", CONFIG, "'is_neox_style'"},
    {"sinks", "zlab", spoil_json, CONFIG "/dflash_config/attention_sink_bias", "true", CONFIG, "sink_bias'"},
    {"no states", "zlab", spoil_json, CONFIG "/dflash_config/use_aux_hidden_state", "false", CONFIG, "false"},
    {"scaled logits", "zlab", spoil_json, CONFIG "/logit_scale", "0.5", CONFIG, "'logit_scale' in"},
    {"no mask", "deepspec", spoil_json, CONFIG "/mask_token_id", "", CONFIG, "has no 'mask_token_id'"},
    {"a mask beyond", "deepspec", spoil_json, CONFIG "/mask_token_id", "259", CONFIG, "'mask_token_id' in"},
    {"a mask in words", "zlab", spoil_json, CONFIG "/dflash_config/mask_token_id", "\"7\"", CONFIG,
     "mask_token"},
    {"no block", "zlab", spoil_json, CONFIG "/block_size", "", CONFIG, "has no 'block_size'"},
    {"a block of one", "zlab", spoil_json, CONFIG "/block_size", "1", CONFIG, "'block_size' in"},
    {"a block too long", "zlab", spoil_json, CONFIG "/block_size", "65", CONFIG, "'block_size' in"},
    {"a layer too deep", "zlab", spoil_json, CONFIG "/dflash_config/target_layer_ids", "[0, 0, 1]", CONFIG,
     "numbers from 0 to 0, below the target's 2"},
    {"the embedding", "deepspec", spoil_json, CONFIG "/target_layer_ids", "[-1, 0, 0]", CONFIG,
     "from 0 to 0"},
    {"a layer too few", "zlab", spoil_json, CONFIG "/dflash_config/target_layer_ids", "[0, 0]", WEIGHTS,
     "'fc.weight'"},
    {"layers after which", "speculators", spoil_json, CONFIG "/aux_hidden_state_layer_ids", "[0, 1, 1]",
     CONFIG, "numbers from 1 to 1"},
    {"a layer more", "zlab", spoil_json, CONFIG "/num_hidden_layers", "3", CONFIG, "'layer_types'"},
    {"no hidden norm", "zlab", spoil_header, "hidden_norm", "hidden_form", "",
     "no tensor 'hidden_norm.weight'"},
    {"no fc", "zlab", spoil_header, "\"fc.weight\"", "\"gc.weight\"", "", "no tensor 'fc.weight'"},
    {"no q in the last layer", "zlab", spoil_header, "layers.1.self_attn.q_proj", "layers.1.self_attn.r_proj",
     "", "no tensor 'layers.1.self_attn.q_proj.weight'"},
    {"Laguna", "dspark", spoil_header, "markov_head.markov_w1.weight", "layers.0.self_attn.g_proj.w_", "",
     "no tensor 'markov_head.markov_w1.weight'"},
    {"Laguna's gate", "deepspec", spoil_header, "embed_tokens.weight", "layers.0.a.g_proj_.", WEIGHTS,
     "of Laguna's"},
    {"MiMo's mask", "deepspec", spoil_header, "embed_tokens.weight", "mask_embedding.____", WEIGHTS,
     "of MiMo's"},
    {"Muse's encoder", "deepspec", spoil_header, "embed_tokens.weight", "encoder.fc.weight__", WEIGHTS,
     "of Muse's"},
    {"DFlash 2's convolution", "deepspec", spoil_header, "embed_tokens.weight", "layers.0.mlp_conv.x",
     WEIGHTS, "of DFlash 2's"},
    {"a tensor too many", "deepspec", spoil_header, "embed_tokens.weight", "embed_tokens.height", WEIGHTS,
     "doesn't belong to such a draft"},
    {"another Markov head", "dspark", spoil_json, CONFIG "/markov_head_type", "\"lstm\"", CONFIG,
     "must be \"vanilla\", \"gated\" or \"rnn\""},
    {"a Markov head as gated", "dspark", spoil_json, CONFIG "/markov_head_type", "\"gated\"", "",
     "no tensor 'markov_head.gate_proj.weight'"},
    {"a Markov head left out", "dspark", spoil_json, CONFIG "/markov_rank", "0", CONFIG,
     "'markov_rank' is 0"},
    {"a rank of another number", "dspark", spoil_json, CONFIG "/markov_rank", "7", WEIGHTS, "markov_w1"},
    {"a rank too large", "dspark", spoil_json, CONFIG "/markov_rank", "5000", CONFIG, "'markov_rank' in"},
    {"a confidence left out", "dspark", spoil_json, CONFIG "/enable_confidence_head", "false", WEIGHTS,
     "'confidence_head.proj.bias'"},
    {"a confidence of a row alone", "dspark", spoil_json, CONFIG "/confidence_head_with_markov", "false",
     WEIGHTS, "'confidence_head.proj.weight'"},
    {"d2t without a vocabulary", "speculators", spoil_json, CONFIG "/draft_vocab_size", "", WEIGHTS,
     "lm_head"},
    {"no d2t", "speculators", spoil_header, "\"d2t\"", "\"e2t\"", WEIGHTS, "'e2t'"},
    {"no head of its own", "speculators", spoil_header, "lm_head.weight", "lm_tail.weight", "",
     "no tensor 'lm_head.weight'"},
    {"weights cut", "zlab", spoil_cut, WEIGHTS, "-1", WEIGHTS, "cut short"},
    {"no weights", "zlab", spoil_remove, WEIGHTS, "", WEIGHTS, "model.safetensors"},
};

static void refused(void **state) {
    spoiled_drafts_are_refused(*state, "tests/fixtures/blocks", CASES, sizeof CASES / sizeof *CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(conventions),
                                       cmocka_unit_test(layers), cmocka_unit_test(synthetic),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, open_target, close_target);
}
