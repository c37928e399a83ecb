// The CUDA kernels against Hugging Face transformers, on the CPU (tests/simt): the same tolerances as the CPU
// backend's, and greedy tokens of two methods. The last model runs with device memory out of the host's
// reach, so that a step that touches it without a copy ends the program; and once more with what kernels that
// begin early may not read yet out of theirs.
#include "tests/support/check.h"
#include "tests/support/golden.h"
#include "tests/support/packed.h"
#include "tests/simt/settings.h"

#include "engine/decode/decode.h"
#include "engine/engine.h"

#include <string.h>

static const double F32_TOLERANCE = 2e-5, HALF_FACTOR = 2;
enum { CHECKED = 24, TOKENS = 8 }; // ids after the prompt whose logits are compared, and that are generated

static void open_engine(Engine *engine, const Golden *g, ComputeChoice compute) {
    Error e = {0};
    EngineOptions o = {.device = "cuda", .compute = compute, .context = 128, .max_nodes = 128};
    if (!engine_open(engine, g->dir, &o, NULL, &e)) fail_msg("%s", e.text);
}

static void greedy_tokens(Engine *engine, const Golden *g, const char *method) {
    Error e = {0};
    Method m;
    MethodEnv env = {.target = &engine->session};
    DecodeOptions o = {.max_tokens = TOKENS,
                       .ignore_eos = true,
                       .sampling = {.top_p = 1},
                       .merge = true,
                       .clock = clock_monotonic()};
    DecodeResult r;
    if (!method_open(&m, method, &env, &e) ||
        !decode(&engine->session, &m, g->ids, g->prompt_count, &o, &r, &e))
        fail_msg("%s", e.text);
    assert_int_equal(r.tokens, TOKENS);
    for (int i = 0; i < TOKENS; i++)
        if (r.ids[i] != g->ids[g->prompt_count + i])
            fail_msg("%s, %s: token %d is %d, wanted %d", g->dir, method, i, r.ids[i],
                     g->ids[g->prompt_count + i]);
    decode_result_release(&r);
    method_close(&m);
}

// At most twice as far off as transformers is.
static void check_half(const Golden *g, const char *name, ComputeChoice compute, Compute is, double theirs) {
    Engine engine;
    open_engine(&engine, g, compute);
    assert_int_equal(engine.session.compute, is);
    double ours = golden_rounded_error(&engine.session, g, 100);
    if (!(ours <= HALF_FACTOR * theirs))
        fail_msg("%s: %s error %.3g, wanted at most %.3g", name, compute_name(is), ours,
                 HALF_FACTOR * theirs);
    engine_close(&engine);
    print_message(", %s error %.2e (transformers' %.2e)", compute_name(is), ours, theirs);
}

static void check(const char *name, bool tokens) {
    Golden g;
    Engine engine;
    golden_open(&g, name);
    g.greedy_count = CHECKED;
    open_engine(&engine, &g, CHOOSE_F32);
    double error = golden_error(&engine.session, &g, 100);
    if (!(error <= F32_TOLERANCE)) fail_msg("%s: f32 error %.3g, wanted %.3g", name, error, F32_TOLERANCE);
    if (tokens) greedy_tokens(&engine, &g, "autoregressive");
    if (tokens) greedy_tokens(&engine, &g, "lookahead:W=3,N=3,G=3");
    engine_close(&engine);
    print_message("%s: f32 error %.2e", name, error);
    check_half(&g, name, CHOOSE_BF16, COMPUTE_BF16, g.bf16_error);
    if (g.f16_error > 0) check_half(&g, name, CHOOSE_WEIGHTS, COMPUTE_F16, g.f16_error);
    print_message("\n");
    golden_release(&g);
}

static int checked; // models

// Of packed weights, which the host's tests have in every form: one that is decoded on the host, and those
// whose codes of 4 and of 8 bits stay codes.
static void check_model(const char *name) {
    static const char *const packed[] = {"packed-awq", "packed-gptq", "packed-gptq-8-rows"};
    // One for each thing that kernels do for some models only.
    static const char *const some[] = {"cohere2",
                                       "gemma2",
                                       "gemma3-head256",
                                       "gemma3-sees",
                                       "glm4",
                                       "gpt2",
                                       "gpt-neox",
                                       "granite-moe-shared",
                                       "llama-f16-shards",
                                       "llama-head80",
                                       "mixtral",
                                       "olmo2",
                                       "phi3",
                                       "qwen3-tied-head24",
                                       "stablelm-12b"};
    bool chosen = test_long() && strncmp(name, "packed-", 7) != 0;
    for (int i = 0; i < 3; i++) chosen |= strcmp(name, packed[i]) == 0;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) chosen |= strcmp(name, some[i]) == 0;
    if (chosen) check(name, false), checked++;
}

static void all_models(void **state) {
    (void)state;
    assert_true(golden_each(check_model) >= 15);
    assert_true(checked >= 18); // those of both lists
    assert_int_equal(simt_live_bytes(), 0);
}

static void nothing_is_touched_by_the_host(void **state) {
    (void)state;
    simt_settings.locked = true;
    check("mistral-window7", true);
    simt_settings.locked = false;
}

static void nothing_is_read_early(void **state) {
    (void)state;
    simt_settings.early = true;
    check("mistral-window7", true);
    check("qwen3", false);
    check("qwen2-moe", false);
    simt_settings.early = false;
}

int main(int argc, char **argv) {
    if (argc > 1) return golden_files(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_models),
                                       cmocka_unit_test(nothing_is_touched_by_the_host),
                                       cmocka_unit_test(nothing_is_read_early)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
