#!/usr/bin/env python3
"""Step counts of the authors' own programs on the reference family (models/), which make test holds our methods against. Run by
hand, from the repository's root, with the authors' repositories cloned into REPOS (nothing of theirs is kept here):

    REPOS/LookaheadDecoding  github.com/hao-ai-lab/LookaheadDecoding at eed010d
    REPOS/Ouroboros          github.com/thunlp/Ouroboros at 7dac65b
    REPOS/Spec-Bench         github.com/hemingkx/Spec-Bench at fd2c1cd
    REPOS/Kangaroo           github.com/Equationliu/Kangaroo at 4f0949d

Each part runs with torch 2.6.0, numpy below 2 and the transformers that its program was written for:

    4.36.2  prompts lade ouroboros spec-bench
    4.33.3  kangaroo
    4.37.1  medusa sps rest recycling
    4.57.1  hugging-face

    python3 -m venv /tmp/authors && /tmp/authors/bin/pip install torch==2.6.0 transformers==4.36.2 'numpy<2'
    /tmp/authors/bin/python tests/oracle/authors.py REPOS prompts lade ouroboros spec-bench

rest also wants the authors' retriever (PyPI's draftretriever is another project's), which is a wheel for Python 3.9 in
Spec-Bench/model/rest/DraftRetriever/wheels: its .so loads into 3.11 too when it's renamed to draftretriever.so.

Every part writes a file of tests/fixtures/authors: prompts.tsv (the prompts' ids and the greedy tokens after them) or
PART.tsv (a row a setting: our name of it, whether EOS ends the text, the program, the target's passes for each prompt).
Both sides run in f32. Where the authors draw a window from random.choice, our generator's numbers are put in its
place, so that both windows begin alike. Each output is compared with plain greedy search before it is written.
"""
import json
import os
import random
import sys
import types
import unittest.mock

sys.path.pop(0)  # tokenizers.py beside this file has the name of a package that transformers wants
import torch
import transformers

OUT, MODELS, TOKENS, EACH = "tests/fixtures/authors", "models", 128, 4
SETS = ["chat", "code", "mathematics", "summarisation", "translation"]
LADE, LADE_EOS = [(5, 3), (7, 5), (15, 5)], [(5, 3), (7, 5), (15, 5), (20, 7)]
REPOS = sys.argv[1]


# --- our random numbers (engine/base/random.c): seed 0, the stream of methods

def philox(counter, stream=3):
    c, k0, k1 = [counter & 0xffffffff, counter >> 32, stream, 0], 0, 0
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xffffffff, (a >> 32) ^ c[3] ^ k1, a & 0xffffffff]
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return c[0] | c[1] << 32


class Draws:
    counter = 0

    def choice(self, tokens):
        self.counter += 1
        return tokens[((philox(self.counter - 1) >> 32) * len(tokens)) >> 32]


def restart_draws():
    random.choice = Draws().choice


# --- prompts and models

def texts():
    for name in SETS:
        with open(f"datasets/small/{name}.jsonl") as f:
            for row in [json.loads(line) for line in f][:EACH]:
                yield row["id"], row["prompt"] if "prompt" in row else row["turns"][0]


def prompts():
    with open(f"{OUT}/prompts.tsv") as f:
        for line in f:
            name, ids, greedy = line.rstrip("\n").split("\t")
            yield name, [int(i) for i in ids.split()], [int(i) for i in greedy.split()]


def open_model(name, cls=None, **options):
    model = (cls or transformers.AutoModelForCausalLM).from_pretrained(f"{MODELS}/{name}",
                                                                       torch_dtype=torch.float32, **options)
    return model.eval()


def ending(model, heeded):
    # A pad token that is not EOS would be masked where it stands in the text.
    model.generation_config.eos_token_id = model.generation_config.pad_token_id = 2 if heeded else None


def make_prompts():
    tokenizer = transformers.AutoTokenizer.from_pretrained(f"{MODELS}/reference")
    model = open_model("reference")
    ending(model, False)
    with open(f"{OUT}/prompts.tsv", "w") as f:
        for name, text in texts():
            ids = tokenizer(text).input_ids
            out = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=TOKENS)[0].tolist()
            f.write("\t".join([name, *(" ".join(map(str, x)) for x in (ids, out[len(ids):]))]) + "\n")


def expected(greedy, heeded):
    return greedy[:greedy.index(2) + 1] if heeded and 2 in greedy else greedy


def record(part, program, rows):
    """rows: our method, whether EOS is heeded, a function from (ids) to (new ids, passes)"""
    with open(f"{OUT}/{part}.tsv", "w") as f:
        for method, heeded, run in rows:
            counts = []
            for name, ids, greedy in prompts():
                out, passes = run(ids)
                if out[:TOKENS] != expected(greedy, heeded):
                    print(f"{method}, {name}: not what greedy search writes", file=sys.stderr)
                    passes = "-"
                counts.append(passes)
            f.write("\t".join([method, "eos" if heeded else "none", program, " ".join(map(str, counts))]) + "\n")
            f.flush()
            print(method, heeded, sum(c for c in counts if c != "-"))


# --- Lookahead

def lade():
    os.environ["USE_LADE"] = "1"
    sys.path.insert(0, f"{REPOS}/LookaheadDecoding")
    import lade as theirs
    from lade.decoding import CONFIG_MAP
    theirs.augment_all()
    model = open_model("reference", attn_implementation="eager")

    def setting(W, N, heeded, pool):
        def run(ids):
            theirs.config_lade(LEVEL=N, WINDOW_SIZE=W, GUESS_SET_SIZE=W, DEBUG=1, POOL_FROM_PROMPT=pool)
            ending(model, heeded)
            restart_draws()
            out = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=TOKENS)[0].tolist()
            return out[len(ids):], CONFIG_MAP["log"][-1][1]
        return f"lookahead:mode=reference,W={W},N={N},G={W}" + (",prompt_pool=on" if pool else ""), heeded, run

    rows = [setting(W, N, False, 0) for W, N in LADE] + [setting(W, N, True, 0) for W, N in LADE_EOS]
    rows += [setting(W, N, heeded, 1) for W, N in LADE[:2] for heeded in (False, True)]
    record("lade", "LookaheadDecoding eed010d, transformers 4.36.2", rows)


# --- Ouroboros

def ouroboros():
    sys.path.insert(0, f"{REPOS}/Ouroboros")
    from ouroboros import ouroboros as theirs
    from ouroboros.kv_cache_model import KVCacheModelSimpleWithGuess as Target
    from ouroboros.models import LlamaForCausalLM
    target, draft = (open_model(name, LlamaForCausalLM) for name in ("reference", "draft"))
    passes, forward = [0], Target._forward_with_kvcache

    def counted(*a, **k):
        passes[0] += 1
        return forward(*a, **k)

    Target._forward_with_kvcache = counted

    def setting(gamma, W, beta):
        def run(ids):
            ending(target, False), ending(draft, False)
            restart_draws()
            passes[0] = 0
            out = theirs(torch.tensor([ids]), draft, target, max_len=TOKENS, gamma=gamma, window_size=W,
                         guess_set_size=W, lookahead_level=beta, eos_token_id=-1, topk=3)[0].tolist()
            return out[len(ids):], passes[0]
        return f"ouroboros:mode=reference,gamma={gamma},K=3,beta={beta},W={W},window={W}", False, run

    record("ouroboros", "Ouroboros 7dac65b, transformers 4.36.2",
           [setting(12, 20, 7), setting(4, 5, 4)])


# --- Spec-Bench's prompt lookup; Hugging Face's, and its assisted generation

def counted_model():
    model = open_model("reference")
    passes, forward = [0], model.forward

    def counted(*a, **k):
        passes[0] += 1
        return forward(*a, **k)

    model.forward = counted
    return model, passes


def spec_bench():
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    real, torch.device = torch.device, lambda name: real("cpu")  # the file wants a GPU as it is imported
    from model.pld.pld import greedy_search_pld
    torch.device = real
    from transformers import MaxLengthCriteria, StoppingCriteriaList
    model, passes = counted_model()

    def setting(heeded):
        def run(ids):
            passes[0] = 0
            out = greedy_search_pld(model, torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), use_cache=True,
                                    stopping_criteria=StoppingCriteriaList([MaxLengthCriteria(len(ids) + TOKENS)]),
                                    eos_token_id=2 if heeded else -1, pad_token_id=2)[0][0].tolist()
            return expected(out[len(ids):], heeded), passes[0]
        return "prompt-lookup:draft=10,ngram_max=3", heeded, run

    record("spec-bench", "Spec-Bench fd2c1cd, transformers 4.36.2", [setting(False), setting(True)])


def hugging_face():
    model, passes = counted_model()
    draft = open_model("draft")

    def setting(name, heeded, options, drafting=None):
        def run(ids):
            for m in (model, draft): # their candidates' EOS must be a number
                m.generation_config.eos_token_id, m.generation_config.pad_token_id = 2 if heeded else -1, 2
            for key, value in (drafting or {}).items():
                setattr(draft.generation_config, key, value)
            passes[0] = 0
            extra = dict(options, assistant_model=draft) if drafting else options
            out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                 do_sample=False, max_new_tokens=TOKENS, **extra)[0].tolist()
            return out[len(ids):], passes[0]
        return name, heeded, run

    rows = []
    for heeded in (False, True):
        for tokens, ngram in ((10, 2), (4, 3), (2, 3)):
            rows.append(setting(f"prompt-lookup:draft={tokens},ngram_max={ngram},allow_short=on", heeded,
                                dict(prompt_lookup_num_tokens=tokens, max_matching_ngram_size=ngram)))
        for name, tokens, schedule, threshold in (("speculative:gamma=5", 5, "constant", 0),
                                                  ("speculative:gamma=5,adaptive=heuristic", 5, "heuristic", 0),
                                                  ("speculative:gamma=20,adaptive=confidence,confidence=0.4", 20,
                                                   "constant", 0.4)):
            rows.append(setting(name, heeded, {}, dict(num_assistant_tokens=tokens,
                                                       num_assistant_tokens_schedule=schedule,
                                                       assistant_confidence_threshold=threshold)))
    record("hugging-face", "transformers " + transformers.__version__, rows)


# --- Kangaroo, Medusa and REST: their first pass only reads the prompt. Ours get its token as the prompt's last one.

def without(*modules):
    """what their files import and these parts don't call"""
    for name in modules:
        sys.modules[name] = unittest.mock.MagicMock()


def tokenizer_with(eos):
    return types.SimpleNamespace(eos_token_id=eos)


def passes_until(tokens, emitted):
    """the first passes of `emitted` that together emit so many tokens"""
    passes = 0
    while tokens > 0:
        tokens -= emitted[passes]
        passes += 1
    return passes


def load_part(module, weights):
    missing, unexpected = module.load_state_dict(weights, strict=False)
    assert not unexpected and all("inv_freq" in name for name in missing), (missing, unexpected)
    return module.float().eval()


def kangaroo():
    sys.path.insert(0, f"{REPOS}/Kangaroo")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    from evaluation.inference_kangaroo import kangaroo_forward
    from kangaroo.adapter import AdapterModel
    from kangaroo.earlyexit import EarlyExitLlamaForCausalLM
    from safetensors.torch import load_file
    layer = 2
    base = open_model("reference", EarlyExitLlamaForCausalLM, EARLY_STOP_LAYER=layer)
    config = transformers.LlamaConfig.from_pretrained(f"{MODELS}/reference", num_hidden_layers=1)
    config.num_key_value_heads = config.num_attention_heads
    weights = load_file(f"{MODELS}/reference-kangaroo-2/model.safetensors")
    adapter = load_part(AdapterModel(config), {name if name.startswith("norm") else "layers.0." + name: w
                                               for name, w in weights.items()})
    model = types.SimpleNamespace(base_model=base, adapter_model=adapter, head_model=base.lm_head)

    def setting(gamma, eta, heeded):
        def run(ids):
            # their loop ends where gamma + 1 more tokens might pass the limit
            out, _, _, emitted = kangaroo_forward(types.SimpleNamespace(input_ids=torch.tensor([ids])), model,
                                                  tokenizer_with(2 if heeded else -1), TOKENS + gamma,
                                                  EARLY_STOP_LAYER=layer, SPECULATIVE_DECODING_STEPS=gamma,
                                                  threshold=eta)
            return out[0][len(ids):], len(emitted)
        return f"kangaroo:gamma={gamma},eta={eta},strict=on", heeded, run

    record("kangaroo", "Kangaroo 4f0949d, transformers " + transformers.__version__,
           [setting(6, 0.6, False), setting(4, 0.3, False), setting(6, 0.6, True)])


def with_cache(model, initialize):
    """their cache, with as many heads as the model has keys: theirs has as many as queries"""
    c, base = model.base_model.config, model.base_model
    width = c.hidden_size // c.num_attention_heads * c.num_key_value_heads
    shape = types.SimpleNamespace(num_hidden_layers=c.num_hidden_layers, num_attention_heads=c.num_key_value_heads,
                                  max_position_embeddings=c.max_position_embeddings, hidden_size=width)
    model.past_key_values, model.past_key_values_data, model.current_length_data = initialize(
        types.SimpleNamespace(config=shape, device=base.device, dtype=base.dtype))
    return model


HEADS = 4


def medusa():
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    from evaluation.inference_medusa import initialize_past_key_values, mc_sim_7b_63, medusa_forward
    from model.medusa.medusa_model import KVLlamaForCausalLM, MedusaModel
    from safetensors.torch import load_file
    base = open_model("reference", KVLlamaForCausalLM)
    model = with_cache(MedusaModel(base, HEADS, 1, f"{MODELS}/reference"), initialize_past_key_values)
    for name, w in load_file(f"{MODELS}/reference-medusa/model.safetensors").items():
        model.medusa_head.state_dict()[name].copy_(w)

    def setting(choices):
        def run(ids):
            out, _, _, emitted = medusa_forward(types.SimpleNamespace(input_ids=torch.tensor([ids])), model,
                                                tokenizer_with(-1), TOKENS, medusa_choices=choices)
            return out[0, len(ids):].tolist(), 1 + passes_until(TOKENS - 1, emitted)
        paths = sorted("".join(map(str, path)) for path in choices)
        return "medusa:tree=" + ";".join(sorted(paths, key=len)), False, run

    record("medusa", "Spec-Bench fd2c1cd, transformers " + transformers.__version__,
           [setting(mc_sim_7b_63)])


def can_keep_all(store, phrase, draft):
    """whether their retriever survives: 64 prefixes at most, and a match must not end the store"""
    text, phrase = ("".join(map(chr, x)) for x in (store, phrase))
    at, rows, found = text.find(phrase), set(), False
    while at >= 0:
        after = text[at + len(phrase):][:draft]
        rows.update(after[:n + 1] for n in range(len(after)))
        at, found = text.find(phrase, at + 1), True
    return len(rows) <= 64 and (rows or not found)


def rest():
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    import draftretriever
    from evaluation.inference_rest import initialize_past_key_values, rest_forward
    from model.rest.rest.model.rest_model import KVLlamaForCausalLM, RestModel
    model = with_cache(RestModel(open_model("reference", KVLlamaForCausalLM), f"{MODELS}/reference"),
                       initialize_past_key_values)
    store = [token for _, ids, greedy in prompts() for token in ids + greedy[:TOKENS // 4]]
    path = "/tmp/authors.idx"
    writer = draftretriever.Writer(path, max_chunk_len=1 << 20, vocab_size=model.vocab_size)
    writer.add_entry(store)
    writer.finalize()
    reader = draftretriever.Reader(path)

    def setting(draft, longest, shortest):
        # Which of equally frequent prefixes their retriever keeps is random, and it aborts above 64 rows. So it may
        # keep all here, and a prompt for which that is too many gets no count.
        def search(tokens, choices):
            if not can_keep_all(store, tokens, draft):
                raise OverflowError
            return reader.search(tokens, choices=1 << 20, long=draft)

        def run(ids):
            try:
                out, _, _, emitted = rest_forward(types.SimpleNamespace(input_ids=torch.tensor([ids])), model,
                                                  tokenizer_with(-1), TOKENS,
                                                  datastore=types.SimpleNamespace(search=search),
                                                  token_spans=list(range(longest, shortest - 1, -1)))
            except OverflowError:
                return [], 0
            return out[0, len(ids):].tolist(), 1 + passes_until(TOKENS - 1, emitted)
        return f"rest:longest={longest},shortest={shortest},draft={draft},nodes=64,matches=5000", False, run

    record("rest", "Spec-Bench fd2c1cd, transformers " + transformers.__version__,
           [setting(3, 16, 2), setting(5, 16, 3)])


def sps():
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    from evaluation.inference_sps import assisted_decoding, sps_forward
    transformers.GenerationMixin.assisted_decoding = assisted_decoding
    model, passes = counted_model()
    draft = open_model("draft")

    def setting(heeded):
        def run(ids):
            for m in (model, draft):
                m.generation_config.eos_token_id, m.generation_config.pad_token_id = 2 if heeded else -1, 2
            passes[0] = 0
            inputs = transformers.BatchEncoding(dict(input_ids=torch.tensor([ids]),
                                                     attention_mask=torch.ones(1, len(ids), dtype=torch.long)))
            out = sps_forward(inputs, model, None, TOKENS, drafter=draft)[0][0].tolist()
            return out[len(ids):], passes[0]
        return "speculative:gamma=5,adaptive=heuristic", heeded, run

    record("sps", "Spec-Bench fd2c1cd, transformers " + transformers.__version__, [setting(False), setting(True)])


def recycling():
    """Their first pass reads all of the prompt but its last token and writes none: it isn't counted, nor is ours."""
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    import evaluation.inference_recycling as theirs
    from model.recycling.modeling_llama_kv import LlamaForCausalLM
    torch.Tensor.cuda = lambda x: x
    theirs.torch = types.SimpleNamespace(**{**vars(torch), "device": lambda _: "cpu"})
    model = open_model("reference", LlamaForCausalLM)

    def setting():
        def run(ids):
            theirs.adj_matrix = torch.zeros(model.config.vocab_size, 8, dtype=torch.long)
            out, _, _, emitted = theirs.recycling_forward(types.SimpleNamespace(input_ids=torch.tensor([ids])), model,
                                                          tokenizer_with(-1), TOKENS + 8)
            return out[0, len(ids):].tolist(), passes_until(TOKENS, emitted)
        return "recycling:mode=reference,warm=off", False, run

    record("recycling", "Spec-Bench fd2c1cd, transformers " + transformers.__version__, [setting()])


PARTS = dict(prompts=make_prompts, lade=lade, ouroboros=ouroboros, kangaroo=kangaroo, medusa=medusa, rest=rest,
             sps=sps, recycling=recycling)
PARTS.update({"spec-bench": spec_bench, "hugging-face": hugging_face})

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
torch.set_grad_enabled(False)
for part in sys.argv[2:]:
    PARTS[part]()
