// A step's report, for every method on the null backend: its passes against the sessions' counts, the drafted
// chain against a model that runs one token at a time, prefill.
#include "tests/support/check.h"
#include "tests/support/null_session.h"

#include "engine/decode/decode.h"

#include <stdio.h>
#include <string.h>

enum { VOCAB = 6, CONTEXT = 90, TOKENS = 60, READ = 8, BOTH = 1 | READ };

typedef struct {
    Session target, draft, slow;
    NullAdapters adapters;
    double passes[3], rows[3]; // of each model, when last looked at
    int sequence[CONTEXT + 1], length, prompt;
    int before; // tokens before the step
    int chained, agreed, behind, prefills;
    unsigned ran; // bit 0 of each model: passes; bit 3 (READ): heads
    bool tables;  // the method makes rows of them in its steps
} World;

static void open_world(World *w) {
    NullSetup setup = {.vocab = VOCAB, .context = CONTEXT};
    *w = (World){0};
    null_session_open(&w->target, &setup);
    null_session_open(&w->draft, &setup);
    null_adapters_open(&w->adapters, &setup);
    null_session_open(&w->slow, &setup);
}

static void close_world(World *w) {
    session_release(&w->target);
    session_release(&w->draft);
    null_adapters_close(&w->adapters);
    session_release(&w->slow);
}

static const Session *sessions_of(const World *w, int model, int *count) {
    *count = model == PASS_ADAPTER ? ADAPTER_SETS : 1;
    return model == PASS_TARGET ? &w->target : model == PASS_DRAFT ? &w->draft : w->adapters.sessions;
}

// The passes are those that the sessions ran since the last report, with as many rows.
static void check_passes(World *w, const StepReport *r) {
    for (int model = PASS_TARGET; model <= PASS_ADAPTER; model++) {
        int count;
        const Session *sessions = sessions_of(w, model, &count);
        double passes = 0, rows = 0, ran = 0, in = 0;
        for (int i = 0; i < r->pass_count; i++) {
            const Pass *p = &r->passes[i];
            if ((int)p->model != model) continue;
            assert_in_range(p->rows, 1, TREE_MAX_NODES);
            assert_in_range(p->b, p->a, sessions[0].shape.layers);
            if (p->a < p->b) passes += p->count;
            if (p->a == 0 && p->b > 0) rows += p->count * p->rows;
            w->ran |= (p->a < p->b ? 1u : (unsigned)READ) << model;
        }
        for (int i = 0; i < count; i++) {
            ran += sessions[i].passes;
            in += sessions[i].rows;
        }
        assert_true(passes == ran - w->passes[model]);
        assert_true(rows == in - w->rows[model]);
        w->passes[model] = ran;
        w->rows[model] = in;
    }
}

// The target's pass through its last layer and the head's begin at this step's context; those of N-Grammys'
// tables at none, where they can't be told apart from a step's.
static void check_target(const StepReport *r, int layers, bool tables) {
    int through = 0, read = 0;
    for (int i = 0; i < r->pass_count; i++) {
        const Pass *p = &r->passes[i];
        if (p->model != PASS_TARGET || (tables && p->context == 0)) continue;
        assert_int_equal(p->context, r->context);
        if (p->b == layers) *(p->a < p->b ? &through : &read) += p->rows * p->count;
    }
    if (tables && r->context == 0) return;
    assert_int_equal(through, r->rows);
    assert_in_range(read, r->chain + 1, 2 * r->rows); // twice, if the method looks at every node again
}

static void check_chain(World *w, const StepReport *r) {
    const Tree *t = &w->target.tree;
    int node = 0, n = 0, whole[CONTEXT + TREE_MAX_NODES];
    memcpy(whole, w->sequence, (size_t)w->before * sizeof *whole);
    for (int i; (i = t->first_proposal[node]) != TREE_NONE && t->proposals[i].next == TREE_NONE; n++) {
        bool agrees = slow_next(&w->slow, whole, w->before + n, NULL) == t->token[t->proposals[i].child];
        node = t->proposals[i].child;
        whole[w->before + n] = t->token[node];
        if (n >= 64) continue;
        if ((r->agrees >> n & 1) != agrees)
            fail_msg("position %d: agrees is %d, want %d", n, !agrees, agrees);
        w->agreed += agrees;
        w->behind += agrees && (r->agrees & ((1ull << n) - 1)) != (1ull << n) - 1;
    }
    assert_int_equal(r->chain, n);
    if (n < 64) assert_true(r->agrees >> n == 0);
    w->chained += n > 0;
}

static void on_prefill(void *state, const StepReport *r) {
    World *w = state;
    assert_int_equal(r->number, -1);
    assert_int_equal(r->note.kind, STEP_PREFILL);
    assert_int_equal(r->rows, w->prompt - 1);
    assert_int_equal(r->emitted, 0);
    check_passes(w, r);
    w->prefills++;
}

static void on_step(void *state, const StepReport *r) {
    World *w = state;
    check_passes(w, r);
    check_target(r, w->target.shape.layers, w->tables);
    check_chain(w, r);
    assert_int_not_equal(r->note.kind, STEP_PREFILL);
    w->before = w->length;
}

static bool on_emit(void *state, int token) {
    World *w = state;
    w->sequence[w->length++] = token;
    return true;
}

static void run(World *w, Method *m, Random *r) {
    DecodeOptions o = {.max_tokens = TOKENS,
                       .sampling = {.temperature = test_between(r, 0, 1), .top_p = 1},
                       .merge = test_between(r, 0, 1),
                       .layout = test_between(r, 0, 2) ? LAYOUT_TREE : LAYOUT_BATCH,
                       .prefill_chunk = test_between(r, 0, 5),
                       .clock = still_clock(),
                       .emit = on_emit,
                       .prefill = on_prefill,
                       .step = on_step,
                       .state = w};
    DecodeResult out;
    Error e = {0};
    w->prompt = w->length = w->before = test_between(r, 1, 20);
    for (int i = 0; i < w->prompt; i++) w->sequence[i] = test_between(r, 0, VOCAB - 1);
    if (!decode(&w->target, m, w->sequence, w->prompt, &o, &out, &e)) fail_msg("%s", e.text);
    assert_true(!w->target.log && !w->draft.log); // no log is left in a session
    for (int i = 0; i < ADAPTER_SETS; i++) assert_null(w->adapters.sessions[i].log);
    decode_result_release(&out);
}

static void check_method(const char *text, unsigned models, Random *r) {
    World w;
    Method m;
    Error e = {0};
    open_world(&w);
    MethodEnv env = {
        .target = &w.target, .draft = &w.draft, .sampling = {.temperature = 1, .top_p = 1}, .seed = 3};
    null_adapters_give(&w.adapters, &env);
    if (!method_open(&m, text, &env, &e)) fail_msg("%s: %s", text, e.text);
    w.passes[PASS_TARGET] = w.target.passes; // tables were made with it
    w.rows[PASS_TARGET] = w.target.rows;
    w.tables = strcmp(m.info->name, "ngrammys") == 0 || strcmp(m.info->name, "mix") == 0;
    for (int i = 0; i < 8; i++) run(&w, &m, r);
    assert_int_equal(w.prefills, 8);
    assert_int_equal(w.ran, models | (unsigned)BOTH << PASS_TARGET);
    if (strcmp(text, "jacobi") == 0 || strcmp(text, "speculative") == 0)
        assert_true(w.chained > 30 && w.agreed > 30 && w.behind > 5);
    method_close(&m);
    close_world(&w);
}

static void every_method_tells_its_work(void **state) {
    (void)state;
    Random r = test_random(71);
    size_t count;
    const MethodInfo *const *table = method_table(&count);
    for (size_t i = 0; i < count; i++) {
        unsigned needs = table[i]->needs, models = 0;
        if (needs & (NEEDS_FILE | NEEDS_ANSWER)) continue;
        if (needs & NEEDS_DRAFT) models |= (unsigned)BOTH << PASS_DRAFT;
        if (needs & NEEDS_ADAPTERS) models |= (unsigned)BOTH << PASS_ADAPTER;
        check_method(table[i]->name, models, &r);
    }
    check_method("mix:kangaroo+medusa", (unsigned)BOTH << PASS_ADAPTER, &r);
}

// More guesses than bits: the first 64 are reported.
static void a_long_chain(void **state) {
    (void)state;
    World w;
    Method m;
    Random r = test_random(72);
    open_world(&w);
    MethodEnv env = {.target = &w.target, .sampling = {.top_p = 1}, .seed = 3};
    assert_true(method_open(&m, "jacobi:m=80", &env, NULL));
    for (int i = 0; i < 5; i++) run(&w, &m, &r);
    method_close(&m);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_tells_its_work),
        cmocka_unit_test(a_long_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
