// CUDA kernels against the same step on the CPU's reference kernels, which sum in double: every shape within
// an engine's limits, both computes, weights of every type, trees in both layouts. The kernels run on the CPU
// (tests/simt).
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/settings.h"

#include "engine/base/memory.h"
#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cuda.h"

#include <math.h>
#include <string.h>

enum { NODES = 24, PROMPT = 30 };

typedef struct {
    int prompt_count, count, chunk;
    int prompt[PROMPT], token[NODES], parent[NODES];
} Plan;

static void open_pair(const RandomModel *m, Compute compute, Session *cpu, Session *gpu) {
    BackendOptions o = {.compute = compute,
                        .context = 300,
                        .max_nodes = NODES,
                        .threads = 1,
                        .isa = "reference",
                        .slack = 16};
    void *self;
    Error e = {0};
    if (!cpu_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(cpu, &cpu_backend, self, &m->model.shape, &o);
    if (!cuda_open(&m->model, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(gpu, &cuda_backend, self, &m->model.shape, &o);
}

static void make_plan(Plan *p, const Shape *s, Random *r) {
    p->prompt_count = test_between(r, 0, PROMPT);
    p->count = test_between(r, 1, NODES);
    p->chunk = test_between(r, 1, NODES);
    for (int i = 0; i < p->prompt_count; i++) p->prompt[i] = test_between(r, 0, s->vocab - 1);
    for (int i = 0; i < p->count; i++) {
        p->token[i] = test_between(r, 0, s->vocab - 1);
        p->parent[i] = i ? test_between(r, i > 5 ? i - 5 : 0, i - 1) : TREE_NONE;
    }
}

static void run_plan(Session *s, const Plan *p) {
    Error e = {0};
    int node[NODES];
    session_reset(s);
    if (!session_prefill(s, p->prompt, p->prompt_count, p->chunk, 0, NULL, &e)) fail_msg("%s", e.text);
    session_begin_step(s, false, LAYOUT_TREE);
    for (int i = 0; i < p->count; i++)
        node[i] = i ? tree_probe(&s->tree, node[p->parent[i]], p->token[i], true)
                    : tree_root(&s->tree, p->token[0]);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
}

// The largest difference relative to the row's largest wanted logit.
static double row_error(const float *got, const float *want, int n) {
    double worst = 0, scale = 0;
    for (int i = 0; i < n; i++) {
        double d = fabs((double)got[i] - (double)want[i]);
        worst = test_worse(worst, d);
        scale = fmax(scale, fabs((double)want[i]));
    }
    return worst / scale;
}

static double compare(Session *cpu, Session *gpu, const Plan *p) {
    const Shape *s = &cpu->shape;
    double worst = 0;
    for (int i = 0; i < p->count; i++) {
        const float *got = session_logits(gpu, i), *want = session_logits(cpu, i);
        double error = row_error(got, want, s->real_vocab);
        worst = test_worse(worst, error);
        for (int k = s->real_vocab; k < s->vocab; k++) assert_true(isinf(got[k]) && got[k] < 0);
        int best = session_argmax(gpu, i);
        for (int k = 0; k < s->real_vocab; k++)
            assert_true(got[k] < got[best] || (got[k] == got[best] && k >= best));
    }
    return worst;
}

// How far the reference itself is from its f32, for models that enlarge every rounding.
static double own_error(const RandomModel *m, Session *cpu, const Plan *p) {
    Session cpu32, gpu32;
    open_pair(m, COMPUTE_F32, &cpu32, &gpu32);
    run_plan(&cpu32, p);
    double error = compare(&cpu32, cpu, p);
    session_release(&cpu32);
    session_release(&gpu32);
    return error;
}

// In bf16 every rounding of a row may fall the other way: two ulps of a value, seen through a few layers.
// Where the reference is further than that from its own f32, the kernels may be as far from it on the other
// side.
static void check_shapes(Compute compute, Dtype dtype, bool mixed, double tolerance, int rounds) {
    Random r = test_random(90 + (uint64_t)dtype);
    double worst = 0;
    for (int round = 0; round < rounds; round++) {
        Shape shape = random_shape(&r);
        if (compute != COMPUTE_F32)
            shape.experts.chosen = shape.experts.count; // rounded, it may choose others
        RandomModel m;
        Session cpu, gpu;
        Plan p;
        simt_settings.order = (SimtOrder)(round % SIMT_ORDERS);
        random_model_init(&m, &shape, dtype, mixed, &r);
        open_pair(&m, compute, &cpu, &gpu);
        make_plan(&p, &shape, &r);
        run_plan(&cpu, &p);
        run_plan(&gpu, &p);
        double error = compare(&cpu, &gpu, &p);
        if (!(error <= tolerance) && !(compute == COMPUTE_BF16 && error <= 2 * own_error(&m, &cpu, &p)))
            fail_msg("round %d: error %g, wanted at most %g (width %d, heads %d/%d of %d, mlp %d, "
                     "experts %d of %d, vocab %d, window %d, seed %llu)",
                     round, error, tolerance, shape.width, shape.heads, shape.kv_heads, shape.head_dim,
                     shape.mlp_width, shape.experts.chosen, shape.experts.count, shape.vocab, shape.window,
                     (unsigned long long)test_seed());
        if (error > worst) worst = error;
        session_release(&cpu);
        session_release(&gpu);
        random_model_release(&m);
    }
    print_message("compute %s, weights %s: worst error %.2e\n", compute == COMPUTE_BF16 ? "bf16" : "f32",
                  mixed ? "mixed" : dtype_name(dtype), worst);
}

static void f32_compute(void **state) {
    (void)state;
    check_shapes(COMPUTE_F32, DTYPE_F32, false, 2e-5, 4);
    check_shapes(COMPUTE_F32, DTYPE_F16, false, 2e-5, 4);
    check_shapes(COMPUTE_F32, DTYPE_BF16, false, 2e-5, 4);
    check_shapes(COMPUTE_F32, DTYPE_F32, true, 2e-5, 4);
}

static void bf16_compute(void **state) {
    (void)state;
    check_shapes(COMPUTE_BF16, DTYPE_BF16, false, 4e-2, 12);
    check_shapes(COMPUTE_BF16, DTYPE_F16, true, 4e-2, 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(f32_compute), cmocka_unit_test(bf16_compute)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
