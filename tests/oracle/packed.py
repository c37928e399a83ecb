#!/usr/bin/env python3
"""Golden models whose weights AWQ, GPTQ and compressed-tensors pack. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch transformers safetensors compressed-tensors
    /tmp/oracle/bin/pip install --no-deps autoawq
    /tmp/oracle/bin/python tests/oracle/packed.py [NAME...]

As models.py, into the same folders: a tiny random model, its matrices in groups of codes, and the logits of transformers
with the codes' values, rounded to bf16. Words are packed here, from the description of the formats; autoawq and
compressed-tensors must read or write the same."""
import importlib.util
import json
import os
import shutil
import sys

sys.path.pop(0)
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

spec = importlib.util.spec_from_file_location("models", os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.py"))
sys.path.insert(0, "")
models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(models)

SIZES = dict(vocab_size=131, hidden_size=64, intermediate_size=128)
# name: (class, changes, method, bits, group, symmetric, ordered, dtype of all else)
CASES = {
    "packed-awq": ("Llama", {}, "awq", 4, 64, False, False, "float16"),
    "packed-gptq": ("Llama", {}, "gptq", 4, 32, True, False, "float16"),
    "packed-gptq-fused": ("Phi3", dict(sliding_window=None), "gptq", 4, 64, False, False, "bfloat16"),
    "packed-gptq-ordered": ("Qwen2", dict(use_sliding_window=False), "gptq", 4, 32, False, True, "float16"),
    "packed-gptq-8-rows": ("GPTNeoX", {}, "gptq", 8, 0, True, False, "float16"),
    "packed-tensors": ("Llama", {}, "compressed-tensors", 4, 32, True, False, "bfloat16"),
    "packed-tensors-8": ("Llama", {}, "compressed-tensors", 8, 32, False, False, "bfloat16"),
}


def theirs(package, path):
    """A file of an installed package, without the rest of it."""
    root = os.path.dirname(importlib.util.find_spec(package).origin)
    spec = importlib.util.spec_from_file_location("theirs_" + package, os.path.join(root, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(codes, bits, axis, turns=False):
    """Codes below 2^bits as int32 words along an axis."""
    each = 32 // bits
    codes = np.moveaxis(codes, axis, 0).astype(np.uint32)
    out = np.zeros((codes.shape[0] // each,) + codes.shape[1:], np.uint32)
    for i in range(each):
        out |= codes[[0, 2, 4, 6, 1, 3, 5, 7][i] if turns else i::each] << np.uint32(bits * i)
    return torch.from_numpy(np.ascontiguousarray(np.moveaxis(out, 0, axis)).astype(np.int32))


def quantise(w, bits, group, symmetric, order, scale_dtype):
    """Codes (N, K), zero points and scales (N, G), the group of each column, and the values."""
    n, k = w.shape
    group = group or k
    groups = order if order is not None else torch.arange(k) // group
    middle, most = 1 << (bits - 1), (1 << bits) - 1
    codes = torch.zeros(n, k, dtype=torch.int64)
    zeros = torch.full((n, k // group), middle, dtype=torch.int64)
    scales = torch.zeros(n, k // group)
    for g in range(k // group):
        part = w[:, groups == g]
        low, high = part.min(1).values.clamp(max=0), part.max(1).values.clamp(min=0)
        if symmetric:
            scale = torch.maximum(-low, high) / (middle - 1)
        else:
            scale = (high - low) / most
            zeros[:, g] = torch.clamp(torch.round(-low / scale), 1, most)
        scales[:, g] = scale.to(scale_dtype).float()
        codes[:, groups == g] = torch.clamp(torch.round(part / scales[:, g:g + 1]) + zeros[:, g:g + 1], 0, most).long()
    values = ((codes - zeros[:, groups]).float() * scales[:, groups]).bfloat16().float()
    return codes, zeros, scales.to(scale_dtype), groups, values


def pack(method, bits, codes, zeros, scales, groups, ordered, symmetric):
    """The tensors of a weight by their endings."""
    c, z = codes.numpy(), zeros.numpy()
    if method == "awq":
        out = {"qweight": words(c.T, 4, 1, True), "qzeros": words(z.T, 4, 1, True), "scales": scales.T.contiguous()}
        read = theirs("awq", "utils/packing_utils.py").dequantize_gemm(
            out["qweight"], out["qzeros"], out["scales"].float(), 4, codes.shape[1] // zeros.shape[1])
        want = (codes - zeros[:, groups]).float() * scales.float()[:, groups]
        assert torch.equal(read.T.float(), want)
        return out
    if method == "gptq":
        return {"qweight": words(c.T, bits, 0), "qzeros": words(z.T - 1, bits, 1), "scales": scales.T.contiguous(),
                "g_idx": groups.int()}
    from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
    middle = 1 << (bits - 1)
    out = {"weight_packed": words(c, bits, 1), "weight_scale": scales, "weight_shape": torch.tensor(codes.shape)}
    assert torch.equal(out["weight_packed"], pack_to_int32((codes - middle).to(torch.int8), bits))
    if not symmetric:
        out["weight_zero_point"] = words(z, bits, 0)
        assert torch.equal(out["weight_zero_point"], pack_to_int32((zeros - middle).to(torch.int8), bits, packed_dim=0))
    return out


def described(method, bits, group, symmetric, ordered):
    if method == "awq":
        return dict(quant_method="awq", bits=bits, group_size=group, zero_point=True, version="gemm")
    if method == "gptq":
        return dict(quant_method="gptq", bits=bits, group_size=group or -1, desc_act=ordered, sym=symmetric,
                    checkpoint_format="gptq")
    return dict(quant_method="compressed-tensors", format="pack-quantized", ignore=["lm_head"], config_groups=dict(
        group_0=dict(targets=["Linear"], input_activations=None, weights=dict(
            num_bits=bits, type="int", symmetric=symmetric, strategy="group", group_size=group))))


def quantised(kind, changes, method, bits, group, symmetric, ordered, dtype, seed):
    """The model with the values of its codes, in f32, and the tensors of its file."""
    model = models.cast(models.cast(models.build(kind, {**SIZES, **changes}, seed), dtype), "float32")
    tensors, scale_dtype = {}, getattr(torch, dtype)
    torch.manual_seed(seed)
    for name, p in model.named_parameters():
        name = name.replace("lm_head", "embed_out") if kind == "GPTNeoX" else name  # as files have it
        if p.dim() != 2 or "embed" in name or "lm_head" in name:
            tensors[name] = p.data.to(scale_dtype).contiguous()
            continue
        k = p.shape[1]
        order = torch.randperm(k) // group if ordered else None
        *parts, values = quantise(p.data, bits, group, symmetric, order, scale_dtype)
        p.data = values
        stem = name[:-len("weight")]
        tensors |= {stem + part: t for part, t in pack(method, bits, *parts, ordered, symmetric).items()}
        if method == "gptq" and kind == "Llama":
            tensors[stem + "bias"] = torch.zeros(p.shape[0], dtype=scale_dtype)  # as AutoGPTQ's first versions
    return model, tensors


def write(name, kind, changes, method, bits, group, symmetric, ordered, dtype):
    case = (kind, changes, method, bits, group, symmetric, ordered, dtype)
    for seed in range(1, 60):
        model, tensors = quantised(*case, seed)
        torch.manual_seed(1000 + seed)
        prompt = torch.randint(3, 131, (9,)).tolist()
        tokens, margin = models.greedy(model, prompt)
        if margin > models.MARGIN and len(set(tokens)) > 8:
            break
    else:
        sys.exit(f"{name}: no seed found")
    ids = prompt + tokens
    want = models.logits_of(model, ids)
    path = f"{models.OUT}/{name}"
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    config = json.loads(model.config.to_json_string(use_diff=False))
    config = {k: v for k, v in config.items() if k in models.SMALL or k in changes or k in (
        "model_type", "hidden_act", "rms_norm_eps", "layer_norm_eps", "rope_theta", "rope_parameters", "rotary_pct",
        "tie_word_embeddings", "use_parallel_residual", "original_max_position_embeddings", "attention_bias")}
    config["quantization_config"] = described(method, bits, group, symmetric, ordered)
    config["_name_or_path"] = "someone/tiny-" + kind.lower()
    json.dump(config, open(f"{path}/config.json", "w"), indent=1)
    save_file(tensors, f"{path}/model.safetensors", metadata=dict(format="pt"))
    want.numpy().astype("<f4").tofile(f"{path}/logits.f32")
    bf16 = models.rounded_error(kind, models.logits_of(models.cast(model, "bfloat16"), ids), want)
    json.dump(dict(prompt=prompt, greedy=tokens, vocab=want.shape[1], bf16_error=bf16, margin=margin, seed=seed,
                   torch=torch.__version__, transformers=transformers.__version__), open(f"{path}/golden.json", "w"))
    size = sum(os.path.getsize(f"{path}/{f}") for f in os.listdir(path))
    print(f"{name}: seed {seed}, margin {margin:.1e}, bf16 error {bf16:.2e}, {size} bytes", flush=True)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for case in sys.argv[1:] or CASES:
        write(case, *CASES[case])
