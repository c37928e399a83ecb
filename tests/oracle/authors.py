#!/usr/bin/env python3
"""Step counts of the authors' own programs on the reference family (models/), which make test holds our methods against. Run by
hand, from the repository's root, with the authors' repositories cloned into REPOS (nothing of theirs is kept here):

    REPOS/LookaheadDecoding  github.com/hao-ai-lab/LookaheadDecoding at eed010d
    REPOS/Ouroboros          github.com/thunlp/Ouroboros at 7dac65b
    REPOS/Spec-Bench         github.com/hemingkx/Spec-Bench at fd2c1cd
    REPOS/Kangaroo           github.com/Equationliu/Kangaroo at 4f0949d
    REPOS/EAGLE              github.com/SafeAILab/EAGLE at cb7e084
    REPOS/Medusa             github.com/FasterDecoding/Medusa at e2a5d20
    REPOS/LayerSkip          github.com/facebookresearch/LayerSkip at f42c669
    REPOS/SAM-Decoding       github.com/hyx1999/SAM-Decoding at 18c41f0
    REPOS/ArcticInference    github.com/snowflakedb/ArcticInference at 9d46438

Each part runs with torch 2.6.0, numpy below 2 and the transformers that its program was written for:

    4.36.2  prompts lade ouroboros spec-bench
    4.33.3  kangaroo
    4.37.1  medusa medusa-own eagle-fixed sps rest recycling
    4.45.2  layerskip sam
    4.57.1  hugging-face eagle eagle3 suffix

    python3 -m venv /tmp/authors && /tmp/authors/bin/pip install torch==2.6.0 transformers==4.36.2 'numpy<2'
    /tmp/authors/bin/python tests/oracle/authors.py REPOS prompts lade ouroboros spec-bench

rest also wants the authors' retriever (PyPI's draftretriever is another project's), which is a wheel for Python 3.9 in
Spec-Bench/model/rest/DraftRetriever/wheels: its .so loads into 3.11 too when it's renamed to draftretriever.so.

Every part writes a file of tests/fixtures/authors: prompts.tsv (the prompts' ids and the greedy tokens after them) or
PART.tsv (a row a setting: our name of it, whether EOS ends the text, the program, the target's passes for each prompt).
Both sides run in f32. Where the authors draw a window from random.choice, our generator's numbers are put in its
place, so that both windows begin alike. Each output is compared with plain greedy search before it is written.
"""
import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
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


# --- Kangaroo, Medusa, EAGLE, SAM-Decoding and REST: their first pass only reads the prompt. Ours get its token as the
# prompt's last one.

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


# --- EAGLE, Medusa's own repository: they count a step's guesses where they judge them

def emitted_by(module):
    """tokens of each step, the root for one: a list that grows as their program runs"""
    emitted, judge = [], module.evaluate_posterior

    def judged(*a, **k):
        out = judge(*a, **k)
        emitted.append(int(out[1]) + 1)
        return out

    module.evaluate_posterior = judged
    return emitted


def counted_run(ids, emitted, run):
    emitted.clear()
    out = run(torch.tensor([ids]))[0].tolist()
    return out[len(ids):], 1 + passes_until(TOKENS - 1, emitted)


def eagle_folders(folder, draft, weights):
    """the target with the index that EAGLE finds the embedding by, and the draft as torch's file"""
    for name in ("config.json", "model.safetensors"):
        os.symlink(os.path.abspath(f"{MODELS}/reference/{name}"), f"{folder}/{name}")
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump(dict(weight_map={"model.embed_tokens.weight": "model.safetensors"}), f)
    os.mkdir(f"{folder}/draft")
    os.symlink(os.path.abspath(f"{draft}/config.json"), f"{folder}/draft/config.json")
    torch.save(weights, f"{folder}/draft/pytorch_model.bin")
    return folder, f"{folder}/draft"


def eagle(version, part):
    sys.path.insert(0, f"{REPOS}/EAGLE")
    without("eagle.model.modeling_qwen2_kv", "eagle.model.modeling_qwen3_kv", "eagle.model.modeling_mixtral_kv")
    import eagle.model.ea_model as theirs
    from safetensors.torch import load_file
    theirs.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda *a, **k: tokenizer_with(-1))
    emitted, draft = emitted_by(theirs), f"{MODELS}/reference-{part}"
    given = load_file(f"{draft}/model.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        model = theirs.EaModel.from_pretrained(version == 3, *eagle_folders(folder, draft, given),
                                               torch_dtype=torch.float32).eval()
    kept = model.ea_layer.state_dict()
    assert set(given) == set(kept) - {"embed_tokens.weight"}, set(given) ^ set(kept)
    assert all(torch.equal(kept[name], w.float()) for name, w in given.items())

    def setting(total, depth, top):
        def run(ids):
            layer = model.ea_layer
            layer.total_tokens, layer.depth, layer.top_k = total - 1, depth, top
            layer.init_tree()
            return counted_run(ids, emitted, lambda x: model.eagenerate(x, max_new_tokens=TOKENS, max_length=1024))
        return f"{part}:total={total},depth={depth},top={top}", False, run

    record(part, "EAGLE cb7e084, transformers " + transformers.__version__,
           [setting(60, 7, 10), setting(26, 5, 8), setting(12, 2, 4)] if version == 1 else
           [setting(60, 7, 10), setting(31, 3, 6)])


def eagle_fixed():
    sys.path.insert(0, f"{REPOS}/Spec-Bench")
    without("fastchat", "fastchat.utils", "evaluation.eval")
    import evaluation.inference_eagle as theirs
    import model.eagle.ea_model as models
    from safetensors.torch import load_file
    models.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda *a, **k: tokenizer_with(-1))
    base = open_model("reference", models.KVLlamaForCausalLM)
    draft = f"{MODELS}/reference-eagle"
    model = models.EaModel(base, draft, f"{draft}/config.json")
    load_part(model.ea_layer, dict(load_file(f"{draft}/model.safetensors"),
                                   **{"embed_tokens.weight": base.model.embed_tokens.weight}))
    emitted = emitted_by(theirs)

    def run(ids):
        return counted_run(ids, emitted, lambda x: theirs.ea_forward(types.SimpleNamespace(input_ids=x), model,
                                                                     tokenizer_with(-1), TOKENS,
                                                                     tree_choices=models.mc_sim_7b_63)[0])

    record("eagle-fixed", "Spec-Bench fd2c1cd, transformers " + transformers.__version__,
           [("eagle:tree=static", False, run)])


def medusa_own():
    sys.path.insert(0, f"{REPOS}/Medusa")
    import medusa.model.medusa_model as theirs
    from medusa.model.medusa_choices import mc_sim_7b_63, vicuna_7b_stage2
    from safetensors.torch import load_file
    theirs.AutoTokenizer = types.SimpleNamespace(
        from_pretrained=lambda *a, **k: types.SimpleNamespace(eos_token_id=-1, decode=lambda ids, **k: ids))
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(f"{MODELS}/reference/model.safetensors"), f"{folder}/model.safetensors")
        with open(f"{MODELS}/reference/config.json") as f, open(f"{folder}/config.json", "w") as out:
            json.dump(dict(json.load(f), medusa_num_heads=HEADS, medusa_num_layers=1), out)
        model = theirs.MedusaModelLlama.from_pretrained(folder, torch_dtype=torch.float32).eval()
    load_part(model.medusa_head, load_file(f"{MODELS}/reference-medusa/model.safetensors"))
    emitted = emitted_by(theirs)

    def setting(choices):
        def generate(ids):
            for step in model.medusa_generate(ids, max_steps=TOKENS, medusa_choices=choices):
                if sum(emitted) >= TOKENS:
                    break
            return torch.cat([ids, step["text"][None]], 1)

        paths = sorted("".join(map(str, path)) for path in choices)
        return ("medusa:tree=" + ";".join(sorted(paths, key=len)), False,
                lambda ids: counted_run(ids, emitted, generate))

    record("medusa-own", "Medusa e2a5d20, transformers " + transformers.__version__,
           [setting([c for c in choices if len(c) <= HEADS]) for choices in (mc_sim_7b_63, vicuna_7b_stage2)])


def layerskip():
    sys.path.insert(0, f"{REPOS}/LayerSkip")
    without("colorama")
    from self_speculation.generator_base import GenerationConfig
    from self_speculation.self_speculation_generator import SelfSpeculativeGenerationStrategy as Theirs
    model, passes, step = open_model("reference", attn_implementation="eager"), [0], Theirs.single_step_speculation

    def counted(*a, **k):
        passes[0] += 1
        return step(*a, **k)

    Theirs.single_step_speculation = counted

    def setting(layer, gamma, heeded):
        def run(ids):
            passes[0] = 0
            config = GenerationConfig(max_steps=TOKENS, exit_layer=layer, num_speculations=gamma, sample=False)
            out = Theirs().generate_token_ids(model, list(ids), [2 if heeded else -1], config).predicted_tokens
            return out + [2] * (len(out) < TOKENS), passes[0]  # they drop EOS
        return f"early-exit:exit_layer={layer},gamma={gamma}", heeded, run

    record("layerskip", "LayerSkip f42c669, transformers " + transformers.__version__,
           [setting(2, 6, False), setting(3, 4, False), setting(5, 12, False), setting(3, 4, True)])


# --- SAM-Decoding: its program without a second draft, and the one with Token Recycling

def sam():
    sys.path.insert(0, f"{REPOS}/SAM-Decoding")
    assert transformers.LlamaTokenizer and transformers.LlamaForCausalLM  # loaded while pandas may still be looked for
    without("pandas", "datasets")
    import samd
    import samd_sam_only

    # A chain that ends early is padded with zeros, which would teach Token Recycling a row of token 0.
    real, gen_draft, update = [0], samd.sam.DynSAM.gen_draft, samd.tree_model.tree_model_cls["token_recycle"].update

    def counted_draft(self, index, start):
        real[0] = 1 + self.max_length - self.states[self.to_anc(index)].min_endpos
        return gen_draft(self, index, start)

    def update_real(self, tree_tokens, tree_logits, **rest):
        n, real[0] = real[0] or len(tree_tokens), 0
        update(self, tree_tokens[:n], tree_logits[:n], **rest)

    samd.sam.DynSAM.gen_draft = counted_draft
    samd.tree_model.tree_model_cls["token_recycle"].update = update_real

    def setting(theirs, name, config):
        lm = open_model("reference", attn_implementation="eager")
        draft = theirs.DraftModel(config, lm=lm, dtype=torch.float32, device="cpu")
        model = theirs.SamdModel(config, lm, draft, -1, torch.float32, "cpu").eval()

        def run(ids):
            if theirs is samd:
                draft.tree_model.cache = {}
            out = model.generate(torch.tensor([ids]), generation_config=theirs.SamdGenerationConfig(
                max_new_tokens=TOKENS, max_cache_len=4096))
            return out.output_ids[0][len(ids):], 1 + passes_until(TOKENS - 1, out.accepet_length_per_step)
        return name, False, run

    def alone(most, alpha):
        return setting(samd_sam_only, f"suffix:pick=first,depth=256,draft={most - 1},factor={alpha}",
                       samd_sam_only.SamdConfig(max_predicts=most, alpha=alpha, cache_type="dynamic"))

    def recycling(most, threshold):
        return setting(samd, f"mix:suffix(pick=room,depth=256,draft={most - 1},factor=100)"
                       f"+recycling(tree=samd,prompt=on,fill=zero,warm=off),switch=match,threshold={threshold}",
                       samd.SamdConfig(n_predicts=most, len_threshold=threshold, cache_type="dynamic"))

    record("sam", "SAM-Decoding 18c41f0, transformers " + transformers.__version__,
           [alone(60, 4), alone(16, 1), recycling(40, 5), recycling(15, 3)])


# --- SuffixDecoding: no model runs, since their program takes the text that it is held to

def suffix_module(folder):
    """
    Their C++ tree for Python, compiled as their build does (it wants nanobind). Which of equally likely tokens of a tree
    comes first is left to the standard library's heap there, so their queue's items are numbered here: the earlier one.
    """
    import nanobind
    source = f"{REPOS}/ArcticInference/csrc/suffix_decoding"
    includes = [sysconfig.get_path("include"), nanobind.include_dir(),
                os.path.join(nanobind.source_dir(), "../ext/robin_map/include")]
    path, text = f"{folder}/_C.so", open(f"{source}/suffix_tree.cc").read()
    for old, new in (("struct HeapItem {", "struct HeapItem { static inline long made = 0; long number = made++;"),
                     ("return a.prob < b.prob;", "return a.prob < b.prob || (a.prob == b.prob && a.number > b.number);")):
        assert text.count(old) == 1
        text = text.replace(old, new)
    with open(f"{folder}/suffix_tree.cc", "w") as f:
        f.write(text)
    subprocess.run(["g++", "-std=c++20", "-O3", "-fPIC", "-shared", "-o", path, f"{source}/bindings.cc",
                    f"{folder}/suffix_tree.cc", f"-I{source}", os.path.join(nanobind.source_dir(), "nb_combined.cpp"),
                    *("-I" + name for name in includes)], check=True)
    spec = importlib.util.spec_from_file_location("arctic_inference.suffix_decoding._C", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def suffix():
    import numpy
    sys.path.insert(0, f"{REPOS}/ArcticInference")
    assert transformers.AutoTokenizer  # loaded while pandas may still be looked for
    without("pandas")
    with tempfile.TemporaryDirectory() as folder:
        sys.modules["arctic_inference.suffix_decoding._C"] = suffix_module(folder)
    from arctic_inference.suffix_decoding.simulator import SuffixDecodingCache, suffix_decode
    greedy = {tuple(ids): text for _, ids, text in prompts()}

    def setting(warm, heeded, depth=64, draft=16, factor=1.0, least=0.1, tree=False):
        cache, number = SuffixDecodingCache(depth, -1 if warm else 0), itertools.count()

        def run(ids):
            text = expected(greedy[tuple(ids)], heeded)
            steps = suffix_decode(cache, next(number), numpy.array(ids, dtype="int32"),
                                  numpy.array(text, dtype="int32"), draft, factor, least, tree, True)
            return text, len(steps)
        name = f"suffix:depth={depth},draft={draft},factor={factor:g},min_prob={least:g}"
        return name + ",tree=on" * tree + ",warm=on" * warm, heeded, run

    record("suffix", "ArcticInference 9d46438",
           [setting(warm, False, *rest) for warm in (False, True)
            for rest in ((), (24, 8, 4, .3), (64, 16, 2, 0, True))] + [setting(False, True), setting(True, True)])


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
PARTS.update({"spec-bench": spec_bench, "hugging-face": hugging_face, "eagle": lambda: eagle(1, "eagle"),
              "eagle3": lambda: eagle(3, "eagle3"), "eagle-fixed": eagle_fixed, "medusa-own": medusa_own,
              "layerskip": layerskip, "suffix": suffix, "sam": sam})

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
torch.set_grad_enabled(False)
for part in sys.argv[2:]:
    PARTS[part]()
