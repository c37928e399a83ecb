#!/usr/bin/env python3
"""Golden values for EAGLE's drafts and MTP layers, from networks written here with PyTorch. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch numpy
    /tmp/oracle/bin/python tests/oracle/eagle.py [NAME...]

For each row of CASES it writes tests/fixtures/eagle/NAME/: a random draft for the target build/golden/llama as its
authors store one (config.json, model.safetensors), states.f32 (the given rows), case.json (tokens, parents of the rows after
the given ones, versions) and logits.f32 (little-endian, (rows, vocabulary of the draft)). tests/engine/eagle_golden_test.c
holds our engine against them.

A row is a token, a hidden state (given, or the output of the row's parent) and a position. The given rows are a chain; the
others are a tree below its last row. A row sees its ancestors and itself.
"""
import json
import math
import os
import shutil
import struct
import sys

sys.path.pop(0)  # tokenizers.py beside this file has the name of a package
import torch

OUT, TARGET = "tests/fixtures/eagle", "build/golden/llama"
GIVEN = 7
TREE = [-1, -1, -1, 0, 0, 1, 3, 3, 6, 8]  # parents: -1 is the last given row
SHAPE = dict(model_type="llama", num_hidden_layers=1, hidden_size=32, intermediate_size=56, num_attention_heads=4,
             num_key_value_heads=2, vocab_size=259, max_position_embeddings=64, rms_norm_eps=1e-6)
EAGLE3 = dict(architectures=["LlamaForCausalLMEagle3"], eagle_aux_hidden_state_layer_ids=[1, 1, 1])
DTYPES = {"F32": (torch.float32, 4), "BF16": (torch.bfloat16, 2), "F16": (torch.float16, 2), "I64": (torch.int64, 8),
          "BOOL": (torch.bool, 1)}

# name: (version (of EAGLE, or mtp), changes to SHAPE, root keys, weights, names of the layer, own embedding, t2d)
CASES = {
    "eagle": (1, {}, {}, "BF16", "layers.0", True, False),
    "eagle-no-bias": (1, dict(num_key_value_heads=4, rope_theta=1e6, bias=False), {}, "F32", "layers.0", False, False),
    "eagle-qkv-bias": (1, dict(qkv_bias=True, rms_norm_eps=1e-5), {}, "F16", "layers.0", True, False),
    "eagle3": (3, dict(draft_vocab_size=61, head_dim=12), EAGLE3, "BF16", "midlayer", False, True),
    "eagle3-whole": (3, dict(rope_theta=5e5), EAGLE3, "F32", "midlayer", True, False),
    "eagle3-speculators": (3, dict(head_dim=16), dict(speculators_model_type="eagle3", draft_vocab_size=40,
                                                      norm_before_residual=True, target_hidden_size=32,
                                                      eagle_aux_hidden_state_layer_ids=[1, 1]), "BF16", "layers.0", True, True),
    "eagle3-normed": (3, dict(rms_norm_eps=1e-5), dict(speculators_model_type="eagle3", draft_vocab_size=50, norm_before_fc=True,
                                                       norm_output=True, eagle_aux_hidden_state_layer_ids=[1, 1, 1]),
                      "F32", "layers.0", False, True),
    "eagle3-deepspec": (3, dict(model_type="qwen3", head_dim=16, rope_theta=1e6, tie_word_embeddings=False),
                        dict(architectures=["Qwen3Eagle3Model"], target_layer_ids=[0] * 5, num_target_layers=2, ttt_length=7,
                             step_loss_decay=0.8, draft_num_hidden_layers=1), "BF16", "layers.0", True, False),
    "eagle3-fc-norm": (3, dict(model_type="qwen3", head_dim=10), dict(speculators_model_type="eagle3", draft_vocab_size=50,
                                                                      fc_norm=True, norm_output=True,
                                                                      eagle_aux_hidden_state_layer_ids=[1, 1]),
                       "F16", "layers.0", False, True),
    "peagle": (3, dict(num_hidden_layers=3, head_dim=12), dict(speculators_model_type="peagle", draft_vocab_size=50,
                                                               mask_token_id=7, norm_before_residual=True,
                                                               eagle_aux_hidden_state_layer_ids=[1, 1, 1]),
               "BF16", "layers.0", True, True),
    "mtp": ("mtp", dict(model_type="mimo", num_hidden_layers=2, head_dim=10, rope_theta=6.4e5, attention_bias=True,
                        tie_word_embeddings=False, num_nextn_predict_layers=1), dict(architectures=["MiMoForCausalLM"]),
            "BF16", "model.mtp_layers.0", False, False),
}
MASKS = 3  # given rows at the end that are masks, where there are any


# --- files

def read_safetensors(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = f.read()
    header.pop("__metadata__", None)
    return {n: torch.frombuffer(bytearray(data[slice(*x["data_offsets"])]), dtype=DTYPES[x["dtype"]][0]).reshape(x["shape"])
            for n, x in header.items()}


def write_safetensors(path, tensors):
    header, at, names = {"__metadata__": {"format": "pt"}}, 0, {v[0]: k for k, v in DTYPES.items()}
    for name, t in tensors.items():
        size = t.numel() * t.element_size()
        header[name] = dict(dtype=names[t.dtype], shape=list(t.shape), data_offsets=[at, at + size])
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()  # the bytes that tools/convert-adapter writes
    text += b" " * (-(8 + len(text)) % 64)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(bytes(t.contiguous().view(torch.uint8).flatten().tolist()))


# --- the network

def norm(x, weight, epsilon):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def turn(x, position, theta):
    """x: (heads, size), its halves rotated by the position."""
    half = x.shape[1] // 2
    angle = position * theta ** (-torch.arange(half, dtype=torch.float64) / half)
    cosine, sine = angle.cos().float(), angle.sin().float()
    return torch.cat([x[:, :half] * cosine - x[:, half:] * sine, x[:, half:] * cosine + x[:, :half] * sine], 1)


class Draft:
    def __init__(self, version, shape, weights, layer, target, root):
        self.version, self.s, self.w, self.layer, self.root = version, shape, weights, layer, root
        self.embedding = weights.get("embed_tokens.weight", target["model.embed_tokens.weight"])
        self.head = weights.get("lm_head.weight", target["lm_head.weight"])
        self.size = shape.get("head_dim", shape["hidden_size"] // shape["num_attention_heads"])
        self.count, self.at = 1 if version == "mtp" else shape["num_hidden_layers"], 0  # the layer that runs
        self.keys, self.values, self.outputs = [[] for _ in range(self.count)], [[] for _ in range(self.count)], []

    def weight(self, name, kind="weight"):
        layer = f"layers.{self.at}" if self.at else self.layer
        return self.w.get(f"{layer}.{name}.{kind}")

    def project(self, name, x):
        bias = self.weight(name, "bias")
        return self.weight(name) @ x + (bias if bias is not None else 0)

    def normed(self, which, heads):
        weight = self.weight(f"self_attn.{which}_norm")
        return heads if weight is None else norm(heads, weight, self.s["rms_norm_eps"])

    def attend(self, x, position, seen):
        heads, groups, size = self.s["num_attention_heads"], self.s["num_key_value_heads"], self.size
        theta = self.s.get("rope_theta", 10000.0)
        q = turn(self.normed("q", self.project("self_attn.q_proj", x).reshape(heads, size)), position, theta)
        keys, values = self.keys[self.at], self.values[self.at]
        keys.append(turn(self.normed("k", self.project("self_attn.k_proj", x).reshape(groups, size)), position, theta))
        values.append(self.project("self_attn.v_proj", x).reshape(groups, size))
        out = []
        for h in range(heads):
            g = h // (heads // groups)
            k, v = torch.stack([keys[i][g] for i in seen]), torch.stack([values[i][g] for i in seen])
            out.append(torch.softmax(k @ q[h] / math.sqrt(size), 0) @ v)
        return self.weight("self_attn.o_proj") @ torch.cat(out)

    def mlp(self, x):
        gate, up = self.weight("mlp.gate_proj") @ x, self.weight("mlp.up_proj") @ x
        return self.weight("mlp.down_proj") @ (gate * torch.sigmoid(gate) * up)

    def row(self, token, state, given, position, seen):
        """Adds a row, which sees the earlier rows `seen` and itself; returns its logits."""
        epsilon, e = self.s["rms_norm_eps"], self.embedding[token]
        seen = seen + [len(self.outputs)]
        if self.version == 1:
            x = self.w["fc.weight"] @ torch.cat([e, state]) + self.w.get("fc.bias", 0)
            x = x + self.attend(x, position, seen)
        elif self.version == "mtp":
            x = self.weight("input_proj") @ torch.cat([norm(state, self.weight("hidden_layernorm"), epsilon),
                                                       norm(e, self.weight("token_layernorm"), epsilon)])
            x = x + self.attend(norm(x, self.weight("input_layernorm"), epsilon), position, seen)
        else:
            if given and self.root.get("norm_before_fc"):
                state = norm(state, self.w["input_norm.weight"], epsilon)
            if given and self.root.get("fc_norm"):
                state = torch.cat([norm(part, self.w[f"fc_norm.{i}.weight"], epsilon)
                                   for i, part in enumerate(state.split(len(e)))])
            h = self.w["fc.weight"] @ state if given else state
            normed = norm(h, self.weight("hidden_norm"), epsilon)
            pair = torch.cat([norm(e, self.weight("input_layernorm"), epsilon), normed])
            x = (normed if self.root.get("norm_before_residual") else h) + self.attend(pair, position, seen)
        x = x + self.mlp(norm(x, self.weight("post_attention_layernorm"), epsilon))
        for self.at in range(1, self.count):  # plain layers
            x = x + self.attend(norm(x, self.weight("input_layernorm"), epsilon), position, seen)
            x = x + self.mlp(norm(x, self.weight("post_attention_layernorm"), epsilon))
        self.at = 0
        last = self.weight("final_layernorm") if self.version == "mtp" else self.w.get("norm.weight")
        out = x if self.version == 1 else norm(x, last, epsilon)
        self.outputs.append(out if self.root.get("norm_output") else x)
        return self.head @ out


# --- cases

def random_weights(version, s, states, layer, embedding, dtype):
    d, m, size = s["hidden_size"], s["intermediate_size"], s.get("head_dim", s["hidden_size"] // s["num_attention_heads"])
    q, k, vocab = s["num_attention_heads"] * size, s["num_key_value_heads"] * size, s["vocab_size"]
    inner = 2 * d if version == 3 else d
    shapes = {"fc.weight": (d, 2 * d if version == 1 else states * d)}
    if version == "mtp":
        shapes = {f"{layer}.input_proj.weight": (d, 2 * d)}
        shapes |= {f"{layer}.{n}_layernorm.weight": (d,) for n in ("token", "hidden", "input", "final")}
    if version == 1 and s.get("bias", True):
        shapes["fc.bias"] = (d,)
    for name, shape in {"self_attn.q_proj": (q, inner), "self_attn.k_proj": (k, inner), "self_attn.v_proj": (k, inner),
                        "self_attn.o_proj": (d, q), "mlp.gate_proj": (m, d), "mlp.up_proj": (m, d), "mlp.down_proj": (d, m),
                        "post_attention_layernorm": (d,)}.items():
        shapes[f"{layer}.{name}.weight"] = shape
        if (s.get("qkv_bias") or s.get("attention_bias")) and name[-6:] in ("q_proj", "k_proj", "v_proj"):
            shapes[f"{layer}.{name}.bias"] = (shape[0],)
    if version == 3:
        shapes |= {f"{layer}.hidden_norm.weight": (d,), f"{layer}.input_layernorm.weight": (d,), "norm.weight": (d,),
                   "lm_head.weight": (s["draft_vocab"], d)}
    for i in range(1, s["num_hidden_layers"] if version == 3 else 1):
        shapes |= {f"layers.{i}.{n[len(layer) + 1:]}": (x[0], d) if n[-13:-7] in ("q_proj", "k_proj", "v_proj") else x
                   for n, x in list(shapes.items()) if n.startswith(layer) and "hidden_norm" not in n}
    if s.get("mask_token_id"):
        shapes["mask_hidden"] = (1, 1, states * d)
    if s.get("norm_before_fc"):
        shapes["input_norm.weight"] = (states * d,)
    if s.get("fc_norm"):
        shapes |= {f"fc_norm.{i}.weight": (d,) for i in range(states)}
    if s["model_type"] == "qwen3":
        shapes |= {f"{layer}.self_attn.{which}_norm.weight": (size,) for which in "qk"}
    if embedding:
        shapes["embed_tokens.weight"] = (vocab, d)
    out = {}
    for name, shape in shapes.items():
        x = torch.randn(shape)
        is_norm = "norm" in name
        spread = 1 if name == "mask_hidden" else 0.2 if len(shape) == 1 else 1 / math.sqrt(shape[1]) if name != "embed_tokens.weight" else 1
        out[name] = (x * spread + (1 if is_norm else 0)).to(DTYPES[dtype][0])
    return out


def maps(count, vocab):
    ids = torch.randperm(vocab)[:count].sort().values
    mask = torch.zeros(vocab, dtype=torch.bool)
    mask[ids] = True
    return {"d2t": ids - torch.arange(count), "t2d": mask}


def write(name, version, changes, root, dtype, layer, embedding, mapped):
    torch.manual_seed(sum(map(ord, name)))
    shape = {**SHAPE, **changes}
    states = len(root.get("eagle_aux_hidden_state_layer_ids", root.get("target_layer_ids", [0])))
    vocab = root.get("draft_vocab_size", shape.get("draft_vocab_size", shape["vocab_size"]))
    stored = random_weights(version, {**shape, **root, "draft_vocab": vocab}, states, layer, embedding, dtype)
    weights = {n: t.float() for n, t in stored.items()}
    if mapped:
        stored |= maps(vocab, shape["vocab_size"])
    target = {n: t.float() for n, t in read_safetensors(f"{TARGET}/model.safetensors").items()}
    draft = Draft(version, shape, weights, layer, target, root)
    rows = torch.randn(GIVEN, states * shape["hidden_size"])
    tokens = torch.randint(0, shape["vocab_size"], (GIVEN + len(TREE),)).tolist()
    if "mask_hidden" in weights:
        rows[-MASKS:] = weights["mask_hidden"].flatten()
        tokens[GIVEN - MASKS:GIVEN] = [root["mask_token_id"]] * MASKS
    logits, path = [], {-1: list(range(GIVEN))}
    for i in range(GIVEN):
        logits.append(draft.row(tokens[i], rows[i], True, i, list(range(i))))
    for i, parent in enumerate(TREE):
        seen, number = path[parent], GIVEN + i
        logits.append(draft.row(tokens[number], draft.outputs[seen[-1]], False, len(seen), seen))
        path[i] = seen + [number]
    folder = f"{OUT}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_safetensors(f"{folder}/model.safetensors", stored)
    inner = dict(transformer_layer_config=shape) if "speculators_model_type" in root else shape
    with open(f"{folder}/config.json", "w") as f:
        json.dump({**root, **inner}, f, indent=1)
    with open(f"{folder}/case.json", "w") as f:
        json.dump(dict(given=GIVEN, tokens=tokens, parents=TREE, vocab=vocab, torch=torch.__version__), f)
    rows.numpy().astype("<f4").tofile(f"{folder}/states.f32")
    torch.stack(logits).numpy().astype("<f4").tofile(f"{folder}/logits.f32")
    print(name, sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder)), "bytes")


if __name__ == "__main__":
    with torch.no_grad():
        for case in sys.argv[1:] or CASES:
            write(case, *CASES[case])
