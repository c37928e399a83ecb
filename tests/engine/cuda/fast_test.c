// --math fast against the CPU's reference kernels. Its products come from a simulated cuBLASLt
// (tests/simt/cublaslt.c), which checks every call: all shapes within an engine's limits, both computes.
// Algorithms are measured once per shape; refusals of the library are reported.
#include "tests/support/check.h"
#include "tests/support/random_model.h"
#include "tests/simt/cublaslt.h"
#include "tests/simt/settings.h"

#include "engine/core/session.h"
#include "engine/cpu/cpu.h"
#include "engine/cuda/cublas.h"
#include "engine/cuda/cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What cublas.h says of the real one, where its header is at hand.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
_Static_assert(CUBLAS_R_32F == (int)CUDA_R_32F && CUBLAS_R_16F == (int)CUDA_R_16F &&
                   CUBLAS_R_16BF == (int)CUDA_R_16BF,
               "types");
_Static_assert(CUBLAS_COMPUTE_IN_32F == (int)CUBLAS_COMPUTE_32F && CUBLAS_TRANSPOSED == (int)CUBLAS_OP_T,
               "sums");
_Static_assert(CUBLAS_MATMUL_TRANSA == (int)CUBLASLT_MATMUL_DESC_TRANSA, "operation");
_Static_assert(CUBLAS_PREFERENCE_MAX_WORKSPACE == (int)CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
               "preference");
_Static_assert(sizeof(CublasAlgorithm) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
_Static_assert(sizeof(CublasFound) == sizeof(cublasLtMatmulHeuristicResult_t) &&
                   offsetof(CublasFound, workspace) ==
                       offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) &&
                   offsetof(CublasFound, status) == offsetof(cublasLtMatmulHeuristicResult_t, state),
               "found");
#endif

enum { PROMPT = 20, MOST = 48 };

static FakeCublas *fake(void **state) { return *state; }

// Its file lies in the build's folder simt/, three above this program's.
static int find_library(void **state) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    if (n <= 0) return -1;
    for (int up = 0; up < 4 && n > 0; up++)
        while (n > 0 && path[--n] != '/') {}
    snprintf(path + n, 64, "/simt/libcublasLt.so");
    void *library = dlopen(path, RTLD_NOW);
    *state = library ? dlsym(library, "fake_cublas") : NULL;
    return *state ? setenv("OUTPACE_CUBLAS", path, 1) : -1;
}

static bool open_one(Session *s, const RandomModel *m, Compute compute, bool cuda, Error *e) {
    BackendOptions o = {.compute = compute,
                        .context = 300,
                        .max_nodes = MOST,
                        .threads = 1,
                        .isa = cuda ? NULL : "reference",
                        .slack = 16,
                        .fast = cuda};
    void *self;
    if (!(cuda ? cuda_open(&m->model, &o, &self, e) : cpu_open(&m->model, &o, &self, e))) return false;
    session_init(s, cuda ? &cuda_backend : &cpu_backend, self, &m->model.shape, &o);
    return true;
}

// A chain of `count` after the prompt; its logits can be read then.
static void run(Session *s, int vocab, int count) {
    Error e = {0};
    int prompt[PROMPT], node = 0;
    for (int i = 0; i < PROMPT; i++) prompt[i] = i * 7 % vocab;
    session_reset(s);
    if (!session_prefill(s, prompt, PROMPT, 0, 0, NULL, &e)) fail_msg("%s", e.text);
    session_begin_step(s, true, LAYOUT_TREE);
    for (int i = 0; i < count; i++)
        node = i ? tree_probe(&s->tree, node, i * 5 % vocab, true) : tree_root(&s->tree, 1);
    if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
}

static double worst_error(const Session *got, const Session *want, int count) {
    double worst = 0, scale = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < want->shape.real_vocab; k++) {
            double x = (double)session_logits(got, i)[k], y = (double)session_logits(want, i)[k];
            if (!(fabs(x - y) <= worst)) worst = fabs(x - y);
            scale = fmax(scale, fabs(y));
        }
    return worst / scale;
}

static void check(Compute compute, Dtype dtype, bool mixed, double tolerance) {
    static const int counts[] = {1, 8, 9, 40, MOST};
    Random r = test_random(120 + (uint64_t)dtype);
    double worst = 0;
    for (int round = 0; round < 2; round++) {
        Shape shape = random_shape(&r);
        RandomModel m;
        Session cpu, gpu;
        Error e = {0};
        simt_settings.order = (SimtOrder)(round % SIMT_ORDERS);
        random_model_init(&m, &shape, dtype, mixed, &r);
        if (!open_one(&cpu, &m, compute, false, &e) || !open_one(&gpu, &m, compute, true, &e))
            fail_msg("%s", e.text);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            run(&cpu, shape.real_vocab, counts[i]);
            run(&gpu, shape.real_vocab, counts[i]);
            double error = worst_error(&gpu, &cpu, counts[i]);
            if (!(error <= tolerance)) fail_msg("round %d, %d rows: error %g", round, counts[i], error);
            if (error > worst) worst = error;
        }
        session_release(&cpu);
        session_release(&gpu);
        random_model_release(&m);
    }
    print_message("compute %s, weights %s: worst error %.2e\n", dtype_name(compute_dtype(compute)),
                  mixed ? "mixed" : dtype_name(dtype), worst);
}

static void numbers_are_the_models(void **state) {
    check(COMPUTE_BF16, DTYPE_BF16, false, 4e-2);
    if (test_long()) check(COMPUTE_BF16, DTYPE_BF16, true, 4e-2);
    if (test_long()) check(COMPUTE_F16, DTYPE_F16, false, 5e-3);
    check(COMPUTE_F32, DTYPE_F32, false, 2e-5);
    assert_true(fake(state)->products[FAKE_FASTEST] > 0);
    assert_int_equal(fake(state)->live, 0);
    assert_int_equal(simt_live_bytes(), 0);
}

// The slow way is tried when a shape comes, and never again; rows are rounded up.
static void the_fastest_is_kept(void **state) {
    Random r = test_random(130);
    Shape shape = random_dense_shape(&r);
    RandomModel m;
    Session s;
    Error e = {0};
    BackendReport report;
    setenv("OUTPACE_FAKE_CUBLAS", "slow", 1);
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    if (!open_one(&s, &m, COMPUTE_BF16, true, &e)) fail_msg("%s", e.text);
    s.backend->report(s.self, &report);
    assert_string_equal(report.isa, "sm_90, cuBLASLt 13.2.3");
    run(&s, shape.real_vocab, 9);
    int slow = fake(state)->products[FAKE_SLOW], fast = fake(state)->products[FAKE_FASTEST];
    run(&s, shape.real_vocab, 14);
    assert_int_equal(fake(state)->products[FAKE_SLOW], slow);
    assert_true(fake(state)->products[FAKE_FASTEST] > fast); // the head, which is not recorded
    assert_int_equal(fake(state)->columns, 16);
    run(&s, shape.real_vocab, 17);
    assert_true(fake(state)->products[FAKE_SLOW] > slow);
    assert_int_equal(fake(state)->columns, 32);
    unsetenv("OUTPACE_FAKE_CUBLAS");
    session_release(&s);
    random_model_release(&m);
}

static void what_is_refused_is_told(void **state) {
    Random r = test_random(131);
    Shape shape = random_dense_shape(&r);
    RandomModel m;
    Session s;
    Error e = {0};
    char library[4096];
    random_model_init(&m, &shape, DTYPE_BF16, false, &r);
    setenv("OUTPACE_FAKE_CUBLAS", "refuse", 1);
    if (!open_one(&s, &m, COMPUTE_BF16, true, &e)) fail_msg("%s", e.text);
    session_begin_step(&s, true, LAYOUT_TREE);
    tree_root(&s.tree, 1);
    assert_false(session_run(&s, shape.layers, &e));
    assert_string_equal(e.text,
                        "cuda:0: cuBLASLt 13.2.3 has no way to do a product: status 15; --math exact does "
                        "without it");
    session_release(&s);
    unsetenv("OUTPACE_FAKE_CUBLAS");
    snprintf(library, sizeof library, "%s", getenv("OUTPACE_CUBLAS"));
    setenv("OUTPACE_CUBLAS", "/nowhere/libcublasLt.so.13", 1);
    assert_false(open_one(&s, &m, COMPUTE_BF16, true, &e));
    assert_non_null(strstr(e.text, "$OUTPACE_CUBLAS: /nowhere/libcublasLt.so.13"));
    setenv("OUTPACE_CUBLAS", library, 1);
    assert_int_equal(fake(state)->live, 0);
    assert_int_equal(simt_live_bytes(), 0);
    random_model_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_models),
        cmocka_unit_test(the_fastest_is_kept),
        cmocka_unit_test(what_is_refused_is_told),
    };
    return cmocka_run_group_tests(tests, find_library, NULL);
}
