// Launches a layer takes, and that leaving a split product's parts to the norm that follows changes no bit:
// neither of states that are kept on the way, nor where a run ends between layers.
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/cuda.h"

#include <string.h>

enum { ROWS = 24, WIDTH = 64, LAYERS = 3, CAPTURED = 2 };

// o and down have 1,024 columns: their sums are in two parts.
static Shape split_shape(int layers) {
    return (Shape){
        .input = INPUT_TOKENS,
        .layers = layers,
        .width = WIDTH,
        .kv_heads = 8,
        .heads = 8,
        .head_dim = 128,
        .mlp_width = 1024,
        .vocab = 100,
        .real_vocab = 100,
        .context = 100,
        .activation = ACTIVATION_SILU,
        .norm_epsilon = 1e-5f,
        .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 64, .attention_factor = 1}};
}

static void open_model(RandomModel *m, Session *s, const Shape *shape) {
    Random r = test_random(311);
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 32};
    void *self;
    Error e = {0};
    random_model_init(m, shape, DTYPE_BF16, false, &r);
    if (!cuda_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cuda_backend, self, shape, &o);
}

static void close_model(RandomModel *m, Session *s) {
    session_release(s);
    random_model_release(m);
    assert_int_equal(simt_live_bytes(), 0);
}

// Of a step of so many rows, all of which the head reads.
static int launches_of(int layers, int rows) {
    RandomModel m;
    Session s;
    Error e = {0};
    Shape shape = split_shape(layers);
    open_model(&m, &s, &shape);
    unsigned long before = simt_launches();
    session_begin_step(&s, true, LAYOUT_TREE);
    int node = tree_root(&s.tree, 1);
    for (int i = 1; i < rows; i++) node = tree_probe(&s.tree, node, i, true);
    if (!session_run(&s, layers, &e) || !session_read(&s, HEAD_ARGMAX, &e)) fail_msg("%s", e.text);
    int launches = (int)(simt_launches() - before);
    close_model(&m, &s);
    return launches;
}

static void seven_a_layer(void **state) {
    (void)state;
    const int rows[] = {1, ROWS, 8, 16};
    for (int i = 0; i < test_some(2, sizeof rows / sizeof *rows); i++) {
        int two = launches_of(2, rows[i]), three = launches_of(3, rows[i]);
        if (three - two != 7) fail_msg("%d rows: %d launches a layer, wanted 7", rows[i], three - two);
        // embed, norm, head, its best; and down's parts of the last layer
        int rest = two - 14, want = rows[i] > 16 ? 5 : 4;
        if (rest != want) fail_msg("%d rows: %d launches but for layers, wanted %d", rows[i], rest, want);
    }
}

// All states that a prompt leaves: captured ones, or those after a layer.
static void read_states(Session *s, int chunk, int layer, float *out) {
    static const int tokens[ROWS] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 44, 33, 77};
    Error e = {0};
    session_reset(s);
    if (!session_prefill(s, tokens, ROWS, chunk, layer, out, &e)) fail_msg("%s", e.text);
}

static void the_same_bits(void **state) {
    (void)state;
    static float together[ROWS * CAPTURED * WIDTH], apart[ROWS * CAPTURED * WIDTH];
    const Captures captures = {.count = CAPTURED, .layers = {1, 2}};
    const int layers[] = {LAYERS_CAPTURED, 1, 2, LAYERS};
    RandomModel m;
    Session s;
    Error e = {0};
    Shape shape = split_shape(LAYERS);
    open_model(&m, &s, &shape);
    for (int capture = 0; capture < 2; capture++)
        for (int i = 0; i < test_some(2, sizeof layers / sizeof *layers); i++) {
            if (!capture && layers[i] == LAYERS_CAPTURED) continue;
            if (!session_capture(&s, capture ? &captures : NULL, &e)) fail_msg("%s", e.text);
            memset(together, 0, sizeof together);
            memset(apart, 0, sizeof apart);
            read_states(&s, ROWS, layers[i], together);
            read_states(&s, 8, layers[i], apart); // whose sums are whole in each block
            assert_memory_equal(together, apart, sizeof together);
        }
    close_model(&m, &s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seven_a_layer), cmocka_unit_test(the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
