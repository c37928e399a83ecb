#!/usr/bin/env python3
"""Golden values for the forward pass, from Hugging Face transformers. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch transformers safetensors
    /tmp/oracle/bin/python tests/oracle/models.py [NAME...]

For each row of CASES it writes build/golden/NAME/: a tiny random model as transformers saves it
(config.json, model.safetensors or shards), golden.json (prompt, 64 greedy tokens of the f32 model, the error of
transformers' own bf16, and of its f16 where weights are, against its f32, versions) and logits.f32 (little-endian, (positions, vocab), the f32 model's
logits over prompt and greedy tokens). tests/engine/golden_test.c holds our engine against them. Into the tree they go packed:

    build/tests/golden pack build/golden tests/fixtures/golden

A seed is searched for which no greedy choice is closer than MARGIN of the row's largest logit, so that equal
tokens can be demanded of any correct f32 implementation.
"""
import json
import os
import shutil
import sys

sys.path.pop(0)  # tokenizers.py beside this file has the name of a package that transformers wants
import torch
import transformers

OUT = os.environ.get("ORACLE_OUT", "build/golden")  # elsewhere: for a long run
GREEDY, MARGIN = int(os.environ.get("ORACLE_GREEDY", 64)), 2e-4
SMALL = dict(vocab_size=259, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)

# name: (config class, changes to SMALL, weights, shard size or None, prompt length)
CASES = {
    "llama": ("Llama", {}, "bfloat16", None, 9),
    "llama-f32-untied-mha": ("Llama", dict(num_key_value_heads=4, rms_norm_eps=1e-5, rope_theta=1e6), "float32", None, 9),
    "llama-f16-shards": ("Llama", dict(num_hidden_layers=3), "float16", "24KB", 9),
    "llama-tied-5to1": ("Llama", dict(hidden_size=40, num_attention_heads=5, num_key_value_heads=1,
                                      tie_word_embeddings=True), "bfloat16", None, 1),
    "llama-head80": ("Llama", dict(head_dim=80, num_attention_heads=2, num_key_value_heads=1), "bfloat16", None, 9),
    "llama-linear-rope": ("Llama", dict(rope_scaling=dict(rope_type="linear", factor=4.0)), "bfloat16", None, 30),
    "llama3-rope": ("Llama", dict(rope_theta=500000.0, eos_token_id=[2, 5], max_position_embeddings=256,
                                  rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                                                    high_freq_factor=4.0, original_max_position_embeddings=64)),
                    "bfloat16", None, 30),
    "mistral-window7": ("Mistral", dict(sliding_window=7), "bfloat16", None, 40),
    "mistral-nowindow": ("Mistral", dict(sliding_window=None), "bfloat16", None, 40),
    "phi3": ("Phi3", dict(sliding_window=20), "bfloat16", None, 40),
    "qwen2-tied-bias": ("Qwen2", dict(tie_word_embeddings=True, use_sliding_window=False), "bfloat16", None, 9),
    "qwen3": ("Qwen3", dict(head_dim=8, use_sliding_window=False), "bfloat16", None, 9),
    "qwen3-tied-head24": ("Qwen3", dict(head_dim=24, tie_word_embeddings=True, use_sliding_window=False), "bfloat16",
                          None, 9),
    # In its original context, as long as sessions of the tests are.
    "phi3-longrope-short": ("Phi3", dict(sliding_window=None, max_position_embeddings=512,
                                         original_max_position_embeddings=128,
                                         rope_scaling=dict(type="longrope", short_factor=[1.0, 1.2, 1.5, 2.0],
                                                           long_factor=[1.0, 3.0, 5.0, 9.0])), "bfloat16", None, 9),
    # As Phi-4-mini; the prompt is longer than the original context, so that transformers, too, is on the long list.
    "phi3-partial-longrope": ("Phi3", dict(hidden_size=48, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
                                           tie_word_embeddings=True, sliding_window=300, max_position_embeddings=160,
                                           original_max_position_embeddings=40, partial_rotary_factor=0.75,
                                           rope_scaling=dict(type="longrope", short_factor=[1.0] * 6,
                                                             long_factor=[1.0, 1.1, 1.3, 1.7, 2.5, 4.0])),
                              "bfloat16", None, 41),
    "granite": ("Granite", dict(embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.25,
                                logits_scaling=3.0), "bfloat16", None, 9),
    "olmo2": ("Olmo2", dict(eos_token_id=2), "bfloat16", None, 9),
    "olmo3": ("Olmo3", dict(eos_token_id=2, sliding_window=11, num_hidden_layers=4, vocab_size=131,
                            rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=5e5),
                                                 full_attention=dict(rope_type="yarn", rope_theta=5e5, factor=4.0,
                                                                     original_max_position_embeddings=32))),
              "bfloat16", None, 40),
    "smollm3": ("SmolLM3", dict(num_hidden_layers=4, no_rope_layer_interval=4), "bfloat16", None, 9),
    "llama-biases": ("Llama", dict(attention_bias=True, mlp_bias=True, hidden_act="gelu"), "bfloat16", None, 9),
    "llama-yarn": ("Llama", dict(head_dim=24, rope_scaling=dict(rope_type="yarn", factor=4.0, beta_fast=8.0,
                                                                original_max_position_embeddings=32)),
                   "bfloat16", None, 30),
    "qwen3-mixed": ("Qwen3", dict(head_dim=8, use_sliding_window=True, sliding_window=12, max_window_layers=1,
                                  num_hidden_layers=3), "bfloat16", None, 40),
    "gemma": ("Gemma", dict(head_dim=16, tie_word_embeddings=False), "bfloat16", None, 9),
    "gemma2": ("Gemma2", dict(head_dim=16, query_pre_attn_scalar=24, sliding_window=11, attn_logit_softcapping=4.0,
                              final_logit_softcapping=12.0, num_hidden_layers=3), "bfloat16", None, 40),
    "gemma3": ("Gemma3Text", dict(head_dim=24, query_pre_attn_scalar=20, sliding_window=13, num_hidden_layers=3,
                                  sliding_window_pattern=2), "bfloat16", None, 40),
    "gemma3-head256": ("Gemma3Text", dict(head_dim=256, hidden_size=24, num_attention_heads=2, num_key_value_heads=1,
                                          intermediate_size=40, sliding_window=13, num_hidden_layers=2,
                                          sliding_window_pattern=2), "bfloat16", None, 40),
    "gemma3-sees": ("Gemma3", dict(text_config=dict(
        head_dim=12, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=33, vocab_size=131,
        max_position_embeddings=256, tie_word_embeddings=False, query_pre_attn_scalar=9, sliding_window=9, num_hidden_layers=3, initializer_range=0.15,
        rope_parameters=dict(sliding_attention=dict(rope_type="default", rope_theta=1e4),
                             full_attention=dict(rope_type="linear", rope_theta=1e6, factor=4.0)),
        layer_types=["sliding_attention", "full_attention", "sliding_attention"]), vision_config=dict(
            model_type="siglip_vision_model", hidden_size=8, image_size=28, intermediate_size=8, num_attention_heads=1,
            num_hidden_layers=1, patch_size=14, vision_use_head=False), mm_tokens_per_image=1,
        image_token_index=130, tie_word_embeddings=False), "bfloat16", None, 30),
    "mistral3-sees": ("Mistral3", dict(text_config=dict(
        model_type="mistral", head_dim=14, hidden_size=36, num_attention_heads=6, num_key_value_heads=2, intermediate_size=50,
        vocab_size=131, max_position_embeddings=256, num_hidden_layers=2, initializer_range=0.15, sliding_window=None),
        vision_config=dict(model_type="pixtral", hidden_size=8, image_size=28, intermediate_size=8, num_attention_heads=1,
                           head_dim=8, num_hidden_layers=1, patch_size=14), image_token_index=10), "bfloat16", None, 9),
    "glm": ("Glm", dict(head_dim=16), "bfloat16", None, 9),
    "glm4": ("Glm4", dict(head_dim=16), "bfloat16", None, 9),
    "starcoder2": ("Starcoder2", dict(sliding_window=14), "bfloat16", None, 40),
    "gpt-neox": ("GPTNeoX", dict(), "bfloat16", None, 9),
    "gpt-neox-sequential": ("GPTNeoX", dict(use_parallel_residual=False, hidden_size=40, num_attention_heads=5,
                                            rotary_pct=1.0), "bfloat16", None, 9),
    "gpt2": ("GPT2", dict(), "bfloat16", None, 9),
    "gpt2-base-names": ("GPT2", dict(hidden_size=40, num_attention_heads=5, n_inner=72, vocab_size=131, base=True), "float32",
                        None, 9),
    "gpt2-unscaled": ("GPT2", dict(hidden_size=20, num_attention_heads=2, n_inner=33, num_hidden_layers=3, vocab_size=131,
                                   scale_attn_weights=False), "bfloat16", None, 17),
    "phi": ("Phi", dict(), "bfloat16", None, 9),
    "stablelm": ("StableLm", dict(use_qkv_bias=True), "bfloat16", None, 9),
    "stablelm-parallel": ("StableLm", dict(use_parallel_residual=True), "bfloat16", None, 9),
    "stablelm-12b": ("StableLm", dict(use_parallel_residual=True, qk_layernorm=True, hidden_size=80, num_attention_heads=5,
                                      num_key_value_heads=1, intermediate_size=38, vocab_size=131), "bfloat16", None, 9),
    "cohere-plus": ("Cohere", dict(logit_scale=0.5, use_qk_norm=True, hidden_size=60, num_attention_heads=6,
                                   num_key_value_heads=3, intermediate_size=38, vocab_size=131), "bfloat16", None, 9),
    "cohere": ("Cohere", dict(logit_scale=0.5), "bfloat16", None, 9),
    "cohere2": ("Cohere2", dict(sliding_window=12, num_hidden_layers=4, logit_scale=0.5), "bfloat16", None, 40),
    "exaone4": ("Exaone4", dict(sliding_window=12, num_hidden_layers=4), "bfloat16", None, 40),
    "seed-oss": ("SeedOss", dict(head_dim=12), "bfloat16", None, 9),
    "arcee": ("Arcee", dict(), "bfloat16", None, 9),
    "mixtral": ("Mixtral", dict(num_local_experts=5, num_experts_per_tok=2), "bfloat16", None, 9),
    "qwen2-moe": ("Qwen2Moe", dict(num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20, num_hidden_layers=3,
                                   shared_expert_intermediate_size=28, mlp_only_layers=[1]), "bfloat16", None, 9),
    "qwen3-moe": ("Qwen3Moe", dict(num_experts=9, num_experts_per_tok=3, moe_intermediate_size=24, head_dim=12,
                                   norm_topk_prob=True, decoder_sparse_step=2, num_hidden_layers=3), "bfloat16", None, 9),
    "olmoe": ("Olmoe", dict(num_experts=8, num_experts_per_tok=3, intermediate_size=20), "bfloat16", None, 9),
    "granite-moe": ("GraniteMoe", dict(num_local_experts=6, num_experts_per_tok=2, intermediate_size=28,
                                       embedding_multiplier=1.5, residual_multiplier=0.7, attention_multiplier=0.25,
                                       logits_scaling=3.0), "bfloat16", None, 9),
    "granite-moe-shared": ("GraniteMoeShared", dict(num_local_experts=6, num_experts_per_tok=2, intermediate_size=28,
                                                    shared_intermediate_size=36, residual_multiplier=0.7), "bfloat16", None, 9),
}

# More odd shapes, for runs elsewhere (ORACLE_OUT, with ORACLE_GREEDY=200), by name.
MORE = {
    "mixtral-b": ("Mixtral", dict(max_position_embeddings=256, num_local_experts=3, num_experts_per_tok=3, hidden_size=40, num_attention_heads=5,
                                  num_key_value_heads=1, sliding_window=19), "float32", "60KB", 9),
    "mixtral-c": ("Mixtral", dict(max_position_embeddings=256, num_local_experts=17, num_experts_per_tok=1, head_dim=20, intermediate_size=33,
                                  tie_word_embeddings=True), "bfloat16", None, 9),
    "qwen2-moe-b": ("Qwen2Moe", dict(max_position_embeddings=256, num_experts=11, num_experts_per_tok=4, moe_intermediate_size=9, norm_topk_prob=True,
                                     shared_expert_intermediate_size=50, qkv_bias=False), "float32", None, 9),
    "qwen2-moe-c": ("Qwen2Moe", dict(max_position_embeddings=256, num_experts=4, num_experts_per_tok=1, moe_intermediate_size=40, hidden_size=60,
                                     num_attention_heads=6, num_key_value_heads=3, decoder_sparse_step=2,
                                     shared_expert_intermediate_size=7, num_hidden_layers=4), "bfloat16", None, 9),
    "qwen3-moe-b": ("Qwen3Moe", dict(max_position_embeddings=256, num_experts=33, num_experts_per_tok=8, moe_intermediate_size=11, head_dim=8,
                                     mlp_only_layers=[0]), "float32", None, 9),
    "qwen3-moe-c": ("Qwen3Moe", dict(max_position_embeddings=256, num_experts=5, num_experts_per_tok=4, moe_intermediate_size=56, head_dim=24,
                                     hidden_size=36, norm_topk_prob=True, tie_word_embeddings=True), "bfloat16", None, 9),
    "olmoe-b": ("Olmoe", dict(max_position_embeddings=256, num_experts=13, num_experts_per_tok=8, intermediate_size=17, norm_topk_prob=True,
                              num_key_value_heads=1), "float32", None, 9),
    "olmoe-c": ("Olmoe", dict(max_position_embeddings=256, num_experts=2, num_experts_per_tok=1, hidden_size=48, num_attention_heads=3,
                              num_key_value_heads=3), "bfloat16", None, 9),
    "granite-moe-b": ("GraniteMoe", dict(max_position_embeddings=256, num_local_experts=9, num_experts_per_tok=5, intermediate_size=15,
                                         hidden_size=40, num_attention_heads=5, num_key_value_heads=5), "float32", None, 9),
    "granite-moe-c": ("GraniteMoe", dict(max_position_embeddings=256, num_local_experts=3, num_experts_per_tok=1, num_hidden_layers=3,
                                         tie_word_embeddings=True, logits_scaling=2.0), "bfloat16", None, 9),
    "granite-moe-shared-b": ("GraniteMoeShared", dict(max_position_embeddings=256, num_local_experts=4, num_experts_per_tok=4, intermediate_size=11,
                                                      shared_intermediate_size=90), "float32", None, 9),
    "granite-moe-shared-c": ("GraniteMoeShared", dict(max_position_embeddings=256, num_local_experts=7, num_experts_per_tok=2, hidden_size=60,
                                                      num_attention_heads=6, num_key_value_heads=3,
                                                      shared_intermediate_size=0), "bfloat16", None, 9),
}

# Two odd shapes of each dense family: NAME-odd and NAME-odd2.
ODD = {"odd": dict(vocab_size=67, hidden_size=48, num_attention_heads=6, num_key_value_heads=2, intermediate_size=46,
                   num_hidden_layers=3, max_position_embeddings=256),
       "odd2": dict(vocab_size=67, hidden_size=40, num_attention_heads=5, num_key_value_heads=1, intermediate_size=61,
                    num_hidden_layers=2, max_position_embeddings=256)}
OWN_HEADS = {"gemma": 18, "gemma2": 12, "gemma3": 10, "glm": 12, "glm4": 20, "seed-oss": 14, "cohere2": 10}
for family in ["gemma", "gemma2", "gemma3", "glm", "glm4", "starcoder2", "gpt-neox", "phi", "stablelm", "cohere", "cohere2",
               "exaone4", "seed-oss", "arcee", "granite", "olmo2", "olmo3", "smollm3", "gpt2"]:
    kind, changes, *rest = CASES[family]
    for ending, sizes in ODD.items():
        heads = dict(head_dim=OWN_HEADS[family] - 4 * (ending == "odd2")) if family in OWN_HEADS else {}
        MORE[f"{family}-{ending}"] = (kind, changes | sizes | heads, *rest)


def build(kind, changes, seed):
    torch.manual_seed(seed)
    keys = {**SMALL, **changes, "initializer_range": 0.15}
    keys.pop("base", None)
    if "text_config" in keys:
        keys = {k: v for k, v in keys.items() if k not in SMALL}
    config = getattr(transformers, kind + "Config")(**keys)
    config._experts_implementation = "eager"  # others need rows of multiples of 16 bytes
    kind = transformers.AutoModelForImageTextToText if "vision_config" in keys else transformers.AutoModelForCausalLM
    model = kind.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if ("norm" in name or ".ln_" in name) and name.endswith("weight"):
                p.copy_((0 if "gemma" in config.model_type else 1) + 0.2 * torch.randn_like(p))
            elif name.endswith("bias"):
                p.copy_(0.3 * torch.randn_like(p))
            elif "wpe" in name:
                p.mul_(5)  # for more than a few tokens
    return model


def cast(model, dtype):
    """Parameters alone: the rotary frequencies stay f32, as they do when transformers loads a model."""
    for p in model.parameters():
        p.data = p.data.to(getattr(torch, dtype))
    return model


def logits_of(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float()


def greedy(model, prompt):
    """Greedy tokens and the smallest relative margin met; no cache, so a row is the plain forward pass."""
    ids, margin = list(prompt), 1.0
    for _ in range(GREEDY):
        row = logits_of(model, ids)[-1]
        top = torch.topk(row, 2)
        margin = min(margin, float((top.values[0] - top.values[1]) / row.abs().max()))
        ids.append(int(top.indices[0]))
    return ids[len(prompt):], margin


def error(got, want):
    """The largest difference of a position, relative to the position's largest logit."""
    return errors(got, want).max().item()


def errors(got, want):
    return (got - want).abs().max(dim=1).values / want.abs().max(dim=1).values


def rounded_error(kind, got, want):
    """With experts the lower quartile: where two are nearly equal, roundings choose another, which later positions see."""
    return errors(got, want).sort().values[len(got) // 4].item() if "oe" in kind or kind == "Mixtral" else error(got, want)


def write(name, kind, changes, dtype, shard, prompt_length):
    for seed in range(1, 60):
        model = cast(cast(build(kind, changes, seed), dtype), "float32")  # the values that are stored
        torch.manual_seed(1000 + seed)
        prompt = torch.randint(3, model.config.get_text_config().vocab_size, (prompt_length,)).tolist()
        tokens, margin = greedy(model, prompt)
        if margin > MARGIN and len(set(tokens)) > 8:
            break
    else:
        sys.exit(f"{name}: no seed found")
    ids = prompt + tokens
    want = logits_of(model, ids)
    bf16 = rounded_error(kind, logits_of(cast(cast(build(kind, changes, seed), dtype), "bfloat16"), ids), want)
    f16 = error(logits_of(cast(build(kind, changes, seed), dtype), ids), want) if dtype == "float16" else 0
    path = f"{OUT}/{name}"
    shutil.rmtree(path, ignore_errors=True)
    model = cast(build(kind, changes, seed), dtype)
    (model.base_model if "base" in changes else model).save_pretrained(path, max_shard_size=shard or "50GB")
    want.numpy().astype("<f4").tofile(f"{path}/logits.f32")
    json.dump(dict(prompt=prompt, greedy=tokens, vocab=want.shape[1], bf16_error=bf16, **(dict(f16_error=f16) if f16 else {}), margin=margin, seed=seed,
                   torch=torch.__version__, transformers=transformers.__version__), open(f"{path}/golden.json", "w"))
    size = sum(os.path.getsize(f"{path}/{f}") for f in os.listdir(path))
    print(f"{name}: seed {seed}, margin {margin:.1e}, bf16 error {bf16:.2e}, {size} bytes", flush=True)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for case in sys.argv[1:] or CASES:
        write(case, *(CASES | MORE)[case])
