// A small config.json with one key changed at a time: the result, or the words of its refusal.
#include "tests/support/check.h"

#include "engine/model/config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char BASE[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":160,\"num_hidden_layers\":3,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":512,\"max_position_embeddings\":256,"
    "\"rms_norm_eps\":1e-5,\"bos_token_id\":1,\"eos_token_id\":2}";

// `changes` is an object put over the base; a key that is null there is taken away. "NaN" is
// written as Python writes it, without marks.
static bool parse(Model *m, const char *changes, Error *e) {
    json_t *root = json_loads(BASE, 0, NULL), *over = json_loads(changes, 0, NULL), *v;
    const char *key;
    if (!root || !over) fail_msg("not JSON: %s", changes);
    json_object_foreach(over, key, v) {
        if (json_is_null(v)) json_object_del(root, key);
        else json_object_set(root, key, v);
    }
    char *text = json_dumps(root, 0);
    for (char *at; (at = strstr(text, "\"NaN\""));) memcpy(at, " NaN ", 5);
    *m = (Model){.bos = 0};
    *e = (Error){0};
    bool ok = config_parse(m, text, strlen(text), "d/config.json", e);
    free(text);
    json_decref(root);
    json_decref(over);
    return ok;
}

static void taken(Model *m, const char *changes) {
    Error e;
    if (!parse(m, changes, &e)) fail_msg("%s refused: %s", changes, e.text);
}

typedef struct {
    const char *changes, *words;
} Refused;

static const Refused REFUSED[] = {
    // what is not supported is named, with what is
    {"{\"model_type\":\"bloom\"}", "model_type 'bloom'"},
    {"{\"model_type\":\"deepseek_v3\"}", "llama (also CodeLlama"},
    {"{\"model_type\":\"falcon\"}", "mistral, phi3, qwen2, qwen3, granite"},
    // experts
    {"{\"model_type\":\"mixtral\",\"num_local_experts\":5,\"num_experts_per_tok\":6}", "from 1 to 5"},
    {"{\"model_type\":\"mixtral\",\"num_experts_per_tok\":0}", "'num_experts_per_tok'"},
    {"{\"model_type\":\"mixtral\",\"num_local_experts\":1025}", "'num_local_experts'"},
    {"{\"model_type\":\"qwen3_moe\",\"num_experts\":-1}", "'num_experts'"},
    {"{\"model_type\":\"qwen3_moe\",\"num_experts_per_tok\":65}", "from 1 to 64"},
    {"{\"model_type\":\"qwen3_moe\",\"moe_intermediate_size\":0}", "'moe_intermediate_size'"},
    {"{\"model_type\":\"qwen3_moe\",\"decoder_sparse_step\":0}", "'decoder_sparse_step'"},
    {"{\"model_type\":\"qwen3_moe\",\"norm_topk_prob\":1}", "'norm_topk_prob'"},
    {"{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":1}", "must be a list"},
    {"{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":[0,-1]}", "numbers of layers"},
    {"{\"model_type\":\"qwen3_moe\",\"mlp_only_layers\":[\"0\"]}", "numbers of layers"},
    {"{\"model_type\":\"qwen2_moe\",\"shared_expert_intermediate_size\":-1}", "'shared_expert_intermediate"},
    {"{\"model_type\":\"qwen2_moe\",\"use_sliding_window\":true}", "'use_sliding_window'"},
    {"{\"model_type\":\"olmoe\",\"clip_qkv\":8}", "'clip_qkv'"},
    {"{\"model_type\":\"granitemoeshared\",\"shared_intermediate_size\":0.5}", "'shared_intermediate_size'"},
    // keys that only some architectures have
    {"{\"model_type\":\"granite\",\"logits_scaling\":0}", "'logits_scaling'"},
    {"{\"model_type\":\"granite\",\"embedding_multiplier\":\"big\"}", "'embedding_multiplier'"},
    {"{\"model_type\":\"smollm3\",\"no_rope_layers\":[1,1]}", "a list of 3"},
    {"{\"model_type\":\"smollm3\",\"no_rope_layers\":[1,1,7]}", "must hold 0 or 1"},
    {"{\"model_type\":\"smollm3\",\"no_rope_layer_interval\":0}", "'no_rope_layer_interval'"},
    {"{\"model_type\":\"gemma2\",\"query_pre_attn_scalar\":0}", "'query_pre_attn_scalar'"},
    {"{\"model_type\":\"gemma2\",\"attn_logit_softcapping\":-1}", "'attn_logit_softcapping'"},
    {"{\"model_type\":\"gemma3_text\",\"sliding_window_pattern\":0}", "'sliding_window_pattern'"},
    {"{\"model_type\":\"gemma3_text\",\"rope_local_base_freq\":0}", "'rope_local_base_freq'"},
    {"{\"model_type\":\"gemma3_text\",\"use_bidirectional_attention\":true}", "bidirectional"},
    {"{\"model_type\":\"starcoder2\",\"use_bias\":7}", "'use_bias'"},
    {"{\"model_type\":\"gpt_neox\",\"use_parallel_residual\":\"no\"}", "'use_parallel_residual'"},
    {"{\"model_type\":\"gpt_neox\",\"rotary_pct\":2}", "'rotary_pct'"},
    {"{\"model_type\":\"gpt2\"}", "'n_layer' is missing"},
    {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":8,\"n_head\":2,\"n_positions\":0}", "'n_positions'"},
    {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":8,\"n_head\":2,\"n_inner\":-1}", "'n_inner'"},
    {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":8,\"n_head\":2,\"scale_attn_by_inverse_layer_idx\":"
     "true}",
     "'scale_attn_by_inverse_layer_idx'"},
    {"{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":8,\"n_head\":2,\"add_cross_attention\":true}",
     "'add_cross_attention'"},
    {"{\"model_type\":\"gemma3\",\"text_config\":7}", "model_type 'gemma3'"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{}}", "model_type 'gemma3'"},
    {"{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"query_pre_attn_scalar\":0}"
     "}",
     "'query_pre_attn_scalar'"},
    {"{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"mistral3\",\"text_config\":{}}}",
     "model_type 'mistral3'"},
    {"{\"model_type\":\"stablelm\",\"qk_layernorm\":1}", "'qk_layernorm'"},
    {"{\"model_type\":\"cohere\",\"use_qk_norm\":1}", "'use_qk_norm'"},
    {"{\"model_type\":\"cohere2\",\"logit_scale\":0}", "'logit_scale'"},
    {"{\"model_type\":\"seed_oss\",\"attention_out_bias\":2}", "'attention_out_bias'"},
    {"{\"model_type\":null}", "'model_type'"},
    {"{\"model_type\":7}", "'model_type'"},
    {"{\"quantization_config\":{\"quant_method\":\"bitsandbytes\"}}", "quantised model"},
    {"{\"quantization_config\":7}", "quantised model"},
    {"{\"quantization_config\":{\"quant_method\":\"gptq\"}}", "'bits' is missing"},
    {"{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"float-quantized\"}}",
     "format is 'float-quantized'"},
    {"{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
     "\"config_groups\":{\"a\":{},\"b\":{}}}}",
     "must be one group"},
    {"{\"hidden_act\":\"relu\"}", "'hidden_act' 'relu'"},
    {"{\"hidden_act\":1}", "'hidden_act'"},
    {"{\"attention_bias\":1}", "'attention_bias'"},
    {"{\"mlp_bias\":\"yes\"}", "'mlp_bias'"},
    {"{\"partial_rotary_factor\":0.5}", "'partial_rotary_factor'"},
    {"{\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2}}", "default, linear, dynamic, llama3"},
    {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":0}}", "'factor'"},
    {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,\"beta_fast\":\"fast\"}}", "'beta_fast'"},
    {"{\"rope_theta\":1,\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2}}", "must be above 1"},
    {"{\"rope_scaling\":[]}", "'rope_scaling'"},
    {"{\"rope_scaling\":{\"type\":3}}", "'type'"},
    {"{\"rope_scaling\":{\"type\":\"linear\"}}", "'factor'"},
    {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}}", "'factor'"},
    {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":\"2\"}}", "'factor'"},
    {"{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8}}", "'low_freq_factor'"},
    {"{\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4,"
     "\"original_max_position_embeddings\":64}}",
     "must be below"},
    {"{\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,1]}}", "'short_factor'"},
    {"{\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,1,1,1,1,1,1,-1]}}", "positive"},
    {"{\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":\"many\"}}", "'short_factor'"},
    {"{\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,1,1,1,1,1,1,1]}}", "'long_factor'"},
    {"{\"rope_theta\":0}", "'rope_theta'"},
    {"{\"rope_theta\":\"10000\"}", "'rope_theta'"},
    {"{\"layer_types\":[\"full_attention\",\"chunked_attention\",\"full_attention\"]}",
     "'chunked_attention'"},
    {"{\"layer_types\":[\"full_attention\",7,\"full_attention\"]}", "no text"},
    {"{\"layer_types\":[\"full_attention\"]}", "a list of 3"},
    {"{\"layer_types\":\"full_attention\"}", "a list of 3"},
    {"{\"model_type\":\"phi3\",\"partial_rotary_factor\":0.35}", "rotates 5 of"},
    {"{\"rope_parameters\":{\"partial_rotary_factor\":0.5}}", "only 1 is supported for llama"},
    {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},\"rope_parameters\":{\"rope_type\":\"default\"}}",
     "differ"},
    {"{\"rope_parameters\":{\"chunked_attention\":{\"rope_theta\":1e6}}}", "'chunked_attention'"},
    {"{\"model_type\":\"qwen3\",\"use_sliding_window\":true,\"max_window_layers\":1,"
     "\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"yarn\"}}}",
     "'yarn' of sliding_attention"},
    // sizes: missing, of another type, outside
    {"{\"hidden_size\":null}", "'hidden_size' is missing"},
    {"{\"hidden_size\":64.0}", "'hidden_size'"},
    {"{\"hidden_size\":\"64\"}", "'hidden_size'"},
    {"{\"hidden_size\":[64]}", "'hidden_size'"},
    {"{\"hidden_size\":66}", "not a multiple"},
    {"{\"hidden_size\":0}", "'hidden_size'"},
    {"{\"hidden_size\":-64}", "'hidden_size'"},
    {"{\"hidden_size\":9223372036854775807}", "'hidden_size'"},
    {"{\"num_hidden_layers\":0}", "'num_hidden_layers'"},
    {"{\"num_hidden_layers\":1001}", "'num_hidden_layers'"},
    {"{\"num_attention_heads\":0}", "'num_attention_heads'"},
    {"{\"num_attention_heads\":true}", "'num_attention_heads'"},
    {"{\"num_key_value_heads\":3}", "do not divide"},
    {"{\"num_key_value_heads\":8}", "'num_key_value_heads'"},
    {"{\"num_key_value_heads\":0}", "'num_key_value_heads'"},
    {"{\"intermediate_size\":0}", "'intermediate_size'"},
    {"{\"vocab_size\":0}", "'vocab_size'"},
    {"{\"vocab_size\":4294967296}", "'vocab_size'"},
    {"{\"outpace_stand_in\":\"\"}", "'outpace_stand_in'"},
    {"{\"outpace_stand_in\":7}", "'outpace_stand_in'"},
    {"{\"outpace_stand_in\":\"a\\u001b[2J\"}", "must be a line of 1"},
    {"{\"real_vocab_size\":513}", "'real_vocab_size'"},
    {"{\"pard_token\":0}", "'pard_token'"},
    {"{\"pard_token\":512}", "'pard_token'"},
    {"{\"pard_token\":\"<mask>\"}", "'pard_token'"},
    {"{\"max_position_embeddings\":0}", "'max_position_embeddings'"},
    {"{\"max_position_embeddings\":1e3}", "'max_position_embeddings'"},
    {"{\"head_dim\":15}", "odd"},
    {"{\"head_dim\":1}", "'head_dim'"},
    {"{\"head_dim\":514}", "'head_dim'"},
    {"{\"rms_norm_eps\":0}", "'rms_norm_eps'"},
    {"{\"rms_norm_eps\":\"small\"}", "'rms_norm_eps'"},
    {"{\"model_type\":\"mistral\",\"sliding_window\":0}", "'sliding_window'"},
    {"{\"model_type\":\"mistral\",\"sliding_window\":\"wide\"}", "'sliding_window'"},
    {"{\"use_sliding_window\":1}", "'use_sliding_window'"},
    {"{\"tie_word_embeddings\":\"yes\"}", "'tie_word_embeddings'"},
    {"{\"rms_norm_eps\":\"NaN\"}", "'rms_norm_eps' in 'd/config.json' is 'NaN', must be a number"},
    {"{\"vocab_size\":\"NaN\"}", "must be an integer"},
    {"{\"rope_scaling\":\"NaN\"}", "'rope_scaling'"},
    {"{\"hidden_act\":\"NaN\"}", "'hidden_act' 'NaN'"},
    // ids
    {"{\"bos_token_id\":512}", "'bos_token_id'"},
    {"{\"bos_token_id\":-2}", "'bos_token_id'"},
    {"{\"eos_token_id\":512}", "'eos_token_id' 512"},
    {"{\"eos_token_id\":-1}", "'eos_token_id' -1"},
    {"{\"eos_token_id\":[2,\"3\"]}", "'eos_token_id'"},
    {"{\"eos_token_id\":2.5}", "'eos_token_id'"},
    {"{\"eos_token_id\":[1,2,3,4,5,6,7,8,9]}", "more than 8"},
};

static void refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        Error e;
        Model m;
        if (parse(&m, REFUSED[i].changes, &e)) fail_msg("%s taken", REFUSED[i].changes);
        if (!strstr(e.text, REFUSED[i].words) || !strstr(e.text, "'d/config.json'") || e.kind != ERROR_INPUT)
            fail_msg("%s: '%s', wanted '%s' and the file's name", REFUSED[i].changes, e.text,
                     REFUSED[i].words);
    }
}

static void not_an_object(void **state) {
    (void)state;
    static const char *const texts[] = {"",           "{",
                                        "[]",         "7",
                                        "null",       "{\"a\":1,\"a\":2}",
                                        "\xff",       "{} ",
                                        "{\"a\":1}x", "{\"model_type\":\"\xc3\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Error e = {0};
        Model m = {0};
        if (config_parse(&m, texts[i], strlen(texts[i]), "d/config.json", &e))
            fail_msg("'%s' taken", texts[i]);
        if (!strstr(e.text, "'d/config.json'")) fail_msg("'%s': '%s' has no file", texts[i], e.text);
    }
}

static void defaults(void **state) {
    (void)state;
    Model m;
    taken(&m, "{\"num_key_value_heads\":null,\"max_position_embeddings\":null,\"rms_norm_eps\":null,"
              "\"bos_token_id\":null,\"eos_token_id\":null}");
    assert_int_equal(m.shape.kv_heads, 4);
    assert_int_equal(m.shape.context, 2048);
    assert_int_equal(m.shape.head_dim, 16);
    assert_int_equal(m.shape.real_vocab, 512);
    assert_int_equal(m.bos, -1);
    assert_int_equal(m.eos_count, 0);
    assert_true(m.shape.norm_epsilon == 1e-6f && m.shape.rope.theta == 10000);
    assert_true(!m.shape.tied_head && !m.shape.qkv_bias && m.shape.window == 0 && !m.stand_in[0]);
    taken(&m, "{\"outpace_stand_in\":\"a inflated to b\"}");
    assert_string_equal(m.stand_in, "a inflated to b");
    taken(&m, "{\"outpace_stand_in\":\"a\",\"outpace_synth\":{\"shape\":\"b\"}}");
    assert_string_equal(m.stand_in, "a");
    taken(&m, "{\"outpace_synth\":{\"shape\":\"dir/b\\u001b[2J\",\"seed\":1}}");
    assert_string_equal(m.stand_in, "random weights, shape b?[2J");
    taken(&m, "{\"outpace_synth\":{}}");
    assert_string_equal(m.stand_in, "random weights");
    taken(
        &m,
        "{\"head_dim\":80,\"tie_word_embeddings\":true,\"real_vocab_size\":500,\"unknown_key\":[{},\"NaN\"],"
        "\"hidden_act\":\"gelu_pytorch_tanh\",\"eos_token_id\":[2,5,2]}");
    assert_int_equal(m.shape.head_dim, 80);
    assert_int_equal(m.shape.rope.pairs, 40);
    assert_int_equal(m.shape.real_vocab, 500);
    assert_true(m.shape.tied_head && m.shape.activation == ACTIVATION_GELU_TANH);
    assert_true(m.eos_count == 2 && m.eos[0] == 2 && m.eos[1] == 5);
}

typedef struct {
    const char *changes;
    int window;
} Window;

static void windows(void **state) {
    (void)state;
    static const Window cases[] = {
        {"{\"model_type\":\"mistral\",\"sliding_window\":7}", 7},
        {"{\"model_type\":\"mistral\"}", 4096}, // what the class takes
        {"{\"model_type\":\"phi3\"}", 0},
        {"{\"model_type\":\"mistral\",\"layer_types\":[\"full_attention\",\"full_attention\",\"full_"
         "attention\"]}",
         0},
        {"{\"model_type\":\"mistral\",\"sliding_window\":9,\"layer_types\":[\"sliding_attention\",\"sliding_"
         "attention\",\"sliding_attention\"]}",
         9},
        {"{\"model_type\":\"qwen3\",\"use_sliding_window\":true}", 0},
        {"{\"model_type\":\"qwen3\",\"use_sliding_window\":true,\"max_window_layers\":0}", 4096},
        {"{\"model_type\":\"qwen3\",\"sliding_window\":9,\"use_sliding_window\":true,\"max_window_layers\":1,"
         "\"layer_types\":[\"sliding_attention\",\"sliding_attention\",\"sliding_attention\"]}",
         9},
        {"{\"model_type\":\"qwen3\",\"sliding_window\":9,\"max_window_layers\":1,"
         "\"layer_types\":[\"full_attention\",\"full_attention\",\"full_attention\"]}",
         0},
        {"{\"model_type\":\"mistral\",\"sliding_window\":7,\"use_sliding_window\":false}", 0},
        {"{\"model_type\":\"phi3\",\"sliding_window\":20}", 20},
        {"{\"sliding_window\":7}", 0}, // llama has none
        {"{\"model_type\":\"qwen2\",\"sliding_window\":7}", 0},
        {"{\"model_type\":\"qwen2\",\"sliding_window\":7,\"use_sliding_window\":false}", 0},
        {"{\"model_type\":\"qwen2\",\"sliding_window\":7,\"max_window_layers\":0}", 0},
        {"{\"model_type\":\"qwen2\",\"sliding_window\":7,\"use_sliding_window\":true,"
         "\"max_window_layers\":0}",
         7},
        {"{\"model_type\":\"qwen2\",\"sliding_window\":7,\"use_sliding_window\":true,"
         "\"max_window_layers\":3}",
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Model m;
        taken(&m, cases[i].changes);
        if (m.shape.window != cases[i].window)
            fail_msg("%s: window %d, wanted %d", cases[i].changes, m.shape.window, cases[i].window);
    }
}

// A window in some layers: the layers with one, as bits from the first on.
static void mixed_windows(void **state) {
    (void)state;
    static const struct {
        const char *changes;
        unsigned layers;
        int window;
    } cases[] = {
        {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":8,\"max_window_layers\":"
         "2}",
         4, 8},
        {"{\"model_type\":\"qwen3\",\"use_sliding_window\":true,\"layer_types\":[\"full_attention\",\"full_"
         "attention\",\"sliding_attention\"]}",
         4, 4096},
        {"{\"model_type\":\"mistral\",\"layer_types\":[\"sliding_attention\",\"full_attention\",\"full_"
         "attention\"]}",
         1, 4096},
        {"{\"model_type\":\"qwen3\",\"sliding_window\":9,\"layer_types\":[\"full_attention\",\"full_"
         "attention\",\"sliding_attention\"]}",
         0, 0}, // not used
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Model m;
        taken(&m, cases[i].changes);
        assert_int_equal(m.shape.window, 0);
        assert_int_equal(m.shape.local_window, cases[i].window);
        for (int layer = 0; layer < 3; layer++) {
            assert_int_equal(layer_in(&m.shape.local, layer), cases[i].layers >> layer & 1);
            assert_int_equal(shape_window(&m.shape, layer),
                             cases[i].layers >> layer & 1 ? cases[i].window : 0);
        }
    }
}

// As Mistral 0.2 has it.
static void null_window(void **state) {
    (void)state;
    char text[sizeof BASE + 64];
    Error e = {0};
    Model m = {0};
    const char *rest = strchr(BASE, ',');
    snprintf(text, sizeof text, "{\"model_type\":\"mistral\",\"sliding_window\":null%s", rest);
    assert_true(config_parse(&m, text, strlen(text), "x", &e));
    assert_int_equal(m.shape.window, 0);
}

static void ropes(void **state) {
    (void)state;
    Model m;
    const Rope *r = &m.shape.rope;
    taken(&m, "{\"rope_theta\":500000,\"rope_scaling\":{\"rope_type\":\"default\"}}");
    assert_true(r->kind == ROPE_PLAIN && r->theta == 500000 && r->factor == 1 && r->attention_factor == 1);
    taken(&m, "{\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}}");
    assert_true(r->kind == ROPE_LINEAR && r->factor == 4);
    taken(&m,
          "{\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2,\"rope_theta\":1000}}"); // newer files
    assert_true(r->kind == ROPE_LINEAR && r->factor == 2 && r->theta == 1000);
    taken(&m, "{\"rope_theta\":77,\"rope_scaling\":null,\"rope_parameters\":{\"rope_type\":\"default\"}}");
    assert_true(r->kind == ROPE_PLAIN && r->theta == 77);
    taken(&m, "{\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}}");
    assert_true(r->kind == ROPE_PLAIN);
    taken(&m, "{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":64}}");
    assert_true(r->kind == ROPE_YARN && r->factor == 4 && r->original_context == 64 && r->ramp_from == 0);
    assert_true(r->ramp_to == 3 && fabs(r->attention_factor - (0.1 * log(4) + 1)) < 1e-12);
    taken(&m, "{\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6},\"sliding_attention\":{"
              "\"rope_theta\":1e4}}}");
    assert_true(r->theta == 1e6 && m.shape.local_theta == 0); // no layer has a window
    taken(&m, "{\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8,\"low_freq_factor\":1,"
              "\"high_freq_factor\":4,\"original_max_position_embeddings\":64}}");
    assert_true(r->kind == ROPE_LLAMA3 && r->factor == 8 && r->original_context == 64);
    assert_true(r->low_frequency_factor == 1 && r->high_frequency_factor == 4);
}

static void longrope_lists(void **state) {
    (void)state;
    static const char scaling[] =
        "{\"original_max_position_embeddings\":%d,\"rope_scaling\":{\"type\":\"longrope\","
        "\"short_factor\":[1,1,1,1,1,1,1,2],\"long_factor\":[3,3,3,3,3,3,3,4]%s}}";
    char changes[256];
    Model m;
    const Rope *r = &m.shape.rope;
    snprintf(changes, sizeof changes, scaling, 64, ""); // the context of 256 is beyond: long
    taken(&m, changes);
    assert_true(r->kind == ROPE_LONGROPE && r->beyond && r->stretch[1][0] == 3 && r->stretch[1][7] == 4);
    assert_true(fabs(r->attention_factor - sqrt(1 + log(4) / log(64))) < 1e-12);
    snprintf(changes, sizeof changes, scaling, 256, "");
    taken(&m, changes);
    assert_true(!r->beyond && r->stretch[0][0] == 1 && r->stretch[0][7] == 2 && r->attention_factor == 1);
    snprintf(changes, sizeof changes, scaling, 64, ",\"attention_factor\":1.5");
    taken(&m, changes);
    assert_true(r->attention_factor == 1.5);
    snprintf(changes, sizeof changes, scaling, 64, ",\"factor\":2,\"original_max_position_embeddings\":99");
    taken(&m, changes); // the file's own original context counts, and the factor that is given
    assert_true(r->original_context == 64 && fabs(r->attention_factor - sqrt(1 + log(2) / log(64))) < 1e-12);
    taken(&m, "{\"model_type\":\"phi3\",\"max_position_embeddings\":8192,\"partial_rotary_factor\":0.5,"
              "\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,1,1],\"long_factor\":[1,1,1,2]}}");
    assert_true(r->original_context == 4096 && r->pairs == 4 && r->stretch[1][3] == 2);
}

// generation_config.json adds its ends; sampling defaults in it change nothing.
static void generation(void **state) {
    (void)state;
    Error e = {0};
    Model m, before;
    taken(&m, "{}");
    before = m;
    static const char text[] = "{\"eos_token_id\":[2,7],\"temperature\":0.6,\"bos_token_id\":9}";
    assert_true(config_parse_generation(&m, text, strlen(text), "d/generation_config.json", &e));
    assert_true(m.eos_count == 2 && m.eos[1] == 7 && m.bos == before.bos);
    assert_memory_equal(&m.shape, &before.shape, sizeof m.shape);
    static const char *const bad[] = {"[]", "{\"eos_token_id\":\"x\"}", "{\"eos_token_id\":9999}",
                                      "nonsense"};
    for (int i = 0; i < 4; i++) {
        m = before;
        assert_false(config_parse_generation(&m, bad[i], strlen(bad[i]), "d/generation_config.json", &e));
        assert_non_null(strstr(e.text, "d/generation_config.json"));
    }
}

#define NOTHING_SAID "{\"model_type\":\"%s\",\"max_position_embeddings\":null,\"rms_norm_eps\":null}"

// What the classes of transformers take where the file says nothing.
static void architectures(void **state) {
    (void)state;
    static const char *const known[] = {"llama", "mistral", "phi3", "qwen2", "qwen3"};
    static const int contexts[] = {2048, 131072, 4096, 32768, 32768};
    for (int i = 0; i < 5; i++) {
        Model m;
        char changes[128];
        snprintf(changes, sizeof changes, "{\"model_type\":\"%s\"}", known[i]);
        taken(&m, changes);
        assert_string_equal(m.architecture, known[i]);
        assert_int_equal(m.shape.qkv_bias, strcmp(known[i], "qwen2") == 0);
        assert_int_equal(m.shape.qk_norm, strcmp(known[i], "qwen3") == 0);
        assert_int_equal(m.shape.head_dim, m.shape.qk_norm ? 128 : 16);
        assert_int_equal(m.shape.rope.pairs, m.shape.head_dim / 2);
        assert_int_equal(architecture_find(known[i])->fused != 0, strcmp(known[i], "phi3") == 0);
        snprintf(changes, sizeof changes, NOTHING_SAID, known[i]);
        taken(&m, changes);
        assert_int_equal(m.shape.context, contexts[i]);
        assert_true(m.shape.norm_epsilon == (strcmp(known[i], "phi3") == 0 ? 1e-5f : 1e-6f));
    }
    assert_null(architecture_find("Llama"));
    assert_null(architecture_find(""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),      cmocka_unit_test(not_an_object),  cmocka_unit_test(defaults),
        cmocka_unit_test(windows),       cmocka_unit_test(mixed_windows),  cmocka_unit_test(null_window),
        cmocka_unit_test(ropes),         cmocka_unit_test(longrope_lists), cmocka_unit_test(generation),
        cmocka_unit_test(architectures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
