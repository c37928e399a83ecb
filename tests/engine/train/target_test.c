// Adapters and heads as they are trained: the frozen target gives the states that it gives in use, a run
// learns, resumes to the same bits whatever the threads, and writes a directory that opens.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"
#include "engine/model/safetensors.h"
#include "engine/train/trainer.h"
#include "tests/support/folder.h"
#include "tests/support/null_session.h"
#include "tests/support/world.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *name_of(int v) {
    return v == PARALLEL ? "peagle" : adapter_variant_name((AdapterVariant)v);
}

// The small learner's run with the world's model as its teacher.
static TrainConfig taught(const World *w, int steps) {
    TrainConfig c = learner_config(steps);
    c.teacher = &w->choice;
    return c;
}

// --- states ----------------------------------------------------------------------------------------------

static void same_rows(const char *what, const float *want, const float *got, int rows, int width) {
    if (memcmp(want, got, (size_t)rows * (size_t)width * sizeof *want))
        fail_msg("%s of %d rows of %d differ from those of the document alone (seed %llu)", what, rows, width,
                 (unsigned long long)test_seed());
}

// The states after a layer of rows of a document, alone, against every `of`-th row of exits.
static void same_exits(World *w, const Target *t, const int *tokens, int from, int to, int layer, int at,
                       int of) {
    int width = w->session.shape.width;
    float *alone = mem_new((size_t)((to - from) * width), sizeof *alone);
    session_reset(&w->session);
    assert_true(session_prefill(&w->session, tokens + from, to - from, 0, layer, alone, NULL));
    for (int r = from; r < to; r++)
        same_rows("exit states", alone + (size_t)((r - from) * width),
                  t->exits + (size_t)((r * of + at) * width), 1, width);
    mem_free(alone);
}

// A pass, and once more with its first `kept` rows kept: documents that end there aren't run again.
static void run_twice(Target *t, const int *tokens, const int *start, int kept) {
    size_t places[PASS];
    for (int i = 0; i < PASS; i++) places[i] = (size_t)i;
    assert_true(target_keep(t, PASS, target_kept_bytes(t, (size_t)kept), NULL));
    assert_true(target_run(t, tokens, start, places, PASS, NULL));
    memset(t->states, 0, (size_t)(PASS * t->choice.model->shape.width) * sizeof *t->states);
    assert_true(target_run(t, tokens, start, places, PASS, NULL));
    for (int i = 0, end; i < PASS; i++) {
        for (end = i + 1; end < PASS && start[end] == start[i]; end++) {}
        if ((t->nodes[i] == TREE_NONE) != (end <= kept))
            fail_msg("%d rows kept: row %d of a document to %d was %s", kept, i, end,
                     end <= kept ? "run again" : "not run");
    }
}

// Documents of a pass against each of them alone, run as a prompt is: the same bits.
static void check_states(const Shape *shape, int v, Random *r) {
    World w;
    Target t;
    AdapterKind kind = world_kind(v);
    int tokens[PASS], start[PASS], first = 0, width = shape->width, layers = shape->layers;
    float *alone = mem_new((size_t)(PASS * width), sizeof *alone);
    kind.exit_layer = v == ADAPTER_MEDUSA ? layers : 1;
    world_open(&w, shape, &kind, r);
    assert_true(target_open(&t, &w.choice, true, PASS, NULL));
    for (int i = 0; i < PASS; i++) {
        if (random_below(r, 10) == 0) first = i;
        start[i] = first;
        tokens[i] = test_between(r, 0, shape->real_vocab - 1);
    }
    run_twice(&t, tokens, start, test_between(r, 0, 3) * PASS / 3);
    for (int from = 0, to; from < PASS; from = to) {
        for (to = from + 1; to < PASS && start[to] == from; to++) {}
        size_t at = (size_t)(from * width);
        session_reset(&w.session);
        assert_true(session_prefill(&w.session, tokens + from, to - from, 0, layers, alone, NULL));
        same_rows("normed states", alone, t.states + at, to - from, width);
        if (v < ADAPTER_MEDUSA) same_exits(&w, &t, tokens, from, to, 1, 0, 1);
        for (int i = 0; v >= ADAPTER_EAGLE3 && i < 3; i++)
            same_exits(&w, &t, tokens, from, to, kind.captures.layers[i], i, 3);
    }
    assert_true(!t.exits == (v == ADAPTER_MEDUSA || v == ADAPTER_EAGLE));
    target_close(&t);
    world_close(&w);
    mem_free(alone);
}

static void states(void **state) {
    (void)state;
    Random r = test_random(1);
    for (int round = 0; round < 20; round++) {
        Shape s = random_shape(&r);
        static const int kinds[] = {ADAPTER_KANGAROO, ADAPTER_MEDUSA, ADAPTER_EAGLE,
                                    ADAPTER_MTP,      ADAPTER_EAGLE3, ADAPTER_DFLASH};
        s.layers = 4;
        check_states(&s, kinds[round % 6], &r);
    }
}

// Head i looks i + 1 rows ahead, and never into another document.
static void what_is_wanted(void **state) {
    (void)state;
    const int start[] = {0, 0, 0, 0, 4, 4, 6},
              want[2][7] = {{0, 0, 0, -1, 0, -1, -1}, {0, 0, -1, -1, -1, -1, -1}};
    int targets[7];
    Random r = test_random(2);
    World w;
    Target t;
    Batch b;
    Shape shape = world_small_shape();
    AdapterKind kind = world_kind(ADAPTER_MEDUSA);
    world_open(&w, &shape, &kind, &r);
    assert_true(target_open(&t, &w.choice, true, PASS, NULL));
    for (int head = 0; head < 2; head++) {
        target_batch(&t, head, NULL, start, 7, targets, &b);
        assert_memory_equal(targets, want[head], sizeof targets);
        assert_ptr_equal(b.states, t.states);
        assert_ptr_equal(b.wanted, t.states + (head + 1) * 32);
    }
    assert_float_equal(target_weight(&t, 1), 0.64, 1e-12);
    target_close(&t);
    world_close(&w);
}

// --- runs ------------------------------------------------------------------------------------------------

// From little more than the target's own head to most of what the target says, on documents never seen. A
// random target is a hard one, and what it says two tokens further on cannot be known: heads come less far.
static void check_learning(int v, Random *r) {
    World w;
    Corpus corpus;
    Shape shape = world_shape(v);
    AdapterKind kind = world_kind(v);
    double least = v == ADAPTER_MEDUSA || v >= ADAPTER_EAGLE ? 0.05 : 0.15;
    world_open(&w, &shape, &kind, r);
    learner_corpus(&corpus, 60, 80, 1);
    TrainConfig c = world_config(&w, 150);
    Trainer t = world_trainer(&c, &corpus);
    double first = trainer_held_out(&t), agreed = t.agreement[0];
    while (t.step < 150) assert_true(isfinite(trainer_step(&t).loss));
    double last = trainer_held_out(&t);
    if (!(last < first - 0.1 && t.agreement[0] > agreed + least))
        fail_msg("%s: held out %g, agreeing %g; after 150 steps %g and %g (seed %llu)", name_of(v), first,
                 agreed, last, t.agreement[0], (unsigned long long)test_seed());
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

static void check_teacher(Random *r) {
    World w;
    Corpus corpus;
    Shape shape = world_small_shape();
    world_open(&w, &shape, &(AdapterKind){0}, r);
    learner_corpus(&corpus, 60, 80, 1);
    TrainConfig c = taught(&w, 150);
    Trainer t = world_trainer(&c, &corpus);
    double first = trainer_held_out(&t);
    while (t.step < 150) assert_true(isfinite(trainer_step(&t).loss));
    double last = trainer_held_out(&t);
    if (!(last < first - 0.1 && t.agreement[0] > 0.25))
        fail_msg("held out %g; after 150 steps %g, agreeing %g (seed %llu)", first, last, t.agreement[0],
                 (unsigned long long)test_seed());
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

static void it_learns(void **state) {
    (void)state;
    Random r = test_random(3);
    check_teacher(&r);
    for (int v = 0; v < KINDS; v++) check_learning(v, &r);
}

// Behind masks that were trained for it, the model's token is found more often than behind others, after as
// much training of the first guess alone.
static void masks_learn(void **state) {
    (void)state;
    Random r = test_random(12);
    World w;
    Corpus corpus;
    Shape shape = world_small_shape();
    AdapterKind kind = world_kind(PARALLEL);
    double agreed[2];
    world_open(&w, &shape, &kind, &r);
    learner_corpus(&corpus, 60, 80, 1);
    for (int i = 0; i < 2; i++) {
        TrainConfig c = world_config(&w, 150);
        w.choice.forwards = i ? 3 : 1;
        Trainer t = world_trainer(&c, &corpus);
        while (t.step < 150) trainer_step(&t);
        trainer_held_out(&t);
        agreed[i] = t.agreement[1];
        trainer_close(&t);
    }
    print_message("behind a mask %.3f agree, behind one that was not trained %.3f\n", agreed[1], agreed[0]);
    assert_true(agreed[1] > agreed[0] + 0.02);
    corpus_release(&corpus);
    world_close(&w);
}

static void expect_same(const Trainer *a, const Trainer *b) {
    assert_int_equal(a->step, b->step);
    assert_true(a->loss == b->loss);
    for (int i = 0; i < a->count; i++) {
        size_t bytes = a->networks[i].parameters.total * sizeof(float);
        assert_memory_equal(a->networks[i].weights, b->networks[i].weights, bytes);
        assert_memory_equal(a->optimizers[i].mean, b->optimizers[i].mean, bytes);
        assert_memory_equal(a->optimizers[i].square, b->optimizers[i].square, bytes);
    }
}

// 20 steps at once, and in pieces, each by a new trainer with other threads.
static void check_resuming(int v, bool teacher, const char *path, Random *r) {
    World w;
    Corpus corpus;
    Shape shape = world_shape(v);
    AdapterKind kind = world_kind(v);
    Error e = {0};
    world_open(&w, &shape, &kind, r);
    learner_corpus(&corpus, 20, 90, 2);
    TrainConfig c = teacher ? taught(&w, 20) : world_config(&w, 20);
    Trainer whole = world_trainer(&c, &corpus);
    while (whole.step < 20) trainer_step(&whole);
    for (int step = 0; step < 20;) {
        c.threads = test_between(r, 1, 3);
        Trainer piece = world_trainer(&c, &corpus);
        if (step && !checkpoint_read(&piece, path, &e)) fail_msg("%s", e.text);
        for (int n = test_between(r, 3, 9); n > 0 && piece.step < 20; n--) trainer_step(&piece);
        trainer_held_out(&piece);
        step = piece.step;
        assert_true(checkpoint_write(&piece, path, &e));
        if (step == 20) expect_same(&whole, &piece);
        trainer_close(&piece);
    }
    w.choice.name = "another";
    assert_false(checkpoint_read(&whole, path, &e));
    assert_non_null(strstr(e.text, "another configuration"));
    trainer_close(&whole);
    corpus_release(&corpus);
    world_close(&w);
}

static void resumed_is_uninterrupted(void **state) {
    Random r = test_random(4);
    check_resuming(ADAPTER_KANGAROO, false, folder_path(*state, "kangaroo.checkpoint"), &r);
    check_resuming(ADAPTER_MEDUSA, false, folder_path(*state, "medusa.checkpoint"), &r);
    check_resuming(ADAPTER_EAGLE3, false, folder_path(*state, "eagle3.checkpoint"), &r);
    check_resuming(PARALLEL, false, folder_path(*state, "peagle.checkpoint"), &r);
    check_resuming(ADAPTER_DFLASH, false, folder_path(*state, "dflash.checkpoint"), &r);
    check_resuming(ADAPTER_KANGAROO, true, folder_path(*state, "taught.checkpoint"), &r);
}

// Several epochs with all states kept, with some of them and with none: the same bits.
static void kept_is_run(void **state) {
    (void)state;
    Random r = test_random(9);
    World w;
    Corpus corpus;
    Shape shape = world_small_shape();
    AdapterKind kind = world_kind(ADAPTER_EAGLE3);
    world_open(&w, &shape, &kind, &r);
    learner_corpus(&corpus, 12, 40, 2);
    TrainConfig c = world_config(&w, 12);
    Trainer none = world_trainer(&c, &corpus);
    for (int share = 1; share <= 2; share++) {
        c.keep = target_kept_bytes(&none.target, corpus.count) / (size_t)share;
        Trainer kept = world_trainer(&c, &corpus);
        assert_int_equal(kept.target.places, corpus.count / (size_t)share);
        while (kept.step < 12) trainer_step(&kept);
        while (none.step < 12) trainer_step(&none);
        assert_true(none.feed.epoch > 1);
        expect_same(&none, &kept);
        assert_true(trainer_held_out(&none) == trainer_held_out(&kept));
        trainer_close(&kept);
    }
    trainer_close(&none);
    corpus_release(&corpus);
    world_close(&w);
}

static void expect_tensor(const Network *n, size_t at, const Tensor *x) {
    const uint16_t *numbers = x->data;
    if (at == NO_PARAMETER) return;
    assert_int_equal(x->dtype, DTYPE_BF16);
    for (size_t i = 0; i < (size_t)x->rows * (size_t)x->columns; i++)
        assert_int_equal(numbers[i], f32_to_bf16(n->weights[at + i]));
}

static void check_export(int v, const char *dir, Random *r) {
    World w;
    Corpus corpus;
    Adapter a;
    AdapterKind kind = world_kind(v);
    Error e = {0};
    Trainer t = world_export(&w, &corpus, &kind, dir, r);
    if (!adapter_open(&a, w.choice.model, dir, &e)) fail_msg("%s", e.text);
    assert_memory_equal(&a.kind, &kind, sizeof kind);
    for (int i = 0; i < kind.heads; i++) {
        const Network *n = &t.networks[i];
        const Model *m = &a.models[i];
        assert_ptr_equal(n->head_panels[HEAD_WANTED], t.networks->head_panels[HEAD_WANTED]); // packed once
        for (int layer = 0; layer < n->shape.layers; layer++)
            for (Weight x = 0; x < LAYER_WEIGHTS; x++)
                expect_tensor(n, n->parameters.layers[layer].at[x], weight_tensor(m, layer, 0, x));
        for (Weight x = MODEL_WEIGHTS; x < WEIGHTS; x++)
            expect_tensor(n, n->parameters.at[x], weight_tensor(m, 0, 0, x));
    }
    const Network *n = t.networks;
    assert_true(!a.mask_states == (n->parameters.mask == NO_PARAMETER));
    for (size_t i = 0; a.mask_states && i < 3 * 32; i++)
        assert_true(a.mask_states[i] == bf16_round(n->weights[n->parameters.mask + i]));
    adapter_close(&a);
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

static void exported_adapter_opens(void **state) {
    Random r = test_random(5);
    for (int v = 0; v < KINDS; v++) check_export(v, folder_path(*state, name_of(v)), &r);
}

// Blocks cover every document: the first is of any length, the others are whole unless the document ends.
static void blocks_cover_the_text(void **state) {
    (void)state;
    Random r = test_random(10);
    World w;
    Corpus corpus;
    Shape shape = world_shape(ADAPTER_DFLASH);
    AdapterKind kind = world_kind(ADAPTER_DFLASH);
    int shorter = 0;
    world_open(&w, &shape, &kind, &r);
    learner_corpus(&corpus, 20, 90, 2);
    TrainConfig c = world_config(&w, 10);
    Trainer t = world_trainer(&c, &corpus);
    while (t.step < 10) {
        trainer_step(&t);
        for (int i = 0; i < PASS; i++) {
            int begin = t.masked_start[i], end = i;
            while (end < PASS && t.masked_start[end] == begin) end++;
            bool last = end == PASS || t.start[end] == end, first = begin == t.start[i];
            assert_true(begin >= t.start[i] && begin <= i && t.masked_start[begin] == begin);
            assert_true(end - begin <= 4 && (end - begin == 4 || first || last));
            assert_int_equal(t.masked[i], i == begin ? t.tokens[i] : LEARNER_VOCAB);
            shorter += first && !last && end - begin < 4;
        }
    }
    assert_true(shorter > 0);
    trainer_close(&t);
    corpus.ids[3] = kind.mask;
    Error e = {0};
    assert_false(trainer_open(&t, &c, &corpus, &e));
    assert_non_null(strstr(e.text, "which is the mask"));
    corpus_release(&corpus);
    world_close(&w);
}

// --- EAGLE's files ---------------------------------------------------------------------------------------

typedef struct StoredShape {
    const char *name;
    int rows, columns; // rows 0: a vector
} StoredShape;

static const StoredShape EAGLE_FILE[] = {{"fc.weight", 32, 64},
                                         {"fc.bias", 0, 32},
                                         {"layers.0.self_attn.q_proj.weight", 32, 32},
                                         {"layers.0.self_attn.k_proj.weight", 16, 32},
                                         {"layers.0.self_attn.v_proj.weight", 16, 32},
                                         {"layers.0.self_attn.o_proj.weight", 32, 32},
                                         {"layers.0.post_attention_layernorm.weight", 0, 32},
                                         {"layers.0.mlp.gate_proj.weight", 48, 32},
                                         {"layers.0.mlp.up_proj.weight", 48, 32},
                                         {"layers.0.mlp.down_proj.weight", 32, 48}};
static const StoredShape EAGLE3_FILE[] = {{"fc.weight", 32, 96},
                                          {"midlayer.input_layernorm.weight", 0, 32},
                                          {"midlayer.hidden_norm.weight", 0, 32},
                                          {"midlayer.self_attn.q_proj.weight", 32, 64},
                                          {"midlayer.self_attn.k_proj.weight", 16, 64},
                                          {"midlayer.self_attn.v_proj.weight", 16, 64},
                                          {"midlayer.self_attn.o_proj.weight", 32, 32},
                                          {"midlayer.post_attention_layernorm.weight", 0, 32},
                                          {"midlayer.mlp.gate_proj.weight", 48, 32},
                                          {"midlayer.mlp.up_proj.weight", 48, 32},
                                          {"midlayer.mlp.down_proj.weight", 32, 48},
                                          {"norm.weight", 0, 32},
                                          {"lm_head.weight", LEARNER_VOCAB, 32}};

static const StoredShape MTP_FILE[] = {{"model.mtp_layers.0.input_proj.weight", 32, 64},
                                       {"model.mtp_layers.0.token_layernorm.weight", 0, 32},
                                       {"model.mtp_layers.0.hidden_layernorm.weight", 0, 32},
                                       {"model.mtp_layers.0.input_layernorm.weight", 0, 32},
                                       {"model.mtp_layers.0.self_attn.q_proj.weight", 32, 32},
                                       {"model.mtp_layers.0.self_attn.k_proj.weight", 16, 32},
                                       {"model.mtp_layers.0.self_attn.v_proj.weight", 16, 32},
                                       {"model.mtp_layers.0.self_attn.o_proj.weight", 32, 32},
                                       {"model.mtp_layers.0.post_attention_layernorm.weight", 0, 32},
                                       {"model.mtp_layers.0.mlp.gate_proj.weight", 48, 32},
                                       {"model.mtp_layers.0.mlp.up_proj.weight", 48, 32},
                                       {"model.mtp_layers.0.mlp.down_proj.weight", 32, 48},
                                       {"model.mtp_layers.0.final_layernorm.weight", 0, 32}};

// The authors' names and sizes, no more and no fewer, and the network's numbers rounded to bf16.
static void expect_stored(const Network *n, const char *path, const StoredShape *list, int count) {
    FileView view;
    Safetensors header;
    Error e = {0};
    assert_true(file_map(path, &view, &e) && safetensors_parse(view.data, view.size, path, &header, &e));
    assert_int_equal(n->parameters.count, count);
    for (int i = 0; i < count; i++) {
        const StoredTensor *x = safetensors_find(&header, list[i].name);
        const Parameter *p = &n->parameters.list[i];
        if (!x) fail_msg("no %s", list[i].name);
        assert_string_equal(p->name, list[i].name);
        assert_string_equal(x->dtype, "BF16");
        assert_int_equal(x->rank, list[i].rows ? 2 : 1);
        assert_int_equal((int)x->dims[0], list[i].rows ? list[i].rows : list[i].columns);
        if (list[i].rows) assert_int_equal((int)x->dims[1], list[i].columns);
        const uint16_t *numbers = (const uint16_t *)(view.data + x->begin);
        for (size_t k = 0; k < parameter_size(p); k++)
            assert_int_equal(numbers[k], f32_to_bf16(n->weights[p->at + k]));
    }
    safetensors_release(&header);
    file_unmap(&view);
}

static void check_eagle_config(const char *path, bool third) {
    json_t *root = json_load_file(path, 0, NULL), *layers;
    assert_non_null(root);
    const char *name = json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    assert_string_equal(name, third ? "LlamaForCausalLMEagle3" : "LlamaForCausalLMEagle");
    assert_int_equal(json_integer_value(json_object_get(root, "num_hidden_layers")), 1);
    assert_int_equal(json_integer_value(json_object_get(root, "num_key_value_heads")), 2);
    assert_int_equal(json_integer_value(json_object_get(root, "max_position_embeddings")), 64);
    assert_true(json_is_true(json_object_get(root, "bias")) == !third);
    json_t *trained = json_object_get(json_object_get(root, "outpace"), "trained_tokens");
    assert_int_equal(json_integer_value(trained), 128);
    layers = json_object_get(root, "eagle_aux_hidden_state_layer_ids");
    assert_int_equal(json_array_size(layers), third ? 3 : 0);
    for (size_t i = 0; i < json_array_size(layers); i++)
        assert_int_equal(json_integer_value(json_array_get(layers, i)), (int)i + 1);
    assert_int_equal(json_integer_value(json_object_get(root, "draft_vocab_size")),
                     third ? LEARNER_VOCAB : 0);
    json_decref(root);
}

static void check_eagle_files(int v, const char *dir, Random *r) {
    World w;
    Corpus corpus;
    AdapterKind kind = world_kind(v);
    Error e = {0};
    Output out = {0};
    Trainer t = world_export(&w, &corpus, &kind, dir, r);
    assert_true(export_check(dir, true, NULL, &out, &e)); // the same training may replace it
    const char *weights = folder_path(dir, "model.safetensors");
    if (v == ADAPTER_EAGLE3) expect_stored(t.networks, weights, EAGLE3_FILE, 13);
    else if (v == ADAPTER_MTP) expect_stored(t.networks, weights, MTP_FILE, 13);
    else expect_stored(t.networks, weights, EAGLE_FILE, 10);
    if (v != ADAPTER_MTP) check_eagle_config(folder_path(dir, "config.json"), v == ADAPTER_EAGLE3);
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

static void eagle_files(void **state) {
    Random r = test_random(7);
    char dir[300];
    for (int v = ADAPTER_EAGLE; v <= ADAPTER_EAGLE3; v++) {
        snprintf(dir, sizeof dir, "%s", folder_path(*state, name_of(v)));
        check_eagle_files(v, dir, &r);
    }
}

// A head for fewer tokens: the commonest of the text. It learns the target's distribution over them, and its
// files open with the same tokens.
static void fewer_tokens(void **state) {
    enum { FEWER = 12 };
    Random r = test_random(8);
    World w;
    Corpus corpus;
    Adapter a;
    AdapterKind kind = world_kind(ADAPTER_EAGLE3);
    const char *dir = folder_path(*state, "fewer");
    float row[32];
    Error e = {0};
    kind.vocab = FEWER;
    Trainer t = world_export(&w, &corpus, &kind, dir, &r);
    for (int i = 0; i < FEWER; i++) {
        tensor_row(&w.choice.model->head, (size_t)t.draft_ids[i], row);
        assert_memory_equal(t.target.head + i * 32, row, sizeof row);
    }
    if (!adapter_open(&a, w.choice.model, dir, &e)) fail_msg("%s", e.text);
    assert_memory_equal(&a.kind, &kind, sizeof kind);
    assert_int_equal(a.models[0].shape.vocab, FEWER);
    assert_memory_equal(a.draft_ids, t.draft_ids, FEWER * sizeof *a.draft_ids);
    expect_tensor(t.networks, t.networks->parameters.at[W_HEAD], &a.models[0].head);
    adapter_close(&a);
    trainer_close(&t);
    TrainConfig c = world_config(&w, 100);
    t = world_trainer(&c, &corpus);
    double first = trainer_held_out(&t), agreed = t.agreement[0];
    while (t.step < 100) assert_true(isfinite(trainer_step(&t).loss));
    double last = trainer_held_out(&t);
    if (!(last < first - 0.1 && t.agreement[0] > agreed + 0.05))
        fail_msg("held out %g, agreeing %g; after 100 steps %g and %g (seed %llu)", first, agreed, last,
                 t.agreement[0], (unsigned long long)test_seed());
    trainer_close(&t);
    corpus_release(&corpus);
    world_close(&w);
}

static void refusals(void **state) {
    (void)state;
    Random r = test_random(6);
    World w;
    Corpus corpus;
    Trainer t;
    Error e = {0};
    Shape shape = world_small_shape();
    AdapterKind kind = world_kind(ADAPTER_KANGAROO);
    world_open(&w, &shape, &kind, &r);
    learner_corpus(&corpus, 20, 90, 2);
    TrainConfig c = world_config(&w, 5);
    c.pass = c.batch = 2 * PASS;
    assert_false(trainer_open(&t, &c, &corpus, &e));
    assert_non_null(strstr(e.text, "more than the target takes at once, 64"));
    c = world_config(&w, 5);
    w.choice.kind.exit_layer = 4;
    assert_false(trainer_open(&t, &c, &corpus, &e));
    assert_non_null(strstr(e.text, "exit layer"));
    w.choice.kind = world_kind(ADAPTER_EAGLE);
    w.choice.forwards = FORWARDS_MAX + 1;
    assert_false(trainer_open(&t, &c, &corpus, &e));
    assert_non_null(strstr(e.text, "9 forwards of a pass: there must be from 1 to 8"));
    c = taught(&w, 5);
    c.shape.vocab = c.shape.real_vocab = LEARNER_VOCAB + 1;
    assert_false(trainer_open(&t, &c, &corpus, &e));
    assert_non_null(strstr(e.text, "the teacher's vocabulary of 40 tokens is not the model's of 41"));
    corpus_release(&corpus);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states),
        cmocka_unit_test(what_is_wanted),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(masks_learn),
        cmocka_unit_test_setup_teardown(resumed_is_uninterrupted, folder_setup, folder_teardown),
        cmocka_unit_test(kept_is_run),
        cmocka_unit_test_setup_teardown(exported_adapter_opens, folder_setup, folder_teardown),
        cmocka_unit_test(blocks_cover_the_text),
        cmocka_unit_test_setup_teardown(eagle_files, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(fewer_tokens, folder_setup, folder_teardown),
        cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
