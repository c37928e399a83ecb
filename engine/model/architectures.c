// The table of architectures. A model of a new one that computes nothing new is a row here: its shape where
// config.json doesn't give a number, the names of its tensors, and a function for keys that only it has.
#include "engine/model/config.h"

#include "engine/base/json.h"

#include <math.h>
#include <string.h>

enum { NO_WINDOWS = 1 << 20 };

const char ARCHITECTURES_SUPPORTED[] =
    "llama (also CodeLlama, Vicuna, Yi, DeepSeek-coder), mistral, phi3, qwen2, qwen3, granite, olmo2, "
    "olmo3, smollm3, gemma, gemma2, gemma3_text, glm, glm4, starcoder2, gpt_neox, gpt2, phi, stablelm, "
    "cohere, cohere2, exaone4, seed_oss, arcee, mimo, mixtral, qwen2_moe, qwen3_moe, olmoe, granitemoe, "
    "granitemoeshared";

// --- keys of one architecture

static bool refuse(const ConfigReader *r, const char *key) {
    bool on = false;
    if (!config_bool(r, key, &on)) return false;
    return !on || error_input(r->e, "'%s' in '%s' is true, which is not supported for %s", key, r->place,
                              r->a->model_type);
}

static bool read_own_norms(const ConfigReader *r, const char *key, Shape *s) {
    bool on = false;
    if (!config_bool(r, key, &on)) return false;
    if (on) s->qk_norm = QK_NORM_OWN;
    return true;
}

static bool read_granite(const ConfigReader *r, Shape *s) {
    float divisor = 1;
    s->embedding_scale = s->residual_scale = s->score_scale = 1;
    bool ok = config_factor(r, "embedding_multiplier", 1e-6, 1e6, &s->embedding_scale) &&
              config_factor(r, "residual_multiplier", 1e-6, 1e6, &s->residual_scale) &&
              config_factor(r, "attention_multiplier", 1e-6, 1e6, &s->score_scale) &&
              config_factor(r, "logits_scaling", 1e-6, 1e6, &divisor);
    s->logit_scale = 1 / divisor;
    return ok;
}

// Only layers without a window have a scaled rope.
static bool read_olmo3(const ConfigReader *r, Shape *s) {
    if (s->local_theta > 0 && !field_present(r->root, "rope_parameters")) s->local_theta = s->rope.theta;
    return true;
}

// A list with 0 for a layer without rope; without it, each n-th layer has none.
static bool read_smollm3(const ConfigReader *r, Shape *s) {
    static const char key[] = "no_rope_layers";
    const json_t *list = json_object_get(r->root, key);
    bool listed = field_present(r->root, key);
    int every = 4;
    if (!config_int(r, "no_rope_layer_interval", 1, 1 << 20, &every)) return false;
    if (listed && json_array_size(list) < (size_t)s->layers)
        return error_input(r->e, "'%s' in '%s' must be a list of %d, one a layer", key, r->place, s->layers);
    for (int i = 0; i < s->layers; i++) {
        const json_t *x = json_array_get(list, (size_t)i);
        if (listed && !(json_is_integer(x) && (json_integer_value(x) == 0 || json_integer_value(x) == 1)))
            return error_input(r->e, "'%s' in '%s' must hold 0 or 1", key, r->place);
        if (listed ? json_integer_value(x) == 0 : (i + 1) % every == 0) layer_add(&s->unrotated, i);
    }
    return true;
}

static bool read_gemma(const ConfigReader *r, Shape *s) {
    s->embedding_scale = sqrtf((float)s->width);
    return refuse(r, "use_bidirectional_attention");
}

static bool read_gemma2(const ConfigReader *r, Shape *s) {
    double scalar = 256;
    if (!config_real(r, "query_pre_attn_scalar", 1e-3, 1e6, &scalar) ||
        !config_factor(r, "attn_logit_softcapping", 1e-3, 1e6, &s->score_cap) ||
        !config_factor(r, "final_logit_softcapping", 1e-3, 1e6, &s->logit_cap))
        return false;
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    float *const to[] = {&s->score_cap, &s->logit_cap};
    for (int i = 0; i < 2; i++)
        if (json_is_null(json_object_get(r->root, caps[i]))) *to[i] = 0;
    s->score_scale = (float)(1 / sqrt(scalar));
    return read_gemma(r, s);
}

// Learned positions take the place of ropes.
static bool read_gpt2(const ConfigReader *r, Shape *s) {
    bool scaled = true;
    for (int i = 0; i < s->layers; i++) layer_add(&s->unrotated, i);
    if (!refuse(r, "scale_attn_by_inverse_layer_idx") || !refuse(r, "add_cross_attention") ||
        !config_bool(r, "scale_attn_weights", &scaled))
        return false;
    if (!scaled) s->score_scale = 1;
    return true;
}

// `attention_bias` is of q, k and v alone.
static bool read_without_o_bias(UNUSED const ConfigReader *r, Shape *s) {
    s->o_bias = false;
    return true;
}

static bool read_starcoder2(UNUSED const ConfigReader *r, Shape *s) {
    s->mlp_bias = s->qkv_bias;
    return true;
}

// One norm for both where the parallel MLP has none of its own.
static bool read_parallel(const ConfigReader *r, MlpInput parallel, Shape *s) {
    bool on = s->mlp_input != MLP_AFTER;
    if (!config_bool(r, "use_parallel_residual", &on)) return false;
    s->mlp_input = on ? parallel : MLP_AFTER;
    return true;
}

static bool read_neox(const ConfigReader *r, Shape *s) { return read_parallel(r, MLP_PARALLEL, s); }

static bool read_stablelm(const ConfigReader *r, Shape *s) {
    s->o_bias = false;
    return read_own_norms(r, "qk_layernorm", s) && read_parallel(r, MLP_SHARES_NORM, s);
}

static bool read_phi(const ConfigReader *r, UNUSED Shape *s) { return refuse(r, "qk_layernorm"); }

// Layers without a window have no rope.
static void unrotate_global(Shape *s) {
    for (int i = 0; i < s->layers; i++)
        if (!shape_window(s, i)) layer_add(&s->unrotated, i);
}

static bool read_cohere(const ConfigReader *r, Shape *s) {
    s->logit_scale = 0.0625f;
    return read_own_norms(r, "use_qk_norm", s) && config_factor(r, "logit_scale", 1e-6, 1e6, &s->logit_scale);
}

static bool read_cohere2(const ConfigReader *r, Shape *s) {
    unrotate_global(s);
    return read_cohere(r, s);
}

// A model without any window rotates in all layers.
static bool read_exaone4(UNUSED const ConfigReader *r, Shape *s) {
    if (s->window || s->local_window) unrotate_global(s);
    return true;
}

static bool read_qwen2_moe(const ConfigReader *r, Shape *s) {
    bool listed = field_present(r->root, "layer_types"); // versions of transformers choose other layers
    return config_bool(r, "qkv_bias", &s->qkv_bias) && (listed || refuse(r, "use_sliding_window"));
}

static bool read_olmoe(const ConfigReader *r, UNUSED Shape *s) {
    return !field_present(r->root, "clip_qkv") ||
           error_input(r->e, "'clip_qkv' in '%s' is not supported", r->place);
}

static bool read_granite_shared(const ConfigReader *r, Shape *s) {
    int *width = &s->experts.shared_width;
    return config_int(r, "shared_intermediate_size", 0, 1 << 19, width) && read_granite(r, s);
}

static bool read_seed_oss(const ConfigReader *r, Shape *s) {
    s->o_bias = false;
    return config_bool(r, "attention_out_bias", &s->o_bias);
}

// --- the table

#define GEMMA_NORMS \
    { [W_MLP_NORM] = "pre_feedforward_layernorm" }
// The name of a weight and its bias; that of q, k and v with theirs, which are fused.
#define BOTH(weight, name) [weight] = name, [weight##_BIAS] = name
#define FUSED_QKV(name)    BOTH(W_Q, name), BOTH(W_K, name), BOTH(W_V, name)
// As models before Llama: two matrices in the MLP, and biases everywhere.
#define BIASED                                                                              \
    .qkv_bias = true, .o_bias = true, .mlp_bias = true, .norm_bias = true, .ungated = true, \
    .norm_kind = NORM_LAYER
#define GEMMA .head_dim = 256, .activation = ACTIVATION_GELU_TANH, .tied_head = true, .norm_epsilon = 1e-6f
#define GLM \
    .head_dim = 128, .context = 131072, .qkv_bias = true, .rope.neighbours = true, .norm_epsilon = 1.5625e-7f
#define COHERE                                                                                 \
    .context = 8192, .tied_head = true, .norm_kind = NORM_LAYER, .mlp_input = MLP_SHARES_NORM, \
    .rope.neighbours = true, .norm_epsilon = 1e-5f

static const Architecture ARCHITECTURES[] = {
    {.model_type = "llama", .full_layers = NO_WINDOWS, .shape = {.context = 2048, .norm_epsilon = 1e-6f}},
    {.model_type = "mistral",
     .windowed = true,
     .shape = {.context = 131072, .window = 4096, .norm_epsilon = 1e-6f}},
    {.model_type = "phi3",
     .fused = 1u << GROUP_QKV | 1u << GROUP_IN,
     .partly_rotated = true,
     .windowed = true,
     .shape = {.context = 4096, .rope.original_context = 4096, .norm_epsilon = 1e-5f}},
    {.model_type = "qwen2",
     .full_layers = 28,
     .keys = {{"attention_bias", NULL}},
     .shape = {.context = 32768, .window = 4096, .qkv_bias = true, .norm_epsilon = 1e-6f}},
    {.model_type = "qwen3",
     .full_layers = 28,
     .shape = {.head_dim = 128,
               .context = 32768,
               .window = 4096,
               .qk_norm = QK_NORM_HEADS,
               .norm_epsilon = 1e-6f}},
    {.model_type = "mimo",
     .full_layers = 28,
     .read = read_without_o_bias,
     .shape = {.context = 32768, .window = 4096, .qkv_bias = true, .norm_epsilon = 1e-6f}},
    {.model_type = "granite",
     .full_layers = NO_WINDOWS,
     .read = read_granite,
     .shape = {.context = 2048, .norm_epsilon = 1e-6f}},
    {.model_type = "olmo2",
     .full_layers = NO_WINDOWS,
     .shape = {.context = 2048, .norm_place = NORMS_AFTER, .qk_norm = QK_NORM_ROWS, .norm_epsilon = 1e-5f}},
    {.model_type = "olmo3",
     .windowed = true,
     .pattern = 4,
     .read = read_olmo3,
     .shape = {.context = 2048,
               .window = 4096,
               .norm_place = NORMS_AFTER,
               .qk_norm = QK_NORM_ROWS,
               .rope.theta = 5e5,
               .local_theta = 5e5,
               .norm_epsilon = 1e-5f}},
    {.model_type = "smollm3",
     .full_layers = NO_WINDOWS,
     .read = read_smollm3,
     .shape = {.context = 32768, .rope.theta = 2e6, .tied_head = true, .norm_epsilon = 1e-6f}},
    {.model_type = "gemma",
     .norms_less_one = true,
     .full_layers = NO_WINDOWS,
     .keys = {{"hidden_act", "hidden_activation"}},
     .read = read_gemma,
     .shape = {GEMMA, .context = 8192}},
    {.model_type = "gemma2",
     .names = GEMMA_NORMS,
     .norms_less_one = true,
     .windowed = true,
     .pattern = 2,
     .keys = {{"hidden_act", "hidden_activation"}},
     .read = read_gemma2,
     .shape = {GEMMA, .context = 8192, .window = 4096, .norm_place = NORMS_AROUND, .score_cap = 50,
               .logit_cap = 30}},
    {.model_type = "gemma3_text",
     .names = GEMMA_NORMS,
     .norms_less_one = true,
     .windowed = true,
     .pattern = 6,
     .keys = {{"hidden_act", "hidden_activation"}},
     .read = read_gemma2,
     .shape = {GEMMA, .layers = 26, .width = 2304, .heads = 8, .kv_heads = 4, .mlp_width = 9216,
               .vocab = 262208, .context = 131072, .window = 4096, .qk_norm = QK_NORM_HEADS,
               .norm_place = NORMS_AROUND, .rope.theta = 1e6, .local_theta = 1e4}},
    {.model_type = "glm",
     .fused = 1u << GROUP_IN,
     .full_layers = NO_WINDOWS,
     .rotated = 0.5,
     .read = read_without_o_bias,
     .shape = {GLM}},
    {.model_type = "glm4",
     .names = {[W_ATTENTION_POST] = "post_self_attn_layernorm", [W_MLP_POST] = "post_mlp_layernorm"},
     .fused = 1u << GROUP_IN,
     .full_layers = NO_WINDOWS,
     .rotated = 0.5,
     .read = read_without_o_bias,
     .shape = {GLM, .norm_place = NORMS_AROUND}},
    {.model_type = "starcoder2",
     .names = {BOTH(W_GATE, "mlp.c_fc"), BOTH(W_DOWN, "mlp.c_proj")},
     .windowed = true,
     .keys = {{"rms_norm_eps", "norm_epsilon"}, {"attention_bias", "use_bias"}},
     .read = read_starcoder2,
     .shape = {BIASED, .context = 4096, .tied_head = true, .activation = ACTIVATION_GELU_TANH,
               .norm_epsilon = 1e-5f}},
    {.model_type = "gpt_neox",
     .layers = "gpt_neox.layers",
     .names = {FUSED_QKV("attention.query_key_value"), BOTH(W_O, "attention.dense"),
               BOTH(W_GATE, "mlp.dense_h_to_4h"), BOTH(W_DOWN, "mlp.dense_4h_to_h"),
               BOTH(W_FINAL_NORM, "gpt_neox.final_layer_norm"), [W_HEAD] = "embed_out",
               [W_EMBEDDING] = "gpt_neox.embed_in"},
     .fused = 1u << GROUP_QKV | 1u << GROUP_QKV_BIAS,
     .head_by_head = true,
     .full_layers = NO_WINDOWS,
     .rotated = 0.25,
     .keys = {{"rms_norm_eps", "layer_norm_eps"},
              {"partial_rotary_factor", "rotary_pct"},
              {"rope_theta", "rotary_emb_base"},
              {"num_key_value_heads", NULL}},
     .read = read_neox,
     .shape = {BIASED, .context = 2048, .activation = ACTIVATION_GELU, .mlp_input = MLP_PARALLEL,
               .norm_epsilon = 1e-5f}},
    {.model_type = "gpt2",
     .layers = "transformer.h",
     .names = {BOTH(W_ATTENTION_NORM, "ln_1"), FUSED_QKV("attn.c_attn"), BOTH(W_O, "attn.c_proj"),
               BOTH(W_MLP_NORM, "ln_2"), BOTH(W_GATE, "mlp.c_fc"), BOTH(W_DOWN, "mlp.c_proj"),
               BOTH(W_FINAL_NORM, "transformer.ln_f"), [W_EMBEDDING] = "transformer.wte"},
     .fused = 1u << GROUP_QKV | 1u << GROUP_QKV_BIAS,
     .transposed = true,
     .full_layers = NO_WINDOWS,
     .mlp_times = 4,
     .keys = {{"hidden_size", "n_embd"},
              {"num_hidden_layers", "n_layer"},
              {"num_attention_heads", "n_head"},
              {"num_key_value_heads", NULL},
              {"intermediate_size", "n_inner"},
              {"max_position_embeddings", "n_positions"},
              {"hidden_act", "activation_function"},
              {"rms_norm_eps", "layer_norm_epsilon"}},
     .read = read_gpt2,
     .shape = {BIASED, .context = 1024, .positions = true, .tied_head = true,
               .activation = ACTIVATION_GELU_TANH, .norm_epsilon = 1e-5f}},
    {.model_type = "phi",
     .names = {BOTH(W_O, "self_attn.dense"), BOTH(W_GATE, "mlp.fc1"), BOTH(W_DOWN, "mlp.fc2"),
               BOTH(W_FINAL_NORM, "model.final_layernorm")},
     .full_layers = NO_WINDOWS,
     .rotated = 0.5,
     .keys = {{"rms_norm_eps", "layer_norm_eps"}, {"attention_bias", NULL}, {"mlp_bias", NULL}},
     .read = read_phi,
     .shape = {BIASED, .context = 2048, .head_bias = true, .activation = ACTIVATION_GELU_TANH,
               .mlp_input = MLP_SHARES_NORM, .norm_epsilon = 1e-5f}},
    {.model_type = "stablelm",
     .names = {[W_Q_NORM] = "self_attn.q_layernorm.norms", [W_K_NORM] = "self_attn.k_layernorm.norms"},
     .heads_apart = true,
     .full_layers = NO_WINDOWS,
     .rotated = 0.25,
     .keys = {{"rms_norm_eps", "layer_norm_eps"}, {"attention_bias", "use_qkv_bias"}},
     .read = read_stablelm,
     .shape = {.context = 4096, .norm_bias = true, .norm_kind = NORM_LAYER, .norm_epsilon = 1e-5f}},
    {.model_type = "cohere",
     .full_layers = NO_WINDOWS,
     .keys = {{"rms_norm_eps", "layer_norm_eps"}},
     .read = read_cohere,
     .shape = {COHERE}},
    {.model_type = "cohere2",
     .windowed = true,
     .pattern = 4,
     .keys = {{"rms_norm_eps", "layer_norm_eps"}},
     .read = read_cohere2,
     .shape = {COHERE, .window = 4096}},
    {.model_type = "exaone4",
     .windowed = true,
     .pattern = 4,
     .keys = {{"sliding_window_pattern", NULL}}, // a word in published files, which list their layers
     .read = read_exaone4,
     .shape = {.context = 2048,
               .window = 4096,
               .qk_norm = QK_NORM_HEADS,
               .norm_place = NORMS_AFTER,
               .norm_epsilon = 1e-5f}},
    {.model_type = "seed_oss",
     .full_layers = NO_WINDOWS,
     .read = read_seed_oss,
     .shape = {.head_dim = 128, .context = 524288, .qkv_bias = true, .norm_epsilon = 1e-6f}},
    {.model_type = "mixtral",
     .names = {[W_ROUTER] = "block_sparse_moe.gate",
               [W_EXPERT_GATE] = "w1",
               [W_EXPERT_UP] = "w3",
               [W_EXPERT_DOWN] = "w2"},
     .experts = "block_sparse_moe.experts",
     .windowed = true,
     .keys = {{"norm_topk_prob", NULL}},
     .shape = {.context = 131072,
               .rope.theta = 1e6,
               .experts = {.count = 8, .chosen = 2, .renormalised = true},
               .norm_epsilon = 1e-5f}},
    {.model_type = "qwen2_moe",
     .full_layers = 28,
     .keys = {{"attention_bias", NULL}},
     .read = read_qwen2_moe,
     .shape =
         {.context = 32768,
          .window = 4096,
          .qkv_bias = true,
          .experts = {.count = 60, .chosen = 4, .width = 1408, .shared_width = 5632, .shared_gate = true},
          .norm_epsilon = 1e-6f}},
    {.model_type = "qwen3_moe",
     .keys = {{"max_window_layers", NULL}}, // transformers doesn't read it
     .shape = {.context = 32768,
               .window = 4096,
               .qk_norm = QK_NORM_HEADS,
               .experts = {.count = 128, .chosen = 8, .width = 768},
               .norm_epsilon = 1e-6f}},
    {.model_type = "olmoe",
     .full_layers = NO_WINDOWS,
     .read = read_olmoe,
     .shape = {.context = 4096,
               .qk_norm = QK_NORM_ROWS,
               .experts = {.count = 64, .chosen = 8},
               .norm_epsilon = 1e-5f}},
    {.model_type = "granitemoe",
     .names = {[W_ROUTER] = "block_sparse_moe.router.layer"},
     .fused = 1u << GROUP_EXPERT_IN | 1u << GROUP_EXPERT_DOWN,
     .full_layers = NO_WINDOWS,
     .keys = {{"norm_topk_prob", NULL}, {"mlp_bias", NULL}},
     .read = read_granite,
     .shape = {.context = 2048,
               .experts = {.count = 8, .chosen = 2, .renormalised = true},
               .norm_epsilon = 1e-6f}},
    {.model_type = "granitemoeshared",
     .names = {[W_ROUTER] = "block_sparse_moe.router.layer", [W_SHARED_DOWN] = "shared_mlp.output_linear"},
     .fused = 1u << GROUP_EXPERT_IN | 1u << GROUP_EXPERT_DOWN | 1u << GROUP_SHARED_IN,
     .full_layers = NO_WINDOWS,
     .keys = {{"norm_topk_prob", NULL}, {"mlp_bias", NULL}},
     .read = read_granite_shared,
     .shape = {.context = 2048,
               .experts = {.count = 8, .chosen = 2, .renormalised = true},
               .norm_epsilon = 1e-6f}},
    {.model_type = "arcee",
     .names = {BOTH(W_GATE, "mlp.up_proj")},
     .full_layers = NO_WINDOWS,
     .shape = {.context = 4096, .ungated = true, .activation = ACTIVATION_RELU2, .norm_epsilon = 1e-5f}},
};

const char *architecture_key(const Architecture *a, const char *key) {
    for (int i = 0; i < RENAMED_KEYS && a->keys[i][0]; i++)
        if (strcmp(a->keys[i][0], key) == 0) return a->keys[i][1];
    return key;
}

const Architecture *architecture_find(const char *model_type) {
    for (size_t i = 0; i < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; i++)
        if (strcmp(ARCHITECTURES[i].model_type, model_type) == 0) return &ARCHITECTURES[i];
    return NULL;
}
