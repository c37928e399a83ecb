#!/usr/bin/env python3
"""What the authors' own programs guess, step by step, with random models of our own; of MTP, for which there is none, a network
of transformers' parts, without a cache. Run by hand, from the repository's root, with
the authors' repositories cloned into REPOS (nothing of theirs is kept here):

    REPOS/DeepSpec   github.com/deepseek-ai/DeepSpec at afdfa7c    torch 2.6.0, transformers 5.10.2
    REPOS/PARD       github.com/AMD-AGI/PARD at 6f279bf            torch 2.6.0, transformers 4.57.1

    python3 -m venv /tmp/drafts && /tmp/drafts/bin/pip install torch==2.6.0 transformers==5.10.2 'numpy<2' prettytable
    /tmp/drafts/bin/python tests/oracle/drafts.py REPOS deepspec

Each part writes tests/fixtures/drafts/PART: target and draft, saved by transformers and by the authors' class, and steps.json, a
list of prompts, each with its greedy ids and the guesses of every step. All of it runs in f32 on numbers of bf16. The vocabulary
is so small that a guess is right now and then. tests/engine/decode/methods/drafts_test.c holds our methods against them.
"""
import json
import os
import shutil
import sys
import types
import unittest.mock

REPOS, OUT = sys.argv[1], "tests/fixtures/drafts"
sys.path.pop(0)  # tokenizers.py beside this file has the name of a package that transformers wants
import torch
if not hasattr(torch, "float8_e8m0fnu"):
    torch.float8_e8m0fnu = torch.uint8  # transformers 5 names this type of newer torches
import transformers

VOCAB, PROMPTS, LENGTH, TOKENS = 16, 3, 9, 48
SHAPE = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=40, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
             max_position_embeddings=128, rms_norm_eps=1e-6, bos_token_id=None, eos_token_id=None, pad_token_id=None)


def round_weights(model, scale):
    """spreads the weights out, so that guesses differ, and rounds them to bf16"""
    for name, w in model.named_parameters():
        w.copy_((w if "norm" not in name else 1 + 0.2 * torch.randn_like(w)).bfloat16() if w.dim() == 1
                else (torch.randn_like(w) * scale / w.shape[-1] ** 0.5).bfloat16())
    return model.eval()


def save(model, folder):
    """and opens it again: a conversion to bf16 would stay in the frequencies of rotation"""
    model.to(torch.bfloat16).save_pretrained(folder)
    for extra in set(os.listdir(folder)) - {"config.json", "model.safetensors"}:
        os.remove(f"{folder}/{extra}")
    return type(model).from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").eval()


def make_target(part, layers):
    torch.manual_seed(1)
    shutil.rmtree(f"{OUT}/{part}", ignore_errors=True)
    config = transformers.Qwen3Config(**SHAPE, num_hidden_layers=layers, tie_word_embeddings=False, rope_theta=1e6)
    model = round_weights(transformers.Qwen3ForCausalLM(config), 1.5)
    return save(model, f"{OUT}/{part}/target")


def prompts():
    torch.manual_seed(2)
    return torch.randint(1, VOCAB - 1, (PROMPTS, LENGTH)).tolist()  # the last id is PARD's mask


def write(part, rows):
    accepted = sum(len(r["greedy"]) - len(r["steps"]) for r in rows)
    with open(f"{OUT}/{part}/steps.json", "w") as f:
        json.dump(rows, f)
    print(part, sum(len(r["steps"]) for r in rows), "steps,", accepted, "guesses kept, transformers", transformers.__version__)


# --- DeepSpec's EAGLE-3

def deepspec():
    sys.path.insert(0, f"{REPOS}/DeepSpec")
    from deepspec.eval.base_evaluator import generate_decoding_sample
    from deepspec.eval.eagle3.evaluator import Qwen3Eagle3Evaluator
    from deepspec.modeling.eagle3.qwen3.config import build_draft_config
    from deepspec.modeling.eagle3.qwen3.modeling import Qwen3Eagle3Model
    target = make_target("deepspec", 7)
    args = types.SimpleNamespace(target_model_name_or_path="target", target_layer_ids=[0, 1, 2, 3, 5], ttt_length=7,
                                 step_loss_decay=0.8, draft_num_hidden_layers=1)
    draft = round_weights(Qwen3Eagle3Model(build_draft_config(target_config=target.config, model_args=args)), 1.5)
    draft.initialize_embeddings_and_head(embed_tokens=target.model.embed_tokens, lm_head=target.lm_head)
    draft = save(draft, f"{OUT}/deepspec/draft")
    theirs = Qwen3Eagle3Evaluator.__new__(Qwen3Eagle3Evaluator)
    theirs.args = types.SimpleNamespace(temperature=0.0, max_new_tokens=TOKENS)
    theirs.draft_model, theirs.target_model = draft, target
    rows = []
    for ids in prompts():
        steps = []

        def see(proposal, verification):
            steps.append(proposal.verify_input_ids[0, 1:].tolist())
        out = generate_decoding_sample(target_model=target, input_ids=torch.tensor([ids]), max_new_tokens=TOKENS,
                                       max_proposal_tokens=7, temperature=0.0, stop_token_ids=None,
                                       init_context=theirs._init_context, propose=theirs._propose, update=theirs._update,
                                       post_verify=see)
        # Their first token is the prompt's own pass; ours begins with a step there.
        rows.append(dict(prompt=ids, greedy=out.output_ids[0, len(ids):].tolist(), steps=steps))
    write("deepspec", rows)


# --- DeepSpec's DSpark, and its DFlash: the same class without a Markov head

def dspark(part="dspark", rank=6):
    sys.path.insert(0, f"{REPOS}/DeepSpec")
    from deepspec.eval.base_evaluator import generate_decoding_sample
    from deepspec.eval.dspark.evaluator import Qwen3DSparkEvaluator
    from deepspec.modeling.dspark.qwen3.config import build_draft_config
    from deepspec.modeling.dspark.qwen3.modeling import Qwen3DSparkModel
    target = make_target(part, 6)
    args = Arguments(num_draft_layers=2, target_layer_ids=[0, 2, 4], block_size=5, mask_token_id=VOCAB - 1, num_anchors=8,
                     confidence_head_alpha=1.0 if rank else 0.0, confidence_head_with_markov=True, markov_rank=rank,
                     markov_head_type="vanilla")
    torch.manual_seed(9 + rank)
    draft = round_weights(Qwen3DSparkModel(build_draft_config(target.config, args)), 1.5)
    draft.initialize_embeddings_and_head(embed_tokens=target.model.embed_tokens, lm_head=target.lm_head)
    draft = save(draft, f"{OUT}/{part}/draft")
    theirs = Qwen3DSparkEvaluator.__new__(Qwen3DSparkEvaluator)
    theirs.args = types.SimpleNamespace(temperature=0.0, confidence_threshold=0.0)
    theirs.draft_model, theirs.target_model = draft, target
    rows = []
    for ids in prompts():
        steps = []

        def see(proposal, verification):
            steps.append(proposal.verify_input_ids[0, 1:].tolist())
        out = generate_decoding_sample(target_model=target, input_ids=torch.tensor([ids]), max_new_tokens=TOKENS,
                                       max_proposal_tokens=5, temperature=0.0, stop_token_ids=None,
                                       init_context=theirs._init_context, propose=theirs._propose, update=theirs._update,
                                       post_verify=see)
        rows.append(dict(prompt=ids, greedy=out.output_ids[0, len(ids):].tolist(), steps=steps))
    write(part, rows)


class Arguments(types.SimpleNamespace):
    def __contains__(self, key):
        return hasattr(self, key)


# --- PARD

def pard():
    sys.path.insert(0, f"{REPOS}/PARD/pard")
    sys.modules.update(click=unittest.mock.MagicMock(), loguru=unittest.mock.MagicMock())  # its command line
    from pard_infer import PardInfer
    target = make_target("pard", 2)
    torch.manual_seed(3)
    config = transformers.LlamaConfig(**SHAPE, num_hidden_layers=2, tie_word_embeddings=True, rope_theta=1e4,
                                      pard_token=VOCAB - 1)
    draft = save(round_weights(transformers.LlamaForCausalLM(config), 1.5), f"{OUT}/pard/draft")
    theirs = PardInfer.__new__(PardInfer)
    theirs.draft_k, theirs.para, theirs.tokens, theirs.max_cache_len, theirs.log = 6, True, TOKENS, 128, False
    theirs.pard_token, theirs.model_serie = [config.pard_token] * 32, None
    torch.cuda.synchronize = lambda: None
    target.forward_gen = target.forward
    rows = []
    for ids in prompts():
        guesses, emitted = [], []

        def see(**inputs):
            out = draft(**inputs)
            guesses.append(out.logits[0, -theirs.draft_k:].argmax(-1).tolist())
            return out
        tokenizer = types.SimpleNamespace(eos_token_id=-1, decode=lambda all_ids: emitted.append(all_ids.tolist()) or "")
        theirs.get_input = lambda *_, **__: ("", torch.tensor([ids]))
        theirs.generate([""], target, types.SimpleNamespace(forward_gen=see, device=draft.device), cache(target), cache(draft),
                        tokenizer)
        rows.append(dict(prompt=ids, greedy=emitted[0][len(ids):], steps=guesses))
    write("pard", rows)


# --- MTP in MiMo's form: every row again in each step, as it follows from the text

def mtp():
    from safetensors.torch import save_file
    from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer, Qwen2RMSNorm
    torch.manual_seed(5)
    shutil.rmtree(f"{OUT}/mtp", ignore_errors=True)
    config = transformers.Qwen2Config(**SHAPE, num_hidden_layers=3, tie_word_embeddings=False, rope_theta=6.4e5)
    config._attn_implementation = "eager"
    target = round_weights(transformers.Qwen2ForCausalLM(config), 1.5)
    parts = torch.nn.ModuleDict({f"{n}_layernorm": Qwen2RMSNorm(24, 1e-6) for n in ("token", "hidden", "final")})
    parts["input_proj"], layer = torch.nn.Linear(48, 24, bias=False), Qwen2DecoderLayer(config, 0)
    round_weights(parts, 1.5), round_weights(layer, 1.5)
    for state in ("raw", "normed"):
        for recycle in ("raw", "normed"):
            write_mtp(target, parts, layer, state, recycle)
    tensors = {**target.state_dict(), **{f"model.mtp_layers.0.{n}": w for m in (parts, layer) for n, w in m.state_dict().items()}}
    names, folder, where = list(tensors), f"{OUT}/mtp/target", {}
    os.makedirs(folder)
    for i, some in enumerate((names[:-5], names[-5:])):  # the layer is in both files
        where |= {n: f"model-{i + 1}.safetensors" for n in some}
        save_file({n: tensors[n].bfloat16().contiguous() for n in some}, f"{folder}/model-{i + 1}.safetensors", {"format": "pt"})
    with open(f"{folder}/model.safetensors.index.json", "w") as f:
        json.dump(dict(weight_map=where), f)
    with open(f"{folder}/config.json", "w") as f:
        json.dump(dict(SHAPE, architectures=["MiMoForCausalLM"], model_type="mimo", attention_bias=True, num_hidden_layers=3,
                       num_nextn_predict_layers=1, rope_theta=6.4e5, tie_word_embeddings=False), f)


def write_mtp(target, parts, layer, state, recycle, gamma=4):
    model, rows = target.model, []

    def run(ids):
        kept = []
        hook = model.norm.register_forward_hook(lambda _, inputs, output: kept.extend((inputs[0][0], output[0])))
        logits = target(input_ids=torch.tensor([ids])).logits[0, -1]
        hook.remove()
        return logits.argmax().item(), kept[state == "normed"]

    def guess(h, ids):
        z = parts["input_proj"](torch.cat([parts["hidden_layernorm"](h), parts["token_layernorm"](model.embed_tokens(ids))], 1))
        n = len(z)
        turns = model.rotary_emb(z[None], torch.arange(n)[None])
        mask = torch.full((n, n), -torch.inf).triu(1)[None, None]
        z = layer(z[None], attention_mask=mask, position_embeddings=turns)
        z = (z[0] if isinstance(z, tuple) else z)[0, -1]
        normed = parts["final_layernorm"](z)
        return target.lm_head(normed).argmax().item(), normed if recycle == "normed" else z

    for prompt in prompts():
        greedy, steps = [], []
        while len(greedy) < TOKENS:
            ids = prompt + greedy
            next_id, h = run(ids)
            h, fed = h[:-1], ids[1:]
            for _ in range(gamma):
                token, out = guess(h, torch.tensor(fed))
                h, fed = torch.cat([h, out[None]]), fed + [token]
            steps.append(fed[len(ids) - 1:])
            greedy.append(next_id)
            for token in steps[-1]:
                if token != greedy[-1]:
                    break
                greedy.append(run(prompt + greedy)[0])
        rows.append(dict(prompt=prompt, greedy=greedy[:TOKENS], steps=steps))
    os.makedirs(f"{OUT}/mtp/{state}-{recycle}")
    write(f"mtp/{state}-{recycle}", rows)


def cache(model):
    return transformers.StaticCache(config=model.config, max_batch_size=1, max_cache_len=128, device=model.device,
                                    dtype=torch.float32)


transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
torch.set_grad_enabled(False)
for part in sys.argv[2:]:
    dict(deepspec=deepspec, pard=pard, mtp=mtp, dspark=dspark, dflash=lambda: dspark("dflash", 0))[part]()
