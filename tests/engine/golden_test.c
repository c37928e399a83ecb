// The forward pass against Hugging Face transformers: tiny random models of each architecture, with its
// logits (by tests/oracle/models.py). f32 within 2e-5 of the largest logit at every position and 64 equal
// greedy tokens, by every method that needs only the target; bf16, and f16 of weights in f16, at most twice
// as far off as transformers' own.
#include "tests/support/check.h"
#include "tests/support/golden.h"

#include "engine/decode/decode.h"
#include "engine/engine.h"

static const double F32_TOLERANCE = 2e-5, HALF_FACTOR = 2;

static void open_engine(Engine *engine, const Golden *g, ComputeChoice compute) {
    Error e = {0};
    int context = g->prompt_count + g->greedy_count > 128 ? 256 : 128; // longer runs are made elsewhere
    EngineOptions o = {
        .device = "cpu", .compute = compute, .context = context, .threads = 1, .isa = getenv("OUTPACE_ISA")};
    if (!engine_open(engine, g->dir, &o, NULL, &e)) fail_msg("%s", e.text);
}

static void greedy_tokens(Engine *engine, const Golden *g, const MethodInfo *info) {
    Error e = {0};
    Method method;
    MethodEnv env = {.target = &engine->session};
    if (!method_open(&method, info->name, &env, &e)) { // it wants a draft model or the like
        print_message("  %s: skipped: %s\n", info->name, e.text);
        return;
    }
    DecodeOptions o = {.max_tokens = g->greedy_count,
                       .ignore_eos = true,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    DecodeResult r;
    if (!decode(&engine->session, &method, g->ids, g->prompt_count, &o, &r, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.tokens, g->greedy_count);
    for (int i = 0; i < r.tokens; i++)
        if (r.ids[i] != g->ids[g->prompt_count + i])
            fail_msg("%s, %s: token %d is %d, wanted %d", g->dir, info->name, i, r.ids[i],
                     g->ids[g->prompt_count + i]);
    decode_result_release(&r);
    method_close(&method);
}

static void check_half(const Golden *g, const char *name, ComputeChoice compute, Compute is, double theirs) {
    Engine engine;
    open_engine(&engine, g, compute);
    assert_int_equal(engine.session.compute, is);
    double ours = golden_rounded_error(&engine.session, g, 128), limit = HALF_FACTOR * theirs;
    print_message(", %s error %.2e (transformers' %.2e)", compute_name(is), ours, theirs);
    if (!(ours <= limit))
        fail_msg("%s: %s error %.3g, wanted at most %.3g", name, compute_name(is), ours, limit);
    engine_close(&engine);
}

static void check_model(const char *name) {
    Golden g;
    Engine engine;
    golden_open(&g, name);
    open_engine(&engine, &g, CHOOSE_F32);
    for (int chunk = 1; chunk <= 128; chunk *= 8) {
        double error = golden_error(&engine.session, &g, chunk);
        if (!(error <= F32_TOLERANCE))
            fail_msg("%s: f32 error %.3g, wanted %.3g", name, error, F32_TOLERANCE);
        if (chunk == 1) print_message("%s: f32 error %.2e", name, error);
    }
    size_t count;
    const MethodInfo *const *methods = method_table(&count);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++)
        if (!methods[i]->needs) greedy_tokens(&engine, &g, methods[i]); // a second model has tests of its own
    engine_close(&engine);
    check_half(&g, name, CHOOSE_BF16, COMPUTE_BF16, g.bf16_error);
    if (g.f16_error > 0) check_half(&g, name, CHOOSE_WEIGHTS, COMPUTE_F16, g.f16_error);
    print_message("\n");
    golden_release(&g);
}

static void all_models(void **state) {
    (void)state;
    assert_true(golden_each(check_model) >= (getenv("OUTPACE_GOLDENS") ? 1 : 15));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
