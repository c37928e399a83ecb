// The trained model as files. They go into an Output, which renames all of them together; config.json, which
// makes the directory a model, comes last (made.h).
#include "engine/train/trainer.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/model/make/made.h"
#include "engine/model/safetensors.h"

#include <assert.h>
#include <math.h>
#include <string.h>

// Leaves out an id of -1.
static void set_ids(json_t *root, const ExportNotes *n) {
    if (n->bos >= 0) json_object_set_new(root, "bos_token_id", json_integer(n->bos));
    if (n->eos >= 0) json_object_set_new(root, "eos_token_id", json_integer(n->eos));
}

// JSON has no NaN, and the loss may come from a checkpoint.
static bool set_number(json_t *object, const char *name, double x, Error *e) {
    if (!isfinite(x)) return error_input(e, "the training's '%s' is not finite", name);
    json_object_set_new(object, name, json_real(x));
    return true;
}

// Facts about the training; Hugging Face ignores the key. Agreement is the share of held-out positions at
// which the likeliest token of each model, forward or slot is the target's. No document may be long enough
// for the last forwards.
static bool set_training(json_t *root, const Trainer *t, const ExportNotes *n, Error *e) {
    json_t *training = json_pack("{s:i, s:I}", "steps", t->step, "tokens",
                                 (json_int_t)t->step * (json_int_t)t->config.batch);
    assert(root && training);
    json_object_set_new(root, "outpace_train", training);
    if (!set_number(training, "loss", t->loss, e)) return false;
    if (isnan(n->held_out_loss)) return true;
    if (!set_number(training, "held_out_loss", n->held_out_loss, e)) return false;
    if (!t->target.head) return true;
    json_t *list = json_array();
    json_object_set_new(training, "agreement", list);
    for (int i = 0; i < trainer_parts(t) && (i < t->count || !isnan(t->agreement[i])); i++) {
        if (!isfinite(t->agreement[i])) return error_input(e, "the training's agreement is not finite");
        json_array_append_new(list, json_real(t->agreement[i]));
    }
    return true;
}

static json_t *shape_json(const Shape *s) {
    return json_pack(
        "{s:[s], s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:f, s:s, s:b, s:b, s:b, s:s}",
        "architectures", "LlamaForCausalLM", "model_type", "llama", "hidden_size", s->width,
        "intermediate_size", s->mlp_width, "num_hidden_layers", s->layers, "num_attention_heads", s->heads,
        "num_key_value_heads", s->kv_heads, "head_dim", s->head_dim, "vocab_size", s->vocab,
        "max_position_embeddings", s->context, "rms_norm_eps", (double)s->norm_epsilon, "rope_theta",
        s->rope.theta, "hidden_act", "silu", "tie_word_embeddings", true, "attention_bias", false, "mlp_bias",
        false, "torch_dtype", "bfloat16");
}

static bool add_generation(const ExportNotes *notes, const char *dir, Output *out, Error *e) {
    json_auto_t *root = json_object();
    set_ids(root, notes);
    LOCAL_MEMORY char *text = json_text(root, JSON_INDENT(2)),
                      *path = file_path(dir, "generation_config.json");
    return output_add(out, path, &(OutputKind){0}, text, strlen(text), e);
}

// Rounds the parameters of one network to bf16, and describes them in `out`.
static void tensors_of(const Network *n, TensorOut *out, uint16_t *numbers) {
    const Parameters *p = &n->parameters;
    for (size_t i = 0; i < p->total; i++) numbers[i] = f32_to_bf16(n->weights[i]);
    for (int i = 0; i < p->count; i++) {
        const Parameter *x = &p->list[i];
        out[i] = (TensorOut){.name = x->name,
                             .dtype = "BF16",
                             .rows = x->vector ? 0 : (size_t)x->rows,
                             .columns = (size_t)x->columns,
                             .data = numbers + x->at,
                             .bytes = parameter_size(x) * sizeof *numbers};
    }
}

// The two maps of a head for fewer tokens: how far its ids are from the target's, and which ids it has.
static size_t maps_of(const Trainer *t, TensorOut *out, int64_t *offsets, unsigned char *has) {
    const AdapterKind *k = &t->config.adapter->kind;
    size_t count = (size_t)k->vocab, tokens = (size_t)t->config.adapter->model->shape.vocab;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = t->draft_ids[i] - (int64_t)i;
        has[t->draft_ids[i]] = 1;
    }
    out[0] = (TensorOut){"d2t", "I64", 0, count, offsets, count * sizeof *offsets};
    out[1] = (TensorOut){"t2d", "BOOL", 0, tokens, has, tokens};
    return 2;
}

static bool add_weights(const Trainer *t, const char *dir, Output *to, Error *e) {
    size_t most = 2, count = 0, at = 0, vocab = (size_t)t->config.shape.vocab;
    for (int i = 0; i < t->count; i++) most += (size_t)t->networks[i].parameters.count;
    LOCAL_MEMORY uint16_t *numbers = mem_try(trainer_parameters(t), sizeof *numbers);
    LOCAL_MEMORY TensorOut *out = mem_new(most, sizeof *out);
    LOCAL_MEMORY int64_t *offsets = mem_new(vocab, sizeof *offsets);
    LOCAL_MEMORY unsigned char *has = mem_new(vocab, 1);
    LOCAL_MEMORY char *path = file_path(dir, "model.safetensors");
    if (!numbers) return error_system(e, "out of memory for the weights");
    for (int i = 0; i < t->count; i++) {
        tensors_of(&t->networks[i], out + count, numbers + at);
        count += (size_t)t->networks[i].parameters.count;
        at += t->networks[i].parameters.total;
    }
    if (t->draft_ids) count += maps_of(t, out + count, offsets, has);
    return safetensors_add(to, path, out, count, e);
}

static Made made_in(const char *dir, bool adapter, const char *tokenizer, const Output *out) {
    return (Made){.dir = dir,
                  .maker = "train",
                  .mark = "outpace_train",
                  .adapter = adapter,
                  .force = out->force,
                  .rereads = tokenizer};
}

bool export_check(const char *dir, bool adapter, const char *tokenizer, const Output *out, Error *e) {
    Made made = made_in(dir, adapter, tokenizer, out);
    return output_check_directory(out, dir, e) && made_check(&made, e);
}

// Gives all files their names, and then config.json. If that fails in a new directory, everything is taken
// back; a directory with an earlier model keeps its mark, so that the same command may replace it.
static bool finish(const Made *m, const json_t *config, Output *out, Error *e) {
    bool is_new = made_is_new(m);
    if (!made_replace(m, config, e)) return false;
    if (output_finish(out, e) && made_finish(m, e)) return true;
    if (is_new) made_abandon(m);
    return false;
}

bool export_model(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e) {
    Made made = made_in(dir, false, notes->tokenizer, out);
    json_auto_t *root = shape_json(&t->config.shape);
    set_ids(root, notes);
    if (t->config.masks) json_object_set_new(root, "pard_token", json_integer(t->config.shape.mask_token));
    return set_training(root, t, notes, e) && export_check(dir, false, notes->tokenizer, out, e) &&
           add_generation(notes, dir, out, e) && add_weights(t, dir, out, e) && finish(&made, root, out, e);
}

// --- an adapter ------------------------------------------------------------------------------------------

bool export_adapter(const Trainer *t, const ExportNotes *notes, const char *dir, Output *out, Error *e) {
    Made made = made_in(dir, true, NULL, out);
    const TargetChoice *c = t->config.adapter;
    LOCAL_TEXT text = {0};
    adapter_config(&c->kind, &c->model->shape, &text);
    json_auto_t *root = json_loads(text_get(&text), 0, NULL); // adapter_config writes JSON
    assert(root);
    if (c->kind.variant >= ADAPTER_EAGLE) { // where those look who read a draft's config
        json_int_t trained = (json_int_t)t->step * (json_int_t)t->config.batch;
        json_t *own = json_pack("{s:I}", "trained_tokens", trained);
        if (adapter_is_eagle(c->kind.variant))
            json_object_set_new(own, c->kind.mask ? "parallel" : "forwards", json_integer(c->forwards));
        json_object_set_new(root, "outpace", own);
    }
    return set_training(root, t, notes, e) && export_check(dir, true, NULL, out, e) &&
           add_weights(t, dir, out, e) && finish(&made, root, out, e);
}
