#!/usr/bin/env python3
"""Tiny GGUF files, written by llama.cpp's Python package. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install gguf safetensors torch
    /tmp/oracle/bin/python tests/oracle/gguf_files.py

Writes to tests/fixtures/gguf/:
    NAME.gguf.zst     the model of build/golden/NAME, names and values as llama.cpp's converter gives them;
                      packed by zstd with the bytes of the model's safetensors in front, which it repeats
    blocks.gguf       for each quantised format F a tensor of random blocks "F", and "F.values": the values that the
                      package gives them, in bf16
    mixed.gguf        a model with tensors of all formats, as Q4_K_M mixes some
    tokenizer-F.gguf  the tokenizer of tests/fixtures/tokenizers/F
Seeds of the fuzz entry go to tests/fuzz/corpus/gguf. tests/engine/gguf_test.c and tests/engine/text/gguf_test.c hold
our code against them."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.pop(0)
import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from safetensors.torch import load_file

OUT, GOLDEN = "tests/fixtures/gguf", "build/golden"
# The model, its architecture in GGUF, and whether the converter stores rows of q and k pair by pair.
MODELS = {
    "llama": ("llama", True), "llama-f32-untied-mha": ("llama", True), "llama-f16-shards": ("llama", True),
    "llama-tied-5to1": ("llama", True), "llama-linear-rope": ("llama", True), "llama3-rope": ("llama", True),
    "llama-yarn": ("llama", True), "mistral-window7": ("llama", True),
    "qwen2-tied-bias": ("qwen2", False), "qwen3": ("qwen3", False), "gemma": ("gemma", False),
    "gemma3-head256": ("gemma3", False), "phi3": ("phi3", False), "phi3-partial-longrope": ("phi3", False),
    "phi": ("phi2", False), "granite": ("granite", True), "olmo2": ("olmo2", False), "smollm3": ("smollm3", True),
    "stablelm": ("stablelm", False), "stablelm-parallel": ("stablelm", False), "starcoder2": ("starcoder2", False),
    "gpt-neox": ("gptneox", False), "cohere": ("command-r", False), "cohere2": ("cohere2", False),
    "exaone4": ("exaone4", False), "seed-oss": ("seed_oss", False), "arcee": ("arcee", True), "glm4": ("glm4", False),
}


def read_model(name):
    folder = os.path.join(GOLDEN, name)
    with open(os.path.join(folder, "config.json")) as f:
        config = json.load(f)
    tensors = {}
    for file in sorted(os.listdir(folder)):
        if file.endswith(".safetensors"):
            tensors |= load_file(os.path.join(folder, file))
    return config, tensors


def write_values(w, arch, c, tensors):
    """As convert_hf_to_gguf.py names them."""
    first = lambda *keys: next((c[k] for k in keys if c.get(k) is not None), None)
    heads, width, layers = c["num_attention_heads"], c["hidden_size"], c["num_hidden_layers"]
    head = c.get("head_dim") or width // heads
    rope = c.get("rope_parameters") or c.get("rope_scaling") or {}
    rope = rope.get("full_attention", rope)
    part = first("partial_rotary_factor", "rotary_pct") or rope.get("partial_rotary_factor")
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(width)
    w.add_block_count(layers)
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(c.get("num_key_value_heads") or heads)
    if c.get("head_dim"):
        w.add_key_length(head)
        w.add_value_length(head)
    w.add_rope_dimension_count(int(head * part) if part else head)
    w.add_rope_freq_base(rope.get("rope_theta") or first("rope_theta", "rotary_emb_base") or 10000.0)
    if c.get("rms_norm_eps"):
        w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    else:
        w.add_layer_norm_eps(first("layer_norm_eps", "norm_epsilon"))
    if c.get("sliding_window") and c.get("use_sliding_window", True):
        w.add_sliding_window(c["sliding_window"])
    if arch == "gemma3":
        w.add_uint32("gemma3.attention.sliding_window_pattern", 2)
    if arch == "exaone4":
        w.add_array("exaone4.attention.sliding_window_pattern", [t == "sliding_attention" for t in c["layer_types"]])
    if arch in ("gptneox", "stablelm"):
        w.add_parallel_residual(c.get("use_parallel_residual", True))
    if arch == "granite":
        w.add_embedding_scale(c["embedding_multiplier"])
        w.add_residual_scale(c["residual_multiplier"])
        w.add_attention_scale(c["attention_multiplier"])
        w.add_logit_scale(c["logits_scaling"])
    if arch in ("command-r", "cohere2"):
        w.add_logit_scale(c["logit_scale"])
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(kind))
        w.add_rope_scaling_factor(rope["factor"])
        if kind == "yarn":
            w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if kind == "llama3":
        tensors["rope_freqs.weight"] = torch.tensor(llama3_factors(rope, head), dtype=torch.float32)
    if kind in ("longrope", "su"):
        original = c["original_max_position_embeddings"]
        ratio = c["max_position_embeddings"] / original
        w.add_rope_scaling_orig_ctx_len(original)
        w.add_rope_scaling_attn_factors(float(np.sqrt(1 + np.log(ratio) / np.log(original))) if ratio > 1 else 1.0)
        for which in "long", "short":
            tensors["rope_factors_%s.weight" % which] = torch.tensor(rope[which + "_factor"], dtype=torch.float32)
    ends = c["eos_token_id"] if isinstance(c["eos_token_id"], list) else [c["eos_token_id"]]
    w.add_bos_token_id(c["bos_token_id"])
    w.add_eos_token_id(ends[0])
    if len(ends) > 1:
        w.add_eot_token_id(ends[1])


def llama3_factors(rope, head):
    out = []
    for i in range(head // 2):
        wave = 2 * np.pi * rope["rope_theta"] ** (2 * i / head)
        low, high = (rope["original_max_position_embeddings"] / rope[k] for k in ("low_freq_factor", "high_freq_factor"))
        smooth = (rope["original_max_position_embeddings"] / wave - rope["low_freq_factor"]) / (
            rope["high_freq_factor"] - rope["low_freq_factor"])
        out.append(1.0 if wave < high else rope["factor"] if wave > low else 1 / ((1 - smooth) / rope["factor"] + smooth))
    return out


def pair_rows(x, heads):
    """Rows of a head: i and i + half become neighbours."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def neox_qkv(x, heads):
    """Rows of all heads' q, then k, then v, instead of q, k and v of each head."""
    return x.reshape(heads, 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)


def converted(arch, paired, c, tensors):
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), c["num_hidden_layers"])
    for name, x in sorted(tensors.items()):
        if name == "lm_head.weight" and c.get("tie_word_embeddings"):
            continue
        if paired and "q_proj" in name:
            x = pair_rows(x, c["num_attention_heads"])
        if paired and "k_proj" in name:
            x = pair_rows(x, c["num_key_value_heads"])
        if "query_key_value" in name:
            x = neox_qkv(x, c["num_attention_heads"])
        if arch.startswith("gemma") and name.endswith("norm.weight"):
            x = x.float() + 1
        if x.dim() == 1:
            x = x.float()
        own = name if name.startswith("rope_") else names.get_name(name, try_suffixes=(".weight", ".bias"))
        yield own or "output.weight", x  # real models of some architectures all have a tied head


def add(w, name, x, kind=None):
    if kind is not None:
        data = gguf.quantize(x.float().numpy(), kind)
        w.add_tensor(name, data, raw_dtype=kind)
    elif x.dtype == torch.bfloat16:
        w.add_tensor(name, x.contiguous().view(torch.int16).numpy().view(np.uint8), raw_dtype=T.BF16)
    else:
        w.add_tensor(name, x.contiguous().numpy())


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_models():
    for name, (arch, paired) in MODELS.items():
        c, tensors = read_model(name)
        w = gguf.GGUFWriter(os.path.join(OUT, name + ".gguf"), arch)
        write_values(w, arch, c, tensors)
        for own, x in converted(arch, paired, c, tensors):
            add(w, own, x)
        finish(w)
        pack(name)


def pack(name):
    path, folder = os.path.join(OUT, name + ".gguf"), os.path.join(GOLDEN, name)
    with tempfile.NamedTemporaryFile() as prefix:
        for file in sorted(os.listdir(folder)):
            if file.endswith(".safetensors"):
                with open(os.path.join(folder, file), "rb") as f:
                    prefix.write(f.read())
        prefix.flush()
        subprocess.run(["zstd", "-19", "-qf", "--rm", "--patch-from", prefix.name, path, "-o", path + ".zst"], check=True)


# --- blocks

BLOCKS = [T.Q8_0, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q4_K, T.Q5_K, T.Q6_K]
SCALES = {T.Q8_0: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
          T.Q6_K: [208], T.Q3_K: [108], T.IQ4_NL: [0], T.IQ4_XS: [0]}
R = np.random.default_rng(29)
LATER = np.random.default_rng(31)  # of kinds that came later: the other files stay as they are


def random_blocks(kind, rows, columns, spread=None, R=R):
    """All bits random but the f16 scales, which are finite, with some at 0, the smallest and the largest."""
    numbers, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = R.integers(0, 256, (rows * columns // numbers, size), dtype=np.uint8)
    for at in SCALES[kind]:
        if spread is not None:
            scale = (R.standard_normal(len(blocks)) * spread).astype(np.float16)
        else:
            scale = R.integers(0, 0x7c00, len(blocks), dtype=np.uint16)
            scale |= R.integers(0, 2, len(blocks), dtype=np.uint16) << 15
            scale[:3] = [0, 1, 0x7bff][:len(scale)]
            scale = scale.view(np.float16)
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def values(blocks, kind):
    return torch.tensor(gguf.dequantize(blocks, kind)).to(torch.bfloat16)


def write_blocks():
    w = gguf.GGUFWriter(os.path.join(OUT, "blocks.gguf"), "blocks")
    for kind in BLOCKS:
        blocks = random_blocks(kind, 5, 512)
        w.add_tensor(kind.name, blocks, raw_dtype=kind)
        add(w, kind.name + ".values", values(blocks, kind))
    for kind in T.Q3_K, T.IQ4_NL, T.IQ4_XS:
        blocks = random_blocks(kind, 5, 512, R=LATER)
        w.add_tensor(kind.name, blocks, raw_dtype=kind)
        add(w, kind.name + ".values", values(blocks, kind))
    finish(w)


# --- a model of many formats: rows of 256

MIXED = dict(token_embd=(T.Q6_K, 64, 256), attn_q=(T.Q4_K, 96, 256), attn_k=(T.Q5_K, 32, 256), attn_v=(T.Q6_K, 32, 256),
             attn_output=(T.Q8_0, 256, 96), ffn_gate=(T.Q4_0, 64, 256), ffn_up=(T.Q4_1, 64, 256),
             ffn_down=(T.Q5_0, 256, 64), output=(T.Q5_1, 64, 256))


def write_mixed():
    w = gguf.GGUFWriter(os.path.join(OUT, "mixed.gguf"), "llama")
    w.add_context_length(128)
    w.add_embedding_length(256)
    w.add_block_count(1)
    w.add_feed_forward_length(64)
    w.add_head_count(3)
    w.add_head_count_kv(1)
    w.add_key_length(32)
    w.add_value_length(32)
    w.add_rope_dimension_count(32)
    w.add_layer_norm_rms_eps(1e-5)
    for name, (kind, rows, columns) in MIXED.items():
        whole = "blk.0." * (name not in ("token_embd", "output")) + name + ".weight"
        w.add_tensor(whole, random_blocks(kind, rows, columns, 0.01 / (64 if kind.name.endswith("K") else 1)),
                     raw_dtype=kind)
    for name in "blk.0.attn_norm", "blk.0.ffn_norm", "output_norm":
        add(w, name + ".weight", torch.tensor(1 + 0.1 * R.standard_normal(256).astype(np.float32)))
    finish(w)


# --- tokenizers

FAMILIES = {"llama3": "llama-bpe", "qwen2": "qwen2", "deepseek_coder": "deepseek-coder", "neox": "olmo",
            "starcoder2": "starcoder", "cohere": "command-r", "olmo2": "dbrx", "tekken": "tekken", "seed_oss": "seed-coder"}
TOKENIZERS = "tests/fixtures/tokenizers"


def write_bytes(name, pre):
    with open(os.path.join(TOKENIZERS, name, "tokenizer.json"), encoding="utf-8") as f:
        root = json.load(f)
    tokens = {i: (t, gguf.TokenType.NORMAL) for t, i in root["model"]["vocab"].items()}
    for a in root["added_tokens"]:
        tokens[a["id"]] = a["content"], gguf.TokenType.CONTROL if a["special"] else gguf.TokenType.USER_DEFINED
    tokens = [tokens.get(i, ("[PAD%d]" % i, gguf.TokenType.UNUSED)) for i in range(max(tokens) + 1)]
    first = [a["id"] for a in root["added_tokens"] if a["content"] == "<s>"][0]
    w = gguf.GGUFWriter(os.path.join(OUT, "tokenizer-%s.gguf" % name), "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(pre)
    w.add_token_list([t for t, _ in tokens])
    w.add_token_types([k for _, k in tokens])
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in root["model"]["merges"]])
    w.add_bos_token_id(first)
    w.add_add_bos_token("TemplateProcessing" in json.dumps(root["post_processor"]))
    finish(w)


def write_pieces(name):
    import sentencepiece.sentencepiece_model_pb2 as pb
    model = pb.ModelProto()
    with open(os.path.join(TOKENIZERS, name, "tokenizer.model"), "rb") as f:
        model.ParseFromString(f.read())
    w = gguf.GGUFWriter(os.path.join(OUT, "tokenizer-%s.gguf" % name), "llama")
    w.add_tokenizer_model("llama")
    w.add_tokenizer_pre("default")
    # User-defined pieces have spaces, as in the converter.
    w.add_token_list([p.piece.replace("\u2581", " ") if p.type == 4 else p.piece for p in model.pieces])
    w.add_token_scores([p.score for p in model.pieces])
    w.add_token_types([p.type for p in model.pieces])
    w.add_bos_token_id(model.trainer_spec.bos_id)
    w.add_add_space_prefix(model.normalizer_spec.add_dummy_prefix)
    w.add_uint32("tokenizer.ggml.padding_token_id", 0)
    if model.normalizer_spec.remove_extra_whitespaces:
        w.add_bool("tokenizer.ggml.remove_extra_whitespaces", True)
    finish(w)


def write_tokenizers():
    for name, pre in FAMILIES.items():
        write_bytes(name, pre)
    for name in "sp_llama", "sp_user", "sp_strict":
        write_pieces(name)


# --- seeds of the fuzz entry: all parts, small

SEEDS = "tests/fuzz/corpus/gguf"


def seed(name, arch):
    os.makedirs(SEEDS, exist_ok=True)
    return gguf.GGUFWriter(os.path.join(SEEDS, name), arch)


def write_seeds():
    w = seed("model", "llama")
    for key, n in dict(context_length=8, embedding_length=32, block_count=1, feed_forward_length=32).items():
        w.add_uint32("llama." + key, n)
    w.add_head_count(1)
    w.add_key_length(2)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_sliding_window(4)
    w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
    w.add_rope_scaling_factor(2.0)
    shapes = dict(attn_q=(T.Q8_0, 2, 32), attn_k=(T.Q4_0, 2, 32), attn_v=(T.Q4_1, 2, 32), attn_output=(T.F16, 32, 2),
                  ffn_gate=(T.Q5_0, 32, 32), ffn_up=(T.Q5_1, 32, 32), ffn_down=(T.F32, 32, 32))
    for name, (kind, rows, columns) in shapes.items():
        x = torch.tensor(R.standard_normal((rows, columns)).astype(np.float16 if kind == T.F16 else np.float32))
        add(w, "blk.0.%s.weight" % name, x, kind if kind in BLOCKS else None)
    add(w, "token_embd.weight", torch.zeros(2, 32, dtype=torch.bfloat16))
    add(w, "rope_freqs.weight", torch.ones(1))
    for name in "blk.0.attn_norm", "blk.0.ffn_norm", "output_norm":
        add(w, name + ".weight", torch.ones(32))
    finish(w)
    w = seed("large-blocks", "qwen3")
    for kind in T.Q4_K, T.Q5_K, T.Q6_K:
        w.add_tensor("blk.0.%s.weight" % kind.name, random_blocks(kind, 1, 256), raw_dtype=kind)
    finish(w)
    few = ["a", "b", "ab", "\u0120", "1", "<s>", "<x>", "[PAD7]"]
    kinds = [1, 1, 1, 1, 1, 3, 4, 5]
    for pre in FAMILIES.values():
        w = seed("bytes-" + pre, "llama")
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
        w.add_token_list(few)
        w.add_token_types(kinds)
        w.add_token_merges(["a b"])
        w.add_bos_token_id(5)
        w.add_add_bos_token(True)
        w.add_eos_token_id(5)
        w.add_add_eos_token(True)
        finish(w)
    w = seed("pieces", "gemma3")
    w.add_tokenizer_model("llama")
    w.add_token_list(["<unk>", "<s>", "<0x41>", "\u2581", "a", "\u2581a", "  ", "[PAD7]"])
    w.add_token_scores([0.0, 0.0, 0.0, -2.0, -3.0, -1.0, 0.0, 0.0])
    w.add_token_types([2, 3, 6, 1, 1, 1, 4, 5])
    w.add_add_space_prefix(True)
    finish(w)
    w = seed("values", "gpt2")
    for i, put in enumerate((w.add_uint8, w.add_int8, w.add_uint16, w.add_int16, w.add_uint32, w.add_int32, w.add_float32,
                             w.add_uint64, w.add_int64, w.add_float64)):
        put("value.%d" % i, i)
    w.add_bool("value.true", True)
    w.add_array("value.list", [1, 2, 3])
    w.add_array("value.reals", [1.0, 1.0])
    finish(w)


def main():
    os.makedirs(OUT, exist_ok=True)
    write_models()
    write_blocks()
    write_mixed()
    write_tokenizers()
    write_seeds()


if __name__ == "__main__":
    main()
