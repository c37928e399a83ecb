// The forward pass against Hugging Face transformers: tiny random models of each architecture, with the
// logits that it gave (tests/oracle/models.py made them). f32 within 2e-5 of the largest logit at every
// position and 64 greedy tokens equal, by every method that needs nothing beside the target; bf16 at most
// twice as far off as transformers' own bf16 is.
#include "tests/check.h"

#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/decode/decode.h"
#include "engine/engine.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_IDS = 256 };
static const double F32_TOLERANCE = 2e-5, BF16_FACTOR = 2;

typedef struct {
    char dir[512];
    int prompt_count, greedy_count, vocab;
    int ids[MAX_IDS]; // the prompt, then the greedy tokens
    double bf16_error;
    const float *logits; // (prompt_count + greedy_count, vocab)
    char *logit_bytes;
} Golden;

static int read_ids(const json_t *array, int *out) {
    for (size_t i = 0; i < json_array_size(array); i++)
        out[i] = (int)json_integer_value(json_array_get(array, i));
    return (int)json_array_size(array);
}

static void golden_open(Golden *g, const char *name) {
    char path[1024];
    size_t size;
    Error e = {0};
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(g->dir, sizeof g->dir, "%s/tests/fixtures/golden/%s", root ? root : ".", name);
    snprintf(path, sizeof path, "%s/golden.json", g->dir);
    json_t *j = json_from_file(path, 1 << 20, &e);
    if (!j) fail_msg("%s", e.text);
    g->prompt_count = read_ids(json_object_get(j, "prompt"), g->ids);
    g->greedy_count = read_ids(json_object_get(j, "greedy"), g->ids + g->prompt_count);
    g->vocab = (int)json_integer_value(json_object_get(j, "vocab"));
    g->bf16_error = json_real_value(json_object_get(j, "bf16_error"));
    json_decref(j);
    snprintf(path, sizeof path, "%s/logits.f32", g->dir);
    if (!file_read(path, 1 << 24, &g->logit_bytes, &size, &e)) fail_msg("%s", e.text);
    g->logits = (const float *)(const void *)g->logit_bytes;
    assert_int_equal(size, (size_t)(g->prompt_count + g->greedy_count) * (size_t)g->vocab * sizeof(float));
}

static void open_engine(Engine *engine, const Golden *g, const char *compute) {
    Error e = {0};
    EngineOptions o = {.device = "cpu", .compute = compute, .backend.isa = getenv("OUTPACE_ISA")};
    if (!engine_open(engine, g->dir, &o, NULL, &e)) fail_msg("%s", e.text);
}

// The largest difference at a position, relative to the position's largest wanted logit.
static double row_error(const float *got, const float *want, int n) {
    double scale = 0, worst = 0;
    for (int i = 0; i < n; i++) {
        scale = fmax(scale, fabs((double)want[i]));
        worst = fmax(worst, fabs((double)got[i] - (double)want[i]));
    }
    return isnan(worst) ? INFINITY : worst / scale;
}

// All ids as one chain, in steps of at most `chunk` nodes.
static double chain_error(Session *s, const Golden *g, int chunk) {
    int count = g->prompt_count + g->greedy_count;
    double worst = 0;
    Error e = {0};
    session_reset(s);
    for (int done = 0; done < count;) {
        int n = count - done < chunk ? count - done : chunk;
        session_begin_step(s, true, LAYOUT_TREE);
        int node = tree_root(&s->tree, g->ids[done]);
        for (int i = 1; i < n; i++) node = tree_probe(&s->tree, node, g->ids[done + i], true);
        if (!session_run(s, s->shape.layers, &e) || !session_read(s, HEAD_LOGITS, &e)) fail_msg("%s", e.text);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, row_error(session_logits(s, i),
                                          g->logits + (size_t)(done + i) * (size_t)g->vocab, g->vocab));
        if (!session_commit(s, node, n, &e)) fail_msg("%s", e.text);
        done += n;
    }
    return worst;
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

static void check_model(const char *name) {
    Golden g;
    Engine engine;
    golden_open(&g, name);
    open_engine(&engine, &g, "f32");
    for (int chunk = 1; chunk <= 128; chunk *= 8) {
        double error = chain_error(&engine.session, &g, chunk);
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
    open_engine(&engine, &g, "bf16");
    double error = chain_error(&engine.session, &g, 128), limit = BF16_FACTOR * g.bf16_error;
    print_message(", bf16 error %.2e (transformers' %.2e)\n", error, g.bf16_error);
    if (!(error <= limit)) fail_msg("%s: bf16 error %.3g, wanted at most %.3g", name, error, limit);
    engine_close(&engine);
    mem_free(g.logit_bytes);
}

static void all_models(void **state) {
    (void)state;
    Golden g = {0};
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(g.dir, sizeof g.dir, "%s/tests/fixtures/golden", root ? root : ".");
    DIR *d = opendir(g.dir);
    if (!d) fail_msg("cannot open '%s': run from the repository's root, or set OUTPACE_ROOT", g.dir);
    int models = 0;
    for (struct dirent *f; (f = readdir(d));)
        if (f->d_name[0] != '.') {
            check_model(f->d_name);
            models++;
        }
    closedir(d);
    assert_true(models >= 11);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
