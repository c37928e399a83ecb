#!/usr/bin/env python3
"""Golden ids and texts of small tokenizers in the configuration of each family, from Hugging Face tokenizers and
sentencepiece. Run by hand, from the repository's root:

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install tokenizers sentencepiece jinja2
    /tmp/oracle/bin/python tests/oracle/tokenizers.py [NAME...]

Writes to tests/fixtures/tokenizers/, of the named families or of all:
    strings.json         the texts
    NAME/tokenizer.json  or tokenizer.model: trained here on Python's own files, with few pieces (not the same ones
                         in every run: the trainer does not break ties the same way)
    NAME/golden.json     {"ids": a list a text, "text": {index: decoded where it differs from the text},
                         "all": the same with special tokens kept, "versions": ...}
    templates.json       chats, and the prompts that the published chat templates make of them
tests/engine/text/golden_test.c and template_test.c hold our code against them.
"""
import glob
import importlib.metadata
import io
import json
import os
import random
import sys
import sysconfig

sys.path.pop(0)  # this file has the name of the package that it wants
import jinja2
import sentencepiece
import tokenizers
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

OUT = "tests/fixtures/tokenizers"
PIECES = 1100

# The published patterns.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
LLAMA3 = QWEN2.replace(r"\p{N}| ?", r"\p{N}{1,3}| ?")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]"
          r"|\s+(?!\S)|\s+")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (r"[^\r\n\p{L}\p{N}]?%s*%s+|[^\r\n\p{L}\p{N}]?%s+%s*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
          % (UPPER, LOWER, UPPER, LOWER))
SEED = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK_CODER = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"]


# --- texts ----------------------------------------------------------------------------------------------------

ALPHABETS = [
    "the quick brown fox's can't WE'LL they'Re I'm x1 2024 3.14159 e-9 12345678",
    "def f(x, y=None):\n    return {k: v for k, v in x.items() if k != \"a\"}\n\t\t# ok\r\n",
    "int main(void) { for (size_t i = 0; i < n; i++) a[i] += b->c; return 0; } // <<= != && ||",
    "<html><body class='x'>&nbsp;</body></html> <s> </s> <unk> <0x41> <|x|>",
    "Привет мир, как дела? Ёлка Žluťoučký kůň naïve café Straße İstanbul ǅ ſ",
    "日本語のテキスト、漢字とカナ。中文字符測試 한국어 문장 입니다 ㄱㄴ 𠮷𠀋",
    "ภาษาไทย ไม่มีช่องว่าง สวัสดี हिन्दी क्षत्रिय தமிழ் বাংলা",
    "مرحبا بالعالم ١٢٣ שָׁלוֹם עולם ‏‎ ‮abc‬",
    "é̂ ạ̈ ñ ö Å Å ﬁ ½ ① Ⅻ ² ㍍ ｆｕｌｌ ﷺ क़",
    "👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ 😀😃 🧑🏿‍🚀 #️⃣",
    " \t\n\r\f\v  　    ​‌‍﻿᠎ ",
    "\x01\x02\x07\x08\x1b[31m\x1c\x1d\x7f\x80\x9f­￼�",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»‘’“”–—…¿¡§¶•‰€£¥©®™°±×÷≠≤≥∞√∑∫",
    "▁▁ ▁a Ġ Ċ ġ Ā Ń",
]
FIXED = ["", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\r\n", "\t", "a", " a", "a ", "  a", "a  b", "a   b", "\n\na",
         "Hello", " Hello", "Hello world", "Hello  world ", "I'll", "I'LL", "'s", "don't", "12", "123", "1234", "1234567",
         "a1b2", "x = 1", "<s>", "</s>", "<s>a</s>", " <s> ", "a<s>b", "<x>", "a<x>b", " <x> y", "keep", "bookkeeper",
         "a keep b", "<left>", "a  <left>  b", "<right>", "a  <right>  b", "<right>  <left>", "<s> <s>", "ékeep", "keepé",
         " zqx", "zqx", "brown", "brown zqx brow", "日本語", "keep_", "_keep", "<both>", " \n <both> \n x", "<s", "s>", "<<s>>", "norm", "anorm", " norm", "xnorm norm",
         "é", "é", "ﬁ", "日本", "日 本", "👍🏽", "a\u0301", "\u0301", "a\u0301\u0316", "a\u0316\u0301", "가", "각",
         "\ufffd", "\ufffd\ufffd", "\u2581", "a\u2581b", "\u2581\u2581a", "<0x41>", "<0x0A>", "Ġ", "Ċ", "\x00"[:0],
         "...", "....", "--", "- -", "''", "#include <stdio.h>\n", "if (a == b) {\n\treturn;\n}\n", "    ", "        x",
         "the the the the", "aaaaaaaaaaaaaaaa", "                a", "\n\n\n\n\n", "😀😀😀😀", "0" * 20]


def make_strings():
    r = random.Random(20261120)
    texts = list(dict.fromkeys(FIXED))
    while len(texts) < 520:
        parts = []
        for _ in range(r.randint(1, 4)):
            a = r.choice(ALPHABETS)
            if r.random() < 0.5:
                i = r.randrange(len(a))
                parts.append(a[i:i + r.randint(1, 14)])
            else:
                parts.append("".join(r.choice(a) for _ in range(r.randint(1, 6))))
            if r.random() < 0.15:
                parts.append(r.choice(["<s>", "<x>", "<left>", "<right>", "<both>", "keep", "norm", " ", "\n"]))
        texts.append(r.choice(["", "", " "]).join(parts))
    return texts


def corpus():
    lib = sysconfig.get_paths()["stdlib"]
    files = sorted(glob.glob(lib + "/*.py"))[:60] + [lib + "/pydoc_data/topics.py"]
    lines = []
    for name in files:
        with open(name, encoding="utf-8", errors="replace") as f:
            lines += f.read(60000).splitlines(keepends=True)
    return lines + [a + "\n" for a in ALPHABETS for _ in range(12)]


# --- tokenizer.json ------------------------------------------------------------------------------------------------

def added(token, i, special=False, **more):
    return dict(id=i, content=token, single_word=False, lstrip=False, rstrip=False, normalized=False,
                special=special) | more


def add_extra(root, normalized=True):
    """Tokens with every flag, behind the vocabulary."""
    vocab, n = root["model"]["vocab"], len(root["model"]["vocab"])
    extra = [("<x>", dict(special=True)), ("keep", dict(single_word=True)), ("<left>", dict(lstrip=True)),
             ("<right>", dict(rstrip=True, special=True)), ("<both>", dict(lstrip=True, rstrip=True)),
             ("norm", dict(normalized=True))]
    for token, flags in extra[:None if normalized else -1]:
        i = vocab.get(token, n)  # a piece that is there already keeps its id
        n += i == n
        root["added_tokens"].append(added(token, i, **flags))
    return root


def train(pre_tokenizer, first, alphabet, limit):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=PIECES, special_tokens=first, initial_alphabet=alphabet, limit_alphabet=limit, show_progress=False))
    model = json.loads(t.to_str())["model"]
    return model["vocab"], model["merges"]


def template(*before):
    return dict(type="TemplateProcessing",
                single=[{"SpecialToken": dict(id=b[0], type_id=0)} for b in before] + [
                    {"Sequence": dict(id="A", type_id=0)}],
                pair=[{"Sequence": dict(id="A", type_id=0)}, {"Sequence": dict(id="B", type_id=1)}],
                special_tokens={b[0]: dict(id=b[0], ids=[b[1]], tokens=[b[0]]) for b in before})


def sequence(key, *members):
    return {"type": "Sequence", key: list(members)}


def replace(a, b):
    return dict(type="Replace", pattern=dict(String=a), content=b)


def fallback_model():
    first = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)]
    vocab, merges = train(pre_tokenizers.Metaspace(), first, [], 150)
    # Runs of spaces, as Llama 2's vocabulary has them.
    for n in (2, 4, 8):
        vocab["▁" * n] = len(vocab)
        merges.append(["▁" * (n // 2)] * 2)
    return dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None, end_of_word_suffix=None,
                fuse_unk=True, byte_fallback=True, ignore_merges=False, vocab=vocab, merges=merges)


def fallback_root(normalizer, pre_tokenizer, decoder, post=True, pairs=False):
    model = dict(fallback_model())
    if not pairs:
        model["merges"] = [" ".join(m) for m in model["merges"]]
    return dict(version="1.0", truncation=None, padding=None,
                added_tokens=[added(t, i, special=True) for i, t in enumerate(["<unk>", "<s>", "</s>"])],
                normalizer=normalizer, pre_tokenizer=pre_tokenizer, post_processor=template(("<s>", 1)) if post else None,
                decoder=decoder, model=model)


PREPEND = dict(type="Prepend", prepend="▁")
STRIP = dict(type="Strip", content=" ", start=1, stop=0)
FALLBACK = [replace("▁", " "), dict(type="ByteFallback"), dict(type="Fuse")]


def llama2():
    return add_extra(fallback_root(sequence("normalizers", PREPEND, replace(" ", "▁")), None,
                                   sequence("decoders", *FALLBACK, STRIP)))


def mistral():
    meta = dict(type="Metaspace", replacement="▁", prepend_scheme="first", split=False)
    return add_extra(fallback_root(None, meta, sequence("decoders", *FALLBACK, STRIP), pairs=True))


def metaspace_always():
    meta = dict(type="Metaspace", replacement="▁", prepend_scheme="always", split=True)
    return add_extra(fallback_root(None, meta, meta, post=False))


def metaspace_never():
    meta = dict(type="Metaspace", replacement="▁", prepend_scheme="never", split=True)
    root = fallback_root(sequence("normalizers", dict(type="Strip", strip_left=True, strip_right=True), dict(type="NFKC"),
                                  dict(type="Replace", pattern=dict(Regex=r"\s{2,}|[\n\r\t]"), content=" ")), meta, meta)
    root["model"]["byte_fallback"] = False
    return add_extra(root)


def yi():
    return add_extra(fallback_root(replace(" ", "▁"), None, sequence("decoders", *FALLBACK), post=False))


def phi3():
    root = fallback_root(sequence("normalizers", PREPEND, replace(" ", "▁")), None,
                         sequence("decoders", *FALLBACK, STRIP))
    root["added_tokens"][2].update(rstrip=True, special=False)
    return add_extra(root, normalized=False)


def byte_root(normalizer, splitters, post, pairs, add_prefix_space=False, use_regex=False, pieces=()):
    level = dict(type="ByteLevel", add_prefix_space=add_prefix_space, trim_offsets=True, use_regex=use_regex)
    parts = splitters + [level]
    trainer = Tokenizer(models.BPE())
    shape = sequence("pretokenizers", *parts) if splitters else level
    root = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=normalizer, pre_tokenizer=shape,
                post_processor=None if post == "bos" else post, decoder=dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
                model=json.loads(trainer.to_str())["model"])
    pre = Tokenizer.from_str(json.dumps(root)).pre_tokenizer
    vocab, merges = train(pre, [], pre_tokenizers.ByteLevel.alphabet(), 256)
    for piece in pieces:
        vocab[piece] = len(vocab)
    n = len(vocab)
    root["added_tokens"] = [added(t, n + i, special=True) for i, t in enumerate(["<s>", "</s>", "<｜begin▁of▁sentence｜>"])]
    root["model"].update(vocab=vocab, merges=merges if pairs else [" ".join(m) for m in merges])
    if post == "bos":
        root["post_processor"] = sequence("processors", level, template(("<s>", n)))
    base = dict(root, model=dict(root["model"], vocab=dict(vocab, **{a["content"]: a["id"] for a in root["added_tokens"]})))
    extra = add_extra(base)
    return dict(extra, model=root["model"])


def split(regex, behavior="Isolated", invert=False):
    return dict(type="Split", pattern=dict(Regex=regex), behavior=behavior, invert=invert)


def deepseek_coder():
    return byte_root(sequence("normalizers"), [split(p) for p in DEEPSEEK_CODER] + [
        dict(type="Digits", individual_digits=True)], "bos", False)


def llama3():
    root = byte_root(None, [split(LLAMA3)], "bos", True, pieces=["Ġzqx", "brown", "日本語"])  # reached by no merge
    root["model"]["ignore_merges"] = True
    return root


def qwen2():
    return byte_root(dict(type="NFC"), [split(QWEN2)], None, False)


def gpt2():
    return byte_root(None, [], dict(type="ByteLevel", add_prefix_space=True, trim_offsets=False, use_regex=True), False,
                     add_prefix_space=True, use_regex=True)


def behaviors():
    """Every behaviour of Split, and the normalizers and pre-tokenizers that no family above has."""
    return byte_root(dict(type="NFKD"), [
        split(r"[,;]", "MergedWithPrevious"), split(r"\(|\[", "MergedWithNext"), split(r"[ \t]+", "Removed"),
        split(r"[a-zA-Z0-9_]+", "Contiguous", True), dict(type="Digits", individual_digits=False),
        dict(type="Punctuation", behavior="Contiguous")], None, False)


def add_plain(root, tokens, normalized):
    """Tokens that are not special, as runs of spaces are in some families."""
    known = {a["content"] for a in root["added_tokens"]}
    n = 1 + max([a["id"] for a in root["added_tokens"]] + list(root["model"]["vocab"].values()))
    for t in tokens:
        i = root["model"]["vocab"].get(t, n)
        n += i == n
        if t not in known:
            root["added_tokens"].append(added(t, i, normalized=normalized))
    return root


def gemma():
    """Gemma 1 to 3."""
    root = fallback_root(replace(" ", "▁"), dict(type="Split", pattern=dict(String=" "), behavior="MergedWithPrevious",
                                                 invert=False), sequence("decoders", *FALLBACK), pairs=True)
    return add_plain(add_extra(root), ["\n\n", "\n\n\n", "\t\t", "▁▁", "▁▁▁", "<h1>"], False)


def neox():
    """GPT-NeoX, Pythia, and with other added tokens Phi-2."""
    root = byte_root(dict(type="NFC"), [], dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
                     False, use_regex=True)
    return add_plain(root, [" " * n for n in (24, 12, 7, 4, 3, 2)] + ["\t\t\t", "\t\t"], True)


def starcoder2():
    """StarCoder2, Granite, SmolLM 1 and 2, EXAONE 3.5."""
    return byte_root(None, [dict(type="Digits", individual_digits=True)], None, False, use_regex=True)


def cohere():
    """Command R."""
    return byte_root(dict(type="NFC"), [dict(type="Digits", individual_digits=True)],
                     "bos", True, use_regex=True)


def olmo2():
    """OLMo 2, StableLM 2 and Phi-4: what the pattern leaves out is removed."""
    return byte_root(None, [split(CL100K, "Removed", True)], None, True)


def glm4():
    """GLM-4: two tokens before every text."""
    root = byte_root(None, [split(LLAMA3)], None, True)
    ids = {a["content"]: a["id"] for a in root["added_tokens"]}
    root["model"]["ignore_merges"] = True
    root["post_processor"] = sequence("processors", dict(type="ByteLevel", add_prefix_space=True, trim_offsets=False,
                                                         use_regex=True),
                                      template(("</s>", ids["</s>"]), ("<s>", ids["<s>"])))
    return root


def tekken():
    """Mistral Nemo."""
    root = byte_root(None, [split(TEKKEN)], "bos", True)
    root["model"]["ignore_merges"] = True
    return root


def seed_oss():
    return byte_root(dict(type="NFC"), [split(SEED)], "bos", False)


FAMILIES = [llama2, mistral, metaspace_always, metaspace_never, yi, phi3, deepseek_coder, llama3, qwen2, gpt2, behaviors,
            gemma, neox, starcoder2, cohere, olmo2, glm4, tekken, seed_oss]


# --- sentencepiece ------------------------------------------------------------------------------------------------

def train_sentencepiece(**more):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=out, model_type="bpe", vocab_size=PIECES,
        character_coverage=0.995, minloglevel=2, num_threads=1,
        **(dict(byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
                allow_whitespace_only_pieces=True) | more))
    return out.getvalue()


SENTENCEPIECES = {
    "sp_llama": dict(),
    "sp_strict": dict(remove_extra_whitespaces=True, add_dummy_prefix=False, user_defined_symbols=["<x>", "<x", "keep"],
                      byte_fallback=False),
    "sp_user": dict(user_defined_symbols=["<left>", "▁▁▁", "12"]),
}


# --- golden ---------------------------------------------------------------------------------------------------------

# --- chat templates ---------------------------------------------------------------------------------------------------

# chat_template of the models' tokenizer_config.json, as published on the Hugging Face Hub.
LLAMA2_CHAT = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}"
    "{% set system_message = false %}{% endif %}{% for message in loop_messages %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}")
MISTRAL_CHAT = (  # 0.2's; the system text, which it refuses, is put before the first user's text by those who have one
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token}}{% endif %}{% endfor %}")
PHI3_CHAT = (
    "{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{'<|system|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'user' %}"
    "{{'<|user|>\\n' + message['content'] + '<|end|>\\n'}}{% elif message['role'] == 'assistant' %}"
    "{{'<|assistant|>\\n' + message['content'] + '<|end|>\\n'}}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}")
LLAMA3_CHAT = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}"
    "{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}")
QWEN3_CHAT = (  # without tools; what an earlier reply thought is cut out of it
    "{% if messages[0].role == 'system' %}{{ '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{% endif %}"
    "{% for message in messages %}{% if message.role == 'user' or message.role == 'system' and not loop.first %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{% elif message.role == 'assistant' %}{% set content = message.content.split('</think>')[-1].lstrip('\\n') if '</think>' "
    "in message.content else message.content %}{{ '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}")
QWEN25_CHAT = (  # without tools
    "{% if messages[0]['role'] == 'system' %}{{ '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{% else %}{{ '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}"
    "{% endif %}{% for message in messages %}{% if message.role == 'user' or message.role == 'system' and not loop.first "
    "or message.role == 'assistant' %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
GEMMA_CHAT = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}"
    "{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim "
    "+ '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}")
GEMMA3_CHAT = (  # of texts
    "{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}{%- set first = messages[0]['content'] + '\n\n' -%}"
    "{%- set loop_messages = messages[1:] -%}{%- else -%}{%- set first = '' -%}{%- set loop_messages = messages -%}"
    "{%- endif -%}{%- for message in loop_messages -%}{%- if message['role'] == 'assistant' -%}{%- set role = 'model' -%}"
    "{%- else -%}{%- set role = message['role'] -%}{%- endif -%}{{ '<start_of_turn>' + role + '\n' + (first if loop.first "
    "else '') }}{{ message['content'] | trim }}{{ '<end_of_turn>\n' }}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}")
OLMO2_CHAT = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|system|>\n' + message['content'] "
    "+ '\n' }}{% elif message['role'] == 'user' %}{{ '<|user|>\n' + message['content'] + '\n' }}"
    "{% elif message['role'] == 'assistant' %}{% if not loop.last %}{{ '<|assistant|>\n' + message['content'] + eos_token "
    "+ '\n' }}{% else %}{{ '<|assistant|>\n' + message['content'] + eos_token }}{% endif %}{% endif %}"
    "{% if loop.last and add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}{% endfor %}")
GRANITE_CHAT = (  # 3.0, without tools
    "{%- for message in messages %}{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] "
    "+ '<|end_of_text|>\n' }}{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant<|end_of_role|>' }}"
    "{%- endif %}{%- endfor %}")
CHATML_CHAT = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
SMOLLM2_CHAT = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n"
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    + CHATML_CHAT[len("{% for message in messages %}"):])
PHI4_CHAT = (
    "{% for message in messages %}{% if (message['role'] == 'system') %}{{'<|im_start|>system<|im_sep|>' + message['content'] "
    "+ '<|im_end|>'}}{% elif (message['role'] == 'user') %}{{'<|im_start|>user<|im_sep|>' + message['content'] "
    "+ '<|im_end|><|im_start|>assistant<|im_sep|>'}}{% elif (message['role'] == 'assistant') %}{{message['content'] "
    "+ '<|im_end|>'}}{% endif %}{% endfor %}")
PHI4_MINI_CHAT = (  # without tools
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}")
GLM4_CHAT = (  # without tools
    "[gMASK]<sop>{% for item in messages %}{% if item['content'] %}<|{{ item['role'] }}|>{{ item['metadata'] }}\n"
    "{{ item['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}")
COMMAND_R_CHAT = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'system' %}"
    "{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + message['content'] + '<|END_OF_TURN_TOKEN|>' }}"
    "{% elif message['role'] == 'user' %}{{ '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + message['content'].strip() "
    "+ '<|END_OF_TURN_TOKEN|>' }}{% elif message['role'] == 'assistant' %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' "
    "+ message['content'].strip() + '<|END_OF_TURN_TOKEN|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}")
EXAONE3_CHAT = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}{{ '[|system|][|endofturn|]\n' }}"
    "{% endif %}{{ '[|' + message['role'] + '|]' + message['content'] }}{% if message['role'] == 'user' %}{{ '\n' }}"
    "{% else %}{{ '[|endofturn|]\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '[|assistant|]' }}{% endif %}")
SEED_CHAT = (  # without tools and a budget of thoughts
    "{%- for message in messages %}{%- if message.role in ['user', 'system'] %}{{ bos_token + message.role + '\n' "
    "+ message.content + eos_token }}{%- else %}{{ bos_token + message.role }}{%- if message.content|trim|length > 0 %}"
    "{{ '\n' + message.content|trim + eos_token }}{%- endif %}{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{ bos_token + 'assistant\n' }}{%- endif %}")
ZEPHYR_CHAT = (
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] + eos_token }}\n"
    "{% elif message['role'] == 'system' %}\n{{ '<|system|>\n' + message['content'] + eos_token }}\n"
    "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n"
    "{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}")
TOKENS = {"llama-3": ("<|begin_of_text|>", "</s>"), "gemma": ("<bos>", "<eos>"), "gemma-3": ("<bos>", "<eos>"),
          "olmo-2": ("<|endoftext|>", "<|endoftext|>"), "command-r": ("<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"),
          "seed-oss": ("<seed:bos>", "<seed:eos>"), "stablelm-zephyr": ("<|endoftext|>", "<|endoftext|>")}
TEMPLATES = {
    "llama-2": LLAMA2_CHAT, "codellama": LLAMA2_CHAT, "mistral": MISTRAL_CHAT, "phi-3": PHI3_CHAT,
    "llama-3": LLAMA3_CHAT, "qwen-2.5": QWEN25_CHAT, "qwen-3": QWEN3_CHAT,
    "phi-4": PHI4_CHAT, "phi-4-mini": PHI4_MINI_CHAT, "gemma": GEMMA_CHAT, "gemma-3": GEMMA3_CHAT, "olmo-2": OLMO2_CHAT,
    "granite": GRANITE_CHAT, "smollm-2": SMOLLM2_CHAT, "glm-4": GLM4_CHAT, "command-r": COMMAND_R_CHAT,
    "exaone-3.5": EXAONE3_CHAT, "seed-oss": SEED_CHAT, "zephyr": ZEPHYR_CHAT, "stablelm-zephyr": ZEPHYR_CHAT,
    "chatml": CHATML_CHAT}
VICUNA_SYSTEM = ("A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
                 "detailed, and polite answers to the user's questions.")
CHATS = [  # system text or None; user, reply, user, ...
    (None, ["Hello"]), ("Be brief.", ["Hello"]), (None, ["What is 2 + 2?\n", "4", "Why?"]),
    ("Be brief.", ["  one  ", " two ", "\tthree\n", "four", "five"]), (None, [" \u00a0padded\u3000 "]), ("", [""]),
    ("  padded\n", ["def f(x):\n    return x\n"]), (None, ["</s> <s> [INST]"]), ("\u65e5\u672c", ["\u8a9e"]),
    (None, ["Why?", "<think>\nHm.\n</think>\n\nBecause.</think>\nYes.\n", "So?"])]
WHOLE_CHATS = [("Be brief.", ["Hello", "Hi"]), (None, ["What is 2 + 2?\n", "4", " Why? ", " Because.\n"])]
# The others end a whole chat in a way of their own.
WHOLE = ("llama-2", "codellama", "mistral", "llama-3", "qwen-2.5", "phi-4", "gemma", "gemma-3", "granite", "smollm-2", "glm-4",
         "command-r", "exaone-3.5", "seed-oss", "zephyr", "stablelm-zephyr", "chatml")


def vicuna(system, texts):
    """FastChat's conv_vicuna_v1.1: two separators, ' ' and '</s>'."""
    out = (VICUNA_SYSTEM if system is None else system) + " "
    for i, text in enumerate(texts):
        out += ["USER: ", "ASSISTANT: "][i % 2] + text + [" ", "</s>"][i % 2]
    return out + "ASSISTANT:"


def render(name, system, texts):
    if name == "none":
        return "".join(texts)
    if name == "vicuna":
        return vicuna(system, texts)
    if name == "mistral" and system is not None:
        system, texts = None, [system + "\n\n" + texts[0]] + texts[1:]
    messages = [] if system is None else [dict(role="system", content=system)]
    messages += [dict(role=["user", "assistant"][i % 2], content=t) for i, t in enumerate(texts)]
    bos, eos = TOKENS.get(name, ("<s>", "</s>"))
    t = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATES[name])
    return t.render(messages=messages, bos_token=bos, eos_token=eos, add_generation_prompt=len(texts) % 2 == 1)


def has_place(name, system, texts):
    """Gemma's raises an error for a system text; GLM-4's leaves out a message without text."""
    return not (name == "gemma" and system is not None or name == "glm-4" and "" in [system] + texts)


def write_templates():
    rows = [dict(template=name, system=system, texts=texts, prompt=render(name, system, texts))
            for name in list(TEMPLATES) + ["vicuna", "none"]
            for system, texts in CHATS + (WHOLE_CHATS if name in WHOLE else [])
            if (name != "none" or system is None and len(texts) == 1) and has_place(name, system, texts)]
    write("templates.json", rows)


def write(name, value):
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


def golden(name, strings, encode, decode, decode_all):
    ids = [encode(s) for s in strings]
    texts = [decode(i) for i in ids]
    shown = [decode_all(i) for i in ids]
    if not any(shown):
        shown = strings  # not compared
    write(name + "/golden.json", dict(
        versions={p: importlib.metadata.version(p) for p in ("tokenizers", "sentencepiece")}, ids=ids,
        text={str(i): t for i, (s, t) in enumerate(zip(strings, texts)) if s != t},
        all={str(i): t for i, (s, t) in enumerate(zip(strings, shown)) if s != t}))
    print("%-18s %6d ids of %d texts" % (name, sum(map(len, ids)), len(strings)))


SEEDS = "tests/fuzz/corpus/tokenizer"
SEEDED = ("gemma", "neox", "cohere", "olmo2", "glm4", "tekken")


def write_seed(name, root):
    """The file with a vocabulary of a few pieces."""
    few = ["<unk>", "<s>", "</s>", "▁", "Ġ", "a", "e", "t", "h", "th", "the", "d", "0", "1", "2", "Ċ", "Ã", "©", "<0x41>",
           "<0xE2>"]
    whole = root["model"]["vocab"]
    vocab = {p: i for i, p in enumerate(p for p in few if p in whole or p in ("th", "the"))}
    merges = [["t", "h"], ["th", "e"]]
    pairs = isinstance(root["model"]["merges"][0], list)
    extra = [dict(a) for a in root["added_tokens"][:9]]
    for i, a in enumerate(extra):
        a["id"] = vocab.get(a["content"], len(vocab) + i)
    ids = {a["content"]: a["id"] for a in extra}
    small = json.loads(json.dumps(root)) | dict(added_tokens=extra)
    small["model"].update(vocab=vocab, merges=merges if pairs else [" ".join(m) for m in merges])
    for part in (small["post_processor"] or {}).get("processors", []) + [small["post_processor"] or {}]:
        for token, special in part.get("special_tokens", {}).items():
            special["ids"] = [ids[token]]
    with open(os.path.join(SEEDS, name), "w", encoding="utf-8") as f:
        json.dump(small, f, ensure_ascii=False, separators=(",", ":"))


def main(only=()):
    strings = make_strings()
    os.makedirs(OUT, exist_ok=True)
    write("strings.json", strings)
    write_templates()
    for family in FAMILIES:
        name = family.__name__
        if only and name not in only:
            continue
        os.makedirs(os.path.join(OUT, name), exist_ok=True)
        root = family()
        write(name + "/tokenizer.json", root)
        if name in SEEDED:
            write_seed(name, root)
        t = Tokenizer.from_str(json.dumps(root))
        for a in root["added_tokens"]:
            assert t.token_to_id(a["content"]) == a["id"], (name, a, t.token_to_id(a["content"]))
        golden(name, strings, lambda s: t.encode(s).ids, lambda i: t.decode(i),
               lambda i: t.decode(i, skip_special_tokens=False))
    for name, options in SENTENCEPIECES.items():
        if only and name not in only:
            continue
        os.makedirs(os.path.join(OUT, name), exist_ok=True)
        model = train_sentencepiece(**options)
        with open(os.path.join(OUT, name, "tokenizer.model"), "wb") as f:
            f.write(model)
        sp = sentencepiece.SentencePieceProcessor(model_proto=model)
        # Control pieces in a text are ours, and the unknown piece's surface: neither is compared.
        plain = [s.replace("<s>", "<S>").replace("</s>", "</S>").replace("<unk>", "<UNK>") for s in strings]
        golden(name, plain, lambda s: [sp.bos_id()] + sp.encode(s),
               lambda ids: sp.decode([i for i in ids if i != sp.unk_id()]), lambda ids: "")


if __name__ == "__main__":
    CORPUS = corpus()
    sys.exit(main(sys.argv[1:]))
