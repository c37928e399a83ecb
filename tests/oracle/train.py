#!/usr/bin/env python3
"""Holds whole steps of `outpace train` against PyTorch: losses, clipped AdamW, schedule, weights. Run by hand, from the
repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch safetensors numpy tokenizers
    /tmp/oracle/bin/python tests/oracle/train.py

A run of no steps gives the first weights, one that is stopped after STEPS steps gives weights and moments; the same
steps are made here from the same weights, in double, by autograd and torch.optim.AdamW. There is one document, so
the order of documents is known: it comes again and again, and its copies must not see each other. AdamW's epsilon is
large, or a first step would blow up what is only rounding in gradients next to nothing. The kernels are the f32 set that
OUTPACE_ISA names, portable without it: one that multiplies in bf16 rounds too much to be held against this.
"""
import math
import os
import re
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

OUTPACE = os.environ.get("OUTPACE", "./outpace")
ISA = os.environ.get("OUTPACE_ISA", "portable")
STEPS, ALL_STEPS, WARMUP, RATE, LAST = 5, 8, 3, 0.01, 0.001
LAYERS, WIDTH, HEADS, KEYS, MLP, CONTEXT, BATCH, THETA, EPSILON = 3, 64, 8, 2, 96, 80, 320, 10000.0, 1e-5
SIZE = WIDTH // HEADS
CONFIG = f"""
tokenizer: tokenizer.json
isa: {ISA}
files: text.txt
layers: {LAYERS}
width: {WIDTH}
heads: {HEADS}
key_heads: {KEYS}
mlp: {MLP}
context: {CONTEXT}
batch: {BATCH}
pass: {BATCH // 2}
rate: {RATE}
last_rate: {LAST}
warmup: {WARMUP}
weight_decay: 0.1
clip: 0.7
epsilon: 1.0e-4
"""


def outpace(folder, *words):
    subprocess.run([os.path.abspath(OUTPACE), *words], cwd=folder, check=True, capture_output=True)


def checkpoint(folder, name, steps, *words):
    with open(os.path.join(folder, name + ".yaml"), "w") as f:
        f.write(f"out: {name}\nsteps: {steps}\n" + CONFIG)
    outpace(folder, "train", name + ".yaml", *words)
    return load_file(os.path.join(folder, name + ".checkpoint"))


def norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight


def turn(x, position):  # (heads, rows, size)
    angle = position[:, None] * THETA ** (-torch.arange(SIZE // 2, dtype=torch.float64) / (SIZE // 2))
    a, b = x[..., : SIZE // 2], x[..., SIZE // 2:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def loss_of(w, tokens, targets, start):
    rows = torch.arange(len(tokens))
    seen = (rows[None] <= rows[:, None]) & (start[None] == start[:, None])
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(LAYERS):
        part = lambda name: w[f"model.layers.{i}.{name}.weight"]
        h = norm(x, part("input_layernorm"))
        heads = lambda name: (h @ part(f"self_attn.{name}_proj").T).view(len(rows), -1, SIZE).transpose(0, 1)
        q, k, v = turn(heads("q"), rows - start), turn(heads("k"), rows - start), heads("v")
        k, v = k.repeat_interleave(HEADS // KEYS, 0), v.repeat_interleave(HEADS // KEYS, 0)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(0, 1).reshape(len(rows), -1)
        x = x + mixed @ part("self_attn.o_proj").T
        h = norm(x, part("post_attention_layernorm"))
        x = x + (F.silu(h @ part("mlp.gate_proj").T) * (h @ part("mlp.up_proj").T)) @ part("mlp.down_proj").T
    return F.cross_entropy(norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T, targets)


def batches(ids):
    at = 0  # rows of the document that are done
    while True:
        tokens, targets, start = [], [], []
        for r in range(BATCH):
            tokens.append(ids[at])
            targets.append(ids[at + 1])
            start.append(r if at == 0 or r % CONTEXT == 0 else start[-1])
            at = (at + 1) % (len(ids) - 1)
        yield torch.tensor(tokens), torch.tensor(targets), torch.tensor(start)


def rate(step):
    done = (step - WARMUP) / (ALL_STEPS - WARMUP)
    return RATE * step / WARMUP if step <= WARMUP else LAST + (RATE - LAST) * (1 + math.cos(math.pi * done)) / 2


def compare(what, want, got):
    size = want.abs().max().item()
    error = (want - got.double()).abs().max().item()
    print(f"{what:44s} largest {size:.3e}  error {error:.1e}  relative {error / size:.1e}")
    assert error < 2e-5 * size, what


def main():
    text = re.sub(r"[^\x20-\x7e\n]", "", open("README.md").read())[:700]
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "text.txt"), "w").write(text)
        open(os.path.join(folder, "more.txt"), "w").write(text * 3)
        outpace(folder, "tokenizer", "train", "more.txt", "--vocab", "420")
        ids = Tokenizer.from_file(os.path.join(folder, "tokenizer.json")).encode(text).ids + [2]
        first = checkpoint(folder, "first", 0)
        got = checkpoint(folder, "stopped", ALL_STEPS, "--stop-after", str(STEPS))
    names = [n for n in first if n.endswith(".weight")]
    w = {n: first[n].double().requires_grad_() for n in names}
    optimizer = torch.optim.AdamW(
        [{"params": [w[n] for n in names if w[n].dim() == 2], "weight_decay": 0.1},
         {"params": [w[n] for n in names if w[n].dim() == 1], "weight_decay": 0.0}], betas=(0.9, 0.95), eps=1e-4)
    for step, batch in zip(range(1, STEPS + 1), batches(ids)):
        optimizer.zero_grad()
        loss = loss_of(w, *batch)
        loss.backward()
        length = torch.nn.utils.clip_grad_norm_(w.values(), 0.7)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        print(f"step {step}  loss {loss.item():.5f}  gradient {length:.4f}")
    compare("loss", loss[None].detach(), got["loss"])
    for n in names:
        compare(n, w[n].detach(), got[n])
        compare(n + ".mean", optimizer.state[w[n]]["exp_avg"], got[n + ".mean"])
        compare(n + ".square", optimizer.state[w[n]]["exp_avg_sq"], got[n + ".square"])
    print(f"{STEPS} steps over {len(ids)} tokens: the same (torch {torch.__version__})")


main()
