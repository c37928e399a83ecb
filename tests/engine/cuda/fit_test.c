// Layers over cards: split by each card's free memory, or refused with the missing amount and a size that
// would fit; and a lost card is named (tests/simt).
#include "tests/simt/settings.h"
#include "tests/support/check.h"
#include "tests/support/random_model.h"

#include "engine/core/session.h"
#include "engine/cuda/device.h"
#include "engine/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 80, MOST = 4 };

// Llama-2 70B, by its shape alone: nobody looks at the weights.
typedef struct World {
    Model model;
    LayerWeights layers[LAYERS];
    GpuLayer own[MOST][LAYERS];
    Cuda cards[MOST];
} World;

static Tensor tensor(int rows, int columns) {
    static const unsigned char somewhere[1];
    return (Tensor){.data = somewhere, .dtype = DTYPE_BF16, .rows = rows, .columns = columns};
}

static void describe(World *w) {
    const int width = 8192, kv = 1024, mlp = 28672, vocab = 32000;
    static const unsigned char elsewhere[1];
    w->model = (Model){.shape = {.layers = LAYERS,
                                 .width = width,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .head_dim = 128,
                                 .mlp_width = mlp,
                                 .vocab = vocab,
                                 .real_vocab = vocab,
                                 .context = 4096,
                                 .rope = {.pairs = 64}},
                       .layers = w->layers,
                       .embedding = tensor(vocab, width),
                       .head = tensor(vocab, width),
                       .final_norm = tensor(1, width)};
    w->model.embedding.data = elsewhere;
    for (int i = 0; i < LAYERS; i++)
        w->layers[i] = (LayerWeights){.w[W_Q] = tensor(width, width),
                                      .w[W_K] = tensor(kv, width),
                                      .w[W_V] = tensor(kv, width),
                                      .w[W_O] = tensor(width, width),
                                      .w[W_GATE] = tensor(mlp, width),
                                      .w[W_UP] = tensor(mlp, width),
                                      .w[W_DOWN] = tensor(width, mlp),
                                      .w[W_ATTENTION_NORM] = tensor(1, width),
                                      .w[W_MLP_NORM] = tensor(1, width)};
}

// gigabytes: free on each card, 0 behind the last.
static bool fit(World *w, const double gigabytes[MOST], int sequences, Error *e) {
    BackendOptions o = {.compute = COMPUTE_BF16, .context = 4096};
    int count = 0;
    for (; count < MOST && gigabytes[count] > 0; count++) {
        Cuda *c = &w->cards[count];
        *c = (Cuda){
            .first = w->cards,
            .model = &w->model,
            .compute = COMPUTE_BF16,
            .ordinal = count,
            .layers = w->own[count],
            .sequences = sequences,
            .max_nodes = 256,
            .heads.heads = 64,
            .heads.kv_heads = 8,
            .heads.head_dim = 128,
            .heads.pitch = 128,
            .heads.dtype = DTYPE_BF16,
            .heads.pairs = 64,
            .facts.free_bytes = (size_t)(gigabytes[count] * 1e9),
        };
        if (count) w->cards[count - 1].next = c;
    }
    cuda_set_context(w->cards, o.context, &o);
    return cuda_fit(w->cards, &o, e);
}

static void layers_go_by_memory(void **state) {
    static const struct {
        double gigabytes[MOST];
        int least[MOST], most[MOST]; // layers of each
    } cases[] = {
        {{160}, {80}, {80}},
        {{80, 80}, {39, 39}, {41, 41}},
        {{80, 40, 40}, {38, 18, 18}, {42, 21, 21}},
        {{24, 141, 80}, {6, 42, 23}, {9, 50, 28}},
        {{48, 48, 48, 48}, {19, 19, 19, 19}, {21, 21, 21, 21}},
    };
    static World w;
    Error e = {0};
    (void)state;
    describe(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int at = 0;
        if (!fit(&w, cases[i].gigabytes, 1, &e)) fail_msg("case %zu: %s", i, e.text);
        for (Cuda *c = w.cards; c; at = c->to, c = c->next) {
            size_t need = c->weight_bytes + c->cache_bytes + c->step_bytes;
            int own = c->to - c->from, card = c->ordinal;
            if (c->from != at || own < cases[i].least[card] || own > cases[i].most[card] ||
                need > c->facts.free_bytes)
                fail_msg("case %zu, card %d: layers %d to %d", i, card, c->from, c->to);
        }
        assert_int_equal(at, LAYERS);
    }
}

static void what_is_missing_is_told(void **state) {
    static const struct {
        double gigabytes[MOST];
        const char *text;
    } cases[] = {
        {{80, 40}, "cuda:0,cuda:1: the model needs 14"},
        {{80, 40}, " GB are missing: it does not fit, whatever the context"},
        {{300, 0.5}, "cuda:1 has too little for its layers"},
    };
    static World w;
    (void)state;
    describe(&w);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Error e = {0};
        assert_false(fit(&w, cases[i].gigabytes, 1, &e));
        if (!strstr(e.text, cases[i].text)) fail_msg("wanted '%s', got '%s'", cases[i].text, e.text);
    }
}

// Weights don't grow with a batch, caches and step areas do.
static void a_batch_that_fits_is_named(void **state) {
    static const double gigabytes[MOST] = {200};
    static World w;
    Error e = {0};
    int batch = 0;
    (void)state;
    describe(&w);
    if (!fit(&w, gigabytes, 1, &e)) fail_msg("%s", e.text);
    size_t alone = w.cards->weight_bytes, cache = w.cards->cache_bytes;
    assert_false(fit(&w, gigabytes, SEQUENCES_MAX, &e));
    const char *mend = strstr(e.text, "missing: --batch ");
    if (!mend || sscanf(mend, "missing: --batch %d or --context ", &batch) != 1)
        fail_msg("no batch in: %s", e.text);
    if (!fit(&w, gigabytes, batch, &e)) fail_msg("%s", e.text);
    assert_int_equal(w.cards->weight_bytes, alone);
    assert_int_equal(w.cards->cache_bytes, (size_t)batch * cache);
    assert_false(fit(&w, gigabytes, batch + batch / 4, &e));
}

static void open_model(RandomModel *m, int layers, int context) {
    Random r = test_random(98);
    Shape shape = random_dense_shape(&r);
    shape.window = 0;
    shape.layers = layers;
    shape.context = context;
    random_model_init(m, &shape, DTYPE_BF16, false, &r);
}

// Two cards may hold what one has no room for.
static void more_cards_are_named(void **state) {
    RandomModel m;
    void *self;
    int fits = 0;
    BackendOptions o = {.compute = COMPUTE_BF16, .max_nodes = 8};
    Error e = {0}, again = {0};
    (void)state;
    setenv("OUTPACE_FAKE_GPUS", "90:440,75,90:440", 1);
    open_model(&m, 4, 1 << 24);
    assert_false(cuda_open(&m.model, &o, &self, &e));
    const char *mend = strstr(e.text, "--context ");
    if (!mend || sscanf(mend, "--context %d", &fits) != 1) fail_msg("no mend in: %s", e.text);
    o.context = fits + fits / 2;
    assert_false(cuda_open(&m.model, &o, &self, &again));
    if (!strstr(again.text, " or --device cuda:0,cuda:2 would fit")) fail_msg("got: %s", again.text);
    o.cards = (Cards){2, {0, 2}};
    if (!cuda_open(&m.model, &o, &self, &again)) fail_msg("%s", again.text);
    cuda_backend.close(self);
    o.cards = (Cards){5, {0, 2, 3, 4, 5}};
    assert_false(cuda_open(&m.model, &o, &self, &e));
    random_model_release(&m);
    assert_int_equal(simt_live_bytes(), 0);
}

static bool run_step(Session *s, Error *e) {
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, 1);
    return session_run(s, s->shape.layers, e) && session_read(s, HEAD_ARGMAX, e) &&
           session_commit(s, node, 1, e);
}

static void a_lost_card_names_itself(void **state) {
    RandomModel m;
    (void)state;
    setenv("OUTPACE_FAKE_GPUS", "90,90,90", 1);
    open_model(&m, 3, 64);
    for (int lost = 0; lost < 3; lost++) {
        static const char *const names[] = {"cuda:0: ", "cuda:1: ", "cuda:2: "};
        BackendOptions o = {.cards = {3, {2, 0, 1}}, .compute = COMPUTE_BF16, .max_nodes = 8, .context = 40};
        Session s;
        void *self;
        Error e = {0};
        if (!cuda_open(&m.model, &o, &self, &e)) fail_msg("%s", e.text);
        session_init(&s, &cuda_backend, self, &m.model.shape, &o);
        if (!run_step(&s, &e)) fail_msg("%s", e.text);
        simt_settings.lost = lost;
        assert_false(run_step(&s, &e));
        if (strncmp(e.text, names[lost], strlen(names[lost])) != 0) fail_msg("lost %d: %s", lost, e.text);
        simt_settings.lost = -1;
        session_release(&s);
    }
    random_model_release(&m);
    assert_int_equal(simt_live_bytes(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_go_by_memory), cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(a_batch_that_fits_is_named), cmocka_unit_test(more_cards_are_named),
        cmocka_unit_test(a_lost_card_names_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
