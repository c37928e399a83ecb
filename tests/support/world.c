#include "tests/support/check.h"

#include "tests/support/world.h"

#include "engine/cpu/cpu.h"

#include <math.h>

Shape world_small_shape(void) {
    return (Shape){
        .layers = 4,
        .width = 32,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 8,
        .mlp_width = 48,
        .vocab = LEARNER_VOCAB,
        .real_vocab = LEARNER_VOCAB,
        .context = 64,
        .norm_epsilon = 1e-5f,
        .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 4, .attention_factor = 1}};
}

Shape world_shape(int v) {
    Shape s = world_small_shape();
    s.vocab += v == ADAPTER_DFLASH;
    return s;
}

AdapterKind world_kind(int v) {
    AdapterKind k = {.variant = v == PARALLEL ? ADAPTER_EAGLE3 : (AdapterVariant)v,
                     .exit_layer = 1,
                     .heads = 1,
                     .mask = v == PARALLEL ? LEARNER_VOCAB - 1 : 0,
                     .layers = v == PARALLEL ? 2 : 0};
    if (v == ADAPTER_MEDUSA) k.heads = 2;
    if (v >= ADAPTER_MEDUSA) k.exit_layer = 4;
    if (v >= ADAPTER_EAGLE3) k.captures = (Captures){3, {1, 2, 3}};
    if (v == ADAPTER_MTP) k.captures = (Captures){1, {4}};
    if (v != ADAPTER_DFLASH) return k;
    k.normed_heads = true;
    k.layers = 2;
    k.mask = LEARNER_VOCAB;
    k.block.rows = 4;
    k.block.from_root = true;
    k.block.markov = MARKOV_VANILLA;
    k.block.rank = 8;
    k.block.confidence = CONFIDENCE_TOKEN;
    return k;
}

void world_open(World *w, const Shape *shape, const AdapterKind *kind, Random *r) {
    BackendOptions o = {.compute = COMPUTE_F32, .max_nodes = PASS, .threads = 1};
    void *self;
    random_model_init(&w->model, shape, DTYPE_F32, false, r);
    assert_true(cpu_open(&w->model.model, &o, &self, NULL));
    session_init(&w->session, &cpu_backend, self, &w->model.model.shape, &o);
    w->choice = (TargetChoice){.model = &w->model.model,
                               .session = &w->session,
                               .name = "one",
                               .kind = *kind,
                               .forwards = kind->variant == ADAPTER_EAGLE3 ? 3 : 2};
}

void world_close(World *w) {
    session_release(&w->session);
    random_model_release(&w->model);
}

TrainConfig world_config(const World *w, int steps) {
    TrainConfig c = learner_config(steps);
    c.shape = w->choice.model->shape;
    c.shape.context = LONGEST;
    c.adapter = &w->choice;
    if (w->choice.kind.variant != ADAPTER_DFLASH) return c;
    c.masks = w->choice.kind.block.rows - 1;
    c.shape.mask_token = w->choice.kind.mask;
    return c;
}
Trainer world_trainer(const TrainConfig *c, const Corpus *corpus) {
    Trainer t;
    Error e = {0};
    if (!trainer_open(&t, c, corpus, &e)) fail_msg("%s", e.text);
    return t;
}
Trainer world_export(World *w, Corpus *corpus, const AdapterKind *kind, const char *dir, Random *r) {
    Shape shape = world_shape((int)kind->variant);
    Error e = {0};
    Output out = {0};
    world_open(w, &shape, kind, r);
    learner_corpus(corpus, 20, 90, 2);
    TrainConfig c = world_config(w, 5);
    Trainer t = world_trainer(&c, corpus);
    trainer_step(&t);
    ExportNotes notes = {.held_out_loss = trainer_held_out(&t)};
    if (!export_adapter(&t, &notes, dir, &out, &e)) fail_msg("%s", e.text);
    output_release(&out);
    return t;
}
