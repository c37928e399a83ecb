#!/usr/bin/env python3
"""Golden values for drafts of blocks (DFlash, DSpark), from a network written here with PyTorch. Run by hand, from the
repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch numpy
    /tmp/oracle/bin/python tests/oracle/blocks.py [NAME...]

For each row of CASES it writes tests/fixtures/blocks/NAME/: a random draft for the target build/golden/llama as one of its
authors stores it (config.json, model.safetensors), states.f32 (the target's, a row for each position), case.json (the steps:
their root, how many guesses are kept, the greedy guesses and confidences) and logits.f32 (little-endian, of each step's guesses,
after the Markov head's bias). tests/engine/block_golden_test.c holds our engine against them.

A step's context is all positions in front of its root. A context position has keys and values only, in each layer, of
norm(fc(states)). A block's rows see the context and each other.
"""
import json
import math
import os
import shutil
import sys

sys.argv, names = sys.argv[:1], sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
if sys.path[0] == here:
    sys.path.pop(0)  # tokenizers.py beside this file has the name of a package
import torch

OUT, TARGET = "tests/fixtures/blocks", "build/golden/llama"
PROMPT, KEPT = 6, [0, 2, 99, 0, 1, 99, 99, 0, 2, 1]  # 99: all guesses
MASK = 258
SHAPE = dict(model_type="qwen3", num_hidden_layers=2, hidden_size=32, intermediate_size=40, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, vocab_size=259, max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=1e6,
             tie_word_embeddings=False, attention_bias=False, layer_types=["full_attention"] * 2)
ZLAB = dict(architectures=["DFlashDraftModel"], block_size=4, num_target_layers=2,
            dflash_config=dict(mask_token_id=MASK, target_layer_ids=[0, 0, 0]))
DEEPSPEC = dict(architectures=["Qwen3DSparkModel"], block_size=4, num_target_layers=2, mask_token_id=MASK,
                target_layer_ids=[0, 0, 0], num_anchors=8, markov_rank=0, enable_confidence_head=False)
CONFIDENT = dict(enable_confidence_head=True)

# name: (changes to SHAPE, root keys, weights, first word, its own embedding and head)
CASES = {
    "zlab": ({}, ZLAB, "BF16", "", False),
    "zlab-inner": (dict(attention_bias=True, rms_norm_eps=1e-5), dict(
        architectures=["DFlashDraftModel"], is_causal=False,
        dflash_config=dict(mask_token_id=7, target_layer_ids=[0, 0], block_size=5, causal=False)), "F32", "model.", False),
    "deepspec": ({}, DEEPSPEC, "F32", "", True),
    "dspark": ({}, dict(DEEPSPEC, markov_rank=6, markov_head_type="vanilla", confidence_head_with_markov=True, **CONFIDENT),
               "BF16", "", True),
    "dspark-gated": (dict(num_key_value_heads=4), dict(DEEPSPEC, markov_rank=5, markov_head_type="gated",
                                                       confidence_head_with_markov=False, **CONFIDENT), "F32", "", True),
    "dspark-rnn": ({}, dict(DEEPSPEC, markov_rank=6, markov_head_type="rnn", confidence_head_with_markov=True, **CONFIDENT),
                   "F32", "", False),
    "speculators": ({}, dict(speculators_model_type="dflash", architectures=["DFlashSpeculator"], block_size=4, mask_token_id=MASK,
                             aux_hidden_state_layer_ids=[1, 1, 1], draft_vocab_size=50, sample_from_anchor=False,
                             sliding_window_non_causal=False), "F32", "", True),
}


def files():
    """the functions of eagle.py that read and write safetensors, without its cases"""
    text = open(f"{here}/eagle.py").read()
    begin, end = text.index("DTYPES = {"), text.index("# --- the network")
    space = dict(torch=torch, json=json, struct=__import__("struct"))
    exec(text[begin:text.index("# name: (version")] + text[text.index("def read_safetensors"):end], space)
    return space


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
    def __init__(self, shape, root, weights, target):
        self.s, self.w = shape, weights
        inner = root.get("dflash_config", {})
        self.rows = root.get("block_size", inner.get("block_size"))
        self.mask = root.get("mask_token_id", inner.get("mask_token_id"))
        self.from_root = "DSpark" in root["architectures"][0]
        self.rank, self.kind = root.get("markov_rank", 0), root.get("markov_head_type")
        self.confident = root.get("enable_confidence_head", False)
        self.with_token = root.get("confidence_head_with_markov", False)
        self.embedding = weights.get("embed_tokens.weight", target["model.embed_tokens.weight"])
        self.head = weights.get("lm_head.weight", target["lm_head.weight"])
        self.ids = torch.arange(len(self.head)) + weights.get("d2t", torch.zeros(len(self.head), dtype=torch.int64))

    def part(self, layer, name, x):
        w = self.w[f"layers.{layer}.{name}.weight"]
        bias = self.w.get(f"layers.{layer}.{name}.bias")
        return w @ x + (0 if bias is None else bias)

    def key_value(self, layer, x, position):
        heads, size = self.s["num_key_value_heads"], self.s["head_dim"]
        k = self.part(layer, "self_attn.k_proj", x).reshape(heads, size)
        k = norm(k, self.w[f"layers.{layer}.self_attn.k_norm.weight"], self.s["rms_norm_eps"])
        return turn(k, position, self.s["rope_theta"]), self.part(layer, "self_attn.v_proj", x).reshape(heads, size)

    def attend(self, layer, x, position, pairs):
        heads, groups, size = self.s["num_attention_heads"], self.s["num_key_value_heads"], self.s["head_dim"]
        q = self.part(layer, "self_attn.q_proj", x).reshape(heads, size)
        q = turn(norm(q, self.w[f"layers.{layer}.self_attn.q_norm.weight"], self.s["rms_norm_eps"]), position,
                 self.s["rope_theta"])
        out = []
        for h in range(heads):
            g = h // (heads // groups)
            k, v = torch.stack([p[0][g] for p in pairs]), torch.stack([p[1][g] for p in pairs])
            out.append(torch.softmax(k @ q[h] / math.sqrt(size), 0) @ v)
        return self.part(layer, "self_attn.o_proj", torch.cat(out))

    def block(self, states, root):
        """The final normed rows of a block behind the positions that have these states."""
        epsilon, at = self.s["rms_norm_eps"], len(states)
        context = [norm(self.w["fc.weight"] @ x, self.w["hidden_norm.weight"], epsilon) for x in states]
        z = [self.embedding[root if i == 0 else self.mask] for i in range(self.rows)]
        for layer in range(self.s["num_hidden_layers"]):
            pairs = [self.key_value(layer, c, i) for i, c in enumerate(context)]
            a = [norm(x, self.w[f"layers.{layer}.input_layernorm.weight"], epsilon) for x in z]
            pairs += [self.key_value(layer, x, at + j) for j, x in enumerate(a)]
            z = [x + self.attend(layer, n, at + j, pairs) for j, (x, n) in enumerate(zip(z, a))]
            for j, x in enumerate(z):
                m = norm(x, self.w[f"layers.{layer}.post_attention_layernorm.weight"], epsilon)
                gate = self.part(layer, "mlp.gate_proj", m)
                z[j] = x + self.part(layer, "mlp.down_proj", gate * torch.sigmoid(gate) * self.part(layer, "mlp.up_proj", m))
        return [norm(x, self.w["norm.weight"], epsilon) for x in z]

    def linear(self, name, x):
        return self.w[f"{name}.weight"] @ x + self.w[f"{name}.bias"]

    def bias(self, y, e, state):
        """of the logits, and the next state"""
        if self.kind == "gated":
            e = torch.sigmoid(self.linear("markov_head.gate_proj", torch.cat([y, e]))) * e
        if self.kind == "rnn":
            g, c, o = self.linear("markov_head.joint_proj", torch.cat([state, e, y])).split(self.rank)
            state, e = torch.sigmoid(g) * state + (1 - torch.sigmoid(g)) * torch.tanh(c), torch.tanh(o)
        return self.w["markov_head.markov_w2.weight"] @ e, state

    def guesses(self, states, root):
        """logits, ids and confidences of a step"""
        rows, token, state = self.block(states, root), root, torch.zeros(self.rank)
        logits, ids, confidences = [], [], []
        for y in rows if self.from_root else rows[1:]:
            own = self.head @ y
            if self.rank:
                e = self.w["markov_head.markov_w1.weight"][token]
                bias, state = self.bias(y, e, state)
                own = own + bias
            if self.confident:
                inputs = torch.cat([y, e]) if self.with_token else y
                confidences.append(torch.sigmoid(self.linear("confidence_head.proj", inputs)).item())
            token = int(self.ids[own.argmax()])
            logits.append(own)
            ids.append(token)
        return torch.stack(logits), ids, confidences


# --- the cases

def sizes(shape, root):
    d, f, size = shape["hidden_size"], shape["intermediate_size"], shape["head_dim"]
    q, kv = shape["num_attention_heads"] * size, shape["num_key_value_heads"] * size
    ids = root.get("target_layer_ids") or root.get("aux_hidden_state_layer_ids") or root["dflash_config"]["target_layer_ids"]
    out = {"fc.weight": (d, len(ids) * d), "hidden_norm.weight": (d,), "norm.weight": (d,)}
    for i in range(shape["num_hidden_layers"]):
        at = f"layers.{i}."
        out.update({at + "input_layernorm.weight": (d,), at + "post_attention_layernorm.weight": (d,),
                    at + "self_attn.q_proj.weight": (q, d), at + "self_attn.k_proj.weight": (kv, d),
                    at + "self_attn.v_proj.weight": (kv, d), at + "self_attn.o_proj.weight": (d, q),
                    at + "self_attn.q_norm.weight": (size,), at + "self_attn.k_norm.weight": (size,),
                    at + "mlp.gate_proj.weight": (f, d), at + "mlp.up_proj.weight": (f, d), at + "mlp.down_proj.weight": (d, f)})
        if shape["attention_bias"]:
            out.update({at + f"self_attn.{n}_proj.bias": (m,) for n, m in dict(q=q, k=kv, v=kv, o=d).items()})
    r = root.get("markov_rank", 0)
    if r:
        out.update({"markov_head.markov_w1.weight": (259, r), "markov_head.markov_w2.weight": (259, r)})
    if r and root["markov_head_type"] == "gated":
        out.update({"markov_head.gate_proj.weight": (r, d + r), "markov_head.gate_proj.bias": (r,)})
    if r and root["markov_head_type"] == "rnn":
        out.update({"markov_head.joint_proj.weight": (3 * r, 2 * r + d), "markov_head.joint_proj.bias": (3 * r,)})
    if root.get("enable_confidence_head"):
        w = d + (r if root["confidence_head_with_markov"] else 0)
        out.update({"confidence_head.proj.weight": (1, w), "confidence_head.proj.bias": (1,)})
    return out


def make(name, target, io):
    changes, root, kind, first, own = CASES[name]
    torch.manual_seed(sum(map(ord, name)))
    shape, dtype = dict(SHAPE, **changes), io["DTYPES"][kind][0]
    tensors = {}
    for part, dims in sizes(shape, root).items():
        x = torch.randn(dims)
        x = 1 + 0.2 * x if "norm" in part else 0.3 * x if len(dims) == 1 else x * 1.2 / math.sqrt(dims[1])
        tensors[part] = x.to(dtype)
    vocab = root.get("draft_vocab_size", 259)
    if own and vocab == 259:  # copies of the target's
        tensors["embed_tokens.weight"], tensors["lm_head.weight"] = target["model.embed_tokens.weight"], target["lm_head.weight"]
    elif own:
        kept = torch.randperm(259)[:vocab].sort().values
        tensors["lm_head.weight"] = (torch.randn(vocab, 32) / 3).to(dtype)
        tensors["d2t"] = kept - torch.arange(vocab)
        tensors["t2d"] = torch.zeros(259, dtype=torch.bool)
        tensors["t2d"][kept] = True
    draft = Draft(shape, root, {n: t if t.dtype in (torch.int64, torch.bool) else t.float() for n, t in tensors.items()},
                  {n: t.float() for n, t in target.items()})
    most = draft.rows - (0 if draft.from_root else 1)
    kept = [min(k, most) for k in KEPT]
    states = torch.randn(PROMPT + sum(kept) + len(kept), tensors["fc.weight"].shape[1]) * 2
    steps, logits, at = [], [], PROMPT
    for k in kept:
        start = int(torch.randint(3, 259, ()))
        own_logits, ids, confidences = draft.guesses(states[:at], start)
        steps.append(dict(root=start, kept=k, guesses=ids, confidences=confidences))
        logits.append(own_logits)
        at += k + 1
    folder = f"{OUT}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    inner = dict(shape)
    config = dict(root, transformer_layer_config=inner) if "speculators_model_type" in root else dict(inner, **root)
    json.dump(config, open(f"{folder}/config.json", "w"), indent=2)
    json.dump(dict(prompt=PROMPT, vocab=vocab, steps=steps, torch=torch.__version__), open(f"{folder}/case.json", "w"))
    io["write_safetensors"](f"{folder}/model.safetensors", {first + n: t for n, t in tensors.items()})
    for file, values in (("states", states), ("logits", torch.cat(logits))):
        open(f"{folder}/{file}.f32", "wb").write(values.contiguous().numpy().astype("<f4").tobytes())
    print(name, len(steps), "steps,", len(set(sum((s["guesses"] for s in steps), []))), "different guesses")


torch.set_num_threads(1)
torch.set_grad_enabled(False)
io = files()
target = io["read_safetensors"](f"{TARGET}/model.safetensors")
for name in names or CASES:
    make(name, target, io)
