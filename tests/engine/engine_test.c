// Opening: two engines at once give the same as each by itself; memory is counted correctly, and checked
// before a weight is read; names of devices and computes.
#include "tests/support/check.h"

#include "engine/base/memory.h"
#include "engine/engine.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 40, BRANCHES = 3 };

typedef struct {
    char folder[FOLDER_PATH_SIZE];
    char target[FOLDER_PATH_SIZE + 16], draft[FOLDER_PATH_SIZE + 16];
} Models;

static void synth(const char *dir, uint64_t seed, const char *const *sets, int count) {
    Error e = {0};
    SynthOptions o = {.shape = "tiny", .seed = seed, .sets = sets, .set_count = count};
    if (!model_synth(dir, &o, &e)) fail_msg("%s", e.text);
}

static int set_up(void **state) {
    Models *m = mem_new(1, sizeof *m);
    static const char *const smaller[] = {"num_hidden_layers=1", "hidden_size=32", "num_attention_heads=2",
                                          "num_key_value_heads=1", "intermediate_size=48"};
    *state = m;
    folder_make(m->folder);
    snprintf(m->target, sizeof m->target, "%s/target", m->folder);
    snprintf(m->draft, sizeof m->draft, "%s/draft", m->folder);
    synth(m->target, 1, NULL, 0);
    synth(m->draft, 2, smaller, 5);
    return 0;
}

static int tear_down(void **state) {
    Models *m = *state;
    folder_remove(m->folder);
    mem_free(m);
    return 0;
}

static void open_engine(Engine *engine, const char *dir, const EngineOptions *o, EngineMemory *memory) {
    Error e = {0};
    if (!engine_open(engine, dir, o, memory, &e)) fail_msg("%s: %s", dir, e.text);
}

// --- two at once -----------------------------------------------------------------------------------------

// What an engine said, step by step, over a greedy sequence.
typedef struct {
    int tokens[STEPS];
    float *logits; // (STEPS, BRANCHES + 1, vocab)
} Trace;

typedef struct {
    Engine engine;
    int step, last;
    Trace trace;
} Run;

static void run_open(Run *r, const char *dir, const EngineOptions *o) {
    static const int prompt[] = {1, 300, 17, 300, 18};
    *r = (Run){.last = 99};
    open_engine(&r->engine, dir, o, NULL);
    Session *s = &r->engine.session;
    r->trace.logits = mem_new((size_t)STEPS * (BRANCHES + 1) * (size_t)s->shape.vocab, sizeof(float));
    assert_true(session_prefill(s, prompt, 5, 2, 0, NULL, NULL));
}

static void run_close(Run *r) {
    engine_close(&r->engine);
    mem_free(r->trace.logits);
}

// First half of a step: a root and a few branches, through all layers.
static void begin_step(Run *r) {
    Session *s = &r->engine.session;
    session_begin_step(s, true, LAYOUT_TREE);
    int root = tree_root(&s->tree, r->last);
    for (int i = 0; i < BRANCHES; i++) tree_propose(&s->tree, root, (r->last * 7 + i) % s->shape.vocab);
    assert_true(session_run(s, s->shape.layers, NULL));
}

// Second half: all logits kept, the root committed.
static void end_step(Run *r) {
    Session *s = &r->engine.session;
    size_t vocab = (size_t)s->shape.vocab;
    assert_true(session_read(s, HEAD_ARGMAX | HEAD_LOGITS, NULL));
    for (int node = 0; node <= BRANCHES; node++)
        memcpy(r->trace.logits + ((size_t)r->step * (BRANCHES + 1) + (size_t)node) * vocab,
               session_logits(s, node), vocab * sizeof(float));
    assert_true(session_commit(s, 0, 1, NULL));
    r->last = r->trace.tokens[r->step++] = session_argmax(s, 0);
}

static void expect_same(const Run *want, const Run *got, const char *which) {
    size_t vocab = (size_t)want->engine.session.shape.vocab;
    for (int i = 0; i < STEPS; i++)
        if (want->trace.tokens[i] != got->trace.tokens[i])
            fail_msg("%s, step %d: wanted token %d, got %d", which, i, want->trace.tokens[i],
                     got->trace.tokens[i]);
    assert_memory_equal(want->trace.logits, got->trace.logits,
                        (size_t)STEPS * (BRANCHES + 1) * vocab * sizeof(float));
}

static void run_alone(Run *r, const char *dir, const EngineOptions *o) {
    run_open(r, dir, o);
    while (r->step < STEPS) {
        begin_step(r);
        end_step(r);
    }
}

// The draft takes whole steps while the target's is open, and the other way round.
static void run_both(Run *target, Run *draft) {
    while (target->step < STEPS || draft->step < STEPS) {
        bool target_outside = target->step % 2 == 0;
        Run *outer = target_outside ? target : draft, *inner = target_outside ? draft : target;
        if (outer->step < STEPS) begin_step(outer);
        if (inner->step < STEPS) begin_step(inner);
        if (inner->step < STEPS) end_step(inner);
        if (outer->step < STEPS) end_step(outer);
    }
}

static void two_at_once(void **state) {
    const Models *m = *state;
    static const EngineOptions targets[] = {{.device = "cpu", .threads = 2},
                                            {.device = "cpu", .compute = CHOOSE_F32, .threads = 1},
                                            {.device = "null"}},
                               drafts[] = {{.device = "cpu", .threads = 1},
                                           {.device = "null"},
                                           {.device = "null", .context = 200}};
    for (int i = 0; i < 3; i++) {
        Run target_alone, draft_alone, target, draft;
        run_alone(&target_alone, m->target, &targets[i]);
        run_alone(&draft_alone, m->draft, &drafts[i]);
        run_open(&target, m->target, &targets[i]);
        run_open(&draft, m->draft, &drafts[i]);
        run_both(&target, &draft);
        expect_same(&target_alone, &target, "target");
        expect_same(&draft_alone, &draft, "draft");
        run_close(&target); // the draft stays open a little longer
        assert_true(session_truncate(&draft.engine.session, 3, NULL));
        run_close(&draft);
        run_close(&target_alone);
        run_close(&draft_alone);
    }
}

// Weights in memory of the process's own give the same bits, and outlive their file; the default is mapped.
static void held(void **state) {
    const Models *m = *state;
    char copy[FOLDER_PATH_SIZE + 16];
    EngineOptions o = {.threads = 1};
    Run mapped, own;
    snprintf(copy, sizeof copy, "%s/copy", m->folder);
    scratch_copy(m->target, copy);
    run_alone(&mapped, m->target, &o);
    assert_false(mapped.engine.weights.held);
    o.weights = WEIGHTS_HELD;
    run_open(&own, copy, &o);
    assert_true(own.engine.weights.held);
    scratch_write(copy, "model.safetensors", "", 0);
    while (own.step < STEPS) {
        begin_step(&own);
        end_step(&own);
    }
    expect_same(&mapped, &own, "held");
    run_close(&mapped);
    run_close(&own);
}

// A prompt that is run layer by layer, so that it can be interrupted, gives the same bits.
static bool go_on(void *state, const char *what, double share) {
    assert_true(!what || (share >= 0 && share <= 1));
    ++*(int *)state;
    return true;
}

static void asked(void **state) {
    const Models *m = *state;
    int tokens[200], calls = 0;
    for (int i = 0; i < 200; i++) tokens[i] = i * 37 % 300;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        EngineOptions o = {.compute = bf16 ? CHOOSE_BF16 : CHOOSE_F32, .threads = 2};
        Run plain, other;
        run_open(&plain, m->target, &o);
        o.progress = (Progress){go_on, &calls};
        run_open(&other, m->target, &o);
        int layers = plain.engine.model.shape.layers;
        assert_true(session_prefill(&plain.engine.session, tokens, 200, 90, 0, NULL, NULL));
        calls = 0;
        assert_true(session_prefill(&other.engine.session, tokens, 200, 90, 0, NULL, NULL));
        assert_int_equal(calls, 2 * layers + 1); // 20 rows go in one
        while (plain.step < STEPS) {
            begin_step(&plain), begin_step(&other);
            end_step(&plain), end_step(&other);
        }
        expect_same(&plain, &other, "asked");
        run_close(&plain);
        run_close(&other);
    }
}

// --- memory ----------------------------------------------------------------------------------------------

static void memory_is_told(void **state) {
    const Models *m = *state;
    static const int contexts[] = {0, 1, 100, 511, 512, 100000};
    for (int i = 0; i < 6; i++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            Engine engine;
            EngineMemory said;
            BackendReport took;
            EngineOptions o = {.compute = bf16 ? CHOOSE_BF16 : CHOOSE_F32,
                               .context = contexts[i],
                               .threads = 2,
                               .max_nodes = i % 2 ? 40 : 0};
            open_engine(&engine, m->target, &o, &said);
            engine.session.backend->report(engine.session.self, &took);
            int want = contexts[i] > 0 && contexts[i] < 512 ? contexts[i] : 512;
            assert_int_equal(engine.session.context, want);
            assert_int_equal(said.weights, model_bytes(&engine.model));
            assert_int_equal(said.cache, took.cache_bytes);
            assert_int_equal(said.step, took.step_bytes);
            assert_true(said.available > 0);
            engine_close(&engine);
        }
}

// A directory whose model is too large for any machine that runs this test: its files are holes.
static void grow_weights(const char *dir, int width, int q, int mlp, int vocab) {
    struct {
        const char *name;
        int64_t rows, columns;
    } tensors[] = {
        {"model.embed_tokens.weight", vocab, width},
        {"model.norm.weight", 0, width},
        {"lm_head.weight", vocab, width},
        {"model.layers.0.input_layernorm.weight", 0, width},
        {"model.layers.0.self_attn.q_proj.weight", q, width},
        {"model.layers.0.self_attn.k_proj.weight", q, width},
        {"model.layers.0.self_attn.v_proj.weight", q, width},
        {"model.layers.0.self_attn.o_proj.weight", width, q},
        {"model.layers.0.post_attention_layernorm.weight", 0, width},
        {"model.layers.0.mlp.gate_proj.weight", mlp, width},
        {"model.layers.0.mlp.up_proj.weight", mlp, width},
        {"model.layers.0.mlp.down_proj.weight", width, mlp},
    };
    json_t *header = json_object();
    json_int_t end = 0;
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        json_int_t begin = end, rows = tensors[i].rows, columns = tensors[i].columns;
        end += 2 * columns * (rows ? rows : 1);
        json_t *dims = rows ? json_pack("[I, I]", rows, columns) : json_pack("[I]", columns);
        json_object_set_new(
            header, tensors[i].name,
            json_pack("{s:s, s:o, s:[I, I]}", "dtype", "BF16", "shape", dims, "data_offsets", begin, end));
    }
    char *json = json_dumps(header, JSON_COMPACT), path[FOLDER_PATH_SIZE + 64];
    Text text = {0};
    text_puts(&text, json);
    while (text.length % 8) text_puts(&text, " "); // so that tensors stand where they must
    scratch_write_safetensors(dir, "model.safetensors", text_get(&text), NULL, 0);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    assert_int_equal(truncate(path, (off_t)(8 + text.length + (size_t)end)), 0);
    text_release(&text);
    free(json); // jansson's own
    json_decref(header);
}

static void set_config(const char *dir, const char *key, json_int_t value) {
    json_t *config = scratch_json(dir, "config.json");
    json_object_set_new(config, key, json_integer(value));
    scratch_write_json(dir, "config.json", config);
    json_decref(config);
}

static void weights_too_large(void **state) {
    const Models *m = *state;
    char dir[FOLDER_PATH_SIZE + 16];
    snprintf(dir, sizeof dir, "%s/huge", m->folder);
    static const char *const sets[] = {"num_hidden_layers=1", "num_key_value_heads=4", "head_dim=512"};
    enum { WIDTH = 1 << 17, Q = 4 * 512, MLP = 1 << 19, VOCAB = 512 };
    synth(dir, 1, sets, 3);
    set_config(dir, "hidden_size", WIDTH);
    set_config(dir, "intermediate_size", MLP);
    grow_weights(dir, WIDTH, Q, MLP, VOCAB);
    Engine engine;
    EngineMemory said;
    Error e = {0};
    EngineOptions held = {.weights = WEIGHTS_HELD}, mapped = {.max_nodes = 2, .threads = 1};
    assert_false(engine_open(&engine, dir, &held, &said, &e));
    if (e.kind != ERROR_SYSTEM || !strstr(e.text, "leave --weights held out")) fail_msg("got '%s'", e.text);
    assert_in_range(said.weights, (size_t)3 * 2 * WIDTH * MLP, (size_t)3 * 2 * WIDTH * MLP + (4ull << 30));
    if (!engine_open(&engine, dir, &mapped, &said, &e)) fail_msg("got '%s'", e.text); // from its file
    assert_true(said.from_file);
    engine_close(&engine);
    set_config(dir, "max_position_embeddings", 1 << 24); // its cache must fit all the same
    mapped.max_nodes = 0;
    assert_false(engine_open(&engine, dir, &mapped, &said, &e));
    if (e.kind != ERROR_SYSTEM || !strstr(e.text, "would fit")) fail_msg("got '%s'", e.text);
}

// The context that is said to fit does, by the engine's own reckoning, and not much more would.
static void context_too_large(void **state) {
    const Models *m = *state;
    char dir[FOLDER_PATH_SIZE + 16];
    static const char *const sets[] = {"num_hidden_layers=20", "num_key_value_heads=4", "head_dim=512",
                                       "max_position_embeddings=16777216"};
    const size_t row = 20 * 2 * 4 * 512 * 2, angles = 2 * 256 * sizeof(float); // of one position
    snprintf(dir, sizeof dir, "%s/deep", m->folder);
    synth(dir, 1, sets, 4);
    Engine engine;
    EngineMemory said;
    Error e = {0};
    assert_false(engine_open(&engine, dir, &(EngineOptions){0}, &said, &e));
    assert_int_equal(e.kind, ERROR_SYSTEM);
    assert_int_equal(said.cache, row << 24);
    const char *at = strstr(e.text, "--context ");
    size_t fits = at ? strtoull(at + 10, NULL, 10) : 0, room = said.available - said.weights;
    if (!at || !strstr(e.text, "would fit") || fits * (row + angles) > room ||
        fits * (row + angles) < room / 10 * 9)
        fail_msg("%zu bytes a position, %zu are free: got '%s'", row + angles, room, e.text);
    EngineOptions small = {.context = 64, .max_nodes = 8, .threads = 1};
    open_engine(&engine, dir, &small, &said);
    engine_close(&engine);
}

// --- names -----------------------------------------------------------------------------------------------

static void refused(const Models *m, const EngineOptions *o, const char *want) {
    Engine engine;
    Error e = {0};
    bool ok = engine_open(&engine, m->target, o, NULL, &e);
    if (ok || e.kind != ERROR_INPUT || strcmp(e.text, want))
        fail_msg("device '%s': wanted '%s', got '%s'", o->device, want, e.text);
    engine_close(&engine); // as empty as it was
}

static void names(void **state) {
    static const char *const devices[] = {"gpu", "CPU", "cpu:0", "null:1", "cuda:", "cuda:x"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        EngineOptions o = {.threads = 0};
        char want[128];
        snprintf(o.device, sizeof o.device, "%s", devices[i]);
        snprintf(want, sizeof want,
                 "there is no device '%s': cpu, cuda[:n][,cuda:m..], auto and null are known", devices[i]);
        refused(*state, &o, want);
    }
}

// What only some devices have.
static void device_lacks(void **state) {
    static const struct {
        EngineOptions options;
        const char *want;
    } rows[] = {
        {{.device = "null", .weights = WEIGHTS_HELD},
         "weights held needs device cpu; leave --weights out for null"},
        {{.device = "cuda", .weights = WEIGHTS_HELD},
         "weights held needs device cpu; leave --weights out for cuda"},
        {{.math = MATH_FAST}, "math fast needs device cuda; cpu has exact alone"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused(*state, &rows[i].options, rows[i].want);
}

// Plain attention takes memory, moves bytes, and gives flash's logits, here bit for bit.
static void attentions(void **state) {
    const Models *m = *state;
    float *logits[2];
    size_t step[2];
    for (int plain = 0; plain < 2; plain++) {
        Engine engine;
        Error e = {0};
        EngineMemory memory;
        BackendReport r;
        EngineOptions o = {
            .attention = plain ? ATTENTION_PLAIN : ATTENTION_FLASH, .threads = 2, .isa = "portable"};
        open_engine(&engine, m->target, &o, &memory);
        Session *s = &engine.session;
        step[plain] = memory.step;
        s->backend->report(s->self, &r);
        assert_int_equal(r.score_bytes, plain ? shape_score_bytes(&s->shape) : 0);
        int tokens[] = {3, 1, 4, 1, 5, 9, 2, 6}, count = 8, last;
        assert_true(session_prefill(s, tokens, count, 0, 0, NULL, &e));
        session_begin_step(s, true, LAYOUT_TREE);
        last = tree_propose(&s->tree, tree_root(&s->tree, 5), 3);
        assert_true(session_run(s, s->shape.layers, &e) && session_read(s, HEAD_ARGMAX | HEAD_LOGITS, &e));
        size_t size = (size_t)s->shape.vocab * sizeof(float);
        logits[plain] = mem_new(1, size);
        memcpy(logits[plain], session_logits(s, last), size);
        if (plain) assert_memory_equal(logits[0], logits[1], size);
        engine_close(&engine);
    }
    assert_true(step[1] > step[0]);
    mem_free(logits[0]), mem_free(logits[1]);
}

static Compute compute_of(const char *dir, ComputeChoice choice) {
    Engine engine;
    EngineOptions o = {.compute = choice, .threads = 1};
    open_engine(&engine, dir, &o, NULL);
    Compute c = engine.session.compute;
    engine_close(&engine);
    return c;
}

// As the weights have it, unless told otherwise.
static void computes(void **state) {
    const Models *m = *state;
    char f32[FOLDER_PATH_SIZE + 64], f16[FOLDER_PATH_SIZE + 64];
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(f32, sizeof f32, "%s/build/golden/llama-f32-untied-mha", root ? root : ".");
    snprintf(f16, sizeof f16, "%s/build/golden/llama-f16-shards", root ? root : ".");
    assert_int_equal(compute_of(m->target, CHOOSE_WEIGHTS), COMPUTE_BF16);
    assert_int_equal(compute_of(m->target, CHOOSE_F32), COMPUTE_F32);
    assert_int_equal(compute_of(f32, CHOOSE_WEIGHTS), COMPUTE_F32);
    assert_int_equal(compute_of(f32, CHOOSE_BF16), COMPUTE_BF16);
    assert_int_equal(compute_of(f32, CHOOSE_F16), COMPUTE_F16);
    assert_int_equal(compute_of(f16, CHOOSE_WEIGHTS), COMPUTE_F16);
    assert_int_equal(compute_of(f16, CHOOSE_F32), COMPUTE_F32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_at_once),
        cmocka_unit_test(held),
        cmocka_unit_test(asked),
        cmocka_unit_test(memory_is_told),
        cmocka_unit_test(weights_too_large),
        cmocka_unit_test(context_too_large),
        cmocka_unit_test(names),
        cmocka_unit_test(device_lacks),
        cmocka_unit_test(attentions),
        cmocka_unit_test(computes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
