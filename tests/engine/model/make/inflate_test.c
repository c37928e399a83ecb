// An inflated model predicts as the small one: the same greedy text, logits that are near, or the same bits
// where inflate.h promises them; so do its adapters and heads. And its weights aren't zeros.
#include "tests/support/check.h"

#include "engine/base/file.h"
#include "engine/base/memory.h"
#include "engine/cpu/kernels/ops.h"
#include "engine/engine.h"
#include "engine/model/make/inflate.h"
#include "engine/model/make/placement.h"
#include "engine/model/make/synth.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tests/support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SETS = 12, PROMPTS = 100, PROMPT = 5, STEPS = 8, DRAFTED = 4 };

// Keys put on top of the tiny shape.
typedef const char *Sets[SETS];

typedef struct {
    const char *name;
    Sets small, large;
    bool exact;  // the same bits
    bool padded; // in every dimension: no row of weights needs to be zero
} Case;

#define NARROW "hidden_size=64", "intermediate_size=96", "num_hidden_layers=2", "vocab_size=300"
static const Case CASES[] = {
    {"wider only",
     {NARROW, "num_attention_heads=4", "num_key_value_heads=1", "head_dim=32", "tie_word_embeddings=true"},
     {"hidden_size=256", "num_hidden_layers=2", "num_attention_heads=4", "num_key_value_heads=1",
      "head_dim=32", "tie_word_embeddings=true"},
     true,
     false},
    {"heads of 4 times, none shares a key head, more layers and words",
     {NARROW, "num_attention_heads=4", "num_key_value_heads=1", "head_dim=32", "tie_word_embeddings=true"},
     {"hidden_size=256", "num_hidden_layers=5", "num_attention_heads=6", "num_key_value_heads=6",
      "head_dim=128", "vocab_size=700"},
     true,
     true},
    {"dead heads, a width that is no power of 4, fused tensors, a window that the small one does not have",
     {NARROW, "num_attention_heads=4", "num_key_value_heads=2", "head_dim=16"},
     {"hidden_size=160", "num_hidden_layers=3", "num_attention_heads=15", "num_key_value_heads=3",
      "head_dim=16", "vocab_size=310", "model_type=phi3", "sliding_window=3"},
     false,
     true},
    {"heads of 16 times, smaller groups, a window that the shape does not have",
     {NARROW, "num_attention_heads=4", "num_key_value_heads=1", "head_dim=8", "model_type=mistral",
      "sliding_window=5", "rope_theta=500"},
     {"hidden_size=192", "num_hidden_layers=4", "num_attention_heads=6", "num_key_value_heads=3",
      "head_dim=128", "vocab_size=301"},
     false,
     true},
    {"biases, stretched angles, another activation, f16",
     {NARROW, "num_attention_heads=4", "num_key_value_heads=2", "head_dim=16", "model_type=qwen2",
      "torch_dtype=float16", "hidden_act=gelu_pytorch_tanh",
      "rope_scaling={\"type\":\"linear\",\"factor\":3}"},
     {"hidden_size=128", "num_hidden_layers=3", "num_attention_heads=4", "num_key_value_heads=2",
      "head_dim=64", "model_type=qwen2", "intermediate_size=97"},
     false,
     false},
    {"biases that the small one lacks, f32, a masked end of both vocabularies",
     {NARROW, "num_attention_heads=2", "num_key_value_heads=2", "head_dim=16", "torch_dtype=float32",
      "real_vocab_size=290"},
     {"hidden_size=100", "num_hidden_layers=2", "num_attention_heads=5", "num_key_value_heads=5",
      "head_dim=16", "model_type=qwen2", "real_vocab_size=400"},
     false,
     true},
};
enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

typedef struct {
    char folder[FOLDER_PATH_SIZE];
    char small[FOLDER_PATH_SIZE + 16], large[FOLDER_PATH_SIZE + 16], shape[FOLDER_PATH_SIZE + 16];
    int first; // layers that stay the first
} Place;

static int count(const Sets sets) {
    int n = 0;
    while (n < SETS && sets[n]) n++;
    return n;
}

// The tiny shape with `sets`, as the file of a shape.
static void write_shape(const Place *p, const Sets sets) {
    json_t *root = scratch_json("configs/shapes", "tiny.json");
    for (int i = 0; i < count(sets); i++) {
        const char *equals = strchr(sets[i], '=');
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(equals - sets[i]), sets[i]);
        json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
        json_object_set_new(root, key, value ? value : json_string(equals + 1));
    }
    scratch_write_json(p->folder, "shape.json", root);
    json_decref(root);
}

static InflateOptions options(const Place *p) {
    return (InflateOptions){.small = p->small, .shape = p->shape, .seed = 3, .first = p->first};
}

static void inflate(const char *dir, const InflateOptions *o) {
    Error e = {0};
    if (!model_inflate(dir, o, &e)) fail_msg("%s", e.text);
}

static void make(const Place *p, const Case *c) {
    Error e = {0};
    SynthOptions o = {.shape = "tiny", .sets = c->small, .set_count = count(c->small), .seed = test_seed()};
    InflateOptions x = options(p);
    if (!model_synth(p->small, &o, &e)) fail_msg("%s: %s", c->name, e.text);
    write_shape(p, c->large);
    inflate(p->large, &x);
}

// --- the same function

typedef struct {
    const Case *c;
    Engine small, large;
    float *rows; // of hidden states, the large one's after the small one's
} Pair;

// Tiles take scores in pairs of dimensions, which a larger head tears apart.
static const char *in_order(void) {
    const CpuOps *best = cpu_ops_find(NULL, NULL);
    return best && strcmp(best->name, "amx") == 0 ? "avx512_bf16" : NULL;
}

static void open_engine(Engine *engine, const char *dir) {
    Error e = {0};
    EngineOptions o = {.device = "cpu", .threads = 1, .context = 64, .isa = in_order()};
    if (!engine_open(engine, dir, &o, NULL, &e)) fail_msg("%s", e.text);
}

static void pair_open(Pair *t, const Place *p, const Case *c) {
    *t = (Pair){.c = c};
    open_engine(&t->small, p->small);
    open_engine(&t->large, p->large);
    t->rows = mem_new((size_t)PROMPT * (size_t)(t->small.model.shape.width + t->large.model.shape.width),
                      sizeof *t->rows);
    assert_non_null(t->rows);
}

static void pair_close(Pair *t) {
    mem_free(t->rows);
    engine_close(&t->large);
    engine_close(&t->small);
}

static bool same(const Case *c, float want, float got) {
    if (c->exact) return memcmp(&want, &got, sizeof got) == 0;
    return fabsf(want - got) <= 0.06f * (1 + fabsf(want));
}

static void compare_logits(const Pair *t, const float *want, const float *got, const char *what) {
    const Shape *s = &t->small.model.shape, *l = &t->large.model.shape;
    assert_int_equal(l->real_vocab, s->real_vocab);
    for (int i = 0; i < l->vocab; i++) {
        if (i < s->real_vocab && !same(t->c, want[i], got[i]))
            fail_msg("%s, %s: logit %d is %.9g, want %.9g", t->c->name, what, i, (double)got[i],
                     (double)want[i]);
        if (i >= s->real_vocab && !(got[i] < 0 && isinf(got[i])))
            fail_msg("%s, %s: logit %d is %g, must be masked", t->c->name, what, i, (double)got[i]);
    }
}

// One step of both after `last`; the token that the small one says.
static int step(Pair *t, int last) {
    Session *both[] = {&t->small.session, &t->large.session};
    for (int i = 0; i < 2; i++) {
        session_begin_step(both[i], true, LAYOUT_TREE);
        tree_root(&both[i]->tree, last);
        assert_true(session_run(both[i], both[i]->shape.layers, NULL));
        assert_true(session_read(both[i], HEAD_ARGMAX | HEAD_LOGITS, NULL));
    }
    compare_logits(t, session_logits(both[0], 0), session_logits(both[1], 0), "text");
    for (int i = 0; i < 2; i++) assert_true(session_commit(both[i], 0, 1, NULL));
    return session_argmax(both[0], 0);
}

// What goes on with the large one's own word must be the same words: where logits are only near, a tie may
// be cut the other way, which must not happen in more than one prompt of a hundred.
static bool same_text(Pair *t, Random *r) {
    int prompt[PROMPT];
    const int last = t->small.model.shape.real_vocab - 1;
    for (int i = 0; i < PROMPT; i++) prompt[i] = test_between(r, 0, last);
    session_reset(&t->small.session);
    session_reset(&t->large.session);
    assert_true(session_prefill(&t->small.session, prompt, PROMPT - 1, 0, 0, NULL, NULL));
    assert_true(session_prefill(&t->large.session, prompt, PROMPT - 1, 0, 0, NULL, NULL));
    for (int i = 0, token = prompt[PROMPT - 1]; i < STEPS; i++) {
        token = step(t, token);
        int got = session_argmax(&t->large.session, 0);
        if (got == token) continue;
        const float *logits = session_logits(&t->large.session, 0);
        if (t->c->exact || !same(t->c, logits[got], logits[token]))
            fail_msg("%s, step %d: token %d, want %d", t->c->name, i, got, token);
        return false;
    }
    return true;
}

static void says_the_same(void **state) {
    Place *p = *state;
    Random r = test_random(61);
    for (int i = 0; i < CASE_COUNT; i++) {
        Pair t;
        int different = 0;
        p->first = i % 2;
        make(p, &CASES[i]);
        pair_open(&t, p, &CASES[i]);
        for (int k = 0; k < PROMPTS; k++) different += !same_text(&t, &r);
        if (different > 1) fail_msg("%s: %d texts of %d differ", CASES[i].name, different, PROMPTS);
        pair_close(&t);
    }
}

// --- adapters and heads

static const float *padded_row(const Pair *t, int i) {
    return t->rows + (size_t)PROMPT * (size_t)t->small.model.shape.width +
           (size_t)i * (size_t)t->large.model.shape.width;
}

// The states that an adapter reads, of both: the real dimensions the same, the others zero.
static void compare_hidden(Pair *t, int small_layer, int large_layer, Random *r) {
    int prompt[PROMPT], width = t->small.model.shape.width;
    for (int i = 0; i < PROMPT; i++) prompt[i] = test_between(r, 0, t->small.model.shape.real_vocab - 1);
    float *large = t->rows + (size_t)PROMPT * (size_t)width;
    session_reset(&t->small.session);
    session_reset(&t->large.session);
    assert_true(session_prefill(&t->small.session, prompt, PROMPT, 0, small_layer, t->rows, NULL));
    assert_true(session_prefill(&t->large.session, prompt, PROMPT, 0, large_layer, large, NULL));
    for (int i = 0; i < PROMPT; i++)
        for (int j = 0; j < t->large.model.shape.width; j++) {
            float want = j < width ? t->rows[i * width + j] : 0, got = padded_row(t, i)[j];
            if (j < width ? !same(t->c, want, got) : got != 0)
                fail_msg("%s: state %d is %g, want %g", t->c->name, j, (double)got, (double)want);
        }
}

static const float *adapter_logits(Session *s, const float *rows) {
    session_reset(s);
    session_begin_step(s, false, LAYOUT_TREE);
    int rows_in = s->tree.capacity < PROMPT ? 1 : PROMPT; // heads see one row a step
    for (int i = 0, node = -1; i < rows_in; i++)
        node = i ? tree_propose(&s->tree, node, i) : tree_root(&s->tree, 1);
    assert_true(session_set_hidden(s, 0, rows_in, rows, NULL) && session_run(s, 1, NULL));
    assert_true(session_read(s, HEAD_LOGITS, NULL));
    return session_logits(s, rows_in - 1);
}

// Of a draft that reads tokens and states: rows of one state, or of several side by side.
static const float *draft_logits(Session *s, const float *rows, int width) {
    int states = shape_given_width(&s->shape) / width, given = states * width;
    float *side = mem_new((size_t)PROMPT * (size_t)given, sizeof *side);
    for (int i = 0; i < PROMPT * states; i++)
        memcpy(side + (size_t)i * (size_t)width, rows + (size_t)((i + i / states) % PROMPT * width),
               (size_t)width * sizeof *side);
    session_reset(s);
    session_begin_step(s, false, LAYOUT_TREE);
    for (int i = 0, node = -1; i < PROMPT; i++)
        node = i ? tree_propose(&s->tree, node, i) : tree_root(&s->tree, 1);
    assert_true(session_set_hidden(s, 0, PROMPT, side, NULL) && session_run(s, 1, NULL));
    assert_true(session_read(s, HEAD_LOGITS, NULL));
    mem_free(side);
    return session_logits(s, PROMPT - 1);
}

static void check_adapter(Pair *t, const Place *p, AdapterVariant v, Random *r) {
    AdapterEngine small, large;
    Error e = {0};
    EngineOptions o = {.device = "cpu", .threads = 1};
    const Shape *shape = &t->small.model.shape;
    bool medusa = v == ADAPTER_MEDUSA, final = medusa || adapter_is_eagle(v);
    AdapterKind kind = {.variant = v,
                        .exit_layer = final ? shape->layers : 1,
                        .heads = medusa ? 3 : 1,
                        .kv_heads = test_between(r, 0, 1) ? shape->kv_heads : 0};
    const char *from = folder_path(p->folder, "a"), *to = folder_path(p->folder, "b");
    if (!adapter_synth(from, &t->small.model, &kind, 9, false, &e)) fail_msg("%s", e.text);
    InflateOptions x = options(p);
    x.adapter = from;
    inflate(to, &x);
    if (!engine_open_adapter(&small, &t->small, from, &o, NULL, &e) ||
        !engine_open_adapter(&large, &t->large, to, &o, NULL, &e))
        fail_msg("%s, %s: %s", t->c->name, adapter_variant_name(v), e.text);
    const Layers layers = {shape->layers, t->large.model.shape.layers, x.first};
    int layer = small.adapter.kind.exit_layer, large_layer = large.adapter.kind.exit_layer;
    assert_int_equal(large_layer, final ? t->large.model.shape.layers : placement_layer(&layers, layer));
    compare_hidden(t, layer, large_layer, r);
    assert_int_equal(large.count, small.count);
    for (int i = 0; i < large.adapter.captures.count; i++)
        assert_int_equal(large.adapter.captures.layers[i],
                         placement_layer(&layers, small.adapter.captures.layers[i]));
    if (adapter_is_eagle(v))
        compare_logits(t, draft_logits(small.sessions, t->rows, shape->width),
                       draft_logits(large.sessions, padded_row(t, 0), t->large.model.shape.width),
                       adapter_variant_name(v));
    for (int i = 0; i < small.count && !adapter_is_eagle(v); i++)
        compare_logits(t, adapter_logits(&small.sessions[i], t->rows),
                       adapter_logits(&large.sessions[i], padded_row(t, 0)), adapter_variant_name(v));
    engine_close_adapter(&large);
    engine_close_adapter(&small);
}

static void adapters_say_the_same(void **state) {
    Place *p = *state;
    Random r = test_random(62);
    for (int i = 0; i < CASE_COUNT; i++) {
        Pair t;
        p->first = i % 2;
        make(p, &CASES[i]);
        pair_open(&t, p, &CASES[i]);
        for (int v = ADAPTER_KANGAROO; v <= ADAPTER_EAGLE3; v++) check_adapter(&t, p, (AdapterVariant)v, &r);
        pair_close(&t);
    }
}

// --- the cost of every weight

static bool has_zero_row(const Tensor *t) {
    for (int row = 0; t->rows > 1 && row < t->rows; row++) {
        int i = 0;
        while (i < t->columns &&
               dtype_load(t->dtype, t->data, (size_t)row * (size_t)t->columns + (size_t)i) == 0)
            i++;
        if (i == t->columns) return true;
    }
    return false;
}

static void no_row_is_zero(void **state) {
    Place *p = *state;
    for (int i = 0; i < CASE_COUNT; i++) {
        Model m;
        ModelWeights weights;
        Error e = {0};
        if (!CASES[i].padded) continue;
        make(p, &CASES[i]);
        if (!model_open(&m, &weights, p->large, &e)) fail_msg("%s", e.text);
        if (has_zero_row(&m.embedding) || has_zero_row(&m.head)) fail_msg("%s: at an end", CASES[i].name);
        for (int layer = 0; layer < m.shape.layers; layer++)
            for (int w = 0; w < LAYER_WEIGHTS; w++)
                if (has_zero_row(&m.layers[layer].w[w]))
                    fail_msg("%s: weight %d of layer %d has a row of zeros", CASES[i].name, w, layer);
        model_close(&weights);
    }
}

// --- written files

static void tells_what_it_is(void **state) {
    Place *p = *state;
    Model m;
    ModelWeights weights;
    Inflated one, other;
    InflateOptions o = options(p);
    Error e = {0};
    make(p, &CASES[1]);
    assert_true(model_open(&m, &weights, p->small, &e));
    assert_string_equal(m.stand_in, "random weights, shape tiny");
    model_close(&weights);
    assert_true(model_open(&m, &weights, p->large, &e));
    if (strncmp(m.stand_in, "small (", 7) != 0 || !strstr(m.stand_in, ") inflated to shape.json"))
        fail_msg("'%s'", m.stand_in);
    assert_true(inflate_describe(&o, &one, &e) && inflate_is(p->large, one.key));
    assert_false(inflate_is(p->small, one.key));
    assert_memory_equal(&one.model.shape, &m.shape, sizeof m.shape);
    assert_true(one.model.dtype == m.dtype && one.model.eos_count == m.eos_count);
    model_close(&weights);
    o.seed++;
    assert_true(inflate_describe(&o, &other, &e) && !inflate_is(p->large, other.key));
    o.seed--;
    o.shard_bytes = 200000; // where it is cut makes no difference
    assert_true(inflate_describe(&o, &other, &e) && strcmp(one.key, other.key) == 0);
    make(p, &CASES[0]); // in its own place, which it may replace
    assert_false(inflate_is(p->large, one.key));
    json_t *foreign = scratch_json(p->large, "config.json");
    json_object_del(foreign, "outpace_inflate");
    scratch_write_json(p->large, "config.json", foreign);
    json_decref(foreign);
    assert_false(model_inflate(p->large, &o, &e));
    assert_non_null(strstr(e.text, "that 'inflate' did not write"));
}

static void shards_hold_the_same(void **state) {
    Place *p = *state;
    Model whole, cut;
    ModelWeights whole_weights, cut_weights;
    InflateOptions o = options(p);
    const char *dir = folder_path(p->folder, "cut");
    make(p, &CASES[2]);
    o.shard_bytes = 100000;
    inflate(dir, &o);
    assert_true(model_open(&whole, &whole_weights, p->large, NULL) &&
                model_open(&cut, &cut_weights, dir, NULL));
    assert_true(whole_weights.file_count == 1 && cut_weights.file_count > 3);
    for (int layer = 0; layer < whole.shape.layers; layer++)
        for (int i = 0; i < LAYER_WEIGHTS; i++) {
            const Tensor *a = &whole.layers[layer].w[i], *b = &cut.layers[layer].w[i];
            assert_int_equal(tensor_bytes(a), tensor_bytes(b));
            if (a->data) assert_memory_equal(a->data, b->data, tensor_bytes(a));
        }
    model_close(&whole_weights);
    model_close(&cut_weights);
}

static void refused(void **state) {
    Place *p = *state;
    static const struct {
        const char *set, *want;
    } rows[] = {
        {"head_dim=48", "have size 48, those of the model to inflate 32: it must be 1, 4 or 16"},
        {"head_dim=64", "it must be 1, 4 or 16 times that"},
        {"hidden_size=63", "hidden size of "},
        {"intermediate_size=95", "has 96: take a larger shape"},
        {"num_hidden_layers=1", "layers of "},
        {"vocab_size=299", "has 300: take a larger shape"},
        {"num_attention_heads=5", "do not divide"},
        {"tie_word_embeddings=true", "is its embedding"},
        {"num_attention_heads=2", "attention heads of "},
        {"num_key_value_heads=5", "must be from 1 to 4"},
        {"quantization_config={}", "quantised"},
        {"model_type=qwen3", "has 'self_attn.q_norm.weight' tensors, '"},
    };
    Sets small = {NARROW, "num_attention_heads=4", "num_key_value_heads=1", "head_dim=32"};
    const Case c = {"refused",
                    {small[0], small[1], small[2], small[3], small[4], small[5], small[6]},
                    {"head_dim=32"},
                    false,
                    false};
    InflateOptions o = options(p);
    make(p, &c);
    const char *dir = folder_path(p->folder, "never");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Error e = {0};
        Sets sets = {"head_dim=32", rows[i].set};
        write_shape(p, sets);
        if (model_inflate(dir, &o, &e) || !strstr(e.text, rows[i].want) || e.kind != ERROR_INPUT)
            fail_msg("%s: got '%s', want '%s'", rows[i].set, e.text, rows[i].want);
        assert_true(access(dir, F_OK) != 0);
    }
    Sets few = {"head_dim=32", "num_attention_heads=4", "num_key_value_heads=4"};
    Sets pairs = {"head_dim=32", "num_attention_heads=4", "num_key_value_heads=2"};
    SynthOptions s = {.shape = "tiny", .sets = few, .set_count = 3};
    Error e = {0};
    assert_true(model_synth(p->small, &s, &e));
    write_shape(p, pairs);
    assert_false(model_inflate(dir, &o, &e));
    assert_non_null(
        strstr(e.text, "has 2 key heads for 2 query heads each, the model to inflate, with 4 for 1 each"));
    Sets normed = {"model_type=qwen3", "head_dim=32"};
    SynthOptions q = {.shape = "tiny", .sets = normed, .set_count = 2};
    assert_true(model_synth(p->small, &q, &e));
    assert_false(model_inflate(dir, &o, &e));
    assert_non_null(strstr(e.text, "'self_attn.q_norm.weight' tensors, which cannot be inflated"));
    o.shape = "no-such-shape";
    assert_false(model_inflate(dir, &o, &e) || access(dir, F_OK) == 0);
    assert_non_null(strstr(e.text, "no-such-shape"));
}

static int enter(void **state) {
    Place *p = mem_new(1, sizeof *p);
    if (!p) return -1;
    folder_make(p->folder);
    snprintf(p->small, sizeof p->small, "%s/small", p->folder);
    snprintf(p->large, sizeof p->large, "%s/large", p->folder);
    snprintf(p->shape, sizeof p->shape, "%s/shape.json", p->folder);
    *state = p;
    return 0;
}

static int leave(void **state) {
    Place *p = *state;
    folder_remove(p->folder);
    mem_free(p);
    return 0;
}

int main(void) {
    const char *root = getenv("OUTPACE_ROOT");
    if (root && chdir(root)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_the_same, enter, leave),
        cmocka_unit_test_setup_teardown(adapters_say_the_same, enter, leave),
        cmocka_unit_test_setup_teardown(no_row_is_zero, enter, leave),
        cmocka_unit_test_setup_teardown(tells_what_it_is, enter, leave),
        cmocka_unit_test_setup_teardown(shards_hold_the_same, enter, leave),
        cmocka_unit_test_setup_teardown(refused, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
