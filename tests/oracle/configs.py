#!/usr/bin/env python3
"""Published config.json files as a table: as their authors published them, and as today's transformers writes the same
model. Run by hand, from the repository's root, in an environment that has transformers and torch:

    python tests/oracle/configs.py

Writes tests/fixtures/configs.jsonl, a line a file: {"model", "form": "published" or "transformers VERSION",
"parameters": counted by transformers, "refused": words of our refusal, if we refuse it, "config"}. Where an
architecture is added, take its model_type out of REFUSED and run this again, or delete "refused" in its lines.
tests/engine/model/published_test.c holds our reader to the table. Of each family that tests/fuzz/seeds does not have,
the first file in both forms becomes a seed of fuzzing, with small sizes, and HOSTILE changes some of these.
"""
import json
import os
import sys

sys.path.pop(0)  # tokenizers.py, next to this file, has the name of a package
import torch
import transformers

OUT = "tests/fixtures/configs.jsonl"
REFUSED = ["falcon", "gptj", "olmo", "opt"]


def model(kind, **keys):
    return dict(model_type=kind, **keys)


def sizes(width, mlp, layers, heads, kv, vocab, context, **keys):
    """The keys that most families share."""
    return dict(hidden_size=width, intermediate_size=mlp, num_hidden_layers=layers, num_attention_heads=heads,
                num_key_value_heads=kv, vocab_size=vocab, max_position_embeddings=context, **keys)


def llama(*numbers, **keys):
    return model("llama", **sizes(*numbers), **(dict(
        architectures=["LlamaForCausalLM"], hidden_act="silu", initializer_range=0.02, pretraining_tp=1, rope_scaling=None,
        rms_norm_eps=1e-5, tie_word_embeddings=False, use_cache=True, torch_dtype="bfloat16", bos_token_id=1, eos_token_id=2)
        | keys))


def llama3(*numbers, **keys):
    return llama(*numbers, **(dict(attention_bias=False, attention_dropout=0.0, rope_theta=500000.0, bos_token_id=128000,
                                   eos_token_id=128001) | keys))


def scaled(factor):
    return dict(factor=factor, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192,
                rope_type="llama3")


def mistral(kind, *numbers, **keys):
    return model(kind, **sizes(*numbers), **(dict(
        hidden_act="silu", initializer_range=0.02, rms_norm_eps=1e-5, rope_theta=1e6, sliding_window=None,
        tie_word_embeddings=False, torch_dtype="bfloat16", use_cache=True, bos_token_id=1, eos_token_id=2) | keys))


def mixtral(*numbers, **keys):
    return mistral("mixtral", *numbers, num_local_experts=8, num_experts_per_tok=2, output_router_logits=False, **keys)


def phi3(*numbers, **keys):
    return model("phi3", **sizes(*numbers), **(dict(
        architectures=["Phi3ForCausalLM"], attention_bias=False, attention_dropout=0.0, embd_pdrop=0.0, hidden_act="silu",
        initializer_range=0.02, original_max_position_embeddings=4096, resid_pdrop=0.0, rms_norm_eps=1e-5, rope_scaling=None,
        rope_theta=10000.0, sliding_window=2047, tie_word_embeddings=False, bos_token_id=1, eos_token_id=32000,
        pad_token_id=32000, torch_dtype="bfloat16") | keys))


def phi(*numbers, **keys):
    return model("phi", **sizes(*numbers), **(dict(
        attention_dropout=0.0, embd_pdrop=0.0, hidden_act="gelu_new", initializer_range=0.02, layer_norm_eps=1e-5,
        qk_layernorm=False, resid_pdrop=0.1, rope_scaling=None, rope_theta=10000.0, tie_word_embeddings=False,
        bos_token_id=50256, eos_token_id=50256, torch_dtype="float16") | keys))


def qwen(kind, *numbers, **keys):
    return model(kind, **sizes(*numbers), **(dict(
        attention_dropout=0.0, bos_token_id=151643, eos_token_id=151643, hidden_act="silu", initializer_range=0.02,
        rms_norm_eps=1e-6, rope_theta=1e6, sliding_window=numbers[6], tie_word_embeddings=False, torch_dtype="bfloat16",
        use_cache=True, use_sliding_window=False) | keys))


def qwen3(*numbers, kind="qwen3", **keys):
    return qwen(kind, *numbers, **(dict(attention_bias=False, head_dim=128, sliding_window=None, rope_scaling=None,
                                        eos_token_id=151645, max_window_layers=numbers[2]) | keys))


def qwen3_moe(*numbers, **keys):
    return qwen3(*numbers, kind="qwen3_moe", decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, num_experts=128,
                 num_experts_per_tok=8, router_aux_loss_coef=0.001, **keys)


def gemma(*numbers, **keys):
    return model("gemma", **sizes(*numbers), **(dict(
        attention_bias=False, attention_dropout=0.0, bos_token_id=2, eos_token_id=1, pad_token_id=0, head_dim=256,
        hidden_act="gelu", hidden_activation=None, rms_norm_eps=1e-6, rope_theta=10000.0, torch_dtype="bfloat16") | keys))


def gemma2(*numbers, **keys):
    return model("gemma2", **sizes(*numbers), **(dict(
        attention_bias=False, attention_dropout=0.0, attn_logit_softcapping=50.0, bos_token_id=2, cache_implementation="hybrid",
        eos_token_id=1, pad_token_id=0, final_logit_softcapping=30.0, head_dim=256, hidden_act="gelu_pytorch_tanh",
        hidden_activation="gelu_pytorch_tanh", initializer_range=0.02, query_pre_attn_scalar=256, rms_norm_eps=1e-6,
        rope_theta=10000.0, sliding_window=4096, torch_dtype="float32", use_cache=True) | keys))


def gemma3(**text):
    return model(
        "gemma3", architectures=["Gemma3ForConditionalGeneration"], boi_token_index=255999, eoi_token_index=256000,
        eos_token_id=[1, 106], image_token_index=262144, initializer_range=0.02, mm_tokens_per_image=256, torch_dtype="bfloat16",
        text_config=dict(model_type="gemma3_text", rope_scaling=dict(factor=8.0, rope_type="linear"), sliding_window=1024) | text,
        vision_config=dict(hidden_size=1152, image_size=896, intermediate_size=4304, model_type="siglip_vision_model",
                           num_attention_heads=16, num_hidden_layers=27, patch_size=14, vision_use_head=False))


def granite(*numbers, kind="granite", **keys):
    return model(kind, **sizes(*numbers), **(dict(
        attention_bias=False, attention_dropout=0.1, hidden_act="silu", initializer_range=0.02, mlp_bias=False,
        rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0,
        pad_token_id=0, torch_dtype="bfloat16", embedding_multiplier=12.0, residual_multiplier=0.22) | keys))


def olmo(kind, *numbers, **keys):
    return model(kind, **sizes(*numbers), **(dict(
        attention_bias=False, attention_dropout=0.0, hidden_act="silu", initializer_range=0.02, rope_scaling=None,
        rope_theta=500000, tie_word_embeddings=False, eos_token_id=100257, pad_token_id=100277, torch_dtype="float32")
        | keys))


def neox(width, mlp, layers, heads, vocab, **keys):
    return model("gpt_neox", **(dict(
        architectures=["GPTNeoXForCausalLM"], bos_token_id=0, eos_token_id=0, hidden_act="gelu", hidden_size=width,
        initializer_range=0.02, intermediate_size=mlp, layer_norm_eps=1e-5, max_position_embeddings=2048,
        num_attention_heads=heads, num_hidden_layers=layers, rotary_emb_base=10000, rotary_pct=0.25,
        tie_word_embeddings=False, torch_dtype="float16", use_cache=True, use_parallel_residual=True, vocab_size=vocab)
        | keys))


def gpt2(width, layers, heads):
    return model("gpt2", activation_function="gelu_new", architectures=["GPT2LMHeadModel"], attn_pdrop=0.1,
                 bos_token_id=50256, embd_pdrop=0.1, eos_token_id=50256, initializer_range=0.02, layer_norm_epsilon=1e-5,
                 n_ctx=1024, n_embd=width, n_head=heads, n_layer=layers, n_positions=1024, resid_pdrop=0.1,
                 vocab_size=50257)


def starcoder2(*numbers, **keys):
    return model("starcoder2", **sizes(*numbers), **(dict(
        attention_dropout=0.1, residual_dropout=0.1, embedding_dropout=0.1, bos_token_id=0, eos_token_id=0,
        hidden_act="gelu_pytorch_tanh", mlp_type="default", norm_epsilon=1e-5, norm_type="layer_norm", sliding_window=4096,
        use_bias=True, torch_dtype="bfloat16") | keys))


def glm(kind, *numbers, **keys):
    return model(kind, **sizes(*numbers), **(dict(
        attention_dropout=0.0, eos_token_id=[151329, 151336, 151338], head_dim=128, hidden_act="silu",
        initializer_range=0.02, pad_token_id=151329, partial_rotary_factor=0.5, rms_norm_eps=1e-5, rope_theta=10000.0,
        tie_word_embeddings=False, torch_dtype="bfloat16") | keys))


def stablelm(*numbers, **keys):
    return model("stablelm", **sizes(*numbers), **(dict(
        bos_token_id=0, eos_token_id=0, hidden_act="silu", initializer_range=0.02, layer_norm_eps=1e-5,
        partial_rotary_factor=0.25, rope_theta=10000, tie_word_embeddings=False, torch_dtype="bfloat16") | keys))


PUBLISHED = {
    "meta-llama/Llama-2-7b-hf": llama(4096, 11008, 32, 32, 32, 32000, 4096, torch_dtype="float16"),
    "meta-llama/Llama-2-13b-hf": llama(5120, 13824, 40, 40, 40, 32000, 4096, torch_dtype="float16"),
    "meta-llama/Llama-2-70b-hf": llama(8192, 28672, 80, 64, 8, 32000, 4096, torch_dtype="float16"),
    "meta-llama/Meta-Llama-3-8B": llama3(4096, 14336, 32, 32, 8, 128256, 8192),
    "meta-llama/Meta-Llama-3-70B": llama3(8192, 28672, 80, 64, 8, 128256, 8192),
    "meta-llama/Llama-3.1-8B-Instruct": llama3(4096, 14336, 32, 32, 8, 128256, 131072, mlp_bias=False, rope_scaling=scaled(8.0),
                                               eos_token_id=[128001, 128008, 128009]),
    "meta-llama/Llama-3.2-1B": llama3(2048, 8192, 16, 32, 8, 128256, 131072, mlp_bias=False, head_dim=64,
                                      rope_scaling=scaled(32.0), tie_word_embeddings=True),
    "meta-llama/Llama-3.2-3B": llama3(3072, 8192, 28, 24, 8, 128256, 131072, mlp_bias=False, head_dim=128,
                                      rope_scaling=scaled(32.0), tie_word_embeddings=True),
    "codellama/CodeLlama-7b-hf": llama(4096, 11008, 32, 32, 32, 32016, 16384, rope_theta=1000000),
    "lmsys/vicuna-7b-v1.5-16k": llama(4096, 11008, 32, 32, 32, 32000, 4096, rope_scaling=dict(factor=4.0, type="linear"),
                                      max_sequence_length=16384, torch_dtype="float16"),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": llama(2048, 5632, 22, 32, 4, 32000, 2048, attention_bias=False, rope_theta=10000.0),
    "HuggingFaceTB/SmolLM2-135M": llama(576, 1536, 30, 9, 3, 49152, 8192, is_llama_config=True, rope_interleaved=False,
                                        rope_theta=100000, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0),
    "HuggingFaceTB/SmolLM2-1.7B": llama(2048, 8192, 24, 32, 32, 49152, 8192, rope_theta=130000, tie_word_embeddings=True,
                                        bos_token_id=0, eos_token_id=0),
    "deepseek-ai/deepseek-coder-6.7b-base": llama(4096, 11008, 32, 32, 32, 32256, 16384, rms_norm_eps=1e-6, rope_theta=100000,
                                                  rope_scaling=dict(factor=4.0, type="linear"), bos_token_id=32013,
                                                  eos_token_id=32014),
    "01-ai/Yi-6B": llama(4096, 11008, 32, 32, 4, 64000, 4096, rope_theta=5000000.0, pad_token_id=0),
    "mistralai/Mistral-7B-v0.1": mistral("mistral", 4096, 14336, 32, 32, 8, 32000, 32768, rope_theta=10000.0,
                                         sliding_window=4096),
    "mistralai/Mistral-7B-Instruct-v0.3": mistral("mistral", 4096, 14336, 32, 32, 8, 32768, 32768),
    "mistralai/Mistral-Nemo-Instruct-2407": mistral("mistral", 5120, 14336, 40, 32, 8, 131072, 1024000, head_dim=128),
    "mistralai/Mixtral-8x7B-v0.1": mixtral(4096, 14336, 32, 32, 8, 32000, 32768, router_aux_loss_coef=0.02),
    "mistralai/Mixtral-8x22B-v0.1": mixtral(6144, 16384, 56, 48, 8, 32000, 65536, router_aux_loss_coef=0.001),
    "microsoft/Phi-3-mini-4k-instruct": phi3(3072, 8192, 32, 32, 32, 32064, 4096),
    "microsoft/Phi-3-medium-4k-instruct": phi3(5120, 17920, 40, 40, 10, 32064, 4096),
    "microsoft/phi-4": phi3(5120, 17920, 40, 40, 10, 100352, 16384, sliding_window=None, rope_theta=250000,
                            original_max_position_embeddings=16384, bos_token_id=100257, eos_token_id=100265,
                            pad_token_id=100349),
    "microsoft/phi-1_5": phi(2048, 8192, 24, 32, None, 51200, 2048, partial_rotary_factor=0.5, resid_pdrop=0.0,
                             bos_token_id=None, eos_token_id=None),
    "microsoft/phi-2": phi(2560, 10240, 32, 32, 32, 51200, 2048, partial_rotary_factor=0.4),
    "Qwen/Qwen1.5-0.5B": qwen("qwen2", 1024, 2816, 24, 16, 16, 151936, 32768, max_window_layers=21, tie_word_embeddings=True),
    "Qwen/Qwen2-7B": qwen("qwen2", 3584, 18944, 28, 28, 4, 152064, 131072, max_window_layers=28),
    "Qwen/Qwen2.5-0.5B": qwen("qwen2", 896, 4864, 24, 14, 2, 151936, 32768, max_window_layers=24, tie_word_embeddings=True),
    "Qwen/Qwen2.5-1.5B": qwen("qwen2", 1536, 8960, 28, 12, 2, 151936, 131072, max_window_layers=28, tie_word_embeddings=True),
    "Qwen/Qwen2.5-7B-Instruct": qwen("qwen2", 3584, 18944, 28, 28, 4, 152064, 32768, max_window_layers=28,
                                     sliding_window=131072, eos_token_id=151645),
    "Qwen/Qwen2.5-32B": qwen("qwen2", 5120, 27648, 64, 40, 8, 152064, 131072, max_window_layers=64, rms_norm_eps=1e-5),
    "Qwen/Qwen1.5-MoE-A2.7B": qwen("qwen2_moe", 2048, 5632, 24, 16, 16, 151936, 8192, max_window_layers=21,
                                   decoder_sparse_step=1, moe_intermediate_size=1408, norm_topk_prob=False, num_experts=60,
                                   num_experts_per_tok=4, output_router_logits=False, router_aux_loss_coef=0.001,
                                   shared_expert_intermediate_size=5632, sliding_window=32768),
    "Qwen/Qwen3-0.6B": qwen3(1024, 3072, 28, 16, 8, 151936, 40960, tie_word_embeddings=True),
    "Qwen/Qwen3-4B": qwen3(2560, 9728, 36, 32, 8, 151936, 40960, tie_word_embeddings=True),
    "Qwen/Qwen3-8B": qwen3(4096, 12288, 36, 32, 8, 151936, 40960),
    "Qwen/Qwen3-32B": qwen3(5120, 25600, 64, 64, 8, 151936, 40960),
    "Qwen/Qwen3-30B-A3B": qwen3_moe(2048, 6144, 48, 32, 4, 151936, 40960, moe_intermediate_size=768),
    "Qwen/Qwen3-235B-A22B": qwen3_moe(4096, 12288, 94, 64, 4, 151936, 40960, moe_intermediate_size=1536),
    "google/gemma-2b": gemma(2048, 16384, 18, 8, 1, 256000, 8192),
    "google/gemma-7b": gemma(3072, 24576, 28, 16, 16, 256000, 8192),
    "google/gemma-2-2b": gemma2(2304, 9216, 26, 8, 4, 256000, 8192),
    "google/gemma-2-9b": gemma2(3584, 14336, 42, 16, 8, 256000, 8192),
    "google/gemma-2-27b": gemma2(4608, 36864, 46, 32, 16, 256000, 8192, head_dim=128, query_pre_attn_scalar=144),
    "google/gemma-3-1b-it": model(
        "gemma3_text", **sizes(1152, 6912, 26, 4, 1, 262144, 32768), architectures=["Gemma3ForCausalLM"], attention_bias=False,
        attn_logit_softcapping=None, bos_token_id=2, cache_implementation="hybrid", eos_token_id=[1, 106],
        final_logit_softcapping=None, head_dim=256, hidden_activation="gelu_pytorch_tanh", pad_token_id=0,
        query_pre_attn_scalar=256, rms_norm_eps=1e-6, rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000,
        sliding_window=512, sliding_window_pattern=6, torch_dtype="bfloat16"),
    "google/gemma-3-4b-it": gemma3(hidden_size=2560, intermediate_size=10240, num_hidden_layers=34),
    "google/gemma-3-12b-it": gemma3(hidden_size=3840, intermediate_size=15360, num_attention_heads=16, num_hidden_layers=48,
                                    num_key_value_heads=8),
    "google/gemma-3-27b-it": gemma3(head_dim=128, hidden_size=5376, intermediate_size=21504, num_attention_heads=32,
                                    num_hidden_layers=62, num_key_value_heads=16, query_pre_attn_scalar=168),
    "mistralai/Mistral-Small-3.1-24B-Instruct-2503": model(
        "mistral3", architectures=["Mistral3ForConditionalGeneration"], image_token_index=10, multimodal_projector_bias=False,
        projector_hidden_act="gelu", spatial_merge_size=2, torch_dtype="bfloat16", vision_feature_layer=-1,
        text_config=mistral("mistral", 5120, 32768, 40, 32, 8, 131072, 131072, head_dim=128, rope_theta=1e9),
        vision_config=dict(model_type="pixtral", attention_dropout=0.0, head_dim=64, hidden_act="gelu", hidden_size=1024,
                           image_size=1540, intermediate_size=4096, num_attention_heads=16, num_channels=3,
                           num_hidden_layers=24, patch_size=14, rope_theta=10000.0)),
    "allenai/OLMo-1B-hf": olmo("olmo", 2048, 8192, 16, 16, 16, 50304, 2048, clip_qkv=None, rope_theta=10000.0,
                               tie_word_embeddings=True, eos_token_id=50279, pad_token_id=1),
    "allenai/OLMo-2-0425-1B": olmo("olmo2", 2048, 8192, 16, 16, 16, 100352, 4096, rms_norm_eps=1e-6),
    "allenai/OLMo-2-1124-7B": olmo("olmo2", 4096, 11008, 32, 32, 32, 100352, 4096, rms_norm_eps=1e-6),
    "allenai/OLMo-2-1124-13B": olmo("olmo2", 5120, 13824, 40, 40, 40, 100352, 4096, rms_norm_eps=1e-6),
    "allenai/Olmo-3-7B-Instruct": olmo("olmo3", 4096, 11008, 32, 32, 32, 100278, 65536, rms_norm_eps=1e-6, sliding_window=4096,
                                      layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 8,
                                      rope_scaling=dict(rope_type="yarn", factor=8.0, beta_fast=32.0, beta_slow=1.0,
                                                        attention_factor=1.2079441541679836,
                                                        original_max_position_embeddings=8192)),
    "allenai/OLMoE-1B-7B-0924": olmo("olmoe", 2048, 1024, 16, 16, 16, 50304, 4096, clip_qkv=None, norm_topk_prob=False,
                                     num_experts=64, num_experts_per_tok=8, rms_norm_eps=1e-5, rope_theta=10000.0,
                                     output_router_logits=False, router_aux_loss_coef=0.01, eos_token_id=50279,
                                     pad_token_id=1),
    "ibm-granite/granite-3.0-2b-instruct": granite(2048, 8192, 40, 32, 8, 49155, 4096, attention_multiplier=0.015625,
                                                   logits_scaling=8.0),
    "ibm-granite/granite-3.0-8b-instruct": granite(4096, 12800, 40, 32, 8, 49155, 4096, attention_multiplier=0.0078125,
                                                   logits_scaling=16.0),
    "ibm-granite/granite-3.1-8b-instruct": granite(4096, 12800, 40, 32, 8, 49155, 131072, attention_multiplier=0.0078125,
                                                   logits_scaling=16.0, rope_theta=10000000.0),
    "ibm-granite/granite-3.0-1b-a400m-instruct": granite(1024, 512, 24, 16, 8, 49155, 4096, kind="granitemoe",
                                                         attention_multiplier=0.015625, logits_scaling=6.0,
                                                         num_local_experts=32, num_experts_per_tok=8,
                                                         output_router_logits=False, router_aux_loss_coef=0.0),
    "HuggingFaceTB/SmolLM3-3B": model(
        "smollm3", **sizes(2048, 11008, 36, 16, 4, 128256, 65536), attention_bias=False, attention_dropout=0.0,
        bos_token_id=128000, eos_token_id=128012, hidden_act="silu", initializer_range=0.02,
        layer_types=["full_attention"] * 36, max_window_layers=28, mlp_bias=False,
        no_rope_layers=[int((i + 1) % 4 != 0) for i in range(36)], no_rope_layer_interval=4, pad_token_id=128004,
        pretraining_tp=2, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0, sliding_window=None,
        torch_dtype="bfloat16", use_cache=False, use_sliding_window=False),
    "THUDM/glm-4-9b-chat-hf": glm("glm", 4096, 13696, 40, 32, 2, 151552, 131072, attention_bias=True, rms_norm_eps=1.5625e-7),
    "THUDM/GLM-4-9B-0414": glm("glm4", 4096, 13696, 40, 32, 2, 151552, 32768, attention_bias=True),
    "THUDM/GLM-4-32B-0414": glm("glm4", 6144, 23040, 61, 48, 2, 151552, 32768, attention_bias=False),
    "bigcode/starcoder2-3b": starcoder2(3072, 12288, 30, 24, 2, 49152, 16384, initializer_range=0.018042,
                                        rope_theta=999999.4420358813),
    "bigcode/starcoder2-7b": starcoder2(4608, 18432, 32, 36, 4, 49152, 16384, initializer_range=0.018042, rope_theta=1000000),
    "bigcode/starcoder2-15b": starcoder2(6144, 24576, 40, 48, 4, 49152, 16384, initializer_range=0.01275, rope_theta=100000),
    "EleutherAI/gpt-neox-20b": neox(6144, 24576, 44, 64, 50432, hidden_act="gelu_fast", attention_probs_dropout_prob=0),
    "EleutherAI/pythia-70m": neox(512, 2048, 6, 8, 50304),
    "EleutherAI/pythia-160m": neox(768, 3072, 12, 12, 50304),
    "EleutherAI/pythia-410m": neox(1024, 4096, 24, 16, 50304),
    "EleutherAI/pythia-1b": neox(2048, 8192, 16, 8, 50304),
    "EleutherAI/pythia-6.9b": neox(4096, 16384, 32, 32, 50432),
    "EleutherAI/pythia-12b": neox(5120, 20480, 36, 40, 50688),
    "openai-community/gpt2": gpt2(768, 12, 12),
    "openai-community/gpt2-medium": gpt2(1024, 24, 16),
    "openai-community/gpt2-xl": gpt2(1600, 48, 25),
    "stabilityai/stablelm-3b-4e1t": stablelm(2560, 6912, 32, 32, 32, 50304, 4096),
    "stabilityai/stablelm-2-1_6b": stablelm(2048, 5632, 24, 32, 32, 100352, 4096, use_qkv_bias=True, bos_token_id=100257,
                                            eos_token_id=100257),
    "stabilityai/stablelm-2-12b": stablelm(5120, 13824, 40, 32, 8, 100352, 4096, use_qkv_bias=False, qk_layernorm=True,
                                           use_parallel_residual=True, bos_token_id=100257, eos_token_id=100257),
    "CohereForAI/c4ai-command-r-v01": model(
        "cohere", **sizes(8192, 22528, 40, 64, 64, 256000, 8192), attention_bias=False, bos_token_id=5, eos_token_id=255001,
        hidden_act="silu", layer_norm_eps=1e-5, logit_scale=0.0625, model_max_length=131072, pad_token_id=0,
        rope_theta=8000000.0, torch_dtype="float16", use_qk_norm=False),
    "CohereForAI/c4ai-command-r-plus": model(
        "cohere", **sizes(12288, 33792, 64, 96, 8, 256000, 8192), attention_bias=False, bos_token_id=5, eos_token_id=255001,
        hidden_act="silu", layer_norm_eps=1e-5, logit_scale=0.8333333333333334, model_max_length=131072, pad_token_id=0,
        rope_theta=75000000.0, torch_dtype="float16", use_qk_norm=True),
    "CohereForAI/c4ai-command-r7b-12-2024": model(
        "cohere2", **sizes(4096, 14336, 32, 32, 8, 256000, 132096), attention_bias=False, bos_token_id=5, eos_token_id=255001,
        head_dim=128, hidden_act="silu", layer_norm_eps=1e-5, logit_scale=0.25, order_of_interleaved_layers="local_attn_first",
        pad_token_id=0, position_embedding_type="rope_gptj", rope_scaling=None, rope_theta=50000, rotary_pct=1.0,
        sliding_window=4096, sliding_window_pattern=4, torch_dtype="bfloat16", use_embedding_sharing=True,
        use_gated_activation=True, use_parallel_block=True, use_parallel_embedding=True),
    "LGAI-EXAONE/EXAONE-4.0-1.2B": model(
        "exaone4", **sizes(2048, 4096, 30, 32, 8, 102400, 65536), attention_dropout=0.0, bos_token_id=1, eos_token_id=361,
        head_dim=64, hidden_act="silu", layer_types=["full_attention"] * 30, pad_token_id=0, rms_norm_eps=1e-5,
        rope_theta=1000000, rope_scaling=dict(factor=16.0, high_freq_factor=4.0, low_freq_factor=1.0,
                                              original_max_position_embeddings=8192, rope_type="llama3"),
        sliding_window=None, sliding_window_pattern=None, tie_word_embeddings=True, torch_dtype="bfloat16"),
    "ByteDance-Seed/Seed-OSS-36B-Instruct": model(
        "seed_oss", **sizes(5120, 27648, 64, 80, 8, 155136, 524288), attention_bias=True, attention_out_bias=False,
        attention_dropout=0.1, bos_token_id=0, eos_token_id=2, head_dim=128, hidden_act="silu", mlp_bias=False, pad_token_id=1,
        residual_dropout=0.1, rms_norm_eps=1e-6, rope_scaling=dict(rope_type="default"), rope_theta=1e7,
        tie_word_embeddings=False, torch_dtype="bfloat16"),
    "arcee-ai/AFM-4.5B": model(
        "arcee", **sizes(2560, 18432, 36, 20, 4, 128004, 65536), attention_bias=False, bos_token_id=128000, eos_token_id=128001,
        head_dim=128, hidden_act="relu2", mlp_bias=False, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False,
        rope_scaling=dict(beta_fast=32.0, beta_slow=1.0, factor=20.0, mscale=1.0, original_max_position_embeddings=4096,
                          rope_type="yarn"), torch_dtype="bfloat16"),
    "tiiuae/falcon-7b": model("falcon", alibi=False, bias=False, bos_token_id=11, eos_token_id=11, hidden_size=4544,
                              multi_query=True, new_decoder_architecture=False, num_attention_heads=71,
                              num_hidden_layers=32, parallel_attn=True, vocab_size=65024, torch_dtype="bfloat16"),
    "EleutherAI/gpt-j-6b": model("gptj", activation_function="gelu_new", bos_token_id=50256, eos_token_id=50256, n_embd=4096,
                                 n_head=16, n_inner=None, n_layer=28, n_positions=2048, rotary_dim=64, rotary=True,
                                 scale_attn_weights=True, tie_word_embeddings=False, vocab_size=50400),
    "facebook/opt-125m": model("opt", activation_function="relu", bos_token_id=2, do_layer_norm_before=True, eos_token_id=2,
                               ffn_dim=3072, hidden_size=768, max_position_embeddings=2048, num_attention_heads=12,
                               num_hidden_layers=12, pad_token_id=1, vocab_size=50272, word_embed_proj_dim=768),
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": qwen3(
        4096, 12288, 36, 32, 8, 151936, 131072, rope_scaling=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=32768, attn_factor=0.8782488562869419)),
}


# Packed: only as published, and counted as the model that they were quantised from.
PACKED = {
    "hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4": llama3(
        4096, 14336, 32, 32, 8, 128256, 131072, mlp_bias=False, rope_scaling=scaled(8.0), quantization_config=dict(
            bits=4, group_size=128, modules_to_not_convert=None, quant_method="awq", version="gemm", zero_point=True)),
}

# Refused for more than their type, or of types that transformers need not count: only as published.
OTHERS = {
    "openai/gpt-oss-20b": ("model_type 'gpt_oss'", model(
        "gpt_oss", **sizes(2880, 2880, 24, 64, 8, 201088, 131072), attention_bias=True, head_dim=64, hidden_act="silu",
        num_local_experts=32, num_experts_per_tok=4, rms_norm_eps=1e-5, rope_theta=150000, sliding_window=128,
        swiglu_limit=7.0)),
    "deepseek-ai/DeepSeek-V3": ("model_type 'deepseek_v3'", model(
        "deepseek_v3", **sizes(7168, 18432, 61, 128, 128, 129280, 163840), kv_lora_rank=512, q_lora_rank=1536,
        n_routed_experts=256, num_experts_per_tok=8, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        rms_norm_eps=1e-6, rope_theta=10000)),
    "bigscience/bloom-560m": ("model_type 'bloom'", model("bloom", n_embed=1024, n_layer=24, num_attention_heads=16,
                                                         vocab_size=250880, layer_norm_epsilon=1e-5)),
    "state-spaces/mamba-130m-hf": ("model_type 'mamba'", model("mamba", d_model=768, n_layer=24, hidden_size=768, state_size=16,
                                                               num_hidden_layers=24, vocab_size=50280)),
}

SEEDS = "tests/fuzz/corpus/config"
SEEDED = ("llama", "mistral", "phi3", "qwen2", "qwen3")
LEFT_OUT = ("transformers_version", "dtype", "torch_dtype", "architectures", "use_cache", "initializer_range")
SMALL = dict(
    hidden_size=64, n_embd=64, intermediate_size=160, ffn_dim=160, num_hidden_layers=3, n_layer=3, num_attention_heads=4,
    n_head=4, num_key_value_heads=2, vocab_size=512, max_position_embeddings=256, n_positions=256, n_ctx=256, head_dim=16,
    moe_intermediate_size=48, shared_expert_intermediate_size=96, num_experts=6, num_local_experts=6, num_experts_per_tok=2,
    sliding_window=32, model_max_length=256, word_embed_proj_dim=64, rotary_dim=8, original_max_position_embeddings=128,
    query_pre_attn_scalar=16)
HOSTILE = {
    "experts_unequal": ("mixtral", dict(num_experts_per_tok=7)),
    "experts_none": ("qwen3_moe", dict(num_experts=0, num_experts_per_tok=0)),
    "experts_many": ("qwen3_moe", dict(num_experts=2 ** 40, moe_intermediate_size=2 ** 40)),
    "experts_none_chosen": ("mixtral", dict(num_experts_per_tok=0)),
    "experts_dense": ("qwen2_moe_newer", dict(mlp_only_layers=[0, 1, 2, 3, 2 ** 40])),
    "experts_listed_oddly": ("qwen3_moe", dict(mlp_only_layers=[1, -1, "2", None])),
    "experts_no_list": ("qwen3_moe", dict(mlp_only_layers={"0": True})),
    "experts_step": ("qwen3_moe", dict(decoder_sparse_step=0)),
    "granitemoeshared": ("granitemoe", dict(model_type="granitemoeshared", shared_intermediate_size=96)),
    "experts_shared_huge": ("granitemoe", dict(model_type="granitemoeshared", shared_intermediate_size=2 ** 31)),
    "windows_short": ("gemma3_text_newer", dict(layer_types=["sliding_attention"])),
    "windows_odd": ("gemma2_newer", dict(layer_types=["sliding_attention", 3, None])),
    "softcap_zero": ("gemma2", dict(attn_logit_softcapping=0, final_logit_softcapping=-1, query_pre_attn_scalar=0)),
    "no_rope_short": ("smollm3", dict(no_rope_layers=[1])),
    "scale_nan": ("granite", dict(residual_multiplier=float("nan"), logits_scaling=0)),
    "rotary_zero": ("gpt_neox", dict(rotary_pct=0)),
    "rotary_odd": ("glm4", dict(partial_rotary_factor=0.3)),
}


def shrink(config):
    out = {}
    for key, value in config.items():
        if key in LEFT_OUT:
            continue
        if key in SMALL and value is not None:
            value = SMALL[key]
        if key.endswith("token_id") and value is not None:
            value = [1, 2, 3] if isinstance(value, list) else 2
        if isinstance(value, list):
            value = value[:3]
        out[key] = shrink(value) if isinstance(value, dict) else value
    return out


def write_seeds(rows):
    seeds = {}
    for row in rows:
        name = row["config"]["model_type"] + ("" if row["form"] == "published" else "_newer")
        if row["config"]["model_type"] not in SEEDED:
            seeds.setdefault(name, shrink(row["config"]))
    seeds |= {name: seeds[base] | changes for name, (base, changes) in HOSTILE.items()}
    for name, config in seeds.items():
        with open(os.path.join(SEEDS, name), "w", encoding="utf-8") as f:
            f.write(json.dumps(config, separators=(",", ":")))


def count(config, keys):
    if "text_config" in keys:  # of a model that also sees images, the part that we read
        config = config.text_config
        config.tie_word_embeddings = keys.get("tie_word_embeddings", config.tie_word_embeddings)
    with torch.device("meta"):
        m = transformers.AutoModelForCausalLM.from_config(config)
    return m.num_parameters()


def main():
    rows = []
    with open(OUT, "w", encoding="utf-8") as f:
        for name, published in PUBLISHED.items():
            kind = published["model_type"]
            config = transformers.AutoConfig.for_model(**{k: v for k, v in published.items()})
            config.architectures = published.get("architectures")
            newer = json.loads(config.to_json_string(use_diff=True))
            for form, keys in (("published", published), ("transformers " + transformers.__version__, newer)):
                parameters = count(config, keys)
                row = dict(model=name, form=form, parameters=parameters)
                if kind in REFUSED:
                    row["refused"] = "model_type '%s'" % kind
                rows.append(row | dict(config=keys))
                f.write(json.dumps(rows[-1], separators=(",", ":")) + "\n")
            print("%-46s %16d" % (name, parameters), flush=True)
        for name, config in PACKED.items():
            plain = {k: v for k, v in config.items() if k != "quantization_config"}
            parameters = count(transformers.AutoConfig.for_model(**plain), plain)
            f.write(json.dumps(dict(model=name, form="published", parameters=parameters, config=config), separators=(",", ":")) + "\n")
        for name, (why, config) in OTHERS.items():
            f.write(json.dumps(dict(model=name, form="published", refused=why, config=config), separators=(",", ":")) + "\n")
    write_seeds(rows)


if __name__ == "__main__":
    sys.exit(main())
