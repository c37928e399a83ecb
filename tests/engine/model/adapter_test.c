// Adapters on disk and in use: each variant against the formulas of adapter.h in double, directories read
// back, and refused directories with their messages.
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/random_model.h"
#include "tests/support/scratch.h"

#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/core/session.h"
#include "engine/model/make/synth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 1024 }; // of any vector here

// --- the formulas

static double at(const Tensor *t, int row, int column) {
    return (double)dtype_load(t->dtype, t->data, (size_t)row * (size_t)t->columns + (size_t)column);
}

static void multiply(const Tensor *w, const double *x, double *y) {
    for (int i = 0; i < w->rows; i++) {
        y[i] = 0;
        for (int j = 0; j < w->columns; j++) y[i] += at(w, i, j) * x[j];
    }
}

static void normalise(const Tensor *w, float epsilon, const double *x, double *y) {
    double squares = 0;
    for (int i = 0; i < w->columns; i++) squares += x[i] * x[i];
    for (int i = 0; i < w->columns; i++)
        y[i] = x[i] / sqrt(squares / w->columns + (double)epsilon) * at(w, 0, i);
}

static double silu(double x) { return x / (1 + exp(-x)); }

// A token alone attends to itself: each query head gives its key head's value.
static void attend(const Model *m, double *x) {
    const Shape *s = &m->shape;
    const Tensor *w = m->layers->w;
    double normed[MOST], value[MOST], mixed[MOST], out[MOST];
    normalise(&w[W_ATTENTION_NORM], s->norm_epsilon, x, normed);
    multiply(&w[W_V], normed, value);
    for (int i = 0; i < shape_q_width(s); i++) {
        int head = i / s->head_dim / (s->heads / s->kv_heads);
        mixed[i] = value[head * s->head_dim + i % s->head_dim];
    }
    multiply(&w[W_O], mixed, out);
    for (int i = 0; i < s->width; i++) x[i] += out[i];
}

static void gated_mlp(const Model *m, double *x) {
    const Tensor *w = m->layers->w;
    double normed[MOST], gate[MOST], up[MOST], out[MOST];
    normalise(&w[W_MLP_NORM], m->shape.norm_epsilon, x, normed);
    multiply(&w[W_GATE], normed, gate);
    multiply(&w[W_UP], normed, up);
    for (int i = 0; i < m->shape.mlp_width; i++) gate[i] = silu(gate[i]) * up[i];
    multiply(&w[W_DOWN], gate, out);
    for (int i = 0; i < m->shape.width; i++) x[i] += out[i];
}

static void plain_mlp(const Model *m, double *x) {
    const Tensor *w = m->layers->w;
    double normed[MOST], hidden[MOST], out[MOST];
    normalise(&w[W_MLP_NORM], m->shape.norm_epsilon, x, normed);
    multiply(&w[W_GATE], normed, hidden);
    for (int i = 0; i < m->shape.width; i++) hidden[i] = silu(hidden[i]);
    multiply(&w[W_DOWN], hidden, out);
    for (int i = 0; i < m->shape.width; i++) x[i] += out[i];
}

static void medusa_block(const Model *m, double *x) {
    double out[MOST];
    multiply(&m->layers->w[W_GATE], x, out);
    for (int i = 0; i < m->shape.width; i++) x[i] += silu(out[i] + at(&m->layers->w[W_GATE_BIAS], 0, i));
}

static void slow_logits(const Model *m, AdapterVariant v, const float *row, double *logits) {
    double x[MOST], normed[MOST];
    for (int i = 0; i < m->shape.width; i++) x[i] = (double)row[i];
    if (v == ADAPTER_MLP) plain_mlp(m, x);
    else if (v == ADAPTER_MEDUSA) medusa_block(m, x);
    else attend(m, x);
    if (v == ADAPTER_ONE_LAYER) gated_mlp(m, x);
    if (v != ADAPTER_MEDUSA) normalise(&m->final_norm, m->shape.norm_epsilon, x, normed);
    multiply(&m->head, v == ADAPTER_MEDUSA ? x : normed, logits);
}

// --- against the engine

static void make_target(RandomModel *m, Random *r) {
    Shape shape = random_plain_shape(r);
    shape.layers = 3;
    shape.activation = ACTIVATION_SILU;
    random_model_init(m, &shape, DTYPE_F32, false, r);
}

static void check_arithmetic(const Model *m, AdapterVariant v, Random *r) {
    enum { ROWS = 3 };
    BackendOptions o = {.compute = COMPUTE_F32, .context = 20, .max_nodes = 8, .threads = 1};
    Session s;
    void *self;
    float rows[ROWS * MOST];
    int nodes[ROWS];
    assert_true(cpu_open(m, &o, &self, NULL));
    session_init(&s, &cpu_backend, self, &m->shape, &o);
    for (int i = 0; i < ROWS * m->shape.width; i++) rows[i] = random_normal(r);
    session_begin_step(&s, true, LAYOUT_TREE);
    for (int i = 0; i < ROWS; i++) nodes[i] = tree_root(&s.tree, i); // each alone
    assert_true(session_set_hidden(&s, 0, ROWS, rows, NULL) && session_run(&s, 1, NULL));
    assert_true(session_read(&s, HEAD_LOGITS, NULL));
    for (int i = 0; i < ROWS; i++) {
        double want[MOST];
        slow_logits(m, v, rows + (size_t)i * (size_t)m->shape.width, want);
        for (int k = 0; k < m->shape.real_vocab; k++) {
            double got = (double)session_logits(&s, nodes[i])[k];
            if (!(fabs(got - want[k]) < 1e-4 * (1 + fabs(want[k]))))
                fail_msg("%s, row %d: logit %d is %g, want %g", adapter_variant_name(v), i, k, got, want[k]);
        }
    }
    session_release(&s);
}

static void check_variant(const RandomModel *target, AdapterVariant v, const char *folder, Random *r) {
    const Model *t = &target->model;
    bool medusa = v == ADAPTER_MEDUSA;
    AdapterKind kind = {.variant = v,
                        .exit_layer = medusa ? t->shape.layers : test_between(r, 1, 2),
                        .heads = medusa ? test_between(r, 1, 8) : 1,
                        .kv_heads = test_between(r, 0, 1) ? t->shape.kv_heads : 0};
    Adapter a;
    Error e = {0};
    const char *dir = folder_path(folder, adapter_variant_name(v));
    if (!adapter_synth(dir, t, &kind, 5, false, &e)) fail_msg("%s", e.text);
    if (!adapter_open(&a, t, dir, &e)) fail_msg("%s", e.text);
    assert_memory_equal(&a.kind, &kind, sizeof kind);
    bool own = v == ADAPTER_WITH_HEAD || v == ADAPTER_MLP || medusa;
    for (int i = 0; i < kind.heads; i++) {
        assert_true((a.models[i].head.data == t->head.data) == !own);
        check_arithmetic(&a.models[i], v, r);
    }
    if (kind.heads > 1) assert_ptr_not_equal(a.models[0].head.data, a.models[1].head.data);
    adapter_close(&a);
    adapter_close(&a); // takes an empty one
    assert_true(adapter_open_config(&a, t, dir, NULL));
    assert_memory_equal(&a.kind, &kind, sizeof kind);
    assert_null(a.models[0].layers);
    adapter_close(&a);
}

static void every_variant(void **state) {
    Random r = test_random(93);
    for (int round = 0; round < 8; round++) {
        RandomModel target;
        make_target(&target, &r);
        for (int v = ADAPTER_KANGAROO; v <= ADAPTER_MEDUSA; v++)
            check_variant(&target, (AdapterVariant)v, *state, &r);
        random_model_release(&target);
    }
}

// Table 2's sizes at the paper's target, in millions; and those of weights that there are.
static void sizes_of_the_paper(void **state) {
    static const double millions[] = {67, 198, 202, 165, 591};
    Random r = test_random(94);
    RandomModel target;
    make_target(&target, &r);
    Model vicuna = target.model;
    Shape *s = &vicuna.shape;
    s->width = 4096, s->mlp_width = 11008, s->vocab = 32000, s->head_dim = 128, s->heads = s->kv_heads = 32;
    for (int v = ADAPTER_KANGAROO; v <= ADAPTER_MEDUSA; v++) {
        const char *dir = folder_path(*state, "size");
        AdapterKind kind = {.variant = (AdapterVariant)v,
                            .exit_layer = v == ADAPTER_MEDUSA ? 3 : 1,
                            .heads = v == ADAPTER_MEDUSA ? 4 : 1};
        Adapter a = {0};
        size_t bytes = 0;
        assert_int_equal(adapter_parameters(&a), 0);
        adapter_describe(&a, &kind, &vicuna);
        double got = 1e-6 * (double)adapter_parameters(&a);
        if (fabs(got - millions[v]) > 1)
            fail_msg("%s has %.1f million, want %.0f", adapter_variant_name((AdapterVariant)v), got,
                     millions[v]);
        assert_true(adapter_synth(dir, &target.model, &kind, 5, false, NULL));
        assert_true(adapter_open(&a, &target.model, dir, NULL));
        uint64_t header;
        memcpy(&header, a.weights.files->view.data, sizeof header);
        bytes = a.weights.files->view.size - sizeof header - (size_t)header;
        assert_int_equal(adapter_parameters(&a) * dtype_size(target.model.dtype), bytes);
        assert_int_equal(a.trained, 0);
        adapter_close(&a);
    }
    random_model_release(&target);
}

// --- refusals

static void expect(const Model *target, const char *dir, const char *want) {
    Adapter a;
    Error e = {0};
    if (adapter_open(&a, target, dir, &e)) fail_msg("'%s' was opened, want '%s'", dir, want);
    assert_int_equal(e.kind, ERROR_INPUT);
    if (!strstr(e.text, want)) fail_msg("got '%s', want '%s'", e.text, want);
    assert_null(a.models[0].layers);
}

static void wrong_directories(void **state) {
    static const struct {
        const char *key, *value, *want;
    } rows[] = {
        {"model_type", "\"llama\"", "'num_hidden_layers' is missing"},
        {"model_type", "\"other\"", "has no \"model_type\": \"outpace_adapter\": it isn't an adapter"},
        {"variant", "\"wide\"", "unknown adapter variant 'wide': kangaroo, with-head"},
        {"variant", "\"mlp\"", "has no tensor 'linear.0.weight', which its config.json needs"},
        {"variant", "\"medusa\"", "'heads'"},
        {"exit_layer", "3", "is 3, must be from 1 to 2, below the target's last"},
        {"exit_layer", "0", "'exit_layer'"},
        {"exit_layer", "null", "'exit_layer'"},
        {"hidden_size", "1", "it is of another model"},
        {"vocab_size", "1", "it is of another model"},
        {"num_key_value_heads", "1024", "key-value heads, which must divide the target's"},
    };
    Random r = test_random(95);
    RandomModel target;
    AdapterKind kind = {.variant = ADAPTER_KANGAROO, .exit_layer = 1, .heads = 1};
    const char *dir = folder_path(*state, "a");
    make_target(&target, &r);
    expect(&target.model, dir, "cannot read");
    assert_true(adapter_synth(dir, &target.model, &kind, 5, false, NULL));
    json_t *whole = scratch_json(dir, "config.json");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *config = json_deep_copy(whole);
        json_object_set_new(config, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        scratch_write_json(dir, "config.json", config);
        expect(&target.model, dir, rows[i].want);
        json_decref(config);
    }
    json_decref(whole);
    random_model_release(&target);
}

static void wrong_kinds(void **state) {
    Random r = test_random(96);
    RandomModel target;
    Error e = {0};
    const char *dir = folder_path(*state, "never");
    make_target(&target, &r);
    assert_false(adapter_synth(dir, &target.model,
                               &(AdapterKind){.variant = ADAPTER_MLP, .exit_layer = 3, .heads = 1}, 0, false,
                               &e));
    assert_false(adapter_synth(dir, &target.model,
                               &(AdapterKind){.variant = ADAPTER_MEDUSA, .exit_layer = 3, .heads = 9}, 0,
                               false, &e));
    assert_int_equal(folder_count(*state), 0);
    random_model_release(&target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_variant, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(sizes_of_the_paper, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(wrong_directories, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(wrong_kinds, folder_setup, folder_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
