// Contexts of several spans, with a window's ring and without: against the CPU's reference kernels, and bit
// for bit whatever the chunks of the prefill, and whether the last tokens are a tree or committed one by one.
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"

#include <math.h>
#include <string.h>

enum { TOKENS = 300, TAIL = 5, VOCAB = 40, NODES = 64 };

static Shape small_shape(int window) {
    return (Shape){
        .input = INPUT_TOKENS,
        .layers = 1,
        .width = 32,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .mlp_width = 40,
        .vocab = VOCAB,
        .real_vocab = VOCAB,
        .context = 1000,
        .window = window,
        .norm_epsilon = 1e-5f,
        .rope = {.kind = ROPE_PLAIN, .theta = 10000, .factor = 1, .pairs = 8, .attention_factor = 1}};
}

static void open_session(Session *s, const RandomModel *m, Compute compute, bool cuda) {
    BackendOptions o = {
        .compute = compute, .max_nodes = NODES, .threads = 1, .isa = cuda ? NULL : "reference", .slack = 16};
    void *self;
    Error e = {0};
    if (!(cuda ? cuda_open(&m->model, &o, &self, &e) : cpu_open(&m->model, &o, &self, &e)))
        fail_msg("%s", e.text);
    session_init(s, cuda ? &cuda_backend : &cpu_backend, self, &m->model.shape, &o);
}

// The logits after the last TAIL tokens, which are one step; `first` tokens in one go, the others in chunks.
static void run(Session *s, const int *tokens, int first, int chunk, float logits[TAIL][VOCAB]) {
    Error e = {0};
    session_reset(s);
    if (!session_prefill(s, tokens, first, 0, 0, NULL, &e) ||
        !session_prefill(s, tokens + first, TOKENS - TAIL - first, chunk, 0, NULL, &e))
        fail_msg("%s", e.text);
    session_begin_step(s, true, LAYOUT_TREE);
    int node = tree_root(&s->tree, tokens[TOKENS - TAIL]);
    for (int i = TOKENS - TAIL + 1; i < TOKENS; i++) node = tree_probe(&s->tree, node, tokens[i], true);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
    for (int i = 0; i < TAIL; i++) memcpy(logits[i], session_logits(s, i), sizeof logits[i]);
}

static double worst_error(float got[TAIL][VOCAB], float want[TAIL][VOCAB]) {
    double worst = 0, scale = 0;
    for (int i = 0; i < TAIL * VOCAB; i++) {
        double d = fabs((double)got[i / VOCAB][i % VOCAB] - (double)want[i / VOCAB][i % VOCAB]);
        worst = test_worse(worst, d);
        scale = fmax(scale, fabs((double)want[i / VOCAB][i % VOCAB]));
    }
    return worst / scale;
}

static void check(Compute compute, int window, double tolerance) {
    float want[TAIL][VOCAB], got[TAIL][VOCAB], again[TAIL][VOCAB];
    int tokens[TOKENS];
    Random r = test_random(96);
    Shape shape = small_shape(window);
    RandomModel m;
    Session cpu, gpu;
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    for (int i = 0; i < TOKENS; i++) tokens[i] = test_between(&r, 0, VOCAB - 1);
    open_session(&cpu, &m, compute, false);
    open_session(&gpu, &m, compute, true);
    run(&cpu, tokens, 200, 60, want);
    run(&gpu, tokens, 200, 60, got);
    simt_settings.order = SIMT_RANDOM;
    run(&gpu, tokens, 281, 1, again);
    simt_settings.order = SIMT_NATURAL;
    double error = worst_error(got, want);
    print_message("compute %s, window %d: worst error %.2e\n", compute == COMPUTE_BF16 ? "bf16" : "f32",
                  window, error);
    assert_true(error <= tolerance);
    assert_memory_equal(got, again, sizeof got);
    session_release(&cpu);
    session_release(&gpu);
    random_model_release(&m);
}

static void line(void **state) {
    (void)state;
    check(COMPUTE_F32, 0, 2e-5);
    check(COMPUTE_BF16, 0, 4e-2);
}
static void ring(void **state) {
    (void)state;
    check(COMPUTE_F32, 100, 2e-5);
    check(COMPUTE_BF16, 100, 4e-2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(line), cmocka_unit_test(ring)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
