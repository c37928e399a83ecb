// Hidden states from a target to its adapter within a device (tests/simt): the same bits as over the host,
// without a wait; and over the host if the device can't keep them.
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/random_model.h"

#include "engine/core/hidden.h"
#include "engine/cuda/cuda.h"
#include "engine/model/adapter.h"
#include "engine/model/make/synth.h"

#include <stdlib.h>
#include <string.h>

enum { NODES = 5, LAYERS = 2, MOST = 2048 };

typedef struct World {
    RandomModel model;
    Adapter adapter;
    Session target;
} World;

static void open_cuda(Session *s, const Model *m, int ordinal, void *beside) {
    BackendOptions o = {
        .cards = {1, {ordinal}}, .compute = COMPUTE_BF16, .context = 40, .max_nodes = 16, .beside = beside};
    void *self;
    Error e = {0};
    if (!cuda_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, &m->shape, &o);
}

static void open_world(World *w, const char *folder, AdapterVariant v) {
    Random r = test_random(411);
    Error e = {0};
    Shape shape = random_dense_shape(&r);
    AdapterKind kind = {.variant = v, .exit_layer = adapter_is_eagle(v) ? LAYERS : 1, .heads = 1};
    shape.layers = LAYERS;
    random_model_init(&w->model, &shape, DTYPE_BF16, false, &r);
    random_model_calm(&w->model, 1);
    if (!adapter_synth(folder, &w->model.model, &kind, random_bits(&r) >> 1, true, &e) ||
        !adapter_open(&w->adapter, &w->model.model, folder, &e))
        fail_msg("%s", e.text);
    assert_true(shape.vocab * NODES <= MOST &&
                shape_given_width(&w->adapter.models[0].shape) * NODES <= MOST);
    open_cuda(&w->target, &w->model.model, 0, NULL);
    assert_true(session_capture(&w->target, &w->adapter.captures, &e));
}

static void close_world(World *w) {
    session_release(&w->target);
    adapter_close(&w->adapter);
    random_model_release(&w->model);
    assert_int_equal(simt_live_bytes(), 0);
}

static void open_step(Session *s, int layers) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 1);
    for (int i = 1; i < NODES; i++) node = tree_probe(&s->tree, node, i, true);
    assert_true(session_run(s, layers, NULL));
}

// The adapter's logits of nodes whose states stand before it.
static void read_logits(Session *s, float *logits) {
    assert_true(session_run(s, s->shape.layers, NULL) && session_read(s, HEAD_LOGITS, NULL));
    size_t vocab = (size_t)s->shape.vocab;
    for (int i = 0; i < NODES; i++)
        memcpy(logits + (size_t)i * vocab, session_logits(s, i), vocab * sizeof *logits);
}

static double waited(const Session *s) {
    BackendReport report;
    s->backend->report(s->self, &report);
    return report.waited_s;
}

static HiddenKind kind_of(AdapterVariant v, int round) {
    if (v == ADAPTER_EAGLE3) return HIDDEN_CAPTURED;
    return v == ADAPTER_EAGLE || round % 2 ? HIDDEN_NORMED : HIDDEN_RAW;
}

static void check_bits(AdapterVariant v, const char *folder) {
    World w;
    Session adapter;
    HiddenRows rows;
    Error e = {0};
    open_world(&w, folder, v);
    open_cuda(&adapter, &w.adapter.models[0], 0, w.target.self);
    hidden_open(&rows, &w.target, &adapter, NODES);
    assert_non_null(rows.memory);
    for (int round = 0; round < 2 * SIMT_ORDERS; round++) {
        HiddenKind kind = kind_of(v, round);
        int layers = kind == HIDDEN_RAW ? 1 : LAYERS;
        const int nodes[NODES] = {0, 1, 2, 3, 4};
        float states[MOST], want[MOST] = {0}, got[MOST] = {0};
        simt_settings.order = (SimtOrder)(round / 2);
        open_step(&w.target, layers);
        assert_true(session_get_hidden(&w.target, nodes, NODES, kind, states, &e));
        open_step(&adapter, 0);
        assert_true(session_set_hidden(&adapter, 0, NODES, states, &e));
        read_logits(&adapter, want);
        open_step(&w.target, layers);
        open_step(&adapter, 0);
        double before = waited(&w.target) + waited(&adapter);
        for (int i = 0; i < NODES; i++) {
            assert_true(hidden_keep(&rows, (i + round) % NODES, &w.target, i, kind, &e));
            assert_true(hidden_give(&rows, (i + round) % NODES, &adapter, i, &e));
        }
        assert_true(waited(&w.target) + waited(&adapter) <= before);
        read_logits(&adapter, got);
        assert_memory_equal(got, want, sizeof want);
    }
    simt_settings.order = SIMT_NATURAL;
    hidden_close(&rows);
    session_release(&adapter);
    close_world(&w);
}

static void bits_are_those_of_the_host(void **state) {
    check_bits(ADAPTER_KANGAROO, *state);
    check_bits(ADAPTER_EAGLE, *state);
    check_bits(ADAPTER_MTP, *state);
    check_bits(ADAPTER_EAGLE3, *state);
}

// Another stream, another device, or no memory left: the host has them.
static void else_they_go_over_the_host(void **state) {
    World w;
    Session adapter;
    HiddenRows rows;
    Error e = {0};
    setenv("OUTPACE_FAKE_GPUS", "90,90", 1);
    open_world(&w, *state, ADAPTER_KANGAROO);
    for (int i = 0; i < 3; i++) {
        open_cuda(&adapter, &w.adapter.models[0], i == 1, i ? w.target.self : NULL);
        simt_settings.fail_after = i == 2 ? 0 : -1;
        hidden_open(&rows, &w.target, &adapter, NODES);
        simt_settings.fail_after = -1;
        assert_null(rows.memory);
        open_step(&w.target, 1);
        open_step(&adapter, 0);
        for (int node = 0; node < NODES; node++)
            assert_true(hidden_keep(&rows, node, &w.target, node, HIDDEN_RAW, &e) &&
                        hidden_give(&rows, node, &adapter, node, &e));
        assert_true(session_run(&adapter, adapter.shape.layers, &e));
        hidden_close(&rows);
        session_release(&adapter);
    }
    close_world(&w);
    unsetenv("OUTPACE_FAKE_GPUS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bits_are_those_of_the_host, folder_setup, folder_teardown),
        cmocka_unit_test_setup_teardown(else_they_go_over_the_host, folder_setup, folder_teardown),
    };
    simt_settings.locked = simt_settings.early = true; // what is touched too soon ends the program
    return cmocka_run_group_tests(tests, NULL, NULL);
}
