// EAGLE-3, DSpark and DFlash in DeepSpec's form and PARD against the authors' own programs, which ran
// the same random models (tests/oracle/drafts.py), and MTP against a network of transformers' parts: every
// guess of every step, and the text.
#include "tests/support/check.h"

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/decode/decode.h"
#include "engine/model/adapter.h"
#include "tests/support/null_session.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64, CONTEXT = 128 };

typedef struct {
    Session target, draft;
    const json_t *steps, *greedy; // of the authors, in the open text
    int prompt;
    size_t wrong, guessed;
    bool own_first; // their first token comes from the prompt's pass, ours from a step
} Watch;

static void path_to(const char *part, const char *name, char out[512]) {
    const char *root = getenv("OUTPACE_ROOT");
    snprintf(out, 512, "%s/tests/fixtures/drafts/%s/%s", root ? root : ".", part, name);
}

static void open_session(Session *s, const Model *m) {
    BackendOptions o = {
        .compute = COMPUTE_F32, .context = CONTEXT, .threads = 1, .isa = getenv("OUTPACE_ISA")};
    void *self;
    Error e = {0};
    if (!cpu_open(m, &o, &self, &e)) fail_msg("%s", e.text);
    session_init(s, &cpu_backend, self, &m->shape, &o);
}

static int id_at(const json_t *list, size_t i) { return (int)json_integer_value(json_array_get(list, i)); }

// The authors' guesses behind `made` tokens; NULL: no step of theirs begins there.
static const json_t *guesses_behind(const Watch *w, size_t made) {
    size_t at = w->own_first;
    for (size_t i = 0; i < json_array_size(w->steps) && at <= made; i++) {
        const json_t *step = json_array_get(w->steps, i);
        size_t kept = 0;
        if (at == made) return step;
        while (kept < json_array_size(step) && id_at(step, kept) == id_at(w->greedy, at + kept)) kept++;
        at += kept + 1;
    }
    return NULL;
}

static void see_step(void *state, const StepReport *r) {
    Watch *w = state;
    const Tree *t = &w->target.tree;
    const json_t *want = guesses_behind(w, (size_t)(r->context + 1 - w->prompt));
    for (size_t i = 0; i < json_array_size(want) && (int)i + 1 < t->count; i++, w->guessed++) {
        int token = id_at(want, i);
        if (t->parent[i + 1] == (int)i && t->token[i + 1] == token) continue;
        print_message("step %d: guess %zu is %d, the authors' %d\n", r->number, i, t->token[i + 1], token);
        w->wrong++;
    }
}

static size_t read_ids(const json_t *list, int *out) {
    size_t n = json_array_size(list);
    assert_true(n <= CONTEXT);
    for (size_t i = 0; i < n; i++) out[i] = id_at(list, i);
    return n;
}

static void compare(Watch *w, const char *part, const MethodEnv *env, const char *method) {
    char path[512];
    Error e = {0};
    path_to(part, "steps.json", path);
    json_t *rows = json_from_file(path, 1 << 20, &e);
    if (!rows) fail_msg("%s", e.text);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        int prompt[CONTEXT], greedy[CONTEXT];
        int count = (int)read_ids(json_object_get(row, "prompt"), prompt),
            want = (int)read_ids(json_object_get(row, "greedy"), greedy);
        DecodeOptions o = {.max_tokens = want, .sampling = {.top_p = 1}, .clock = still_clock()};
        Method m;
        DecodeResult out;
        o.step = see_step;
        o.state = w;
        w->steps = json_object_get(row, "steps");
        w->greedy = json_object_get(row, "greedy");
        w->prompt = count;
        if (!method_open(&m, method, env, &e)) fail_msg("%s: %s", method, e.text);
        if (!decode(&w->target, &m, prompt, count, &o, &out, &e)) fail_msg("%s: %s", method, e.text);
        assert_int_equal(out.tokens, want);
        assert_memory_equal(out.ids, greedy, (size_t)want * sizeof *greedy);
        decode_result_release(&out);
        method_close(&m);
    }
    print_message("%s: %zu guesses, %zu others than the authors'\n", part, w->guessed, w->wrong);
    assert_true(w->wrong == 0 && w->guessed > 200);
    json_decref(rows);
}

typedef struct {
    Model target, draft;
    ModelWeights target_weights, draft_weights;
} Models;

static void open_target(Models *m, const char *part) {
    char path[512];
    Error e = {0};
    path_to(part, "target", path);
    if (!model_open(&m->target, &m->target_weights, path, &e)) fail_msg("%s", e.text);
}

static void deepspec(void **state) {
    (void)state;
    Watch w = {.own_first = true};
    Models m;
    Adapter a;
    char path[512];
    Error e = {0};
    open_target(&m, "deepspec");
    path_to("deepspec", "draft", path);
    if (!adapter_open(&a, &m.target, path, &e)) fail_msg("%s", e.text);
    assert_true(a.kind.variant == ADAPTER_EAGLE3 && a.captures.count == 5 && a.captures.layers[4] == 6);
    open_session(&w.target, &m.target);
    open_session(&w.draft, &a.models[0]);
    MethodEnv env = {
        .target = &w.target,
        .adapters = {{&w.draft, 1, m.target.shape.layers, &a.captures, a.draft_ids, a.mask_states, false}},
        .sampling = {.top_p = 1}};
    compare(&w, "deepspec", &env, "eagle3:tree=0;00;000;0000;00000;000000;0000000");
    session_release(&w.target);
    session_release(&w.draft);
    adapter_close(&a);
    model_close(&m.target_weights);
}

// Their first token comes from the prompt's pass, as of their EAGLE-3.
static void check_blocks(const char *part, Markov markov) {
    Watch w = {.own_first = true};
    Models m;
    Adapter a;
    char path[512];
    Error e = {0};
    open_target(&m, part);
    path_to(part, "draft", path);
    if (!adapter_open(&a, &m.target, path, &e)) fail_msg("%s", e.text);
    assert_true(a.kind.variant == ADAPTER_DFLASH && a.captures.count == 3 && a.captures.layers[2] == 5);
    assert_true(a.models[0].shape.block.from_root && a.models[0].shape.block.markov == markov);
    open_session(&w.target, &m.target);
    open_session(&w.draft, &a.models[0]);
    MethodEnv env = {
        .target = &w.target,
        .adapters = {{&w.draft, 1, m.target.shape.layers, &a.captures, a.draft_ids, a.mask_states, false}},
        .sampling = {.top_p = 1}};
    compare(&w, part, &env, "dflash");
    session_release(&w.target);
    session_release(&w.draft);
    adapter_close(&a);
    model_close(&m.target_weights);
}

static void dspark(void **state) {
    (void)state;
    check_blocks("dspark", MARKOV_VANILLA);
}

static void dflash(void **state) {
    (void)state;
    check_blocks("dflash", MARKOV_NONE);
}

// The layer is in the two files of the target. The method chooses which states it reads and recycles.
static void mtp(void **state) {
    (void)state;
    static const char *const STATES[] = {"raw", "normed"};
    Models m;
    Adapter a;
    char path[512], part[64], method[64];
    Error e = {0};
    open_target(&m, "mtp");
    assert_int_equal(m.target.mtp_layers, 1);
    path_to("mtp", "target", path);
    if (!adapter_open(&a, &m.target, path, &e)) fail_msg("%s", e.text);
    assert_true(a.kind.variant == ADAPTER_MTP && a.captures.count == 1 && a.captures.layers[0] == 3);
    assert_true(a.models[0].shape.qkv_bias && !a.kind.recycles_normed && a.weights.file_count == 2);
    for (int i = 0; i < 4; i++) {
        Watch w = {.own_first = false};
        open_session(&w.target, &m.target);
        open_session(&w.draft, &a.models[0]);
        MethodEnv env = {.target = &w.target,
                         .adapters = {{&w.draft, 1, m.target.shape.layers, &a.captures, NULL, NULL, false}},
                         .sampling = {.top_p = 1}};
        snprintf(part, sizeof part, "mtp/%s-%s", STATES[i / 2], STATES[i % 2]);
        snprintf(method, sizeof method, "mtp:gamma=4,state=%s,recycle=%s", STATES[i / 2], STATES[i % 2]);
        if (i == 0) snprintf(method, sizeof method, "mtp:gamma=4");
        compare(&w, part, &env, method);
        session_release(&w.target);
        session_release(&w.draft);
    }
    adapter_close(&a);
    model_close(&m.target_weights);
}

static void pard(void **state) {
    (void)state;
    Watch w = {.own_first = false};
    Models m;
    char path[512];
    Error e = {0};
    open_target(&m, "pard");
    path_to("pard", "draft", path);
    if (!model_open(&m.draft, &m.draft_weights, path, &e)) fail_msg("%s", e.text);
    assert_int_equal(m.draft.shape.mask_token, m.draft.shape.vocab - 1);
    open_session(&w.target, &m.target);
    open_session(&w.draft, &m.draft);
    MethodEnv env = {.target = &w.target, .draft = &w.draft, .sampling = {.top_p = 1}};
    compare(&w, "pard", &env, "speculative:gamma=6,parallel=on");
    session_release(&w.target);
    session_release(&w.draft);
    model_close(&m.target_weights);
    model_close(&m.draft_weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(deepspec), cmocka_unit_test(dspark),
                                       cmocka_unit_test(dflash), cmocka_unit_test(mtp),
                                       cmocka_unit_test(pard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
