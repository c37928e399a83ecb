#!/usr/bin/env python3
"""Greedy ids of the published models (models/fetch), which make test-real holds the engine against. Run by hand, from the
repository's root, with OUTPACE_MODELS and OUTPACE_DATA set and ./outpace built:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch==2.15.0 transformers==5.24.0 gguf==0.19.0 accelerate
    /tmp/oracle/bin/python tests/oracle/published.py smollm2-135m gemma3-270m qwen2.5-coder-0.5b qwen2.5-coder-1.5b

transformers reads the GGUF file, unpacks its blocks to f32 and computes in f32; the largest takes 9.4 GB, and 23 minutes on two
busy cores. The prompts' ids are Outpace's, in the model's own chat template; Gemma's base model has none. Writes
tests/fixtures/published/NAME.tsv, a row a prompt: data set, row in it from 1, the prompt's tokens and their hash, 32 greedy ids (the
end of a text is a token like others), and by how much the best logit is above the second at each. Neither prompts nor weights are
kept."""
import gzip
import json
import os
import subprocess
import sys

sys.path.pop(0)  # tokenizers.py beside this file has the name of a package that transformers wants
import numpy as np
import torch
import transformers

OUT, TOKENS, EACH, BASE = "tests/fixtures/published", 32, 8, {"gemma3-270m"}
SETS = {"mt-bench": ("mt_bench/question.jsonl", lambda row: row["turns"][0]),
        "humaneval": ("humaneval/HumanEval.jsonl.gz", lambda row: row["prompt"]),
        "gsm8k": ("gsm8k/test.jsonl", lambda row: row["question"])}


def prompts():
    for name, (path, prompt) in SETS.items():
        path = os.path.join(os.environ["OUTPACE_DATA"], path)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
            for row, line in zip(range(1, EACH + 1), f):
                yield name, row, prompt(json.loads(line))


def outpace(*words, text=None):
    done = subprocess.run(["./outpace", *words, "--json"], input=text, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["ids"]


def fnv(ids):
    h = 0xcbf29ce484222325
    for byte in np.array(ids, "<i4").tobytes():
        h = (h ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return h


@torch.inference_mode()
def greedy(network, model, prompt):
    """One forward judges the ids that Outpace writes; from the first that isn't the best on, it writes others."""
    out = []
    while True:
        if len(out) < TOKENS:
            ids = ",".join(map(str, prompt + out))
            out += outpace("generate", model, "--ids", ids, "--ignore-eos", "--max-tokens", str(TOKENS - len(out)))
        logits = network(torch.tensor([prompt + out[:-1]]), use_cache=False, logits_to_keep=TOKENS).logits[0]
        values, best = logits.topk(2)
        wrong = [i for i in range(TOKENS) if out[i] != int(best[i, 0])]
        if not wrong:
            return out, (values[:, 0] - values[:, 1]).tolist()
        out = out[:wrong[0]] + [int(best[wrong[0], 0])]


def main():
    os.makedirs(OUT, exist_ok=True)
    for model in sys.argv[1:]:
        network = transformers.AutoModelForCausalLM.from_pretrained(
            os.environ["OUTPACE_MODELS"], gguf_file=model + ".gguf", dtype=torch.float32).eval()
        with open(os.path.join(OUT, model + ".tsv"), "w") as f:
            for name, row, text in prompts():
                ids = outpace("tokenizer", "encode", model, "-", "--template", "none" if model in BASE else "model", text=text)
                out, gaps = greedy(network, model, ids)
                print(name, row, len(ids), "%016x" % fnv(ids), *(" ".join(x) for x in (map(str, out), ("%.4g" % g for g in gaps))),
                      sep="\t", file=f, flush=True)


main()
