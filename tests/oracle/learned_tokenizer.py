#!/usr/bin/env python3
"""Holds `outpace tokenizer train` against Hugging Face tokenizers. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install tokenizers
    /tmp/oracle/bin/python tests/oracle/learned_tokenizer.py

Learns a tokenizer from this repository's sources, loads it in both programs, and compares the ids of every line
and every whole file, of random bytes of other alphabets, and the texts that come back.
"""
import glob
import json
import os
import random
import subprocess
import tempfile

import tokenizers

OUTPACE = os.environ.get("OUTPACE", "./outpace")


def texts():
    random.seed(1)
    files = sorted(glob.glob("engine/*/*.[ch]")) + ["README.md"]
    for name in files:
        text = open(name).read()
        yield text
        yield from random.sample(text.splitlines(), 5)
    for _ in range(200):
        yield "".join(chr(random.choice([32, 10, 9, 48 + random.randrange(10), 97 + random.randrange(26),
                                         0xe9, 0x416, 0x4e2d, 0x1f600, 0x2581])) for _ in range(random.randrange(1, 60)))


def ids_of_outpace(model, text, folder):
    path = os.path.join(folder, "text")
    open(path, "w", newline="").write(text)
    out = subprocess.run([OUTPACE, "tokenize", model, "-f", path, "--json"], capture_output=True, text=True, check=True)
    return json.loads(out.stdout)["ids"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        subprocess.run([OUTPACE, "tokenizer", "train", "engine/*/*.c", "README.md", "--vocab", "1000", "-o", path], check=True)
        theirs = tokenizers.Tokenizer.from_file(path)
        assert theirs.get_vocab_size() == 1000
        count = tokens = 0
        for text in texts():
            want, got = theirs.encode(text).ids, ids_of_outpace(folder, text, folder)
            assert want == got, (text, want, got)
            kept = not any(special in text for special in ("\u2581", "<s>", "</s>", "<unk>"))
            assert not kept or theirs.decode(want) == text, text
            count, tokens = count + 1, tokens + len(want)
    print(f"{count} texts, {tokens} tokens: the same (tokenizers {tokenizers.__version__})")


main()
