// Launches that a layer takes, by family; and that leaving a split product's parts to the norm that follows
// changes no bit: neither of states that are kept on the way, nor where a run ends between layers.
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
static int launches_of(const Shape *of, int layers, int rows) {
    RandomModel m;
    Session s;
    Error e = {0};
    Shape shape = *of;
    shape.layers = layers;
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
    const Shape shape = split_shape(LAYERS);
    for (int i = 0; i < test_some(2, sizeof rows / sizeof *rows); i++) {
        int two = launches_of(&shape, 2, rows[i]), three = launches_of(&shape, 3, rows[i]);
        if (three - two != 7) fail_msg("%d rows: %d launches a layer, wanted 7", rows[i], three - two);
        // embed, norm, head, its best; and down's parts of the last layer
        int rest = two - 14, want = rows[i] > 16 ? 5 : 4;
        if (rest != want) fail_msg("%d rows: %d launches but for layers, wanted %d", rows[i], rest, want);
    }
}

// What families add: norms of heads and of outputs, more products in parts, experts.
enum { PLAIN, HEADS, ROW_NORMS, AROUND, AFTER, PARALLEL, SHARED, SPLIT, EXPERTS, GATED, FAMILIES };
static Shape family(int which) {
    Shape s = split_shape(LAYERS);
    if (which == HEADS) s.qk_norm = QK_NORM_HEADS;
    if (which == ROW_NORMS || which == AFTER) s.qk_norm = QK_NORM_ROWS;
    if (which == AROUND) s.norm_place = NORMS_AROUND;
    if (which == AFTER) s.norm_place = NORMS_AFTER;
    if (which == PARALLEL) s.mlp_input = MLP_PARALLEL, s.norm_kind = NORM_LAYER, s.norm_bias = true;
    if (which == SHARED) s.mlp_input = MLP_SHARES_NORM, s.norm_kind = NORM_LAYER;
    if (which == SPLIT) s.width = 1024;
    if (which == EXPERTS || which == GATED) {
        s.experts = (Experts){.count = 4, .chosen = 2, .width = 64, .renormalised = true};
        for (int i = 0; i < LAYERS; i++) layer_add(&s.sparse, i);
    }
    if (which == GATED) s.experts.shared_width = 64, s.experts.shared_gate = true;
    return s;
}

static void as_many_as_before(void **state) {
    static const struct {
        const char *name;
        int one, many; // launches a layer of a step of 1 and of ROWS
    } rows[FAMILIES] = {
        [PLAIN] = {"llama", 7, 7},
        [HEADS] = {"norms of heads, as qwen3", 8, 8},
        [ROW_NORMS] = {"norms of all heads", 9, 9},
        [AROUND] = {"norms around, as gemma2", 9, 9},
        [AFTER] = {"norms behind, as olmo2", 11, 11},
        [PARALLEL] = {"MLP beside attention, as gpt-neox", 7, 8},
        [SHARED] = {".. under one norm, as cohere", 7, 8},
        [SPLIT] = {"q k v and gate up in parts", 7, 9},
        [EXPERTS] = {"experts, as mixtral", 12, 12},
        [GATED] = {".. and an MLP for all, as qwen2-moe", 14, 14},
    };
    int changed = 0;
    (void)state;
    for (int i = 0; i < FAMILIES; i++) {
        const Shape shape = family(i);
        for (int many = 0; many < 2; many++) {
            int n = many ? ROWS : 1, wanted = many ? rows[i].many : rows[i].one;
            int got = launches_of(&shape, 2, n) - launches_of(&shape, 1, n);
            if (got != wanted)
                print_error("%s, %d rows: %d launches a layer, wanted %d\n", rows[i].name, n, got, wanted);
            changed += got != wanted;
        }
    }
    assert_int_equal(changed, 0);
}

// All states that a prompt leaves: captured ones, or those after a layer.
static void read_states(Session *s, int chunk, int layer, float *out) {
    static const int tokens[ROWS] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 44, 33, 77};
    Error e = {0};
    session_reset(s);
    if (!session_prefill(s, tokens, ROWS, chunk, layer, out, &e)) fail_msg("%s", e.text);
}

static void same_bits_of(int which) {
    static float together[ROWS * CAPTURED * WIDTH], apart[ROWS * CAPTURED * WIDTH];
    const Captures captures = {.count = CAPTURED, .layers = {1, 2}};
    const int layers[] = {LAYERS_CAPTURED, 1, 2, LAYERS};
    RandomModel m;
    Session s;
    Error e = {0};
    Shape shape = family(which);
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

static void the_same_bits(void **state) {
    (void)state;
    same_bits_of(PLAIN);
    same_bits_of(AROUND);
    same_bits_of(AFTER);
    same_bits_of(PARALLEL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(seven_a_layer), cmocka_unit_test(as_many_as_before),
                                       cmocka_unit_test(the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
